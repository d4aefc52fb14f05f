/* SPDX-License-Identifier: Apache-2.0 */
/* task_new.c - `fedkt task new`: a task from options. */
#include "cli/core/parts.h"
#include "cli/task/cohorts.h"
#include "cli/task/federation.h"
#include "cli/task/service.h"
#include "cli/task/task.h"

#include "base/alloc.h"

#include <stdio.h>
#include <time.h>

struct asked {
    struct cli_data data;
    struct cli_codec codec;
    struct cli_privacy privacy;
    struct cli_federation_asked federation;
    struct cli_service_asked service;
    struct cli_run run;
    const char *out, *classes, *name, *key;
};

/* The class list, from --classes or from the data. Sets *names, and the buffers that they point into. */
static fkt_status class_list(const struct asked *a, struct fkt_dataset **ds, char **text, const char ***names,
                             size_t *n)
{
    fkt_status st;
    if (!a->classes == !a->data.path)
        return fkt_fail(FKT_E_ARG, "give the class list with --classes, or a dataset that has all classes with --data");
    if (a->classes) return cli_split(a->classes, text, names, n);
    FKT_TRY(cli_open_data(ds, &a->data, NULL, &a->run));
    FKT_TRY(cli_class_names(*ds, names));
    *n = fkt_dataset_classes(*ds);
    fprintf(stderr, "fedkt: the class list was read from the data and will be published as it is; if it is not public "
                    "knowledge, give --classes\n");
out:
    return st;
}

/* With cohorts it is the task of their sum, not signed: sites do not take part in it. */
static fkt_status task_from(const struct asked *a, struct fkt_task *task, struct cli_cohorts *cohorts)
{
    struct fkt_dataset *ds = NULL;
    struct cli_parts parts = {0};
    struct fkt_task_choices choices;
    struct fkt_federation_choices federation;
    struct cli_service service;
    struct fkt_roster roster = {0};
    char *text = NULL;
    const char **names = NULL;
    double eps;
    size_t n;
    fkt_status st;
    FKT_TRY(cli_reals("epsilon", a->privacy.epsilon, &eps, 1, &n));
    FKT_TRY(cli_federation_choices(&a->federation, &federation, &roster));
    FKT_TRY(cli_service_choices(&a->service, &roster, (uint64_t)time(NULL), &service));
    if (federation.sites && !service.choices.address && federation.records == FKT_RECORDS_UNKNOWN)
        st = fkt_fail_hint(FKT_E_ARG, "give 1048575 or 1048577, or give --server",
                           "--records 1048576 means 'no bound is known' in a task without --server");
    FKT_TRY(st);
    FKT_TRY(cli_cohorts_plan(cohorts, &a->federation, &federation, &roster));
    FKT_TRY(cli_open_parts(&parts, &choices, &a->codec, &a->privacy, eps));
    FKT_TRY(class_list(a, &ds, &text, &names, &n));
    FKT_TRY(n > UINT32_MAX ? fkt_fail(FKT_E_ARG, "too many classes") : FKT_OK);
    choices.name = a->name;
    choices.classes = names;
    choices.n_classes = (uint32_t)n;
    choices.federation = federation.sites && !cohorts->division.number ? &federation : NULL;
    choices.service = service.choices.address && !cohorts->division.number ? &service.choices : NULL;
    FKT_TRY(fkt_task_make_into(task, &choices, parts.choice, parts.n));
    if (cohorts->division.number) FKT_TRY(fkt_task_divide(task, &cohorts->division, a->privacy.accept_weak));
    FKT_TRY(cli_check_promise(task, a->privacy.accept_weak));
    if (cohorts->division.number) FKT_TRY(cli_cohorts_make(cohorts, task, &federation, &service, a->key));
    else if (a->key) FKT_TRY(cli_task_sign_with(task, a->key));
out:
    fkt_roster_clear(&roster);
    fkt_free(text);
    fkt_free(names);
    fkt_dataset_free(ds);
    cli_parts_clear(&parts);
    if (st != FKT_OK) fkt_task_clear(task);
    return st;
}

/* The federation's settings, without the sites' keys. */
static json_t *federation_json(const struct fkt_federation *f)
{
    if (!f->sites) return json_null();
    return json_pack("{s:I s:I s:I s:I s:I s:I s:I s:s s:s}", "sites", (json_int_t)f->sites, "dropped",
                     (json_int_t)f->dropped, "corrupt", (json_int_t)f->corrupt, "degree", (json_int_t)f->degree,
                     "threshold", (json_int_t)f->threshold, "bits", (json_int_t)f->bits, "records",
                     (json_int_t)f->records, "noise", fkt_noise_name(f->noise), "keystream",
                     fkt_keystream_name(f->keystream));
}

