/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate.c - `fedkt evaluate`: a head, a whole model or a classifier on real images. The metadata of the first two
 * name their format; every other file is read as a classifier. */
#include "cli/learning/evaluation.h"
#include "cli/core/verbs.h"

#include "tensor/safetensors.h"

#include <stdio.h>
#include <string.h>

struct asked {
    struct cli_data data;
    struct cli_weights settings;
    struct cli_run run;
    const char *release, *model, *codec, *encodings;
    uint64_t size, dim;
    int through_codec, filter;
};

enum model_file { A_NETWORK = 0, A_HEAD, A_WHOLE };

static fkt_status which(const char *path, enum model_file *file)
{
    struct fkt_safetensors *s = NULL;
    const char *format;
    fkt_status st = fkt_safetensors_open(&s, path);
    *file = A_NETWORK;
    if (st == FKT_E_FORMAT) return FKT_OK; /* may be ONNX */
    if (st != FKT_OK) return st;
    format = fkt_safetensors_meta(s, "format");
    if (format && !strncmp(format, "fedkt.head/", 11)) *file = A_HEAD;
    if (format && !strncmp(format, "fedkt.whole/", 12)) *file = A_WHOLE;
    fkt_safetensors_free(s);
    return FKT_OK;
}

/* ---- a head ---- */

static fkt_status check_head(const struct asked *a, const struct fkt_head *h, const struct fkt_release *r)
{
    if (!fkt_head_task(h)[0] || !strcmp(fkt_head_task(h), r->task.sha256)) return FKT_OK;
    return fkt_fail_hint(FKT_E_MISMATCH, "give the release that 'fedkt heads' made this head from",
                         "head '%s' belongs to task %.12s, the release to %.12s", a->model, fkt_head_task(h),
                         r->task.sha256);
}

static fkt_status print_head(const struct asked *a, const struct fkt_task *task, const struct fkt_codec *codec,
                             const struct fkt_score *s)
{
    if (!a->run.json) {
        cli_score_print(s, (const char *const *)task->classes);
        return cli_flush();
    }
    return cli_print_json(json_pack("{s:f s:o s:I s:o}", "accuracy", fkt_score_accuracy(s), "per_class",
                                    cli_per_class_json(s, (const char *const *)task->classes), "n",
                                    (json_int_t)fkt_score_total(s), "device", cli_codec_device_json(codec)));
}

static fkt_status run_head(const struct asked *a, struct cli_progress *progress, unsigned threads)
{
    struct fkt_release r = {0};
    struct fkt_pipeline *pipeline = NULL;
    struct fkt_dataset *ds = NULL;
    struct fkt_head *head = NULL;
    struct fkt_score score = {0};
    struct fkt_skipped skipped = {0};
    struct fkt_pipeline_options o = {
        .threads = threads, .progress = &progress->hook, .skipped = a->data.skip_bad ? &skipped : NULL};
    struct fkt_codec_settings settings;
    fkt_status st;
    cli_codec_settings(&a->settings, &settings);
    if (!a->release) return fkt_fail(FKT_E_ARG, "a head needs the --release that it was made from");
    if (a->through_codec)
        return fkt_fail(FKT_E_ARG, "--through-codec: a head takes latents, so it always uses the codec");
    FKT_TRY(fkt_release_load_into(&r, a->release));
    FKT_TRY(fkt_release_pipeline(&r, &settings, &pipeline));
    cli_print_dtype(&a->settings, fkt_pipeline_codec(pipeline), &a->run);
    FKT_TRY(fkt_head_load(&head, a->model));
    FKT_TRY(check_head(a, head, &r));
    FKT_TRY(cli_open_encodings(&o.encodings, a->encodings));
    FKT_TRY(cli_open_data(&ds, &a->data, &r.task, &a->run));
    FKT_TRY(fkt_score_init(&score, r.task.n_classes));
    FKT_TRY(fkt_heads_evaluate(pipeline, ds, NULL, 0, (const struct fkt_head *const *)&head, 1, &score, &o));
    cli_progress_end(progress);
    cli_print_skipped(&skipped);
    FKT_TRY(print_head(a, &r.task, fkt_pipeline_codec(pipeline), &score));
out:
    st = cli_close_encodings(o.encodings, a->encodings, &a->run, st);
    fkt_skipped_clear(&skipped);
    fkt_score_clear(&score);
    fkt_head_free(head);
    fkt_dataset_free(ds);
    fkt_pipeline_free(pipeline);
    fkt_release_clear(&r);
    return st;
}

/* ---- a classifier ---- */

/* The given codec, or that of the release, which the pipeline owns. */
static fkt_status open_codec(const struct asked *a, uint32_t size, struct fkt_pipeline **pipeline,
                             struct fkt_codec **codec)
{
    struct fkt_codec_spec spec = {.name = a->codec, .size = size, .dim = (uint32_t)a->dim};
    struct fkt_release r = {0};
    fkt_status st;
    cli_codec_settings(&a->settings, &spec.settings);
    if (a->codec) return fkt_codec_open(codec, &spec);
    FKT_TRY(fkt_release_load_into(&r, a->release));
    if (r.task.size != size) {
        st = fkt_fail(FKT_E_MISMATCH, "the model takes images of %u px, but the release has %u px", size, r.task.size);
        goto out;
    }
    FKT_TRY(fkt_release_pipeline(&r, &spec.settings, pipeline));
out:
    fkt_release_clear(&r);
    return st;
}

