/* SPDX-License-Identifier: Apache-2.0 */
/* learn_frozen.c - a frozen network on a card: forward with what is stored, and the gradient by the input.
 *
 * One step for each operation, on kernels.h and conv.h; the ReLU after a convolution or a batch norm is part of its
 * step, and its mask comes from the result. Each value that depends on the input has one buffer for its gradient: the
 * first operation that reaches it replaces, later ones add (`more`). A convolution cannot add, so its gradient goes
 * through a buffer between.
 *
 * Channels are padded to a multiple of 8 where every operation of the network allows it; those that mix channels
 * (GROUP_NORM, CONCAT, ...) do if their values need no padding. Otherwise nothing is padded. */
#include "nn/cuda/learn.h"

#include "base/alloc.h"

#include <inttypes.h>

enum { BY_FIRST = 0, BY_SECOND, BY_RESULT }; /* `side` of a step: gradient by an operand, or the ReLU's mask */

static int keeps_channels_apart(enum fkt_op_kind kind)
{
    switch (kind) {
    case FKT_OP_CONV:
    case FKT_OP_LINEAR:
    case FKT_OP_RELU:
    case FKT_OP_RELU6:
    case FKT_OP_SILU:
    case FKT_OP_SOFT_CLAMP:
    case FKT_OP_AFFINE:
    case FKT_OP_UPSAMPLE:
    case FKT_OP_RESIZE:
    case FKT_OP_ADD:
    case FKT_OP_MAX_POOL:
    case FKT_OP_MEAN:
    case FKT_OP_BATCH_NORM: return 1;
    default: return 0;
    }
}

uint32_t fkt_cuda_frozen_align(const struct fkt_net *net, const struct fkt_shape *shape)
{
    for (size_t i = 0; i < net->n_ops; i++) {
        const struct fkt_op *op = &net->op[i];
        const uint32_t second = shape[fkt_op_reads_two(op) ? op->in[1] : op->in[0]].c;
        if (keeps_channels_apart(op->kind)) continue;
        if (shape[op->in[0]].c % FKT_CUDA_LANES || second % FKT_CUDA_LANES || shape[i + 1].c % FKT_CUDA_LANES) return 1;
    }
    return FKT_CUDA_LANES;
}

int fkt_cuda_is_depthwise(const struct fkt_cuda_learn *l, const struct fkt_op *op)
{
    return op->kind == FKT_OP_CONV && op->groups > 1 && op->groups == op->channels &&
           op->groups == l->shape[op->in[0]].c;
}

static int can_differentiate(const struct fkt_op *op)
{
    switch (op->kind) {
    case FKT_OP_GLU:
    case FKT_OP_SHUFFLE:
    case FKT_OP_UNSHUFFLE:
    case FKT_OP_GROUP_MEAN:
    case FKT_OP_REPEAT:
    case FKT_OP_RMS_NORM:
    case FKT_OP_GROUP_NORM:
    case FKT_OP_CONCAT: return 1;
    default: return keeps_channels_apart(op->kind);
    }
}

/* ---- planning ---- */

static fkt_status scratch_of(struct fkt_cuda_draft *s, struct fkt_cuda_step *k, int back)
{
    const struct fkt_cuda_tensor x = fkt_cuda_learn_tensor(s->l, k->op->in[0], FKT_NONE);
    const int groups = (int)k->op->groups;
    if (k->op->kind != FKT_OP_GROUP_NORM) return FKT_OK;
    return fkt_cuda_draft_buffer(s, &k->scratch,
                                 sizeof(float) * (back ? fkt_cuda_group_norm_back_scratch(&x, groups)
                                                       : fkt_cuda_group_norm_scratch(&x, groups)));
}

static int is_product(const struct fkt_cuda_learn *l, const struct fkt_op *op)
{
    return (op->kind == FKT_OP_CONV && !fkt_cuda_is_depthwise(l, op)) || op->kind == FKT_OP_LINEAR;
}

