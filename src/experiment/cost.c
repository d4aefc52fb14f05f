/* SPDX-License-Identifier: Apache-2.0 */
/* cost.c - the experiment `cost`: what a site's images cost, stage by stage (Table 2).
 *
 * 1,000 images (200 quick) of ten classes, the embedded ones: encoding (by the codec and, where there is one, by the
 * guide), moments with noise, Gaussians and as many samples, decoding. Best of three passes by the clock, on all
 * threads of the run or on the card. The upload is what a site of 20 really sends in a round of secure aggregation,
 * messages of the protocol included; memory is the peak of the process during the passes (Linux counts it in pages
 * that are resident). Images are in memory before and after. `fedkt bench cost` has the same stages beside their
 * bounds. */
#include "experiment/lab.h"
#include "experiment/list.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/threads.h"
#include "fedkt/advanced/federation.h"
#include "fedkt/advanced/moments.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { IMAGES = 1000, QUICK_IMAGES = 200, PASSES = 3 };

struct job {
    const struct fkt_codec *codec;
    uint8_t *rgb; /* (n, S, S, 3) */
    float *z;     /* (n, D) */
    size_t n, batch, pixels, dim;
    int decode;
};

static fkt_status some_images(void *ctx, size_t item, unsigned worker)
{
    const struct job *j = ctx;
    const size_t from = item * j->batch, n = j->n - from < j->batch ? j->n - from : j->batch;
    (void)worker;
    return j->decode ? fkt_codec_decode(j->codec, j->z + from * j->dim, n, j->rgb + from * j->pixels)
                     : fkt_codec_encode(j->codec, j->rgb + from * j->pixels, n, j->z + from * j->dim);
}

/* The best of some passes, in seconds. */
static fkt_status passes(struct job *j, unsigned threads, double *seconds)
{
    fkt_status st = FKT_OK;
    *seconds = INFINITY;
    for (int i = 0; i < PASSES; i++) {
        const double start = fkt_now();
        FKT_TRY(fkt_parallel(threads, (j->n + j->batch - 1) / j->batch, some_images, j, NULL, NULL));
        *seconds = fmin(*seconds, fkt_now() - start);
    }
out:
    return st;
}

static double peak_megabytes(int reset)
{
    double kb = NAN;
    char line[128];
    FILE *f = reset ? fopen("/proc/self/clear_refs", "w") : fopen("/proc/self/status", "r");
    if (!f) return NAN;
    if (reset) fputs("5", f);
    else
        while (fgets(line, sizeof line, f))
            if (sscanf(line, "VmHWM: %lf", &kb) == 1) break;
    fclose(f);
    return kb / 1024;
}

static fkt_status networks(struct fkt_lab *lab, const struct fkt_sweep_spec *parts, const struct fkt_lab_set *set,
                           size_t n, double *encode, double *decode)
{
    const uint32_t size = fkt_codec_size(parts->codec[0]);
    struct job j = {.n = n, .pixels = (size_t)size * size * 3};
    double took;
    fkt_status st;
    *encode = *decode = 0;
    FKT_TRY(fkt_alloc(&j.rgb, n * j.pixels));
    for (size_t i = 0; i < n; i++)
        FKT_TRY(fkt_dataset_read(set->data, i % fkt_dataset_size(set->data), size, FKT_FILTER_BILINEAR,
                                 j.rgb + i * j.pixels, NULL));
    for (uint32_t p = 0; p < parts->parts; p++) {
        j.codec = parts->codec[p];
        j.batch = fkt_codec_batch(j.codec);
        j.dim = fkt_codec_dim(j.codec);
        fkt_free(j.z);
        FKT_TRY(fkt_alloc(&j.z, n * j.dim));
        j.decode = 0;
        FKT_TRY(passes(&j, lab->options.threads, &took));
        *encode += took;
        j.decode = 1;
        if (fkt_codec_decodes(j.codec)) FKT_TRY(passes(&j, lab->options.threads, decode));
    }
out:
    fkt_free(j.rgb);
    fkt_free(j.z);
    return st;
}

/* A federation of 20 over the same images: the upload, and the time of moments, release and samples. */
static fkt_status federation(struct fkt_lab *lab, const struct fkt_cell *c, const struct fkt_lab_set *set, size_t n,
                             json_t *values)
{
    static const double epsilon = 10;
    struct fkt_calibration calibration[FKT_PARTS_MAX] = {{0}};
    struct fkt_sweep_spec room, *spec = &room;
    struct fkt_sweep *sweep = NULL;
    struct fkt_sweep_seconds s;
    double *w = NULL, start;
    fkt_status st;
    fkt_sweep_default(spec);
    spec->data = set->data;
    spec->epsilon = &epsilon;
    spec->n_epsilon = 1;
    spec->task = (struct fkt_task_choices){
        .privacy = {.delta = FKT_EXPERIMENT_DELTA, .adjacency = c->arm->adjacency, .mechanism = c->arm->mechanism},
        .accept_weak = 1};
    spec->noise = c->arm->noise;
    spec->insecure_seed = &c->seed;
    spec->encodings = lab->encodings;
    spec->threads = lab->options.threads;
    spec->progress = lab->options.progress;
    for (uint32_t p = 0; p < FKT_PARTS_MAX; p++) spec->calibration[p] = &calibration[p];
    FKT_TRY(fkt_lab_parts(lab, c->arm, c->arm->size, spec));
    FKT_TRY(fkt_sweep_new(&sweep, spec));
    FKT_TRY(fkt_sweep_run(sweep));
    FKT_TRY(fkt_lab_sweep_partition(lab, sweep, &spec->partition, c->arm->adjacency));
    fkt_sweep_seconds(sweep, &s);
    start = fkt_now();
    if (fkt_sweep_arm(sweep, 0)->images) {
        const struct fkt_gaussians *g = fkt_sweep_arm(sweep, 0)->images;
        FKT_TRY(fkt_alloc(&w, n * g->length));
        for (uint32_t k = 0; k < g->classes; k++) FKT_TRY(fkt_gaussians_sample(g, k, 1, 0, n / g->classes, w));
    }
    json_object_set_new(values, "statistics", json_real(s.moments + s.release + fkt_now() - start));
    json_object_set_new(values, "upload", json_real((double)fkt_sweep_arm(sweep, 0)->round->up / 1024));
out:
    fkt_sweep_free(sweep);
    fkt_free(w);
    for (uint32_t p = 0; p < FKT_PARTS_MAX; p++) fkt_calibration_clear(&calibration[p]);
    return st;
}

