/* SPDX-License-Identifier: Apache-2.0 */
/* release.c - `fedkt release`: adds the sites' moments up, debits the ledger, draws the noise, writes the one file
 * that may leave. The order matters: every check comes before the ledger is debited. */
#include "cli/core/common.h"
#include "cli/core/startup.h"
#include "cli/core/verbs.h"

#include "base/alloc.h"
#include "base/output.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct asked {
    struct cli_run run;
    const char *task, *out, *calibration, *guide_calibration, *moments, *ledger, *dataset;
    uint64_t seed;
    int seeded, accept_weak;
    double budget_epsilon, budget_delta;
    int budget_epsilon_given, budget_delta_given;
};

struct pile { /* the sites' moments, added up */
    struct fkt_moments *total;
    struct fkt_records *records, **of_file; /* of all files, and of each: (sites) */
    size_t sites;
};

/* A record in two files would be in the sum twice, but the noise covers it once. */
static fkt_status refuse_shared(const struct pile *p, const char *const *files, size_t last)
{
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < last && st == FKT_OK; i++) {
        size_t shared = 0;
        FKT_TRY(fkt_records_merge(p->of_file[i], p->of_file[last], &shared)); /* the process ends anyway */
        if (shared)
            st = fkt_fail_hint(
                FKT_E_ARG, "list each file once; if two sites hold an image, make one of the files again without it",
                "moments '%s' and '%s' share %zu image%s, which would count twice", files[i], files[last], shared,
                shared == 1 ? "" : "s");
    }
out:
    return st;
}

static fkt_status add_site(struct pile *p, const struct fkt_pipeline *pipeline, const char *const *files, size_t i,
                           const char *out)
{
    const struct fkt_task *task = fkt_pipeline_task(pipeline);
    struct fkt_moments *site = NULL;
    size_t shared = 0;
    fkt_status st;
    FKT_TRY(cli_not_an_input(out, files[i]));
    FKT_TRY(fkt_pipeline_moments_new(pipeline, &site));
    FKT_TRY(fkt_records_new(&p->of_file[i], task->privacy.adjacency));
    FKT_TRY(fkt_moments_load(site, task, files[i], p->of_file[i]));
    FKT_TRY(fkt_records_merge(p->records, p->of_file[i], &shared));
    if (shared) FKT_TRY(refuse_shared(p, files, i));
    FKT_TRY(fkt_moments_merge(p->total, site));
out:
    fkt_moments_free(site);
    return st;
}

static fkt_status add_up(const struct asked *a, const struct fkt_pipeline *pipeline, struct pile *p)
{
    char *text = NULL;
    const char **files = NULL;
    size_t n;
    fkt_status st;
    FKT_TRY(fkt_pipeline_moments_new(pipeline, &p->total));
    FKT_TRY(fkt_records_new(&p->records, fkt_pipeline_task(pipeline)->privacy.adjacency));
    FKT_TRY(cli_split(a->moments, &text, &files, &n));
    FKT_TRY(fkt_alloc(&p->of_file, n));
    p->sites = n;
    for (size_t i = 0; i < n; i++) FKT_TRY(add_site(p, pipeline, files, i, a->out));
out:
    fkt_free(text);
    fkt_free(files);
    return st;
}

static void pile_clear(struct pile *p)
{
    for (size_t i = 0; i < p->sites; i++) fkt_records_free(p->of_file[i]);
    fkt_free(p->of_file);
    fkt_records_free(p->records);
    fkt_moments_free(p->total);
}

