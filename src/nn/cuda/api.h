/* SPDX-License-Identifier: Apache-2.0 */
/* api.h - the functions of cuDNN's graph interface and of cuBLASLt that we call, as tables of pointers (libraries.c
 * fills them), and the handles of a card. For conv.c, gemm.c and libraries.c. */
#ifndef FKT_NN_CUDA_API_H
#define FKT_NN_CUDA_API_H

#include "nn/cuda/libraries.h"

#include <cublasLt.h>
#include <cudnn.h>
#include <pthread.h>

/* Every row is a function with the library's own type, so that a header that changes one is found by the compiler. */
#define FKT_CUDNN_FUNCTIONS(X)                                                                                         \
    X(cudnnGetVersion)                                                                                                 \
    X(cudnnGetErrorString)                                                                                             \
    X(cudnnCreate)                                                                                                     \
    X(cudnnDestroy)                                                                                                    \
    X(cudnnSetStream)                                                                                                  \
    X(cudnnBackendCreateDescriptor)                                                                                    \
    X(cudnnBackendDestroyDescriptor)                                                                                   \
    X(cudnnBackendSetAttribute)                                                                                        \
    X(cudnnBackendGetAttribute)                                                                                        \
    X(cudnnBackendFinalize)                                                                                            \
    X(cudnnBackendExecute)

#define FKT_CUBLASLT_FUNCTIONS(X)                                                                                      \
    X(cublasLtGetVersion)                                                                                              \
    X(cublasLtGetStatusString)                                                                                         \
    X(cublasLtCreate)                                                                                                  \
    X(cublasLtDestroy)                                                                                                 \
    X(cublasLtMatmulDescCreate)                                                                                        \
    X(cublasLtMatmulDescDestroy)                                                                                       \
    X(cublasLtMatmulDescSetAttribute)                                                                                  \
    X(cublasLtMatrixLayoutCreate)                                                                                      \
    X(cublasLtMatrixLayoutDestroy)                                                                                     \
    X(cublasLtMatmulPreferenceCreate)                                                                                  \
    X(cublasLtMatmulPreferenceDestroy)                                                                                 \
    X(cublasLtMatmulPreferenceSetAttribute)                                                                            \
    X(cublasLtMatmulAlgoGetHeuristic)                                                                                  \
    X(cublasLtMatmul)

#define FKT_MEMBER(name) __typeof__(&name) name;
struct fkt_cuda_api {
    FKT_CUDNN_FUNCTIONS(FKT_MEMBER)
    FKT_CUBLASLT_FUNCTIONS(FKT_MEMBER)
};
#undef FKT_MEMBER

struct fkt_cuda_handles {
    const struct fkt_cuda_api *api;
    cudnnHandle_t cudnn;      /* plans are made with it; nothing runs on it */
    cublasLtHandle_t blas;    /* needs no lock */
    pthread_mutex_t lock;     /* guards all of cuDNN, and the next two */
    struct fkt_cuda_dnn *dnn; /* conv_stream.c: a handle for each stream */
    cudaStream_t idle;        /* of handles that have none; NULL: not made yet */
};
struct fkt_cuda_handles *fkt_cuda_handles(const struct fkt_cuda_device *d); /* of a device that was opened */
/* conv_stream.c: the handle of this stream; NULL: it is not one of fkt_cuda_stream_new. The lock is held. */
cudnnHandle_t fkt_cuda_dnn_of(const struct fkt_cuda_handles *h, cudaStream_t stream);

#endif
