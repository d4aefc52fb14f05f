/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.c - nn/cuda/gemm.h in plain loops; sums in double. */
#include "nn/cuda/gemm.h"

#include "cuda_host.h"
#include "loops.h"

#include "base/alloc.h"

struct fkt_cuda_gemm {
    struct fkt_cuda_gemm_spec s;
};

struct call {
    struct fkt_cuda_gemm_spec s;
    void *x, *w, *y;
    const float *bias;
    const void *add;
};

fkt_status fkt_cuda_gemm_new(struct fkt_cuda_gemm **out, struct fkt_cuda_device *d, const struct fkt_cuda_gemm_spec *s)
{
    fkt_status st;
    (void)d;
    *out = NULL;
    FKT_TRY(fkt_alloc(out, 1));
    (*out)->s = *s;
out:
    return st;
}

/* A few bytes, so that callers must provide what they are asked for. */
size_t fkt_cuda_gemm_workspace(const struct fkt_cuda_gemm *g) { return g->s.way == FKT_CUDA_FORWARD ? 0 : 256; }

static void forward(const struct call *k)
{
    size_t rows = (size_t)k->s.rows, in = (size_t)k->s.in, outs = (size_t)k->s.out;
    float *x = fkt_loop_floats(k->x, rows * in, k->s.precision), *w = fkt_loop_floats(k->w, outs * in, k->s.precision);
    for (size_t r = 0; r < rows; r++)
        for (size_t o = 0; o < outs; o++) {
            double sum = k->s.bias ? (double)k->bias[o] : 0;
            for (size_t i = 0; i < in; i++) sum += (double)x[r * in + i] * (double)w[o * in + i];
            if (k->s.add) sum += fkt_loop_get(k->add, r * outs + o, k->s.precision);
            fkt_loop_put(k->y, r * outs + o, k->s.precision, fkt_loop_act(sum, k->s.act));
        }
    free(x);
    free(w);
}

static void back_data(const struct call *k)
{
    size_t rows = (size_t)k->s.rows, in = (size_t)k->s.in, outs = (size_t)k->s.out;
    float *y = fkt_loop_floats(k->y, rows * outs, k->s.precision),
          *w = fkt_loop_floats(k->w, outs * in, k->s.precision);
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < in; i++) {
            double sum = 0;
            for (size_t o = 0; o < outs; o++) sum += (double)y[r * outs + o] * (double)w[o * in + i];
            fkt_loop_put(k->x, r * in + i, k->s.precision, sum);
        }
    free(y);
    free(w);
}

static void back_weights(const struct call *k)
{
    size_t rows = (size_t)k->s.rows, in = (size_t)k->s.in, outs = (size_t)k->s.out;
    float *x = fkt_loop_floats(k->x, rows * in, k->s.precision),
          *y = fkt_loop_floats(k->y, rows * outs, k->s.precision);
    for (size_t o = 0; o < outs; o++)
        for (size_t i = 0; i < in; i++) {
            double sum = 0;
            for (size_t r = 0; r < rows; r++) sum += (double)y[r * outs + o] * (double)x[r * in + i];
            ((float *)k->w)[o * in + i] = (float)sum;
        }
    free(x);
    free(y);
}

static void run(const void *arguments)
{
    const struct call *k = arguments;
    if (k->s.way == FKT_CUDA_FORWARD) forward(k);
    else if (k->s.way == FKT_CUDA_BACK_DATA) back_data(k);
    else back_weights(k);
}

fkt_status fkt_cuda_gemm_run(const struct fkt_cuda_gemm *g, void *x, void *w, const float *bias, const void *add,
                             void *y, void *workspace, cudaStream_t stream)
{
    struct call k = {g->s, x, w, y, bias, add};
    if (fkt_cuda_gemm_workspace(g) && !workspace) return fkt_fail(FKT_E_ARG, "a product without its workspace");
    fkt_host_submit(stream, run, &k, sizeof k);
    return fkt_cuda_check(cudaGetLastError(), "running a matrix product");
}

void fkt_cuda_gemm_free(struct fkt_cuda_gemm *g) { fkt_free(g); }
