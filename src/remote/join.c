/* SPDX-License-Identifier: Apache-2.0 */
/* join.c - fkt_join: one site's part in a federation, from its images to a release that it has checked.
 *
 *   prepared locally (join_prepare.c) -> state file opened, a round resumed -> server, until the task is
 *   over -> files, receipt, result (join_result.c)
 *
 * client/ and net/ do not include each other: this module connects them. */
#include "remote/join.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

int fkt_joining_stopped(const struct fkt_joining *j) { return j->stopped || (j->spec->stop && *j->spec->stop); }

void fkt_joining_report(struct fkt_joining *j, struct fkt_join_event event)
{
    event.task = j->task;
    if (j->spec->event && j->spec->event(j->spec->self, &event)) j->stopped = 1;
}

static int step(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    const struct fkt_joining *j = self;
    const struct fkt_progress *p = j->spec->progress;
    if (fkt_joining_stopped(j)) return 1;
    return p ? p->step(p->self, what, done, total) : 0;
}

fkt_status fkt_joining_begin(struct fkt_joining *j, const struct fkt_join_spec *spec, int dry_run)
{
    memset(j, 0, sizeof *j);
    j->spec = spec;
    j->dry_run = dry_run;
    j->progress = (struct fkt_progress){step, j};
    if (!spec->task || !spec->key || !spec->data)
        return fkt_fail(FKT_E_ARG, "a site needs a task, a key and images to join with");
    if (spec->patience_seconds > UINT32_MAX / 1000) return fkt_fail(FKT_E_ARG, "the patience is too long");
    if (spec->threads > 256) return fkt_fail(FKT_E_ARG, "at most 256 threads");
    return FKT_OK;
}

fkt_status fkt_joining_end(struct fkt_joining *j, fkt_status st)
{
    struct fkt_failure why;
    fkt_failure_save(&why, st);
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
    fkt_task_free(j->task);
    return fkt_failure_restore(&why);
}

/* ---- the conversation ---- */

static int same(const struct fkt_client_view *a, const struct fkt_client_view *b)
{
    return a->stage == b->stage && a->begun == b->begun && a->masked == b->masked && a->spent == b->spent &&
           !strcmp(a->phase, b->phase);
}

/* Once for each cause: the text after the colon differs between tries. */
static void report_trouble(struct fkt_joining *j, const char *trouble)
{
    const size_t cause = strcspn(trouble, ":");
    if (strlen(j->trouble) == cause && !strncmp(j->trouble, trouble, cause)) return;
    snprintf(j->trouble, sizeof j->trouble, "%.*s", (int)cause, trouble);
    fkt_joining_report(j, (struct fkt_join_event){.kind = trouble[0] ? FKT_JOIN_EVENT_TROUBLE : FKT_JOIN_EVENT_WELL,
                                                  .text = trouble[0] ? trouble : NULL});
}

static int heartbeat(void *self, const char *trouble)
{
    struct fkt_joining *j = self;
    struct fkt_client_view v;
    if (fkt_joining_stopped(j)) return 1;
    fkt_client_get_view(j->client, &v);
    if (!v.phase[0] && !v.masked && v.stage < FKT_STAGE_RELEASED && fkt_joining_expired(j)) j->expired = 1;
    report_trouble(j, trouble);
    if (!j->showed || !same(&v, &j->shown))
        fkt_joining_report(j, (struct fkt_join_event){.kind = FKT_JOIN_EVENT_VIEW, .view = &v});
    j->shown = v;
    j->showed = 1;
    return j->expired || j->stopped;
}

static fkt_status open_state(struct fkt_joining *j)
{
    struct fkt_client_spec spec = {.task = j->task,
                                   .secret = j->key.secret,
                                   .state = j->state,
                                   .ledger = j->ledger,
                                   .budget_epsilon = j->spec->budget_epsilon,
                                   .budget_delta = j->spec->budget_delta,
                                   .most_epsilon = j->spec->accept_weak ? 0 : FKT_PROMISE_EPSILON,
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

static fkt_status open_http(struct fkt_joining *j)
{
    struct timespec now;
    struct fkt_http_client_spec spec = {.task = j->hash,
                                        .site = j->site,
                                        .secret = j->key.secret,
                                        .site_side = &j->side,
                                        .patience_seconds = j->spec->patience_seconds};
    fkt_status st;
    clock_gettime(CLOCK_REALTIME, &now);
    spec.clock = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    FKT_TRY(fkt_http_client_new(&j->http, &spec));
    j->post = (struct fkt_http_transport_spec){.address = j->task->service.address,
                                               .pin = j->task->service.pin,
                                               .http = j->http,
                                               .answer_max = fkt_sa_to_site_max(&j->params) + 4096,
                                               .heartbeat = heartbeat,
                                               .self = j,
                                               .patience_seconds = j->spec->patience_seconds,
                                               .expires = j->task->service.expires};
out:
    return st;
}

/* The reason of a stop: the task has expired, or the caller stopped it. */
static fkt_status explain(struct fkt_joining *j, fkt_status st)
{
    int goes_on;
    if (st != FKT_E_STOPPED) return st;
    if (j->expired) {
        fkt_client_close(j->client);
        j->client = NULL;
        st = fkt_client_expire(j->state, j->task, &goes_on);
        return st != FKT_OK ? st : fkt_joining_too_late(j);
    }
    return fkt_hint_code(fkt_fail(FKT_E_STOPPED, "stopped while taking part"), FKT_HINT_SAME_STATE,
                         "start it again with the same state to continue");
}

fkt_status fkt_join(const struct fkt_join_spec *spec, struct fkt_join_result *result)
{
    struct fkt_joining j;
    fkt_status st;
    memset(result, 0, sizeof *result);
    FKT_TRY(fkt_joining_begin(&j, spec, 0));
    FKT_TRY(fkt_joining_prepare(&j));
    FKT_TRY(fkt_joining_stopped(&j) ? fkt_fail(FKT_E_STOPPED, "stopped before anything was sent") : FKT_OK);
    FKT_TRY(open_state(&j));
    FKT_TRY(open_http(&j));
    FKT_TRY(explain(&j, fkt_http_transport_run(&j.post)));
    FKT_TRY(explain(&j, fkt_joining_finish(&j, result)));
out:
    result->over = j.over;
    result->site = j.site;
    result->records = j.records;
    if (j.verified) {
        result->task = j.task;
        j.task = NULL;
    }
    return fkt_joining_end(&j, st);
}

void fkt_join_result_clear(struct fkt_join_result *r)
{
    fkt_task_free(r->task);
    fkt_free(r->out);
    memset(r, 0, sizeof *r);
}
