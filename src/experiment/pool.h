/* SPDX-License-Identifier: Apache-2.0 */
/* pool.h - candidates of a membership attack: a few records of a set, random halves of them, the release of each half,
 * and what an attack on all halves found.
 *
 *   fkt_pool_open --> fkt_pool_attack: trial after trial a half, its release, scores by the experiment; then the ROC
 * Letters: n candidates, K classes, m numbers of a record vector, S side in pixels, P scores of a candidate. */
#ifndef FKT_EXPERIMENT_POOL_H
#define FKT_EXPERIMENT_POOL_H

#include "experiment/lab.h"
#include "experiment/list.h"

#include "fedkt/synth.h"

/* Kinds of arm: a release with the noise of the arm's epsilon, `more`; one without noise; the members themselves, for
 * a model that learns from them; and a release without noise of another half, independent of the members: there the
 * attack must find nothing. */
enum { FKT_POOL_NOISED = 0, FKT_POOL_EXACT, FKT_POOL_MEMBERS, FKT_POOL_OTHERS };

struct fkt_pool_spec {
    uint32_t each;    /* candidates of a class */
    uint32_t classes; /* the first so many; 0: all */
    uint32_t size;    /* S; 0: the set's */
    size_t trials;
    unsigned scores; /* P; 0: 1 */
};
struct fkt_pool {
    struct fkt_pool_spec spec;
    const struct fkt_arm *arm;
    uint64_t seed;
    struct fkt_pipeline *pipeline;
    const struct fkt_moments_layout *layout; /* of the pipeline's task */
    struct fkt_privacy_plan plan;
    uint32_t classes, m, size;
    size_t n;
    uint32_t *label; /* (n) */
    uint8_t *rgb;    /* (n, S, S, 3) */
    double *w;       /* (n, m) */
    int32_t *q;      /* (n, m) */
    uint8_t *member; /* (trials, n) */
    double *score;   /* (P, trials, n) */
    int64_t *noised; /* the release of the trial */
};
FKT_MUST_USE fkt_status fkt_pool_open(struct fkt_pool *p, struct fkt_lab *lab, const struct fkt_cell *c,
                                      const struct fkt_pool_spec *spec);
void fkt_pool_clear(struct fkt_pool *p);

/* Runs all trials: `score` fills those of trial t, from p->noised or, for FKT_POOL_MEMBERS, from the members. Then a
 * point for each false positive rate of the cell. */
FKT_MUST_USE fkt_status fkt_pool_attack(struct fkt_pool *p, const struct fkt_lab *lab, const struct fkt_cell *c,
                                        fkt_status (*score)(void *ctx, struct fkt_pool *p, size_t t), void *ctx,
                                        json_t *points);
/* Where score s of candidate r in trial t goes. */
double *fkt_pool_score(struct fkt_pool *p, unsigned s, size_t t, size_t r);
/* Class Gaussians of the trial's release. */
FKT_MUST_USE fkt_status fkt_pool_gaussians(const struct fkt_pool *p, enum fkt_estimator estimator,
                                           struct fkt_gaussians *out);
/* Images of the trial's release, `each` of every class, class by class: rgb (K, each, S, S, 3). */
FKT_MUST_USE fkt_status fkt_pool_images(const struct fkt_pool *p, size_t t, size_t each, uint8_t *rgb);

/* What attacks on images and models have in common (arms.c). */
enum { FKT_ATTACK_RATES = 7, FKT_ATTACK_METRICS = 3, FKT_ATTACK_ARMS = 6, FKT_ATTACK_SETS = 2 };
extern const struct fkt_position fkt_attack_rates[];
extern const struct fkt_metric fkt_attack_metrics[];
extern const char *const fkt_attack_sets[];
extern const struct fkt_arm fkt_attack_arms[]; /* the first learns from the members themselves */
#define FKT_ATTACK_TABLE                                                                                               \
    .x_title = "false positive rate", .y_title = "true positive rate", .x_log = 1, .y_log = 1, .plotted = 1,           \
    .x = fkt_attack_rates, .n_x = FKT_ATTACK_RATES, .x_quick = fkt_attack_rates, .n_quick = FKT_ATTACK_RATES,          \
    .sets = fkt_attack_sets, .n_sets = FKT_ATTACK_SETS, .metric = fkt_attack_metrics, .n_metrics = FKT_ATTACK_METRICS

#endif
