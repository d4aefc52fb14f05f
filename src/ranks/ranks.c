/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.c - shards, agreement on a status, broadcast and a reduction tree, over messages between two ranks.
 *
 * Agreement: each rank sends its failure (a status and its sentence) to rank 0, which chooses one and sends it to all.
 * It is also a barrier. After a failure was agreed on nothing is sent any more, so each rank may leave by the shortest
 * path; a rank that fails before a call in which the others agree calls fkt_ranks_agree on its way out, and the two
 * match. Cost: 2 (R - 1) messages of about a kilobyte at rank 0.
 *
 * Reduction: in step s = 1, 2, 4 ... a rank whose bit s is set gives to rank - s and is done; the others take from
 * rank + s where there is such a rank. ceil(log2 R) steps, R - 1 messages. */
#include "ranks/ranks.h"

#include <string.h>

int fkt_ranks_several(const struct fkt_ranks *r) { return r && r->size > 1; }

/* n * rank would overflow for large n: whole shares first, then the remainder, one item to each of the first ranks. */
void fkt_ranks_shard(const struct fkt_ranks *r, size_t n, size_t *first, size_t *end)
{
    const size_t each = fkt_ranks_several(r) ? n / r->size : n, more = fkt_ranks_several(r) ? n % r->size : 0;
    const size_t rank = r ? r->rank : 0;
    *first = each * rank + (rank < more ? rank : more);
    *end = *first + each + (rank < more);
}

static fkt_status lost(struct fkt_ranks *r, fkt_status st, uint32_t peer)
{
    r->failed = 2; /* the order of messages is broken */
    if (st == FKT_E_STOPPED) return fkt_fail(st, "stopped while waiting for rank %u of %u", peer, r->size);
    return fkt_fail(st, "rank %u of %u does not answer", peer, r->size);
}

fkt_status fkt_ranks_send(struct fkt_ranks *r, uint32_t to, const void *bytes, size_t n)
{
    const fkt_status st = r->send(r->self, to, bytes, n);
    return st == FKT_OK ? st : lost(r, st, to);
}

fkt_status fkt_ranks_recv(struct fkt_ranks *r, uint32_t from, void *bytes, size_t n)
{
    const fkt_status st = r->recv(r->self, from, bytes, n);
    return st == FKT_OK ? st : lost(r, st, from);
}

fkt_status fkt_ranks_broadcast(struct fkt_ranks *r, void *bytes, size_t n)
{
    fkt_status st = FKT_OK;
    if (!fkt_ranks_several(r)) return FKT_OK;
    if (r->rank) return fkt_ranks_recv(r, 0, bytes, n);
    for (uint32_t to = 1; to < r->size; to++) FKT_TRY(fkt_ranks_send(r, to, bytes, n));
out:
    return st;
}

/* Does `one`, of a later rank, explain more than the failure so far? */
static int explains(const struct fkt_failure *so_far, const struct fkt_failure *one)
{
    if (one->status == FKT_OK) return 0;
    return so_far->status == FKT_OK || (so_far->status == FKT_E_STOPPED && one->status != FKT_E_STOPPED);
}

/* Texts are of this program on another rank; their ends are ensured all the same. */
static void end_texts(struct fkt_failure *f)
{
    f->text[sizeof f->text - 1] = f->hint[sizeof f->hint - 1] = '\0';
    f->value[0][sizeof f->value[0] - 1] = f->value[1][sizeof f->value[1] - 1] = '\0';
}

fkt_status fkt_ranks_agree(struct fkt_ranks *r, fkt_status status)
{
    struct fkt_failure chosen, one;
    fkt_status st = FKT_OK;
    if (!fkt_ranks_several(r)) return status;
    if (r->failed) return status != FKT_OK ? status : fkt_fail(FKT_E_STATE, "another rank has failed before");
    memset(&chosen, 0, sizeof chosen);
    if (status != FKT_OK) fkt_failure_save(&chosen, status);
    if (status != FKT_OK && r->alarm) r->alarm(r->self);
    if (r->rank) FKT_TRY(fkt_ranks_send(r, 0, &chosen, sizeof chosen));
    for (uint32_t from = 1; !r->rank && from < r->size; from++) {
        FKT_TRY(fkt_ranks_recv(r, from, &one, sizeof one));
        if (explains(&chosen, &one)) chosen = one;
    }
    FKT_TRY(fkt_ranks_broadcast(r, &chosen, sizeof chosen));
    end_texts(&chosen);
    if (chosen.status == FKT_OK) return FKT_OK;
    r->failed = 1;
    return fkt_failure_restore(&chosen);
out:
    return st;
}

fkt_status fkt_ranks_reduce(struct fkt_ranks *r, fkt_status (*take)(void *ctx, struct fkt_ranks *r, uint32_t peer),
                            fkt_status (*give)(void *ctx, struct fkt_ranks *r, uint32_t peer), void *ctx)
{
    fkt_status st = FKT_OK;
    for (uint64_t s = 1; fkt_ranks_several(r) && s < r->size; s *= 2) {
        if (r->rank & s) return give(ctx, r, (uint32_t)(r->rank - s));
        if (r->rank + s < r->size) FKT_TRY(take(ctx, r, (uint32_t)(r->rank + s)));
    }
out:
    return st;
}

static int watch(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    const struct fkt_ranks_watch *w = self;
    if (w->ranks && w->ranks->alarmed && w->ranks->alarmed(w->ranks->self)) return 1;
    return w->inner && w->inner->step && w->inner->step(w->inner->self, what, done, total);
}

void fkt_ranks_watch(struct fkt_ranks_watch *w, struct fkt_ranks *r, const struct fkt_progress *inner)
{
    *w = (struct fkt_ranks_watch){.hook = {watch, w}, .inner = inner, .ranks = fkt_ranks_several(r) ? r : NULL};
}
