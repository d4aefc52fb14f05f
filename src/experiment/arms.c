/* SPDX-License-Identifier: Apache-2.0 */
/* arms.c - what curves and tables of accuracy compare, what attacks compare, and the numbers that they show.
 *
 * All arms use the networks that come with the program, so that their heads differ in mechanism and guide alone;
 * networks of arms with a guide also have a teacher, blends and public images (student.c). The
 * paper's arm has its coordinates (clip), its mechanism and its adjacency; the networks, the quantisation and the
 * exact noise are ours.
 *
 * Attacks on images and models need thousands of images for one figure, so their arms have the DCT: it is fast, and
 * from vectors to pixels and back it loses no more than their rounding and clipping, which favours the attacker.
 * `more` is epsilon; arms without noise do not use it. */
#include "experiment/pool.h"

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
    FKT_REAL_ARM,
};

const struct fkt_metric fkt_accuracy_metrics[FKT_ACCURACY_METRICS] = {
    {"best_head", "best head", 100, 1, 0}, {NULL, NULL, 100, 1, FKT_HEAD_NEAREST_MEAN},
    {NULL, NULL, 100, 1, FKT_HEAD_LDA},    {NULL, NULL, 100, 1, FKT_HEAD_QDA},
    {NULL, NULL, 100, 1, FKT_HEAD_RDA},    {"resnet18", "ResNet-18", 100, 1, 0},
    {"resnet8", "ResNet-8", 100, 1, 0},    {"real_head", FKT_REAL_HEAD_TITLE, 100, 1, 0},
};

const struct fkt_arm fkt_attack_arms[FKT_ATTACK_ARMS] = {
    {.name = "members",
     .title = "trained on the members: the control",
     .codec = "dct",
     .kind = FKT_POOL_MEMBERS,
     .more = 10},
    {.name = "control", .title = "no noise: the control", .codec = "dct", .kind = FKT_POOL_EXACT, .more = 10},
    {.name = "paper-10",
     .title = "paper's mechanism, epsilon 10",
     .codec = "dct",
     .coordinates = FKT_COORDINATE_CLIP,
     .mechanism = FKT_MECHANISM_PAPER,
     .adjacency = FKT_ADJACENCY_REPLACE,
     .more = 10},
    {.name = "joint-10", .title = "joint, epsilon 10", .codec = "dct", .more = 10},
    {.name = "joint-1", .title = "joint, epsilon 1", .codec = "dct", .more = 1},
    {.name = "others",
     .title = "members not used: nothing to find",
     .codec = "dct",
     .kind = FKT_POOL_OTHERS,
     .more = 10},
};
const char *const fkt_attack_sets[FKT_ATTACK_SETS] = {"eurosat", "cifar10"};
const struct fkt_position fkt_attack_rates[FKT_ATTACK_RATES] = {{0.001, 0}, {0.003, 0}, {0.01, 0}, {0.03, 0},
                                                                {0.1, 0},   {0.3, 0},   {1, 0}};
const struct fkt_metric fkt_attack_metrics[FKT_ATTACK_METRICS] = {{"tpr", "true positive rate", 1, 4, 0},
                                                                  {"auc", "area under the ROC", 1, 3, 0},
                                                                  {"bound", "most that the promise allows", 1, 4, 0}};

const char *fkt_metric_key(const struct fkt_metric *m)
{
    return m->key ? m->key : fkt_head_name((enum fkt_head_kind)m->head);
}

const char *fkt_metric_title(const struct fkt_metric *m)
{
    return m->title ? m->title : fkt_head_title((enum fkt_head_kind)m->head);
}
