/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_back.cu - gradients by the input of operations that do not sum over channels; nn/ref/learn_ops.c is the
 * definition, also at ties: ReLU at 0 has slope 0, and of equal largest numbers the first gets the gradient.
 *
 * Every gradient is gathered: a thread finds all results that its number took part in, in a fixed order, so there are
 * no atomics. All are limited by memory; B is the bytes of dx, and `more` adds one B. Time on an H200: bytes over
 * 4.3e12, at least about 3 us. */
#include "nn/cuda/each.cuh"
#include "nn/cuda/move.h"

FKT_DEVICE float silu_slope(float x)
{
    float s = fkt_sigmoid(x);
    return s * (1 + x * (1 - s));
}

/* ---- unary: 3 B (2 B for AFFINE) ---- */
template <int KIND> struct unary_back_function : each_flat {
    float p;
    template <int V>
    __device__ __forceinline__ void operator()(fkt_floats<V> &a, fkt_floats<V> b, fkt_floats<V> c, uint32_t) const
    {
#pragma unroll
        for (int j = 0; j < V; j++) {
            float x = b.v[j], t = KIND == FKT_OP_SOFT_CLAMP ? tanhf(x / p) : 0;
            float d = KIND == FKT_OP_RELU         ? (x > 0 ? a.v[j] : 0)
                      : KIND == FKT_OP_RELU6      ? (x > 0 && x < 6 ? a.v[j] : 0)
                      : KIND == FKT_OP_SILU       ? a.v[j] * silu_slope(x)
                      : KIND == FKT_OP_SOFT_CLAMP ? a.v[j] * (1 - t * t)
                                                  : a.v[j] * p;
            a.v[j] = d + c.v[j];
        }
    }
};

template <class T, int KIND>
static fkt_status unary_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy, const void *x,
                             const struct fkt_op *op, int more, cudaStream_t stream)
{
    unary_back_function<KIND> f;
    f.p = op->value[0];
    return each<T, 1>(fkt_op_name(op->kind), dx->data, dy->data, x, more ? dx->data : NULL, fkt_cuda_count_of(dx), 0, f,
                      stream);
}

fkt_status fkt_cuda_unary_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy,
                               const struct fkt_cuda_tensor *x, const struct fkt_op *op, int more, cudaStream_t stream)
{
    FKT_BY_PRECISION(
        dx->precision, T, switch (op->kind) {
            case FKT_OP_RELU: return unary_back<T, FKT_OP_RELU>(dx, dy, x->data, op, more, stream);
            case FKT_OP_RELU6: return unary_back<T, FKT_OP_RELU6>(dx, dy, x->data, op, more, stream);
            case FKT_OP_SILU: return unary_back<T, FKT_OP_SILU>(dx, dy, x->data, op, more, stream);
            case FKT_OP_SOFT_CLAMP: return unary_back<T, FKT_OP_SOFT_CLAMP>(dx, dy, x->data, op, more, stream);
            default: return unary_back<T, FKT_OP_AFFINE>(dx, dy, NULL, op, more, stream);
        });
}

/* ---- dy as it is, or times a number for each channel: 2 B ---- */
struct scaled_function : each_channel {
    const float *scale; /* NULL: 1 */
    template <int V>
    __device__ __forceinline__ void operator()(fkt_floats<V> &a, fkt_floats<V> b, fkt_floats<V>, uint32_t i) const
    {
        fkt_floats<V> s;
        if (scale) s = fkt_load<V>(scale + channel_of(i));
#pragma unroll
        for (int j = 0; j < V; j++) a.v[j] = (scale ? a.v[j] * s.v[j] : a.v[j]) + b.v[j];
    }
};

fkt_status fkt_cuda_channel_affine_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy,
                                        const float *scale, int more, cudaStream_t stream)
{
    scaled_function f;
    f.channels = (uint32_t)dx->c;
    f.scale = scale;
    FKT_BY_PRECISION(dx->precision, T,
                     return (each<T, 2>("gradient of a norm", dx->data, dy->data, more ? dx->data : NULL, NULL,
                                        fkt_cuda_count_of(dx), dx->c, f, stream)));
}

