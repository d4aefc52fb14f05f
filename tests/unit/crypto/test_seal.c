/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/seal.h"
#include "tests/support/hex.h"

#include <sodium.h>

enum { MOST = 512 };

/* RFC 8439's own vector has a nonce and associated data, which fkt_seal has not: it shows that libsodium's function is
 * the RFC's. The zero-nonce vectors come from a ChaCha20-Poly1305 in Python that passes the same one. */
static void rfc_8439_section_2_8_2(void **state)
{
    static const char text[] = "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the "
                               "future, sunscreen would be it.";
    uint8_t key[32], nonce[12], ad[12], out[130];
    (void)state;
    for (int i = 0; i < 32; i++) key[i] = (uint8_t)(0x80 + i);
    unhex(nonce, sizeof nonce, "070000004041424344454647");
    unhex(ad, sizeof ad, "50515253c0c1c2c3c4c5c6c7");
    crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, (const uint8_t *)text, sizeof text - 1, ad, sizeof ad, NULL,
                                              nonce, key);
    CHECK_HEX(out, 16, "d31a8d34648e60db7b86afbc53ef7ec2");
    CHECK_HEX(out + 114, 16, "1ae10b594f09e26a7e902ecbd0600691");
}

static void python_agrees(void **state)
{
    FILE *f = fopen(FKT_TEST_VECTORS "/crypto_seal.txt", "r");
    char k[80], p[2 * MOST + 1], s[2 * MOST + 1];
    uint8_t key[32], plain[MOST], want[MOST], got[MOST];
    size_t len, lines = 0;
    (void)state;
    CHECK(f);
    while (fscanf(f, "%79s %1024s %1024s", k, p, s) == 3) {
        unhex32(key, k);
        len = unhex(plain, sizeof plain, p);
        CHECK(unhex(want, sizeof want, s) == len + FKT_SEAL_TAG);
        fkt_seal(got, plain, len, key);
        assert_memory_equal(got, want, len + FKT_SEAL_TAG);
        memset(got, 0x55, sizeof got);
        CHECK(fkt_unseal(got, want, len, key) == 1);
        assert_memory_equal(got, plain, len);
        lines++;
    }
    fclose(f);
    CHECK(lines == 11);
}

static void what_was_touched_does_not_open(void **state)
{
    static const uint8_t nothing[80];
    uint8_t key[32] = {4}, plain[80], sealed[96], out[80];
    (void)state;
    for (size_t i = 0; i < sizeof plain; i++) plain[i] = (uint8_t)(i + 1);
    fkt_seal(sealed, plain, sizeof plain, key);
    for (size_t i = 0; i < 8 * sizeof sealed; i++) {
        sealed[i / 8] ^= (uint8_t)(1 << i % 8);
        memset(out, 0x55, sizeof out);
        CHECK(fkt_unseal(out, sealed, sizeof plain, key) == 0);
        assert_memory_equal(out, nothing, sizeof out);
        sealed[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    for (size_t i = 0; i < 256; i++) {
        key[i / 8] ^= (uint8_t)(1 << i % 8);
        CHECK(fkt_unseal(out, sealed, sizeof plain, key) == 0);
        key[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    CHECK(fkt_unseal(out, sealed, sizeof plain - 1, key) == 0);
    CHECK(fkt_unseal(out, sealed, sizeof plain, key) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rfc_8439_section_2_8_2),
        cmocka_unit_test(python_agrees),
        cmocka_unit_test(what_was_touched_does_not_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
