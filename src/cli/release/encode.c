/* SPDX-License-Identifier: Apache-2.0 */
/* encode.c - `fedkt encode | moments`: the pipeline's stages at a site, with files between them. */
#include "cli/core/common.h"
#include "cli/core/launch.h"
#include "cli/core/verbs.h"

#include "base/output.h"

#include <stdio.h>
#include <string.h>

struct asked {
    struct cli_data data;
    struct cli_codec codec;
    struct cli_run run;
    const char *task, *out, *latents, *encodings;
};

/* Reports outputs that cannot or must not be written before the work begins. */
static fkt_status check_out(const struct asked *a)
{
    fkt_status st;
    if (!cli_first_rank()) return FKT_OK;
    FKT_TRY(cli_not_an_input(a->out, a->task));
    FKT_TRY(cli_not_an_input(a->out, a->data.path));
    FKT_TRY(cli_not_an_input(a->out, a->latents));
    FKT_TRY(cli_not_an_input(a->out, a->codec.calibration));
    FKT_TRY(cli_not_an_input(a->out, a->codec.guide_calibration));
    FKT_TRY(cli_not_an_input(a->out, a->codec.settings.weights));
    FKT_TRY(cli_not_an_input(a->out, a->codec.settings.guide_weights));
    FKT_TRY(fkt_output_file(a->out, a->run.force));
out:
    return st;
}

static void print_networks(const struct asked *a, const struct fkt_pipeline *w)
{
    for (uint32_t p = 0; p < fkt_pipeline_task(w)->parts; p++)
        cli_print_dtype(&a->codec.settings, fkt_pipeline_encoder(w, p), &a->run);
}

/* The networks of a task with a guide; NULL, an absent key, for a codec alone. */
static json_t *parts_json(const struct fkt_pipeline *w)
{
    const struct fkt_task *t = fkt_pipeline_task(w);
    json_t *j = t->parts > 1 || t->part[0].kind == FKT_PART_GUIDE ? json_array() : NULL;
    for (uint32_t p = 0; j && p < t->parts; p++) {
        const struct fkt_codec *c = fkt_pipeline_encoder(w, p);
        json_array_append_new(j, json_pack("{s:s s:s s:i s:i s:s*}", "kind", fkt_part_name(t->part[p].kind), "name",
                                           t->part[p].name, "dim", (int)t->part[p].dim, "length",
                                           (int)t->part[p].coordinates.length, "dtype",
                                           c ? fkt_codec_dtype_name(fkt_codec_dtype_used(c)) : NULL));
    }
    return j;
}

static fkt_status run_encode(const void *ctx)
{
    const struct asked *a = ctx;
    const struct fkt_part_files files = {a->codec.calibration, a->codec.guide_calibration};
    struct fkt_pipeline *pipeline = NULL;
    struct fkt_dataset *ds = NULL;
    struct fkt_skipped skipped = {0};
    struct cli_progress progress;
    struct fkt_pipeline_options o = {
        .progress = &progress.hook, .skipped = a->data.skip_bad ? &skipped : NULL, .ranks = cli_ranks()};
    fkt_status st;
    cli_progress_init(&progress, a->run.quiet);
    FKT_TRY(cli_threads(a->run.threads, &o.threads));
    FKT_TRY(check_out(a));
    FKT_TRY(cli_open_encodings(&o.encodings, a->encodings));
    FKT_TRY(cli_open_pipeline(&pipeline, a->task, &files, &a->codec.settings));
    print_networks(a, pipeline);
    FKT_TRY(cli_open_data(&ds, &a->data, fkt_pipeline_task(pipeline), &a->run));
    FKT_TRY(fkt_pipeline_encode(pipeline, ds, NULL, 0, a->out, a->run.force, &o));
    cli_progress_end(&progress);
    cli_print_skipped(&skipped);
    if (a->run.json)
        FKT_TRY(cli_print_json(json_pack(
            "{s:s s:I s:I s:i s:s s:o s:o* s:b}", "latents", a->out, "records",
            (json_int_t)(fkt_dataset_size(ds) - skipped.count), "skipped", (json_int_t)skipped.count, "dim",
            (int)fkt_codec_dim(fkt_pipeline_encoder(pipeline, 0)), "codec_dtype",
            fkt_codec_dtype_name(fkt_codec_dtype_used(fkt_pipeline_encoder(pipeline, 0))), "device",
            cli_codec_device_json(fkt_pipeline_encoder(pipeline, 0)), "parts", parts_json(pipeline), "secret", 1)));
    else
        printf("%zu latents in %s (private: must not leave this site)\n", fkt_dataset_size(ds) - skipped.count, a->out);
out:
    cli_progress_end(&progress);
    st = cli_close_encodings(o.encodings, a->encodings, &a->run, st);
    fkt_skipped_clear(&skipped);
    fkt_dataset_free(ds);
    fkt_pipeline_free(pipeline);
    return st;
}

