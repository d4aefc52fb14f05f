/* SPDX-License-Identifier: Apache-2.0 */
/* serve_cohorts.c - fkt_serve_cohorts: the servers of all cohorts of a task, and the sum of their releases.
 *
 *   tasks in a folder -> a thread for each cohort: fkt_serve on its own state, port and public folder
 *   every cohort over -> releases of those that have one, added up (fkt_cohorts_add_up) -> public files
 *
 *   state/cohort-0000/   journal, certificate and token of cohort 0      out/release.safetensors  certificate.json
 *   out/cohorts/0000/    its public folder, transparency log and all         dataset/  grid.png: of the sum
 *
 * A cohort is an ordinary task: its server knows nothing of the others, and each has its own rounds and deadlines. One
 * that is given up is missing from the sum, which says so; so is one that has expired before it began, unless all have:
 * that is refused, as it is for one task. A cohort's server that cannot go on stops all of them: the same call
 * continues from their states. The sum has no state: it is made again from the releases, and is the same.
 *
 * The caller's hook is called under one lock, for one cohort at a time. */
#include "remote/serve_among.h"

#include "fedkt/cohorts.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "net/descriptors.h"
#include "net/httpd.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OTHERS = 64 }; /* connections beside those of a cohort's sites: strangers, the operator, sites that come back */

struct all;
struct cohort {
    struct all *all;
    struct fkt_serve_spec spec;
    char *state, *out, listen[300]; /* what the spec points to; owned */
    pthread_t thread;
    int started, asked, over;
    struct fkt_serve_view last;
    struct fkt_failure how;
};

struct all {
    const struct fkt_serve_spec *spec;
    pthread_mutex_t lock;
    pthread_cond_t told;     /* asked or stopped has changed */
    uint32_t asked, expired; /* cohorts that have asked all_expired; of these, those whose task has expired */
    struct fkt_cohorts *tasks;
    struct cohort *cohort; /* (n) */
    uint32_t n, over;
    uint32_t connections; /* of each cohort's server */
    char *out;            /* the public folder of the sum */
    struct fkt_serve_view sum;
    struct fkt_failure failed; /* of the sum */
    int stopped, summed;
};

/* ---- cohorts ---- */

/* "127.0.0.1:8443" -> "127.0.0.1:8447" for cohort 4; port 0 stays: any free one. */
static fkt_status listen_of(struct cohort *c, const char *listen, uint32_t index)
{
    const char *colon = strrchr(listen, ':');
    uint64_t port;
    fkt_status st;
    if (!colon || strlen(listen) >= sizeof c->listen - 8)
        return fkt_fail(FKT_E_ARG, "'%s' is not an address and a port to listen on", listen);
    FKT_TRY(fkt_fail_in(fkt_parse_u64(&port, colon + 1, UINT16_MAX), "the port of '%s'", listen));
    if (port && port + index > UINT16_MAX)
        return fkt_fail(FKT_E_ARG, "cohort %u would listen on port %llu", index, (unsigned long long)port + index);
    snprintf(c->listen, sizeof c->listen, "%.*s:%u", (int)(colon - listen), listen,
             (unsigned)(port ? port + index : 0));
out:
    return st;
}

static int heard(void *self, const struct fkt_serve_event *e);

static fkt_status open_cohort(struct all *a, uint32_t i)
{
    struct cohort *c = &a->cohort[i];
    char name[32];
    fkt_status st;
    c->all = a;
    FKT_TRY(listen_of(c, a->spec->listen, i));
    snprintf(name, sizeof name, "cohort-%04u", i);
    FKT_TRY(fkt_path_join(&c->state, a->spec->state, name));
    snprintf(name, sizeof name, "cohorts/%04u", i);
    FKT_TRY(fkt_path_join(&c->out, a->out, name));
    c->spec = *a->spec;
    c->spec.task = fkt_cohorts_file(a->tasks, i);
    c->spec.state = c->state;
    c->spec.out = c->out;
    c->spec.listen = c->listen;
    c->spec.per_class = 1; /* images are made of the sum */
    c->spec.progress = NULL;
    c->spec.event = heard;
    c->spec.self = c;
out:
    return st;
}

