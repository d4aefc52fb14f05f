/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_depthwise.cu - convolutions with few sums for each number: one group per channel, and 1x1 in groups.
 *
 * Depthwise is limited by memory: x is read once from memory (neighbouring windows find it in the caches) and y written
 * once; with the GLU fused y is half as large and the convolution's result is never stored: 1.5 B instead of 4 B. On an
 * H200: those bytes over 4.3e12 s, at least about 3 us. A thread makes 4 neighbouring results of a row for 4
 * channels, so weights and overlapping inputs are read from the caches once for all 4: 9 bytes from L1 for each byte of
 * result, 18 with GLU, which L1 gives about as fast as memory gives the input. 8 channels of bfloat16 would not change
 * that (weights are f32) and need twice the registers. */
#include "nn/cuda/each.cuh"

struct dw_shape {
    uint32_t h, w, c; /* of x */
    uint32_t pad;
    fkt_divisor vectors, runs, rows; /* of a result pixel; of a row; of an image */
    uint32_t width;                  /* of y */
};

/* sum[r] += the window of results ox + r in row oy, channels c to c + V - 1; stride 1. */
template <class T, int V, int K, int R>
FKT_DEVICE void windows(float (&sum)[R][V], const T *image, const float *weight, const dw_shape &s, uint32_t oy,
                        uint32_t ox, uint32_t c)
{
#pragma unroll
    for (int ky = 0; ky < K; ky++) {
        uint32_t iy = oy + ky - s.pad; /* huge outside */
        if (iy >= s.h) continue;
        fkt_floats<V> in[R + K - 1];
#pragma unroll
        for (int j = 0; j < R + K - 1; j++) {
            uint32_t ix = ox + j - s.pad;
            in[j] = fkt_floats<V>();
            if (ix < s.w) in[j] = fkt_load<V>(image + ((size_t)iy * s.w + ix) * s.c + c);
        }
#pragma unroll
        for (int kx = 0; kx < K; kx++) {
            fkt_floats<V> w = fkt_load<V>(weight + (size_t)(ky * K + kx) * s.c + c);
#pragma unroll
            for (int r = 0; r < R; r++)
#pragma unroll
                for (int v = 0; v < V; v++) sum[r][v] += in[r + kx].v[v] * w.v[v];
        }
    }
}

template <int V, int R> FKT_DEVICE void biased(float (&sum)[R][V], const float *bias, uint32_t c)
{
    fkt_floats<V> b = fkt_floats<V>();
    if (bias) b = fkt_load<V>(bias + c);
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int v = 0; v < V; v++) sum[r][v] = b.v[v];
}

template <class T, int V, int K, int R, bool GLU>
__global__ void __launch_bounds__(FKT_BLOCK, 2)
    depthwise_kernel(T *y, const T *x, const float *weight, const float *bias, uint32_t n, dw_shape s, int act)
{
    uint32_t i = blockIdx.x * FKT_BLOCK + threadIdx.x, run, row, image;
    if (i >= n) return;
    uint32_t c = fkt_split(i, s.vectors, &run) * V, ox = fkt_split(run, s.runs, &row) * R;
    uint32_t oy = fkt_split(row, s.rows, &image), out = s.vectors.d * V;
    const T *from = x + (size_t)image * s.h * s.w * s.c;
    float a[R][V];
    biased<V, R>(a, bias, c);
    windows<T, V, K, R>(a, from, weight, s, oy, ox, c);
    if (GLU) {
        float b[R][V];
        biased<V, R>(b, bias, c + out);
        windows<T, V, K, R>(b, from, weight, s, oy, ox, c + out);
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int v = 0; v < V; v++) a[r][v] *= fkt_silu(b[r][v]);
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
        fkt_floats<V> result;
        if (ox + r >= s.width) continue;
#pragma unroll
        for (int v = 0; v < V; v++) result.v[v] = GLU ? a[r][v] : fkt_act_of(a[r][v], act);
        fkt_store<V>(y + ((size_t)row * s.width + ox + r) * out + c, result);
    }
}

/* Any kernel, stride and number of channels: one result for each thread. */
template <class T>
__global__ void __launch_bounds__(FKT_BLOCK)
    depthwise_any(T *y, const T *x, const float *weight, const float *bias, uint32_t n, dw_shape s, uint32_t kernel,
                  uint32_t stride, int glu, int act)
{
    uint32_t i = blockIdx.x * FKT_BLOCK + threadIdx.x, pixel, row, image;
    if (i >= n) return;
    uint32_t c = fkt_split(i, s.vectors, &pixel), ox = fkt_split(pixel, s.runs, &row),
             oy = fkt_split(row, s.rows, &image);
    float result[2] = {0, 0};
    for (int half = 0; half <= glu; half++) {
        uint32_t k = c + half * s.vectors.d;
        float sum = bias ? bias[k] : 0;
        for (uint32_t ky = 0; ky < kernel; ky++)
            for (uint32_t kx = 0; kx < kernel; kx++) {
                uint32_t iy = oy * stride + ky - s.pad, ix = ox * stride + kx - s.pad;
                if (iy < s.h && ix < s.w)
                    sum += fkt_to_float(x[(((size_t)image * s.h + iy) * s.w + ix) * s.c + k]) *
                           weight[(size_t)(ky * kernel + kx) * s.c + k];
            }
        result[half] = sum;
    }
    fkt_put(y + i, glu ? result[0] * fkt_silu(result[1]) : fkt_act_of(result[0], act));
}

