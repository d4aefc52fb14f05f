/* SPDX-License-Identifier: Apache-2.0 */
/* A courier's conversations, answer by answer, honest and hostile. The site side is a puppet that writes down what it
 * hears. */
#include "net/http_client.h"

#include "base/text.h"
#include "crypto/sign.h"
#include "tests/support/sweep.h"

#define HEX32 "00112233445566778899aabbccddeeff"
#define HEX64 HEX32 HEX32
#define NONCE "0123456789abcdef0123456789abcdef"

struct puppet {
    unsigned wants;
    uint8_t round[FKT_MAILBOX_ROUND];
    uint32_t after;
    char heard[512]; /* one word for each call */
    int answers;     /* 1: a letter is answered */
    fkt_status fails;
};

static void note(struct puppet *p, const char *word)
{
    size_t n = strlen(p->heard);
    snprintf(p->heard + n, sizeof p->heard - n, "%s%s", n ? " " : "", word);
}

static unsigned wants(void *self) { return ((struct puppet *)self)->wants; }

static void has(void *self, uint8_t round[FKT_MAILBOX_ROUND], uint32_t *after)
{
    struct puppet *p = self;
    memcpy(round, p->round, FKT_MAILBOX_ROUND);
    *after = p->after;
}

static fkt_status send(void *self, uint8_t *out, size_t cap, size_t *len)
{
    struct puppet *p = self;
    CHECK(cap >= 5);
    memcpy(out, "hello", *len = 5);
    return p->fails ? fkt_fail(p->fails, "the puppet fails") : FKT_OK;
}

static fkt_status sent(void *self, int taken)
{
    struct puppet *p = self;
    note(p, taken ? "taken" : "unwanted");
    p->wants = FKT_ENDPOINT_RECV;
    return FKT_OK;
}

static fkt_status recv(void *self, const struct fkt_message *l)
{
    struct puppet *p = self;
    char word[64];
    snprintf(word, sizeof word, "%s%s%d", fkt_stage_name(l->stage),
             l->lost  ? "!"
             : l->len ? "+"
                      : "-",
             l->lost ? (int)l->lost : (int)l->len);
    note(p, word);
    if (l->len) {
        memcpy(p->round, l->round, sizeof p->round);
        p->after = l->index;
        if (p->answers) p->wants = FKT_ENDPOINT_SEND;
    }
    if (l->stage >= FKT_STAGE_RELEASED) p->wants = FKT_ENDPOINT_ENDED;
    return p->fails ? fkt_fail(p->fails, "the puppet fails") : FKT_OK;
}

static fkt_status heard_head(void *self, uint64_t entry, const char *sha256)
{
    char word[32];
    snprintf(word, sizeof word, "head%llu%.2s", (unsigned long long)entry, sha256);
    note(self, word);
    return FKT_OK;
}

struct scene {
    struct puppet p;
    struct fkt_endpoint side;
    struct fkt_http_client *c;
    uint8_t key[32], secret[64], task[32];
    uint64_t now;
    struct fkt_http_client_request asked;
};

static void open_scene(struct scene *s, unsigned want, uint32_t patience)
{
    static const uint8_t seed[32] = {7};
    memset(s, 0, sizeof *s);
    fkt_sign_keypair(s->key, s->secret, seed);
    memset(s->task, 0xAB, sizeof s->task);
    s->p.wants = want;
    s->side = (struct fkt_endpoint){&s->p, 64, wants, has, send, sent, recv, heard_head};
    s->now = 5000000;
    CHECK_OK(fkt_http_client_new(&s->c, &(struct fkt_http_client_spec){.task = s->task,
                                                                       .site = 3,
                                                                       .secret = s->secret,
                                                                       .site_side = &s->side,
                                                                       .patience_seconds = patience,
                                                                       .clock = 1000}));
}

