/* SPDX-License-Identifier: Apache-2.0 */
/* join_prepare.c - everything that a site does before it connects to the server, cheap checks first:
 *
 *   task, its signature -> its parts are known -> key on the roster -> names of files -> its last day -> images opened,
 *   counted -> digests -> ledger asked -> moments, unless the state file has them
 *
 * A site that is slow to encode does not delay the others: it has not joined yet. */
#include "fedkt/advanced/federation.h"

#include "remote/join.h"
#include "remote/remote.h"

#include "base/alloc.h"
#include "base/text.h"
#include "base/xdg.h"
#include "pipeline/contribution.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

int fkt_joining_expired(const struct fkt_joining *j)
{
    return j->task->service.expires && (uint64_t)time(NULL) > j->task->service.expires;
}

/* ---- the task ---- */

fkt_status fkt_joining_too_late(struct fkt_joining *j)
{
    char when[FKT_UTC], here[FKT_UTC];
    fkt_utc(when, j->task->service.expires);
    fkt_utc(here, (uint64_t)time(NULL));
    j->over = 1;
    return fkt_fail_hint(FKT_E_MISMATCH, "ask the operator for a new task; nothing of this site's records has left",
                         "the task has expired: %s; this machine's clock says %s", when, here);
}

static fkt_status check_service(const struct fkt_joining *j)
{
    const struct fkt_service *s = &j->task->service;
    if (!s->address[0])
        return fkt_hint_code(fkt_fail(FKT_E_MISMATCH, "task '%s' does not name a server", j->task->name),
                             FKT_HINT_TASK_SERVER, "ask the operator for a task that names a server");
    if (!s->pin[0])
        return fkt_fail_hint(FKT_E_MISMATCH,
                             "ask the operator for the task that was signed after the server's first start",
                             "the task has no pin of the server's key");
    return FKT_OK;
}

/* A round that began in time continues, also for a site that was offline when the task expired. If no round has
 * begun, the task is refused, and the data computed for it is deleted. */
static fkt_status check_day(struct fkt_joining *j)
{
    int goes_on = 0;
    fkt_status st = FKT_OK;
    if (!fkt_joining_expired(j)) return FKT_OK;
    if (!j->dry_run) FKT_TRY(fkt_client_expire(j->state, j->task, &goes_on));
    if (!goes_on) st = fkt_joining_too_late(j);
out:
    return st;
}

static fkt_status check_seed(struct fkt_joining *j)
{
    const struct fkt_service *s = &j->task->service;
    if (s->seeded && !j->spec->accept_insecure_seed)
        return fkt_hint_code(
            fkt_fail(FKT_E_MISMATCH,
                     "all randomness of this task comes from a seed that is written in it: nothing is private"),
            FKT_HINT_ACCEPT_SEED, "for a rehearsal with images that are not private, accept the insecure seed");
    if (!s->seeded && j->spec->accept_insecure_seed)
        return fkt_fail(FKT_E_ARG, "the task has no insecure seed to accept");
    if (s->seeded) fkt_joining_report(j, (struct fkt_join_event){.kind = FKT_JOIN_EVENT_SEEDED});
    return FKT_OK;
}

static fkt_status open_task(struct fkt_joining *j)
{
    const struct fkt_join_spec *s = j->spec;
    fkt_status st;
    FKT_TRY(fkt_task_load(&j->task, s->task));
    if (!j->task->federation.sites)
        st =
            fkt_fail_hint(FKT_E_MISMATCH,
                          "it is for one place that holds all images; ask the operator for the one with a roster and a "
                          "server",
                          "task '%s' is not for a federation: it has no sites", j->task->name);
    FKT_TRY(st);
    FKT_TRY(fkt_task_verify(j->task, s->operator_key));
    j->verified = 1;
    FKT_TRY(fkt_task_check_known(j->task));
    fkt_joining_report(j, (struct fkt_join_event){.kind = FKT_JOIN_EVENT_SIGNED, .key = j->task->signature.key});
    FKT_TRY(fkt_federation_open(j->task, &j->params, &j->shares));
    memcpy(j->hash, j->params.task, sizeof j->hash);
    j->dataset = s->dataset ? s->dataset : j->task->name;
    FKT_TRY(check_service(j));
    FKT_TRY(fkt_key_load(&j->key, s->key));
    FKT_TRY(fkt_task_site(j->task, j->key.site.key, &j->site));
    FKT_TRY(check_seed(j));
    FKT_TRY(fkt_remote_check_promise(j->task, s->accept_weak));
out:
    return st;
}

