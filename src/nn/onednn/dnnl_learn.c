/* SPDX-License-Identifier: Apache-2.0 */
/* dnnl_learn.c - learn_shim.h on oneDNN 2.x and 3.x.
 *
 * Source: oneDNN 2.6 and 3.2 developer guides (convolution, pooling and reorder; "training": a backward primitive is
 * described with its forward one as a hint, so that the two agree). What differs between the versions is in dnnl_v2.c
 * and dnnl_v3.c.
 *
 * Weights have no fixed layout: each primitive reports its preferred one, and fkt_dnn_same_weights says where two agree
 * (on AVX-512 in f32 all do except direct backward-data). */
#include "nn/onednn/dnnl_api.h"
#include "nn/onednn/learn_shim.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

struct fkt_dnn_task {
    dnnl_primitive_t primitive;
    dnnl_stream_t stream;
    struct fkt_dnn_desc desc[FKT_SIDES]; /* empty: no such side */
    dnnl_dims_t weights;                 /* (out, in, height, width) of a convolution; in groups (groups, out, ...) */
    int rank;                            /* of weights: 4, or 5 in groups */
    int arg[FKT_SIDES];                  /* the library's name of a side */
    dnnl_memory_t memory[FKT_SIDES];
    char kernel[64];
};

void fkt_dnn_task_free(struct fkt_dnn_task *t)
{
    if (!t) return;
    for (int i = 0; i < FKT_SIDES; i++) {
        if (t->memory[i]) dnnl_memory_destroy(t->memory[i]);
        fkt_dnn_desc_clear(&t->desc[i]);
    }
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
    fkt_status st;
    DNN_TRY(dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &kernel), "name a kernel");
    snprintf(t->kernel, sizeof t->kernel, "%s", kernel);
    DNN_TRY(fkt_dnn_desc_query(&t->desc[FKT_AT_SCRATCH], pd, dnnl_query_scratchpad_md), "describe a scratchpad");
    DNN_TRY(dnnl_primitive_create(&t->primitive, pd), "make an operation");
    DNN_TRY(dnnl_stream_create(&t->stream, fkt_dnn_engine(), dnnl_stream_default_flags), "open a stream");
out:
    return st;
}

/* Source, result and bias as they are. */
static dnnl_status_t conv_sides(struct fkt_dnn_task *t, const struct fkt_dnn_conv *k)
{
    const dnnl_dims_t in = {k->batch, k->in_c, k->in_h, k->in_w}, to = {k->batch, k->out_c, k->out_h, k->out_w};
    const dnnl_dims_t plain = {k->out_c, k->in_c, k->kernel_h, k->kernel_w}, vector = {k->out_c};
    const dnnl_dims_t grouped = {k->groups, k->out_c / k->groups, k->in_c / k->groups, k->kernel_h, k->kernel_w};
    const dnnl_data_type_t type = fkt_dnn_type(k->precision);
    dnnl_status_t s = fkt_dnn_desc_init(&t->desc[FKT_AT_SRC], 4, in, type, fkt_dnn_tag(k->in_layout));
    t->rank = k->groups > 1 ? 5 : 4;
    memcpy(t->weights, k->groups > 1 ? grouped : plain, sizeof t->weights);
    if (s == dnnl_success) s = fkt_dnn_desc_init(&t->desc[FKT_AT_DST], 4, to, type, fkt_dnn_tag(k->out_layout));
    if (s == dnnl_success && k->bias) s = fkt_dnn_desc_init(&t->desc[FKT_AT_BIAS], 1, vector, dnnl_f32, dnnl_x);
    return s;
}

/* The forward convolution (*ahead), and for a backward `way` also that (*back); weights in the preferred layout. */
static dnnl_status_t conv_describe(const struct fkt_dnn_task *t, const struct fkt_dnn_conv *k, enum fkt_dnn_way way,
                                   const_dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *ahead,
                                   dnnl_primitive_desc_t *back)
{
    struct fkt_dnn_desc weights = {0}, gradients = {0};
    struct fkt_dnn_window w = {.algorithm = k->winograd ? dnnl_convolution_winograd : dnnl_convolution_direct,
                               .src = &t->desc[FKT_AT_SRC],
                               .weights = &weights,
                               .bias = &t->desc[FKT_AT_BIAS],
                               .dst = &t->desc[FKT_AT_DST],
                               .strides = {k->stride, k->stride},
                               .pads = {k->pad, k->pad},
                               .ends = {k->pad + k->pad_after, k->pad + k->pad_after}};
    dnnl_status_t s = fkt_dnn_desc_init(&weights, t->rank, t->weights, fkt_dnn_type(k->precision), dnnl_format_tag_any);
    if (s == dnnl_success) s = fkt_dnn_desc_init(&gradients, t->rank, t->weights, dnnl_f32, dnnl_format_tag_any);
    if (s == dnnl_success) s = fkt_dnn_conv_forward(ahead, dnnl_forward_training, &w, attr);
    if (s == dnnl_success && way == FKT_WAY_DATA) s = fkt_dnn_conv_data(back, &w, *ahead, attr);
    if (s == dnnl_success && way == FKT_WAY_WEIGHTS) {
        w.weights = &gradients;
        s = fkt_dnn_conv_weights(back, &w, *ahead, attr);
    }
    fkt_dnn_desc_clear(&weights);
    fkt_dnn_desc_clear(&gradients);
    return s;
}

