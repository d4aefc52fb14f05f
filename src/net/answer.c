/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - HTTP answers as values. The request check and the queue make them, tests and the fuzzer inspect them, and
 * only httpd_reply.c sends them. Errors are JSON problem details (RFC 9457) with our own texts; nothing that a client
 * sent is repeated in one. */
#include "net/answer.h"

#include "base/alloc.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void fkt_answer_clear(struct fkt_answer *a)
{
    fkt_free(a->body);
    fkt_free(a->path);
    memset(a, 0, sizeof *a);
}

void fkt_answer_header(struct fkt_answer *a, const char *name, const char *fmt, ...)
{
    va_list ap;
    if (a->headers == FKT_ANSWER_HEADERS) return;
    a->header[a->headers].name = name;
    va_start(ap, fmt);
    vsnprintf(a->header[a->headers++].value, FKT_ANSWER_VALUE, fmt, ap);
    va_end(ap);
}

/* Keeps letters, digits and plain punctuation; other characters, which JSON or a terminal might interpret, become a
 * blank. */
static void add_words(struct fkt_text *t, const char *s)
{
    for (; *s; s++) {
        const char c = *s >= ' ' && *s <= '~' && *s != '"' && *s != '\\' ? *s : ' ';
        fkt_text_addn(t, &c, 1);
    }
}

void fkt_answer_problem(struct fkt_answer *a, int code, const char *title, const char *detail)
{
    struct fkt_text t;
    fkt_text_init(&t);
    fkt_text_addf(&t, "{\"type\": \"about:blank\", \"title\": \"%s\", \"status\": %d, \"detail\": \"", title, code);
    add_words(&t, detail);
    fkt_text_add(&t, "\"}\n");
    a->code = code;
    if (fkt_text_status(&t) == FKT_OK) {
        a->type = "application/problem+json";
        a->body = t.s;
        a->len = t.len;
    } else {
        fkt_text_clear(&t);
    }
}

void fkt_answer_refusal(struct fkt_answer *a, const struct fkt_request_verdict *v, const uint8_t nonce[FKT_AUTH_NONCE])
{
    char hex[2 * FKT_AUTH_NONCE + 1];
    fkt_answer_problem(a, v->code, v->title, v->detail);
    if (v->tell_nonce) {
        fkt_hex(hex, nonce, FKT_AUTH_NONCE);
        fkt_answer_header(a, "Fedkt-Nonce", "%s", hex);
    }
    if (v->code == 401)
        fkt_answer_header(a, "WWW-Authenticate", "%s", fkt_target_signed(&v->target) ? "Fedkt" : "Bearer");
    if (v->has_floor) fkt_answer_header(a, "Fedkt-Floor", "%" PRIu64, v->floor);
    if (v->retry_seconds) fkt_answer_header(a, "Retry-After", "%" PRIu32, v->retry_seconds);
    if (v->allow) fkt_answer_header(a, "Allow", "%s", v->allow);
}

void fkt_answer_busy(struct fkt_answer *a, const char *detail, uint32_t seconds)
{
    fkt_answer_problem(a, 503, "busy", detail);
    fkt_answer_header(a, "Retry-After", "%" PRIu32, seconds);
}
