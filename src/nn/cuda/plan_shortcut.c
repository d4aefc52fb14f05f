/* SPDX-License-Identifier: Apache-2.0 */
/* plan_shortcut.c - what a plan finds in the list of operations beyond nn/fuse.c.
 *
 * Shortcuts of DC-AE, which take one kernel without the values between:
 *   down  add(unshuffle(x), group mean(unshuffle(s)))        up  add(shuffle(x), shuffle(repeat(s)))
 * where the group mean or the repeat may be absent, and each value between has one reader.
 *
 * Padding: the input of the network is stored with as many channels as convolutions want where convolutions are all
 * that reads it, or activations that keep zero and are themselves read by convolutions alone. */
#include "nn/cuda/plan.h"

/* The operation that makes the value, where it is of this kind and has one reader; NULL: it is not. */
static const struct fkt_op *made_by(const struct fkt_cuda_draft *d, uint32_t value, enum fkt_op_kind kind)
{
    const struct fkt_op *op;
    if (!value || d->readers[value] != 1 || d->group[value - 1].head != value - 1) return NULL;
    op = &d->plan->net->op[value - 1];
    return op->kind == kind && d->group[value - 1].end == value - 1 ? op : NULL;
}

static void absorb(struct fkt_cuda_draft *d, const struct fkt_op *op)
{
    d->group[op - d->plan->net->op].head = FKT_NONE;
}

/* `main` and `side`: the two inputs of addition i. */
static int down(struct fkt_cuda_draft *d, uint32_t i, uint32_t main, uint32_t side)
{
    const struct fkt_op *x = made_by(d, main, FKT_OP_UNSHUFFLE), *mean = made_by(d, side, FKT_OP_GROUP_MEAN), *s;
    s = made_by(d, mean ? mean->in[0] : side, FKT_OP_UNSHUFFLE);
    if (!x || !s || x == s || x->factor != s->factor) return 0;
    if (d->shape[s->in[0]].c % d->shape[x->in[0]].c) return 0;
    d->shortcut[i][0] = x->in[0];
    d->shortcut[i][1] = s->in[0];
    absorb(d, x);
    absorb(d, s);
    if (mean) absorb(d, mean);
    return 1;
}

static int up(struct fkt_cuda_draft *d, uint32_t i, uint32_t main, uint32_t side)
{
    const struct fkt_op *x = made_by(d, main, FKT_OP_SHUFFLE), *s = made_by(d, side, FKT_OP_SHUFFLE), *repeat;
    if (!x || !s || x == s || x->factor != s->factor) return 0;
    repeat = made_by(d, s->in[0], FKT_OP_REPEAT);
    d->shortcut[i][0] = x->in[0];
    d->shortcut[i][1] = repeat ? repeat->in[0] : s->in[0];
    absorb(d, x);
    absorb(d, s);
    if (repeat) absorb(d, repeat);
    return 1;
}

void fkt_cuda_draft_shortcuts(struct fkt_cuda_draft *d)
{
    const struct fkt_net *net = d->plan->net;
    for (uint32_t i = 0; i < net->n_ops; i++) {
        const struct fkt_op *op = &net->op[i];
        d->shortcut[i][0] = d->shortcut[i][1] = FKT_NONE;
        if (op->kind != FKT_OP_ADD || d->group[i].head != i || d->group[i].end != i) continue;
        if (down(d, i, op->in[0], op->in[1])) continue;
        (void)up(d, i, op->in[0], op->in[1]);
    }
}

static int keeps_zero(enum fkt_op_kind kind)
{
    return kind == FKT_OP_RELU || kind == FKT_OP_RELU6 || kind == FKT_OP_SILU || kind == FKT_OP_SOFT_CLAMP ||
           kind == FKT_OP_RESIZE;
}

/* Values from last to first, so that what a value's readers make is known. The output is no such value. */
void fkt_cuda_draft_padding(struct fkt_cuda_draft *d)
{
    const struct fkt_net *net = d->plan->net;
    for (size_t v = 0; v <= net->n_ops; v++) d->padded[v] = v < net->n_ops && d->readers[v] > 0;
    for (uint32_t i = (uint32_t)net->n_ops; i-- > 0;) {
        const struct fkt_op *op = &net->op[i];
        int fits = (op->kind == FKT_OP_CONV && op->groups == 1) || (keeps_zero(op->kind) && d->padded[i + 1]);
        if (!fits) d->padded[op->in[0]] = 0;
        if (fkt_op_reads_two(op)) d->padded[op->in[1]] = 0;
    }
    for (uint32_t i = 0; i < net->n_ops; i++) /* only the input and what activations make of it */
        if (!keeps_zero(net->op[i].kind) || !d->padded[net->op[i].in[0]] || d->group[i].head != i) d->padded[i + 1] = 0;
}
