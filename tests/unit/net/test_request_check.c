/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/sign.h"
#include "net/answer.h"
#include "net/request_check.h"
#include "tests/support/check.h"

enum { SITES = 3 };
static const uint8_t task[32] = {7}, other_task[32] = {8}, nonce[16] = {1, 2}, key[32] = {5};
static const char task_hex[] = "0700000000000000000000000000000000000000000000000000000000000000";
static const char other_hex[] = "0800000000000000000000000000000000000000000000000000000000000000";
static const uint8_t peer[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};
static const uint8_t here[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}, here6[16] = {[15] = 1};
static uint8_t roster[SITES * 32], secret[SITES][64];

struct call {
    struct fkt_request r;
    struct fkt_auth_request a;
    char header[FKT_AUTH_HEADER];
};

static struct fkt_request_check *check_of(const char *token, int local)
{
    const struct fkt_request_check_spec spec = {.roster = roster,
                                                .sites = SITES,
                                                .task = task,
                                                .nonce = nonce,
                                                .key = key,
                                                .token = token,
                                                .local = local,
                                                .in_max = 1000,
                                                .refusals_per_minute = 20,
                                                .requests_per_second = 5,
                                                .wait_seconds = 25};
    struct fkt_request_check *g;
    CHECK_OK(fkt_request_check_new(&g, &spec));
    return g;
}

/* A right request; tests bend it. */
static void call_init(struct call *c, uint32_t site, uint64_t seq, const char *method, const char *target,
                      const char *body)
{
    memset(c, 0, sizeof *c);
    c->a = (struct fkt_auth_request){task, nonce, seq, site, method, target, body, strlen(body)};
    fkt_auth_write(c->header, &c->a, secret[site % SITES]);
    c->r = (struct fkt_request){.method = method,
                                .target = target,
                                .authorization = c->header,
                                .task = task_hex,
                                .length = strlen(body),
                                .peer = peer};
}

static int run(struct fkt_request_check *g, struct call *c, uint64_t now, struct fkt_request_verdict *v)
{
    fkt_request_check_head(g, now, &c->r, v);
    fkt_request_check_admit(g, now, &c->r, c->a.body, c->a.len, v);
    return v->code;
}

static void expect(const struct fkt_request_verdict *v, int code, const char *title, int noted, enum fkt_refusal why)
{
    if (v->code != code || (title && strcmp(v->title, title) != 0))
        fail_msg("got %d '%s', want %d '%s'", v->code, v->title ? v->title : "", code, title);
    CHECK(v->noted == noted);
    if (noted) CHECK(v->why == why);
}

static void right_requests_come_in(void **state)
{
    struct fkt_request_check *g = check_of(NULL, 0);
    struct fkt_request_verdict v;
    struct call c;
    (void)state;
    call_init(&c, 1, 0, "POST", "/v1/messages", "hello");
    CHECK(run(g, &c, 0, &v) == 0 && v.site == 1 && v.target.what == FKT_TARGET_MESSAGES);
    call_init(&c, 1, 1, "GET", "/v1/messages?round=-&after=0&wait=99", "");
    CHECK(run(g, &c, 0, &v) == 0 && v.target.wait == 25 && v.target.any_round);
    call_init(&c, 2, INT64_C(1) << 53, "GET", "/v1/files/grid.png", "");
    CHECK(run(g, &c, 0, &v) == 0 && v.site == 2);
    fkt_request_check_free(g);
    fkt_request_check_free(NULL);
}

