/* SPDX-License-Identifier: Apache-2.0 */
/* server_inbox.c - one answer from one site: every length, signature, point and number is checked here, once, and what
 * later phases need is kept in the site's slot (docs/protocol.md 3.1 to 3.6, what the server checks).
 *
 * Nothing is kept of a refused message. Checks that the protocol leaves to the sites (keys of low order, 3.3) are made
 * here too: otherwise one bad key would stop all neighbours of its owner instead of its owner alone.
 * Cost: one signature for Advertise and Confirm, one point multiplication for Open, one pass over the vector for
 * Masked; the rest are copies. */
#include "secagg/server.h"

#include "base/alloc.h"
#include "crypto/agree.h"
#include "crypto/digest.h"
#include "crypto/group.h"
#include "crypto/shamir.h"
#include "crypto/sign.h"

#include <string.h>

static fkt_status length(const struct fkt_sa_bytes *b, size_t want, const char *what)
{
    if (b->n == want) return FKT_OK;
    return fkt_fail(FKT_E_PEER_FORMAT, "its %s has %zu bytes, not %zu", what, b->n, want);
}

static fkt_status usable_key(const uint8_t key[32], const char *what)
{
    if (fkt_agree_key_ok(key)) return FKT_OK;
    return fkt_fail(FKT_E_PEER_AUTH, "its %s is of low order or not canonical", what);
}

static fkt_status accept_advertise(struct fkt_sa_server *s, uint32_t from, const struct fkt_sa_msg *m)
{
    struct fkt_sa_slot *slot = &s->slot[from];
    size_t coin = fkt_sa_complete(&s->p) ? 0 : FKT_POINT_BYTES;
    uint8_t hash[32];
    fkt_status st;
    FKT_TRY(length(&m->advertise.channel_key, 32, "channel key"));
    FKT_TRY(length(&m->advertise.mask_key, 32, "mask key"));
    FKT_TRY(length(&m->advertise.coin, coin, "coin"));
    FKT_TRY(length(&m->advertise.signature, FKT_SIGN_BYTES, "signature"));
    fkt_sa_advert_hash(hash, s->session, from, m->advertise.channel_key.p, m->advertise.mask_key.p);
    if (!fkt_verify(m->advertise.signature.p, hash, sizeof hash, fkt_sa_roster_key(&s->p, from)))
        return fkt_fail(FKT_E_PEER_AUTH, "its signature on its keys is wrong");
    FKT_TRY(usable_key(m->advertise.channel_key.p, "channel key"));
    FKT_TRY(usable_key(m->advertise.mask_key.p, "mask key"));
    if (coin && !fkt_point_ok(m->advertise.coin.p)) return fkt_fail(FKT_E_PEER_AUTH, "its coin is not a point");
    memcpy(slot->channel_key, m->advertise.channel_key.p, 32);
    memcpy(slot->mask_key, m->advertise.mask_key.p, 32);
    memcpy(slot->advert, m->advertise.signature.p, FKT_SIGN_BYTES);
    if (coin) memcpy(slot->coin, m->advertise.coin.p, coin);
    s->census.advertised++;
out:
    return st;
}

static fkt_status accept_open(struct fkt_sa_server *s, uint32_t from, const struct fkt_sa_msg *m)
{
    struct fkt_sa_slot *slot = &s->slot[from];
    uint8_t point[FKT_POINT_BYTES];
    fkt_status st;
    if (m->open.attempt < s->census.throws) return fkt_fail(FKT_E_STATE, "it opens an earlier throw");
    if (m->open.attempt > s->census.throws)
        return fkt_fail(FKT_E_PEER_AUTH, "it opens throw %u, and there were %u", m->open.attempt, s->census.throws);
    FKT_TRY(length(&m->open.scalar, FKT_SCALAR_BYTES, "scalar"));
    FKT_TRY(length(&m->open.next_coin, FKT_POINT_BYTES, "next coin"));
    if (!fkt_scalar_ok(m->open.scalar.p) || fkt_point_base(point, m->open.scalar.p) != FKT_OK ||
        !fkt_same(point, slot->coin, sizeof point))
        return fkt_fail(FKT_E_PEER_AUTH, "its scalar does not open its coin");
    if (!fkt_point_ok(m->open.next_coin.p)) return fkt_fail(FKT_E_PEER_AUTH, "its next coin is not a point");
    memcpy(slot->scalar, m->open.scalar.p, FKT_SCALAR_BYTES);
    memcpy(slot->coin, m->open.next_coin.p, FKT_POINT_BYTES);
out:
    return st;
}