/* The next request, after the pause that is due, which is given back. It must be signed as the site signs. */
static uint32_t ask(struct scene *s, uint32_t random)
{
    uint32_t wait = 0, all = 0;
    enum fkt_http_client_step step;
    struct fkt_auth_claim claim;
    while ((step = fkt_http_client_next(s->c, s->now, random, &s->asked, &wait)) == FKT_HTTP_CLIENT_WAIT) {
        CHECK(wait > 0);
        s->now += wait;
        all += wait;
    }
    assert_int_equal(step, FKT_HTTP_CLIENT_REQUEST);
    CHECK(fkt_auth_read(&claim, s->asked.headers[0] + strlen("Authorization: ")));
    assert_int_equal(claim.site, 3);
    CHECK(fkt_auth_right(&claim,
                         &(struct fkt_auth_request){.task = s->task,
                                                    .method = s->asked.method,
                                                    .target = s->asked.target,
                                                    .body = s->asked.body,
                                                    .len = s->asked.len},
                         s->key));
    return all;
}

static fkt_status answer(struct scene *s, struct fkt_http_client_answer a)
{
    s->now += 2000;
    return fkt_http_client_answer(s->c, s->now, &a);
}

static uint64_t sequence_of(const struct scene *s)
{
    struct fkt_auth_claim claim;
    CHECK(fkt_auth_read(&claim, s->asked.headers[0] + strlen("Authorization: ")));
    return claim.sequence;
}

#define PROBLEM(word)                                                                                                  \
    .body = (const uint8_t *)"{\"title\": \"" word "\"}", .len = sizeof "{\"title\": \"" word "\"}" - 1

static void a_whole_conversation(void **state)
{
    struct scene s;
    struct fkt_auth_claim claim;
    uint32_t wait;
    (void)state;
    open_scene(&s, FKT_ENDPOINT_RECV, 0);
    assert_int_equal(ask(&s, 1), 0);
    assert_string_equal(s.asked.method, "GET");
    assert_string_equal(s.asked.target, "/v1/messages?round=-&after=0&wait=25");
    CHECK(s.asked.timeout_seconds > 25 && s.asked.len == 0);
    assert_int_equal(sequence_of(&s), 1001);
    CHECK_OK(answer(&s, (struct fkt_http_client_answer){.code = 401, .nonce = NONCE, PROBLEM("nonce")}));
    assert_int_equal(ask(&s, 1), 0); /* at once, under the nonce it was told */
    CHECK(fkt_auth_read(&claim, s.asked.headers[0] + strlen("Authorization: ")));
    assert_int_equal(claim.nonce[0], 0x01);
    CHECK_OK(answer(
        &s, (struct fkt_http_client_answer){.code = 401, .nonce = NONCE, .floor = "70000", PROBLEM("replayed")}));
    assert_int_equal(ask(&s, 1), 0);
    assert_int_equal(sequence_of(&s), 70001);
    CHECK_OK(
        answer(&s, (struct fkt_http_client_answer){.code = 401, .nonce = NONCE, .floor = "600", PROBLEM("ahead")}));
    assert_int_equal(ask(&s, 1), 0); /* its own number was too far ahead: on with the server's */
    assert_int_equal(sequence_of(&s), 601);
    s.p.wants = FKT_ENDPOINT_SEND; /* as if the letter asked for something */
    CHECK_OK(answer(&s, (struct fkt_http_client_answer){.code = 200,
                                                        .body = (const uint8_t *)"abc",
                                                        .len = 3,
                                                        .round = HEX32,
                                                        .index = "2",
                                                        .stage = "running",
                                                        .log = "12:" HEX64}));
    assert_string_equal(s.p.heard, "head1200 running+3");
    assert_int_equal(ask(&s, 1), 0);
    assert_string_equal(s.asked.method, "POST");
    assert_string_equal(s.asked.target, "/v1/messages");
    assert_string_equal(s.asked.headers[2], "Content-Type: application/x-protobuf");
    assert_int_equal(s.asked.len, 5);
    CHECK_OK(answer(&s, (struct fkt_http_client_answer){.code = 204, .stage = "running"}));
    assert_string_equal(s.p.heard, "head1200 running+3 taken running-0");
    assert_int_equal(ask(&s, 1), 0);
    assert_string_equal(s.asked.target, "/v1/messages?round=" HEX32 "&after=2&wait=25");
    CHECK_OK(answer(&s, (struct fkt_http_client_answer){.code = 410, .stage = "released"}));
    assert_int_equal(fkt_http_client_next(s.c, s.now, 1, &s.asked, &wait), FKT_HTTP_CLIENT_ENDED);
    CHECK_OK(fkt_http_client_status(s.c));
    fkt_http_client_free(s.c);
}

