/* SPDX-License-Identifier: Apache-2.0 */
/* generate_images.h - the images of a folder that fkt_generate makes, for generate.c. */
#ifndef FKT_PIPELINE_GENERATE_IMAGES_H
#define FKT_PIPELINE_GENERATE_IMAGES_H

#include "fedkt/generate.h"

#include "pipeline/guided_draw.h"
#include "pipeline/partial.h"

/* What a folder is made of; everything is borrowed. */
struct fkt_making {
    const struct fkt_release *release;
    const struct fkt_generate_options *options;
    const struct fkt_pipeline *pipeline;
    const struct fkt_gaussians *g; /* (parts of the layout) */
    struct fkt_guided_draw *guided;
    const char *folder; /* being filled */
    const char *images; /* it, or a folder in it: the images go there */
    uint8_t *tiles; /* (rows, columns, S, S, 3): the first images of the first classes are copied here; may be NULL */
    uint32_t rows;
    size_t columns;
};

/* The file beside `folder`, the final name, that keeps images of an interrupted run. */
FKT_MUST_USE fkt_status fkt_making_partial(struct fkt_partial **out, const struct fkt_making *m, const char *folder);
/* All images into m->images; partial may be NULL. Gives the fingerprint of images and labels. */
FKT_MUST_USE fkt_status fkt_making_images(const struct fkt_making *m, struct fkt_partial *partial,
                                          char fingerprint[FKT_SHA256_HEX]);
/* fkt_generate_tiles with a way that is open already. */
FKT_MUST_USE fkt_status fkt_draw_tiles(const struct fkt_pipeline *w, const struct fkt_gaussians *g,
                                       struct fkt_guided_draw *guided, uint64_t seed, uint32_t rows, size_t cols,
                                       unsigned threads, uint8_t *rgb);

#endif
