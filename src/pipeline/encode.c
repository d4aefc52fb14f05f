/* SPDX-License-Identifier: Apache-2.0 */
/* encode.c - what a site computes: the class moments of its records. PRIVATE. And the way back: pixels of sampled
 * vectors. */
#include "fedkt/advanced/calibration.h"
#include "fedkt/advanced/moments.h"

#include "pipeline/public_images.h"
#include "pipeline/records.h"
#include "pipeline/rows.h"

#include "base/alloc.h"
#include "base/wipe.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/threads.h"
#include "tensor/safetensors.h"

#include <math.h>
#include <string.h>

fkt_status fkt_pipeline_moments_new(const struct fkt_pipeline *w, struct fkt_moments **out)
{
    return fkt_moments_new(out, w->task.n_classes, &w->task.layout, 0);
}

struct adder {
    struct fkt_moments **part; /* one per worker */
    double *seconds;           /* one per worker */
    struct fkt_records *records;
    size_t length; /* numbers of q */
};

/* The records of the batch that count, in runs. */
static fkt_status add_runs(struct fkt_moments *m, const struct fkt_batch *b, const uint8_t *counts, size_t length)
{
    fkt_status st = FKT_OK;
    for (size_t i = 0, end; i < b->n && st == FKT_OK; i = end + 1) {
        for (end = i; end < b->n && counts[end]; end++) continue;
        if (end > i) st = fkt_moments_add(m, b->labels + i, b->q + i * length, end - i);
    }
    return st;
}

static fkt_status add_batch(void *ctx, unsigned worker, const struct fkt_batch *b)
{
    struct adder *a = ctx;
    uint8_t counts[FKT_PIPELINE_BATCH];
    double start = fkt_now();
    fkt_status st;
    if (!a->records) {
        st = fkt_moments_add(a->part[worker], b->labels, b->q, b->n);
    } else {
        FKT_TRY(fkt_records_add(a->records, b->digests, b->labels, b->n, counts));
        FKT_TRY(add_runs(a->part[worker], b, counts, a->length));
    }
out:
    a->seconds[worker] += fkt_now() - start;
    return st;
}

static fkt_status add_part(void *ctx, const struct fkt_rows_part *p)
{
    return fkt_moments_add(ctx, p->label, p->q, p->n);
}

/* The same over several ranks; m of rank 0 gets the sum. */
static fkt_status share_moments(const struct fkt_pipeline *w, const struct fkt_dataset *ds, const size_t *idx, size_t n,
                                struct fkt_moments *m, const struct fkt_pipeline_options *options)
{
    struct fkt_rows *rows = NULL;
    struct fkt_moments *own = NULL;
    double start;
    fkt_status st = fkt_rows_walk(&rows, FKT_ROWS_Q, w, ds, idx, n, options, "encoding");
    if (st == FKT_OK) st = fkt_pipeline_moments_new(w, &own);
    FKT_TRY(fkt_ranks_agree(options->ranks, st));
    start = fkt_now();
    FKT_TRY(fkt_rows_counted(rows, options->ranks, options->records, add_part, own));
    if (options->moments_seconds) *options->moments_seconds += fkt_now() - start;
    FKT_TRY(fkt_moments_reduce(own, options->ranks));
    FKT_TRY(fkt_rows_gather_notes(options->ranks, options->skipped, options->norms));
    FKT_TRY(fkt_ranks_agree(options->ranks, options->ranks->rank ? FKT_OK : fkt_moments_merge(m, own)));
out:
    fkt_moments_free(own);
    fkt_rows_free(rows);
    return st;
}

fkt_status fkt_pipeline_moments(const struct fkt_pipeline *w, const struct fkt_dataset *ds, const size_t *idx, size_t n,
                                struct fkt_moments *m, const struct fkt_pipeline_options *options)
{
    fkt_status st = fkt_pipeline_can_encode(w);
    if (st != FKT_OK) return st;
    if (!idx) n = fkt_dataset_size(ds);
    st = fkt_public_images_refuse(w, ds, idx, n, options);
    if (st != FKT_OK) return st;
    if (fkt_ranks_several(options->ranks)) return share_moments(w, ds, idx, n, m, options);
    return fkt_pipeline_moments_compared(w, ds, idx, n, m, options);
}

