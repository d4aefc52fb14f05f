/* SPDX-License-Identifier: Apache-2.0 */
#include "task/service.h"
#include "fedkt/server.h"
#include "task/task.h"
#include "tests/support/scratch.h"
#include "tests/support/small_service.h"

#define PINNED_SERVICE "de2b3286bc1c641e8283bc0512241b7e5b6cff2f38096b1376a957806053a5d5"

static void a_service_survives_its_file(void **state)
{
    struct small_federation f;
    struct scratch s;
    struct fkt_task back, copy;
    (void)state;
    scratch_init(&s);
    CHECK_OK(small_service_init(&f, NULL));
    CHECK(f.task.service.gather_seconds == 300 && f.task.service.phase_seconds == 120 && f.task.service.rounds == 8);
    assert_string_equal(f.task.sha256, PINNED_SERVICE);
    CHECK_OK(fkt_task_save(&f.task, scratch_path(&s, "task.json"), 0));
    CHECK_OK(fkt_task_load_into(&back, scratch_path(&s, "task.json")));
    CHECK_OK(fkt_task_copy(&copy, &back));
    fkt_task_clear(&back);
    assert_string_equal(copy.sha256, f.task.sha256);
    CHECK_OK(fkt_task_seal(&copy));
    assert_string_equal(copy.sha256, f.task.sha256);
    assert_string_equal(copy.service.address, "https://fedkt.example.org:8443");
    assert_string_equal(copy.service.pin, SERVICE_PIN);
    assert_string_equal(copy.service.names[2], "Hôpital Saint-Louis");
    CHECK(copy.service.expires == 1798761599 && !copy.service.seeded && !copy.signature.there);
    fkt_task_clear(&copy);
    small_federation_release(&f);
    scratch_release(&s);
    CHECK(fkt_alloc_live() == 0);
}

static void what_is_optional_may_be_absent(void **state)
{
    const uint64_t seed = 7;
    const struct fkt_service_choices bare = {.address = "https://[::1]:8443"};
    const struct fkt_service_choices all = {.address = "https://10.0.0.7",
                                            .gather_seconds = 1,
                                            .phase_seconds = 604800,
                                            .rounds = 64,
                                            .insecure_seed = &seed};
    struct small_federation f;
    json_t *j;
    (void)state;
    CHECK_OK(small_service_init(&f, &bare));
    j = fkt_service_json(&f.task.service, 3);
    CHECK(!json_object_get(j, "pin") && !json_object_get(j, "names") && !json_object_get(j, "insecure_seed"));
    CHECK(json_object_size(j) == 5);
    json_decref(j);
    small_federation_release(&f);
    CHECK_OK(small_service_init(&f, &all));
    CHECK(f.task.service.gather_seconds == 1 && f.task.service.phase_seconds == 604800 && f.task.service.rounds == 64);
    CHECK(f.task.service.seeded && f.task.service.insecure_seed == 7);
    small_federation_release(&f);
    CHECK(fkt_alloc_live() == 0);
}

static const struct {
    const char *text, *host; /* host NULL: refused */
    int port;
} addresses[] = {
    {"https://a", "a", 443},
    {"https://fedkt.example.org", "fedkt.example.org", 443},
    {"https://fedkt.example.org:1", "fedkt.example.org", 1},
    {"https://Fed-kt.example:65535", "Fed-kt.example", 65535},
    {"https://127.0.0.1:8443", "127.0.0.1", 8443},
    {"https://[::1]", "::1", 443},
    {"https://[2001:db8::7]:8443", "2001:db8::7", 8443},
    {"https://1.example", "1.example", 443},
    {"", NULL, 0},
    {"https://", NULL, 0},
    {"http://a", NULL, 0},
    {"HTTPS://a", NULL, 0},
    {"https:/a", NULL, 0},
    {"a:8443", NULL, 0},
    {"https://a/", NULL, 0},
    {"https://a:8443/path", NULL, 0},
    {"https://a?x", NULL, 0},
    {"https://a#x", NULL, 0},
    {"https://me@a", NULL, 0},
    {"https://me:you@a:1", NULL, 0},
    {"https://a b", NULL, 0},
    {"https://a\n", NULL, 0},
    {"https://a\x01", NULL, 0},
    {"https://a%00", NULL, 0},
    {"https://a\\b", NULL, 0},
    {"https://h\xc3\xb4te", NULL, 0},
    {"https://a..b", NULL, 0},
    {"https://a.", NULL, 0},
    {"https://.a", NULL, 0},
    {"https://-a", NULL, 0},
    {"https://a-", NULL, 0},
    {"https://a_b", NULL, 0},
    {"https://1.2.3", NULL, 0},
    {"https://256.1.1.1", NULL, 0},
    {"https://0x7f.1", NULL, 0},
    {"https://2130706433", NULL, 0},
    {"https://::1", NULL, 0},
    {"https://[::1", NULL, 0},
    {"https://[::1]x", NULL, 0},
    {"https://[::1%eth0]", NULL, 0},
    {"https://[a]", NULL, 0},
    {"https://[]", NULL, 0},
    {"https://[127.0.0.1]", NULL, 0},
    {"https://a:", NULL, 0},
    {"https://a:0", NULL, 0},
    {"https://a:08443", NULL, 0},
    {"https://a:65536", NULL, 0},
    {"https://a:+1", NULL, 0},
    {"https://a:1 ", NULL, 0},
    {"https://a:1:2", NULL, 0},
    {"https://a:x", NULL, 0},
};

