/* SPDX-License-Identifier: Apache-2.0 */
/* plan_conv.c - one convolution or linear map with the operations fused to it: which kernel computes it.
 *
 *   linear map, 1x1 convolution   cuBLASLt. In bf16 only without bias and SiLU: cuBLASLt adds a bias in bf16, not in
 *                                 float, and has no SiLU; a pass over the result costs as much as the product where
 *                                 it has eight times the channels (DC-AE), and cuDNN fuses both
 *   one group per channel         our kernel, with the gated unit that follows
 *   1x1 in groups                 our kernel
 *   all else                      cuDNN, with channels that are a multiple of what its units read: the input of the
 *                                 network is stored so, other values are copied; few output channels (an image's 3)
 *                                 are computed as more, with weights 0, and cropped unless they are the network's
 *                                 output
 *
 * Padding behind the map alone (pad_after): the library gets a window that is larger by pad_after, with zeros in its
 * first rows and columns, and pad_after more padding on all sides; the results are the same. */
#include "nn/cuda/plan.h"

#include <string.h>

/* A group while it becomes steps. */
struct work {
    uint32_t head;
    const struct fkt_op *op, *norm;
    const struct fkt_group *g;
    struct fkt_cuda_value x, add; /* add.buffer FKT_NONE: there is none */
    struct fkt_shape in, out;     /* of the convolution by itself */
    enum fkt_cuda_act act;
};

static struct work look(const struct fkt_cuda_draft *d, uint32_t head)
{
    const struct fkt_net *net = d->plan->net;
    struct work k = {.head = head, .op = &net->op[head], .g = &d->group[head]};
    k.norm = k.g->norm == FKT_NONE ? NULL : &net->op[k.g->norm];
    k.x = d->place[k.op->in[0]];
    k.in = d->shape[k.op->in[0]];
    k.out = d->shape[head + 1];
    k.add.buffer = FKT_NONE;
    if (k.g->add != FKT_NONE) k.add = d->place[fkt_group_addend(d->group, net, head)];
    if (k.g->after != FKT_NONE) k.act = fkt_cuda_act_of(net->op[k.g->after].kind);
    return k;
}

static int has_bias(const struct work *k) { return k->norm || k->op->bias != FKT_NO_SLOT; }

static int is_point(const struct fkt_op *op)
{
    return op->kernel == 1 && op->stride == 1 && op->pad == 0 && op->pad_after == 0;
}

static int is_depthwise(const struct work *k)
{
    return k->op->kind == FKT_OP_CONV && k->op->groups == k->in.c && k->op->channels == k->in.c;
}

static int by_product(const struct fkt_cuda_draft *d, const struct work *k)
{
    if (k->op->kind == FKT_OP_LINEAR) return 1;
    if (k->op->groups != 1 || !is_point(k->op)) return 0;
    return d->plan->spec.precision == FKT_PRECISION_F32 ||
           (!has_bias(k) && k->act != FKT_CUDA_ACT_SILU && k->act != FKT_CUDA_ACT_RELU6);
}

static fkt_status product(struct fkt_cuda_draft *d, const struct work *k, struct fkt_cuda_value *dst)
{
    const int linear = k->op->kind == FKT_OP_LINEAR, map = k->x.t.h * k->x.t.w;
    const int rows = k->x.t.n * (linear ? 1 : map), in = k->x.t.c * (linear ? map : 1);
    const struct fkt_cuda_gemm_spec spec = {.rows = rows,
                                            .in = in,
                                            .out = (int)k->out.c,
                                            .precision = d->plan->spec.precision,
                                            .bias = has_bias(k),
                                            .add = k->add.buffer != FKT_NONE,
                                            .act = k->act};
    const struct fkt_cuda_packing how = {.order = linear ? FKT_CUDA_LINEAR : FKT_CUDA_KRSC,
                                         .out = k->out.c,
                                         .in = (uint32_t)k->x.t.c,
                                         .h = linear ? k->in.h : 1,
                                         .w = linear ? k->in.w : 1};
    struct fkt_cuda_step s = fkt_cuda_draft_empty(FKT_CUDA_STEP_GEMM, k->op);
    fkt_status st;
    s.src[0] = k->x;
    s.src[1] = k->add;
    FKT_TRY(fkt_cuda_draft_value(d, dst, k->out, k->out.c));
    s.dst = *dst;
    FKT_TRY(fkt_cuda_plan_weights(d->plan, k->op, k->norm, &how, &s));
    FKT_TRY(fkt_cuda_gemm_new(&s.gemm, d->plan->device, &spec));
    FKT_TRY(fkt_cuda_draft_scratch(d, &s.scratch, fkt_cuda_gemm_workspace(s.gemm)));
    st = fkt_cuda_draft_step(d, &s);
    s.gemm = NULL;
out:
    fkt_cuda_gemm_free(s.gemm);
    return st;
}

