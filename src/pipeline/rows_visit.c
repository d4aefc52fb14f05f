/* SPDX-License-Identifier: Apache-2.0 */
/* rows_visit.c - a walk that several ranks share and whose records rank 0 sees; and the counts beside the records.
 *
 *   rank 0:  its shard -> visitor; then the rows of rank 1, 2 ... -> visitor
 *   others:  their shards -> rows; then to rank 0, chunk by chunk
 *
 * Shards are in the order of ranks and rows in the order of their shard, so a visitor that wants records in order gets
 * the order of a single process. A rank that fails while it sends says so in place of the next chunk; rank 0 receives
 * to the end whatever fails, and the ranks agree afterwards. */
#include "pipeline/rows_file.h"

#include "base/alloc.h"
#include "base/wipe.h"

#include <string.h>

/* A chunk of rows as a batch. */
struct view {
    struct fkt_digest digests[FKT_ROWS_CHUNK];
    uint32_t labels[FKT_ROWS_CHUNK];
    size_t places[FKT_ROWS_CHUNK];
    uint8_t *vectors; /* (FKT_ROWS_CHUNK, row) part after part */
};

static fkt_status show(struct view *view, const struct fkt_rows *r, const uint8_t *chunk, size_t n,
                       const struct fkt_visitor *v)
{
    struct fkt_batch b = {.n = n, .labels = view->labels, .places = view->places, .digests = view->digests};
    const struct fkt_task *t = &r->pipeline->task;
    const size_t head_bytes = sizeof(struct fkt_row);
    size_t at = head_bytes;
    uint8_t *to = view->vectors;
    for (size_t i = 0; i < n; i++) {
        struct fkt_row head;
        memcpy(&head, chunk + i * r->row, head_bytes);
        view->digests[i] = head.digest;
        view->labels[i] = head.label;
        view->places[i] = (size_t)head.place;
    }
    for (uint32_t p = 0; p < (r->kind == FKT_ROWS_Z ? t->parts : 1); p++) {
        const size_t bytes = r->kind == FKT_ROWS_Z ? t->part[p].dim * sizeof(float) : r->row - head_bytes;
        if (r->kind == FKT_ROWS_Z) b.z[p] = (const float *)(const void *)to;
        for (size_t i = 0; i < n; i++, to += bytes) memcpy(to, chunk + i * r->row + at, bytes);
        at += bytes;
    }
    if (r->kind == FKT_ROWS_W) b.w = (const double *)(const void *)view->vectors;
    if (r->kind == FKT_ROWS_Q) b.q = (const int32_t *)(const void *)view->vectors;
    return v->visit(v->ctx, 0, &b);
}

/* Rank 0: the rows of one other rank. */
static fkt_status take_rows(struct view *view, struct fkt_rows *r, struct fkt_ranks *ranks, uint32_t from,
                            const struct fkt_visitor *v, fkt_status *own)
{
    uint64_t n;
    fkt_status st;
    for (;;) {
        FKT_TRY(fkt_ranks_recv(ranks, from, &n, sizeof n));
        if (n == FKT_ROWS_LAST || n == FKT_ROWS_BROKEN) return FKT_OK;
        if (n > FKT_ROWS_CHUNK) return fkt_fail(FKT_E_STATE, "rank %u has a chunk that is too large", from);
        FKT_TRY(fkt_ranks_recv(ranks, from, r->chunk, n * r->row));
        if (*own == FKT_OK) *own = show(view, r, r->chunk, n, v);
    }
out:
    return st;
}

static fkt_status give_rows(struct fkt_rows *r, struct fkt_ranks *ranks, fkt_status *own)
{
    uint64_t n;
    size_t rows;
    fkt_status st;
    do {
        *own = fkt_rows_read(r, &rows);
        n = *own == FKT_OK ? rows : FKT_ROWS_BROKEN;
        FKT_TRY(fkt_ranks_send(ranks, 0, &n, sizeof n));
        if (rows) FKT_TRY(fkt_ranks_send(ranks, 0, r->chunk, rows * r->row));
    } while (rows);
out:
    return st;
}

/* A process alone, and rank 0's own shard: to the visitor without a file. */
static fkt_status visit_alone(const struct fkt_pipeline *w, const struct fkt_dataset *ds, const size_t *idx, size_t n,
                              const struct fkt_visitor *v, const struct fkt_pipeline_options *options, const char *what)
{
    struct fkt_ranks_watch watch;
    struct fkt_meter meter;
    fkt_status st;
    fkt_ranks_watch(&watch, options->ranks, options->progress);
    fkt_meter_init(&meter, &watch.hook, what, n);
    st = fkt_pipeline_visit(w, ds, idx, n, v, options, &meter);
    fkt_meter_clear(&meter);
    return st;
}

