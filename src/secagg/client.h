/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - internal state of a site, for the files client*.c. client.c has the state diagram. */
#ifndef FKT_SECAGG_CLIENT_H
#define FKT_SECAGG_CLIENT_H

#include "fedkt/advanced/secagg.h"

#include "secagg/msg.h"
#include "secagg/share.h"

#include "crypto/entropy.h"

enum fkt_sa_standing {
    FKT_SA_ABSENT = 0, /* a neighbour that does not take part */
    FKT_SA_PRESENT,    /* its advert came with Neighbours */
    FKT_SA_PEER        /* its shares came with Deliver */
};

struct fkt_sa_neighbour {
    uint32_t site;
    enum fkt_sa_standing standing;
    int after;              /* sparse graph: is after this site on the ring, not before it */
    uint8_t from_key[32];   /* opens what it sealed for us; SHARE only */
    uint8_t pair_key[32];   /* for the mask between us; SHARE only */
    uint8_t mask_share[32]; /* of its mask seed; from MASK on, from CONFIRM on only if it is lost */
    uint8_t self_share[32]; /* of its self seed; from MASK on, from CONFIRM on only if it survives */
};

struct fkt_sa_client {
    struct fkt_sa_params p; /* own copy */
    uint32_t index;
    const struct fkt_sa_site *site; /* borrowed */
    struct fkt_entropy *entropy;    /* borrowed, or &os */
    struct fkt_entropy os;

    enum fkt_sa_state state;
    struct fkt_failure failure; /* FAILED: what every call answers */
    int own_fault;              /* the site's ledger or vector failed, with whatever status */
    int has_last;               /* `last` is the hash of the message accepted last */
    uint8_t last[32];
    uint8_t *out; /* the message to send, own memory; NULL: none */
    size_t out_len;
    uint8_t leave[64]; /* the Leave message; needs no allocation */
    size_t leave_len;

    struct fkt_sa_secrets {          /* each is wiped after its last use */
        uint8_t sign[FKT_SA_SECRET]; /* until Confirm is signed */
        uint8_t channel[32];         /* c: until the shares are sealed */
        uint8_t mask_seed[32];       /* s: likewise */
        uint8_t self_seed[32];       /* u: until the vector is masked */
        uint8_t coin[32];            /* r of the next throw: until V is known */
    } secret;
    struct fkt_sa_neighbour *neighbour; /* (degree) ascending; SHARE to REVEAL */
    uint32_t present, peers;            /* how many neighbours are */
    uint32_t *witness; /* (witnesses) whose signatures count, ascending; from SHARE, complete: MASK, on */
    uint32_t witnesses;

    uint8_t session[FKT_SA_SESSION];
    int has_session;
    uint8_t channel_key[32], mask_key[32], commitment[32];
    uint32_t throws;  /* answered so far */
    uint8_t root[64]; /* of the last one */
    uint8_t seed[32];
    uint8_t *delivered; /* bitmap over the roster: U2; MASK to REVEAL */
    uint8_t *survivors; /* likewise: S, a part of U2; CONFIRM to REVEAL */
};

/* One function for each message, in the order of docs/protocol.md 3. Each checks the whole message before it changes
 * state, and leaves its answer in c->out. client.c ends the round on a failure. */
FKT_MUST_USE fkt_status fkt_sa_client_begin(struct fkt_sa_client *c, const struct fkt_sa_msg *m);
FKT_MUST_USE fkt_status fkt_sa_client_coin(struct fkt_sa_client *c, const struct fkt_sa_msg *m);
FKT_MUST_USE fkt_status fkt_sa_client_neighbours(struct fkt_sa_client *c, const struct fkt_sa_msg *m);
FKT_MUST_USE fkt_status fkt_sa_client_deliver(struct fkt_sa_client *c, const struct fkt_sa_msg *m);
FKT_MUST_USE fkt_status fkt_sa_client_survivors(struct fkt_sa_client *c, const struct fkt_sa_msg *m);
FKT_MUST_USE fkt_status fkt_sa_client_confirmed(struct fkt_sa_client *c, const struct fkt_sa_msg *m);

/* Returns st, and records that the site's own ledger or vector failed, so that the server is not sent the reason. */
FKT_MUST_USE fkt_status fkt_sa_client_own(struct fkt_sa_client *c, fkt_status st);
/* Encodes m, with session and site filled in, into c->out. */
FKT_MUST_USE fkt_status fkt_sa_client_queue(struct fkt_sa_client *c, struct fkt_sa_msg *m);
/* FKT_E_PEER_FORMAT unless `map` is a bitmap of `bits` and `list` has `each` bytes for every bit set; *n of them.
 * FKT_E_TOO_FEW when they are fewer than the threshold. `what` names the list in the error. */
FKT_MUST_USE fkt_status fkt_sa_client_list(const struct fkt_sa_client *c, const char *what, struct fkt_sa_bytes map,
                                           size_t bits, struct fkt_sa_bytes list, size_t each, uint32_t *n);
void fkt_sa_neighbours_free(struct fkt_sa_neighbour *n, uint32_t degree); /* wipes; NULL is fine */

#endif