/* The addition and the activation that a kernel did not do. */
static fkt_status epilogue(struct fkt_cuda_draft *d, const struct work *k, const struct fkt_cuda_value *at,
                           enum fkt_cuda_act act)
{
    struct fkt_cuda_step s = fkt_cuda_draft_empty(FKT_CUDA_STEP_EPILOGUE, k->op);
    if (k->add.buffer == FKT_NONE && act == FKT_CUDA_ACT_NONE) return FKT_OK;
    s.src[0] = s.dst = *at;
    s.src[1] = k->add;
    s.act = act;
    return fkt_cuda_draft_step(d, &s);
}

/* The gated unit of a group whose kernel did not do it. */
static fkt_status gated(struct fkt_cuda_draft *d, const struct work *k, struct fkt_cuda_value *dst)
{
    struct fkt_cuda_step s;
    struct fkt_shape to;
    fkt_status st;
    if (k->g->glu == FKT_NONE) return FKT_OK;
    s = fkt_cuda_draft_empty(FKT_CUDA_STEP_OP, &d->plan->net->op[k->g->glu]);
    to = d->shape[k->g->glu + 1];
    s.src[0] = *dst;
    FKT_TRY(fkt_cuda_draft_value(d, dst, to, to.c));
    s.dst = *dst;
    FKT_TRY(fkt_cuda_draft_step(d, &s));
out:
    return st;
}

/* Depthwise, or 1x1 in groups. */
static fkt_status own_kernel(struct fkt_cuda_draft *d, const struct work *k, struct fkt_cuda_value *dst)
{
    const int point = !is_depthwise(k);
    const struct fkt_cuda_packing how = {.order = point ? FKT_CUDA_FLOATS : FKT_CUDA_RSC,
                                         .out = k->out.c,
                                         .in = k->in.c / k->op->groups,
                                         .h = k->op->kernel,
                                         .w = k->op->kernel};
    const int glu = !point && k->g->glu != FKT_NONE;
    const struct fkt_shape to = glu ? d->shape[k->g->glu + 1] : k->out;
    const int inside = !point && k->add.buffer == FKT_NONE; /* the activation */
    struct fkt_cuda_step s = fkt_cuda_draft_empty(FKT_CUDA_STEP_OP, k->op);
    fkt_status st;
    s.src[0] = k->x;
    s.glu = glu;
    s.act = inside ? k->act : FKT_CUDA_ACT_NONE;
    FKT_TRY(fkt_cuda_draft_value(d, dst, to, to.c));
    s.dst = *dst;
    FKT_TRY(fkt_cuda_plan_weights(d->plan, k->op, k->norm, &how, &s));
    FKT_TRY(fkt_cuda_draft_step(d, &s));
    FKT_TRY(epilogue(d, k, dst, inside ? FKT_CUDA_ACT_NONE : k->act));
    if (!glu) FKT_TRY(gated(d, k, dst));
out:
    return st;
}

