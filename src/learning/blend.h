/* SPDX-License-Identifier: Apache-2.0 */
/* blend.h - images made of two, whose labels only a teacher can tell. */
#ifndef FKT_LEARNING_BLEND_H
#define FKT_LEARNING_BLEND_H

#include "fedkt/train.h"

/* One image of two: a rectangle of the second in the first, or the weighted mean of both. */
struct fkt_blend {
    size_t first, second;              /* of the set; the image takes the place of the first */
    int cut;                           /* 1: a rectangle; 0: a mean */
    uint32_t top, left, height, width; /* of the rectangle */
    uint32_t weight;                   /* of the first in the mean, in 1/256 */
};

/* Which images of an epoch become blends: each of n with probability `share`, with a partner among all. Depends on
 * seed and epoch alone. *out: (*count), owned by the caller. */
FKT_MUST_USE fkt_status fkt_blend_plan(struct fkt_blend **out, size_t *count, size_t n, uint32_t size, double share,
                                       uint64_t seed, uint32_t epoch);
/* The image of b, from rgb (n, size, size, 3), as out (size, size, 3). */
void fkt_blend_make(const struct fkt_blend *b, const uint8_t *rgb, uint32_t size, uint8_t *out);

#endif
