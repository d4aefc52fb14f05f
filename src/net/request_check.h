/* SPDX-License-Identifier: Apache-2.0 */
/* request_check.h - who may come in: each request is looked at here before anything is done for it (docs/http.md 2.2).
 * No socket, no clock; it may be asked from several threads.
 *
 *   fkt_request_check_head    what can be said before the body is read: target, form, task, site, life, length, address
 *   fkt_request_check_admit   with the body: signature, sequence, rate
 *
 * A refusal says which answer to give and whether the mailbox should hear of it.
 */
#ifndef FKT_NET_REQUEST_CHECK_H
#define FKT_NET_REQUEST_CHECK_H

#include "fedkt/advanced/mailbox.h"

#include "base/status.h"
#include "net/auth.h"
#include "net/rate_limit.h"
#include "net/target.h"

#include <stddef.h>
#include <stdint.h>

#define FKT_REQUEST_COOKIE 65 /* 64 hex, NUL */
#define FKT_REQUEST_CHUNKED UINT64_MAX
#define FKT_REQUEST_TWICE (UINT64_MAX - 1)

struct fkt_request_check_spec {
    const uint8_t *roster; /* (sites, 32) borrowed */
    uint32_t sites;
    const uint8_t *task;  /* (32) borrowed */
    const uint8_t *nonce; /* (16) copied: this life of the server */
    const uint8_t *key;   /* (32) copied: secret, for the table of addresses */
    const char *token;    /* the operator's, copied as a hash; NULL: there is none */
    int local;            /* 1: nobody but this machine gets here, and people who call it so need no token */
    size_t in_max;        /* bytes of a message */
    uint32_t refusals_per_minute, requests_per_second, wait_seconds;
};
struct fkt_request {
    const char *method, *target;
    const char *authorization, *task, *cookie, *host; /* header values; NULL: absent */
    uint64_t
        length; /* of the body as announced; FKT_REQUEST_CHUNKED: it is not said, FKT_REQUEST_TWICE: more than once */
    const uint8_t *peer; /* (FKT_RATE_LIMIT_ADDRESS) */
    uint32_t proven;     /* the site whose signature came by this connection before and was right, plus one; 0: none */
};
/* What speaks for a signed request before its signature has been looked at. */
enum fkt_peer_standing {
    FKT_PEER_UNKNOWN = 0, /* nothing: it knows the task and names a site */
    FKT_PEER_KNOWN,       /* the site's last right signature came from the same address */
    FKT_PEER_PROVEN,      /* ... by the same connection */
    FKT_PEER_STANDINGS
};
/* An answer that ends a request, or what to do. */
struct fkt_request_verdict {
    int code;                  /* 0: go on; else a refusal: */
    const char *title;         /* one word */
    const char *detail;        /* a sentence; static */
    uint32_t retry_seconds;    /* Retry-After; 0: none */
    const char *allow;         /* Allow; NULL: none */
    int tell_nonce, has_floor; /* headers of docs/http.md 2.3 */
    uint64_t floor;
    int blamed; /* 1: it counts against the address */
    int noted;  /* 1: the mailbox should hear of it: */
    enum fkt_refusal why;
    uint32_t site; /* as the request says, and proven when it is admitted; FKT_MAILBOX_NOBODY */
    enum fkt_peer_standing standing;
    struct fkt_target target;
    struct fkt_auth_claim claim;
    uint32_t probation; /* s; not 0: a bad address, 429 unless the signature is right */
};
struct fkt_request_check;
FKT_MUST_USE fkt_status fkt_request_check_new(struct fkt_request_check **out,
                                              const struct fkt_request_check_spec *spec);
void fkt_request_check_free(struct fkt_request_check *g);
/* now_ms: any clock that never goes back. The verdict borrows from the request. */
void fkt_request_check_head(struct fkt_request_check *g, uint64_t now_ms, const struct fkt_request *r,
                            struct fkt_request_verdict *v);
void fkt_request_check_admit(struct fkt_request_check *g, uint64_t now_ms, const struct fkt_request *r,
                             const void *body, size_t len, struct fkt_request_verdict *v);
/* The address counts one refusal more: a body broke off. */
void fkt_request_check_blame(struct fkt_request_check *g, uint64_t now_ms, const uint8_t peer[FKT_RATE_LIMIT_ADDRESS]);
const uint8_t *fkt_request_check_nonce(const struct fkt_request_check *g);
const char *fkt_request_check_cookie(const struct fkt_request_check *g); /* what LOGIN sets: "fedkt=" and this */

#endif
