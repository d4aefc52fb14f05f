/* SPDX-License-Identifier: Apache-2.0 */
/* dnnl_api.h - what dnnl.c and dnnl_learn.c need of oneDNN in a form that versions 2 and 3 share; nobody else includes
 * it.
 *
 * Version 3 has no operation descriptors, its memory descriptors are handles, and its post-ops lost their scale. Those
 * differences are in dnnl_v2.c and dnnl_v3.c, of which the build takes the one that fits the installed dnnl_version.h;
 * everything else in the C interface is the same in both. */
#ifndef FKT_NN_ONEDNN_DNNL_API_H
#define FKT_NN_ONEDNN_DNNL_API_H

#include "nn/onednn/shim.h"

#include <oneapi/dnnl/dnnl.h>

/* ---- dnnl.c ---- */

dnnl_engine_t fkt_dnn_engine(void); /* after a start */
/* FKT_OK, or a sentence: "oneDNN cannot <what>". */
FKT_MUST_USE fkt_status fkt_dnn_check(dnnl_status_t s, const char *what);
#define DNN_TRY(call, what) FKT_TRY(fkt_dnn_check((call), (what)))

dnnl_format_tag_t fkt_dnn_tag(enum fkt_dnn_layout l);
dnnl_data_type_t fkt_dnn_type(enum fkt_precision p);
FKT_MUST_USE fkt_status fkt_dnn_execute(dnnl_primitive_t p, dnnl_stream_t stream, int n, const dnnl_exec_arg_t *args);

/* ---- dnnl_v2.c or dnnl_v3.c ---- */

/* How an array lies in memory. All zero: there is none. */
struct fkt_dnn_desc {
    int there;
    dnnl_memory_desc_t d; /* version 2: a struct; version 3: a handle, owned */
};
#if DNNL_VERSION_MAJOR >= 3
#define DNN_DESC(x) ((x)->d)
#define DNN_ISA_ANY dnnl_cpu_isa_default
#else
#define DNN_DESC(x) (&(x)->d)
#define DNN_ISA_ANY dnnl_cpu_isa_all
#endif

/* Each replaces what `out` held. A query for what the primitive does not have leaves it empty. */
dnnl_status_t fkt_dnn_desc_init(struct fkt_dnn_desc *out, int rank, const dnnl_dims_t dims, dnnl_data_type_t type,
                                dnnl_format_tag_t tag);
dnnl_status_t fkt_dnn_desc_copy(struct fkt_dnn_desc *out, const struct fkt_dnn_desc *from);
dnnl_status_t fkt_dnn_desc_query(struct fkt_dnn_desc *out, const_dnnl_primitive_desc_t pd, dnnl_query_t what);
void fkt_dnn_desc_clear(struct fkt_dnn_desc *d);

/* Arrays of a convolution or a pooling, or of their gradients; an array that is not there is left out. */
struct fkt_dnn_window {
    dnnl_alg_kind_t algorithm;
    const struct fkt_dnn_desc *src, *weights, *bias, *dst; /* pooling: neither weights nor bias */
    dnnl_dims_t kernel, strides;                           /* kernel: pooling alone */
    dnnl_dims_t pads, ends;                                /* zeros before the map and behind it */
};
dnnl_status_t fkt_dnn_conv_forward(dnnl_primitive_desc_t *out, dnnl_prop_kind_t use, const struct fkt_dnn_window *w,
                                   const_dnnl_primitive_attr_t attr);
dnnl_status_t fkt_dnn_conv_data(dnnl_primitive_desc_t *out, const struct fkt_dnn_window *w,
                                const_dnnl_primitive_desc_t forward, const_dnnl_primitive_attr_t attr);
dnnl_status_t fkt_dnn_conv_weights(dnnl_primitive_desc_t *out, const struct fkt_dnn_window *w,
                                   const_dnnl_primitive_desc_t forward, const_dnnl_primitive_attr_t attr);
dnnl_status_t fkt_dnn_pool_forward(dnnl_primitive_desc_t *out, const struct fkt_dnn_window *w,
                                   const_dnnl_primitive_attr_t attr);
dnnl_status_t fkt_dnn_pool_back(dnnl_primitive_desc_t *out, const struct fkt_dnn_window *w,
                                const_dnnl_primitive_desc_t forward, const_dnnl_primitive_attr_t attr);
/* From an array to one of the same description. */
dnnl_status_t fkt_dnn_eltwise(dnnl_primitive_desc_t *out, dnnl_alg_kind_t algorithm, const struct fkt_dnn_desc *array,
                              float alpha, float beta, const_dnnl_primitive_attr_t attr);
dnnl_status_t fkt_dnn_append_sum(dnnl_post_ops_t ops);
dnnl_status_t fkt_dnn_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t algorithm, float alpha, float beta);

#endif
