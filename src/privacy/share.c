/* SPDX-License-Identifier: Apache-2.0 */
/* share.c - a site's numbers plus its noise share, and a total of them converted to the units of the moments.
 *
 *   plan checked against itself -> numbers checked against the plan's radius
 *   -> class by class: count_scale * n, S, M upper triangle row by row, each plus one discrete Gaussian
 *
 * Source: Kairouz, Liu, Steinke 2021; the proofs are share_plan.md and share_gdp.md. As in release.c the plan's claim
 * is not trusted: mu and rho are computed again from its variances. A failure leaves x all zero, so that no partly
 * protected number is returned. No ledger is debited here: the caller reserves and spends in the site's ledger
 * (fedkt/ledger.h). Cost: one draw of discrete_gaussian.c a number, on one thread, so that a seed fixes every one of
 * them. */
#include "fedkt/advanced/privacy.h"

#include "base/checked.h"
#include "base/status.h"
#include "crypto/entropy.h"
#include "privacy/block.h"
#include "privacy/discrete_gaussian.h"
#include "privacy/share_plan.h"

#include <math.h>
#include <string.h>

struct scales {
    struct fkt_discrete_scale of[4];
    int counts_public;
};

static fkt_status bad_plan(const char *what)
{
    return fkt_fail_hint(FKT_E_ARG, "make the plan with fkt_privacy_plan_shares()", "the plan for shares %s", what);
}

/* 2 * cross >= diagonal, in integers: required by the Frobenius geometry. */
static int cross_is_wide_enough(const struct fkt_dyadic *diagonal, const struct fkt_dyadic *cross)
{
    return (unsigned __int128)cross->num << (diagonal->shift + 1) >= (unsigned __int128)diagonal->num << cross->shift;
}

/* share_plan.md, step 6: the claim is checked against the noise that will be drawn. */
static fkt_status check_plan(struct scales *s, const struct fkt_share_plan *p)
{
    const uint32_t scale = p->count_scale;
    fkt_status st = FKT_OK;
    s->counts_public = p->variance[0].num == 0;
    if (p->counted == 0 || p->counted > p->sites)
        return bad_plan("counts no noise shares, or more than there are sites");
    if (scale == 0 || (scale & (scale - 1)) != 0 || scale > 1U << 20)
        return bad_plan("has a count scale that is not a power of two up to 2^20");
    if (s->counts_public && !fkt_adjacency_counts_public(p->plan.spec.adjacency))
        return bad_plan("has no noise for counts, but its adjacency does not make them public");
    for (int i = s->counts_public; i < 4; i++) FKT_TRY(fkt_discrete_scale_init(&s->of[i], &p->variance[i]));
    if (!cross_is_wide_enough(&p->variance[2], &p->variance[3]))
        return bad_plan("has too little noise off the diagonal");
    if (!(fkt_share_mu(p) <= p->plan.mu * (1 + 1e-12))) return bad_plan("does not give the mu that it claims");
    if (!(fkt_share_rho(p) <= p->rho * (1 + 1e-12))) return bad_plan("does not give the rho that it claims");
out:
    return st;
}

static fkt_status check_sizes(uint32_t classes, uint32_t length, size_t *block, size_t *n)
{
    fkt_status st = fkt_block_sizes(classes, length, block, n);
    if (st == FKT_OK && *n > FKT_SHARE_ENTRIES)
        st = fkt_fail(FKT_E_ARG, "%u classes of records of length %u are more than 2^32 numbers", classes, length);
    return st;
}

static fkt_status add_noise(int64_t *out, int64_t exact, struct fkt_discrete_gaussian *g,
                            const struct fkt_discrete_scale *s)
{
    int64_t noise = 0;
    fkt_status st = fkt_discrete_gaussian_draw(g, s, &noise);
    if (st != FKT_OK) return st;
    /* |exact| <= 2^61 and |noise| < 2^39 */
    if (!fkt_add_i64(exact, noise, out)) return fkt_fail(FKT_E_NUMERIC, "a noised moment does not fit into 64 bits");
    return FKT_OK;
}

