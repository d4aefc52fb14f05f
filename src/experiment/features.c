/* SPDX-License-Identifier: Apache-2.0 */
/* features.c - the experiment `features`: FedPFT, DP-FedPFT and DP-MERF beside ours, on the same features (Table 3).
 *
 * 20 sites, Dirichlet 0.1, delta 1e-5. All arms have the same records at the same sites and, but for the codec's
 * latents, the same features: the guide's coordinates, in which our release is made too. Ours makes a closed-form head
 * (RDA, the default of `heads`) of one release under secure aggregation; the others draw features and train a linear
 * softmax head on them. Accuracy is that of this one head; the best of ours on the test images stands beside it.
 *
 * What the promises protect differs: ours and DP-MERF's are add-remove; DP-FedPFT's, as published, is replacement of a
 * record within its class at its site, with public counts. FedPFT has none. Central arms trust somebody with exact
 * sums, the other private arms do not: ours has noise shares that bear lost and colluding sites.
 *
 * The paper's Table 3 has networks trained on images, and no row of FedPFT: figures are not comparable with its own. */
#include "experiment/lab.h"
#include "experiment/list.h"

#include "base/alloc.h"
#include "fedkt/advanced/simulate.h"
#include "learning/features/features.h"

#include <math.h>

enum kind { OURS, FEDPFT, DP_FEDPFT, MERF_CENTRAL, MERF_FEDERATED, REAL_FEATURES };
enum { SITES = 20, QUICK_STEPS = 150 };
#define PARTITION "dirichlet:0.1"
#define REFERENCE "no noise"

static struct fkt_lab_run run_of(const struct fkt_cell *c, const double *epsilon)
{
    return (struct fkt_lab_run){.set = c->panel,
                                .arm = c->arm,
                                .epsilon = epsilon,
                                .n_epsilon = c->n_x,
                                .sites = SITES,
                                .partition = PARTITION,
                                .participation = 1,
                                .seed = c->seed,
                                .reference = 1};
}

/* ---- ours ---- */

/* The accuracy that the table compares, and bytes, beside those of all heads. */
static fkt_status run_ours(struct fkt_lab *lab, const struct fkt_cell *c, const struct fkt_lab_run *r, json_t *points)
{
    fkt_status st = fkt_lab_sweep(lab, r, c->x, points);
    json_t *point;
    size_t i;
    if (st != FKT_OK) return st;
    json_array_foreach (points, i, point) {
        json_t *values = json_object_get(point, "values"),
               *bytes = json_object_get(json_object_get(point, "facts"), "bytes_per_site");
        json_t *accuracy = json_object_get(values, fkt_head_name(FKT_HEAD_RDA));
        if (json_object_set(values, "accuracy", accuracy) || json_object_set(values, "bytes_per_site", bytes))
            return fkt_fail(FKT_E_NOMEM, "out of memory for the points of a cell");
    }
    return FKT_OK;
}

/* ---- the others ---- */

/* Who holds what, noted for arms that have sites: the head on real features has all records in one place. */
static fkt_status partition(const struct fkt_sweep *sweep, struct fkt_lab *lab, const struct fkt_cell *c,
                            struct fkt_features *train)
{
    struct fkt_lab_partition noted = {.spec = {.sites = SITES, .seed = c->seed}, .by = "content"};
    const struct fkt_dataset *data = fkt_sweep_data(sweep);
    const size_t *idx = fkt_sweep_train_records(sweep, &train->n);
    uint64_t *keys = NULL;
    fkt_status st;
    lab->partition[0] = '\0'; /* of another cell */
    FKT_TRY(fkt_partition_parse(&noted.spec, PARTITION));
    FKT_TRY(fkt_alloc(&keys, fkt_dataset_size(data)));
    FKT_TRY(fkt_alloc(&train->owner, train->n));
    FKT_TRY(fkt_simulation_keys(data, FKT_ADJACENCY_ADD_REMOVE, lab->options.threads, keys));
    for (size_t i = 0; i < train->n; i++) keys[i] = keys[idx[i]]; /* idx[i] >= i: ascending */
    FKT_TRY(fkt_partition(train->owner, train->label, keys, train->n, train->classes, &noted.spec));
    train->sites = SITES;
    noted.train = (struct fkt_lab_owners){.record = idx, .owner = train->owner, .n = train->n};
    if (c->arm->kind != REAL_FEATURES) FKT_TRY(fkt_lab_partition(lab, &noted));
out:
    fkt_free(keys);
    return st;
}

static fkt_status open_features(struct fkt_lab *lab, const struct fkt_cell *c, const struct fkt_lab_run *r,
                                struct fkt_features *train, struct fkt_features *test)
{
    struct fkt_sweep *sweep = NULL;
    fkt_status st;
    FKT_TRY(fkt_lab_sweep_new(lab, r, &sweep));
    FKT_TRY(fkt_lab_features(lab, sweep, train, test));
    FKT_TRY(partition(sweep, lab, c, train));
out:
    fkt_sweep_free(sweep);
    return st;
}

static fkt_status draw(const struct fkt_lab *lab, const struct fkt_arm *arm, const struct fkt_features *train,
                       double mu, uint64_t seed, struct fkt_features *out, uint64_t *bytes)
{
    struct fkt_fedpft_settings fedpft;
    struct fkt_merf_settings merf;
    switch ((enum kind)arm->kind) {
    case FEDPFT:
        fkt_fedpft_default(&fedpft);
        fedpft.seed = seed;
        return fkt_fedpft(out, train, &fedpft, bytes);
    case DP_FEDPFT: return fkt_dpfedpft(out, train, mu, seed, bytes);
    case MERF_CENTRAL:
    case MERF_FEDERATED:
        fkt_merf_default(&merf);
        merf.federated = arm->kind == MERF_FEDERATED;
        merf.seed = seed;
        merf.progress = lab->options.progress;
        if (lab->options.quick) merf.steps = QUICK_STEPS;
        return fkt_merf(out, train, &merf, mu, bytes, NULL);
    default: return fkt_fail(FKT_E_STATE, "arm '%s' draws no features", arm->name);
    }
}

