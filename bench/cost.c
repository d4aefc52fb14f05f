/* SPDX-License-Identifier: Apache-2.0 */
/* cost.c - what a site's images cost from pixels to synthetic pixels: encode, statistics and sampling, decode.
 *
 * The stages are those of the paper's table of client cost (section 4, "Communication and Compute"): N images in
 * K classes are encoded; the statistics of their latents get noise and become one Gaussian per class; as many
 * latents are sampled and decoded. Images are uint8 in the host's memory before and after. Every stage is repeated
 * FKT_BENCH_PASSES times after a warm-up, and the fastest pass is reported (the median in the note); opening the codec
 * is a row of its own.
 *
 * "Statistics and sampling" is everything between the two networks, on the host: calibration (here the identity map,
 * dense as any other), gain-shape coordinates, quantisation, class moments, exact Gaussian noise from the operating
 * system's randomness (epsilon 10, delta 1e-5), estimation of the Gaussians, samples, and the way back to latents. Its
 * bound is dsyrk for the second moments alone. That of the networks is direct convolutions at the peak rate of matrix
 * products; Winograd may pass it. A wrong result is not timed: counts must be those of the labels, sums of the moments
 * those of plain integer loops, and single images give the bits of whole batches. */
#include "bench/codec_run.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/threads.h"
#include "fedkt/advanced/calibration.h"
#include "fedkt/advanced/moments.h"
#include "fedkt/advanced/privacy.h"
#include "fedkt/advanced/synth.h"
#include "tensor/linalg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { USUAL_IMAGES = 1000, USUAL_CLASSES = 10, CHUNK = 32, PASSES = FKT_BENCH_PASSES };
enum part { VECTORS = 0, MOMENTS, NOISE, GAUSSIANS, SAMPLES, PARTS };

struct statistics {
    size_t n, each; /* records; samples of a class */
    uint32_t classes;
    unsigned threads;
    const float *z; /* (n, D) borrowed */
    float *drawn;   /* (K * each, D), of which the first n are decoded */
    struct fkt_calibration calibration;
    struct fkt_coordinates coordinates;
    struct fkt_privacy_plan plan;
    struct fkt_gaussians gaussians;
    struct fkt_moments *moments;
    uint32_t *labels; /* (n) */
    int32_t *q;       /* (n, m) */
    int64_t *noised;  /* (K, block) */
    double parts[PARTS], best, median, syrk;
};

static void statistics_release(struct statistics *s)
{
    fkt_calibration_clear(&s->calibration);
    fkt_gaussians_clear(&s->gaussians);
    fkt_moments_free(s->moments);
    fkt_free(s->drawn);
    fkt_free(s->labels);
    fkt_free(s->q);
    fkt_free(s->noised);
}

/* The identity map; centre and spread of log|u| are of the latents themselves. For time alone: real calibrations come
 * from public images. */
static fkt_status calibrate(struct statistics *s, uint32_t D)
{
    struct fkt_calibration *c = &s->calibration;
    double sum = 0, square = 0;
    fkt_status st;
    c->raw_dim = c->dim = D;
    FKT_TRY(fkt_alloc(&c->centre, D));
    FKT_TRY(fkt_alloc(&c->map, (size_t)D * D));
    FKT_TRY(fkt_alloc(&c->unmap, (size_t)D * D));
    for (size_t i = 0; i < D; i++) c->map[i * D + i] = c->unmap[i * D + i] = 1;
    for (size_t k = 0; k < s->n; k++) {
        double length = 1e-12, log_length;
        for (size_t i = 0; i < D; i++) length += (double)s->z[k * D + i] * s->z[k * D + i];
        log_length = log(length) / 2;
        sum += log_length;
        square += log_length * log_length;
    }
    c->log_mean = sum / (double)s->n;
    c->log_spread = 3 * sqrt(fmax(square / (double)s->n - c->log_mean * c->log_mean, 1e-4));
out:
    return st;
}

