/* SPDX-License-Identifier: Apache-2.0 */
/* latents.c - a file of latents, so that images are encoded once for several tasks. PRIVATE, as the images are.
 *
 *   codec   tensor "latents" (n, D), metadata codec_sha256, codec_dtype
 *   guide   tensor "latents.guide" (n, D), metadata guide_sha256, guide_dtype
 *
 * A file is bound to the networks, not to calibrations or the budget. A task takes what it has parts for: a file with
 * both serves a task of the codec alone. */
#include "fedkt/advanced/moments.h"

#include "pipeline/public_images.h"
#include "pipeline/records.h"
#include "pipeline/rows.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/wipe.h"
#include "tensor/safetensors.h"

#include <math.h>
#include <string.h>

#define LATENTS_FORMAT "fedkt.latents/2" /* 1: without image_sha256 */

static const char *tensor_name(enum fkt_part_kind k) { return k == FKT_PART_CODEC ? "latents" : "latents.guide"; }
static const char *hash_key(enum fkt_part_kind k) { return k == FKT_PART_CODEC ? "codec_sha256" : "guide_sha256"; }
static const char *dtype_key(enum fkt_part_kind k) { return k == FKT_PART_CODEC ? "codec_dtype" : "guide_dtype"; }

struct latent_sink {
    struct fkt_st_stream *file;
    uint32_t parts;
    size_t latents[FKT_PARTS_MAX], labels, digests;
};

static fkt_status write_batch(void *ctx, unsigned worker, const struct fkt_batch *b)
{
    struct latent_sink *s = ctx;
    int64_t labels[FKT_PIPELINE_BATCH];
    fkt_status st = FKT_OK;
    (void)worker;
    if (b->n > sizeof labels / sizeof *labels)
        return fkt_fail(FKT_E_STATE, "a batch of %zu latents is too large", b->n);
    for (size_t i = 0; i < b->n; i++) labels[i] = b->labels[i];
    for (uint32_t p = 0; p < s->parts; p++) FKT_TRY(fkt_st_stream_rows(s->file, s->latents[p], b->z[p], b->n));
    FKT_TRY(fkt_st_stream_rows(s->file, s->labels, labels, b->n));
    FKT_TRY(fkt_st_stream_rows(s->file, s->digests, b->digests, b->n));
out:
    return st;
}

/* The file, its metadata and its tensors. */
static fkt_status begin(struct latent_sink *s, const struct fkt_pipeline *w, const char *path, int flags)
{
    const uint64_t digest = FKT_HASH_BYTES;
    fkt_status st;
    FKT_TRY(fkt_st_stream_new(&s->file, path, flags));
    FKT_TRY(fkt_st_stream_meta(s->file, "format", LATENTS_FORMAT));
    FKT_TRY(fkt_st_stream_meta(s->file, "secret", "yes: un-noised latents of single records; must not leave the site"));
    for (uint32_t p = 0; p < s->parts; p++) {
        const struct fkt_task_part *part = &w->task.part[p];
        FKT_TRY(fkt_st_stream_meta(s->file, hash_key(part->kind), part->sha256));
        FKT_TRY(fkt_st_stream_meta(s->file, dtype_key(part->kind),
                                   fkt_codec_dtype_name(fkt_codec_dtype_used(w->codec[p]))));
    }
    FKT_TRY(fkt_st_stream_meta(s->file, "task_sha256", w->task.sha256));
    for (uint32_t p = 0; p < s->parts; p++) {
        const uint64_t tail = w->task.part[p].dim;
        FKT_TRY(fkt_st_stream_tensor(s->file, tensor_name(w->task.part[p].kind), FKT_F32, 1, &tail, &s->latents[p]));
    }
    FKT_TRY(fkt_st_stream_tensor(s->file, "labels", FKT_I64, 0, NULL, &s->labels));
    FKT_TRY(fkt_st_stream_tensor(s->file, "image_sha256", FKT_U8, 1, &digest, &s->digests));
out:
    return st;
}

fkt_status fkt_pipeline_encode(const struct fkt_pipeline *w, const struct fkt_dataset *ds, const size_t *idx, size_t n,
                               const char *path, int force, const struct fkt_pipeline_options *options)
{
    struct latent_sink s = {.parts = w->task.parts};
    struct fkt_visitor v = {.visit = write_batch, .ctx = &s, .digests = 1, .in_order = 1};
    const int writes = !fkt_ranks_several(options->ranks) || !options->ranks->rank;
    fkt_status st = fkt_pipeline_can_encode(w);
    if (st != FKT_OK) return st;
    if (!idx) n = fkt_dataset_size(ds);
    st = fkt_public_images_refuse(w, ds, idx, n, options);
    if (st != FKT_OK) return st;
    if (writes) st = begin(&s, w, path, (force ? FKT_FILE_REPLACE : 0) | FKT_FILE_PRIVATE);
    FKT_TRY(fkt_ranks_agree(options->ranks, st));
    FKT_TRY(fkt_rows_visit(FKT_ROWS_Z, w, ds, idx, n, &v, options, "encoding"));
    FKT_TRY(fkt_ranks_agree(options->ranks, writes ? fkt_st_stream_close(&s.file) : FKT_OK));
out:
    fkt_st_stream_free(s.file);
    return st;
}

