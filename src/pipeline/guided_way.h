/* SPDX-License-Identifier: Apache-2.0 */
/* guided_way.h - drawn vectors of codec and guide to images, by gradient or by the twin, behind one call. */
#ifndef FKT_PIPELINE_GUIDED_WAY_H
#define FKT_PIPELINE_GUIDED_WAY_H

#include "fedkt/generate.h"

#include "pipeline/guided.h"
#include "pipeline/guided_twin.h"

/* Borrowed until the way is freed. */
struct fkt_guided_source {
    const struct fkt_codec *codec, *guide; /* guide NULL: it is not open, which is enough for the twin */
    const struct fkt_calibration *codec_calibration, *guide_calibration; /* the latter NULL: there is no guide */
    struct fkt_guided_pair pair;
};

struct fkt_guided_way;
/* *out is NULL where images are decoded without the guide; *facts tells. FKT_E_ARG for numbers out of range;
 * FKT_E_STATE where it was asked for and there is no guide, or a codec without a network; FKT_E_MISMATCH for a twin of
 * another pair. All of it before the first image. */
FKT_MUST_USE fkt_status fkt_guided_way_open(struct fkt_guided_way **out, const struct fkt_guided_source *source,
                                            const struct fkt_guided_options *options, unsigned threads /* 0: all */,
                                            struct fkt_guided_facts *facts);
void fkt_guided_way_free(struct fkt_guided_way *w);
size_t fkt_guided_way_batch(const struct fkt_guided_way *w); /* images that go together */
/* 1 to batch images, from `threads` workers at once: u (n, d), s (n, k) -> rgb (n, S, S, 3). */
FKT_MUST_USE fkt_status fkt_guided_way_run(struct fkt_guided_way *w, unsigned worker,
                                           const struct fkt_guided_image *image, const double *u, const double *s,
                                           size_t n, uint8_t *rgb);

#endif
