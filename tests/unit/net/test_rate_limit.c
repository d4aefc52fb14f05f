/* SPDX-License-Identifier: Apache-2.0 */
#include "net/rate_limit.h"
#include "tests/support/check.h"

static const uint8_t key[32] = {1, 2, 3};
#define V4(a, b, c, d)                                                                                                 \
    {                                                                                                                  \
        [10] = 0xff, [11] = 0xff, [12] = a, [13] = b, [14] = c, [15] = d                                               \
    }

static void a_minute_of_refusals(void **state)
{
    const uint8_t a[16] = V4(10, 0, 0, 1), b[16] = V4(10, 0, 0, 2);
    struct fkt_rate_limit *c;
    (void)state;
    CHECK_OK(fkt_rate_limit_new(&c, 60, key));
    for (int i = 0; i < 60; i++) {
        CHECK(fkt_rate_limit_wait(c, a, 1000) == 0);
        fkt_rate_limit_blame(c, a, 1000);
    }
    CHECK(fkt_rate_limit_wait(c, a, 1000) == 1); /* one is forgiven every second */
    CHECK(fkt_rate_limit_wait(c, a, 1999) == 1);
    CHECK(fkt_rate_limit_wait(c, a, 2000) == 0);
    CHECK(fkt_rate_limit_wait(c, b, 1000) == 0); /* the neighbour has done nothing */
    fkt_rate_limit_blame(c, a, 2000);
    CHECK(fkt_rate_limit_wait(c, a, 2000) == 1);
    for (int i = 0; i < 5; i++) fkt_rate_limit_blame(c, a, 2000); /* more than there was room for */
    CHECK(fkt_rate_limit_wait(c, a, 2000) == 6);
    CHECK(fkt_rate_limit_wait(c, a, 7999) == 1 && fkt_rate_limit_wait(c, a, 8000) == 0);
    fkt_rate_limit_free(c);
    fkt_rate_limit_free(NULL);
}

/* An IPv6 customer has a /64, an IPv4 one an address. */
static void who_is_one_address(void **state)
{
    const uint8_t six[16] = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 7, 1},
                  same[16] = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 7, 0xfe, 2, 3};
    const uint8_t other[16] = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 8, 1}, four[16] = V4(1, 2, 3, 4), near[16] = V4(1, 2, 3, 5);
    struct fkt_rate_limit *c;
    (void)state;
    CHECK_OK(fkt_rate_limit_new(&c, 1, key));
    fkt_rate_limit_blame(c, six, 0);
    CHECK(fkt_rate_limit_wait(c, six, 0) == 60 && fkt_rate_limit_wait(c, same, 0) == 60 &&
          fkt_rate_limit_wait(c, other, 0) == 0);
    fkt_rate_limit_blame(c, four, 0);
    CHECK(fkt_rate_limit_wait(c, four, 0) == 60 && fkt_rate_limit_wait(c, near, 0) == 0);
    fkt_rate_limit_free(c);
}

/* A hundred thousand addresses pass; whoever has a budget of refusals keeps being known while the table is not full of
 * worse ones, and nothing grows. */
static void the_table_is_bounded(void **state)
{
    const uint8_t bad[16] = V4(9, 9, 9, 9);
    const size_t live = fkt_alloc_live();
    struct fkt_rate_limit *c;
    (void)state;
    CHECK_OK(fkt_rate_limit_new(&c, 10, key));
    for (int i = 0; i < 30; i++) fkt_rate_limit_blame(c, bad, 0);
    for (uint32_t i = 0; i < 100000; i++) {
        const uint8_t a[16] = V4(10, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i);
        fkt_rate_limit_blame(c, a, 0);
    }
    CHECK(fkt_rate_limit_wait(c, bad, 0) > 60);
    CHECK(fkt_alloc_live() == live + 1);
    fkt_rate_limit_free(c);
}

static void a_rate(void **state)
{
    uint64_t debt = 0;
    int had = 0;
    (void)state;
    for (int i = 0; i < 100; i++) had += fkt_rate_limit_spend(&debt, 5000, 20, 1000);
    CHECK(had == 20);
    CHECK(!fkt_rate_limit_spend(&debt, 5049, 20, 1000) && fkt_rate_limit_spend(&debt, 5050, 20, 1000));
    had = 0;
    for (uint64_t t = 5050; t < 15050; t++) had += fkt_rate_limit_spend(&debt, t, 20, 1000);
    CHECK(had == 199 || had == 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_minute_of_refusals),
        cmocka_unit_test(who_is_one_address),
        cmocka_unit_test(the_table_is_bounded),
        cmocka_unit_test(a_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
