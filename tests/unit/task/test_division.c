/* SPDX-License-Identifier: Apache-2.0 */
/* Who is in which cohort is the rule of federation.h, computed by another program; a task whose roster breaks it is
 * refused; cohorts of one division have one task of the sum. */
#include "task/division.h"
#include "tests/support/small_cohorts.h"
#include "tests/support/sweep.h"

#define T(f) cmocka_unit_test(f)

/* hashlib: sha256(b"fedkt.cohort/1\n" + bytes(range(64))) begins with 3c8c8c51336c2085 */
static void a_site_belongs_to_one_cohort(void **state)
{
    uint8_t seed[32], key[32];
    (void)state;
    for (int i = 0; i < 32; i++) {
        seed[i] = (uint8_t)i;
        key[i] = (uint8_t)(32 + i);
    }
    CHECK(fkt_division_cohort(seed, 2, key) == 0 && fkt_division_cohort(seed, 7, key) == 1);
    CHECK(fkt_division_cohort(seed, 1000, key) == 236 && fkt_division_cohort(seed, UINT32_MAX, key) == 1015843920U);
    CHECK(fkt_division_number(12, 4) == 3 && fkt_division_number(100000, 1000) == 100);
    CHECK(fkt_division_number(1499, 1000) == 1 && fkt_division_number(1500, 1000) == 2);
    CHECK(fkt_division_number(10, 0) == 1 && fkt_division_number(3, 65536) == 1);
    CHECK(fkt_division_share(10, 333, 1000) == 4 && fkt_division_share(0, 5, 9) == 0);
    CHECK(fkt_division_seed(7, 0) == 7 && fkt_division_seed(7, 1) != fkt_division_seed(7, 2));
    CHECK(fkt_division_seed(UINT64_C(1) << 52, 4000000000U) < UINT64_C(1) << 53);
}

static void every_site_is_in_its_list(void **state)
{
    struct small_cohorts c;
    uint8_t seen[COHORT_SITES] = {0};
    (void)state;
    CHECK_OK(small_cohorts_init(&c, 1));
    for (uint32_t i = 0; i < COHORTS; i++)
        for (uint32_t k = c.lists.first[i]; k < c.lists.first[i + 1]; k++) {
            const uint32_t site = c.lists.site[k];
            CHECK(fkt_division_cohort(c.division.seed, COHORTS, c.f.roster + site * FKT_SA_KEY) == i);
            CHECK(k == c.lists.first[i] || c.lists.site[k - 1] < site);
            seen[site]++;
        }
    for (int i = 0; i < COHORT_SITES; i++) CHECK(seen[i] == 1);
    c.division.number = COHORT_SITES; /* some cohort has fewer than three then */
    fkt_division_lists_clear(&c.lists);
    CHECK_STATUS(fkt_division_lists(&c.lists, &c.division, c.f.roster), FKT_E_ARG);
    small_cohorts_release(&c);
    CHECK(fkt_alloc_live() == 0);
}

static void cohorts_have_one_task_of_the_sum(void **state)
{
    struct small_cohorts c, other;
    uint8_t keys[COHORT_SITES * FKT_SA_KEY];
    struct fkt_task task = {0}, whole = {0}, back = {0};
    char *text = NULL;
    (void)state;
    CHECK_OK(small_cohorts_init(&c, 1));
    CHECK_OK(small_cohorts_init(&other, 2));
    assert_string_not_equal(c.f.task.sha256, other.f.task.sha256);
    for (uint32_t i = 0; i < COHORTS; i++) {
        CHECK_OK(cohort_task(&task, &c, i, keys, NULL));
        CHECK_OK(fkt_task_whole(&whole, &task));
        assert_string_equal(whole.sha256, c.f.task.sha256);
        CHECK_OK(fkt_json_text(&text, fkt_task_document(&task), 0));
        CHECK_OK(fkt_task_parse_into(&back, text, strlen(text)));
        assert_string_equal(back.sha256, task.sha256);
        CHECK(back.division.index == i && back.division.number == COHORTS && fkt_task_division(&back));
        fkt_free(text);
        text = NULL;
        fkt_task_clear(&back);
        fkt_task_clear(&whole);
        fkt_task_clear(&task);
    }
    CHECK(fkt_task_is_whole(&c.f.task));
    small_cohorts_release(&other);
    small_cohorts_release(&c);
    CHECK(fkt_alloc_live() == 0);
}

