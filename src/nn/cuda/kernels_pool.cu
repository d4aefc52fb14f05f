/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_pool.cu - the largest number of windows, and the mean of each map.
 *
 * Limited by memory: the input is read once from memory (overlapping windows find it in the caches) and the result
 * written once. On an H200: those bytes over 4.3e12 s, at least about 3 us. */
#include "nn/cuda/device_math.cuh"
#include "nn/cuda/kernels.h"

/* As in nn/ref a NaN counts as largest. */
template <class T, int V>
__global__ void __launch_bounds__(FKT_BLOCK)
    max_pool_kernel(T *y, const T *x, uint32_t n, uint32_t h, uint32_t w, uint32_t c, uint32_t kernel, uint32_t stride,
                    uint32_t pad, fkt_divisor vectors, fkt_divisor width, fkt_divisor height)
{
    uint32_t i = blockIdx.x * FKT_BLOCK + threadIdx.x, pixel, row, image;
    if (i >= n) return;
    uint32_t channel = fkt_split(i, vectors, &pixel) * V, ox = fkt_split(pixel, width, &row);
    uint32_t oy = fkt_split(row, height, &image);
    fkt_floats<V> best = fkt_floats<V>();
    int any = 0;
    for (uint32_t ky = 0; ky < kernel; ky++) {
        uint32_t iy = oy * stride + ky - pad; /* huge outside */
        if (iy >= h) continue;
        for (uint32_t kx = 0; kx < kernel; kx++) {
            uint32_t ix = ox * stride + kx - pad;
            if (ix >= w) continue;
            fkt_floats<V> v = fkt_load<V>(x + (((size_t)image * h + iy) * w + ix) * c + channel);
#pragma unroll
            for (int j = 0; j < V; j++)
                if (!any || v.v[j] > best.v[j] || v.v[j] != v.v[j]) best.v[j] = v.v[j];
            any = 1;
        }
    }
    fkt_store<V>(y + (size_t)i * V, best);
}

fkt_status fkt_cuda_max_pool(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, const struct fkt_op *op,
                             cudaStream_t stream)
{
    size_t n = fkt_cuda_count_of(y);
    fkt_status st = fkt_cuda_countable(fkt_cuda_count_of(x), fkt_op_name(op->kind));
    if (st != FKT_OK || !n) return st;
    FKT_BY_PRECISION(x->precision, T, FKT_BY_WIDTH(T, V, x->c, {
                         return FKT_LAUNCH((max_pool_kernel<T, V>), fkt_blocks(n / V), FKT_BLOCK, 0, stream,
                                           (T *)y->data, (const T *)x->data, (uint32_t)(n / V), (uint32_t)x->h,
                                           (uint32_t)x->w, (uint32_t)x->c, op->kernel, op->stride, op->pad,
                                           fkt_divisor_of((uint32_t)x->c / V), fkt_divisor_of((uint32_t)y->w),
                                           fkt_divisor_of((uint32_t)y->h));
                     }));
}

/* A block takes one image and LANES vectors of channels; its rows take every ROWS-th pixel, and their sums are added in
 * order. */
enum { LANES = 32, ROWS = FKT_BLOCK / LANES };

template <class T, int V>
__global__ void __launch_bounds__(FKT_BLOCK) mean_kernel(T *y, const T *x, uint32_t plane, uint32_t c)
{
    __shared__ float part[ROWS][LANES * V];
    uint32_t lane = threadIdx.x % LANES, row = threadIdx.x / LANES, channel = (blockIdx.x * LANES + lane) * V;
    fkt_floats<V> sum = fkt_floats<V>();
    if (channel < c)
        for (uint32_t p = row; p < plane; p += ROWS) {
            fkt_floats<V> v = fkt_load<V>(x + ((size_t)blockIdx.y * plane + p) * c + channel);
#pragma unroll
            for (int j = 0; j < V; j++) sum.v[j] += v.v[j];
        }
#pragma unroll
    for (int j = 0; j < V; j++) part[row][lane * V + j] = sum.v[j];
    __syncthreads();
    if (row || channel >= c) return;
#pragma unroll
    for (int j = 0; j < V; j++) {
        float total = 0;
        for (int r = 0; r < ROWS; r++) total += part[r][lane * V + j];
        sum.v[j] = total / (float)plane;
    }
    fkt_store<V>(y + (size_t)blockIdx.y * c + channel, sum);
}

fkt_status fkt_cuda_mean(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, cudaStream_t stream)
{
    fkt_status st = fkt_cuda_countable(fkt_cuda_count_of(x), fkt_op_name(FKT_OP_MEAN));
    if (st != FKT_OK || !fkt_cuda_count_of(x)) return st;
    FKT_BY_PRECISION(x->precision, T, FKT_BY_WIDTH(T, V, x->c, {
                         unsigned blocks = (unsigned)((x->c / V + LANES - 1) / LANES);
                         return FKT_LAUNCH((mean_kernel<T, V>), dim3(blocks, (unsigned)x->n), FKT_BLOCK, 0, stream,
                                           (T *)y->data, (const T *)x->data, (uint32_t)(x->h * x->w), (uint32_t)x->c);
                     }));
}
