/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_attention.cu - ReLU linear attention: with q and k after ReLU,
 *     M = sum_j k_j v_j^T (L x L),  s = sum_j k_j,  out_i = M^T q_i / (<s, q_i> + eps).
 *
 * One block for each image and head: it reads k and v once for M and s, which stay in shared memory, then q once.
 * Bytes: 4/3 of those of x. DC-AE (L = 32) at 128 pixels, 64 images, 512 channels of bf16, 16 x 16 maps: 67 MB, 16 us
 * on an H200, and 1.1 GFLOP on the f32 units. All sums are f32 in the order of pixels, whatever the precision of x. */
#include "nn/cuda/device_math.cuh"
#include "nn/cuda/kernels.h"

enum { L = 32, PIXELS = 32, QUADS = L / 4 }; /* of the kernel for heads of 32: 256 threads, four numbers each */

/* Loads PIXELS x 32 numbers from `from` (a pixel every `step` elements; zeros from `end` on). */
template <class T, bool RELU> FKT_DEVICE void tile_load(float (*to)[L + 4], const T *from, uint32_t step, uint32_t end)
{
    const int V = 16 / sizeof(T), PER = L / V;
    for (uint32_t k = threadIdx.x; k < PIXELS * PER; k += FKT_BLOCK) {
        uint32_t p = k / PER, c = k % PER * V;
        fkt_floats<V> v = fkt_floats<V>();
        if (p < end) v = fkt_load<V>(from + (size_t)p * step + c);
#pragma unroll
        for (int j = 0; j < V; j++) to[p][c + j] = RELU ? fkt_relu(v.v[j]) : v.v[j];
    }
}

template <class T>
__global__ void __launch_bounds__(FKT_BLOCK) attention_32(T *y, const T *x, uint32_t plane, uint32_t heads, float eps)
{
    __shared__ __align__(16) float key[PIXELS][L + 4], value[PIXELS][L + 4], matrix[L][L];
    __shared__ float total[L];
    uint32_t step = heads * 3 * L, row = threadIdx.x / QUADS, quad = threadIdx.x % QUADS * 4;
    const T *head = x + (size_t)blockIdx.y * plane * step + blockIdx.x * 3 * L;
    float m[4] = {0, 0, 0, 0}, s = 0;
    for (uint32_t first = 0; first < plane; first += PIXELS) {
        uint32_t end = fkt_least(plane - first, PIXELS);
        tile_load<T, true>(key, head + (size_t)first * step + L, step, end);
        tile_load<T, false>(value, head + (size_t)first * step + 2 * L, step, end);
        __syncthreads();
        for (uint32_t p = 0; p < end; p++) {
            float k = key[p][row];
            float4 v = *(const float4 *)&value[p][quad];
            m[0] += k * v.x, m[1] += k * v.y, m[2] += k * v.z, m[3] += k * v.w;
            s += k;
        }
        __syncthreads();
    }
#pragma unroll
    for (int j = 0; j < 4; j++) matrix[row][quad + j] = m[j];
    if (quad == 0) total[row] = s;
    for (uint32_t first = 0; first < plane; first += PIXELS) {
        uint32_t end = fkt_least(plane - first, PIXELS);
        tile_load<T, true>(key, head + (size_t)first * step, step, end); /* q */
        __syncthreads();
        fkt_floats<4> o = fkt_floats<4>();
        float below = 0;
        for (int c = 0; c < L && row < end; c++) { /* small maps leave most warps without a pixel */
            float q = key[row][c];
            float4 v = *(const float4 *)&matrix[c][quad];
            o.v[0] += q * v.x, o.v[1] += q * v.y, o.v[2] += q * v.z, o.v[3] += q * v.w;
            below += q * total[c];
        }
#pragma unroll
        for (int j = 0; j < 4; j++) o.v[j] /= below + eps;
        if (row < end)
            fkt_store<4>(y + ((size_t)blockIdx.y * plane + first + row) * heads * L + blockIdx.x * L + quad, o);
        __syncthreads();
    }
}

/* Any length up to FKT_HEAD_MAX: a block takes WIDE numbers of the results of one image and head. */
enum { WIDE = 8 };
template <class T>
__global__ void __launch_bounds__(FKT_BLOCK)
    attention_any(T *y, const T *x, uint32_t plane, uint32_t heads, uint32_t length, float eps)
{
    FKT_SHARED(float, matrix); /* (length, WIDE + 1): a row of M's part, then s */
    uint32_t step = heads * 3 * length, first = blockIdx.z * WIDE;
    uint32_t wide = fkt_least(length - first, WIDE);
    const T *head = x + (size_t)blockIdx.y * plane * step + blockIdx.x * 3 * length;
    for (uint32_t c = threadIdx.x; c < length; c += FKT_BLOCK) {
        float m[WIDE + 1] = {0};
        for (uint32_t p = 0; p < plane; p++) {
            const T *at = head + (size_t)p * step;
            float k = fkt_relu(fkt_to_float(at[length + c]));
#pragma unroll
            for (uint32_t j = 0; j < WIDE; j++)
                if (j < wide) m[j] += k * fkt_to_float(at[2 * length + first + j]);
            m[WIDE] += k;
        }
#pragma unroll
        for (int j = 0; j <= WIDE; j++) matrix[c * (WIDE + 1) + j] = m[j];
    }
    __syncthreads();
    for (uint32_t p = threadIdx.x; p < plane; p += FKT_BLOCK) {
        float o[WIDE + 1] = {0};
        for (uint32_t c = 0; c < length; c++) {
            float q = fkt_relu(fkt_to_float(head[(size_t)p * step + c]));
#pragma unroll
            for (int j = 0; j <= WIDE; j++) o[j] += q * matrix[c * (WIDE + 1) + j];
        }
        T *to = y + ((size_t)blockIdx.y * plane + p) * heads * length + blockIdx.x * length + first;
#pragma unroll
        for (uint32_t j = 0; j < WIDE; j++)
            if (j < wide) fkt_put(to + j, o[j] / (o[WIDE] + eps));
    }
}

fkt_status fkt_cuda_attention(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, int length, float eps,
                              cudaStream_t stream)
{
    uint32_t plane = (uint32_t)(x->h * x->w), heads = (uint32_t)(x->c / (3 * length));
    fkt_status st = fkt_cuda_countable(fkt_cuda_count_of(x), fkt_op_name(FKT_OP_ATTENTION));
    if (st != FKT_OK || !fkt_cuda_count_of(x)) return st;
    if (length == L)
        FKT_BY_PRECISION(x->precision, T,
                         return FKT_LAUNCH(attention_32<T>, dim3(heads, (unsigned)x->n), FKT_BLOCK, 0, stream,
                                           (T *)y->data, (const T *)x->data, plane, heads, eps));
    FKT_BY_PRECISION(x->precision, T,
                     return FKT_LAUNCH(attention_any<T>,
                                       dim3(heads, (unsigned)x->n, (unsigned)((length + WIDE - 1) / WIDE)), FKT_BLOCK,
                                       (size_t)length * (WIDE + 1) * sizeof(float), stream, (T *)y->data,
                                       (const T *)x->data, plane, heads, (uint32_t)length, eps));
}