int cli_encode(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {0};
    const struct cli_option table[] = {
        CLI_OPT_TEXT("task", &a.task, "FILE", 1, "the task"),
        CLI_OPT_TEXT("out", &a.out, "FILE", 1, "file for the latents (safetensors)"),
        CLI_OPT_TEXT("calibration", &a.codec.calibration, "FILE", 0,
                     "the task's calibration (default: the codec's own)"),
        CLI_OPT_TEXT("guide-calibration", &a.codec.guide_calibration, "FILE", 0,
                     "the calibration of the task's guide (default: its own)"),
        CLI_DATA_ROWS(a.data, 1),
        CLI_ENCODINGS_ROW(a.encodings),
        CLI_WEIGHTS_ROWS(a.codec.settings),
        CLI_RUN_ROWS(a.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    return code >= 0 ? code : cli_on_ranks(self, run_encode, &a);
}

/* Counts records and classes, so that a site can check that all its folders were read. */
static fkt_status count_records(struct fkt_moments *m, int64_t *records, uint32_t *held)
{
    const struct fkt_moments_layout *layout = fkt_moments_layout(m);
    const int64_t *packed;
    fkt_status st = fkt_moments_packed(m, &packed);
    *records = 0;
    *held = 0;
    for (uint32_t k = 0; st == FKT_OK && k < fkt_moments_classes(m); k++) {
        const int64_t n = packed[fkt_layout_count(layout, fkt_moments_classes(m), k)];
        *records += n;
        *held += n > 0;
    }
    return st;
}

static fkt_status run_moments(const void *ctx)
{
    const struct asked *a = ctx;
    const struct fkt_part_files files = {a->codec.calibration, a->codec.guide_calibration};
    struct fkt_pipeline *pipeline = NULL;
    struct fkt_dataset *ds = NULL;
    struct fkt_moments *m = NULL;
    struct fkt_records *records = NULL;
    struct fkt_skipped skipped = {0};
    struct cli_progress progress;
    struct fkt_pipeline_options o = {
        .progress = &progress.hook, .skipped = a->data.skip_bad ? &skipped : NULL, .ranks = cli_ranks()};
    const struct fkt_task *task;
    char hash[FKT_SHA256_HEX];
    int64_t counted;
    uint32_t held;
    fkt_status st;
    cli_progress_init(&progress, a->run.quiet);
    if (!a->latents == !a->data.path) {
        st = fkt_fail(FKT_E_ARG, "give either --data or --latents");
        goto out;
    }
    if (a->latents && a->encodings) {
        st = fkt_fail(FKT_E_ARG, "--encodings is for images: latents are encoded already");
        goto out;
    }
    FKT_TRY(cli_threads(a->run.threads, &o.threads));
    FKT_TRY(check_out(a));
    FKT_TRY(cli_open_encodings(&o.encodings, a->encodings));
    FKT_TRY(cli_open_pipeline(&pipeline, a->task, &files, a->latents ? NULL : &a->codec.settings));
    task = fkt_pipeline_task(pipeline);
    FKT_TRY(fkt_pipeline_moments_new(pipeline, &m));
    FKT_TRY(fkt_records_new(&records, task->privacy.adjacency));
    o.records = records;
    if (a->latents) {
        if (!cli_first_rank()) goto out; /* reading numbers is quick */
        FKT_TRY(fkt_pipeline_latents(pipeline, a->latents, m, records));
    } else {
        print_networks(a, pipeline);
        FKT_TRY(cli_open_data(&ds, &a->data, task, &a->run));
        FKT_TRY(fkt_pipeline_moments(pipeline, ds, NULL, 0, m, &o));
    }
    if (!cli_first_rank()) goto out;
    FKT_TRY(fkt_moments_save(m, task, records, a->out, a->run.force));
    FKT_TRY(fkt_moments_sha256(m, hash));
    cli_progress_end(&progress);
    cli_print_skipped(&skipped);
    cli_print_copies(records, task->privacy.adjacency);
    cli_print_limit(&a->data, task->privacy.adjacency);
    FKT_TRY(count_records(m, &counted, &held));
    if (a->run.json)
        FKT_TRY(cli_print_json(json_pack(
            "{s:s s:s s:I s:i s:i s:I s:I s:s* s:o* s:o* s:b}", "moments", a->out, "moments_sha256", hash, "records",
            (json_int_t)counted, "classes", (int)task->n_classes, "length", (int)fkt_pipeline_length(pipeline),
            "skipped", (json_int_t)skipped.count, "copies", (json_int_t)fkt_records_copies(records), "codec_dtype",
            a->latents ? NULL : fkt_codec_dtype_name(fkt_codec_dtype_used(fkt_pipeline_encoder(pipeline, 0))), "device",
            a->latents ? NULL : cli_codec_device_json(fkt_pipeline_encoder(pipeline, 0)), "parts", parts_json(pipeline),
            "secret", 1)));
    else
        printf("moments of %lld records in %u of %u classes in %s (private: no noise yet)\nhash %s\n",
               (long long)counted, held, task->n_classes, a->out, hash);
out:
    cli_progress_end(&progress);
    st = cli_close_encodings(o.encodings, a->encodings, &a->run, st);
    fkt_skipped_clear(&skipped);
    fkt_records_free(records);
    fkt_moments_free(m);
    fkt_dataset_free(ds);
    fkt_pipeline_free(pipeline);
    return st;
}

int cli_moments(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {0};
    const struct cli_option table[] = {
        CLI_OPT_TEXT("task", &a.task, "FILE", 1, "the task"),
        CLI_OPT_TEXT("out", &a.out, "FILE", 1, "file for the moments (safetensors)"),
        CLI_OPT_TEXT("latents", &a.latents, "FILE", 0, "latents made by 'fedkt encode', instead of --data"),
        CLI_OPT_TEXT("calibration", &a.codec.calibration, "FILE", 0,
                     "the task's calibration (default: the codec's own)"),
        CLI_OPT_TEXT("guide-calibration", &a.codec.guide_calibration, "FILE", 0,
                     "the calibration of the task's guide (default: its own)"),
        CLI_DATA_ROWS(a.data, 0),
        CLI_ENCODINGS_ROW(a.encodings),
        CLI_WEIGHTS_ROWS(a.codec.settings),
        CLI_RUN_ROWS(a.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    return code >= 0 ? code : cli_on_ranks(self, run_moments, &a);
}
