/* SPDX-License-Identifier: Apache-2.0 */
/* join.c - `fedkt join`: options for fkt_join (fedkt/join.h). Events go to standard error (join_progress.c), the result
 * to standard output (join_print.c).
 *
 * Stopping it at any moment (Ctrl-C, kill, power) loses nothing: the same command continues. */
#include "cli/federation/join.h"
#include "cli/core/startup.h"
#include "cli/core/verbs.h"
#include "cli/task/public_key.h"

#include <stdint.h>

static fkt_status check_budget(const struct cli_join_asked *a)
{
    if (a->budget_epsilon_given != a->budget_delta_given)
        return fkt_fail_hint(FKT_E_ARG, "give both; the delta can be the task's ('fedkt task show')",
                             "--budget-epsilon and --budget-delta must be given together");
    if (a->budget_epsilon_given && !(a->budget_epsilon > 0 && a->budget_delta > 0 && a->budget_delta < 1))
        return fkt_fail(FKT_E_ARG, "the budget needs --budget-epsilon above 0 and --budget-delta between 0 and 1");
    return a->budget_epsilon_given
               ? cli_accept_promise("total budget", a->budget_epsilon, a->budget_delta, a->accept_weak)
               : FKT_OK;
}

/* Borrows a and j; operator_key (FKT_SA_KEY) is filled when one was given. */
static fkt_status fill_spec(struct fkt_join_spec *s, const struct cli_join_asked *a, struct cli_join *j,
                            uint8_t *operator_key)
{
    fkt_status st;
    *s = (struct fkt_join_spec){.task = a->task,
                                .key = a->key,
                                .data = a->data.path,
                                .data_options = cli_data_options(&a->data),
                                .calibration = a->calibration,
                                .guide_calibration = a->guide_calibration,
                                .encodings = a->encodings,
                                .ledger = a->ledger,
                                .dataset = a->dataset,
                                .budget_epsilon = a->budget_epsilon,
                                .budget_delta = a->budget_delta,
                                .state = a->state,
                                .out = a->out,
                                .force = a->run.force,
                                .accept_weak = a->accept_weak,
                                .accept_insecure_seed = a->insecure_seed,
                                .patience_seconds = (uint32_t)a->patience,
                                .progress = &j->progress.hook,
                                .stop = cli_stop_flag(),
                                .event = cli_join_event,
                                .self = j};
    cli_codec_settings(&a->settings, &s->settings);
    FKT_TRY(a->patience > UINT32_MAX / 1000 ? fkt_fail(FKT_E_ARG, "--patience is too long") : FKT_OK);
    FKT_TRY(cli_threads(a->run.threads, &s->threads));
    FKT_TRY(check_budget(a));
    if (a->operator_key) {
        FKT_TRY(cli_public_key("operator", a->operator_key, operator_key));
        s->operator_key = operator_key;
    }
out:
    return st;
}

static fkt_status dry_run(const struct fkt_join_spec *spec, const struct cli_join *j, int *over)
{
    struct fkt_join_preview p = {0};
    fkt_status st = fkt_join_preview(spec, &p);
    if (st == FKT_OK) st = cli_join_print_preview(j, &p);
    *over = p.over;
    fkt_join_preview_clear(&p);
    return st;
}

static int run(const struct cli_command *self, const struct cli_join_asked *a)
{
    struct cli_join j = {.a = a};
    struct fkt_join_spec spec;
    struct fkt_join_result r = {0};
    uint8_t operator_key[FKT_SA_KEY];
    struct fkt_failure why;
    fkt_status st;
    int code, over;
    cli_progress_init(&j.progress, a->run.quiet);
    FKT_TRY(fill_spec(&spec, a, &j, operator_key));
    st = a->dry_run ? dry_run(&spec, &j, &r.over) : fkt_join(&spec, &r);
    cli_progress_end(&j.progress);
    if (st == FKT_E_BUDGET && j.refused.status == st) st = fkt_failure_restore(&j.refused);
    if (r.out) {
        fkt_failure_save(&why, st);
        FKT_TRY(cli_join_print_result(&j, &r));
        st = fkt_failure_restore(&why);
    }
out:
    code = cli_misuse(self, st);
    over = r.over;
    fkt_join_result_clear(&r);
    return over ? CLI_OVER : code;
}

int cli_join(const struct cli_command *self, int argc, char **argv)
{
    struct cli_join_asked a = {0};
    const struct cli_option table[] = {
        CLI_OPT_TEXT("task", &a.task, "FILE", 1, "the task, signed by the operator"),
        CLI_OPT_TEXT("key", &a.key, "FILE", 1,
                     "this site's key, made by 'fedkt keygen'; it must be on the task's roster"),
        CLI_OPT_TEXT("operator", &a.operator_key, "KEY", 0,
                     "the operator's public key, 64 digits or a file: it must have signed the task"),
        CLI_OPT_FLAG("dry-run", &a.dry_run,
                     "print what would be sent and its privacy cost; send nothing, and write nothing but --encodings"),
        CLI_OPT_WHOLE("patience", &a.patience, "S", 0,
                      "give up when the server is unreachable for so many seconds (default: wait)"),
        CLI_OPT_FLAG("accept-insecure-seed", &a.insecure_seed,
                     "TESTS ONLY: take part in a task with known randomness; nothing in it is private"),
        CLI_WEAK_ROW(a.accept_weak),
        CLI_DATA_ROWS(a.data, 1),
        CLI_ENCODINGS_ROW(a.encodings),
        CLI_WEIGHTS_ROWS(a.settings),
        CLI_OPT_TEXT("calibration", &a.calibration, "FILE", 0, "the task's calibration (default: the codec's own)"),
        CLI_OPT_TEXT("guide-calibration", &a.guide_calibration, "FILE", 0,
                     "the calibration of the task's guide (default: its own)"),
        CLI_OPT_HEAD("what it costs"),
        CLI_OPT_TEXT("ledger", &a.ledger, "FILE", 0,
                     "records what each dataset has spent, and which images it has; made when absent "
                     "(default: ledger.db under $XDG_DATA_HOME/fedkt or ~/.local/share/fedkt)"),
        CLI_OPT_TEXT("dataset", &a.dataset, "NAME", 0,
                     "the account to charge: all tasks under this name add up, whatever their records, and an "
                     "image that the ledger knows under another name is refused (default: the task's name)"),
        {CLI_REAL, "budget-epsilon", &a.budget_epsilon, "E",
         "total budget of the dataset over all tasks (default: what its first task costs)", 0, NULL, NULL,
         &a.budget_epsilon_given},
        {CLI_REAL, "budget-delta", &a.budget_delta, "D", "delta of the total budget", 0, NULL, NULL,
         &a.budget_delta_given},
        CLI_OPT_HEAD("files"),
        CLI_OPT_TEXT("state", &a.state, "FILE", 0,
                     "what this site needs to continue after a crash; SECRET while a round runs (default: "
                     "under $XDG_STATE_HOME/fedkt or ~/.local/state/fedkt, a file for each task)"),
        CLI_OPT_TEXT(
            "out", &a.out, "DIR", 0,
            "release, certificate, transparency log, samples and this site's receipt (default: beside the state)"),
        CLI_RUN_ROWS(a.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    cli_keep_secrets();
    return code >= 0 ? code : run(self, &a);
}
