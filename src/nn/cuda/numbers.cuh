/* SPDX-License-Identifier: Apache-2.0 */
/* numbers.cuh - numbers in memory (float, bfloat16) as float in registers, one or a vector of up to 16 bytes at a time;
 * for device_math.cuh.
 *
 * Under nvcc conversions are instructions; in the emulation they are nn/bf16.h, which rounds the same way. */
#ifndef FKT_NN_CUDA_NUMBERS_CUH
#define FKT_NN_CUDA_NUMBERS_CUH

#include "nn/bf16.h"
#include "nn/cuda/launch.cuh"
#include "nn/engine.h"

#include <stdint.h>

#define FKT_DEVICE static __device__ __forceinline__

struct fkt_bf16_bits { /* one bfloat16 in memory */
    uint16_t bits;
};

/* ---- one number ---- */
FKT_DEVICE float fkt_to_float(float x) { return x; }
FKT_DEVICE float fkt_to_float(fkt_bf16_bits x)
{
#ifdef FKT_CUDA_HOST
    return fkt_bf16_widen(x.bits);
#else
    return __uint_as_float((uint32_t)x.bits << 16);
#endif
}
FKT_DEVICE void fkt_put(float *to, float x) { *to = x; }
FKT_DEVICE void fkt_put(fkt_bf16_bits *to, float x)
{
#ifdef FKT_CUDA_HOST
    to->bits = fkt_bf16_narrow(x);
#else
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to->bits) : "f"(x));
#endif
}
/* x rounded to T and back: what a reader of the stored number sees. */
template <class T> FKT_DEVICE float fkt_rounded(float x)
{
    T stored;
    fkt_put(&stored, x);
    return fkt_to_float(stored);
}
FKT_DEVICE uint32_t fkt_pair_of_bf16(float low, float high)
{
#ifdef FKT_CUDA_HOST
    return (uint32_t)fkt_bf16_narrow(high) << 16 | fkt_bf16_narrow(low);
#else
    uint32_t r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
#endif
}
FKT_DEVICE float fkt_bits_as_float(uint32_t bits)
{
#ifdef FKT_CUDA_HOST
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
#else
    return __uint_as_float(bits);
#endif
}

/* ---- vectors: V numbers, the address a multiple of min(16, V * sizeof(T)) ---- */
template <int V> struct fkt_floats {
    float v[V];
};

template <int V> FKT_DEVICE fkt_floats<V> fkt_load(const float *from)
{
    fkt_floats<V> r;
    if (V % 4 == 0) {
#pragma unroll
        for (int j = 0; j + 3 < V; j += 4) {
            float4 q = *(const float4 *)(from + j);
            r.v[j] = q.x, r.v[j + 1] = q.y, r.v[j + 2] = q.z, r.v[j + 3] = q.w;
        }
    } else if (V == 2) {
        float2 q = *(const float2 *)from;
        r.v[0] = q.x, r.v[V - 1] = q.y;
    } else {
#pragma unroll
        for (int j = 0; j < V; j++) r.v[j] = from[j];
    }
    return r;
}
template <int V> FKT_DEVICE void fkt_store(float *to, const fkt_floats<V> &x)
{
    if (V % 4 == 0) {
#pragma unroll
        for (int j = 0; j + 3 < V; j += 4) {
            float4 q;
            q.x = x.v[j], q.y = x.v[j + 1], q.z = x.v[j + 2], q.w = x.v[j + 3];
            *(float4 *)(to + j) = q;
        }
    } else if (V == 2) {
        float2 q;
        q.x = x.v[0], q.y = x.v[V - 1];
        *(float2 *)to = q;
    } else {
#pragma unroll
        for (int j = 0; j < V; j++) to[j] = x.v[j];
    }
}
template <int V> FKT_DEVICE void fkt_unpair(fkt_floats<V> &r, int j, uint32_t pair)
{
    r.v[j] = fkt_bits_as_float(pair << 16);
    r.v[j + 1] = fkt_bits_as_float(pair & 0xffff0000u);
}
template <int V> FKT_DEVICE fkt_floats<V> fkt_load(const fkt_bf16_bits *from)
{
    fkt_floats<V> r;
    if (V % 8 == 0) {
#pragma unroll
        for (int j = 0; j + 7 < V; j += 8) {
            uint4 q = *(const uint4 *)(from + j);
            fkt_unpair(r, j, q.x), fkt_unpair(r, j + 2, q.y), fkt_unpair(r, j + 4, q.z), fkt_unpair(r, j + 6, q.w);
        }
    } else if (V == 4) {
        uint2 q = *(const uint2 *)from;
        fkt_unpair(r, 0, q.x), fkt_unpair(r, V - 2, q.y);
    } else if (V == 2) {
        fkt_unpair(r, 0, *(const uint32_t *)from);
    } else {
#pragma unroll
        for (int j = 0; j < V; j++) r.v[j] = fkt_to_float(from[j]);
    }
    return r;
}
template <int V> FKT_DEVICE void fkt_store(fkt_bf16_bits *to, const fkt_floats<V> &x)
{
    if (V % 8 == 0) {
#pragma unroll
        for (int j = 0; j + 7 < V; j += 8) {
            uint4 q;
            q.x = fkt_pair_of_bf16(x.v[j], x.v[j + 1]), q.y = fkt_pair_of_bf16(x.v[j + 2], x.v[j + 3]);
            q.z = fkt_pair_of_bf16(x.v[j + 4], x.v[j + 5]), q.w = fkt_pair_of_bf16(x.v[j + 6], x.v[j + 7]);
            *(uint4 *)(to + j) = q;
        }
    } else if (V == 4) {
        uint2 q;
        q.x = fkt_pair_of_bf16(x.v[0], x.v[1]), q.y = fkt_pair_of_bf16(x.v[V - 2], x.v[V - 1]);
        *(uint2 *)to = q;
    } else if (V == 2) {
        *(uint32_t *)to = fkt_pair_of_bf16(x.v[0], x.v[V - 1]);
    } else {
#pragma unroll
        for (int j = 0; j < V; j++) fkt_put(to + j, x.v[j]);
    }
}

#endif
