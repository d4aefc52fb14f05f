/* SPDX-License-Identifier: Apache-2.0 */
/* test_promise.c - a weak promise is refused, or it is accepted and everything made under it says so: task,
 * certificate, release, models. */
#include "fedkt/advanced/federation.h"

#include "tests/support/check.h"
#include "tests/support/layouts.h"
#include "tests/support/scratch.h"

#include "pipeline/provenance.h"
#include "pipeline/release.h"
#include "task/task.h"

#include <string.h>

#define CHECK_FAILS(call, status, words)                                                                               \
    do {                                                                                                               \
        CHECK_STATUS(call, status);                                                                                    \
        if (!strstr(fkt_error_text(), words)) fail_msg("'%s' does not hold '%s'", fkt_error_text(), words);            \
    } while (0)

static const char *const classes[] = {"cat", "dog"};

static fkt_status make(struct fkt_task *t, double epsilon, double delta, const struct fkt_federation_choices *f,
                       int accept)
{
    struct fkt_codec_spec spec = {.name = "dct", .size = 16, .dim = 8};
    struct fkt_task_choices c = {.name = "promised",
                                 .classes = classes,
                                 .n_classes = 2,
                                 .privacy = {.epsilon = epsilon, .delta = delta},
                                 .federation = f,
                                 .accept_weak = accept};
    struct fkt_calibration cal = {0};
    struct fkt_codec *codec = NULL;
    fkt_status st;
    FKT_TRY(fkt_codec_open(&codec, &spec));
    FKT_TRY(fkt_calibration_embedded(&cal, codec));
    FKT_TRY(fkt_task_make_into(t, &c, &(struct fkt_part_choice){.codec = codec, .calibration = &cal}, 1));
out:
    fkt_calibration_clear(&cal);
    fkt_codec_free(codec);
    return st;
}

static json_t *json_of(const struct fkt_task *t)
{
    json_t *j = fkt_task_json(t);
    assert_non_null(j);
    return j;
}

static fkt_status parse(struct fkt_task *t, json_t *j)
{
    char *text = NULL;
    fkt_status st = fkt_json_text(&text, j, 0); /* takes j */
    if (st == FKT_OK) st = fkt_task_parse_into(t, text, strlen(text));
    fkt_free(text);
    return st;
}

static void accepted_or_refused(void **state)
{
    struct fkt_task t = {0};
    char why[FKT_PROMISE_WORDS];
    (void)state;
    CHECK_FAILS(make(&t, 1000, 0.9, NULL, 0), FKT_E_ARG, "too weak to be called private: epsilon 1000 is above 20");
    CHECK_OK(make(&t, 20, 1e-3, NULL, 0));
    assert_int_equal(fkt_task_promise(&t, why), FKT_PROMISE_SOUND);
    fkt_task_clear(&t);
    CHECK_OK(make(&t, 21, 1e-5, NULL, 1));
    assert_int_equal(fkt_task_promise(&t, why), FKT_PROMISE_WEAK);
    assert_string_equal(why, "epsilon 21 is above 20");
    fkt_task_clear(&t);
}

/* The mark is in the canonical JSON, so the signature covers it; a sound task looks as it always did. */
static void the_mark_follows_from_the_numbers(void **state)
{
    struct fkt_task t = {0}, read = {0};
    json_t *j;
    (void)state;
    CHECK_OK(make(&t, 1, 1e-5, NULL, 1));
    j = json_of(&t);
    assert_null(json_object_get(json_object_get(j, "privacy"), "promise"));
    json_object_set_new(json_object_get(j, "privacy"), "promise", json_string("weak"));
    CHECK_FAILS(parse(&read, j), FKT_E_FORMAT, "its promise is marked weak, but is not");
    fkt_task_clear(&t);
    CHECK_OK(make(&t, 50, 1e-5, NULL, 1));
    CHECK_OK(parse(&read, json_of(&t)));
    assert_string_equal(read.sha256, t.sha256);
    fkt_task_clear(&read);
    j = json_of(&t);
    assert_string_equal(json_string_value(json_object_get(json_object_get(j, "privacy"), "promise")), "weak");
    json_object_set_new(json_object_get(j, "privacy"), "promise", json_string("fine"));
    CHECK_FAILS(parse(&read, j), FKT_E_FORMAT, "'promise' can only be 'weak'");
    j = json_of(&t);
    json_object_del(json_object_get(j, "privacy"), "promise");
    CHECK_FAILS(parse(&read, j), FKT_E_FORMAT, "is not marked weak: epsilon 50 is above 20");
    fkt_task_clear(&t);
}