static fkt_status run(struct fkt_lab *lab, const struct fkt_cell *c, json_t *points)
{
    const size_t n = lab->options.quick ? QUICK_IMAGES : IMAGES;
    struct fkt_calibration calibration[FKT_PARTS_MAX] = {{0}};
    struct fkt_sweep_spec parts = {0};
    struct fkt_lab_set set;
    json_t *values = json_object();
    double encode, decode, statistics;
    fkt_status st;
    FKT_TRY(fkt_lab_set(lab, "demo", &set));
    for (uint32_t p = 0; p < FKT_PARTS_MAX; p++) parts.calibration[p] = &calibration[p];
    (void)peak_megabytes(1);
    FKT_TRY(fkt_lab_parts(lab, c->arm, c->arm->size, &parts));
    FKT_TRY(networks(lab, &parts, &set, n, &encode, &decode));
    json_object_set_new(values, "memory", json_real(peak_megabytes(0)));
    FKT_TRY(federation(lab, c, &set, n, values));
    statistics = json_real_value(json_object_get(values, "statistics"));
    json_object_set_new(values, "encode", json_real(encode));
    json_object_set_new(values, "decode", json_real(decode));
    json_object_set_new(values, "total", json_real(encode + decode + statistics));
    FKT_TRY(fkt_point_add(points, &c->x[0], NULL, json_incref(values), NULL));
out:
    json_decref(values);
    for (uint32_t p = 0; p < FKT_PARTS_MAX; p++) {
        fkt_codec_free(parts.codec[p]);
        fkt_calibration_clear(&calibration[p]);
    }
    return st;
}

static const struct fkt_arm arms[] = {
    {.name = "dct-32", .title = "DCT, 32 px, d=64", .codec = "dct", .size = 32, .dim = 64, .noise = -1},
    {.name = "ae-32", .title = "fedkt-ae, 32 px, d=64", .codec = "fedkt-ae", .size = 32, .noise = -1},
    {.name = "ae-32-guide",
     .title = "fedkt-ae with guide, 32 px",
     .codec = "fedkt-ae",
     .guide = "fedkt-guide",
     .size = 32,
     .noise = -1},
    {.name = "ae-64", .title = "fedkt-ae, 64 px, d=64", .codec = "fedkt-ae", .size = 64, .noise = -1}};
static const struct fkt_arm more[] = {
    {.name = "taesd-32", .title = "TAESD, 32 px, d=64", .codec = "taesd", .size = 32, .noise = -1},
    {.name = "dcae-64", .title = "DC-AE f32c32, 64 px, d=128", .codec = "dc-ae-f32c32-in", .size = 64, .noise = -1}};
static const char *const panels[] = {"ten-classes"};
static const struct fkt_position full[] = {{IMAGES, "1000 images"}}, quick[] = {{QUICK_IMAGES, "200 images"}};
static const struct fkt_metric metrics[] = {{"total", "total, s", 1, 3, 0},
                                            {"encode", "encode, s", 1, 3, 0},
                                            {"statistics", "statistics and samples, s", 1, 3, 0},
                                            {"decode", "decode, s", 1, 3, 0},
                                            {"upload", "upload, KiB", 1, 1, 0},
                                            {"memory", "peak memory, MiB", 1, 0, 0}};

const struct fkt_experiment fkt_experiment_cost = {.name = "cost",
                                                   .title = "What a site's images cost",
                                                   .paper = "Table 2",
                                                   .about = "time of each stage, bytes sent and memory of a site",
                                                   .time = "quick: 40 s of processor time",
                                                   .x_title = "images",
                                                   .y_title = "s",
                                                   .x = full,
                                                   .n_x = FKT_COUNT(full),
                                                   .x_quick = quick,
                                                   .n_quick = FKT_COUNT(quick),
                                                   .apart = 1,
                                                   .arm = arms,
                                                   .n_arms = FKT_COUNT(arms),
                                                   .arm_more = more,
                                                   .n_more = FKT_COUNT(more),
                                                   .panel = panels,
                                                   .n_panels = FKT_COUNT(panels),
                                                   .metric = metrics,
                                                   .n_metrics = FKT_COUNT(metrics),
                                                   .measures_time = 1,
                                                   .run = run};
