/* SPDX-License-Identifier: Apache-2.0 */
/* http_client.c - a site's conversation with the server, one request after the other, without a socket (docs/http.md
 * 3).
 *
 *   endpoint wants SEND --> POST /v1/messages --204--> sent(1)   409, 422, 410 --> sent(0)
 *   endpoint wants RECV --> GET  /v1/messages --200--> recv(message)   204, 410 --> recv(the server's stage)
 *
 *   401 with another nonce     the server was restarted: the same request again with the new nonce
 *   401 with a floor           an earlier process of this site used higher sequence numbers, or far lower ones
 *                              (`ahead`): continue after the floor
 *   401, 403, 400, 413         waiting does not help: stop with a hint
 *   429, 503                   wait as long as Retry-After says. After a message for which the server had no memory,
 *                              send a request without a body first: a connection with a valid signature is served
 *                              before unauthenticated ones
 *   another key than the task's  nothing is sent; wait as below: one misdirected connection must not end the site's
 *                              participation, and the next one may reach the server
 *   no answer, 5xx, unreadable wait: uniform between 0 and 0.5, 1, 2 ... 15 seconds (full jitter), so that a thousand
 *                              sites do not return at the same time
 *
 * The server is not trusted. Every header is parsed completely, and an answer with an unreadable header counts as no
 * answer; a number from it is at most a position in a list. A server whose answers make no progress is asked more
 * slowly. What a message means is the endpoint's concern.
 *
 * Cost: a signature for each request; memory for the longest message. */
#include "net/http_client.h"

#include "base/alloc.h"
#include "base/text.h"
#include "crypto/entropy.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

enum {
    WAIT_SECONDS = 25,      /* of a long poll; more than the server grants */
    SLACK_SECONDS = 15,     /* beyond the poll: for the network */
    POST_SECONDS = 60,      /* and a second for every 64 KiB */
    FIRST_MS = 500,         /* ceiling of the first pause */
    LONGEST_MS = 15000,     /* and of the last */
    RETRY_SECONDS = 300,    /* longest Retry-After that is obeyed */
    IDLE_MS = 1000,         /* an answer without progress should have taken so long */
    IDLE_DOUBLINGS = 4,     /* of the pause after messages without progress: up to 17 seconds */
    SECOND_CHANCES = 3,     /* nonces and floors in a row before there is a pause */
    PROBLEM_BYTES = 4096,   /* longest error text that is parsed */
    STATUS_LIMIT = 1000,    /* Fedkt-Lost is below it */
    CLOCK_LIMIT_MS = 600000 /* no pause is longer: a later time was set before the clock went back */
};
#define ENTRY_LIMIT ((UINT64_C(1) << 53) - 1) /* of the transparency log: its numbers are below 2^53 */
#define SEQUENCE_LIMIT (UINT64_C(1) << 62)    /* above it no sequence number is left */

enum pause { PAUSE_NONE = 0, PAUSE_BACKOFF, PAUSE_ASKED, PAUSE_IDLE };

struct fkt_http_client {
    uint8_t task[32], nonce[FKT_AUTH_NONCE], secret[64];
    uint32_t site, wait_seconds, patience_seconds;
    uint64_t sequence; /* the last one used */
    struct fkt_endpoint *side;
    uint8_t *out; /* (side->out_max) */
    char authorization[FKT_AUTH_HEADER + 32], task_header[96], target[128];
    int posting; /* the request under way is a message */
    int probe;   /* 1: before the next message a request without a body */
    int probing; /* that one is under way */
    size_t out_len;
    uint64_t asked_ms; /* when it was asked */

    enum pause pause; /* due before the next request, not yet scheduled */
    uint32_t asked_pause_ms;
    uint64_t ready_ms; /* no request before */
    unsigned tries;    /* consecutive answers without use */
    unsigned chances;  /* consecutive nonces and floors */
    unsigned idle;     /* consecutive messages without progress, up to a limit */
    uint64_t since_ms; /* of the first of `tries` */
    char trouble[400]; /* "" when all is well */
    int over;
    struct fkt_failure end; /* over: why */
};

