/* SPDX-License-Identifier: Apache-2.0 */
/* guided_draw.c - from the parts of an opened task to guided images. */
#include "pipeline/guided_draw.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

static int part_of(const struct fkt_task *t, enum fkt_part_kind kind, uint32_t *out)
{
    for (uint32_t p = 0; p < t->parts; p++)
        if (t->part[p].kind == kind) {
            *out = p;
            return 1;
        }
    return 0;
}

fkt_status fkt_guided_draw_open(struct fkt_guided_draw *g, const struct fkt_pipeline *w,
                                const struct fkt_guided_options *options, unsigned threads)
{
    const struct fkt_task *t = &w->task;
    struct fkt_guided_source s = {0};
    fkt_status st = fkt_pipeline_can_decode(w);
    memset(g, 0, sizeof *g);
    if (st != FKT_OK) return st;
    (void)part_of(t, FKT_PART_CODEC, &g->codec);
    s.codec = w->codec[g->codec];
    s.codec_calibration = &w->calibration[g->codec];
    if (part_of(t, FKT_PART_GUIDE, &g->guide)) {
        s.guide = w->codec[g->guide];
        s.guide_calibration = &w->calibration[g->guide];
        s.pair = (struct fkt_guided_pair){t->part[g->codec].sha256, t->part[g->guide].sha256,
                                          t->part[g->guide].calibration_sha256};
    }
    return fkt_guided_way_open(&g->way, &s, options, threads, &g->facts);
}

void fkt_guided_draw_clear(struct fkt_guided_draw *g)
{
    fkt_guided_way_free(g->way);
    memset(g, 0, sizeof *g);
}

static fkt_status render(void *ctx, unsigned worker, const struct fkt_drawn *x, uint8_t *rgb)
{
    const struct fkt_guided_draw *g = ctx;
    struct fkt_guided_image *image = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&image, x->n));
    for (size_t i = 0; i < x->n; i++)
        image[i] = (struct fkt_guided_image){.seed = x->seed, .number = x->number[i], .label = x->label[i]};
    FKT_TRY(fkt_guided_way_run(g->way, worker, image, x->u[g->codec], x->u[g->guide], x->n, rgb));
out:
    fkt_free(image);
    return st;
}

void fkt_guided_draw_attach(struct fkt_guided_draw *g, struct fkt_drawing *d)
{
    if (!g->way) return;
    d->render = render;
    d->ctx = g;
    d->batch = fkt_guided_way_batch(g->way);
}

int fkt_guided_needs_network(const struct fkt_guided_options *o)
{
    return o->kind == FKT_GUIDED_ON || o->kind == FKT_GUIDED_GRADIENT;
}

const char *fkt_guided_words(const struct fkt_guided_facts *f, char out[FKT_GUIDED_WORDS])
{
    if (f->kind == FKT_GUIDED_TWIN)
        snprintf(out, FKT_GUIDED_WORDS, "by a decoder that was trained on public images (%.12s)", f->twin_sha256);
    else if (f->kind == FKT_GUIDED_GRADIENT)
        snprintf(out, FKT_GUIDED_WORDS, "by %u steps of gradient descent (rho %g, rate %g)", f->steps, f->rho, f->rate);
    else return NULL;
    return out;
}
