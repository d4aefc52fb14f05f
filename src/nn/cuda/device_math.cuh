/* SPDX-License-Identifier: Apache-2.0 */
/* device_math.cuh - what all kernels share: numbers in memory (numbers.cuh), division by a number that the host knows,
 * sums of a warp and of a block in a fixed order, the choice of a precision. */
#ifndef FKT_NN_CUDA_DEVICE_MATH_CUH
#define FKT_NN_CUDA_DEVICE_MATH_CUH

#include "nn/cuda/numbers.cuh"

/* ---- division of numbers below 2^31 by a divisor below 2^31 that the host prepared ---- */
struct fkt_divisor {
    uint32_t d, factor, shift;
};
/* Granlund and Montgomery 1994, figure 4.1 for 32 bits with an upper half that fits because dividends have 31. */
static inline fkt_divisor fkt_divisor_of(uint32_t d)
{
    fkt_divisor r = {d, 0, 0};
    while (r.shift < 31 && (1u << r.shift) < d) r.shift++;
    if (d > 1) r.factor = (uint32_t)((((uint64_t)1 << (31 + r.shift)) + d - 1) / d);
    return r;
}
FKT_DEVICE uint32_t fkt_quotient(uint32_t x, fkt_divisor d)
{
    if (d.d == 1) return x;
#ifdef FKT_CUDA_HOST
    return (uint32_t)((uint64_t)x * d.factor >> 32) >> (d.shift - 1);
#else
    return __umulhi(x, d.factor) >> (d.shift - 1);
#endif
}
/* x = quotient * d + rest. */
FKT_DEVICE uint32_t fkt_split(uint32_t x, fkt_divisor d, uint32_t *quotient)
{
    *quotient = fkt_quotient(x, d);
    return x - *quotient * d.d;
}

static inline __host__ __device__ uint32_t fkt_least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* ---- functions ---- */
FKT_DEVICE float fkt_relu(float x) { return x < 0 ? 0 : x; } /* NaN stays NaN */
FKT_DEVICE float fkt_relu6(float x) { return x < 0 ? 0 : x > 6 ? 6 : x; }
FKT_DEVICE float fkt_sigmoid(float x) { return 1 / (1 + expf(-x)); }
FKT_DEVICE float fkt_silu(float x) { return x / (1 + expf(-x)); }

/* ---- double without fused multiply-add: the bits of the CPU ---- */
FKT_DEVICE double fkt_product(double a, double b)
{
#ifdef FKT_CUDA_HOST
    return a * b;
#else
    return __dmul_rn(a, b);
#endif
}
FKT_DEVICE double fkt_sum(double a, double b)
{
#ifdef FKT_CUDA_HOST
    return a + b;
#else
    return __dadd_rn(a, b);
#endif
}

/* V numbers that go to `to`, or are added to what is there. */
template <int V, class T> FKT_DEVICE void fkt_give(T *to, fkt_floats<V> v, int more)
{
    if (more) {
        fkt_floats<V> old = fkt_load<V>(to);
#pragma unroll
        for (int j = 0; j < V; j++) v.v[j] += old.v[j];
    }
    fkt_store<V>(to, v);
}

/* ---- sums in a fixed order. Every thread of the warp or block calls them and gets the sum. ---- */
FKT_DEVICE float fkt_warp_sum(float x)
{
#pragma unroll
    for (int lane = 16; lane > 0; lane /= 2) x += __shfl_xor_sync(0xffffffffu, x, lane);
    return x;
}
/* blockDim.x a multiple of 32, one-dimensional; `sums` is __shared__, 32 numbers, free for reuse after the call. */
FKT_DEVICE float fkt_block_sum(float x, float *sums)
{
    uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    x = fkt_warp_sum(x);
    if (warps == 1) return x;
    if (lane == 0) sums[warp] = x;
    __syncthreads();
    x = fkt_warp_sum(lane < warps ? sums[lane] : 0);
    __syncthreads();
    return x;
}

/* ---- launching over n items, one per thread ---- */
enum { FKT_BLOCK = 256 };
static inline unsigned fkt_blocks(size_t n) { return (unsigned)((n + FKT_BLOCK - 1) / FKT_BLOCK); }

/* `T` is float or fkt_bf16_bits in the statements. */
#define FKT_BY_PRECISION(precision, T, ...)                                                                            \
    do {                                                                                                               \
        if ((precision) == FKT_PRECISION_BF16) {                                                                       \
            typedef fkt_bf16_bits T;                                                                                   \
            __VA_ARGS__;                                                                                               \
        } else {                                                                                                       \
            typedef float T;                                                                                           \
            __VA_ARGS__;                                                                                               \
        }                                                                                                              \
    } while (0)

/* `V` is the number of elements in 16 bytes where it divides `number`, else 1. */
#define FKT_BY_WIDTH(T, V, number, ...)                                                                                \
    do {                                                                                                               \
        if ((number) % (int)(16 / sizeof(T)) == 0) {                                                                   \
            const int V = 16 / sizeof(T);                                                                              \
            __VA_ARGS__;                                                                                               \
        } else {                                                                                                       \
            const int V = 1;                                                                                           \
            __VA_ARGS__;                                                                                               \
        }                                                                                                              \
    } while (0)

#endif
