/* SPDX-License-Identifier: Apache-2.0 */
/* codecs.c - the experiment `codecs`: codec, resolution and length of the vector, without and with guide (Table 5).
 *
 * The joint mechanism at epsilon 10 and 1. Rows with "top" keep so many principal directions of a public
 * calibration, as the paper's PCA rows do. A codec whose weights are not there is skipped with the reason. */
#include "experiment/list.h"

static fkt_status run(struct fkt_lab *lab, const struct fkt_cell *c, json_t *points)
{
    double epsilon[FKT_SWEEP_EPSILONS_MAX];
    struct fkt_lab_run r = {.set = c->panel,
                            .arm = c->arm,
                            .epsilon = epsilon,
                            .n_epsilon = c->n_x,
                            .sites = 20,
                            .partition = "dirichlet:0.1",
                            .participation = 1,
                            .seed = c->seed,
                            .reference = 1,
                            .train = !fkt_lab_options(lab)->quick};
    for (size_t i = 0; i < c->n_x; i++) epsilon[i] = c->x[i].x;
    return fkt_lab_sweep(lab, &r, c->x, points);
}

#define GUIDE .guide = "fedkt-guide"
#define DCAE .codec = "dc-ae-f32c32-in"
static const struct fkt_arm arms[] = {
    {.name = "dct-16", .title = "DCT, 32 px, d=16", .codec = "dct", .size = 32, .dim = 16, .noise = -1},
    {.name = "dct-64", .title = "DCT, 32 px, d=64", .codec = "dct", .size = 32, .dim = 64, .noise = -1},
    {.name = "dct-128", .title = "DCT, 32 px, d=128", .codec = "dct", .size = 32, .dim = 128, .noise = -1},
    {.name = "ae-32", .title = "fedkt-ae, 32 px, d=64", .codec = "fedkt-ae", .size = 32, .noise = -1},
    {.name = "ae-32-guide",
     .title = "fedkt-ae, 32 px, d=64, guide",
     .codec = "fedkt-ae",
     GUIDE,
     .size = 32,
     .noise = -1},
    {.name = "ae-64", .title = "fedkt-ae, 64 px, d=64", .codec = "fedkt-ae", .size = 64, .noise = -1},
    {.name = "ae-64-guide",
     .title = "fedkt-ae, 64 px, d=64, guide",
     .codec = "fedkt-ae",
     GUIDE,
     .size = 64,
     .noise = -1},
    {.name = "guide", .title = "guide alone, 32 px, d=80", GUIDE, .size = 32, .noise = -1},
    FKT_REAL_ARM,
};
/* Those that need a public set or fetched weights: not in quick runs. */
static const struct fkt_arm more[] = {
    {.name = "ae-64-top256",
     .title = "fedkt-ae, 64 px, top 256",
     .codec = "fedkt-ae",
     .size = 64,
     .top = 256,
     .noise = -1},
    {.name = "ae-64-top128",
     .title = "fedkt-ae, 64 px, top 128",
     .codec = "fedkt-ae",
     .size = 64,
     .top = 128,
     .noise = -1},
    {.name = "taesd-32", .title = "TAESD, 32 px, d=64", .codec = "taesd", .size = 32, .noise = -1},
    {.name = "taesd-32-guide", .title = "TAESD, 32 px, d=64, guide", .codec = "taesd", GUIDE, .size = 32, .noise = -1},
    {.name = "dcae-32", .title = "DC-AE f32c32-in, 32 px, d=32", DCAE, .size = 32, .noise = -1},
    {.name = "dcae-64", .title = "DC-AE f32c32-in, 64 px, d=128", DCAE, .size = 64, .noise = -1},
    {.name = "dcae-64-guide", .title = "DC-AE f32c32-in, 64 px, d=128, guide", DCAE, GUIDE, .size = 64, .noise = -1},
    {.name = "dcae-64-top64", .title = "DC-AE f32c32-in, 64 px, top 64", DCAE, .size = 64, .top = 64, .noise = -1},
    {.name = "dcae-128", .title = "DC-AE f32c32-in, 128 px, d=512", DCAE, .size = 128, .noise = -1},
    {.name = "dcae-128-top128",
     .title = "DC-AE f32c32-in, 128 px, top 128",
     DCAE,
     .size = 128,
     .top = 128,
     .noise = -1},
    {.name = "dcae-mix-64",
     .title = "DC-AE f32c32-mix, 64 px, d=128",
     .codec = "dc-ae-f32c32-mix",
     .size = 64,
     .noise = -1},
    {.name = "dcae-f64-64",
     .title = "DC-AE f64c128-mix, 64 px, d=128",
     .codec = "dc-ae-f64c128-mix",
     .size = 64,
     .noise = -1},
};
static const char *const sets[] = {"eurosat", "cifar10", "cifar100", "imagenette64", "bloodmnist"};
static const struct fkt_position epsilons[] = {{10, 0}, {1, 0}};

const struct fkt_experiment fkt_experiment_codecs = {.name = "codecs",
                                                     .title = "Codec, resolution and length",
                                                     .paper = "Table 5",
                                                     .about = "codecs at 32 and 64 px, without and with guide",
                                                     .time = "quick: 30 s of processor time",
                                                     .x_title = "epsilon",
                                                     .y_title = "accuracy, %",
                                                     .arm = arms,
                                                     .n_arms = FKT_COUNT(arms),
                                                     .arm_more = more,
                                                     .n_more = FKT_COUNT(more),
                                                     .sets = sets,
                                                     .n_sets = FKT_COUNT(sets),
                                                     .x = epsilons,
                                                     .n_x = FKT_COUNT(epsilons),
                                                     .x_quick = epsilons,
                                                     .n_quick = FKT_COUNT(epsilons),
                                                     .metric = fkt_accuracy_metrics,
                                                     .n_metrics = FKT_ACCURACY_METRICS,
                                                     .run = run};
