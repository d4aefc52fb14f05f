/* SPDX-License-Identifier: Apache-2.0 */
/* each.cuh - a function of up to three tensors, number by number, for kernels_element.cu and kernels_back.cu.
 *
 * A function is a struct of plain numbers with
 *     template <int V> __device__ void operator()(fkt_floats<V> &a, fkt_floats<V> b, fkt_floats<V> c, uint32_t i) const
 * which leaves its result in a; i is the vector's number, so that channel_of finds the channel of its first element.
 * Each thread loads all vectors it needs before it stores one: with two vectors from each of two inputs 64 bytes are
 * under way per thread, enough to reach the bandwidth of the memory. Results may lie where an input lies. */
#ifndef FKT_NN_CUDA_EACH_CUH
#define FKT_NN_CUDA_EACH_CUH

#include "nn/cuda/device_math.cuh"
#include "nn/cuda/kernels.h"

/* b and c may be NULL: zeros. n vectors, then `rest` single numbers (of functions that do not ask for a channel). */
template <class T, int V, int U, class F>
__global__ void __launch_bounds__(FKT_BLOCK)
    each_kernel(T *y, const T *a, const T *b, const T *c, uint32_t n, uint32_t rest, F f)
{
    uint32_t first = blockIdx.x * (U * FKT_BLOCK) + threadIdx.x;
    fkt_floats<V> va[U], vb[U], vc[U];
#pragma unroll
    for (int u = 0; u < U; u++) {
        uint32_t i = first + u * FKT_BLOCK;
        if (i >= n) continue;
        va[u] = fkt_load<V>(a + (size_t)i * V);
        if (b) vb[u] = fkt_load<V>(b + (size_t)i * V);
        else vb[u] = fkt_floats<V>();
        if (c) vc[u] = fkt_load<V>(c + (size_t)i * V);
        else vc[u] = fkt_floats<V>();
    }
#pragma unroll
    for (int u = 0; u < U; u++) {
        uint32_t i = first + u * FKT_BLOCK;
        if (i < n) {
            f(va[u], vb[u], vc[u], i);
            fkt_store<V>(y + (size_t)i * V, va[u]);
        } else if (V > 1 && i - n < rest) {
            size_t at = (size_t)n * V + (i - n);
            fkt_floats<1> sa = fkt_load<1>(a + at), sb = fkt_floats<1>(), sc = fkt_floats<1>();
            if (b) sb = fkt_load<1>(b + at);
            if (c) sc = fkt_load<1>(c + at);
            f(sa, sb, sc, 0);
            fkt_store<1>(y + at, sa);
        }
    }
}

/* channels 0: the function does not ask for a channel, and any count of numbers is cut into vectors. Otherwise vectors
 * do not cross pixels: where the channels are not a multiple of a vector's length, a vector is one number. */
template <class T, int U, class F>
static fkt_status each(const char *name, void *y, const void *a, const void *b, const void *c, size_t n, int channels,
                       F f, cudaStream_t stream)
{
    const int V = 16 / sizeof(T);
    fkt_status st = fkt_cuda_countable(n, name);
    if (st != FKT_OK || !n) return st;
    if (channels % V) {
        f.width(1);
        return FKT_LAUNCH((each_kernel<T, 1, U, F>), fkt_blocks((n + U - 1) / U), FKT_BLOCK, 0, stream, (T *)y,
                          (const T *)a, (const T *)b, (const T *)c, (uint32_t)n, 0, f);
    }
    f.width(V);
    return FKT_LAUNCH((each_kernel<T, V, U, F>), fkt_blocks((n / V + n % V + U - 1) / U), FKT_BLOCK, 0, stream, (T *)y,
                      (const T *)a, (const T *)b, (const T *)c, (uint32_t)(n / V), (uint32_t)(n % V), f);
}

/* For functions that do not ask for a channel. */
struct each_flat {
    void width(int) {}
};
/* For those that do. */
struct each_channel {
    uint32_t channels, v;
    fkt_divisor vectors; /* of a pixel */
    void width(int by)
    {
        v = (uint32_t)by;
        vectors = fkt_divisor_of(channels / v);
    }
    __device__ __forceinline__ uint32_t channel_of(uint32_t i) const
    {
        uint32_t pixel;
        return fkt_split(i, vectors, &pixel) * v;
    }
};

FKT_DEVICE float fkt_act_of(float x, int act)
{
    if (act == FKT_CUDA_ACT_RELU) return fkt_relu(x);
    if (act == FKT_CUDA_ACT_RELU6) return fkt_relu6(x);
    return act == FKT_CUDA_ACT_SILU ? fkt_silu(x) : x;
}

#endif
