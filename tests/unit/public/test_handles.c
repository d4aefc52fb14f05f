/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks and releases as an embedder has them: handles and accessors, with nothing but the public headers. A call that
 * fails gives NULL and leaves nothing behind. */
#include "fedkt/fedkt.h"

#include "base/alloc.h" /* blocks that are left */
#include "tests/support/check.h"
#include "tests/support/layouts.h"
#include "tests/support/scratch.h"

#include <string.h>

static const char *const classes[2] = {"cat", "dog"};
static struct fkt_codec *codec;
static struct fkt_calibration calibration;

static int set_up(void **state)
{
    (void)state;
    CHECK_OK(fkt_codec_open(&codec, &(struct fkt_codec_spec){.name = "dct", .size = 16, .dim = 8}));
    CHECK_OK(fkt_calibration_embedded(&calibration, codec));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fkt_calibration_clear(&calibration);
    fkt_codec_free(codec);
    CHECK(fkt_alloc_live() == 0);
    return 0;
}

static struct fkt_task *plain_task(void)
{
    const struct fkt_task_choices choices = {.name = "pets",
                                             .classes = classes,
                                             .n_classes = 2,
                                             .filter = FKT_FILTER_BOX,
                                             .fit = FKT_FIT_PAD,
                                             .privacy = {.epsilon = 3, .delta = 1e-6}};
    struct fkt_task *t = NULL;
    CHECK_OK(fkt_task_make(&t, &choices, &(struct fkt_part_choice){.codec = codec, .calibration = &calibration}, 1));
    return t;
}

static void a_task_answers_what_was_chosen(void **state)
{
    struct fkt_task *t = plain_task();
    (void)state;
    assert_string_equal(fkt_task_name(t), "pets");
    CHECK(strlen(fkt_task_sha256(t)) == 64 && strlen(fkt_task_part(t, 0)->calibration_sha256) == 64);
    assert_string_equal(fkt_task_part(t, 0)->calibration_source, calibration.source);
    CHECK(fkt_task_classes(t) == 2 && fkt_task_size(t) == 16 && fkt_task_part(t, 0)->dim == 8);
    assert_string_equal(fkt_task_class(t, 1), "dog");
    assert_string_equal(fkt_task_class(t, 2), "");
    CHECK(fkt_task_filter(t) == FKT_FILTER_BOX && fkt_task_fit(t) == FKT_FIT_PAD);
    assert_string_equal(fkt_task_part(t, 0)->name, "dct");
    assert_string_equal(fkt_task_part(t, 0)->identity, fkt_codec_identity(codec));
    CHECK(fkt_task_part(t, 0)->coordinates.length == 9 && fkt_task_part(t, 0)->coordinates.rq == FKT_RQ_DEFAULT);
    CHECK(fkt_task_privacy(t)->epsilon == 3 && fkt_task_privacy(t)->delta == 1e-6);
    CHECK(!fkt_task_federation(t) && !fkt_task_service(t) && !fkt_task_signature(t));
    fkt_task_free(t);
    fkt_task_free(NULL);
}

static void a_federation_a_service_and_a_signature_are_there(void **state)
{
    uint8_t roster[3][FKT_SA_KEY], secret[FKT_SA_SECRET], key[FKT_SA_KEY];
    const struct fkt_federation_choices federation = {.sites = 3, .corrupt = 1, .records = 100, .roster = roster[0]};
    const struct fkt_service_choices service = {.address = "https://nowhere.example:8443", .rounds = 5};
    const struct fkt_task_choices choices = {.classes = classes,
                                             .n_classes = 2,
                                             .privacy = {.epsilon = 5, .delta = 1e-6},
                                             .federation = &federation,
                                             .service = &service};
    struct scratch s;
    struct fkt_task *t = NULL, *read = NULL;
    (void)state;
    scratch_init(&s);
    for (int i = 0; i < 3; i++) CHECK_OK(fkt_sa_identity(roster[i], secret, NULL));
    CHECK_OK(fkt_sa_identity(key, secret, NULL));
    CHECK_OK(fkt_task_make(&t, &choices, &(struct fkt_part_choice){.codec = codec, .calibration = &calibration}, 1));
    CHECK(fkt_task_federation(t)->sites == 3 && memcmp(fkt_task_federation(t)->roster, roster, sizeof roster) == 0);
    CHECK(fkt_task_service(t)->rounds == 5 && !fkt_task_signature(t));
    CHECK_OK(fkt_task_sign(t, secret));
    CHECK(memcmp(fkt_task_signature(t)->key, key, sizeof key) == 0);
    CHECK_OK(fkt_task_save(t, scratch_path(&s, "task.json"), 0));
    CHECK_OK(fkt_task_load(&read, scratch_path(&s, "task.json")));
    assert_string_equal(fkt_task_sha256(read), fkt_task_sha256(t));
    CHECK(memcmp(fkt_task_signature(read)->bytes, fkt_task_signature(t)->bytes, 64) == 0);
    fkt_task_free(read);
    fkt_task_free(t);
    scratch_release(&s);
}