/* Every site of every cohort may wait at the same time, with a connection each. */
static fkt_status share_descriptors(struct all *a)
{
    uint32_t sites = 0, needed;
    uint64_t limit;
    for (uint32_t i = 0; i < a->n; i++) {
        const uint32_t own = fkt_task_federation(fkt_cohorts_task(a->tasks, i))->sites;
        if (own > sites) sites = own;
    }
    needed = sites + OTHERS;
    a->connections =
        fkt_descriptors_share(a->n, needed > FKT_HTTPD_CONNECTIONS ? needed : FKT_HTTPD_CONNECTIONS, &limit);
    if (a->connections >= needed) return FKT_OK;
    return fkt_fail_hint(FKT_E_IO, "raise the hard limit of open files (ulimit -Hn, LimitNOFILE= of a service)",
                         "%u cohorts of up to %u sites need %u connections each, and %llu open files allow %u", a->n,
                         sites, needed, (unsigned long long)limit, a->connections);
}

static fkt_status open_all(struct all *a)
{
    fkt_status st;
    if (!a->spec->task || !a->spec->state || !a->spec->listen)
        return fkt_fail(FKT_E_ARG, "a server needs a task, a folder for its state and an address to listen on");
    FKT_TRY(fkt_cohorts_load(&a->tasks, a->spec->task));
    FKT_TRY(fkt_alloc(&a->cohort, fkt_cohorts_number(a->tasks)));
    a->n = fkt_cohorts_number(a->tasks);
    if (a->spec->out) FKT_TRY(fkt_strdup(&a->out, a->spec->out));
    else FKT_TRY(fkt_path_join(&a->out, a->spec->state, "public"));
    FKT_TRY(share_descriptors(a));
    for (uint32_t i = 0; i < a->n; i++) FKT_TRY(open_cohort(a, i));
    FKT_TRY(fkt_mkdirs(a->spec->state));
out:
    return st;
}

/* ---- the sum ---- */

/* Every cohort is over. FKT_E_TOO_FEW: none has a release. */
static fkt_status add_up(struct all *a)
{
    struct fkt_cohorts_sum_spec spec = {.cohorts = a->tasks,
                                        .out = a->out,
                                        .settings = a->spec->settings,
                                        .per_class = a->spec->per_class,
                                        .format = a->spec->format,
                                        .threads = a->spec->threads,
                                        .progress = a->spec->progress};
    const char **release = NULL;
    struct fkt_cohorts_sum sum;
    uint32_t n = 0;
    fkt_status st;
    FKT_TRY(fkt_alloc(&release, a->n));
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->cohort[i].last.stage != FKT_STAGE_RELEASED) continue;
        release[i] = a->cohort[i].last.release_sha256;
        n++;
    }
    if (!n)
        FKT_TRY(fkt_fail_hint(FKT_E_TOO_FEW, "nothing was released; make a new task to try again",
                              "all %u cohorts were given up: %s", a->n, a->cohort[0].last.reason));
    spec.release_sha256 = release;
    FKT_TRY(fkt_cohorts_add_up(&sum, &spec));
    a->sum = (struct fkt_serve_view){.stage = FKT_STAGE_RELEASED, .sites = sum.sites, .survivors = sum.survivors};
    snprintf(a->sum.release_sha256, sizeof a->sum.release_sha256, "%s", sum.release_sha256);
    a->summed = 1;
out:
    fkt_free(release);
    return st;
}

/* ---- while they are served ---- */

static int tell(struct all *a, const struct fkt_serve_event *e)
{
    return a->spec->event && a->spec->event(a->spec->self, e);
}

static void tell_sum(struct all *a)
{
    const struct fkt_serve_place place = {.listen = "", .pin = "", .folder = a->out, .token_file = ""};
    const struct fkt_serve_event e = {
        .kind = FKT_SERVE_EVENT_SUM, .task = fkt_cohorts_task(a->tasks, 0), .place = &place, .view = &a->sum};
    if (a->summed && tell(a, &e)) a->stopped = 1;
}

