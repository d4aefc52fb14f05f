/* SPDX-License-Identifier: Apache-2.0 */
/* encode.c - what a site computes: the class moments of its records, or its latents in a file. Both are PRIVATE. */
#include "fedkt/advanced/calibration.h"
#include "fedkt/advanced/moments.h"

#include "pipeline/public_images.h"
#include "pipeline/records.h"

#include "base/alloc.h"
#include "base/wipe.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/threads.h"
#include "tensor/safetensors.h"

#include <math.h>
#include <string.h>

#define LATENTS_FORMAT "fedkt.latents/2" /* 1: without image_sha256 */

fkt_status fkt_pipeline_moments_new(const struct fkt_pipeline *w, struct fkt_moments **out)
{
    return fkt_moments_new(out, w->task.n_classes, &w->task.layout, 0);
}

struct adder {
    struct fkt_moments **part; /* one per worker */
    double *seconds;           /* one per worker */
    struct fkt_records *records;
    uint32_t length;
};

/* The records of the batch that count, in runs. */
static fkt_status add_runs(struct fkt_moments *m, const struct fkt_batch *b, const uint8_t *counts, uint32_t length)
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

fkt_status fkt_pipeline_moments(const struct fkt_pipeline *w, const struct fkt_dataset *ds, const size_t *idx, size_t n,
                                struct fkt_moments *m, const struct fkt_pipeline_options *options)
{
    fkt_status st;
    if (!w->codec) return fkt_pipeline_no_codec(w);
    if (!idx) n = fkt_dataset_size(ds);
    st = fkt_public_images_refuse(w, ds, idx, n, options);
    return st == FKT_OK ? fkt_pipeline_moments_compared(w, ds, idx, n, m, options) : st;
}

