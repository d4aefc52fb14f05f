/* SPDX-License-Identifier: Apache-2.0 */
/* release.c - the only place where exact moments become public: debit the ledger, then add noise.
 *
 *   plan checked against itself -> numbers checked against the plan's radius -> ledger debited
 *   -> class by class: n, S, M upper triangle row by row
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
#include "privacy/rounded_gaussian.h"

#include <math.h>
#include <string.h>

struct scales {
    struct fkt_gaussian_scale count, sum, moment, cross;
    int counts_public;
};

/* release.md, step 1: the claim mu is checked against the noise that will be drawn. */
static fkt_status check_plan(const struct fkt_privacy_plan *p)
{
    const double r = p->spec.radius, c = p->sigma_count > 0 ? 1 / p->sigma_count : 0;
    const double mu2 = fkt_privacy_mu_squared(p->spec.adjacency, r / p->sigma_sum, r * r / p->sigma_moment, c);
    const int counts_public = p->sigma_count == 0 && fkt_adjacency_counts_public(p->spec.adjacency);
    if (!counts_public && !(p->sigma_count > 0))
        return fkt_fail_hint(FKT_E_ARG, "make the plan with fkt_privacy_plan()",
                             "the plan has no noise for counts, but its adjacency does not make them public");
    if (!(mu2 <= p->mu * p->mu * (1 + 1e-12)) ||
        !(p->sigma_cross * p->sigma_cross * 2 >= p->sigma_moment * p->sigma_moment))
        return fkt_fail_hint(FKT_E_ARG, "make the plan with fkt_privacy_plan()",
                             "the plan's noise does not give the mu %g that it claims", p->mu);
    return FKT_OK;
}

static fkt_status make_scales(struct scales *s, const struct fkt_privacy_plan *p)
{
    fkt_status st = FKT_OK;
    s->counts_public = p->sigma_count == 0;
    if (!s->counts_public) FKT_TRY(fkt_gaussian_scale_init(&s->count, p->sigma_count));
    FKT_TRY(fkt_gaussian_scale_init(&s->sum, p->sigma_sum));
    FKT_TRY(fkt_gaussian_scale_init(&s->moment, p->sigma_moment));
    FKT_TRY(fkt_gaussian_scale_init(&s->cross, p->sigma_cross));
out:
    return st;
}

static fkt_status add_noise(int64_t *out, int64_t exact, struct fkt_rounded_gaussian *g,
                            const struct fkt_gaussian_scale *s)
{
    int64_t noise = 0;
    fkt_status st = fkt_rounded_gaussian_draw(g, s, &noise);
    if (st != FKT_OK) return st;
    /* |exact| <= 2^61 and |noise| <= 256 * 2^52 + 1: no sum reaches 2^62 */
    if (!fkt_add_i64(exact, noise, out)) return fkt_fail(FKT_E_NUMERIC, "a noised moment does not fit into 64 bits");
    return FKT_OK;
}

/* One class: (n, S, M) of a record length m. */
static fkt_status noise_block(int64_t *out, const int64_t *exact, uint32_t length, struct fkt_rounded_gaussian *g,
                              const struct scales *s)
{
    fkt_status st = FKT_OK;
    size_t at = 0;
    if (s->counts_public) out[at] = exact[at];
    else FKT_TRY(add_noise(&out[at], exact[at], g, &s->count));
    at++;
    for (uint32_t i = 0; i < length; i++, at++) FKT_TRY(add_noise(&out[at], exact[at], g, &s->sum));
    for (uint32_t i = 0; i < length; i++)
        for (uint32_t j = i; j < length; j++, at++)
            FKT_TRY(add_noise(&out[at], exact[at], g, i == j ? &s->moment : &s->cross));
out:
    return st;
}

fkt_status fkt_privacy_release(int64_t *noised, const int64_t *exact, uint32_t classes, uint32_t length,
                               const struct fkt_privacy_plan *plan, struct fkt_ledger *ledger,
                               struct fkt_entropy *entropy)
{
    struct fkt_rounded_gaussian g;
    struct scales s;
    size_t block, n;
    fkt_status st = FKT_OK;

    fkt_rounded_gaussian_init(&g, entropy);
    if (!ledger) {
        st = fkt_fail(FKT_E_ARG, "a release needs a ledger");
        goto out;
    }
    FKT_TRY(fkt_block_sizes(classes, length, &block, &n));
    FKT_TRY(check_plan(plan));
    FKT_TRY(make_scales(&s, plan));
    for (uint32_t c = 0; c < classes; c++) FKT_TRY(fkt_block_check(exact + c * block, length, plan->spec.radius));
    FKT_TRY(fkt_ledger_debit(ledger, plan->mu * plan->mu));
    for (uint32_t c = 0; c < classes && st == FKT_OK; c++)
        st = noise_block(noised + c * block, exact + c * block, length, &g, &s);
    if (st != FKT_OK) memset(noised, 0, n * sizeof *noised);
out:
    fkt_rounded_gaussian_clear(&g);
    return st;
}
