/* SPDX-License-Identifier: Apache-2.0 */
/* roundtrip.c - `fedkt codec roundtrip`: images there and back, PSNR and a before/after sheet.
 *
 *   rgb --encode--> z [--calibration--> u --back--> z'] --decode--> rgb      the bracket only with --calibration
 *
 * With a calibration that keeps fewer directions than the latent has, the PSNR includes that loss; the codec's own
 * calibration, which keeps all, is not applied by default.
 *
 * Batches are distributed over all threads; a worker owns one set of buffers, so memory does not grow with the set.
 * Errors are added up as integers, so the figure is the same for any number of threads. PSNR is that of the mean
 * squared error over all pixels of all images. */
#include "fedkt/advanced/calibration.h"

#include "cli/codec/codec.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/output.h"
#include "base/meter.h"
#include "base/threads.h"
#include "codec/codec.h"
#include "pipeline/pipeline.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { IMAGE_PAIRS = 4, IMAGE_COLUMNS = 10, SHOWN = IMAGE_PAIRS * IMAGE_COLUMNS };

struct workspace {
    uint8_t *rgb, *back; /* (batch, S, S, 3) */
    float *z;            /* (batch, D) */
    double *u;           /* (d), where there is a calibration */
    size_t *ids;         /* (batch) which images they are */
};

struct job {
    const struct codec_asked *a;
    const struct fkt_codec *codec;
    const struct fkt_calibration *cal; /* NULL: latents are decoded as they are */
    const struct fkt_dataset *ds;
    struct workspace *desks;
    size_t batch;
    size_t stride;  /* every stride-th image is shown */
    uint8_t *tiles; /* (2 PICTURE_PAIRS, PICTURE_COLUMNS, S, S, 3): rows original, decoded, original ... */
    struct fkt_meter meter;
    struct fkt_skipped skipped;
    pthread_mutex_t lock; /* guards skipped */
    atomic_ullong error;  /* sum of squares */
};

static size_t pixels_of(const struct job *j) { return (size_t)fkt_codec_size(j->codec) * fkt_codec_size(j->codec) * 3; }

/* The batch's images that can be read; *got of them. */
static fkt_status read_batch(struct job *j, struct workspace *d, size_t first, size_t n, size_t *got)
{
    *got = 0;
    for (size_t i = first; i < first + n; i++) {
        fkt_status st = fkt_dataset_read(j->ds, i, fkt_codec_size(j->codec), (enum fkt_filter)j->a->codec.filter,
                                         d->rgb + *got * pixels_of(j), NULL);
        if (j->a->data.skip_bad && (st == FKT_E_FORMAT || st == FKT_E_IO)) {
            pthread_mutex_lock(&j->lock);
            st = fkt_skipped_add(&j->skipped, fkt_error_text());
            pthread_mutex_unlock(&j->lock);
            if (st != FKT_OK) return st;
            continue;
        }
        if (st != FKT_OK)
            return fkt_hint(st, "repair or remove it, or give --skip-bad to leave out files that cannot be read");
        d->ids[(*got)++] = i;
    }
    return FKT_OK;
}

/* A tile is written by the worker that has its image, so no two workers write the same tile. */
static void show(struct job *j, size_t id, const uint8_t *rgb, const uint8_t *back)
{
    size_t at = id / j->stride, pixels = pixels_of(j), row = at / IMAGE_COLUMNS, col = at % IMAGE_COLUMNS;
    if (id % j->stride != 0 || at >= SHOWN) return;
    memcpy(j->tiles + (2 * row * IMAGE_COLUMNS + col) * pixels, rgb, pixels);
    memcpy(j->tiles + ((2 * row + 1) * IMAGE_COLUMNS + col) * pixels, back, pixels);
}

