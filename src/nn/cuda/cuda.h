/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.h - the CUDA backend's device: which card, its memory, its errors.
 *
 * Private to nn/cuda/. Values on the card are NHWC, f32 or bf16; weights of convolutions are (out, kh, kw, in/groups)
 * in the same precision; biases, parameters of norms and all sums are f32. f32 is IEEE f32: no TF32 anywhere.
 * Everything runs on streams that the caller makes; only copies that are waited for use the default one. */
#ifndef FKT_NN_CUDA_CUDA_H
#define FKT_NN_CUDA_CUDA_H

#include "nn/cuda/cards.h"
#include "nn/engine.h"

#include <cuda_runtime_api.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One per card and process, made at the first use and kept until the process ends. */
struct fkt_cuda_device {
    int index;
    int major, minor; /* compute capability */
    int multiprocessors;
    size_t memory; /* bytes in all */
    char name[256];
};

/* Also makes it the calling thread's current device. Fails as fkt_cuda_check_card. */
FKT_MUST_USE fkt_status fkt_cuda_device(struct fkt_cuda_device **out, int index);
FKT_MUST_USE fkt_status fkt_cuda_use(const struct fkt_cuda_device *d); /* current device of the calling thread */

/* FKT_OK, or one line: what was being done, and why it failed; FKT_E_NOMEM where memory ran out. After a lost device
 * or an invalid access every later call fails in the same way, so nothing half-computed is taken for a result. */
FKT_MUST_USE fkt_status fkt_cuda_check(cudaError_t e, const char *doing);

/* Memory on the current device. Too little: FKT_E_NOMEM says how much is needed and how much is free. */
FKT_MUST_USE fkt_status fkt_cuda_alloc(void **p, size_t bytes, const char *for_what);
void fkt_cuda_free(void *p);
/* Memory of the host that the card reads and writes without a copy in between. */
FKT_MUST_USE fkt_status fkt_cuda_host_alloc(void **p, size_t bytes, const char *for_what);
void fkt_cuda_host_free(void *p);

/* A value on the card: NHWC, dense. */
struct fkt_cuda_tensor {
    void *data;
    int n, h, w, c;
    enum fkt_precision precision;
};

static inline size_t fkt_cuda_count_of(const struct fkt_cuda_tensor *t)
{
    return (size_t)t->n * (size_t)t->h * (size_t)t->w * (size_t)t->c;
}
static inline size_t fkt_cuda_element(enum fkt_precision p) { return p == FKT_PRECISION_BF16 ? 2 : 4; }
static inline size_t fkt_cuda_bytes_of(const struct fkt_cuda_tensor *t)
{
    return fkt_cuda_count_of(t) * fkt_cuda_element(t->precision);
}

/* What conv.h and gemm.h share. */
enum fkt_cuda_act { FKT_CUDA_ACT_NONE = 0, FKT_CUDA_ACT_RELU, FKT_CUDA_ACT_RELU6, FKT_CUDA_ACT_SILU };
static inline enum fkt_cuda_act fkt_cuda_act_of(enum fkt_op_kind kind) /* RELU, RELU6, SILU */
{
    return kind == FKT_OP_RELU ? FKT_CUDA_ACT_RELU : kind == FKT_OP_RELU6 ? FKT_CUDA_ACT_RELU6 : FKT_CUDA_ACT_SILU;
}
enum fkt_cuda_way { FKT_CUDA_FORWARD = 0, FKT_CUDA_BACK_DATA, FKT_CUDA_BACK_WEIGHTS };

#ifdef __cplusplus
}
#endif
#endif
