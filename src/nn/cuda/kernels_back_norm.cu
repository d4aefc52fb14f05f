/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_back_norm.cu - gradients by the input of RMS norm and group norm.
 *
 * With g = dy * weight and u = the normalised x (before weight and bias):
 *     RMS norm     dx = s (g - u mean(g u)), s = 1 / sqrt(mean(x^2) + eps), means over the channels of a pixel
 *     group norm   dx = s (g - mean(g) - u mean(g u)), s = 1 / sqrt(var + eps), means over a group of an image
 * Limited by memory. RMS norm reads x and dy once from memory (a warp's second pass finds them in L1): 3 B, B the bytes
 * of x. Group norm reads x three times and dy twice: 6 B. `more` adds one B. On an H200: those bytes over 4.3e12 s. */
#include "nn/cuda/each.cuh"
#include "nn/cuda/moments.cuh"

enum { WARPS = FKT_BLOCK / 32 };

template <class T, int V>
__global__ void __launch_bounds__(FKT_BLOCK) rms_norm_back_kernel(T *dx, const T *dy, const T *x, const float *weight,
                                                                  uint32_t pixels, uint32_t c, float eps, int more)
{
    uint32_t pixel = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    size_t first = (size_t)pixel * c;
    float squares = 0, dot = 0;
    if (pixel >= pixels) return; /* the whole warp */
    for (uint32_t at = lane * V; at < c; at += 32 * V) {
        fkt_floats<V> a = fkt_load<V>(x + first + at), d = fkt_load<V>(dy + first + at), w = fkt_load<V>(weight + at);
#pragma unroll
        for (int j = 0; j < V; j++) {
            squares += a.v[j] * a.v[j];
            dot += d.v[j] * w.v[j] * a.v[j];
        }
    }
    float scale = rsqrtf(fkt_warp_sum(squares) / (float)c + eps);
    float mean = fkt_warp_sum(dot) * scale / (float)c; /* of g u */
    for (uint32_t at = lane * V; at < c; at += 32 * V) {
        fkt_floats<V> a = fkt_load<V>(x + first + at), d = fkt_load<V>(dy + first + at), w = fkt_load<V>(weight + at);
        fkt_floats<V> old = fkt_floats<V>();
        if (more) old = fkt_load<V>(dx + first + at);
#pragma unroll
        for (int j = 0; j < V; j++) d.v[j] = scale * (d.v[j] * w.v[j] - a.v[j] * scale * mean) + old.v[j];
        fkt_store<V>(dx + first + at, d);
    }
}

fkt_status fkt_cuda_rms_norm_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy,
                                  const struct fkt_cuda_tensor *x, const float *weight, float eps, int more,
                                  cudaStream_t stream)
{
    uint32_t c = (uint32_t)x->c, pixels = (uint32_t)(fkt_cuda_count_of(x) / c);
    fkt_status st = fkt_cuda_countable(fkt_cuda_count_of(x), fkt_op_name(FKT_OP_RMS_NORM));
    if (st != FKT_OK || !pixels) return st;
    FKT_BY_PRECISION(x->precision, T, FKT_BY_WIDTH(T, V, x->c, {
                         return FKT_LAUNCH((rms_norm_back_kernel<T, V>), (pixels + WARPS - 1) / WARPS, FKT_BLOCK, 0,
                                           stream, (T *)dx->data, (const T *)dy->data, (const T *)x->data, weight,
                                           pixels, c, eps, more);
                     }));
}

/* ---- group norm ----
 * Of each image, chunk of pixels and channel: the sums of dy and of dy u, in the blocks and rows of moments_kernel. */
template <class T, int V>
__global__ void __launch_bounds__(FKT_BLOCK)
    back_sums_kernel(float2 *out, const T *dy, const T *x, const float2 *moments, uint32_t plane, uint32_t c,
                     uint32_t chunk, uint32_t groups)
{
    FKT_SHARED(float2, part); /* (rows, V vectors) */
    uint32_t vectors = fkt_moments_vectors(c, V), rows = FKT_BLOCK / vectors, per = c / groups;
    uint32_t lane = threadIdx.x % vectors, row = threadIdx.x / vectors;
    uint32_t channel = (blockIdx.z * vectors + lane) * V, first = blockIdx.x * chunk;
    uint32_t end = fkt_least(first + chunk, plane);
    float2 sum[V];
#pragma unroll
    for (int j = 0; j < V; j++) sum[j].x = sum[j].y = 0;
    if (row < rows && channel < c) {
        float2 m[V];
#pragma unroll
        for (int j = 0; j < V; j++) m[j] = moments[blockIdx.y * groups + (channel + j) / per];
        for (uint32_t p = first + row; p < end; p += rows) {
            size_t at = ((size_t)blockIdx.y * plane + p) * c + channel;
            fkt_floats<V> a = fkt_load<V>(x + at), d = fkt_load<V>(dy + at);
#pragma unroll
            for (int j = 0; j < V; j++) {
                sum[j].x += d.v[j];
                sum[j].y += d.v[j] * ((a.v[j] - m[j].x) * m[j].y);
            }
        }
    }
#pragma unroll
    for (int j = 0; j < V; j++)
        if (row < rows) part[(row * vectors + lane) * V + j] = sum[j];
    __syncthreads();
    for (uint32_t k = threadIdx.x; k < vectors * V; k += FKT_BLOCK) {
        float2 total;
        total.x = total.y = 0;
        if (blockIdx.z * vectors * V + k >= c) break;
        for (uint32_t r = 0; r < rows; r++) {
            total.x += part[r * vectors * V + k].x;
            total.y += part[r * vectors * V + k].y;
        }
        out[((size_t)blockIdx.y * gridDim.x + blockIdx.x) * c + blockIdx.z * vectors * V + k] = total;
    }
}