static void addresses_are_read_strictly(void **state)
{
    char host[FKT_SERVICE_HOST], longest[400];
    uint16_t port;
    (void)state;
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        fkt_status st = fkt_service_address(addresses[i].text, host, &port);
        if (!addresses[i].host && st != FKT_E_ARG) fail_msg("'%s' is taken", addresses[i].text);
        if (addresses[i].host && (st != FKT_OK || strcmp(host, addresses[i].host) != 0 || port != addresses[i].port))
            fail_msg("'%s': %s, '%s', %u", addresses[i].text, fkt_error_text(), host, port);
    }
    memset(longest, 'a', sizeof longest);
    memcpy(longest, "https://", 8);
    longest[8 + 64] = '\0'; /* one label of 64 */
    CHECK_STATUS(fkt_service_address(longest, host, &port), FKT_E_ARG);
    longest[8 + 63] = '\0';
    CHECK_OK(fkt_service_address(longest, host, &port));
    memset(longest + 8, 'a', sizeof longest - 8);
    for (size_t i = 8 + 60; i < sizeof longest; i += 61) longest[i] = '.';
    longest[256] = '\0';
    CHECK_STATUS(fkt_service_address(longest, host, &port), FKT_E_ARG);
    longest[255] = '\0';
    CHECK_OK(fkt_service_address(longest, host, &port)); /* 247 of host */
    CHECK(strlen(host) == 247);
}

struct change {
    const char *key, *value; /* NULL: the key is removed */
    const char *says;        /* NULL: the task is taken, under another hash */
};

static void try_change(const struct small_federation *f, const char *text, const struct change *c)
{
    json_t *j = json_loads(text, 0, NULL), *o = json_object_get(j, "service");
    struct fkt_task t;
    char *other;
    fkt_status st;
    if (c->value) json_object_set_new(o, c->key, json_loads(c->value, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL));
    else json_object_del(o, c->key);
    CHECK_OK(fkt_json_text(&other, j, 0));
    st = fkt_task_parse_into(&t, other, strlen(other));
    if (c->says &&
        (st != FKT_E_FORMAT || !strstr(fkt_error_text(), c->says) || strncmp(fkt_error_text(), "task", 4) != 0))
        fail_msg("%s = %s: %s: %s", c->key, c->value ? c->value : "(absent)", fkt_status_name(st), fkt_error_text());
    if (!c->says && (st != FKT_OK || !strcmp(t.sha256, f->task.sha256)))
        fail_msg("%s = %s is not taken, or not in the hash: %s", c->key, c->value, fkt_error_text());
    if (st == FKT_OK) fkt_task_clear(&t);
    fkt_free(other);
}

