/* SPDX-License-Identifier: Apache-2.0 */
/* draw.c - from class Gaussians to images: sample, map back, decode.
 *
 * Image number i of class k depends on (release, seed, k, i) alone. So batches and threads cannot change it, a folder
 * that `generate` wrote and a training set in memory hold the same images, and more can be drawn later.
 * Cost: one decode per image; the memory of one batch of vectors per thread. */
#include "pipeline/draw.h"

#include "fedkt/generate.h"

#include "base/alloc.h"
#include "base/threads.h"

#include <string.h>

enum { CHUNK_USUAL = 512, CHUNK_BYTES = 16 << 20 };

struct job {
    const struct fkt_drawing *d;
    size_t batch;
};

static fkt_status draw_batch(void *ctx, size_t item, unsigned worker)
{
    const struct job *j = ctx;
    const struct fkt_drawing *d = j->d;
    size_t pixels = (size_t)d->pipeline->task.size * d->pipeline->task.size * 3, from = item * j->batch,
           n = d->n - from < j->batch ? d->n - from : j->batch, some;
    double *w = NULL;
    fkt_status st;
    (void)worker;
    FKT_TRY(fkt_alloc(&w, n * d->g->length));
    for (size_t i = 0; i < n; i += some) { /* a batch may reach from one class into the next */
        uint64_t at = d->at + from + i, number = at % d->each;
        some = d->each - number < n - i ? (size_t)(d->each - number) : n - i;
        FKT_TRY(fkt_gaussians_sample(d->g, (uint32_t)(at / d->each), d->seed, d->first + number, some,
                                     w + i * d->g->length));
    }
    FKT_TRY(fkt_pipeline_decode(d->pipeline, w, n, d->rgb + from * pixels));
    FKT_TRY(fkt_meter_add(d->meter, n));
out:
    fkt_free(w);
    return st;
}

fkt_status fkt_draw_chunk(const struct fkt_drawing *d, unsigned threads)
{
    struct job j = {.d = d};
    if (!d->pipeline->codec) return fkt_pipeline_no_codec(d->pipeline);
    j.batch = fkt_pipeline_batch(d->pipeline->codec);
    return fkt_parallel(threads, (d->n + j.batch - 1) / j.batch, draw_batch, &j, NULL, "generating");
}

size_t fkt_draw_chunk_size(const struct fkt_pipeline *w, unsigned threads)
{
    size_t pixels = (size_t)w->task.size * w->task.size * 3, n = CHUNK_BYTES / pixels,
           batch = fkt_pipeline_batch(w->codec);
    if (n > CHUNK_USUAL) n = CHUNK_USUAL;
    if (n < batch * threads) n = batch * threads;
    return n - n % batch;
}

fkt_status fkt_generate_tiles(const struct fkt_pipeline *w, const struct fkt_gaussians *g, uint64_t seed, uint32_t rows,
                              size_t cols, unsigned threads, uint8_t *rgb)
{
    struct fkt_drawing d = {.pipeline = w, .g = g, .seed = seed, .each = cols, .n = rows * cols, .rgb = rgb};
    return fkt_draw_chunk(&d, threads);
}

fkt_status fkt_draw_check_pipeline(const struct fkt_pipeline *w, const struct fkt_task *t)
{
    const struct fkt_coordinates *a = &w->task.part[0].coordinates, *b = &t->part[0].coordinates;
    if (!w->codec) return fkt_pipeline_no_codec(w);
    if (!strcmp(w->task.part[0].sha256, t->part[0].sha256) &&
        !strcmp(w->task.part[0].calibration_sha256, t->part[0].calibration_sha256) && w->task.size == t->size &&
        a->kind == b->kind && a->dim == b->dim && a->length == b->length && a->rq == b->rq && a->radius == b->radius &&
        a->gamma == b->gamma && a->log_mean == b->log_mean && a->log_spread == b->log_spread)
        return FKT_OK;
    return fkt_fail(FKT_E_MISMATCH,
                    "the opened pipeline has another codec, calibration or coordinates than the release");
}
