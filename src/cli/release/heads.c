/* SPDX-License-Identifier: Apache-2.0 */
/* heads.c - `fedkt heads`: classifiers directly from a release, and whole models with one of them. */
#include "cli/core/common.h"
#include "cli/core/verbs.h"

#include "fedkt/whole.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/output.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct asked {
    struct cli_data test;
    struct cli_weights settings;
    struct cli_run run;
    const char *release, *out, *encodings, *export;
    int head, head_given, parts;
    double pool;
};

static json_t *classes_json(const struct fkt_release *r, const struct fkt_gaussians *g)
{
    json_t *list = json_array();
    for (uint32_t k = 0; k < g->classes; k++)
        json_array_append_new(list, json_pack("{s:s s:f s:f s:f s:b}", "class", r->task.classes[k], "noisy_count",
                                              g->count[k], "count_noise", g->count_noise[k], "signal", g->signal[k],
                                              "below_noise", fkt_gaussians_below_noise(g, k)));
    return list;
}

static fkt_status save_heads(const struct fkt_heads *h, const char *folder, int force)
{
    struct fkt_folder f = {0};
    char *path = NULL;
    fkt_status st;
    FKT_TRY(fkt_folder_begin(&f, folder, force));
    for (int k = 0; k < FKT_HEAD_KINDS; k++) {
        char name[64];
        if (!h->head[k]) continue;
        snprintf(name, sizeof name, "%s.safetensors", fkt_head_name((enum fkt_head_kind)k));
        fkt_free(path);
        path = NULL;
        FKT_TRY(fkt_path_join(&path, f.tmp, name));
        FKT_TRY(fkt_head_save(h->head[k], path, 0));
    }
    FKT_TRY(fkt_folder_commit(&f));
out:
    fkt_folder_fail(&f, st);
    fkt_free(path);
    fkt_folder_clear(&f);
    return st;
}

static fkt_status score_heads(const struct asked *a, const struct fkt_pipeline *pipeline, const struct fkt_heads *h,
                              double *accuracy)
{
    struct fkt_dataset *ds = NULL;
    struct fkt_score scores[FKT_HEAD_KINDS] = {{0}};
    struct fkt_skipped skipped = {0};
    struct cli_progress progress;
    struct fkt_pipeline_options o = {.progress = &progress.hook, .skipped = a->test.skip_bad ? &skipped : NULL};
    fkt_status st;
    cli_progress_init(&progress, a->run.quiet);
    FKT_TRY(cli_threads(a->run.threads, &o.threads));
    FKT_TRY(cli_open_encodings(&o.encodings, a->encodings));
    FKT_TRY(cli_open_data(&ds, &a->test, fkt_pipeline_task(pipeline), &a->run));
    for (int k = 0; k < FKT_HEAD_KINDS; k++)
        FKT_TRY(fkt_score_init(&scores[k], fkt_pipeline_task(pipeline)->n_classes));
    FKT_TRY(
        fkt_heads_evaluate(pipeline, ds, NULL, 0, (const struct fkt_head *const *)h->head, FKT_HEAD_KINDS, scores, &o));
    for (int k = 0; k < FKT_HEAD_KINDS; k++) accuracy[k] = fkt_score_accuracy(&scores[k]);
out:
    cli_progress_end(&progress);
    cli_print_skipped(&skipped);
    st = cli_close_encodings(o.encodings, a->encodings, &a->run, st);
    fkt_skipped_clear(&skipped);
    for (int k = 0; k < FKT_HEAD_KINDS; k++) fkt_score_clear(&scores[k]);
    fkt_dataset_free(ds);
    return st;
}

static fkt_status print_heads(const struct asked *a, const struct fkt_release *r, const struct fkt_gaussians *g,
                              const struct fkt_pipeline *pipeline, const double *accuracy)
{
    const double reach = fkt_gaussians_reach(g->length);
    json_t *j;
    if (a->run.json) {
        j = json_pack("{s:o s:f s:f s:s s:b}", "classes", classes_json(r, g), "epsilon", r->task.privacy.epsilon,
                      "delta", r->task.privacy.delta, "release_sha256", r->sha256, "private",
                      !fkt_release_not_private(r));
        cli_mark_weak_release(j, r);
        if (a->test.path) {
            json_t *acc = json_object();
            for (int k = 0; k < FKT_HEAD_KINDS; k++)
                if (!isnan(accuracy[k]))
                    json_object_set_new(acc, fkt_head_name((enum fkt_head_kind)k), json_real(accuracy[k]));
            json_object_set_new(j, "accuracy", acc);
            json_object_set_new(j, "device", cli_codec_device_json(fkt_pipeline_encoder(pipeline, 0)));
        }
        return cli_print_json(j);
    }
    printf("%-24s %12s %8s %8s\n", "class", "noisy count", "+-", "signal");
    for (uint32_t k = 0; k < g->classes; k++)
        printf("%-24.24s %12.0f %8.1f %8.2f%s\n", r->task.classes[k], g->count[k], g->count_noise[k], g->signal[k],
               !fkt_gaussians_below_noise(g, k) ? ""
               : g->signal[k] >= reach          ? "  count below the noise"
                                                : "  below the noise");
    printf("noise alone can reach a signal of %.2f: a class with less, or whose count cannot be distinguished from 0, "
           "is below the "
           "noise\n",
           reach);
    for (int k = 0; a->test.path && k < FKT_HEAD_KINDS; k++)
        if (!isnan(accuracy[k])) printf("%-24s %11.2f %%\n", fkt_head_name((enum fkt_head_kind)k), 100 * accuracy[k]);
    if (a->out) printf("heads saved in %s\n", a->out);
    if (a->export)
        printf("whole model with head %s saved as %s\n", fkt_head_name((enum fkt_head_kind)a->head), a->export);
    return FKT_OK;
}

