/* SPDX-License-Identifier: Apache-2.0 */
/* model_onnx.c - makes what strangers look at: a model as ONNX, its predictions, curves.
 *
 *   model_onnx make ARCHITECTURE STEM SIZE CLASSES MODEL.onnx    weights drawn, norms with statistics as after training
 *   model_onnx predict MODEL PICTURES N LOGITS                   N times (S,S,3) bytes -> N times K floats
 *   model_onnx curves FOLDER                                     FOLDER/curves.csv and an event file beside it */
#include "base/file.h"
#include "base/rng.h"
#include "fedkt/learn.h"
#include "tests/support/check.h"

static void lively(struct fkt_model *m)
{
    struct fkt_rng rng;
    fkt_rng_init(&rng, 7, 7);
    for (size_t i = 0; i < fkt_model_tensors(m); i++) {
        const struct fkt_model_tensor t = fkt_model_tensor(m, i);
        if (t.rank != 1 || !strncmp(t.name, "fc", 2)) continue;
        for (size_t k = 0; k < t.count; k++)
            t.data[k] = strstr(t.name, "var") || strstr(t.name, "weight") ? 0.5F + (float)fkt_rng_unit(&rng)
                                                                          : 0.1F * (float)fkt_rng_normal(&rng);
    }
}

static fkt_status make(char **a)
{
    const char *names[] = {"cat", "dog", "a \"b\"", "\xC3\xA9t\xC3\xA9", "4", "5", "6", "7", "8", "9"};
    const float mean[] = {0.4914F, 0.4822F, 0.4465F}, std[] = {0.2470F, 0.2435F, 0.2616F};
    const struct fkt_model_origin origin = {
        .is_private = 1, .epsilon = 10, .delta = 1e-5, .data = "drawn", .recipe = "none"};
    struct fkt_model_spec spec = {.classes = names, .mean = mean, .std = std, .seed = 5};
    struct fkt_model *m = NULL;
    fkt_status st;
    spec.architecture = (enum fkt_architecture)fkt_architecture_parse(a[0]);
    spec.stem = (enum fkt_stem)fkt_stem_parse(a[1]);
    spec.size = (uint32_t)strtoul(a[2], NULL, 10);
    spec.n_classes = (uint32_t)strtoul(a[3], NULL, 10);
    if (spec.n_classes > sizeof names / sizeof *names) return fkt_fail(FKT_E_ARG, "at most ten classes");
    FKT_TRY(fkt_model_new(&m, &spec));
    lively(m);
    fkt_model_set_origin(m, &origin);
    FKT_TRY(fkt_model_export_onnx(m, a[4], 1));
out:
    fkt_model_free(m);
    return st;
}

static fkt_status predict(char **a)
{
    const struct fkt_predict_options options = {.threads = 2};
    struct fkt_model *m = NULL;
    uint8_t *rgb = NULL;
    float *logits = NULL;
    size_t len, n = strtoul(a[2], NULL, 10), s, k;
    fkt_status st;
    FKT_TRY(fkt_model_load(&m, a[0], 0));
    FKT_TRY(fkt_file_read(&rgb, &len, a[1], (size_t)1 << 28));
    s = fkt_model_size(m);
    k = fkt_model_classes(m);
    if (len != n * s * s * 3) FKT_TRY(fkt_fail(FKT_E_ARG, "'%s' is not %zu pictures of %zu px", a[1], n, s));
    FKT_TRY(fkt_alloc(&logits, n * k));
    FKT_TRY(fkt_model_predict(m, rgb, n, logits, NULL, &options));
    FKT_TRY(fkt_file_write(a[3], logits, n * k * sizeof *logits, FKT_FILE_REPLACE));
out:
    fkt_free(logits);
    fkt_free(rgb);
    fkt_model_free(m);
    return st;
}

static fkt_status curves(char **a)
{
    const struct fkt_epoch run[] = {
        {1, 2.25, 0.125, 2.0, 0.25, NAN, NAN, 0.1, 12.5, 4000},
        {2, 1.5, 0.5, 1.75, 0.375, 1.7, 0.4375, 0.05, 10, 5000},
        {3, 1.25, 0.75, NAN, NAN, NAN, NAN, 0, 0.25, 6000.5},
    };
    char *csv = NULL;
    fkt_status st;
    FKT_TRY(fkt_curves_tensorboard(a[0], run, 3, 1700000000.25));
    FKT_TRY(fkt_path_join(&csv, a[0], "curves.csv"));
    FKT_TRY(fkt_curves_csv(csv, run, 3, 1));
out:
    fkt_free(csv);
    return st;
}

int main(int argc, char **argv)
{
    fkt_status st = FKT_E_ARG;
    if (argc == 7 && !strcmp(argv[1], "make")) st = make(argv + 2);
    else if (argc == 6 && !strcmp(argv[1], "predict")) st = predict(argv + 2);
    else if (argc == 3 && !strcmp(argv[1], "curves")) st = curves(argv + 2);
    else fkt_fail(st, "usage: model_onnx make|predict|curves ...");
    if (st != FKT_OK) fprintf(stderr, "model_onnx: %s\nhint: %s\n", fkt_error_text(), fkt_error_hint());
    return st != FKT_OK;
}
