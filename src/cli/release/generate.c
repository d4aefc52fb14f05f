/* SPDX-License-Identifier: Apache-2.0 */
/* generate.c - `fedkt generate`: images from a release. */
#include "cli/core/common.h"
#include "cli/core/guided.h"
#include "cli/core/verbs.h"
#include "pipeline/pipeline.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/output.h"
#include "pipeline/guided_draw.h"

#include <stdio.h>
#include <string.h>

struct asked {
    struct cli_data test;
    struct cli_weights settings;
    struct cli_run run;
    const char *guided;
    const char *release, *out, *encodings;
    uint64_t per_class, seed;
    int format, estimator, push_layout;
    struct fkt_publisher publisher;
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
    struct fkt_guided_facts made = {.kind = FKT_GUIDED_NONE};
    uint64_t kept = 0;
    struct fkt_generate_options o = {.made = &made,
                                     .kept = &kept,
                                     .per_class = (size_t)a->per_class,
                                     .seed = a->seed,
                                     .format = (enum fkt_export_format)a->format,
                                     .estimate = {(enum fkt_estimator)a->estimator, a->tau, a->pool},
                                     .force = a->run.force,
                                     .push_layout = a->push_layout,
                                     .publisher = a->publisher,
                                     .progress = &progress.hook};
    fkt_status st;
    cli_progress_init(&progress, a->run.quiet);
    if (a->per_class < 1 || a->per_class > 100000000) {
        st = fkt_fail(FKT_E_ARG, "--per-class must be between 1 and 100000000");
        goto out;
    }
    cli_codec_settings(&a->settings, &o.settings);
    FKT_TRY(cli_threads(a->run.threads, &o.threads));
    FKT_TRY(cli_guided(a->guided, &o.guided));
    FKT_TRY(cli_not_an_input(a->out, a->release));
    FKT_TRY(cli_not_an_input(a->out, a->settings.weights));
    FKT_TRY(fkt_output_folder(a->out, a->run.force));
    FKT_TRY(fkt_release_load_into(&r, a->release));
    FKT_TRY(fkt_release_has_images(&r)); /* before a network is opened */
    if (fkt_guided_needs_network(&o.guided)) FKT_TRY(fkt_release_pipeline(&r, &o.settings, &pipeline));
    else FKT_TRY(fkt_release_pipeline_codec(&r, &o.settings, &pipeline));
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
        if (fkt_task_part_of(&r.task, FKT_PART_GUIDE)) json_object_set_new(j, "guided", cli_guided_json(&made));
        if (made.kind != FKT_GUIDED_NONE) json_object_set_new(j, "kept", json_integer((json_int_t)kept));
        cli_mark_weak_release(j, &r);
        FKT_TRY(cli_print_json(j));
    } else {
        char shown[64] = "";
        if (r.task.n_classes > FKT_GRID_CLASSES)
            snprintf(shown, sizeof shown, " (the first %d of %u classes)", FKT_GRID_CLASSES, r.task.n_classes);
        printf("%llu images of %u classes in %s\nsee %s/grid.png%s; %s/README.md states the privacy promise\n%s",
               (unsigned long long)(a->per_class * r.task.n_classes), r.task.n_classes, a->out, a->out, shown, a->out,
               r.insecure_seed ? "NOT PRIVATE: the noise of this release came from --insecure-seed\n" : "");
        cli_print_guided(&made);
        if (kept) printf("%llu of them were kept from a run that was interrupted\n", (unsigned long long)kept);
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
        CLI_OPT_CHOICE("format", &a.format, fkt_export_parse, "folder, npz, webdataset or dpimagebench",
                       "format of the images"),
        CLI_OPT_FLAG("push-layout", &a.push_layout, "lay the folder out for the upload to a hub for datasets"),
        CLI_OPT_TEXT("license", &a.publisher.license, "SPDX", 0, "license of the set, for its card: CC-BY-4.0"),
        CLI_OPT_TEXT("creator", &a.publisher.creator, "NAME", 0, "who publishes the set, for its card"),
        CLI_OPT_TEXT("url", &a.publisher.url, "URL", 0, "where the set is to be found, for its card"),
        CLI_OPT_TEXT("published", &a.publisher.published, "DATE", 0, "when, for its card: 2026-12-31"),
        CLI_GUIDED_ROW(a.guided),
        CLI_OPT_CHOICE("estimator", &a.estimator, fkt_estimator_parse, "clamp or rie", "how covariances are repaired"),
        CLI_OPT_REAL("tau", &a.tau, "T", 0, "clamp: eigenvalue floor (default: 1e-6)"),
        CLI_OPT_REAL("pool", &a.pool, "P", 0, "weight of the covariance pooled over classes, 0 to 1 (default: 0)"),
        CLI_WEIGHTS_ROWS(a.settings),
        CLI_RUN_ROWS(a.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    return code >= 0 ? code : cli_misuse(self, run_generate(&a));
}
