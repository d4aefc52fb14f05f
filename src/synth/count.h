/* SPDX-License-Identifier: Apache-2.0 */
/* count.h - the number of records, from the noisy count and from every trace that is a count too (estimate.md 5, 6). */
#ifndef FKT_SYNTH_COUNT_H
#define FKT_SYNTH_COUNT_H

#include <stdint.h>

/* A sum of diagonal entries of a second moment, over coordinates whose square length is the same in all records. */
struct fkt_trace {
    double trace;   /* with noise */
    uint32_t count; /* of the entries */
    double sigma;   /* of the noise of each: s_M */
    double square;  /* L: what one record adds */
    double slack;   /* how far the average record may be from it */
};

struct fkt_count {
    double value; /* n^, not cut from below */
    double noise; /* standard deviation of its error */
};
/* plain: the noisy count, with noise of standard deviation sigma. Inverse-variance weights; no trace: plain itself. */
struct fkt_count fkt_count_combine(double plain, double sigma, const struct fkt_trace *t, uint32_t n);

struct fkt_trace_correction {
    double shift; /* to add to each of the diagonal entries */
    double tied;  /* covariance of such an entry and n^ */
};
struct fkt_trace_correction fkt_trace_correct(double plain, double sigma, const struct fkt_trace *t, uint32_t n,
                                              uint32_t which);

#endif