static fkt_status emit(struct fkt_cuda_draft *s, uint32_t i)
{
    struct fkt_cuda_learn *l = s->l;
    const struct fkt_op *op = &l->net->op[i];
    const uint32_t end = s->b.group[i].end;
    struct fkt_cuda_step k = fkt_cuda_step_of(FKT_CUDA_STEP_FROZEN, op, end + 1);
    fkt_status st;
    if (s->b.group[i].relu != FKT_NONE) k.act = fkt_cuda_act_of(l->net->op[s->b.group[i].relu].kind);
    k.x = s->buffer[op->in[0]];
    if (fkt_op_reads_two(op)) k.z = s->buffer[op->in[1]];
    if (op->kind == FKT_OP_BATCH_NORM) {
        k.norm = (uint32_t)l->n_norms++;
        l->norm[k.norm] = (struct fkt_cuda_norm){.map = fkt_cuda_learn_rows(l, i + 1), .epsilon = op->value[0]};
        s->norm[i] = k.norm;
    }
    FKT_TRY(scratch_of(s, &k, 0));
    FKT_TRY(fkt_cuda_draft_map(s, &k.y, end + 1));
    s->buffer[end + 1] = k.y;
    if (is_product(l, op)) {
        FKT_TRY(fkt_cuda_product_new(&k.product, l, i, FKT_CUDA_FORWARD, k.act));
        if (k.product.conv) s->facts->convolutions++;
    }
    return fkt_cuda_learn_add_step(s, &k);
out:
    return st;
}

/* A step from g to the gradient of operand `side`, in a new buffer or added to what is there. */
static fkt_status emit_side(struct fkt_cuda_draft *s, uint32_t i, uint32_t g, int side)
{
    struct fkt_cuda_learn *l = s->l;
    const struct fkt_op *op = &l->net->op[i];
    const uint32_t value = op->in[side];
    struct fkt_cuda_step k = fkt_cuda_step_of(FKT_CUDA_STEP_FROZEN_BACK, op, value);
    uint32_t *d = &s->b.gradient[value][0];
    fkt_status st;
    if (!s->b.needs[value]) return FKT_OK;
    k.side = side;
    k.g = g;
    k.x = s->buffer[op->in[0]];
    k.norm = s->norm[i];
    k.more = *d != FKT_NONE;
    if (!k.more) FKT_TRY(fkt_cuda_draft_map(s, d, value));
    k.d = *d;
    FKT_TRY(scratch_of(s, &k, 1));
    if (is_product(l, op)) {
        if (k.more) FKT_TRY(fkt_cuda_draft_map(s, &k.scratch, value));
        k.way = FKT_CUDA_BACK_DATA;
        FKT_TRY(fkt_cuda_product_new(&k.product, l, i, FKT_CUDA_BACK_DATA, FKT_CUDA_ACT_NONE));
        if (k.product.conv) s->facts->convolutions++;
    }
    return fkt_cuda_learn_add_step(s, &k);
out:
    return st;
}

static int is_unary(enum fkt_op_kind kind)
{
    return kind == FKT_OP_RELU || kind == FKT_OP_RELU6 || kind == FKT_OP_SILU || kind == FKT_OP_SOFT_CLAMP ||
           kind == FKT_OP_AFFINE;
}

static fkt_status emit_back(struct fkt_cuda_draft *s, uint32_t i)
{
    const struct fkt_op *op = &s->l->net->op[i];
    const uint32_t value = s->b.group[i].end + 1, g = s->b.gradient[value][0];
    uint32_t *first = &s->b.gradient[op->in[0]][0];
    fkt_status st = FKT_OK;
    if (!s->b.needs[value] || g == FKT_NONE) return FKT_OK;
    if (s->b.group[i].relu != FKT_NONE) {
        struct fkt_cuda_step mask = fkt_cuda_step_of(FKT_CUDA_STEP_FROZEN_BACK, op, value);
        mask.side = BY_RESULT;
        mask.act = fkt_cuda_act_of(s->l->net->op[s->b.group[i].relu].kind);
        mask.y = s->buffer[value];
        mask.g = mask.d = g;
        FKT_TRY(fkt_cuda_learn_add_step(s, &mask));
    }
    if (fkt_op_reads_two(op)) FKT_TRY(emit_side(s, i, g, BY_SECOND));
    if (op->kind == FKT_OP_ADD && *first == FKT_NONE && s->b.needs[op->in[0]]) {
        *first = g; /* the same numbers, which nothing else reads from here on */
        return FKT_OK;
    }
    if (is_unary(op->kind) && *first == FKT_NONE && s->b.needs[op->in[0]]) {
        struct fkt_cuda_step k = fkt_cuda_step_of(FKT_CUDA_STEP_FROZEN_BACK, op, op->in[0]);
        k.x = s->buffer[op->in[0]];
        k.g = k.d = *first = g;
        return fkt_cuda_learn_add_step(s, &k);
    }
    FKT_TRY(emit_side(s, i, g, BY_FIRST));
out:
    return st;
}

