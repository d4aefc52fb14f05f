/* SPDX-License-Identifier: Apache-2.0 */
/* request_check.c - the checks of docs/http.md 2.2, in that order, cheap ones first.
 *
 *   target and method -> form -> task -> roster -> life of the server -> length  ... body ... -> signature -> sequence
 *   -> rate
 *
 * Nothing before the signature is believed: a refusal names the site that the request claims to be. Every refusal
 * counts against the address but those that a restart of ours causes (`nonce`) and those of a rate; an address that has
 * had too many gets 429 in the place of the next ones, and they are in no log. It is never the address alone that is
 * turned away, since hundreds of sites may share one with a stranger (a NAT, a forwarder): what is right comes in. For
 * that a signature must be looked at (60 us), so CHECKS bounds how many of bad addresses are in a second. Where they
 * are spent, a site goes on by a connection that has brought a right signature of its own before.
 *
 * Sequence numbers end at 2^63. Whoever has a site's key could use the last one up and lock its owner out until a
 * restart, so a number may be LEAP ahead of the one before: 2^42 requests would not come near the end. A number beyond
 * that (a site that was started again begins with its clock) is told the last one, without blame, and goes on there.
 *
 * The operator's token is compared as a hash of itself, so that neither its length nor its bytes show in time. The
 * browser's cookie is another hash of it: who steals the cookie has not got the token. */
#include "net/request_check.h"

#include "base/alloc.h"
#include "base/text.h"
#include "crypto/digest.h"
#include "crypto/entropy.h"
#include "net/listen.h"

#include <pthread.h>
#include <string.h>

enum { CHECKS = 500 }; /* a second: three hundredths of a core */
/* How far a sequence number may be ahead of the last one, and the first one of a life: a site begins with microseconds
 * since 1970, which pass 2^53 in the year 2255. */
#define LEAP (UINT64_C(1) << 20)
#define FIRST (UINT64_C(1) << 53)

struct slot {
    uint64_t next;                        /* the lowest sequence number that is accepted */
    uint64_t debt_us;                     /* rate_limit.h */
    uint8_t peer[FKT_RATE_LIMIT_ADDRESS]; /* address of its last valid signature */
};
struct fkt_request_check {
    struct fkt_request_check_spec spec; /* roster and task borrowed; the other pointers are not used */
    uint8_t nonce[FKT_AUTH_NONCE];
    int has_token;
    uint8_t token[FKT_DIGEST_BYTES]; /* its hash */
    char cookie[FKT_REQUEST_COOKIE];
    pthread_mutex_t lock; /* of all below */
    struct fkt_rate_limit *rate_limit;
    struct slot *slots; /* (sites) */
    uint64_t checks_us; /* rate_limit.h: signatures of bad addresses */
};

static void hash_text(uint8_t out[FKT_DIGEST_BYTES], const char *label, const char *text, size_t len)
{
    struct fkt_digest d;
    fkt_digest_init(&d, label, NULL);
    fkt_digest_add(&d, text, len);
    fkt_digest_end(&d, out);
}

fkt_status fkt_request_check_new(struct fkt_request_check **out, const struct fkt_request_check_spec *spec)
{
    struct fkt_request_check *g = NULL;
    uint8_t hash[FKT_DIGEST_BYTES];
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&g, 1));
    pthread_mutex_init(&g->lock, NULL);
    g->spec = *spec;
    memcpy(g->nonce, spec->nonce, sizeof g->nonce);
    if (spec->token) {
        g->has_token = 1;
        hash_text(g->token, "fedkt token", spec->token, strlen(spec->token));
        hash_text(hash, "fedkt cookie", spec->token, strlen(spec->token));
        fkt_hex(g->cookie, hash, sizeof hash);
    }
    FKT_TRY(fkt_rate_limit_new(&g->rate_limit, spec->refusals_per_minute, spec->key));
    FKT_TRY(fkt_alloc(&g->slots, spec->sites));
    *out = g;
    g = NULL;
out:
    fkt_request_check_free(g);
    return st;
}

void fkt_request_check_free(struct fkt_request_check *g)
{
    if (!g) return;
    fkt_rate_limit_free(g->rate_limit);
    fkt_free(g->slots);
    pthread_mutex_destroy(&g->lock);
    fkt_wipe(g, sizeof *g);
    fkt_free(g);
}

const uint8_t *fkt_request_check_nonce(const struct fkt_request_check *g) { return g->nonce; }
const char *fkt_request_check_cookie(const struct fkt_request_check *g) { return g->cookie; }

static void refuse(struct fkt_request_verdict *v, int code, const char *title, const char *detail)
{
    v->code = code;
    v->title = title;
    v->detail = detail;
}

/* A refusal that the transparency log notes. */
static void refuse_note(struct fkt_request_verdict *v, int code, const char *title, enum fkt_refusal why,
                        const char *detail)
{
    refuse(v, code, title, detail);
    v->noted = 1;
    v->why = why;
}

/* ---- people ---- */

