/* SPDX-License-Identifier: Apache-2.0 */
/* synth.h - class Gaussians from noised moments that are not in a release file. fkt_release_gaussians (release.h) does
 * it for one that is. */
#ifndef FEDKT_ADVANCED_SYNTH_H
#define FEDKT_ADVANCED_SYNTH_H

#include "fedkt/status.h"
#include "fedkt/synth.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fkt_noise_scale { /* what the release says of its own noise, in integer units */
    double sigma_count, sigma_sum, sigma_moment;
    double unit; /* R / Rq: integer units -> units of w */
    /* What is known of every record beside that (struct fkt_direction of moments.h); 0, 0, 0: nothing. Then the
     * diagonal of the second moment holds a second count, which is used. */
    uint32_t direction;      /* the first so many coordinates have one square length in all records */
    double direction_square; /* that length, in integer units */
    double direction_slack;  /* how far the average of a class may be from it */
};

/* Borrows noised (K, (m+1)(m+2)/2); fills *out, to be released with fkt_gaussians_clear. */
FKT_API FKT_MUST_USE fkt_status fkt_gaussians_estimate(struct fkt_gaussians *out, const int64_t *noised,
                                                       uint32_t classes, uint32_t length,
                                                       const struct fkt_noise_scale *noise,
                                                       const struct fkt_estimate_options *options);

#ifdef __cplusplus
}
#endif
#endif
