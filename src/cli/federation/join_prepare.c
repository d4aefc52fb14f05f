/* SPDX-License-Identifier: Apache-2.0 */
/* join_prepare.c - all that a site does before it calls the server, in the order in which it is cheapest to be refused:
 *
 *   task, its signature -> key on the roster -> names of files -> its day -> images opened, counted -> digests
 *   -> ledger asked -> moments, unless the state file has them
 *
 * So a site that is slow to encode holds nobody up: the others do not know of it yet. */
#include "cli/federation/join.h"
#include "base/xdg.h"
#include "cli/task/service.h"

#include "base/alloc.h"
#include "base/text.h"
#include "pipeline/contribution.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

int cli_join_expired(const struct cli_join *j)
{
    return j->task.service.expires && (uint64_t)time(NULL) > j->task.service.expires;
}

/* ---- the task ---- */

static fkt_status check_operator(const struct cli_join *j)
{
    uint8_t key[FKT_SA_KEY];
    char print[FKT_FINGERPRINT];
    fkt_status st;
    if (j->a->operator_key) FKT_TRY(cli_public_key("operator", j->a->operator_key, key));
    FKT_TRY(fkt_task_verify(&j->task, j->a->operator_key ? key : NULL));
    if (j->a->run.quiet) goto out;
    fkt_fingerprint(print, j->task.signature.key);
    if (cli_log_jsonl())
        cli_event("join", json_pack("{s:s s:s s:b}", "state", "task", "signed_by", print, "operator",
                                    j->a->operator_key != NULL));
    else if (j->a->operator_key) fprintf(stderr, "fedkt: the task is signed by the operator, %s\n", print);
    else fprintf(stderr, "fedkt: the task is signed by %s; is that the operator? --operator compares it\n", print);
out:
    return st;
}

fkt_status cli_join_too_late(struct cli_join *j)
{
    char when[FKT_UTC], here[FKT_UTC];
    fkt_utc(when, j->task.service.expires);
    fkt_utc(here, (uint64_t)time(NULL));
    j->over = 1;
    return fkt_fail_hint(FKT_E_MISMATCH, "ask the operator for a new task; nothing of this site's records has left",
                         "the task has expired: %s; this machine's clock says %s", when, here);
}

static fkt_status check_service(struct cli_join *j)
{
    const struct fkt_service *s = &j->task.service;
    if (!s->address[0])
        return fkt_fail_hint(FKT_E_MISMATCH, "the operator makes one with 'fedkt task new --server'",
                             "task '%s' names no server that could be joined", j->task.name);
    if (!s->pin[0])
        return fkt_fail_hint(FKT_E_MISMATCH,
                             "ask the operator for the task that was signed after the server's first start",
                             "the task does not say which key the server has");
    return FKT_OK;
}

/* A round that began in time goes on, also for a site that was away when the hour struck; only where nothing has begun
 * is the task refused, and what was computed for it goes. */
static fkt_status check_day(struct cli_join *j)
{
    int goes_on = 0;
    fkt_status st = FKT_OK;
    if (!cli_join_expired(j)) return FKT_OK;
    if (!j->a->dry_run) FKT_TRY(fkt_client_expire(j->state, &j->task, &goes_on));
    if (!goes_on) st = cli_join_too_late(j);
out:
    return st;
}

static fkt_status check_seed(const struct cli_join *j)
{
    static const char known[] = "NOT PRIVATE: everything random in this task comes from a seed that is written in it";
    const struct fkt_service *s = &j->task.service;
    if (s->seeded && !j->a->insecure_seed)
        return fkt_fail_hint(
            FKT_E_MISMATCH, "for a rehearsal with images that are not private, say --accept-insecure-seed",
            "everything random in this task comes from a seed that is written in it: nothing is private");
    if (!s->seeded && j->a->insecure_seed)
        return fkt_fail(FKT_E_ARG, "--accept-insecure-seed: the task has none, and a site alone cannot ask for it");
    if (j->a->run.quiet || !s->seeded) return FKT_OK;
    cli_join_warn(known);
    return FKT_OK;
}

static fkt_status open_task(struct cli_join *j)
{
    const struct cli_join_asked *a = j->a;
    fkt_status st;
    FKT_TRY(fkt_task_load_into(&j->task, a->task));
    if (!j->task.federation.sites)
        st = fkt_fail_hint(FKT_E_MISMATCH,
                           "it is for one place that holds all images ('fedkt moments', 'fedkt release'); ask the "
                           "operator for the one made with --roster and --server",
                           "task '%s' is not for a federation: it names no sites", j->task.name);
    FKT_TRY(st);
    FKT_TRY(check_operator(j));
    FKT_TRY(fkt_federation_open(&j->task, &j->params, &j->shares));
    memcpy(j->hash, j->params.task, sizeof j->hash);
    j->dataset = a->dataset ? a->dataset : j->task.name;
    FKT_TRY(check_service(j));
    FKT_TRY(fkt_key_load(&j->key, a->key));
    FKT_TRY(fkt_task_site(&j->task, j->key.site.key, &j->site));
    FKT_TRY(check_seed(j));
    FKT_TRY(cli_accept_task(&j->task, a->accept_weak));
out:
    return st;
}

