/* SPDX-License-Identifier: Apache-2.0 */
/* guided_draw.h - guided images as the pixels of a drawing (draw.h). */
#ifndef FKT_PIPELINE_GUIDED_DRAW_H
#define FKT_PIPELINE_GUIDED_DRAW_H

#include "pipeline/draw.h"
#include "pipeline/guided_way.h"

struct fkt_guided_draw {
    struct fkt_guided_way *way; /* NULL: the codec decodes alone */
    struct fkt_guided_facts facts;
    uint32_t codec, guide; /* parts of the task */
};
/* The pipeline is borrowed until the end. By gradient it must have the network of the guide. */
FKT_MUST_USE fkt_status fkt_guided_draw_open(struct fkt_guided_draw *g, const struct fkt_pipeline *w,
                                             const struct fkt_guided_options *options, unsigned threads);
void fkt_guided_draw_clear(struct fkt_guided_draw *g);
/* The drawing makes its pixels so; its g must then hold the Gaussians of all parts. */
void fkt_guided_draw_attach(struct fkt_guided_draw *g, struct fkt_drawing *d);
/* 1: the guide's network is needed for these options whatever files there are; 0: perhaps not. */
int fkt_guided_needs_network(const struct fkt_guided_options *options);
/* "by 25 steps of gradient descent", ...; NULL: not guided. */
enum { FKT_GUIDED_WORDS = 160 };
const char *fkt_guided_words(const struct fkt_guided_facts *f, char out[FKT_GUIDED_WORDS]);

#endif
