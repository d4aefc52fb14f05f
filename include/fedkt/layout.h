/* SPDX-License-Identifier: Apache-2.0 */
/* layout.h - which number of a moments vector stands where.
 *
 * A record vector has one or more parts; each has a length m_p and a ball of integer radius Rq_p. Per class the vector
 * has the count n, and for each part the sum S_p (m_p numbers) and the second moment M_p (the upper triangle of
 * sum q q^T, row by row, m_p(m_p+1)/2 numbers); there are no moments across parts:
 *
 *   not pooled   n S_1 M_1 S_2 M_2 ...   class after class
 *   pooled       n S_1 S_2 ...           class after class; then M_1 M_2 ... once, sums over the records of all classes
 *
 * Everything in the library that touches such a vector takes its offsets from here. */
#ifndef FEDKT_LAYOUT_H
#define FEDKT_LAYOUT_H

#include "fedkt/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { FKT_PARTS_MAX = 4 };
/* Numbers of a record vector, all parts together: no task has more, and class Gaussians and heads are computed for as
 * many. A larger task would spend its budget on a release that nothing here can use. */
#define FKT_LENGTH_MAX 16384U

struct fkt_moments_layout {
    uint32_t parts;                 /* 1..FKT_PARTS_MAX */
    uint32_t length[FKT_PARTS_MAX]; /* m_p */
    uint32_t rq[FKT_PARTS_MAX];     /* Rq_p */
    int pooled;                     /* 1: one second moment per part for all classes together */
};

FKT_API struct fkt_moments_layout fkt_layout_one(uint32_t length, uint32_t rq); /* one part, not pooled */
FKT_API int fkt_layout_equal(const struct fkt_moments_layout *a, const struct fkt_moments_layout *b);
/* Numbers of q of one record: the sum of the lengths. 0: no parts, too many, or one of length 0. */
FKT_API size_t fkt_layout_length(const struct fkt_moments_layout *l);
/* Numbers of the whole vector; 0: a bad layout, no classes, or so many numbers that their bytes overflow. */
FKT_API size_t fkt_layout_numbers(const struct fkt_moments_layout *l, uint32_t classes);
FKT_API size_t fkt_layout_triangle(uint32_t length); /* m(m+1)/2: numbers of one M */

/* Offsets in the vector. pre: fkt_layout_numbers is not 0, k < classes, p < parts. */
FKT_API size_t fkt_layout_count(const struct fkt_moments_layout *l, uint32_t classes, uint32_t k);
FKT_API size_t fkt_layout_sum(const struct fkt_moments_layout *l, uint32_t classes, uint32_t k, uint32_t p);
FKT_API size_t fkt_layout_moment(const struct fkt_moments_layout *l, uint32_t classes, uint32_t k,
                                 uint32_t p); /* pooled: the same for every k */

#ifdef __cplusplus
}
#endif
#endif
