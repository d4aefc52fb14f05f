/* SPDX-License-Identifier: Apache-2.0 */
/* test_contribution.c - where a site's keys and noise come from: from its seed alone, and from every bit of it. */
#include "pipeline/contribution.h"
#include "tests/support/check.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(streams_follow_from_the_seed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
