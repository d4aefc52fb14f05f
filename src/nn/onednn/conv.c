/* SPDX-License-Identifier: Apache-2.0 */
/* conv.c - one convolution (or linear map) with the operations fused to it: chooses algorithm and layout.
 *
 * Candidates are tried in a fixed order, and the first with a real kernel in the library is used. Nothing is timed, so
 * that the same network gets the same kernels, and so the same bits, on every run of one machine.
 *
 *   0. In four phases, for few output channels on a large map. Each vector lane computes one output channel, so three
 *      channels leave 13 of 16 lanes idle. Instead, a 4x4 window of stride 2 computes 2x2 pixels at once as 12
 *      channels, and a shuffle moves them to their pixels: 64 to 3 channels at 32x32, four images: 0.68 -> 0.25 ms.
 *   1. Winograd, by the rule below. Its kernels can fuse a sum and a ReLU; a ReLU6 or SiLU becomes its own step.
 *   2. Direct, with everything fused.
 *   3. Direct, bare, from NCHW, in NHWC, or in NCHW, with copies around it and the sum and activation as steps.
 *   4. In a low-memory plan, the same with packed weights: tiny maps have no other kernel. */
#include "nn/onednn/plan.h"

#include <string.h>

/* Winograd F(4,3) needs f32, AVX-512, blocks of 16, 3x3, stride 1, pad 1, one group. It needs a quarter of the
 * multiplications, at the cost of transforms (which matter for few channels) and of weights four times as large, each
 * read once per batch (which matters for small maps). Measured on a Xeon of the Sapphire Rapids family, one thread,
 * batch 16, GFLOP/s counted as direct convolution, direct / Winograd:
 *
 *   channels      4x4      8x8      16x16    32x32         channels       2x2      4x4      8x8
 *   32 ->   16  102/134  140/139  145/132  114/118         512 ->  512  104/48   135/187  150/298
 *   32 ->   64  131/202  136/184  133/200  106/139        1024 ->  512   94/46   130/176  115/275
 *   64 ->   64  149/264  159/281  145/265  136/253        1024 -> 2048   91/46   127/195  142/275
 *
 * So it is used from 32 input and output channels on, on maps above 2x2. On 4x4 maps wide convolutions gain little (at
 * batch 8 nothing) and would cost hundreds of megabytes: there it is used only while the weights are small. */
static int winograd_pays(const struct fkt_dnn_conv *k)
{
    size_t packed = (size_t)36 * k->in_c * k->out_c * sizeof(float);
    uint32_t side = k->out_h > k->out_w ? k->out_h : k->out_w;
    if (k->precision != FKT_PRECISION_F32 || k->in_layout != FKT_BLOCK16 || k->out_layout != FKT_BLOCK16) return 0;
    if (k->kernel_h != 3 || k->kernel_w != 3 || k->stride != 1 || k->pad != 1 || k->pad_after || k->groups != 1)
        return 0;
    if (k->in_c < 32 || k->out_c < 32 || side <= 2) return 0;
    return side > 4 || packed <= (size_t)16 << 20;
}

static void describe(const struct fkt_draft *d, uint32_t head, struct fkt_dnn_conv *k)
{
    const struct fkt_plan *p = d->plan;
    const struct fkt_op *op = &p->net->op[head];
    struct fkt_shape x = d->shape[op->in[0]], y = d->shape[head + 1];
    int linear = op->kind == FKT_OP_LINEAR; /* a window as large as the map */
    memset(k, 0, sizeof *k);
    k->batch = p->spec.batch;
    k->in_c = x.c;
    k->in_h = x.h;
    k->in_w = x.w;
    k->out_c = y.c;
    k->out_h = y.h;
    k->out_w = y.w;
    k->kernel_h = linear ? x.h : op->kernel;
    k->kernel_w = linear ? x.w : op->kernel;
    k->stride = linear ? 1 : op->stride;
    k->pad = linear ? 0 : op->pad;
    k->pad_after = linear ? 0 : op->pad_after;
    k->groups = linear ? 1 : op->groups;
    k->in_layout = k->out_layout = p->layout;
    if (d->place[op->in[0]].act.block != fkt_dnn_block(p->layout, x.c)) k->in_layout = FKT_NCHW;
    k->precision = p->spec.precision;
    k->plain = p->layout == FKT_NCHW;
    k->bias = op->bias != FKT_NO_SLOT || d->group[head].norm != FKT_NONE;
}

static enum fkt_dnn_after after_of(const struct fkt_draft *d, uint32_t head)
{
    uint32_t after = d->group[head].after;
    if (after == FKT_NONE) return FKT_AFTER_NONE;
    return fkt_draft_after_kind(d->plan->net->op[after].kind);
}

static uint32_t addend(const struct fkt_draft *d, uint32_t head)
{
    return fkt_group_addend(d->group, d->plan->net, head);
}

