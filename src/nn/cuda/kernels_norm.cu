/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_norm.cu - RMS norm over channels, pixel by pixel, and group norm.
 *
 * Both are limited by memory. RMS norm: one warp for each pixel keeps its channels in registers between the sum and the
 * result, so x is read once: 2 B (B: bytes of x), 3 B with add. Group norm: x is read for the statistics and again for
 * the result: 3 B. On an H200: those bytes over 4.3e12 s, at least about 3 us for each launch (group norm has 3). */
#include "nn/cuda/each.cuh"
#include "nn/cuda/moments.cuh"

enum { WARPS = FKT_BLOCK / 32 };

/* ---- RMS norm. K vectors in each lane: c <= 32 V K. ---- */
template <class T, int V, int K>
__global__ void __launch_bounds__(FKT_BLOCK)
    rms_norm_kernel(T *y, const T *x, const float *weight, const float *bias, const T *add, uint32_t pixels, uint32_t c,
                    float eps, int act)
{
    uint32_t pixel = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    fkt_floats<V> v[K];
    float sum = 0;
    if (pixel >= pixels) return; /* the whole warp */
    x += (size_t)pixel * c;
#pragma unroll
    for (int k = 0; k < K; k++) {
        uint32_t at = (k * 32 + lane) * V;
        v[k] = fkt_floats<V>();
        if (at < c) v[k] = fkt_load<V>(x + at);
    }
#pragma unroll
    for (int k = 0; k < K; k++)
#pragma unroll
        for (int j = 0; j < V; j++) sum += v[k].v[j] * v[k].v[j];
    float scale = rsqrtf(fkt_warp_sum(sum) / (float)c + eps);
#pragma unroll
    for (int k = 0; k < K; k++) {
        uint32_t at = (k * 32 + lane) * V;
        fkt_floats<V> w, b, s = fkt_floats<V>();
        if (at >= c) continue;
        w = fkt_load<V>(weight + at);
        b = fkt_load<V>(bias + at);
        if (add) s = fkt_load<V>(add + (size_t)pixel * c + at);
#pragma unroll
        for (int j = 0; j < V; j++) v[k].v[j] = fkt_act_of(v[k].v[j] * scale * w.v[j] + b.v[j], act) + s.v[j];
        fkt_store<V>(y + (size_t)pixel * c + at, v[k]);
    }
}

/* Any number of channels: x is read twice, the second time from the caches. */
template <class T>
__global__ void __launch_bounds__(FKT_BLOCK) rms_norm_any(T *y, const T *x, const float *weight, const float *bias,
                                                          const T *add, uint32_t pixels, uint32_t c, float eps, int act)
{
    uint32_t pixel = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    size_t first = (size_t)pixel * c;
    float sum = 0;
    if (pixel >= pixels) return;
    for (uint32_t k = lane; k < c; k += 32) {
        float a = fkt_to_float(x[first + k]);
        sum += a * a;
    }
    float scale = rsqrtf(fkt_warp_sum(sum) / (float)c + eps);
    for (uint32_t k = lane; k < c; k += 32) {
        float a = fkt_act_of(fkt_to_float(x[first + k]) * scale * weight[k] + bias[k], act);
        fkt_put(y + first + k, add ? a + fkt_to_float(add[first + k]) : a);
    }
}

template <class T>
static fkt_status rms_norm(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, const float *weight,
                           const float *bias, float eps, const T *add, int act, cudaStream_t stream)
{
    const int V = 16 / sizeof(T);
    uint32_t c = (uint32_t)x->c, pixels = (uint32_t)(fkt_cuda_count_of(x) / c), blocks = (pixels + WARPS - 1) / WARPS;
    uint32_t each_lane = c % V ? 17 : (c / V + 31) / 32;
#define RMS_NORM(kernel)                                                                                               \
    FKT_LAUNCH((kernel), blocks, FKT_BLOCK, 0, stream, (T *)y->data, (const T *)x->data, weight, bias, add, pixels, c, \
               eps, act)
    if (each_lane <= 1) return RMS_NORM((rms_norm_kernel<T, V, 1>));
    if (each_lane <= 2) return RMS_NORM((rms_norm_kernel<T, V, 2>));
    if (each_lane <= 4) return RMS_NORM((rms_norm_kernel<T, V, 4>));
    if (each_lane <= 8) return RMS_NORM((rms_norm_kernel<T, V, 8>));
    if (each_lane <= 16 && V == 4) return RMS_NORM((rms_norm_kernel<T, V, 16 * 4 / V>));
    return RMS_NORM(rms_norm_any<T>);
#undef RMS_NORM
}

