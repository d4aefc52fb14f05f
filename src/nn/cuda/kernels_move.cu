/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_move.cu - operations that move numbers: upsampling, pixel shuffles, concatenation, and the two shortcuts of
 * DC-AE, whose group means and repetitions are never stored.
 *
 * All are limited by memory: every input is read once and every result written once, 16 bytes per access where channels
 * allow it. Time on an H200: those bytes over 4.3e12, at least about 3 us. Shuffles by 2 move a thread's 4 V
 * neighbouring channels (V: elements in 16 bytes) to V channels of 4 pixels, or back, through registers. Other factors
 * and channel counts take a kernel with one number per thread. */
#include "nn/cuda/device_math.cuh"
#include "nn/cuda/kernels.h"
#include "nn/cuda/move.h"

/* ---- upsampling: B read, factor^2 B written ---- */
template <class T, int V>
__global__ void __launch_bounds__(FKT_BLOCK)
    upsample_kernel(T *y, const T *x, uint32_t n, uint32_t c, uint32_t factor, fkt_divisor vectors, fkt_divisor width)
{
    uint32_t i = blockIdx.x * FKT_BLOCK + threadIdx.x, pixel, row;
    if (i >= n) return;
    fkt_floats<V> v = fkt_load<V>(x + (size_t)i * V);
    uint32_t channel = fkt_split(i, vectors, &pixel) * V, column = fkt_split(pixel, width, &row);
    for (uint32_t dy = 0; dy < factor; dy++) {
        T *to = y + ((size_t)(row * factor + dy) * width.d * factor + column * factor) * c + channel;
        for (uint32_t dx = 0; dx < factor; dx++) fkt_store<V>(to + (size_t)dx * c, v);
    }
}

fkt_status fkt_cuda_upsample(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, int factor,
                             cudaStream_t stream)
{
    size_t n = fkt_cuda_count_of(x);
    fkt_status st = fkt_cuda_countable(fkt_cuda_count_of(y), fkt_op_name(FKT_OP_UPSAMPLE));
    if (st != FKT_OK || !n) return st;
    FKT_BY_PRECISION(x->precision, T, FKT_BY_WIDTH(T, V, x->c, {
                         return FKT_LAUNCH((upsample_kernel<T, V>), fkt_blocks(n / V), FKT_BLOCK, 0, stream,
                                           (T *)y->data, (const T *)x->data, (uint32_t)(n / V), (uint32_t)x->c,
                                           (uint32_t)factor, fkt_divisor_of((uint32_t)x->c / V),
                                           fkt_divisor_of((uint32_t)x->w));
                     }));
}

/* ---- unshuffle(x) + group_mean(unshuffle(s)): y (n, h, w, k), x (n, f h, f w, k / f^2), s (n, f h, f w, G k / f^2) --
 *
 * Channel m of an unshuffled pixel is channel m / f^2 of the source pixel ((m / f) % f, m % f) of its square. */
template <class T>
__global__ void __launch_bounds__(FKT_BLOCK) down_any(T *y, const T *x, const T *s, uint32_t n, uint32_t group,
                                                      uint32_t f, fkt_divisor channels, fkt_divisor width, int more)
{
    uint32_t i = blockIdx.x * FKT_BLOCK + threadIdx.x, pixel, row;
    if (i >= n) return;
    uint32_t k = fkt_split(i, channels, &pixel), column = fkt_split(pixel, width, &row), ff = f * f;
    uint32_t c = channels.d / ff, cs = c * group;
    size_t corner = (size_t)row * f * width.d * f + (size_t)column * f, line = (size_t)width.d * f;
    float sum = 0;
    if (s) {
        for (uint32_t m = k * group; m < (k + 1) * group; m++)
            sum += fkt_to_float(s[(corner + m / f % f * line + m % f) * cs + m / ff]);
        sum /= (float)group;
    }
    if (x) sum += fkt_to_float(x[(corner + k / f % f * line + k % f) * c + k / ff]);
    fkt_put(y + i, more ? fkt_to_float(y[i]) + sum : sum);
}

