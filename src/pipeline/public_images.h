/* SPDX-License-Identifier: Apache-2.0 */
/* public_images.h - refuses private images that the calibration was made of. */
#ifndef FKT_PIPELINE_PUBLIC_IMAGES_H
#define FKT_PIPELINE_PUBLIC_IMAGES_H

#include "pipeline/fingerprint.h"
#include "pipeline/pipeline.h"

/* FKT_E_STATE when the calibration is of images and says nothing of which: one that came inside a release. */
FKT_MUST_USE fkt_status fkt_public_images_comparable(const struct fkt_pipeline *w);
/* FKT_E_MISMATCH when any of records idx[0..n-1] (NULL: 0..n-1) is among the calibration's images; states how many, and
 * names the first. Unreadable images are skipped: the pipeline reports them. */
FKT_MUST_USE fkt_status fkt_public_images_refuse(const struct fkt_pipeline *w, const struct fkt_dataset *ds,
                                                 const size_t *idx, size_t n,
                                                 const struct fkt_pipeline_options *options);
/* The same for digests (n, 32) that were kept beside latents. */
FKT_MUST_USE fkt_status fkt_public_images_refuse_rows(const struct fkt_pipeline *w, const uint8_t *sha256, size_t n);

#endif
