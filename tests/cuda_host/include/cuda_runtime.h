/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_runtime.h - what a kernel's source needs when g++ compiles it: keywords, vector types, the numbers of a thread,
 * barriers and shuffles. ../kernel_run.c runs the threads. */
#ifndef FKT_TESTS_CUDA_RUNTIME_H
#define FKT_TESTS_CUDA_RUNTIME_H

#include "cuda_runtime_api.h"

#include <math.h>
#include <string.h>
#include <tuple> /* for launch.cuh */

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct uchar4 {
    unsigned char x, y, z, w;
};

#define __global__ static
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
/* Blocks run one after the other on the thread that launches, so one copy for each thread is one for each block. */
#define __shared__ static __thread

#define threadIdx fkt_host_thread
#define blockIdx fkt_host_block
#define blockDim fkt_host_threads
#define gridDim fkt_host_blocks

static inline void fkt_host_launch(const char *name, dim3 grid, dim3 block, size_t shared, cudaStream_t stream,
                                   void (*body)(const void *), const void *arguments, size_t bytes)
{
    fkt_host_dim3 g = {grid.x, grid.y, grid.z}, b = {block.x, block.y, block.z};
    fkt_host_launch_c(name, g, b, shared, stream, body, arguments, bytes);
}

static inline void __syncthreads() { fkt_host_barrier(); }
static inline void __syncwarp() { fkt_host_exchange(0, 0); }
static inline unsigned fkt_host_lane()
{
    return (fkt_host_thread.x + fkt_host_threads.x * (fkt_host_thread.y + fkt_host_threads.y * fkt_host_thread.z)) % 32;
}
template <class T> static inline T fkt_host_shuffle(T value, unsigned lane)
{
    uint64_t word = 0;
    memcpy(&word, &value, sizeof value);
    word = fkt_host_exchange(word, lane);
    memcpy(&value, &word, sizeof value);
    return value;
}
template <class T> static inline T __shfl_xor_sync(unsigned, T value, int with)
{
    return fkt_host_shuffle(value, fkt_host_lane() ^ (unsigned)with);
}
template <class T> static inline T __shfl_down_sync(unsigned, T value, unsigned by)
{
    unsigned lane = fkt_host_lane();
    return fkt_host_shuffle(value, lane + by < 32 ? lane + by : lane);
}
template <class T> static inline T __shfl_sync(unsigned, T value, int lane)
{
    return fkt_host_shuffle(value, (unsigned)lane % 32);
}

/* On integers alone: on floats the sum would depend on the order of threads. */
static inline int atomicOr(int *at, int x) { return __atomic_fetch_or(at, x, __ATOMIC_RELAXED); }
static inline unsigned atomicAdd(unsigned *at, unsigned x) { return __atomic_fetch_add(at, x, __ATOMIC_RELAXED); }
static inline unsigned long long atomicAdd(unsigned long long *at, unsigned long long x)
{
    return __atomic_fetch_add(at, x, __ATOMIC_RELAXED);
}
static inline unsigned long long atomicMin(unsigned long long *at, unsigned long long x)
{
    unsigned long long was = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (x < was && !__atomic_compare_exchange_n(at, &was, x, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    return was;
}

static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
template <class T> static inline T __ldg(const T *p) { return *p; }

#endif