static fkt_status accept_shares(struct fkt_sa_server *s, uint32_t from, const struct fkt_sa_msg *m)
{
    struct fkt_sa_slot *slot = &s->slot[from];
    size_t n = fkt_sa_near_count(s, from, FKT_SA_IN_SHARE) * (size_t)FKT_SA_SEALED;
    fkt_status st;
    FKT_TRY(length(&m->shares.sealed, n, "list of sealed shares"));
    FKT_TRY(length(&m->shares.self_commitment, 32, "self commitment"));
    FKT_TRY(fkt_alloc(&slot->sealed, n));
    memcpy(slot->sealed, m->shares.sealed.p, n);
    memcpy(slot->self_commitment, m->shares.self_commitment.p, 32);
    s->census.shared++;
out:
    return st;
}

static fkt_status accept_masked(struct fkt_sa_server *s, const struct fkt_sa_msg *m)
{
    fkt_status st;
    FKT_TRY(length(&m->masked.packed, fkt_sa_packed(s->p.length, s->p.bits), "vector"));
    FKT_TRY(fkt_sa_vector_add_packed(&s->sum, m->masked.packed.p));
    s->census.masked++;
out:
    return st;
}

static fkt_status accept_confirm(struct fkt_sa_server *s, uint32_t from, const struct fkt_sa_msg *m)
{
    uint8_t hash[32];
    fkt_status st;
    FKT_TRY(length(&m->confirm.signature, FKT_SIGN_BYTES, "signature"));
    fkt_sa_confirm_hash(hash, s->session, s->seed, s->survivors, fkt_bitmap_bytes(s->p.sites));
    if (!fkt_verify(m->confirm.signature.p, hash, sizeof hash, fkt_sa_roster_key(&s->p, from)))
        return fkt_fail(FKT_E_PEER_AUTH, "its signature on the survivors is wrong");
    memcpy(s->slot[from].confirmation, m->confirm.signature.p, FKT_SIGN_BYTES);
    s->sets[from] |= FKT_SA_HAS_CONFIRMED;
    s->census.confirmed++;
out:
    return st;
}

static fkt_status accept_reveal(struct fkt_sa_server *s, uint32_t from, const struct fkt_sa_msg *m)
{
    struct fkt_sa_slot *slot = &s->slot[from];
    size_t n = fkt_sa_near_count(s, from, FKT_SA_IN_MASK) * (size_t)FKT_SA_SHARE_BYTES;
    fkt_status st;
    FKT_TRY(length(&m->reveal.shares, n, "list of shares"));
    for (size_t at = 0; at < n; at += FKT_SA_SHARE_BYTES)
        if (!fkt_scalar_ok(m->reveal.shares.p + at))
            return fkt_fail(FKT_E_PEER_FORMAT, "its share %zu is not a number of the field", at / FKT_SA_SHARE_BYTES);
    FKT_TRY(fkt_alloc(&slot->reveal, n));
    memcpy(slot->reveal, m->reveal.shares.p, n);
    s->sets[from] |= FKT_SA_HAS_REVEALED;
    s->census.revealed++;
out:
    return st;
}

enum fkt_sa_state fkt_sa_phase_of(enum fkt_sa_kind kind)
{
    switch (kind) {
    case FKT_SA_M_ADVERTISE: return FKT_SA_STATE_ADVERTISE;
    case FKT_SA_M_OPEN: return FKT_SA_STATE_COIN;
    case FKT_SA_M_SHARES: return FKT_SA_STATE_SHARE;
    case FKT_SA_M_MASKED: return FKT_SA_STATE_MASK;
    case FKT_SA_M_CONFIRM: return FKT_SA_STATE_CONFIRM;
    case FKT_SA_M_REVEAL: return FKT_SA_STATE_REVEAL;
    default: return FKT_SA_STATE_BEGIN;
    }
}

fkt_status fkt_sa_server_accept(struct fkt_sa_server *s, uint32_t from, const struct fkt_sa_msg *m)
{
    switch (s->state) {
    case FKT_SA_STATE_ADVERTISE: return accept_advertise(s, from, m);
    case FKT_SA_STATE_COIN: return accept_open(s, from, m);
    case FKT_SA_STATE_SHARE: return accept_shares(s, from, m);
    case FKT_SA_STATE_MASK: return accept_masked(s, m);
    case FKT_SA_STATE_CONFIRM: return accept_confirm(s, from, m);
    case FKT_SA_STATE_REVEAL: return accept_reveal(s, from, m);
    default: return fkt_fail(FKT_E_STATE, "no phase is open");
    }
}
