/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c - batches of requests to the mailbox and back (docs/http.md 3).
 *
 * Group commit: everything that arrived while the last batch was written is delivered together and settled once. So a
 * thousand sites cost a few disk syncs per second, and each answer still leaves after its message is on disk. A poll
 * that finds nothing is parked here (one per site; a second one ends the first) and is tried again after every batch
 * and every tick; with many of them at most every SWEEP_MS, so that a burst of deliveries does not check every site
 * each time.
 *
 * A failing mailbox is final: the answers that were about to leave become 503, because it is not known which messages
 * are on disk. */
#include "net/queue.h"

#include "base/alloc.h"
#include "crypto/hash.h"

#include <inttypes.h>
#include <string.h>

enum { TICK_MS = 200, SWEEP_MS = 20, SWEEP_FREE = 64, FILES_SECONDS = 3 };

struct fkt_queue {
    struct fkt_queue_spec spec;
    fkt_status st;           /* sticky */
    struct fkt_job **parked; /* (sites) */
    uint32_t *order;         /* (sites) whose poll is parked */
    uint32_t *place;         /* (sites) where in order */
    uint32_t n;
    uint64_t tick_ms, sweep_ms; /* of the last */
    int ticked, stale;          /* stale: something was delivered since the last sweep */
    int work;                   /* waits, or is being done */
    char shown[FKT_HASH_HEX];   /* what the status page was last sent */
};

/* What a batch gathers: jobs that are decided, in order. */
struct batch {
    struct fkt_job *head, **tail;
};

static void decide(struct batch *b, struct fkt_job *j)
{
    j->next = NULL;
    *b->tail = j;
    b->tail = &j->next;
}

fkt_status fkt_queue_new(struct fkt_queue **out, const struct fkt_queue_spec *spec)
{
    struct fkt_queue *d = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&d, 1));
    d->spec = *spec;
    FKT_TRY(fkt_alloc(&d->parked, spec->box->sites));
    FKT_TRY(fkt_alloc(&d->order, spec->box->sites));
    FKT_TRY(fkt_alloc(&d->place, spec->box->sites));
    *out = d;
    d = NULL;
out:
    fkt_queue_free(d);
    return st;
}

void fkt_queue_free(struct fkt_queue *d)
{
    if (!d) return;
    fkt_free(d->parked);
    fkt_free(d->order);
    fkt_free(d->place);
    fkt_free(d);
}

uint32_t fkt_queue_parked(const struct fkt_queue *d) { return d->n; }

uint64_t fkt_queue_due(const struct fkt_queue *d)
{
    if (!d->ticked) return 0;
    return d->stale && d->n && d->sweep_ms + SWEEP_MS < d->tick_ms + TICK_MS ? d->sweep_ms + SWEEP_MS
                                                                             : d->tick_ms + TICK_MS;
}

void fkt_queue_note(struct fkt_queue *d, uint32_t site, enum fkt_refusal why)
{
    if (d->st == FKT_OK) d->st = d->spec.box->refuse(d->spec.box->self, site, why);
}

/* The mailbox reports work once; here it stays pending until it was done, also if no thread could be started. */
int fkt_queue_has_work(struct fkt_queue *d)
{
    if (d->st == FKT_OK && !d->work) d->work = d->spec.box->has_work(d->spec.box->self);
    return d->st == FKT_OK && d->work;
}

void fkt_queue_worked(struct fkt_queue *d, fkt_status st)
{
    if (d->st == FKT_OK) d->st = d->spec.box->worked(d->spec.box->self, st);
    d->work = 0;
    d->stale = 1;
}

static void park(struct fkt_queue *d, struct fkt_job *j)
{
    d->place[j->site] = d->n;
    d->order[d->n++] = j->site;
    d->parked[j->site] = j;
}

static void unpark(struct fkt_queue *d, uint32_t site)
{
    const uint32_t last = d->order[--d->n];
    d->order[d->place[site]] = last;
    d->place[last] = d->place[site];
    d->parked[site] = NULL;
}

/* 1 when the poll has its answer. The bytes belong to the mailbox until its next call, so they are copied. */
static int poll_once(struct fkt_queue *d, struct fkt_job *j, uint64_t now_ms)
{
    const struct fkt_mailbox *box = d->spec.box;
    struct fkt_message *l = &j->message;
    memset(l, 0, sizeof *l);
    j->verdict = box->collect(box->self, j->site, j->target.any_round ? NULL : j->target.round, j->target.after, l);
    if (j->verdict != FKT_OK) {
        d->st = j->verdict;
        return 1;
    }
    if (l->len) {
        j->verdict = fkt_alloc(&j->answer.body, l->len);
        if (j->verdict == FKT_OK) memcpy(j->answer.body, l->bytes, l->len);
        return 1;
    }
    return l->stage >= FKT_STAGE_RELEASED || l->lost != FKT_OK || now_ms >= j->until_ms;
}

