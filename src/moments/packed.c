/* SPDX-License-Identifier: Apache-2.0 */
/* packed.c - the packed integers of a site: their size, and adding those of another site after checking them.
 *
 *   block of a class:  n | S_0 .. S_{m-1} | M_00 M_01 .. M_0,m-1 | M_11 .. M_1,m-1 | ... | M_m-1,m-1
 *
 * This is the upper triangle, row by row, of sum (1,q)(1,q)^T. Any sum of n vectors in the ball passes the checks, so
 * an honest site is never refused, and no entry can leave the range that n_max guarantees; a malicious site can still
 * send any vector that passes (docs: poisoning is out of scope). All classes are checked before the first is added.
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

/* post: n <= n_max held, so every bound below is < 2^61 and the running trace < 2^62 */
static fkt_status check_block(const struct fkt_moments *m, uint32_t c, const int64_t *block)
{
    const int64_t n = block[0], *entry = block + 1 + m->length;
    int64_t sum_bound, moment_bound, trace = 0;

    if (n < 0 || (uint64_t)n > m->n_max) return impossible(c, "the count is negative or above its bound");
    sum_bound = n * m->rq;
    moment_bound = sum_bound * m->rq;
    for (size_t i = 0; i < m->length; i++)
        if (!within(block[1 + i], -sum_bound, sum_bound)) return impossible(c, "a sum is larger than count * radius");
    for (size_t i = 0; i < m->length; i++) {
        if (!within(*entry, 0, moment_bound)) return impossible(c, "a diagonal moment is not in 0 .. count * radius^2");
        trace += *entry++;
        if (trace > moment_bound) return impossible(c, "the trace is larger than count * radius^2");
        for (size_t j = i + 1; j < m->length; j++, entry++)
            if (!within(*entry, -moment_bound, moment_bound))
                return impossible(c, "a moment is larger than count * radius^2");
    }
    return fkt_moments_check_room(m, c, (uint64_t)n);
}

fkt_status fkt_moments_add_packed(struct fkt_moments *m, const int64_t *packed)
{
    for (uint32_t c = 0; c < m->classes; c++) {
        fkt_status st = check_block(m, c, packed + c * m->block);
        if (st != FKT_OK) return st;
    }
    for (size_t i = 0; i < m->classes * m->block; i++) m->packed[i] += packed[i];
    return FKT_OK;
}
