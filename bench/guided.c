/* SPDX-License-Identifier: Apache-2.0 */
/* guided.c - guided images per second: in one pass by the fast twin, and by gradient, the definition.
 *
 * Codec and guide are the program's own pair unless the options name another codec. Vectors are standard normal, in
 * whitened units. Calibrations are those that come with the networks, which the twin was made for; of a codec without
 * one, a made-up one (an identity map), which costs what a real one costs. The best of PASSES is reported; the bound of
 * both is direct convolutions at the processor's best matrix product (peak.c), forward and backward counted once each,
 * which Winograd's may pass. A wrong result is not timed: an image alone must have the bits that it has in a batch. */
#include "bench/bench.h"

#include "pipeline/guided_way.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/threads.h"

#include <math.h>
#include <string.h>

enum { PASSES = 3, USUAL_TWIN = 512, USUAL_GRADIENT = 2, DIM = 64, ROWS = 2 };
#define GUIDE "fedkt-guide"

struct run {
    struct fkt_codec *codec, *guide;
    struct fkt_calibration calibration[2];
    struct fkt_guided_source source;
    struct fkt_guided_way *way;
    struct fkt_guided_facts facts;
    struct fkt_guided_image *image; /* (n) */
    double *u, *s;                  /* (n, d), (n, k) */
    uint8_t *rgb;                   /* (n, S, S, 3) */
    size_t n, pixels;
    unsigned threads;
};

static fkt_status made_up(struct fkt_calibration *c, uint32_t raw)
{
    const uint32_t dim = raw < DIM ? raw : DIM;
    fkt_status st;
    c->raw_dim = raw;
    c->dim = dim;
    FKT_TRY(fkt_alloc(&c->centre, raw));
    FKT_TRY(fkt_alloc(&c->map, (size_t)raw * dim));
    FKT_TRY(fkt_alloc(&c->unmap, (size_t)raw * dim));
    for (size_t i = 0; i < dim; i++) c->map[i * raw + i] = c->unmap[i * dim + i] = 1;
out:
    return st;
}

static fkt_status calibration_of(struct fkt_calibration *c, const struct fkt_codec *codec)
{
    const fkt_status st = fkt_calibration_embedded(c, codec);
    return st == FKT_E_STATE ? made_up(c, fkt_codec_dim(codec)) : st; /* it has none */
}

static fkt_status draw(struct run *r, size_t n)
{
    const uint32_t d = r->calibration[0].dim, k = r->calibration[1].dim;
    struct fkt_rng rng;
    fkt_status st;
    r->n = n;
    FKT_TRY(fkt_realloc(&r->image, n));
    FKT_TRY(fkt_realloc(&r->u, n * d));
    FKT_TRY(fkt_realloc(&r->s, n * k));
    FKT_TRY(fkt_realloc(&r->rgb, n * r->pixels));
    fkt_rng_init(&rng, 1, 2);
    for (size_t i = 0; i < n; i++) r->image[i] = (struct fkt_guided_image){.number = i};
    for (size_t i = 0; i < n * d; i++) r->u[i] = fkt_rng_normal(&rng);
    for (size_t i = 0; i < n * k; i++) r->s[i] = fkt_rng_normal(&rng);
out:
    return st;
}

static fkt_status one_batch(void *ctx, size_t item, unsigned worker)
{
    const struct run *r = ctx;
    const size_t batch = fkt_guided_way_batch(r->way), at = item * batch, n = r->n - at < batch ? r->n - at : batch;
    return fkt_guided_way_run(r->way, worker, r->image + at, r->u + at * r->calibration[0].dim,
                              r->s + at * r->calibration[1].dim, n, r->rgb + at * r->pixels);
}

static fkt_status time_way(struct run *r, size_t batches, double *seconds)
{
    const size_t batch = fkt_guided_way_batch(r->way);
    uint8_t *one = NULL;
    fkt_status st;
    *seconds = INFINITY;
    FKT_TRY(draw(r, batches * batch));
    FKT_TRY(fkt_alloc(&one, r->pixels));
    for (int pass = 0; pass < PASSES; pass++) {
        const double start = fkt_now();
        FKT_TRY(fkt_parallel(r->threads, batches, one_batch, r, NULL, NULL));
        *seconds = fmin(*seconds, fkt_now() - start);
    }
    FKT_TRY(fkt_guided_way_run(r->way, 0, r->image + 1, r->u + r->calibration[0].dim, r->s + r->calibration[1].dim, 1,
                               one));
    if (memcmp(one, r->rgb + r->pixels, r->pixels) != 0)
        st = fkt_fail(FKT_E_STATE, "a guided image alone differs from the same image in a batch");
out:
    fkt_free(one);
    return st;
}