static void every_value_is_checked_and_hashed(void **state)
{
    static const struct change change[] = {
        {"address", "\"https://fedkt.example.org:8444\"", NULL},
        {"pin", NULL, NULL},
        {"pin", "\"sha256//AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh4=\"", NULL},
        {"gather_seconds", "1", NULL},
        {"gather_seconds", "604800", NULL},
        {"phase_seconds", "1", NULL},
        {"phase_seconds", "604800", NULL},
        {"rounds", "1", NULL},
        {"rounds", "64", NULL},
        {"expires", "0", NULL},
        {"expires", "253402300799", NULL},
        {"names", NULL, NULL},
        {"names", "[\"a\", \"b\", \"c\"]", NULL},
        {"insecure_seed", "0", NULL},
        {"insecure_seed", "9007199254740991", NULL},
        {"address", NULL, "service"},
        {"address", "7", "not plain text"},
        {"address", "\"\"", "https://"},
        {"address", "\"https://a\\u0000b\"", "not JSON"},
        {"address", "\"http://fedkt.example.org\"", "does not begin"},
        {"address", "\"https://fedkt.example.org/x\"", "neither a name"},
        {"pin", "7", "not plain text"},
        {"pin", "null", "not plain text"},
        {"pin", "\"\"", "not a SHA-256"},
        {"pin", "\"sha256//\"", "not a SHA-256"},
        {"pin", "\"sha512//AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\"", "not a SHA-256"},
        {"pin", "\"sha256//AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\"", "not a SHA-256"},
        {"pin", "\"sha256//AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9=\"", "not a SHA-256"}, /* 2 bits too many */
        {"pin", "\"sha256//AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8A\"", "not a SHA-256"}, /* 33 bytes */
        {"pin", "\"sha256//AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg==\"", "not a SHA-256"}, /* 31 bytes */
        {"pin", "\"sha256//AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=;\"", "not a SHA-256"},
        {"pin", "\"sha256//AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBka-xwdHh8=\"", "not a SHA-256"},
        {"gather_seconds", NULL, "service"},
        {"gather_seconds", "0", "1 to 604800 seconds"},
        {"gather_seconds", "604801", "1 to 604800 seconds"},
        {"gather_seconds", "4294967297", "out of range"},
        {"gather_seconds", "1.0", "service"},
        {"phase_seconds", "0", "1 to 604800 seconds"},
        {"phase_seconds", "604801", "1 to 604800 seconds"},
        {"phase_seconds", "-1", "out of range"},
        {"rounds", "0", "1 to 64 rounds"},
        {"rounds", "65", "1 to 64 rounds"},
        {"rounds", "-1", "out of range"},
        {"rounds", "4294967297", "out of range"},
        {"expires", "-1", "out of range"},
        {"expires", "253402300800", "9999"},
        {"expires", NULL, "service"},
        {"names", "[]", "0 names for 3 sites"},
        {"names", "[\"a\", \"b\"]", "2 names for 3 sites"},
        {"names", "7", "0 names"},
        {"names", "null", "0 names"},
        {"names", "[\"a\", \"b\", 3]", "site 2"},
        {"names", "[\"a\", \"b\", \"a\"]", "site 'a' is listed twice"},
        {"names", "[\"a\", \"\", \"c\"]", "site 1"},
        {"names", "[\"a\", \" b\", \"c\"]", "site 1"},
        {"names", "[\"a\", \"b \", \"c\"]", "site 1"},
        {"names", "[\"a\", \"b\\n\", \"c\"]", "site 1"},
        {"names", "[\"a\", \"b\\u0000\", \"c\"]", "not JSON"},
        {"names", "[\"a\", \"b\\u0085\", \"c\"]", "site 1"},
        {"insecure_seed", "-1", "not a whole number"},
        {"insecure_seed", "9007199254740992", "below 2^53"},
        {"insecure_seed", "\"7\"", "not a whole number"},
        {"insecure_seed", "null", "not a whole number"},
        {"insecure_seed", "7.5", "not a whole number"},
        {"extra", "1", "service"},
    };
    struct small_federation f;
    char *text;
    (void)state;
    CHECK_OK(small_service_init(&f, NULL));
    CHECK_OK(fkt_json_text(&text, fkt_task_json(&f.task), 0));
    for (size_t i = 0; i < sizeof change / sizeof *change; i++) try_change(&f, text, &change[i]);
    fkt_free(text);
    small_federation_release(&f);
    CHECK(fkt_alloc_live() == 0);
}

static void names_have_a_length(void **state)
{
    char longest[FKT_SERVICE_NAME + 2];
    (void)state;
    memset(longest, 'x', sizeof longest);
    longest[FKT_SERVICE_NAME + 1] = '\0';
    CHECK_STATUS(fkt_service_check_name(longest, "it"), FKT_E_ARG);
    longest[FKT_SERVICE_NAME] = '\0';
    CHECK_OK(fkt_service_check_name(longest, "it"));
}

