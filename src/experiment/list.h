/* SPDX-License-Identifier: Apache-2.0 */
/* list.h - every experiment once: its variable, in the order of the report. Adding one is a word here and its file. */
#ifndef FKT_EXPERIMENT_LIST_H
#define FKT_EXPERIMENT_LIST_H

#include "experiment/experiment.h"

#define FKT_EXPERIMENTS(X)                                                                                             \
    X(mechanism)                                                                                                       \
    X(epsilon)                                                                                                         \
    X(clients)                                                                                                         \
    X(heterogeneity)                                                                                                   \
    X(participation)                                                                                                   \
    X(samples)                                                                                                         \
    X(osfl_20)                                                                                                         \
    X(osfl_100)                                                                                                        \
    X(scale_1000)                                                                                                      \
    X(personalised) X(cost) X(codecs) X(features) X(mia) X(mia_images) X(mia_heads) X(mia_networks) X(audit)

#define FKT_EXPERIMENT_DECLARE(name) extern const struct fkt_experiment fkt_experiment_##name;
#define FKT_EXPERIMENT_ADDRESS(name) &fkt_experiment_##name,
FKT_EXPERIMENTS(FKT_EXPERIMENT_DECLARE)

#define FKT_COUNT(table) (sizeof(table) / sizeof *(table))

/* arms.c: the three that curves and tables compare, and the bound. */
extern const struct fkt_arm fkt_usual_arms[];
enum { FKT_USUAL_ARMS = 4 };
#define FKT_REAL_ARM                                                                                                   \
    {                                                                                                                  \
        .name = "real", .title = "real images", .kind = FKT_ARM_REAL                                                   \
    }
/* metrics of accuracy: best head, each head, the networks, and the head that saw real features. */
extern const struct fkt_metric fkt_accuracy_metrics[];
enum { FKT_ACCURACY_METRICS = 8 };
#define FKT_REAL_HEAD_TITLE "softmax head on real features"

/* osfl.c: a partition of a table's column as fkt_partition_parse takes it; "pathological" is the paper's split, 10
 * classes a site where there are 100, else 2. */
const char *fkt_partition_of_label(const char *label, const char *set);

#endif
