/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_bytes.cu - images and latents into the card's layout and precision, and out of it.
 *
 * All are limited by memory; the comments give the bytes that move. A batch of 256 images of 64 x 64 in 8 channels of
 * bfloat16 is 20 MB: 5 us on an H200 (4.3 TB/s). */
#include "nn/cuda/device_math.cuh"
#include "nn/cuda/kernels.h"

/* ---- bytes to activations: 3 bytes are read and c sizeof(T) written for each pixel ---- */
template <class T, int V>
__global__ void __launch_bounds__(FKT_BLOCK)
    from_bytes_kernel(T *y, const uint8_t *rgb, const float *table, uint32_t pixels, uint32_t c)
{
    __shared__ float value[3 * 256];
    for (uint32_t i = threadIdx.x; i < 3 * 256; i += FKT_BLOCK) value[i] = table[i];
    __syncthreads();
    uint32_t p = blockIdx.x * FKT_BLOCK + threadIdx.x;
    if (p >= pixels) return;
    fkt_floats<3> x;
#pragma unroll
    for (int j = 0; j < 3; j++) x.v[j] = value[j * 256 + rgb[(size_t)p * 3 + j]];
    T *to = y + (size_t)p * c;
    for (uint32_t k = 0; k < c; k += V) {
        fkt_floats<V> v;
#pragma unroll
        for (int j = 0; j < V; j++) v.v[j] = k + j < 3 ? x.v[k + j < 3 ? k + j : 0] : 0;
        fkt_store<V>(to + k, v);
    }
}

fkt_status fkt_cuda_from_bytes(const struct fkt_cuda_tensor *y, const uint8_t *rgb, const float *table,
                               cudaStream_t stream)
{
    uint32_t pixels = (uint32_t)(fkt_cuda_count_of(y) / (size_t)y->c);
    fkt_status st = fkt_cuda_countable(fkt_cuda_count_of(y), "input");
    if (st != FKT_OK || !pixels) return st;
    FKT_BY_PRECISION(y->precision, T,
                     FKT_BY_WIDTH(T, V, y->c,
                                  return FKT_LAUNCH((from_bytes_kernel<T, V>), fkt_blocks(pixels), FKT_BLOCK, 0, stream,
                                                    (T *)y->data, rgb, table, pixels, (uint32_t)y->c)));
}

/* ---- activations to bytes: 3 numbers are read (of each pixel's c) and 3 bytes written. A thread makes four bytes, one
 * access. ---- */
template <class T>
__global__ void __launch_bounds__(FKT_BLOCK)
    to_bytes_kernel(uint8_t *rgb, const T *x, uint32_t bytes, uint32_t c, double scale, double shift, int *bad)
{
    uint32_t first = (blockIdx.x * FKT_BLOCK + threadIdx.x) * 4, four = 0;
    int nan = 0;
#pragma unroll
    for (uint32_t j = 0; j < 4; j++) {
        uint32_t b = first + j;
        if (b >= bytes) break;
        double v = (double)fkt_to_float(x[(size_t)(b / 3) * c + b % 3]);
        v = floor(fkt_sum(fkt_product(v - shift, scale), 0.5));
        if (v != v) nan = 1;
        else four |= (uint32_t)(v < 0 ? 0 : v > 255 ? 255 : v) << 8 * j;
    }
    if (nan) *bad = 1;
    if (first + 4 <= bytes) {
        *(uint32_t *)(rgb + first) = four;
    } else {
        for (uint32_t b = first; b < bytes; b++) rgb[b] = (uint8_t)(four >> 8 * (b - first));
    }
}

fkt_status fkt_cuda_to_bytes(uint8_t *rgb, const struct fkt_cuda_tensor *x, float scale, float shift, int *bad,
                             cudaStream_t stream)
{
    size_t bytes = fkt_cuda_count_of(x) / (size_t)x->c * 3;
    fkt_status st = fkt_cuda_countable(fkt_cuda_count_of(x), "output");
    if (st != FKT_OK || !bytes) return st;
    FKT_BY_PRECISION(x->precision, T,
                     return FKT_LAUNCH(to_bytes_kernel<T>, fkt_blocks((bytes + 3) / 4), FKT_BLOCK, 0, stream, rgb,
                                       (const T *)x->data, (uint32_t)bytes, (uint32_t)x->c, 255 / (double)scale,
                                       (double)shift, bad));
}

/* ---- NCHW floats to NHWC and back: 4 + sizeof(T) bytes for each number. Tiles of 32 channels x 32 pixels go through
 * shared memory, so that both sides are read and written along their rows. ---- */
enum { TILE = 32, TILE_ROWS = 8 };

