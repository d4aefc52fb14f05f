/* SPDX-License-Identifier: Apache-2.0 */
/* httpd_request.c - a request from its first line to its answer, in libmicrohttpd's threads.
 *
 *   NEW --first call, headers are there--> READING --last call, the body is there--> WAITING --resumed--> ANSWERED
 *      \---- refused with a body to come: answered before it is read ----------------------------------------^
 *
 * A body is kept as it comes, never more than was announced and never more than a message may be long. Where there is
 * no room (httpd_bodies.c) it is sent away before it begins; one under way is read and dropped. Nothing is reserved for
 * what was only announced. One that breaks off counts against the address, unless its connection was proven. */
#include "base/alloc.h"
#include "net/httpd_internal.h"

#include <string.h>
#include <strings.h>

enum { FIRST = 16 << 10 };

void *fkt_ask_begin(void *httpd, const char *target, struct MHD_Connection *c)
{
    struct fkt_httpd *h = httpd;
    const union MHD_ConnectionInfo *line = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct fkt_ask *a = NULL;
    if (!line || !line->socket_context || fkt_alloc(&a, 1) != FKT_OK) return NULL;
    if (fkt_strdup(&a->target, target) != FKT_OK) {
        fkt_free(a);
        return NULL;
    }
    a->h = h;
    a->c = c;
    a->line = line->socket_context;
    a->deadline_ms = fkt_clock_us() / 1000 + 1000 * (uint64_t)h->limits.request_seconds;
    atomic_store(&a->line->deadline_ms, a->deadline_ms);
    atomic_fetch_add(&h->asks, 1);
    return a;
}

void fkt_ask_end(void *httpd, struct MHD_Connection *c, void **ask, enum MHD_RequestTerminationCode toe)
{
    struct fkt_httpd *h = httpd;
    struct fkt_ask *a = *ask;
    (void)c;
    *ask = NULL;
    if (!a) return;
    if (toe == MHD_REQUEST_TERMINATED_COMPLETED_OK && a->job.answer.code == 200 && a->job.site < h->spec.box->sites &&
        a->job.target.what == FKT_TARGET_FILE && strcmp(a->job.target.name, "transparency.jsonl") == 0)
        atomic_store(&h->fetched[a->job.site], 1);
    if (a->job.target.what == FKT_TARGET_POLL) fkt_connections_read(&h->lines, a->line, &h->reading[a->job.site]);
    atomic_store(&a->line->deadline_ms,
                 fkt_clock_us() / 1000 + 1000 * ((uint64_t)h->limits.idle_seconds + h->limits.request_seconds));
    if (a->state == FKT_ASK_READING && a->len < a->length && toe != MHD_REQUEST_TERMINATED_DAEMON_SHUTDOWN &&
        !a->no_room && a->verdict.standing != FKT_PEER_PROVEN)
        fkt_request_check_blame(h->check, fkt_clock_us() / 1000, a->line->peer);
    fkt_bodies_give(&h->bodies, a, a->cap);
    atomic_fetch_sub(&h->asks, 1);
    fkt_free(a->body);
    fkt_free(a->target);
    fkt_answer_clear(&a->job.answer);
    fkt_free(a);
}

static enum MHD_Result reply_refusal(struct fkt_ask *a)
{
    if (a->verdict.blamed) fkt_connections_doubt(&a->h->lines, a->line);
    if (a->verdict.noted) fkt_inbox_note(&a->h->inbox, a->verdict.site, a->verdict.why);
    fkt_answer_refusal(&a->job.answer, &a->verdict, fkt_request_check_nonce(a->h->check));
    return fkt_reply(a);
}

static enum MHD_Result reply_busy(struct fkt_ask *a, const char *detail)
{
    fkt_answer_busy(&a->job.answer, detail, 2);
    return fkt_reply(a);
}

static const char *header(struct fkt_ask *a, const char *name)
{
    return MHD_lookup_connection_value(a->c, MHD_HEADER_KIND, name);
}

static enum MHD_Result count_length(void *n, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    (void)value;
    *(unsigned *)n += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
    return MHD_YES;
}

/* Of the body, as the headers say. libmicrohttpd takes the first of several lengths; whoever stands between may have
 * taken another. */
static uint64_t announced(struct fkt_ask *a)
{
    const char *length = header(a, MHD_HTTP_HEADER_CONTENT_LENGTH);
    unsigned lengths = 0;
    uint64_t n = 0;
    if (header(a, MHD_HTTP_HEADER_TRANSFER_ENCODING)) return FKT_REQUEST_CHUNKED;
    MHD_get_connection_values(a->c, MHD_HEADER_KIND, count_length, &lengths);
    if (lengths > 1) return FKT_REQUEST_TWICE;
    return length && fkt_parse_u64(&n, length, FKT_REQUEST_TWICE - 1) != FKT_OK ? FKT_REQUEST_TWICE - 1 : n;
}

