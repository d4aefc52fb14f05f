/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_element.cu - operations on each number by itself.
 *
 * All are limited by memory: 16 bytes are read and written per thread and access. Time on an H200 (4.3 TB/s) is the
 * bytes that a comment gives, over 4.3e12, and about 3 us where that is less. B: bytes of one tensor. */
#include "nn/cuda/each.cuh"

/* ---- unary: 2 B ---- */
template <int KIND> struct unary_function : each_flat {
    float p, q;
    template <int V>
    __device__ __forceinline__ void operator()(fkt_floats<V> &a, fkt_floats<V>, fkt_floats<V>, uint32_t) const
    {
#pragma unroll
        for (int j = 0; j < V; j++) {
            float x = a.v[j];
            a.v[j] = KIND == FKT_OP_RELU         ? fkt_relu(x)
                     : KIND == FKT_OP_RELU6      ? fkt_relu6(x)
                     : KIND == FKT_OP_SILU       ? fkt_silu(x)
                     : KIND == FKT_OP_SOFT_CLAMP ? p * tanhf(x / p)
                                                 : p * x + q;
        }
    }
};

template <class T, int KIND>
static fkt_status unary(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, const struct fkt_op *op,
                        cudaStream_t stream)
{
    unary_function<KIND> f;
    f.p = op->value[0];
    f.q = op->value[1];
    return each<T, 2>(fkt_op_name(op->kind), y->data, x->data, NULL, NULL, fkt_cuda_count_of(x), 0, f, stream);
}

fkt_status fkt_cuda_unary(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, const struct fkt_op *op,
                          cudaStream_t stream)
{
    FKT_BY_PRECISION(
        x->precision, T, switch (op->kind) {
            case FKT_OP_RELU: return unary<T, FKT_OP_RELU>(y, x, op, stream);
            case FKT_OP_RELU6: return unary<T, FKT_OP_RELU6>(y, x, op, stream);
            case FKT_OP_SILU: return unary<T, FKT_OP_SILU>(y, x, op, stream);
            case FKT_OP_SOFT_CLAMP: return unary<T, FKT_OP_SOFT_CLAMP>(y, x, op, stream);
            default: return unary<T, FKT_OP_AFFINE>(y, x, op, stream);
        });
}

/* ---- add: 3 B ---- */
struct add_function : each_flat {
    template <int V>
    __device__ __forceinline__ void operator()(fkt_floats<V> &a, fkt_floats<V> b, fkt_floats<V>, uint32_t) const
    {
#pragma unroll
        for (int j = 0; j < V; j++) a.v[j] += b.v[j];
    }
};

fkt_status fkt_cuda_add(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *a,
                        const struct fkt_cuda_tensor *b, cudaStream_t stream)
{
    add_function f;
    FKT_BY_PRECISION(
        a->precision, T,
        return (each<T, 2>("addition", y->data, a->data, b->data, NULL, fkt_cuda_count_of(a), 0, f, stream)));
}

/* ---- epilogue: 2 B, 3 B with add; channel affine: 2 B. The arrays of channels come from the caches. ---- */
template <int ACT> struct affine_function : each_channel {
    const float *scale, *shift; /* NULL: 1, 0 */
    template <int V>
    __device__ __forceinline__ void operator()(fkt_floats<V> &a, fkt_floats<V> b, fkt_floats<V>, uint32_t i) const
    {
        uint32_t c = channel_of(i);
        fkt_floats<V> s, t = fkt_floats<V>();
        if (scale) s = fkt_load<V>(scale + c);
        if (shift) t = fkt_load<V>(shift + c);
#pragma unroll
        for (int j = 0; j < V; j++) {
            float x = scale ? a.v[j] * s.v[j] + t.v[j] : a.v[j] + t.v[j];
            a.v[j] = fkt_act_of(x + b.v[j], ACT);
        }
    }
};

template <class T, int ACT>
static fkt_status affine(const struct fkt_cuda_tensor *y, const void *x, const void *add, const float *scale,
                         const float *shift, cudaStream_t stream)
{
    affine_function<ACT> f;
    f.channels = (uint32_t)y->c;
    f.scale = scale;
    f.shift = shift;
    return each<T, 2>("channel affine", y->data, x, add, NULL, fkt_cuda_count_of(y), y->c, f, stream);
}

static fkt_status affine_any(const struct fkt_cuda_tensor *y, const void *x, const void *add, const float *scale,
                             const float *shift, enum fkt_cuda_act act, cudaStream_t stream)
{
    FKT_BY_PRECISION(
        y->precision, T, switch (act) {
            case FKT_CUDA_ACT_RELU: return affine<T, FKT_CUDA_ACT_RELU>(y, x, add, scale, shift, stream);
            case FKT_CUDA_ACT_RELU6: return affine<T, FKT_CUDA_ACT_RELU6>(y, x, add, scale, shift, stream);
            case FKT_CUDA_ACT_SILU: return affine<T, FKT_CUDA_ACT_SILU>(y, x, add, scale, shift, stream);
            default: return affine<T, FKT_CUDA_ACT_NONE>(y, x, add, scale, shift, stream);
        });
}

fkt_status fkt_cuda_epilogue(const struct fkt_cuda_tensor *y, const float *bias, const void *add, enum fkt_cuda_act act,
                             cudaStream_t stream)
{
    return affine_any(y, y->data, add, NULL, bias, act, stream);
}

fkt_status fkt_cuda_channel_affine(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, const float *scale,
                                   const float *shift, enum fkt_cuda_act act, cudaStream_t stream)
{
    return affine_any(y, x->data, NULL, scale, shift, act, stream);
}

/* ---- GLU: 1.5 B of its input ---- */
template <class T, int V>
__global__ void __launch_bounds__(FKT_BLOCK)
    glu_kernel(T *y, const T *x, uint32_t n, uint32_t half, fkt_divisor vectors)
{
    uint32_t i = blockIdx.x * FKT_BLOCK + threadIdx.x, pixel;
    if (i >= n) return;
    const T *at = x + (size_t)V * fkt_split(i, vectors, &pixel);
    at += (size_t)pixel * 2 * half;
    fkt_floats<V> a = fkt_load<V>(at), b = fkt_load<V>(at + half);
#pragma unroll
    for (int j = 0; j < V; j++) a.v[j] *= fkt_silu(b.v[j]);
    fkt_store<V>(y + (size_t)i * V, a);
}

fkt_status fkt_cuda_glu(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, cudaStream_t stream)
{
    size_t n = fkt_cuda_count_of(y);
    fkt_status st = fkt_cuda_countable(2 * n, fkt_op_name(FKT_OP_GLU));
    if (st != FKT_OK || !n) return st;
    FKT_BY_PRECISION(x->precision, T, FKT_BY_WIDTH(T, V, y->c, {
                         uint32_t count = (uint32_t)(n / V);
                         return FKT_LAUNCH((glu_kernel<T, V>), fkt_blocks(count), FKT_BLOCK, 0, stream, (T *)y->data,
                                           (const T *)x->data, count, (uint32_t)y->c,
                                           fkt_divisor_of((uint32_t)y->c / V));
                     }));
}
