/* SPDX-License-Identifier: Apache-2.0 */
/* generate.h - labelled synthetic images from a release. */
#ifndef FEDKT_GENERATE_H
#define FEDKT_GENERATE_H

#include "fedkt/codec.h"
#include "fedkt/image.h"
#include "fedkt/pipeline.h"
#include "fedkt/release.h"
#include "fedkt/status.h"
#include "fedkt/synth.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fkt_generate_options {
    size_t per_class;
    uint64_t seed;
    enum fkt_export_format format;
    struct fkt_estimate_options estimate;
    size_t grid_columns; /* 0: 12 */
    int force;
    unsigned threads;
    const struct fkt_progress *progress;
    struct fkt_codec_settings settings;
    const struct fkt_pipeline
        *pipeline; /* of the same codec, calibration and coordinates; NULL: opened from the release */
};
/* Folder with the images, metadata, README.md (dataset card), certificate.json, grid.png. */
FKT_API FKT_MUST_USE fkt_status fkt_generate(const struct fkt_release *r, const char *folder,
                                             const struct fkt_generate_options *options);
/* Samples for a sheet: the first `rows` classes, tiles (rows, cols, S, S, 3) into `rgb`. threads 0: all. */
FKT_API FKT_MUST_USE fkt_status fkt_generate_tiles(const struct fkt_pipeline *w, const struct fkt_gaussians *g,
                                                   uint64_t seed, uint32_t rows, size_t cols, unsigned threads,
                                                   uint8_t *rgb);

#ifdef __cplusplus
}
#endif
#endif