/* The headers are there. Answers at once only when a body would have to be read first. */
static enum MHD_Result first_call(struct fkt_ask *a, const char *method)
{
    struct fkt_request *r = &a->request;
    const int with_body = header(a, MHD_HTTP_HEADER_CONTENT_LENGTH) || header(a, MHD_HTTP_HEADER_TRANSFER_ENCODING);
    memcpy(a->method, method, strnlen(method, sizeof a->method - 1));
    r->method = a->method;
    r->target = a->target;
    r->authorization = header(a, MHD_HTTP_HEADER_AUTHORIZATION);
    r->task = header(a, "Fedkt-Task");
    r->cookie = header(a, MHD_HTTP_HEADER_COOKIE);
    r->host = header(a, MHD_HTTP_HEADER_HOST);
    r->peer = a->line->peer;
    r->proven = a->line->site;
    a->length = r->length = announced(a);
    a->state = FKT_ASK_READING;
    fkt_request_check_head(a->h->check, fkt_clock_us() / 1000, r, &a->verdict);
    fkt_counters_request(&a->h->counters, a->verdict.code ? 0 : a->length);
    if (!with_body || (!a->verdict.code && a->length == 0)) return MHD_YES;
    a->closes = 1; /* in case: what is answered here leaves a body lying */
    if (a->verdict.code) return reply_refusal(a);
    if (!fkt_bodies_room(&a->h->bodies, a, a->length < FIRST ? (size_t)a->length : FIRST))
        return reply_busy(a, "too many messages are on their way");
    a->closes = 0;
    return MHD_YES;
}

/* Room for n bytes more; what is taken is counted. */
static int make_room(struct fkt_ask *a, size_t n)
{
    size_t cap = a->cap ? a->cap : FIRST;
    if (n > a->length - a->len) return 0;
    if (a->len + n <= a->cap) return 1;
    while (cap < a->len + n) cap *= 2;
    if (cap > a->length) cap = (size_t)a->length;
    if (!fkt_bodies_take(&a->h->bodies, a, cap - a->cap)) return 0;
    if (fkt_realloc(&a->body, cap) != FKT_OK) {
        fkt_bodies_give(&a->h->bodies, a, cap - a->cap);
        return 0;
    }
    a->cap = cap;
    return 1;
}

static void keep(struct fkt_ask *a, const char *data, size_t n)
{
    if (a->no_room) return;
    if (make_room(a, n)) {
        memcpy(a->body + a->len, data, n);
        a->len += n;
        atomic_store(&a->line->deadline_ms, a->deadline_ms + a->len / 8); /* eight kilobytes a second are fast enough */
        return;
    }
    a->no_room = 1;
    fkt_bodies_give(&a->h->bodies, a, a->cap);
    fkt_free(a->body);
    a->body = NULL;
    a->len = a->cap = 0;
}

static void suspend(struct fkt_job *j) { MHD_suspend_connection(((struct fkt_ask *)j)->c); }

void fkt_ask_resume(struct fkt_job *j) { MHD_resume_connection(((struct fkt_ask *)j)->c); }

/* What needs no look at the mailbox. */
static enum MHD_Result reply_alone(struct fkt_ask *a)
{
    struct fkt_answer *answer = &a->job.answer;
    answer->code = 200;
    if (a->verdict.target.what == FKT_TARGET_HEALTH) {
        if (fkt_clock_us() / 1000 > atomic_load(&a->h->heartbeat) + 10000) {
            answer->code = 0;
            return reply_busy(a, "the mailbox does not answer");
        }
        answer->type = "text/plain";
        answer->text = "ok\n";
        a->closes = 1; /* anybody may ask; nobody gets a connection to keep for it */
    } else if (a->verdict.target.what == FKT_TARGET_PAGE) {
        answer->type = "text/html; charset=utf-8";
        answer->text = fkt_page_html();
    } else {
        answer->code = 303;
        fkt_answer_header(answer, "Location", "/");
        fkt_answer_header(answer, "Set-Cookie", "fedkt=%s; Path=/; Max-Age=2592000; HttpOnly; Secure; SameSite=Strict",
                          fkt_request_check_cookie(a->h->check));
    }
    return fkt_reply(a);
}

/* The whole request is there. */
static enum MHD_Result last_call(struct fkt_ask *a)
{
    const enum fkt_target_what what = a->verdict.target.what;
    a->heard_us = fkt_clock_us();
    atomic_store(&a->line->deadline_ms, 0);
    if (a->no_room) return reply_busy(a, "too many messages are on their way");
    fkt_request_check_admit(a->h->check, a->heard_us / 1000, &a->request, a->body, a->len, &a->verdict);
    if (a->verdict.code) return reply_refusal(a);
    if (what != FKT_TARGET_HEALTH) fkt_connections_prove(&a->h->lines, a->line, a->verdict.site);
    if (what == FKT_TARGET_HEALTH || what == FKT_TARGET_PAGE || what == FKT_TARGET_LOGIN) return reply_alone(a);
    if (what == FKT_TARGET_EVENTS) return fkt_streams_open(a);
    a->job.target = a->verdict.target;
    a->job.site = a->verdict.site;
    a->job.body = a->body;
    a->job.len = a->len;
    a->state = FKT_ASK_WAITING;
    if (!fkt_inbox_put(&a->h->inbox, &a->job, suspend)) return reply_busy(a, "the server is being stopped");
    return MHD_YES;
}

enum MHD_Result fkt_ask_handle(void *httpd, struct MHD_Connection *c, const char *url, const char *method,
                               const char *version, const char *data, size_t *len, void **ask)
{
    struct fkt_ask *a = *ask;
    (void)httpd, (void)c, (void)url, (void)version;
    if (!a) return MHD_NO; /* no memory when it began */
    if (a->state == FKT_ASK_NEW) return first_call(a, method);
    if (*len) {
        if (a->state == FKT_ASK_READING) keep(a, data, *len);
        *len = 0;
        return MHD_YES;
    }
    if (a->state == FKT_ASK_READING) return last_call(a);
    return a->state == FKT_ASK_WAITING ? fkt_reply(a) : MHD_YES;
}