fkt_status fkt_http_client_new(struct fkt_http_client **out, const struct fkt_http_client_spec *spec)
{
    struct fkt_http_client *c = NULL;
    char hex[65];
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&c, 1));
    FKT_TRY(fkt_alloc(&c->out, spec->site_side->out_max));
    memcpy(c->task, spec->task, sizeof c->task);
    memcpy(c->secret, spec->secret, sizeof c->secret);
    c->site = spec->site;
    c->side = spec->site_side;
    c->wait_seconds = spec->wait_seconds ? spec->wait_seconds : WAIT_SECONDS;
    c->patience_seconds = spec->patience_seconds;
    c->sequence = spec->clock < SEQUENCE_LIMIT ? spec->clock : SEQUENCE_LIMIT;
    fkt_hex(hex, c->task, sizeof c->task);
    snprintf(c->task_header, sizeof c->task_header, "Fedkt-Task: %s", hex);
    *out = c;
    c = NULL;
out:
    fkt_http_client_free(c);
    return st;
}

void fkt_http_client_free(struct fkt_http_client *c)
{
    if (!c) return;
    if (c->out) fkt_wipe(c->out, c->side ? c->side->out_max : 0);
    fkt_free(c->out);
    fkt_wipe(c, sizeof *c);
    fkt_free(c);
}

const char *fkt_http_client_trouble(const struct fkt_http_client *c) { return c->trouble; }

fkt_status fkt_http_client_status(const struct fkt_http_client *c)
{
    return c->over && c->end.status != FKT_OK ? fkt_failure_restore(&c->end) : FKT_OK;
}

/* ---- asking ---- */

static void sign(struct fkt_http_client *c, const char *method, const uint8_t *body, size_t len,
                 struct fkt_http_client_request *r)
{
    struct fkt_auth_request a = {.task = c->task,
                                 .nonce = c->nonce,
                                 .sequence = ++c->sequence,
                                 .site = c->site,
                                 .method = method,
                                 .target = c->target,
                                 .body = body,
                                 .len = len};
    char value[FKT_AUTH_HEADER];
    fkt_auth_write(value, &a, c->secret);
    snprintf(c->authorization, sizeof c->authorization, "Authorization: %s", value);
    *r = (struct fkt_http_client_request){.method = method,
                                          .target = c->target,
                                          .headers = {c->authorization, c->task_header, NULL, NULL},
                                          .body = body,
                                          .len = len,
                                          .timeout_seconds = POST_SECONDS + (uint32_t)(len >> 16)};
}

static fkt_status ask_post(struct fkt_http_client *c, struct fkt_http_client_request *r)
{
    fkt_status st = c->side->send(c->side->self, c->out, c->side->out_max, &c->out_len);
    if (st != FKT_OK) return st;
    c->posting = 1;
    c->probing = 0;
    snprintf(c->target, sizeof c->target, "/v1/messages");
    sign(c, "POST", c->out, c->out_len, r);
    r->headers[2] = "Content-Type: application/x-protobuf";
    return FKT_OK;
}

static void ask_poll(struct fkt_http_client *c, struct fkt_http_client_request *r, int probing)
{
    static const uint8_t none[FKT_MAILBOX_ROUND];
    uint8_t round[FKT_MAILBOX_ROUND];
    char hex[2 * FKT_MAILBOX_ROUND + 1];
    uint32_t after = 0;
    c->side->has(c->side->self, round, &after);
    fkt_hex(hex, round, sizeof round);
    c->posting = 0;
    c->probing = probing;
    snprintf(c->target, sizeof c->target, "/v1/messages?round=%s&after=%" PRIu32 "&wait=%" PRIu32,
             memcmp(round, none, sizeof round) ? hex : "-", probing ? UINT32_MAX : after,
             probing ? 0 : c->wait_seconds);
    sign(c, "GET", NULL, 0, r);
    r->timeout_seconds = c->wait_seconds + SLACK_SECONDS;
}

void fkt_http_client_get(struct fkt_http_client *c, const char *target, struct fkt_http_client_request *request)
{
    snprintf(c->target, sizeof c->target, "%s", target);
    sign(c, "GET", NULL, 0, request);
}

/* How long the pause that is due will be. */
static uint64_t measure(const struct fkt_http_client *c, uint32_t random)
{
    uint64_t ceiling = FIRST_MS;
    switch (c->pause) {
    case PAUSE_NONE: return 0;
    case PAUSE_ASKED: return (uint64_t)c->asked_pause_ms + random % 1000;
    case PAUSE_IDLE: return IDLE_MS + random % ((uint64_t)IDLE_MS << c->idle);
    case PAUSE_BACKOFF: break;
    }
    for (unsigned i = 1; i < c->tries && ceiling < LONGEST_MS; i++) ceiling *= 2;
    if (ceiling > LONGEST_MS) ceiling = LONGEST_MS;
    return random % (ceiling + 1);
}

