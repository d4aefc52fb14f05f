/* SPDX-License-Identifier: Apache-2.0 */
/* curves.c - the ablation curves of the paper's Figure 3: epsilon, clients, heterogeneity, participation, samples.
 *
 * Each varies one thing of a federation of 20 sites, Dirichlet 0.1, epsilon 10, and leaves the rest. Noise is that of
 * the arm: central for the paper's mechanism, shares of the sites for ours. Networks are trained in full runs, and in
 * quick ones for the first epsilon and for `samples`. */
#include "experiment/list.h"

#include <stdio.h>

enum { SITES = 20 };
#define USUAL_PARTITION "dirichlet:0.1"
static const double usual_epsilon = 10;

static struct fkt_lab_run usual(const struct fkt_lab *lab, const struct fkt_cell *c)
{
    return (struct fkt_lab_run){.set = c->panel,
                                .arm = c->arm,
                                .epsilon = &usual_epsilon,
                                .n_epsilon = 1,
                                .sites = SITES,
                                .partition = USUAL_PARTITION,
                                .participation = 1,
                                .seed = c->seed,
                                .reference = fkt_cell_is_last(c),
                                .train = !fkt_lab_options(lab)->quick};
}

static fkt_status run_epsilon(struct fkt_lab *lab, const struct fkt_cell *c, json_t *points)
{
    struct fkt_lab_run r = usual(lab, c);
    double epsilon[FKT_SWEEP_EPSILONS_MAX];
    for (size_t i = 0; i < c->n_x; i++) epsilon[i] = c->x[i].x;
    r.epsilon = epsilon;
    r.n_epsilon = c->n_x;
    r.train = 1;
    r.train_all = !fkt_lab_options(lab)->quick;
    return fkt_lab_sweep(lab, &r, c->x, points);
}

static fkt_status run_clients(struct fkt_lab *lab, const struct fkt_cell *c, json_t *points)
{
    struct fkt_lab_run r = usual(lab, c);
    r.sites = (uint32_t)c->x[0].x;
    return fkt_lab_sweep(lab, &r, c->x, points);
}

static fkt_status run_heterogeneity(struct fkt_lab *lab, const struct fkt_cell *c, json_t *points)
{
    struct fkt_lab_run r = usual(lab, c);
    char partition[FKT_PARTITION_TEXT];
    snprintf(partition, sizeof partition, "dirichlet:%g", c->x[0].x);
    r.partition = partition;
    return fkt_lab_sweep(lab, &r, c->x, points);
}

static fkt_status run_participation(struct fkt_lab *lab, const struct fkt_cell *c, json_t *points)
{
    struct fkt_lab_run r = usual(lab, c);
    r.participation = c->x[0].x;
    return fkt_lab_sweep(lab, &r, c->x, points);
}

static fkt_status run_samples(struct fkt_lab *lab, const struct fkt_cell *c, json_t *points)
{
    struct fkt_lab_run r = usual(lab, c);
    r.train = 1;
    r.per_class = (size_t)c->x[0].x;
    return fkt_lab_sweep(lab, &r, c->x, points);
}

static const char *const sets[] = {"imagenette64", "eurosat", "cifar10"};
static const struct fkt_position epsilon_full[] = {{10, 0}, {0.1, 0}, {0.3, 0}, {1, 0},
                                                   {2, 0},  {3, 0},   {5, 0},   {20, 0}},
                                 epsilon_quick[] = {{10, 0}, {0.3, 0}, {1, 0}},
                                 clients_full[] = {{20, 0}, {50, 0}, {100, 0}, {200, 0}, {500, 0}, {1000, 0}},
                                 clients_quick[] = {{5, 0}, {20, 0}, {50, 0}},
                                 alpha_full[] = {{0.001, 0}, {0.01, 0}, {0.05, 0}, {0.1, 0}, {0.5, 0}},
                                 alpha_quick[] = {{0.001, 0}, {0.05, 0}, {0.5, 0}},
                                 share_full[] = {{0.1, 0}, {0.25, 0}, {0.5, 0}, {0.75, 0}, {1, 0}},
                                 share_quick[] = {{0.2, 0}, {0.5, 0}, {1, 0}},
                                 samples_full[] = {{100, 0}, {200, 0}, {500, 0}, {1000, 0}, {2000, 0}},
                                 samples_quick[] = {{10, 0}, {40, 0}};