static int token_right(const struct fkt_request_check *g, const char *token, size_t len)
{
    uint8_t hash[FKT_DIGEST_BYTES];
    hash_text(hash, "fedkt token", token, len);
    return g->has_token && fkt_same(hash, g->token, sizeof hash);
}

/* "a=b; fedkt=<64 hex>; c=d" */
static int cookie_right(const struct fkt_request_check *g, const char *cookies)
{
    static const char name[] = "fedkt=";
    for (const char *at = cookies; at; at = strchr(at, ';')) {
        at += strspn(at, "; ");
        if (strncmp(at, name, sizeof name - 1) != 0) continue;
        at += sizeof name - 1;
        if (strcspn(at, ";") == FKT_REQUEST_COOKIE - 1)
            return g->has_token && fkt_same(at, g->cookie, FKT_REQUEST_COOKIE - 1);
    }
    return 0;
}

/* A browser on this machine that was led here under another name speaks for the page of a stranger (DNS rebinding). */
static int at_home(const struct fkt_request_check *g, const struct fkt_request *r)
{
    return g->spec.local && fkt_listen_loopback(r->peer) && r->host && fkt_listen_names_here(r->host);
}

static void look_at_person(const struct fkt_request_check *g, const struct fkt_request *r,
                           struct fkt_request_verdict *v)
{
    static const char bearer[] = "Bearer ";
    const char *a = r->authorization;
    int ok;
    if (fkt_target_auth(&v->target) == FKT_TARGET_AUTH_NONE) return;
    if (fkt_target_auth(&v->target) == FKT_TARGET_AUTH_TARGET)
        ok = token_right(g, v->target.token, strlen(v->target.token));
    else if (at_home(g, r)) ok = 1;
    else if (a && strncmp(a, bearer, sizeof bearer - 1) == 0)
        ok = token_right(g, a + sizeof bearer - 1, strlen(a + sizeof bearer - 1));
    else ok = r->cookie && cookie_right(g, r->cookie);
    if (!ok)
        refuse(
            v, 401, "token",
            "this page needs the operator's token: it stands in the file operator.token in the server's state folder; "
            "open /login?token=... with it once");
}

/* ---- sites ---- */

static void look_at_claim(const struct fkt_request_check *g, const struct fkt_request *r, struct fkt_request_verdict *v)
{
    uint8_t task[32];
    if (!r->authorization || !fkt_auth_read(&v->claim, r->authorization)) {
        refuse_note(v, 400, "malformed", FKT_REFUSAL_MALFORMED,
                    "no signature in the header 'Authorization', or not of its form");
        return;
    }
    v->site = v->claim.site < g->spec.sites ? v->claim.site : FKT_MAILBOX_NOBODY;
    if (!r->task || !fkt_unhex(task, r->task, sizeof task))
        refuse_note(v, 400, "malformed", FKT_REFUSAL_MALFORMED, "no hash of the task in the header 'Fedkt-Task'");
    else if (!fkt_same(task, g->spec.task, sizeof task)) /* first: who does not have it learns nothing of the roster */
        refuse_note(v, 403, "other-task", FKT_REFUSAL_OTHER_TASK, "this server serves another task");
    else if (v->site == FKT_MAILBOX_NOBODY)
        refuse_note(v, 401, "unknown-site", FKT_REFUSAL_UNKNOWN_SITE, "there is no such site on the roster");
    else if (!fkt_same(v->claim.nonce, g->nonce, sizeof g->nonce))
        refuse(v, 401, "nonce", "sign again with the nonce of this answer: the server has been started since");
    v->tell_nonce = v->code == 401;
}

static void look_at_length(const struct fkt_request_check *g, const struct fkt_request *r,
                           struct fkt_request_verdict *v)
{
    const uint64_t max = v->target.what == FKT_TARGET_MESSAGES ? g->spec.in_max : 0;
    if (r->length == FKT_REQUEST_CHUNKED)
        refuse_note(v, 411, "length-required", FKT_REFUSAL_MALFORMED, "a body needs a 'Content-Length'");
    else if (r->length == FKT_REQUEST_TWICE)
        refuse_note(v, 400, "malformed", FKT_REFUSAL_MALFORMED, "there is more than one 'Content-Length'");
    else if (r->length > max)
        refuse_note(v, 413, "too-large", FKT_REFUSAL_TOO_LARGE, "no message of this task is so long");
    v->noted = v->noted && fkt_target_signed(&v->target);
}

static void look(const struct fkt_request_check *g, const struct fkt_request *r, struct fkt_request_verdict *v)
{
    fkt_target_read(&v->target, r->target);
    if (v->target.what == FKT_TARGET_NONE) {
        refuse(v, 404, "not-found", "there is no such path");
    } else if (v->target.what == FKT_TARGET_MALFORMED) {
        refuse(v, 400, "malformed", "the query is not of the form 'round=...&after=...&wait=...'");
    } else if (!fkt_target_allows(&v->target, r->method)) {
        refuse(v, 405, "method", "this path does not answer to that method");
        v->allow = fkt_target_methods(&v->target);
    } else {
        if (fkt_target_signed(&v->target)) look_at_claim(g, r, v);
        else look_at_person(g, r, v);
        if (!v->code) look_at_length(g, r, v);
    }
}