static enum fkt_http_client_step end(struct fkt_http_client *c, fkt_status st)
{
    if (!c->over) fkt_failure_save(&c->end, st);
    c->over = 1;
    return FKT_HTTP_CLIENT_ENDED;
}

int fkt_http_client_pause(struct fkt_http_client *c, uint64_t now_ms, uint32_t random, uint32_t *wait_ms)
{
    if (c->pause) c->ready_ms = now_ms + measure(c, random);
    c->pause = PAUSE_NONE;
    if (c->ready_ms <= now_ms || c->ready_ms - now_ms >= CLOCK_LIMIT_MS) return 0;
    *wait_ms = (uint32_t)(c->ready_ms - now_ms);
    return 1;
}

enum fkt_http_client_step fkt_http_client_next(struct fkt_http_client *c, uint64_t now_ms, uint32_t random,
                                               struct fkt_http_client_request *request, uint32_t *wait_ms)
{
    unsigned wants;
    fkt_status st;
    if (c->over) return FKT_HTTP_CLIENT_ENDED;
    if (fkt_http_client_pause(c, now_ms, random, wait_ms)) return FKT_HTTP_CLIENT_WAIT;
    wants = c->side->wants(c->side->self);
    if (!(wants & (FKT_ENDPOINT_SEND | FKT_ENDPOINT_RECV))) return end(c, FKT_OK);
    if (wants & FKT_ENDPOINT_SEND && !c->probe) {
        st = ask_post(c, request);
        if (st != FKT_OK) return end(c, st);
    } else ask_poll(c, request, (wants & FKT_ENDPOINT_SEND) != 0);
    c->asked_ms = now_ms;
    return FKT_HTTP_CLIENT_REQUEST;
}

/* ---- answers without use ---- */

static const char wrong_key[] = "what answers at the server's address has another key than the task names, and was "
                                "sent nothing";

static fkt_status later(struct fkt_http_client *c, uint64_t now_ms, enum pause pause, const char *why,
                        const char *detail)
{
    if (c->tries++ == 0) c->since_ms = now_ms;
    c->pause = pause;
    snprintf(c->trouble, sizeof c->trouble, "%s%s%.200s", why, detail && detail[0] ? ": " : "", detail ? detail : "");
    for (char *s = c->trouble; *s; s++) /* untrusted text that a terminal will show */
        if ((unsigned char)*s < 0x20 || (unsigned char)*s >= 0x7F) *s = '?';
    if (c->patience_seconds && now_ms > c->since_ms && now_ms - c->since_ms > 1000ULL * c->patience_seconds)
        return fkt_fail_hint(
            FKT_E_IO,
            why == wrong_key ? "ask the operator whether the task is the present one; the connection may be intercepted"
                             : "see whether the server runs, and join again: what was sent is not sent twice",
            "given up after %u seconds: %s", c->patience_seconds, c->trouble);
    return FKT_OK;
}

static fkt_status unreached(struct fkt_http_client *c, uint64_t now_ms, const struct fkt_http_client_answer *a)
{
    if (a->wrong_key) return later(c, now_ms, PAUSE_BACKOFF, wrong_key, NULL);
    return later(c, now_ms, PAUSE_BACKOFF, "the server cannot be reached", a->why);
}

static fkt_status unreadable(struct fkt_http_client *c, uint64_t now_ms, const char *what)
{
    return later(c, now_ms, PAUSE_BACKOFF, "the server's answer cannot be read", what);
}

static void well(struct fkt_http_client *c)
{
    c->tries = c->chances = 0;
    c->trouble[0] = '\0';
}

static fkt_status wait_as_told(struct fkt_http_client *c, uint64_t now_ms, const struct fkt_http_client_answer *a)
{
    const char *why = a->code == 429 ? "the server asks this site to slow down" : "the server is busy";
    uint64_t seconds;
    if (!a->retry_after || fkt_parse_u64(&seconds, a->retry_after, RETRY_SECONDS) != FKT_OK)
        return later(c, now_ms, PAUSE_BACKOFF, why, NULL);
    c->asked_pause_ms = (uint32_t)seconds * 1000;
    return later(c, now_ms, PAUSE_ASKED, why, NULL);
}

