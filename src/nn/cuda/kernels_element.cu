/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_element.cu - operations on each number by itself.
 *
 * All are limited by memory: 16 bytes are read and written per thread and access. Time on an H200 (4.3 TB/s) is the
 * bytes that a comment gives, over 4.3e12, and about 3 us where that is less. B: bytes of one tensor. */
#include "nn/cuda/device_math.cuh"
#include "nn/cuda/kernels.h"

/* ---- unary: 2 B bytes ---- */
template <int KIND> FKT_DEVICE float unary(float x, float a, float b)
{
    if (KIND == FKT_OP_RELU) return fkt_relu(x);
    if (KIND == FKT_OP_SILU) return fkt_silu(x);
    if (KIND == FKT_OP_SOFT_CLAMP) return a * tanhf(x / a);
    return a * x + b;
}

/* Numbers beyond the last whole vector are one each for the threads after those of the vectors. */
template <class T, int KIND> __global__ void unary_kernel(T *y, const T *x, uint32_t n, float a, float b)
{
    const int V = 16 / sizeof(T);
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, whole = n / V;
    if (i < whole) {
        fkt_floats<V> v = fkt_load<V>(x + i * V);
#pragma unroll
        for (int j = 0; j < V; j++) v.v[j] = unary<KIND>(v.v[j], a, b);
        fkt_store<V>(y + i * V, v);
    } else if ((i = whole * V + (i - whole)) < n) {
        fkt_put(y + i, unary<KIND>(fkt_to_float(x[i]), a, b));
    }
}

template <class T, int KIND>
static fkt_status unary_launch(void *y, const void *x, size_t n, const struct fkt_op *op, cudaStream_t stream)
{
    const size_t V = 16 / sizeof(T);
    return FKT_LAUNCH((unary_kernel<T, KIND>), fkt_blocks(n / V + n % V), FKT_BLOCK, 0, stream, (T *)y, (const T *)x,
                      (uint32_t)n, op->value[0], op->value[1]);
}

fkt_status fkt_cuda_unary(const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *x, const struct fkt_op *op,
                          cudaStream_t stream)
{
    size_t n = fkt_cuda_count_of(x);
    fkt_status st = fkt_cuda_countable(n, fkt_op_name(op->kind));
    if (st != FKT_OK || !n) return st;
    FKT_BY_PRECISION(
        x->precision, T, switch (op->kind) {
            case FKT_OP_RELU: return unary_launch<T, FKT_OP_RELU>(y->data, x->data, n, op, stream);
            case FKT_OP_SILU: return unary_launch<T, FKT_OP_SILU>(y->data, x->data, n, op, stream);
            case FKT_OP_SOFT_CLAMP: return unary_launch<T, FKT_OP_SOFT_CLAMP>(y->data, x->data, n, op, stream);
            default: return unary_launch<T, FKT_OP_AFFINE>(y->data, x->data, n, op, stream);
        });
}
