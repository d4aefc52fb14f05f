/* SPDX-License-Identifier: Apache-2.0 */
/* auth.h - who sent a request: an Ed25519 signature over all of it (docs/http.md 2). Both sides use it. */
#ifndef FKT_NET_AUTH_H
#define FKT_NET_AUTH_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define FKT_AUTH_NONCE 16
#define FKT_AUTH_HEADER 320 /* size of the header's value, with the NUL */

/* What is signed. */
struct fkt_auth_request {
    const uint8_t *task;  /* (32) SHA-256 of the task */
    const uint8_t *nonce; /* (16) of this run of the server */
    uint64_t sequence;    /* grows from request to request of a site */
    uint32_t site;
    const char *method, *target; /* target: path and query as sent */
    const void *body;
    size_t len;
};
/* "Fedkt site=3, nonce=<32 hex>, seq=<decimal>, sig=<128 hex>" */
void fkt_auth_write(char out[FKT_AUTH_HEADER], const struct fkt_auth_request *r, const uint8_t secret[64]);

struct fkt_auth_claim {
    uint32_t site;
    uint8_t nonce[FKT_AUTH_NONCE];
    uint64_t sequence;
    uint8_t signature[64];
};
/* 1 when the header is exactly of that form. */
int fkt_auth_read(struct fkt_auth_claim *out, const char *header);
/* 1 when `key` signed the request with the claim's site, nonce and sequence (r's own are ignored). */
int fkt_auth_right(const struct fkt_auth_claim *c, const struct fkt_auth_request *r, const uint8_t key[32]);

#endif