static fkt_status print_model(const struct asked *a, const struct fkt_model *m, struct fkt_device device,
                              const struct cli_evaluation *j)
{
    json_t *out;
    if (!a->run.json) {
        cli_evaluation_print(j, m);
        putchar('\n');
        cli_origin_print(fkt_model_origin(m), 1);
        return cli_flush();
    }
    out = cli_evaluation_json(j, m);
    if (out) {
        json_object_set_new(out, "model", cli_model_json(m));
        json_object_set_new(out, "device", cli_device_json(device));
        cli_origin_json(out, fkt_model_origin(m));
    }
    return cli_print_json(out);
}

static fkt_status run_model(const struct asked *a, struct cli_progress *progress, unsigned threads)
{
    struct fkt_model *m = NULL;
    struct fkt_dataset *ds = NULL;
    struct fkt_pipeline *pipeline = NULL;
    struct fkt_codec *codec = NULL;
    struct cli_evaluation evaluated = {0};
    struct fkt_skipped skipped = {0};
    struct fkt_device device;
    fkt_status st;
    if (a->encodings) return fkt_fail(FKT_E_ARG, "--encodings: only a head takes encodings; a network takes images");
    if (a->through_codec && !a->release && !a->codec)
        return fkt_fail(FKT_E_ARG, "--through-codec needs --codec, or a --release, which names one");
    if (a->codec && a->release) return fkt_fail(FKT_E_ARG, "--codec and --release both name a codec: give one of them");
    if (a->codec && !a->through_codec) return fkt_fail(FKT_E_ARG, "--codec needs --through-codec");
    if (a->dim && !a->codec) return fkt_fail(FKT_E_ARG, "--dim needs --codec");
    if (a->size > 512) return fkt_fail(FKT_E_ARG, "--size must be at most 512");
    FKT_TRY(cli_model_load(&m, a->model, (uint32_t)a->size));
    if (a->release && !a->through_codec) {
        st = fkt_fail_hint(FKT_E_ARG, "only a head is evaluated with its release; a network does not need one",
                           "--release needs --through-codec when a network is evaluated");
        goto out;
    }
    FKT_TRY(cli_device_settle(a->settings.device, &device));
    cli_print_device(a->settings.device, device, "f32", a->run.quiet);
    cli_model_tell_size(m, a->model, a->size, &a->run);
    if (a->through_codec) FKT_TRY(open_codec(a, fkt_model_size(m), &pipeline, &codec));
    FKT_TRY(cli_open_for_model(&ds, &a->data, m, &a->run));
    FKT_TRY(fkt_model_take_names(&m, ds));
    FKT_TRY(cli_evaluate_model(&evaluated, m, ds, (enum fkt_filter)a->filter,
                               pipeline ? fkt_pipeline_codec(pipeline) : codec, threads, device, &progress->hook,
                               a->data.skip_bad ? &skipped : NULL));
    cli_progress_end(progress);
    cli_print_skipped(&skipped);
    FKT_TRY(print_model(a, m, device, &evaluated));
out:
    cli_evaluation_clear(&evaluated);
    fkt_skipped_clear(&skipped);
    fkt_dataset_free(ds);
    fkt_pipeline_free(pipeline);
    fkt_codec_free(codec);
    fkt_model_free(m);
    return st;
}

/* ---- a whole model ---- */

static fkt_status run_whole(const struct asked *a, struct cli_progress *progress, unsigned threads)
{
    if (a->release || a->codec || a->dim || a->through_codec || a->encodings || a->size)
        return fkt_fail(FKT_E_ARG, "a whole model is evaluated with --data alone: it has its encoders and its size");
    return cli_evaluate_whole(a->model, &a->data, a->settings.device, threads, &a->run, progress);
}

static fkt_status run_evaluate(const struct asked *a)
{
    struct cli_progress progress;
    unsigned threads;
    enum model_file file;
    fkt_status st;
    cli_progress_init(&progress, a->run.quiet);
    FKT_TRY(cli_threads(a->run.threads, &threads));
    FKT_TRY(which(a->model, &file));
    if (file == A_WHOLE) FKT_TRY(run_whole(a, &progress, threads));
    else FKT_TRY(file == A_HEAD ? run_head(a, &progress, threads) : run_model(a, &progress, threads));
out:
    cli_progress_end(&progress);
    return st;
}

int cli_evaluate(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {0};
    const struct cli_option table[] = {
        CLI_OPT_TEXT("model", &a.model, "FILE", 1,
                     "a model of 'fedkt train', a torchvision resnet18 as safetensors or "
                     "ONNX, a whole model that 'fedkt heads' exported, or a head of 'fedkt heads'"),
        CLI_OPT_TEXT(
            "release", &a.release, "FILE", 0,
            "for a head: the release that it was made from; for --through-codec: the release whose codec is used"),
        CLI_OPT_FLAG("through-codec", &a.through_codec,
                     "evaluate again with images encoded and decoded first; printed after the plain result"),
        CLI_OPT_TEXT("codec", &a.codec, "NAME", 0, "codec of --through-codec (default: the release's)"),
        CLI_OPT_WHOLE("dim", &a.dim, "D", 0, "its latent's length, for codecs that let you choose"),
        CLI_OPT_WHOLE("size", &a.size, "PX", 0,
                      "side of the images, for a file without it (default: 32, or 224 with ImageNet's stem)"),
        CLI_OPT_CHOICE("filter", &a.filter, fkt_filter_parse, "bilinear, bicubic, lanczos or box",
                       "how images are scaled for a model"),
        CLI_OPT_CHOICE_GIVEN("fit", &a.data.fit, fkt_fit_parse, "the model's, crop, pad or stretch", CLI_FIT_HELP,
                             &a.data.fit_given),
        CLI_DATA_ROWS(a.data, 1),
        CLI_ENCODINGS_ROW(a.encodings),
        CLI_WEIGHTS_ROWS(a.settings),
        CLI_RUN_ROWS(a.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    return code >= 0 ? code : cli_misuse(self, run_evaluate(&a));
}