/* Each check in its place: what is wrong in two ways is refused for the first. */
static void refusals_in_their_order(void **state)
{
    struct fkt_request_check *g = check_of(NULL, 0);
    struct fkt_request_verdict v;
    struct call c;
    (void)state;
    call_init(&c, 1, 5, "POST", "/v1/message", "hello");
    run(g, &c, 0, &v), expect(&v, 404, "not-found", 0, 0);
    call_init(&c, 1, 5, "PUT", "/v1/messages", "hello");
    run(g, &c, 0, &v), expect(&v, 405, "method", 0, 0);
    assert_string_equal(v.allow, "GET, POST");
    call_init(&c, 1, 5, "POST", "/v1/messages?round=1", "hello");
    run(g, &c, 0, &v), expect(&v, 400, "malformed", 0, 0);
    call_init(&c, 1, 5, "POST", "/v1/messages", "hello"), c.r.authorization = NULL, c.r.task = NULL;
    run(g, &c, 0, &v), expect(&v, 400, "malformed", 1, FKT_REFUSAL_MALFORMED);
    CHECK(v.site == FKT_MAILBOX_NOBODY);
    call_init(&c, 1, 5, "POST", "/v1/messages", "hello"), c.r.task = "07";
    run(g, &c, 0, &v), expect(&v, 400, "malformed", 1, FKT_REFUSAL_MALFORMED);
    CHECK(v.site == 1);
    call_init(&c, SITES, 5, "POST", "/v1/messages", "hello"), c.r.task = other_hex;
    run(g, &c, 0, &v), expect(&v, 403, "other-task", 1, FKT_REFUSAL_OTHER_TASK); /* who has no task learns no roster */
    CHECK(!v.tell_nonce && v.site == FKT_MAILBOX_NOBODY);
    c.r.task = task_hex;
    run(g, &c, 0, &v), expect(&v, 401, "unknown-site", 1, FKT_REFUSAL_UNKNOWN_SITE);
    CHECK(v.tell_nonce && v.site == FKT_MAILBOX_NOBODY);
    call_init(&c, 1, 5, "POST", "/v1/messages", "hello"), c.r.task = other_hex, c.a.nonce = other_task;
    fkt_auth_write(c.header, &c.a, secret[1]);
    run(g, &c, 0, &v), expect(&v, 403, "other-task", 1, FKT_REFUSAL_OTHER_TASK);
    c.r.task = task_hex, c.r.length = FKT_REQUEST_CHUNKED;
    run(g, &c, 0, &v), expect(&v, 401, "nonce", 0, 0);
    CHECK(v.tell_nonce && !v.has_floor);
    call_init(&c, 1, 5, "POST", "/v1/messages", "hello"), c.r.length = FKT_REQUEST_CHUNKED;
    run(g, &c, 0, &v), expect(&v, 411, "length-required", 1, FKT_REFUSAL_MALFORMED);
    c.r.length = 1001, c.a.body = "hullo";
    run(g, &c, 0, &v), expect(&v, 413, "too-large", 1, FKT_REFUSAL_TOO_LARGE);
    CHECK(v.site == 1);
    c.r.length = 5;
    run(g, &c, 0, &v), expect(&v, 401, "signature", 1, FKT_REFUSAL_BAD_SIGNATURE);
    CHECK(v.tell_nonce);
    c.a.body = "hello";
    CHECK(run(g, &c, 0, &v) == 0);
    run(g, &c, 0, &v), expect(&v, 401, "replayed", 1, FKT_REFUSAL_REPLAYED);
    CHECK(v.has_floor && v.floor == 5 && v.tell_nonce);
    call_init(&c, 1, 1, "GET", "/v1/task", ""), c.r.length = 1;
    run(g, &c, 0, &v), expect(&v, 413, "too-large", 1, FKT_REFUSAL_TOO_LARGE);
    fkt_request_check_free(g);
}

/* A refusal is no use of a number: only a right signature is. */
static void an_unknown_peer_uses_up_nothing(void **state)
{
    struct fkt_request_check *g = check_of(NULL, 0);
    struct fkt_request_verdict v;
    struct call c;
    (void)state;
    call_init(&c, 0, INT64_MAX, "GET", "/v1/task", "");
    fkt_auth_write(c.header, &c.a, secret[1]);
    run(g, &c, 0, &v), expect(&v, 401, "signature", 1, FKT_REFUSAL_BAD_SIGNATURE);
    call_init(&c, 0, 3, "GET", "/v1/task", "");
    CHECK(run(g, &c, 0, &v) == 0);
    call_init(&c, 0, 2, "GET", "/v1/task", "");
    run(g, &c, 0, &v), expect(&v, 401, "replayed", 1, FKT_REFUSAL_REPLAYED);
    call_init(&c, 1, 2, "GET", "/v1/task", ""); /* another site's numbers are its own */
    CHECK(run(g, &c, 0, &v) == 0);
    fkt_request_check_free(g);
}

