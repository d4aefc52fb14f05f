/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - fkt_serve: the server of one task, from its first start to the last site that fetches the result.
 *
 *   task, certificate, token (serve_open.c) -> server/ (its state, replayed) -> HTTPS -> until the task is over, and
 *   then until every site in the release has fetched the transparency log, or for some time
 *
 * server/ and net/ do not include each other: this module connects them through the mailbox. */
#include "remote/serve_among.h"
#include "remote/serve_open.h"
#include "remote/serve_watch.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "net/httpd.h"
#include "task/privacy_words.h"

#include "fedkt/server.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

enum {
    LINGER = 300, /* seconds that sites have to fetch the files */
    FAREWELL = 15 /* of a task that was given up: there is little to fetch */
};

struct run {
    const struct fkt_serve_spec *spec;
    const struct fkt_serve_siblings *siblings; /* NULL: none */
    struct fkt_serving o;
    struct fkt_serve_watch watch;
    struct fkt_server *server;
    struct fkt_mailbox box;
    struct fkt_httpd *httpd;
    struct fkt_text privacy;
    struct fkt_serve_place place;
    uint8_t task[32]; /* its hash */
    char *folder;     /* the public one */
    double over_at;   /* 0: not over */
    int stopped;
};

static int asked_to_stop(const struct run *s) { return s->stopped || (s->spec->stop && *s->spec->stop); }

static void report(struct run *s, enum fkt_serve_event_kind kind, const struct fkt_serve_view *view)
{
    const struct fkt_serve_event e = {.kind = kind, .task = &s->o.task, .place = &s->place, .view = view};
    if (s->spec->event && s->spec->event(s->spec->self, &e)) s->stopped = 1;
}

static fkt_status open_server(struct run *s)
{
    const struct fkt_serve_spec *a = s->spec;
    const struct fkt_server_spec spec = {.task = &s->o.task,
                                         .folder = a->state,
                                         .out = a->out,
                                         .calibration = a->calibration,
                                         .guide_calibration = a->guide_calibration,
                                         .settings = a->settings,
                                         .per_class = a->per_class,
                                         .format = a->format,
                                         .threads = a->threads,
                                         .progress = a->progress};
    fkt_status st;
    if (a->out) FKT_TRY(fkt_strdup(&s->folder, a->out));
    else FKT_TRY(fkt_path_join(&s->folder, a->state, "public"));
    FKT_TRY(fkt_server_open(&s->server, &spec));
    fkt_server_mailbox(s->server, &s->box);
out:
    return st;
}

static int has_expired(const struct run *s, uint64_t now)
{
    const uint64_t expires = s->o.task.service.expires;
    struct fkt_mailbox_view v;
    s->box.view(s->box.self, &v);
    return expires && now >= expires && !v.round && v.stage == FKT_STAGE_GATHERING && !v.reason[0];
}

/* Once the server has seen that its task has expired, the task is over for good. A wrong clock at its start must not
 * cause that, so this is checked before the server receives the time. Of several cohorts one may have expired while
 * others have a release: then it is served until it is given up, so that its log ends and the others are added up. A
 * wrong clock has the minute that deadlines.c leaves it. */
static fkt_status check_day(const struct run *s)
{
    const uint64_t now = (uint64_t)time(NULL);
    const int expired = has_expired(s, now);
    const int all = s->siblings ? s->siblings->all_expired(s->siblings->self, expired) : expired;
    char then[FKT_UTC], here[FKT_UTC];
    if (all < 0) return fkt_fail(FKT_E_STOPPED, "stopped");
    if (!expired || !all) return FKT_OK;
    fkt_utc(then, s->o.task.service.expires);
    fkt_utc(here, now);
    return fkt_fail_hint(FKT_E_MISMATCH, "set the clock if it is wrong; otherwise make a new task",
                         "the task has expired: %s, and no round has begun; this machine's clock says %s", then, here);
}

static void fill_facts(const struct run *s, struct fkt_page_facts *f)
{
    const struct fkt_task *t = &s->o.task;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *f = (struct fkt_page_facts){.task_name = t->name,
                                 .task_sha256 = t->sha256,
                                 .privacy = s->privacy.s,
                                 .noise = fkt_noise_name(t->federation.noise),
                                 .version = fkt_version(),
                                 .sites = t->federation.sites,
                                 .names = (const char *const *)t->service.names,
                                 .roster = t->federation.roster,
                                 .classes = (const char *const *)t->classes,
                                 .n_classes = t->n_classes,
                                 .sparse = t->federation.degree < t->federation.sites - 1,
                                 .started_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000,
                                 .insecure = t->service.seeded};
}