/* A server that is full of strangers' messages has room for one by a connection that has brought a signature. */
static void no_room_for_a_message(void **state)
{
    struct scene s;
    (void)state;
    open_scene(&s, FKT_ENDPOINT_SEND, 0);
    CHECK(fkt_unhex(s.p.round, HEX32, sizeof s.p.round));
    s.p.after = 2;
    ask(&s, 1);
    assert_string_equal(s.asked.method, "POST");
    CHECK_OK(answer(&s, (struct fkt_http_client_answer){.code = 503, .retry_after = "2"}));
    CHECK(ask(&s, 1) >= 2000);
    assert_string_equal(s.asked.target, "/v1/messages?round=" HEX32 "&after=4294967295&wait=0");
    CHECK_OK(answer(&s, (struct fkt_http_client_answer){.code = 503, .retry_after = "2"}));
    CHECK(ask(&s, 1) >= 2000);
    assert_string_equal(s.asked.method, "GET");
    CHECK_OK(answer(&s, (struct fkt_http_client_answer){.code = 401, .nonce = NONCE, PROBLEM("nonce")}));
    assert_int_equal(ask(&s, 1), 0);
    assert_string_equal(s.asked.method, "GET");
    CHECK_OK(answer(&s, (struct fkt_http_client_answer){.code = 200, .stage = "nonsense", .body = s.task, .len = 3}));
    assert_string_equal(s.p.heard, ""); /* what it brings is asked for again in its time */
    assert_int_equal(ask(&s, 1), 0);
    assert_string_equal(s.asked.method, "POST");
    CHECK(fkt_http_client_trouble(s.c)[0]);
    CHECK_OK(answer(&s, (struct fkt_http_client_answer){.code = 204, .stage = "running"}));
    assert_string_equal(s.p.heard, "taken running-0");
    CHECK(!fkt_http_client_trouble(s.c)[0]);
    fkt_http_client_free(s.c);
}

