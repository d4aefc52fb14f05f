/* SPDX-License-Identifier: Apache-2.0 */
/* sa_alone.h - one site under test, and the rest of the world in hand: a server's messages put together from what the
 * other sites would have sent, each of which a test may bend before it is delivered.
 *
 *   alone_init(&a, ALONE_SPARSE)      site ALONE_SITE, 9 sites on a complete graph or 12 on a sparse one
 *   alone_drive(&a, FKT_SA_STATE_MASK)      honest course until the site has just sent its message of that state
 *   alone_make(&a, FKT_SA_M_SURVIVORS) a.m is the next message; its bytes are in a.buf and a.m may be changed
 *   alone_tell(&a)                    encodes a.m and gives what fkt_sa_client_recv answers
 *   alone_hear(&a)                    what the site sends, decoded into a.said
 *
 * Of the site's neighbours one never comes, one never shares, one is lost after its shares came; the rest survive,
 * exactly threshold of them, and exactly sites - dropped in all. */
#ifndef FKT_TEST_SA_ALONE_H
#define FKT_TEST_SA_ALONE_H

#include "crypto/entropy.h"
#include "secagg/client.h"
#include "secagg/coin.h"
#include "tests/support/check.h"

enum alone_kind { ALONE_COMPLETE, ALONE_SPARSE };
enum { ALONE_SITE = 3, ALONE_SITES_MAX = 12, ALONE_LENGTH = 37, ALONE_CAP = 8192, ALONE_T = 5 };

struct alone_other { /* another site's secrets, and what it has for the site under test */
    uint8_t sign[64], channel[32], mask_secret[32], coin[32];
    uint8_t channel_key[32], mask_key[32], commitment[32], advert_signature[64];
    uint8_t plain[64]; /* its shares for the site: of s, of u */
};

struct alone {
    struct fkt_sa_params p;
    uint8_t roster[ALONE_SITES_MAX * 32], secret[64], round[FKT_SA_ROUND], session[FKT_SA_SESSION];
    struct alone_other other[ALONE_SITES_MAX];
    struct fkt_entropy_seeded seeded, seeded_twin;
    struct fkt_entropy entropy, twin;   /* the same bytes again, for what the site must have drawn */
    uint8_t c[32], s[32], u[32], r[32]; /* drawn from the twin, in the order of the document */

    struct fkt_sa_site doors;
    char calls[16]; /* 'r'eserve, 'v'ector, 's'pend, in their order */
    fkt_status refuse_reserve, refuse_vector, refuse_spend;
    int64_t x[ALONE_LENGTH];
    struct fkt_sa_client *client;

    uint32_t throws, neighbour[ALONE_SITES_MAX]; /* known from Neighbours on */
    uint8_t v[32], root[64], seed[32];
    uint32_t never_came, never_shared, lost; /* places among the neighbours */
    uint8_t delivered[2], survivors[2];
    uint32_t witness[ALONE_SITES_MAX], witnesses;

    struct fkt_sa_msg m;
    uint8_t buf[4][4096], bytes[ALONE_CAP]; /* fields of m; its encoding */
    size_t len;
    uint8_t heard[ALONE_CAP]; /* the site's last message */
    size_t heard_len;
    struct fkt_sa_msg said;
};

int alone_zero(const void *p, size_t n); /* 1 when all n bytes are */
void alone_init(struct alone *a, enum alone_kind kind);
void alone_release(struct alone *a);
void alone_make(struct alone *a, enum fkt_sa_kind kind);
fkt_status alone_tell(struct alone *a);
void alone_hear(struct alone *a); /* fails the test when there is nothing to hear */
void alone_drive(struct alone *a, enum fkt_sa_state state);
enum fkt_sa_kind alone_next(const struct alone *a, enum fkt_sa_state state); /* the message that leaves `state` */
/* a.m as a Confirmed with the signatures of those witnesses whose places are set in `places` (one bit each). */
void alone_confirm(struct alone *a, uint32_t places);
int alone_is_peer(const struct alone *a, uint32_t place);
/* The key under which `from` (not the site under test) sealed for the site, or the site for it. */
void alone_seal_keys(const struct alone *a, uint32_t other, uint8_t from_other[32], uint8_t to_other[32]);

#endif