/* The tensors of a latents file that the task has parts for. */
struct latent_source {
    struct fkt_safetensors *file;
    const struct fkt_tensor *z[FKT_PARTS_MAX], *labels, *digests;
    uint64_t n;
};

static fkt_status find_part(struct latent_source *s, const struct fkt_task_part *part, uint32_t p, const char *path)
{
    const char *hash = fkt_safetensors_meta(s->file, hash_key(part->kind)), *kind = fkt_part_name(part->kind);
    s->z[p] = fkt_safetensors_find(s->file, tensor_name(part->kind));
    if (!hash || !s->z[p] || s->z[p]->rank != 2) {
        if (part->kind == FKT_PART_CODEC) return fkt_fail(FKT_E_FORMAT, "'%s' is not a latents file", path);
        return fkt_fail(FKT_E_FORMAT, "'%s' has no latents of a %s, and the task wants those of '%s'", path, kind,
                        part->name);
    }
    if (strcmp(hash, part->sha256) != 0)
        return fkt_fail_hint(FKT_E_MISMATCH, "encode the images again with this task",
                             "latents '%s' come from another %s than the task's", path, kind);
    if (p == 0) s->n = s->z[p]->shape[0];
    return fkt_safetensors_want(s->file, &s->z[p], tensor_name(part->kind), FKT_F32, 2, (uint64_t[]){s->n, part->dim});
}

static fkt_status find_tensors(struct latent_source *s, const struct fkt_pipeline *w, const char *path)
{
    fkt_status st;
    FKT_TRY(fkt_safetensors_open(&s->file, path));
    for (uint32_t p = 0; p < w->task.parts; p++) FKT_TRY(find_part(s, &w->task.part[p], p, path));
    FKT_TRY(fkt_safetensors_want(s->file, &s->labels, "labels", FKT_I64, 1, (uint64_t[]){s->n}));
    FKT_TRY(fkt_safetensors_want(s->file, &s->digests, "image_sha256", FKT_U8, 2, (uint64_t[]){s->n, FKT_HASH_BYTES}));
    FKT_TRY(fkt_fail_in(fkt_public_images_refuse_rows(w, s->digests->data, s->n), "'%s'", path));
out:
    return st;
}

/* Row i of every part, copied since a mapped file may be unaligned; FKT_E_NUMERIC, FKT_E_FORMAT. */
static fkt_status take_row(const struct latent_source *s, const struct fkt_task *t, uint64_t i, const char *path,
                           float *row[], uint32_t *k)
{
    int64_t label;
    for (uint32_t p = 0; p < t->parts; p++) {
        const size_t D = t->part[p].dim;
        memcpy(row[p], (const uint8_t *)s->z[p]->data + i * D * sizeof **row, D * sizeof **row);
        for (size_t j = 0; j < D; j++)
            if (!isfinite(row[p][j]))
                return fkt_fail(FKT_E_NUMERIC, "'%s': number %zu of latent %llu%s is not finite", path, j,
                                (unsigned long long)i, t->part[p].kind == FKT_PART_CODEC ? "" : " of the guide");
    }
    memcpy(&label, (const uint8_t *)s->labels->data + i * sizeof label, sizeof label);
    if (label < 0 || label >= (int64_t)t->n_classes)
        return fkt_fail(FKT_E_FORMAT, "'%s': label %lld of latent %llu is not below %u", path, (long long)label,
                        (unsigned long long)i, t->n_classes);
    *k = (uint32_t)label;
    return FKT_OK;
}

fkt_status fkt_pipeline_latents(const struct fkt_pipeline *w, const char *path, struct fkt_moments *m,
                                struct fkt_records *records)
{
    struct latent_source s = {0};
    float *row[FKT_PARTS_MAX] = {NULL};
    const float *z[FKT_PARTS_MAX] = {NULL};
    double *u = NULL, *wv = NULL;
    int32_t *q = NULL;
    fkt_status st;
    FKT_TRY(find_tensors(&s, w, path));
    for (uint32_t p = 0; p < w->task.parts; p++) {
        FKT_TRY(fkt_alloc(&row[p], w->task.part[p].dim));
        z[p] = row[p];
    }
    FKT_TRY(fkt_alloc(&u, fkt_pipeline_room(w)));
    FKT_TRY(fkt_alloc(&wv, w->length));
    FKT_TRY(fkt_alloc(&q, w->length));
    for (uint64_t i = 0; i < s.n; i++) {
        uint32_t k;
        uint8_t counts = 1;
        FKT_TRY(take_row(&s, &w->task, i, path, row, &k));
        FKT_TRY(fkt_fail_in(fkt_pipeline_record(w, z, u, wv, q), "'%s': latent %llu", path, (unsigned long long)i));
        if (records) FKT_TRY(fkt_records_add(records, (const struct fkt_digest *)s.digests->data + i, &k, 1, &counts));
        if (counts) FKT_TRY(fkt_moments_add(m, &k, q, 1));
    }
out:
    for (uint32_t p = 0; p < FKT_PARTS_MAX; p++) fkt_free_secret(row[p]);
    fkt_free_secret(u);
    fkt_free_secret(wv);
    fkt_free_secret(q);
    fkt_safetensors_free(s.file);
    return fkt_hint_code(st, FKT_HINT_LATENTS_FILE, "give a latents file, or make it again");
}
