/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_pad.h - y (n,h,w,c) from x of the same size and at most as many channels; further channels are 0. */
#ifndef FKT_NN_CUDA_KERNELS_PAD_H
#define FKT_NN_CUDA_KERNELS_PAD_H

#include "nn/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

FKT_MUST_USE fkt_status fkt_cuda_widen(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x,
                                       cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
