/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/sign.h"
#include "tests/support/hex.h"

/* RFC 8032 section 7.1: tests 1, 2, 3 and SHA(abc). */
static const struct {
    const char *seed, *pk, *msg, *sig;
} published[] = {
    {"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
     "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "-",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
     "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"},
    {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
     "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
     "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"},
    {"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
     "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
     "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"},
    {"833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
     "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
     "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
     "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
     "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b589"
     "09351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704"},
};

static void rfc_8032_section_7_1(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
        uint8_t seed[32], pk[32], sk[64], sig[64], msg[64];
        size_t len = unhex(msg, sizeof msg, published[i].msg);
        unhex32(seed, published[i].seed);
        fkt_sign_keypair(pk, sk, seed);
        CHECK_HEX(pk, 32, published[i].pk);
        fkt_sign(sig, msg, len, sk);
        CHECK_HEX(sig, 64, published[i].sig);
        CHECK(fkt_verify(sig, msg, len, pk) == 1);
        CHECK(fkt_sign_key_ok(pk) == 1);
    }
}

static void every_flipped_bit_is_wrong(void **state)
{
    static const uint8_t seed[32] = {1};
    uint8_t pk[32], sk[64], sig[64], msg[32] = {2};
    (void)state;
    fkt_sign_keypair(pk, sk, seed);
    fkt_sign(sig, msg, sizeof msg, sk);
    for (int i = 0; i < 512; i++) {
        sig[i / 8] ^= (uint8_t)(1 << i % 8);
        CHECK(fkt_verify(sig, msg, sizeof msg, pk) == 0);
        sig[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    for (int i = 0; i < 256; i++) {
        msg[i / 8] ^= (uint8_t)(1 << i % 8);
        CHECK(fkt_verify(sig, msg, sizeof msg, pk) == 0);
        msg[i / 8] ^= (uint8_t)(1 << i % 8);
        pk[i / 8] ^= (uint8_t)(1 << i % 8);
        CHECK(fkt_verify(sig, msg, sizeof msg, pk) == 0);
        pk[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    CHECK(fkt_verify(sig, msg, sizeof msg - 1, pk) == 0);
    CHECK(fkt_verify(sig, msg, sizeof msg, pk) == 1);
}

/* S + l is accepted by a verifier that does not check S < l. */
static void s_plus_the_order_is_wrong(void **state)
{
    static const uint8_t seed[32] = {3};
    uint8_t pk[32], sk[64], sig[64], l[32];
    unsigned carry = 0;
    (void)state;
    unhex32(l, "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
    fkt_sign_keypair(pk, sk, seed);
    fkt_sign(sig, "m", 1, sk);
    CHECK(fkt_verify(sig, "m", 1, pk) == 1);
    for (int i = 0; i < 32; i++) {
        carry += sig[32 + i] + l[i];
        sig[32 + i] = (uint8_t)carry;
        carry >>= 8;
    }
    CHECK(carry == 0);
    CHECK(fkt_verify(sig, "m", 1, pk) == 0);
}

/* Points made by oracle/primitives.py: which may be in a roster, and that a small-order key verifies nothing. */
static void only_points_of_the_main_group_are_keys(void **state)
{
    static const uint8_t zero_sig[64] = {1}; /* R the identity, S zero: right for A of small order, when not refused */
    FILE *f = fopen(FKT_TEST_VECTORS "/crypto_keys.txt", "r");
    char word[16], hex[80];
    uint8_t pk[32];
    int good = 0, mixed = 0, small = 0, other = 0;
    (void)state;
    CHECK(f);
    while (fscanf(f, "%15s %79s", word, hex) == 2) {
        int want = strcmp(word, "good") == 0;
        unhex32(pk, hex);
        if (fkt_sign_key_ok(pk) != want) fail_msg("%s key %s: got %d", word, hex, !want);
        good += want;
        mixed += strcmp(word, "mixed") == 0;
        small += strcmp(word, "small") == 0;
        other += strcmp(word, "noncanonical") == 0 || strcmp(word, "off") == 0;
        if (strcmp(word, "small") == 0) CHECK(fkt_verify(zero_sig, "m", 1, pk) == 0);
    }
    fclose(f);
    CHECK(good == 5 && mixed == 35 && small == 8 && other == 46);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rfc_8032_section_7_1),
        cmocka_unit_test(every_flipped_bit_is_wrong),
        cmocka_unit_test(s_plus_the_order_is_wrong),
        cmocka_unit_test(only_points_of_the_main_group_are_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