template <class T, int K, int R, bool GLU>
static fkt_status depthwise_wide(const struct fkt_cuda_tensor *y, const void *x, const float *weight, const float *bias,
                                 dw_shape s, int act, cudaStream_t stream)
{
    const int V = 4;
    uint32_t runs = (uint32_t)(y->w + R - 1) / R, n;
    s.vectors = fkt_divisor_of((uint32_t)y->c / V);
    s.runs = fkt_divisor_of(runs);
    n = (uint32_t)(y->n * y->h) * runs * s.vectors.d;
    return FKT_LAUNCH((depthwise_kernel<T, V, K, R, GLU>), fkt_blocks(n), FKT_BLOCK, 0, stream, (T *)y->data,
                      (const T *)x, weight, bias, n, s, act);
}

template <class T, int K, bool GLU>
static fkt_status depthwise_run(const struct fkt_cuda_tensor *y, const void *x, const float *weight, const float *bias,
                                dw_shape s, int act, cudaStream_t stream)
{
    if (y->w >= 4) return depthwise_wide<T, K, 4, GLU>(y, x, weight, bias, s, act, stream);
    return depthwise_wide<T, K, 1, GLU>(y, x, weight, bias, s, act, stream);
}

template <class T>
static fkt_status depthwise(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, const float *weight,
                            const float *bias, const struct fkt_op *op, int glu, int act, cudaStream_t stream)
{
    uint32_t n = (uint32_t)fkt_cuda_count_of(y);
    dw_shape s;
    s.h = (uint32_t)x->h;
    s.w = (uint32_t)x->w;
    s.c = (uint32_t)x->c;
    s.pad = op->pad;
    s.width = (uint32_t)y->w;
    s.rows = fkt_divisor_of((uint32_t)y->h);
    if (op->stride == 1 && y->c % 4 == 0) {
        if (op->kernel == 3 && glu) return depthwise_run<T, 3, true>(y, x->data, weight, bias, s, act, stream);
        if (op->kernel == 3) return depthwise_run<T, 3, false>(y, x->data, weight, bias, s, act, stream);
        if (op->kernel == 5 && glu) return depthwise_run<T, 5, true>(y, x->data, weight, bias, s, act, stream);
        if (op->kernel == 5) return depthwise_run<T, 5, false>(y, x->data, weight, bias, s, act, stream);
    }
    s.vectors = fkt_divisor_of((uint32_t)y->c);
    s.runs = fkt_divisor_of((uint32_t)y->w);
    return FKT_LAUNCH(depthwise_any<T>, fkt_blocks(n), FKT_BLOCK, 0, stream, (T *)y->data, (const T *)x->data, weight,
                      bias, n, s, op->kernel, op->stride, glu, act);
}

fkt_status fkt_cuda_depthwise(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, const float *weight,
                              const float *bias, const struct fkt_op *op, int glu, enum fkt_cuda_act act,
                              cudaStream_t stream)
{
    fkt_status st = fkt_cuda_countable(fkt_cuda_count_of(x), fkt_op_name(FKT_OP_CONV));
    if (st != FKT_OK || !fkt_cuda_count_of(y)) return st;
    FKT_BY_PRECISION(x->precision, T, return depthwise<T>(y, x, weight, bias, op, glu, act, stream));
}

/* ---- 1x1 in groups. A thread makes one channel of PIXELS pixels, so each weight is read once for all of them; the
 * inputs of a group are the same for neighbouring threads. 2 B, and x.c / groups multiplications for each number: for
 * the 32 of DC-AE's sana variant the f32 units take about as long as the memory. ---- */
enum { PIXELS = 8 };

template <class T>
__global__ void __launch_bounds__(FKT_BLOCK)
    grouped_kernel(T *y, const T *x, const float *weight, const float *bias, uint32_t pixels, uint32_t in, uint32_t out,
                   uint32_t per, uint32_t outs)
{
    uint32_t o = blockIdx.y * FKT_BLOCK + threadIdx.x, first = blockIdx.x * PIXELS;
    if (o >= out) return;
    const T *from = x + (size_t)first * in + o / outs * per;
    float sum[PIXELS];
#pragma unroll
    for (int p = 0; p < PIXELS; p++) sum[p] = bias ? bias[o] : 0;
    for (uint32_t k = 0; k < per; k++) {
        float w = weight[(size_t)o * per + k];
#pragma unroll
        for (int p = 0; p < PIXELS; p++)
            if (first + p < pixels) sum[p] += w * fkt_to_float(from[(size_t)p * in + k]);
    }
#pragma unroll
    for (int p = 0; p < PIXELS; p++)
        if (first + p < pixels) fkt_put(y + (size_t)(first + p) * out + o, sum[p]);
}

fkt_status fkt_cuda_grouped(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, const float *weight,
                            const float *bias, int groups, cudaStream_t stream)
{
    uint32_t pixels = (uint32_t)(x->n * x->h * x->w), rows = (pixels + PIXELS - 1) / PIXELS;
    fkt_status st = fkt_cuda_countable(fkt_cuda_count_of(x), fkt_op_name(FKT_OP_CONV));
    if (st != FKT_OK || !fkt_cuda_count_of(y)) return st;
    FKT_BY_PRECISION(x->precision, T,
                     return FKT_LAUNCH(grouped_kernel<T>, dim3(rows, fkt_blocks((size_t)y->c)), FKT_BLOCK, 0, stream,
                                       (T *)y->data, (const T *)x->data, weight, bias, pixels, (uint32_t)x->c,
                                       (uint32_t)y->c, (uint32_t)(x->c / groups), (uint32_t)(y->c / groups)));
}
