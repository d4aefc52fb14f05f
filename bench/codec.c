/* SPDX-License-Identifier: Apache-2.0 */
/* codec.c - speed of a codec in both directions (of a guide in its one), compared with the processor's best matrix
 * products.
 *
 * Best of FKT_BENCH_PASSES over all images (codec_run.c). A wrong result is not timed: single images must give the same
 * bits as whole batches, in both directions; a NaN fails inside the codec. The peer of a network is the rate at which
 * direct convolutions would run at the processor's best product (peak.c); Winograd needs fewer multiplications, so this
 * rate may be exceeded: it is not a bound. A codec without a network is compared with copying its pixels. Memory is the
 * peak of the process (getrusage), read after encoding and after decoding, compared with the plain weights of the
 * networks in use; so this benchmark runs first. */
#include "bench/codec_run.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Images per second that copying the pixels allows. */
static double copy_rate(struct fkt_bench_codec_run *j)
{
    double least = INFINITY;
    for (int run = 0; run < 10; run++) {
        double start = fkt_now();
        memcpy(j->back, j->rgb, j->n * fkt_bench_codec_pixels(j));
        least = fmin(least, fkt_now() - start);
    }
    return (double)j->n / least;
}

static void row(struct fkt_bench_row *r, const struct fkt_bench_codec_run *j, const char *what, double value,
                const char *unit, double bound, const char *bound_name)
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

/* Directions: 2, or 1 for a guide. */
static int sides(const struct fkt_bench_codec_run *j) { return fkt_codec_decodes(j->codec) ? 2 : 1; }

static fkt_status speed_rows(struct fkt_bench_row *rows, struct fkt_bench_codec_run *j)
{
    static const char *const side[2] = {"encode", "decode"};
    const char *whose = "";
    char bound_name[64];
    double peak = 0;
    fkt_status st = FKT_OK;
    if (j->facts.flops[0])
        FKT_TRY(
            fkt_bench_peak(fkt_codec_device_used(j->codec), fkt_codec_dtype_used(j->codec), j->threads, &peak, &whose));
    for (int i = 0; i < sides(j); i++) {
        double rate = (double)j->n / j->seconds[i], flops = (double)j->facts.flops[i];
        if (peak > 0) snprintf(bound_name, sizeof bound_name, "direct convolutions at %.0f GFLOP/s, %s", peak, whose);
        else snprintf(bound_name, sizeof bound_name, "copying the pixels, one thread");
        row(&rows[i], j, side[i], rate, "images/s", peak > 0 ? peak * 1e9 / flops : copy_rate(j), bound_name);
        rows[i].peer = peak > 0;
        snprintf(rows[i].note, sizeof rows[i].note, "%zu images, %u threads, batch %zu, best of %d; %.1f GFLOP/s", j->n,
                 j->threads, fkt_codec_batch(j->codec), FKT_BENCH_PASSES, rate * flops * 1e-9);
    }
out:
    return st;
}

/* Peak memory, compared with the weights. */
static void memory_rows(struct fkt_bench_row *rows, const struct fkt_bench_codec_run *j)
{
    size_t each = fkt_codec_dtype_used(j->codec) == FKT_CODEC_DTYPE_BF16 ? 2 : 4;
    for (int i = 0; i < sides(j); i++) {
        uint64_t numbers = j->facts.parameters[0] + (i ? j->facts.parameters[1] : 0);
        row(&rows[i], j, i ? "memory both ways" : "memory encode", j->peak_mb[i], "MB", (double)(numbers * each) * 1e-6,
            "the weights, in the number format in use");
        snprintf(rows[i].note, sizeof rows[i].note,
                 "peak of the process with %zu images (%.1f MB); packed weights %.1f MB, %.1f MB per worker", j->n,
                 (double)(j->n * (2 * fkt_bench_codec_pixels(j) + fkt_codec_dim(j->codec) * sizeof *j->z)) * 1e-6,
                 (double)j->facts.packed_bytes[i] * 1e-6, (double)j->facts.workspace_bytes[i] * 1e-6);
    }
}

fkt_status fkt_bench_codec(const struct cli_bench *o, struct fkt_bench_row *rows, size_t cap, size_t *n)
{
    struct fkt_bench_codec_run j = {0};
    int both;
    fkt_status st;
    *n = 0;
    if (cap < 5) return FKT_OK;
    cli_progress_init(&j.progress, o->run.quiet);
    FKT_TRY(fkt_bench_codec_open(&j, o));
    FKT_TRY(fkt_bench_codec_time(&j, 0));
    if (fkt_codec_decodes(j.codec)) FKT_TRY(fkt_bench_codec_time(&j, 1));
    FKT_TRY(fkt_bench_codec_check(&j));
    FKT_TRY(fkt_codec_facts(j.codec, &j.facts)); /* by now both networks are packed */
    FKT_TRY(speed_rows(rows, &j));
    both = sides(&j);
    row(&rows[both], &j, "first latent", j.first, "s",
        j.seconds[0] * (double)(fkt_codec_batch(j.codec) * j.threads) / (double)j.n, "a batch of a running pipeline");
    snprintf(rows[both].note, sizeof rows[both].note, "opening, hashing and packing the weights, planning, one batch");
    *n = (size_t)both + 1;
    if (j.facts.parameters[0]) {
        memory_rows(rows + *n, &j);
        *n += (size_t)both;
    }
out:
    cli_progress_end(&j.progress);
    fkt_bench_codec_release(&j);
    return st;
}
