/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/shamir.h"
#include "tests/support/hex.h"

#include <sodium.h>

enum { MOST = 64 };

static const char order_hex[] = "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010";

static struct fkt_entropy_seeded seeded;

static struct fkt_entropy seeded_entropy(uint64_t stream)
{
    struct fkt_entropy e;
    fkt_entropy_seeded_init(&seeded, 1979, stream);
    fkt_entropy_seeded(&e, &seeded);
    return e;
}

/* Returns the bytes it was made with, and fails when they are used up. */
struct tape {
    const uint8_t *bytes;
    size_t left;
};

static fkt_status tape_fill(void *self, uint8_t *out, size_t len)
{
    struct tape *t = self;
    if (len > t->left) return fkt_fail(FKT_E_ENTROPY, "the tape is at its end");
    memcpy(out, t->bytes, len);
    t->bytes += len;
    t->left -= len;
    return FKT_OK;
}

/* Cases from oracle/shamir.py, which fixes the random bytes and so the order in which they are drawn. */
static void python_agrees(void **state)
{
    FILE *f = fopen(FKT_TEST_VECTORS "/shamir.txt", "r");
    static char raw_hex[128 * MOST + 1];
    char hex[80];
    uint8_t secret[32], got[32], raw[64 * MOST], want[32 * MOST], shares[32 * MOST];
    uint32_t x[MOST];
    size_t n, t, cases = 0;
    (void)state;
    CHECK(f);
    while (fscanf(f, "%zu %zu %79s %8192s", &n, &t, hex, raw_hex) == 4) {
        struct tape tape = {raw, 0};
        struct fkt_entropy e = {tape_fill, &tape, 0};
        CHECK(n <= MOST);
        unhex32(secret, hex);
        tape.left = unhex(raw, sizeof raw, raw_hex);
        CHECK(tape.left == 64 * (t - 1));
        for (size_t i = 0; i < n; i++) CHECK(fscanf(f, "%u", &x[i]) == 1);
        for (size_t i = 0; i < n; i++) {
            CHECK(fscanf(f, "%79s", hex) == 1);
            unhex32(want + 32 * i, hex);
        }
        CHECK_OK(fkt_shamir_split(shares, secret, x, n, t, &e));
        CHECK(tape.left == 0);
        assert_memory_equal(shares, want, 32 * n);
        for (size_t first = 0; first + t <= n; first++) {
            CHECK_OK(fkt_shamir_join(got, shares + 32 * first, x + first, t));
            assert_memory_equal(got, secret, 32);
        }
        cases++;
    }
    fclose(f);
    CHECK(cases == 29);
}

static void every_subset_of_t_gives_the_secret_and_none_of_fewer(void **state)
{
    static const uint32_t points[6] = {1, 4294967295u, 7, 2147483648u, 65536, 3};
    struct fkt_entropy e = seeded_entropy(1);
    (void)state;
    for (size_t n = 1; n <= 6; n++)
        for (size_t t = 1; t <= n; t++) {
            uint8_t secret[32], shares[32 * 6], some[32 * 6], got[32];
            uint32_t x[6];
            CHECK_OK(fkt_scalar_random(secret, &e));
            CHECK_OK(fkt_shamir_split(shares, secret, points, n, t, &e));
            for (unsigned mask = 1; mask < 1u << n; mask++) {
                size_t m = 0;
                for (size_t i = 0; i < n; i++)
                    if (mask >> i & 1) {
                        memcpy(some + 32 * m, shares + 32 * i, 32);
                        x[m++] = points[i];
                    }
                CHECK_OK(fkt_shamir_join(got, some, x, m)); /* more than t lie on the same polynomial */
                CHECK((memcmp(got, secret, 32) == 0) == (m >= t));
            }
        }
}

