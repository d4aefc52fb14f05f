/* SPDX-License-Identifier: Apache-2.0 */
/* generate.c - `fedkt generate | heads`: images and classifiers from a release. */
#include "cli/core/common.h"
#include "cli/core/verbs.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/output.h"

#include <stdio.h>
#include <string.h>

struct asked {
    struct cli_data test;
    struct cli_weights settings;
    struct cli_run run;
    const char *release, *out, *encodings;
    uint64_t per_class, seed;
    int format, estimator;
    double pool, tau;
};

/* ---- generate ---- */

/* Names the classes that cannot be distinguished from empty ones: their images show only noise. */
static fkt_status print_below_noise(const struct fkt_release *r, const struct fkt_estimate_options *e)
{
    struct fkt_gaussians g = {0};
    uint32_t n = 0;
    fkt_status st = fkt_release_gaussians(r, 0, e, &g);
    if (st != FKT_OK) return st;
    for (uint32_t k = 0; k < g.classes; k++)
        if (fkt_gaussians_below_noise(&g, k))
            fprintf(stderr, "%s'%s'",
                    n++ ? ", " : "fedkt: classes below the noise, whose images show little but noise: ",
                    r->task.classes[k]);
    if (n) fputc('\n', stderr);
    fkt_gaussians_clear(&g);
    return st;
}

static fkt_status run_generate(const struct asked *a)
{
    struct fkt_release r = {0};
    struct fkt_pipeline *pipeline = NULL;
    struct cli_progress progress;
    struct fkt_generate_options o = {.per_class = (size_t)a->per_class,
                                     .seed = a->seed,
                                     .format = (enum fkt_export_format)a->format,
                                     .estimate = {(enum fkt_estimator)a->estimator, a->tau, a->pool},
                                     .force = a->run.force,
                                     .progress = &progress.hook};
    fkt_status st;
    cli_progress_init(&progress, a->run.quiet);
    if (a->per_class < 1 || a->per_class > 100000000) {
        st = fkt_fail(FKT_E_ARG, "--per-class must be between 1 and 100000000");
        goto out;
    }
    cli_codec_settings(&a->settings, &o.settings);
    FKT_TRY(cli_threads(a->run.threads, &o.threads));
    FKT_TRY(cli_not_an_input(a->out, a->release));
    FKT_TRY(cli_not_an_input(a->out, a->settings.weights));
    FKT_TRY(fkt_output_folder(a->out, a->run.force));
    FKT_TRY(fkt_release_load_into(&r, a->release));
    FKT_TRY(fkt_release_pipeline(&r, &o.settings, &pipeline));
    cli_print_dtype(&a->settings, fkt_pipeline_codec(pipeline), &a->run);
    o.pipeline = pipeline;
    FKT_TRY(fkt_generate(&r, a->out, &o));
    cli_progress_end(&progress);
    if (a->run.json) {
        json_t *j =
            json_pack("{s:s s:I s:i s:s s:f s:f s:s s:s s:o s:b}", "out", a->out, "images",
                      (json_int_t)(a->per_class * r.task.n_classes), "classes", (int)r.task.n_classes, "format",
                      fkt_export_name(o.format), "epsilon", r.task.privacy.epsilon, "delta", r.task.privacy.delta,
                      "release_sha256", r.sha256, "codec_dtype",
                      fkt_codec_dtype_name(fkt_codec_dtype_used(fkt_pipeline_codec(pipeline))), "device",
                      cli_codec_device_json(fkt_pipeline_codec(pipeline)), "private", !fkt_release_not_private(&r));
        cli_mark_weak_release(j, &r);
        FKT_TRY(cli_print_json(j));
    } else {
        char shown[64] = "";
        if (r.task.n_classes > FKT_GRID_CLASSES)
            snprintf(shown, sizeof shown, " (the first %d of %u classes)", FKT_GRID_CLASSES, r.task.n_classes);
        printf("%llu images of %u classes in %s\nsee %s/grid.png%s; %s/README.md states the privacy promise\n%s",
               (unsigned long long)(a->per_class * r.task.n_classes), r.task.n_classes, a->out, a->out, shown, a->out,
               r.insecure_seed ? "NOT PRIVATE: the noise of this release came from --insecure-seed\n" : "");
        cli_print_weak_release(&r);
    }
    if (!a->run.quiet) FKT_TRY(print_below_noise(&r, &o.estimate));
out:
    cli_progress_end(&progress);
    fkt_pipeline_free(pipeline);
    fkt_release_clear(&r);
    return st;
}