fkt_status fkt_cuda_rms_norm(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, const float *weight,
                             const float *bias, float eps, const void *add, enum fkt_cuda_act act, cudaStream_t stream)
{
    fkt_status st = fkt_cuda_countable(fkt_cuda_count_of(x), fkt_op_name(FKT_OP_RMS_NORM));
    if (st != FKT_OK || !fkt_cuda_count_of(x)) return st;
    FKT_BY_PRECISION(x->precision, T, return rms_norm<T>(y, x, weight, bias, eps, (const T *)add, act, stream));
}

/* ---- group norm ----
 *
 * First (moments_kernel) each block takes a chunk of the pixels of one image and gives, for each channel, the mean and
 * the sum of squared differences from it. Then (groups_kernel) one warp for each image and group merges chunks and
 * channels by the formula of Chan, Golub and LeVeque 1979. A thread sums relative to the first number that it sees, so
 * a mean far from zero costs no digits. */
template <class T, int V>
__global__ void __launch_bounds__(FKT_BLOCK)
    moments_kernel(float2 *out, const T *x, uint32_t plane, uint32_t c, uint32_t chunk)
{
    FKT_SHARED(float2, part); /* (rows, V vectors): mean, squares of each thread */
    uint32_t vectors = fkt_moments_vectors(c, V), rows = FKT_BLOCK / vectors;
    uint32_t lane = threadIdx.x % vectors, row = threadIdx.x / vectors;
    uint32_t channel = (blockIdx.z * vectors + lane) * V, first = blockIdx.x * chunk;
    uint32_t end = fkt_least(first + chunk, plane);
    const T *from = x + (size_t)blockIdx.y * plane * c + channel;
    fkt_floats<V> pivot = fkt_floats<V>(), sum = fkt_floats<V>(), square = fkt_floats<V>();
    uint32_t count = 0;
    if (row < rows && channel < c && first + row < end) {
        pivot = fkt_load<V>(from + (size_t)(first + row) * c);
        for (uint32_t p = first + row; p < end; p += rows, count++) {
            fkt_floats<V> v = fkt_load<V>(from + (size_t)p * c);
#pragma unroll
            for (int j = 0; j < V; j++) {
                float d = v.v[j] - pivot.v[j];
                sum.v[j] += d;
                square.v[j] += d * d;
            }
        }
    }
#pragma unroll
    for (int j = 0; j < V; j++) {
        float mean = count ? sum.v[j] / (float)count : 0;
        float2 m;
        m.x = pivot.v[j] + mean;
        m.y = square.v[j] - sum.v[j] * mean;
        if (row < rows) part[(row * vectors + lane) * V + j] = m;
    }
    __syncthreads();
    for (uint32_t k = threadIdx.x; k < vectors * V; k += FKT_BLOCK) {
        fkt_moments m = {0, 0, 0};
        if (blockIdx.z * vectors * V + k >= c) break;
        for (uint32_t r = 0; r < rows && first + r < end; r++) {
            float2 p = part[r * vectors * V + k];
            fkt_moments other = {(float)((end - first - r + rows - 1) / rows), p.x, p.y};
            m = fkt_merged(m, other);
        }
        float2 result;
        result.x = m.mean;
        result.y = m.squares;
        out[((size_t)blockIdx.y * gridDim.x + blockIdx.x) * c + blockIdx.z * vectors * V + k] = result;
    }
}

/* One warp for each image and group: mean and 1 / sqrt(variance + eps). */
__global__ void groups_kernel(float2 *out, const float2 *part, uint32_t plane, uint32_t c, uint32_t chunk,
                              uint32_t chunks, uint32_t groups, float eps)
{
    uint32_t per = c / groups, image = blockIdx.x / groups, group = blockIdx.x % groups;
    fkt_moments m = {0, 0, 0};
    for (uint32_t k = threadIdx.x; k < chunks * per; k += 32) {
        uint32_t at = k / per, first = at * chunk;
        float2 p = part[((size_t)image * chunks + at) * c + group * per + k % per];
        fkt_moments other = {(float)fkt_least(chunk, plane - first), p.x, p.y};
        m = fkt_merged(m, other);
    }
    for (int lane = 16; lane > 0; lane /= 2) {
        fkt_moments other = {__shfl_down_sync(0xffffffffu, m.count, lane), __shfl_down_sync(0xffffffffu, m.mean, lane),
                             __shfl_down_sync(0xffffffffu, m.squares, lane)};
        m = fkt_merged(m, other); /* lanes without a neighbour get a number that lane 0 never sees */
    }
    if (threadIdx.x == 0) {
        float2 result;
        result.x = m.mean;
        result.y = rsqrtf(m.squares / m.count + eps);
        out[blockIdx.x] = result;
    }
}