fkt_status fkt_pipeline_moments_compared(const struct fkt_pipeline *w, const struct fkt_dataset *ds, const size_t *idx,
                                         size_t n, struct fkt_moments *m, const struct fkt_pipeline_options *options)
{
    unsigned threads = options->threads ? options->threads : fkt_cpu_count();
    struct adder a = {.records = options->records, .length = w->task.part[0].coordinates.length};
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

struct latent_sink {
    struct fkt_st_stream *file;
    size_t latents, labels, digests;
};

static fkt_status write_batch(void *ctx, unsigned worker, const struct fkt_batch *b)
{
    struct latent_sink *s = ctx;
    int64_t labels[FKT_PIPELINE_BATCH];
    fkt_status st;
    (void)worker;
    if (b->n > sizeof labels / sizeof *labels)
        return fkt_fail(FKT_E_STATE, "a batch of %zu latents is too large", b->n);
    for (size_t i = 0; i < b->n; i++) labels[i] = b->labels[i];
    FKT_TRY(fkt_st_stream_rows(s->file, s->latents, b->z, b->n));
    FKT_TRY(fkt_st_stream_rows(s->file, s->labels, labels, b->n));
    FKT_TRY(fkt_st_stream_rows(s->file, s->digests, b->digests, b->n));
out:
    return st;
}

fkt_status fkt_pipeline_encode(const struct fkt_pipeline *w, const struct fkt_dataset *ds, const size_t *idx, size_t n,
                               const char *path, int force, const struct fkt_pipeline_options *options)
{
    struct latent_sink s = {0};
    struct fkt_visitor v = {.visit = write_batch, .ctx = &s, .digests = 1, .in_order = 1};
    struct fkt_meter meter;
    uint64_t tail = w->task.part[0].dim, digest = FKT_HASH_BYTES;
    fkt_status st;
    if (!w->codec) return fkt_pipeline_no_codec(w);
    if (!idx) n = fkt_dataset_size(ds);
    st = fkt_public_images_refuse(w, ds, idx, n, options);
    if (st != FKT_OK) return st;
    fkt_meter_init(&meter, options->progress, "encoding", n);
    FKT_TRY(fkt_st_stream_new(&s.file, path, (force ? FKT_FILE_REPLACE : 0) | FKT_FILE_PRIVATE));
    FKT_TRY(fkt_st_stream_meta(s.file, "format", LATENTS_FORMAT));
    FKT_TRY(fkt_st_stream_meta(s.file, "secret", "yes: un-noised latents of single records; must not leave the site"));
    FKT_TRY(fkt_st_stream_meta(s.file, "codec_sha256", w->task.part[0].sha256));
    FKT_TRY(fkt_st_stream_meta(s.file, "codec_dtype", fkt_codec_dtype_name(fkt_codec_dtype_used(w->codec))));
    FKT_TRY(fkt_st_stream_meta(s.file, "task_sha256", w->task.sha256));
    FKT_TRY(fkt_st_stream_tensor(s.file, "latents", FKT_F32, 1, &tail, &s.latents));
    FKT_TRY(fkt_st_stream_tensor(s.file, "labels", FKT_I64, 0, NULL, &s.labels));
    FKT_TRY(fkt_st_stream_tensor(s.file, "image_sha256", FKT_U8, 1, &digest, &s.digests));
    FKT_TRY(fkt_pipeline_visit(w, ds, idx, n, &v, options, &meter));
    FKT_TRY(fkt_st_stream_close(&s.file));
out:
    fkt_st_stream_free(s.file);
    fkt_meter_clear(&meter);
    return st;
}

/* Latents are bound to the codec, not to the calibration or the budget, so that one encode serves several tasks. */
fkt_status fkt_pipeline_latents(const struct fkt_pipeline *w, const char *path, struct fkt_moments *m,
                                struct fkt_records *records)
{
    struct fkt_safetensors *file = NULL;
    const struct fkt_tensor *z, *labels, *digests;
    const char *codec;
    size_t D = w->task.part[0].dim;
    float *row = NULL;
    double *u = NULL, *wv = NULL;
    int32_t *q = NULL;
    uint64_t n;
    fkt_status st;
    FKT_TRY(fkt_safetensors_open(&file, path));
    codec = fkt_safetensors_meta(file, "codec_sha256");
    z = fkt_safetensors_find(file, "latents");
    if (!codec || !z || z->rank != 2) {
        st = fkt_fail(FKT_E_FORMAT, "'%s' is not a latents file", path);
        goto out;
    }
    if (strcmp(codec, w->task.part[0].sha256) != 0) {
        st = fkt_fail_hint(FKT_E_MISMATCH, "encode the images again with this task",
                           "latents '%s' come from another codec than the task's", path);
        goto out;
    }
    n = z->shape[0];
    FKT_TRY(fkt_safetensors_want(file, &z, "latents", FKT_F32, 2, (uint64_t[]){n, D}));
    FKT_TRY(fkt_safetensors_want(file, &labels, "labels", FKT_I64, 1, (uint64_t[]){n}));
    FKT_TRY(fkt_safetensors_want(file, &digests, "image_sha256", FKT_U8, 2, (uint64_t[]){n, FKT_HASH_BYTES}));
    FKT_TRY(fkt_fail_in(fkt_public_images_refuse_rows(w, digests->data, n), "'%s'", path));
    FKT_TRY(fkt_alloc(&row, D));
    FKT_TRY(fkt_alloc(&u, w->task.part[0].coordinates.dim));
    FKT_TRY(fkt_alloc(&wv, w->task.part[0].coordinates.length));
    FKT_TRY(fkt_alloc(&q, w->task.part[0].coordinates.length));
    for (uint64_t i = 0; i < n; i++) {
        int64_t label;
        uint32_t k;
        uint8_t counts = 1;
        memcpy(&label, (const uint8_t *)labels->data + i * sizeof label, sizeof label);
        memcpy(row, (const uint8_t *)z->data + i * D * sizeof *row, D * sizeof *row);
        for (size_t j = 0; j < D; j++)
            if (!isfinite(row[j])) {
                st = fkt_fail(FKT_E_NUMERIC, "'%s': number %zu of latent %llu is not finite", path, j,
                              (unsigned long long)i);
                goto out;
            }
        if (label < 0 || label >= (int64_t)w->task.n_classes) {
            st = fkt_fail(FKT_E_FORMAT, "'%s': label %lld of latent %llu is not below %u", path, (long long)label,
                          (unsigned long long)i, w->task.n_classes);
            goto out;
        }
        k = (uint32_t)label;
        FKT_TRY(fkt_fail_in(fkt_pipeline_record(w, row, u, wv, q), "'%s': latent %llu", path, (unsigned long long)i));
        if (records) FKT_TRY(fkt_records_add(records, (const struct fkt_digest *)digests->data + i, &k, 1, &counts));
        if (counts) FKT_TRY(fkt_moments_add(m, &k, q, 1));
    }
out:
    fkt_free_secret(row);
    fkt_free_secret(u);
    fkt_free_secret(wv);
    fkt_free_secret(q);
    fkt_safetensors_free(file);
    return fkt_hint_code(st, FKT_HINT_LATENTS_FILE, "give a latents file, or make it again");
}

fkt_status fkt_pipeline_decode(const struct fkt_pipeline *w, const double *vectors, size_t n, uint8_t *rgb)
{
    size_t D = w->task.part[0].dim, m = w->task.part[0].coordinates.length;
    float *z = NULL;
    double *u = NULL;
    fkt_status st;
    if (!w->codec) return fkt_pipeline_no_codec(w);
    FKT_TRY(fkt_alloc(&z, n * D));
    FKT_TRY(fkt_alloc(&u, w->task.part[0].coordinates.dim));
    for (size_t i = 0; i < n; i++) {
        FKT_TRY(fkt_coordinates_inverse(&w->task.part[0].coordinates, vectors + i * m, u));
        fkt_calibration_backward(&w->calibration, u, z + i * D);
    }
    FKT_TRY(fkt_codec_decode(w->codec, z, n, rgb));
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

void fkt_skipped_clear(struct fkt_skipped *s)
{
    fkt_free(s->names);
    memset(s, 0, sizeof *s);
}