/* ---- names ---- */

static fkt_status check_budget(const struct fkt_join_spec *s)
{
    char why[FKT_PROMISE_WORDS];
    if (s->budget_epsilon == 0 && s->budget_delta == 0) return FKT_OK;
    if (!(s->budget_epsilon > 0 && s->budget_delta > 0 && s->budget_delta < 1))
        return fkt_fail(FKT_E_ARG, "a total budget has an epsilon above 0 and a delta between 0 and 1");
    if (s->accept_weak || fkt_privacy_promise(s->budget_epsilon, s->budget_delta, 0, why) == FKT_PROMISE_SOUND)
        return FKT_OK;
    return fkt_hint_code(fkt_fail(FKT_E_ARG, "the total budget is too weak to be called private: %s", why),
                         FKT_HINT_ACCEPT_WEAK, "lower it, or accept that nothing made of it is called private");
}

static fkt_status name_files(struct fkt_joining *j)
{
    const struct fkt_join_spec *s = j->spec;
    char name[64], key[9];
    size_t n;
    fkt_status st;
    fkt_hex(key, j->key.site.key, 4);
    snprintf(name, sizeof name, "join-%.16s-%s.db", j->task->sha256, key);
    if (s->state) FKT_TRY(fkt_strdup(&j->state, s->state));
    else FKT_TRY(fkt_xdg_folder(FKT_XDG_STATE, name, !j->dry_run, &j->state));
    if (s->ledger) FKT_TRY(fkt_strdup(&j->ledger, s->ledger));
    else FKT_TRY(fkt_xdg_folder(FKT_XDG_DATA, "ledger.db", !j->dry_run, &j->ledger));
    if (s->out) FKT_TRY(fkt_strdup(&j->out, s->out));
    else {
        n = strlen(j->state) + sizeof ".result";
        FKT_TRY(fkt_alloc(&j->out, n));
        snprintf(j->out, n, "%s.result", j->state);
    }
out:
    return st;
}

/* ---- the records ---- */

static fkt_status open_data(const struct fkt_joining *j, struct fkt_dataset **out)
{
    struct fkt_dataset_options o = j->spec->data_options;
    o.fit = j->task->fit;
    o.limit_by_number = fkt_adjacency_counts_public(j->task->privacy.adjacency);
    o.classes = (const char *const *)j->task->classes;
    o.n_classes = j->task->n_classes;
    return fkt_dataset_open(out, j->spec->data, &o);
}

static fkt_status count_records(struct fkt_joining *j, const struct fkt_dataset *ds)
{
    const uint64_t most = j->task->federation.records;
    const char *hint =
        fkt_adjacency_counts_public(j->task->privacy.adjacency)
            ? "ask for a task that allows more, or take fewer with a limit"
            : "ask for a task that allows more, or remove images from the set; a limit also takes fewer, "
              "but weakens the promise for the whole set";
    fkt_status st;
    FKT_TRY(fkt_alloc(&j->held, j->task->n_classes));
    j->records = fkt_dataset_size(ds);
    for (size_t i = 0; i < j->records; i++) j->held[fkt_dataset_label(ds, i)]++;
    for (uint32_t k = 0; k < j->task->n_classes && st == FKT_OK; k++)
        if (j->held[k] > most)
            st = fkt_hint_code(fkt_fail(FKT_E_MISMATCH, "%llu records of class '%s', but the task allows a site %llu",
                                        (unsigned long long)j->held[k], j->task->classes[k], (unsigned long long)most),
                               FKT_HINT_LIMIT, hint);
out:
    return st;
}

fkt_status fkt_joining_charge(const struct fkt_joining *j, struct fkt_ledger_charge *out)
{
    fkt_status st = fkt_contribution_charge(out, j->task, &j->shares, j->dataset);
    out->budget_epsilon = j->spec->budget_epsilon;
    out->budget_delta = j->spec->budget_delta;
    out->most_epsilon = j->spec->accept_weak ? 0 : FKT_PROMISE_EPSILON;
    return st == FKT_OK ? fkt_records_list(j->of, &out->records, &out->n_records) : st;
}