static void begin_poll(struct fkt_queue *d, struct fkt_job *j, uint64_t now_ms, struct batch *b)
{
    struct fkt_job *first = d->parked[j->site];
    if (first) {
        memset(&first->message, 0, sizeof first->message);
        unpark(d, j->site);
        decide(b, first);
    }
    j->until_ms = now_ms + (uint64_t)j->target.wait * 1000;
    if (poll_once(d, j, now_ms)) decide(b, j);
    else park(d, j);
}

static void begin(struct fkt_queue *d, struct fkt_job *j, uint64_t now_ms, struct batch *b)
{
    const struct fkt_mailbox *box = d->spec.box;
    if (d->st == FKT_OK && j->target.what == FKT_TARGET_POLL) {
        begin_poll(d, j, now_ms, b);
        return;
    }
    if (d->st == FKT_OK && j->target.what == FKT_TARGET_MESSAGES) {
        j->verdict = box->deliver(box->self, j->site, j->body, j->len);
        d->stale = 1;
        if (j->verdict != FKT_OK && j->verdict != FKT_E_STATE && j->verdict != FKT_E_PEER_FORMAT &&
            j->verdict != FKT_E_PEER_AUTH)
            d->st = j->verdict;
    }
    decide(b, j);
}

static void sweep(struct fkt_queue *d, uint64_t now_ms, struct batch *b)
{
    for (uint32_t i = 0; i < d->n && d->st == FKT_OK;) {
        struct fkt_job *j = d->parked[d->order[i]];
        j->waited = 1;
        if (poll_once(d, j, now_ms)) {
            unpark(d, j->site);
            decide(b, j);
        } else {
            i++;
        }
    }
    d->sweep_ms = now_ms;
    d->stale = 0;
}

/* ---- answers ---- */

/* Headers of every answer to a site. */
struct signs {
    struct fkt_mailbox_view view;
    uint64_t entry;
    char head[65];
};

static void sign_answer(struct fkt_answer *a, const struct signs *s, enum fkt_stage stage)
{
    fkt_answer_header(a, "Fedkt-Stage", "%s", fkt_stage_name(stage));
    fkt_answer_header(a, "Fedkt-Log", "%" PRIu64 ":%s", s->entry, s->head);
}

static void answer_message(struct fkt_job *j, const struct signs *s)
{
    const int over = s->view.stage >= FKT_STAGE_RELEASED;
    if (j->verdict == FKT_OK) j->answer.code = 204;
    else if (j->verdict != FKT_E_STATE)
        fkt_answer_problem(&j->answer, 422, "false", "the message is invalid, and this site is out of this round");
    else if (over) fkt_answer_problem(&j->answer, 410, "over", "the task is over");
    else
        fkt_answer_problem(&j->answer, 409, "not-wanted",
                           "the message is late, has come before, or belongs to another round");
    sign_answer(&j->answer, s, s->view.stage);
}

static void answer_poll(struct fkt_job *j, const struct signs *s)
{
    struct fkt_answer *a = &j->answer;
    const struct fkt_message *l = &j->message;
    if (j->verdict != FKT_OK) {
        fkt_answer_busy(a, "the server is short of memory", 1);
    } else if (l->len) {
        char hex[2 * FKT_MAILBOX_ROUND + 1];
        fkt_hex(hex, l->round, FKT_MAILBOX_ROUND);
        a->code = 200;
        a->type = "application/x-protobuf";
        a->len = l->len;
        fkt_answer_header(a, "Fedkt-Round", "%s", hex);
        fkt_answer_header(a, "Fedkt-Index", "%" PRIu32, l->index);
    } else if (l->stage >= FKT_STAGE_RELEASED) {
        fkt_answer_problem(a, 410, "over", "the task is over");
    } else {
        a->code = 204;
    }
    if (l->lost != FKT_OK) fkt_answer_header(a, "Fedkt-Lost", "%d", (int)l->lost);
    sign_answer(a, s, s->view.stage);
}

static const char *type_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    if (strcmp(dot, ".json") == 0) return "application/json";
    if (strcmp(dot, ".jsonl") == 0) return "application/jsonl";
    if (strcmp(dot, ".png") == 0) return "image/png";
    return "application/octet-stream";
}

static void answer_file(struct fkt_queue *d, struct fkt_job *j, const char *name, enum fkt_stage stage)
{
    const char *path = d->spec.box->file(d->spec.box->self, name);
    struct fkt_answer *a = &j->answer;
    if (!path && stage == FKT_STAGE_FINISHING) {
        fkt_answer_busy(a, "the files are being made, or compared with the transparency log after a restart",
                        FILES_SECONDS);
    } else if (!path) {
        fkt_answer_problem(a, 404, "not-found", "there is no such file, or not yet");
    } else if (fkt_strdup(&a->path, path) != FKT_OK) {
        fkt_answer_busy(a, "the server is short of memory", 1);
    } else {
        a->code = 200;
        a->type = type_of(name);
        if (j->target.what == FKT_TARGET_DOWNLOAD)
            fkt_answer_header(a, "Content-Disposition", "attachment; filename=\"%s\"", name);
    }
}

