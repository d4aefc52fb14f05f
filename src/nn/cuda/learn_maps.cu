/* SPDX-License-Identifier: Apache-2.0 */
/* learn_maps.cu - the operations of a learner that are neither convolution nor batch norm: sums and masks of maps,
 * max-pool, and the views of uint8 images that a step begins with. What a frozen network needs too is in kernels.h.
 *
 * One thread is one vector of 8 channels of one pixel. */
#include "nn/cuda/device_math.cuh"
#include "nn/cuda/kernels_learn.h"

enum { V = FKT_CUDA_LANES };
typedef fkt_floats<V> eight;

FKT_DEVICE size_t my_item() { return (size_t)blockIdx.x * FKT_BLOCK + threadIdx.x; }

template <class T> __global__ void sum_maps(T *y, const T *a, const T *b, int relu, size_t vectors)
{
    const size_t i = my_item() * V;
    eight s, other;
    if (my_item() >= vectors) return;
    s = fkt_load<V>(a + i);
    if (b) {
        other = fkt_load<V>(b + i);
#pragma unroll
        for (int j = 0; j < V; j++) s.v[j] += other.v[j];
    }
#pragma unroll
    for (int j = 0; j < V; j++) s.v[j] = relu ? fkt_relu(s.v[j]) : s.v[j];
    fkt_store(y + i, s);
}

template <class T> __global__ void mask_maps(T *d, const T *g, const T *h, const T *y, size_t vectors)
{
    const size_t i = my_item() * V;
    eight s, other;
    if (my_item() >= vectors) return;
    s = fkt_load<V>(g + i);
    if (h) {
        other = fkt_load<V>(h + i);
#pragma unroll
        for (int j = 0; j < V; j++) s.v[j] += other.v[j];
    }
    if (y) {
        other = fkt_load<V>(y + i);
#pragma unroll
        for (int j = 0; j < V; j++) s.v[j] = other.v[j] > 0 ? s.v[j] : 0;
    }
    fkt_store(d + i, s);
}

static inline size_t vectors_of(const struct fkt_cuda_rows *map) { return map->rows * (size_t)map->channels / V; }

extern "C" fkt_status fkt_cuda_learn_sum(const struct fkt_cuda_rows *map, void *y, const void *a, const void *b,
                                         int relu, cudaStream_t stream)
{
    const size_t n = vectors_of(map);
    FKT_BY_PRECISION(map->precision, T,
                     return FKT_LAUNCH((sum_maps<T>), fkt_blocks(n), FKT_BLOCK, 0, stream, (T *)y, (const T *)a,
                                       (const T *)b, relu, n));
}

extern "C" fkt_status fkt_cuda_learn_mask(const struct fkt_cuda_rows *map, void *d, const void *g, const void *h,
                                          const void *y, cudaStream_t stream)
{
    const size_t n = vectors_of(map);
    FKT_BY_PRECISION(map->precision, T,
                     return FKT_LAUNCH((mask_maps<T>), fkt_blocks(n), FKT_BLOCK, 0, stream, (T *)d, (const T *)g,
                                       (const T *)h, (const T *)y, n));
}

/* ---- max-pool ---- */

struct pixel { /* of a map, and a vector of its channels */
    int image, y, x, channel;
};

FKT_DEVICE pixel pixel_of(size_t item, int h, int w, int vectors)
{
    pixel p;
    p.channel = (int)(item % (size_t)vectors) * V;
    item /= (size_t)vectors;
    p.x = (int)(item % (size_t)w);
    item /= (size_t)w;
    p.y = (int)(item % (size_t)h);
    p.image = (int)(item / (size_t)h);
    return p;
}

template <class T> __global__ void max_pool(fkt_cuda_pool k, const T *x, T *y, uint16_t *keep, size_t items)
{
    const size_t item = my_item();
    eight best;
    uint16_t at[V];
    bool none = true;
    pixel p;
    if (item >= items) return;
    p = pixel_of(item, k.to_h, k.to_w, k.channels / V);
#pragma unroll
    for (int j = 0; j < V; j++) best.v[j] = 0, at[j] = 0;
    for (int ky = 0; ky < k.kernel; ky++)
        for (int kx = 0; kx < k.kernel; kx++) {
            const int iy = p.y * k.stride + ky - k.pad, ix = p.x * k.stride + kx - k.pad;
            eight v;
            if (iy < 0 || ix < 0 || iy >= k.h || ix >= k.w) continue;
            v = fkt_load<V>(x + (((size_t)p.image * k.h + iy) * k.w + ix) * k.channels + p.channel);
#pragma unroll
            for (int j = 0; j < V; j++)
                if (none || v.v[j] > best.v[j] || v.v[j] != v.v[j]) {
                    best.v[j] = v.v[j];
                    at[j] = (uint16_t)(ky * k.kernel + kx);
                }
            none = false;
        }
    fkt_store(y + item * V, best);
#pragma unroll
    for (int j = 0; j < V; j++) keep[item * V + j] = at[j];
}

