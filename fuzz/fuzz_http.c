/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_http.c - requests that three sites, outsiders and people send to a server: the request check and the queue
 * behind it, with a mailbox in memory (tests/support/memory_mailbox.h) and a clock that the input moves.
 *
 *   a step: | what | who | where | bent | more |, five bytes; for 6 and 7 then | length | bytes |
 *
 *   what   0 the clock goes on by 25 ms times more    1 the queue is served
 *          2 GET    3 POST    4 HEAD    5 PUT    6 GET with these bytes as its target    7 with these as its header
 *   who    bits 0-1: site, 3: not on the roster; bits 2-3: address      where  a target of the table
 *   bent   0 signed with another key    1 of another task    2 of another life of the server    3 body altered
 *          4 an old sequence number     5 length not said    6 longer than a message may be     7 a header left out
 *   more   of a message: its first byte and its length
 *
 * A model that knows how each request was altered predicts the answer: no request is accepted that should be refused,
 * the reason of a refusal is the first that applies, each accepted request is answered once and only after the mailbox
 * has settled, and the mailbox has taken exactly what was answered with 204. The same bytes give the same answers. */
#include "fuzz_support.h"

#include "crypto/digest.h"
#include "crypto/sign.h"
#include "net/queue.h"
#include "tests/support/memory_mailbox.h"

#include <jansson.h>

enum { SITES = 3, ADDRESSES = 4, STEPS = 400, IN_MAX = 400, REFUSALS = 12, RATE = 6 };

static const char *const targets[] = {
    "/v1/messages",
    "/v1/messages?round=-&after=0&wait=1",
    "/v1/messages?round=-&after=0&wait=0",
    "/v1/messages?round=ab0102030405060708090a0b0c0d0e0f&after=1&wait=25",
    "/v1/task",
    "/v1/files/transparency.jsonl",
    "/v1/files/../transparency.jsonl",
    "/v1/messages?round=-",
    "/",
    "/status.json",
    "/metrics",
    "/healthz",
    "/nothing",
    "/login?token=sesame",
};
static const uint8_t task[32] = {1}, other_task[32] = {2}, life[16] = {3}, old_life[16] = {4}, key[32] = {5};
static const char task_hex[] = "0100000000000000000000000000000000000000000000000000000000000000";
static const char other_hex[] = "0200000000000000000000000000000000000000000000000000000000000000";
static uint8_t roster[SITES * 32], secret[SITES + 1][64];

struct sent {
    struct fkt_job job; /* first */
    uint8_t body[IN_MAX];
    int in, done;
};
struct world {
    struct memory_mailbox box;
    struct fkt_mailbox mailbox;
    struct fkt_request_check *check;
    struct fkt_queue *queue;
    uint64_t now, seq, next[SITES], blamed[ADDRESSES], spoken[SITES], taken;
    struct sent sent[STEPS];
    size_t n;
    struct fkt_job *waiting, **tail;
    int dead; /* the mailbox could not go on */
    uint8_t transcript[32];
};
struct step {
    uint8_t what, who, where, malformed, more;
    const uint8_t *raw;
    size_t len;
};

static void note(struct world *w, uint32_t x)
{
    struct fkt_digest d;
    fkt_digest_init(&d, "http", NULL);
    fkt_digest_add(&d, w->transcript, 32);
    fkt_digest_add_u32(&d, x);
    fkt_digest_end(&d, w->transcript);
}

static void world_init(struct world *w)
{
    static const struct fkt_page_facts facts = {
        .task_name = "t", .task_sha256 = "", .privacy = "", .noise = "", .version = "", .sites = SITES};
    const struct fkt_request_check_spec spec = {.roster = roster,
                                                .sites = SITES,
                                                .task = task,
                                                .nonce = life,
                                                .key = key,
                                                .token = "sesame",
                                                .in_max = IN_MAX,
                                                .refusals_per_minute = REFUSALS,
                                                .requests_per_second = RATE,
                                                .wait_seconds = 25};
    memset(w, 0, sizeof *w);
    w->now = 1000;
    w->seq = 10;
    w->tail = &w->waiting;
    FUZZ_CHECK(memory_mailbox_init(&w->box, &w->mailbox, SITES, NULL) == FKT_OK);
    FUZZ_CHECK(fkt_request_check_new(&w->check, &spec) == FKT_OK);
    FUZZ_CHECK(fkt_queue_new(&w->queue, &(struct fkt_queue_spec){&w->mailbox, "{}", &facts}) == FKT_OK);
}

