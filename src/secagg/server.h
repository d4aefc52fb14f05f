/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - what the server holds, for the files server*.c and unmask.c alone.
 *
 *   server.c          the machine: what comes in by the front door, who is lost, when a phase ends
 *   server_inbox.c    one message from one site: is it right, and what is kept of it
 *   server_outbox.c   the messages of a phase, made one at a time when the transport asks
 *   server_phase.c    from one phase to the next: who goes on, and whether they are enough
 *   server_secrets.c  shares become secrets again, false ones or not
 *   unmask.c          secrets become masks, and masks come off */
#ifndef FKT_SECAGG_SERVER_H
#define FKT_SECAGG_SERVER_H

#include "fedkt/advanced/secagg.h"

#include "secagg/coin.h"
#include "secagg/graph.h"
#include "secagg/mask.h"
#include "secagg/msg.h"
#include "secagg/share.h"

/* Sets of sites, one bit each in fkt_sa_server.sets; once in, a site stays in, lost or not. */
enum {
    FKT_SA_IN_SHARE = 1, /* U1: whom Neighbours named */
    FKT_SA_IN_MASK = 2,  /* U2: whose shares were delivered; neighbours within it are peers */
    FKT_SA_SURVIVED = 4, /* S: whose vector is in the sum */
    FKT_SA_HAS_CONFIRMED = 8,
    FKT_SA_HAS_REVEALED = 16,
    FKT_SA_REBUILT = 32, /* `secret` is known */
    FKT_SA_SUSPECT = 64, /* its share of some secret is false; so its owner says */
    FKT_SA_LIED = 128    /* and so says a second owner */
};

/* One site. Numbers of 32 bytes unless said. */
struct fkt_sa_slot {
    fkt_status status; /* not FKT_OK: lost, and why */
    uint8_t heard;     /* its message of this phase has come */
    uint8_t left;      /* it said Leave */
    uint32_t position; /* its leaf in this throw */
    uint8_t channel_key[32], mask_key[32], advert[64];
    uint8_t coin[32];   /* the commitment that it will open next */
    uint8_t scalar[32]; /* what it opened in this throw */
    uint8_t self_commitment[32], confirmation[64];
    uint8_t *sealed;    /* (neighbours in U1, 80) for them; NULL once delivered */
    uint8_t *reveal;    /* (peers, 32) for us */
    uint8_t secret[32]; /* u of a survivor, m of a lost site */
};

/* One stream to take off. self: site == other. pair: site is lost, other survived. */
struct fkt_sa_job {
    uint32_t site, other;
};

struct fkt_sa_server {
    struct fkt_sa_params p;
    uint8_t round[FKT_SA_ROUND], session[FKT_SA_SESSION], seed[32];
    enum fkt_sa_state state;
    struct fkt_failure failure; /* FAILED: what every call answers */

    uint64_t patience_ms, now_ms, began_ms;
    int began; /* this phase has seen a tick */

    struct fkt_sa_slot *slot; /* (sites) */
    uint8_t *sets;            /* (sites) bits above; apart from the seats, since it is read all the time */
    uint32_t pending;         /* sites that this phase still waits for */
    struct fkt_sa_census census;
    uint32_t cursor; /* outbox: sites before it have been served in this phase */

    struct fkt_sa_coin coin; /* COIN only */
    uint8_t v[32];           /* what the coin showed */
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
void fkt_sa_server_forget(struct fkt_sa_server *s);                    /* wipes and frees all shares and secrets */
static inline const uint32_t *fkt_sa_near(const struct fkt_sa_server *s, uint32_t site)
{
    return s->adjacent + (size_t)site * s->p.degree;
}
uint32_t fkt_sa_near_count(const struct fkt_sa_server *s, uint32_t site, uint8_t set); /* neighbours in the set */
/* How many neighbours of `owner` in the set stand before `site`: where owner's lists keep what is for `site`. */
uint32_t fkt_sa_near_rank(const struct fkt_sa_server *s, uint32_t owner, uint32_t site, uint8_t set);

/* server_inbox.c: m is well formed, of this session, from a living site and of this phase. */
FKT_MUST_USE fkt_status fkt_sa_server_hear(struct fkt_sa_server *s, uint32_t from, const struct fkt_sa_msg *m);
/* The phase to which an answer of this kind belongs; FKT_SA_STATE_BEGIN: to none. */
enum fkt_sa_state fkt_sa_phase_of(enum fkt_sa_kind kind);

/* server_phase.c: the phase is over; those not heard are lost. */
FKT_MUST_USE fkt_status fkt_sa_phase_leave(struct fkt_sa_server *s);
FKT_MUST_USE fkt_status fkt_sa_phase_too_few(const struct fkt_sa_server *s, uint32_t there);

/* server_secrets.c, unmask.c: what happens between REVEAL and UNMASK. */
FKT_MUST_USE fkt_status fkt_sa_server_rebuild(struct fkt_sa_server *s);
FKT_MUST_USE fkt_status fkt_sa_server_list_jobs(struct fkt_sa_server *s);

#endif
