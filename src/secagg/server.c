/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - the aggregating side of a round, as a state machine (docs/protocol.md 3).
 *
 *   ADVERTISE -> COIN (sparse graphs; again for each throw) -> SHARE -> MASK -> CONFIRM -> REVEAL -> UNMASK -> DONE
 *       \__________\____________________________________\________\______\__________\__________\____> FAILED
 *
 * holds in every phase     a live site (status FKT_OK) has answered in the phase before; each live site is asked once;
 *                          `pending` counts the answers still missing
 * left when                pending is 0, or the deadline passes; sites that have not answered are lost for the round
 * left for the next phase  with at least N - D sites (REVEAL: with t shares of every secret), else for FAILED
 * holds in UNMASK          every survivor's self seed, every other mask key of U2; shares are freed
 * holds in DONE            the total; no secrets
 * holds in FAILED          the reason, and which sites to notify; no secrets
 *
 * A site is lost when it does not answer, leaves, or sends what the protocol does not allow. Losing a site does not end
 * the round; having too few left does. A message of an earlier phase or another round is late and is ignored. A message
 * of a later phase is a protocol violation: an honest site cannot answer a question that was not asked. A site that
 * claims to be another site is lost; the other is not.
 *
 * The server draws no randomness and reads no clock, so its state is a function of its inputs, in order. Memory: a slot
 * of about 400 bytes for each site, 84 bytes for each pair of neighbours until delivery and 36 after it, one vector;
 * no site's vector is kept. Source: Bonawitz et al., CCS 2017, figure 4, server; Bell et al., CCS 2020, algorithm 3. */
#include "secagg/server.h"

#include "secagg/inspect.h"

#include "base/alloc.h"
#include "base/wipe.h"
#include "crypto/digest.h"
#include "crypto/entropy.h"

#include <string.h>

static int waiting(const struct fkt_sa_server *s)
{
    return s->state >= FKT_SA_STATE_ADVERTISE && s->state <= FKT_SA_STATE_REVEAL;
}

void fkt_sa_server_wipe(struct fkt_sa_server *s)
{
    for (uint32_t i = 0; s->slot && i < s->p.sites; i++) {
        struct fkt_sa_slot *slot = &s->slot[i];
        if (slot->reveal) fkt_wipe(slot->reveal, fkt_sa_near_count(s, i, FKT_SA_IN_MASK) * (size_t)FKT_SA_SHARE_BYTES);
        fkt_free(slot->reveal);
        fkt_free(slot->sealed);
        slot->reveal = NULL;
        slot->sealed = NULL;
        fkt_wipe(slot->secret, sizeof slot->secret);
    }
}

fkt_status fkt_sa_server_fail(struct fkt_sa_server *s, fkt_status st)
{
    fkt_failure_save(&s->failure, st);
    fkt_sa_server_wipe(s);
    s->state = FKT_SA_STATE_FAILED;
    s->pending = 0;
    s->cursor = 0;
    return st;
}

void fkt_sa_server_lose(struct fkt_sa_server *s, uint32_t site, fkt_status why)
{
    struct fkt_sa_slot *slot = &s->slot[site];
    if (slot->status != FKT_OK) return;
    slot->status = why;
    if (waiting(s) && !slot->has_answered) s->pending--;
}

uint32_t fkt_sa_near_count(const struct fkt_sa_server *s, uint32_t site, uint8_t set)
{
    const uint32_t *near = fkt_sa_near(s, site);
    uint32_t n = 0;
    for (uint32_t k = 0; k < s->p.degree; k++) n += (s->sets[near[k]] & set) != 0;
    return n;
}

uint32_t fkt_sa_near_rank(const struct fkt_sa_server *s, uint32_t owner, uint32_t site, uint8_t set)
{
    const uint32_t *near = fkt_sa_near(s, owner);
    uint32_t n = 0;
    for (uint32_t k = 0; k < s->p.degree && near[k] < site; k++) n += (s->sets[near[k]] & set) != 0;
    return n;
}