/* One warp for each image and group: mean(g), mean(g u). */
__global__ void back_groups_kernel(float2 *out, const float2 *part, const float *weight, uint32_t plane, uint32_t c,
                                   uint32_t chunks, uint32_t groups)
{
    uint32_t per = c / groups, image = blockIdx.x / groups, group = blockIdx.x % groups;
    float a = 0, b = 0, count = (float)per * (float)plane;
    for (uint32_t k = threadIdx.x; k < chunks * per; k += 32) {
        uint32_t channel = group * per + k % per;
        float2 p = part[((size_t)image * chunks + k / per) * c + channel];
        a += p.x * weight[channel];
        b += p.y * weight[channel];
    }
    a = fkt_warp_sum(a);
    b = fkt_warp_sum(b);
    if (threadIdx.x == 0) {
        float2 result;
        result.x = a / count;
        result.y = b / count;
        out[blockIdx.x] = result;
    }
}

struct group_back_function : each_channel {
    const float2 *moments, *means;
    const float *weight;
    fkt_divisor image, per; /* vectors of an image; channels of a group */
    uint32_t groups;
    template <int V>
    __device__ __forceinline__ void operator()(fkt_floats<V> &a, fkt_floats<V> b, fkt_floats<V> old, uint32_t i) const
    {
        uint32_t c = channel_of(i), n = fkt_quotient(i, image);
        fkt_floats<V> w = fkt_load<V>(weight + c);
        uint32_t at = n * groups + fkt_quotient(c, per);
        float2 m = moments[at], g = means[at];
#pragma unroll
        for (int j = 0; j < V; j++) {
            if (j && per.d % V) { /* the vector may cross groups */
                at = n * groups + fkt_quotient(c + j, per);
                m = moments[at], g = means[at];
            }
            a.v[j] = m.y * (a.v[j] * w.v[j] - g.x - (b.v[j] - m.x) * m.y * g.y) + old.v[j];
        }
    }
    void width(int by)
    {
        uint32_t all = image.d; /* numbers, on the way in */
        each_channel::width(by);
        image = fkt_divisor_of(all / (uint32_t)by);
    }
};

size_t fkt_cuda_group_norm_back_scratch(const struct fkt_cuda_tensor *x, int groups)
{
    return 2 * fkt_cuda_group_norm_scratch(x, groups);
}

template <class T>
static fkt_status group_norm_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy,
                                  const struct fkt_cuda_tensor *x, group_back_function f, float2 *part, float2 *means,
                                  int more, cudaStream_t stream)
{
    struct fkt_moments_plan p = fkt_moments_plan_of(x);
    uint32_t c = (uint32_t)x->c, n = (uint32_t)x->n;
    fkt_status st = FKT_OK;
    FKT_BY_WIDTH(T, V, x->c, {
        uint32_t vectors = fkt_moments_vectors(c, V);
        st = FKT_LAUNCH((back_sums_kernel<T, V>), dim3(p.chunks, n, (c / V + vectors - 1) / vectors), FKT_BLOCK,
                        FKT_BLOCK * V * sizeof(float2), stream, part, (const T *)dy->data, (const T *)x->data,
                        f.moments, p.plane, c, p.chunk, f.groups);
    });
    if (st != FKT_OK) return st;
    st = FKT_LAUNCH(back_groups_kernel, n * f.groups, 32, 0, stream, means, part, f.weight, p.plane, c, p.chunks,
                    f.groups);
    if (st != FKT_OK) return st;
    return each<T, 1>("gradient of a group norm", dx->data, dy->data, x->data, more ? dx->data : NULL,
                      fkt_cuda_count_of(x), x->c, f, stream);
}

fkt_status fkt_cuda_group_norm_back(const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy,
                                    const struct fkt_cuda_tensor *x, const float *weight, float eps, int groups,
                                    int more, float *scratch, cudaStream_t stream)
{
    size_t half = fkt_cuda_group_norm_scratch(x, groups);
    float2 *part = (float2 *)(scratch + half), *means = part + half / 2 - (size_t)x->n * (size_t)groups;
    const float *moments = NULL;
    group_back_function f;
    fkt_status st = fkt_cuda_countable(fkt_cuda_count_of(x), fkt_op_name(FKT_OP_GROUP_NORM));
    if (st != FKT_OK || !fkt_cuda_count_of(x)) return st;
    st = fkt_cuda_group_moments(x, eps, groups, scratch, &moments, stream);
    if (st != FKT_OK) return st;
    f.moments = (const float2 *)moments;
    f.means = means;
    f.weight = weight;
    f.channels = (uint32_t)x->c;
    f.groups = (uint32_t)groups;
    f.per = fkt_divisor_of((uint32_t)(x->c / groups));
    f.image = fkt_divisor_of((uint32_t)(x->h * x->w * x->c));
    FKT_BY_PRECISION(x->precision, T, return group_norm_back<T>(dx, dy, x, f, part, means, more, stream));
}