fkt_status fkt_pipeline_moments_compared(const struct fkt_pipeline *w, const struct fkt_dataset *ds, const size_t *idx,
                                         size_t n, struct fkt_moments *m, const struct fkt_pipeline_options *options)
{
    unsigned threads = options->threads ? options->threads : fkt_cpu_count();
    struct adder a = {.records = options->records, .length = w->length};
    struct fkt_visitor v = {.visit = add_batch, .ctx = &a, .digests = options->records != NULL};
    struct fkt_meter meter;
    fkt_status st;
    fkt_meter_init(&meter, options->progress, "encoding", n);
    FKT_TRY(fkt_alloc(&a.part, threads));
    FKT_TRY(fkt_alloc(&a.seconds, threads));
    for (unsigned i = 0; i < threads; i++) FKT_TRY(fkt_pipeline_moments_new(w, &a.part[i]));
    FKT_TRY(fkt_pipeline_visit(w, ds, idx, n, &v, options, &meter));
    for (unsigned i = 0; i < threads; i++) FKT_TRY(fkt_moments_merge(m, a.part[i]));
    for (unsigned i = 0; options->moments_seconds && i < threads; i++) *options->moments_seconds += a.seconds[i];
out:
    for (unsigned i = 0; a.part && i < threads; i++) fkt_moments_free(a.part[i]);
    fkt_free(a.part);
    fkt_free(a.seconds);
    fkt_meter_clear(&meter);
    return st;
}

fkt_status fkt_pipeline_decode(const struct fkt_pipeline *w, const double *vectors, size_t n, uint8_t *rgb)
{
    const struct fkt_task_part *part = &w->task.part[0]; /* the codec, where there is one */
    float *z = NULL;
    double *u = NULL;
    fkt_status st;
    FKT_TRY(fkt_pipeline_can_decode(w));
    FKT_TRY(fkt_alloc(&z, n * part->dim));
    FKT_TRY(fkt_alloc(&u, part->coordinates.dim));
    for (size_t i = 0; i < n; i++) {
        FKT_TRY(fkt_coordinates_inverse(&part->coordinates, vectors + i * w->length, u));
        fkt_calibration_backward(&w->calibration[0], u, z + i * part->dim);
    }
    FKT_TRY(fkt_codec_decode(w->codec[0], z, n, rgb));
out:
    fkt_free(z);
    fkt_free(u);
    return st;
}

fkt_status fkt_skipped_add(struct fkt_skipped *s, const char *why)
{
    size_t old = s->names ? strlen(s->names) : 0, more = strlen(why) + 2;
    fkt_status st = FKT_OK;
    if (s->count < 1000) {
        FKT_TRY(fkt_realloc(&s->names, old + more));
        snprintf(s->names + old, more, "%s\n", why);
        for (char *c = s->names + old; *c; c++) /* one line each, whatever a file's name holds */
            if (*c == '\n' && c[1]) *c = '?';
    }
    s->count++;
out:
    return st;
}

fkt_status fkt_skipped_merge(struct fkt_skipped *into, const struct fkt_skipped *from)
{
    size_t lines = 0;
    fkt_status st = FKT_OK;
    for (const char *s = from->names; s && *s; lines++) { /* whole lines move over */
        const char *end = strchr(s, '\n');
        char line[1024];
        snprintf(line, sizeof line, "%.*s", (int)(end - s), s);
        FKT_TRY(fkt_skipped_add(into, line));
        s = end + 1;
    }
    into->count += from->count - lines;
out:
    return st;
}

void fkt_skipped_clear(struct fkt_skipped *s)
{
    fkt_free(s->names);
    memset(s, 0, sizeof *s);
}
