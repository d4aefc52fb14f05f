/* SPDX-License-Identifier: Apache-2.0 */
/* rows_count.c - which records of several ranks count, and the sum of their moments.
 *
 *   rank 0:  its own rows -> records -> those that count -> add
 *            then for each rank in order: digests and labels in, a byte for each out
 *   others:  rows -> digests and labels to rank 0, a byte for each back -> those that count -> add
 *   all:     moments along the reduction tree to rank 0
 *
 * A rank whose part fails still sends and receives what the others expect, and the ranks agree on the failure
 * afterwards; so no rank waits for a message that never comes. */
#include "pipeline/rows_file.h"

#include "fedkt/advanced/moments.h"

#include "base/alloc.h"
#include "base/wipe.h"
#include "pipeline/records.h"

#include <string.h>

struct question { /* one record, as rank 0 is asked about it */
    struct fkt_digest digest;
    uint32_t label;
};

struct count {
    struct fkt_rows *rows;
    struct fkt_ranks *ranks;
    struct fkt_records *records;
    fkt_status (*add)(void *ctx, const struct fkt_rows_part *p);
    void *ctx;
    /* of a chunk */
    struct question question[FKT_ROWS_CHUNK];
    struct fkt_digest digest[FKT_ROWS_CHUNK];
    uint32_t label[FKT_ROWS_CHUNK];
    uint64_t place[FKT_ROWS_CHUNK];
    uint8_t counts[FKT_ROWS_CHUNK];
    int32_t *q; /* (FKT_ROWS_CHUNK, m) */
};

/* Passes the rows of the chunk that count on. */
static fkt_status add_counted(struct count *c, size_t n)
{
    const size_t bytes = c->rows->row - sizeof(struct fkt_row);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct fkt_row head;
        if (!c->counts[i]) continue;
        memcpy(&head, c->rows->chunk + i * c->rows->row, sizeof head);
        c->place[kept] = head.place;
        c->label[kept] = head.label;
        memcpy((uint8_t *)c->q + kept * bytes, c->rows->chunk + i * c->rows->row + sizeof head, bytes);
        kept++;
    }
    return kept ? c->add(c->ctx, &(struct fkt_rows_part){kept, c->place, c->label, c->q}) : FKT_OK;
}

static fkt_status ask_records(struct count *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        c->digest[i] = c->question[i].digest;
        c->label[i] = c->question[i].label;
    }
    return fkt_records_add(c->records, c->digest, c->label, n, c->counts);
}

static void take_questions(struct count *c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct fkt_row head;
        memcpy(&head, c->rows->chunk + i * c->rows->row, sizeof head);
        c->question[i] = (struct question){head.digest, head.label};
    }
}

static fkt_status count_here(struct count *c)
{
    fkt_status st;
    size_t n;
    for (;;) {
        FKT_TRY(fkt_rows_read(c->rows, &n));
        if (!n) return FKT_OK;
        memset(c->counts, 1, n);
        take_questions(c, n);
        if (c->records) FKT_TRY(ask_records(c, n));
        FKT_TRY(add_counted(c, n));
    }
out:
    return st;
}

/* Rank 0 for one other rank. *own: rank 0's first failure, after which everything is answered with 0. */
static fkt_status serve(struct count *c, uint32_t from, fkt_status *own)
{
    uint64_t n;
    fkt_status st;
    for (;;) {
        FKT_TRY(fkt_ranks_recv(c->ranks, from, &n, sizeof n));
        if (n == FKT_ROWS_LAST || n == FKT_ROWS_BROKEN) return FKT_OK;
        if (n > FKT_ROWS_CHUNK) return fkt_fail(FKT_E_STATE, "rank %u has a chunk that is too large", from);
        FKT_TRY(fkt_ranks_recv(c->ranks, from, c->question, n * sizeof *c->question));
        if (*own == FKT_OK) *own = ask_records(c, n);
        if (*own != FKT_OK) memset(c->counts, 0, n);
        FKT_TRY(fkt_ranks_send(c->ranks, from, c->counts, n));
    }
out:
    return st;
}

