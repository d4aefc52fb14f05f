/* SPDX-License-Identifier: Apache-2.0 */
/* msg.h - messages as plain structs. Only msg.c and the .proto know the wire format. Decoding accepts canonical bytes
 * alone (docs/protocol.md 2.4), and checks their length before it allocates. */
#ifndef FKT_SECAGG_MSG_H
#define FKT_SECAGG_MSG_H

#include "secagg/params.h"

struct fkt_sa_bytes { /* borrowed */
    const uint8_t *p;
    size_t n;
};

enum fkt_sa_kind {
    FKT_SA_M_NONE = 0,
    FKT_SA_M_ADVERTISE, /* to the server */
    FKT_SA_M_OPEN,
    FKT_SA_M_SHARES,
    FKT_SA_M_MASKED,
    FKT_SA_M_CONFIRM,
    FKT_SA_M_REVEAL,
    FKT_SA_M_LEAVE,
    FKT_SA_M_BEGIN, /* to a site */
    FKT_SA_M_COIN,
    FKT_SA_M_NEIGHBOURS,
    FKT_SA_M_DELIVER,
    FKT_SA_M_SURVIVORS,
    FKT_SA_M_CONFIRMED,
    FKT_SA_M_ABORTED
};

struct fkt_sa_msg {
    enum fkt_sa_kind kind;
    struct fkt_sa_bytes session; /* empty in Begin */
    uint32_t site;               /* to the server only */
    union {
        struct {
            struct fkt_sa_bytes channel_key, mask_key, coin, signature;
        } advertise;
        struct {
            uint32_t attempt;
            struct fkt_sa_bytes scalar, next_coin;
        } open;
        struct {
            struct fkt_sa_bytes sealed, self_commitment;
        } shares;
        struct {
            struct fkt_sa_bytes packed;
        } masked;
        struct {
            struct fkt_sa_bytes signature;
        } confirm;
        struct {
            struct fkt_sa_bytes shares;
        } reveal;
        struct {
            uint32_t status;
        } leave, aborted;
        struct {
            struct fkt_sa_bytes round, task;
        } begin;
        struct {
            uint32_t attempt, leaves, position;
            struct fkt_sa_bytes path;
        } coin;
        struct {
            struct fkt_sa_bytes scalar, present, adverts;
        } neighbours;
        struct {
            struct fkt_sa_bytes delivered, sealed;
        } deliver;
        struct {
            struct fkt_sa_bytes survivors;
        } survivors;
        struct {
            struct fkt_sa_bytes present, signatures;
        } confirmed;
    };
    void *owner; /* what decode allocated; fkt_sa_msg_clear frees it */
};

/* What logs and receipts call a message to the server; FKT_SA_M_NONE, which does not decode, is "unreadable". */
const char *fkt_sa_kind_name(enum fkt_sa_kind kind);

size_t fkt_sa_msg_bytes(const struct fkt_sa_msg *m); /* size of the encoding; 0 when the kind is unknown */
/* FKT_E_ARG when cap is too small. */
FKT_MUST_USE fkt_status fkt_sa_msg_encode(const struct fkt_sa_msg *m, uint8_t *out, size_t cap, size_t *len);
/* Fills *m, whose bytes are valid until fkt_sa_msg_clear. FKT_E_PEER_FORMAT when the input is longer than `max`, not
 * canonical, or not a known message; to_server: 1 for ToServer, 0 for ToSite. */
FKT_MUST_USE fkt_status fkt_sa_msg_decode(struct fkt_sa_msg *m, int to_server, const uint8_t *msg, size_t len,
                                          size_t max);
void fkt_sa_msg_clear(struct fkt_sa_msg *m); /* wipes what it frees */

#endif
