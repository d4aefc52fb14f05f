/* SPDX-License-Identifier: Apache-2.0 */
/* Fails the 1st, 2nd, 3rd ... allocation of what allocates in crypto/ until it succeeds; nothing may leak. */
#include "crypto/shamir.h"
#include "crypto/stream.h"
#include "tests/support/sweep.h"

static fkt_status run_split(void)
{
    static const uint32_t x[5] = {1, 2, 3, 4, 5};
    static const uint8_t secret[32] = {7};
    uint8_t shares[5 * 32], got[32];
    struct fkt_entropy_seeded seeded;
    struct fkt_entropy e;
    fkt_status st;
    fkt_entropy_seeded_init(&seeded, 1, 0);
    fkt_entropy_seeded(&e, &seeded);
    FKT_TRY(fkt_shamir_split(shares, secret, x, 5, 3, &e));
    FKT_TRY(fkt_shamir_join(got, shares, x, 3));
    assert_memory_equal(got, secret, 32);
out:
    return st;
}

static fkt_status run_stream(void)
{
    static const uint8_t key[32] = {1};
    struct fkt_stream *s = NULL;
    uint64_t acc[10] = {0};
    fkt_status st;
    FKT_TRY(fkt_stream_new(&s, FKT_KEYSTREAM_AES));
    FKT_TRY(fkt_stream_add64(s, key, acc, 10, 0));
out:
    fkt_stream_free(s);
    return st;
}

static void split(void **state)
{
    (void)state;
    CHECK(sweep_allocations(run_split, NULL) == 2);
}

static void stream(void **state)
{
    (void)state;
    CHECK(sweep_allocations(run_stream, NULL) == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(split), cmocka_unit_test(stream)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