/* Another rank's part of it. *own: its first failure. */
static fkt_status ask_rank_0(struct count *c, fkt_status *own)
{
    uint64_t last;
    size_t n = 0;
    fkt_status st;
    for (;;) {
        uint64_t rows;
        *own = fkt_rows_read(c->rows, &n);
        if (*own != FKT_OK || !n) break;
        rows = n;
        take_questions(c, n);
        FKT_TRY(fkt_ranks_send(c->ranks, 0, &rows, sizeof rows));
        FKT_TRY(fkt_ranks_send(c->ranks, 0, c->question, n * sizeof *c->question));
        FKT_TRY(fkt_ranks_recv(c->ranks, 0, c->counts, n));
        *own = add_counted(c, n);
        if (*own != FKT_OK) break;
    }
    last = *own == FKT_OK ? FKT_ROWS_LAST : FKT_ROWS_BROKEN;
    FKT_TRY(fkt_ranks_send(c->ranks, 0, &last, sizeof last));
out:
    return st;
}

fkt_status fkt_rows_counted(struct fkt_rows *r, struct fkt_ranks *ranks, struct fkt_records *records,
                            fkt_status (*add)(void *ctx, const struct fkt_rows_part *p), void *ctx)
{
    struct count *c = NULL;
    fkt_status own = FKT_OK, st;
    FKT_TRY(fkt_ranks_agree(ranks, fkt_alloc(&c, 1)));
    *c = (struct count){.rows = r, .ranks = ranks, .records = records, .add = add, .ctx = ctx};
    FKT_TRY(fkt_ranks_agree(ranks, fkt_alloc(&c->q, FKT_ROWS_CHUNK * r->pipeline->length)));
    if (!records || !fkt_ranks_several(ranks) || !ranks->rank) own = count_here(c);
    else FKT_TRY(ask_rank_0(c, &own));
    for (uint32_t from = 1; records && fkt_ranks_several(ranks) && !ranks->rank && from < ranks->size; from++)
        FKT_TRY(serve(c, from, &own));
    FKT_TRY(fkt_ranks_agree(ranks, own));
out:
    if (c) fkt_free_secret(c->q);
    fkt_free_secret(c);
    return st;
}

/* ---- sum of the moments ---- */

struct sum {
    struct fkt_moments *m;
    int64_t *others; /* (numbers) */
    fkt_status own;
};

static fkt_status take(void *ctx, struct fkt_ranks *r, uint32_t peer)
{
    struct sum *s = ctx;
    const fkt_status st = fkt_ranks_recv(r, peer, s->others, fkt_moments_numbers(s->m) * sizeof *s->others);
    if (st == FKT_OK && s->own == FKT_OK) s->own = fkt_moments_add_packed(s->m, s->others);
    return st;
}

static fkt_status give(void *ctx, struct fkt_ranks *r, uint32_t peer)
{
    struct sum *s = ctx;
    const int64_t *packed;
    const fkt_status st = fkt_moments_packed(s->m, &packed);
    return st == FKT_OK ? fkt_ranks_send(r, peer, packed, fkt_moments_numbers(s->m) * sizeof *packed) : st;
}

fkt_status fkt_moments_reduce(struct fkt_moments *m, struct fkt_ranks *ranks)
{
    struct sum s = {.m = m};
    fkt_status st;
    if (!fkt_ranks_several(ranks)) return FKT_OK;
    FKT_TRY(fkt_ranks_agree(ranks, fkt_alloc(&s.others, fkt_moments_numbers(m))));
    FKT_TRY(fkt_ranks_reduce(ranks, take, give, &s));
    FKT_TRY(fkt_ranks_agree(ranks, s.own));
out:
    fkt_free_secret(s.others);
    return st;
}