fkt_status fkt_rows_visit(enum fkt_rows_kind kind, const struct fkt_pipeline *w, const struct fkt_dataset *ds,
                          const size_t *idx, size_t n, const struct fkt_visitor *v,
                          const struct fkt_pipeline_options *options, const char *what)
{
    struct fkt_ranks *ranks = options->ranks;
    struct fkt_rows *r = NULL;
    struct view *view = NULL;
    fkt_status own, st;
    if (!idx) n = fkt_dataset_size(ds);
    if (!fkt_ranks_several(ranks)) return visit_alone(w, ds, idx, n, v, options, what);
    if (ranks->rank) {
        own = fkt_rows_walk(&r, kind, w, ds, idx, n, options, what);
    } else {
        own = fkt_rows_new(&r, kind, w, ranks, idx, n);
        if (own == FKT_OK) own = fkt_alloc(&view, 1);
        if (own == FKT_OK) own = fkt_alloc(&view->vectors, FKT_ROWS_CHUNK * r->row);
        if (own == FKT_OK) own = visit_alone(w, ds, r->idx, r->n_idx, v, options, what);
    }
    FKT_TRY(fkt_ranks_agree(ranks, own));
    if (ranks->rank) FKT_TRY(give_rows(r, ranks, &own));
    for (uint32_t from = 1; !ranks->rank && from < ranks->size; from++)
        FKT_TRY(take_rows(view, r, ranks, from, v, &own));
    FKT_TRY(fkt_ranks_agree(ranks, own));
    FKT_TRY(fkt_rows_gather_notes(ranks, options->skipped, options->norms));
out:
    if (view) fkt_free_secret(view->vectors);
    fkt_free_secret(view);
    fkt_rows_free(r);
    return st;
}

/* ---- what was counted beside the records ---- */

static fkt_status take_skipped(struct fkt_ranks *r, uint32_t from, struct fkt_skipped *into, fkt_status *own)
{
    struct fkt_skipped one = {0};
    uint64_t size[2]; /* count, bytes of names */
    fkt_status st;
    FKT_TRY(fkt_ranks_recv(r, from, size, sizeof size));
    st = fkt_alloc(&one.names, size[1] + 1);
    if (st != FKT_OK) r->failed = 2; /* the names that follow are not received */
    FKT_TRY(st);
    FKT_TRY(fkt_ranks_recv(r, from, one.names, size[1]));
    one.count = size[0];
    if (*own == FKT_OK) *own = fkt_skipped_merge(into, &one);
out:
    fkt_skipped_clear(&one);
    return st;
}

static fkt_status give_skipped(struct fkt_ranks *r, struct fkt_skipped *s)
{
    const uint64_t size[2] = {s->count, s->names ? strlen(s->names) : 0};
    fkt_status st;
    FKT_TRY(fkt_ranks_send(r, 0, size, sizeof size));
    FKT_TRY(fkt_ranks_send(r, 0, s->names, size[1]));
    fkt_skipped_clear(s); /* the next walk may count on */
out:
    return st;
}

fkt_status fkt_rows_gather_notes(struct fkt_ranks *r, struct fkt_skipped *skipped, struct fkt_norms *norms)
{
    fkt_status own = FKT_OK, st = FKT_OK;
    if (!fkt_ranks_several(r)) return FKT_OK;
    if (r->rank && skipped) FKT_TRY(give_skipped(r, skipped));
    if (r->rank && norms) FKT_TRY(fkt_ranks_send(r, 0, norms->bins, sizeof norms->bins));
    if (r->rank && norms) memset(norms->bins, 0, sizeof norms->bins);
    for (uint32_t from = 1; !r->rank && from < r->size; from++) {
        uint64_t bins[FKT_NORM_BINS];
        if (skipped) FKT_TRY(take_skipped(r, from, skipped, &own));
        if (!norms) continue;
        FKT_TRY(fkt_ranks_recv(r, from, bins, sizeof bins));
        for (int b = 0; b < FKT_NORM_BINS; b++) norms->bins[b] += bins[b];
    }
    FKT_TRY(fkt_ranks_agree(r, own));
out:
    return st;
}
