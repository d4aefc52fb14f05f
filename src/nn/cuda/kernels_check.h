/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_check.h - *bad becomes 1 where a number is NaN, or its absolute value is above the limit. */
#ifndef FKT_NN_CUDA_KERNELS_CHECK_H
#define FKT_NN_CUDA_KERNELS_CHECK_H

#include "nn/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

FKT_MUST_USE fkt_status fkt_cuda_check_range(const struct fkt_cuda_tensor *x, float limit, int *bad,
                                             cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
