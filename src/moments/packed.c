/* SPDX-License-Identifier: Apache-2.0 */
/* packed.c - the packed integers of a site: their size, and adding those of another site after checking them.
 *
 *   block of a class:  n | S_0 .. S_{m-1} | M_00 M_01 .. M_0,m-1 | M_11 .. M_1,m-1 | ... | M_m-1,m-1
 *
 * With one part this is the upper triangle, row by row, of sum (1,q)(1,q)^T; several parts and pooled second moments:
 * fedkt/layout.h. Each part is checked by itself. Any sum of n vectors in the ball passes the checks, so an honest site
 * is never refused, and no entry can leave the range that n_max guarantees; a malicious site can still send any vector
 * that passes (docs: poisoning is out of scope). All classes are checked before the first is added.
 * Cost: two passes. */
#include "fedkt/advanced/moments.h"

#include "moments/moments.h"

#include "base/checked.h"
#include "base/status.h"

size_t fkt_moments_block(size_t length)
{
    size_t a, b, product;
    if (length > SIZE_MAX - 2) return 0;
    a = length + 1;
    b = length + 2;
    if (a % 2 == 0) a /= 2;
    else b /= 2;
    return fkt_mul_size(a, b, &product) ? product : 0;
}

static int within(int64_t x, int64_t low, int64_t high) { return x >= low && x <= high; }

static fkt_status impossible(uint32_t c, const char *what)
{
    return fkt_fail(FKT_E_NUMERIC, "moments of class %u are impossible: %s", c, what);
}

/* pre: n*rq^2 < 2^61 */
static fkt_status check_sums(uint32_t c, const int64_t *sum, size_t length, int64_t n, int64_t rq)
{
    for (size_t i = 0; i < length; i++)
        if (!within(sum[i], -n * rq, n * rq)) return impossible(c, "a sum is larger than count * radius");
    return FKT_OK;
}

/* pre: n*rq^2 < 2^61, so that the running trace is < 2^62 */
static const char *wrong_moment(const int64_t *entry, size_t length, int64_t n, int64_t rq)
{
    const int64_t bound = n * rq * rq;
    int64_t trace = 0;
    for (size_t i = 0; i < length; i++) {
        if (!within(*entry, 0, bound)) return "a diagonal moment is not in 0 .. count * radius^2";
        trace += *entry++;
        if (trace > bound) return "the trace is larger than count * radius^2";
        for (size_t j = i + 1; j < length; j++, entry++)
            if (!within(*entry, -bound, bound)) return "a moment is larger than count * radius^2";
    }
    return NULL;
}

static fkt_status check_class(struct fkt_moments *m, uint32_t c, const int64_t *packed)
{
    const struct fkt_moments_layout *l = &m->layout;
    const int64_t n = packed[fkt_layout_count(l, m->classes, c)];
    if (n < 0 || (uint64_t)n > m->n_max) return impossible(c, "the count is negative or above its bound");
    for (uint32_t p = 0; p < l->parts; p++) {
        const char *wrong = NULL;
        fkt_status st = check_sums(c, packed + fkt_layout_sum(l, m->classes, c, p), l->length[p], n, l->rq[p]);
        if (st != FKT_OK) return st;
        if (!l->pooled)
            wrong = wrong_moment(packed + fkt_layout_moment(l, m->classes, c, p), l->length[p], n, l->rq[p]);
        if (wrong) return impossible(c, wrong);
    }
    m->incoming[c] = (uint64_t)n;
    return FKT_OK;
}

/* pre: fkt_moments_check_room accepted the counts, so their sum is at most all_max */
static fkt_status check_pooled(const struct fkt_moments *m, const int64_t *packed)
{
    const struct fkt_moments_layout *l = &m->layout;
    int64_t n = 0;
    for (uint32_t c = 0; c < m->classes; c++) n += (int64_t)m->incoming[c];
    for (uint32_t p = 0; p < l->parts; p++) {
        const char *wrong = wrong_moment(packed + fkt_layout_moment(l, m->classes, 0, p), l->length[p], n, l->rq[p]);
        if (wrong) return fkt_fail(FKT_E_NUMERIC, "pooled moments are impossible: %s", wrong);
    }
    return FKT_OK;
}

fkt_status fkt_moments_add_packed(struct fkt_moments *m, const int64_t *packed)
{
    fkt_status st = FKT_OK;
    for (uint32_t c = 0; c < m->classes && st == FKT_OK; c++) st = check_class(m, c, packed);
    if (st == FKT_OK) st = fkt_moments_check_room(m, m->incoming);
    if (st == FKT_OK && m->layout.pooled) st = check_pooled(m, packed);
    if (st != FKT_OK) return st;
    for (size_t i = 0; i < m->numbers; i++) m->packed[i] += packed[i];
    return FKT_OK;
}