static fkt_status print_release(const struct asked *a, const struct fkt_release *r)
{
    const struct fkt_privacy_spec *p = &r->task.privacy;
    char *text = NULL;
    json_t *j;
    fkt_status st = FKT_OK;
    if (!a->run.json) {
        printf("release %s\nhash %s\n", a->out, r->sha256);
        cli_print_weak_release(r);
        if (r->insecure_seed) printf("NOT PRIVATE: the noise came from --insecure-seed\n");
        else
            printf("epsilon %g, delta %g (%s): protects %s\n", p->epsilon, p->delta, fkt_adjacency_name(p->adjacency),
                   fkt_adjacency_protects(p->adjacency));
        return st;
    }
    FKT_TRY(fkt_release_certificate(r, &text));
    j = json_loads(text, 0, NULL);
    json_object_set_new(j, "release", json_string(a->out));
    json_object_set_new(j, "release_sha256", json_string(r->sha256));
    FKT_TRY(cli_print_json(j));
out:
    fkt_string_free(text);
    return st;
}

/* A federation adds up by its own protocol, so that no party holds the exact moments of its sites. */
static fkt_status check_task(const struct fkt_task *t)
{
    if (!t->federation.sites) return FKT_OK;
    return fkt_fail_hint(FKT_E_MISMATCH, "make a task without --roster to add moments files up in one place",
                         "task '%s' is for a federation of %u sites, whose numbers leave them only under masks",
                         t->name, t->federation.sites);
}

/* Both numbers of the total budget, or neither: then the first release of a dataset is its whole budget. */
static fkt_status check_budget(const struct asked *a)
{
    if (a->budget_epsilon_given != a->budget_delta_given)
        return fkt_fail(FKT_E_ARG, "--budget-epsilon and --budget-delta must be given together");
    if (a->budget_epsilon_given && !(a->budget_epsilon > 0 && a->budget_delta > 0 && a->budget_delta < 1))
        return fkt_fail(FKT_E_ARG, "the budget needs --budget-epsilon above 0 and --budget-delta between 0 and 1");
    return a->budget_epsilon_given
               ? cli_accept_promise("total budget", a->budget_epsilon, a->budget_delta, a->accept_weak)
               : FKT_OK;
}

static fkt_status pay(const struct asked *a, const struct fkt_task *task, const struct fkt_privacy_plan *plan,
                      const struct pile *p, struct fkt_ledger *once, double *composed)
{
    struct fkt_ledger_charge charge = {.dataset = a->dataset ? a->dataset : task->name,
                                       .task_sha256 = task->sha256,
                                       .adjacency = task->privacy.adjacency,
                                       .mu = plan->mu,
                                       .budget_epsilon = a->budget_epsilon,
                                       .budget_delta = a->budget_delta,
                                       .most_epsilon = a->accept_weak ? 0 : FKT_PROMISE_EPSILON,
                                       .insecure_seed = a->seeded,
                                       .accounting = FKT_ACCOUNTING_GDP,
                                       .delta = task->privacy.delta,
                                       .task_name = task->name};
    struct fkt_ledger_spent spent = {0};
    fkt_status st;
    FKT_TRY(fkt_records_list(p->records, &charge.records, &charge.n_records));
    FKT_TRY(cli_hint_charge(fkt_ledger_file_pay(once, a->ledger, &charge, &spent), &charge, &spent, a->ledger));
    *composed = fkt_ledger_epsilon(task->privacy.delta, &spent);
out:
    return st;
}

/* Reserves space for the file, debits the ledger, draws noise, writes the file. A failure after the debit costs
 * budget, never privacy; a full disk is detected before it. */
static fkt_status pay_and_draw(const struct asked *a, const struct fkt_pipeline *pipeline, const struct pile *p,
                               struct fkt_release *r)
{
    const struct fkt_task *task = fkt_pipeline_task(pipeline);
    const struct fkt_calibration *calibration = fkt_pipeline_calibration(pipeline, 0);
    struct fkt_release_file *file = NULL;
    struct fkt_privacy_plan plan;
    struct fkt_round_facts facts = {(uint32_t)p->sites, (uint32_t)p->sites, 0, 0};
    struct fkt_ledger once;
    int paid = 0;
    fkt_status st;
    FKT_TRY(fkt_privacy_plan(&plan, &task->privacy));
    FKT_TRY(fkt_release_reserve(&file, task, calibration, &facts, a->out, a->run.force));
    FKT_TRY(pay(a, task, &plan, p, &once, &facts.composed_epsilon));
    paid = 1;
    FKT_TRY(fkt_release_make_into(r, task, calibration, p->total, &facts, &once, a->seeded ? &a->seed : NULL));
    FKT_TRY(fkt_release_write(file, r));
out:
    fkt_release_file_free(file);
    if (paid && st != FKT_OK) {
        struct fkt_failure e;
        fkt_failure_save(&e, st);
        st = fkt_fail_hint(st, "the ledger was debited for this draw; to draw again, raise --budget-epsilon", "%s",
                           e.text);
    }
    return st;
}

