/* SPDX-License-Identifier: Apache-2.0 */
/* learn_arrays.c - weights, gradients, moments and averages on the card: blocks of floats with the same offsets.
 *
 *   block: | slot 0 (padded) | slot 3 | ... parameters ... | statistics of batch norms ... |
 *
 * Weights lie as convolutions read them and as their gradients are written, (out, kernel, kernel, in), so that the
 * optimiser is one kernel over whole blocks. Padding is zero in all of them: it is written as zero, its gradient is a
 * product with zero, and zero stays zero under decay and momentum. Arrays are read and written in the order of the
 * file, and reordered on the host: a checkpoint does not know which device wrote it. */
#include "nn/cuda/learn.h"

#include "base/alloc.h"

enum { LINE = 64 }; /* floats; bf16 copies begin at a multiple of 128 bytes too */

/* A slot as operation `op` with a source of shape x reads it. */
static struct fkt_cuda_array array_for(const struct fkt_cuda_learn *l, const struct fkt_op *op, struct fkt_shape x,
                                       uint32_t slot)
{
    const struct fkt_slot *s = &l->net->slot[slot];
    struct fkt_cuda_array a = {.out = s->shape[0], .in = 1, .window = 1, .padded_in = 1, .groups = 1, .side = 1};
    if (slot == op->weight && op->kind == FKT_OP_CONV) {
        a.in = s->shape[1];
        a.side = s->shape[2];
        a.depthwise = fkt_cuda_is_depthwise(l, op);
        if (!a.depthwise) {
            a.groups = op->groups;
            a.lead = op->pad_after;
            a.padded_in = fkt_cuda_padded(l, x.c);
        }
        a.window = (a.side + a.lead) * (a.side + a.lead);
    } else if (slot == op->weight && op->kind == FKT_OP_LINEAR) {
        a.in = x.c;
        a.window = a.side = x.h * x.w; /* in one row */
        a.padded_in = fkt_cuda_padded(l, a.in);
    }
    a.padded_out = fkt_cuda_padded(l, a.out);
    a.count = (size_t)a.padded_out * a.window * a.padded_in;
    a.statistic = op->kind == FKT_OP_BATCH_NORM && (slot == op->mean || slot == op->var);
    return a;
}

static fkt_status claim(struct fkt_cuda_learn *l, size_t i)
{
    const struct fkt_op *op = &l->net->op[i];
    const uint32_t slot[] = {op->weight, op->bias, op->mean, op->var};
    for (size_t k = 0; k < sizeof slot / sizeof *slot; k++) {
        struct fkt_cuda_array a, *have;
        if (slot[k] == FKT_NO_SLOT) continue;
        have = &l->array[slot[k]];
        a = array_for(l, op, l->shape[op->in[0]], slot[k]);
        if (have->count && (have->window != a.window || have->padded_in != a.padded_in || have->groups != a.groups ||
                            have->lead != a.lead || have->depthwise != a.depthwise))
            return fkt_fail(FKT_E_ARG, "operation %zu of the network (%s) shares weight '%s' in another order", i,
                            fkt_op_name(op->kind), l->net->slot[slot[k]].name[0]);
        *have = a;
    }
    return FKT_OK;
}

static void place(struct fkt_cuda_learn *l, struct fkt_cuda_array *a)
{
    a->offset = l->floats;
    l->floats += (a->count + LINE - 1) / LINE * LINE;
}

fkt_status fkt_cuda_arrays_lay_out(struct fkt_cuda_learn *l)
{
    fkt_status st;
    FKT_TRY(fkt_alloc(&l->array, l->net->n_slots));
    for (size_t i = 0; i < l->net->n_ops; i++) FKT_TRY(claim(l, i));
    for (size_t i = 0; i < l->net->n_slots; i++)
        if (!l->array[i].count) { /* no operation reads it: kept as it is */
            l->array[i] = (struct fkt_cuda_array){.in = 1, .window = 1, .padded_in = 1, .groups = 1, .side = 1};
            l->array[i].out = (uint32_t)fkt_slot_count(&l->net->slot[i]);
            l->array[i].padded_out = fkt_cuda_padded(l, l->array[i].out);
            l->array[i].count = l->array[i].padded_out;
        }
    for (size_t i = 0; i < l->net->n_slots; i++)
        if (!l->array[i].statistic) place(l, &l->array[i]);
    l->parameters = l->floats;
    for (size_t i = 0; i < l->net->n_slots; i++)
        if (l->array[i].statistic) place(l, &l->array[i]);
out:
    return st;
}

static int has_copies(const struct fkt_cuda_learn *l)
{
    return l->spec.precision == FKT_PRECISION_BF16 && l->parameters;
}

uint64_t fkt_cuda_arrays_bytes(const struct fkt_cuda_learn *l)
{
    uint64_t bytes = l->floats * sizeof(float);
    if (!l->spec.frozen) bytes += 2 * l->parameters * sizeof(float);
    if (has_copies(l)) bytes += l->parameters * sizeof(uint16_t);
    return bytes;
}

static fkt_status block(struct fkt_cuda_learn *l, enum fkt_learned what, const char *name)
{
    const size_t floats = what == FKT_WEIGHT || what == FKT_AVERAGE ? l->floats : l->parameters;
    void *p = NULL;
    fkt_status st;
    if (l->learned[what] || !floats) return FKT_OK;
    FKT_TRY(fkt_cuda_alloc(&p, floats * sizeof(float), name));
    l->learned[what] = p;
    FKT_TRY(fkt_cuda_check(cudaMemsetAsync(p, 0, floats * sizeof(float), l->stream), "clearing weights"));
out:
    return st;
}