static const struct fkt_metric network_first[] = {{"resnet18", "ResNet-18", 100, 1, 0},
                                                  {"resnet8", "ResNet-8", 100, 1, 0},
                                                  {"best_head", "best head", 100, 1, 0},
                                                  {"real_head", FKT_REAL_HEAD_TITLE, 100, 1, 0}};

#define CURVE                                                                                                          \
    .y_title = "accuracy, %", .plotted = 1, .arm = fkt_usual_arms, .n_arms = FKT_USUAL_ARMS, .sets = sets,             \
    .n_sets = FKT_COUNT(sets)
#define POSITIONS(name)                                                                                                \
    .x = name##_full, .n_x = FKT_COUNT(name##_full), .x_quick = name##_quick, .n_quick = FKT_COUNT(name##_quick)
#define ACCURACIES .metric = fkt_accuracy_metrics, .n_metrics = FKT_ACCURACY_METRICS

const struct fkt_experiment fkt_experiment_epsilon = {
    .name = "epsilon",
    .title = "Accuracy against epsilon",
    .paper = "Figure 3 (d)",
    .about = "accuracy at epsilon 0.1 to 20: paper's mechanism, joint, joint with guide",
    .time = "quick: 1 min of processor time",
    .x_title = "epsilon",
    .x_log = 1,
    CURVE,
    POSITIONS(epsilon),
    ACCURACIES,
    .invariant = 1,
    .trains_quick = 1,
    .run = run_epsilon};
const struct fkt_experiment fkt_experiment_clients = {
    .name = "clients",
    .title = "Accuracy against the number of sites",
    .paper = "Figure 3 (a)",
    .about = "20 to 1000 sites, epsilon 10, Dirichlet 0.1, secure aggregation",
    .time = "quick: 10 s of processor time",
    .x_title = "sites",
    .x_log = 1,
    CURVE,
    POSITIONS(clients),
    ACCURACIES,
    .apart = 1,
    .invariant = 1,
    .run = run_clients};
const struct fkt_experiment fkt_experiment_heterogeneity = {.name = "heterogeneity",
                                                            .title = "Accuracy against heterogeneity",
                                                            .paper = "Figure 3 (b)",
                                                            .about = "Dirichlet 0.001 to 0.5 over 20 sites, epsilon 10",
                                                            .time = "quick: 6 s of processor time",
                                                            .x_title = "Dirichlet alpha",
                                                            .x_log = 1,
                                                            CURVE,
                                                            POSITIONS(alpha),
                                                            ACCURACIES,
                                                            .apart = 1,
                                                            .invariant = 1,
                                                            .run = run_heterogeneity};
const struct fkt_experiment fkt_experiment_participation = {
    .name = "participation",
    .title = "Accuracy against participation",
    .paper = "Figure 3 (c)",
    .about = "a tenth to all of 20 sites take part, epsilon 10, Dirichlet 0.1",
    .time = "quick: 5 s of processor time",
    .x_title = "share of the sites that take part",
    CURVE,
    POSITIONS(share),
    ACCURACIES,
    .apart = 1,
    .run = run_participation};
const struct fkt_experiment fkt_experiment_samples = {
    .name = "samples",
    .title = "Accuracy against the number of synthetic images",
    .paper = "Figure 3 (e)",
    .about = "a network on 100 to 2000 synthetic images of a class, epsilon 10",
    .time = "quick: 1 min of processor time",
    .x_title = "synthetic images of a class",
    .x_log = 1,
    CURVE,
    POSITIONS(samples),
    .metric = network_first,
    .n_metrics = FKT_COUNT(network_first),
    .apart = 1,
    .invariant = 1,
    .trains_quick = 1,
    .needs_network = 1, /* the number of images matters for a network alone */
    .run = run_samples};
