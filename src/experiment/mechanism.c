/* SPDX-License-Identifier: Apache-2.0 */
/* mechanism.c - the experiment `mechanism`: how much noise each mechanism adds, and what is left of a covariance.
 *
 * Four classes of records are drawn from known Gaussians inside the unit ball (64 numbers, variances that fall as
 * 1/i, clip coordinates, as the paper has them), their exact moments get noise, and an estimator gives covariances
 * back. The error is relative, in Frobenius norm, against the covariance of the same records without noise, and
 * averaged over the classes. No image is needed.
 *
 * Mechanisms: the paper's (epsilon/2 and delta/2 for each of two Gaussian mechanisms, sensitivities 2R and 2R^2);
 * that of the authors' program, which takes R and R^2 as sensitivities while counts are exact, so half the noise,
 * and an eigenvalue floor of 1e-4: its row says what that really costs under the paper's own adjacency; and ours,
 * joint, under the paper's adjacency and under add-remove, with each estimator. Noise is that of the library, from
 * the cell's seed; the authors' is drawn with half the paper's sigmas here, since the library does not take a sigma
 * from outside. */
#include "experiment/list.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "crypto/entropy.h"
#include "fedkt/advanced/moments.h"
#include "fedkt/advanced/privacy.h"
#include "fedkt/advanced/synth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES = 4, DIM = 64, AUTHORS = 1 };

struct bed { /* one data set, for all positions of a cell */
    struct fkt_coordinates coordinates;
    struct fkt_moments_layout layout;
    struct fkt_moments *moments;
    const int64_t *exact; /* borrowed from moments */
    int64_t *noised;
    size_t numbers;
};

/* Record i of class k, in units of the ball: mean of length 1/2, trace of the covariance about 1/4. */
static void draw_record(struct fkt_rng *rng, uint32_t k, double *u)
{
    double trace = 0;
    for (int i = 0; i < DIM; i++) trace += 1.0 / (i + 1 + (int)k);
    for (int i = 0; i < DIM; i++)
        u[i] = sqrt(0.25 / trace / (i + 1 + (int)k)) * fkt_rng_normal(rng) + (i % CLASSES == (int)k ? 0.125 : 0);
}

static fkt_status bed_open(struct bed *b, size_t records, uint64_t seed)
{
    double u[DIM], w[DIM];
    int32_t q[DIM];
    struct fkt_rng rng;
    fkt_status st;
    FKT_TRY(fkt_coordinates_clip(&b->coordinates, DIM, FKT_RQ_DEFAULT, 1));
    b->layout = fkt_layout_one(DIM, FKT_RQ_DEFAULT);
    b->numbers = fkt_layout_numbers(&b->layout, CLASSES);
    FKT_TRY(fkt_alloc(&b->noised, b->numbers));
    FKT_TRY(fkt_moments_new(&b->moments, CLASSES, &b->layout, 0));
    for (uint32_t k = 0; k < CLASSES; k++) {
        fkt_rng_init(&rng, seed, k);
        for (size_t i = 0; i < records; i++) {
            draw_record(&rng, k, u);
            FKT_TRY(fkt_coordinates_forward(&b->coordinates, u, w));
            FKT_TRY(fkt_quantise(&b->coordinates, w, q));
            FKT_TRY(fkt_moments_add(b->moments, &k, q, 1));
        }
    }
    FKT_TRY(fkt_moments_packed(b->moments, &b->exact));
out:
    return st;
}

static void bed_close(struct bed *b)
{
    fkt_moments_free(b->moments);
    fkt_free(b->noised);
}