/* The one word of an error's text (docs/http.md 2.4), when it is `word`. */
static int says(const struct fkt_http_client_answer *a, const char *word)
{
    json_t *j =
        a->len <= PROBLEM_BYTES ? json_loadb((const char *)a->body, a->len, JSON_REJECT_DUPLICATES, NULL) : NULL;
    const char *title = json_string_value(json_object_get(j, "title"));
    int yes = title && !strcmp(title, word);
    json_decref(j);
    return yes;
}

/* 1 when the answer brought a nonce or a floor, and the request is to be repeated. */
static int learn(struct fkt_http_client *c, const struct fkt_http_client_answer *a)
{
    uint8_t nonce[FKT_AUTH_NONCE];
    uint64_t floor;
    if (a->code != 401) return 0;
    if (a->nonce && fkt_unhex(nonce, a->nonce, sizeof nonce) && memcmp(nonce, c->nonce, sizeof nonce) != 0) {
        memcpy(c->nonce, nonce, sizeof nonce);
        return 1;
    }
    if (!a->floor || fkt_parse_u64(&floor, a->floor, SEQUENCE_LIMIT) != FKT_OK) return 0;
    if (floor < c->sequence && !says(a, "ahead")) return 0;
    c->sequence = floor;
    return 1;
}

static fkt_status unauthorised(struct fkt_http_client *c, uint64_t now_ms, const struct fkt_http_client_answer *a)
{
    if (learn(c, a))
        return c->chances++ < SECOND_CHANCES
                   ? FKT_OK
                   : later(c, now_ms, PAUSE_BACKOFF, "the server changes its nonce with every request", NULL);
    if (says(a, "signature"))
        return fkt_fail_hint(FKT_E_PEER_AUTH,
                             "join with the key that was enrolled, and with the task that the server has",
                             "the server does not accept the signature of site %u", c->site);
    if (says(a, "unknown-site"))
        return fkt_fail_hint(FKT_E_PEER_AUTH, "compare your task file with the operator's",
                             "the server knows no site %u", c->site);
    return unreadable(c, now_ms, "it refuses the request, but gives no reason");
}

/* ---- answers that count ---- */

struct told {
    struct fkt_message message; /* empty */
    uint64_t entry;             /* 0: no head */
    const char *head;
};

static int read_stage(enum fkt_stage *out, const char *name)
{
    for (int s = FKT_STAGE_GATHERING; name && s <= FKT_STAGE_GIVEN_UP; s++)
        if (!strcmp(name, fkt_stage_name((enum fkt_stage)s))) {
            *out = (enum fkt_stage)s;
            return 1;
        }
    return 0;
}

static int read_head(struct told *t, const char *value)
{
    const char *colon = strchr(value, ':');
    char number[24];
    uint8_t hash[32];
    size_t n = colon ? (size_t)(colon - value) : sizeof number;
    if (n >= sizeof number || !fkt_unhex(hash, colon + 1, sizeof hash)) return 0;
    memcpy(number, value, n);
    number[n] = '\0';
    t->head = colon + 1;
    return fkt_parse_u64(&t->entry, number, ENTRY_LIMIT) == FKT_OK && t->entry > 0;
}

/* NULL, or the name of the header that is not well formed. */
static const char *read_told(struct told *t, const struct fkt_http_client_answer *a)
{
    uint64_t lost = 0;
    *t = (struct told){0};
    if (!read_stage(&t->message.stage, a->stage)) return "Fedkt-Stage";
    if (a->lost && (fkt_parse_u64(&lost, a->lost, STATUS_LIMIT) != FKT_OK || lost == 0)) return "Fedkt-Lost";
    if (a->log && !read_head(t, a->log)) return "Fedkt-Log";
    t->message.lost = (fkt_status)lost;
    return NULL;
}

static const char *read_message(struct told *t, const struct fkt_http_client_answer *a)
{
    uint64_t index = 0;
    if (!a->round || !fkt_unhex(t->message.round, a->round, sizeof t->message.round)) return "Fedkt-Round";
    if (!a->index || fkt_parse_u64(&index, a->index, UINT32_MAX) != FKT_OK || index == 0) return "Fedkt-Index";
    if (!a->len) return "a message of no bytes";
    t->message.index = (uint32_t)index;
    t->message.bytes = a->body;
    t->message.len = a->len;
    return NULL;
}

/* A poll was answered. After a message without progress, whatever its index, the pause grows; so it does after an
 * answer that came at once and brought no message. */