/* A number of the source gathers from the windows that it was the largest of, so no two threads write one place. */
template <class T> __global__ void max_pool_back(fkt_cuda_pool k, T *d, const T *g, const uint16_t *keep, size_t items)
{
    const size_t item = my_item();
    eight s;
    pixel p;
    if (item >= items) return;
    p = pixel_of(item, k.h, k.w, k.channels / V);
#pragma unroll
    for (int j = 0; j < V; j++) s.v[j] = 0;
    for (int ky = 0; ky < k.kernel; ky++)
        for (int kx = 0; kx < k.kernel; kx++) {
            const int ty = p.y + k.pad - ky, tx = p.x + k.pad - kx, oy = ty / k.stride, ox = tx / k.stride;
            const uint16_t *at;
            size_t from;
            eight v;
            if (ty < 0 || tx < 0 || ty % k.stride || tx % k.stride || oy >= k.to_h || ox >= k.to_w) continue;
            from = (((size_t)p.image * k.to_h + oy) * k.to_w + ox) * k.channels + p.channel;
            v = fkt_load<V>(g + from);
            at = keep + from;
#pragma unroll
            for (int j = 0; j < V; j++) s.v[j] += at[j] == ky * k.kernel + kx ? v.v[j] : 0;
        }
    fkt_store(d + item * V, s);
}

extern "C" fkt_status fkt_cuda_learn_pool(const struct fkt_cuda_pool *p, const void *x, void *y, uint16_t *keep,
                                          cudaStream_t stream)
{
    const size_t n = (size_t)p->n * p->to_h * p->to_w * (p->channels / V);
    FKT_BY_PRECISION(
        p->precision, T,
        return FKT_LAUNCH((max_pool<T>), fkt_blocks(n), FKT_BLOCK, 0, stream, *p, (const T *)x, (T *)y, keep, n));
}

extern "C" fkt_status fkt_cuda_learn_pool_back(const struct fkt_cuda_pool *p, void *d, const void *g,
                                               const uint16_t *keep, cudaStream_t stream)
{
    const size_t n = (size_t)p->n * p->h * p->w * (p->channels / V);
    FKT_BY_PRECISION(
        p->precision, T,
        return FKT_LAUNCH((max_pool_back<T>), fkt_blocks(n), FKT_BLOCK, 0, stream, *p, (T *)d, (const T *)g, keep, n));
}

/* The view of an image, as nn/learner.h defines it: one thread is one pixel of the result. */
template <class T>
__global__ void gather(fkt_cuda_batch b, const fkt_cuda_epoch *e, const fkt_cuda_tally *t, T *x, size_t items)
{
    const size_t i = my_item();
    fkt_view_at v;
    pixel p;
    int from_y, from_x;
    eight out;
    if (i >= items) return;
    p = pixel_of(i, b.h, b.w, 1);
    v = e->view[t->step * (uint64_t)b.n + (uint64_t)p.image];
    from_y = p.y + v.top;
    from_x = (v.flip ? b.w - 1 - p.x : p.x) + v.left;
#pragma unroll
    for (int j = 0; j < V; j++) out.v[j] = 0;
    if (from_y >= 0 && from_y < b.h && from_x >= 0 && from_x < b.w) {
        const uint8_t *rgb = e->rgb + (((size_t)v.index * b.h + from_y) * b.w + from_x) * 3;
#pragma unroll
        for (int j = 0; j < 3; j++) out.v[j] = e->value[j * 256 + rgb[j]];
    }
    fkt_store(x + i * V, out);
}

extern "C" fkt_status fkt_cuda_learn_gather(const struct fkt_cuda_batch *b, const struct fkt_cuda_epoch *e,
                                            const struct fkt_cuda_tally *t, void *x, cudaStream_t stream)
{
    const size_t n = (size_t)b->n * b->h * b->w;
    FKT_BY_PRECISION(b->precision, T,
                     return FKT_LAUNCH((gather<T>), fkt_blocks(n), FKT_BLOCK, 0, stream, *b, e, t, (T *)x, n));
}