/* Whoever has the key of a site can use up numbers, but not so many that its owner has none left. */
static void a_thief_cannot_use_up_the_numbers(void **state)
{
    struct fkt_request_check *g = check_of(NULL, 0);
    struct fkt_request_verdict v;
    struct call c;
    uint64_t last = 0;
    (void)state;
    call_init(&c, 0, INT64_MAX, "GET", "/v1/task", "");
    run(g, &c, 0, &v), expect(&v, 401, "ahead", 0, 0);
    CHECK(v.has_floor && v.floor == 0 && v.tell_nonce && !v.blamed);
    call_init(&c, 0, 1795000000000000, "GET", "/v1/task", ""); /* microseconds since 1970 are taken */
    CHECK(run(g, &c, 0, &v) == 0);
    call_init(&c, 0, INT64_MAX, "GET", "/v1/task", "");
    run(g, &c, 1000, &v), expect(&v, 401, "ahead", 0, 0);
    CHECK(v.floor == 1795000000000000);
    for (int i = 1; i <= 40; i++) { /* the widest steps */
        last = 1795000000000000 + (uint64_t)i * (1 << 20);
        call_init(&c, 0, last + 1, "GET", "/v1/task", "");
        if (i == 40) run(g, &c, (uint64_t)i * 1000, &v), expect(&v, 401, "ahead", 0, 0);
        call_init(&c, 0, last, "GET", "/v1/task", "");
        CHECK(run(g, &c, (uint64_t)i * 1000, &v) == 0);
    }
    call_init(&c, 0, 1795000000000001, "GET", "/v1/task", ""); /* the owner, with its own number */
    run(g, &c, 50000, &v), expect(&v, 401, "replayed", 1, FKT_REFUSAL_REPLAYED);
    CHECK(v.floor == last);
    call_init(&c, 0, v.floor + 1, "GET", "/v1/task", "");
    CHECK(run(g, &c, 51000, &v) == 0);
    run(g, &c, 52000, &v), expect(&v, 401, "replayed", 1, FKT_REFUSAL_REPLAYED);
    fkt_request_check_free(g);
}

static void rates(void **state)
{
    struct fkt_request_check *g = check_of(NULL, 0);
    struct fkt_request_verdict v;
    struct call c;
    uint64_t seq = 0;
    (void)state;
    for (int i = 0; i < 5; i++) {
        call_init(&c, 0, seq++, "GET", "/v1/task", "");
        CHECK(run(g, &c, 1000, &v) == 0);
    }
    call_init(&c, 0, seq++, "GET", "/v1/task", "");
    run(g, &c, 1000, &v), expect(&v, 429, "too-often", 1, FKT_REFUSAL_TOO_OFTEN);
    CHECK(v.retry_seconds == 1 && v.site == 0);
    run(g, &c, 1000, &v), expect(&v, 401, "replayed", 1, FKT_REFUSAL_REPLAYED);
    call_init(&c, 0, seq++, "GET", "/v1/task", "");
    CHECK(run(g, &c, 1200, &v) == 0);
    call_init(&c, 1, 0, "GET", "/v1/task", "");
    CHECK(run(g, &c, 1200, &v) == 0);
    /* twenty refusals, of which one is spent above */
    for (int i = 0; i < 19; i++) {
        call_init(&c, 1, 0, "GET", "/nowhere", "");
        run(g, &c, 2000, &v), expect(&v, 404, "not-found", 0, 0);
    }
    run(g, &c, 2000, &v), expect(&v, 429, "too-often", 0, 0);
    CHECK(v.retry_seconds >= 1 && v.retry_seconds <= 3);
    c.r.target = "/healthz";
    CHECK(run(g, &c, 2000, &v) == 0);
    c.r.target = "/nowhere", c.r.peer = here;
    run(g, &c, 2000, &v), expect(&v, 404, "not-found", 0, 0); /* another address */
    call_init(&c, 1, 2, "GET", "/nowhere", "");
    run(g, &c, 2000 + 1000 * 3, &v), expect(&v, 404, "not-found", 0, 0);
    fkt_request_check_free(g);
}

static void use_up(struct fkt_request_check *g, uint64_t now)
{
    struct fkt_request_verdict v;
    struct call c;
    for (int i = 0; i < 20; i++) {
        call_init(&c, 1, 0, "GET", "/nowhere", "");
        run(g, &c, now, &v), expect(&v, 404, "not-found", 0, 0);
    }
    run(g, &c, now, &v), expect(&v, 429, "too-often", 0, 0);
}

