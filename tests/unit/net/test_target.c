/* SPDX-License-Identifier: Apache-2.0 */
#include "net/target.h"
#include "tests/support/check.h"

#define ROUND "00112233445566778899aabbccddeeff"

static void forms_of_ours(void **state)
{
    struct fkt_target t;
    (void)state;
    fkt_target_read(&t, "/v1/messages?round=-&after=0&wait=25");
    CHECK(t.what == FKT_TARGET_POLL && t.any_round && t.after == 0 && t.wait == 25);
    fkt_target_read(&t, "/v1/messages?round=" ROUND "&after=4294967295&wait=0");
    CHECK(t.what == FKT_TARGET_POLL && !t.any_round && t.after == UINT32_MAX && t.wait == 0);
    CHECK(t.round[0] == 0 && t.round[1] == 0x11 && t.round[15] == 0xff);
    fkt_target_read(&t, "/v1/files/transparency.jsonl");
    CHECK(t.what == FKT_TARGET_FILE && strcmp(t.name, "transparency.jsonl") == 0 && fkt_target_signed(&t));
    fkt_target_read(&t, "/files/release.safetensors");
    CHECK(t.what == FKT_TARGET_DOWNLOAD && strcmp(t.name, "release.safetensors") == 0 && !fkt_target_signed(&t));
    fkt_target_read(&t, "/login?token=abc");
    CHECK(t.what == FKT_TARGET_LOGIN && strcmp(t.token, "abc") == 0 && !fkt_target_signed(&t));
    fkt_target_read(&t, "/");
    CHECK(t.what == FKT_TARGET_PAGE);
    fkt_target_read(&t, "/v1/messages");
    CHECK(t.what == FKT_TARGET_MESSAGES && fkt_target_signed(&t));
    fkt_target_read(&t, "/healthz");
    CHECK(t.what == FKT_TARGET_HEALTH);
}

static void what_is_written_otherwise_is_none(void **state)
{
    static const char *const none[] = {
        "",
        "*",
        "//",
        "/v1",
        "/v1/",
        "/v1/messages/",
        "/V1/messages",
        "/v1//messages",
        "/%761/messages",
        "/v1/files/",
        "/v1/files/../state/tls.key",
        "/v1/files/..%2ftls.key",
        "/v1/files/transparency.jsonl/",
        "/v1/files/transparency.jsonl?x",
        "/v1/files/transparency.json",
        "/v1/files//transparency.jsonl",
        "/v1/task?x=1",
        "/?",
        "/index.html",
        "/login",
        "/login?",
        "/files/grid.png%00",
        "/files/tls.key",
        "http://host/",
        "/healthz?",
        "/events ",
        " /",
    };
    static const char *const bent[] = {
        "/v1/messages?",
        "/v1/messages?round=-",
        "/v1/messages?round=-&after=0",
        "/v1/messages?round=-&after=0&wait=",
        "/v1/messages?round=-&after=&wait=1",
        "/v1/messages?round=-&after=0&wait=1&",
        "/v1/messages?round=-&after=00&wait=1",
        "/v1/messages?round=-&after=4294967296&wait=1",
        "/v1/messages?round=-&after=99999999999999999999&wait=1",
        "/v1/messages?round=-&after=+1&wait=1",
        "/v1/messages?round=-&after=-1&wait=1",
        "/v1/messages?round=-&after=1&wait= 1",
        "/v1/messages?round=&after=1&wait=1",
        "/v1/messages?round=--&after=1&wait=1",
        "/v1/messages?round=00&after=1&wait=1",
        "/v1/messages?round=" ROUND "0&after=1&wait=1",
        "/v1/messages?round=00112233445566778899AABBCCDDEEFF&after=1&wait=1",
        "/v1/messages?after=1&round=-&wait=1",
        "/v1/messages?round=-&wait=1&after=1",
        "/v1/messages?x&round=-&after=0&wait=25",
    };
    struct fkt_target t;
    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        fkt_target_read(&t, none[i]);
        if (t.what != FKT_TARGET_NONE) fail_msg("'%s' was taken for %d", none[i], (int)t.what);
    }
    for (size_t i = 0; i < sizeof bent / sizeof bent[0]; i++) {
        fkt_target_read(&t, bent[i]);
        if (t.what != FKT_TARGET_MALFORMED) fail_msg("'%s' was taken for %d", bent[i], (int)t.what);
    }
}

static void who_may_ask(void **state)
{
    static const struct {
        const char *target;
        enum fkt_target_auth auth;
    } cases[] = {
        {"/v1/messages", FKT_TARGET_AUTH_SITE},
        {"/v1/messages?round=-&after=0&wait=1", FKT_TARGET_AUTH_SITE},
        {"/v1/task", FKT_TARGET_AUTH_SITE},
        {"/v1/files/transparency.jsonl", FKT_TARGET_AUTH_SITE},
        {"/healthz", FKT_TARGET_AUTH_NONE},
        {"/", FKT_TARGET_AUTH_OPERATOR},
        {"/events", FKT_TARGET_AUTH_OPERATOR},
        {"/status.json", FKT_TARGET_AUTH_OPERATOR},
        {"/metrics", FKT_TARGET_AUTH_OPERATOR},
        {"/grid.png", FKT_TARGET_AUTH_OPERATOR},
        {"/files/transparency.jsonl", FKT_TARGET_AUTH_OPERATOR},
        {"/login?token=x", FKT_TARGET_AUTH_TARGET},
        {"/nothing", FKT_TARGET_AUTH_OPERATOR}, /* never open by mistake */
        {"/v1/messages?", FKT_TARGET_AUTH_OPERATOR},
    };
    struct fkt_target t;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fkt_target_read(&t, cases[i].target);
        if (fkt_target_auth(&t) != cases[i].auth)
            fail_msg("'%s' has authentication %d", cases[i].target, fkt_target_auth(&t));
        CHECK(fkt_target_signed(&t) == (cases[i].auth == FKT_TARGET_AUTH_SITE));
    }
}

static void methods(void **state)
{
    struct fkt_target t;
    (void)state;
    fkt_target_read(&t, "/v1/messages");
    CHECK(fkt_target_allows(&t, "POST") && !fkt_target_allows(&t, "GET") && !fkt_target_allows(&t, "HEAD"));
    CHECK(strcmp(fkt_target_methods(&t), "GET, POST") == 0);
    fkt_target_read(&t, "/v1/messages?round=-&after=0&wait=1");
    CHECK(fkt_target_allows(&t, "GET") && !fkt_target_allows(&t, "POST") && !fkt_target_allows(&t, "HEAD"));
    fkt_target_read(&t, "/v1/task");
    CHECK(fkt_target_allows(&t, "GET") && !fkt_target_allows(&t, "POST") && !fkt_target_allows(&t, "HEAD"));
    CHECK(strcmp(fkt_target_methods(&t), "GET") == 0);
    fkt_target_read(&t, "/metrics");
    CHECK(fkt_target_allows(&t, "GET") && fkt_target_allows(&t, "HEAD") && !fkt_target_allows(&t, "POST"));
    CHECK(!fkt_target_allows(&t, "get") && !fkt_target_allows(&t, "") && !fkt_target_allows(&t, "OPTIONS"));
    CHECK(strcmp(fkt_target_methods(&t), "GET, HEAD") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_of_ours),
        cmocka_unit_test(what_is_written_otherwise_is_none),
        cmocka_unit_test(who_may_ask),
        cmocka_unit_test(methods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
