/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.h - several processes that share the work of one call, each with a rank; what carries bytes between them is the
 * caller's (MPI, mpi4py, threads of a test).
 *
 * Every rank makes the same calls with the same arguments. Records are sharded over the ranks, each rank works on its
 * own, and rank 0 gets what a single process would have got, to the bit. A call fails on every rank with the sentence
 * of the lowest rank that failed by itself.
 */
#ifndef FEDKT_ADVANCED_RANKS_H
#define FEDKT_ADVANCED_RANKS_H

#include "fedkt/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* send and recv move whole messages of exactly n bytes, in order between two ranks; recv waits, send may wait until the
 * other rank receives. They are called on the thread that made the call. Their bytes are PRIVATE: as secret as the
 * images. A failure (FKT_E_IO, FKT_E_STOPPED) ends the call on this rank without further messages. */
struct fkt_ranks {
    uint32_t rank, size; /* rank 0 .. size-1 */
    fkt_status (*send)(void *self, uint32_t to, const void *bytes, size_t n);
    fkt_status (*recv)(void *self, uint32_t from, void *bytes, size_t n);
    /* Both may be NULL: then a rank that fails is noticed when the others have done their shards. alarm tells all
     * others, without waiting, that this rank failed; alarmed is 1 once another rank has. alarmed is called from worker
     * threads, one at a time. */
    void (*alarm)(void *self);
    int (*alarmed)(void *self);
    void *self;
    int failed; /* zero; 1 once a failure was agreed on, 2 once a message was lost: nothing is sent afterwards */
};

/* Every rank calls it with its own status. FKT_OK on all when all said so; else on all the failure of the lowest rank
 * that has one other than FKT_E_STOPPED, or that of the lowest rank that stopped. ranks NULL, or of size 1: st. */
FKT_API FKT_MUST_USE fkt_status fkt_ranks_agree(struct fkt_ranks *ranks, fkt_status st);

#ifdef __cplusplus
}
#endif
#endif
