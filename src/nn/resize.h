/* SPDX-License-Identifier: Apache-2.0 */
/* resize.h - the weights of RESIZE: bilinear resampling with antialiasing of one row or column, in whole numbers.
 *
 * From n numbers to m, with (2 i + 1)/(2 m) the middle of result i and (2 j + 1)/(2 n) that of number j as shares of
 * the side:
 *
 *   t(i, j) = max(0, 2 max(n, m) - |(2 j + 1) m - (2 i + 1) n|)
 *   out[i]  = sum over j of t(i, j) in[j] / sum over j of t(i, j)
 *
 * a triangle around the result's middle, one number wide at each side (enlarging) or one result wide (reducing, which
 * is the antialiasing), divided by what of it lies on the map. This is torch's F.interpolate(mode="bilinear",
 * align_corners=False, antialias=True), which computes the same weights in rounded numbers. A map is resized by rows
 * and by columns: its weights are products. The backward by the input is the transpose. For n = m it is the identity.
 */
#ifndef FKT_NN_RESIZE_H
#define FKT_NN_RESIZE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__ /* kernels compute the same weights */
#define FKT_RESIZE_FN static inline __host__ __device__
#else
#define FKT_RESIZE_FN static inline
#endif

/* Numbers a side, so that t and its sums fit in 32 bits; and how many times longer one side may be than the other,
 * which bounds the numbers that a result reads, and the results that read a number, by 2 FKT_RESIZE_TIMES + 1. */
enum { FKT_RESIZE_MAX = 1 << 14, FKT_RESIZE_TIMES = 64 };

struct fkt_resize_span {
    uint32_t first, end;
};

/* t(i, j) from n numbers to m. */
FKT_RESIZE_FN uint32_t fkt_resize_t(uint32_t n, uint32_t m, uint32_t i, uint32_t j)
{
    const int32_t d = (int32_t)((2 * j + 1) * m) - (int32_t)((2 * i + 1) * n), away = d < 0 ? -d : d;
    const int32_t half = (int32_t)(2 * (n > m ? n : m));
    return away < half ? (uint32_t)(half - away) : 0;
}

/* The numbers j with t(i, j) > 0; at least one. */
FKT_RESIZE_FN struct fkt_resize_span fkt_resize_reads(uint32_t n, uint32_t m, uint32_t i)
{
    const int32_t middle = (int32_t)((2 * i + 1) * n), half = (int32_t)(2 * (n > m ? n : m));
    const int32_t low = middle - half - (int32_t)m, high = middle + half - (int32_t)m; /* low < 2 j m < high */
    struct fkt_resize_span s;
    s.first = low < 0 ? 0 : (uint32_t)low / (2 * m) + 1;
    s.end = (uint32_t)(high - 1) / (2 * m) + 1;
    if (s.end > n) s.end = n;
    return s;
}

/* The sum of t(i, j) over j. */
FKT_RESIZE_FN uint32_t fkt_resize_total(uint32_t n, uint32_t m, uint32_t i)
{
    const struct fkt_resize_span s = fkt_resize_reads(n, m, i);
    uint32_t sum = 0;
    for (uint32_t j = s.first; j < s.end; j++) sum += fkt_resize_t(n, m, i, j);
    return sum;
}

/* The results i that read number j: t is symmetric in (m, i) and (n, j). At least one. */
FKT_RESIZE_FN struct fkt_resize_span fkt_resize_readers(uint32_t n, uint32_t m, uint32_t j)
{
    return fkt_resize_reads(m, n, j);
}

#endif
