/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - a site's state machine: which message is due, what each state keeps, how it ends (docs/protocol.md 3).
 *
 *         Begin       Neighbours (complete graph)   Deliver      Survivors        Confirmed        sent
 *   BEGIN ------> ADVERTISE -------------------> SHARE -----> MASK ----------> CONFIRM --------> REVEAL ----> DONE
 *                     |                            ^
 *                     | Coin            Neighbours |                 any --- fail ---> FAILED, with one Leave
 *                     +------> COIN ---------------+
 *                              ^  | Coin, up to `attempts` in all
 *                              +--+
 *
 *   state      entered by    holds                                                         no longer
 *   BEGIN      new           signing key                                                   -
 *   ADVERTISE  [begin]       session; c, s, u and, on a sparse graph, r                    -
 *   COIN       [coin]        the same with a fresh r; root of the throw it answered        the r it opened
 *   SHARE      [neighbours]  seed; >= t neighbours present, seal and pair key of each; u   c, s, r
 *   MASK       [deliver]     U2; >= t peers, two shares of each                            u, seal and pair keys
 *   CONFIRM    [survivors]   the survivors; of each peer the share it may reveal           signing key, the other share
 *   REVEAL     [confirmed]   its answer                                                    all shares
 *   DONE       [send]        nothing                                                       all
 *   FAILED     [fail]        why, and perhaps a Leave                                      all
 *
 * A state is named after the message that the site sends in it. The answer is made completely when the message that
 * asks for it is accepted, and is kept in `out`; so sending cannot fail. `holds` asserts the table above. It changes
 * nothing: the wipes in client_*.c and `step` establish what it asserts.
 *
 * The two shares of a peer can never both be sent: when the survivors are accepted, the share that must stay secret is
 * overwritten before anything is signed; only MASK accepts survivors, and no transition returns to MASK. The code that
 * sends shares (client_reveal.c) checks this again, in every build.
 *
 * Where we differ from Bonawitz et al. (CCS 2017): pair keys are agreed on together with the seal keys, in SHARE, so
 * the secrets behind them are wiped before the site's vector is read. Cost: two X25519 and one verification for each
 * neighbour, one mask for each peer and one for the site itself, t verifications. */
#include "secagg/client.h"

#include "base/alloc.h"
#include "crypto/digest.h"
#include "crypto/hash.h"
#include "crypto/sign.h"

#include <assert.h>
#include <string.h>

/* ---- creation and end ---- */

void fkt_sa_neighbours_free(struct fkt_sa_neighbour *n, uint32_t degree)
{
    if (n) fkt_wipe(n, degree * sizeof *n);
    fkt_free(n);
}

static void drop_answer(struct fkt_sa_client *c)
{
    if (c->out) fkt_wipe(c->out, c->out_len);
    fkt_free(c->out);
    c->out = NULL;
    c->out_len = 0;
}

static void wipe_all(struct fkt_sa_client *c)
{
    drop_answer(c);
    fkt_wipe(&c->secret, sizeof c->secret);
    fkt_sa_neighbours_free(c->neighbour, c->p.degree);
    c->neighbour = NULL;
    c->present = c->peers = c->witnesses = 0;
    fkt_free(c->witness);
    c->witness = NULL;
    fkt_free(c->delivered);
    c->delivered = NULL;
    fkt_free(c->survivors);
    c->survivors = NULL;
}

static fkt_status own_key_check(const struct fkt_sa_params *p, uint32_t index, const uint8_t secret[FKT_SA_SECRET])
{
    uint8_t pk[FKT_SIGN_PUBLIC], sk[FKT_SIGN_SECRET];
    int own;
    if (index >= p->sites) return fkt_fail(FKT_E_ARG, "site %u is not among the %u of the roster", index, p->sites);
    fkt_sign_keypair(pk, sk, secret);
    own = fkt_same(sk, secret, sizeof sk) && fkt_same(pk, fkt_sa_roster_key(p, index), sizeof pk);
    fkt_wipe(sk, sizeof sk);
    if (own) return FKT_OK;
    return fkt_fail_hint(FKT_E_MISMATCH, "check the number of this site and which key the roster has for it",
                         "the signing key is not that of site %u in the roster", index);
}

