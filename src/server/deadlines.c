/* SPDX-License-Identifier: Apache-2.0 */
/* deadlines.c - what happens when time passes.
 *
 *   GATHERING   all sites present, or enough of them for gather_seconds -> a round begins; past `expires` -> given up
 *   RUNNING     phase_seconds since the phase began -> its deadline, unless waiting can still save the round
 *   always      the refusals of a minute become log lines; events of finished rounds are deleted, some at a time
 *
 * Time is the caller's wall clock, because lines of the log and `expires` refer to it. Waiting is measured by how far
 * that clock moves forward from tick to tick, at most TICK_MS each. So a clock step forward, or a machine that slept,
 * does not expire sites, and a clock step back lengthens a wait by at most its own length. For the same reason one
 * reading past `expires` ends nothing: the clock must have been past it for EXPIRED_MS, and until then no round begins.
 * A restart starts the wait again, because sites could not answer while there was no server. But over all restarts
 * together a server waits at most PATIENCE times as long: otherwise a server that is restarted again and again would
 * never end a phase in which a site is dead. The time waited is in the journal, roughly: every SAVE_MS, and LIFE_MS for
 * each start.
 *
 * A round begins only when the journal holds no events of earlier rounds.
 *
 * From MASK on sites have reserved budget, and in REVEAL they have spent it. A round that fails then costs them
 * budget; a round that waits costs time. So a deadline does not end the round while answers of silent sites could
 * still lead to a sum (`hold`). It does end it when the task has expired, or when no site has revealed and enough
 * sites for another round have been present for phase_seconds: that round takes over their reservations. */
#include "server/server.h"

#include "task/task.h"

#include "base/alloc.h"
#include "secagg/inspect.h"

#include <stdlib.h>

#define FORGET_BYTES (32U << 20) /* of messages in one go: a few tens of milliseconds */
#define FORGET_MOST 4096U
#define PATIENCE 4U
#define SAVE_MS 5000U
#define LIFE_MS 1000U
#define TICK_MS 5000U     /* longest time that counts between two ticks */
#define EXPIRED_MS 60000U /* a clock error that is corrected within it has no effect */

int fkt_server_present(const struct fkt_server *h, uint32_t site)
{
    const uint64_t seen = h->slot[site].seen;
    return seen && h->elapsed - (seen - 1) <= FKT_MAILBOX_PRESENT_MS;
}

/* ---- waiting, over several processes ---- */

void fkt_server_wait_anew(struct fkt_server *h, uint32_t page)
{
    h->phase_since = page && h->ticked ? h->now_ms : 0;
    h->phase_began = h->elapsed;
    h->enough_since = 0;
    h->overdue = 0;
    h->wait = (struct fkt_server_wait){.page = page};
}

static fkt_status save_wait(struct fkt_server *h, uint64_t ms)
{
    char text[64];
    snprintf(text, sizeof text, "%u %u %llu", h->round, h->wait.page, (unsigned long long)ms);
    h->wait.saved = ms;
    return fkt_journal_fact_change(h->journal, "waited", text);
}

/* `ms` of it in this process. */
static fkt_status note_wait(struct fkt_server *h, uint64_t ms)
{
    ms += h->wait.before;
    return ms >= h->wait.saved + SAVE_MS ? save_wait(h, ms) : FKT_OK;
}

/* Ms left of a wait of `seconds`, after `ms` in this process. */
static uint64_t wait_left(const struct fkt_server *h, uint32_t seconds, uint64_t ms)
{
    const uint64_t now = (uint64_t)seconds * 1000, all = PATIENCE * now;
    if (ms >= now || h->wait.before + ms >= all) return 0;
    return now - ms < all - h->wait.before - ms ? now - ms : all - h->wait.before - ms;
}

fkt_status fkt_server_resume_wait(struct fkt_server *h)
{
    char *text = NULL, *end;
    unsigned long long n[3] = {0};
    int i;
    fkt_status st;
    FKT_TRY(fkt_journal_fact(h->journal, "waited", &text));
    if (!text) goto out;
    end = text;
    for (i = 0; i < 3 && *end >= '0' && *end <= '9'; i++) {
        n[i] = strtoull(end, &end, 10);
        if (i < 2 && *end == ' ') end++;
    }
    if (i < 3 || *end || n[2] > UINT32_MAX) {
        st = fkt_fail(FKT_E_FORMAT, "the journal is damaged: the time waited is not a number");
        goto out;
    }
    if (n[0] == h->round && n[1] == h->wait.page) h->wait.before = h->wait.saved = n[2];
out:
    fkt_free(text);
    return st;
}

/* ---- the clock ---- */