/* Many sites share an address (NAT, a forwarder): a stranger among them does not lock them out. */
static void a_right_request_comes_in_from_a_bad_address(void **state)
{
    struct fkt_request_check *g = check_of("sesame", 0);
    struct fkt_request_verdict v;
    struct call c;
    (void)state;
    use_up(g, 1000);
    call_init(&c, 1, 1, "POST", "/v1/messages", "hello");
    CHECK(run(g, &c, 1000, &v) == 0 && v.site == 1);
    run(g, &c, 1000, &v), expect(&v, 401, "replayed", 1, FKT_REFUSAL_REPLAYED);
    call_init(&c, 1, 2, "POST", "/v1/messages", "hello"), c.a.body = "hullo";
    run(g, &c, 1000, &v), expect(&v, 429, "too-often", 0, 0); /* not in the log: who is told so may repeat it */
    CHECK(v.retry_seconds >= 1 && !v.tell_nonce);
    call_init(&c, 2, 1, "GET", "/v1/task", ""), c.a.nonce = other_task;
    fkt_auth_write(c.header, &c.a, secret[2]);
    run(g, &c, 1000, &v), expect(&v, 401, "nonce", 0, 0); /* a site that comes for the first time */
    call_init(&c, 2, 1, "GET", "/v1/task", ""), c.r.task = other_hex;
    run(g, &c, 1000, &v), expect(&v, 429, "too-often", 0, 0);
    call_init(&c, 0, 1, "GET", "/", ""), c.r.authorization = "Bearer sesame";
    CHECK(run(g, &c, 1000, &v) == 0);
    c.r.authorization = "Bearer sesam";
    run(g, &c, 1000, &v), expect(&v, 429, "too-often", 0, 0);
    fkt_request_check_free(g);
}

/* What signatures of bad addresses may cost is bounded, but not for a line on which the site has proven itself. */
static void checks_for_bad_addresses_are_bounded(void **state)
{
    struct fkt_request_check *g = check_of(NULL, 0);
    struct fkt_request_verdict v;
    struct call c;
    struct call bad;
    (void)state;
    use_up(g, 1000);
    call_init(&bad, 2, 1, "GET", "/v1/task", "");
    fkt_auth_write(bad.header, &bad.a, secret[1]);
    for (int i = 0; i < 100; i++) run(g, &bad, 1000, &v), expect(&v, 429, "too-often", 0, 0);
    call_init(&c, 1, 0, "GET", "/v1/task", "");
    CHECK(run(g, &c, 1000, &v) == 0);
    for (int i = 0; i < 1000; i++) run(g, &bad, 1000, &v), expect(&v, 429, "too-often", 0, 0);
    call_init(&c, 1, 1, "GET", "/v1/task", "");
    run(g, &c, 1000, &v), expect(&v, 429, "too-often", 0, 0);
    c.r.proven = 1; /* as site 0 */
    run(g, &c, 1000, &v), expect(&v, 429, "too-often", 0, 0);
    c.r.proven = 2;
    CHECK(run(g, &c, 1000, &v) == 0);
    call_init(&c, 1, 2, "GET", "/v1/task", "");
    CHECK(run(g, &c, 2000, &v) == 0); /* a second later */
    c.r.proven = 2;
    run(g, &c, 2000, &v), expect(&v, 401, "replayed", 1, FKT_REFUSAL_REPLAYED);
    CHECK(v.blamed);
    fkt_request_check_free(g);
}

/* A restart of the server must not use up anybody's budget. */
static void an_old_nonce_is_no_refusal(void **state)
{
    struct fkt_request_check *g = check_of(NULL, 0);
    struct fkt_request_verdict v;
    struct call c;
    (void)state;
    call_init(&c, 0, 1, "GET", "/v1/task", ""), c.a.nonce = other_task;
    fkt_auth_write(c.header, &c.a, secret[0]);
    for (int i = 0; i < 1000; i++) run(g, &c, 0, &v), expect(&v, 401, "nonce", 0, 0);
    fkt_request_check_free(g);
}

static const char *person_host = "localhost:8443";

static int person(struct fkt_request_check *g, const char *target, const char *authorization, const char *cookie,
                  const uint8_t *from)
{
    const struct fkt_request r = {.method = "GET",
                                  .target = target,
                                  .authorization = authorization,
                                  .cookie = cookie,
                                  .host = person_host,
                                  .peer = from};
    struct fkt_request_verdict v;
    static uint64_t now;
    fkt_request_check_head(g, now += 60000, &r, &v);
    fkt_request_check_admit(g, now, &r, NULL, 0, &v);
    CHECK(!v.noted && !v.tell_nonce);
    return v.code;
}

