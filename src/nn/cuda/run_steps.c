/* SPDX-License-Identifier: Apache-2.0 */
/* run_steps.c - queues the steps of a plan on a stream, one by one, and the checks of a plan's first batch.
 *
 * The checks are those of nn/onednn/check_finite.c: numbers are checked where they are made, since a ReLU turns NaN
 * into 0 and a norm divides by infinity; operations fused to a convolution hide its sums, so those are bounded:
 * |sum| <= largest input * largest weight * number of terms + largest bias. */
#include "nn/cuda/kernels.h"
#include "nn/cuda/kernels_check.h"
#include "nn/cuda/kernels_pad.h"
#include "nn/cuda/plan.h"

#include <math.h>

#define LIMIT 1e36F

static void *at(const struct fkt_cuda_plan *p, uint32_t buffer, char *arena)
{
    return buffer == FKT_NONE ? NULL : arena + p->buffer[buffer].offset;
}

static void *in_block(const struct fkt_cuda_plan *p, size_t offset)
{
    return offset == FKT_CUDA_NOWHERE ? NULL : (char *)p->block + offset;
}

struct fkt_cuda_tensor fkt_cuda_value_at(const struct fkt_cuda_plan *p, const struct fkt_cuda_value *v, char *arena)
{
    struct fkt_cuda_tensor t = v->t;
    t.data = at(p, v->buffer, arena);
    return t;
}

/* A kernel of kernels.h: everything but convolutions and linear maps that the libraries compute. */
static fkt_status kernel(const struct fkt_cuda_plan *p, const struct fkt_cuda_step *s, char *arena, cudaStream_t stream)
{
    const struct fkt_op *op = s->op;
    const struct fkt_cuda_tensor y = fkt_cuda_value_at(p, &s->dst, arena), a = fkt_cuda_value_at(p, &s->src[0], arena),
                                 b = fkt_cuda_value_at(p, &s->src[1], arena);
    const float *w = in_block(p, s->weights), *bias = in_block(p, s->bias);
    const int groups = (int)op->groups, factor = (int)op->factor;
    switch (op->kind) {
    case FKT_OP_RELU:
    case FKT_OP_RELU6:
    case FKT_OP_SILU:
    case FKT_OP_SOFT_CLAMP:
    case FKT_OP_AFFINE: return fkt_cuda_unary(&y, &a, op, stream);
    case FKT_OP_GLU: return fkt_cuda_glu(&y, &a, stream);
    case FKT_OP_UPSAMPLE: return fkt_cuda_upsample(&y, &a, factor, stream);
    case FKT_OP_SHUFFLE: return fkt_cuda_shuffle(&y, &a, factor, stream);
    case FKT_OP_UNSHUFFLE: return fkt_cuda_unshuffle(&y, &a, factor, stream);
    case FKT_OP_GROUP_MEAN: return fkt_cuda_group_mean(&y, &a, stream);
    case FKT_OP_REPEAT: return fkt_cuda_repeat(&y, &a, stream);
    case FKT_OP_RMS_NORM: return fkt_cuda_rms_norm(&y, &a, w, bias, op->value[0], b.data, s->act, stream);
    case FKT_OP_GROUP_NORM:
        return fkt_cuda_group_norm(&y, &a, w, bias, op->value[0], groups, s->act, at(p, s->scratch, arena), stream);
    case FKT_OP_BATCH_NORM: return fkt_cuda_channel_affine(&y, &a, w, bias, s->act, stream);
    case FKT_OP_ATTENTION: return fkt_cuda_attention(&y, &a, groups, op->value[0], stream);
    case FKT_OP_ADD: return fkt_cuda_add(&y, &a, &b, stream);
    case FKT_OP_CONCAT: return fkt_cuda_concat(&y, &a, &b, stream);
    case FKT_OP_MAX_POOL: return fkt_cuda_max_pool(&y, &a, op, stream);
    case FKT_OP_MEAN: return fkt_cuda_mean(&y, &a, stream);
    case FKT_OP_RESIZE: return fkt_cuda_resize(&y, &a, stream);
    case FKT_OP_CONV:
        if (groups != a.c || op->channels != op->groups) return fkt_cuda_grouped(&y, &a, w, bias, groups, stream);
        return fkt_cuda_depthwise(&y, &a, w, bias, op, s->glu, s->act, stream);
    case FKT_OP_LINEAR:
    case FKT_OP_KINDS: break;
    }
    return fkt_fail(FKT_E_STATE, "a step has no kernel: %s", fkt_op_name(op->kind));
}

fkt_status fkt_cuda_step_run(const struct fkt_cuda_plan *p, const struct fkt_cuda_step *s, char *arena,
                             cudaStream_t stream)
{
    const struct fkt_cuda_tensor y = fkt_cuda_value_at(p, &s->dst, arena), a = fkt_cuda_value_at(p, &s->src[0], arena),
                                 b = fkt_cuda_value_at(p, &s->src[1], arena);
    void *w = in_block(p, s->weights), *scratch = at(p, s->scratch, arena);
    const float *bias = in_block(p, s->bias);
    switch (s->kind) {
    case FKT_CUDA_STEP_OP: return kernel(p, s, arena, stream);
    case FKT_CUDA_STEP_CONV: return fkt_cuda_conv_run(s->conv, a.data, w, bias, b.data, y.data, scratch, stream);
    case FKT_CUDA_STEP_GEMM: return fkt_cuda_gemm_run(s->gemm, a.data, w, bias, b.data, y.data, scratch, stream);
    case FKT_CUDA_STEP_EPILOGUE: return fkt_cuda_epilogue(&y, NULL, b.data, s->act, stream);
    case FKT_CUDA_STEP_WIDEN: return fkt_cuda_widen(&y, &a, stream);
    case FKT_CUDA_STEP_CROP: return fkt_cuda_concat_back(&y, &a, 0, 0, stream);
    case FKT_CUDA_STEP_DOWN: return fkt_cuda_unshuffle_mean_add(&y, &a, &b, (int)s->op->factor, stream);
    case FKT_CUDA_STEP_UP: return fkt_cuda_repeat_shuffle_add(&y, &a, &b, (int)s->op->factor, stream);
    }
    return fkt_fail(FKT_E_STATE, "a step of no kind");
}

fkt_status fkt_cuda_step_check_before(const struct fkt_cuda_plan *p, const struct fkt_cuda_step *s, char *arena,
                                      int *bad, cudaStream_t stream)
{
    const struct fkt_cuda_tensor x = fkt_cuda_value_at(p, &s->src[0], arena);
    float limit = LIMIT;
    if (!(s->reach <= LIMIT && s->most <= LIMIT)) limit = -1; /* a weight or a bias is too large for any input */
    else if (s->reach > 0) limit = (LIMIT - s->most) / s->reach;
    if (s->kind == FKT_CUDA_STEP_OP && s->op->kind == FKT_OP_RMS_NORM) limit = 1e18F / sqrtf((float)x.c);
    if (limit > LIMIT) limit = LIMIT;
    return fkt_cuda_check_range(&x, limit, bad, stream);
}

fkt_status fkt_cuda_step_check_after(const struct fkt_cuda_plan *p, const struct fkt_cuda_step *s, char *arena,
                                     int *bad, cudaStream_t stream)
{
    const struct fkt_cuda_tensor y = fkt_cuda_value_at(p, &s->dst, arena);
    return fkt_cuda_check_range(&y, LIMIT, bad, stream);
}
