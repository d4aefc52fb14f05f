/* SPDX-License-Identifier: Apache-2.0 */
/* slow_moments.h - the slow twin of src/moments: plain int64 loops over the definition; and records to feed both. */
#ifndef FKT_TEST_SLOW_MOMENTS_H
#define FKT_TEST_SLOW_MOMENTS_H

#include "base/rng.h"
#include "fedkt/advanced/moments.h"
#include "tests/support/check.h"

/* packed (K, (m+1)(m+2)/2) = sum over records of the upper triangle of (1,q)(1,q)^T */
static inline void slow_moments(int64_t *packed, size_t classes, size_t m, const uint32_t *labels, const int32_t *q,
                                size_t n)
{
    size_t block = (m + 1) * (m + 2) / 2;
    memset(packed, 0, classes * block * sizeof *packed);
    for (size_t r = 0; r < n; r++) {
        int64_t *entry = packed + labels[r] * block;
        for (size_t i = 0; i <= m; i++)
            for (size_t j = i; j <= m; j++) {
                int64_t a = i ? q[r * m + i - 1] : 1, b = j ? q[r * m + j - 1] : 1;
                *entry++ += a * b;
            }
    }
}

/* The same for any layout, number by number: n_k, sums of q_i and sums of q_i q_j of the records that count. */
static inline void slow_parts(int64_t *packed, uint32_t classes, const struct fkt_moments_layout *l,
                              const uint32_t *labels, const int32_t *q, size_t n)
{
    const size_t length = fkt_layout_length(l);
    memset(packed, 0, fkt_layout_numbers(l, classes) * sizeof *packed);
    for (size_t r = 0; r < n; r++) {
        const int32_t *part = q + r * length;
        packed[fkt_layout_count(l, classes, labels[r])]++;
        for (uint32_t p = 0; p < l->parts; part += l->length[p++]) {
            int64_t *sum = packed + fkt_layout_sum(l, classes, labels[r], p);
            int64_t *moment = packed + fkt_layout_moment(l, classes, labels[r], p);
            for (size_t i = 0; i < l->length[p]; i++) {
                sum[i] += part[i];
                for (size_t j = i; j < l->length[p]; j++) *moment++ += (int64_t)part[i] * part[j];
            }
        }
    }
}

/* n records: uniform labels below `used` (classes from `used` on stay empty), q near the sphere or at a pole */
static inline void random_records(uint32_t *labels, int32_t *q, size_t n, uint32_t used, uint32_t m, uint32_t rq,
                                  uint64_t seed)
{
    struct fkt_coordinates c;
    struct fkt_rng r;
    double *w;
    CHECK_OK(fkt_coordinates_clip(&c, m, rq, 1.0));
    CHECK_OK(fkt_alloc(&w, m));
    fkt_rng_init(&r, seed, m);
    for (size_t k = 0; k < n; k++) {
        labels[k] = (uint32_t)fkt_rng_below(&r, used);
        for (size_t i = 0; i < m; i++) w[i] = fkt_rng_normal(&r);
        CHECK_OK(fkt_coordinates_forward(&c, w, w));
        CHECK_OK(fkt_quantise(&c, w, q + k * m));
        if (fkt_rng_below(&r, 8) == 0) { /* the extremes of the ball, so that entries reach n*Rq^2 */
            memset(q + k * m, 0, m * sizeof *q);
            q[k * m + fkt_rng_below(&r, m)] = fkt_rng_below(&r, 2) ? (int32_t)rq : -(int32_t)rq;
        }
    }
    fkt_free(w);
}

#endif
