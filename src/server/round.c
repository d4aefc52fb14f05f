/* SPDX-License-Identifier: Apache-2.0 */
/* round.c - one round of a task: events into the state machine, its messages out, and what is recorded of them.
 *
 *   message, or a deadline -> state machine -> journal, transparency log -> its new messages, the newest for each site
 *
 * The machine's state is a function of its round's name and of its events in order (src/secagg/server.c). The journal
 * holds these, and a restart replays them. Its messages are collected after every event, live and in replay, so that
 * both give each site the same messages with the same numbers. A site answers a message before it gets the next one, so
 * only the newest can be missing.
 *
 * Cost of a message: the machine's, a hash, a row. All sites are scanned only at the end of a phase. */
#include "server/server.h"

#include "base/alloc.h"
#include "base/text.h"
#include "secagg/inspect.h"
#include "secagg/msg.h"

#include <string.h>

/* Before and after one event. */
struct step {
    enum fkt_sa_state was;
    struct fkt_sa_census before;
    uint32_t site;           /* the sender; FKT_MAILBOX_NOBODY: a deadline */
    int answered;            /* the site's message of this phase was accepted */
    fkt_status verdict;      /* of the message */
    struct fkt_failure said; /* with its sentence */
    struct fkt_failure end;  /* why the round failed, if it did */
};

static struct step begin_step(const struct fkt_server *h, uint32_t site)
{
    struct step s = {.was = h->phase, .before = h->census, .site = site};
    return s;
}

/* ---- the machine ---- */

fkt_status fkt_server_drain(struct fkt_server *h)
{
    struct fkt_server_set_status *slot;
    uint32_t to;
    size_t len;
    fkt_status st;
    for (;;) {
        FKT_TRY(fkt_sa_server_next(h->server, &to, h->scratch, h->scratch_len, &len));
        if (!len) break;
        slot = &h->slot[to];
        fkt_server_drop_messages(slot);
        FKT_TRY(fkt_alloc(&slot->mail, len));
        memcpy(slot->mail, h->scratch, len);
        slot->mail_len = len;
        slot->index++;
    }
out:
    return st;
}

static fkt_status hear(struct fkt_server *h, struct step *s, const uint8_t *msg, size_t len)
{
    struct fkt_sa_census now;
    fkt_status st = fkt_sa_server_recv(h->server, s->site, msg, len), slot;
    fkt_sa_server_census(h->server, &now);
    if (fkt_sa_server_state(h->server) == FKT_SA_STATE_FAILED) {
        if (fkt_server_own_failure(st)) return st;
        fkt_failure_save(&s->end, st); /* it replaces the sentence about the message */
        slot = fkt_sa_server_site(h->server, s->site);
        if (now.left == s->before.left && (slot == FKT_E_PEER_FORMAT || slot == FKT_E_PEER_AUTH)) st = slot;
        else st = FKT_OK;
    } else if (st != FKT_OK && st != FKT_E_STATE && st != FKT_E_PEER_FORMAT && st != FKT_E_PEER_AUTH) {
        return st;
    }
    s->verdict = st;
    fkt_failure_save(&s->said, st);
    s->answered = st == FKT_OK && now.left == s->before.left;
    return FKT_OK;
}

static fkt_status close_phase(struct fkt_server *h, struct step *s)
{
    fkt_status st = fkt_sa_server_close(h->server);
    if (st == FKT_OK) return FKT_OK;
    if (fkt_sa_server_state(h->server) != FKT_SA_STATE_FAILED || fkt_server_own_failure(st)) return st;
    fkt_failure_save(&s->end, st);
    return FKT_OK;
}

/* ---- what changed ---- */

static fkt_status look_at(struct fkt_server *h, const struct step *s, uint32_t site)
{
    struct fkt_server_set_status *slot = &h->slot[site];
    fkt_status now = fkt_sa_server_site(h->server, site);
    if (slot->status != FKT_OK || now == FKT_OK) return FKT_OK;
    slot->status = now;
    h->lost++;
    fkt_server_drop_messages(slot);
    if (!h->live) return FKT_OK;
    return fkt_server_note(h, "lost",
                           json_pack("{s:I s:I s:i s:s}", "round", (json_int_t)h->round, "site", (json_int_t)site,
                                     "status", (int)now, "phase", fkt_sa_state_name(s->was)));
}