/* The rosters of all cohorts are the roster whose hash each of their tasks states, or a site was left out or put in. */
static void no_site_may_be_left_out(void **state)
{
    struct small_cohorts c;
    struct fkt_division_keys all = {0};
    uint8_t keys[COHORT_SITES * FKT_SA_KEY];
    (void)state;
    CHECK_OK(small_cohorts_init(&c, 1));
    for (uint32_t i = COHORTS; i-- > 0;) {
        struct fkt_task task = {0};
        CHECK_OK(cohort_task(&task, &c, i, keys, NULL));
        CHECK_OK(fkt_division_keys_add(&all, &task.federation));
        fkt_task_clear(&task);
    }
    CHECK_OK(fkt_division_keys_check(&all, &c.division));
    all.n--;
    CHECK_STATUS(fkt_division_keys_check(&all, &c.division), FKT_E_MISMATCH);
    assert_string_equal(fkt_error_text(), "the rosters of all cohorts have 29 sites, and the division has 30");
    c.division.sites--;
    CHECK_STATUS(fkt_division_keys_check(&all, &c.division), FKT_E_MISMATCH);
    all.n++;
    c.division.sites++;
    all.key[5] ^= 1;
    CHECK_STATUS(fkt_division_keys_check(&all, &c.division), FKT_E_MISMATCH);
    all.key[5] ^= 1;
    CHECK_OK(fkt_division_keys_check(&all, &c.division));
    fkt_division_keys_clear(&all);
    small_cohorts_release(&c);
    CHECK(fkt_alloc_live() == 0);
}

static void refuse(json_t *document, const char *words)
{
    struct fkt_task back;
    char *text = NULL;
    CHECK_OK(fkt_json_text(&text, json_incref(document), 0));
    CHECK_STATUS(fkt_task_parse_into(&back, text, strlen(text)), FKT_E_FORMAT);
    if (!strstr(fkt_error_text(), words)) fail_msg("'%s' is not in: %s", words, fkt_error_text());
    fkt_free(text);
}

/* Whatever a server or an operator changes, a reader of the one task sees it. */
static void a_bent_division_is_refused(void **state)
{
    struct small_cohorts c;
    uint8_t keys[COHORT_SITES * FKT_SA_KEY];
    struct fkt_task task = {0};
    json_t *j, *block;
    (void)state;
    CHECK_OK(small_cohorts_init(&c, 1));
    CHECK_OK(cohort_task(&task, &c, 1, keys, NULL));
    j = fkt_task_document(&task);
    block = json_object_get(j, "cohorts");
    json_object_set_new(block, "index", json_integer(2));
    refuse(j, "is in the roster of cohort 2 and belongs to cohort 1");
    json_object_set_new(block, "index", json_integer(COHORTS));
    refuse(j, "there is no cohort 3 of 3");
    json_object_set_new(block, "index", json_integer(1));
    json_object_set_new(block, "seed", json_string("0000000000000000000000000000000000000000000000000000000000000000"));
    refuse(j, "belongs to cohort");
    json_object_set_new(block, "seed", json_string("00"));
    refuse(j, "64 lower-case hexadecimal digits");
    json_object_del(block, "index");
    json_object_set_new(block, "seed", json_string("0101010101010101010101010101010101010101010101010101010101010101"));
    refuse(j, "says which cohort it is of");
    json_object_set_new(block, "index", json_integer(1));
    json_object_set_new(block, "records", json_integer(17));
    refuse(j, "records each, not 17");
    json_object_set_new(block, "records", json_integer(16));
    json_object_set_new(block, "number", json_integer(1));
    refuse(j, "are not possible");
    json_object_set_new(block, "number", json_integer(COHORTS));
    json_object_set_new(block, "sites", json_integer(5));
    refuse(j, "are not possible");
    json_object_set_new(block, "more", json_integer(5));
    refuse(j, "cohorts: ");
    json_decref(j);
    fkt_task_clear(&task);
    small_cohorts_release(&c);
    CHECK(fkt_alloc_live() == 0);
}

static void the_promise_is_for_all_sites(void **state)
{
    struct small_cohorts c;
    (void)state;
    CHECK_OK(small_cohorts_init(&c, 1));
    c.division.records = 4000; /* times 30 sites and 2 classes: more than 1e5 */
    CHECK_STATUS(fkt_task_divide(&c.f.task, &c.division, 0), FKT_E_ARG);
    CHECK_OK(fkt_task_divide(&c.f.task, &c.division, 1));
    CHECK(fkt_task_promise(&c.f.task, NULL) == FKT_PROMISE_WEAK);
    small_cohorts_release(&c);
}

static fkt_status make_and_free(void)
{
    struct small_cohorts c;
    uint8_t keys[COHORT_SITES * FKT_SA_KEY];
    struct fkt_task task = {0};
    fkt_status st = small_cohorts_init(&c, 1);
    if (st == FKT_OK) st = cohort_task(&task, &c, 0, keys, NULL);
    fkt_task_clear(&task);
    small_cohorts_release(&c);
    return st;
}

static void memory_that_runs_out(void **state)
{
    (void)state;
    CHECK(sweep_allocations(make_and_free, NULL) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_site_belongs_to_one_cohort), T(every_site_is_in_its_list),  T(cohorts_have_one_task_of_the_sum),
        T(no_site_may_be_left_out),      T(a_bent_division_is_refused), T(the_promise_is_for_all_sites),
        T(memory_that_runs_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
