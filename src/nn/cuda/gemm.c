/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.c - matrix products by cuBLASLt.
 *
 * cuBLASLt counts columns first: our (rows, in) row by row is its (in, rows) column by column. With that, for its
 * D (m, n) = A B over a length of l:
 *
 *   forward       y (out, rows) = w^T (in, out)^T   x (in, rows)       m = out, n = rows, l = in
 *   data          x (in, rows)  = w (in, out)       y (out, rows)      m = in,  n = rows, l = out
 *   weights       w (in, out)   = x (in, rows)      y^T (out, rows)^T  m = in,  n = out,  l = rows
 *
 * Bias (in f32, or where bf16 takes a float bias), addition (as C) and ReLU run inside the product; other activations,
 * and a bias that does not, in one kernel after it. The first algorithm of the heuristic is taken; reductions over
 * parts run in a fixed order, in float. Arithmetic is COMPUTE_32F: no TF32.
 * Source: NVIDIA cuBLAS, "Using the cuBLASLt API". */
#include "nn/cuda/gemm.h"
#include "nn/cuda/api.h"
#include "nn/cuda/kernels.h"

#include "base/alloc.h"

#include <stdint.h>

enum { WORKSPACE_MAX = 32 << 20 };

struct fkt_cuda_gemm {
    struct fkt_cuda_handles *h;
    struct fkt_cuda_gemm_spec spec;
    cublasLtMatrixLayout_t a, b, d;
    cublasLtMatmulAlgo_t algo;
    size_t workspace;
    int bias, act; /* inside the product */
};

static cudaDataType_t type_of(enum fkt_precision p) { return p == FKT_PRECISION_BF16 ? CUDA_R_16BF : CUDA_R_32F; }

#define THEN(call)                                                                                                     \
    if (e == CUBLAS_STATUS_SUCCESS) e = (call)

static cublasStatus_t layouts(struct fkt_cuda_gemm *g)
{
    const struct fkt_cuda_api *api = g->h->api;
    const struct fkt_cuda_gemm_spec *s = &g->spec;
    const cudaDataType_t io = type_of(s->precision);
    const uint64_t in = (uint64_t)s->in, out = (uint64_t)s->out, rows = (uint64_t)s->rows;
    cublasStatus_t e = CUBLAS_STATUS_SUCCESS;
    if (s->way == FKT_CUDA_FORWARD) {
        THEN(api->cublasLtMatrixLayoutCreate(&g->a, io, in, out, s->in));
        THEN(api->cublasLtMatrixLayoutCreate(&g->b, io, in, rows, s->in));
        THEN(api->cublasLtMatrixLayoutCreate(&g->d, io, out, rows, s->out));
    } else if (s->way == FKT_CUDA_BACK_DATA) {
        THEN(api->cublasLtMatrixLayoutCreate(&g->a, io, in, out, s->in));
        THEN(api->cublasLtMatrixLayoutCreate(&g->b, io, out, rows, s->out));
        THEN(api->cublasLtMatrixLayoutCreate(&g->d, io, in, rows, s->in));
    } else {
        THEN(api->cublasLtMatrixLayoutCreate(&g->a, io, in, rows, s->in));
        THEN(api->cublasLtMatrixLayoutCreate(&g->b, io, out, rows, s->out));
        THEN(api->cublasLtMatrixLayoutCreate(&g->d, CUDA_R_32F, in, out, s->in));
    }
    return e;
}