fkt_status fkt_cuda_pass_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy, int more,
                              cudaStream_t stream)
{
    scaled_function f;
    f.channels = (uint32_t)dx->c;
    f.scale = NULL;
    FKT_BY_PRECISION(dx->precision, T,
                     return (each<T, 2>("gradient of an addition", dx->data, dy->data, more ? dx->data : NULL, NULL,
                                        fkt_cuda_count_of(dx), 0, f, stream)));
}

/* ---- GLU: 2.5 B ---- */
template <class T, int V>
__global__ void __launch_bounds__(FKT_BLOCK)
    glu_back_kernel(T *dx, const T *dy, const T *x, uint32_t n, uint32_t half, fkt_divisor vectors, int more)
{
    uint32_t i = blockIdx.x * FKT_BLOCK + threadIdx.x, pixel;
    if (i >= n) return;
    size_t at = (size_t)V * fkt_split(i, vectors, &pixel);
    at += (size_t)pixel * 2 * half;
    fkt_floats<V> d = fkt_load<V>(dy + (size_t)i * V), a = fkt_load<V>(x + at), b = fkt_load<V>(x + at + half);
#pragma unroll
    for (int j = 0; j < V; j++) {
        float first = d.v[j] * fkt_silu(b.v[j]);
        b.v[j] = d.v[j] * a.v[j] * silu_slope(b.v[j]);
        a.v[j] = first;
    }
    fkt_give<V>(dx + at, a, more);
    fkt_give<V>(dx + at + half, b, more);
}

fkt_status fkt_cuda_glu_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy,
                             const struct fkt_cuda_tensor *x, int more, cudaStream_t stream)
{
    size_t n = fkt_cuda_count_of(dy);
    fkt_status st = fkt_cuda_countable(2 * n, fkt_op_name(FKT_OP_GLU));
    if (st != FKT_OK || !n) return st;
    FKT_BY_PRECISION(x->precision, T, FKT_BY_WIDTH(T, V, dy->c, {
                         return FKT_LAUNCH((glu_back_kernel<T, V>), fkt_blocks(n / V), FKT_BLOCK, 0, stream,
                                           (T *)dx->data, (const T *)dy->data, (const T *)x->data, (uint32_t)(n / V),
                                           (uint32_t)dy->c, fkt_divisor_of((uint32_t)dy->c / V), more);
                     }));
}

/* ---- upsampling: (factor^2 + 1) B ---- */
template <class T, int V>
__global__ void __launch_bounds__(FKT_BLOCK)
    upsample_back_kernel(T *dx, const T *dy, uint32_t n, uint32_t c, uint32_t factor, fkt_divisor vectors,
                         fkt_divisor width, int more)
{
    uint32_t i = blockIdx.x * FKT_BLOCK + threadIdx.x, pixel, row;
    if (i >= n) return;
    uint32_t channel = fkt_split(i, vectors, &pixel) * V, column = fkt_split(pixel, width, &row);
    fkt_floats<V> sum = fkt_floats<V>();
    for (uint32_t ky = 0; ky < factor; ky++)
        for (uint32_t kx = 0; kx < factor; kx++) {
            size_t at = (size_t)(row * factor + ky) * width.d * factor + column * factor + kx;
            fkt_floats<V> v = fkt_load<V>(dy + at * c + channel);
#pragma unroll
            for (int j = 0; j < V; j++) sum.v[j] += v.v[j];
        }
    fkt_give<V>(dx + (size_t)i * V, sum, more);
}

fkt_status fkt_cuda_upsample_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy, int factor,
                                  int more, cudaStream_t stream)
{
    size_t n = fkt_cuda_count_of(dx);
    fkt_status st = fkt_cuda_countable(fkt_cuda_count_of(dy), fkt_op_name(FKT_OP_UPSAMPLE));
    if (st != FKT_OK || !n) return st;
    FKT_BY_PRECISION(dx->precision, T, FKT_BY_WIDTH(T, V, dx->c, {
                         return FKT_LAUNCH((upsample_back_kernel<T, V>), fkt_blocks(n / V), FKT_BLOCK, 0, stream,
                                           (T *)dx->data, (const T *)dy->data, (uint32_t)(n / V), (uint32_t)dx->c,
                                           (uint32_t)factor, fkt_divisor_of((uint32_t)dx->c / V),
                                           fkt_divisor_of((uint32_t)dx->w), more);
                     }));
}

