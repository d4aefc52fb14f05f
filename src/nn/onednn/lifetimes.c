/* SPDX-License-Identifier: Apache-2.0 */
/* lifetimes.c - from which step to which a plan needs each of its buffers; nn/arena.c places them. */
#include "nn/onednn/plan.h"

static void touch(struct fkt_plan *p, uint32_t buffer, uint32_t step)
{
    struct fkt_buffer *b;
    if (buffer == FKT_NONE) return;
    b = &p->buffer[buffer];
    if (step < b->first) b->first = step;
    if (step > b->last) b->last = step;
}

static void set_lifetimes(struct fkt_plan *p)
{
    for (size_t i = 0; i < p->n_buffers; i++) {
        p->buffer[i].first = FKT_NONE;
        p->buffer[i].last = 0;
    }
    for (uint32_t i = 0; i < p->n_steps; i++) {
        touch(p, p->step[i].src[0].buffer, i);
        touch(p, p->step[i].src[1].buffer, i);
        touch(p, p->step[i].dst.buffer, i);
        touch(p, p->step[i].scratch, i);
    }
    touch(p, p->input.buffer, 0);
    touch(p, p->output.buffer, (uint32_t)p->n_steps);
}

fkt_status fkt_arena(struct fkt_plan *p)
{
    set_lifetimes(p);
    return fkt_arena_place(p->buffer, p->n_buffers, &p->arena_bytes);
}
