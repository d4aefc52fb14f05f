/* SPDX-License-Identifier: Apache-2.0 */
/* serve_cohorts.c - fkt_serve_cohorts: the servers of all cohorts of a task, and the sum of their releases.
 *
 *   tasks in a folder -> a thread for each cohort: fkt_serve on its own state, port and public folder
 *   every cohort over -> releases of those that have one, added up (pipeline/sum.c) -> public files
 *
 *   state/cohort-0000/   journal, certificate and token of cohort 0      out/release.safetensors  certificate.json
 *   out/cohorts/0000/    its public folder, transparency log and all         dataset/  grid.png: of the sum
 *
 * A cohort is an ordinary task: its server knows nothing of the others, and each has its own rounds and deadlines. One
 * that is given up is missing from the sum, which says so. A cohort's server that cannot go on stops all of them: the
 * same call continues from their states. The sum has no state: it is made again from the releases, and is the same.
 *
 * The caller's hook is called under one lock, for one cohort at a time. */
#include "fedkt/serve.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "pipeline/publish.h"
#include "pipeline/sum.h"
#include "task/division.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COHORTS_MAX = 4096 }; /* of one process: each has a port and some threads */

struct all;
struct cohort {
    struct all *all;
    struct fkt_task task;
    struct fkt_serve_spec spec;
    char *file, *state, *out, listen[300]; /* what the spec points to; owned */
    pthread_t thread;
    int started, over;
    struct fkt_serve_view last;
    struct fkt_failure how;
};

struct all {
    const struct fkt_serve_spec *spec;
    pthread_mutex_t lock;
    struct cohort *cohort; /* (n) */
    uint32_t n, over;
    char *out; /* the public folder of the sum */
    struct fkt_serve_view sum;
    struct fkt_failure failed; /* of the sum */
    int stopped, summed;
};

/* ---- tasks ---- */

static fkt_status load_task(struct all *a, uint32_t i, struct fkt_task *out, char **path)
{
    char name[32];
    fkt_status st;
    snprintf(name, sizeof name, "cohort-%04u.json", i);
    FKT_TRY(fkt_path_join(path, a->spec->task, name));
    FKT_TRY(fkt_task_load_into(out, *path));
    if (out->division.number && out->division.index == i) goto out;
    st = fkt_fail_hint(FKT_E_MISMATCH, "give a folder that was made for a task in cohorts, unchanged",
                       "'%s' is not the task of cohort %u", *path, i);
out:
    return st;
}

/* All of one division. */
static fkt_status check_same(const struct all *a, uint32_t i)
{
    struct fkt_task first = {0}, own = {0};
    fkt_status st;
    FKT_TRY(fkt_task_whole(&first, &a->cohort[0].task));
    FKT_TRY(fkt_task_whole(&own, &a->cohort[i].task));
    if (strcmp(first.sha256, own.sha256) != 0)
        st = fkt_fail_hint(FKT_E_MISMATCH, "give a folder that was made for a task in cohorts, unchanged",
                           "'%s' is of another division than '%s'", a->cohort[i].file, a->cohort[0].file);
out:
    fkt_task_clear(&first);
    fkt_task_clear(&own);
    return st;
}

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

/* Every enrolled site is in the task of its cohort. */
static fkt_status check_rosters(const struct all *a)
{
    struct fkt_division_keys keys = {0};
    fkt_status st = FKT_OK;
    for (uint32_t i = 0; i < a->n; i++) FKT_TRY(fkt_division_keys_add(&keys, &a->cohort[i].task.federation));
    FKT_TRY(fkt_division_keys_check(&keys, &a->cohort[0].task.division));
out:
    fkt_division_keys_clear(&keys);
    if (st != FKT_E_MISMATCH) return st;
    return fkt_hint(fkt_fail_in(st, "'%s'", a->spec->task),
                    "give a folder that was made for a task in cohorts, unchanged");
}

static int heard(void *self, const struct fkt_serve_event *e);