static void a_service_needs_a_federation(void **state)
{
    struct small_federation f;
    struct fkt_task t;
    char *text;
    json_t *j;
    (void)state;
    CHECK_OK(small_service_init(&f, NULL));
    j = fkt_task_json(&f.task);
    json_object_del(j, "federation");
    CHECK_OK(fkt_json_text(&text, j, 0));
    CHECK_STATUS(fkt_task_parse_into(&t, text, strlen(text)), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "no federation") != NULL);
    fkt_free(text);
    j = fkt_task_json(&f.task);
    json_object_set_new(j, "service", json_null());
    CHECK_OK(fkt_json_text(&text, j, 0));
    CHECK_STATUS(fkt_task_parse_into(&t, text, strlen(text)), FKT_E_FORMAT);
    fkt_free(text);
    memset(&t, 0, sizeof t);
    CHECK_STATUS(fkt_service_make(&t, &(struct fkt_service_choices){.address = "https://a"}), FKT_E_ARG);
    small_federation_release(&f);
    CHECK(fkt_alloc_live() == 0);
}

static void choices_that_cannot_be_are_refused(void **state)
{
    static const char *const twice[] = {"a", "b", "a"};
    static const uint64_t large = UINT64_C(1) << 53;
    static const struct fkt_service_choices bad[] = {
        {.address = "http://a"},
        {.address = "https://a", .pin = "sha256//"},
        {.address = "https://a", .gather_seconds = 604801},
        {.address = "https://a", .phase_seconds = 604801},
        {.address = "https://a", .rounds = 65},
        {.address = "https://a", .expires = UINT64_C(253402300800)},
        {.address = "https://a", .names = twice},
        {.address = "https://a", .insecure_seed = &large},
    };
    struct small_federation f;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (small_service_init(&f, &bad[i]) != FKT_E_ARG) fail_msg("choices %zu are taken", i);
    CHECK(fkt_alloc_live() == 0);
}

/* A task of `n` classes with 512 numbers a record; service NULL: none. The first three keys of f are its roster. */
static fkt_status make_large(struct fkt_task *out, const struct small_federation *f, uint32_t n, uint64_t records,
                             const struct fkt_service_choices *service)
{
    static char text[1000][8];
    const char *classes[1000];
    struct fkt_federation_choices c = {.sites = 3, .corrupt = 1, .records = records, .roster = f->roster};
    struct fkt_codec_spec spec = {.name = "dct", .size = 32, .dim = 512};
    struct fkt_task_choices t = {.name = "large",
                                 .classes = classes,
                                 .n_classes = n,
                                 .privacy = {.epsilon = 10, .delta = 1e-5},
                                 .federation = &c,
                                 .service = service,
                                 .accept_weak = records == FKT_RECORDS_UNKNOWN};
    struct fkt_calibration cal = {0};
    struct fkt_codec *codec = NULL;
    fkt_status st;
    for (uint32_t i = 0; i < n; i++) {
        snprintf(text[i], sizeof text[i], "c%u", i);
        classes[i] = text[i];
    }
    FKT_TRY(fkt_codec_open(&codec, &spec));
    FKT_TRY(fkt_calibration_embedded(&cal, codec));
    FKT_TRY(fkt_task_make_into(out, &t, &(struct fkt_part_choice){.codec = codec, .calibration = &cal}, 1));
out:
    fkt_codec_free(codec);
    fkt_calibration_clear(&cal);
    return st;
}

/* What the server's journal cannot hold is refused before anybody spends anything, with what to reduce. */
static void a_server_holds_what_it_is_sent(void **state)
{
    static const struct fkt_service_choices s = {.address = "https://a:1"};
    struct fkt_server_spec spec = {.folder = "/nonexistent/never-made"};
    struct fkt_server *host = NULL;
    struct small_federation f;
    struct fkt_task t = {0}, read = {0};
    json_t *j;
    char *text;
    (void)state;
    CHECK_OK(small_service_init(&f, NULL));
    CHECK_OK(make_large(&t, &f, 500, 16, &s)); /* 530 MB of moments */
    fkt_task_clear(&t);
    CHECK_STATUS(make_large(&t, &f, 1000, 16, &s), FKT_E_ARG); /* 1.06 GB */
    CHECK(strstr(fkt_error_text(), "release") && strstr(fkt_error_hint(), "classes"));
    CHECK_STATUS(make_large(&t, &f, 740, UINT64_C(1) << 37, &s), FKT_E_ARG); /* 783 MB; but 57 bits are 698 MB */
    CHECK(strstr(fkt_error_text(), "message") && strstr(fkt_error_hint(), "records"));
    CHECK_OK(make_large(&t, &f, 1000, 16, NULL)); /* in one process there is no journal */
    j = fkt_task_json(&t);
    CHECK(json_object_set_new(j, "service", fkt_service_json(&f.task.service, 3)) == 0);
    text = json_dumps(j, 0);
    json_decref(j);
    CHECK_STATUS(fkt_task_parse_into(&read, text, strlen(text)), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "release"));
    free(text);
    snprintf(t.service.address, sizeof t.service.address, "https://a:1");
    t.service.gather_seconds = t.service.phase_seconds = t.service.rounds = 1;
    CHECK_OK(fkt_task_sign(&t, small_operator(&f)));
    spec.task = &t;
    CHECK_STATUS(fkt_server_open(&host, &spec), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "release"));
    fkt_task_clear(&t);
    small_federation_release(&f);
}

