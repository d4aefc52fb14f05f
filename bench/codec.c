/* SPDX-License-Identifier: Apache-2.0 */
/* codec.c - speed of a codec in both directions, compared with the processor's best matrix products.
 *
 * Best of PASSES over all images, batches distributed over `threads` workers as in the pipeline. A wrong result is
 * not timed: single images must give the same bits as whole batches, in both directions; a NaN fails inside the
 * codec. The peer of a network is the rate at which direct convolutions would run at the processor's best product
 * (peak.c); Winograd needs fewer multiplications, so this rate may be exceeded: it is not a bound. A codec without a
 * network is compared with copying its pixels. Memory is the peak of the process (getrusage), read after encoding
 * and after decoding, compared with the plain weights of the networks in use; so this benchmark runs first. */
#include "bench/bench.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/meter.h"
#include "base/threads.h"
#include "pipeline/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PASSES 5
#define PATIENCE 30.0 /* seconds: no further pass after them */
#define USUAL_FLOP 5e11
enum { USUAL_IMAGES = 1000, LEAST_IMAGES = 8, CHECKED = 3 };

struct job {
    struct fkt_codec *codec;
    struct fkt_codec_facts facts;
    size_t n, batch;
    unsigned threads;
    uint8_t *rgb, *back; /* (n, S, S, 3) */
    float *z;            /* (n, D) */
    double first;        /* seconds from opening to the first latent */
    double seconds[2], peak_mb[2];
    struct cli_progress progress;
    struct fkt_meter *meter; /* of the side that is timed now */
};

static size_t pixels(const struct job *j) { return (size_t)fkt_codec_size(j->codec) * fkt_codec_size(j->codec) * 3; }

static void release(struct job *j)
{
    fkt_free(j->rgb);
    fkt_free(j->back);
    fkt_free(j->z);
    fkt_codec_free(j->codec);
}

static fkt_status some(const struct job *j, int decode, size_t from, size_t n)
{
    size_t p = pixels(j), D = fkt_codec_dim(j->codec);
    if (decode) return fkt_codec_decode(j->codec, j->z + from * D, n, j->back + from * p);
    return fkt_codec_encode(j->codec, j->rgb + from * p, n, j->z + from * D);
}

static fkt_status one_batch(struct job *j, int decode, size_t item)
{
    size_t from = item * j->batch, n = j->n - from < j->batch ? j->n - from : j->batch;
    fkt_status st = some(j, decode, from, n);
    return st == FKT_OK ? fkt_meter_add(j->meter, n) : st;
}

static fkt_status encode_batch(void *ctx, size_t item, unsigned worker)
{
    (void)worker;
    return one_batch(ctx, 0, item);
}

static fkt_status decode_batch(void *ctx, size_t item, unsigned worker)
{
    (void)worker;
    return one_batch(ctx, 1, item);
}

static fkt_status time_side(struct job *j, int decode)
{
    struct fkt_meter meter;
    double spent = 0;
    fkt_status st = FKT_OK;
    fkt_meter_init(&meter, &j->progress.hook, decode ? "timing decode" : "timing encode", (PASSES + 1) * j->n);
    j->meter = &meter;
    j->seconds[decode] = INFINITY;
    for (int pass = 0; pass <= PASSES && (pass < 2 || spent < PATIENCE); pass++) {
        double start = fkt_now(), took;
        FKT_TRY(fkt_parallel(j->threads, (j->n + j->batch - 1) / j->batch, decode ? decode_batch : encode_batch, j,
                             NULL, "timing"));
        took = fkt_now() - start;
        spent += took;
        if (pass > 0)
            j->seconds[decode] = fmin(j->seconds[decode], took); /* the first one sets up a workspace per worker */
    }
    j->peak_mb[decode] = fkt_bench_memory();
out:
    j->meter = NULL;
    fkt_meter_clear(&meter);
    return st;
}

