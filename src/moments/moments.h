/* SPDX-License-Identifier: Apache-2.0 */
/* moments.h - the internals of struct fkt_moments.
 *
 *   packed                 in the order of the layout (fedkt/layout.h)
 *   rows (groups, cap*L)   the last fill[g] records of group g, integers held in doubles; within a group part after
 *                          part, part p as (cap, m_p). L is the sum of all m_p
 *
 * A group is what one second moment sums over: a class, or with pooled moments all records (groups = 1). Counts and
 * sums are always complete; M lacks the records still in rows.
 *
 * Invariants: a class's n <= n_max; pooled: all n together <= all_max; n_max*Rq^2 and all_max*Rq^2 < 2^61 and cap*Rq^2
 * < 2^53 for the largest Rq; fill[g] <= cap. */
#ifndef FKT_MOMENTS_MOMENTS_H
#define FKT_MOMENTS_MOMENTS_H

#include "fedkt/moments.h"

struct fkt_moments {
    uint32_t classes, groups; /* K; K or 1 */
    struct fkt_moments_layout layout;
    uint64_t n_max, all_max; /* all_max: UINT64_MAX unless pooled */
    size_t length;           /* L */
    size_t numbers;          /* of packed */
    size_t cap;              /* rows per group before a flush */
    int64_t *packed;         /* (numbers) */
    double *rows;            /* (groups, cap*L) */
    double *product;         /* (m, m) scratch of a flush, m the largest length */
    size_t *fill;            /* (groups) */
    size_t *peak;            /* (groups) the largest fill so far: how many rows must be wiped */
    uint64_t *incoming;      /* (K) records per class of the current call */
};

uint64_t fkt_moments_held(const struct fkt_moments *m, uint32_t c); /* the count of class c */
/* FKT_E_NUMERIC when more[c] further records of each class c would exceed n_max or all_max. */
FKT_MUST_USE fkt_status fkt_moments_check_room(const struct fkt_moments *m, const uint64_t *more);

#endif