fkt_status fkt_sa_client_new(struct fkt_sa_client **out, const struct fkt_sa_params *params, uint32_t index,
                             const uint8_t secret[FKT_SA_SECRET], const struct fkt_sa_site *site,
                             struct fkt_entropy *entropy)
{
    struct fkt_sa_client *c = NULL;
    fkt_status st;
    *out = NULL;
    if (!site || !site->reserve || !site->vector || !site->spend)
        return fkt_fail(FKT_E_ARG, "a site needs a ledger and a vector");
    FKT_TRY(fkt_alloc(&c, 1));
    FKT_TRY(fkt_sa_params_copy(&c->p, params));
    FKT_TRY(own_key_check(&c->p, index, secret));
    c->index = index;
    c->site = site;
    fkt_entropy_os(&c->os);
    c->entropy = entropy ? entropy : &c->os;
    memcpy(c->secret.sign, secret, sizeof c->secret.sign);
    *out = c;
    c = NULL;
out:
    fkt_sa_client_free(c);
    return st;
}

void fkt_sa_client_free(struct fkt_sa_client *c)
{
    if (!c) return;
    wipe_all(c);
    fkt_sa_params_clear(&c->p);
    fkt_wipe(c, sizeof *c);
    fkt_free(c);
}

/* ---- what every state holds ---- */

static int wiped(const uint8_t *p, size_t n)
{
    uint8_t any = 0;
    for (size_t i = 0; i < n; i++) any |= p[i];
    return any == 0;
}

#define WIPED(field) wiped((const uint8_t *)&(field), sizeof(field))

static int shared(const struct fkt_sa_secrets *s) { return WIPED(s->channel) && WIPED(s->mask_seed) && WIPED(s->coin); }

/* Asserts the table at the top of this file. It reads only what must be wiped, never a secret that is present. */
static int holds(const struct fkt_sa_client *c)
{
    const struct fkt_sa_secrets *s = &c->secret;
    const int sparse = !fkt_sa_complete(&c->p);
    switch (c->state) {
    case FKT_SA_STATE_BEGIN: return !c->has_session && !c->out && shared(s) && WIPED(s->self_seed) && !c->neighbour;
    case FKT_SA_STATE_ADVERTISE: return c->has_session && c->throws == 0 && !c->neighbour && !c->survivors;
    case FKT_SA_STATE_COIN:
        return sparse && c->throws >= 1 && c->throws <= c->p.attempts && !c->neighbour && !c->survivors;
    case FKT_SA_STATE_SHARE:
        return c->neighbour && c->present >= c->p.threshold && shared(s) && !c->peers && !c->delivered;
    case FKT_SA_STATE_MASK:
        return c->neighbour && c->peers >= c->p.threshold && shared(s) && WIPED(s->self_seed) && c->delivered &&
               !c->survivors;
    case FKT_SA_STATE_CONFIRM:
        return c->neighbour && c->peers >= c->p.threshold && c->witnesses >= c->p.threshold && WIPED(*s) &&
               c->survivors;
    case FKT_SA_STATE_REVEAL: return c->out && WIPED(*s) && !c->neighbour;
    case FKT_SA_STATE_DONE:
    case FKT_SA_STATE_FAILED: return !c->out && WIPED(*s) && !c->neighbour && !c->delivered && !c->survivors;
    default: return 0;
    }
}

unsigned fkt_sa_client_wants(const struct fkt_sa_client *c)
{
    if (c->out || c->leave_len) return FKT_SA_SEND;
    return c->state == FKT_SA_STATE_DONE || c->state == FKT_SA_STATE_FAILED ? FKT_SA_ENDED : FKT_SA_RECV;
}

enum fkt_sa_state fkt_sa_client_state(const struct fkt_sa_client *c) { return c->state; }

/* ---- sending ---- */

fkt_status fkt_sa_client_queue(struct fkt_sa_client *c, struct fkt_sa_msg *m)
{
    size_t need;
    fkt_status st;
    assert(!c->out);
    m->session = (struct fkt_sa_bytes){c->session, FKT_SA_SESSION};
    m->site = c->index;
    need = fkt_sa_msg_bytes(m);
    FKT_TRY(fkt_alloc(&c->out, need));
    FKT_TRY(fkt_sa_msg_encode(m, c->out, need, &c->out_len));
out:
    return st;
}