static fkt_status statistics_open(struct statistics *s, const struct fkt_bench_codec_run *j, uint32_t classes)
{
    const uint32_t D = fkt_codec_dim(j->codec);
    const struct fkt_privacy_spec privacy = {
        .epsilon = 10, .delta = 1e-5, .split_count = 1, .parts = 1, .part = {{FKT_RQ_DEFAULT, 24, 75}}};
    fkt_status st;
    s->n = j->n;
    s->classes = classes;
    s->each = (j->n + classes - 1) / classes;
    s->threads = j->threads;
    s->z = j->z;
    FKT_TRY(calibrate(s, D));
    FKT_TRY(fkt_coordinates_gain_shape(&s->coordinates, D, FKT_RQ_DEFAULT, FKT_GAMMA_DEFAULT, s->calibration.log_mean,
                                       s->calibration.log_spread));
    FKT_TRY(fkt_privacy_plan(&s->plan, &privacy));
    FKT_TRY(fkt_alloc(&s->drawn, classes * s->each * D));
    FKT_TRY(fkt_alloc(&s->labels, s->n));
    FKT_TRY(fkt_alloc(&s->q, s->n * s->coordinates.length));
    FKT_TRY(fkt_alloc(&s->noised, classes * fkt_moments_block(s->coordinates.length)));
    for (size_t i = 0; i < s->n; i++) s->labels[i] = (uint32_t)(i % classes);
out:
    return st;
}

static fkt_status some_vectors(void *ctx, size_t item, unsigned worker)
{
    struct statistics *s = ctx;
    const size_t D = s->coordinates.dim, m = s->coordinates.length, from = item * CHUNK;
    double *u = NULL, *w = NULL;
    fkt_status st;
    (void)worker;
    FKT_TRY(fkt_alloc(&u, D));
    FKT_TRY(fkt_alloc(&w, m));
    for (size_t i = from; i < from + CHUNK && i < s->n; i++) {
        fkt_calibration_forward(&s->calibration, s->z + i * D, u);
        FKT_TRY(fkt_coordinates_forward(&s->coordinates, u, w));
        FKT_TRY(fkt_quantise(&s->coordinates, w, s->q + i * m));
    }
out:
    fkt_free(u);
    fkt_free(w);
    return st;
}

static fkt_status some_samples(void *ctx, size_t item, unsigned worker)
{
    struct statistics *s = ctx;
    const size_t D = s->coordinates.dim, m = s->coordinates.length, per = (s->each + CHUNK - 1) / CHUNK, k = item / per,
                 from = item % per * CHUNK, n = s->each - from < CHUNK ? s->each - from : CHUNK;
    double *u = NULL, *w = NULL;
    fkt_status st;
    (void)worker;
    FKT_TRY(fkt_alloc(&u, D));
    FKT_TRY(fkt_alloc(&w, n * m));
    FKT_TRY(fkt_gaussians_sample(&s->gaussians, (uint32_t)k, 1, from, n, w));
    for (size_t i = 0; i < n; i++) {
        FKT_TRY(fkt_coordinates_inverse(&s->coordinates, w + i * m, u));
        fkt_calibration_backward(&s->calibration, u, s->drawn + (k * s->each + from + i) * D);
    }
out:
    fkt_free(u);
    fkt_free(w);
    return st;
}

static fkt_status add_noise(struct statistics *s, const int64_t *exact)
{
    const struct fkt_moments_layout layout = fkt_layout_one(s->coordinates.length, FKT_RQ_DEFAULT);
    struct fkt_ledger ledger;
    fkt_status st;
    FKT_TRY(fkt_ledger_init(&ledger, 2 * s->plan.mu * s->plan.mu, 0));
    FKT_TRY(fkt_privacy_release(s->noised, exact, s->classes, &layout, &s->plan, &ledger, NULL));
out:
    return st;
}

static fkt_status estimate(struct statistics *s)
{
    const struct fkt_direction d = fkt_coordinates_direction(&s->coordinates);
    const struct fkt_noise_scale noise = {.sigma_count = s->plan.sigma_count,
                                          .sigma_sum = s->plan.sigma[0].sum,
                                          .sigma_moment = s->plan.sigma[0].moment,
                                          .unit = s->coordinates.radius / s->coordinates.rq,
                                          .direction = d.length,
                                          .direction_square = d.square,
                                          .direction_slack = d.slack};
    const struct fkt_estimate_options usual = {0};
    return fkt_gaussians_estimate(&s->gaussians, s->noised, s->classes, s->coordinates.length, &noise, &usual);
}

