/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - an HTTP answer before it is sent: a code, a few headers, a body. */
#ifndef FKT_NET_ANSWER_H
#define FKT_NET_ANSWER_H

#include "net/request_check.h"

#include <stddef.h>
#include <stdint.h>

#define FKT_ANSWER_HEADERS 8
#define FKT_ANSWER_VALUE 160

struct fkt_answer {
    int code;
    const char *type; /* of the body; static; NULL: there is none */
    char *body;       /* owned; NULL: none, or `text` */
    size_t len;
    const char *text; /* a body that outlives the answer; NULL: none */
    char *path;       /* owned: the body is this file; NULL: none */
    struct {
        const char *name; /* static */
        char value[FKT_ANSWER_VALUE];
    } header[FKT_ANSWER_HEADERS];
    unsigned headers;
};
void fkt_answer_clear(struct fkt_answer *a);
/* Adds a header; beyond FKT_ANSWER_HEADERS it is dropped (no answer of ours has so many). */
void fkt_answer_header(struct fkt_answer *a, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* application/problem+json (RFC 9457). Without memory the body is left out; code and headers stay. */
void fkt_answer_problem(struct fkt_answer *a, int code, const char *title, const char *detail);
/* What the request check refused. */
void fkt_answer_refusal(struct fkt_answer *a, const struct fkt_request_verdict *v, const uint8_t nonce[FKT_AUTH_NONCE]);
/* 503 with Retry-After. */
void fkt_answer_busy(struct fkt_answer *a, const char *detail, uint32_t seconds);

#endif
