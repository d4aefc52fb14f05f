/* SPDX-License-Identifier: Apache-2.0 */
/* mia.c - the experiment `mia`: membership inference in the style of LiRA on a release, and its ROC (Figure 3 (f)).
 *
 * Many releases are made, each of a random half of some records; for every release but the attacked one the attacker
 * knows who was in it (attack.c). The score of a record q is the correlation of its own moments with the released
 * ones, S.q / Rq^2 + q'Mq / Rq^4: the statistic on which one record more moves a release most. There are twelve
 * records of a class, since few records are the hard case for privacy.
 *
 * We differ from the paper, which attacks one network with one threshold: the attack is on the release itself.
 * Images and models are made from it alone, so the best attack on them is not better than the best one on it;
 * mia_images.c, mia_heads.c and mia_networks.c attack them. The arm without noise is the control that the attack must
 * catch. */
#include "experiment/pool.h"

enum { EACH = 12, TRIALS = 1000, QUICK_TRIALS = 200 };

static double correlation(const struct fkt_pool *p, size_t r)
{
    const int32_t *q = p->q + r * p->m;
    const int64_t *sum = p->noised + fkt_layout_sum(p->layout, p->classes, p->label[r], 0),
                  *moment = p->noised + fkt_layout_moment(p->layout, p->classes, p->label[r], 0);
    const double square = (double)p->layout->rq[0] * p->layout->rq[0];
    double first = 0, second = 0;
    for (uint32_t i = 0; i < p->m; i++) first += (double)sum[i] * q[i];
    for (uint32_t i = 0; i < p->m; i++)
        for (uint32_t j = i; j < p->m; j++, moment++) second += (i == j ? 1 : 2) * (double)*moment * q[i] * q[j];
    return first / square + second / (square * square);
}

static fkt_status score(void *ctx, struct fkt_pool *p, size_t t)
{
    (void)ctx;
    for (size_t r = 0; r < p->n; r++) *fkt_pool_score(p, 0, t, r) = correlation(p, r);
    return FKT_OK;
}

static fkt_status run(struct fkt_lab *lab, const struct fkt_cell *c, json_t *points)
{
    const struct fkt_pool_spec spec = {.each = EACH, .trials = lab->options.quick ? QUICK_TRIALS : TRIALS};
    struct fkt_pool pool;
    fkt_status st;
    FKT_TRY(fkt_pool_open(&pool, lab, c, &spec));
    FKT_TRY(fkt_pool_attack(&pool, lab, c, score, NULL, points));
out:
    fkt_pool_clear(&pool);
    return st;
}

/* more: epsilon; that of the control is not used. */
static const struct fkt_arm arms[] = {
    {.name = "control", .title = "no noise: the control", .codec = "fedkt-ae", .kind = FKT_POOL_EXACT, .more = 10},
    {.name = "paper-10",
     .title = "paper's mechanism, epsilon 10",
     .codec = "fedkt-ae",
     .coordinates = FKT_COORDINATE_CLIP,
     .mechanism = FKT_MECHANISM_PAPER,
     .adjacency = FKT_ADJACENCY_REPLACE,
     .more = 10},
    {.name = "joint-10", .title = "joint, epsilon 10", .codec = "fedkt-ae", .more = 10},
    {.name = "joint-1", .title = "joint, epsilon 1", .codec = "fedkt-ae", .more = 1}};

const struct fkt_experiment fkt_experiment_mia = {
    .name = "mia",
    .title = "Membership inference: the release",
    .paper = "Figure 3 (f)",
    .about = "likelihood-ratio attack on releases of few records, with a control that it must catch",
    .time = "quick: 4 s of processor time",
    .arm = arms,
    .n_arms = FKT_COUNT(arms),
    FKT_ATTACK_TABLE,
    .run = run};
