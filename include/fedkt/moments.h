/* SPDX-License-Identifier: Apache-2.0 */
/* moments.h - coordinates inside a public ball, quantisation, and exact integer moments per class.
 *
 * Letters: d length of u, m length of the record vector w (d for clip, d+1 for gain-shape), K classes, R radius of
 * the ball, Rq its integer radius. From q on, everything is exact: the same integers for any split, order or number
 * of threads.
 */
#ifndef FEDKT_MOMENTS_H
#define FEDKT_MOMENTS_H

#include "fedkt/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum fkt_coordinate_kind { FKT_COORDINATE_GAIN_SHAPE = 0, FKT_COORDINATE_CLIP = 1 };

#define FKT_RQ_MIN 64U
#define FKT_RQ_MAX 4096U
#define FKT_RQ_DEFAULT 256U
#define FKT_GAMMA_DEFAULT 0.35

struct fkt_coordinates {
    enum fkt_coordinate_kind kind;
    uint32_t dim;      /* d */
    uint32_t length;   /* m */
    uint32_t rq;       /* Rq */
    double radius;     /* R: the calibration's for clip, sqrt(1 + gamma^2) for gain-shape */
    double gamma;      /* gain-shape only */
    double log_mean;   /* c, gain-shape only */
    double log_spread; /* s, gain-shape only */
};

FKT_API FKT_MUST_USE fkt_status fkt_coordinates_gain_shape(struct fkt_coordinates *c, uint32_t dim, uint32_t rq,
                                                           double gamma, double log_mean, double log_spread);
FKT_API FKT_MUST_USE fkt_status fkt_coordinates_clip(struct fkt_coordinates *c, uint32_t dim, uint32_t rq,
                                                     double radius);

/* FKT_E_ARG, with the reason, for anything that the two above do not make. The three calls below begin with it. */
FKT_API FKT_MUST_USE fkt_status fkt_coordinates_check(const struct fkt_coordinates *c);

/* u -> w in the ball of radius R. FKT_E_NUMERIC on NaN or infinity. */
FKT_API FKT_MUST_USE fkt_status fkt_coordinates_forward(const struct fkt_coordinates *c, const double *u /* (d) */,
                                                        double *w /* (m) */);
/* w -> u, for sampling: any real w is taken (a sample may lie outside the ball). */
FKT_API FKT_MUST_USE fkt_status fkt_coordinates_inverse(const struct fkt_coordinates *c, const double *w /* (m) */,
                                                        double *u /* (d) */);
/* w -> q = round(w*Rq/R) with |q|^2 <= Rq^2 in integer arithmetic, by a deterministic rule. */
FKT_API FKT_MUST_USE fkt_status fkt_quantise(const struct fkt_coordinates *c, const double *w /* (m) */,
                                             int32_t *q /* (m) */);

/* Leading coordinates of q that have the same length in every record, up to rounding: the direction in gain-shape,
 * none in clip. The sum of their second moments over `square` is then a count. src/moments/quantise.md, *Length*. */
struct fkt_direction {
    uint32_t length; /* d, or 0: there are none, and the rest is 0 */
    double square;   /* what |q_1..d|^2 is on average */
    double slack;    /* how far the average of a class may be from that */
};
FKT_API struct fkt_direction fkt_coordinates_direction(const struct fkt_coordinates *c);

/* Per class the packed block (n, S, M): 1 count, m sums, then the upper triangle of sum q q^T row by row. */
FKT_API size_t fkt_moments_block(size_t length); /* (m+1)(m+2)/2; 0 when it would overflow */

struct fkt_moments;
/* gives *out, all zero. n_max (0: the largest safe value) bounds the records per class so that n_max*Rq^2 stays
 * below 2^61. */
FKT_API FKT_MUST_USE fkt_status fkt_moments_new(struct fkt_moments **out, uint32_t classes, uint32_t length,
                                                uint32_t rq, uint64_t n_max);
FKT_API void fkt_moments_free(struct fkt_moments *m);
/* One record, or n of them (q is (n, m), labels (n)). FKT_E_ARG on a label >= K, FKT_E_NUMERIC when |q|^2 > Rq^2 or
 * n_max is passed; a failing call adds nothing. */
FKT_API FKT_MUST_USE fkt_status fkt_moments_add(struct fkt_moments *m, const uint32_t *labels, const int32_t *q,
                                                size_t n);
FKT_API FKT_MUST_USE fkt_status fkt_moments_merge(
    struct fkt_moments *into, const struct fkt_moments *from); /* checked; on failure `into` is unchanged */
FKT_API uint32_t fkt_moments_classes(const struct fkt_moments *m);
FKT_API uint32_t fkt_moments_length(const struct fkt_moments *m);
FKT_API uint32_t fkt_moments_rq(const struct fkt_moments *m);
/* The packed integers (K, block), flushed; borrowed until the next call that changes m. */
FKT_API FKT_MUST_USE fkt_status fkt_moments_packed(struct fkt_moments *m, const int64_t **packed);
/* Adds packed integers of another site after checking what must hold of any honest sum: 0 <= n <= n_max, |S_i| <=
 * n*Rq, 0 <= M_ii <= n*Rq^2, |M_ij| <= n*Rq^2, trace <= n*Rq^2. (Not a defence against poisoning.) */
FKT_API FKT_MUST_USE fkt_status fkt_moments_add_packed(struct fkt_moments *m, const int64_t *packed);

/* Names, as they stand in a task and on the command line; -1 when unknown. */
FKT_API const char *fkt_coordinate_name(enum fkt_coordinate_kind k);
FKT_API int fkt_coordinate_parse(const char *s);

#ifdef __cplusplus
}
#endif
#endif