fkt_status fkt_sa_client_own(struct fkt_sa_client *c, fkt_status st)
{
    c->own_fault = st != FKT_OK;
    return st;
}

/* The status that a Leave carries. The server may know about the faults of others. A fault of the site itself may
 * depend on its records (a number beyond its bound) or on what was spent on them, and is not sent. */
static uint32_t leave_status(const struct fkt_sa_client *c, fkt_status status)
{
    const int of_others = status == FKT_E_PEER_FORMAT || status == FKT_E_PEER_AUTH || status == FKT_E_TOO_FEW;
    return (uint32_t)(of_others && !c->own_fault ? status : FKT_E_STOPPED);
}

/* Every failure passes through here, once. Secrets are wiped first. A Leave is sent only to a server that has sent its
 * session, and not to one that ended the round itself (`aborted`). */
static fkt_status fail(struct fkt_sa_client *c, fkt_status status, int aborted)
{
    struct fkt_sa_msg m = {.kind = FKT_SA_M_LEAVE, .leave.status = leave_status(c, status)};
    fkt_failure_save(&c->failure, status);
    wipe_all(c);
    c->state = FKT_SA_STATE_FAILED;
    m.session = (struct fkt_sa_bytes){c->session, FKT_SA_SESSION};
    m.site = c->index;
    if (c->has_session && !aborted && fkt_sa_msg_encode(&m, c->leave, sizeof c->leave, &c->leave_len) != FKT_OK)
        c->leave_len = 0;
    assert(holds(c));
    return fkt_failure_restore(&c->failure);
}

fkt_status fkt_sa_client_send(struct fkt_sa_client *c, uint8_t *out, size_t cap, size_t *len)
{
    const uint8_t *message = c->leave_len ? c->leave : c->out;
    size_t need = c->leave_len ? c->leave_len : c->out_len;
    *len = 0;
    if (!message) {
        if (c->state == FKT_SA_STATE_FAILED) return fkt_failure_restore(&c->failure);
        return fkt_fail(FKT_E_STATE, "site %u has nothing to send in state '%s'", c->index,
                        fkt_sa_state_name(c->state));
    }
    if (need > cap) return fkt_fail(FKT_E_ARG, "a message of %zu bytes does not fit into %zu", need, cap);
    memcpy(out, message, need);
    *len = need;
    c->leave_len = 0;
    drop_answer(c);
    if (c->state == FKT_SA_STATE_REVEAL) {
        c->state = FKT_SA_STATE_DONE;
        wipe_all(c);
    }
    assert(holds(c));
    return FKT_OK;
}

/* ---- receiving ---- */

fkt_status fkt_sa_client_list(const struct fkt_sa_client *c, const char *what, struct fkt_sa_bytes map, size_t bits,
                              struct fkt_sa_bytes list, size_t each, uint32_t *n)
{
    if (map.n != fkt_bitmap_bytes(bits) || !fkt_bitmap_ok(map.p, bits))
        return fkt_fail(FKT_E_PEER_FORMAT, "the bitmap of %s is not one of %zu bits", what, bits);
    *n = (uint32_t)fkt_bitmap_count(map.p, bits);
    if (list.n != *n * each)
        return fkt_fail(FKT_E_PEER_FORMAT, "the list of %s has %zu bytes for %u of them", what, list.n, *n);
    if (*n < c->p.threshold)
        return fkt_fail(FKT_E_TOO_FEW, "there are %u %s, and at least %u are needed", *n, what, c->p.threshold);
    return FKT_OK;
}

static fkt_status aborted(const struct fkt_sa_msg *m)
{
    return fkt_fail(FKT_E_STOPPED, "the server has ended the round: %s",
                    m->aborted.status ? fkt_status_name((fkt_status)m->aborted.status) : "no reason given");
}

static fkt_status out_of_place(const struct fkt_sa_client *c)
{
    return fkt_fail(FKT_E_PEER_FORMAT, "unexpected message in state '%s'", fkt_sa_state_name(c->state));
}

/* A round may fail before its Begin reaches this site, which then does not know the session. Any session is accepted
 * for an Aborted then: nothing has been drawn, and the site need not go on waiting. */
