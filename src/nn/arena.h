/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h - memory of a plan or a learner: buffers with lifetimes, placed in one block. */
#ifndef FKT_NN_ARENA_H
#define FKT_NN_ARENA_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct fkt_buffer {
    size_t bytes, offset; /* offset: in a workspace's block */
    uint32_t first, last; /* steps that use it; first > last: never used */
};

/* Gives every buffer its offset, a multiple of 64 (of 256 where all sizes are); *bytes: of the block. */
FKT_MUST_USE fkt_status fkt_arena_place(struct fkt_buffer *buffer, size_t n, size_t *bytes);

#endif
