/* SPDX-License-Identifier: Apache-2.0 */
/* peak.c - peak rate of matrix products on a processor or a card, best of RUNS.
 *
 * On a processor each thread has its own product, and two libraries are measured: BLAS (sgemm of side SIDE), and the
 * one behind networks: LAYERS 1x1 convolutions in a row, each a product of (BATCH * SIDE_PX^2, SIDE) with (SIDE,
 * SIDE); in a row, so that bringing the numbers into its own order and back does not count. The better one is the bound
 * for f32; BLAS has no bf16 product. On a card there is one network: CARD_LAYERS products of (CARD_BATCH * SIDE_PX^2,
 * CARD_SIDE) with (CARD_SIDE, CARD_SIDE), between two convolutions from and to ENDS channels, so that little crosses
 * the bus. Cost: a second or two. */
#include "bench/bench.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/threads.h"
#include "nn/backends.h"
#include "tensor/linalg.h"
#include "tensor/safetensors.h"

#include <math.h>

enum { RUNS = 10, SIDE = 1024, SIDE_PX = 16, BATCH = 4, LAYERS = 12 };
enum { CARD_SIDE = 4096, CARD_BATCH = 32, CARD_LAYERS = 24, ENDS = 8 };

struct products {
    float *a, *b, *c; /* c: one for each thread */
    struct fkt_engine *engine;
    size_t images; /* of a run of it */
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
    return fkt_engine_run(p->engine, p->a, p->images, p->c + item * SIDE * SIDE);
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

/* Products of one network; ends 0: from `side` channels to as many, else from ENDS to ENDS. */
struct shape {
    uint32_t side, batch, layers, ends;
};

static fkt_status write_weights(struct products *p, const struct shape *s, uint8_t **bytes, size_t *len)
{
    struct fkt_st_writer *w = NULL;
    fkt_status st;
    FKT_TRY(fkt_st_writer_new(&w));
    FKT_TRY(fkt_st_writer_add(w, "w", FKT_F32, 4, (uint64_t[]){s->side, s->side, 1, 1}, p->b));
    if (s->ends) {
        FKT_TRY(fkt_st_writer_add(w, "in", FKT_F32, 4, (uint64_t[]){s->side, s->ends, 1, 1}, p->b));
        FKT_TRY(fkt_st_writer_add(w, "out", FKT_F32, 4, (uint64_t[]){s->ends, s->side, 1, 1}, p->b));
    }
    FKT_TRY(fkt_st_writer_bytes(w, bytes, len));
out:
    fkt_st_writer_free(w);
    return st;
}

static void build(struct fkt_net *net, const struct shape *s)
{
    struct fkt_op conv = {.kind = FKT_OP_CONV, .channels = s->side, .kernel = 1, .stride = 1, .groups = 1};
    conv.bias = conv.mean = conv.var = FKT_NO_SLOT;
    fkt_net_init(net, s->ends ? s->ends : s->side);
    if (s->ends) {
        conv.weight = fkt_net_slot(net, "in", s->side, s->ends, 1, 1);
        conv.in[0] = fkt_net_add(net, &conv);
    }
    conv.weight = fkt_net_slot(net, "w", s->side, s->side, 1, 1);
    for (uint32_t i = 0; i < s->layers; i++) conv.in[0] = fkt_net_add(net, &conv);
    if (s->ends) {
        conv.channels = s->ends;
        conv.weight = fkt_net_slot(net, "out", s->ends, s->side, 1, 1);
        fkt_net_add(net, &conv);
    }
}

static fkt_status network_peak(struct products *p, const struct shape *s, struct fkt_device device,
                               enum fkt_codec_dtype dtype, unsigned threads, double *gflops)
{
    const struct fkt_engine_spec spec = {.batch = s->batch,
                                         .height = SIDE_PX,
                                         .width = SIDE_PX,
                                         .precision =
                                             dtype == FKT_CODEC_DTYPE_BF16 ? FKT_PRECISION_BF16 : FKT_PRECISION_F32,
                                         .device = device.index};
    struct fkt_net net;
    struct fkt_safetensors *file = NULL;
    struct fkt_weights *weights = NULL;
    uint8_t *bytes = NULL;
    size_t len;
    fkt_status st;
    build(&net, s);
    FKT_TRY(fkt_net_status(&net));
    FKT_TRY(write_weights(p, s, &bytes, &len));
    FKT_TRY(fkt_safetensors_parse(&file, bytes, len, "products"));
    FKT_TRY(fkt_weights_bind(&weights, &net, (const struct fkt_safetensors *const *)&file, 1, NULL, NULL));
    FKT_TRY(fkt_engine_new(&p->engine, fkt_backend_for(device), &net, weights, &spec));
    p->images = s->batch;
    FKT_TRY(best(p, threads, network_once, 2.0 * s->layers * s->batch * SIDE_PX * SIDE_PX * s->side * s->side, gflops));
out:
    fkt_engine_free(p->engine);
    p->engine = NULL;
    fkt_weights_free(weights);
    fkt_safetensors_free(file);
    fkt_free(bytes);
    fkt_net_clear(&net);
    return st;
}

fkt_status fkt_bench_peak(struct fkt_device device, enum fkt_codec_dtype dtype, unsigned threads, double *gflops,
                          const char **whose)
{
    const int card = device.kind == FKT_DEVICE_CUDA;
    const struct shape s =
        card ? (struct shape){CARD_SIDE, CARD_BATCH, CARD_LAYERS, ENDS} : (struct shape){SIDE, BATCH, LAYERS, 0};
    struct products p = {0};
    struct fkt_rng rng;
    double blas = 0;
    fkt_status st;
    _Static_assert(BATCH * SIDE_PX * SIDE_PX == SIDE, "both products have the same three sides");
    _Static_assert(CARD_BATCH * SIDE_PX * SIDE_PX * ENDS <= CARD_SIDE * CARD_SIDE, "one array holds a card's images");
    if (card) threads = 1;
    fkt_rng_init(&rng, 0, 0);
    FKT_TRY(fkt_alloc(&p.a, (size_t)s.side * s.side));
    FKT_TRY(fkt_alloc(&p.b, (size_t)s.side * s.side));
    FKT_TRY(fkt_alloc(&p.c, (size_t)s.side * s.side * threads));
    for (size_t i = 0; i < (size_t)s.side * s.side; i++) {
        p.a[i] = (float)fkt_rng_unit(&rng);
        p.b[i] = (float)((fkt_rng_unit(&rng) - 0.5) * sqrt(12.0 / s.side)); /* products keep their size */
    }
    FKT_TRY(network_peak(&p, &s, device, dtype, threads, gflops));
    *whose = "networks' library";
    if (dtype == FKT_CODEC_DTYPE_F32 && !card) FKT_TRY(best(&p, threads, blas_once, 2.0 * SIDE * SIDE * SIDE, &blas));
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