fkt_status fkt_cuda_shuffle_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy, int factor,
                                 int more, cudaStream_t stream)
{
    return fkt_cuda_move_down(dx, dy, NULL, factor, more, stream);
}

fkt_status fkt_cuda_unshuffle_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy, int factor,
                                   int more, cudaStream_t stream)
{
    return fkt_cuda_move_up(dx, dy, NULL, factor, more, stream);
}

/* ---- concatenation: 2 B ---- */
template <class T, int V>
__global__ void __launch_bounds__(FKT_BLOCK)
    part_kernel(T *dx, const T *dy, uint32_t n, uint32_t first, uint32_t all, fkt_divisor vectors, int more)
{
    uint32_t i = blockIdx.x * FKT_BLOCK + threadIdx.x, pixel;
    if (i >= n) return;
    uint32_t c = fkt_split(i, vectors, &pixel) * V;
    fkt_give<V>(dx + (size_t)i * V, fkt_load<V>(dy + (size_t)pixel * all + first + c), more);
}

fkt_status fkt_cuda_concat_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy, int first, int more,
                                cudaStream_t stream)
{
    size_t n = fkt_cuda_count_of(dx);
    fkt_status st = fkt_cuda_countable(fkt_cuda_count_of(dy), fkt_op_name(FKT_OP_CONCAT));
    if (st != FKT_OK || !n) return st;
    FKT_BY_PRECISION(dx->precision, T, FKT_BY_WIDTH(T, V, dx->c | first | dy->c, {
                         return FKT_LAUNCH((part_kernel<T, V>), fkt_blocks(n / V), FKT_BLOCK, 0, stream, (T *)dx->data,
                                           (const T *)dy->data, (uint32_t)(n / V), (uint32_t)first, (uint32_t)dy->c,
                                           fkt_divisor_of((uint32_t)dx->c / V), more);
                     }));
}

/* ---- mean of each map: B ---- */
template <class T, int V>
__global__ void __launch_bounds__(FKT_BLOCK) mean_back_kernel(T *dx, const T *dy, uint32_t n, uint32_t c, float plane,
                                                              fkt_divisor vectors, fkt_divisor image, int more)
{
    uint32_t i = blockIdx.x * FKT_BLOCK + threadIdx.x, pixel;
    if (i >= n) return;
    uint32_t channel = fkt_split(i, vectors, &pixel) * V;
    fkt_floats<V> v = fkt_load<V>(dy + (size_t)fkt_quotient(i, image) * c + channel);
#pragma unroll
    for (int j = 0; j < V; j++) v.v[j] /= plane;
    fkt_give<V>(dx + (size_t)i * V, v, more);
}

fkt_status fkt_cuda_mean_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy, int more,
                              cudaStream_t stream)
{
    size_t n = fkt_cuda_count_of(dx);
    uint32_t plane = (uint32_t)(dx->h * dx->w);
    fkt_status st = fkt_cuda_countable(n, fkt_op_name(FKT_OP_MEAN));
    if (st != FKT_OK || !n) return st;
    FKT_BY_PRECISION(dx->precision, T, FKT_BY_WIDTH(T, V, dx->c, {
                         return FKT_LAUNCH((mean_back_kernel<T, V>), fkt_blocks(n / V), FKT_BLOCK, 0, stream,
                                           (T *)dx->data, (const T *)dy->data, (uint32_t)(n / V), (uint32_t)dx->c,
                                           (float)plane, fkt_divisor_of((uint32_t)dx->c / V),
                                           fkt_divisor_of((uint32_t)dx->c / V * plane), more);
                     }));
}

/* ---- largest number of windows: x and dy are read once from memory and up to kernel^4 / stride^2 times from the
 * caches, since a thread finds the largest number of every window that its own number is in. ---- */