fkt_status fkt_cuda_draft_frozen(struct fkt_cuda_draft *s)
{
    struct fkt_cuda_learn *l = s->l;
    const uint32_t last = (uint32_t)l->net->n_ops;
    fkt_status st = FKT_OK;
    for (uint32_t i = 0; i < last; i++)
        if (!can_differentiate(&l->net->op[i]))
            return fkt_fail(FKT_E_ARG, "operation %" PRIu32 " of the network (%s) has no backward on a card", i,
                            fkt_op_name(l->net->op[i].kind));
    for (uint32_t i = 0; i < last; i++)
        if (s->b.group[i].head != FKT_NONE) FKT_TRY(emit(s, s->b.group[i].head));
    l->n_ahead = l->n_steps;
    if (!s->b.needs[last]) return FKT_OK;
    FKT_TRY(fkt_cuda_draft_map(s, &l->dout_buffer, last));
    l->buffer[l->dout_buffer].first = l->buffer[l->dout_buffer].last = (uint32_t)l->n_ahead;
    s->b.gradient[last][0] = l->dout_buffer;
    for (uint32_t i = last; i-- > 0;)
        if (s->b.group[i].head != FKT_NONE) FKT_TRY(emit_back(s, s->b.group[i].head));
    l->din_buffer = s->b.gradient[0][0];
    if (l->din_buffer != FKT_NONE) l->buffer[l->din_buffer].last = (uint32_t)l->n_steps;
out:
    return st;
}

/* ---- running ---- */

fkt_status fkt_cuda_frozen_fold(struct fkt_cuda_learn *l)
{
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < l->n_norms && st == FKT_OK; i++) st = fkt_cuda_norm_fold(&l->norm[i], l->stream);
    return st;
}

static fkt_status forward(struct fkt_cuda_learn *l, const struct fkt_cuda_step *k)
{
    const struct fkt_op *op = k->op;
    const struct fkt_cuda_tensor x = fkt_cuda_learn_tensor(l, op->in[0], k->x);
    const struct fkt_cuda_tensor y = fkt_cuda_learn_tensor(l, k->value, k->y);
    const struct fkt_cuda_tensor z = fkt_cuda_learn_tensor(l, fkt_op_reads_two(op) ? op->in[1] : op->in[0], k->z);
    const enum fkt_cuda_act act = k->act;
    const float *weight = fkt_cuda_array_at(l, FKT_WEIGHT, op->weight);
    const float *bias = fkt_cuda_array_at(l, FKT_WEIGHT, op->bias);
    const int factor = (int)op->factor;
    switch (op->kind) {
    case FKT_OP_CONV:
        if (fkt_cuda_is_depthwise(l, op)) return fkt_cuda_depthwise(&y, &x, weight, bias, op, 0, act, l->stream);
        return fkt_cuda_product_run(l, k);
    case FKT_OP_LINEAR: return fkt_cuda_product_run(l, k);
    case FKT_OP_GLU: return fkt_cuda_glu(&y, &x, l->stream);
    case FKT_OP_UPSAMPLE: return fkt_cuda_upsample(&y, &x, factor, l->stream);
    case FKT_OP_SHUFFLE: return fkt_cuda_shuffle(&y, &x, factor, l->stream);
    case FKT_OP_UNSHUFFLE: return fkt_cuda_unshuffle(&y, &x, factor, l->stream);
    case FKT_OP_GROUP_MEAN: return fkt_cuda_group_mean(&y, &x, l->stream);
    case FKT_OP_REPEAT: return fkt_cuda_repeat(&y, &x, l->stream);
    case FKT_OP_RESIZE: return fkt_cuda_resize(&y, &x, l->stream);
    case FKT_OP_RMS_NORM: return fkt_cuda_rms_norm(&y, &x, weight, bias, op->value[0], NULL, act, l->stream);
    case FKT_OP_GROUP_NORM:
        return fkt_cuda_group_norm(&y, &x, weight, bias, op->value[0], (int)op->groups, act,
                                   fkt_cuda_learn_at(l, k->scratch), l->stream);
    case FKT_OP_BATCH_NORM:
        return fkt_cuda_channel_affine(&y, &x, l->norm[k->norm].a, l->norm[k->norm].b, act, l->stream);
    case FKT_OP_ADD: return fkt_cuda_add(&y, &x, &z, l->stream);
    case FKT_OP_CONCAT: return fkt_cuda_concat(&y, &x, &z, l->stream);
    case FKT_OP_MAX_POOL: return fkt_cuda_max_pool(&y, &x, op, l->stream);
    case FKT_OP_MEAN: return fkt_cuda_mean(&y, &x, l->stream);
    default: return fkt_cuda_unary(&y, &x, op, l->stream);
    }
}