/* What each answer does: what the site hears, and whether there is a pause before the next request. */
static const struct {
    unsigned want;
    struct fkt_http_client_answer a;
    const char *heard;
    uint32_t least, most; /* of the pause, with the largest draw */
    const char *trouble;
} meanings[] = {
    {FKT_ENDPOINT_SEND, {.code = 409, .stage = "running"}, "unwanted running-0", 0, 0, ""},
    {FKT_ENDPOINT_SEND, {.code = 422, .stage = "running", .lost = "41"}, "unwanted running!41", 0, 0, ""},
    {FKT_ENDPOINT_SEND, {.code = 422, .stage = "running"}, "unwanted running!40", 0, 0, ""},
    {FKT_ENDPOINT_SEND, {.code = 0, .why = "refused"}, "", 1, 500, "the server cannot be reached: refused"},
    {FKT_ENDPOINT_SEND, {.code = 0, .why = "a\033[2Jb"}, "", 1, 500, "the server cannot be reached: a?[2Jb"},
    {FKT_ENDPOINT_SEND,
     {.code = 0, .wrong_key = 1, .why = "pin"},
     "",
     1,
     500,
     "what answers at the server's address has another key than the task names, and was sent nothing"},
    {FKT_ENDPOINT_SEND, {.code = 500}, "", 1, 500, "the server is in trouble"},
    {FKT_ENDPOINT_SEND, {.code = 302}, "", 1, 500, "no fedkt server answers here"},
    {FKT_ENDPOINT_SEND, {.code = 404}, "", 1, 500, "no fedkt server answers here"},
    {FKT_ENDPOINT_SEND, {.code = 429, .retry_after = "7"}, "", 7000, 7999, "the server asks this site to slow down"},
    {FKT_ENDPOINT_SEND, {.code = 503, .retry_after = "0"}, "", 1, 999, "the server is busy"},
    {FKT_ENDPOINT_SEND, {.code = 503, .retry_after = "100000"}, "", 1, 500, "the server is busy"},
    {FKT_ENDPOINT_SEND, {.code = 503, .retry_after = "-1"}, "", 1, 500, "the server is busy"},
    {FKT_ENDPOINT_SEND, {.code = 503}, "", 1, 500, "the server is busy"},
    {FKT_ENDPOINT_SEND, {.code = 200, .stage = "running"}, "", 1, 500, NULL},
    {FKT_ENDPOINT_SEND, {.code = 204}, "", 1, 500, "the server's answer cannot be read: Fedkt-Stage"},
    {FKT_ENDPOINT_SEND, {.code = 204, .stage = "Running"}, "", 1, 500, NULL},
    {FKT_ENDPOINT_SEND, {.code = 410, .stage = "running"}, "", 1, 500, NULL},
    {FKT_ENDPOINT_RECV, {.code = 409, .stage = "running"}, "", 1, 500, NULL},
    {FKT_ENDPOINT_RECV, {.code = 204, .stage = "gathering"}, "gathering-0", 0, 0, ""},
    {FKT_ENDPOINT_RECV, {.code = 204, .stage = "running", .lost = "24"}, "running!24", 1000, 2000, ""},
    {FKT_ENDPOINT_RECV, {.code = 204, .stage = "running", .lost = "0"}, "", 1, 500, NULL},
    {FKT_ENDPOINT_RECV, {.code = 204, .stage = "running", .lost = "4x"}, "", 1, 500, NULL},
    {FKT_ENDPOINT_RECV, {.code = 204, .stage = "running", .log = "0:" HEX64}, "", 1, 500, NULL},
    {FKT_ENDPOINT_RECV, {.code = 204, .stage = "running", .log = "1:" HEX32}, "", 1, 500, NULL},
    {FKT_ENDPOINT_RECV, {.code = 204, .stage = "running", .log = HEX64}, "", 1, 500, NULL},
    {FKT_ENDPOINT_RECV,
     {.code = 204, .stage = "running", .log = "123456789012345678901234567890:" HEX64},
     "",
     1,
     500,
     NULL},
    {FKT_ENDPOINT_RECV, {.code = 200, .stage = "running", .round = HEX32, .index = "1"}, "", 1, 500, NULL},
    {FKT_ENDPOINT_RECV,
     {.code = 200, .stage = "running", .index = "1", .body = (const uint8_t *)"x", .len = 1},
     "",
     1,
     500,
     NULL},
    {FKT_ENDPOINT_RECV,
     {.code = 200, .stage = "running", .round = HEX64, .index = "1", .body = (const uint8_t *)"x", .len = 1},
     "",
     1,
     500,
     NULL},
    {FKT_ENDPOINT_RECV,
     {.code = 200, .stage = "running", .round = HEX32, .index = "0", .body = (const uint8_t *)"x", .len = 1},
     "",
     1,
     500,
     NULL},
    {FKT_ENDPOINT_RECV,
     {.code = 200, .stage = "running", .round = HEX32, .index = "4294967296", .body = (const uint8_t *)"x", .len = 1},
     "",
     1,
     500,
     NULL},
    {FKT_ENDPOINT_RECV, {.code = 401}, "", 1, 500, NULL},
    {FKT_ENDPOINT_RECV, {.code = 401, .nonce = "0123"}, "", 1, 500, NULL},
    {FKT_ENDPOINT_RECV, {.code = 401, .floor = "99999999999999999999"}, "", 1, 500, NULL},
    {FKT_ENDPOINT_RECV, {.code = 401, .floor = "3"}, "", 1, 500, NULL},
    {FKT_ENDPOINT_RECV, {.code = 401, .body = (const uint8_t *)"[[[[", .len = 4}, "", 1, 500, NULL},
};

