/* SPDX-License-Identifier: Apache-2.0 */
/* dnnl_v2.h - what dnnl_v2.c and dnnl_v2_learn.c share; nobody else includes it. */
#ifndef FKT_NN_ONEDNN_DNNL_V2_H
#define FKT_NN_ONEDNN_DNNL_V2_H

#include "nn/onednn/shim.h"

#include <oneapi/dnnl/dnnl.h>

dnnl_engine_t fkt_dnn_engine(void); /* after a start */
/* FKT_OK, or a sentence: "oneDNN cannot <what>". */
FKT_MUST_USE fkt_status fkt_dnn_check(dnnl_status_t s, const char *what);
#define DNN_TRY(call, what) FKT_TRY(fkt_dnn_check((call), (what)))

dnnl_format_tag_t fkt_dnn_tag(enum fkt_dnn_layout l);
dnnl_data_type_t fkt_dnn_type(enum fkt_precision p);
FKT_MUST_USE fkt_status fkt_dnn_execute(dnnl_primitive_t p, dnnl_stream_t stream, int n, const dnnl_exec_arg_t *args);

#endif