struct pool_shape {
    uint32_t h, w, c, oh, ow, kernel, stride, pad;
    fkt_divisor vectors, width, height;
};

/* Of the window of result (oy, ox): where its largest number is, y * w + x, for each of V channels. */
template <class T, int V>
FKT_DEVICE void largest(uint32_t (&at)[V], const T *image, const pool_shape &s, uint32_t oy, uint32_t ox, uint32_t c)
{
    fkt_floats<V> best = fkt_floats<V>();
    int any = 0;
#pragma unroll
    for (int j = 0; j < V; j++) at[j] = UINT32_MAX;
    for (uint32_t ky = 0; ky < s.kernel; ky++)
        for (uint32_t kx = 0; kx < s.kernel; kx++) {
            uint32_t iy = oy * s.stride + ky - s.pad, ix = ox * s.stride + kx - s.pad; /* huge outside */
            if (iy >= s.h || ix >= s.w) continue;
            fkt_floats<V> v = fkt_load<V>(image + ((size_t)iy * s.w + ix) * s.c + c);
#pragma unroll
            for (int j = 0; j < V; j++)
                if (!any || v.v[j] > best.v[j] || v.v[j] != v.v[j]) {
                    best.v[j] = v.v[j];
                    at[j] = iy * s.w + ix;
                }
            any = 1;
        }
}

template <class T, int V>
__global__ void __launch_bounds__(FKT_BLOCK)
    max_pool_back_kernel(T *dx, const T *dy, const T *x, uint32_t n, pool_shape s, int more)
{
    uint32_t i = blockIdx.x * FKT_BLOCK + threadIdx.x, pixel, row, image;
    if (i >= n) return;
    uint32_t c = fkt_split(i, s.vectors, &pixel) * V, ix = fkt_split(pixel, s.width, &row);
    uint32_t iy = fkt_split(row, s.height, &image), y = iy + s.pad, k = ix + s.pad;
    const T *from = x + (size_t)image * s.h * s.w * s.c;
    fkt_floats<V> sum = fkt_floats<V>();
    for (uint32_t oy = y < s.kernel ? 0 : (y - s.kernel) / s.stride + 1; oy <= y / s.stride && oy < s.oh; oy++)
        for (uint32_t ox = k < s.kernel ? 0 : (k - s.kernel) / s.stride + 1; ox <= k / s.stride && ox < s.ow; ox++) {
            uint32_t at[V];
            largest<T, V>(at, from, s, oy, ox, c);
            fkt_floats<V> d = fkt_load<V>(dy + (((size_t)image * s.oh + oy) * s.ow + ox) * s.c + c);
#pragma unroll
            for (int j = 0; j < V; j++)
                if (at[j] == iy * s.w + ix) sum.v[j] += d.v[j];
        }
    fkt_give<V>(dx + (size_t)i * V, sum, more);
}

fkt_status fkt_cuda_max_pool_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy,
                                  const struct fkt_cuda_tensor *x, const struct fkt_op *op, int more,
                                  cudaStream_t stream)
{
    size_t n = fkt_cuda_count_of(dx);
    pool_shape s = {(uint32_t)x->h, (uint32_t)x->w, (uint32_t)x->c, (uint32_t)dy->h, (uint32_t)dy->w, op->kernel,
                    op->stride,     op->pad,        {0, 0, 0},      {0, 0, 0},       {0, 0, 0}};
    fkt_status st = fkt_cuda_countable(n, fkt_op_name(op->kind));
    if (st != FKT_OK || !n) return st;
    s.width = fkt_divisor_of(s.w);
    s.height = fkt_divisor_of(s.h);
    FKT_BY_PRECISION(x->precision, T, FKT_BY_WIDTH(T, V, x->c, {
                         s.vectors = fkt_divisor_of(s.c / V);
                         return FKT_LAUNCH((max_pool_back_kernel<T, V>), fkt_blocks(n / V), FKT_BLOCK, 0, stream,
                                           (T *)dx->data, (const T *)dy->data, (const T *)x->data, (uint32_t)(n / V), s,
                                           more);
                     }));
}