/* All of it once; part[] gets the seconds of each part. */
static fkt_status pass(struct statistics *s, double part[PARTS])
{
    const struct fkt_moments_layout layout = fkt_layout_one(s->coordinates.length, FKT_RQ_DEFAULT);
    const int64_t *exact = NULL;
    double then = fkt_now(), now;
    fkt_status st;
    FKT_TRY(fkt_parallel(s->threads, (s->n + CHUNK - 1) / CHUNK, some_vectors, s, NULL, "timing"));
    part[VECTORS] = (now = fkt_now()) - then, then = now;
    fkt_moments_free(s->moments);
    s->moments = NULL;
    FKT_TRY(fkt_moments_new(&s->moments, s->classes, &layout, 0));
    FKT_TRY(fkt_moments_add(s->moments, s->labels, s->q, s->n));
    FKT_TRY(fkt_moments_packed(s->moments, &exact));
    part[MOMENTS] = (now = fkt_now()) - then, then = now;
    FKT_TRY(add_noise(s, exact));
    part[NOISE] = (now = fkt_now()) - then, then = now;
    fkt_gaussians_clear(&s->gaussians);
    FKT_TRY(estimate(s));
    part[GAUSSIANS] = (now = fkt_now()) - then, then = now;
    FKT_TRY(fkt_parallel(s->threads, s->classes * ((s->each + CHUNK - 1) / CHUNK), some_samples, s, NULL, "timing"));
    part[SAMPLES] = fkt_now() - then;
out:
    return st;
}

/* Counts and sums of every class in plain loops, and samples that are numbers. */
static fkt_status check(struct statistics *s)
{
    const size_t m = s->coordinates.length, block = fkt_moments_block(m);
    const int64_t *exact = NULL;
    int64_t *want = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&want, s->classes * (m + 1)));
    FKT_TRY(fkt_moments_packed(s->moments, &exact));
    for (size_t i = 0; i < s->n; i++) {
        int64_t *row = want + s->labels[i] * (m + 1);
        row[0]++;
        for (size_t k = 0; k < m; k++) row[1 + k] += s->q[i * m + k];
    }
    for (size_t k = 0; k < s->classes; k++)
        if (memcmp(want + k * (m + 1), exact + k * block, (m + 1) * sizeof *want) != 0) {
            st = fkt_fail(FKT_E_NUMERIC, "moments of class %zu differ from plain integer loops: not timed", k);
            goto out;
        }
    for (size_t i = 0; i < s->classes * s->each * s->coordinates.dim; i++)
        if (!isfinite(s->drawn[i])) {
            st = fkt_fail(FKT_E_NUMERIC, "sample %zu is not a number: not timed", i / s->coordinates.dim);
            goto out;
        }
out:
    fkt_free(want);
    return st;
}

/* Second moments alone, on doubles that are sorted by class. */
static fkt_status time_syrk(struct statistics *s)
{
    const size_t m = s->coordinates.length;
    double *x = NULL, *c = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&x, s->each * m));
    FKT_TRY(fkt_alloc(&c, m * m));
    for (size_t i = 0; i < s->each * m; i++) x[i] = s->q[i];
    s->syrk = INFINITY;
    for (int run = 0; run < PASSES; run++) {
        const double start = fkt_now();
        for (uint32_t k = 0; k < s->classes; k++) fkt_syrk(c, x, s->each, m);
        s->syrk = fmin(s->syrk, fkt_now() - start);
    }
out:
    fkt_free(x);
    fkt_free(c);
    return st;
}

static fkt_status time_statistics(struct statistics *s)
{
    double took[PASSES], part[PARTS];
    fkt_status st;
    s->best = INFINITY;
    for (int run = -1; run < PASSES; run++) {
        const double start = fkt_now();
        double now;
        FKT_TRY(pass(s, part));
        now = fkt_now() - start;
        if (run < 0) continue;
        took[run] = now;
        if (now < s->best) {
            s->best = now;
            memcpy(s->parts, part, sizeof part);
        }
    }
    fkt_bench_sort(took, PASSES);
    s->median = (took[(PASSES - 1) / 2] + took[PASSES / 2]) / 2;
    FKT_TRY(check(s));
    FKT_TRY(time_syrk(s));
out:
    return st;
}

static void row(struct fkt_bench_row *r, const struct fkt_bench_codec_run *j, const char *what, double value,
                double bound, const char *bound_name)
{
    memset(r, 0, sizeof *r);
    snprintf(r->name, sizeof r->name, "cost/%s %s %u px %s", what, fkt_codec_name(j->codec), fkt_codec_size(j->codec),
             fkt_codec_dtype_name(fkt_codec_dtype_used(j->codec)));
    r->value = value;
    snprintf(r->unit, sizeof r->unit, "s");
    r->bound = bound;
    r->ratio_to_bound = value / bound;
    snprintf(r->bound_name, sizeof r->bound_name, "%s", bound_name);
}