/* Single images must give the same result as whole batches: the first, the last and one between. */
static fkt_status check(const struct job *j)
{
    size_t p = pixels(j), D = fkt_codec_dim(j->codec);
    float *z = NULL;
    uint8_t *back = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&z, D));
    FKT_TRY(fkt_alloc(&back, p));
    for (size_t k = 0; k < CHECKED && st == FKT_OK; k++) {
        size_t i = k * (j->n - 1) / (CHECKED - 1);
        FKT_TRY(fkt_codec_encode(j->codec, j->rgb + i * p, 1, z));
        FKT_TRY(fkt_codec_decode(j->codec, z, 1, back));
        if (memcmp(z, j->z + i * D, D * sizeof *z) != 0 || memcmp(back, j->back + i * p, p) != 0)
            st = fkt_fail(FKT_E_NUMERIC, "image %zu gives another result alone than in its batch: not timed", i);
    }
out:
    fkt_free(z);
    fkt_free(back);
    return st;
}

static fkt_status paint(struct job *j)
{
    struct fkt_dataset *ds = NULL;
    fkt_status st;
    FKT_TRY(fkt_dataset_open(&ds, "demo:train", &(struct fkt_dataset_options){0}));
    for (size_t i = 0; i < j->n; i++)
        FKT_TRY(fkt_dataset_read(ds, i * 7 % fkt_dataset_size(ds), fkt_codec_size(j->codec), FKT_FILTER_BILINEAR,
                                 j->rgb + i * pixels(j), NULL));
out:
    fkt_dataset_free(ds);
    return st;
}

static fkt_status prepare(struct job *j, const struct cli_bench *o)
{
    struct fkt_codec_spec spec;
    double start = fkt_now();
    fkt_status st;
    FKT_TRY(cli_threads(o->run.threads, &j->threads));
    FKT_TRY(cli_codec_spec(&o->codec, &spec));
    if (o->images > 1000000) {
        st = fkt_fail(FKT_E_ARG, "--images must be at most 1000000");
        goto out;
    }
    FKT_TRY(fkt_codec_open(&j->codec, &spec));
    start = fkt_now() - start;
    FKT_TRY(fkt_codec_facts(j->codec, &j->facts));
    if (!j->threads) j->threads = fkt_cpu_count();
    j->batch = fkt_pipeline_batch(j->codec);
    j->n = (size_t)o->images;
    if (!j->n) {
        double flops = (double)j->facts.flops[0], many = flops > 0 ? USUAL_FLOP / flops : USUAL_IMAGES;
        j->n = many > USUAL_IMAGES ? USUAL_IMAGES : many < LEAST_IMAGES ? LEAST_IMAGES : (size_t)many;
        if (j->n < j->batch * j->threads) j->n = j->batch * j->threads;
    }
    FKT_TRY(fkt_alloc(&j->rgb, j->n * pixels(j)));
    FKT_TRY(fkt_alloc(&j->back, j->n * pixels(j)));
    FKT_TRY(fkt_alloc(&j->z, j->n * fkt_codec_dim(j->codec)));
    FKT_TRY(paint(j));
    j->first = fkt_now();
    FKT_TRY(some(j, 0, 0, 1));
    j->first = fkt_now() - j->first + start;
out:
    return st;
}

/* Images per second that copying the pixels allows. */
static double copy_rate(struct job *j)
{
    double least = INFINITY;
    for (int run = 0; run < 10; run++) {
        double start = fkt_now();
        memcpy(j->back, j->rgb, j->n * pixels(j));
        least = fmin(least, fkt_now() - start);
    }
    return (double)j->n / least;
}