fkt_status fkt_dnn_task_conv(struct fkt_dnn_task **out, const struct fkt_dnn_conv *want, enum fkt_dnn_way way)
{
    dnnl_query_t wanted = way == FKT_WAY_WEIGHTS ? dnnl_query_diff_weights_md : dnnl_query_weights_md;
    struct fkt_dnn_task *t = NULL;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t hint = NULL, pd = NULL;
    dnnl_status_t s;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&t, 1));
    name_sides(t, way);
    DNN_TRY(conv_sides(t, want), "describe a convolution");
    DNN_TRY(own_scratch(&attr), "describe a convolution");
    s = conv_describe(t, want, way, attr, &hint, &pd);
    if (s == dnnl_unimplemented && want->winograd) goto out;
    DNN_TRY(s, "convolve in this shape");
    if (way == FKT_WAY_DATA) fkt_dnn_desc_clear(&t->desc[FKT_AT_BIAS]);
    DNN_TRY(fkt_dnn_desc_query(&t->desc[FKT_AT_WEIGHTS], pd ? pd : hint, wanted), "describe weights");
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

static dnnl_status_t pool_sides(struct fkt_dnn_task *t, const struct fkt_dnn_pool *k)
{
    const dnnl_dims_t in = {k->batch, k->channels, k->in_h, k->in_w}, to = {k->batch, k->channels, k->out_h, k->out_w};
    const dnnl_data_type_t type = fkt_dnn_type(k->precision);
    dnnl_status_t s = fkt_dnn_desc_init(&t->desc[FKT_AT_SRC], 4, in, type, fkt_dnn_tag(k->layout));
    return s == dnnl_success ? fkt_dnn_desc_init(&t->desc[FKT_AT_DST], 4, to, type, fkt_dnn_tag(k->layout)) : s;
}

fkt_status fkt_dnn_task_max_pool(struct fkt_dnn_task **out, const struct fkt_dnn_pool *want, enum fkt_dnn_way way)
{
    struct fkt_dnn_window w = {.algorithm = dnnl_pooling_max,
                               .kernel = {want->kernel, want->kernel},
                               .strides = {want->stride, want->stride},
                               .pads = {want->pad, want->pad},
                               .ends = {want->pad, want->pad}};
    struct fkt_dnn_task *t = NULL;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t hint = NULL, pd = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&t, 1));
    name_sides(t, way);
    DNN_TRY(pool_sides(t, want), "describe a pooling");
    w.src = &t->desc[FKT_AT_SRC];
    w.dst = &t->desc[FKT_AT_DST];
    DNN_TRY(own_scratch(&attr), "describe a pooling");
    DNN_TRY(fkt_dnn_pool_forward(&hint, &w, attr), "pool in this shape");
    if (way != FKT_WAY_FORWARD) DNN_TRY(fkt_dnn_pool_back(&pd, &w, hint, attr), "pool back in this shape");
    DNN_TRY(fkt_dnn_desc_query(&t->desc[FKT_AT_KEEP], hint, dnnl_query_workspace_md), "describe a workspace");
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

static fkt_status reorder(struct fkt_dnn_task **out, const struct fkt_dnn_desc *from, const struct fkt_dnn_desc *to)
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
    DNN_TRY(fkt_dnn_desc_copy(&t->desc[FKT_AT_SRC], from), "describe weights");
    DNN_TRY(fkt_dnn_desc_copy(&t->desc[FKT_AT_DST], to), "describe weights");
    DNN_TRY(own_scratch(&attr), "describe a copy of weights");
    DNN_TRY(
        dnnl_reorder_primitive_desc_create(&pd, DNN_DESC(from), fkt_dnn_engine(), DNN_DESC(to), fkt_dnn_engine(), attr),
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
    const struct fkt_dnn_desc *packed = &t->desc[FKT_AT_WEIGHTS];
    struct fkt_dnn_task *copy = NULL;
    struct fkt_dnn_desc file = {0};
    uint8_t *scratch = NULL;
    void *at[FKT_SIDES] = {back ? weights : plain, back ? plain : weights};
    fkt_status st;
    DNN_TRY(fkt_dnn_desc_init(&file, t->rank, t->weights, dnnl_f32, t->rank == 5 ? dnnl_goihw : dnnl_oihw),
            "describe weights");
    FKT_TRY(reorder(&copy, back ? packed : &file, back ? &file : packed));
    FKT_TRY(fkt_alloc(&scratch, fkt_dnn_task_bytes(copy, FKT_AT_SCRATCH)));
    at[FKT_AT_SCRATCH] = scratch;
    FKT_TRY(fkt_dnn_task_bind(copy, at));
    FKT_TRY(fkt_dnn_task_run(copy));
out:
    fkt_dnn_desc_clear(&file);
    fkt_dnn_task_free(copy);
    fkt_free(scratch);
    return st;
}

int fkt_dnn_same_weights(const struct fkt_dnn_task *a, const struct fkt_dnn_task *b)
{
    return dnnl_memory_desc_equal(DNN_DESC(&a->desc[FKT_AT_WEIGHTS]), DNN_DESC(&b->desc[FKT_AT_WEIGHTS]));
}

size_t fkt_dnn_task_bytes(const struct fkt_dnn_task *t, enum fkt_dnn_side side)
{
    return t->desc[side].there ? dnnl_memory_desc_get_size(DNN_DESC(&t->desc[side])) : 0;
}

const char *fkt_dnn_task_kernel(const struct fkt_dnn_task *t) { return t->kernel; }

fkt_status fkt_dnn_task_bind(struct fkt_dnn_task *t, void *const at[FKT_SIDES])
{
    fkt_status st = FKT_OK;
    for (int i = 0; i < FKT_SIDES; i++) {
        if (!t->desc[i].there || !t->arg[i]) continue;
        DNN_TRY(dnnl_memory_create(&t->memory[i], DNN_DESC(&t->desc[i]), fkt_dnn_engine(), at[i]), "address memory");
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