/* One point: draws, a head on them, its accuracy. */
static fkt_status measure(const struct fkt_lab *lab, const struct fkt_cell *c, const struct fkt_features *train,
                          const struct fkt_features *test, const struct fkt_position *x, uint64_t seed, json_t *points)
{
    const double mu = x ? fkt_privacy_mu(x->x, FKT_EXPERIMENT_DELTA) : INFINITY;
    const int real = c->arm->kind == REAL_FEATURES;
    const json_int_t records = (json_int_t)train->n;
    struct fkt_features drawn = {0};
    double accuracy = NAN;
    uint64_t bytes = 0;
    json_t *values, *facts;
    fkt_status st;
    if (!real) FKT_TRY(draw(lab, c->arm, train, mu, seed, &drawn, &bytes));
    FKT_TRY(fkt_lab_softmax(real ? train : &drawn, test, seed, &accuracy));
    values = json_pack("{s:f}", "accuracy", accuracy);
    if (!real) json_object_set_new(values, "bytes_per_site", json_integer((json_int_t)bytes));
    facts = json_pack("{s:I s:I s:s*}", "records", records, "bytes_per_site", (json_int_t)bytes, "partition",
                      lab->partition[0] ? lab->partition : NULL);
    FKT_TRY(fkt_point_add(points, x, x ? NULL : REFERENCE, values, facts));
out:
    fkt_features_clear(&drawn);
    return st;
}

static fkt_status run(struct fkt_lab *lab, const struct fkt_cell *c, json_t *points)
{
    const int private_ = c->arm->kind != FEDPFT && c->arm->kind != REAL_FEATURES;
    double epsilon[FKT_SWEEP_EPSILONS_MAX];
    struct fkt_features train = {0}, test = {0};
    struct fkt_lab_run r = run_of(c, epsilon);
    fkt_status st;
    for (size_t i = 0; i < c->n_x; i++) epsilon[i] = c->x[i].x;
    if (c->arm->kind == OURS) return run_ours(lab, c, &r, points);
    FKT_TRY(open_features(lab, c, &r, &train, &test));
    for (size_t i = 0; i < c->n_x && private_; i++)
        FKT_TRY(measure(lab, c, &train, &test, &c->x[i], FKT_REFERENCE_SEED(c->seed) + 1 + i, points));
    if (c->arm->kind != MERF_FEDERATED) /* without noise, sums of sites are those of all records */
        FKT_TRY(measure(lab, c, &train, &test, NULL, FKT_REFERENCE_SEED(c->seed), points));
out:
    fkt_features_clear(&train);
    fkt_features_clear(&test);
    return st;
}

#define GUIDE .guide = "fedkt-guide", .noise = -1 /* as a federation has it */
static const struct fkt_arm arms[] = {
    {.name = "ours", .title = "ours, guide alone", GUIDE, .kind = OURS},
    {.name = "ours-central",
     .title = "ours, guide alone, central",
     .guide = "fedkt-guide",
     .noise = FKT_NOISE_PLACE_CENTRAL,
     .kind = OURS},
    {.name = "ours-images", .title = "ours, codec and guide", .codec = "fedkt-ae", GUIDE, .kind = OURS},
    {.name = "fedpft", .title = "FedPFT, not private", GUIDE, .kind = FEDPFT},
    {.name = "dp-fedpft", .title = "DP-FedPFT, noise at each site", GUIDE, .kind = DP_FEDPFT},
    {.name = "dp-merf", .title = "DP-MERF, central", GUIDE, .kind = MERF_CENTRAL},
    {.name = "dp-merf-federated", .title = "DP-MERF, noise at each site", GUIDE, .kind = MERF_FEDERATED},
    {.name = "dp-merf-latents",
     .title = "DP-MERF, central, latents of the codec",
     .codec = "fedkt-ae",
     .noise = -1,
     .kind = MERF_CENTRAL},
    {.name = "real-features", .title = FKT_REAL_HEAD_TITLE, GUIDE, .kind = REAL_FEATURES},
};
static const char *const sets[] = {"eurosat", "cifar10", "cifar100", "imagenette64", "bloodmnist"};
static const struct fkt_position epsilons[] = {{10, 0}, {1, 0}};
static const struct fkt_metric metrics[] = {{"accuracy", "accuracy of the head", 100, 1, 0},
                                            {"best_head", "best head", 100, 1, 0},
                                            {"bytes_per_site", "bytes that a site sends", 1, 0, 0}};

const struct fkt_experiment fkt_experiment_features = {
    .name = "features",
    .title = "Methods on features: FedPFT and DP-MERF",
    .paper = "Table 3",
    .about = "FedPFT, DP-FedPFT and DP-MERF on the guide's features, beside ours",
    .time = "quick: 30 s of processor time",
    .x_title = "epsilon",
    .y_title = "accuracy, %",
    .x = epsilons,
    .n_x = FKT_COUNT(epsilons),
    .x_quick = epsilons,
    .n_quick = FKT_COUNT(epsilons),
    .arm = arms,
    .n_arms = FKT_COUNT(arms),
    .sets = sets,
    .n_sets = FKT_COUNT(sets),
    .metric = metrics,
    .n_metrics = FKT_COUNT(metrics),
    .run = run};