static fkt_status note_survivors(struct fkt_server *h)
{
    const uint32_t n = h->params.sites;
    const uint8_t *seed, *map;
    char seed_hex[65], *map_hex = NULL;
    fkt_status st;
    FKT_TRY(fkt_sa_server_signed(h->server, &seed, &map));
    h->survivors = (uint32_t)fkt_bitmap_count(map, n);
    for (uint32_t i = 0; i < n; i++) h->slot[i].counted = (uint8_t)fkt_bitmap_get(map, i);
    if (!h->live) goto out;
    FKT_TRY(fkt_alloc(&map_hex, 2 * fkt_bitmap_bytes(n) + 1));
    fkt_hex(map_hex, map, fkt_bitmap_bytes(n));
    fkt_hex(seed_hex, seed, 32);
    FKT_TRY(fkt_server_note(h, "survivors",
                            json_pack("{s:I s:s s:s s:I}", "round", (json_int_t)h->round, "seed", seed_hex, "survivors",
                                      map_hex, "count", (json_int_t)h->survivors)));
out:
    fkt_free(map_hex);
    return st;
}

/* A phase has ended. A phase that a message ended in failure has no line. */
static fkt_status turn_page(struct fkt_server *h, const struct step *s)
{
    const char *why = s->site == FKT_MAILBOX_NOBODY ? "deadline" : "all";
    fkt_status st = FKT_OK;
    for (uint32_t i = 0; i < h->params.sites; i++) h->slot[i].heard = 0;
    fkt_server_wait_anew(h, h->wait.page + 1);
    if (h->live && (h->phase != FKT_SA_STATE_FAILED || s->site == FKT_MAILBOX_NOBODY))
        FKT_TRY(fkt_server_note(h, "phase",
                                json_pack("{s:I s:s s:I s:I s:s}", "round", (json_int_t)h->round, "phase",
                                          fkt_sa_state_name(s->was), "heard",
                                          (json_int_t)(s->before.heard + (uint32_t)s->answered), "expected",
                                          (json_int_t)s->before.expected, "why", why)));
    if (h->phase == FKT_SA_STATE_CONFIRM) FKT_TRY(note_survivors(h));
out:
    return st;
}

/* After every event, live or replayed. */
static fkt_status absorb(struct fkt_server *h, const struct step *s)
{
    int moved;
    fkt_status st = FKT_OK;
    fkt_sa_server_census(h->server, &h->census);
    h->phase = fkt_sa_server_state(h->server);
    moved = h->phase != s->was || h->census.throws != s->before.throws;
    if (s->answered) {
        h->slot[s->site].heard = 1;
        if (s->was == FKT_SA_STATE_REVEAL) h->slot[s->site].revealed = 1;
    }
    if (s->site != FKT_MAILBOX_NOBODY) FKT_TRY(look_at(h, s, s->site));
    for (uint32_t i = 0; moved && i < h->params.sites; i++) FKT_TRY(look_at(h, s, i));
    if (moved) FKT_TRY(turn_page(h, s));
    FKT_TRY(fkt_server_drain(h));
    if (h->phase == FKT_SA_STATE_FAILED) FKT_TRY(fkt_server_fail_round(h, &s->end));
    if (h->phase == FKT_SA_STATE_UNMASK) { /* every expected site has answered or is lost */
        for (uint32_t i = 0; i < h->params.sites; i++) fkt_server_drop_messages(&h->slot[i]);
        fkt_server_enter(h, FKT_STAGE_FINISHING);
        h->job = FKT_JOB_RELEASE;
        h->job_waits = 1;
    }
out:
    return st;
}

/* ---- what is recorded ---- */