/* ---- names ---- */

static fkt_status check_budget(const struct cli_join_asked *a)
{
    if (a->budget_epsilon_given != a->budget_delta_given)
        return fkt_fail_hint(FKT_E_ARG, "give both; the task's own delta will do ('fedkt task show')",
                             "--budget-epsilon and --budget-delta belong together");
    if (a->budget_epsilon_given && !(a->budget_epsilon > 0 && a->budget_delta > 0 && a->budget_delta < 1))
        return fkt_fail(FKT_E_ARG, "the budget needs --budget-epsilon above 0 and --budget-delta between 0 and 1");
    return a->budget_epsilon_given
               ? cli_accept_promise("total budget", a->budget_epsilon, a->budget_delta, a->accept_weak)
               : FKT_OK;
}

static fkt_status name_files(struct cli_join *j)
{
    const struct cli_join_asked *a = j->a;
    char name[64], key[9];
    size_t n;
    fkt_status st;
    fkt_hex(key, j->key.site.key, 4);
    snprintf(name, sizeof name, "join-%.16s-%s.db", j->task.sha256, key);
    if (a->state) FKT_TRY(fkt_strdup(&j->state, a->state));
    else FKT_TRY(fkt_xdg_folder(FKT_XDG_STATE, name, !a->dry_run, &j->state));
    if (a->ledger) FKT_TRY(fkt_strdup(&j->ledger, a->ledger));
    else FKT_TRY(fkt_xdg_folder(FKT_XDG_DATA, "ledger.db", !a->dry_run, &j->ledger));
    if (a->out) FKT_TRY(fkt_strdup(&j->out, a->out));
    else {
        n = strlen(j->state) + sizeof ".result";
        FKT_TRY(fkt_alloc(&j->out, n));
        snprintf(j->out, n, "%s.result", j->state);
    }
out:
    return st;
}

/* ---- the records ---- */

static fkt_status count_records(struct cli_join *j, const struct fkt_dataset *ds)
{
    const uint64_t most = j->task.federation.records;
    const char *hint = j->task.privacy.adjacency == FKT_ADJACENCY_REPLACE
                           ? "ask for a task that allows more, or take fewer with --limit"
                           : "ask for a task that allows more, or remove images from the set; --limit also takes "
                             "fewer, but weakens the promise for the whole set";
    fkt_status st;
    FKT_TRY(fkt_alloc(&j->held, j->task.n_classes));
    j->records = fkt_dataset_size(ds);
    for (size_t i = 0; i < j->records; i++) j->held[fkt_dataset_label(ds, i)]++;
    for (uint32_t k = 0; k < j->task.n_classes && st == FKT_OK; k++)
        if (j->held[k] > most)
            st = fkt_fail_hint(FKT_E_MISMATCH, hint, "%llu records of class '%s', though the task allows a site %llu",
                               (unsigned long long)j->held[k], j->task.classes[k], (unsigned long long)most);
out:
    return st;
}

fkt_status cli_join_charge(const struct cli_join *j, struct fkt_ledger_charge *out)
{
    fkt_status st = fkt_contribution_charge(out, &j->task, &j->shares, j->dataset);
    out->budget_epsilon = j->a->budget_epsilon;
    out->budget_delta = j->a->budget_delta;
    out->most_epsilon = j->a->accept_weak ? 0 : FKT_PROMISE_EPSILON;
    return st == FKT_OK ? fkt_records_list(j->of, &out->records, &out->n_records) : st;
}

static fkt_status ask_ledger(const struct cli_join *j)
{
    struct fkt_ledger_charge c;
    struct fkt_ledger_spent spent = {0};
    fkt_status st = cli_join_charge(j, &c);
    return st == FKT_OK ? cli_hint_charge(fkt_ledger_file_ask(j->ledger, &c, &spent), &c, &spent, j->ledger) : st;
}