/* The authors' program: half the paper's sigmas, exact counts. */
static void noise_of_authors(struct bed *b, struct fkt_privacy_plan *plan, uint64_t seed)
{
    struct fkt_rng rng;
    plan->sigma[0].sum /= 2;
    plan->sigma[0].moment /= 2;
    plan->sigma[0].cross /= 2;
    fkt_rng_init(&rng, seed, 77);
    memcpy(b->noised, b->exact, b->numbers * sizeof *b->noised);
    for (uint32_t k = 0; k < CLASSES; k++) {
        int64_t *sum = b->noised + fkt_layout_sum(&b->layout, CLASSES, k, 0),
                *moment = b->noised + fkt_layout_moment(&b->layout, CLASSES, k, 0);
        for (int i = 0; i < DIM; i++) sum[i] += (int64_t)llround(plan->sigma[0].sum * fkt_rng_normal(&rng));
        for (int i = 0; i < DIM; i++)
            for (int j = i; j < DIM; j++)
                *moment++ +=
                    (int64_t)llround((i == j ? plan->sigma[0].moment : plan->sigma[0].cross) * fkt_rng_normal(&rng));
    }
}

/* What the noise costs under the paper's adjacency, whatever the mechanism claims. */
static double spent(const struct fkt_privacy_plan *plan)
{
    const double r = FKT_RQ_DEFAULT, a = r / plan->sigma[0].sum, b = r * r / plan->sigma[0].moment;
    return fkt_privacy_epsilon(FKT_EXPERIMENT_DELTA, sqrt(fkt_privacy_mu_squared(FKT_ADJACENCY_REPLACE, 0, 1, &a, &b)));
}

static fkt_status add_noise(struct bed *b, const struct fkt_arm *arm, double epsilon, uint64_t seed,
                            struct fkt_privacy_plan *plan)
{
    const struct fkt_privacy_spec spec = {.epsilon = epsilon,
                                          .delta = FKT_EXPERIMENT_DELTA,
                                          .adjacency = arm->adjacency,
                                          .mechanism = arm->mechanism,
                                          .split_count = FKT_BUDGET_SPLIT_COUNT,
                                          .parts = 1,
                                          .part = {{FKT_RQ_DEFAULT, FKT_BUDGET_SPLIT_SUM, FKT_BUDGET_SPLIT_MOMENT}}};
    struct fkt_entropy_seeded seeded;
    struct fkt_entropy entropy;
    struct fkt_ledger ledger;
    fkt_status st;
    FKT_TRY(fkt_privacy_plan(plan, &spec));
    if (arm->kind == AUTHORS) {
        noise_of_authors(b, plan, seed);
        goto out;
    }
    fkt_entropy_seeded_init(&seeded, seed, 0);
    fkt_entropy_seeded(&entropy, &seeded);
    FKT_TRY(fkt_ledger_init(&ledger, plan->mu * plan->mu, 0));
    FKT_TRY(fkt_privacy_release(b->noised, b->exact, CLASSES, &b->layout, plan, &ledger, &entropy));
out:
    return st;
}

static double relative(const double *a, const double *b, size_t n)
{
    double d = 0, s = 0;
    for (size_t i = 0; i < n; i++) {
        d += (a[i] - b[i]) * (a[i] - b[i]);
        s += b[i] * b[i];
    }
    return sqrt(d / s);
}

static fkt_status measure(struct bed *b, const struct fkt_arm *arm, const struct fkt_position *x, uint64_t seed,
                          json_t *points)
{
    const double unit = 1.0 / FKT_RQ_DEFAULT;
    struct fkt_estimate_options how = {.estimator = arm->dim ? FKT_ESTIMATOR_RIE : FKT_ESTIMATOR_CLAMP,
                                       .tau = arm->kind == AUTHORS ? 1e-4 : 0,
                                       .pool = arm->more},
                                raw = {.estimator = FKT_ESTIMATOR_RAW};
    struct fkt_noise_scale noise = {.unit = unit}, none = {.unit = unit};
    struct fkt_gaussians found = {0}, truth = {0};
    struct fkt_privacy_plan plan;
    double cov = 0, mean = 0;
    fkt_status st;
    FKT_TRY(add_noise(b, arm, x->x, seed, &plan));
    noise.sigma_count = plan.sigma_count;
    noise.sigma_sum = plan.sigma[0].sum;
    noise.sigma_moment = plan.sigma[0].moment;
    FKT_TRY(fkt_gaussians_estimate(&found, b->noised, CLASSES, DIM, &noise, &how));
    FKT_TRY(fkt_gaussians_estimate(&truth, b->exact, CLASSES, DIM, &none, &raw));
    for (size_t k = 0; k < CLASSES; k++) {
        cov += relative(found.cov + k * DIM * DIM, truth.cov + k * DIM * DIM, DIM * DIM) / CLASSES;
        mean += relative(found.mean + k * DIM, truth.mean + k * DIM, DIM) / CLASSES;
    }
    FKT_TRY(fkt_point_add(points, x, NULL,
                          json_pack("{s:f s:f s:f s:f s:f}", "covariance_error", cov, "mean_error", mean, "sigma_sum",
                                    plan.sigma[0].sum * unit, "sigma_moment", plan.sigma[0].moment * unit * unit,
                                    "epsilon_replace", spent(&plan)),
                          NULL));
out:
    fkt_gaussians_clear(&found);
    fkt_gaussians_clear(&truth);
    return st;
}