/* ---- a whole model ---- */

static fkt_status check_export(const struct asked *a)
{
    if (!a->export && a->head_given)
        return fkt_fail(FKT_E_ARG, "--head needs --export: the others are made for all heads");
    if (!a->export || fkt_ends_in(a->export, ".onnx") || fkt_ends_in(a->export, ".safetensors")) return FKT_OK;
    return fkt_fail(FKT_E_ARG, "--export '%s' must end in .onnx or .safetensors", a->export);
}

static fkt_status export_whole(const struct asked *a, const struct fkt_release *r, const struct fkt_pipeline *pipeline,
                               const struct fkt_heads *h)
{
    const int kind = a->head_given ? a->head : (int)fkt_head_default(r->task.layout.pooled);
    struct fkt_whole *m = NULL;
    fkt_status st;
    if (!h->head[kind])
        FKT_TRY(fkt_fail_hint(FKT_E_ARG, "LDA and nearest mean need no covariance of each class",
                              "--head %s: the moments of this release are pooled over the classes",
                              fkt_head_name((enum fkt_head_kind)kind)));
    FKT_TRY(fkt_whole_make(&m, pipeline, h->head[kind], r));
    FKT_TRY(fkt_ends_in(a->export, ".onnx") ? fkt_whole_export_onnx(m, a->export, a->run.force)
                                            : fkt_whole_save(m, a->export, a->run.force));
out:
    fkt_whole_free(m);
    return st;
}

static fkt_status run_heads(const struct asked *a)
{
    struct fkt_release r = {0};
    struct fkt_pipeline *pipeline = NULL;
    struct fkt_gaussians g[FKT_PARTS_MAX] = {{0}};
    struct fkt_heads h = {0};
    struct fkt_estimate_options e = {FKT_ESTIMATOR_RAW, 0, a->pool};
    struct fkt_codec_settings settings;
    double accuracy[FKT_HEAD_KINDS];
    fkt_status st;
    FKT_TRY(cli_not_an_input(a->out, a->release));
    FKT_TRY(cli_not_an_input(a->out, a->test.path));
    FKT_TRY(cli_output_not_an_input("--export", a->export, a->release));
    FKT_TRY(cli_output_not_an_input("--export", a->export, a->test.path));
    FKT_TRY(check_export(a));
    FKT_TRY(fkt_release_load_into(&r, a->release));
    for (uint32_t p = 0; p < r.task.layout.parts; p++) FKT_TRY(fkt_release_gaussians(&r, p, &e, &g[p]));
    FKT_TRY(fkt_heads_fit(&h, g, &r.task, (enum fkt_heads_on)a->parts, &r));
    if (a->test.path || a->export) {
        cli_codec_settings(&a->settings, &settings);
        FKT_TRY(fkt_release_pipeline(&r, &settings, &pipeline));
    }
    if (a->test.path) {
        cli_print_dtype(&a->settings, fkt_pipeline_encoder(pipeline, 0), &a->run);
        FKT_TRY(score_heads(a, pipeline, &h, accuracy));
    }
    if (a->out) FKT_TRY(save_heads(&h, a->out, a->run.force));
    if (a->export) FKT_TRY(export_whole(a, &r, pipeline, &h));
    FKT_TRY(print_heads(a, &r, &g[r.task.layout.parts - 1], pipeline, accuracy)); /* the guide is the last part */
out:
    fkt_heads_clear(&h);
    for (int p = 0; p < FKT_PARTS_MAX; p++) fkt_gaussians_clear(&g[p]);
    fkt_pipeline_free(pipeline);
    fkt_release_clear(&r);
    return st;
}

int cli_heads(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {.head = fkt_head_default(0)};
    const struct cli_option table[] = {
        CLI_OPT_TEXT("release", &a.release, "FILE", 1, "the release"),
        CLI_OPT_TEXT("export", &a.export, "FILE", 0,
                     "a whole model, pixels in and classes out: ONNX where FILE ends in .onnx, else .safetensors"),
        CLI_OPT_CHOICE_GIVEN("head", &a.head, fkt_head_parse, "rda, lda, nearest_mean or qda", "the head of --export",
                             &a.head_given),
        CLI_OPT_CHOICE("parts", &a.parts, fkt_heads_on_parse, "default, all or guide",
                       "the parts of the record vector that heads take: all of them, or the guide alone, which is the "
                       "default where there is a guide"),
        CLI_OPT_TEXT("out", &a.out, "DIR", 0, "folder for the heads (safetensors), which must not exist"),
        CLI_OPT_TEXT("test", &a.test.path, "PATH", 0, "real images to score the heads on"),
        CLI_OPT_TEXT("test-split", &a.test.split, "NAME", 0, "split of --test"),
        CLI_OPT_WHOLE("test-limit", &a.test.limit, "N", 0, "use N test images in all, spread evenly over the classes"),
        CLI_OPT_FLAG("skip-bad", &a.test.skip_bad, "leave out test images that cannot be read"),
        CLI_BITS_ROW(a.test),
        CLI_ENCODINGS_ROW(a.encodings),
        CLI_OPT_REAL("pool", &a.pool, "P", 0, "weight of the covariance pooled over classes, 0 to 1 (default: 0)"),
        CLI_WEIGHTS_ROWS(a.settings),
        CLI_RUN_ROWS(a.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    return code >= 0 ? code : cli_misuse(self, run_heads(&a));
}
