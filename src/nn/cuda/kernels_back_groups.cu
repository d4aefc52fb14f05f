/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_back_groups.cu - gradients by the input of operations that work in groups of channels: depthwise
 * convolutions, means of neighbouring channels, repeated channels. nn/ref is the definition.
 *
 * Every gradient is gathered, in a fixed order, as in kernels_back.cu; all are limited by memory. */
#include "nn/cuda/device_math.cuh"
#include "nn/cuda/kernels.h"

/* ---- depthwise: dx(iy, ix) = sum of w(ky, kx) dy(oy, ox) over oy stride + ky - pad = iy, and likewise for x ---- */
struct back_shape {
    uint32_t oh, ow, c, kernel, pad;
    fkt_divisor stride, vectors, width, height; /* the last two of dx */
};

template <class T, int V>
__global__ void __launch_bounds__(FKT_BLOCK)
    depthwise_back_kernel(T *dx, const T *dy, const float *weight, uint32_t n, back_shape s, int more)
{
    uint32_t i = blockIdx.x * FKT_BLOCK + threadIdx.x, pixel, row, image, oy, ox;
    if (i >= n) return;
    uint32_t c = fkt_split(i, s.vectors, &pixel) * V, ix = fkt_split(pixel, s.width, &row);
    uint32_t iy = fkt_split(row, s.height, &image);
    fkt_floats<V> sum = fkt_floats<V>();
    for (uint32_t ky = 0; ky < s.kernel && ky <= iy + s.pad; ky++) {
        if (fkt_split(iy + s.pad - ky, s.stride, &oy) || oy >= s.oh) continue;
        for (uint32_t kx = 0; kx < s.kernel && kx <= ix + s.pad; kx++) {
            if (fkt_split(ix + s.pad - kx, s.stride, &ox) || ox >= s.ow) continue;
            fkt_floats<V> d = fkt_load<V>(dy + (((size_t)image * s.oh + oy) * s.ow + ox) * s.c + c);
            fkt_floats<V> w = fkt_load<V>(weight + (size_t)(ky * s.kernel + kx) * s.c + c);
#pragma unroll
            for (int j = 0; j < V; j++) sum.v[j] += w.v[j] * d.v[j];
        }
    }
    fkt_give<V>(dx + (size_t)i * V, sum, more);
}

fkt_status fkt_cuda_depthwise_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy,
                                   const float *weight, const struct fkt_op *op, int more, cudaStream_t stream)
{
    size_t n = fkt_cuda_count_of(dx);
    back_shape s;
    fkt_status st = fkt_cuda_countable(n, fkt_op_name(FKT_OP_CONV));
    if (st != FKT_OK || !n) return st;
    s.oh = (uint32_t)dy->h;
    s.ow = (uint32_t)dy->w;
    s.c = (uint32_t)dx->c;
    s.kernel = op->kernel;
    s.pad = op->pad;
    s.stride = fkt_divisor_of(op->stride);
    s.width = fkt_divisor_of((uint32_t)dx->w);
    s.height = fkt_divisor_of((uint32_t)dx->h);
    FKT_BY_PRECISION(dx->precision, T, FKT_BY_WIDTH(T, V, dx->c, {
                         s.vectors = fkt_divisor_of(s.c / V);
                         return FKT_LAUNCH((depthwise_back_kernel<T, V>), fkt_blocks(n / V), FKT_BLOCK, 0, stream,
                                           (T *)dx->data, (const T *)dy->data, weight, (uint32_t)(n / V), s, more);
                     }));
}

/* ---- the mean of `per` neighbours: each gets its part; copies: their gradients are added up ---- */
template <class T>
__global__ void __launch_bounds__(FKT_BLOCK)
    group_mean_back_kernel(T *dx, const T *dy, uint32_t n, fkt_divisor per, int more)
{
    uint32_t i = blockIdx.x * FKT_BLOCK + threadIdx.x;
    if (i >= n) return;
    fkt_floats<1> v = fkt_load<1>(dy + fkt_quotient(i, per)); /* dy has n / per numbers: groups do not cross pixels */
    v.v[0] /= (float)per.d;
    fkt_give<1>(dx + i, v, more);
}

fkt_status fkt_cuda_group_mean_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy, int more,
                                    cudaStream_t stream)
{
    size_t n = fkt_cuda_count_of(dx);
    fkt_status st = fkt_cuda_countable(n, fkt_op_name(FKT_OP_GROUP_MEAN));
    if (st != FKT_OK || !n) return st;
    FKT_BY_PRECISION(dx->precision, T,
                     return FKT_LAUNCH(group_mean_back_kernel<T>, fkt_blocks(n), FKT_BLOCK, 0, stream, (T *)dx->data,
                                       (const T *)dy->data, (uint32_t)n, fkt_divisor_of((uint32_t)(dx->c / dy->c)),
                                       more));
}

template <class T>
__global__ void __launch_bounds__(FKT_BLOCK)
    repeat_back_kernel(T *dx, const T *dy, uint32_t n, uint32_t times, int more)
{
    uint32_t i = blockIdx.x * FKT_BLOCK + threadIdx.x;
    if (i >= n) return;
    fkt_floats<1> sum = fkt_floats<1>();
    for (uint32_t j = 0; j < times; j++) sum.v[0] += fkt_to_float(dy[(size_t)i * times + j]);
    fkt_give<1>(dx + i, sum, more);
}

fkt_status fkt_cuda_repeat_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy, int more,
                                cudaStream_t stream)
{
    size_t n = fkt_cuda_count_of(dx);
    fkt_status st = fkt_cuda_countable(fkt_cuda_count_of(dy), fkt_op_name(FKT_OP_REPEAT));
    if (st != FKT_OK || !n) return st;
    FKT_BY_PRECISION(dx->precision, T,
                     return FKT_LAUNCH(repeat_back_kernel<T>, fkt_blocks(n), FKT_BLOCK, 0, stream, (T *)dx->data,
                                       (const T *)dy->data, (uint32_t)n, (uint32_t)(dy->c / dx->c), more));
}
