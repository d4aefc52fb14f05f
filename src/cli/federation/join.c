/* SPDX-License-Identifier: Apache-2.0 */
/* join.c - `fedkt join`: one site's part in a federation, from its images to a release that it has checked.
 *
 *   at home (join_home.c) -> state file opened, a round taken up where it stood -> server, until the task is over
 *   -> files, receipt, verdict (join_result.c)
 *
 * Stopping it at any moment (Ctrl-C, kill, power) loses nothing: the same command goes on where it was. */
#include "cli/federation/join.h"
#include "cli/core/startup.h"
#include "cli/core/verbs.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static fkt_status open_state(struct cli_join *j)
{
    struct fkt_client_spec spec = {.task = &j->task,
                                   .secret = j->key.secret,
                                   .state = j->state,
                                   .ledger = j->ledger,
                                   .budget_epsilon = j->a->budget_epsilon,
                                   .budget_delta = j->a->budget_delta,
                                   .most_epsilon = j->a->accept_weak ? 0 : FKT_PROMISE_EPSILON,
                                   .dataset = j->dataset,
                                   .records = j->of,
                                   .moments = j->exact};
    fkt_status st;
    FKT_TRY(fkt_client_open(&j->client, &spec));
    fkt_client_endpoint(j->client, &j->side);
    fkt_moments_free(j->moments); /* the state has them now */
    j->moments = NULL;
    j->exact = NULL;
out:
    return st;
}

static fkt_status open_http(struct cli_join *j)
{
    struct timespec now;
    struct fkt_http_client_spec spec = {.task = j->hash,
                                        .site = j->site,
                                        .secret = j->key.secret,
                                        .site_side = &j->side,
                                        .patience_seconds = (uint32_t)j->a->patience};
    fkt_status st;
    clock_gettime(CLOCK_REALTIME, &now);
    spec.clock = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    FKT_TRY(fkt_http_client_new(&j->http, &spec));
    j->post = (struct fkt_http_transport_spec){.address = j->task.service.address,
                                               .pin = j->task.service.pin,
                                               .http = j->http,
                                               .answer_max = fkt_sa_to_site_max(&j->params) + 4096,
                                               .heartbeat = cli_join_heartbeat,
                                               .self = j,
                                               .patience_seconds = (uint32_t)j->a->patience,
                                               .expires = j->task.service.expires};
out:
    return st;
}

/* A stop has its reason: an hour that is over, or somebody at the keyboard. */
static fkt_status explain(struct cli_join *j, fkt_status st)
{
    int goes_on;
    if (st != FKT_E_STOPPED) return st;
    if (j->expired) {
        fkt_client_close(j->client);
        j->client = NULL;
        st = fkt_client_expire(j->state, &j->task, &goes_on);
        return st != FKT_OK ? st : cli_join_too_late(j);
    }
    return fkt_fail_hint(FKT_E_STOPPED, "the same command goes on where this one stopped", "stopped while taking part");
}

static int run(const struct cli_command *self, const struct cli_join_asked *a)
{
    struct cli_join j = {.a = a};
    fkt_status st;
    int code;
    cli_progress_init(&j.progress, a->run.quiet);
    FKT_TRY(a->patience > UINT32_MAX / 1000 ? fkt_fail(FKT_E_ARG, "--patience is too long") : FKT_OK);
    FKT_TRY(cli_join_prepare(&j));
    if (a->dry_run) {
        FKT_TRY(cli_join_print(&j));
        goto out;
    }
    FKT_TRY(cli_progress_check("before anything was sent"));
    FKT_TRY(open_state(&j));
    FKT_TRY(open_http(&j));
    FKT_TRY(explain(&j, fkt_http_transport_run(&j.post)));
    FKT_TRY(explain(&j, cli_join_result(&j)));
out:
    code = cli_misuse(self, st);
    cli_join_clear(&j);
    return j.over ? CLI_OVER : code;
}

int cli_join(const struct cli_command *self, int argc, char **argv)
{
    struct cli_join_asked a = {0};
    const struct cli_option table[] = {
        CLI_OPT_TEXT("task", &a.task, "FILE", 1, "the task, signed by the operator"),
        CLI_OPT_TEXT("key", &a.key, "FILE", 1,
                     "this site's key, made by 'fedkt keygen'; it stands on the task's roster"),
        CLI_OPT_TEXT("operator", &a.operator_key, "KEY", 0,
                     "the operator's public key, 64 digits or a file: it must have signed the task"),
        CLI_OPT_FLAG("dry-run", &a.dry_run,
                     "say what would be sent and what it would cost; send nothing, and write nothing but --encodings"),
        CLI_OPT_WHOLE("patience", &a.patience, "S", 0,
                      "give up when the server cannot be reached for so many seconds (default: wait for it)"),
        CLI_OPT_FLAG("accept-insecure-seed", &a.insecure_seed,
                     "TESTS ONLY: take part in a task whose randomness is known; nothing of it is private"),
        CLI_WEAK_ROW(a.accept_weak),
        CLI_DATA_ROWS(a.data, 1),
        CLI_ENCODINGS_ROW(a.encodings),
        CLI_WEIGHTS_ROWS(a.settings),
        CLI_OPT_TEXT("calibration", &a.calibration, "FILE", 0, "the task's calibration (default: the codec's own)"),
        CLI_OPT_HEAD("what it costs"),
        CLI_OPT_TEXT("ledger", &a.ledger, "FILE", 0,
                     "remembers what each dataset has spent, and which images it has; made when absent (default: "
                     "ledger.db under $XDG_DATA_HOME/fedkt or ~/.local/share/fedkt)"),
        CLI_OPT_TEXT("dataset", &a.dataset, "NAME", 0,
                     "the account that pays: every task under this name adds up, whatever its records, and an image "
                     "that the ledger knows under another name is refused (default: the task's name)"),
        {CLI_REAL, "budget-epsilon", &a.budget_epsilon, "E",
         "total budget of the dataset over all tasks (default: what its first task costs)", 0, NULL, NULL,
         &a.budget_epsilon_given},
        {CLI_REAL, "budget-delta", &a.budget_delta, "D", "delta of the total budget", 0, NULL, NULL,
         &a.budget_delta_given},
        CLI_OPT_HEAD("files"),
        CLI_OPT_TEXT("state", &a.state, "FILE", 0,
                     "what this site must know again after a crash; SECRET while a round runs (default: under "
                     "$XDG_STATE_HOME/fedkt or ~/.local/state/fedkt, a file for each task)"),
        CLI_OPT_TEXT("out", &a.out, "DIR", 0,
                     "release, certificate, audit log, samples and this site's receipt (default: beside the state)"),
        CLI_RUN_ROWS(a.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    cli_keep_secrets();
    return code >= 0 ? code : run(self, &a);
}