static fkt_status listen_on(struct run *s, struct fkt_page_facts *facts)
{
    struct fkt_httpd_spec spec = {.listen = s->spec->listen,
                                  .address = s->o.task.service.address,
                                  .tls = &s->o.tls,
                                  .box = &s->box,
                                  .roster = s->o.task.federation.roster,
                                  .task = s->task,
                                  .task_text = s->o.task_text,
                                  .facts = facts,
                                  .token = s->o.token,
                                  .watch = fkt_serve_watch_look,
                                  .watcher = &s->watch,
                                  .limits = {.connections = s->siblings ? s->siblings->connections : 0}};
    fkt_status st;
    fill_facts(s, facts);
    (void)fkt_unhex(s->task, s->o.task.sha256, sizeof s->task); /* it is hex: the task's own */
    FKT_TRY(fkt_httpd_start(&s->httpd, &spec));
    FKT_TRY(fkt_serving_keep_task(&s->o, s->spec->task));
    s->place = (struct fkt_serve_place){.listen = fkt_httpd_address(s->httpd),
                                        .pin = s->o.tls.pin,
                                        .folder = s->folder,
                                        .token_file = s->o.token_path,
                                        .local = fkt_httpd_local(s->httpd),
                                        .pinned = s->o.pinned};
    report(s, FKT_SERVE_EVENT_LISTENING, NULL);
out:
    return st;
}

static int fetched(void *self, uint32_t site) { return fkt_httpd_fetched(((struct run *)self)->httpd, site); }

/* Called while it serves; 1 stops it. */
static int idle(void *self)
{
    struct run *s = self;
    struct fkt_serve_view v;
    double waited, linger = s->spec->linger_seconds ? s->spec->linger_seconds : LINGER;
    if (asked_to_stop(s)) return 1;
    if (!fkt_serve_watch_get(&s->watch, &v)) return 0;
    report(s, FKT_SERVE_EVENT_VIEW, &v);
    if (v.stage < FKT_STAGE_RELEASED) return s->stopped;
    if (!s->over_at) {
        s->over_at = fkt_now();
        report(s, FKT_SERVE_EVENT_OVER, &v);
    }
    if (s->spec->stay) return s->stopped;
    waited = fkt_now() - s->over_at;
    if (v.stage == FKT_STAGE_GIVEN_UP && linger > FAREWELL) linger = FAREWELL;
    return s->stopped || waited >= linger || fkt_serve_watch_all_counted(&s->watch, fetched, s);
}

static fkt_status how_it_ended(struct run *s, fkt_status st)
{
    struct fkt_serve_view v;
    if (fkt_serve_watch_get(&s->watch, &v) && v.stage == FKT_STAGE_GIVEN_UP)
        return fkt_fail_hint(FKT_E_TOO_FEW, "nothing was released; make a new task to try again",
                             "the task was given up: %s", v.reason);
    if (st != FKT_OK || !asked_to_stop(s) || s->over_at) return st;
    return fkt_hint_code(fkt_fail(FKT_E_STOPPED, "stopped"), FKT_HINT_SAME_STATE,
                         "start it again with the same state to continue");
}

/* A peer that closes its connection must not end the process. Threads of the server inherit the mask; a signal that
 * was raised in this thread meanwhile is discarded. */
static void hold_sigpipe(sigset_t *before)
{
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, before);
}

static void release_sigpipe(const sigset_t *before)
{
    const struct timespec none = {0, 0};
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    while (!sigismember(before, SIGPIPE) && sigtimedwait(&pipe, NULL, &none) == SIGPIPE) continue;
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

fkt_status fkt_serve(const struct fkt_serve_spec *spec, struct fkt_serve_view *last)
{
    return fkt_serve_among(spec, NULL, last);
}

fkt_status fkt_serve_among(const struct fkt_serve_spec *spec, const struct fkt_serve_siblings *siblings,
                           struct fkt_serve_view *last)
{
    struct run s = {.spec = spec, .siblings = siblings};
    sigset_t before;
    struct fkt_page_facts facts;
    struct fkt_failure why;
    fkt_status st;
    if (last) memset(last, 0, sizeof *last);
    hold_sigpipe(&before);
    fkt_text_init(&s.privacy);
    FKT_TRY(fkt_serving_open(&s.o, spec));
    FKT_TRY(fkt_serve_watch_init(&s.watch, s.o.task.federation.sites));
    FKT_TRY(open_server(&s));
    FKT_TRY(check_day(&s));
    FKT_TRY(fkt_privacy_words(&s.privacy, &s.o.task));
    FKT_TRY(listen_on(&s, &facts));
    st = how_it_ended(&s, asked_to_stop(&s) ? FKT_OK : fkt_httpd_run(s.httpd, idle, &s));
out:
    fkt_failure_save(&why, st);
    if (last && s.watch.slot) (void)fkt_serve_watch_get(&s.watch, last);
    fkt_httpd_free(s.httpd);
    fkt_server_close(s.server);
    fkt_serve_watch_clear(&s.watch);
    fkt_text_clear(&s.privacy);
    fkt_free(s.folder);
    fkt_serving_clear(&s.o);
    release_sigpipe(&before);
    return fkt_failure_restore(&why);
}