int cli_generate(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {.per_class = 100};
    const struct cli_option table[] = {
        CLI_OPT_TEXT("release", &a.release, "FILE", 1, "the release"),
        CLI_OPT_TEXT("out", &a.out, "DIR", 1, "folder for the images, which must not exist"),
        CLI_OPT_WHOLE("per-class", &a.per_class, "N", 0, "images per class (default: 100)"),
        CLI_OPT_WHOLE("seed", &a.seed, "S", 0, "seed of the sample (default: 0); public, without privacy cost"),
        CLI_OPT_CHOICE("format", &a.format, fkt_export_parse, "folder, npz or webdataset", "format of the images"),
        CLI_OPT_CHOICE("estimator", &a.estimator, fkt_estimator_parse, "clamp or rie", "how covariances are repaired"),
        CLI_OPT_REAL("tau", &a.tau, "T", 0, "clamp: eigenvalue floor (default: 1e-6)"),
        CLI_OPT_REAL("pool", &a.pool, "P", 0, "weight of the covariance pooled over classes, 0 to 1 (default: 0)"),
        CLI_WEIGHTS_ROWS(a.settings),
        CLI_RUN_ROWS(a.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    return code >= 0 ? code : cli_misuse(self, run_generate(&a));
}

/* ---- heads ---- */

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
                json_object_set_new(acc, fkt_head_name((enum fkt_head_kind)k), json_real(accuracy[k]));
            json_object_set_new(j, "accuracy", acc);
            json_object_set_new(j, "device", cli_codec_device_json(fkt_pipeline_codec(pipeline)));
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
        printf("%-24s %11.2f %%\n", fkt_head_name((enum fkt_head_kind)k), 100 * accuracy[k]);
    if (a->out) printf("heads saved in %s\n", a->out);
    return FKT_OK;
}

static fkt_status run_heads(const struct asked *a)
{
    struct fkt_release r = {0};
    struct fkt_pipeline *pipeline = NULL;
    struct fkt_gaussians g = {0};
    struct fkt_heads h = {0};
    struct fkt_estimate_options e = {FKT_ESTIMATOR_RAW, 0, a->pool};
    struct fkt_codec_settings settings;
    double accuracy[FKT_HEAD_KINDS];
    fkt_status st;
    FKT_TRY(cli_not_an_input(a->out, a->release));
    FKT_TRY(cli_not_an_input(a->out, a->test.path));
    FKT_TRY(fkt_release_load_into(&r, a->release));
    FKT_TRY(fkt_release_gaussians(&r, 0, &e, &g));
    FKT_TRY(fkt_heads_fit(&h, &g, &r));
    if (a->test.path) {
        cli_codec_settings(&a->settings, &settings);
        FKT_TRY(fkt_release_pipeline(&r, &settings, &pipeline));
        cli_print_dtype(&a->settings, fkt_pipeline_codec(pipeline), &a->run);
        FKT_TRY(score_heads(a, pipeline, &h, accuracy));
    }
    if (a->out) FKT_TRY(save_heads(&h, a->out, a->run.force));
    FKT_TRY(print_heads(a, &r, &g, pipeline, accuracy));
out:
    fkt_heads_clear(&h);
    fkt_gaussians_clear(&g);
    fkt_pipeline_free(pipeline);
    fkt_release_clear(&r);
    return st;
}

int cli_heads(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {0};
    const struct cli_option table[] = {
        CLI_OPT_TEXT("release", &a.release, "FILE", 1, "the release"),
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
