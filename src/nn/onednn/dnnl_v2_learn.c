/* SPDX-License-Identifier: Apache-2.0 */
/* dnnl_v2_learn.c - learn_shim.h on oneDNN 2.x.
 *
 * Source: oneDNN 2.6 developer guide (convolution, pooling and reorder; "training": a backward primitive is described
 * with its forward one as a hint, so that the two agree). What version 3 changes is all here, as in dnnl_v2.c.
 *
 * Weights have no layout of their own: each primitive is asked which one it likes best, and fkt_dnn_same_weights says
 * where two agree (on AVX-512 in f32 all do but direct backward-data). */
#include "nn/onednn/dnnl_v2.h"
#include "nn/onednn/learn_shim.h"

#include "base/alloc.h"

#include <stdio.h>

struct fkt_dnn_task {
    dnnl_primitive_t primitive;
    dnnl_stream_t stream;
    dnnl_memory_desc_t desc[FKT_SIDES]; /* ndims 0: no such side */
    int arg[FKT_SIDES];                 /* the library's name of a side */
    dnnl_memory_t memory[FKT_SIDES];
    char kernel[64];
};

void fkt_dnn_task_free(struct fkt_dnn_task *t)
{
    if (!t) return;
    for (int i = 0; i < FKT_SIDES; i++)
        if (t->memory[i]) dnnl_memory_destroy(t->memory[i]);
    if (t->stream) dnnl_stream_destroy(t->stream);
    if (t->primitive) dnnl_primitive_destroy(t->primitive);
    fkt_free(t);
}

static void name_sides(struct fkt_dnn_task *t, enum fkt_dnn_way way)
{
    int data = way == FKT_WAY_DATA, back = way != FKT_WAY_FORWARD;
    t->arg[FKT_AT_SRC] = data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC;
    t->arg[FKT_AT_DST] = back ? DNNL_ARG_DIFF_DST : DNNL_ARG_DST;
    t->arg[FKT_AT_WEIGHTS] = way == FKT_WAY_WEIGHTS ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS;
    t->arg[FKT_AT_BIAS] = way == FKT_WAY_WEIGHTS ? DNNL_ARG_DIFF_BIAS : DNNL_ARG_BIAS;
    t->arg[FKT_AT_KEEP] = DNNL_ARG_WORKSPACE;
    t->arg[FKT_AT_SCRATCH] = DNNL_ARG_SCRATCHPAD;
}

static dnnl_status_t own_scratch(dnnl_primitive_attr_t *out)
{
    dnnl_status_t s = dnnl_primitive_attr_create(out);
    return s == dnnl_success ? dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user) : s;
}

static fkt_status finish(struct fkt_dnn_task *t, const_dnnl_primitive_desc_t pd)
{
    const char *kernel = "";
    const dnnl_memory_desc_t *scratch = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    fkt_status st;
    DNN_TRY(dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &kernel), "name a kernel");
    snprintf(t->kernel, sizeof t->kernel, "%s", kernel);
    if (scratch) t->desc[FKT_AT_SCRATCH] = *scratch;
    DNN_TRY(dnnl_primitive_create(&t->primitive, pd), "make an operation");
    DNN_TRY(dnnl_stream_create(&t->stream, fkt_dnn_engine(), dnnl_stream_default_flags), "open a stream");
out:
    return st;
}

/* Source, result and bias as they are; weights as the library likes them. */
static dnnl_status_t conv_sides(struct fkt_dnn_task *t, const struct fkt_dnn_conv *k, dnnl_memory_desc_t *weights)
{
    dnnl_dims_t in = {k->batch, k->in_c, k->in_h, k->in_w}, to = {k->batch, k->out_c, k->out_h, k->out_w};
    dnnl_dims_t w = {k->out_c, k->in_c, k->kernel_h, k->kernel_w}, vector = {k->out_c};
    dnnl_data_type_t type = fkt_dnn_type(k->precision);
    dnnl_status_t s;
    if ((s = dnnl_memory_desc_init_by_tag(&t->desc[FKT_AT_SRC], 4, in, type, fkt_dnn_tag(k->in_layout)))) return s;
    if ((s = dnnl_memory_desc_init_by_tag(&t->desc[FKT_AT_DST], 4, to, type, fkt_dnn_tag(k->out_layout)))) return s;
    if (k->bias && (s = dnnl_memory_desc_init_by_tag(&t->desc[FKT_AT_BIAS], 1, vector, dnnl_f32, dnnl_x))) return s;
    return dnnl_memory_desc_init_by_tag(weights, 4, w, type, dnnl_format_tag_any);
}

