/* SPDX-License-Identifier: Apache-2.0 */
/* moments.h - the internals of struct fkt_moments.
 *
 *   packed (K, block)   per class: n | S (m) | upper triangle of M, row by row (m(m+1)/2)
 *   rows (K, cap, m)    the last fill[c] records of class c, integers held in doubles
 *
 * n and S are always complete; M lacks the records still in rows.
 *
 * Invariants: packed n <= n_max; n_max*rq^2 < 2^61; cap*rq^2 < 2^53; fill[c] <= cap. */
#ifndef FKT_MOMENTS_MOMENTS_H
#define FKT_MOMENTS_MOMENTS_H

#include "fedkt/moments.h"

struct fkt_moments {
    uint32_t classes, length, rq; /* K, m, Rq */
    uint64_t n_max;
    size_t block;       /* (m+1)(m+2)/2 */
    size_t cap;         /* rows per class before a flush */
    int64_t *packed;    /* (K, block) */
    double *rows;       /* (K, cap, m) */
    double *product;    /* (m, m) scratch of a flush */
    size_t *fill;       /* (K) */
    size_t *peak;       /* (K) the largest fill so far: how many rows must be wiped */
    uint64_t *incoming; /* (K) records per class of the current call */
};

/* FKT_E_NUMERIC when `more` records of class c would exceed n_max. */
fkt_status fkt_moments_check_room(const struct fkt_moments *m, uint32_t c, uint64_t more);

#endif
