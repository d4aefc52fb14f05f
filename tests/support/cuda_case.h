/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_case.h - for tests of kernels: arrays of nn/ref (NCHW floats) as tensors on the card, and back. On the emulation
 * every trial runs twice, threads in both orders. */
#ifndef FKT_TEST_CUDA_CASE_H
#define FKT_TEST_CUDA_CASE_H

#include "nn/bf16.h"
#include "nn/cuda/conv.h"
#include "nn/cuda/cuda.h"

#include "base/rng.h"
#include "tests/support/check.h"

#ifdef FKT_CUDA_HOST
#include "cuda_host.h"
enum { CUDA_ORDERS = 2 };
static inline void cuda_order(int o) { fkt_host_machine.reverse = o; }
#else
enum { CUDA_ORDERS = 1 };
static inline void cuda_order(int o) { (void)o; }
#endif

static size_t cuda_blocks; /* of memory that the device keeps until the process ends */

/* 0: main returns 77, which says skipped. */
static inline int cuda_here(void)
{
    if (fkt_cuda_usable()) {
        cuda_blocks = fkt_alloc_live();
        return 1;
    }
    printf("skipped: no usable CUDA card\n");
    return 0;
}

/* As check_nothing_left. */
static inline int cuda_nothing_left(int failed)
{
    size_t left;
#ifndef FKT_CUDA_HOST
    struct fkt_cuda_device *d = NULL;
    fkt_cuda_conv_forget();
    if (fkt_cuda_device(&d, 0) == FKT_OK) fkt_cuda_stream_forget(d);
#endif
    left = fkt_alloc_live() - cuda_blocks;
    if (left) fprintf(stderr, "%zu blocks of memory are left\n", left);
    return failed || left;
}

enum { CUDA_GUARD = 64 }; /* bytes after each tensor that must stay */

static inline void cuda_ok(cudaError_t e)
{
    if (e != cudaSuccess) fail_msg("cuda: %s", cudaGetErrorString(e));
}

static inline size_t cuda_numbers(int n, struct fkt_shape s) { return (size_t)n * s.c * s.h * s.w; }

/* Memory of the card with these bytes in it. */
static inline void *cuda_copy(const void *from, size_t bytes)
{
    void *p = NULL;
    cuda_ok(cudaMalloc(&p, bytes + CUDA_GUARD));
    cuda_ok(cudaMemset(p, 0xff, bytes));
    cuda_ok(cudaMemset((char *)p + bytes, 0x5a, CUDA_GUARD));
    if (from) cuda_ok(cudaMemcpy(p, from, bytes, cudaMemcpyHostToDevice));
    return p;
}

static inline void cuda_back(void *to, const void *from, size_t bytes)
{
    unsigned char guard[CUDA_GUARD];
    cuda_ok(cudaDeviceSynchronize());
    cuda_ok(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
    cuda_ok(cudaMemcpy(guard, (const char *)from + bytes, sizeof guard, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < sizeof guard; i++)
        if (guard[i] != 0x5a) fail_msg("byte %zu after the tensor was written", i);
}

/* A tensor with the numbers of x (n, s), or NaN where x is NULL. */
static inline struct fkt_cuda_tensor cuda_put(const float *x, int n, struct fkt_shape s, enum fkt_precision p)
{
    struct fkt_cuda_tensor t = {NULL, n, (int)s.h, (int)s.w, (int)s.c, p};
    size_t plane = (size_t)s.h * s.w, image = s.c * plane, all = cuda_numbers(n, s), i;
    uint16_t *narrow = malloc(all * 2 + 1);
    float *wide = malloc(all * 4 + 1);
    assert_true(narrow && wide);
    for (i = 0; x && i < all; i++) {
        wide[i] = x[i / image * image + i % s.c * plane + i % image / s.c];
        narrow[i] = fkt_bf16_narrow(wide[i]);
    }
    t.data = cuda_copy(!x ? NULL : p == FKT_PRECISION_BF16 ? (void *)narrow : (void *)wide, fkt_cuda_bytes_of(&t));
    free(narrow);
    free(wide);
    return t;
}

/* Its numbers in NCHW; the tensor is freed. */
static inline void cuda_take(float *x, struct fkt_cuda_tensor *t)
{
    size_t plane = (size_t)t->h * (size_t)t->w, c = (size_t)t->c, image = c * plane, all = fkt_cuda_count_of(t);
    void *raw = malloc(fkt_cuda_bytes_of(t) + 1);
    assert_non_null(raw);
    cuda_back(raw, t->data, fkt_cuda_bytes_of(t));
    for (size_t i = 0; i < all; i++)
        x[i / image * image + i % c * plane + i % image / c] =
            t->precision == FKT_PRECISION_BF16 ? fkt_bf16_widen(((uint16_t *)raw)[i]) : ((float *)raw)[i];
    free(raw);
    cudaFree(t->data);
    t->data = NULL;
}

/* Numbers in [-4, 4) that both precisions hold. */
static inline void cuda_fill(float *x, size_t n, uint64_t seed, enum fkt_precision p)
{
    struct fkt_rng r;
    fkt_rng_init(&r, seed, 0);
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)(fkt_rng_unit(&r) * 8 - 4);
        if (p == FKT_PRECISION_BF16) x[i] = fkt_bf16_widen(fkt_bf16_narrow(x[i]));
    }
}

static inline double cuda_acted(double x, enum fkt_cuda_act act)
{
    switch (act) {
    case FKT_CUDA_ACT_RELU: return fmax(x, 0);
    case FKT_CUDA_ACT_RELU6: return fmin(fmax(x, 0), 6);
    case FKT_CUDA_ACT_SILU: return x / (1 + exp(-x));
    default: return x;
    }
}

/* Within `units` roundings of the largest number; bfloat16 also within one of its own (2^-8). NaN fails. */
static inline void cuda_same(const char *what, const float *got, const float *want, size_t n, double units,
                             enum fkt_precision p)
{
    double largest = 0;
    for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs((double)want[i]));
    for (size_t i = 0; i < n; i++) {
        double tol = units * largest / (1 << 23);
        if (p == FKT_PRECISION_BF16 && units > 0) tol += fabs((double)want[i]) / 256;
        if (!(fabs((double)got[i] - want[i]) <= tol))
            fail_msg("%s, %s: number %zu is %.9g, want %.9g", what, p ? "bf16" : "f32", i, got[i], want[i]);
    }
}

#endif