static int of_session(const struct fkt_sa_client *c, const struct fkt_sa_msg *m)
{
    if (m->session.n != FKT_SA_SESSION) return 0;
    if (!c->has_session) return m->kind == FKT_SA_M_ABORTED;
    return fkt_same(m->session.p, c->session, FKT_SA_SESSION);
}

/* The state diagram, one arrow per case. */
static fkt_status step(struct fkt_sa_client *c, const struct fkt_sa_msg *m)
{
    const int sparse = !fkt_sa_complete(&c->p);
    const struct arrow {
        enum fkt_sa_kind kind;
        enum fkt_sa_state from, to;
        int there;
        fkt_status (*go)(struct fkt_sa_client *c, const struct fkt_sa_msg *m);
    } arrows[] = {
        {FKT_SA_M_BEGIN, FKT_SA_STATE_BEGIN, FKT_SA_STATE_ADVERTISE, 1, fkt_sa_client_begin},
        {FKT_SA_M_COIN, FKT_SA_STATE_ADVERTISE, FKT_SA_STATE_COIN, sparse, fkt_sa_client_coin},
        {FKT_SA_M_COIN, FKT_SA_STATE_COIN, FKT_SA_STATE_COIN, sparse, fkt_sa_client_coin},
        {FKT_SA_M_NEIGHBOURS, FKT_SA_STATE_COIN, FKT_SA_STATE_SHARE, sparse, fkt_sa_client_neighbours},
        {FKT_SA_M_NEIGHBOURS, FKT_SA_STATE_ADVERTISE, FKT_SA_STATE_SHARE, !sparse, fkt_sa_client_neighbours},
        {FKT_SA_M_DELIVER, FKT_SA_STATE_SHARE, FKT_SA_STATE_MASK, 1, fkt_sa_client_deliver},
        {FKT_SA_M_SURVIVORS, FKT_SA_STATE_MASK, FKT_SA_STATE_CONFIRM, 1, fkt_sa_client_survivors},
        {FKT_SA_M_CONFIRMED, FKT_SA_STATE_CONFIRM, FKT_SA_STATE_REVEAL, 1, fkt_sa_client_confirmed},
    };
    fkt_status st = FKT_OK;
    if (m->kind != FKT_SA_M_BEGIN && !of_session(c, m))
        return fkt_fail(FKT_E_PEER_AUTH, "the message belongs to another session");
    if (m->kind == FKT_SA_M_ABORTED) return aborted(m);
    if (c->out) return out_of_place(c); /* the previous answer has not been sent */
    for (size_t i = 0; i < sizeof arrows / sizeof *arrows; i++) {
        const struct arrow *a = &arrows[i];
        if (!a->there || a->kind != m->kind || a->from != c->state) continue;
        st = a->go(c, m);
        if (st == FKT_OK) c->state = a->to;
        return st;
    }
    return out_of_place(c);
}

fkt_status fkt_sa_client_recv(struct fkt_sa_client *c, const uint8_t *msg, size_t len)
{
    const size_t most = fkt_sa_to_site_max(&c->p);
    struct fkt_sa_msg m = {0};
    uint8_t hash[32] = {0};
    fkt_status st;
    int by_server = 0;
    if (c->state == FKT_SA_STATE_FAILED) return fkt_failure_restore(&c->failure);
    if (len <= most) fkt_hash_long(hash, msg, len); /* longer ones are refused below without being read */
    if (c->has_last && fkt_same(hash, c->last, sizeof hash)) return FKT_OK; /* identical to the last message */
    if (c->state == FKT_SA_STATE_DONE) return fkt_fail(FKT_E_STATE, "the round is over for site %u", c->index);
    FKT_TRY(fkt_sa_msg_decode(&m, 0, msg, len, most));
    FKT_TRY(step(c, &m));
    memcpy(c->last, hash, sizeof hash);
    c->has_last = 1;
    assert(holds(c));
out:
    by_server = m.kind == FKT_SA_M_ABORTED && st == FKT_E_STOPPED;
    fkt_sa_msg_clear(&m);
    return st == FKT_OK ? FKT_OK : fail(c, st, by_server);
}