/* f = 2, V channels of x for each thread. G 0: no s. */
template <class T, int V, int G>
__global__ void __launch_bounds__(FKT_BLOCK)
    down_by_2(T *y, const T *x, const T *s, uint32_t n, uint32_t c, fkt_divisor vectors, fkt_divisor width, int more)
{
    uint32_t i = blockIdx.x * FKT_BLOCK + threadIdx.x, pixel, row;
    if (i >= n) return;
    uint32_t channel = fkt_split(i, vectors, &pixel) * V, column = fkt_split(pixel, width, &row);
    size_t corner = (size_t)row * 4 * width.d + (size_t)column * 2, line = (size_t)width.d * 2;
    T *to = y + (size_t)i * V * 4;
    float sum[4 * V] = {0};
    if (G) {
#pragma unroll
        for (int g = 0; g < G; g++) /* V channels of s at a time: numbers 4 V g to 4 V (g + 1) - 1 of the unshuffled */
#pragma unroll
            for (int d = 0; d < 4; d++) {
                const T *from = s + (corner + d / 2 * line + d % 2) * c * G + (size_t)channel * G + g * V;
                fkt_floats<V> v = fkt_load<V>(from);
#pragma unroll
                for (int j = 0; j < V; j++) sum[(4 * V * g + 4 * j + d) / (G ? G : 1)] += v.v[j];
            }
#pragma unroll
        for (int m = 0; m < 4 * V; m++) sum[m] /= (float)(G ? G : 1);
    }
#pragma unroll
    for (int d = 0; d < 4; d++) {
        fkt_floats<V> v = fkt_load<V>(x + (corner + d / 2 * line + d % 2) * c + channel);
#pragma unroll
        for (int j = 0; j < V; j++) sum[4 * j + d] += v.v[j];
    }
#pragma unroll
    for (int d = 0; d < 4; d++) {
        fkt_floats<V> v;
        if (more) v = fkt_load<V>(to + d * V);
#pragma unroll
        for (int j = 0; j < V; j++) v.v[j] = more ? v.v[j] + sum[d * V + j] : sum[d * V + j];
        fkt_store<V>(to + d * V, v);
    }
}

template <class T, int G>
static fkt_status down_wide(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, const void *s, int more,
                            cudaStream_t stream)
{
    const int V = 16 / sizeof(T);
    uint32_t n = (uint32_t)(fkt_cuda_count_of(y) / (4 * V));
    return FKT_LAUNCH((down_by_2<T, V, G>), fkt_blocks(n), FKT_BLOCK, 0, stream, (T *)y->data, (const T *)x->data,
                      (const T *)s, n, (uint32_t)x->c, fkt_divisor_of((uint32_t)x->c / V),
                      fkt_divisor_of((uint32_t)y->w), more);
}

template <class T>
static fkt_status down(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, const void *s, int group,
                       int f, int more, cudaStream_t stream)
{
    size_t n = fkt_cuda_count_of(y);
    if (f == 2 && x && x->c % (int)(16 / sizeof(T)) == 0) {
        if (!s) return down_wide<T, 0>(y, x, s, more, stream);
        if (group == 1) return down_wide<T, 1>(y, x, s, more, stream);
        if (group == 2) return down_wide<T, 2>(y, x, s, more, stream);
        if (group == 4) return down_wide<T, 4>(y, x, s, more, stream);
    }
    return FKT_LAUNCH(down_any<T>, fkt_blocks(n), FKT_BLOCK, 0, stream, (T *)y->data, x ? (const T *)x->data : NULL,
                      (const T *)s, (uint32_t)n, (uint32_t)group, (uint32_t)f, fkt_divisor_of((uint32_t)y->c),
                      fkt_divisor_of((uint32_t)y->w), more);
}

