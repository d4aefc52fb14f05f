/* SPDX-License-Identifier: Apache-2.0 */
/* share.c - a site's numbers plus its noise share, and a total of them converted to the units of the moments.
 *
 *   plan checked against itself -> numbers checked against the plan's radii
 *   -> every number in the order of the layout, counts times count_scale, plus a discrete Gaussian of its kind and part
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

struct noising {
    struct fkt_discrete_scale count;
    struct {
        struct fkt_discrete_scale sum, moment, cross;
    } part[FKT_PARTS_MAX];
    int counts_public;
    uint32_t count_scale;
    struct fkt_discrete_gaussian *g;
    const int64_t *exact;
    int64_t *out;
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

static fkt_status make_scales(struct noising *s, const struct fkt_share_plan *p)
{
    fkt_status st = FKT_OK;
    if (!s->counts_public) FKT_TRY(fkt_discrete_scale_init(&s->count, &p->variance_count));
    for (uint32_t i = 0; i < p->plan.spec.parts; i++) {
        const struct fkt_part_variance *v = &p->variance[i];
        FKT_TRY(fkt_discrete_scale_init(&s->part[i].sum, &v->sum));
        FKT_TRY(fkt_discrete_scale_init(&s->part[i].moment, &v->moment));
        FKT_TRY(fkt_discrete_scale_init(&s->part[i].cross, &v->cross));
        if (!cross_is_wide_enough(&v->moment, &v->cross)) return bad_plan("has too little noise off the diagonal");
    }
out:
    return st;
}

/* share_plan.md, step 6: the claim is checked against the noise that will be drawn. */
static fkt_status check_plan(struct noising *s, const struct fkt_share_plan *p)
{
    const uint32_t scale = p->count_scale;
    fkt_status st = FKT_OK;
    s->counts_public = p->variance_count.num == 0;
    if (p->counted == 0 || p->counted > p->sites)
        return bad_plan("counts no noise shares, or more than there are sites");
    if (p->plan.spec.parts < 1 || p->plan.spec.parts > FKT_PARTS_MAX) return bad_plan("has no parts, or too many");
    if (scale == 0 || (scale & (scale - 1)) != 0 || scale > 1U << 20)
        return bad_plan("has a count scale that is not a power of two up to 2^20");
    if (s->counts_public && !fkt_adjacency_counts_public(p->plan.spec.adjacency))
        return bad_plan("has no noise for counts, but its adjacency does not make them public");
    FKT_TRY(make_scales(s, p));
    if (!(fkt_share_mu(p) <= p->plan.mu * (1 + 1e-12))) return bad_plan("does not give the mu that it claims");
    if (!(fkt_share_rho(p) <= p->rho * (1 + 1e-12))) return bad_plan("does not give the rho that it claims");
out:
    return st;
}

static fkt_status check_sizes(uint32_t classes, const struct fkt_moments_layout *layout, size_t *n)
{
    fkt_status st = fkt_block_sizes(classes, layout, n);
    if (st == FKT_OK && *n > FKT_SHARE_ENTRIES)
        st = fkt_fail(FKT_E_ARG, "%u classes of records of length %zu are more than 2^32 numbers", classes,
                      fkt_layout_length(layout));
    return st;
}

/* pre: every count * count_scale <= FKT_BLOCK_MAX */
static fkt_status add_noise(void *data, size_t at, enum fkt_number_kind kind, uint32_t part)
{
    struct noising *s = data;
    const struct fkt_discrete_scale *scale = kind == FKT_NUMBER_COUNT    ? &s->count
                                             : kind == FKT_NUMBER_SUM    ? &s->part[part].sum
                                             : kind == FKT_NUMBER_MOMENT ? &s->part[part].moment
                                                                         : &s->part[part].cross;
    int64_t noise = 0;
    fkt_status st = FKT_OK;
    if (kind != FKT_NUMBER_COUNT || !s->counts_public) st = fkt_discrete_gaussian_draw(s->g, scale, &noise);
    if (st != FKT_OK) return st;
    /* |exact| <= 2^61 and |noise| < 2^39 */
    if (!fkt_add_i64(s->exact[at] * (kind == FKT_NUMBER_COUNT ? s->count_scale : 1), noise, &s->out[at]))
        return fkt_fail(FKT_E_NUMERIC, "a noised moment does not fit into 64 bits");
    return FKT_OK;
}

