/* SPDX-License-Identifier: Apache-2.0 */
/* verb_stages.c - `fedkt task | encode | moments`: the stages of the walk at a site, files in between. */
#include "cli/common.h"
#include "cli/federation.h"
#include "cli/verbs.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

struct asked {
    struct cli_data data;
    struct cli_codec codec;
    struct cli_privacy privacy;
    struct cli_federation_asked federation;
    struct cli_run run;
    const char *task, *out, *classes, *name, *latents;
};

/* ---- task ---- */

static fkt_status task_from(const struct asked *a, struct fkt_task *task)
{
    struct fkt_dataset *ds = NULL;
    struct fkt_codec *codec = NULL;
    struct fkt_calibration cal = {0};
    struct fkt_privacy_spec privacy;
    struct fkt_federation_choices federation;
    uint8_t *roster = NULL;
    char *text = NULL;
    const char **names = NULL;
    double eps;
    size_t n;
    fkt_status st;
    FKT_TRY(cli_reals("epsilon", a->privacy.epsilon, &eps, 1, &n));
    FKT_TRY(cli_privacy_spec(&a->privacy, eps, &privacy));
    FKT_TRY(cli_federation_choices(&a->federation, &federation, &roster));
    FKT_TRY(cli_open_codec(&a->codec, &codec, &cal));
    if (!a->classes == !a->data.path) {
        st = fkt_fail(FKT_E_ARG, "give the class list with --classes, or a dataset that has all classes with --data");
        goto out;
    }
    if (a->classes) {
        FKT_TRY(cli_split(a->classes, &text, &names, &n));
    } else {
        FKT_TRY(cli_open_data(&ds, &a->data, NULL));
        FKT_TRY(cli_class_names(ds, &names));
        n = fkt_dataset_classes(ds);
        fprintf(stderr,
                "fedkt: the class list was read from the data and will be published as it is; if it is not public "
                "knowledge, give --classes\n");
    }
    FKT_TRY(cli_make_task(task, a->name, names, n, &a->codec, codec, &cal, &privacy,
                          federation.sites ? &federation : NULL));
out:
    fkt_free(roster);
    fkt_free(text);
    fkt_free(names);
    fkt_dataset_free(ds);
    fkt_codec_free(codec);
    fkt_calibration_release(&cal);
    return st;
}

/* What the sites agreed to, without their keys. */
static json_t *federation_json(const struct fkt_federation *f)
{
    if (!f->sites) return json_null();
    return json_pack("{s:I s:I s:I s:I s:I s:I s:I s:s s:s}", "sites", (json_int_t)f->sites, "dropped",
                     (json_int_t)f->dropped, "corrupt", (json_int_t)f->corrupt, "degree", (json_int_t)f->degree,
                     "threshold", (json_int_t)f->threshold, "bits", (json_int_t)f->bits, "records",
                     (json_int_t)f->records, "noise", fkt_noise_name(f->noise), "keystream",
                     fkt_keystream_name(f->keystream));
}

static fkt_status run_task(const struct asked *a)
{
    struct fkt_task task = {0};
    fkt_status st;
    FKT_TRY(task_from(a, &task));
    FKT_TRY(fkt_task_save(&task, a->out, a->run.force));
    if (task.federation.sites) cli_tell_no_loss(task.federation.dropped, &a->run);
    if (a->run.json)
        FKT_TRY(cli_print_json(json_pack("{s:s s:s s:i s:i s:o}", "task", a->out, "sha256", task.sha256, "classes",
                                         (int)task.n_classes, "length", (int)task.coordinates.length, "federation",
                                         federation_json(&task.federation))));
    else
        printf("task %s\nhash %s\n%u classes, %u px, codec %s, epsilon %g, delta %g, %s\n", a->out, task.sha256,
               task.n_classes, task.size, task.codec_identity, task.privacy.epsilon, task.privacy.delta,
               fkt_adjacency_name(task.privacy.adjacency));
    if (!a->run.json && task.federation.sites)
        printf("federation of %u sites: %u may be lost, %u may collude; %u neighbours each, threshold %u, sums of %u "
               "bits, "
               "%s noise\n",
               task.federation.sites, task.federation.dropped, task.federation.corrupt, task.federation.degree,
               task.federation.threshold, task.federation.bits, fkt_noise_name(task.federation.noise));
    if (!a->run.json && a->codec.calibration)
        printf("every site needs the task and the calibration file %s\n", a->codec.calibration);
out:
    fkt_task_release(&task);
    return st;
}