fkt_status fkt_cuda_move_down(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x,
                              const struct fkt_cuda_tensor *s, int f, int more, cudaStream_t stream)
{
    int group = s ? s->c * f * f / y->c : 1;
    fkt_status st = fkt_cuda_countable(fkt_cuda_count_of(s ? s : y), fkt_op_name(FKT_OP_UNSHUFFLE));
    if (st != FKT_OK || !fkt_cuda_count_of(y)) return st;
    FKT_BY_PRECISION(y->precision, T, return down<T>(y, x, s ? s->data : NULL, group, f, more, stream));
}

/* ---- shuffle(x + repeat(s)): y (n, f h, f w, c), x (n, h, w, c f^2), s (n, h, w, c f^2 / R) ---- */
template <class T>
__global__ void __launch_bounds__(FKT_BLOCK) up_any(T *y, const T *x, const T *s, uint32_t n, uint32_t times,
                                                    uint32_t f, fkt_divisor channels, fkt_divisor width, int more)
{
    uint32_t i = blockIdx.x * FKT_BLOCK + threadIdx.x, pixel, row;
    if (i >= n) return;
    uint32_t c = fkt_split(i, channels, &pixel), column = fkt_split(pixel, width, &row);
    uint32_t m = (c * f + row % f) * f + column % f, all = channels.d * f * f;
    size_t from = (size_t)(row / f) * (width.d / f) + column / f;
    float sum = x ? fkt_to_float(x[from * all + m]) : 0;
    if (s) sum += fkt_to_float(s[from * (all / times) + m / times]);
    fkt_put(y + i, more ? fkt_to_float(y[i]) + sum : sum);
}

/* f = 2, V channels of y for each thread; R 0: no s. */
template <class T, int V, int R>
__global__ void __launch_bounds__(FKT_BLOCK)
    up_by_2(T *y, const T *x, const T *s, uint32_t n, uint32_t c, fkt_divisor vectors, fkt_divisor width, int more)
{
    const int S = R ? 4 * V / R : V; /* numbers of s for 4 V of x */
    uint32_t i = blockIdx.x * FKT_BLOCK + threadIdx.x, pixel, row;
    if (i >= n) return;
    uint32_t channel = fkt_split(i, vectors, &pixel) * V, column = fkt_split(pixel, width, &row);
    fkt_floats<4 *V> a = fkt_load<4 * V>(x + (size_t)i * 4 * V);
    if (R) {
        fkt_floats<S> b = fkt_load<S>(s + (size_t)i * S);
#pragma unroll
        for (int m = 0; m < 4 * V; m++) a.v[m] += b.v[m / (R ? R : 4)];
    }
#pragma unroll
    for (int d = 0; d < 4; d++) {
        T *to = y + ((size_t)(row * 2 + d / 2) * width.d * 2 + column * 2 + d % 2) * c + channel;
        fkt_floats<V> v;
        if (more) v = fkt_load<V>(to);
#pragma unroll
        for (int j = 0; j < V; j++) v.v[j] = more ? v.v[j] + a.v[4 * j + d] : a.v[4 * j + d];
        fkt_store<V>(to, v);
    }
}

template <class T, int R>
static fkt_status up_wide(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, const void *s, int more,
                          cudaStream_t stream)
{
    const int V = 16 / sizeof(T);
    uint32_t n = (uint32_t)(fkt_cuda_count_of(x) / (4 * V));
    return FKT_LAUNCH((up_by_2<T, V, R>), fkt_blocks(n), FKT_BLOCK, 0, stream, (T *)y->data, (const T *)x->data,
                      (const T *)s, n, (uint32_t)y->c, fkt_divisor_of((uint32_t)y->c / V),
                      fkt_divisor_of((uint32_t)x->w), more);
}