/* The value at x of the polynomial through (0, claimed) and the given shares: Lagrange by libsodium's functions. */
static void value_at(uint8_t out[32], uint32_t x, const uint8_t *y, const uint32_t *at, size_t n)
{
    memset(out, 0, 32);
    for (size_t i = 0; i < n; i++) {
        uint8_t term[32], up[32] = {0}, a[32] = {0}, b[32] = {0}, down[32];
        memcpy(term, y + 32 * i, 32);
        for (size_t j = 0; j < n; j++) {
            if (j == i) continue;
            memcpy(a, &x, 4);
            memcpy(b, &at[j], 4);
            crypto_core_ed25519_scalar_sub(up, a, b);
            memcpy(a, &at[i], 4);
            crypto_core_ed25519_scalar_sub(down, a, b);
            CHECK(crypto_core_ed25519_scalar_invert(down, down) == 0);
            crypto_core_ed25519_scalar_mul(term, term, up);
            crypto_core_ed25519_scalar_mul(term, term, down);
        }
        crypto_core_ed25519_scalar_add(out, out, term);
    }
}

/* t - 1 shares fit every secret: for every claimed secret there is a share of the missing party that gives it. */
static void fewer_than_t_shares_fit_any_secret(void **state)
{
    static const uint32_t x[4] = {2, 3, 5, 11}, at[4] = {0, 2, 3, 5};
    struct fkt_entropy e = seeded_entropy(2);
    uint8_t secret[32], claimed[32], shares[4 * 32], through[4 * 32], got[32];
    (void)state;
    CHECK_OK(fkt_scalar_random(secret, &e));
    CHECK_OK(fkt_shamir_split(shares, secret, x, 4, 4, &e));
    for (int i = 0; i < 20; i++) {
        if (i == 0) memset(claimed, 0, 32);
        else CHECK_OK(fkt_scalar_random(claimed, &e));
        memcpy(through, claimed, 32);
        memcpy(through + 32, shares, 3 * 32);
        value_at(shares + 3 * 32, x[3], through, at, 4);
        CHECK_OK(fkt_shamir_join(got, shares, x, 4));
        assert_memory_equal(got, claimed, 32);
    }
}

/* A share less, or of another secret, gives something else; and no share is the secret itself when t > 1. */
static void shares_do_not_repeat(void **state)
{
    struct fkt_entropy e = seeded_entropy(3);
    uint8_t secret[32] = {5}, a[10 * 32], b[10 * 32];
    uint32_t x[10];
    (void)state;
    for (uint32_t i = 0; i < 10; i++) x[i] = i + 1;
    CHECK_OK(fkt_shamir_split(a, secret, x, 10, 4, &e));
    CHECK_OK(fkt_shamir_split(b, secret, x, 10, 4, &e));
    for (int i = 0; i < 10; i++) {
        CHECK(memcmp(a + 32 * i, b + 32 * i, 32) != 0 && memcmp(a + 32 * i, secret, 32) != 0);
        CHECK(fkt_scalar_ok(a + 32 * i));
    }
    CHECK_OK(fkt_shamir_split(a, secret, x, 10, 1, &e));
    for (int i = 0; i < 10; i++) assert_memory_equal(a + 32 * i, secret, 32);
}

static void a_thousand_holders(void **state)
{
    enum { N = 999, T = 667 };
    static uint8_t shares[32 * N];
    static uint32_t x[N];
    struct fkt_entropy e = seeded_entropy(4);
    uint8_t secret[32], got[32];
    (void)state;
    for (uint32_t i = 0; i < N; i++) x[i] = i + 1;
    CHECK_OK(fkt_scalar_random(secret, &e));
    CHECK_OK(fkt_shamir_split(shares, secret, x, N, T, &e));
    CHECK_OK(fkt_shamir_join(got, shares + 32 * (N - T), x + (N - T), T));
    assert_memory_equal(got, secret, 32);
    CHECK_OK(fkt_shamir_join(got, shares, x, T - 1));
    CHECK(memcmp(got, secret, 32) != 0);
}

