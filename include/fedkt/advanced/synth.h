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

/* Record vectors of one part. Borrows noised (K, (m+1)(m+2)/2); fills *out, to be released with fkt_gaussians_clear. */
FKT_API FKT_MUST_USE fkt_status fkt_gaussians_estimate(struct fkt_gaussians *out, const int64_t *noised,
                                                       uint32_t classes, uint32_t length,
                                                       const struct fkt_noise_scale *noise,
                                                       const struct fkt_estimate_options *options);

/* Record vectors of several parts, each with noise and unit of its own. */
struct fkt_part_noise {
    uint32_t length; /* m of the part */
    double sigma_sum, sigma_moment;
    double unit;
};
/* Coordinates `first` .. of a part have one square length in all records: their second moments hold a count. */
struct fkt_known_length {
    uint32_t part, first, count;
    double square, slack; /* as direction_square and direction_slack */
};
/* Everything is borrowed. */
struct fkt_layout_noise {
    double sigma_count;
    int pooled; /* 1: the second moments are sums over all classes */
    const struct fkt_part_noise *part;
    uint32_t parts;
    const struct fkt_known_length *known; /* no coordinate twice; of all parts, since each is used for the one count */
    uint32_t n_known;
};
/* Gaussians of one part. noised: the packed integers of the whole layout (moments.h). Their count is the same in every
 * part. pooled: all classes have the one covariance within classes, and options->pool is not used. */
FKT_API FKT_MUST_USE fkt_status fkt_gaussians_estimate_part(struct fkt_gaussians *out, const int64_t *noised,
                                                            uint32_t classes, const struct fkt_layout_noise *noise,
                                                            uint32_t part, const struct fkt_estimate_options *options);

#ifdef __cplusplus
}
#endif
#endif
