/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/stream.h"
#include "tests/support/hex.h"
#include "tests/support/slow_aes.h"

#include <sodium.h>

enum { LONG = 5 * 16384 + 100 };

static const enum fkt_keystream kinds[2] = {FKT_KEYSTREAM_AES, FKT_KEYSTREAM_CHACHA20};

/* SP 800-38A F.5.5 (CTR-AES256.Encrypt), which starts from another counter than ours: it validates the slow AES. */
static void the_slow_aes_is_sp_800_38a(void **state)
{
    uint8_t key[32], counter[16], plain[64], out[64];
    struct slow_aes a;
    (void)state;
    unhex32(key, "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4");
    unhex(counter, sizeof counter, "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
    unhex(plain, sizeof plain,
          "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
          "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710");
    slow_aes_init(&a, key);
    slow_aes_ctr(&a, counter, out, sizeof out);
    for (int i = 0; i < 64; i++) out[i] ^= plain[i];
    CHECK_HEX(out, 64,
              "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
              "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6");
}

/* Keystream by other means: for AES the slow one above, for ChaCha20 libsodium. */
static void slow_bytes(enum fkt_keystream kind, uint8_t *out, size_t n, const uint8_t key[32])
{
    static const uint8_t nonce[12];
    uint8_t counter[16] = {0};
    struct slow_aes a;
    if (kind == FKT_KEYSTREAM_CHACHA20) {
        crypto_stream_chacha20_ietf(out, n, nonce, key);
        return;
    }
    slow_aes_init(&a, key);
    slow_aes_ctr(&a, counter, out, n);
}

/* Under the zero key: FIPS 197's cipher of a zero block, and RFC 8439 A.1 #1 and #2. */
static void published_first_blocks(void **state)
{
    static const char *const want[2] = {"dc95c078a2408989ad48a21492842087",
                                        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
                                        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
                                        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
                                        "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"};
    static const size_t n[2] = {16, 128};
    static const uint8_t key[32];
    uint8_t out[128];
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct fkt_stream *s = NULL;
        CHECK_OK(fkt_stream_new(&s, kinds[i]));
        CHECK_OK(fkt_stream_bytes(s, key, out, n[i]));
        CHECK_HEX(out, n[i], want[i]);
        fkt_stream_free(s);
    }
}

static void bytes_are_those_of_the_twin(void **state)
{
    static const size_t sizes[] = {0, 1, 15, 16, 17, 63, 64, 65, 4096, 16383, 16384, 16385, 2 * 16384, LONG};
    static uint8_t want[LONG], got[LONG + 1];
    uint8_t key[32];
    (void)state;
    for (int i = 0; i < 32; i++) key[i] = (uint8_t)(201 * i + 7);
    for (int k = 0; k < 2; k++) {
        struct fkt_stream *s = NULL;
        CHECK_OK(fkt_stream_new(&s, kinds[k]));
        slow_bytes(kinds[k], want, sizeof want, key);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            memset(got, 0x55, sizeof got);
            CHECK_OK(fkt_stream_bytes(s, key, got, sizes[i]));
            assert_memory_equal(got, want, sizes[i]);
            CHECK(got[sizes[i]] == 0x55);
        }
        fkt_stream_free(s);
    }
}

static uint32_t word32(const uint8_t *b) { return b[0] | b[1] << 8 | b[2] << 16 | (uint32_t)b[3] << 24; }
static uint64_t word64(const uint8_t *b) { return word32(b) | (uint64_t)word32(b + 4) << 32; }

/* Words are little-endian, sums wrap, and nothing beyond n is touched; every length around the chunk's. */
static void words_are_added_and_taken_off(void **state)
{
    static const size_t sizes[] = {0, 1, 2, 3, 15, 16, 17, 2047, 2048, 2049, 4095, 4096, 4097, 10000};
    static uint8_t bytes[8 * 10000];
    static uint32_t a[10001];
    static uint64_t b[10001];
    uint8_t key[32] = {9, 8, 7};
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct fkt_stream *s = NULL;
        CHECK_OK(fkt_stream_new(&s, kinds[k]));
        slow_bytes(kinds[k], bytes, sizeof bytes, key);
        for (size_t z = 0; z < sizeof sizes / sizeof sizes[0]; z++) {
            size_t n = sizes[z];
            for (size_t i = 0; i <= n; i++) {
                a[i] = (uint32_t)(0xfffffff0u + i);
                b[i] = UINT64_MAX - 7 * i;
            }
            CHECK_OK(fkt_stream_add32(s, key, a, n, 0));
            CHECK_OK(fkt_stream_add64(s, key, b, n, 0));
            for (size_t i = 0; i < n; i++) {
                CHECK(a[i] == (uint32_t)(0xfffffff0u + i + word32(bytes + 4 * i)));
                CHECK(b[i] == UINT64_MAX - 7 * i + word64(bytes + 8 * i));
            }
            CHECK_OK(fkt_stream_add32(s, key, a, n, 1));
            CHECK_OK(fkt_stream_add64(s, key, b, n, 1));
            for (size_t i = 0; i <= n; i++) CHECK(a[i] == (uint32_t)(0xfffffff0u + i) && b[i] == UINT64_MAX - 7 * i);
            CHECK_OK(fkt_stream_add32(s, key, a, n, 1));
            for (size_t i = 0; i < n; i++) CHECK(a[i] == (uint32_t)(0xfffffff0u + i - word32(bytes + 4 * i)));
        }
        fkt_stream_free(s);
    }
}

/* One context serves many keys, in any order and length; each stream starts from zero. */
static void a_stream_starts_anew_with_each_key(void **state)
{
    uint8_t want[100], got[100], key[32] = {0};
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct fkt_stream *s = NULL;
        CHECK_OK(fkt_stream_new(&s, kinds[k]));
        for (int i = 0; i < 50; i++) {
            size_t n = (size_t)(i * 37 % 100);
            key[i % 32] ^= (uint8_t)(i + 1);
            slow_bytes(kinds[k], want, sizeof want, key);
            CHECK_OK(fkt_stream_bytes(s, key, got, n));
            assert_memory_equal(got, want, n);
        }
        fkt_stream_free(s);
    }
}

static void unknown_keystreams_are_refused(void **state)
{
    struct fkt_stream *s = (struct fkt_stream *)&s;
    (void)state;
    CHECK_STATUS(fkt_stream_new(&s, (enum fkt_keystream)2), FKT_E_ARG);
    CHECK(s == NULL);
    fkt_stream_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slow_aes_is_sp_800_38a),         cmocka_unit_test(published_first_blocks),
        cmocka_unit_test(bytes_are_those_of_the_twin),        cmocka_unit_test(words_are_added_and_taken_off),
        cmocka_unit_test(a_stream_starts_anew_with_each_key), cmocka_unit_test(unknown_keystreams_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