static void answer_text(struct fkt_answer *a, struct fkt_text *t, const char *type)
{
    if (fkt_text_status(t) != FKT_OK) {
        fkt_text_clear(t);
        fkt_answer_busy(a, "the server is short of memory", 1);
        return;
    }
    a->code = 200;
    a->type = type;
    a->body = t->s;
    a->len = t->len;
}

static void answer_person(struct fkt_queue *d, struct fkt_job *j, uint64_t wall_ms,
                          const struct fkt_page_counts *counts)
{
    const struct fkt_mailbox *box = d->spec.box;
    const int grid = box->file(box->self, "grid.png") != NULL;
    struct fkt_mailbox_view view;
    struct fkt_text t;
    fkt_text_init(&t);
    box->view(box->self, &view);
    if (j->target.what == FKT_TARGET_METRICS) {
        fkt_page_metrics(&t, d->spec.facts, &view, counts, wall_ms);
        answer_text(&j->answer, &t, "text/plain; version=0.0.4; charset=utf-8");
    } else {
        fkt_page_status(&t, d->spec.facts, &view, counts, wall_ms, grid);
        fkt_text_add(&t, "\n");
        answer_text(&j->answer, &t, "application/json");
    }
}

static void answer(struct fkt_queue *d, struct fkt_job *j, const struct signs *s, uint64_t wall_ms,
                   const struct fkt_page_counts *counts)
{
    switch (j->target.what) {
    case FKT_TARGET_MESSAGES: answer_message(j, s); return;
    case FKT_TARGET_POLL: answer_poll(j, s); return;
    case FKT_TARGET_TASK:
        j->answer.code = 200;
        j->answer.type = "application/json";
        j->answer.text = d->spec.task_text;
        sign_answer(&j->answer, s, s->view.stage);
        return;
    case FKT_TARGET_FILE:
        answer_file(d, j, j->target.name, s->view.stage);
        sign_answer(&j->answer, s, s->view.stage);
        return;
    case FKT_TARGET_DOWNLOAD: answer_file(d, j, j->target.name, s->view.stage); return;
    case FKT_TARGET_GRID: answer_file(d, j, "grid.png", s->view.stage); return;
    default: answer_person(d, j, wall_ms, counts); return;
    }
}

/* Final: it is not known what is on disk, and no parked request will be served. */
static void send_away(struct fkt_queue *d, struct batch *b, const char *detail)
{
    while (d->n) {
        struct fkt_job *j = d->parked[d->order[0]];
        unpark(d, j->site);
        decide(b, j);
    }
    for (struct fkt_job *j = b->head; j; j = j->next) {
        fkt_answer_clear(&j->answer);
        fkt_answer_busy(&j->answer, detail, 5);
    }
}

fkt_status fkt_queue_turn(struct fkt_queue *d, uint64_t now_ms, uint64_t wall_ms, struct fkt_job *jobs,
                          const struct fkt_page_counts *counts, struct fkt_job **done)
{
    const struct fkt_mailbox *box = d->spec.box;
    struct batch b = {NULL, &b.head};
    struct signs s;
    struct fkt_job *next;
    if (d->st == FKT_OK && (!d->ticked || now_ms >= d->tick_ms + TICK_MS)) {
        d->st = box->tick(box->self, wall_ms);
        d->tick_ms = now_ms;
        d->ticked = d->stale = 1;
    }
    for (struct fkt_job *j = jobs; j; j = next) {
        next = j->next;
        begin(d, j, now_ms, &b);
    }
    if (d->stale && (d->n <= SWEEP_FREE || now_ms >= d->sweep_ms + SWEEP_MS)) sweep(d, now_ms, &b);
    if (d->st == FKT_OK) d->st = box->settle(box->self);
    if (d->st != FKT_OK) {
        send_away(d, &b, "the server cannot go on");
    } else if (b.head) {
        box->head(box->self, &s.entry, s.head);
        box->view(box->self, &s.view);
        for (struct fkt_job *j = b.head; j; j = j->next) answer(d, j, &s, wall_ms, counts);
    }
    *done = b.head;
    return d->st;
}

struct fkt_job *fkt_queue_close(struct fkt_queue *d)
{
    struct batch b = {NULL, &b.head};
    send_away(d, &b, "the server is being stopped");
    return b.head;
}

int fkt_queue_news(struct fkt_queue *d, uint64_t wall_ms, const struct fkt_page_counts *counts, int wanted,
                   struct fkt_text *out)
{
    static const struct fkt_page_counts none;
    const struct fkt_mailbox *box = d->spec.box;
    const int grid = box->file(box->self, "grid.png") != NULL;
    struct fkt_mailbox_view view;
    struct fkt_text still;
    char hash[FKT_HASH_HEX];
    box->view(box->self, &view);
    fkt_text_init(&still); /* removes what depends on time and load */
    fkt_page_status(&still, d->spec.facts, &view, &none, 0, grid);
    fkt_hash_bytes_hex(hash, still.s, still.len);
    fkt_text_clear(&still);
    if (!wanted && strcmp(hash, d->shown) == 0) return 0;
    memcpy(d->shown, hash, sizeof hash);
    fkt_page_status(out, d->spec.facts, &view, counts, wall_ms, grid);
    return 1;
}