/* The first tick of this process; the log is opened with the first one of all. */
static fkt_status greet(struct fkt_server *h)
{
    fkt_status st = FKT_OK;
    h->ticked = 1;
    h->stage_since = h->now_ms;
    if (h->log.ended) goto out;
    if (h->stage == FKT_STAGE_RUNNING) {
        h->phase_since = h->now_ms;
        h->wait.before += LIFE_MS;
        FKT_TRY(save_wait(h, h->wait.before));
    }
    if (!h->log.last.entry)
        FKT_TRY(fkt_server_note(h, "open",
                                json_pack("{s:s s:o s:s}", "schema", "fedkt.transparency/1", "task",
                                          fkt_task_document(h->task), "version", fkt_version())));
    FKT_TRY(fkt_server_note(h, "start", json_pack("{s:s}", "version", fkt_version())));
out:
    return st;
}

static fkt_status forget(struct fkt_server *h)
{
    const uint32_t last = h->server ? h->round - 1 : h->round; /* the current one is needed */
    uint64_t limit = FORGET_BYTES / (fkt_sa_to_server_max(&h->params) + 1) + 1;
    int left;
    fkt_status st = FKT_OK;
    if (!h->sweep) goto out;
    if (limit > FORGET_MOST) limit = FORGET_MOST;
    FKT_TRY(fkt_journal_forget(h->journal, last, (uint32_t)limit, &left));
    if (!left) {
        h->sweep = 0;
        h->scrub = 1;
    }
out:
    return st;
}

static uint32_t present(const struct fkt_server *h)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->params.sites; i++) n += (uint32_t)fkt_server_present(h, i);
    return n;
}

/* Are `there` sites enough for a round? enough_since: since when. */
static int enough(struct fkt_server *h, uint32_t there)
{
    if (there < h->params.sites - h->params.dropped) h->enough_since = 0;
    else if (!h->enough_since) h->enough_since = h->elapsed + 1;
    return h->enough_since != 0;
}

/* The clock has been past `expires` for EXPIRED_MS. */
static int has_expired(struct fkt_server *h)
{
    const uint64_t expires = h->task->service.expires;
    if (!expires || h->now_ms / 1000 < expires) h->expired_since = 0;
    else if (!h->expired_since) h->expired_since = h->elapsed + 1;
    return h->expired_since && h->elapsed - (h->expired_since - 1) >= EXPIRED_MS;
}

static fkt_status gather(struct fkt_server *h)
{
    const struct fkt_service *s = &h->task->service;
    const uint32_t all = h->params.sites, needed = all - h->params.dropped;
    const int expired = s->expires && h->now_ms / 1000 >= s->expires;
    const uint32_t there = present(h);
    uint64_t waited = 0;
    fkt_status st = FKT_OK;
    if (has_expired(h)) return fkt_server_give_up(h, "the task has expired before a round succeeded");
    if (enough(h, there)) {
        waited = h->elapsed - (h->enough_since - 1);
        FKT_TRY(note_wait(h, waited));
    } else if (h->elapsed > 2 * FKT_MAILBOX_PRESENT_MS) {
        h->wait.before = h->wait.saved = 0; /* they had time to return */
    }
    if (h->sweep || h->scrub || expired || there < needed) goto out;
    if (there < all && wait_left(h, s->gather_seconds, waited)) goto out;
    FKT_TRY(fkt_server_begin(h));
out:
    return st;
}

uint64_t fkt_server_phase_left(const struct fkt_server *h)
{
    return wait_left(h, h->task->service.phase_seconds, h->elapsed - h->phase_began);
}

/* Does the server keep waiting after the end of the phase? */
static int hold(struct fkt_server *h)
{
    const uint64_t phase = (uint64_t)h->task->service.phase_seconds * 1000;
    uint32_t revealed = 0;
    if (has_expired(h) || !fkt_sa_server_worth_waiting(h->server)) return 0;
    for (uint32_t i = 0; i < h->params.sites; i++) revealed += h->slot[i].revealed;
    if (revealed || h->round >= h->task->service.rounds) return 1;
    return !enough(h, present(h)) || h->elapsed - (h->enough_since - 1) < phase;
}

static fkt_status wait_for_phase(struct fkt_server *h)
{
    fkt_status st;
    FKT_TRY(note_wait(h, h->elapsed - h->phase_began));
    h->overdue = !fkt_server_phase_left(h) && hold(h);
    if (!fkt_server_phase_left(h) && !h->overdue) FKT_TRY(fkt_server_deadline(h));
out:
    return st;
}

fkt_status fkt_server_tick(void *self, uint64_t now_ms)
{
    struct fkt_server *h = self;
    fkt_status st = FKT_OK;
    if (h->broken.status != FKT_OK) return fkt_failure_restore(&h->broken);
    if (h->ticked && now_ms > h->now_ms) h->elapsed += now_ms - h->now_ms < TICK_MS ? now_ms - h->now_ms : TICK_MS;
    h->now_ms = now_ms;
    if (!h->ticked) FKT_TRY(greet(h));
    FKT_TRY(fkt_refusals_tick(h));
    FKT_TRY(forget(h));
    if (h->stage == FKT_STAGE_GATHERING && !h->gave_up) FKT_TRY(gather(h));
    else if (h->stage == FKT_STAGE_RUNNING) FKT_TRY(wait_for_phase(h));
out:
    return st == FKT_OK ? st : fkt_server_break(h, st);
}
