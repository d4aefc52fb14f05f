/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c - places every buffer of a plan or a learner in one block, so that buffers needed by different steps share
 * memory.
 *
 * Two buffers may share bytes when no step needs both. Largest first, each at the lowest offset that is free for its
 * whole lifetime (the greedy rule of Pisarchyk and Lee 2020, "Efficient memory management for deep neural net
 * inference": within a few per cent of the optimum for chains). Scratchpads live for one step and so fill the gaps.
 * Cost: O(buffers^2), some hundred buffers. */
#include "nn/arena.h"

#include "base/alloc.h"

#include <stdlib.h>

enum { LINE = 64 };

static int larger_first(const void *a, const void *b)
{
    const struct fkt_buffer *x = *(struct fkt_buffer *const *)a, *y = *(struct fkt_buffer *const *)b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x < y ? -1 : x > y;
}

static int lifetimes_overlap(const struct fkt_buffer *a, const struct fkt_buffer *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The lowest offset at which `b` overlaps no placed buffer: try 0 and the end of each. */
static size_t lowest(struct fkt_buffer *const *placed, size_t n, const struct fkt_buffer *b)
{
    size_t best = 0;
    for (size_t changed = 1; changed;) {
        changed = 0;
        for (size_t i = 0; i < n; i++) {
            const struct fkt_buffer *o = placed[i];
            if (!lifetimes_overlap(o, b) || best + b->bytes <= o->offset || o->offset + o->bytes <= best) continue;
            best = o->offset + o->bytes;
            changed = 1;
        }
    }
    return best;
}

fkt_status fkt_arena_place(struct fkt_buffer *buffer, size_t n, size_t *bytes)
{
    struct fkt_buffer **order = NULL;
    fkt_status st;
    *bytes = 0;
    FKT_TRY(fkt_alloc(&order, n));
    for (size_t i = 0; i < n; i++) {
        order[i] = &buffer[i];
        order[i]->bytes = (order[i]->bytes + LINE - 1) / LINE * LINE;
    }
    qsort(order, n, sizeof *order, larger_first);
    for (size_t i = 0; i < n; i++) {
        order[i]->offset = lowest(order, i, order[i]);
        if (order[i]->offset + order[i]->bytes > *bytes) *bytes = order[i]->offset + order[i]->bytes;
    }
out:
    fkt_free(order);
    return st;
}