static fkt_status encode(struct cli_join *j, const struct fkt_dataset *ds, struct fkt_pipeline_options *o)
{
    struct fkt_codec_settings settings;
    struct fkt_pipeline *pipeline = NULL;
    fkt_status st;
    fkt_skipped_clear(&j->skipped);
    fkt_records_free(j->of); /* the walk fills a set of its own, which leaves out exact copies */
    j->of = NULL;
    FKT_TRY(fkt_records_new(&j->of, j->task.privacy.adjacency));
    o->records = j->of;
    cli_codec_settings(&j->a->settings, &settings);
    FKT_TRY(cli_open_encodings(&o->encodings, j->a->encodings));
    FKT_TRY(fkt_pipeline_open(&pipeline, &j->task, j->a->calibration, &settings));
    cli_print_dtype(&j->a->settings, fkt_pipeline_codec(pipeline), &j->a->run);
    FKT_TRY(fkt_pipeline_moments_new(pipeline, &j->moments));
    FKT_TRY(fkt_pipeline_moments(pipeline, ds, NULL, 0, j->moments, o));
    FKT_TRY(fkt_moments_packed(j->moments, &j->exact));
out:
    st = cli_close_encodings(o->encodings, j->a->encodings, &j->a->run, st);
    o->encodings = NULL;
    fkt_pipeline_free(pipeline);
    return st;
}

/* A log that is no terminal may be read by others: no number or name of a record goes there (join_talk.c). */
static fkt_status print_records(struct cli_join *j, const struct fkt_dataset *ds)
{
    if (j->progress.terminal || j->a->dry_run) return cli_print_dataset(ds, j->a->data.path, &j->a->run);
    if (fkt_dataset_skipped(ds))
        cli_join_warn("some files were passed over: they are not read as images; --dry-run names them");
    if (fkt_dataset_nested(ds, NULL))
        cli_join_warn("some images lie in a folder inside a class folder; --dry-run says more");
    return FKT_OK;
}

/* The same of what reading the records has found. */
static void print_found(struct cli_join *j)
{
    if (j->progress.terminal || j->a->dry_run) {
        cli_print_skipped(&j->skipped);
        cli_print_copies(j->of, j->task.privacy.adjacency);
        return;
    }
    if (j->skipped.count) cli_join_warn("left out what could not be read as an image; --dry-run names it");
    if (fkt_records_copies(j->of))
        cli_join_warn("some records have the pixels and the label of another one; --dry-run says more");
}

static fkt_status bring_records(struct cli_join *j)
{
    const struct cli_run silent = {.quiet = 1};
    struct fkt_pipeline_options o = {.progress = &j->progress.hook,
                                     .skipped = j->a->data.skip_bad ? &j->skipped : NULL};
    struct fkt_dataset *ds = NULL;
    int yes = 0;
    fkt_status st;
    FKT_TRY(cli_threads(j->a->run.threads, &o.threads));
    FKT_TRY(cli_open_data(&ds, &j->a->data, &j->task, &silent));
    FKT_TRY(print_records(j, ds));
    if (!j->progress.terminal && !j->a->dry_run) j->progress.quiet = 1; /* its lines state how many records there are */
    FKT_TRY(count_records(j, ds));
    FKT_TRY(fkt_records_new(&j->of, j->task.privacy.adjacency));
    FKT_TRY(fkt_records_read(j->of, ds, NULL, 0, &o));
    if (!j->a->dry_run) FKT_TRY(fkt_client_has_moments(j->state, &j->task, j->of, &yes));
    if (yes) goto out; /* then the ledger was asked before, and is asked again when the state is opened */
    FKT_TRY(ask_ledger(j));
    FKT_TRY(encode(j, ds, &o));
out:
    j->records -= j->skipped.count;
    cli_progress_end(&j->progress);
    if (st == FKT_OK) {
        print_found(j);
        if (cli_limit_remark(&j->a->data, j->task.privacy.adjacency))
            cli_join_warn(cli_limit_remark(&j->a->data, j->task.privacy.adjacency));
    }
    fkt_dataset_free(ds);
    return st;
}

fkt_status cli_join_prepare(struct cli_join *j)
{
    fkt_status st;
    FKT_TRY(check_budget(j->a));
    FKT_TRY(open_task(j));
    FKT_TRY(name_files(j));
    FKT_TRY(check_day(j));
    if (!j->a->dry_run) FKT_TRY(cli_join_check_out(j));
    FKT_TRY(bring_records(j));
out:
    return st;
}

void cli_join_clear(struct cli_join *j)
{
    fkt_http_client_free(j->http);
    fkt_client_close(j->client);
    fkt_moments_free(j->moments);
    fkt_records_free(j->of);
    fkt_skipped_clear(&j->skipped);
    fkt_free(j->held);
    fkt_free(j->state);
    fkt_free(j->ledger);
    fkt_free(j->out);
    fkt_key_clear(&j->key);
    fkt_task_clear(&j->task);
}