/* What is computed. The bias's address is part of it, so each call makes its own. */
static cublasStatus_t describe(const struct fkt_cuda_gemm *g, const float *bias, cublasLtMatmulDesc_t *out)
{
    const struct fkt_cuda_api *api = g->h->api;
    const cublasOperation_t t = CUBLAS_OP_T;
    const cudaDataType_t f32 = CUDA_R_32F;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    cublasStatus_t e = api->cublasLtMatmulDescCreate(out, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (g->bias) epilogue = g->act ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
    else if (g->act) epilogue = CUBLASLT_EPILOGUE_RELU;
    if (g->spec.way == FKT_CUDA_FORWARD)
        THEN(api->cublasLtMatmulDescSetAttribute(*out, CUBLASLT_MATMUL_DESC_TRANSA, &t, sizeof t));
    if (g->spec.way == FKT_CUDA_BACK_WEIGHTS)
        THEN(api->cublasLtMatmulDescSetAttribute(*out, CUBLASLT_MATMUL_DESC_TRANSB, &t, sizeof t));
    THEN(api->cublasLtMatmulDescSetAttribute(*out, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    if (g->bias) {
        THEN(api->cublasLtMatmulDescSetAttribute(*out, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &f32, sizeof f32));
        THEN(api->cublasLtMatmulDescSetAttribute(*out, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
    }
    return e;
}

/* CUBLAS_STATUS_NOT_SUPPORTED: there is no algorithm for the epilogue. */
static cublasStatus_t choose(struct fkt_cuda_gemm *g)
{
    const struct fkt_cuda_api *api = g->h->api;
    const size_t most = WORKSPACE_MAX;
    const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, align = 16;
    cublasLtMatmulPreference_t wish = NULL;
    cublasLtMatmulHeuristicResult_t first;
    int found = 0;
    cublasLtMatmulDesc_t product = NULL;
    cublasStatus_t e = describe(g, NULL, &product);
    THEN(api->cublasLtMatmulPreferenceCreate(&wish));
    THEN(api->cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most));
    THEN(api->cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
                                                   sizeof reductions));
    for (int i = 0; i < 4; i++) {
        static const cublasLtMatmulPreferenceAttributes_t which[] = {
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
        THEN(api->cublasLtMatmulPreferenceSetAttribute(wish, which[i], &align, sizeof align));
    }
    THEN(api->cublasLtMatmulAlgoGetHeuristic(g->h->blas, product, g->a, g->b, g->d, g->d, wish, 1, &first, &found));
    if (wish) (void)api->cublasLtMatmulPreferenceDestroy(wish);
    if (product) (void)api->cublasLtMatmulDescDestroy(product);
    if (e == CUBLAS_STATUS_SUCCESS && !found) e = CUBLAS_STATUS_NOT_SUPPORTED;
    THEN(first.state);
    if (e != CUBLAS_STATUS_SUCCESS) return e;
    g->algo = first.algo;
    g->workspace = first.workspaceSize;
    return e;
}

fkt_status fkt_cuda_gemm_new(struct fkt_cuda_gemm **out, struct fkt_cuda_device *d, const struct fkt_cuda_gemm_spec *s)
{
    struct fkt_cuda_gemm *g = NULL;
    cublasStatus_t e;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&g, 1));
    g->h = fkt_cuda_handles(d);
    g->spec = *s;
    g->bias = s->bias != 0;
    g->act = s->act == FKT_CUDA_ACT_RELU;
    e = layouts(g);
    if (e == CUBLAS_STATUS_SUCCESS) {
        e = choose(g);
        if (e != CUBLAS_STATUS_SUCCESS && (g->bias || g->act)) {
            g->bias = g->act = 0;
            e = choose(g);
        }
    }
    if (e != CUBLAS_STATUS_SUCCESS) {
        st = fkt_fail_hint(FKT_E_STATE, "use the processor instead",
                           "cuBLASLt cannot compute a product of %d rows, %d to %d channels: %s", s->rows, s->in,
                           s->out, g->h->api->cublasLtGetStatusString(e));
        goto out;
    }
    *out = g;
    g = NULL;
out:
    fkt_cuda_gemm_free(g);
    return st;
}

size_t fkt_cuda_gemm_workspace(const struct fkt_cuda_gemm *g) { return g->workspace; }

static cublasStatus_t multiply(const struct fkt_cuda_gemm *g, const void *a, const void *b, const float *bias,
                               const void *add, void *to, void *workspace, cudaStream_t stream)
{
    const struct fkt_cuda_api *api = g->h->api;
    const float one = 1, zero = 0;
    cublasLtMatmulDesc_t product = NULL;
    cublasStatus_t e = describe(g, bias, &product);
    THEN(api->cublasLtMatmul(g->h->blas, product, &one, a, g->a, b, g->b, add ? &one : &zero, add ? add : to, g->d, to,
                             g->d, &g->algo, workspace, g->workspace, stream));
    if (product) (void)api->cublasLtMatmulDescDestroy(product);
    return e;
}

fkt_status fkt_cuda_gemm_run(const struct fkt_cuda_gemm *g, void *x, void *w, const float *bias, const void *add,
                             void *y, void *workspace, cudaStream_t stream)
{
    const struct fkt_cuda_gemm_spec *s = &g->spec;
    const int later_bias = s->bias && !g->bias, relu = s->act == FKT_CUDA_ACT_RELU;
    const int later_act = s->act != FKT_CUDA_ACT_NONE && !(relu && g->act);
    struct fkt_cuda_tensor to = {y, 1, 1, s->rows, s->out, s->precision};
    cublasStatus_t e;
    if (s->way == FKT_CUDA_FORWARD) e = multiply(g, w, x, bias, s->add ? add : NULL, y, workspace, stream);
    else if (s->way == FKT_CUDA_BACK_DATA) e = multiply(g, w, y, NULL, NULL, x, workspace, stream);
    else e = multiply(g, x, y, NULL, NULL, w, workspace, stream);
    if (e != CUBLAS_STATUS_SUCCESS)
        return fkt_fail_hint(FKT_E_STATE, "use the processor instead", "cuBLASLt failed in a product: %s",
                             g->h->api->cublasLtGetStatusString(e));
    if (s->way != FKT_CUDA_FORWARD || (!later_bias && !later_act)) return FKT_OK;
    return fkt_cuda_epilogue(&to, later_bias ? bias : NULL, NULL, later_act ? s->act : FKT_CUDA_ACT_NONE, stream);
}

void fkt_cuda_gemm_free(struct fkt_cuda_gemm *g)
{
    const struct fkt_cuda_api *api;
    if (!g) return;
    api = g->h->api;
    if (g->a) (void)api->cublasLtMatrixLayoutDestroy(g->a);
    if (g->b) (void)api->cublasLtMatrixLayoutDestroy(g->b);
    if (g->d) (void)api->cublasLtMatrixLayoutDestroy(g->d);
    fkt_free(g);
}