static fkt_status ask_ledger(struct fkt_joining *j)
{
    struct fkt_ledger_charge c;
    struct fkt_ledger_spent spent = {0};
    struct fkt_failure why;
    fkt_status st;
    FKT_TRY(fkt_joining_charge(j, &c));
    st = fkt_ledger_file_ask(j->ledger, &c, &spent);
    if (st == FKT_E_BUDGET) {
        fkt_failure_save(&why, st); /* the hook may call the library */
        fkt_joining_report(j,
                           (struct fkt_join_event){
                               .kind = FKT_JOIN_EVENT_OVER_BUDGET, .charge = &c, .spent = &spent, .ledger = j->ledger});
        st = fkt_failure_restore(&why);
    }
out:
    return st;
}

static fkt_status close_encodings(struct fkt_joining *j, struct fkt_encodings *e, fkt_status st)
{
    uint64_t found, made;
    if (!e) return st;
    fkt_encodings_count(e, &found, &made);
    fkt_encodings_close(e);
    if (st == FKT_E_STOPPED && made)
        return fkt_hint(st, "what was encoded is kept in the folder of encodings: the next run uses it");
    if (st == FKT_OK)
        fkt_joining_report(j, (struct fkt_join_event){.kind = FKT_JOIN_EVENT_ENCODED, .found = found, .made = made});
    return st;
}

static fkt_status encode(struct fkt_joining *j, const struct fkt_dataset *ds, struct fkt_pipeline_options *o)
{
    struct fkt_pipeline *pipeline = NULL;
    fkt_status st;
    fkt_skipped_clear(&j->skipped);
    fkt_records_free(j->of); /* the pipeline fills a set of its own, which leaves out exact copies */
    j->of = NULL;
    FKT_TRY(fkt_records_new(&j->of, j->task->privacy.adjacency));
    o->records = j->of;
    if (j->spec->encodings) FKT_TRY(fkt_encodings_open(&o->encodings, j->spec->encodings));
    FKT_TRY(fkt_pipeline_open(&pipeline, j->task,
                              &(struct fkt_part_files){j->spec->calibration, j->spec->guide_calibration},
                              &j->spec->settings));
    fkt_joining_report(
        j, (struct fkt_join_event){.kind = FKT_JOIN_EVENT_CODEC, .codec = fkt_pipeline_encoder(pipeline, 0)});
    FKT_TRY(fkt_pipeline_moments_new(pipeline, &j->moments));
    FKT_TRY(fkt_pipeline_moments(pipeline, ds, NULL, 0, j->moments, o));
    FKT_TRY(fkt_moments_packed(j->moments, &j->exact));
out:
    st = close_encodings(j, o->encodings, st);
    o->encodings = NULL;
    fkt_pipeline_free(pipeline);
    return st;
}

static fkt_status bring_records(struct fkt_joining *j)
{
    struct fkt_pipeline_options o = {.threads = j->spec->threads,
                                     .progress = &j->progress,
                                     .skipped = j->spec->data_options.skip_bad ? &j->skipped : NULL};
    struct fkt_dataset *ds = NULL;
    int yes = 0;
    fkt_status st;
    FKT_TRY(open_data(j, &ds));
    fkt_joining_report(j, (struct fkt_join_event){.kind = FKT_JOIN_EVENT_DATASET, .dataset = ds});
    FKT_TRY(count_records(j, ds));
    FKT_TRY(fkt_records_new(&j->of, j->task->privacy.adjacency));
    FKT_TRY(fkt_records_read(j->of, ds, NULL, 0, &o));
    if (!j->dry_run) FKT_TRY(fkt_client_has_moments(j->state, j->task, j->of, &yes));
    if (yes) goto out; /* then the ledger was checked before, and is checked again when the state is opened */
    FKT_TRY(ask_ledger(j));
    FKT_TRY(encode(j, ds, &o));
out:
    j->records -= j->skipped.count;
    if (st == FKT_OK)
        fkt_joining_report(
            j, (struct fkt_join_event){
                   .kind = FKT_JOIN_EVENT_RECORDS, .dataset = ds, .records = j->of, .skipped = &j->skipped});
    fkt_dataset_free(ds);
    return st;
}

fkt_status fkt_joining_prepare(struct fkt_joining *j)
{
    fkt_status st;
    FKT_TRY(check_budget(j->spec));
    FKT_TRY(open_task(j));
    FKT_TRY(name_files(j));
    FKT_TRY(check_day(j));
    if (!j->dry_run) FKT_TRY(fkt_joining_check_out(j));
    FKT_TRY(bring_records(j));
out:
    return st;
}
