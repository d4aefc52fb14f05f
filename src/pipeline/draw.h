/* SPDX-License-Identifier: Apache-2.0 */
/* draw.h - sampled and decoded images, some at a time, for this module. */
#ifndef FKT_PIPELINE_DRAW_H
#define FKT_PIPELINE_DRAW_H

#include "pipeline/pipeline.h"

/* What was drawn for some images, before any network runs. */
struct fkt_drawn {
    size_t n;
    uint64_t seed;
    const uint32_t *label;  /* (n) */
    const uint64_t *number; /* (n) of the sample in its class */
    const double
        *u[FKT_PARTS_MAX]; /* by part of the task: (n, d), whitened units, as before fkt_calibration_backward */
};

/* Images are numbered class after class, `each` of them; a chunk is n of them from `at` on. Image i of class k
 * is sample number i + `first` of that class. Everything is borrowed. */
struct fkt_drawing {
    const struct fkt_pipeline *pipeline;
    const struct fkt_gaussians *g; /* (parts of the layout); without `render` the first is enough */
    uint64_t seed, first, each, at;
    size_t n;
    uint8_t *rgb;            /* (n, S, S, 3) */
    struct fkt_meter *meter; /* may be NULL */
    /* NULL: the codec decodes. Else it makes the pixels, one batch for each call, from several workers at once. */
    fkt_status (*render)(void *ctx, unsigned worker, const struct fkt_drawn *x, uint8_t *rgb /* (x->n, S, S, 3) */);
    void *ctx;
    size_t batch; /* of a call; 0: that of the codec */
};
FKT_MUST_USE fkt_status fkt_draw_chunk(const struct fkt_drawing *d, unsigned threads /* 0: all */);
/* Images of a chunk: a batch for every worker, otherwise a few megabytes. */
size_t fkt_draw_chunk_size(const struct fkt_pipeline *w, unsigned threads);

/* A pipeline of the caller must agree with the release in everything that decoding uses: FKT_E_MISMATCH; FKT_E_STATE
 * when it begins at latents. */
FKT_MUST_USE fkt_status fkt_draw_check_pipeline(const struct fkt_pipeline *w, const struct fkt_task *t);

#endif