static fkt_status open_cohort(struct all *a, uint32_t i)
{
    struct cohort *c = &a->cohort[i];
    char name[32];
    fkt_status st;
    c->all = a;
    FKT_TRY(load_task(a, i, &c->task, &c->file));
    FKT_TRY(check_same(a, i));
    FKT_TRY(listen_of(c, a->spec->listen, i));
    snprintf(name, sizeof name, "cohort-%04u", i);
    FKT_TRY(fkt_path_join(&c->state, a->spec->state, name));
    snprintf(name, sizeof name, "cohorts/%04u", i);
    FKT_TRY(fkt_path_join(&c->out, a->out, name));
    c->spec = *a->spec;
    c->spec.task = c->file;
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

static fkt_status open_all(struct all *a)
{
    struct fkt_task first = {0};
    char *path = NULL;
    fkt_status st;
    if (!a->spec->task || !a->spec->state || !a->spec->listen)
        return fkt_fail(FKT_E_ARG, "a server needs a task, a folder for its state and an address to listen on");
    FKT_TRY(load_task(a, 0, &first, &path));
    if (first.division.number > COHORTS_MAX)
        FKT_TRY(fkt_fail_hint(FKT_E_ARG, "make fewer, larger cohorts", "%u cohorts; one process serves at most %d",
                              first.division.number, COHORTS_MAX));
    FKT_TRY(fkt_alloc(&a->cohort, first.division.number));
    a->n = first.division.number;
    if (a->spec->out) FKT_TRY(fkt_strdup(&a->out, a->spec->out));
    else FKT_TRY(fkt_path_join(&a->out, a->spec->state, "public"));
    for (uint32_t i = 0; i < a->n; i++) FKT_TRY(open_cohort(a, i));
    FKT_TRY(check_rosters(a));
    FKT_TRY(fkt_mkdirs(a->spec->state));
out:
    fkt_task_clear(&first);
    fkt_free(path);
    return st;
}

/* ---- the sum ---- */

static fkt_status publish(struct all *a, const struct fkt_release *sum)
{
    struct fkt_publication f = {.out = a->out,
                                .per_class = a->spec->per_class ? a->spec->per_class : 100,
                                .format = a->spec->format,
                                .threads = a->spec->threads,
                                .progress = a->spec->progress};
    struct fkt_pipeline *pipeline = NULL;
    fkt_status st;
    FKT_TRY(fkt_release_pipeline(sum, &a->spec->settings, &pipeline));
    f.pipeline = pipeline;
    FKT_TRY(fkt_release_bytes(sum, &f.bytes, &f.len));
    FKT_TRY(fkt_release_certificate(sum, &f.certificate));
    memcpy(f.sha256, sum->sha256, sizeof f.sha256);
    st = fkt_publish_files(&f);
    if (st == FKT_E_NUMERIC) { /* a decoder refuses the numbers: release and certificate are there */
        fkt_publish_no_files(&f);
        st = FKT_OK;
    }
out:
    fkt_publication_clear(&f);
    fkt_pipeline_free(pipeline);
    return st;
}

/* Every cohort is over. FKT_E_TOO_FEW: none has a release. */
static fkt_status add_up(struct all *a)
{
    struct fkt_release **made = NULL, sum = {0};
    char *path = NULL;
    uint32_t n = 0;
    fkt_status st;
    FKT_TRY(fkt_alloc(&made, a->n));
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->cohort[i].last.stage != FKT_STAGE_RELEASED) continue;
        fkt_free(path);
        path = NULL;
        FKT_TRY(fkt_path_join(&path, a->cohort[i].out, "release.safetensors"));
        FKT_TRY(fkt_release_load(&made[n], path));
        if (strcmp(made[n++]->sha256, a->cohort[i].last.release_sha256) != 0)
            FKT_TRY(fkt_fail(FKT_E_MISMATCH, "'%s' is not the release that cohort %u ended with", path, i));
    }
    if (!n)
        FKT_TRY(fkt_fail_hint(FKT_E_TOO_FEW, "nothing was released; make a new task to try again",
                              "all %u cohorts were given up: %s", a->n, a->cohort[0].last.reason));
    FKT_TRY(fkt_release_sum_into(&sum, made, n));
    FKT_TRY(publish(a, &sum));
    a->sum = (struct fkt_serve_view){
        .stage = FKT_STAGE_RELEASED, .sites = sum.facts.sites, .survivors = sum.facts.survivors};
    snprintf(a->sum.release_sha256, sizeof a->sum.release_sha256, "%s", sum.sha256);
    a->summed = 1;
out:
    for (uint32_t i = 0; made && i < a->n; i++) fkt_release_free(made[i]);
    fkt_free(made);
    fkt_free(path);
    fkt_release_clear(&sum);
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
        .kind = FKT_SERVE_EVENT_SUM, .task = &a->cohort[0].task, .place = &place, .view = &a->sum};
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

/* 0: it ended as a server may, and the others go on. */
static int is_fatal(fkt_status st) { return st != FKT_OK && st != FKT_E_TOO_FEW && st != FKT_E_STOPPED; }

static void *serve_one(void *self)
{
    struct cohort *c = self;
    struct fkt_serve_view last;
    const fkt_status st = fkt_serve(&c->spec, &last);
    pthread_mutex_lock(&c->all->lock);
    fkt_failure_save(&c->how, st);
    if (is_fatal(st)) c->all->stopped = 1;
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
        a->stopped = 1;
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
    st = open_all(&a);
    if (st == FKT_OK) st = run(&a);
    fkt_failure_save(&why, st);
    if (st == FKT_E_TOO_FEW) a.sum.stage = FKT_STAGE_GIVEN_UP;
    if (last) *last = a.sum;
    for (uint32_t i = 0; i < a.n; i++) {
        fkt_task_clear(&a.cohort[i].task);
        fkt_free(a.cohort[i].file);
        fkt_free(a.cohort[i].state);
        fkt_free(a.cohort[i].out);
    }
    fkt_free(a.cohort);
    fkt_free(a.out);
    pthread_mutex_destroy(&a.lock);
    return fkt_failure_restore(&why);
}