/* A convolution replaces; where there is a gradient already, its own goes through the scratch. */
static fkt_status product_back(struct fkt_cuda_learn *l, const struct fkt_cuda_step *k)
{
    const struct fkt_cuda_tensor d = fkt_cuda_learn_tensor(l, k->value, k->d);
    const struct fkt_cuda_tensor between = fkt_cuda_learn_tensor(l, k->value, k->scratch);
    struct fkt_cuda_step to = *k;
    fkt_status st;
    if (k->more) to.d = k->scratch;
    st = fkt_cuda_product_run(l, &to);
    return st == FKT_OK && k->more ? fkt_cuda_pass_back(&d, &between, 1, l->stream) : st;
}

static fkt_status backward(struct fkt_cuda_learn *l, const struct fkt_cuda_step *k)
{
    const struct fkt_op *op = k->op;
    const uint32_t result = (uint32_t)(op - l->net->op) + 1;
    const struct fkt_cuda_tensor x = fkt_cuda_learn_tensor(l, op->in[0], k->x);
    const struct fkt_cuda_tensor g = fkt_cuda_learn_tensor(l, result, k->g);
    const struct fkt_cuda_tensor d = fkt_cuda_learn_tensor(l, k->value, k->d);
    const float *weight = fkt_cuda_array_at(l, FKT_WEIGHT, op->weight);
    const int factor = (int)op->factor, first = k->side == BY_SECOND ? x.c : 0;
    if (k->side == BY_RESULT) {
        const struct fkt_cuda_tensor y = fkt_cuda_learn_tensor(l, k->value, k->y);
        const struct fkt_op relu = {.kind = k->act == FKT_CUDA_ACT_RELU6 ? FKT_OP_RELU6 : FKT_OP_RELU};
        return fkt_cuda_unary_back(&d, &g, &y, &relu, 0, l->stream);
    }
    switch (op->kind) {
    case FKT_OP_CONV:
        if (fkt_cuda_is_depthwise(l, op)) return fkt_cuda_depthwise_back(&d, &g, weight, op, k->more, l->stream);
        return product_back(l, k);
    case FKT_OP_LINEAR: return product_back(l, k);
    case FKT_OP_GLU: return fkt_cuda_glu_back(&d, &g, &x, k->more, l->stream);
    case FKT_OP_UPSAMPLE: return fkt_cuda_upsample_back(&d, &g, factor, k->more, l->stream);
    case FKT_OP_SHUFFLE: return fkt_cuda_shuffle_back(&d, &g, factor, k->more, l->stream);
    case FKT_OP_UNSHUFFLE: return fkt_cuda_unshuffle_back(&d, &g, factor, k->more, l->stream);
    case FKT_OP_GROUP_MEAN: return fkt_cuda_group_mean_back(&d, &g, k->more, l->stream);
    case FKT_OP_REPEAT: return fkt_cuda_repeat_back(&d, &g, k->more, l->stream);
    case FKT_OP_RESIZE: return fkt_cuda_resize_back(&d, &g, k->more, l->stream);
    case FKT_OP_RMS_NORM: return fkt_cuda_rms_norm_back(&d, &g, &x, weight, op->value[0], k->more, l->stream);
    case FKT_OP_GROUP_NORM:
        return fkt_cuda_group_norm_back(&d, &g, &x, weight, op->value[0], (int)op->groups, k->more,
                                        fkt_cuda_learn_at(l, k->scratch), l->stream);
    case FKT_OP_BATCH_NORM: return fkt_cuda_channel_affine_back(&d, &g, l->norm[k->norm].a, k->more, l->stream);
    case FKT_OP_ADD: return fkt_cuda_pass_back(&d, &g, k->more, l->stream);
    case FKT_OP_CONCAT: return fkt_cuda_concat_back(&d, &g, first, k->more, l->stream);
    case FKT_OP_MAX_POOL: return fkt_cuda_max_pool_back(&d, &g, &x, op, k->more, l->stream);
    case FKT_OP_MEAN: return fkt_cuda_mean_back(&d, &g, k->more, l->stream);
    default: return fkt_cuda_unary_back(&d, &g, &x, op, k->more, l->stream);
    }
}

fkt_status fkt_cuda_frozen_run(struct fkt_cuda_learn *l, const struct fkt_cuda_step *k)
{
    return k->kind == FKT_CUDA_STEP_FROZEN ? forward(l, k) : backward(l, k);
}