static void people(void **state)
{
    struct fkt_request_check *g = check_of("open sesame", 0), *local = check_of(NULL, 1), *none = check_of(NULL, 0);
    char cookie[200];
    (void)state;
    CHECK(person(g, "/", NULL, NULL, peer) == 401 && person(g, "/", NULL, NULL, here) == 401);
    CHECK(person(g, "/healthz", NULL, NULL, peer) == 0);
    CHECK(person(g, "/", "Bearer open sesame", NULL, peer) == 0);
    CHECK(person(g, "/", "Bearer open sesam", NULL, peer) == 401);
    CHECK(person(g, "/", "Bearer open sesame ", NULL, peer) == 401);
    CHECK(person(g, "/", "Bearer ", NULL, peer) == 401 && person(g, "/", "open sesame", NULL, peer) == 401);
    CHECK(person(g, "/login?token=open sesame", NULL, NULL, peer) == 0);
    CHECK(person(g, "/login?token=", NULL, NULL, peer) == 401);
    snprintf(cookie, sizeof cookie, "fedkt=%s", fkt_request_check_cookie(g));
    CHECK(strlen(cookie) == 70 && person(g, "/events", NULL, cookie, peer) == 0);
    snprintf(cookie, sizeof cookie, "a=b; fedkt=x; fedkt=%s; c=d", fkt_request_check_cookie(g));
    CHECK(person(g, "/files/grid.png", NULL, cookie, peer) == 0);
    cookie[20] ^= 1;
    CHECK(person(g, "/", NULL, cookie, peer) == 401);
    CHECK(person(g, "/", NULL, "fedkt=open sesame", peer) == 401 && person(g, "/", NULL, ";;; ;fedkt=", peer) == 401);
    CHECK(person(local, "/", NULL, NULL, here) == 0 && person(local, "/metrics", NULL, NULL, here6) == 0);
    CHECK(person(local, "/", NULL, NULL, peer) == 401);
    person_host = "evil.example";
    CHECK(person(local, "/", NULL, NULL, here) == 401 && person(local, "/healthz", NULL, NULL, here) == 0);
    person_host = NULL;
    CHECK(person(local, "/", NULL, NULL, here) == 401);
    person_host = "localhost:8443";
    CHECK(person(none, "/", NULL, NULL, here) == 401 && person(none, "/", "Bearer ", "fedkt=", here) == 401);
    CHECK(person(none, "/login?token=", NULL, NULL, here) == 401);
    fkt_request_check_free(g);
    fkt_request_check_free(local);
    fkt_request_check_free(none);
}

static void answers_of_refusals(void **state)
{
    struct fkt_request_check *g = check_of(NULL, 0);
    struct fkt_request_verdict v;
    struct fkt_answer a;
    struct call c;
    (void)state;
    memset(&a, 0, sizeof a);
    call_init(&c, 1, 7, "GET", "/v1/task", "");
    CHECK(run(g, &c, 0, &v) == 0);
    run(g, &c, 0, &v);
    fkt_answer_refusal(&a, &v, nonce);
    CHECK(a.code == 401 && a.headers == 3);
    assert_string_equal(a.type, "application/problem+json");
    assert_string_equal(a.body,
                        "{\"type\": \"about:blank\", \"title\": \"replayed\", \"status\": 401, \"detail\": \"this "
                        "sequence number has been used, or a later one\"}\n");
    CHECK(a.len == strlen(a.body));
    assert_string_equal(a.header[0].name, "Fedkt-Nonce");
    assert_string_equal(a.header[0].value, "01020000000000000000000000000000");
    assert_string_equal(a.header[2].name, "Fedkt-Floor");
    assert_string_equal(a.header[2].value, "7");
    fkt_answer_clear(&a);
    fkt_answer_problem(&a, 422, "false", "a \"quote\", a \\, a\nline and \x1b[31m");
    assert_string_equal(strstr(a.body, "detail"), "detail\": \"a  quote , a  , a line and  [31m\"}\n");
    fkt_answer_clear(&a);
    fkt_request_check_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_requests_come_in),
        cmocka_unit_test(refusals_in_their_order),
        cmocka_unit_test(an_unknown_peer_uses_up_nothing),
        cmocka_unit_test(a_thief_cannot_use_up_the_numbers),
        cmocka_unit_test(rates),
        cmocka_unit_test(a_right_request_comes_in_from_a_bad_address),
        cmocka_unit_test(checks_for_bad_addresses_are_bounded),
        cmocka_unit_test(an_old_nonce_is_no_refusal),
        cmocka_unit_test(people),
        cmocka_unit_test(answers_of_refusals),
    };
    for (int i = 0; i < SITES; i++) {
        const uint8_t seed[32] = {(uint8_t)(i + 1)};
        fkt_sign_keypair(roster + 32 * i, secret[i], seed);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
