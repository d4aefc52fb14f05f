/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - a rank's walk over its shard, in a temporary file.
 *
 *   shard of idx --fkt_pipeline_visit, in order--> rows: place, label, digest | q, w or z --> unlinked file
 *
 * Whether a record counts is known only when all ranks have read theirs, since an exact copy of it may be in another
 * shard; and rank 0 takes the rows of others after its own. Memory must not grow with the records, so rows wait in a
 * file (base/file.h), which disappears with the process. They are as private as the images.
 * Cost: 48 bytes and the vector for each record, written and read once. */
#include "pipeline/rows_file.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/wipe.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* This rank's part of idx[0..n-1]. */
static fkt_status cut_shard(struct fkt_rows *r, const struct fkt_ranks *ranks, const size_t *idx, size_t n)
{
    size_t end;
    fkt_status st;
    fkt_ranks_shard(ranks, n, &r->first, &end);
    r->n_idx = end - r->first;
    st = fkt_alloc(&r->idx, r->n_idx ? r->n_idx : 1);
    for (size_t i = 0; st == FKT_OK && i < r->n_idx; i++) r->idx[i] = idx ? idx[r->first + i] : r->first + i;
    return st;
}

static size_t vector_bytes(const struct fkt_pipeline *w, enum fkt_rows_kind kind)
{
    size_t n = 0;
    if (kind == FKT_ROWS_Q) return w->length * sizeof(int32_t);
    if (kind == FKT_ROWS_W) return w->length * sizeof(double);
    for (uint32_t p = 0; p < w->task.parts; p++) n += w->task.part[p].dim * sizeof(float);
    return n;
}

fkt_status fkt_rows_new(struct fkt_rows **out, enum fkt_rows_kind kind, const struct fkt_pipeline *w,
                        const struct fkt_ranks *ranks, const size_t *idx, size_t n)
{
    struct fkt_rows *r = NULL;
    int fd = -1;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&r, 1));
    r->kind = kind;
    r->pipeline = w;
    r->row = sizeof(struct fkt_row) + vector_bytes(w, kind);
    FKT_TRY(cut_shard(r, ranks, idx, n));
    FKT_TRY(fkt_alloc(&r->chunk, FKT_ROWS_CHUNK * r->row));
    FKT_TRY(fkt_spool(&fd));
    r->file = fdopen(fd, "w+b");
    if (!r->file) {
        st = fkt_fail(FKT_E_IO, "cannot open a temporary file: %s", strerror(errno));
        goto out;
    }
    fd = -1;
    *out = r;
    r = NULL;
out:
    if (fd >= 0) close(fd);
    fkt_rows_free(r);
    return st;
}

void fkt_rows_free(struct fkt_rows *r)
{
    if (!r) return;
    if (r->file) fclose(r->file);
    fkt_free(r->idx);
    fkt_free_secret(r->chunk);
    fkt_free(r);
}

/* The vector of record i of a batch. */
static void put_vector(const struct fkt_rows *r, const struct fkt_batch *b, size_t i, uint8_t *to)
{
    const size_t m = r->pipeline->length;
    if (r->kind == FKT_ROWS_Q) memcpy(to, b->q + i * m, m * sizeof *b->q);
    if (r->kind == FKT_ROWS_W) memcpy(to, b->w + i * m, m * sizeof *b->w);
    for (uint32_t p = 0; r->kind == FKT_ROWS_Z && p < r->pipeline->task.parts; p++) {
        const size_t D = r->pipeline->task.part[p].dim;
        memcpy(to, b->z[p] + i * D, D * sizeof **b->z);
        to += D * sizeof **b->z;
    }
}

static fkt_status keep_batch(void *ctx, unsigned worker, const struct fkt_batch *b)
{
    struct fkt_rows *r = ctx;
    (void)worker;
    for (size_t i = 0; i < b->n; i++) {
        const struct fkt_row head = {.place = r->first + b->places[i], .label = b->labels[i], .digest = b->digests[i]};
        memcpy(r->chunk + i * r->row, &head, sizeof head);
        put_vector(r, b, i, r->chunk + i * r->row + sizeof head);
    }
    if (fwrite(r->chunk, r->row, b->n, r->file) != b->n)
        return fkt_fail_hint(FKT_E_IO, "free some space, or set TMPDIR to a folder that has more",
                             "cannot keep the records of a shard in a temporary file: %s", strerror(errno));
    r->rows += b->n;
    return FKT_OK;
}

fkt_status fkt_rows_walk(struct fkt_rows **out, enum fkt_rows_kind kind, const struct fkt_pipeline *w,
                         const struct fkt_dataset *ds, const size_t *idx, size_t n,
                         const struct fkt_pipeline_options *options, const char *what)
{
    struct fkt_rows *r = NULL;
    struct fkt_visitor v = {.visit = keep_batch, .digests = 1, .in_order = 1};
    struct fkt_ranks_watch watch;
    struct fkt_meter meter;
    fkt_status st;
    *out = NULL;
    if (!idx) n = fkt_dataset_size(ds);
    st = fkt_rows_new(&r, kind, w, options->ranks, idx, n);
    if (st != FKT_OK) return st;
    v.ctx = r;
    fkt_ranks_watch(&watch, options->ranks, options->progress);
    fkt_meter_init(&meter, &watch.hook, what, r->n_idx);
    FKT_TRY(fkt_pipeline_visit(w, ds, r->idx, r->n_idx, &v, options, &meter));
    if (fflush(r->file) != 0 || fseeko(r->file, 0, SEEK_SET) != 0) {
        st = fkt_fail_hint(FKT_E_IO, "free some space, or set TMPDIR to a folder that has more",
                           "cannot keep the records of a shard in a temporary file: %s", strerror(errno));
        goto out;
    }
    *out = r;
    r = NULL;
out:
    fkt_meter_clear(&meter);
    fkt_rows_free(r);
    return st;
}

fkt_status fkt_rows_read(struct fkt_rows *r, size_t *n)
{
    *n = r->rows - r->taken < FKT_ROWS_CHUNK ? (size_t)(r->rows - r->taken) : FKT_ROWS_CHUNK;
    if (fread(r->chunk, r->row, *n, r->file) != *n) {
        *n = 0;
        return fkt_fail(FKT_E_IO, "cannot read the records of a shard back from a temporary file");
    }
    r->taken += *n;
    return FKT_OK;
}
