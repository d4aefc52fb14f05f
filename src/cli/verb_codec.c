/* SPDX-License-Identifier: Apache-2.0 */
/* verb_codec.c - `fedkt codec list | info | calibrate | roundtrip`. */
#include "cli/common.h"
#include "cli/verbs.h"

#include "base/alloc.h"
#include "base/file.h"
#include "round/walk.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct asked {
    struct cli_data data;
    struct cli_codec codec;
    struct cli_run run;
    const char *out, *source, *picture;
    uint64_t top;
};

static fkt_status run_list(const struct asked *a)
{
    if (a->run.json)
        return cli_print_json(json_pack("[{s:s s:s s:b s:b}]", "name", "dct", "summary",
                                        "low-frequency DCT of YCbCr planes, no weights", "weights", 0,
                                        "calibration_built_in", 1));
    puts("dct   low-frequency DCT coefficients of the YCbCr planes; no weights; any size and length; calibration built "
         "in");
    return FKT_OK;
}

static fkt_status run_info(const struct asked *a)
{
    struct fkt_codec *codec = NULL;
    struct fkt_calibration cal = {0};
    fkt_status st;
    FKT_TRY(cli_open_codec(&a->codec, &codec, &cal));
    if (a->run.json)
        FKT_TRY(cli_print_json(json_pack("{s:s s:s s:i s:i s:{s:s s:I s:i s:f s:f s:f}}", "name", fkt_codec_name(codec),
                                         "identity", fkt_codec_identity(codec), "size", (int)fkt_codec_size(codec),
                                         "dim", (int)fkt_codec_dim(codec), "calibration", "source", cal.source,
                                         "images", (json_int_t)cal.images, "dim", (int)cal.dim, "log_mean",
                                         cal.log_mean, "log_spread", cal.log_spread, "radius", cal.radius)));
    else
        printf("codec        %s\nlatent       %u numbers per %u x %u image\ncalibration  %s (%llu public images), %u "
               "directions\n"
               "size |u|     exp(%.4f +- %.4f); clip radius %.4f\n",
               fkt_codec_identity(codec), fkt_codec_dim(codec), fkt_codec_size(codec), fkt_codec_size(codec),
               cal.source, (unsigned long long)cal.images, cal.dim, cal.log_mean, cal.log_spread, cal.radius);
out:
    fkt_codec_free(codec);
    fkt_calibration_release(&cal);
    return st;
}

static fkt_status run_calibrate(const struct asked *a)
{
    struct fkt_codec_spec spec;
    struct fkt_codec *codec = NULL;
    struct fkt_dataset *ds = NULL;
    struct fkt_calibration cal = {0};
    struct cli_progress progress;
    struct fkt_walk_options o = {.progress = &progress.hook};
    const char *slash;
    fkt_status st;
    cli_progress_init(&progress, a->run.quiet);
    if (!a->data.path || !a->out) {
        st = fkt_fail(FKT_E_ARG, "calibrate needs --public (a PUBLIC image set) and --out");
        goto out;
    }
    if (a->data.skip_bad) {
        st = fkt_fail(FKT_E_ARG, "calibrate reads every image: remove the bad ones instead of --skip-bad");
        goto out;
    }
    if (a->top > UINT32_MAX) {
        st = fkt_fail(FKT_E_ARG, "--top must be at most %u", UINT32_MAX);
        goto out;
    }
    FKT_TRY(cli_threads(a->run.threads, &o.threads));
    FKT_TRY(cli_codec_spec(&a->codec, &spec));
    FKT_TRY(fkt_codec_open(&codec, &spec));
    FKT_TRY(cli_not_an_input(a->out, a->data.path));
    FKT_TRY(cli_out_file(a->out, a->run.force));
    FKT_TRY(cli_open_data(&ds, &a->data, NULL));
    slash = strrchr(a->data.path, '/');
    FKT_TRY(fkt_calibrate(&cal, codec, ds, (enum fkt_filter)a->codec.filter, (uint32_t)a->top,
                          a->source           ? a->source
                          : slash && slash[1] ? slash + 1
                                              : a->data.path,
                          &o));
    FKT_TRY(fkt_calibration_save(&cal, a->out, a->run.force));
    cli_progress_end(&progress);
    if (a->run.json)
        FKT_TRY(cli_print_json(json_pack("{s:s s:s s:I s:i s:f s:f s:f}", "calibration", a->out, "source", cal.source,
                                         "images", (json_int_t)cal.images, "dim", (int)cal.dim, "log_mean",
                                         cal.log_mean, "log_spread", cal.log_spread, "radius", cal.radius)));
    else
        printf("calibration of %s from %llu images of '%s' in %s\n%u directions, |u| = exp(%.4f +- %.4f), clip radius "
               "%.4f\n",
               fkt_codec_identity(codec), (unsigned long long)cal.images, cal.source, a->out, cal.dim, cal.log_mean,
               cal.log_spread, cal.radius);
out:
    cli_progress_end(&progress);
    fkt_calibration_release(&cal);
    fkt_dataset_free(ds);
    fkt_codec_free(codec);
    return st;
}

