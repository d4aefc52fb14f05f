/* SPDX-License-Identifier: Apache-2.0 */
/* augment.h - the view of an image in an epoch, and the order of the images. */
#ifndef FKT_CLASSIFIER_AUGMENT_H
#define FKT_CLASSIFIER_AUGMENT_H

#include "fedkt/learn.h"

/* Order of the n images in an epoch, by (seed, epoch) alone: order[0..n-1] is a permutation of 0..n-1. */
void fkt_epoch_order(size_t *order, size_t n, uint64_t seed, uint32_t epoch);

/* The view of an image: depends on (seed, epoch, index of the image) alone. */
struct fkt_view {
    int32_t top, left; /* -pad..pad: where in the image the upper left corner lies */
    int flip;
};
struct fkt_view fkt_view_of(const struct fkt_recipe *r, uint32_t epoch, size_t index);

/* out (3, S, S) from rgb (S, S, 3). value[c][v]: the number that value v of colour c becomes (fkt_model_pixels). Pixels
 * outside the image are 0, the colour of the mean. */
void fkt_view_apply(const struct fkt_view *v, const float value[3][256], const uint8_t *rgb, uint32_t size, float *out);

#endif
