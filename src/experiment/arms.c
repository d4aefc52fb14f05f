/* SPDX-License-Identifier: Apache-2.0 */
/* arms.c - what curves and tables of accuracy compare, and the numbers that they show.
 *
 * All arms use the networks that come with the program, so that they differ in mechanism and guide alone. The
 * paper's arm has its coordinates (clip), its mechanism and its adjacency; the networks, the quantisation and the
 * exact noise are ours. */
#include "experiment/list.h"

const struct fkt_arm fkt_usual_arms[FKT_USUAL_ARMS] = {
    {.name = "paper",
     .title = "paper's mechanism",
     .codec = "fedkt-ae",
     .coordinates = FKT_COORDINATE_CLIP,
     .mechanism = FKT_MECHANISM_PAPER,
     .adjacency = FKT_ADJACENCY_REPLACE,
     .noise = -1},
    {.name = "joint", .title = "joint", .codec = "fedkt-ae", .noise = -1},
    {.name = "guide", .title = "joint, with guide", .codec = "fedkt-ae", .guide = "fedkt-guide", .noise = -1},
    {.name = "real", .title = "real images", .kind = FKT_ARM_REAL},
};

const struct fkt_metric fkt_accuracy_metrics[FKT_ACCURACY_METRICS] = {
    {"best_head", "best head", 100, 1, 0}, {NULL, NULL, 100, 1, FKT_HEAD_NEAREST_MEAN},
    {NULL, NULL, 100, 1, FKT_HEAD_LDA},    {NULL, NULL, 100, 1, FKT_HEAD_QDA},
    {NULL, NULL, 100, 1, FKT_HEAD_RDA},    {"resnet18", "ResNet-18", 100, 1, 0},
    {"resnet8", "ResNet-8", 100, 1, 0},
};

const char *fkt_metric_key(const struct fkt_metric *m)
{
    return m->key ? m->key : fkt_head_name((enum fkt_head_kind)m->head);
}

const char *fkt_metric_title(const struct fkt_metric *m)
{
    return m->title ? m->title : fkt_head_title((enum fkt_head_kind)m->head);
}