/* Candidates 1 and 2: *k describes what *out was made for. */
static fkt_status fused(const struct fkt_draft *d, uint32_t head, struct fkt_dnn_conv *k, struct fkt_dnn_prim **out)
{
    enum fkt_dnn_after after = after_of(d, head);
    fkt_status st = FKT_OK;
    *out = NULL;
    k->sum = d->group[head].add != FKT_NONE;
    if (winograd_pays(k)) {
        k->winograd = 1;
        k->after = after == FKT_AFTER_RELU ? after : FKT_AFTER_NONE;
        FKT_TRY(fkt_dnn_conv_new(out, k));
        if (*out) goto out;
        k->winograd = 0;
    }
    k->after = after;
    FKT_TRY(fkt_dnn_conv_new(out, k));
out:
    return st;
}

/* Candidates 3 and 4. */
static fkt_status bare(struct fkt_dnn_conv *k, struct fkt_dnn_prim **out)
{
    const enum fkt_dnn_layout blocks = fkt_dnn_isa() >= FKT_ISA_AVX512 ? FKT_BLOCK16 : FKT_BLOCK8;
    const enum fkt_dnn_layout way[6][2] = {{FKT_NCHW, k->out_layout}, {FKT_NHWC, FKT_NHWC}, {FKT_NCHW, FKT_NCHW},
                                           {blocks, blocks},          {FKT_NHWC, FKT_NHWC}, {FKT_NCHW, blocks}};
    const int ways = k->plain ? 6 : 3;
    fkt_status st = FKT_OK;
    *out = NULL;
    k->sum = 0;
    k->after = FKT_AFTER_NONE;
    for (int i = 0; i < ways && !*out; i++) {
        if (i == 3) k->plain = 0;
        k->in_layout = way[i][0];
        k->out_layout = way[i][1];
        FKT_TRY(fkt_dnn_conv_new(out, k));
    }
    if (!*out)
        st = fkt_fail(FKT_E_ARG, "oneDNN has no kernel for a convolution of %u to %u channels, window %u x %u", k->in_c,
                      k->out_c, k->kernel_h, k->kernel_w);
out:
    return st;
}

/* Where the result goes: over the addend when nothing else needs it, else over a copy of it, else anywhere. */
static fkt_status destination(struct fkt_draft *d, uint32_t head, int sum, struct fkt_value_place *dst)
{
    const struct fkt_group *g = &d->group[head];
    const struct fkt_value_place *other, *src = &d->place[d->plan->net->op[head].in[0]];
    fkt_status st;
    if (sum) {
        other = &d->place[addend(d, head)];
        if (fkt_draft_dead(d, addend(d, head), g->end) && other->buffer != src->buffer &&
            other->act.block == fkt_dnn_block(d->plan->layout, other->act.c)) {
            *dst = *other;
            return FKT_OK;
        }
    }
    FKT_TRY(fkt_draft_value(d, dst, d->shape[head + 1], d->plan->layout));
    if (sum) FKT_TRY(fkt_draft_copy(d, dst, &d->place[addend(d, head)]));
out:
    return st;
}

/* The step itself; takes ownership of prim. */
static fkt_status step(struct fkt_draft *d, uint32_t head, int phases, struct fkt_dnn_prim *prim,
                       const struct fkt_value_place *src, const struct fkt_value_place *dst)
{
    const struct fkt_op *op = d->plan->net->op;
    const struct fkt_group *g = &d->group[head];
    struct fkt_step s = {.kind = FKT_STEP_CALL, .op = &op[head], .src = {*src, {.buffer = FKT_NONE}}, .dst = *dst};
    fkt_status st;
    FKT_TRY(fkt_draft_scratch(d, &s.scratch, fkt_dnn_scratch_bytes(prim)));
    FKT_TRY(fkt_plan_weights(d->plan, &op[head], g->norm == FKT_NONE ? NULL : &op[g->norm], phases, prim, &s));
    s.prim = prim;
    prim = NULL;
    FKT_TRY(fkt_draft_step(d, &s));
out:
    fkt_dnn_prim_free(prim);
    return st;
}

/* The sum and the activation of a group whose convolution is not fused. */
static fkt_status sum_and_activation(struct fkt_draft *d, uint32_t head, const struct fkt_value_place *x)
{
    enum fkt_dnn_after after = after_of(d, head);
    fkt_status st = FKT_OK;
    if (d->group[head].add != FKT_NONE) {
        struct fkt_step s = {.kind = FKT_STEP_GLUE, .op = &d->plan->net->op[d->group[head].add], .dst = *x};
        s.src[0] = *x;
        s.src[1] = d->place[addend(d, head)];
        s.scratch = FKT_NONE;
        FKT_TRY(fkt_draft_step(d, &s));
    }
    if (after) FKT_TRY(fkt_draft_after(d, x, x, after));
out:
    return st;
}