template <class T>
static fkt_status up(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, const void *s, int times, int f,
                     int more, cudaStream_t stream)
{
    size_t n = fkt_cuda_count_of(y);
    if (f == 2 && x && y->c % (int)(16 / sizeof(T)) == 0) {
        if (!s) return up_wide<T, 0>(y, x, s, more, stream);
        if (times == 1) return up_wide<T, 1>(y, x, s, more, stream);
        if (times == 2) return up_wide<T, 2>(y, x, s, more, stream);
        if (times == 4) return up_wide<T, 4>(y, x, s, more, stream);
    }
    return FKT_LAUNCH(up_any<T>, fkt_blocks(n), FKT_BLOCK, 0, stream, (T *)y->data, x ? (const T *)x->data : NULL,
                      (const T *)s, (uint32_t)n, (uint32_t)times, (uint32_t)f, fkt_divisor_of((uint32_t)y->c),
                      fkt_divisor_of((uint32_t)y->w), more);
}

fkt_status fkt_cuda_move_up(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x,
                            const struct fkt_cuda_tensor *s, int f, int more, cudaStream_t stream)
{
    int times = s ? y->c * f * f / s->c : 1;
    fkt_status st = fkt_cuda_countable(fkt_cuda_count_of(y), fkt_op_name(FKT_OP_SHUFFLE));
    if (st != FKT_OK || !fkt_cuda_count_of(y)) return st;
    FKT_BY_PRECISION(y->precision, T, return up<T>(y, x, s ? s->data : NULL, times, f, more, stream));
}

/* ---- the operations ---- */
fkt_status fkt_cuda_shuffle(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, int factor,
                            cudaStream_t stream)
{
    return fkt_cuda_move_up(y, x, NULL, factor, 0, stream);
}

fkt_status fkt_cuda_unshuffle(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, int factor,
                              cudaStream_t stream)
{
    return fkt_cuda_move_down(y, x, NULL, factor, 0, stream);
}

fkt_status fkt_cuda_group_mean(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, cudaStream_t stream)
{
    return fkt_cuda_move_down(y, NULL, x, 1, 0, stream);
}

fkt_status fkt_cuda_repeat(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, cudaStream_t stream)
{
    return fkt_cuda_move_up(y, NULL, x, 1, 0, stream);
}

fkt_status fkt_cuda_unshuffle_mean_add(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x,
                                       const struct fkt_cuda_tensor *s, int factor, cudaStream_t stream)
{
    return fkt_cuda_move_down(y, x, s, factor, 0, stream);
}

fkt_status fkt_cuda_repeat_shuffle_add(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x,
                                       const struct fkt_cuda_tensor *s, int factor, cudaStream_t stream)
{
    return fkt_cuda_move_up(y, x, s, factor, 0, stream);
}

/* ---- concatenation: 2 B of the result ---- */
template <class T, int V>
__global__ void __launch_bounds__(FKT_BLOCK)
    concat_kernel(T *y, const T *a, const T *b, uint32_t n, uint32_t first, uint32_t second, fkt_divisor vectors)
{
    uint32_t i = blockIdx.x * FKT_BLOCK + threadIdx.x, pixel;
    if (i >= n) return;
    uint32_t c = fkt_split(i, vectors, &pixel) * V;
    const T *from = c < first ? a + (size_t)pixel * first + c : b + (size_t)pixel * second + (c - first);
    fkt_store<V>(y + (size_t)i * V, fkt_load<V>(from));
}

fkt_status fkt_cuda_concat(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *a,
                           const struct fkt_cuda_tensor *b, cudaStream_t stream)
{
    size_t n = fkt_cuda_count_of(y);
    fkt_status st = fkt_cuda_countable(n, fkt_op_name(FKT_OP_CONCAT));
    if (st != FKT_OK || !n) return st;
    FKT_BY_PRECISION(y->precision, T, FKT_BY_WIDTH(T, V, a->c | b->c, {
                         return FKT_LAUNCH((concat_kernel<T, V>), fkt_blocks(n / V), FKT_BLOCK, 0, stream, (T *)y->data,
                                           (const T *)a->data, (const T *)b->data, (uint32_t)(n / V), (uint32_t)a->c,
                                           (uint32_t)b->c, fkt_divisor_of((uint32_t)y->c / V));
                     }));
}
