/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_sa.h - common to the targets of secure aggregation: two small federations, run to their end once, whose messages
 * are recorded; and messages that are altered field by field, so that they get past the decoder.
 *
 *   | graph, phase, site | how | rest |
 *     bit 3: sparse; bits 0-2: phase; bits 4-6: site
 *     how 0: the rest is the message, as it is
 *     else:  the rest are edits of the honest message, four bytes each
 *            | field (low 4 bits), what (high 4 bits) | where, 2 bytes | value |
 *            0 xor a byte, 1 set its length, 2 set a byte, 3 take the field from another site's message,
 *            4 copy 32 bytes to the front of it, 5 a number becomes where, 6 become that kind of message */
#ifndef FKT_FUZZ_SA_H
#define FKT_FUZZ_SA_H

#include "fedkt/advanced/secagg.h"

#include "tests/support/sa_watch.h"
#include "fuzz_support.h"

#include "base/alloc.h"

#define FUZZ_SA_SITES 6
#define FUZZ_SA_ROOM 4096

static const enum fkt_sa_kind fuzz_sa_up[] = {FKT_SA_M_ADVERTISE, FKT_SA_M_OPEN,    FKT_SA_M_SHARES,
                                              FKT_SA_M_MASKED,    FKT_SA_M_CONFIRM, FKT_SA_M_REVEAL};
static const enum fkt_sa_kind fuzz_sa_down[] = {FKT_SA_M_BEGIN,   FKT_SA_M_COIN,      FKT_SA_M_NEIGHBOURS,
                                                FKT_SA_M_DELIVER, FKT_SA_M_SURVIVORS, FKT_SA_M_CONFIRMED};
enum { FUZZ_SA_PHASES = 6, FUZZ_SA_COIN = 1 };

struct fuzz_sa_world {
    struct fkt_sa_params p;
    uint8_t roster[FUZZ_SA_SITES * FKT_SA_KEY];
    uint8_t secret[FUZZ_SA_SITES][FKT_SA_SECRET];
    uint8_t round[FKT_SA_ROUND];
    uint64_t seed;
    int64_t x[FUZZ_SA_SITES][4], total[4];
    struct {
        uint8_t p[FUZZ_SA_ROOM];
        size_t n;
    } tape[FUZZ_SA_SITES][SA_KINDS];
};

static inline struct fkt_sa_params fuzz_sa_params(int sparse)
{
    struct fkt_sa_params p = sparse ? sa_params(6, 1, 0, 4, 3, 4, 21) : sa_params(4, 1, 0, 0, 2, 4, 21);
    p.attempts = 2;
    return p;
}

static inline void fuzz_sa_tape(void *self, struct sa_world *w, struct sa_message *l)
{
    struct fuzz_sa_world *f = self;
    (void)w;
    FUZZ_CHECK(l->len <= FUZZ_SA_ROOM);
    memcpy(f->tape[l->site][l->kind].p, l->bytes, l->len);
    f->tape[l->site][l->kind].n = l->len;
}

/* The world that the first byte asks for; both are made on first use. */
static inline const struct fuzz_sa_world *fuzz_sa_world(int sparse)
{
    static struct fuzz_sa_world made[2];
    struct fuzz_sa_world *f = &made[sparse];
    const struct fkt_sa_params p = fuzz_sa_params(sparse);
    struct sa_world w;
    if (f->p.sites) return f;
    f->seed = 5;
    FUZZ_CHECK(sa_world_init(&w, &p, f->seed) == FKT_OK);
    w.hook = fuzz_sa_tape;
    w.self = f;
    FUZZ_CHECK(sa_world_run(&w) == FKT_OK);
    memcpy(f->roster, w.roster, (size_t)p.sites * FKT_SA_KEY);
    memcpy(f->round, w.round, sizeof f->round);
    for (uint32_t i = 0; i < p.sites; i++) {
        memcpy(f->secret[i], w.site[i].secret, sizeof f->secret[i]);
        for (uint32_t k = 0; k < p.length; k++) f->total[k] += f->x[i][k] = w.site[i].x[k];
    }
    f->p = p;
    f->p.roster = f->roster;
    sa_world_release(&w);
    return f;
}

