/* SPDX-License-Identifier: Apache-2.0 */
/* moments.cuh - means and variances of groups of channels, for group norm forward and backward; .cu files alone. */
#ifndef FKT_NN_CUDA_MOMENTS_CUH
#define FKT_NN_CUDA_MOMENTS_CUH

#include "nn/cuda/device_math.cuh"
#include "nn/cuda/kernels.h"

/* How an image's pixels are cut: `chunks` chunks of `chunk`, the last one may be shorter. It depends on the shape
 * alone, so the order of every sum does too. */
struct fkt_moments_plan {
    uint32_t plane, chunk, chunks;
};
static inline fkt_moments_plan fkt_moments_plan_of(const struct fkt_cuda_tensor *x)
{
    fkt_moments_plan p = {(uint32_t)(x->h * x->w), 256, 0};
    p.chunks = (p.plane + p.chunk - 1) / p.chunk;
    return p;
}

/* Vectors of channels that a block takes side by side. */
static inline __host__ __device__ uint32_t fkt_moments_vectors(uint32_t c, uint32_t v)
{
    return fkt_least(c / v, FKT_BLOCK);
}

struct fkt_moments {
    float count, mean, squares; /* squares: of differences from the mean */
};
FKT_DEVICE fkt_moments fkt_merged(fkt_moments a, fkt_moments b)
{
    float count = a.count + b.count, d = b.mean - a.mean;
    if (b.count == 0) return a;
    if (a.count == 0) return b;
    fkt_moments m = {count, a.mean + d * (b.count / count),
                     a.squares + b.squares + d * d * (a.count * b.count / count)};
    return m;
}

/* *result (n, groups, 2), in scratch: mean and 1 / sqrt(variance + eps) of each group. scratch:
 * fkt_cuda_group_norm_scratch floats. */
extern "C" fkt_status fkt_cuda_group_moments(const struct fkt_cuda_tensor *x, float eps, int groups, float *scratch,
                                             const float **result, cudaStream_t stream);

#endif
