/* SPDX-License-Identifier: Apache-2.0 */
/* release.c - the only place where exact moments become public: debit the ledger, then add noise.
 *
 *   plan checked against itself -> numbers checked against the plan's radii -> ledger debited
 *   -> every number in the order of the layout, with the noise of its kind and part
 *
 * Source: the Gaussian mechanism with the noise of privacy.h; why rounding to integers costs nothing: release.md, step
 * 2. The plan's claim is not trusted: mu^2 is computed again from its sigmas, and a plan that claims less is refused.
 * A failure after the debit leaves `noised` all zero, so that no partly protected number is returned; the debit
 * stands. Cost: one draw of rounded_gaussian.c a number, on one thread, so that a seed determines all of them. */
#include "fedkt/advanced/privacy.h"

#include "base/checked.h"
#include "base/status.h"
#include "crypto/entropy.h"
#include "privacy/block.h"
#include "privacy/plan.h"
#include "privacy/rounded_gaussian.h"

#include <string.h>

struct noising {
    struct fkt_gaussian_scale count;
    struct {
        struct fkt_gaussian_scale sum, moment, cross;
    } part[FKT_PARTS_MAX];
    int counts_public;
    struct fkt_rounded_gaussian *g;
    const int64_t *exact;
    int64_t *out;
};

/* release.md, step 1: the claim mu is checked against the noise that will be drawn. */
static fkt_status check_plan(const struct fkt_privacy_plan *p)
{
    const int counts_public = p->sigma_count == 0 && fkt_adjacency_counts_public(p->spec.adjacency);
    int holds = fkt_plan_mu_squared(p) <= p->mu * p->mu * (1 + 1e-12); /* NaN for a bad number of parts */
    if (!counts_public && !(p->sigma_count > 0))
        return fkt_fail_hint(FKT_E_ARG, "make the plan with fkt_privacy_plan()",
                             "the plan has no noise for counts, but its adjacency does not make them public");
    for (uint32_t i = 0; holds && i < p->spec.parts; i++)
        holds = p->sigma[i].cross * p->sigma[i].cross * 2 >= p->sigma[i].moment * p->sigma[i].moment;
    if (!holds)
        return fkt_fail_hint(FKT_E_ARG, "make the plan with fkt_privacy_plan()",
                             "the plan's noise does not give the mu %g that it claims", p->mu);
    return FKT_OK;
}

static fkt_status make_scales(struct noising *s, const struct fkt_privacy_plan *p)
{
    fkt_status st = FKT_OK;
    s->counts_public = p->sigma_count == 0;
    if (!s->counts_public) FKT_TRY(fkt_gaussian_scale_init(&s->count, p->sigma_count));
    for (uint32_t i = 0; i < p->spec.parts; i++) {
        FKT_TRY(fkt_gaussian_scale_init(&s->part[i].sum, p->sigma[i].sum));
        FKT_TRY(fkt_gaussian_scale_init(&s->part[i].moment, p->sigma[i].moment));
        FKT_TRY(fkt_gaussian_scale_init(&s->part[i].cross, p->sigma[i].cross));
    }
out:
    return st;
}

static fkt_status add_noise(void *data, size_t at, enum fkt_number_kind kind, uint32_t part)
{
    struct noising *s = data;
    const struct fkt_gaussian_scale *scale = kind == FKT_NUMBER_COUNT    ? &s->count
                                             : kind == FKT_NUMBER_SUM    ? &s->part[part].sum
                                             : kind == FKT_NUMBER_MOMENT ? &s->part[part].moment
                                                                         : &s->part[part].cross;
    int64_t noise = 0;
    fkt_status st = FKT_OK;
    if (kind != FKT_NUMBER_COUNT || !s->counts_public) st = fkt_rounded_gaussian_draw(s->g, scale, &noise);
    if (st != FKT_OK) return st;
    /* |exact| <= 2^61 and |noise| <= 256 * 2^52 + 1: no sum reaches 2^62 */
    if (!fkt_add_i64(s->exact[at], noise, &s->out[at]))
        return fkt_fail(FKT_E_NUMERIC, "a noised moment does not fit into 64 bits");
    return FKT_OK;
}

fkt_status fkt_privacy_release(int64_t *noised, const int64_t *exact, uint32_t classes,
                               const struct fkt_moments_layout *layout, const struct fkt_privacy_plan *plan,
                               struct fkt_ledger *ledger, struct fkt_entropy *entropy)
{
    struct fkt_rounded_gaussian g;
    struct noising s = {.g = &g, .exact = exact, .out = noised};
    size_t n;
    fkt_status st = FKT_OK;

    fkt_rounded_gaussian_init(&g, entropy);
    if (!ledger) {
        st = fkt_fail(FKT_E_ARG, "a release needs a ledger");
        goto out;
    }
    FKT_TRY(fkt_block_sizes(classes, layout, &n));
    FKT_TRY(check_plan(plan));
    FKT_TRY(make_scales(&s, plan));
    FKT_TRY(fkt_block_check(exact, classes, layout, &plan->spec));
    FKT_TRY(fkt_ledger_debit(ledger, plan->mu * plan->mu));
    st = fkt_block_each(classes, layout, add_noise, &s);
    if (st != FKT_OK) memset(noised, 0, n * sizeof *noised);
out:
    fkt_rounded_gaussian_clear(&g);
    return st;
}
