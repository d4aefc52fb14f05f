/* SPDX-License-Identifier: Apache-2.0 */
/* mia_heads.c - the experiment `mia-heads`: membership inference in the style of LiRA on closed-form heads.
 *
 *   release of a random half -> heads -> confidence of each in a candidate's label -> likelihood ratios, added
 *
 * The score is LiRA's: log(p / (1 - p)), p the posterior of the true class. The attacked heads are nearest mean and
 * LDA; with so few records QDA and RDA are LDA up to rounding, since they shrink to the covariance of all classes.
 * Nearest mean alone catches the control slightly better than both do. LDA alone hardly catches it: without noise the
 * covariance of few records is singular, and posteriors are 0 or 1. With noise LDA is the stronger one, so it stays. */
#include "experiment/attack.h"
#include "experiment/pool.h"

#include "base/alloc.h"
#include "fedkt/heads.h"

#include <math.h>

enum { EACH = 12, CLASSES_QUICK = 4, TRIALS = 1000, QUICK_TRIALS = 200, SCORES = 2 };
static const enum fkt_head_kind attacked[SCORES] = {FKT_HEAD_NEAREST_MEAN, FKT_HEAD_LDA};

static fkt_status score(void *ctx, struct fkt_pool *p, size_t t)
{
    double *posterior = ctx; /* (n, K) */
    struct fkt_gaussians g = {0};
    struct fkt_heads heads = {0};
    fkt_status st;
    FKT_TRY(fkt_pool_gaussians(p, FKT_ESTIMATOR_RAW, &g));
    FKT_TRY(fkt_heads_fit(&heads, &g, fkt_pipeline_task(p->pipeline), FKT_HEADS_DEFAULT, NULL));
    for (unsigned s = 0; s < SCORES; s++) {
        FKT_TRY(fkt_head_posterior(heads.head[attacked[s]], p->w, p->n, 1, posterior));
        for (size_t i = 0; i < p->n * p->classes; i++) posterior[i] = log(fmax(posterior[i], 1e-300));
        for (size_t r = 0; r < p->n; r++)
            *fkt_pool_score(p, s, t, r) = fkt_log_odds(posterior + r * p->classes, p->classes, p->label[r]);
    }
out:
    fkt_heads_clear(&heads);
    fkt_gaussians_clear(&g);
    return st;
}

static fkt_status run(struct fkt_lab *lab, const struct fkt_cell *c, json_t *points)
{
    const int quick = lab->options.quick;
    const struct fkt_pool_spec spec = {
        .each = EACH, .classes = quick ? CLASSES_QUICK : 0, .trials = quick ? QUICK_TRIALS : TRIALS, .scores = SCORES};
    double *posterior = NULL;
    struct fkt_pool pool;
    fkt_status st;
    FKT_TRY(fkt_pool_open(&pool, lab, c, &spec));
    FKT_TRY(fkt_alloc(&posterior, pool.n * pool.classes));
    FKT_TRY(fkt_pool_attack(&pool, lab, c, score, posterior, points));
out:
    fkt_free(posterior);
    fkt_pool_clear(&pool);
    return st;
}

const struct fkt_experiment fkt_experiment_mia_heads = {
    .name = "mia-heads",
    .title = "Membership inference: closed-form heads",
    .paper = "Figure 3 (f)",
    .about = "likelihood-ratio attack on closed-form heads of few records, by their confidence",
    .time = "quick: 7 s of processor time",
    .arm = fkt_attack_arms + 1,
    .n_arms = FKT_ATTACK_ARMS - 1,
    FKT_ATTACK_TABLE,
    .run = run};
