/* SPDX-License-Identifier: Apache-2.0 */
#include "task/service.h"
#include "task/task.h"
#include "tests/support/scratch.h"
#include "tests/support/small_service.h"

static void a_signature_stands_beside_the_task(void **state)
{
    struct small_federation f;
    struct scratch s;
    struct fkt_task back;
    char hash[FKT_SHA256_HEX];
    json_t *j;
    (void)state;
    scratch_init(&s);
    CHECK_OK(small_service_init(&f, NULL));
    memcpy(hash, f.task.sha256, sizeof hash);
    CHECK_STATUS(fkt_task_verify(&f.task, NULL), FKT_E_STATE);
    CHECK_OK(fkt_task_sign(&f.task, small_operator(&f)));
    assert_string_equal(f.task.sha256, hash);
    j = fkt_task_json(&f.task);
    CHECK(!json_object_get(j, "signature"));
    json_decref(j);
    CHECK_OK(fkt_task_save(&f.task, scratch_path(&s, "task.json"), 0));
    CHECK_OK(fkt_task_load_into(&back, scratch_path(&s, "task.json")));
    assert_string_equal(back.sha256, hash);
    CHECK_OK(fkt_task_verify(&back, NULL));
    CHECK_OK(fkt_task_verify(&back, f.roster + 3 * FKT_SA_KEY));
    CHECK_STATUS(fkt_task_verify(&back, f.roster), FKT_E_PEER_AUTH);
    CHECK(strstr(fkt_error_text(), "not by the operator's key") != NULL);
    CHECK_OK(fkt_task_seal(&back));
    CHECK_OK(fkt_task_sign(&back, f.secrets)); /* another one may sign in its place */
    CHECK_OK(fkt_task_verify(&back, f.roster));
    fkt_task_clear(&back);
    small_federation_release(&f);
    scratch_release(&s);
    CHECK(fkt_alloc_live() == 0);
}

/* A task without a service, and without a federation, may be signed as well. */
static void any_task_may_be_signed(void **state)
{
    struct small_federation f;
    struct fkt_task copy;
    (void)state;
    CHECK_OK(small_federation_init(&f, (struct fkt_federation_choices){.sites = 3, .corrupt = 1}, 10));
    CHECK_OK(fkt_task_sign(&f.task, f.secrets));
    CHECK_OK(fkt_task_copy(&copy, &f.task));
    CHECK_OK(fkt_task_verify(&copy, f.roster));
    fkt_task_clear(&copy);
    small_federation_release(&f);
    CHECK(fkt_alloc_live() == 0);
}

static void what_was_changed_shows(void **state)
{
    static const char *const change[][3] = {
        {"privacy", "epsilon", "10.000000000000002"},
        {"service", "address", "\"https://fedkt.example.net:8443\""},
        {"service", "rounds", "9"},
        {"service", "insecure_seed", "1"},
        {"federation", "keystream", "\"chacha20\""},
    };
    struct small_federation f;
    struct fkt_task t;
    (void)state;
    CHECK_OK(small_service_init(&f, NULL));
    CHECK_OK(fkt_task_sign(&f.task, small_operator(&f)));
    for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
        json_t *j = fkt_task_document(&f.task);
        char *text;
        json_object_set_new(json_object_get(j, change[i][0]), change[i][1],
                            json_loads(change[i][2], JSON_DECODE_ANY, NULL));
        CHECK_OK(fkt_json_text(&text, j, 0));
        CHECK_OK(fkt_task_parse_into(&t, text, strlen(text)));
        CHECK_STATUS(fkt_task_verify(&t, NULL), FKT_E_PEER_AUTH);
        CHECK(strstr(fkt_error_text(), "is invalid") != NULL);
        fkt_task_clear(&t);
        fkt_free(text);
    }
    for (size_t bit = 0; bit < 8 * sizeof f.task.signature.bytes; bit++) {
        f.task.signature.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK_STATUS(fkt_task_verify(&f.task, NULL), FKT_E_PEER_AUTH);
        f.task.signature.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    memcpy(f.task.signature.key, f.roster, FKT_SA_KEY);
    CHECK_STATUS(fkt_task_verify(&f.task, NULL), FKT_E_PEER_AUTH);
    memset(f.task.signature.key, 0, FKT_SA_KEY); /* of small order: any digest has a signature under it */
    CHECK_STATUS(fkt_task_verify(&f.task, NULL), FKT_E_PEER_AUTH);
    small_federation_release(&f);
    CHECK(fkt_alloc_live() == 0);
}