template <class T> __global__ void from_nchw_kernel(T *y, const float *x, uint32_t plane, uint32_t channels, uint32_t c)
{
    __shared__ float tile[TILE][TILE + 1];
    uint32_t pixel = blockIdx.x * TILE, channel = blockIdx.y * TILE;
    const float *from = x + (size_t)blockIdx.z * channels * plane;
    T *to = y + (size_t)blockIdx.z * c * plane;
    for (uint32_t r = threadIdx.y; r < TILE; r += TILE_ROWS)
        if (channel + r < channels && pixel + threadIdx.x < plane)
            tile[r][threadIdx.x] = from[(size_t)(channel + r) * plane + pixel + threadIdx.x];
        else tile[r][threadIdx.x] = 0;
    __syncthreads();
    for (uint32_t r = threadIdx.y; r < TILE; r += TILE_ROWS)
        if (pixel + r < plane && channel + threadIdx.x < c)
            fkt_put(to + (size_t)(pixel + r) * c + channel + threadIdx.x, tile[threadIdx.x][r]);
}

template <class T> __global__ void to_nchw_kernel(float *y, const T *x, uint32_t plane, uint32_t channels, uint32_t c)
{
    __shared__ float tile[TILE][TILE + 1];
    uint32_t pixel = blockIdx.x * TILE, channel = blockIdx.y * TILE;
    const T *from = x + (size_t)blockIdx.z * c * plane;
    float *to = y + (size_t)blockIdx.z * channels * plane;
    for (uint32_t r = threadIdx.y; r < TILE; r += TILE_ROWS)
        if (pixel + r < plane && channel + threadIdx.x < channels)
            tile[r][threadIdx.x] = fkt_to_float(from[(size_t)(pixel + r) * c + channel + threadIdx.x]);
    __syncthreads();
    for (uint32_t r = threadIdx.y; r < TILE; r += TILE_ROWS)
        if (channel + r < channels && pixel + threadIdx.x < plane)
            to[(size_t)(channel + r) * plane + pixel + threadIdx.x] = tile[threadIdx.x][r];
}

static dim3 tiles(const struct fkt_cuda_tensor *t, int channels)
{
    return dim3((unsigned)((t->h * t->w + TILE - 1) / TILE), (unsigned)((channels + TILE - 1) / TILE), (unsigned)t->n);
}

fkt_status fkt_cuda_from_nchw(const struct fkt_cuda_tensor *y, const float *x, int channels, cudaStream_t stream)
{
    fkt_status st = fkt_cuda_countable(fkt_cuda_count_of(y), "input");
    if (st != FKT_OK || !fkt_cuda_count_of(y)) return st;
    FKT_BY_PRECISION(y->precision, T,
                     return FKT_LAUNCH(from_nchw_kernel<T>, tiles(y, y->c), dim3(TILE, TILE_ROWS), 0, stream,
                                       (T *)y->data, x, (uint32_t)(y->h * y->w), (uint32_t)channels, (uint32_t)y->c));
}

fkt_status fkt_cuda_to_nchw(float *y, const struct fkt_cuda_tensor *x, int channels, cudaStream_t stream)
{
    fkt_status st = fkt_cuda_countable(fkt_cuda_count_of(x), "output");
    if (st != FKT_OK || !fkt_cuda_count_of(x)) return st;
    FKT_BY_PRECISION(x->precision, T,
                     return FKT_LAUNCH(to_nchw_kernel<T>, tiles(x, channels), dim3(TILE, TILE_ROWS), 0, stream, y,
                                       (const T *)x->data, (uint32_t)(x->h * x->w), (uint32_t)channels,
                                       (uint32_t)x->c));
}

/* ---- another precision: 6 bytes for each number ---- */
template <class To, class From>
__global__ void __launch_bounds__(FKT_BLOCK) cast_kernel(To *y, const From *x, uint32_t n)
{
    uint32_t i = blockIdx.x * FKT_BLOCK + threadIdx.x, whole = n / 8;
    if (i < whole) fkt_store<8>(y + (size_t)i * 8, fkt_load<8>(x + (size_t)i * 8));
    else if (i - whole < n % 8) fkt_put(y + whole * 8 + (i - whole), fkt_to_float(x[whole * 8 + (i - whole)]));
}

fkt_status fkt_cuda_cast(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, cudaStream_t stream)
{
    size_t n = fkt_cuda_count_of(x);
    fkt_status st = fkt_cuda_countable(n, "value");
    if (st != FKT_OK || !n) return st;
    FKT_BY_PRECISION(x->precision, From,
                     FKT_BY_PRECISION(y->precision, To,
                                      return FKT_LAUNCH((cast_kernel<To, From>), fkt_blocks(n / 8 + n % 8), FKT_BLOCK,
                                                        0, stream, (To *)y->data, (const From *)x->data, (uint32_t)n)));
}
