/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_resize.cu - RESIZE and its backward, which is the transpose: the weights of nn/resize.h, computed by the
 * threads in whole numbers.
 *
 * A thread makes one vector of channels of one result from all numbers that it reads: at most 3 x 3 where a map becomes
 * larger. A guide resizes the image alone, so this is a small part of its time, and rows and columns are not passes of
 * their own. */
#include "nn/cuda/device_math.cuh"
#include "nn/cuda/kernels.h"
#include "nn/resize.h"

/* One side of the map: `to` results of `from` numbers; BACK: gradients of `to` numbers from those of `from` results. */
struct resize_side {
    uint32_t from, to;
};

template <bool BACK> FKT_DEVICE fkt_resize_span reads(resize_side a, uint32_t o)
{
    return BACK ? fkt_resize_readers(a.to, a.from, o) : fkt_resize_reads(a.from, a.to, o);
}

template <bool BACK> FKT_DEVICE float weight_of(resize_side a, uint32_t o, uint32_t s)
{
    if (BACK) return (float)fkt_resize_t(a.to, a.from, s, o) / (float)fkt_resize_total(a.to, a.from, s);
    return (float)fkt_resize_t(a.from, a.to, o, s);
}

/* What the sum of a result's weights is divided by: a backward divides each weight by the sum of its own result. */
template <bool BACK> FKT_DEVICE float total_of(resize_side a, uint32_t o)
{
    return BACK ? 1.0f : (float)fkt_resize_total(a.from, a.to, o);
}

template <class T, int V, bool BACK>
__global__ void __launch_bounds__(FKT_BLOCK)
    resize_kernel(T *y, const T *x, uint32_t n, resize_side rows, resize_side columns, fkt_divisor vectors,
                  fkt_divisor width, fkt_divisor height, int more)
{
    uint32_t i = blockIdx.x * FKT_BLOCK + threadIdx.x, pixel, row, image;
    if (i >= n) return;
    uint32_t c = fkt_split(i, vectors, &pixel) * V, ox = fkt_split(pixel, width, &row);
    uint32_t oy = fkt_split(row, height, &image), channels = vectors.d * V;
    const fkt_resize_span down = reads<BACK>(rows, oy), across = reads<BACK>(columns, ox);
    const float scale = 1 / (total_of<BACK>(rows, oy) * total_of<BACK>(columns, ox));
    fkt_floats<V> sum = fkt_floats<V>();
    for (uint32_t iy = down.first; iy < down.end; iy++) {
        const T *from = x + ((size_t)image * rows.from + iy) * columns.from * channels + c;
        fkt_floats<V> part = fkt_floats<V>();
        for (uint32_t ix = across.first; ix < across.end; ix++) {
            const fkt_floats<V> v = fkt_load<V>(from + (size_t)ix * channels);
            const float w = weight_of<BACK>(columns, ox, ix);
#pragma unroll
            for (int j = 0; j < V; j++) part.v[j] += w * v.v[j];
        }
        const float w = weight_of<BACK>(rows, oy, iy);
#pragma unroll
        for (int j = 0; j < V; j++) sum.v[j] += w * part.v[j];
    }
#pragma unroll
    for (int j = 0; j < V; j++) sum.v[j] *= scale;
    fkt_give<V>(y + (size_t)i * V, sum, more);
}

template <bool BACK>
static fkt_status resize(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, int more,
                         cudaStream_t stream)
{
    const resize_side rows = {(uint32_t)x->h, (uint32_t)y->h}, columns = {(uint32_t)x->w, (uint32_t)y->w};
    size_t n = fkt_cuda_count_of(y);
    fkt_status st = fkt_cuda_countable(n, fkt_op_name(FKT_OP_RESIZE));
    if (st == FKT_OK) st = fkt_cuda_countable(fkt_cuda_count_of(x), fkt_op_name(FKT_OP_RESIZE));
    if (st != FKT_OK || !n) return st;
    FKT_BY_PRECISION(x->precision, T, FKT_BY_WIDTH(T, V, x->c, {
                         return FKT_LAUNCH((resize_kernel<T, V, BACK>), fkt_blocks(n / V), FKT_BLOCK, 0, stream,
                                           (T *)y->data, (const T *)x->data, (uint32_t)(n / V), rows, columns,
                                           fkt_divisor_of((uint32_t)x->c / V), fkt_divisor_of(columns.to),
                                           fkt_divisor_of(rows.to), more);
                     }));
}

fkt_status fkt_cuda_resize(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, cudaStream_t stream)
{
    return resize<false>(y, x, 0, stream);
}

fkt_status fkt_cuda_resize_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy, int more,
                                cudaStream_t stream)
{
    return resize<true>(dx, dy, more, stream);
}