static void what_answers_mean(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
        struct scene s;
        uint32_t pause;
        open_scene(&s, meanings[i].want, 0);
        (void)ask(&s, 1);
        CHECK_OK(answer(&s, meanings[i].a));
        if (strcmp(s.p.heard, meanings[i].heard) != 0) fail_msg("row %zu: heard '%s'", i, s.p.heard);
        if (meanings[i].trouble && strcmp(fkt_http_client_trouble(s.c), meanings[i].trouble) != 0)
            fail_msg("row %zu: '%s'", i, fkt_http_client_trouble(s.c));
        if (!meanings[i].trouble) CHECK(strstr(fkt_http_client_trouble(s.c), "cannot be read"));
        pause = ask(&s, 1717171999);
        if (pause < meanings[i].least || pause > meanings[i].most) fail_msg("row %zu: a pause of %u ms", i, pause);
        fkt_http_client_free(s.c);
    }
}

static void what_ends_it(void **state)
{
    static const struct {
        struct fkt_http_client_answer a;
        fkt_status status;
        const char *sentence;
    } rows[] = {
        {{.code = 400}, FKT_E_STATE, "cannot read the requests"},
        {{.code = 403, PROBLEM("other-task")}, FKT_E_MISMATCH, "another task"},
        {{.code = 413}, FKT_E_STATE, "5 bytes too long"},
        {{.code = 401, PROBLEM("signature")}, FKT_E_PEER_AUTH, "signature of site 3"},
        {{.code = 401, PROBLEM("unknown-site")}, FKT_E_PEER_AUTH, "no site 3"},
    };
    uint32_t wait;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scene s;
        open_scene(&s, FKT_ENDPOINT_SEND, 0);
        (void)ask(&s, 1);
        CHECK_STATUS(answer(&s, rows[i].a), rows[i].status);
        CHECK(strstr(fkt_error_text(), rows[i].sentence));
        CHECK(fkt_error_hint()[0]);
        assert_int_equal(fkt_http_client_next(s.c, s.now, 1, &s.asked, &wait), FKT_HTTP_CLIENT_ENDED);
        CHECK_STATUS(fkt_http_client_status(s.c), rows[i].status);
        CHECK(strstr(fkt_error_text(), rows[i].sentence));
        CHECK_STATUS(answer(&s, rows[0].a), FKT_E_STATE);
        fkt_http_client_free(s.c);
    }
}

/* Ceilings of 0.5, 1, 2, 4, 8, 15, 15 seconds, and the draw decides how much of them. */
static void pauses_grow_and_stop_growing(void **state)
{
    static const uint32_t ceiling[] = {500, 1000, 2000, 4000, 8000, 15000, 15000, 15000};
    struct scene s;
    (void)state;
    open_scene(&s, FKT_ENDPOINT_RECV, 0);
    (void)ask(&s, 0);
    for (size_t i = 0; i < sizeof ceiling / sizeof *ceiling; i++) {
        CHECK_OK(answer(&s, (struct fkt_http_client_answer){.code = 0}));
        assert_int_equal(ask(&s, 3 * (ceiling[i] + 1) + ceiling[i]), ceiling[i]);
        CHECK_OK(answer(&s, (struct fkt_http_client_answer){.code = 0}));
        CHECK_OK(answer(&s, (struct fkt_http_client_answer){.code = 204, .stage = "gathering"}));
        assert_string_equal(fkt_http_client_trouble(s.c), "");
        (void)ask(&s, 0);
        for (size_t j = 0; j <= i; j++) { /* up to the same place again */
            CHECK_OK(answer(&s, (struct fkt_http_client_answer){.code = 0}));
            assert_int_equal(ask(&s, 0), 0);
        }
    }
    fkt_http_client_free(s.c);
}

static void patience_ends(void **state)
{
    struct scene s;
    fkt_status st = FKT_OK;
    int n = 0;
    (void)state;
    open_scene(&s, FKT_ENDPOINT_RECV, 10);
    (void)ask(&s, 0);
    for (; st == FKT_OK && n < 100; n++) {
        st = answer(&s, (struct fkt_http_client_answer){.code = 0, .why = "no route"});
        if (st == FKT_OK) (void)ask(&s, 0);
    }
    assert_int_equal(st, FKT_E_IO);
    CHECK(strstr(fkt_error_text(), "given up after 10 seconds: the server cannot be reached: no route"));
    assert_int_equal(n, 7); /* each answer takes two seconds */
    fkt_http_client_free(s.c);
}

