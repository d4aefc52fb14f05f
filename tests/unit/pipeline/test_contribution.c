/* SPDX-License-Identifier: Apache-2.0 */
/* test_contribution.c - where a site's keys and noise come from: from its seed alone, and from every bit of it. And
 * what a site brings and pays where its record vectors have parts. */
#include "fedkt/advanced/federation.h"

#include "pipeline/contribution.h"
#include "tests/support/check.h"
#include "tests/support/guided_task.h"

enum { BYTES = 64 };

static void fill(uint8_t out[2][BYTES], const uint8_t seed[FKT_ENTROPY_KEY], uint32_t site)
{
    static const struct fkt_task task; /* no seed stands in it */
    struct fkt_entropy e[2];
    struct fkt_entropy_seeded own[2];
    fkt_contribution_entropy(&e[0], &e[1], own, &task, site, seed);
    for (int i = 0; i < 2; i++) {
        CHECK(e[i].secure);
        CHECK_OK(e[i].fill(e[i].self, out[i], BYTES));
    }
}

static void streams_follow_from_the_seed(void **state)
{
    uint8_t seed[FKT_ENTROPY_KEY] = {0}, first[2][BYTES], again[2][BYTES], other[2][BYTES];
    (void)state;
    fill(first, seed, 1);
    fill(again, seed, 1);
    assert_memory_equal(first, again, sizeof first);
    CHECK(memcmp(first[0], first[1], BYTES) != 0); /* keys and noise are two streams */
    for (size_t bit = 0; bit < 8 * sizeof seed; bit += 37) {
        seed[bit / 8] ^= (uint8_t)(1U << bit % 8);
        fill(other, seed, 1);
        CHECK(memcmp(first[0], other[0], BYTES) != 0 && memcmp(first[1], other[1], BYTES) != 0);
        seed[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
}

/* The largest numbers that a site may hold fit the bound of the masks, wherever they stand; a dataset pays the mu of
 * all parts together, once. */
static void parts_fit_the_masks_and_are_paid_once(void **state)
{
    static const struct fkt_task_choices made[] = {{0}, {.joined = 1}, {.pooled = 1}};
    enum { RECORDS = 7, CLASSES = 10 };
    const uint64_t seed = 3;
    uint8_t roster[5 * FKT_SA_KEY], secrets[5 * FKT_SA_SECRET];
    const struct fkt_federation_choices c = {
        .sites = 5, .dropped = 1, .corrupt = 1, .records = RECORDS, .roster = roster};
    (void)state;
    CHECK_OK(fkt_federation_keys(roster, secrets, 5, &seed));
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        struct fkt_task_choices choices = made[i];
        struct fkt_ledger_charge charge;
        struct fkt_share_plan shares;
        struct fkt_sa_params params;
        struct guided_task g;
        int64_t *exact = NULL;
        size_t n;
        uint64_t largest = RECORDS * 256 * 256 * (choices.pooled ? CLASSES : 1);
        choices.federation = &c;
        CHECK_OK(guided_task(&g, 1, 8, choices));
        CHECK_OK(fkt_federation_open(&g.task, &params, &shares));
        n = fkt_task_numbers(&g.task);
        CHECK(params.length == n && params.bound > largest && params.bound - largest < (uint64_t)shares.tail);
        CHECK_OK(fkt_contribution_charge(&charge, &g.task, &shares, "d"));
        CHECK(charge.mu == shares.plan.mu && charge.mu > 0 && charge.mu <= fkt_privacy_mu(1, 1e-5));
        CHECK_OK(fkt_alloc(&exact, n));
        exact[fkt_layout_count(&g.task.layout, CLASSES, 9)] = RECORDS;
        CHECK_OK(fkt_contribution_check(&g.task, exact));
        exact[fkt_layout_count(&g.task.layout, CLASSES, 9)] = RECORDS + 1;
        CHECK_STATUS(fkt_contribution_check(&g.task, exact), FKT_E_MISMATCH);
        assert_non_null(strstr(fkt_error_text(), "class 'j'"));
        fkt_free(exact);
        guided_parts_clear(&g);
    }
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(streams_follow_from_the_seed),
                                       cmocka_unit_test(parts_fit_the_masks_and_are_paid_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
