/* SPDX-License-Identifier: Apache-2.0 */
/* dnnl_v3.c - the second half of dnnl_api.h on oneDNN 3.x.
 *
 * A primitive descriptor is made in one step, and says dilations by their distance (0: none). Memory descriptors are
 * handles: one that a query gives belongs to the primitive descriptor and is cloned. */
#include "nn/onednn/dnnl_api.h"

#if DNNL_VERSION_MAJOR != 3
#error "dnnl_v3.c is for oneDNN 3.x: configure again"
#endif

#include <string.h>

static const dnnl_dims_t dense = {0, 0}; /* no dilation */

static dnnl_status_t take(struct fkt_dnn_desc *out, const_dnnl_memory_desc_t d)
{
    dnnl_status_t s;
    fkt_dnn_desc_clear(out);
    if (!d || dnnl_memory_desc_get_size(d) == 0) return dnnl_success;
    s = dnnl_memory_desc_clone(&out->d, d);
    out->there = s == dnnl_success;
    return s;
}

dnnl_status_t fkt_dnn_desc_init(struct fkt_dnn_desc *out, int rank, const dnnl_dims_t dims, dnnl_data_type_t type,
                                dnnl_format_tag_t tag)
{
    dnnl_status_t s;
    fkt_dnn_desc_clear(out);
    s = dnnl_memory_desc_create_with_tag(&out->d, rank, dims, type, tag);
    out->there = s == dnnl_success;
    return s;
}

dnnl_status_t fkt_dnn_desc_copy(struct fkt_dnn_desc *out, const struct fkt_dnn_desc *from)
{
    return take(out, from->there ? from->d : NULL);
}

dnnl_status_t fkt_dnn_desc_query(struct fkt_dnn_desc *out, const_dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    return take(out, dnnl_primitive_desc_query_md(pd, what, 0));
}

void fkt_dnn_desc_clear(struct fkt_dnn_desc *d)
{
    if (d->there) dnnl_memory_desc_destroy(d->d);
    memset(d, 0, sizeof *d);
}

static const_dnnl_memory_desc_t or_none(const struct fkt_dnn_desc *x) { return x && x->there ? x->d : NULL; }

dnnl_status_t fkt_dnn_conv_forward(dnnl_primitive_desc_t *out, dnnl_prop_kind_t use, const struct fkt_dnn_window *w,
                                   const_dnnl_primitive_attr_t attr)
{
    return dnnl_convolution_forward_primitive_desc_create(out, fkt_dnn_engine(), use, w->algorithm, w->src->d,
                                                          w->weights->d, or_none(w->bias), w->dst->d, w->strides, dense,
                                                          w->pads, w->ends, attr);
}

dnnl_status_t fkt_dnn_conv_data(dnnl_primitive_desc_t *out, const struct fkt_dnn_window *w,
                                const_dnnl_primitive_desc_t forward, const_dnnl_primitive_attr_t attr)
{
    return dnnl_convolution_backward_data_primitive_desc_create(out, fkt_dnn_engine(), w->algorithm, w->src->d,
                                                                w->weights->d, w->dst->d, w->strides, dense, w->pads,
                                                                w->ends, forward, attr);
}

dnnl_status_t fkt_dnn_conv_weights(dnnl_primitive_desc_t *out, const struct fkt_dnn_window *w,
                                   const_dnnl_primitive_desc_t forward, const_dnnl_primitive_attr_t attr)
{
    return dnnl_convolution_backward_weights_primitive_desc_create(out, fkt_dnn_engine(), w->algorithm, w->src->d,
                                                                   w->weights->d, or_none(w->bias), w->dst->d,
                                                                   w->strides, dense, w->pads, w->ends, forward, attr);
}

dnnl_status_t fkt_dnn_pool_forward(dnnl_primitive_desc_t *out, const struct fkt_dnn_window *w,
                                   const_dnnl_primitive_attr_t attr)
{
    return dnnl_pooling_forward_primitive_desc_create(out, fkt_dnn_engine(), dnnl_forward_training, w->algorithm,
                                                      w->src->d, w->dst->d, w->strides, w->kernel, dense, w->pads,
                                                      w->ends, attr);
}

dnnl_status_t fkt_dnn_pool_back(dnnl_primitive_desc_t *out, const struct fkt_dnn_window *w,
                                const_dnnl_primitive_desc_t forward, const_dnnl_primitive_attr_t attr)
{
    return dnnl_pooling_backward_primitive_desc_create(out, fkt_dnn_engine(), w->algorithm, w->src->d, w->dst->d,
                                                       w->strides, w->kernel, dense, w->pads, w->ends, forward, attr);
}

dnnl_status_t fkt_dnn_eltwise(dnnl_primitive_desc_t *out, dnnl_alg_kind_t algorithm, const struct fkt_dnn_desc *array,
                              float alpha, float beta, const_dnnl_primitive_attr_t attr)
{
    return dnnl_eltwise_forward_primitive_desc_create(out, fkt_dnn_engine(), dnnl_forward_inference, algorithm,
                                                      array->d, array->d, alpha, beta, attr);
}

dnnl_status_t fkt_dnn_append_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
}

dnnl_status_t fkt_dnn_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t algorithm, float alpha, float beta)
{
    return dnnl_post_ops_append_eltwise(ops, algorithm, alpha, beta);
}
