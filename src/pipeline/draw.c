/* SPDX-License-Identifier: Apache-2.0 */
/* draw.c - from class Gaussians to images: sample every part, map back, decode.
 *
 * Image number i of class k depends on (release, seed, k, i) alone. So batches and threads cannot change it, a folder
 * that `generate` wrote and a training set in memory hold the same images, and more can be drawn later.
 * Cost: one decode per image; the memory of one batch of vectors per thread. */
#include "pipeline/draw.h"

#include "fedkt/advanced/moments.h"
#include "fedkt/synth.h"

#include "base/alloc.h"
#include "base/threads.h"

#include <string.h>

enum { CHUNK_USUAL = 512, CHUNK_BYTES = 16 << 20 };

struct job {
    const struct fkt_drawing *d;
    size_t batch;
};

/* Images from .. of the chunk: w (n, m), and the class and number of each sample. Without a renderer the guide's part
 * is not used, and stays 0. */
static fkt_status draw_vectors(const struct fkt_drawing *d, size_t from, size_t n, double *w, uint32_t *label,
                               uint64_t *number)
{
    const struct fkt_moments_layout *l = &d->pipeline->task.layout;
    const uint32_t parts = d->render ? l->parts : 1;
    const size_t m = d->pipeline->length;
    double *part = NULL;
    size_t some, first;
    fkt_status st;
    FKT_TRY(fkt_alloc(&part, n * m));
    for (size_t i = 0; i < n; i += some) { /* a batch may reach from one class into the next */
        const uint64_t at = d->at + from + i, own = at % d->each;
        const uint32_t k = (uint32_t)(at / d->each);
        some = d->each - own < n - i ? (size_t)(d->each - own) : n - i;
        first = 0;
        for (uint32_t p = 0; p < parts; p++) {
            FKT_TRY(fkt_gaussians_sample(&d->g[p], k, d->seed, d->first + own, some, part));
            for (size_t r = 0; r < some; r++)
                memcpy(w + (i + r) * m + first, part + r * l->length[p], l->length[p] * sizeof *w);
            first += l->length[p];
        }
        for (size_t r = 0; r < some; r++) {
            label[i + r] = k;
            number[i + r] = d->first + own + r;
        }
    }
out:
    fkt_free(part);
    return st;
}

/* w -> u of every part, for a renderer. */
static fkt_status to_units(const struct fkt_pipeline *pipeline, const double *w, size_t n, double *u[])
{
    fkt_status st = FKT_OK;
    for (uint32_t p = 0; p < pipeline->task.parts; p++) {
        const struct fkt_coordinates *c = &pipeline->task.part[p].coordinates;
        FKT_TRY(fkt_alloc(&u[p], n * c->dim));
        for (size_t i = 0; i < n; i++)
            FKT_TRY(fkt_coordinates_inverse(c, w + i * pipeline->length + pipeline->at[p], u[p] + i * c->dim));
    }
out:
    return st;
}

static fkt_status render(const struct fkt_drawing *d, unsigned worker, size_t from, size_t n, uint8_t *rgb)
{
    struct fkt_drawn x = {.n = n, .seed = d->seed};
    double *w = NULL, *u[FKT_PARTS_MAX] = {NULL};
    uint32_t *label = NULL;
    uint64_t *number = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&w, n * d->pipeline->length));
    FKT_TRY(fkt_alloc(&label, n));
    FKT_TRY(fkt_alloc(&number, n));
    FKT_TRY(draw_vectors(d, from, n, w, label, number));
    if (!d->render) {
        FKT_TRY(fkt_pipeline_decode(d->pipeline, w, n, rgb));
        goto out;
    }
    FKT_TRY(to_units(d->pipeline, w, n, u));
    x.label = label;
    x.number = number;
    for (uint32_t p = 0; p < FKT_PARTS_MAX; p++) x.u[p] = u[p];
    FKT_TRY(d->render(d->ctx, worker, &x, rgb));
out:
    for (uint32_t p = 0; p < FKT_PARTS_MAX; p++) fkt_free(u[p]);
    fkt_free(number);
    fkt_free(label);
    fkt_free(w);
    return st;
}

static fkt_status draw_batch(void *ctx, size_t item, unsigned worker)
{
    const struct job *j = ctx;
    const struct fkt_drawing *d = j->d;
    const size_t pixels = (size_t)d->pipeline->task.size * d->pipeline->task.size * 3, from = item * j->batch,
                 n = d->n - from < j->batch ? d->n - from : j->batch;
    fkt_status st = render(d, worker, from, n, d->rgb + from * pixels);
    return st == FKT_OK ? fkt_meter_add(d->meter, n) : st;
}

fkt_status fkt_draw_chunk(const struct fkt_drawing *d, unsigned threads)
{
    struct job j = {.d = d, .batch = d->batch};
    fkt_status st = fkt_pipeline_can_decode(d->pipeline);
    if (st != FKT_OK) return st;
    if (!j.batch) j.batch = fkt_pipeline_batch(d->pipeline->codec[0]);
    return fkt_parallel(threads, (d->n + j.batch - 1) / j.batch, draw_batch, &j, NULL, "generating");
}

size_t fkt_draw_chunk_size(const struct fkt_pipeline *w, unsigned threads)
{
    size_t pixels = (size_t)w->task.size * w->task.size * 3, n = CHUNK_BYTES / pixels,
           batch = fkt_pipeline_batch(w->codec[0]);
    if (n > CHUNK_USUAL) n = CHUNK_USUAL;
    if (n < batch * threads) n = batch * threads;
    return n - n % batch;
}

static int same_coordinates(const struct fkt_coordinates *a, const struct fkt_coordinates *b)
{
    return a->kind == b->kind && a->dim == b->dim && a->length == b->length && a->rq == b->rq &&
           a->radius == b->radius && a->gamma == b->gamma && a->log_mean == b->log_mean &&
           a->log_spread == b->log_spread;
}

fkt_status fkt_draw_check_pipeline(const struct fkt_pipeline *w, const struct fkt_task *t)
{
    int same = w->task.size == t->size && w->task.parts == t->parts && w->task.joined == t->joined;
    for (uint32_t p = 0; same && p < t->parts; p++)
        same = !strcmp(w->task.part[p].sha256, t->part[p].sha256) &&
               !strcmp(w->task.part[p].calibration_sha256, t->part[p].calibration_sha256) &&
               same_coordinates(&w->task.part[p].coordinates, &t->part[p].coordinates);
    if (!same)
        return fkt_fail(FKT_E_MISMATCH,
                        "the opened pipeline has another codec, calibration or coordinates than the release");
    return fkt_pipeline_can_decode(w);
}
