/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_check.cu - finds numbers that are not finite, or too large: the first batch of a plan is checked. */
#include "nn/cuda/device_math.cuh"
#include "nn/cuda/kernels_check.h"

template <class T> __global__ void check_kernel(const T *x, uint32_t n, float limit, int *bad)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && !(fabsf(fkt_to_float(x[i])) <= limit)) atomicOr(bad, 1);
}

fkt_status fkt_cuda_check_range(const struct fkt_cuda_tensor *x, float limit, int *bad, cudaStream_t stream)
{
    size_t n = fkt_cuda_count_of(x);
    fkt_status st = fkt_cuda_countable(n, "check of a value");
    if (st != FKT_OK || !n) return st;
    FKT_BY_PRECISION(x->precision, T,
                     return FKT_LAUNCH((check_kernel<T>), fkt_blocks(n), FKT_BLOCK, 0, stream, (const T *)x->data,
                                       (uint32_t)n, limit, bad));
}