template <class T, int V>
static fkt_status moments(float2 *part, const struct fkt_cuda_tensor *x, const struct fkt_moments_plan *p,
                          cudaStream_t stream)
{
    uint32_t c = (uint32_t)x->c, vectors = fkt_moments_vectors(c, V), tiles = (c / V + vectors - 1) / vectors;
    return FKT_LAUNCH((moments_kernel<T, V>), dim3(p->chunks, (unsigned)x->n, tiles), FKT_BLOCK,
                      FKT_BLOCK * V * sizeof(float2), stream, part, (const T *)x->data, p->plane, c, p->chunk);
}

fkt_status fkt_cuda_group_moments(const struct fkt_cuda_tensor *x, float eps, int groups, float *scratch,
                                  const float **result, cudaStream_t stream)
{
    struct fkt_moments_plan p = fkt_moments_plan_of(x);
    float2 *part = (float2 *)scratch, *out = part + (size_t)x->n * p.chunks * x->c;
    fkt_status st = FKT_OK;
    *result = (const float *)out;
    FKT_BY_PRECISION(x->precision, T, FKT_BY_WIDTH(T, V, x->c, st = (moments<T, V>(part, x, &p, stream))));
    if (st != FKT_OK) return st;
    return FKT_LAUNCH(groups_kernel, (unsigned)(x->n * groups), 32, 0, stream, out, part, p.plane, (uint32_t)x->c,
                      p.chunk, p.chunks, (uint32_t)groups, eps);
}

/* ---- the result ---- */
struct group_function : each_channel {
    const float2 *moments;
    const float *weight, *bias;
    fkt_divisor image, per; /* vectors of an image; channels of a group */
    int act;
    uint32_t groups;
    template <int V>
    __device__ __forceinline__ void operator()(fkt_floats<V> &a, fkt_floats<V>, fkt_floats<V>, uint32_t i) const
    {
        uint32_t c = channel_of(i), n = fkt_quotient(i, image);
        fkt_floats<V> w = fkt_load<V>(weight + c), b = fkt_load<V>(bias + c);
        float2 m = moments[n * groups + fkt_quotient(c, per)];
#pragma unroll
        for (int j = 0; j < V; j++) {
            if (j && per.d % V) m = moments[n * groups + fkt_quotient(c + j, per)]; /* the vector may cross groups */
            a.v[j] = fkt_act_of((a.v[j] - m.x) * m.y * w.v[j] + b.v[j], act);
        }
    }
    void width(int by)
    {
        uint32_t all = image.d; /* numbers, on the way in */
        each_channel::width(by);
        image = fkt_divisor_of(all / (uint32_t)by);
    }
};

size_t fkt_cuda_group_norm_scratch(const struct fkt_cuda_tensor *x, int groups)
{
    return 2 * ((size_t)x->n * fkt_moments_plan_of(x).chunks * (size_t)x->c + (size_t)x->n * (size_t)groups);
}

fkt_status fkt_cuda_group_norm(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, const float *weight,
                               const float *bias, float eps, int groups, enum fkt_cuda_act act, float *scratch,
                               cudaStream_t stream)
{
    const float *moments = NULL;
    group_function f;
    fkt_status st = fkt_cuda_countable(fkt_cuda_count_of(x), fkt_op_name(FKT_OP_GROUP_NORM));
    if (st != FKT_OK || !fkt_cuda_count_of(x)) return st;
    st = fkt_cuda_group_moments(x, eps, groups, scratch, &moments, stream);
    if (st != FKT_OK) return st;
    f.moments = (const float2 *)moments;
    f.weight = weight;
    f.bias = bias;
    f.channels = (uint32_t)x->c;
    f.groups = (uint32_t)groups;
    f.per = fkt_divisor_of((uint32_t)(x->c / groups));
    f.image = fkt_divisor_of((uint32_t)(x->h * x->w * x->c));
    f.act = act;
    FKT_BY_PRECISION(
        x->precision, T,
        return (each<T, 1>("group norm", y->data, x->data, NULL, NULL, fkt_cuda_count_of(x), x->c, f, stream)));
}