/* One class: (n, S, M) of a record length m. pre: exact[0] * count_scale <= FKT_BLOCK_MAX */
static fkt_status noise_block(int64_t *out, const int64_t *exact, uint32_t length, uint32_t count_scale,
                              struct fkt_discrete_gaussian *g, const struct scales *s)
{
    fkt_status st = FKT_OK;
    size_t at = 1;
    out[0] = exact[0] * count_scale;
    if (!s->counts_public) FKT_TRY(add_noise(&out[0], out[0], g, &s->of[0]));
    for (uint32_t i = 0; i < length; i++, at++) FKT_TRY(add_noise(&out[at], exact[at], g, &s->of[1]));
    for (uint32_t i = 0; i < length; i++)
        for (uint32_t j = i; j < length; j++, at++) FKT_TRY(add_noise(&out[at], exact[at], g, &s->of[i == j ? 2 : 3]));
out:
    return st;
}

fkt_status fkt_privacy_share(int64_t *x, const int64_t *exact, uint32_t classes, uint32_t length,
                             const struct fkt_share_plan *plan, struct fkt_entropy *entropy)
{
    struct fkt_discrete_gaussian g;
    struct scales s = {0};
    size_t block, n, writable = 0;
    fkt_status st = FKT_OK;

    fkt_discrete_gaussian_init(&g, entropy);
    FKT_TRY(check_sizes(classes, length, &block, &n));
    writable = n * sizeof *x;
    FKT_TRY(check_plan(&s, plan));
    for (uint32_t c = 0; c < classes; c++) {
        const int64_t *b = exact + c * block;
        FKT_TRY(fkt_block_check(b, length, plan->plan.spec.radius));
        if (b[0] > FKT_BLOCK_MAX / plan->count_scale) {
            st = fkt_fail(FKT_E_MISMATCH, "a count of %lld times the scale %u does not fit into 61 bits",
                          (long long)b[0], plan->count_scale);
            goto out;
        }
    }
    for (uint32_t c = 0; c < classes; c++)
        FKT_TRY(noise_block(x + c * block, exact + c * block, length, plan->count_scale, &g, &s));
out:
    if (st != FKT_OK && writable > 0) memset(x, 0, writable);
    fkt_discrete_gaussian_clear(&g);
    return st;
}

/* x/scale to the nearest integer, halves away from zero, so that rounding is symmetric. */
static int64_t divide_rounded(int64_t x, uint32_t scale)
{
    const uint64_t size = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
    const int64_t q = (int64_t)(size / scale + (size % scale >= (scale + 1) / 2));
    return x < 0 ? -q : q;
}

fkt_status fkt_privacy_gather(int64_t *noised, const int64_t *total, uint32_t classes, uint32_t length,
                              const struct fkt_share_plan *plan, uint32_t shares, double sigma[3])
{
    struct scales s = {0};
    size_t block, n;
    fkt_status st = FKT_OK;

    FKT_TRY(check_sizes(classes, length, &block, &n));
    FKT_TRY(check_plan(&s, plan));
    if (shares < plan->counted || shares > plan->sites) {
        st = fkt_fail(FKT_E_ARG, "a total of %u noise shares is too small: the plan needs %u of %u", shares,
                      plan->counted, plan->sites);
        goto out;
    }
    for (uint32_t c = 0; c < classes; c++) {
        int64_t *to = noised + c * block;
        if (noised != total) memmove(to, total + c * block, block * sizeof *to);
        to[0] = divide_rounded(to[0], plan->count_scale);
    }
    fkt_share_sigmas(plan, shares, sigma);
    if (!s.counts_public && plan->count_scale > 1) { /* rounding, step 8: (k^2 + 2)/(12 k^2) */
        const double k2 = (double)plan->count_scale * plan->count_scale;
        sigma[0] = sqrt(sigma[0] * sigma[0] + (k2 + 2) / (12 * k2));
    }
out:
    return st;
}