/* ---- a message's fields ---- */

struct fuzz_sa_fields {
    struct fkt_sa_bytes *bytes[5];
    uint32_t *number[4];
    size_t n_bytes, n_numbers;
};

static inline struct fuzz_sa_fields fuzz_sa_fields(struct fkt_sa_msg *m)
{
    switch (m->kind) {
    case FKT_SA_M_ADVERTISE:
        return (struct fuzz_sa_fields){{&m->session, &m->advertise.channel_key, &m->advertise.mask_key,
                                        &m->advertise.coin, &m->advertise.signature},
                                       {&m->site},
                                       5,
                                       1};
    case FKT_SA_M_OPEN:
        return (struct fuzz_sa_fields){
            {&m->session, &m->open.scalar, &m->open.next_coin}, {&m->site, &m->open.attempt}, 3, 2};
    case FKT_SA_M_SHARES:
        return (struct fuzz_sa_fields){{&m->session, &m->shares.sealed, &m->shares.self_commitment}, {&m->site}, 3, 1};
    case FKT_SA_M_MASKED: return (struct fuzz_sa_fields){{&m->session, &m->masked.packed}, {&m->site}, 2, 1};
    case FKT_SA_M_CONFIRM: return (struct fuzz_sa_fields){{&m->session, &m->confirm.signature}, {&m->site}, 2, 1};
    case FKT_SA_M_REVEAL: return (struct fuzz_sa_fields){{&m->session, &m->reveal.shares}, {&m->site}, 2, 1};
    case FKT_SA_M_LEAVE: return (struct fuzz_sa_fields){{&m->session}, {&m->site, &m->leave.status}, 1, 2};
    case FKT_SA_M_BEGIN: return (struct fuzz_sa_fields){{&m->session, &m->begin.round, &m->begin.task}, {NULL}, 3, 0};
    case FKT_SA_M_COIN:
        return (struct fuzz_sa_fields){
            {&m->session, &m->coin.path}, {&m->coin.attempt, &m->coin.leaves, &m->coin.position}, 2, 3};
    case FKT_SA_M_NEIGHBOURS:
        return (struct fuzz_sa_fields){
            {&m->session, &m->neighbours.scalar, &m->neighbours.present, &m->neighbours.adverts}, {NULL}, 4, 0};
    case FKT_SA_M_DELIVER:
        return (struct fuzz_sa_fields){{&m->session, &m->deliver.delivered, &m->deliver.sealed}, {NULL}, 3, 0};
    case FKT_SA_M_SURVIVORS: return (struct fuzz_sa_fields){{&m->session, &m->survivors.survivors}, {NULL}, 2, 0};
    case FKT_SA_M_CONFIRMED:
        return (struct fuzz_sa_fields){{&m->session, &m->confirmed.present, &m->confirmed.signatures}, {NULL}, 3, 0};
    default: return (struct fuzz_sa_fields){{&m->session}, {&m->aborted.status}, 1, 1};
    }
}

/* A field becomes a copy with room to grow, in one of the rooms of this input. */
static inline uint8_t *fuzz_sa_own(struct fkt_sa_bytes *b, uint8_t room[FUZZ_SA_ROOM])
{
    const size_t n = b->n < FUZZ_SA_ROOM ? b->n : FUZZ_SA_ROOM;
    if (b->p == room) return room;
    memset(room, 0, FUZZ_SA_ROOM);
    if (n) memcpy(room, b->p, n);
    *b = (struct fkt_sa_bytes){room, n};
    return room;
}