int cli_task(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {.codec = CLI_CODEC_DEFAULTS};
    const struct cli_option table[] = {
        CLI_OPT_TEXT("out", &a.out, "FILE", 1, "where the task goes"),
        CLI_OPT_TEXT("name", &a.name, "TEXT", 0, "a name for people"),
        CLI_OPT_TEXT("classes", &a.classes, "A,B,...", 0, "the class list, instead of the classes found in --data"),
        CLI_DATA_ROWS(a.data, 0),
        CLI_CODEC_ROWS(a.codec),
        CLI_PRIVACY_ROWS(a.privacy, 1),
        CLI_FEDERATION_ROWS(a.federation),
        CLI_RUN_ROWS(a.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    return code >= 0 ? code : cli_misuse(self, run_task(&a));
}

/* ---- encode, moments ---- */

/* What cannot or must not be written shows before the work. */
static fkt_status check_out(const struct asked *a)
{
    fkt_status st;
    FKT_TRY(cli_not_an_input(a->out, a->task));
    FKT_TRY(cli_not_an_input(a->out, a->data.path));
    FKT_TRY(cli_not_an_input(a->out, a->latents));
    FKT_TRY(cli_not_an_input(a->out, a->codec.calibration));
    FKT_TRY(cli_not_an_input(a->out, a->codec.means.weights));
    FKT_TRY(cli_out_file(a->out, a->run.force));
out:
    return st;
}

static fkt_status run_encode(const struct asked *a)
{
    struct fkt_walk *walk = NULL;
    struct fkt_dataset *ds = NULL;
    struct fkt_skipped skipped = {0};
    struct cli_progress progress;
    struct fkt_walk_options o = {.progress = &progress.hook, .skipped = a->data.skip_bad ? &skipped : NULL};
    fkt_status st;
    cli_progress_init(&progress, a->run.quiet);
    FKT_TRY(cli_threads(a->run.threads, &o.threads));
    FKT_TRY(check_out(a));
    FKT_TRY(cli_open_walk(&walk, a->task, a->codec.calibration, &a->codec.means));
    cli_tell_dtype(&a->codec.means, fkt_walk_codec(walk), &a->run);
    FKT_TRY(cli_open_data(&ds, &a->data, fkt_walk_task(walk)));
    FKT_TRY(fkt_walk_encode(walk, ds, NULL, 0, a->out, a->run.force, &o));
    cli_progress_end(&progress);
    cli_tell_skipped(&skipped);
    if (a->run.json)
        FKT_TRY(cli_print_json(
            json_pack("{s:s s:I s:I s:i s:s s:b}", "latents", a->out, "records",
                      (json_int_t)(fkt_dataset_size(ds) - skipped.count), "skipped", (json_int_t)skipped.count, "dim",
                      (int)fkt_codec_dim(fkt_walk_codec(walk)), "codec_dtype",
                      fkt_codec_dtype_name(fkt_codec_dtype_used(fkt_walk_codec(walk))), "secret", 1)));
    else
        printf("%zu latents in %s (private: must not leave this site)\n", fkt_dataset_size(ds) - skipped.count, a->out);
out:
    cli_progress_end(&progress);
    fkt_skipped_release(&skipped);
    fkt_dataset_free(ds);
    fkt_walk_free(walk);
    return st;
}

int cli_encode(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {0};
    const struct cli_option table[] = {
        CLI_OPT_TEXT("task", &a.task, "FILE", 1, "the task"),
        CLI_OPT_TEXT("out", &a.out, "FILE", 1, "where the latents go (safetensors)"),
        CLI_OPT_TEXT("calibration", &a.codec.calibration, "FILE", 0,
                     "the task's calibration (default: the codec's own)"),
        CLI_DATA_ROWS(a.data, 1),
        CLI_MEANS_ROWS(a.codec.means),
        CLI_RUN_ROWS(a.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    return code >= 0 ? code : cli_misuse(self, run_encode(&a));
}

/* How many records, in how many classes: what a site looks at to see that all its folders were read. */
static fkt_status count_records(struct fkt_moments *m, int64_t *records, uint32_t *held)
{
    size_t block = fkt_moments_block(fkt_moments_length(m));
    const int64_t *packed;
    fkt_status st = fkt_moments_packed(m, &packed);
    *records = 0;
    *held = 0;
    for (uint32_t k = 0; st == FKT_OK && k < fkt_moments_classes(m); k++) {
        *records += packed[k * block];
        *held += packed[k * block] > 0;
    }
    return st;
}

static fkt_status run_moments(const struct asked *a)
{
    struct fkt_walk *walk = NULL;
    struct fkt_dataset *ds = NULL;
    struct fkt_moments *m = NULL;
    struct fkt_skipped skipped = {0};
    struct cli_progress progress;
    struct fkt_walk_options o = {.progress = &progress.hook, .skipped = a->data.skip_bad ? &skipped : NULL};
    const struct fkt_task *task;
    char hash[FKT_SHA256_HEX];
    int64_t records;
    uint32_t held;
    fkt_status st;
    cli_progress_init(&progress, a->run.quiet);
    if (!a->latents == !a->data.path) {
        st = fkt_fail(FKT_E_ARG, "give either --data or --latents");
        goto out;
    }
    FKT_TRY(cli_threads(a->run.threads, &o.threads));
    FKT_TRY(check_out(a));
    FKT_TRY(cli_open_walk(&walk, a->task, a->codec.calibration, a->latents ? NULL : &a->codec.means));
    task = fkt_walk_task(walk);
    FKT_TRY(fkt_walk_moments_new(walk, &m));
    if (a->latents) {
        FKT_TRY(fkt_walk_latents(walk, a->latents, m));
    } else {
        cli_tell_dtype(&a->codec.means, fkt_walk_codec(walk), &a->run);
        FKT_TRY(cli_open_data(&ds, &a->data, task));
        FKT_TRY(fkt_walk_moments(walk, ds, NULL, 0, m, &o));
    }
    FKT_TRY(fkt_moments_save(m, task, a->out, a->run.force));
    FKT_TRY(fkt_moments_sha256(m, hash));
    cli_progress_end(&progress);
    cli_tell_skipped(&skipped);
    FKT_TRY(count_records(m, &records, &held));
    if (a->run.json)
        FKT_TRY(cli_print_json(json_pack(
            "{s:s s:s s:I s:i s:i s:I s:s* s:b}", "moments", a->out, "moments_sha256", hash, "records",
            (json_int_t)records, "classes", (int)task->n_classes, "length", (int)task->coordinates.length, "skipped",
            (json_int_t)skipped.count, "codec_dtype",
            a->latents ? NULL : fkt_codec_dtype_name(fkt_codec_dtype_used(fkt_walk_codec(walk))), "secret", 1)));
    else
        printf("moments of %lld records in %u of %u classes in %s (private: no noise yet)\nhash %s\n%s",
               (long long)records, held, task->n_classes, a->out, hash,
               a->data.limit ? "with --limit the promise is about the records that were kept\n" : "");
out:
    cli_progress_end(&progress);
    fkt_skipped_release(&skipped);
    fkt_moments_free(m);
    fkt_dataset_free(ds);
    fkt_walk_free(walk);
    return st;
}

int cli_moments(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {0};
    const struct cli_option table[] = {
        CLI_OPT_TEXT("task", &a.task, "FILE", 1, "the task"),
        CLI_OPT_TEXT("out", &a.out, "FILE", 1, "where the moments go (safetensors)"),
        CLI_OPT_TEXT("latents", &a.latents, "FILE", 0, "latents made by 'fedkt encode', instead of --data"),
        CLI_OPT_TEXT("calibration", &a.codec.calibration, "FILE", 0,
                     "the task's calibration (default: the codec's own)"),
        CLI_DATA_ROWS(a.data, 0),
        CLI_MEANS_ROWS(a.codec.means),
        CLI_RUN_ROWS(a.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    return code >= 0 ? code : cli_misuse(self, run_moments(&a));
}