static dnnl_status_t conv_descs(struct fkt_dnn_task *t, const struct fkt_dnn_conv *k, enum fkt_dnn_way way,
                                dnnl_convolution_desc_t *ahead, dnnl_convolution_desc_t *back)
{
    dnnl_dims_t strides = {k->stride, k->stride}, pads = {k->pad, k->pad};
    dnnl_alg_kind_t algorithm = k->winograd ? dnnl_convolution_winograd : dnnl_convolution_direct;
    const dnnl_memory_desc_t *src = &t->desc[FKT_AT_SRC], *dst = &t->desc[FKT_AT_DST];
    const dnnl_memory_desc_t *bias = k->bias ? &t->desc[FKT_AT_BIAS] : NULL;
    dnnl_memory_desc_t weights;
    dnnl_status_t s;
    if ((s = conv_sides(t, k, &weights))) return s;
    s = dnnl_convolution_forward_desc_init(ahead, dnnl_forward_training, algorithm, src, &weights, bias, dst, strides,
                                           pads, pads);
    if (s || way == FKT_WAY_FORWARD) return s;
    if (way == FKT_WAY_DATA)
        return dnnl_convolution_backward_data_desc_init(back, algorithm, src, &weights, dst, strides, pads, pads);
    weights.data_type = dnnl_f32;
    return dnnl_convolution_backward_weights_desc_init(back, algorithm, src, &weights, bias, dst, strides, pads, pads);
}

fkt_status fkt_dnn_task_conv(struct fkt_dnn_task **out, const struct fkt_dnn_conv *want, enum fkt_dnn_way way)
{
    dnnl_query_t wanted = way == FKT_WAY_WEIGHTS ? dnnl_query_diff_weights_md : dnnl_query_weights_md;
    struct fkt_dnn_task *t = NULL;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t hint = NULL, pd = NULL;
    dnnl_convolution_desc_t ahead, back;
    dnnl_status_t s;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&t, 1));
    name_sides(t, way);
    DNN_TRY(conv_descs(t, want, way, &ahead, &back), "describe a convolution");
    DNN_TRY(own_scratch(&attr), "describe a convolution");
    s = dnnl_primitive_desc_create(&hint, &ahead, attr, fkt_dnn_engine(), NULL);
    if (s == dnnl_success && way != FKT_WAY_FORWARD)
        s = dnnl_primitive_desc_create(&pd, &back, attr, fkt_dnn_engine(), hint);
    if (s == dnnl_unimplemented && want->winograd) goto out;
    DNN_TRY(s, "convolve in this shape");
    if (way == FKT_WAY_DATA) t->desc[FKT_AT_BIAS].ndims = 0;
    t->desc[FKT_AT_WEIGHTS] = *dnnl_primitive_desc_query_md(pd ? pd : hint, wanted, 0);
    FKT_TRY(finish(t, pd ? pd : hint));
    *out = t;
    t = NULL;
out:
    if (pd) dnnl_primitive_desc_destroy(pd);
    if (hint) dnnl_primitive_desc_destroy(hint);
    if (attr) dnnl_primitive_attr_destroy(attr);
    fkt_dnn_task_free(t);
    return st;
}

static dnnl_status_t pool_descs(struct fkt_dnn_task *t, const struct fkt_dnn_pool *k, dnnl_pooling_desc_t *ahead,
                                dnnl_pooling_desc_t *back)
{
    dnnl_dims_t in = {k->batch, k->channels, k->in_h, k->in_w}, to = {k->batch, k->channels, k->out_h, k->out_w};
    dnnl_dims_t strides = {k->stride, k->stride}, pads = {k->pad, k->pad}, window = {k->kernel, k->kernel};
    dnnl_memory_desc_t *src = &t->desc[FKT_AT_SRC], *dst = &t->desc[FKT_AT_DST];
    dnnl_data_type_t type = fkt_dnn_type(k->precision);
    dnnl_status_t s;
    if ((s = dnnl_memory_desc_init_by_tag(src, 4, in, type, fkt_dnn_tag(k->layout)))) return s;
    if ((s = dnnl_memory_desc_init_by_tag(dst, 4, to, type, fkt_dnn_tag(k->layout)))) return s;
    s = dnnl_pooling_forward_desc_init(ahead, dnnl_forward_training, dnnl_pooling_max, src, dst, strides, window, pads,
                                       pads);
    if (s) return s;
    return dnnl_pooling_backward_desc_init(back, dnnl_pooling_max, src, dst, strides, window, pads, pads);
}

fkt_status fkt_dnn_task_max_pool(struct fkt_dnn_task **out, const struct fkt_dnn_pool *want, enum fkt_dnn_way way)
{
    struct fkt_dnn_task *t = NULL;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t hint = NULL, pd = NULL;
    dnnl_pooling_desc_t ahead, back;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&t, 1));
    name_sides(t, way);
    DNN_TRY(pool_descs(t, want, &ahead, &back), "describe a pooling");
    DNN_TRY(own_scratch(&attr), "describe a pooling");
    DNN_TRY(dnnl_primitive_desc_create(&hint, &ahead, attr, fkt_dnn_engine(), NULL), "pool in this shape");
    if (way != FKT_WAY_FORWARD)
        DNN_TRY(dnnl_primitive_desc_create(&pd, &back, attr, fkt_dnn_engine(), hint), "pool back in this shape");
    t->desc[FKT_AT_KEEP] = *dnnl_primitive_desc_query_md(hint, dnnl_query_workspace_md, 0);
    FKT_TRY(finish(t, pd ? pd : hint));
    *out = t;
    t = NULL;