static fkt_status fill_variances(struct fkt_cuda_learn *l)
{
    float *ones = NULL;
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < l->net->n_ops; i++) {
        const struct fkt_op *op = &l->net->op[i];
        size_t n;
        if (op->kind != FKT_OP_BATCH_NORM) continue;
        n = fkt_slot_count(&l->net->slot[op->var]);
        FKT_TRY(fkt_alloc(&ones, n));
        for (size_t c = 0; c < n; c++) ones[c] = 1;
        FKT_TRY(fkt_cuda_arrays_write(l, FKT_WEIGHT, op->var, ones));
        fkt_free(ones);
        ones = NULL;
    }
out:
    fkt_free(ones);
    return st;
}

fkt_status fkt_cuda_arrays_new(struct fkt_cuda_learn *l)
{
    void *p = NULL;
    fkt_status st;
    FKT_TRY(block(l, FKT_WEIGHT, "a network's weights"));
    if (!l->spec.frozen) {
        FKT_TRY(block(l, FKT_GRADIENT, "gradients of weights"));
        FKT_TRY(block(l, FKT_VELOCITY, "an optimiser's velocity"));
    }
    if (has_copies(l)) {
        FKT_TRY(fkt_cuda_alloc(&p, l->parameters * sizeof(uint16_t), "a network's weights in bf16"));
        l->copies = p;
    }
    FKT_TRY(fill_variances(l));
    l->stale = 1;
out:
    return st;
}

void fkt_cuda_arrays_free(struct fkt_cuda_learn *l)
{
    for (int k = 0; k < FKT_LEARNED_KINDS; k++) fkt_cuda_free(l->learned[k]);
    fkt_cuda_free(l->copies);
    fkt_free(l->array);
}

fkt_status fkt_cuda_arrays_have(struct fkt_cuda_learn *l, enum fkt_learned what)
{
    return block(l, what, what == FKT_SECOND ? "an optimiser's second moments" : "averaged weights");
}

/* Where number (o, c, p) of the file is here; c is counted from the first input of o's group. */
static size_t place_of(const struct fkt_cuda_array *a, size_t o, size_t c, size_t p)
{
    const size_t first = o / (a->out / a->groups) * a->in;
    const size_t at = a->lead ? (p / a->side + a->lead) * (a->side + a->lead) + p % a->side + a->lead : p;
    return a->depthwise ? at * a->padded_out + o : (o * a->window + at) * a->padded_in + first + c;
}

/* (out, in, window) of the file, and (padded out, window, padded in); `back`: from the latter. */
static void reorder(float *here, float *file, const struct fkt_cuda_array *a, int back)
{
    const size_t window = a->lead ? (size_t)a->side * a->side : a->window;
    for (size_t o = 0; o < a->out; o++)
        for (size_t c = 0; c < a->in; c++)
            for (size_t p = 0; p < window; p++) {
                float *x = file + (o * a->in + c) * window + p;
                float *y = here + place_of(a, o, c, p);
                *(back ? x : y) = *(back ? y : x);
            }
}

fkt_status fkt_cuda_arrays_write(struct fkt_cuda_learn *l, enum fkt_learned what, uint32_t slot, const float *x)
{
    const struct fkt_cuda_array *a = &l->array[slot];
    float *here = NULL;
    fkt_status st;
    if (what == FKT_AVERAGE || what == FKT_SECOND) FKT_TRY(fkt_cuda_arrays_have(l, what));
    if (what == FKT_WEIGHT) l->stale = 1;
    FKT_TRY(fkt_alloc(&here, a->count));
    reorder(here, (float *)(uintptr_t)x, a, 0); /* x is only read */
    FKT_TRY(fkt_cuda_learn_send(l, l->learned[what] + a->offset, here, a->count * sizeof *here));
out:
    fkt_free(here);
    return st;
}

fkt_status fkt_cuda_arrays_read(const struct fkt_cuda_learn *l, enum fkt_learned what, uint32_t slot, float *x)
{
    const struct fkt_cuda_array *a = &l->array[slot];
    float *here = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&here, a->count));
    FKT_TRY(fkt_cuda_learn_fetch(l, here, l->learned[what] + a->offset, a->count * sizeof *here));
    reorder(here, x, a, 1);
out:
    fkt_free(here);
    return st;
}

fkt_status fkt_cuda_arrays_refresh(struct fkt_cuda_learn *l)
{
    fkt_status st = FKT_OK;
    if (!l->stale) return FKT_OK;
    if (has_copies(l)) {
        const struct fkt_cuda_tensor to = {l->copies, 1, 1, (int)(l->parameters / LINE), LINE, FKT_PRECISION_BF16};
        struct fkt_cuda_tensor from = to;
        from.data = l->learned[FKT_WEIGHT];
        from.precision = FKT_PRECISION_F32;
        FKT_TRY(fkt_cuda_cast(&to, &from, l->stream));
    }
    if (l->spec.frozen) FKT_TRY(fkt_cuda_frozen_fold(l));
    l->stale = 0;
out:
    return st;
}

struct fkt_cuda_slots fkt_cuda_arrays_slots(const struct fkt_cuda_learn *l)
{
    return (struct fkt_cuda_slots){.weight = l->learned[FKT_WEIGHT],
                                   .gradient = l->learned[FKT_GRADIENT],
                                   .velocity = l->learned[FKT_VELOCITY],
                                   .copy = l->copies,
                                   .parameters = l->parameters,
                                   .floats = l->floats};
}