/* A server that always has a new nonce, or answers at once with nothing, is not asked in a tight loop. */
static void no_tight_loops(void **state)
{
    struct scene s;
    uint32_t pause = 0;
    (void)state;
    open_scene(&s, FKT_ENDPOINT_RECV, 0);
    (void)ask(&s, 0);
    for (int i = 0; i < 8; i++) {
        char nonce[33] = NONCE;
        nonce[0] = (char)('0' + i);
        nonce[1] = 'f';
        CHECK_OK(answer(&s, (struct fkt_http_client_answer){.code = 401, .nonce = nonce}));
        pause += ask(&s, 400);
    }
    CHECK(pause >= 4 * 400);
    CHECK_OK(fkt_http_client_answer(s.c, s.now, &(struct fkt_http_client_answer){.code = 204, .stage = "gathering"}));
    CHECK(ask(&s, 0) >= 1000);
    for (int i = 0; i < 2; i++) { /* the same letter again and again */
        CHECK_OK(fkt_http_client_answer(s.c, s.now,
                                        &(struct fkt_http_client_answer){.code = 200,
                                                                         .stage = "running",
                                                                         .round = HEX32,
                                                                         .index = "1",
                                                                         .body = (const uint8_t *)"x",
                                                                         .len = 1}));
        CHECK(ask(&s, 0) >= 1000);
    }
    fkt_http_client_free(s.c);
}

/* Letters that lead to nothing, each with another place: the pauses grow, however long an answer took. One that the
 * site answers is followed at once. */
static void messages_of_no_use(void **state)
{
    struct scene s;
    (void)state;
    open_scene(&s, FKT_ENDPOINT_RECV, 0);
    (void)ask(&s, 0);
    for (uint32_t i = 1; i < 12; i++) {
        char round[33] = HEX32, index[12];
        uint32_t pause;
        snprintf(index, sizeof index, "%u", i);
        round[0] = (char)('0' + i % 10);
        CHECK_OK(answer(&s, (struct fkt_http_client_answer){.code = 200,
                                                            .stage = "running",
                                                            .round = round,
                                                            .index = index,
                                                            .body = (const uint8_t *)"x",
                                                            .len = 1}));
        pause = ask(&s, UINT32_MAX);
        CHECK(pause >= 1000 && pause < 18000);
        if (i > 4) CHECK(pause > 7000); /* 2^32 - 1 is not far from a multiple of what it is divided by */
    }
    s.p.answers = 1;
    CHECK_OK(answer(
        &s,
        (struct fkt_http_client_answer){
            .code = 200, .stage = "running", .round = HEX32, .index = "99", .body = (const uint8_t *)"x", .len = 1}));
    assert_int_equal(ask(&s, 0), 0);
    assert_string_equal(s.asked.method, "POST");
    fkt_http_client_free(s.c);
}

/* A clock that goes back must not leave the courier waiting for the time that was. */
static void the_clock_goes_back(void **state)
{
    struct scene s;
    uint32_t wait;
    (void)state;
    open_scene(&s, FKT_ENDPOINT_RECV, 0);
    (void)ask(&s, 0);
    CHECK_OK(answer(&s, (struct fkt_http_client_answer){.code = 429, .retry_after = "300"}));
    assert_int_equal(fkt_http_client_next(s.c, s.now, 0, &s.asked, &wait), FKT_HTTP_CLIENT_WAIT);
    assert_int_equal(fkt_http_client_next(s.c, s.now - 4000000, 0, &s.asked, &wait), FKT_HTTP_CLIENT_REQUEST);
    fkt_http_client_free(s.c);
}