static fkt_status run_release(const struct asked *a)
{
    const struct fkt_part_files files = {a->calibration, a->guide_calibration};
    struct fkt_pipeline *pipeline = NULL;
    struct fkt_release r = {0};
    struct cli_progress progress;
    struct pile p = {0};
    fkt_status st;
    cli_progress_init(&progress, a->run.quiet);
    FKT_TRY(check_budget(a));
    FKT_TRY(cli_not_an_input(a->out, a->ledger));
    FKT_TRY(cli_not_an_input(a->out, a->task));
    FKT_TRY(cli_not_an_input(a->out, a->calibration));
    FKT_TRY(cli_not_an_input(a->out, a->guide_calibration));
    FKT_TRY(fkt_output_file(a->out, a->run.force)); /* before the ledger is debited for a file that cannot be written */
    FKT_TRY(cli_open_pipeline(&pipeline, a->task, &files, NULL));
    FKT_TRY(check_task(fkt_pipeline_task(pipeline)));
    FKT_TRY(cli_accept_task(fkt_pipeline_task(pipeline), a->accept_weak));
    FKT_TRY(add_up(a, pipeline, &p));
    FKT_TRY(cli_progress_check("before the ledger was debited")); /* from here on Ctrl-C does not stop the release */
    FKT_TRY(pay_and_draw(a, pipeline, &p, &r));
    FKT_TRY(print_release(a, &r));
out:
    pile_clear(&p);
    fkt_release_clear(&r);
    fkt_pipeline_free(pipeline);
    return st;
}

int cli_release(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {0};
    const struct cli_option table[] = {
        CLI_OPT_TEXT("task", &a.task, "FILE", 1, "the task"),
        CLI_OPT_TEXT("moments", &a.moments, "F,F,...", 1, "moments files of the sites; no image may be in two of them"),
        CLI_OPT_TEXT("ledger", &a.ledger, "FILE", 1,
                     "privacy ledger (made when absent): records what each dataset has spent, and which images it has"),
        CLI_OPT_TEXT("dataset", &a.dataset, "NAME", 0,
                     "the account to charge: all releases under this name add up, whatever their records, and an "
                     "image that the ledger knows under another name is refused (default: the task's name)"),
        CLI_OPT_TEXT("out", &a.out, "FILE", 1, "file for the release (safetensors)"),
        CLI_OPT_TEXT("calibration", &a.calibration, "FILE", 0, "the task's calibration (default: the codec's own)"),
        CLI_OPT_TEXT("guide-calibration", &a.guide_calibration, "FILE", 0,
                     "the calibration of the task's guide (default: its own)"),
        {CLI_REAL, "budget-epsilon", &a.budget_epsilon, "E",
         "total budget of the dataset over all releases (default: what its first release costs)", 0, NULL, NULL,
         &a.budget_epsilon_given},
        {CLI_REAL, "budget-delta", &a.budget_delta, "D", "delta of the total budget", 0, NULL, NULL,
         &a.budget_delta_given},
        {CLI_WHOLE, "insecure-seed", &a.seed, "S",
         "TESTS ONLY: noise from a known seed; the result is not private and is marked so", 0, NULL, NULL, &a.seeded},
        CLI_WEAK_ROW(a.accept_weak),
        CLI_RUN_ROWS(a.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    if (code >= 0) return code;
    cli_keep_secrets();
    return cli_misuse(self, run_release(&a));
}
