/* SPDX-License-Identifier: Apache-2.0 */
/* noise_watch.h - checks whether noise is as claimed: statistics over many draws of a whole noise vector.
 *
 * For a caller that knows the exact numbers and so sees the noise: `fedkt audit`. An attack on a release (audit.h)
 * finds what an attacker of one record can use; this finds noise that is missing, too small or used twice, also in
 * numbers that no attack examines. */
#ifndef FKT_PRIVACY_NOISE_WATCH_H
#define FKT_PRIVACY_NOISE_WATCH_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* A statistic and its limit. Under the claim each of a watch's checks fails with
 * probability alpha/FKT_NOISE_CHECKS at most. */
enum fkt_noise_kind {
    FKT_NOISE_VARIANCE = 0, /* |variance/claimed - 1| of the worst number */
    FKT_NOISE_MEAN,         /* |mean| in claimed standard deviations */
    FKT_NOISE_CORRELATION,  /* |correlation| of the worst pair of numbers of one draw */
    FKT_NOISE_SUCCESSION,   /* of the worst number with itself in the next draw */
    FKT_NOISE_REPEATS,      /* equal values where the noise is so wide that they should be rare */
    FKT_NOISE_CHECKS
};
struct fkt_noise_check {
    double value, limit; /* it holds when value <= limit; NaN does not */
    size_t at, beside;   /* the worst number, and the other one of a pair */
};

struct fkt_noise_watch; /* memory: length^2/2 doubles */
/* sigma (length): the standard deviation that is claimed, 0: no noise is claimed, the number is skipped. Copied. */
FKT_MUST_USE fkt_status fkt_noise_watch_new(struct fkt_noise_watch **out, const double *sigma, size_t length);
void fkt_noise_watch_free(struct fkt_noise_watch *w);
void fkt_noise_watch_add(struct fkt_noise_watch *w, const int64_t *noise /* (length) */);
/* Of at least 100 draws; 0 < alpha < 0.5. */
void fkt_noise_watch_verdict(const struct fkt_noise_watch *w, double alpha,
                             struct fkt_noise_check out[FKT_NOISE_CHECKS]);
static inline int fkt_noise_holds(const struct fkt_noise_check *c) { return c->value <= c->limit; }

#endif