static void print(const struct asked *a, const struct fkt_task *t)
{
    const struct fkt_service *s = &t->service;
    printf("task %s\nhash %s\n%u classes, %u px, ", a->out, t->sha256, t->n_classes, t->size);
    for (uint32_t p = 0; p < t->parts; p++) printf("%s %s, ", fkt_part_name(t->part[p].kind), t->part[p].identity);
    printf("%s%sepsilon %g, delta %g, %s\n", t->joined ? "joined, " : "", t->layout.pooled ? "pooled moments, " : "",
           t->privacy.epsilon, t->privacy.delta, fkt_adjacency_name(t->privacy.adjacency));
    if (t->federation.sites)
        printf("federation of %u sites: %u may be lost in a round, %u may collude with the server; %s\n",
               t->federation.sites, t->federation.dropped, t->federation.corrupt,
               t->federation.noise == FKT_NOISE_PLACE_DISTRIBUTED
                   ? "every site adds its noise share"
                   : "the server adds the noise, and sees the exact sum");
    if (s->address[0])
        printf("server %s, %s; %s\n", s->address, s->pin[0] ? s->pin : "not pinned yet",
               t->signature.there ? "signed" : "not signed yet");
    if (s->address[0] && !s->pin[0])
        printf("next: 'fedkt serve --key' adds the pin and signs it; send it to the sites after that\n");
    cli_print_weak(t);
    if (a->codec.calibration || a->codec.guide_calibration)
        printf("every site needs the task and the calibration file%s %s%s%s\n",
               a->codec.calibration && a->codec.guide_calibration ? "s" : "",
               a->codec.calibration ? a->codec.calibration : a->codec.guide_calibration,
               a->codec.calibration && a->codec.guide_calibration ? " and " : "",
               a->codec.calibration && a->codec.guide_calibration ? a->codec.guide_calibration : "");
    if (s->seeded) printf("NOT PRIVATE: all randomness comes from --insecure-seed, which is in the task\n");
}

static fkt_status run(const struct asked *a)
{
    struct cli_cohorts cohorts = {.out = a->out, .run = &a->run};
    struct fkt_task task = {0};
    fkt_status st;
    FKT_TRY(cli_not_an_input(a->out, a->key));
    FKT_TRY(cli_not_an_input(a->out, a->federation.roster));
    FKT_TRY(task_from(a, &task, &cohorts));
    if (cohorts.division.number) {
        st = cli_cohorts_print(&cohorts, &task);
        goto out;
    }
    FKT_TRY(fkt_task_save(&task, a->out, a->run.force));
    if (task.federation.sites) cli_print_no_loss(task.federation.dropped, &a->run);
    if (a->run.json) {
        json_t *j = json_pack("{s:s s:s s:i s:i s:o s:s? s:s? s:b s:b}", "task", a->out, "sha256", task.sha256,
                              "classes", (int)task.n_classes, "length", (int)fkt_layout_length(&task.layout),
                              "federation", federation_json(&task.federation), "server",
                              task.service.address[0] ? task.service.address : NULL, "pin",
                              task.service.pin[0] ? task.service.pin : NULL, "signed", task.signature.there, "private",
                              cli_task_is_private(&task));
        cli_mark_weak(j, &task);
        FKT_TRY(cli_print_json(j));
    } else print(a, &task);
out:
    cli_cohorts_clear(&cohorts);
    fkt_task_clear(&task);
    return st;
}

int cli_task_new(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {.codec = CLI_CODEC_DEFAULTS};
    const struct cli_option table[] = {
        CLI_OPT_TEXT("out", &a.out, "FILE", 1, "file for the task; with --cohort-size a folder"),
        CLI_OPT_TEXT("name", &a.name, "TEXT", 0, "name of the task"),
        CLI_OPT_TEXT("classes", &a.classes, "A,B,...", 0, "the class list, instead of the classes found in --data"),
        CLI_OPT_TEXT("key", &a.key, "FILE", 0, "sign it at once with this key, made by 'fedkt keygen'"),
        CLI_DATA_ROWS(a.data, 0),
        CLI_CODEC_ROWS(a.codec, CLI_TASK_CODEC),
        CLI_GUIDE_ROWS(a.codec),
        CLI_PRIVACY_ROWS(a.privacy, 1),
        CLI_WEAK_ROW(a.privacy.accept_weak),
        CLI_FEDERATION_ROWS(a.federation),
        CLI_SERVICE_ROWS(a.service),
        CLI_RUN_ROWS(a.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    a.codec.settings.device = CLI_DEVICE_CPU; /* no network runs: no card is opened */
    return code >= 0 ? code : cli_misuse(self, run(&a));
}