static inline void fuzz_sa_edit(struct fkt_sa_msg *m, struct fkt_sa_msg *other, const uint8_t e[4],
                                uint8_t rooms[5][FUZZ_SA_ROOM])
{
    struct fuzz_sa_fields f = fuzz_sa_fields(m), g = fuzz_sa_fields(other);
    const size_t field = (e[0] & 15U) % f.n_bytes, where = (size_t)e[1] | (size_t)e[2] << 8;
    struct fkt_sa_bytes *b = f.bytes[field];
    uint8_t *p = fuzz_sa_own(b, rooms[field]);
    switch (e[0] >> 4) {
    case 0:
        if (b->n) p[where % b->n] ^= e[3];
        break;
    case 1: b->n = where % FUZZ_SA_ROOM; break;
    case 2:
        if (b->n) p[where % b->n] = e[3];
        break;
    case 3:
        if (other->kind != m->kind) break;
        b->n = g.bytes[field]->n;
        if (b->n) memcpy(p, g.bytes[field]->p, b->n);
        break;
    case 4:
        if (b->n >= 64) memmove(p, p + where % (b->n - 31), 32);
        break;
    case 5:
        if (f.n_numbers) *f.number[(e[0] & 15U) % f.n_numbers] = (uint32_t)where << (e[3] & 15);
        break;
    default: break;
    }
}

/* The message of an input: raw bytes, or edits of the honest one. `out` has FUZZ_SA_ROOM bytes and more. */
static inline size_t fuzz_sa_message(const struct fuzz_sa_world *f, uint32_t site, enum fkt_sa_kind kind,
                                     const uint8_t *data, size_t size, uint8_t *out, size_t cap)
{
    static uint8_t rooms[5][FUZZ_SA_ROOM];
    const int up = kind < FKT_SA_M_BEGIN;
    struct fkt_sa_msg m = {0}, other = {0};
    size_t len = 0;
    if (size < 2 || data[1] == 0) {
        len = size > 2 ? size - 2 : 0;
        if (len > cap) len = cap;
        if (len) memcpy(out, data + 2, len);
        return len;
    }
    FUZZ_CHECK(fkt_sa_msg_decode(&m, up, f->tape[site][kind].p, f->tape[site][kind].n, FUZZ_SA_ROOM) == FKT_OK);
    for (size_t at = 2; at + 4 <= size; at += 4) {
        const uint32_t from = data[at + 3] % f->p.sites;
        if (data[at] >> 4 == 6) { /* another kind of this side, as the site sent or got it */
            const enum fkt_sa_kind to =
                up ? fuzz_sa_up[data[at + 1] % FUZZ_SA_PHASES] : fuzz_sa_down[data[at + 1] % FUZZ_SA_PHASES];
            if (f->tape[from][to].n == 0) continue;
            fkt_sa_msg_clear(&m);
            FUZZ_CHECK(fkt_sa_msg_decode(&m, up, f->tape[from][to].p, f->tape[from][to].n, FUZZ_SA_ROOM) == FKT_OK);
            continue;
        }
        FUZZ_CHECK(fkt_sa_msg_decode(&other, up, f->tape[from][m.kind].p, f->tape[from][m.kind].n, FUZZ_SA_ROOM) ==
                   FKT_OK);
        fuzz_sa_edit(&m, &other, data + at, rooms);
        fkt_sa_msg_clear(&other);
    }
    if (fkt_sa_msg_encode(&m, out, cap, &len) != FKT_OK) len = 0;
    fkt_sa_msg_clear(&m);
    return len;
}

/* What the decoder takes it gives back, byte for byte. */
static inline void fuzz_sa_decode(const struct fuzz_sa_world *f, int to_server, const uint8_t *bytes, size_t n)
{
    const size_t max = to_server ? fkt_sa_to_server_max(&f->p) : fkt_sa_to_site_max(&f->p);
    struct fkt_sa_msg m = {0};
    uint8_t again[FUZZ_SA_ROOM];
    size_t len = 0;
    if (fkt_sa_msg_decode(&m, to_server, bytes, n, max) != FKT_OK) {
        FUZZ_CHECK(m.owner == NULL && fkt_error_text()[0] != '\0');
        return;
    }
    FUZZ_CHECK(n <= max && max <= sizeof again);
    FUZZ_CHECK(fkt_sa_msg_encode(&m, again, sizeof again, &len) == FKT_OK);
    FUZZ_CHECK(len == n && memcmp(again, bytes, n) == 0);
    fkt_sa_msg_clear(&m);
}

#endif
