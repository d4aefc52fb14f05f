/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c - offsets of the numbers of a moments vector; the order is defined in fedkt/layout.h. One part that is not
 * pooled is the block (n, S, M) of each class, as in the paper. Cost: a few operations for each part. */
#include "fedkt/layout.h"

#include "base/checked.h"

struct fkt_moments_layout fkt_layout_one(uint32_t length, uint32_t rq)
{
    return (struct fkt_moments_layout){.parts = 1, .length = {length}, .rq = {rq}};
}

int fkt_layout_equal(const struct fkt_moments_layout *a, const struct fkt_moments_layout *b)
{
    if (a->parts != b->parts || a->parts > FKT_PARTS_MAX || !a->pooled != !b->pooled) return 0;
    for (uint32_t p = 0; p < a->parts; p++)
        if (a->length[p] != b->length[p] || a->rq[p] != b->rq[p]) return 0;
    return 1;
}

size_t fkt_layout_length(const struct fkt_moments_layout *l)
{
    size_t n = 0;
    if (l->parts == 0 || l->parts > FKT_PARTS_MAX) return 0;
    for (uint32_t p = 0; p < l->parts; p++) {
        if (l->length[p] == 0) return 0;
        n += l->length[p];
    }
    return n;
}

size_t fkt_layout_triangle(uint32_t length)
{
    const uint64_t m = length;
    return (size_t)(m % 2 ? (m + 1) / 2 * m : m / 2 * (m + 1)); /* below 2^63 for every uint32_t */
}

/* Numbers of one class; with pooled moments those of the sums alone. */
static size_t stride(const struct fkt_moments_layout *l)
{
    size_t n = 1;
    for (uint32_t p = 0; p < l->parts; p++) n += l->length[p] + (l->pooled ? 0 : fkt_layout_triangle(l->length[p]));
    return n;
}

size_t fkt_layout_numbers(const struct fkt_moments_layout *l, uint32_t classes)
{
    size_t n, all = 0;
    if (fkt_layout_length(l) == 0 || classes == 0) return 0;
    for (uint32_t p = 0; p < l->parts; p++)
        if (!fkt_add_size(all, fkt_layout_triangle(l->length[p]), &all)) return 0;
    if (!l->pooled) {
        if (!fkt_add_size(all, fkt_layout_length(l) + 1, &n) || !fkt_mul_size(n, classes, &n)) return 0;
    } else if (!fkt_mul_size(fkt_layout_length(l) + 1, classes, &n) || !fkt_add_size(n, all, &n)) return 0;
    return n <= SIZE_MAX / 2 / sizeof(int64_t) ? n : 0;
}

size_t fkt_layout_count(const struct fkt_moments_layout *l, uint32_t classes, uint32_t k)
{
    (void)classes;
    return k * stride(l);
}

size_t fkt_layout_sum(const struct fkt_moments_layout *l, uint32_t classes, uint32_t k, uint32_t p)
{
    size_t at = fkt_layout_count(l, classes, k) + 1;
    for (uint32_t i = 0; i < p; i++) at += l->length[i] + (l->pooled ? 0 : fkt_layout_triangle(l->length[i]));
    return at;
}

size_t fkt_layout_moment(const struct fkt_moments_layout *l, uint32_t classes, uint32_t k, uint32_t p)
{
    size_t at;
    if (!l->pooled) return fkt_layout_sum(l, classes, k, p) + l->length[p];
    at = classes * stride(l);
    for (uint32_t i = 0; i < p; i++) at += fkt_layout_triangle(l->length[i]);
    return at;
}