static fkt_status run(struct fkt_lab *lab, const struct fkt_cell *c, json_t *points)
{
    struct bed b = {0};
    fkt_status st;
    (void)lab;
    FKT_TRY(bed_open(&b, (size_t)strtoul(c->panel, NULL, 10), c->seed));
    for (size_t i = 0; i < c->n_x; i++) FKT_TRY(measure(&b, c->arm, &c->x[i], c->seed * 64 + i, points));
out:
    bed_close(&b);
    return st;
}

/* dim 1: the estimator is rie; more: weight of the pooled covariance. */
static const struct fkt_arm arms[] = {
    {.name = "paper", .title = "paper, clamp", .mechanism = FKT_MECHANISM_PAPER, .adjacency = FKT_ADJACENCY_REPLACE},
    {.name = "authors",
     .title = "authors' program, clamp",
     .mechanism = FKT_MECHANISM_PAPER,
     .adjacency = FKT_ADJACENCY_REPLACE,
     .kind = AUTHORS},
    {.name = "replace", .title = "joint, replace, clamp", .adjacency = FKT_ADJACENCY_REPLACE},
    {.name = "clamp", .title = "joint, add-remove, clamp"},
    {.name = "rie", .title = "joint, add-remove, rie", .dim = 1},
    {.name = "pooled", .title = "joint, add-remove, rie, pooled", .dim = 1, .more = 1},
};
static const struct fkt_position full[] = {{0.1, 0}, {0.3, 0}, {1, 0}, {2, 0}, {5, 0}, {10, 0}, {20, 0}},
                                 quick[] = {{0.3, 0}, {1, 0}, {10, 0}};
static const char *const panels[] = {"200-records", "2000-records", "20000-records"};
static const struct fkt_metric metrics[] = {{"covariance_error", "error of the covariance", 1, 3, 0},
                                            {"mean_error", "error of the mean", 1, 3, 0},
                                            {"sigma_sum", "noise of the sum, in R", 1, 3, 0},
                                            {"sigma_moment", "noise of the second moment, in R^2", 1, 3, 0},
                                            {"epsilon_replace", "epsilon really spent under replace", 1, 2, 0}};

const struct fkt_experiment fkt_experiment_mechanism = {
    .name = "mechanism",
    .title = "Noise of the mechanisms, and covariances under it",
    .paper = "section 4, Proposition 1 (no table of it)",
    .about = "error of a class covariance against epsilon and records: paper's, its authors' and our mechanisms",
    .time = "quick: 1 s of processor time",
    .x_title = "epsilon",
    .y_title = "relative error of the covariance",
    .x_log = 1,
    .y_log = 1,
    .plotted = 1,
    .x = full,
    .n_x = sizeof full / sizeof *full,
    .x_quick = quick,
    .n_quick = sizeof quick / sizeof *quick,
    .arm = arms,
    .n_arms = sizeof arms / sizeof *arms,
    .panel = panels,
    .n_panels = sizeof panels / sizeof *panels,
    .metric = metrics,
    .n_metrics = sizeof metrics / sizeof *metrics,
    .run = run,
};
