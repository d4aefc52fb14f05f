/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_pad.cu - more channels, zeros after those there are: cuDNN's units read 16 bytes at a time. */
#include "nn/cuda/device_math.cuh"
#include "nn/cuda/kernels_pad.h"

template <class T> __global__ void widen_kernel(T *y, const T *x, uint32_t n, uint32_t from, fkt_divisor to)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, pixel, c;
    if (i >= n) return;
    c = fkt_split(i, to, &pixel);
    fkt_put(y + i, c < from ? fkt_to_float(x[(size_t)pixel * from + c]) : 0.0f);
}

fkt_status fkt_cuda_widen(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, cudaStream_t stream)
{
    size_t n = fkt_cuda_count_of(y);
    fkt_status st = fkt_cuda_countable(n, "padding of channels");
    if (st != FKT_OK || !n) return st;
    FKT_BY_PRECISION(x->precision, T,
                     return FKT_LAUNCH((widen_kernel<T>), fkt_blocks(n), FKT_BLOCK, 0, stream, (T *)y->data,
                                       (const T *)x->data, (uint32_t)n, (uint32_t)x->c,
                                       fkt_divisor_of((uint32_t)y->c)));
}