/* Ends phases for as long as no answer is missing. */
static fkt_status advance(struct fkt_sa_server *s)
{
    fkt_status st = FKT_OK;
    while (st == FKT_OK && waiting(s)) {
        uint32_t reachable = s->census.heard + s->pending;
        if (s->state != FKT_SA_STATE_REVEAL && reachable < s->p.sites - s->p.dropped)
            st = fkt_sa_phase_too_few(s, reachable);
        else if (s->pending == 0) st = fkt_sa_phase_leave(s);
        else break;
    }
    return st == FKT_OK ? st : fkt_sa_server_fail(s, st);
}

/* ---- entry points ---- */

fkt_status fkt_sa_server_new(struct fkt_sa_server **out, const struct fkt_sa_params *params,
                             const uint8_t round[FKT_SA_ROUND], uint64_t patience_ms)
{
    struct fkt_sa_server *s = NULL;
    size_t field;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&s, 1));
    FKT_TRY(fkt_sa_params_copy(&s->p, params));
    field = (size_t)s->p.degree * FKT_SA_ADVERT;
    if (field < 32 * FKT_SA_NODE) field = 32 * FKT_SA_NODE; /* the path of a coin: a node for each bit of a number */
    FKT_TRY(fkt_alloc(&s->slot, s->p.sites));
    FKT_TRY(fkt_alloc(&s->sets, s->p.sites));
    FKT_TRY(fkt_alloc(&s->adjacent, (size_t)s->p.sites * s->p.degree));
    FKT_TRY(fkt_alloc(&s->delivered, fkt_bitmap_bytes(s->p.sites)));
    FKT_TRY(fkt_alloc(&s->survivors, fkt_bitmap_bytes(s->p.sites)));
    FKT_TRY(fkt_alloc(&s->scratch, fkt_bitmap_bytes(s->p.degree) + field));
    FKT_TRY(fkt_sa_vector_init(&s->sum, &s->p));
    memcpy(s->round, round, FKT_SA_ROUND);
    fkt_sa_session(s->session, &s->p, round);
    s->patience_ms = patience_ms;
    s->state = FKT_SA_STATE_ADVERTISE;
    s->pending = s->census.expected = s->p.sites;
    *out = s;
    s = NULL;
out:
    fkt_sa_server_free(s);
    return st;
}

void fkt_sa_server_free(struct fkt_sa_server *s)
{
    if (!s) return;
    fkt_sa_server_wipe(s);
    fkt_sa_coin_clear(&s->coin);
    fkt_sa_vector_clear(&s->sum);
    fkt_free(s->slot);
    fkt_free(s->sets);
    fkt_free(s->adjacent);
    fkt_free(s->witness);
    fkt_free(s->delivered);
    fkt_free(s->survivors);
    fkt_free(s->scratch);
    fkt_free(s->job);
    fkt_free_secret(s->total); /* has no noise when noise is added centrally */
    fkt_free(s->survived);
    fkt_sa_params_clear(&s->p);
    fkt_free(s);
}

enum fkt_sa_state fkt_sa_server_state(const struct fkt_sa_server *s) { return s->state; }

void fkt_sa_server_census(const struct fkt_sa_server *s, struct fkt_sa_census *out) { *out = s->census; }

fkt_status fkt_sa_server_site(const struct fkt_sa_server *s, uint32_t site)
{
    return site < s->p.sites ? s->slot[site].status : FKT_E_ARG;
}

fkt_status fkt_sa_server_signed(const struct fkt_sa_server *s, const uint8_t **seed, const uint8_t **survivors)
{
    if (s->state < FKT_SA_STATE_CONFIRM || s->state > FKT_SA_STATE_DONE)
        return fkt_fail(FKT_E_STATE, "the survivors are not known yet");
    *seed = s->seed;
    *survivors = s->survivors;
    return FKT_OK;
}

/* protocol.md 3.8: a site reports the faults of others, or that it stopped, and nothing else. */
static fkt_status accept_leave(struct fkt_sa_server *s, uint32_t from, uint32_t status)
{
    if (status != FKT_E_STOPPED && status != FKT_E_PEER_FORMAT && status != FKT_E_PEER_AUTH && status != FKT_E_TOO_FEW)
        return fkt_fail(FKT_E_PEER_FORMAT, "it leaves with status %u, which no site may send", status);
    s->slot[from].left = 1;
    s->census.left++;
    fkt_sa_server_lose(s, from, (fkt_status)status);
    return FKT_OK;
}