enum { PICTURE_PAIRS = 4, PICTURE_COLUMNS = 10 };

/* One image there and back; the mean squared error of its pixels. */
static fkt_status there_and_back(const struct asked *a, const struct fkt_codec *codec, const struct fkt_dataset *ds,
                                 size_t i, uint8_t *rgb, uint8_t *back, float *z, double *mse)
{
    size_t S = fkt_codec_size(codec), pixels = S * S * 3;
    uint64_t err = 0;
    fkt_status st;
    FKT_TRY(fkt_dataset_read(ds, i, (uint32_t)S, (enum fkt_filter)a->codec.filter, rgb, NULL));
    FKT_TRY(fkt_codec_encode(codec, rgb, 1, z));
    FKT_TRY(fkt_codec_decode(codec, z, 1, back));
    for (size_t p = 0; p < pixels; p++) err += (uint64_t)((rgb[p] - back[p]) * (rgb[p] - back[p]));
    *mse = (double)err / (double)pixels;
out:
    return st;
}

/* The mean over the set, and the first pictures of an even spread over it: rows original, decoded, original ... */
static fkt_status measure(const struct asked *a, const struct fkt_codec *codec, const struct fkt_dataset *ds,
                          uint8_t *tiles, struct fkt_skipped *skipped, double *mse)
{
    size_t S = fkt_codec_size(codec), pixels = S * S * 3, n = fkt_dataset_size(ds),
           shown = PICTURE_PAIRS * PICTURE_COLUMNS;
    size_t stride = n / shown ? n / shown : 1, at = 0;
    struct cli_progress progress;
    uint8_t *rgb = NULL, *back = NULL;
    float *z = NULL;
    double sum = 0, one = 0;
    fkt_status st;
    cli_progress_init(&progress, a->run.quiet);
    FKT_TRY(fkt_alloc(&rgb, pixels));
    FKT_TRY(fkt_alloc(&back, pixels));
    FKT_TRY(fkt_alloc(&z, fkt_codec_dim(codec)));
    for (size_t i = 0; i < n; i++) {
        st = there_and_back(a, codec, ds, i, rgb, back, z, &one);
        if (a->data.skip_bad && (st == FKT_E_FORMAT || st == FKT_E_IO)) {
            FKT_TRY(fkt_skipped_add(skipped, fkt_error_text()));
            continue;
        }
        FKT_TRY(fkt_hint(st, "repair it or take it away, or give --skip-bad to leave out what cannot be read"));
        sum += one;
        if (i % stride == 0 && at < shown) {
            size_t row = at / PICTURE_COLUMNS, col = at % PICTURE_COLUMNS;
            memcpy(tiles + (2 * row * PICTURE_COLUMNS + col) * pixels, rgb, pixels);
            memcpy(tiles + ((2 * row + 1) * PICTURE_COLUMNS + col) * pixels, back, pixels);
            at++;
        }
        (void)progress.hook.step(progress.hook.self, "round trip", i + 1, n);
        FKT_TRY(cli_progress_check("on the round trip"));
    }
    *mse = sum / (double)(n - skipped->count);
    if (skipped->count == n) st = fkt_fail(FKT_E_FORMAT, "no image of '%s' could be read", a->data.path);
out:
    cli_progress_end(&progress);
    fkt_free(rgb);
    fkt_free(back);
    fkt_free(z);
    return st;
}

