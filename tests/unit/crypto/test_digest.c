/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/digest.h"
#include "tests/support/hex.h"

enum { FIELDS = 8, FIELD = 1024 };

/* Splits a line of hexadecimal fields. */
static size_t read_fields(char *line, uint8_t out[FIELDS][FIELD], size_t len[FIELDS])
{
    size_t n = 0;
    char *save = NULL;
    for (char *word = strtok_r(line, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
        CHECK(n < FIELDS);
        len[n] = unhex(out[n], FIELD, word);
        n++;
    }
    return n;
}

/* Made by Python's hashlib (oracle/primitives.py). */
static void hashlib_agrees(void **state)
{
    static uint8_t field[FIELDS][FIELD];
    FILE *f = fopen(FKT_TEST_VECTORS "/crypto_digest.txt", "r");
    char line[8192], label[256];
    size_t len[FIELDS], n, lines = 0;
    (void)state;
    CHECK(f);
    while (fgets(line, sizeof line, f)) {
        struct fkt_digest d;
        uint8_t out[FKT_DIGEST_BYTES];
        n = read_fields(line, field, len);
        CHECK(n >= 3 && len[n - 1] == FKT_DIGEST_BYTES);
        memcpy(label, field[0], len[0]);
        label[len[0]] = 0;
        fkt_digest_init(&d, label, len[1] ? field[1] : NULL);
        for (size_t i = 2; i + 1 < n; i++) fkt_digest_add(&d, field[i], len[i]);
        fkt_digest_end(&d, out);
        assert_memory_equal(out, field[n - 1], sizeof out);
        lines++;
    }
    fclose(f);
    CHECK(lines == 42);
}

static void hash(uint8_t out[FKT_DIGEST_BYTES], const char *label, const char *a, const char *b)
{
    struct fkt_digest d;
    fkt_digest_init(&d, label, NULL);
    if (a) fkt_digest_add(&d, a, strlen(a));
    if (b) fkt_digest_add(&d, b, strlen(b));
    fkt_digest_end(&d, out);
}

static void what_is_split_differently_hashes_differently(void **state)
{
    static const char *const inputs[][3] = {{"l", "ab", "c"}, {"l", "a", "bc"}, {"l", "abc", ""}, {"l", "", "abc"},
                                            {"l", "abc"},     {"la", "bc"},     {"labc", NULL},   {"l", ""},
                                            {"l", "", ""},    {"l", NULL},      {"", "l"}};
    enum { N = sizeof inputs / sizeof inputs[0] };
    uint8_t h[N][FKT_DIGEST_BYTES];
    (void)state;
    for (size_t i = 0; i < N; i++) hash(h[i], inputs[i][0], inputs[i][1], inputs[i][2]);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < i; j++) CHECK(memcmp(h[i], h[j], sizeof h[i]) != 0);
}

static void u32_is_four_bytes_and_the_state_is_wiped(void **state)
{
    static const uint8_t bytes[4] = {0x78, 0x56, 0x34, 0x12}, nothing[sizeof(struct fkt_digest)];
    struct fkt_digest a, b;
    uint8_t x[FKT_DIGEST_BYTES], y[FKT_DIGEST_BYTES];
    (void)state;
    fkt_digest_init(&a, "l", NULL);
    fkt_digest_init(&b, "l", NULL);
    fkt_digest_add_u32(&a, 0x12345678);
    fkt_digest_add(&b, bytes, sizeof bytes);
    fkt_digest_end(&a, x);
    fkt_digest_end(&b, y);
    assert_memory_equal(x, y, sizeof x);
    assert_memory_equal(&a, nothing, sizeof a);
}

static void same_sees_each_bit(void **state)
{
    uint8_t a[33] = {1, 2, 3}, b[33] = {1, 2, 3};
    (void)state;
    CHECK(fkt_same(a, b, sizeof a) == 1 && fkt_same(a, b, 0) == 1);
    for (size_t i = 0; i < 8 * sizeof b; i++) {
        b[i / 8] ^= (uint8_t)(1 << i % 8);
        CHECK(fkt_same(a, b, sizeof a) == 0);
        b[i / 8] ^= (uint8_t)(1 << i % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashlib_agrees),
        cmocka_unit_test(what_is_split_differently_hashes_differently),
        cmocka_unit_test(u32_is_four_bytes_and_the_state_is_wiped),
        cmocka_unit_test(same_sees_each_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