static int heard(void *self, const struct fkt_serve_event *e)
{
    struct cohort *c = self;
    struct all *a = c->all;
    int stop;
    pthread_mutex_lock(&a->lock);
    if (!a->stopped && tell(a, e)) a->stopped = 1;
    if (e->kind == FKT_SERVE_EVENT_OVER && !c->over) {
        c->over = 1;
        c->last = *e->view;
        if (++a->over == a->n) {
            fkt_failure_save(&a->failed, add_up(a));
            tell_sum(a);
            if (a->failed.status != FKT_OK && a->failed.status != FKT_E_TOO_FEW) a->stopped = 1;
        }
    }
    stop = a->stopped;
    pthread_mutex_unlock(&a->lock);
    return stop;
}

static void stop_all(struct all *a)
{
    a->stopped = 1;
    pthread_cond_broadcast(&a->told);
}

static int all_expired(void *self, int expired)
{
    struct cohort *c = self;
    struct all *a = c->all;
    int answer;
    pthread_mutex_lock(&a->lock);
    c->asked = 1;
    a->asked++;
    a->expired += expired != 0;
    pthread_cond_broadcast(&a->told);
    while (a->asked < a->n && !a->stopped) pthread_cond_wait(&a->told, &a->lock);
    answer = a->asked < a->n ? -1 : a->expired == a->n;
    pthread_mutex_unlock(&a->lock);
    return answer;
}

/* 0: it ended as a server may, and the others go on. */
static int is_fatal(fkt_status st) { return st != FKT_OK && st != FKT_E_TOO_FEW && st != FKT_E_STOPPED; }

static void *serve_one(void *self)
{
    struct cohort *c = self;
    const struct fkt_serve_siblings siblings = {all_expired, c, c->all->connections};
    struct fkt_serve_view last;
    const fkt_status st = fkt_serve_among(&c->spec, &siblings, &last);
    pthread_mutex_lock(&c->all->lock);
    fkt_failure_save(&c->how, st);
    if (is_fatal(st) || !c->asked) stop_all(c->all);
    pthread_mutex_unlock(&c->all->lock);
    return NULL;
}

static fkt_status run(struct all *a)
{
    fkt_status st = FKT_OK;
    for (uint32_t i = 0; i < a->n && st == FKT_OK; i++) {
        struct cohort *c = &a->cohort[i];
        if (pthread_create(&c->thread, NULL, serve_one, c) == 0) c->started = 1;
        else st = fkt_fail(FKT_E_NOMEM, "cannot start a thread for cohort %u", i);
    }
    if (st != FKT_OK) {
        pthread_mutex_lock(&a->lock);
        stop_all(a);
        pthread_mutex_unlock(&a->lock);
    }
    for (uint32_t i = 0; i < a->n; i++)
        if (a->cohort[i].started) pthread_join(a->cohort[i].thread, NULL);
    if (st != FKT_OK) return st;
    for (uint32_t i = 0; i < a->n; i++)
        if (is_fatal(a->cohort[i].how.status))
            return fkt_fail_in(fkt_failure_restore(&a->cohort[i].how), "cohort %u", i);
    if (a->failed.status != FKT_OK) return fkt_failure_restore(&a->failed);
    if (a->summed) return FKT_OK;
    return fkt_hint_code(fkt_fail(FKT_E_STOPPED, "stopped"), FKT_HINT_SAME_STATE,
                         "start it again with the same state to continue");
}

fkt_status fkt_serve_cohorts(const struct fkt_serve_spec *spec, struct fkt_serve_view *last)
{
    struct all a = {.spec = spec};
    struct fkt_failure why;
    fkt_status st;
    pthread_mutex_init(&a.lock, NULL);
    pthread_cond_init(&a.told, NULL);
    st = open_all(&a);
    if (st == FKT_OK) st = run(&a);
    fkt_failure_save(&why, st);
    if (st == FKT_E_TOO_FEW) a.sum.stage = FKT_STAGE_GIVEN_UP;
    if (last) *last = a.sum;
    for (uint32_t i = 0; i < a.n; i++) {
        fkt_free(a.cohort[i].state);
        fkt_free(a.cohort[i].out);
    }
    fkt_free(a.cohort);
    fkt_free(a.out);
    fkt_cohorts_free(a.tasks);
    pthread_cond_destroy(&a.told);
    pthread_mutex_destroy(&a.lock);
    return fkt_failure_restore(&why);
}