static fkt_status run_roundtrip(const struct asked *a)
{
    static const char *const names[2 * PICTURE_PAIRS] = {"original", "decoded", "original", "decoded",
                                                         "original", "decoded", "original", "decoded"};
    struct fkt_codec_spec spec;
    struct fkt_codec *codec = NULL;
    struct fkt_dataset *ds = NULL;
    struct fkt_skipped skipped = {0};
    uint8_t *tiles = NULL, *sheet = NULL, *png = NULL;
    uint32_t width, height;
    size_t S, n, len, rows;
    double mse = NAN, psnr;
    fkt_status st;
    if (!a->data.path) return fkt_fail(FKT_E_ARG, "roundtrip needs --data");
    FKT_TRY(cli_not_an_input(a->picture, a->data.path));
    if (a->picture) FKT_TRY(cli_out_file(a->picture, a->run.force));
    FKT_TRY(cli_codec_spec(&a->codec, &spec));
    FKT_TRY(fkt_codec_open(&codec, &spec));
    FKT_TRY(cli_open_data(&ds, &a->data, NULL));
    S = fkt_codec_size(codec);
    FKT_TRY(fkt_alloc(&tiles, 2 * PICTURE_PAIRS * PICTURE_COLUMNS * S * S * 3));
    memset(tiles, 255, 2 * PICTURE_PAIRS * PICTURE_COLUMNS * S * S * 3);
    FKT_TRY(measure(a, codec, ds, tiles, &skipped, &mse));
    cli_tell_skipped(&skipped);
    n = fkt_dataset_size(ds) - skipped.count;
    rows = 2 * ((n + PICTURE_COLUMNS - 1) / PICTURE_COLUMNS);
    if (rows > 2 * PICTURE_PAIRS) rows = 2 * PICTURE_PAIRS;
    psnr = mse > 0 ? 10 * log10(255.0 * 255.0 / mse) : 100;
    if (a->picture) {
        FKT_TRY(fkt_grid(&sheet, &width, &height, tiles, rows, PICTURE_COLUMNS, (uint32_t)S, names));
        FKT_TRY(fkt_png_encode(&png, &len, sheet, width, height));
        FKT_TRY(fkt_file_write(a->picture, png, len, FKT_FILE_PRIVATE | (a->run.force ? FKT_FILE_REPLACE : 0)));
    }
    if (a->run.json)
        FKT_TRY(cli_print_json(json_pack("{s:s s:I s:I s:f s:f s:i s:i}", "codec", fkt_codec_identity(codec), "images",
                                         (json_int_t)n, "skipped", (json_int_t)skipped.count, "psnr", psnr, "mse", mse,
                                         "size", (int)S, "dim", (int)fkt_codec_dim(codec))));
    else
        printf("%s: PSNR %.2f dB over %zu images%s%s\n", fkt_codec_identity(codec), psnr, n,
               a->picture ? ", before and after in " : "", a->picture ? a->picture : "");
out:
    fkt_image_free(png);
    fkt_skipped_release(&skipped);
    fkt_image_free(sheet);
    fkt_free(tiles);
    fkt_dataset_free(ds);
    fkt_codec_free(codec);
    return st;
}

int cli_codec(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {.codec = CLI_CODEC_DEFAULTS};
    const struct cli_option table[] = {
        CLI_OPT_HEAD("calibrate"),
        CLI_OPT_TEXT("public", &a.data.path, "PATH", 0,
                     "a PUBLIC image set; never private data: what comes out is shipped in the clear"),
        CLI_OPT_TEXT("source", &a.source, "TEXT", 0, "the set's name, for the record (default: its file name)"),
        CLI_OPT_WHOLE("top", &a.top, "K", 0, "keep the K strongest directions (default: all)"),
        CLI_OPT_TEXT("out", &a.out, "FILE", 0, "where the calibration goes"),
        CLI_OPT_HEAD("roundtrip"),
        CLI_OPT_TEXT("picture", &a.picture, "FILE", 0, "before/after sheet as PNG"),
        CLI_DATA_ROWS(a.data, 0),
        CLI_CODEC_ROWS(a.codec),
        CLI_RUN_ROWS(a.run),
    };
    const char *sub = argc > 0 ? argv[0] : "--help";
    fkt_status (*run)(const struct asked *) = !strcmp(sub, "list")        ? run_list
                                              : !strcmp(sub, "info")      ? run_info
                                              : !strcmp(sub, "calibrate") ? run_calibrate
                                              : !strcmp(sub, "roundtrip") ? run_roundtrip
                                                                          : NULL;
    int code;
    if (!run && sub[0] != '-') return cli_misuse(self, fkt_fail(FKT_E_ARG, "unknown word '%s' after codec", sub));
    code = cli_begin(self, table, CLI_COUNT(table), run ? argc - 1 : argc, run ? argv + 1 : argv);
    if (code >= 0) return code;
    return run ? cli_misuse(self, run(&a))
               : cli_misuse(self, fkt_fail(FKT_E_ARG, "codec needs a word: list, info, calibrate or roundtrip"));
}
