/* SPDX-License-Identifier: Apache-2.0 */
/* learn_product.c - convolutions and linear maps of a learner, in three directions: which library call, and its
 * operands. A linear map reads a value as one row per image: its weights lie in the order of the value (pixels, then
 * channels), padding included. In a frozen network a convolution in groups is one without, whose further weights are
 * zeros, and pad_after is as in plan_conv.c; depthwise convolutions are not here (learn_frozen.c). */
#include "nn/cuda/learn.h"

void fkt_cuda_product_free(struct fkt_cuda_product *p)
{
    fkt_cuda_conv_free(p->conv);
    fkt_cuda_gemm_free(p->gemm);
    *p = (struct fkt_cuda_product){NULL, NULL};
}

static fkt_status make(struct fkt_cuda_product *out, struct fkt_cuda_learn *l, uint32_t i, enum fkt_cuda_way way,
                       enum fkt_cuda_act act, size_t *workspace)
{
    const struct fkt_op *op = &l->net->op[i];
    const struct fkt_shape x = l->shape[op->in[0]], y = l->shape[i + 1];
    const int c = (int)fkt_cuda_padded(l, x.c), k = (int)fkt_cuda_padded(l, y.c);
    const int bias = way == FKT_CUDA_FORWARD && op->bias != FKT_NO_SLOT;
    fkt_status st;
    if (op->kind == FKT_OP_CONV) {
        const struct fkt_cuda_conv_spec s = {.n = (int)l->spec.batch,
                                             .h = (int)x.h,
                                             .w = (int)x.w,
                                             .c = c,
                                             .k = k,
                                             .kernel = (int)(op->kernel + op->pad_after),
                                             .stride = (int)op->stride,
                                             .pad = (int)(op->pad + op->pad_after),
                                             .groups = 1,
                                             .precision = l->spec.precision,
                                             .way = way,
                                             .bias = bias,
                                             .act = act};
        FKT_TRY(fkt_cuda_conv_new(&out->conv, l->device, &s));
        *workspace = fkt_cuda_conv_workspace(out->conv);
    } else {
        const struct fkt_cuda_gemm_spec s = {.rows = (int)l->spec.batch,
                                             .in = (int)x.h * (int)x.w * c,
                                             .out = k,
                                             .precision = l->spec.precision,
                                             .way = way,
                                             .bias = bias,
                                             .act = act};
        FKT_TRY(fkt_cuda_gemm_new(&out->gemm, l->device, &s));
        *workspace = fkt_cuda_gemm_workspace(out->gemm);
    }
out:
    return st;
}

fkt_status fkt_cuda_product_new(struct fkt_cuda_product *out, struct fkt_cuda_learn *l, uint32_t i,
                                enum fkt_cuda_way way, enum fkt_cuda_act act)
{
    size_t workspace = 0;
    fkt_status st;
    *out = (struct fkt_cuda_product){NULL, NULL};
    st = make(out, l, i, way, act, &workspace);
    if (workspace > l->workspace_bytes[way == FKT_CUDA_BACK_WEIGHTS])
        l->workspace_bytes[way == FKT_CUDA_BACK_WEIGHTS] = workspace;
    return st == FKT_OK
               ? FKT_OK
               : fkt_fail_in(st, "operation %u of the network (%s)", (unsigned)i, fkt_op_name(l->net->op[i].kind));
}

static void *weights_of(const struct fkt_cuda_learn *l, uint32_t slot)
{
    if (l->spec.precision == FKT_PRECISION_BF16) return l->copies + l->array[slot].offset;
    return fkt_cuda_array_at(l, FKT_WEIGHT, slot);
}

fkt_status fkt_cuda_product_run(const struct fkt_cuda_learn *l, const struct fkt_cuda_step *k)
{
    const uint32_t slot = k->op->weight;
    const float *bias = NULL;
    cudaStream_t stream = fkt_cuda_stream_of(l, k);
    void *w, *x, *y, *workspace = l->workspace[k->way == FKT_CUDA_BACK_WEIGHTS];
    if (k->way == FKT_CUDA_FORWARD) {
        w = weights_of(l, slot);
        bias = fkt_cuda_array_at(l, FKT_WEIGHT, k->op->bias);
        x = fkt_cuda_learn_at(l, k->x);
        y = fkt_cuda_learn_at(l, k->y);
    } else if (k->way == FKT_CUDA_BACK_DATA) {
        w = weights_of(l, slot);
        x = fkt_cuda_learn_at(l, k->d);
        y = fkt_cuda_learn_at(l, k->g);
    } else {
        w = fkt_cuda_array_at(l, FKT_GRADIENT, slot);
        x = fkt_cuda_learn_at(l, k->x);
        y = fkt_cuda_learn_at(l, k->g);
    }
    if (k->product.conv) return fkt_cuda_conv_run(k->product.conv, x, w, bias, NULL, y, workspace, stream);
    return fkt_cuda_gemm_run(k->product.gemm, x, w, bias, NULL, y, workspace, stream);
}