/* One decoded message of a live site. */
static fkt_status accept(struct fkt_sa_server *s, uint32_t from, const struct fkt_sa_msg *m)
{
    enum fkt_sa_state phase = fkt_sa_phase_of(m->kind);
    fkt_status st;
    if (m->session.n != FKT_SA_SESSION) return fkt_fail(FKT_E_PEER_FORMAT, "its message has no session");
    if (!fkt_same(m->session.p, s->session, FKT_SA_SESSION))
        return fkt_fail(FKT_E_STATE, "its message belongs to another round");
    if (m->site != from) return fkt_fail(FKT_E_PEER_AUTH, "it claims to be site %u", m->site);
    if (m->kind == FKT_SA_M_LEAVE) return accept_leave(s, from, m->leave.status);
    if (phase > s->state) return fkt_fail(FKT_E_PEER_AUTH, "it answers a later phase");
    if (phase < s->state || s->slot[from].has_answered)
        return fkt_fail(FKT_E_STATE, "its message is late or a duplicate");
    st = fkt_sa_server_accept(s, from, m);
    if (st != FKT_OK) return st;
    s->slot[from].has_answered = 1;
    s->census.heard++;
    s->pending--;
    return FKT_OK;
}

fkt_status fkt_sa_server_recv(struct fkt_sa_server *s, uint32_t from, const uint8_t *msg, size_t len)
{
    struct fkt_sa_msg m = {0};
    struct fkt_failure about;
    fkt_status st, end;
    if (s->state == FKT_SA_STATE_FAILED) return fkt_failure_restore(&s->failure);
    if (from >= s->p.sites) return fkt_fail(FKT_E_ARG, "there is no site %u among %u", from, s->p.sites);
    if (!waiting(s)) return fkt_fail(FKT_E_STATE, "site %u: its message is late", from);
    if (!fkt_sa_alive(s, from)) return fkt_fail(FKT_E_STATE, "site %u is no longer part of the round", from);
    st = fkt_sa_msg_decode(&m, 1, msg, len, fkt_sa_to_server_max(&s->p));
    if (st == FKT_OK) st = accept(s, from, &m);
    fkt_sa_msg_clear(&m);
    fkt_fail_in(st, "site %u", from);
    if (st == FKT_E_PEER_FORMAT || st == FKT_E_PEER_AUTH) fkt_sa_server_lose(s, from, st);
    else if (st != FKT_OK && st != FKT_E_STATE) return fkt_sa_server_fail(s, st);
    fkt_failure_save(&about, st); /* `advance` must not replace this error, unless it ends the round */
    end = advance(s);
    return end != FKT_OK ? end : fkt_failure_restore(&about);
}

fkt_status fkt_sa_server_close(struct fkt_sa_server *s)
{
    fkt_status st;
    if (s->state == FKT_SA_STATE_FAILED) return fkt_failure_restore(&s->failure);
    if (!waiting(s)) return fkt_fail(FKT_E_STATE, "no phase is open");
    st = fkt_sa_phase_leave(s);
    if (st != FKT_OK) return fkt_sa_server_fail(s, st);
    return advance(s);
}

fkt_status fkt_sa_server_tick(struct fkt_sa_server *s, uint64_t now_ms)
{
    if (s->state == FKT_SA_STATE_FAILED) return fkt_failure_restore(&s->failure);
    if (now_ms < s->now_ms) return fkt_fail(FKT_E_ARG, "the clock went backwards");
    s->now_ms = now_ms;
    if (!s->began) {
        s->began = 1;
        s->began_ms = now_ms;
    }
    if (!waiting(s) || s->patience_ms == 0 || now_ms - s->began_ms < s->patience_ms) return FKT_OK;
    return fkt_sa_server_close(s);
}

fkt_status fkt_sa_server_lost(struct fkt_sa_server *s, uint32_t site)
{
    if (s->state == FKT_SA_STATE_FAILED) return fkt_failure_restore(&s->failure);
    if (site >= s->p.sites) return fkt_fail(FKT_E_ARG, "there is no site %u among %u", site, s->p.sites);
    if (!waiting(s)) return FKT_OK;
    fkt_sa_server_lose(s, site, FKT_E_STOPPED);
    return advance(s);
}
