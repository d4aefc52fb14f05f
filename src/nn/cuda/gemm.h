/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.h - matrix products on the card: linear maps and 1x1 convolutions, in three directions. Two implementations:
 * gemm.c (cuBLASLt) and, for tests without a card, plain loops (tests/cuda_host). */
#ifndef FKT_NN_CUDA_GEMM_H
#define FKT_NN_CUDA_GEMM_H

#include "nn/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fkt_cuda_gemm_spec {
    int rows, in, out;            /* x (rows, in), w (out, in), y (rows, out), all row by row */
    enum fkt_precision precision; /* of x, w (but see BACK_WEIGHTS) and y */
    enum fkt_cuda_way way;
    int bias, add; /* FORWARD alone */
    enum fkt_cuda_act act;
};

struct fkt_cuda_gemm;
FKT_MUST_USE fkt_status fkt_cuda_gemm_new(struct fkt_cuda_gemm **out, struct fkt_cuda_device *d,
                                          const struct fkt_cuda_gemm_spec *s);
size_t fkt_cuda_gemm_workspace(const struct fkt_cuda_gemm *g); /* bytes; 0: none */
/* FORWARD:       y = act(x w^T + bias + add); bias (out) float; add like y, not y itself
 * BACK_DATA:     x = y w
 * BACK_WEIGHTS:  w = y^T x, always float
 * All are replaced, not added to. */
FKT_MUST_USE fkt_status fkt_cuda_gemm_run(const struct fkt_cuda_gemm *g, void *x, void *w, const float *bias,
                                          const void *add, void *y, void *workspace, cudaStream_t stream);
void fkt_cuda_gemm_free(struct fkt_cuda_gemm *g);

#ifdef __cplusplus
}
#endif
#endif