static void a_task_that_cannot_be_made_is_null(void **state)
{
    struct fkt_task *t = (struct fkt_task *)(void *)&calibration; /* not NULL, so that it is seen to be set */
    (void)state;
    CHECK(fkt_task_make(&t, &(struct fkt_task_choices){.privacy = {.epsilon = -1}},
                        &(struct fkt_part_choice){.codec = codec, .calibration = &calibration}, 1) == FKT_E_ARG);
    CHECK(!t);
    t = (struct fkt_task *)(void *)&calibration;
    CHECK(fkt_task_parse(&t, "{}", 2) == FKT_E_FORMAT && !t);
    t = (struct fkt_task *)(void *)&calibration;
    CHECK(fkt_task_load(&t, "/nowhere/task.json") == FKT_E_IO && !t);
}

static void a_release_answers_what_is_in_it(void **state)
{
    const struct fkt_round_facts facts = {.sites = 2, .survivors = 2};
    const uint64_t seed = 7;
    struct scratch s;
    struct fkt_task *t = plain_task();
    struct fkt_moments *m = NULL;
    struct fkt_ledger ledger = {0};
    struct fkt_release *r = NULL, *read = NULL;
    size_t n = 0, again = 0;
    (void)state;
    scratch_init(&s);
    CHECK_OK(fkt_moments_new(
        &m, 2, ONE_PART(fkt_task_part(t, 0)->coordinates.length, fkt_task_part(t, 0)->coordinates.rq), 0));
    CHECK_OK(fkt_ledger_init(&ledger, 100, 1e-3));
    CHECK_OK(fkt_release_make(&r, t, &calibration, m, &facts, &ledger, &seed));
    assert_string_equal(fkt_task_sha256(fkt_release_task(r)), fkt_task_sha256(t));
    CHECK(fkt_release_calibration(r, 0)->dim == calibration.dim);
    CHECK(fkt_release_plan(r)->mu > 0 && !fkt_release_shares(r));
    CHECK(fkt_release_sigma(r)->count == fkt_release_plan(r)->sigma_count && fkt_release_sigma(r)->part[0].moment > 0);
    CHECK(fkt_release_facts(r)->sites == 2 && fkt_release_insecure_seed(r) == 1);
    CHECK(fkt_release_moments(r, &n) && n == 2 * fkt_moments_block(9));
    CHECK_OK(fkt_release_save(r, scratch_path(&s, "r.safetensors"), 0));
    CHECK_OK(fkt_release_load(&read, scratch_path(&s, "r.safetensors")));
    assert_string_equal(fkt_release_sha256(read), fkt_release_sha256(r));
    CHECK(memcmp(fkt_release_moments(read, &again), fkt_release_moments(r, &n), n * sizeof(int64_t)) == 0);
    CHECK(again == n);
    fkt_release_free(read);
    CHECK(fkt_release_load(&read, "/nowhere/r.safetensors") == FKT_E_IO && !read);
    fkt_release_free(r);
    CHECK(fkt_release_gather(&r, t, &calibration, NULL, &facts, 0) == FKT_E_MISMATCH && !r); /* central noise */
    fkt_release_free(NULL);
    fkt_moments_free(m);
    fkt_task_free(t);
    scratch_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_task_answers_what_was_chosen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_federation_a_service_and_a_signature_are_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_task_that_cannot_be_made_is_null, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_release_answers_what_is_in_it, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
