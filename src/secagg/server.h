/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - internal state of the server, for the files server*.c and unmask.c.
 *
 *   server.c          the state machine: entry points, which sites are lost, when a phase ends
 *   server_inbox.c    one message from one site: its checks, and what is kept of it
 *   server_outbox.c   the messages of a phase, made one at a time when the transport asks
 *   server_phase.c    from one phase to the next: which sites continue, and whether they are enough
 *   server_secrets.c  rebuilds secrets from shares, some of which may be false
 *   unmask.c          makes masks from secrets and subtracts them */
#ifndef FKT_SECAGG_SERVER_H
#define FKT_SECAGG_SERVER_H

#include "fedkt/advanced/secagg.h"

#include "secagg/coin.h"
#include "secagg/graph.h"
#include "secagg/mask.h"
#include "secagg/msg.h"
#include "secagg/share.h"

/* Sets of sites, one bit each in fkt_sa_server.sets; a site stays in a set even when it is lost. */
enum {
    FKT_SA_IN_SHARE = 1, /* U1: those that Neighbours named */
    FKT_SA_IN_MASK = 2,  /* U2: those whose shares were delivered; neighbours within it are peers */
    FKT_SA_SURVIVED = 4, /* S: those whose vector is in the sum */
    FKT_SA_HAS_CONFIRMED = 8,
    FKT_SA_HAS_REVEALED = 16,
    FKT_SA_REBUILT = 32, /* `secret` is known */
    FKT_SA_SUSPECT = 64, /* its share of one secret does not fit that secret's commitment */
    FKT_SA_BLAMED = 128  /* nor does its share of a second owner's secret */
};

/* One site. Fields have 32 bytes unless a size is given. */
struct fkt_sa_slot {
    fkt_status status;    /* not FKT_OK: lost, and why */
    uint8_t has_answered; /* its message of this phase was received */
    uint8_t left;         /* it sent Leave */
    uint32_t position;    /* its leaf in this throw */
    uint8_t channel_key[32], mask_key[32], advert[64];
    uint8_t coin[32];   /* the commitment that it will open next */
    uint8_t scalar[32]; /* what it opened in this throw */
    uint8_t self_commitment[32], confirmation[64];
    uint8_t *sealed;    /* (neighbours in U1, 80) for them; NULL once delivered */
    uint8_t *reveal;    /* (peers, 32) for us */
    uint8_t secret[32]; /* u of a survivor, m of a lost site */
};

/* One stream to subtract. self: site == other. pair: site is lost, other survived. */
struct fkt_sa_job {
    uint32_t site, other;
};

struct fkt_sa_server {
    struct fkt_sa_params p;
    uint8_t round[FKT_SA_ROUND], session[FKT_SA_SESSION], seed[32];
    enum fkt_sa_state state;
    struct fkt_failure failure; /* FAILED: what every call answers */

    uint64_t patience_ms, now_ms, began_ms;
    int began; /* a tick has arrived in this phase */

    struct fkt_sa_slot *slot; /* (sites) */
    uint8_t *sets;            /* (sites) bits above; separate from the slots, since it is read very often */
    uint32_t pending;         /* sites that this phase still waits for */
    struct fkt_sa_census census;
    uint32_t cursor; /* outbox: sites before it have been served in this phase */

    struct fkt_sa_coin coin; /* COIN only */
    uint8_t v[32];           /* the coin's value */
    uint32_t *adjacent;      /* (sites, degree) neighbours, ascending; from SHARE on */
    uint32_t *witness;       /* (degree) ascending, sparse graphs only; from SHARE on */
    uint8_t *delivered;      /* bitmap over the roster: U2; from MASK on */
    uint8_t delivered_hash[32];
    uint8_t *survivors; /* bitmap over the roster: S; from CONFIRM on */
    uint8_t *scratch;   /* the longest field of a message to a site, and the bitmap before it */
    struct fkt_sa_vector sum;

    struct fkt_sa_job *job;
    size_t jobs;
    int64_t *total;    /* (length) DONE only */
    uint8_t *survived; /* (sites) DONE only */
};

/* server.c */
static inline int fkt_sa_alive(const struct fkt_sa_server *s, uint32_t site) { return s->slot[site].status == FKT_OK; }
void fkt_sa_server_lose(struct fkt_sa_server *s, uint32_t site, fkt_status why);
fkt_status fkt_sa_server_fail(struct fkt_sa_server *s, fkt_status st); /* ends the round; gives st back */
void fkt_sa_server_wipe(struct fkt_sa_server *s);                      /* wipes and frees all shares and secrets */
static inline const uint32_t *fkt_sa_near(const struct fkt_sa_server *s, uint32_t site)
{
    return s->adjacent + (size_t)site * s->p.degree;
}
uint32_t fkt_sa_near_count(const struct fkt_sa_server *s, uint32_t site, uint8_t set); /* neighbours in the set */
/* How many neighbours of `owner` in the set come before `site`: where owner's lists keep what is for `site`. */
uint32_t fkt_sa_near_rank(const struct fkt_sa_server *s, uint32_t owner, uint32_t site, uint8_t set);

/* server_inbox.c: m is well formed, of this session, from a live site and of this phase. */
FKT_MUST_USE fkt_status fkt_sa_server_accept(struct fkt_sa_server *s, uint32_t from, const struct fkt_sa_msg *m);
/* The phase to which an answer of this kind belongs; FKT_SA_STATE_BEGIN: to none. */
enum fkt_sa_state fkt_sa_phase_of(enum fkt_sa_kind kind);

/* server_phase.c: the phase is over; sites that have not answered are lost. */
FKT_MUST_USE fkt_status fkt_sa_phase_leave(struct fkt_sa_server *s);
FKT_MUST_USE fkt_status fkt_sa_phase_too_few(const struct fkt_sa_server *s, uint32_t there);

/* server_secrets.c, unmask.c: what happens between REVEAL and UNMASK. */
FKT_MUST_USE fkt_status fkt_sa_server_rebuild(struct fkt_sa_server *s);
FKT_MUST_USE fkt_status fkt_sa_server_list_jobs(struct fkt_sa_server *s);

#endif