/* Two classes, five sites, at most 100 of a class each: a bound of 1000 records, and 10000 with ten times as many. */
static void a_federation_is_bounded_by_its_records(void **state)
{
    uint8_t roster[5 * FKT_SA_KEY], secrets[5 * FKT_SA_SECRET];
    const uint64_t seed = 4;
    struct fkt_federation_choices f = {.sites = 5, .corrupt = 1, .records = 100, .roster = roster};
    struct fkt_task t = {0}, read = {0};
    char why[FKT_PROMISE_WORDS];
    json_t *j;
    (void)state;
    CHECK_OK(fkt_federation_keys(roster, secrets, 5, &seed));
    CHECK_OK(make(&t, 5, 1e-3, &f, 0));
    fkt_task_clear(&t);
    f.records = 1000;
    CHECK_FAILS(make(&t, 5, 1e-3, &f, 0), FKT_E_ARG,
                "delta 0.001 is above 0.0001, one over the bound of 10000 records");
    CHECK_OK(make(&t, 5, 1e-4, &f, 0));
    fkt_task_clear(&t);
    CHECK_OK(make(&t, 5, 0.3, &f, 1));
    j = json_of(&t);
    json_object_del(json_object_get(j, "privacy"), "promise");
    CHECK_FAILS(parse(&read, j), FKT_E_FORMAT, "is not marked weak: delta 0.3 is above 0.0001");
    fkt_task_clear(&t);
    f.records = FKT_RECORDS_UNKNOWN; /* nobody knows a bound: it does not count as one */
    CHECK_OK(make(&t, 5, 1e-3, &f, 0));
    snprintf(t.service.address, sizeof t.service.address, "https://example.org"); /* then somebody named it */
    assert_int_equal(fkt_task_promise(&t, why), FKT_PROMISE_WEAK);
    assert_string_equal(why, "delta 0.001 is above 9.54e-08, one over the bound of 10485760 records");
    fkt_task_clear(&t);
    CHECK_FAILS(make(&t, 5, 2e-3, &f, 0), FKT_E_ARG, "delta 0.002 is above 0.001");
}

/* A release under a weak task, its certificate, what is made of it. */
static void everything_says_weak(void **state)
{
    const struct fkt_round_facts facts = {1, 1, 0, 0};
    struct fkt_task t = {0};
    struct fkt_release r = {0}, read = {0};
    struct fkt_moments *m = NULL;
    struct fkt_ledger ledger;
    struct fkt_model_origin origin, twice;
    struct fkt_codec_spec spec = {.name = "dct", .size = 16, .dim = 8};
    struct fkt_calibration cal = {0};
    struct fkt_codec *codec = NULL;
    struct scratch scratch;
    const char *path;
    char *text = NULL;
    (void)state;
    CHECK_OK(fkt_codec_open(&codec, &spec));
    CHECK_OK(fkt_calibration_embedded(&cal, codec));
    CHECK_OK(make(&t, 50, 1e-5, NULL, 1));
    CHECK_OK(fkt_moments_new(&m, 2, fkt_task_layout(&t), 0));
    CHECK_OK(fkt_ledger_init(&ledger, 1e6, 0));
    CHECK_OK(fkt_release_make_into(&r, &t, &cal, m, &facts, &ledger, NULL));
    assert_string_equal(fkt_release_not_private(&r), "the promise is weak");
    CHECK_OK(fkt_release_certificate(&r, &text));
    assert_non_null(strstr(text, "\"private\": false"));
    assert_non_null(strstr(text, "\"promise\": \"weak\""));
    assert_non_null(strstr(text, "WEAK PROMISE: epsilon 50 is above 20"));
    assert_non_null(strstr(text, "\"entropy\": \"operating system\""));
    scratch_init(&scratch);
    path = scratch_path(&scratch, "weak.safetensors");
    CHECK_OK(fkt_release_save(&r, path, 0));
    CHECK_OK(fkt_release_load_into(&read, path));
    assert_int_equal(read.insecure_seed, 0);
    assert_string_equal(fkt_release_not_private(&read), "the promise is weak");
    fkt_origin_of_release(&origin, &read, 10);
    assert_int_equal(origin.is_private, 0);
    assert_non_null(strstr(origin.data, "NOT private: the promise is weak, epsilon 50, delta 1e-05"));
    origin = (struct fkt_model_origin){
        .is_private = 1, .epsilon = 12, .delta = 1e-5, .adjacency = "add-remove", .data = "one"};
    twice = origin;
    fkt_model_origin_add(&twice, "then ", &origin); /* no name, so it may be another release */
    assert_int_equal(twice.is_private, 0);
    assert_non_null(strstr(twice.data, "NOT private: the promises add up to a weak one"));
    scratch_release(&scratch);
    fkt_string_free(text);
    fkt_release_clear(&r);
    fkt_release_clear(&read);
    fkt_moments_free(m);
    fkt_task_clear(&t);
    fkt_calibration_clear(&cal);
    fkt_codec_free(codec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepted_or_refused),
        cmocka_unit_test(the_mark_follows_from_the_numbers),
        cmocka_unit_test(a_federation_is_bounded_by_its_records),
        cmocka_unit_test(everything_says_weak),
    };
    return check_nothing_left(cmocka_run_group_tests(tests, NULL, NULL));
}