static void shares_that_are_not_numbers_are_refused(void **state)
{
    static const uint8_t nothing[32];
    static const uint32_t x[3] = {1, 2, 3};
    struct fkt_entropy e = seeded_entropy(5);
    uint8_t shares[3 * 32], secret[32], bad[32];
    (void)state;
    CHECK_OK(fkt_scalar_random(secret, &e));
    for (int i = 0; i < 3; i++)
        for (int kind = 0; kind < 3; kind++) {
            unhex32(bad, order_hex);
            if (kind == 1) memset(bad, 0xff, sizeof bad);
            if (kind == 2) bad[16] = 1;
            CHECK(fkt_scalar_ok(bad) == 0);
            CHECK_OK(fkt_shamir_split(shares, secret, x, 3, 2, &e));
            memcpy(shares + 32 * i, bad, 32);
            memset(secret, 0x55, sizeof secret);
            CHECK_STATUS(fkt_shamir_join(secret, shares, x, 3), FKT_E_PEER_FORMAT);
            assert_memory_equal(secret, nothing, 32);
        }
    CHECK_STATUS(fkt_shamir_split(shares, bad, x, 3, 2, &e), FKT_E_ARG);
}

static void scalars_below_the_order_are_scalars(void **state)
{
    uint8_t s[32] = {0};
    (void)state;
    CHECK(fkt_scalar_ok(s) == 1);
    unhex32(s, order_hex);
    CHECK(fkt_scalar_ok(s) == 0);
    s[0]--;
    CHECK(fkt_scalar_ok(s) == 1);
    s[8]++; /* a higher limb decides over a lower one */
    CHECK(fkt_scalar_ok(s) == 0);
    s[8] -= 2;
    s[0] = 0xff;
    CHECK(fkt_scalar_ok(s) == 1);
    memset(s, 0xff, sizeof s);
    CHECK(fkt_scalar_ok(s) == 0);
    s[31] = 0x0f;
    CHECK(fkt_scalar_ok(s) == 1);
}

static void bad_thresholds_and_points_are_refused(void **state)
{
    static const uint32_t twice[3] = {4, 9, 4}, null[3] = {1, 0, 2}, fine[3] = {4, 9, 5};
    struct fkt_entropy e = seeded_entropy(6);
    uint8_t shares[3 * 32] = {0}, secret[32] = {1};
    (void)state;
    CHECK_STATUS(fkt_shamir_split(shares, secret, fine, 3, 0, &e), FKT_E_ARG);
    CHECK_STATUS(fkt_shamir_split(shares, secret, fine, 3, 4, &e), FKT_E_ARG);
    CHECK_STATUS(fkt_shamir_split(shares, secret, fine, 0, 0, &e), FKT_E_ARG);
    CHECK_STATUS(fkt_shamir_split(shares, secret, twice, 3, 2, &e), FKT_E_ARG);
    CHECK_STATUS(fkt_shamir_split(shares, secret, null, 3, 2, &e), FKT_E_ARG);
    CHECK_STATUS(fkt_shamir_join(secret, shares, twice, 3), FKT_E_ARG);
    CHECK_STATUS(fkt_shamir_join(secret, shares, null, 3), FKT_E_ARG);
    CHECK_STATUS(fkt_shamir_join(secret, shares, fine, 0), FKT_E_ARG);
}

static void no_entropy_gives_no_shares(void **state)
{
    static const uint8_t bytes[64 * 20];
    static const uint32_t x[22] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22};
    uint8_t shares[22 * 32], secret[32] = {1};
    (void)state;
    for (size_t have = 0; have <= 20; have += 10) { /* 21 are needed */
        struct tape tape = {bytes, 64 * have};
        struct fkt_entropy e = {tape_fill, &tape, 0};
        CHECK_STATUS(fkt_shamir_split(shares, secret, x, 22, 22, &e), FKT_E_ENTROPY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(python_agrees),
        cmocka_unit_test(every_subset_of_t_gives_the_secret_and_none_of_fewer),
        cmocka_unit_test(fewer_than_t_shares_fit_any_secret),
        cmocka_unit_test(shares_do_not_repeat),
        cmocka_unit_test(a_thousand_holders),
        cmocka_unit_test(shares_that_are_not_numbers_are_refused),
        cmocka_unit_test(scalars_below_the_order_are_scalars),
        cmocka_unit_test(bad_thresholds_and_points_are_refused),
        cmocka_unit_test(no_entropy_gives_no_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
