/* SPDX-License-Identifier: Apache-2.0 */
/* dnnl_v2.c - the second half of dnnl_api.h on oneDNN 2.x, which Debian 12 has (2.6).
 *
 * An operation is described in two steps: a descriptor of the operation, then a primitive descriptor of the descriptor,
 * attributes and engine. Memory descriptors are plain structs, so that copies need no memory. */
#include "nn/onednn/dnnl_api.h"

#if DNNL_VERSION_MAJOR != 2
#error "dnnl_v2.c is for oneDNN 2.x: configure again"
#endif

#include <string.h>

static dnnl_status_t take(struct fkt_dnn_desc *out, const dnnl_memory_desc_t *d)
{
    memset(out, 0, sizeof *out);
    if (!d || !d->ndims) return dnnl_success;
    out->d = *d;
    out->there = 1;
    return dnnl_success;
}

dnnl_status_t fkt_dnn_desc_init(struct fkt_dnn_desc *out, int rank, const dnnl_dims_t dims, dnnl_data_type_t type,
                                dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t d;
    dnnl_status_t s = dnnl_memory_desc_init_by_tag(&d, rank, dims, type, tag);
    return s == dnnl_success ? take(out, &d) : s;
}

dnnl_status_t fkt_dnn_desc_copy(struct fkt_dnn_desc *out, const struct fkt_dnn_desc *from)
{
    return take(out, from->there ? &from->d : NULL);
}

dnnl_status_t fkt_dnn_desc_query(struct fkt_dnn_desc *out, const_dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    return take(out, dnnl_primitive_desc_query_md(pd, what, 0));
}

void fkt_dnn_desc_clear(struct fkt_dnn_desc *d) { memset(d, 0, sizeof *d); }

static const dnnl_memory_desc_t *or_none(const struct fkt_dnn_desc *x) { return x && x->there ? &x->d : NULL; }

static dnnl_status_t finish(dnnl_primitive_desc_t *out, const_dnnl_op_desc_t d, dnnl_status_t s,
                            const_dnnl_primitive_desc_t forward, const_dnnl_primitive_attr_t attr)
{
    return s == dnnl_success ? dnnl_primitive_desc_create(out, d, attr, fkt_dnn_engine(), forward) : s;
}

dnnl_status_t fkt_dnn_conv_forward(dnnl_primitive_desc_t *out, dnnl_prop_kind_t use, const struct fkt_dnn_window *w,
                                   const_dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t d;
    dnnl_status_t s = dnnl_convolution_forward_desc_init(&d, use, w->algorithm, &w->src->d, &w->weights->d,
                                                         or_none(w->bias), &w->dst->d, w->strides, w->pads, w->ends);
    return finish(out, &d, s, NULL, attr);
}

dnnl_status_t fkt_dnn_conv_data(dnnl_primitive_desc_t *out, const struct fkt_dnn_window *w,
                                const_dnnl_primitive_desc_t forward, const_dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t d;
    dnnl_status_t s = dnnl_convolution_backward_data_desc_init(&d, w->algorithm, &w->src->d, &w->weights->d, &w->dst->d,
                                                               w->strides, w->pads, w->ends);
    return finish(out, &d, s, forward, attr);
}

dnnl_status_t fkt_dnn_conv_weights(dnnl_primitive_desc_t *out, const struct fkt_dnn_window *w,
                                   const_dnnl_primitive_desc_t forward, const_dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t d;
    dnnl_status_t s = dnnl_convolution_backward_weights_desc_init(
        &d, w->algorithm, &w->src->d, &w->weights->d, or_none(w->bias), &w->dst->d, w->strides, w->pads, w->ends);
    return finish(out, &d, s, forward, attr);
}

dnnl_status_t fkt_dnn_pool_forward(dnnl_primitive_desc_t *out, const struct fkt_dnn_window *w,
                                   const_dnnl_primitive_attr_t attr)
{
    dnnl_pooling_desc_t d;
    dnnl_status_t s = dnnl_pooling_forward_desc_init(&d, dnnl_forward_training, w->algorithm, &w->src->d, &w->dst->d,
                                                     w->strides, w->kernel, w->pads, w->ends);
    return finish(out, &d, s, NULL, attr);
}

dnnl_status_t fkt_dnn_pool_back(dnnl_primitive_desc_t *out, const struct fkt_dnn_window *w,
                                const_dnnl_primitive_desc_t forward, const_dnnl_primitive_attr_t attr)
{
    dnnl_pooling_desc_t d;
    dnnl_status_t s = dnnl_pooling_backward_desc_init(&d, w->algorithm, &w->src->d, &w->dst->d, w->strides, w->kernel,
                                                      w->pads, w->ends);
    return finish(out, &d, s, forward, attr);
}

dnnl_status_t fkt_dnn_eltwise(dnnl_primitive_desc_t *out, dnnl_alg_kind_t algorithm, const struct fkt_dnn_desc *array,
                              float alpha, float beta, const_dnnl_primitive_attr_t attr)
{
    dnnl_eltwise_desc_t d;
    dnnl_status_t s = dnnl_eltwise_forward_desc_init(&d, dnnl_forward_inference, algorithm, &array->d, alpha, beta);
    return finish(out, &d, s, NULL, attr);
}

dnnl_status_t fkt_dnn_append_sum(dnnl_post_ops_t ops) { return dnnl_post_ops_append_sum(ops, 1.0f); }

dnnl_status_t fkt_dnn_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t algorithm, float alpha, float beta)
{
    return dnnl_post_ops_append_eltwise(ops, 1.0f, algorithm, alpha, beta);
}