static void pace(struct fkt_http_client *c, uint64_t now_ms, const struct told *t)
{
    const int of_use = c->side->wants(c->side->self) != FKT_ENDPOINT_RECV;
    if (of_use) c->idle = 0;
    else if (t->message.len || t->message.lost || now_ms - c->asked_ms < IDLE_MS) {
        c->pause = PAUSE_IDLE;
        if (t->message.len && c->idle < IDLE_DOUBLINGS) c->idle++;
    }
}

/* An answer that the endpoint must receive. */
static fkt_status pass_on(struct fkt_http_client *c, uint64_t now_ms, const struct fkt_http_client_answer *a,
                          struct told *t)
{
    fkt_status st = FKT_OK;
    if (t->entry) FKT_TRY(c->side->heard_head(c->side->self, t->entry, t->head));
    if (c->posting) FKT_TRY(c->side->sent(c->side->self, a->code == 204));
    if (a->code == 422 && t->message.lost == FKT_OK) t->message.lost = FKT_E_PEER_FORMAT;
    FKT_TRY(c->side->recv(c->side->self, &t->message));
    well(c);
    if (!c->posting) pace(c, now_ms, t);
out:
    return st;
}

static fkt_status useful(struct fkt_http_client *c, uint64_t now_ms, const struct fkt_http_client_answer *a)
{
    struct told t;
    const char *wrong = read_told(&t, a);
    if (!wrong && a->code == 200) wrong = read_message(&t, a);
    if (!wrong && a->code == 410 && t.message.stage < FKT_STAGE_RELEASED) wrong = "Fedkt-Stage";
    return wrong ? unreadable(c, now_ms, wrong) : pass_on(c, now_ms, a, &t);
}

static fkt_status no_way(const struct fkt_http_client *c, int code)
{
    if (code == 403)
        return fkt_fail_hint(FKT_E_MISMATCH, "ask the operator for the present task file, and read it before you join",
                             "the server runs another task than the one of this site");
    if (code == 413)
        return fkt_fail_hint(FKT_E_STATE, "compare the versions of fedkt at site and server",
                             "the server finds a message of %zu bytes too long", c->out_len);
    return fkt_fail_hint(FKT_E_STATE, "compare the versions of fedkt at site and server",
                         "the server cannot read the requests of this site");
}

static fkt_status strange(struct fkt_http_client *c, uint64_t now_ms, int code)
{
    return later(c, now_ms, PAUSE_BACKOFF, code >= 500 ? "the server is in trouble" : "no fedkt server answers here",
                 NULL);
}

static fkt_status hear(struct fkt_http_client *c, uint64_t now_ms, const struct fkt_http_client_answer *a)
{
    if (c->probing && (a->code == 200 || a->code == 204 || a->code == 410)) { /* accepted: that was its only purpose */
        c->probe = 0;
        return FKT_OK;
    }
    if (c->posting && a->code == 503) c->probe = 1;
    switch (a->code) {
    case 0: return unreached(c, now_ms, a);
    case 200: return c->posting ? unreadable(c, now_ms, "a code that does not belong here") : useful(c, now_ms, a);
    case 204:
    case 410: return useful(c, now_ms, a);
    case 409:
    case 422: return c->posting ? useful(c, now_ms, a) : unreadable(c, now_ms, "a code that does not belong here");
    case 400:
    case 403:
    case 413: return no_way(c, a->code);
    case 401: return unauthorised(c, now_ms, a);
    case 429:
    case 503: return wait_as_told(c, now_ms, a);
    default: return strange(c, now_ms, a->code);
    }
}

fkt_status fkt_http_client_answer(struct fkt_http_client *c, uint64_t now_ms, const struct fkt_http_client_answer *a)
{
    fkt_status st;
    if (c->over) return fkt_fail(FKT_E_STATE, "the conversation is over");
    st = hear(c, now_ms, a);
    if (st != FKT_OK) (void)end(c, st);
    return st;
}

fkt_status fkt_http_client_fetched(struct fkt_http_client *c, uint64_t now_ms, const struct fkt_http_client_answer *a,
                                   int *again)
{
    *again = a->code != 200;
    switch (a->code) {
    case 0: return unreached(c, now_ms, a);
    case 200: well(c); return FKT_OK;
    case 400:
    case 403:
    case 413: return no_way(c, a->code);
    case 401: return unauthorised(c, now_ms, a);
    case 404: return fkt_fail(FKT_E_STATE, "the server has no such file");
    case 429:
    case 503: return wait_as_told(c, now_ms, a);
    default: return strange(c, now_ms, a->code);
    }
}