fkt_status fkt_privacy_share(int64_t *x, const int64_t *exact, uint32_t classes,
                             const struct fkt_moments_layout *layout, const struct fkt_share_plan *plan,
                             struct fkt_entropy *entropy)
{
    struct fkt_discrete_gaussian g;
    struct noising s = {.g = &g, .exact = exact, .out = x, .count_scale = plan->count_scale};
    size_t n, writable = 0;
    fkt_status st = FKT_OK;

    fkt_discrete_gaussian_init(&g, entropy);
    FKT_TRY(check_sizes(classes, layout, &n));
    writable = n * sizeof *x;
    FKT_TRY(check_plan(&s, plan));
    FKT_TRY(fkt_block_check(exact, classes, layout, &plan->plan.spec));
    for (uint32_t k = 0; k < classes; k++) {
        const int64_t count = exact[fkt_layout_count(layout, classes, k)];
        if (count > FKT_BLOCK_MAX / plan->count_scale) {
            st = fkt_fail(FKT_E_MISMATCH, "a count of %lld times the scale %u does not fit into 61 bits",
                          (long long)count, plan->count_scale);
            goto out;
        }
    }
    FKT_TRY(fkt_block_each(classes, layout, add_noise, &s));
out:
    if (st != FKT_OK && writable > 0) memset(x, 0, writable);
    fkt_discrete_gaussian_clear(&g);
    return st;
}

/* x/scale to the nearest integer, halves to the even one: share_plan.md, step 8, says why. */
static int64_t divide_rounded(int64_t x, uint32_t scale)
{
    const uint64_t size = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
    const uint64_t down = size / scale, twice = 2 * (size % scale);
    const int64_t q = (int64_t)(down + (twice > scale || (twice == scale && down % 2 == 1)));
    return x < 0 ? -q : q;
}

static fkt_status check_shares(const struct fkt_share_plan *plan, uint32_t shares)
{
    struct noising s = {0};
    fkt_status st = check_plan(&s, plan);
    if (st != FKT_OK || (shares >= plan->counted && shares <= plan->sites)) return st;
    return fkt_fail(FKT_E_ARG, "a total of %u noise shares is too small: the plan needs %u of %u", shares,
                    plan->counted, plan->sites);
}

fkt_status fkt_privacy_gather(int64_t *noised, const int64_t *total, uint32_t classes,
                              const struct fkt_moments_layout *layout, const struct fkt_share_plan *plan,
                              uint32_t shares)
{
    size_t n;
    fkt_status st = FKT_OK;
    FKT_TRY(check_sizes(classes, layout, &n));
    FKT_TRY(check_shares(plan, shares));
    if (noised != total) memmove(noised, total, n * sizeof *noised);
    for (uint32_t k = 0; k < classes; k++) {
        int64_t *count = noised + fkt_layout_count(layout, classes, k);
        *count = divide_rounded(*count, plan->count_scale);
    }
out:
    return st;
}

fkt_status fkt_privacy_total_sigmas(struct fkt_sigmas *out, const struct fkt_share_plan *plan, uint32_t shares)
{
    fkt_status st = check_shares(plan, shares);
    if (st != FKT_OK) return st;
    fkt_share_sigmas(plan, shares, out);
    if (plan->variance_count.num && plan->count_scale > 1) { /* rounding, step 8: (k^2 + 2)/(12 k^2) */
        const double k2 = (double)plan->count_scale * plan->count_scale;
        out->count = sqrt(out->count * out->count + (k2 + 2) / (12 * k2));
    }
    return FKT_OK;
}