/* Under the lock. */
static void blame(struct fkt_request_check *g, const struct fkt_request *r, uint64_t now_ms,
                  struct fkt_request_verdict *v)
{
    fkt_rate_limit_blame(g->rate_limit, r->peer, now_ms);
    v->blamed = 1;
}

/* In the place of another refusal, or of a look at the signature. */
static void turn_away(struct fkt_request_verdict *v, uint32_t wait)
{
    refuse(v, 429, "too-often", "too many requests from this address had to be refused");
    v->retry_seconds = wait;
    v->noted = v->tell_nonce = 0;
    v->allow = NULL;
}

void fkt_request_check_head(struct fkt_request_check *g, uint64_t now_ms, const struct fkt_request *r,
                            struct fkt_request_verdict *v)
{
    uint32_t wait;
    memset(v, 0, sizeof *v);
    v->site = FKT_MAILBOX_NOBODY;
    look(g, r, v);
    if (v->target.wait > g->spec.wait_seconds) v->target.wait = g->spec.wait_seconds;
    if (v->code ? strcmp(v->title, "nonce") == 0 : !fkt_target_signed(&v->target)) return;
    if (!v->code && r->proven == v->site + 1) {
        v->standing = FKT_PEER_PROVEN;
        return;
    }
    pthread_mutex_lock(&g->lock);
    if (!v->code && fkt_rate_limit_same(g->slots[v->site].peer, r->peer)) v->standing = FKT_PEER_KNOWN;
    wait = fkt_rate_limit_wait(g->rate_limit, r->peer, now_ms);
    if (v->code && !wait) blame(g, r, now_ms, v);
    pthread_mutex_unlock(&g->lock);
    if (v->code && wait) turn_away(v, wait);
    else v->probation = wait;
}

void fkt_request_check_blame(struct fkt_request_check *g, uint64_t now_ms, const uint8_t peer[FKT_RATE_LIMIT_ADDRESS])
{
    pthread_mutex_lock(&g->lock);
    fkt_rate_limit_blame(g->rate_limit, peer, now_ms);
    pthread_mutex_unlock(&g->lock);
}

/* Sequence and rate of a site whose signature is right. The number is used up either way. */
static void take_turn(struct fkt_request_check *g, uint64_t now_ms, const struct fkt_request *r,
                      struct fkt_request_verdict *v)
{
    struct slot *slot = &g->slots[v->site];
    const uint64_t most = slot->next ? slot->next - 1 + LEAP : FIRST;
    if (v->claim.sequence > most) {
        refuse(v, 401, "ahead", "this sequence number is too far ahead of the last one");
        v->tell_nonce = v->has_floor = 1;
        v->floor = slot->next ? slot->next - 1 : 0;
        return;
    }
    if (v->claim.sequence < slot->next) {
        refuse_note(v, 401, "replayed", FKT_REFUSAL_REPLAYED, "this sequence number has been used, or a later one");
        v->tell_nonce = v->has_floor = 1;
        v->floor = slot->next - 1;
        return;
    }
    slot->next = v->claim.sequence + 1;
    memcpy(slot->peer, r->peer, sizeof slot->peer);
    if (fkt_rate_limit_spend(&slot->debt_us, now_ms, g->spec.requests_per_second, 1000)) return;
    refuse_note(v, 429, "too-often", FKT_REFUSAL_TOO_OFTEN, "this site sends too many requests");
    v->retry_seconds = 1;
}

void fkt_request_check_admit(struct fkt_request_check *g, uint64_t now_ms, const struct fkt_request *r,
                             const void *body, size_t len, struct fkt_request_verdict *v)
{
    struct fkt_auth_request whole = {.task = g->spec.task, .method = r->method, .target = r->target};
    int right, affordable = 1;
    if (v->code || !fkt_target_signed(&v->target)) return;
    if (v->probation) {
        pthread_mutex_lock(&g->lock);
        affordable = fkt_rate_limit_spend(&g->checks_us, now_ms, CHECKS, 1000);
        pthread_mutex_unlock(&g->lock);
    }
    whole.body = body;
    whole.len = len;
    right = affordable && fkt_auth_right(&v->claim, &whole, g->spec.roster + (size_t)v->site * 32);
    if (!right && v->probation) {
        turn_away(v, v->probation);
        return;
    }
    if (!right) {
        refuse_note(v, 401, "signature", FKT_REFUSAL_BAD_SIGNATURE,
                    "the signature is not this site's over this request");
        v->tell_nonce = 1;
    }
    pthread_mutex_lock(&g->lock);
    if (right) take_turn(g, now_ms, r, v);
    if (v->code == 401 && strcmp(v->title, "ahead") != 0) blame(g, r, now_ms, v);
    pthread_mutex_unlock(&g->lock);
}