static void hostile_signatures_are_refused(void **state)
{
    static const char *const value[] = {
        "null",
        "7",
        "\"abc\"",
        "[]",
        "{}",
        "{\"key\": \"00\"}",
        "{\"key\": \"KEY\"}",
        "{\"bytes\": \"BYTES\"}",
        "{\"key\": \"00\", \"bytes\": \"BYTES\"}",
        "{\"key\": \"KEY\", \"bytes\": \"00\"}",
        "{\"key\": 7, \"bytes\": \"BYTES\"}",
        "{\"key\": \"KEY\", \"bytes\": null}",
        "{\"key\": \"KEY\", \"bytes\": \"BYTES00\"}",
        "{\"key\": \"KEY\", \"bytes\": \"BYTES\", \"extra\": 1}",
    };
    struct small_federation f;
    struct fkt_task t;
    char key[65], bytes[129], *text;
    (void)state;
    memset(key, 'a', 64);
    memset(bytes, 'b', 128);
    key[64] = bytes[128] = '\0';
    CHECK_OK(small_service_init(&f, NULL));
    for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
        char full[512];
        const char *from = value[i];
        size_t n = 0;
        json_t *j = fkt_task_json(&f.task);
        while (*from) { /* KEY and BYTES stand for digits of the right length */
            const char *put = !strncmp(from, "KEY", 3) ? key : !strncmp(from, "BYTES", 5) ? bytes : NULL;
            n += (size_t)snprintf(full + n, sizeof full - n, "%.*s", put ? 128 : 1, put ? put : from);
            from += put == key ? 3 : put ? 5 : 1;
        }
        json_object_set_new(j, "signature", json_loads(full, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL));
        CHECK_OK(fkt_json_text(&text, j, 0));
        if (fkt_task_parse_into(&t, text, strlen(text)) != FKT_E_FORMAT || !strstr(fkt_error_text(), "task: signature"))
            fail_msg("%s: %s", value[i], fkt_error_text());
        fkt_free(text);
    }
    small_federation_release(&f);
    CHECK(fkt_alloc_live() == 0);
}

/* With the public half of another key a signature would give the seed away. */
static void halves_must_belong_together(void **state)
{
    struct small_federation f;
    uint8_t mixed[FKT_SA_SECRET];
    (void)state;
    CHECK_OK(small_service_init(&f, NULL));
    memcpy(mixed, small_operator(&f), 32);
    memcpy(mixed + 32, f.roster, 32);
    CHECK_STATUS(fkt_task_sign(&f.task, mixed), FKT_E_ARG);
    CHECK(!f.task.signature.there);
    small_federation_release(&f);
}

/* What a stranger's tool must come to: docs/formats.md, and tests/cli checks it with another library. */
static void the_signature_is_pinned(void **state)
{
    struct small_federation f;
    char hex[129];
    (void)state;
    CHECK_OK(small_service_init(&f, NULL));
    CHECK_OK(fkt_task_sign(&f.task, small_operator(&f)));
    for (size_t i = 0; i < 64; i++) snprintf(hex + 2 * i, 3, "%02x", f.task.signature.bytes[i]);
    assert_string_equal(hex, "2068525db453e0d65ad5124e0247061d7eecf322d7cd57e95e367553056a184f"
                             "f64b443332a8e39dfccd4a0087eaa044202ca8e9d24c997539414881979c6404");
    small_federation_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signature_stands_beside_the_task),
        cmocka_unit_test(any_task_may_be_signed),
        cmocka_unit_test(what_was_changed_shows),
        cmocka_unit_test(hostile_signatures_are_refused),
        cmocka_unit_test(halves_must_belong_together),
        cmocka_unit_test(the_signature_is_pinned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
