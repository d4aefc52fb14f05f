/* SPDX-License-Identifier: Apache-2.0 */
/* osfl.c - the one-shot tables: 20 and 100 sites under three partitions (Tables 1 and 7), and up to 1000 (Table 6).
 *
 * Epsilon 10, delta 1e-5, secure aggregation with all its messages. The exact moments do not depend on the partition
 * or on the number of sites: every cell has their hash, and the report compares hashes, not accuracies. With one
 * seed the noise is the same too. The paper's baselines (FedSD2C, DENSE, CoBoosting, FedD3, FedCVAE) are not
 * implemented here: their published figures stand beside ours. */
#include "experiment/list.h"

#include <stdio.h>
#include <string.h>

static const double epsilon = 10;

const char *fkt_partition_of_label(const char *label, const char *set)
{
    if (strcmp(label, "pathological") != 0) return label;
    return strcmp(set, "cifar100") ? "pathological:2" : "pathological:10";
}

/* The point without noise is that of the first partition, or of the largest federation: where networks are trained. */
static fkt_status table(struct fkt_lab *lab, const struct fkt_cell *c, uint32_t sites, const char *partition, int train,
                        json_t *points)
{
    const struct fkt_lab_run r = {.set = c->panel,
                                  .arm = c->arm,
                                  .epsilon = &epsilon,
                                  .n_epsilon = 1,
                                  .sites = sites,
                                  .partition = partition,
                                  .participation = 1,
                                  .seed = c->seed,
                                  .reference = c->x[0].x > 2 ? fkt_cell_is_last(c) : fkt_cell_is_first(c),
                                  .train = train};
    return fkt_lab_sweep(lab, &r, c->x, points);
}

static fkt_status run_20(struct fkt_lab *lab, const struct fkt_cell *c, json_t *points)
{
    return table(lab, c, 20, fkt_partition_of_label(c->x[0].label, c->panel), 1, points);
}

static fkt_status run_100(struct fkt_lab *lab, const struct fkt_cell *c, json_t *points)
{
    return table(lab, c, 100, fkt_partition_of_label(c->x[0].label, c->panel), !fkt_lab_options(lab)->quick, points);
}

static fkt_status run_1000(struct fkt_lab *lab, const struct fkt_cell *c, json_t *points)
{
    return table(lab, c, (uint32_t)c->x[0].x, "dirichlet:0.1", !fkt_lab_options(lab)->quick && c->x[0].x >= 1000,
                 points);
}

static const char *const sets[] = {"eurosat", "cifar10", "cifar100", "imagenette64", "bloodmnist"};
static const struct fkt_position partitions[] = {{0, "dirichlet:0.1"}, {1, "dirichlet:0.05"}, {2, "pathological"}},
                                 sites_full[] = {{20, "20 sites"}, {100, "100 sites"}, {1000, "1000 sites"}},
                                 sites_quick[] = {{10, "10 sites"}, {100, "100 sites"}};

#define OSFL                                                                                                           \
    .y_title = "accuracy, %", .arm = fkt_usual_arms, .n_arms = FKT_USUAL_ARMS, .sets = sets,                           \
    .n_sets = FKT_COUNT(sets), .metric = fkt_accuracy_metrics, .n_metrics = FKT_ACCURACY_METRICS, .apart = 1,          \
    .invariant = 1

const struct fkt_experiment fkt_experiment_osfl_20 = {.name = "osfl-20",
                                                      .title = "One-shot learning, 20 sites",
                                                      .paper = "Table 1",
                                                      .about = "three partitions over 20 sites, epsilon 10",
                                                      .time = "quick: 1 min of processor time",
                                                      .x_title = "partition",
                                                      OSFL,
                                                      .x = partitions,
                                                      .n_x = FKT_COUNT(partitions),
                                                      .x_quick = partitions,
                                                      .n_quick = FKT_COUNT(partitions),
                                                      .trains_quick = 1,
                                                      .run = run_20};
const struct fkt_experiment fkt_experiment_osfl_100 = {.name = "osfl-100",
                                                       .title = "One-shot learning, 100 sites",
                                                       .paper = "Table 7",
                                                       .about = "three partitions over 100 sites, epsilon 10",
                                                       .time = "quick: 15 s of processor time",
                                                       .x_title = "partition",
                                                       OSFL,
                                                       .x = partitions,
                                                       .n_x = FKT_COUNT(partitions),
                                                       .x_quick = partitions,
                                                       .n_quick = FKT_COUNT(partitions),
                                                       .run = run_100};
const struct fkt_experiment fkt_experiment_scale_1000 = {.name = "scale-1000",
                                                         .title = "One-shot learning, up to 1000 sites",
                                                         .paper = "Table 6",
                                                         .about = "20, 100 and 1000 sites, Dirichlet 0.1, epsilon 10",
                                                         .time = "quick: 7 s of processor time",
                                                         .x_title = "sites",
                                                         OSFL,
                                                         .x = sites_full,
                                                         .n_x = FKT_COUNT(sites_full),
                                                         .x_quick = sites_quick,
                                                         .n_quick = FKT_COUNT(sites_quick),
                                                         .run = run_1000};
