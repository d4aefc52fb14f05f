/* SPDX-License-Identifier: Apache-2.0 */
/* codec_run.c - many images through a codec in both directions, timed.
 *
 * Batches are distributed over `threads` workers as in the pipeline; images and latents are in the host's memory on
 * both sides, so that on a device the copies are part of the time. */
#include "bench/codec_run.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/meter.h"
#include "base/threads.h"
#include "pipeline/pipeline.h"

#include <math.h>
#include <string.h>

#define PATIENCE 30.0 /* seconds: no further pass after them */
#define USUAL_FLOP 5e11
enum { PASSES = FKT_BENCH_PASSES, USUAL_IMAGES = 1000, LEAST_IMAGES = 8, CHECKED = 3 };

size_t fkt_bench_codec_pixels(const struct fkt_bench_codec_run *j)
{
    return (size_t)fkt_codec_size(j->codec) * fkt_codec_size(j->codec) * 3;
}

void fkt_bench_codec_release(struct fkt_bench_codec_run *j)
{
    fkt_free(j->rgb);
    fkt_free(j->back);
    fkt_free(j->z);
    fkt_codec_free(j->codec);
}

static fkt_status some(const struct fkt_bench_codec_run *j, int decode, size_t from, size_t n)
{
    size_t p = fkt_bench_codec_pixels(j), D = fkt_codec_dim(j->codec);
    if (decode) return fkt_codec_decode(j->codec, j->given + from * D, n, j->back + from * p);
    return fkt_codec_encode(j->codec, j->rgb + from * p, n, j->z + from * D);
}

static fkt_status one_batch(struct fkt_bench_codec_run *j, int decode, size_t item)
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

fkt_status fkt_bench_codec_time(struct fkt_bench_codec_run *j, int decode)
{
    struct fkt_meter meter;
    double spent = 0, took[PASSES] = {0};
    size_t passes = 0;
    fkt_status st = FKT_OK;
    fkt_meter_init(&meter, &j->progress.hook, decode ? "timing decode" : "timing encode", (PASSES + 1) * j->n);
    j->meter = &meter;
    for (int pass = 0; pass <= PASSES && (pass < 2 || spent < PATIENCE); pass++) {
        double start = fkt_now(), now;
        FKT_TRY(fkt_parallel(j->threads, (j->n + j->batch - 1) / j->batch, decode ? decode_batch : encode_batch, j,
                             NULL, "timing"));
        now = fkt_now() - start;
        spent += now;
        if (pass > 0) took[passes++] = now; /* the first one sets up a workspace per worker */
    }
    fkt_bench_sort(took, passes);
    j->seconds[decode] = took[0];
    j->median[decode] = (took[(passes - 1) / 2] + took[passes / 2]) / 2;
    j->peak_mb[decode] = fkt_bench_memory();
out:
    j->meter = NULL;
    fkt_meter_clear(&meter);
    return st;
}

fkt_status fkt_bench_codec_check(const struct fkt_bench_codec_run *j)
{
    size_t p = fkt_bench_codec_pixels(j), D = fkt_codec_dim(j->codec);
    float *z = NULL;
    uint8_t *back = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&z, D));
    FKT_TRY(fkt_alloc(&back, p));
    for (size_t k = 0; k < CHECKED && st == FKT_OK; k++) {
        size_t i = k * (j->n - 1) / (CHECKED - 1);
        FKT_TRY(fkt_codec_encode(j->codec, j->rgb + i * p, 1, z));
        if (fkt_codec_decodes(j->codec)) FKT_TRY(fkt_codec_decode(j->codec, j->given + i * D, 1, back));
        if (memcmp(z, j->z + i * D, D * sizeof *z) != 0 ||
            (fkt_codec_decodes(j->codec) && memcmp(back, j->back + i * p, p) != 0))
            st = fkt_fail(FKT_E_NUMERIC, "image %zu gives another result alone than in its batch: not timed", i);
    }
out:
    fkt_free(z);
    fkt_free(back);
    return st;
}

static fkt_status paint(struct fkt_bench_codec_run *j)
{
    struct fkt_dataset *ds = NULL;
    fkt_status st;
    FKT_TRY(fkt_dataset_open(&ds, "demo:train", &(struct fkt_dataset_options){0}));
    for (size_t i = 0; i < j->n; i++)
        FKT_TRY(fkt_dataset_read(ds, i * 7 % fkt_dataset_size(ds), fkt_codec_size(j->codec), FKT_FILTER_BILINEAR,
                                 j->rgb + i * fkt_bench_codec_pixels(j), NULL));
out:
    fkt_dataset_free(ds);
    return st;
}

fkt_status fkt_bench_codec_open(struct fkt_bench_codec_run *j, const struct cli_bench *o)
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
    FKT_TRY(fkt_alloc(&j->rgb, j->n * fkt_bench_codec_pixels(j)));
    FKT_TRY(fkt_alloc(&j->back, j->n * fkt_bench_codec_pixels(j)));
    FKT_TRY(fkt_alloc(&j->z, j->n * fkt_codec_dim(j->codec)));
    j->given = j->z;
    FKT_TRY(paint(j));
    j->first = fkt_now();
    FKT_TRY(some(j, 0, 0, 1));
    j->first = fkt_now() - j->first + start;
out:
    return st;
}