static fkt_status do_batch(void *ctx, size_t item, unsigned worker)
{
    struct job *j = ctx;
    struct workspace *d = &j->desks[worker];
    size_t first = item * j->batch, all = fkt_dataset_size(j->ds), pixels = pixels_of(j),
           n = all - first < j->batch ? all - first : j->batch, got;
    unsigned long long err = 0;
    fkt_status st;
    FKT_TRY(read_batch(j, d, first, n, &got));
    FKT_TRY(fkt_codec_encode(j->codec, d->rgb, got, d->z));
    for (size_t i = 0; j->cal && i < got; i++) {
        float *z = d->z + i * j->cal->raw_dim;
        fkt_calibration_forward(j->cal, z, d->u);
        fkt_calibration_backward(j->cal, d->u, z);
    }
    FKT_TRY(fkt_codec_decode(j->codec, d->z, got, d->back));
    for (size_t p = 0; p < got * pixels; p++) {
        int e = d->rgb[p] - d->back[p];
        err += (unsigned long long)(e * e);
    }
    for (size_t i = 0; i < got; i++) show(j, d->ids[i], d->rgb + i * pixels, d->back + i * pixels);
    atomic_fetch_add(&j->error, err);
    FKT_TRY(fkt_meter_add(&j->meter, n));
out:
    return st;
}

static fkt_status measure(struct job *j, unsigned threads)
{
    size_t items = (fkt_dataset_size(j->ds) + j->batch - 1) / j->batch;
    fkt_status st;
    if (threads == 0) threads = fkt_cpu_count();
    if (threads > items) threads = items ? (unsigned)items : 1;
    FKT_TRY(fkt_alloc(&j->desks, threads));
    for (unsigned i = 0; i < threads; i++) {
        FKT_TRY(fkt_alloc(&j->desks[i].rgb, j->batch * pixels_of(j)));
        FKT_TRY(fkt_alloc(&j->desks[i].back, j->batch * pixels_of(j)));
        FKT_TRY(fkt_alloc(&j->desks[i].z, j->batch * (size_t)fkt_codec_dim(j->codec)));
        FKT_TRY(fkt_alloc(&j->desks[i].ids, j->batch));
        if (j->cal) FKT_TRY(fkt_alloc(&j->desks[i].u, j->cal->dim));
    }
    FKT_TRY(fkt_parallel(threads, items, do_batch, j, NULL, "encoding and decoding"));
    if (j->skipped.count == fkt_dataset_size(j->ds))
        st = fkt_fail(FKT_E_FORMAT, "no image of '%s' could be read", j->a->data.path);
out:
    for (unsigned i = 0; j->desks && i < threads; i++) {
        fkt_free(j->desks[i].rgb);
        fkt_free(j->desks[i].back);
        fkt_free(j->desks[i].z);
        fkt_free(j->desks[i].ids);
        fkt_free(j->desks[i].u);
    }
    fkt_free(j->desks);
    j->desks = NULL;
    return st;
}

static fkt_status draw(const struct job *j)
{
    static const char *const names[2 * IMAGE_PAIRS] = {"original", "decoded", "original", "decoded",
                                                       "original", "decoded", "original", "decoded"};
    size_t shown = (fkt_dataset_size(j->ds) + j->stride - 1) / j->stride, len;
    uint8_t *sheet = NULL, *png = NULL;
    uint32_t width, height;
    fkt_status st;
    if (shown > SHOWN) shown = SHOWN;
    FKT_TRY(fkt_grid(&sheet, &width, &height, j->tiles, 2 * ((shown + IMAGE_COLUMNS - 1) / IMAGE_COLUMNS),
                     IMAGE_COLUMNS, fkt_codec_size(j->codec), names));
    FKT_TRY(fkt_png_encode(&png, &len, sheet, width, height));
    FKT_TRY(fkt_file_write(j->a->image, png, len, FKT_FILE_PRIVATE | (j->a->run.force ? FKT_FILE_REPLACE : 0)));
out:
    fkt_image_free(png);
    fkt_image_free(sheet);
    return st;
}