static fkt_status note_message(struct fkt_server *h, const struct step *s, const uint8_t *msg, size_t len)
{
    struct fkt_sa_msg m = {0};
    char hash[FKT_HASH_HEX], signature[129];
    fkt_status st = fkt_sa_msg_decode(&m, 1, msg, len, fkt_sa_to_server_max(&h->params));
    if (st == FKT_E_NOMEM) return st;
    fkt_hash_bytes_hex(hash, msg, len);
    FKT_TRY(
        fkt_server_note(h, "message",
                        json_pack("{s:I s:I s:s s:I s:s s:i}", "round", (json_int_t)h->round, "site",
                                  (json_int_t)s->site, "kind", fkt_sa_kind_name(st == FKT_OK ? m.kind : FKT_SA_M_NONE),
                                  "bytes", (json_int_t)len, "sha256", hash, "verdict", (int)s->verdict)));
    if (m.kind != FKT_SA_M_CONFIRM || s->verdict != FKT_OK) goto out;
    fkt_hex(signature, m.confirm.signature.p, 64); /* the machine has checked its length */
    FKT_TRY(fkt_server_note(h, "confirmed",
                            json_pack("{s:I s:I s:s}", "round", (json_int_t)h->round, "site", (json_int_t)s->site,
                                      "signature", signature)));
out:
    fkt_sa_msg_clear(&m);
    return st;
}

static fkt_status write_down(struct fkt_server *h, const struct step *s, const uint8_t *msg, size_t len)
{
    struct fkt_journal_event e = {FKT_EVENT_MESSAGE, s->site, s->verdict, msg, len};
    fkt_status st;
    if (s->site == FKT_MAILBOX_NOBODY) e = (struct fkt_journal_event){.kind = FKT_EVENT_DEADLINE};
    FKT_TRY(fkt_journal_add(h->journal, h->round, &e));
    if (s->site != FKT_MAILBOX_NOBODY) FKT_TRY(note_message(h, s, msg, len));
out:
    return st;
}

static void count(struct fkt_server *h, const struct step *s, size_t len)
{
    if (s->site == FKT_MAILBOX_NOBODY || s->verdict != FKT_OK) return;
    h->round_messages++;
    h->round_bytes += len;
}

/* ---- entry points ---- */

fkt_status fkt_server_deliver(void *self, uint32_t site, const uint8_t *msg, size_t len)
{
    struct fkt_server *h = self;
    struct step s;
    fkt_status st;
    if (h->broken.status != FKT_OK) return fkt_failure_restore(&h->broken);
    if (!h->ticked) return fkt_fail(FKT_E_ARG, "tick has not been called yet");
    if (site >= h->params.sites || h->stage != FKT_STAGE_RUNNING)
        return fkt_fail(FKT_E_STATE, "site %u: no round is under way", site);
    if (len > fkt_sa_to_server_max(&h->params)) /* it could be too long for the journal */
        return fkt_fail(FKT_E_STATE, "site %u: %zu bytes are more than any message of this task has", site, len);
    s = begin_step(h, site);
    FKT_TRY(hear(h, &s, msg, len));
    if (s.verdict == FKT_E_STATE) return fkt_failure_restore(&s.said); /* nothing changed */
    FKT_TRY(write_down(h, &s, msg, len));
    count(h, &s, len);
    FKT_TRY(absorb(h, &s));
    return fkt_failure_restore(&s.said);
out:
    return fkt_server_break(h, st);
}

fkt_status fkt_server_deadline(struct fkt_server *h)
{
    struct step s = begin_step(h, FKT_MAILBOX_NOBODY);
    fkt_status st;
    FKT_TRY(close_phase(h, &s));
    FKT_TRY(write_down(h, &s, NULL, 0));
    FKT_TRY(absorb(h, &s));
out:
    return st;
}

/* ---- replay ---- */

static fkt_status tell_again(void *self, const struct fkt_journal_event *e)
{
    struct fkt_server *h = self;
    struct step s = begin_step(h, e->kind == FKT_EVENT_DEADLINE ? FKT_MAILBOX_NOBODY : e->site);
    fkt_status st = FKT_OK;
    if (h->stage == FKT_STAGE_RUNNING) {
        FKT_TRY(e->kind == FKT_EVENT_DEADLINE ? close_phase(h, &s) : hear(h, &s, e->bytes, e->len));
        count(h, &s, e->len);
    }
    if (h->stage != FKT_STAGE_RUNNING || s.verdict != e->verdict || s.end.status != FKT_OK)
        return fkt_fail_hint(FKT_E_FORMAT, "restore the state folder from a copy",
                             "the journal is damaged: the events of round %u are impossible", h->round);
    FKT_TRY(absorb(h, &s));
out:
    return st;
}

fkt_status fkt_server_resume(struct fkt_server *h)
{
    fkt_status st;
    FKT_TRY(fkt_server_set_status_all(h));
    FKT_TRY(fkt_journal_events(h->journal, h->round, tell_again, h));
out:
    return st;
}