/* Seconds that copying the pixels takes: the bound of a codec without a network. */
static double copying(struct fkt_bench_codec_run *j)
{
    double least = INFINITY;
    for (int run = 0; run < PASSES; run++) {
        const double start = fkt_now();
        memcpy(j->back, j->rgb, j->n * fkt_bench_codec_pixels(j));
        least = fmin(least, fkt_now() - start);
    }
    return least;
}

static fkt_status fill(struct fkt_bench_row *rows, struct fkt_bench_codec_run *j, const struct statistics *s)
{
    const double *p = s->parts;
    const char *whose = "";
    char name[64] = "copying the pixels, one thread";
    double peak = 0, bound[2];
    fkt_status st = FKT_OK;
    if (j->facts.flops[0])
        FKT_TRY(
            fkt_bench_peak(fkt_codec_device_used(j->codec), fkt_codec_dtype_used(j->codec), j->threads, &peak, &whose));
    if (peak > 0) snprintf(name, sizeof name, "direct convolutions at %.0f GFLOP/s, %s", peak, whose);
    for (int i = 0; i < 2; i++) {
        struct fkt_bench_row *r = &rows[i ? 2 : 0];
        bound[i] = peak > 0 ? (double)j->n * (double)j->facts.flops[i] / (peak * 1e9) : copying(j);
        row(r, j, i ? "decode" : "encode", j->seconds[i], bound[i], name);
        r->peer = peak > 0;
        snprintf(r->note, sizeof r->note, "%zu images, %u threads, batch %zu; median %.4g s", j->n, j->threads,
                 fkt_codec_batch(j->codec), j->median[i]);
    }
    row(&rows[1], j, "statistics and sampling", s->best, s->syrk, "dsyrk of the second moments alone");
    snprintf(
        rows[1].note, sizeof rows[1].note,
        "%u classes, m = %u; vectors %.2f ms, moments %.2f, noise %.2f, Gaussians %.2f, samples %.2f; median %.4g s",
        s->classes, s->coordinates.length, 1e3 * p[VECTORS], 1e3 * p[MOMENTS], 1e3 * p[NOISE], 1e3 * p[GAUSSIANS],
        1e3 * p[SAMPLES], s->median);
    row(&rows[3], j, "total", j->seconds[0] + s->best + j->seconds[1], bound[0] + s->syrk + bound[1],
        "the three bounds together");
    snprintf(rows[3].note, sizeof rows[3].note, "encode, statistics and sampling, decode; median %.4g s",
             j->median[0] + s->median + j->median[1]);
    row(&rows[4], j, "first latent", j->first, j->seconds[0] / (double)j->n, "an image of a running pipeline");
    snprintf(rows[4].note, sizeof rows[4].note, "opening, hashing and packing the weights, planning, one batch");
out:
    return st;
}

fkt_status fkt_bench_cost(const struct cli_bench *o, struct fkt_bench_row *rows, size_t cap, size_t *n)
{
    struct cli_bench usual = *o;
    struct fkt_bench_codec_run j = {0};
    struct statistics s = {0};
    fkt_status st = FKT_OK;
    *n = 0;
    if (cap < 5) return FKT_OK;
    if (!usual.images) usual.images = USUAL_IMAGES;
    if (!usual.classes) usual.classes = USUAL_CLASSES;
    usual.codec.dim = o->dim;
    if (usual.classes > 1000 || usual.images < 2 * usual.classes)
        return fkt_fail(FKT_E_ARG, "--classes must be at most 1000, and --images at least twice as many");
    cli_progress_init(&j.progress, o->run.quiet);
    FKT_TRY(fkt_bench_codec_open(&j, &usual));
    if (!fkt_codec_decodes(j.codec)) {
        st = fkt_fail_hint(FKT_E_ARG, "time a guide with 'fedkt bench codec'",
                           "the cost is that of encoding and decoding: guide '%s' has no decoder",
                           fkt_codec_name(j.codec));
        goto out;
    }
    FKT_TRY(fkt_bench_codec_time(&j, 0));
    FKT_TRY(statistics_open(&s, &j, (uint32_t)usual.classes));
    FKT_TRY(time_statistics(&s));
    j.given = s.drawn;
    FKT_TRY(fkt_bench_codec_time(&j, 1));
    FKT_TRY(fkt_bench_codec_check(&j));
    FKT_TRY(fill(rows, &j, &s));
    *n = 5;
out:
    cli_progress_end(&j.progress);
    statistics_release(&s);
    fkt_bench_codec_release(&j);
    return st;
}
