/* SPDX-License-Identifier: Apache-2.0 */
/* peak.c - the processor's peak rate: large products, each thread with its own, best of RUNS.
 *
 * Two libraries are measured: BLAS (sgemm of side SIDE), and the one behind networks: LAYERS 1x1 convolutions in a
 * row, each a product of (BATCH * SIDE_PX^2, SIDE) with (SIDE, SIDE); in a row, so that bringing the numbers into
 * its own order and back does not count. The better one is the bound for f32; BLAS has no bf16 product. Cost: a
 * second or two. */
#include "bench/bench.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/threads.h"
#include "nn/engine.h"
#include "tensor/linalg.h"
#include "tensor/safetensors.h"

#include <math.h>

enum { RUNS = 10, SIDE = 1024, SIDE_PX = 16, BATCH = 4, LAYERS = 12 };

struct products {
    float *a, *b, *c; /* c: one for each thread */
    struct fkt_engine *engine;
};

static fkt_status blas_once(void *ctx, size_t item, unsigned worker)
{
    struct products *p = ctx;
    (void)worker;
    fkt_sgemm(p->c + item * SIDE * SIDE, p->a, p->b, SIDE, SIDE, SIDE);
    return FKT_OK;
}

static fkt_status network_once(void *ctx, size_t item, unsigned worker)
{
    struct products *p = ctx;
    (void)worker;
    return fkt_engine_run(p->engine, p->a, BATCH, p->c + item * SIDE * SIDE);
}

static fkt_status best(struct products *p, unsigned threads, fkt_status (*once)(void *, size_t, unsigned), double flops,
                       double *gflops)
{
    double least = INFINITY;
    fkt_status st = FKT_OK;
    for (int run = 0; run <= RUNS; run++) {
        double start = fkt_now();
        FKT_TRY(fkt_parallel(threads, threads, once, p, NULL, "timing"));
        if (run > 0) least = fmin(least, fkt_now() - start);
    }
    *gflops = flops * threads / least * 1e-9;
out:
    return st;
}

static fkt_status network_peak(struct products *p, enum fkt_codec_dtype dtype, unsigned threads, double *gflops)
{
    struct fkt_engine_spec spec = {.batch = BATCH,
                                   .height = SIDE_PX,
                                   .width = SIDE_PX,
                                   .precision = dtype == FKT_CODEC_DTYPE_BF16 ? FKT_PRECISION_BF16 : FKT_PRECISION_F32};
    struct fkt_op conv = {.kind = FKT_OP_CONV, .channels = SIDE, .kernel = 1, .stride = 1, .groups = 1};
    struct fkt_net net;
    struct fkt_st_writer *w = NULL;
    struct fkt_safetensors *file = NULL;
    struct fkt_weights *weights = NULL;
    uint8_t *bytes = NULL;
    size_t len;
    fkt_status st;
    fkt_net_init(&net, SIDE);
    conv.weight = fkt_net_slot(&net, "w", SIDE, SIDE, 1, 1);
    conv.bias = conv.mean = conv.var = FKT_NO_SLOT;
    for (int i = 0; i < LAYERS; i++) conv.in[0] = fkt_net_add(&net, &conv);
    FKT_TRY(fkt_net_status(&net));
    FKT_TRY(fkt_st_writer_new(&w));
    FKT_TRY(fkt_st_writer_add(w, "w", FKT_F32, 4, (uint64_t[]){SIDE, SIDE, 1, 1}, p->b));
    FKT_TRY(fkt_st_writer_bytes(w, &bytes, &len));
    FKT_TRY(fkt_safetensors_parse(&file, bytes, len, "products"));
    FKT_TRY(fkt_weights_bind(&weights, &net, (const struct fkt_safetensors *const *)&file, 1, NULL, NULL));
    FKT_TRY(fkt_engine_new(&p->engine, &fkt_backend_onednn, &net, weights, &spec));
    FKT_TRY(best(p, threads, network_once, 2.0 * LAYERS * BATCH * SIDE_PX * SIDE_PX * SIDE * SIDE, gflops));
out:
    fkt_engine_free(p->engine);
    p->engine = NULL;
    fkt_weights_free(weights);
    fkt_safetensors_free(file);
    fkt_st_writer_free(w);
    fkt_free(bytes);
    fkt_net_clear(&net);
    return st;
}

fkt_status fkt_bench_peak(enum fkt_codec_dtype dtype, unsigned threads, double *gflops, const char **whose)
{
    struct products p = {0};
    struct fkt_rng rng;
    double blas = 0;
    fkt_status st;
    _Static_assert(BATCH * SIDE_PX * SIDE_PX == SIDE, "both products have the same three sides");
    fkt_rng_init(&rng, 0, 0);
    FKT_TRY(fkt_alloc(&p.a, (size_t)SIDE * SIDE));
    FKT_TRY(fkt_alloc(&p.b, (size_t)SIDE * SIDE));
    FKT_TRY(fkt_alloc(&p.c, (size_t)SIDE * SIDE * threads));
    for (size_t i = 0; i < (size_t)SIDE * SIDE; i++) {
        p.a[i] = (float)fkt_rng_unit(&rng);
        p.b[i] = (float)(fkt_rng_unit(&rng) - 0.5) / 9; /* products keep their size */
    }
    FKT_TRY(network_peak(&p, dtype, threads, gflops));
    *whose = "networks' library";
    if (dtype == FKT_CODEC_DTYPE_F32) FKT_TRY(best(&p, threads, blas_once, 2.0 * SIDE * SIDE * SIDE, &blas));
    if (blas > *gflops) {
        *gflops = blas;
        *whose = "BLAS";
    }
out:
    fkt_free(p.a);
    fkt_free(p.b);
    fkt_free(p.c);
    return st;
}