/* An answer that leaves. */
static void look_at_answer(struct world *w, struct sent *s)
{
    const struct fkt_answer *a = &s->job.answer;
    FUZZ_CHECK(s->in && !s->done);
    s->done = 1;
    note(w, (uint32_t)a->code);
    if (w->dead) FUZZ_CHECK(a->code == 503);
    if (a->type && !strcmp(a->type, "application/problem+json")) {
        json_t *j = json_loadb(a->body, a->len, JSON_REJECT_DUPLICATES, NULL);
        FUZZ_CHECK(j && json_integer_value(json_object_get(j, "status")) == a->code);
        json_decref(j);
    }
    if (s->job.target.what == FKT_TARGET_MESSAGES) {
        FUZZ_CHECK(a->code == 204 || a->code == 409 || a->code == 410 || a->code == 422 || a->code == 503);
        w->taken += a->code == 204;
    } else if (s->job.target.what == FKT_TARGET_POLL) {
        FUZZ_CHECK(a->code == 200 || a->code == 204 || a->code == 410 || a->code == 503);
    } else {
        FUZZ_CHECK(a->code == 200 || a->code == 404 || a->code == 503);
    }
    fkt_answer_clear(&s->job.answer);
}

static void turn(struct world *w)
{
    static const struct fkt_page_counts none;
    struct fkt_job *done = NULL, *next;
    const fkt_status st = fkt_queue_turn(w->queue, w->now, 1700000000000 + w->now, w->waiting, &none, &done);
    w->waiting = NULL;
    w->tail = &w->waiting;
    if (st != FKT_OK) w->dead = 1;
    FUZZ_CHECK(w->dead || w->box.settled);
    for (; done; done = next) {
        next = done->next;
        look_at_answer(w, (struct sent *)done);
    }
    FUZZ_CHECK(w->dead || w->taken == w->box.taken);
    if (fkt_queue_has_work(w->queue)) fkt_queue_worked(w->queue, FKT_OK);
    FUZZ_CHECK(fkt_queue_parked(w->queue) <= SITES);
}

/* ---- requests ---- */

struct call {
    struct fkt_request r;
    struct fkt_auth_request a;
    char target[300], header[FKT_AUTH_HEADER + 300];
    uint8_t peer[16];
    uint32_t site;
};

static void call_init(struct world *w, struct call *c, const struct step *s, struct sent *sent)
{
    static const char *const methods[] = {"GET", "POST", "HEAD", "PUT", "GET", "GET"};
    static const char messages[] = "TTTTTTSSFRGWX?TT";
    const size_t len = s->what == 3 ? (size_t)s->more % (IN_MAX + 1) : 0;
    memset(c, 0, sizeof *c);
    c->peer[10] = c->peer[11] = 0xff;
    c->peer[12] = (uint8_t)(10 + (s->who >> 2 & 3));
    c->site = s->who & 3;
    snprintf(c->target, sizeof c->target, "%s", targets[s->where % (sizeof targets / sizeof targets[0])]);
    if (s->what == 6) snprintf(c->target, sizeof c->target, "%.*s", (int)s->len, (const char *)s->raw);
    memset(sent->body, s->more, len);
    if (len) sent->body[0] = (uint8_t)messages[s->more & 15];
    c->a = (struct fkt_auth_request){.task = s->malformed & 2 ? other_task : task,
                                     .nonce = s->malformed & 4 ? old_life : life,
                                     .sequence = s->malformed & 16 ? w->seq / 2 : w->seq,
                                     .site = c->site,
                                     .method = methods[s->what - 2],
                                     .target = c->target,
                                     .body = sent->body,
                                     .len = len};
    w->seq++;
    fkt_auth_write(c->header, &c->a, s->malformed & 1 ? secret[SITES] : secret[c->site % SITES]);
    if (s->malformed & 8 && len) sent->body[len - 1] ^= 1;
    if (s->what == 7) snprintf(c->header, sizeof c->header, "%.*s", (int)s->len, (const char *)s->raw);
    c->r = (struct fkt_request){.method = c->a.method,
                                .target = c->target,
                                .authorization = s->malformed & 128 ? NULL : c->header,
                                .task = s->malformed & 2 ? other_hex : task_hex,
                                .length = s->malformed & 32   ? FKT_REQUEST_CHUNKED
                                          : s->malformed & 64 ? IN_MAX + 1
                                                              : len,
                                .peer = c->peer};
}

/* What must come of it, but for the budgets of addresses and sites: a title, or "" to come in. NULL: cannot say. */
static const char *must(const struct world *w, const struct call *c, const struct step *s)
{
    struct fkt_target t;
    fkt_target_read(&t, c->target);
    if (t.what == FKT_TARGET_NONE) return "not-found";
    if (t.what == FKT_TARGET_MALFORMED) return "malformed";
    if (!fkt_target_allows(&t, c->r.method)) return "method";
    if (!fkt_target_signed(&t)) {
        if (s->what == 7) return NULL;
        if (t.what == FKT_TARGET_LOGIN ? strcmp(t.token, "sesame") != 0 : t.what != FKT_TARGET_HEALTH) return "token";
    } else {
        if (s->malformed & 128) return "malformed";
        if (s->what == 7) return NULL;
        if (s->malformed & 2) return "other-task";
        if (c->site >= SITES) return "unknown-site";
        if (s->malformed & 4) return "nonce";
    }
    if (s->malformed & 32) return "length-required";
    if (s->malformed & 64 || (c->a.len && t.what != FKT_TARGET_MESSAGES)) return "too-large";
    if (!fkt_target_signed(&t)) return "";
    if (s->malformed & 1 || (s->malformed & 8 && c->a.len)) return "signature";
    if (c->a.sequence > (w->next[c->site] ? w->next[c->site] - 1 + (1 << 20) : UINT64_C(1) << 53)) return "ahead";
    return c->a.sequence < w->next[c->site] ? "replayed" : "";
}