static fkt_status print(const struct job *j)
{
    size_t n = fkt_dataset_size(j->ds) - j->skipped.count;
    double mse = (double)atomic_load(&j->error) / ((double)n * (double)pixels_of(j));
    double psnr = mse > 0 ? 10 * log10(255.0 * 255.0 / mse) : 100;
    json_t *cal = NULL;
    if (j->a->run.json && j->cal) cal = json_pack("{s:s s:i}", "source", j->cal->source, "dim", (int)j->cal->dim);
    if (j->a->run.json)
        return cli_print_json(json_pack("{s:s s:I s:I s:f s:f s:i s:i s:s s:o s:o?}", "codec",
                                        fkt_codec_identity(j->codec), "images", (json_int_t)n, "skipped",
                                        (json_int_t)j->skipped.count, "psnr", psnr, "mse", mse, "size",
                                        (int)fkt_codec_size(j->codec), "dim", (int)fkt_codec_dim(j->codec),
                                        "codec_dtype", fkt_codec_dtype_name(fkt_codec_dtype_used(j->codec)), "device",
                                        cli_codec_device_json(j->codec), "calibration", cal));
    printf("%s\nPSNR %.2f dB over %zu images, in %s%s%s\n", fkt_codec_identity(j->codec), psnr, n,
           cli_dtype_words(&j->a->codec.settings, j->codec), j->a->image ? ", before/after sheet in " : "",
           j->a->image ? j->a->image : "");
    if (j->cal)
        printf("latents went through the calibration from '%s': %u of %u directions\n", j->cal->source, j->cal->dim,
               j->cal->raw_dim);
    return cli_flush();
}

static fkt_status there_and_back(const struct codec_asked *a, const struct fkt_codec *codec,
                                 const struct fkt_calibration *cal, const struct fkt_dataset *ds, unsigned threads)
{
    struct cli_progress progress;
    struct job j = {.a = a, .codec = codec, .cal = cal, .ds = ds, .batch = fkt_pipeline_batch(codec)};
    size_t n = fkt_dataset_size(ds), tiles = 2 * SHOWN * pixels_of(&j);
    fkt_status st;
    cli_progress_init(&progress, a->run.quiet);
    pthread_mutex_init(&j.lock, NULL);
    fkt_meter_init(&j.meter, &progress.hook, "encoding and decoding", n);
    j.stride = n / SHOWN ? n / SHOWN : 1;
    FKT_TRY(fkt_alloc(&j.tiles, tiles));
    memset(j.tiles, 255, tiles);
    FKT_TRY(measure(&j, threads));
    cli_progress_end(&progress);
    cli_print_skipped(&j.skipped);
    if (a->image) FKT_TRY(draw(&j));
    FKT_TRY(print(&j));
out:
    cli_progress_end(&progress);
    fkt_meter_clear(&j.meter);
    fkt_skipped_clear(&j.skipped);
    pthread_mutex_destroy(&j.lock);
    fkt_free(j.tiles);
    return st;
}

fkt_status cli_codec_roundtrip(const struct codec_asked *a)
{
    struct fkt_codec_spec spec;
    struct fkt_codec *codec = NULL;
    struct fkt_dataset *ds = NULL;
    struct cli_data data;
    struct fkt_calibration cal = {0};
    unsigned threads;
    int there = 0;
    fkt_status st;
    if (!a->data.path) return fkt_fail(FKT_E_ARG, "roundtrip needs --data");
    FKT_TRY(cli_threads(a->run.threads, &threads));
    FKT_TRY(cli_not_an_input(a->image, a->data.path));
    FKT_TRY(cli_not_an_input(a->image, a->codec.settings.weights));
    FKT_TRY(cli_not_an_input(a->image, a->codec.calibration));
    if (a->image) FKT_TRY(fkt_output_file(a->image, a->run.force));
    FKT_TRY(cli_codec_spec(&a->codec, &spec));
    FKT_TRY(fkt_codec_open(&codec, &spec));
    FKT_TRY(fkt_codec_want(codec, 0));
    cli_print_dtype(&a->codec.settings, codec, &a->run);
    if (a->codec.calibration) FKT_TRY(cli_codec_calibration(a, codec, &cal, &there));
    data = a->data;
    data.fit = a->codec.fit;
    FKT_TRY(cli_open_data(&ds, &data, NULL, &a->run));
    FKT_TRY(there_and_back(a, codec, there ? &cal : NULL, ds, threads));
out:
    fkt_calibration_clear(&cal);
    fkt_dataset_free(ds);
    fkt_codec_free(codec);
    return st;
}
