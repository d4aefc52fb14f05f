/* SPDX-License-Identifier: Apache-2.0 */
/* sa_attack.h - scripts of a lying server and of colluding sites, on a watched world.
 *
 *   struct sa_attack a;
 *   sa_attack_init(&a, sa_small(), 7);         six sites, one may be lost, one may collude
 *   a.kind = FKT_SA_M_NEIGHBOURS;              the letter to bend: this kind, to the victim ...
 *   a.bend = swap_keys;                        ... and how; gets it decoded, may alter bytes that it copied
 *   sa_attack_run(&a);                         the whole round
 *   sa_attack_stopped(&a, FKT_E_PEER_AUTH);    the victim stopped with this, and said nothing more but Leave
 *   sa_attack_release(&a);                     nothing leaked, and the observer of sa_watch.h saw no promise broken
 *
 * Longer scripts set `mute`, run the world with sa_drain and send in the server's place with sa_post. With
 * `of_malicious` set, the message is one from the site `malicious` to the server. `every` alters that kind at all
 * sites. */
#ifndef FKT_TEST_SA_ATTACK_H
#define FKT_TEST_SA_ATTACK_H

#include "secagg/share.h"
#include "tests/support/check.h"
#include "tests/support/sa_watch.h"

struct sa_taped {
    uint8_t *p;
    size_t n;
};
struct sa_tape { /* the last letter of each kind from or to each site, as it was sent */
    struct sa_taped *of;
    uint32_t sites;
};

struct sa_attack;
/* Alters *m, or sets m->kind to NONE after having written to the letter itself. */
typedef void (*sa_bender)(struct sa_attack *a, struct sa_message *l, struct fkt_sa_msg *m);

struct sa_attack {
    struct sa_world w;
    struct sa_watch v;
    struct sa_tape tape;
    uint32_t victim, malicious; /* 2 and 4 */
    enum fkt_sa_kind kind;
    int of_malicious, every;
    enum fkt_sa_kind mute; /* what the honest server says from this kind on is lost: the script speaks; NONE: nothing */
    unsigned variant;
    const struct sa_tape *other; /* of another round */
    sa_bender bend;
    unsigned struck;  /* how often it was bent */
    unsigned said;    /* what the victim had said before the first time */
    unsigned may_say; /* what it may still say, not knowing better; 0 */
    uint8_t *scratch[16];
    size_t n_scratch;
};

struct fkt_sa_params sa_small(void); /* N 6, D 1, C 1, complete, t 4 */
struct fkt_sa_params sa_ring(void);  /* N 12, D 2, C 1, k 6, t 4 */

void sa_attack_init(struct sa_attack *a, struct fkt_sa_params p, uint64_t seed);
/* Another round of the same sites, under another name and with other randomness. Call before anything runs. */
void sa_attack_next_round(struct sa_attack *a, uint8_t name);
fkt_status sa_attack_run(struct sa_attack *a);
void sa_attack_stopped(struct sa_attack *a, fkt_status status);
void sa_attack_site_stopped(struct sa_attack *a, uint32_t site, fkt_status status); /* the same, less what it said */
/* All sites but the malicious one have revealed and so paid, once, although there is no total: what a round that fails
 * so late costs (docs/protocol.md 8). */
void sa_attack_honest_spent(const struct sa_attack *a);
void sa_attack_release(struct sa_attack *a);
/* init, run, stopped, release: for scripts that are one bend. */
void sa_attack_simple(struct fkt_sa_params p, enum fkt_sa_kind kind, sa_bender bend, unsigned variant,
                      fkt_status status);

/* Tools of scripts. Copies live until sa_attack_release. */
uint8_t *sa_edit(struct sa_attack *a, struct fkt_sa_bytes *field);             /* the field becomes a copy */
uint8_t *sa_resize(struct sa_attack *a, struct fkt_sa_bytes *field, size_t n); /* and has n bytes, new ones zero */
void sa_session(const struct sa_attack *a, uint8_t session[FKT_SA_SESSION]);
void sa_encode(struct sa_message *l, const struct fkt_sa_msg *m);
void sa_post(struct sa_attack *a, uint32_t site, struct fkt_sa_msg *m); /* to a site, with the session put in */
void sa_drain(struct sa_attack *a); /* delivers what is on the wire and what follows; closes no phase */
void sa_advert(const struct sa_attack *a, uint32_t site, const uint8_t secret[FKT_SA_SECRET], const uint8_t channel[32],
               const uint8_t mask[32], uint8_t advert[FKT_SA_ADVERT]);
/* 64 bytes sealed in the malicious site's name for another site, on a complete graph: its channel secret is the first
 * that it drew. */
void sa_seal_as_liar(const struct sa_attack *a, uint32_t to, const uint8_t plain[64], uint8_t box[FKT_SA_SEALED]);
const struct sa_taped *sa_taped(const struct sa_tape *t, uint32_t site, enum fkt_sa_kind kind);
/* A taped letter, decoded; the test ends when there is none. Release it. */
void sa_recall(const struct sa_attack *a, const struct sa_tape *t, uint32_t site, enum fkt_sa_kind kind,
               struct fkt_sa_msg *m);
/* Neighbour number n of a site on a complete graph, and its number among them. */
static inline uint32_t sa_other(uint32_t site, uint32_t n) { return n < site ? n : n + 1; }
static inline uint32_t sa_rank(uint32_t site, uint32_t other) { return other < site ? other : other - 1; }

#endif
