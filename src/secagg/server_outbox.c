/* SPDX-License-Identifier: Apache-2.0 */
/* server_outbox.c - the messages of a phase, each made when the transport asks for it (docs/protocol.md 3).
 *
 * The messages of a phase differ from site to site, and together are as large as all that was received; none is stored.
 * A cursor goes over the sites, and the message of the current site is made from slots and sets that do not change
 * during a phase. A site that is lost before its turn gets no message. After the last Deliver the sealed shares are
 * freed. Cost for one site: O(k) copies, and for Deliver O(k^2) bits to find each peer's place. */
#include "secagg/server.h"

#include "base/alloc.h"
#include "crypto/sign.h"

#include <string.h>

/* Makes a bitmap over the sites of `list` (degree) that are in `over`, with those set that are also in `set`, and for
 * each of those one field for `site`, written by `put`. In scratch the bitmap comes first, then the fields. */
static void collect(const struct fkt_sa_server *s, uint32_t site, const uint32_t *list, uint8_t over, uint8_t set,
                    size_t field, void (*put)(const struct fkt_sa_server *s, uint32_t of, uint32_t to, uint8_t *out),
                    struct fkt_sa_bytes *present, struct fkt_sa_bytes *fields)
{
    uint8_t *at = s->scratch + fkt_bitmap_bytes(s->p.degree);
    size_t bits = 0;
    memset(s->scratch, 0, fkt_bitmap_bytes(s->p.degree));
    fields->p = at;
    for (uint32_t k = 0; k < s->p.degree; k++) {
        if (over && !(s->sets[list[k]] & over)) continue;
        if (s->sets[list[k]] & set) {
            fkt_bitmap_set(s->scratch, bits);
            put(s, list[k], site, at);
            at += field;
        }
        bits++;
    }
    fields->n = (size_t)(at - fields->p);
    present->p = s->scratch;
    present->n = fkt_bitmap_bytes(bits);
}

static void put_advert(const struct fkt_sa_server *s, uint32_t of, uint32_t to, uint8_t *out)
{
    const struct fkt_sa_slot *slot = &s->slot[of];
    (void)to;
    memcpy(out, slot->channel_key, 32);
    memcpy(out + 32, slot->mask_key, 32);
    memcpy(out + 64, slot->advert, FKT_SIGN_BYTES);
}

static void put_sealed(const struct fkt_sa_server *s, uint32_t of, uint32_t to, uint8_t *out)
{
    size_t place = fkt_sa_near_rank(s, of, to, FKT_SA_IN_SHARE);
    memcpy(out, s->slot[of].sealed + place * FKT_SA_SEALED, FKT_SA_SEALED);
}

static void put_confirmation(const struct fkt_sa_server *s, uint32_t of, uint32_t to, uint8_t *out)
{
    (void)to;
    memcpy(out, s->slot[of].confirmation, FKT_SIGN_BYTES);
}

static void make_coin(const struct fkt_sa_server *s, uint32_t site, struct fkt_sa_msg *m)
{
    uint32_t position = s->slot[site].position;
    m->kind = FKT_SA_M_COIN;
    m->coin.attempt = s->census.throws;
    m->coin.leaves = s->coin.leaves;
    m->coin.position = position;
    fkt_sa_coin_path(&s->coin, position, s->scratch);
    m->coin.path = (struct fkt_sa_bytes){s->scratch, fkt_sa_coin_path_bytes(s->coin.leaves, position)};
}

/* This phase's message to one site. */
static void make_message(const struct fkt_sa_server *s, uint32_t site, struct fkt_sa_msg *m)
{
    const uint32_t *near = s->adjacent ? fkt_sa_near(s, site) : NULL;
    m->session = (struct fkt_sa_bytes){s->session, FKT_SA_SESSION};
    switch (s->state) {
    case FKT_SA_STATE_ADVERTISE:
        m->kind = FKT_SA_M_BEGIN;
        m->session = (struct fkt_sa_bytes){NULL, 0};
        m->begin.round = (struct fkt_sa_bytes){s->round, FKT_SA_ROUND};
        m->begin.task = (struct fkt_sa_bytes){s->p.task, sizeof s->p.task};
        break;
    case FKT_SA_STATE_COIN: make_coin(s, site, m); break;
    case FKT_SA_STATE_SHARE:
        m->kind = FKT_SA_M_NEIGHBOURS;
        m->neighbours.scalar = (struct fkt_sa_bytes){s->v, fkt_sa_complete(&s->p) ? 0 : sizeof s->v};
        collect(s, site, near, 0, FKT_SA_IN_SHARE, FKT_SA_ADVERT, put_advert, &m->neighbours.present,
                &m->neighbours.adverts);
        break;
    case FKT_SA_STATE_MASK:
        m->kind = FKT_SA_M_DELIVER;
        collect(s, site, near, 0, FKT_SA_IN_MASK, FKT_SA_SEALED, put_sealed, &m->deliver.delivered, &m->deliver.sealed);
        m->deliver.delivered = (struct fkt_sa_bytes){s->delivered, fkt_bitmap_bytes(s->p.sites)}; /* the same for all */
        break;
    case FKT_SA_STATE_CONFIRM:
        m->kind = FKT_SA_M_SURVIVORS;
        m->survivors.survivors = (struct fkt_sa_bytes){s->survivors, fkt_bitmap_bytes(s->p.sites)};
        break;
    case FKT_SA_STATE_REVEAL:
        m->kind = FKT_SA_M_CONFIRMED;
        collect(s, site, s->witness ? s->witness : near, s->witness ? 0 : FKT_SA_IN_MASK, FKT_SA_HAS_CONFIRMED,
                FKT_SIGN_BYTES, put_confirmation, &m->confirmed.present, &m->confirmed.signatures);
        break;
    default: m->kind = FKT_SA_M_ABORTED; m->aborted.status = (uint32_t)s->failure.status;
    }
}

/* During a phase the live sites; after a failure every site that may still be waiting, lost or not. */
static int is_recipient(const struct fkt_sa_server *s, uint32_t site)
{
    if (s->state == FKT_SA_STATE_FAILED) return !s->slot[site].left && !(s->sets[site] & FKT_SA_HAS_REVEALED);
    return fkt_sa_alive(s, site) && !s->slot[site].has_answered;
}

static void all_sent(struct fkt_sa_server *s)
{
    if (s->state != FKT_SA_STATE_MASK) return;
    for (uint32_t i = 0; i < s->p.sites; i++) {
        fkt_free(s->slot[i].sealed);
        s->slot[i].sealed = NULL;
    }
}

fkt_status fkt_sa_server_next(struct fkt_sa_server *s, uint32_t *to, uint8_t *out, size_t cap, size_t *len)
{
    struct fkt_sa_msg m = {0};
    fkt_status st;
    *len = 0;
    if (s->state == FKT_SA_STATE_UNMASK || s->state == FKT_SA_STATE_DONE || s->cursor == s->p.sites) return FKT_OK;
    while (s->cursor < s->p.sites && !is_recipient(s, s->cursor)) s->cursor++;
    if (s->cursor < s->p.sites) {
        make_message(s, s->cursor, &m);
        st = fkt_sa_msg_encode(&m, out, cap, len);
        if (st != FKT_OK) {
            *len = 0;
            return st;
        }
        *to = s->cursor++;
    }
    if (s->cursor == s->p.sites) all_sent(s);
    return FKT_OK;
}