static void fill(struct fkt_bench_row *row, const struct run *r, double seconds, double peak, const char *whose)
{
    const double rate = (double)r->n / seconds;
    struct fkt_codec_facts codec, guide;
    double flops = 0;
    memset(row, 0, sizeof *row);
    if (fkt_codec_facts(r->codec, &codec) == FKT_OK && fkt_codec_facts(r->guide, &guide) == FKT_OK)
        flops =
            (double)codec.flops[1] + (r->facts.kind == FKT_GUIDED_TWIN
                                          ? 0
                                          : 2.0 * r->facts.steps * ((double)codec.flops[1] + (double)guide.flops[0]));
    snprintf(row->name, sizeof row->name, "guided/%s %s %u px", r->facts.kind == FKT_GUIDED_TWIN ? "twin" : "gradient",
             fkt_codec_name(r->codec), fkt_codec_size(r->codec));
    row->value = rate;
    snprintf(row->unit, sizeof row->unit, "images/s");
    row->bound = peak * 1e9 / flops;
    row->ratio_to_bound = rate / row->bound;
    row->peer = 1;
    snprintf(row->bound_name, sizeof row->bound_name, "direct convolutions at %.0f GFLOP/s, %s", peak, whose);
    snprintf(row->note, sizeof row->note, "%zu images, %u threads, batch %zu, best of %d; 5000 images in %.0f s", r->n,
             r->threads, fkt_guided_way_batch(r->way), PASSES, 5000 / rate);
}

static fkt_status open_pair(struct run *r, const struct cli_bench *o)
{
    struct fkt_codec_spec codec = {.name = o->codec.name, .size = (uint32_t)o->codec.size}, guide = codec;
    fkt_status st;
    cli_codec_settings(&o->codec.settings, &codec.settings);
    guide.name = GUIDE;
    guide.settings = codec.settings;
    guide.settings.weights = NULL;
    FKT_TRY(fkt_codec_open(&r->codec, &codec));
    FKT_TRY(fkt_codec_open(&r->guide, &guide));
    FKT_TRY(calibration_of(&r->calibration[0], r->codec));
    FKT_TRY(calibration_of(&r->calibration[1], r->guide));
    r->source = (struct fkt_guided_source){.codec = r->codec,
                                           .guide = r->guide,
                                           .codec_calibration = &r->calibration[0],
                                           .guide_calibration = &r->calibration[1]};
    r->pixels = (size_t)3 * fkt_codec_size(r->codec) * fkt_codec_size(r->codec);
out:
    return st;
}

static fkt_status both_ways(struct run *r, const struct cli_bench *o, struct fkt_bench_row *rows, size_t *n)
{
    const struct fkt_guided_options ways[] = {{.kind = FKT_GUIDED_ON}, {.kind = FKT_GUIDED_GRADIENT}};
    double peak = 0, seconds;
    const char *whose = "";
    fkt_status st =
        fkt_bench_peak(fkt_codec_device_used(r->codec), fkt_codec_dtype_used(r->codec), r->threads, &peak, &whose);
    if (st != FKT_OK) return st;
    for (int i = 0; i < ROWS; i++) {
        size_t batches;
        FKT_TRY(fkt_guided_way_open(&r->way, &r->source, &ways[i], r->threads, &r->facts));
        if (i == 0 && r->facts.kind != FKT_GUIDED_TWIN) { /* no twin: the next way alone */
            fkt_guided_way_free(r->way);
            r->way = NULL;
            continue;
        }
        batches = (i ? (size_t)r->threads * USUAL_GRADIENT : USUAL_TWIN / fkt_guided_way_batch(r->way)) + 1;
        if (o->images) batches = (size_t)o->images / fkt_guided_way_batch(r->way) + 1;
        FKT_TRY(time_way(r, batches, &seconds));
        fill(&rows[(*n)++], r, seconds, peak, whose);
        fkt_guided_way_free(r->way);
        r->way = NULL;
    }
out:
    return st;
}

fkt_status fkt_bench_guided(const struct cli_bench *o, struct fkt_bench_row *rows, size_t cap, size_t *n)
{
    struct run r = {0};
    fkt_status st;
    *n = 0;
    if (cap < ROWS) return FKT_OK;
    FKT_TRY(cli_threads(o->run.threads, &r.threads));
    if (!r.threads) r.threads = fkt_cpu_count();
    FKT_TRY(open_pair(&r, o));
    FKT_TRY(both_ways(&r, o, rows, n));
out:
    fkt_guided_way_free(r.way);
    for (int i = 0; i < 2; i++) fkt_calibration_clear(&r.calibration[i]);
    fkt_codec_free(r.codec);
    fkt_codec_free(r.guide);
    fkt_free(r.image);
    fkt_free(r.u);
    fkt_free(r.s);
    fkt_free(r.rgb);
    return st;
}