out:
    if (pd) dnnl_primitive_desc_destroy(pd);
    if (hint) dnnl_primitive_desc_destroy(hint);
    if (attr) dnnl_primitive_attr_destroy(attr);
    fkt_dnn_task_free(t);
    return st;
}

static fkt_status reorder(struct fkt_dnn_task **out, const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to)
{
    struct fkt_dnn_task *t = NULL;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&t, 1));
    t->arg[FKT_AT_SRC] = DNNL_ARG_FROM;
    t->arg[FKT_AT_DST] = DNNL_ARG_TO;
    t->arg[FKT_AT_SCRATCH] = DNNL_ARG_SCRATCHPAD;
    t->desc[FKT_AT_SRC] = *from;
    t->desc[FKT_AT_DST] = *to;
    DNN_TRY(own_scratch(&attr), "describe a copy of weights");
    DNN_TRY(dnnl_reorder_primitive_desc_create(&pd, from, fkt_dnn_engine(), to, fkt_dnn_engine(), attr),
            "copy weights into this order");
    FKT_TRY(finish(t, pd));
    *out = t;
    t = NULL;
out:
    if (pd) dnnl_primitive_desc_destroy(pd);
    if (attr) dnnl_primitive_attr_destroy(attr);
    fkt_dnn_task_free(t);
    return st;
}

fkt_status fkt_dnn_task_repack(struct fkt_dnn_task **out, const struct fkt_dnn_task *from,
                               const struct fkt_dnn_task *to)
{
    return reorder(out, &from->desc[FKT_AT_WEIGHTS], &to->desc[FKT_AT_WEIGHTS]);
}

fkt_status fkt_dnn_task_pack(const struct fkt_dnn_task *t, float *weights, float *plain, int back)
{
    const dnnl_memory_desc_t *packed = &t->desc[FKT_AT_WEIGHTS];
    struct fkt_dnn_task *copy = NULL;
    dnnl_memory_desc_t file;
    uint8_t *scratch = NULL;
    void *at[FKT_SIDES] = {back ? weights : plain, back ? plain : weights};
    fkt_status st;
    DNN_TRY(dnnl_memory_desc_init_by_tag(&file, 4, packed->dims, dnnl_f32, dnnl_oihw), "describe weights");
    FKT_TRY(reorder(&copy, back ? packed : &file, back ? &file : packed));
    FKT_TRY(fkt_alloc(&scratch, fkt_dnn_task_bytes(copy, FKT_AT_SCRATCH)));
    at[FKT_AT_SCRATCH] = scratch;
    FKT_TRY(fkt_dnn_task_bind(copy, at));
    FKT_TRY(fkt_dnn_task_run(copy));
out:
    fkt_dnn_task_free(copy);
    fkt_free(scratch);
    return st;
}

int fkt_dnn_same_weights(const struct fkt_dnn_task *a, const struct fkt_dnn_task *b)
{
    return dnnl_memory_desc_equal(&a->desc[FKT_AT_WEIGHTS], &b->desc[FKT_AT_WEIGHTS]);
}

size_t fkt_dnn_task_bytes(const struct fkt_dnn_task *t, enum fkt_dnn_side side)
{
    return t->desc[side].ndims ? dnnl_memory_desc_get_size(&t->desc[side]) : 0;
}

const char *fkt_dnn_task_kernel(const struct fkt_dnn_task *t) { return t->kernel; }

fkt_status fkt_dnn_task_bind(struct fkt_dnn_task *t, void *const at[FKT_SIDES])
{
    fkt_status st = FKT_OK;
    for (int i = 0; i < FKT_SIDES; i++) {
        if (!t->desc[i].ndims || !t->arg[i]) continue;
        DNN_TRY(dnnl_memory_create(&t->memory[i], &t->desc[i], fkt_dnn_engine(), at[i]), "address memory");
    }
out:
    return st;
}

fkt_status fkt_dnn_task_run(struct fkt_dnn_task *t)
{
    dnnl_exec_arg_t args[FKT_SIDES];
    int n = 0;
    for (int i = 0; i < FKT_SIDES; i++)
        if (t->memory[i]) args[n++] = (dnnl_exec_arg_t){t->arg[i], t->memory[i]};
    return fkt_dnn_execute(t->primitive, t->stream, n, args);
}