static void the_site_side_fails(void **state)
{
    struct scene s;
    uint32_t wait;
    (void)state;
    open_scene(&s, FKT_ENDPOINT_RECV, 0);
    (void)ask(&s, 0);
    s.p.fails = FKT_E_BUDGET;
    CHECK_STATUS(answer(&s, (struct fkt_http_client_answer){.code = 204, .stage = "running"}), FKT_E_BUDGET);
    CHECK_STATUS(fkt_http_client_status(s.c), FKT_E_BUDGET);
    fkt_http_client_free(s.c);
    open_scene(&s, FKT_ENDPOINT_SEND, 0);
    s.p.fails = FKT_E_STATE;
    assert_int_equal(fkt_http_client_next(s.c, s.now, 0, &s.asked, &wait), FKT_HTTP_CLIENT_ENDED);
    CHECK_STATUS(fkt_http_client_status(s.c), FKT_E_STATE);
    fkt_http_client_free(s.c);
}

/* An answer to a request for a file: 1 when it is to be asked for again, after a pause of at least `least`. */
static int fetched(struct scene *s, struct fkt_http_client_answer a, uint32_t least)
{
    uint32_t wait = 0;
    int again;
    CHECK_OK(fkt_http_client_fetched(s->c, s->now, &a, &again));
    if (again) CHECK(fkt_http_client_pause(s->c, s->now, UINT32_MAX - 1, &wait) == (least > 0) && wait >= least);
    s->now += wait;
    return again;
}

static void files_are_asked_for_under_the_same_name(void **state)
{
    struct scene s;
    int again;
    (void)state;
    open_scene(&s, FKT_ENDPOINT_ENDED, 0);
    fkt_http_client_get(s.c, "/v1/files/transparency.jsonl", &s.asked);
    assert_string_equal(s.asked.target, "/v1/files/transparency.jsonl");
    assert_int_equal(sequence_of(&s), 1001);
    CHECK(fetched(&s, (struct fkt_http_client_answer){.code = 401, .nonce = NONCE, PROBLEM("nonce")}, 0));
    CHECK(fetched(&s, (struct fkt_http_client_answer){.code = 401, .floor = "5000", PROBLEM("replayed")}, 0));
    fkt_http_client_get(s.c, "/v1/files/transparency.jsonl", &s.asked);
    assert_int_equal(sequence_of(&s), 5001);
    CHECK(fetched(&s, (struct fkt_http_client_answer){.code = 503, .retry_after = "7"}, 7000));
    CHECK(fetched(&s, (struct fkt_http_client_answer){.code = 0, .wrong_key = 1}, 1));
    CHECK(strstr(fkt_http_client_trouble(s.c), "another key") && strstr(fkt_http_client_trouble(s.c), "sent nothing"));
    CHECK(!fetched(&s, (struct fkt_http_client_answer){.code = 200}, 0));
    assert_string_equal(fkt_http_client_trouble(s.c), "");
    CHECK_STATUS(fkt_http_client_fetched(s.c, s.now, &(struct fkt_http_client_answer){.code = 404}, &again),
                 FKT_E_STATE);
    CHECK_STATUS(fkt_http_client_fetched(s.c, s.now, &(struct fkt_http_client_answer){.code = 403}, &again),
                 FKT_E_MISMATCH);
    fkt_http_client_free(s.c);
}

static struct scene swept;

static fkt_status make(void)
{
    struct fkt_http_client *c = NULL;
    fkt_status st = fkt_http_client_new(
        &c, &(struct fkt_http_client_spec){.task = swept.task, .secret = swept.secret, .site_side = &swept.side});
    fkt_http_client_free(c);
    return st;
}

static void memory_runs_out(void **state)
{
    (void)state;
    open_scene(&swept, FKT_ENDPOINT_SEND, 0);
    CHECK(sweep_allocations(make, NULL) > 2);
    fkt_http_client_free(swept.c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_conversation),  cmocka_unit_test(what_answers_mean),
        cmocka_unit_test(what_ends_it),          cmocka_unit_test(pauses_grow_and_stop_growing),
        cmocka_unit_test(patience_ends),         cmocka_unit_test(no_tight_loops),
        cmocka_unit_test(messages_of_no_use),    cmocka_unit_test(the_clock_goes_back),
        cmocka_unit_test(the_site_side_fails),   cmocka_unit_test(files_are_asked_for_under_the_same_name),
        cmocka_unit_test(no_room_for_a_message), cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