/* The convolution into a value with `c` channels; addition and activation inside where the channels are its own. */
static fkt_status convolve(struct fkt_cuda_draft *d, const struct work *k, uint32_t c, struct fkt_cuda_value *dst)
{
    const int whole = c == k->out.c || k->add.buffer == FKT_NONE;
    const struct fkt_cuda_conv_spec spec = {.n = k->x.t.n,
                                            .h = k->x.t.h,
                                            .w = k->x.t.w,
                                            .c = k->x.t.c,
                                            .k = (int)c,
                                            .kernel = (int)(k->op->kernel + k->op->pad_after),
                                            .stride = (int)k->op->stride,
                                            .pad = (int)(k->op->pad + k->op->pad_after),
                                            .groups = (int)k->op->groups,
                                            .precision = d->plan->spec.precision,
                                            .bias = has_bias(k),
                                            .add = whole && k->add.buffer != FKT_NONE,
                                            .act = whole ? k->act : FKT_CUDA_ACT_NONE};
    const struct fkt_cuda_packing how = {.order = FKT_CUDA_KRSC,
                                         .out = c,
                                         .in = (uint32_t)k->x.t.c / k->op->groups,
                                         .h = k->op->kernel + k->op->pad_after,
                                         .w = k->op->kernel + k->op->pad_after,
                                         .lead = k->op->pad_after};
    struct fkt_cuda_step s = fkt_cuda_draft_empty(FKT_CUDA_STEP_CONV, k->op);
    fkt_status st;
    s.src[0] = k->x;
    if (spec.add) s.src[1] = k->add;
    FKT_TRY(fkt_cuda_draft_value(d, dst, k->out, c));
    s.dst = *dst;
    FKT_TRY(fkt_cuda_plan_weights(d->plan, k->op, k->norm, &how, &s));
    FKT_TRY(fkt_cuda_conv_new(&s.conv, d->plan->device, &spec));
    FKT_TRY(fkt_cuda_draft_scratch(d, &s.scratch, fkt_cuda_conv_workspace(s.conv)));
    st = fkt_cuda_draft_step(d, &s);
    if (st == FKT_OK) s.conv = NULL;
out:
    fkt_cuda_conv_free(s.conv);
    return st;
}

static fkt_status crop(struct fkt_cuda_draft *d, const struct work *k, struct fkt_cuda_value *dst)
{
    struct fkt_cuda_step s = fkt_cuda_draft_empty(FKT_CUDA_STEP_CROP, k->op);
    fkt_status st;
    s.src[0] = *dst;
    FKT_TRY(fkt_cuda_draft_value(d, dst, k->out, k->out.c));
    s.dst = *dst;
    FKT_TRY(fkt_cuda_draft_step(d, &s));
out:
    return st;
}

/* The input with as many channels as cuDNN wants. */
static fkt_status widen(struct fkt_cuda_draft *d, struct work *k, uint32_t c)
{
    struct fkt_cuda_step s = fkt_cuda_draft_empty(FKT_CUDA_STEP_WIDEN, k->op);
    fkt_status st;
    s.src[0] = k->x;
    FKT_TRY(fkt_cuda_draft_value(d, &k->x, k->in, c));
    s.dst = k->x;
    FKT_TRY(fkt_cuda_draft_step(d, &s));
out:
    return st;
}

static fkt_status by_cudnn(struct fkt_cuda_draft *d, struct work *k, struct fkt_cuda_value *dst)
{
    const enum fkt_precision precision = d->plan->spec.precision;
    const uint32_t own = k->out.c, in = (uint32_t)fkt_cuda_conv_channels(k->x.t.c, precision);
    uint32_t c = own;
    fkt_status st = FKT_OK;
    if (k->op->groups == 1) {
        c = (uint32_t)fkt_cuda_conv_channels((int)own, precision);
        if (in != (uint32_t)k->x.t.c) FKT_TRY(widen(d, k, in));
    }
    FKT_TRY(convolve(d, k, c, dst));
    if (c != own && (k->g->end + 1 != d->plan->net->n_ops || k->add.buffer != FKT_NONE)) FKT_TRY(crop(d, k, dst));
    if (c != own && k->add.buffer != FKT_NONE) FKT_TRY(epilogue(d, k, dst, k->act));
    FKT_TRY(gated(d, k, dst));
out:
    return st;
}

fkt_status fkt_cuda_draft_conv(struct fkt_cuda_draft *d, uint32_t head)
{
    struct work k = look(d, head);
    const struct fkt_op *op = k.op;
    struct fkt_cuda_value dst;
    fkt_status st;
    if (by_product(d, &k)) FKT_TRY(product(d, &k, &dst));
    else if (op->groups > 1 && (is_depthwise(&k) || is_point(op))) FKT_TRY(own_kernel(d, &k, &dst));
    else FKT_TRY(by_cudnn(d, &k, &dst));
    d->place[k.g->end + 1] = dst;
    d->plan->facts->convolutions++;
out:
    return st;
}