/* With a server every bound on records counts, the one for "unknown" too: a task that is weak because of it is read. */
static void the_bound_on_records_counts_when_read(void **state)
{
    static const struct fkt_service_choices s = {.address = "https://a:1"};
    struct small_federation f;
    struct fkt_task t, read;
    char *text;
    (void)state;
    CHECK_OK(small_service_init(&f, NULL));
    CHECK_OK(make_large(&t, &f, 2, FKT_RECORDS_UNKNOWN, &s));
    CHECK(fkt_task_promise(&t, NULL) == FKT_PROMISE_WEAK);
    CHECK_OK(fkt_json_text(&text, fkt_task_json(&t), 0));
    CHECK_OK(fkt_task_parse_into(&read, text, strlen(text)));
    assert_string_equal(read.sha256, t.sha256);
    fkt_free(text);
    fkt_task_clear(&read);
    fkt_task_clear(&t);
    small_federation_release(&f);
    CHECK(fkt_alloc_live() == 0);
}

static void a_pin_makes_another_task(void **state)
{
    struct small_federation f;
    char hash[FKT_SHA256_HEX];
    (void)state;
    CHECK_OK(small_service_init(&f, &(struct fkt_service_choices){.address = "https://a:1"}));
    CHECK_OK(fkt_task_sign(&f.task, small_operator(&f)));
    memcpy(hash, f.task.sha256, sizeof hash);
    CHECK_STATUS(fkt_task_pin(&f.task, "sha256//x"), FKT_E_ARG);
    CHECK(f.task.signature.there && !strcmp(hash, f.task.sha256));
    CHECK_OK(fkt_task_pin(&f.task, SERVICE_PIN));
    CHECK(!f.task.signature.there && strcmp(hash, f.task.sha256) != 0);
    assert_string_equal(f.task.service.pin, SERVICE_PIN);
    CHECK_STATUS(fkt_task_verify(&f.task, NULL), FKT_E_STATE);
    small_federation_release(&f);
    CHECK_OK(small_federation_init(&f, (struct fkt_federation_choices){.sites = 3, .corrupt = 1}, 10));
    CHECK_STATUS(fkt_task_pin(&f.task, SERVICE_PIN), FKT_E_STATE);
    small_federation_release(&f);
    CHECK(fkt_alloc_live() == 0);
}

static void a_key_has_its_place_on_the_roster(void **state)
{
    struct small_federation f;
    uint32_t site = 9;
    (void)state;
    CHECK_OK(small_service_init(&f, NULL));
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_OK(fkt_task_site(&f.task, f.roster + i * FKT_SA_KEY, &site));
        CHECK(site == i);
    }
    CHECK_STATUS(fkt_task_site(&f.task, f.roster + 3 * FKT_SA_KEY, &site), FKT_E_MISMATCH);
    small_federation_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_service_survives_its_file),
        cmocka_unit_test(what_is_optional_may_be_absent),
        cmocka_unit_test(addresses_are_read_strictly),
        cmocka_unit_test(every_value_is_checked_and_hashed),
        cmocka_unit_test(names_have_a_length),
        cmocka_unit_test(a_service_needs_a_federation),
        cmocka_unit_test(a_server_holds_what_it_is_sent),
        cmocka_unit_test(choices_that_cannot_be_are_refused),
        cmocka_unit_test(the_bound_on_records_counts_when_read),
        cmocka_unit_test(a_pin_makes_another_task),
        cmocka_unit_test(a_key_has_its_place_on_the_roster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
