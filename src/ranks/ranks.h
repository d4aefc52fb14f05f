/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.h - what several ranks do together, made of messages between two of them. */
#ifndef FKT_RANKS_RANKS_H
#define FKT_RANKS_RANKS_H

#include "fedkt/advanced/ranks.h"

#include "base/status.h"

int fkt_ranks_several(const struct fkt_ranks *r); /* 0: NULL, or alone */
/* Shard [*first, *end) of n items: shards are in the order of ranks, and their sizes differ by one at most. */
void fkt_ranks_shard(const struct fkt_ranks *r, size_t n, size_t *first, size_t *end);

/* Messages; a failure gets its sentence here. */
FKT_MUST_USE fkt_status fkt_ranks_send(struct fkt_ranks *r, uint32_t to, const void *bytes, size_t n);
FKT_MUST_USE fkt_status fkt_ranks_recv(struct fkt_ranks *r, uint32_t from, void *bytes, size_t n);
/* From rank 0 to all. */
FKT_MUST_USE fkt_status fkt_ranks_broadcast(struct fkt_ranks *r, void *bytes, size_t n);

/* A binary tree over the ranks with rank 0 at its root: calls give() once on every rank but 0, and take() on a rank for
 * each of its children before its own give(). Both exchange messages with `peer` alone. */
FKT_MUST_USE fkt_status fkt_ranks_reduce(struct fkt_ranks *r,
                                         fkt_status (*take)(void *ctx, struct fkt_ranks *r, uint32_t peer),
                                         fkt_status (*give)(void *ctx, struct fkt_ranks *r, uint32_t peer), void *ctx);

/* A progress hook that also stops the work when another rank has failed. */
struct fkt_ranks_watch {
    struct fkt_progress hook;
    const struct fkt_progress *inner; /* may be NULL */
    struct fkt_ranks *ranks;
};
void fkt_ranks_watch(struct fkt_ranks_watch *w, struct fkt_ranks *r, const struct fkt_progress *inner);

#endif