static fkt_status unfused(struct fkt_draft *d, uint32_t head, struct fkt_dnn_conv *k, struct fkt_value_place *dst)
{
    struct fkt_value_place src = d->place[d->plan->net->op[head].in[0]], to;
    struct fkt_shape x = {k->in_c, k->in_h, k->in_w}, y = {k->out_c, k->out_h, k->out_w};
    struct fkt_dnn_prim *prim = NULL;
    fkt_status st;
    FKT_TRY(bare(k, &prim));
    FKT_TRY(fkt_draft_value(d, dst, y, d->plan->layout));
    to = *dst;
    if (src.act.block != fkt_dnn_block(k->in_layout, x.c)) {
        struct fkt_value_place from = src;
        FKT_TRY(fkt_draft_value(d, &src, x, k->in_layout));
        FKT_TRY(fkt_draft_copy(d, &src, &from));
    }
    if (to.act.block != fkt_dnn_block(k->out_layout, y.c)) FKT_TRY(fkt_draft_value(d, &to, y, k->out_layout));
    st = step(d, head, 0, prim, &src, &to);
    prim = NULL;
    if (st != FKT_OK) goto out;
    if (to.buffer != dst->buffer) FKT_TRY(fkt_draft_copy(d, dst, &to));
    FKT_TRY(sum_and_activation(d, head, dst));
out:
    fkt_dnn_prim_free(prim);
    return st;
}

static int phases_pay(const struct fkt_draft *d, uint32_t head, const struct fkt_dnn_conv *k)
{
    enum fkt_dnn_layout l = k->out_layout;
    if (k->precision != FKT_PRECISION_F32 || k->in_layout != l || (l != FKT_BLOCK16 && l != FKT_BLOCK8)) return 0;
    if (k->kernel_h != 3 || k->kernel_w != 3 || k->stride != 1 || k->pad != 1 || k->pad_after || k->groups != 1)
        return 0;
    if (k->out_c > (uint32_t)l / 4 || k->in_c < 16 || d->group[head].add != FKT_NONE) return 0;
    return k->out_h % 2 == 0 && k->out_w % 2 == 0 && k->out_h * k->out_w >= 256;
}

/* *done = 0 where the library has no kernel for it. */
static fkt_status in_phases(struct fkt_draft *d, uint32_t head, struct fkt_dnn_conv k, struct fkt_value_place *dst,
                            int *done)
{
    static const struct fkt_op shuffle = {.kind = FKT_OP_SHUFFLE, .factor = 2};
    struct fkt_step s = {.kind = FKT_STEP_GLUE, .op = &shuffle, .scratch = FKT_NONE};
    struct fkt_dnn_prim *prim = NULL;
    fkt_status st;
    *done = 0;
    k.kernel_h = k.kernel_w = 4;
    k.stride = 2;
    k.out_c *= 4;
    k.out_h /= 2;
    k.out_w /= 2;
    k.after = after_of(d, head);
    FKT_TRY(fkt_dnn_conv_new(&prim, &k));
    if (!prim) goto out;
    s.src[1].buffer = FKT_NONE;
    FKT_TRY(fkt_draft_value(d, &s.src[0], (struct fkt_shape){k.out_c, k.out_h, k.out_w}, k.out_layout));
    st = step(d, head, 1, prim, &d->place[d->plan->net->op[head].in[0]], &s.src[0]);
    prim = NULL;
    if (st != FKT_OK) goto out;
    FKT_TRY(fkt_draft_value(d, dst, d->shape[head + 1], k.out_layout));
    s.dst = *dst;
    FKT_TRY(fkt_draft_step(d, &s));
    *done = 1;
out:
    fkt_dnn_prim_free(prim);
    return st;
}

static fkt_status whole(struct fkt_draft *d, uint32_t head, struct fkt_dnn_conv *k, struct fkt_value_place *dst)
{
    const struct fkt_value_place src = d->place[d->plan->net->op[head].in[0]];
    enum fkt_dnn_after after = after_of(d, head);
    struct fkt_dnn_prim *prim = NULL;
    fkt_status st;
    FKT_TRY(fused(d, head, k, &prim));
    if (!prim) return unfused(d, head, k, dst);
    FKT_TRY(destination(d, head, k->sum, dst));
    st = step(d, head, 0, prim, &src, dst);
    prim = NULL;
    if (st != FKT_OK) goto out;
    if (k->after != after) FKT_TRY(fkt_draft_after(d, dst, dst, after));
out:
    fkt_dnn_prim_free(prim);
    return st;
}

fkt_status fkt_draft_conv(struct fkt_draft *d, uint32_t head)
{
    struct fkt_dnn_conv k;
    struct fkt_value_place dst;
    int done = 0;
    fkt_status st;
    describe(d, head, &k);
    if (phases_pay(d, head, &k)) FKT_TRY(in_phases(d, head, k, &dst, &done));
    if (!done) FKT_TRY(whole(d, head, &k, &dst));
    d->place[d->group[head].end + 1] = dst;
    d->plan->facts->convolutions++;
    d->plan->facts->winograd += (uint32_t)k.winograd;
out:
    return st;
}
