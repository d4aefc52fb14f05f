/* SPDX-License-Identifier: Apache-2.0 */
/* learn_arrays.c - weights, gradients, moments and averages: five blocks of floats with the same offsets.
 *
 *   block: | slot 0 (padded) | slot 3 | ... parameters ... | statistics of batch norms ... |
 *
 * Weights of a convolution are stored in the order in which backward-weights writes their gradients, so that gradient
 * descent is one loop over two blocks and nothing is reordered. Most kernels read that order too; for the others copies
 * are refreshed after a change. Channels are padded to whole blocks, and the padding is always zero in all five: it is
 * written as zero, its gradient is a product with zero, and zero stays zero under decay, momentum and Adam (whose
 * epsilon is above 0).
 *
 * Arrays are read and written in the order of the file: padded or cut in a plain copy, reordered by oneDNN. */
#include "nn/onednn/learn.h"

#include "base/alloc.h"

#include <string.h>

enum { LINE = 64, LINE_FLOATS = 16 };

static size_t whole_lines(size_t floats) { return (floats + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS; }

static void place(struct fkt_learn *l, uint32_t slot)
{
    struct fkt_array *a = &l->array[slot];
    size_t floats;
    if (a->home) floats = fkt_dnn_task_bytes(a->home, FKT_AT_WEIGHTS) / sizeof(float);
    else floats = (fkt_slot_count(&l->net->slot[slot]) + l->lanes - 1) / l->lanes * l->lanes;
    a->offset = l->floats;
    a->count = floats;
    l->floats += whole_lines(floats);
}

void fkt_arrays_lay_out(struct fkt_learn *l)
{
    const struct fkt_net *net = l->net;
    for (uint32_t i = 0; i < net->n_slots; i++)
        if (!l->array[i].statistic) place(l, i);
    l->parameters = l->floats;
    for (uint32_t i = 0; i < net->n_slots; i++)
        if (l->array[i].statistic) place(l, i);
    for (size_t i = 0; i < l->n_copies; i++) {
        l->copy[i].offset = l->copy_bytes;
        l->copy_bytes += (l->copy[i].bytes + LINE - 1) / LINE * LINE;
    }
}

uint64_t fkt_arrays_bytes(const struct fkt_learn *l)
{
    return (l->floats + (l->spec.frozen ? 0 : 2 * l->parameters)) * sizeof(float) + l->copy_bytes;
}

/* A block whose first byte is on a cache line; free *block. */
fkt_status fkt_learn_block(uint8_t **block, uint8_t **base, size_t bytes)
{
    fkt_status st = fkt_alloc(block, bytes + LINE);
    if (st == FKT_OK) *base = *block + (LINE - (uintptr_t)*block % LINE) % LINE;
    return st;
}

static fkt_status block_of(struct fkt_learn *l, enum fkt_learned what, size_t floats)
{
    uint8_t *base;
    fkt_status st = fkt_learn_block(&l->owned[what], &base, floats * sizeof(float));
    if (st == FKT_OK) l->learned[what] = (float *)(void *)base;
    return st;
}

fkt_status fkt_arrays_new(struct fkt_learn *l)
{
    fkt_status st;
    FKT_TRY(block_of(l, FKT_WEIGHT, l->floats));
    if (!l->spec.frozen) FKT_TRY(block_of(l, FKT_GRADIENT, l->parameters));
    if (!l->spec.frozen) FKT_TRY(block_of(l, FKT_VELOCITY, l->parameters));
    FKT_TRY(fkt_learn_block(&l->owned_copies, &l->copies, l->copy_bytes));
    for (size_t i = 0; i < l->net->n_ops; i++) {
        const struct fkt_op *op = &l->net->op[i];
        if (op->kind != FKT_OP_BATCH_NORM) continue;
        for (size_t c = 0, n = fkt_slot_count(&l->net->slot[op->var]); c < n; c++)
            fkt_array_at(l, FKT_WEIGHT, op->var)[c] = 1;
    }
    l->stale = 1;
out:
    return st;
}

fkt_status fkt_arrays_have(struct fkt_learn *l, enum fkt_learned what)
{
    if (l->learned[what]) return FKT_OK;
    return block_of(l, what, what == FKT_AVERAGE ? l->floats : l->parameters);
}

/* (out, in, window) of the file, and the same padded; `back`: from the padded one. In groups `in` is counted from the
 * first input of the result's group. */
static void pad(float *padded, float *plain, const struct fkt_array *a, const struct fkt_slot *s, int back)
{
    size_t window = (size_t)a->shape[2] * a->shape[3], in = fkt_slot_count(s) / s->shape[0] / window;
    for (size_t o = 0; o < s->shape[0]; o++) {
        const size_t first = a->groups > 1 ? o / (s->shape[0] / a->groups) * in : 0;
        for (size_t c = 0; c < in; c++) {
            float *x = plain + (o * in + c) * window, *y = padded + (o * a->shape[1] + first + c) * window;
            memcpy(back ? x : y, back ? y : x, window * sizeof *x);
        }
    }
}

static fkt_status move(const struct fkt_learn *l, enum fkt_learned what, uint32_t slot, float *x, int back)
{
    const struct fkt_array *a = &l->array[slot];
    const struct fkt_slot *s = &l->net->slot[slot];
    float *home = fkt_array_at(l, what, slot), *padded = NULL;
    int team;
    fkt_status st = FKT_OK;
    if (!a->home) {
        memcpy(back ? x : home, back ? home : x, fkt_slot_count(s) * sizeof *x);
        return FKT_OK;
    }
    FKT_TRY(fkt_alloc(&padded, (size_t)a->shape[0] * a->shape[1] * a->shape[2] * a->shape[3]));
    if (!back) pad(padded, x, a, s, 0);
    team = fkt_dnn_alone(); /* a copy: other threads would wait for longer than they help */
    st = fkt_dnn_task_pack(a->home, home, padded, back);
    fkt_dnn_together(team);
    FKT_TRY(st);
    if (back) pad(padded, x, a, s, 1);
out:
    fkt_free(padded);
    return st;
}

fkt_status fkt_arrays_write(struct fkt_learn *l, enum fkt_learned what, uint32_t slot, const float *x)
{
    fkt_status st;
    FKT_TRY(fkt_arrays_have(l, what));
    if (what == FKT_WEIGHT) l->stale = 1;
    st = move(l, what, slot, (float *)(uintptr_t)x, 0); /* only read */
out:
    return st;
}

fkt_status fkt_arrays_read(const struct fkt_learn *l, enum fkt_learned what, uint32_t slot, float *x)
{
    return move(l, what, slot, x, 1);
}

fkt_status fkt_arrays_refresh(struct fkt_learn *l)
{
    fkt_status st = FKT_OK;
    for (size_t i = 0; l->stale && i < l->n_copies; i++) FKT_TRY(fkt_dnn_task_run(l->copy[i].task));
    l->stale = 0;
out:
    return st;
}
