/* SPDX-License-Identifier: Apache-2.0 */
/* calibration.h - making a calibration of a codec from latents of PUBLIC images, and applying one to single vectors.
 * fkt_calibrate (pipeline.h) does the former for a dataset. */
#ifndef FEDKT_ADVANCED_CALIBRATION_H
#define FEDKT_ADVANCED_CALIBRATION_H

#include "fedkt/codec.h"
#include "fedkt/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fitting: first pass of public latents through add (mean, covariance), `middle` makes W, second pass of the SAME
 * latents through add gathers log|u|, `finish` gives the calibration. top = d (0: D). Not for use on private data. */
struct fkt_calibrator;
FKT_API FKT_MUST_USE fkt_status fkt_calibrator_new(struct fkt_calibrator **out, const struct fkt_codec *c, uint32_t top,
                                                   const char *source);
/* FKT_E_STATE when so many latents are too few: to be asked before they are made. */
FKT_API FKT_MUST_USE fkt_status fkt_calibrator_enough(const struct fkt_calibrator *k, uint64_t latents);
FKT_API FKT_MUST_USE fkt_status fkt_calibrator_add(struct fkt_calibrator *k, const float *z /* (n,D) */, size_t n);
FKT_API FKT_MUST_USE fkt_status fkt_calibrator_middle(struct fkt_calibrator *k);
FKT_API FKT_MUST_USE fkt_status fkt_calibrator_finish(struct fkt_calibrator *k, struct fkt_calibration *out);
FKT_API void fkt_calibrator_free(struct fkt_calibrator *k);

/* u = W(z - mu0) and back, one record at a time, in double and in a fixed order: the same bits for any batch and
 * thread count. */
FKT_API void fkt_calibration_forward(const struct fkt_calibration *cal, const float *z /* (D) */, double *u /* (d) */);
FKT_API void fkt_calibration_backward(const struct fkt_calibration *cal, const double *u /* (d) */, float *z /* (D) */);

/* Keeps the digests of its images, 1 to cal->images of them; a calibration of images cannot be saved without. */
FKT_API FKT_MUST_USE fkt_status fkt_calibration_set_images(struct fkt_calibration *cal, const uint8_t (*sha256)[32],
                                                           size_t n);
/* 1: an image of this digest was among them. An image that was not is taken for one with probability n_digests/2^64. */
FKT_API int fkt_calibration_holds(const struct fkt_calibration *cal, const uint8_t sha256[32]);

#ifdef __cplusplus
}
#endif
#endif
