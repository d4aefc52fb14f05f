/* SPDX-License-Identifier: Apache-2.0 */
/* What a site keeps of a task: its messages, and the heads of the server's log, however many and whatever they say. */
#include "tests/support/client_world.h"

#include <jansson.h>

static struct scratch tmp;

static void a_receipt(void **state)
{
    static const char first[] = "1111111111111111111111111111111111111111111111111111111111111111";
    static const char *const kinds[] = {"advertise", "shares", "masked", "confirm", "reveal"};
    static const char second[] = "2222222222222222222222222222222222222222222222222222222222222222";
    const char *path = scratch_path(&tmp, "receipt.json");
    struct aw w;
    json_t *j, *m;
    (void)state;
    aw_init(&w, &tmp, FKT_NOISE_PLACE_CENTRAL, NULL);
    CHECK_OK(aw_open(&w));
    CHECK_OK(w.c.heard_head(w.c.self, 2, first));
    CHECK_OK(w.c.heard_head(w.c.self, 9, second));
    CHECK_OK(w.c.heard_head(w.c.self, 9, second));
    CHECK_OK(w.c.heard_head(w.c.self, 5, second)); /* a log gets no shorter: not kept */
    aw_begin_round(&w, 7);
    aw_run(&w);
    CHECK_OK(aw_tell(&w, FKT_STAGE_RELEASED, FKT_OK));
    CHECK_OK(fkt_client_receipt(w.a, path, 1));
    CHECK_STATUS(fkt_client_receipt(w.a, path, 0), FKT_E_EXISTS);
    j = json_load_file(path, 0, NULL);
    CHECK(j);
    assert_string_equal(json_string_value(json_object_get(j, "schema")), "fedkt.receipt/1");
    assert_string_equal(json_string_value(json_object_get(j, "task_sha256")), w.f.task.sha256);
    assert_int_equal(json_integer_value(json_object_get(j, "site")), AW_ME);
    assert_int_equal(json_array_size(json_object_get(j, "heads")), 2);
    m = json_array_get(json_object_get(j, "heads"), 0);
    assert_int_equal(json_integer_value(json_object_get(m, "entry")), 2);
    assert_string_equal(json_string_value(json_object_get(m, "sha256")), first);
    assert_int_equal(json_array_size(json_object_get(j, "messages")), 5); /* advertise ... reveal */
    for (size_t i = 0; i < 5; i++) {
        m = json_array_get(json_object_get(j, "messages"), i);
        assert_string_equal(json_string_value(json_object_get(m, "round")), "07070707070707070707070707070707");
        assert_string_equal(json_string_value(json_object_get(m, "sha256")), w.said[i + 1]);
        assert_string_equal(json_string_value(json_object_get(m, "kind")), kinds[i]);
        CHECK(json_is_true(json_object_get(m, "taken")) && json_integer_value(json_object_get(m, "bytes")) > 0);
    }
    json_decref(j);
    aw_release(&w);
}

static const char *numbered(size_t i)
{
    static char sha[FKT_SHA256_HEX];
    snprintf(sha, sizeof sha, "%064zx", i);
    return sha;
}

/* The heads of the receipt as a list. */
static json_t *heads_of(struct aw *w)
{
    const char *path = scratch_path(&tmp, "heads.json");
    json_t *j, *heads;
    CHECK_OK(fkt_client_receipt(w->a, path, 1));
    j = json_load_file(path, 0, NULL);
    heads = json_incref(json_object_get(j, "heads"));
    json_decref(j);
    return heads;
}

static int has_head(const json_t *heads, size_t entry, const char *sha256)
{
    for (size_t i = 0; i < json_array_size(heads); i++) {
        const json_t *h = json_array_get(heads, i);
        if (json_integer_value(json_object_get(h, "entry")) == (json_int_t)entry &&
            !strcmp(json_string_value(json_object_get(h, "sha256")), sha256))
            return 1;
    }
    return 0;
}

/* A server that tells a new head with every answer: the newest 256 are kept, and those that came with receipts. */
static void heads_without_end(void **state)
{
    struct aw w;
    json_t *heads;
    size_t n = 0, receipts[16], r = 0;
    (void)state;
    aw_init(&w, &tmp, FKT_NOISE_PLACE_CENTRAL, NULL);
    CHECK_OK(aw_open(&w));
    aw_begin_round(&w, 1);
    for (;;) {
        int taken;
        for (int i = 0; i < 60; i++, n++) CHECK_OK(w.c.heard_head(w.c.self, n + 1, numbered(n + 1)));
        aw_pump(&w);
        if (w.c.wants(w.c.self) & FKT_ENDPOINT_SEND) {
            CHECK_OK(aw_carry(&w, &taken));
            CHECK_OK(w.c.sent(w.c.self, taken));
            receipts[r++] = n;
        } else if (aw_has_news(&w)) CHECK_OK(aw_recv(&w));
        else break;
    }
    CHECK(n > 500 && r == 5);
    aw_crash(&w);
    heads = heads_of(&w);
    CHECK(json_array_size(heads) >= 256 && json_array_size(heads) <= 256 + 5);
    for (size_t i = 0; i < r; i++) CHECK(has_head(heads, receipts[i], numbered(receipts[i])));
    for (size_t i = n - 255; i <= n; i++) CHECK(has_head(heads, i, numbered(i)));
    json_decref(heads);
    aw_release(&w);
}

/* A server that contradicts itself: both heads are kept, within bounds, and the round goes on. */
static void a_log_that_is_rewritten(void **state)
{
    struct aw w;
    struct fkt_client_view v;
    json_t *heads;
    (void)state;
    aw_init(&w, &tmp, FKT_NOISE_PLACE_CENTRAL, NULL);
    CHECK_OK(aw_open(&w));
    aw_begin_round(&w, 1);
    for (size_t i = 1; i <= 40; i++) CHECK_OK(w.c.heard_head(w.c.self, i, numbered(i)));
    CHECK(aw_step(&w));
    CHECK_OK(w.c.heard_head(w.c.self, 40, numbered(1000)));
    aw_crash(&w);
    for (size_t i = 1; i <= 40; i++) CHECK_OK(w.c.heard_head(w.c.self, i, numbered(2000 + i)));
    for (size_t i = 41; i <= 400; i++) CHECK_OK(w.c.heard_head(w.c.self, i, numbered(i)));
    heads = heads_of(&w);
    CHECK(has_head(heads, 40, numbered(40)) && has_head(heads, 40, numbered(1000)));
    CHECK(has_head(heads, 1, numbered(1)) && has_head(heads, 1, numbered(2001)));
    CHECK(json_array_size(heads) <= 256 + 2 * 16);
    json_decref(heads);
    aw_run(&w);
    fkt_client_get_view(w.a, &v);
    CHECK(v.spent && fkt_sa_server_state(w.server) == FKT_SA_STATE_UNMASK);
    aw_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_receipt),
        cmocka_unit_test(heads_without_end),
        cmocka_unit_test(a_log_that_is_rewritten),
    };
    int failed;
    scratch_init(&tmp);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    scratch_release(&tmp);
    return failed;
}
