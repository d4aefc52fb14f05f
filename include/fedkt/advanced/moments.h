/* SPDX-License-Identifier: Apache-2.0 */
/* moments.h - record vectors: coordinates inside the ball, quantisation, and adding integers up. Letters as in
 * fedkt/moments.h. */
#ifndef FEDKT_ADVANCED_MOMENTS_H
#define FEDKT_ADVANCED_MOMENTS_H

#include "fedkt/moments.h"
#include "fedkt/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/* Several parts as one vector (a task with `joined`): w holds the parts side by side, and lies in the ball of radius
 * sqrt(sum of R_p^2), which has one Rq for all of them; the Rq of the parts' coordinates is not used. */
FKT_API double fkt_joined_radius(const struct fkt_coordinates *part, uint32_t parts);
FKT_API FKT_MUST_USE fkt_status fkt_quantise_joined(const struct fkt_coordinates *part, uint32_t parts, uint32_t rq,
                                                    const double *w, int32_t *q);

/* Leading coordinates of q that have the same length in every record, up to rounding: the direction in gain-shape,
 * none in clip. The sum of their second moments over `square` is then a count. */
struct fkt_direction {
    uint32_t length; /* d, or 0: there are none, and the rest is 0 */
    double square;   /* what |q_1..d|^2 is on average */
    double slack;    /* how far the average of a class may be from that */
};
FKT_API struct fkt_direction fkt_coordinates_direction(const struct fkt_coordinates *c);
/* The same of part p of joined parts; its coordinates begin where part p begins. */
FKT_API struct fkt_direction fkt_joined_direction(const struct fkt_coordinates *part, uint32_t parts, uint32_t p,
                                                  uint32_t rq);

/* One record, or n of them (q is (n, sum of the lengths), parts side by side; labels (n)). FKT_E_ARG on a label >= K,
 * FKT_E_NUMERIC when |q|^2 > Rq^2 in a part or n_max is passed; a failing call adds nothing. */
FKT_API FKT_MUST_USE fkt_status fkt_moments_add(struct fkt_moments *m, const uint32_t *labels, const int32_t *q,
                                                size_t n);
/* Adds packed integers of another site after checking what must hold of any honest sum: 0 <= n <= n_max, and of every
 * part |S_i| <= n*Rq, 0 <= M_ii <= n*Rq^2, |M_ij| <= n*Rq^2, trace <= n*Rq^2 (pooled: n of all classes together). (Not
 * a defence against poisoning.) */
FKT_API FKT_MUST_USE fkt_status fkt_moments_add_packed(struct fkt_moments *m, const int64_t *packed);

#ifdef __cplusplus
}
#endif
#endif
