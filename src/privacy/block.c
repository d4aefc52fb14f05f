/* SPDX-License-Identifier: Apache-2.0 */
/* block.c - checks what any sum of n records in a ball satisfies: release.md, step 3; and names every number of the
 * vector, so that it gets the noise of its kind and part.
 * A plan made for another radius (R instead of Rq, say) would give too little noise. Honest sums always pass, so the
 * result reveals nothing about them. The same check precedes the central release and a site's noise share. Cost: one
 * pass over the numbers. */
#include "privacy/block.h"

#include <math.h>

fkt_status fkt_block_sizes(uint32_t classes, const struct fkt_moments_layout *l, size_t *n)
{
    const size_t length = fkt_layout_length(l);
    if (classes == 0 || length == 0)
        return fkt_fail(FKT_E_ARG, "moments need at least one class and records of length 1 or more");
    *n = fkt_layout_numbers(l, classes);
    if (*n == 0)
        return fkt_fail(FKT_E_ARG, "%u classes of records of length %zu do not fit into memory", classes, length);
    return FKT_OK;
}

/* |S_i| <= n Rq. */
static int sums_fit(const int64_t *s, uint32_t length, double n, double radius)
{
    int ok = 1;
    for (uint32_t i = 0; ok && i < length; i++) ok = fabs((double)s[i]) <= n * radius;
    return ok;
}

/* |M_ij| <= n Rq^2, M_ii >= 0, and the trace, a sum of |q|^2, has the bound of one entry. */
static int moments_fit(const int64_t *m, uint32_t length, double n, double radius)
{
    const double most = n * radius * radius;
    double trace = 0;
    int ok = most <= (double)FKT_BLOCK_MAX;
    for (uint32_t i = 0; ok && i < length; i++)
        for (uint32_t j = i; ok && j < length; j++, m++) {
            ok = fabs((double)*m) <= most && (i != j || *m >= 0);
            if (i == j) trace += (double)*m;
        }
    return ok && trace <= most;
}

static fkt_status outside(double radius)
{
    return fkt_fail_hint(FKT_E_MISMATCH, "plan with the integer radius Rq that the records were quantised to",
                         "the moments are not sums of records inside the plan's radius %g", radius);
}

static fkt_status check_layout(const struct fkt_moments_layout *l, const struct fkt_privacy_spec *s)
{
    int same = l->parts == s->parts && !l->pooled == !s->pooled;
    for (uint32_t p = 0; same && p < l->parts; p++) same = l->rq[p] == s->part[p].radius;
    return same ? FKT_OK
                : fkt_fail_hint(FKT_E_MISMATCH, "plan with the parts and integer radii of the moments",
                                "the plan is for moments of another layout");
}

fkt_status fkt_block_check(const int64_t *exact, uint32_t classes, const struct fkt_moments_layout *l,
                           const struct fkt_privacy_spec *spec)
{
    double all = 0;
    fkt_status st = check_layout(l, spec);
    for (uint32_t k = 0; k < classes && st == FKT_OK; k++) {
        const int64_t count = exact[fkt_layout_count(l, classes, k)];
        const double n = (double)count * (1 + 1e-9);
        if (count < 0 || count > FKT_BLOCK_MAX) return outside(spec->part[0].radius);
        all += n;
        for (uint32_t p = 0; p < l->parts; p++) {
            const double radius = spec->part[p].radius;
            if (!sums_fit(exact + fkt_layout_sum(l, classes, k, p), l->length[p], n, radius) ||
                (!l->pooled && !moments_fit(exact + fkt_layout_moment(l, classes, k, p), l->length[p], n, radius)))
                return outside(radius);
        }
    }
    for (uint32_t p = 0; l->pooled && p < l->parts && st == FKT_OK; p++)
        if (!moments_fit(exact + fkt_layout_moment(l, classes, 0, p), l->length[p], all, spec->part[p].radius))
            return outside(spec->part[p].radius);
    return st;
}

static fkt_status each_sum(size_t at, uint32_t length, uint32_t part, fkt_number_fn *fn, void *data)
{
    fkt_status st = FKT_OK;
    for (uint32_t i = 0; i < length && st == FKT_OK; i++) st = fn(data, at + i, FKT_NUMBER_SUM, part);
    return st;
}

static fkt_status each_moment(size_t at, uint32_t length, uint32_t part, fkt_number_fn *fn, void *data)
{
    fkt_status st = FKT_OK;
    for (uint32_t i = 0; i < length; i++)
        for (uint32_t j = i; j < length && st == FKT_OK; j++)
            st = fn(data, at++, i == j ? FKT_NUMBER_MOMENT : FKT_NUMBER_CROSS, part);
    return st;
}

fkt_status fkt_block_each(uint32_t classes, const struct fkt_moments_layout *l, fkt_number_fn *fn, void *data)
{
    fkt_status st = FKT_OK;
    for (uint32_t k = 0; k < classes; k++) {
        FKT_TRY(fn(data, fkt_layout_count(l, classes, k), FKT_NUMBER_COUNT, 0));
        for (uint32_t p = 0; p < l->parts; p++) {
            FKT_TRY(each_sum(fkt_layout_sum(l, classes, k, p), l->length[p], p, fn, data));
            if (!l->pooled) FKT_TRY(each_moment(fkt_layout_moment(l, classes, k, p), l->length[p], p, fn, data));
        }
    }
    for (uint32_t p = 0; l->pooled && p < l->parts; p++)
        FKT_TRY(each_moment(fkt_layout_moment(l, classes, 0, p), l->length[p], p, fn, data));
out:
    return st;
}