static void look_at_verdict(struct world *w, const struct call *c, const struct step *s,
                            const struct fkt_request_verdict *v, const char *want)
{
    const unsigned from = s->who >> 2 & 3;
    struct fkt_answer a;
    if (v->code == 429 && !v->noted) {
        FUZZ_CHECK(w->blamed[from] >= REFUSALS); /* an address that was refused so often */
    } else if (v->code == 429) {
        FUZZ_CHECK(w->spoken[c->site] >= RATE && (!want || !want[0]));
        w->next[c->site] = c->a.sequence + 1;
    } else if (want) {
        FUZZ_CHECK(!strcmp(v->code ? v->title : "", want));
    }
    if (v->code && v->code != 429 && strcmp(v->title, "nonce") != 0) w->blamed[from]++;
    if (!v->code) return;
    memset(&a, 0, sizeof a);
    fkt_answer_refusal(&a, v, life);
    FUZZ_CHECK(a.code >= 400 && a.code < 500 && a.body && a.headers <= FKT_ANSWER_HEADERS);
    fkt_answer_clear(&a);
    if (v->noted) fkt_queue_note(w->queue, v->site, v->why);
    FUZZ_CHECK(v->site < SITES || v->site == FKT_MAILBOX_NOBODY);
}

static void ask(struct world *w, const struct step *s)
{
    struct sent *sent = &w->sent[w->n];
    struct fkt_request_verdict v;
    struct call c;
    const char *want;
    call_init(w, &c, s, sent);
    want = must(w, &c, s);
    fkt_request_check_head(w->check, w->now, &c.r, &v);
    if (!v.code) fkt_request_check_admit(w->check, w->now, &c.r, sent->body, c.a.len, &v);
    note(w, (uint32_t)v.code);
    look_at_verdict(w, &c, s, &v, want);
    if (v.code) return;
    if (fkt_target_signed(&v.target)) {
        FUZZ_CHECK(s->what != 7 && v.site == c.site); /* no header that was made up */
        w->next[c.site] = c.a.sequence + 1;
        w->spoken[c.site]++;
    }
    if (v.target.what >= FKT_TARGET_HEALTH && v.target.what != FKT_TARGET_STATUS && v.target.what != FKT_TARGET_METRICS)
        return; /* answered without the queue */
    sent->job.target = v.target;
    sent->job.site = v.site;
    sent->job.body = sent->body;
    sent->job.len = c.a.len;
    sent->in = 1;
    *w->tail = &sent->job;
    w->tail = &sent->job.next;
    w->n++;
}

static void play(struct world *w, const uint8_t *data, size_t size)
{
    struct fkt_job *left, *next;
    for (int n = 0; size >= 5 && n < STEPS; n++) {
        struct step s = {.what = data[0] % 8, .who = data[1], .where = data[2], .malformed = data[3], .more = data[4]};
        data += 5, size -= 5;
        if (s.what >= 6 && size) {
            s.len = data[0] < size ? data[0] : size - 1;
            s.raw = data + 1;
            data += 1 + s.len, size -= 1 + s.len;
        }
        if (s.what >= 6 && (!s.raw || memchr(s.raw, 0, s.len))) continue;
        if (s.what == 0) w->now += 25 * (uint64_t)s.more;
        else if (s.what == 1) turn(w);
        else ask(w, &s);
    }
    turn(w);
    for (left = fkt_queue_close(w->queue); left; left = next) {
        next = left->next;
        look_at_answer(w, (struct sent *)left);
    }
    for (size_t i = 0; i < w->n; i++) FUZZ_CHECK(w->sent[i].done);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct world w;
    uint8_t first[32];
    if (!secret[0][0])
        for (uint8_t i = 0; i <= SITES; i++) {
            const uint8_t seed[32] = {(uint8_t)(i + 1)};
            uint8_t pk[32];
            fkt_sign_keypair(pk, secret[i], seed);
            if (i < SITES) memcpy(roster + 32 * i, pk, 32);
        }
    for (int again = 0; again < 2; again++) {
        world_init(&w);
        play(&w, data, size);
        if (!again) memcpy(first, w.transcript, 32);
        else FUZZ_CHECK(!memcmp(first, w.transcript, 32));
        fkt_queue_free(w.queue);
        fkt_request_check_free(w.check);
        memory_mailbox_release(&w.box);
    }
    return 0;
}