static void row(struct fkt_bench_row *r, const struct job *j, const char *what, double value, const char *unit,
                double bound, const char *bound_name)
{
    memset(r, 0, sizeof *r);
    snprintf(r->name, sizeof r->name, "codec/%s %s %u px %s", what, fkt_codec_name(j->codec), fkt_codec_size(j->codec),
             fkt_codec_dtype_name(fkt_codec_dtype_used(j->codec)));
    r->value = value;
    snprintf(r->unit, sizeof r->unit, "%s", unit);
    r->bound = bound;
    r->ratio_to_bound = value / bound;
    snprintf(r->bound_name, sizeof r->bound_name, "%s", bound_name);
}

static fkt_status speed_rows(struct fkt_bench_row *rows, struct job *j)
{
    static const char *const side[2] = {"encode", "decode"};
    const char *whose = "";
    char bound_name[64];
    double peak = 0;
    fkt_status st = FKT_OK;
    if (j->facts.flops[0]) FKT_TRY(fkt_bench_peak(fkt_codec_dtype_used(j->codec), j->threads, &peak, &whose));
    for (int i = 0; i < 2; i++) {
        double rate = (double)j->n / j->seconds[i], flops = (double)j->facts.flops[i];
        if (peak > 0) snprintf(bound_name, sizeof bound_name, "direct convolutions at %.0f GFLOP/s, %s", peak, whose);
        else snprintf(bound_name, sizeof bound_name, "copying the pixels, one thread");
        row(&rows[i], j, side[i], rate, "images/s", peak > 0 ? peak * 1e9 / flops : copy_rate(j), bound_name);
        rows[i].peer = peak > 0;
        snprintf(rows[i].note, sizeof rows[i].note, "%zu images, %u threads, batch %zu, best of %d; %.1f GFLOP/s", j->n,
                 j->threads, fkt_codec_batch(j->codec), PASSES, rate * flops * 1e-9);
    }
out:
    return st;
}

/* Peak memory, compared with the weights. */
static void memory_rows(struct fkt_bench_row *rows, const struct job *j)
{
    size_t each = fkt_codec_dtype_used(j->codec) == FKT_CODEC_DTYPE_BF16 ? 2 : 4;
    for (int i = 0; i < 2; i++) {
        uint64_t numbers = j->facts.parameters[0] + (i ? j->facts.parameters[1] : 0);
        row(&rows[i], j, i ? "memory both ways" : "memory encode", j->peak_mb[i], "MB", (double)(numbers * each) * 1e-6,
            "the weights, in the number format in use");
        snprintf(rows[i].note, sizeof rows[i].note,
                 "peak of the process with %zu images (%.1f MB); packed weights %.1f MB, %.1f MB per worker", j->n,
                 (double)(j->n * (2 * pixels(j) + fkt_codec_dim(j->codec) * sizeof *j->z)) * 1e-6,
                 (double)j->facts.packed_bytes[i] * 1e-6, (double)j->facts.workspace_bytes[i] * 1e-6);
    }
}

fkt_status fkt_bench_codec(const struct cli_bench *o, struct fkt_bench_row *rows, size_t cap, size_t *n)
{
    struct job j = {0};
    fkt_status st;
    *n = 0;
    if (cap < 5) return FKT_OK;
    cli_progress_init(&j.progress, o->run.quiet);
    FKT_TRY(prepare(&j, o));
    FKT_TRY(time_side(&j, 0));
    FKT_TRY(time_side(&j, 1));
    FKT_TRY(check(&j));
    FKT_TRY(fkt_codec_facts(j.codec, &j.facts)); /* by now both networks are packed */
    FKT_TRY(speed_rows(rows, &j));
    row(&rows[2], &j, "first latent", j.first, "s",
        j.seconds[0] * (double)(fkt_codec_batch(j.codec) * j.threads) / (double)j.n, "a batch of a running pipeline");
    snprintf(rows[2].note, sizeof rows[2].note, "opening, hashing and packing the weights, planning, one batch");
    *n = 3;
    if (j.facts.parameters[0]) {
        memory_rows(rows + 3, &j);
        *n = 5;
    }
out:
    cli_progress_end(&j.progress);
    release(&j);
    return st;
}
