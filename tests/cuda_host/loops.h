/* SPDX-License-Identifier: Apache-2.0 */
/* loops.h - what conv.c and gemm.c of the emulation share: arrays of either precision as floats, and what follows a
 * sum. */
#ifndef FKT_TESTS_CUDA_LOOPS_H
#define FKT_TESTS_CUDA_LOOPS_H

#include "nn/bf16.h"
#include "nn/cuda/cuda.h"

#include <math.h>
#include <stdlib.h>

static inline double fkt_loop_get(const void *x, size_t i, enum fkt_precision p)
{
    return p == FKT_PRECISION_BF16 ? (double)fkt_bf16_widen(((const uint16_t *)x)[i]) : (double)((const float *)x)[i];
}

static inline void fkt_loop_put(void *x, size_t i, enum fkt_precision p, double v)
{
    if (p == FKT_PRECISION_BF16) ((uint16_t *)x)[i] = fkt_bf16_narrow((float)v);
    else ((float *)x)[i] = (float)v;
}

/* n numbers as floats; the caller frees them. */
static inline float *fkt_loop_floats(const void *x, size_t n, enum fkt_precision p)
{
    float *f = malloc(n * sizeof *f + 1);
    if (!f) abort();
    for (size_t i = 0; i < n; i++) f[i] = (float)fkt_loop_get(x, i, p);
    return f;
}

static inline double fkt_loop_act(double x, enum fkt_cuda_act act)
{
    if (act == FKT_CUDA_ACT_RELU) return x < 0 ? 0 : x;
    if (act == FKT_CUDA_ACT_RELU6) return x < 0 ? 0 : x > 6 ? 6 : x;
    return act == FKT_CUDA_ACT_SILU ? x / (1 + exp(-x)) : x;
}

#endif
