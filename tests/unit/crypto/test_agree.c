/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/agree.h"
#include "tests/support/hex.h"

static void agree_hex(const char *sk, const char *pk, const char *want)
{
    uint8_t s[32], p[32], out[32];
    unhex32(s, sk);
    unhex32(p, pk);
    CHECK_OK(fkt_agree(out, s, p));
    CHECK_HEX(out, 32, want);
}

static void rfc_7748_section_5_2(void **state)
{
    (void)state;
    agree_hex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
              "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
              "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552");
    /* The second vector's u ends in 93: its top bit, which the RFC masks, is off here. */
    agree_hex("4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
              "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a413",
              "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957");
}

static void rfc_7748_a_thousand_times(void **state)
{
    uint8_t k[32] = {9}, u[32] = {9}, out[32];
    (void)state;
    for (int i = 1; i <= 1000; i++) {
        CHECK_OK(fkt_agree(out, k, u));
        memcpy(u, k, 32);
        memcpy(k, out, 32);
        if (i == 1) CHECK_HEX(k, 32, "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079");
    }
    CHECK_HEX(k, 32, "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51");
}

static void rfc_7748_section_6_1(void **state)
{
    static const char a[] = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
                      b[] = "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
                      shared[] = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742",
                      pa[] = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
                      pb[] = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f";
    uint8_t sk[32], pk[32];
    (void)state;
    unhex32(sk, a);
    fkt_agree_public(pk, sk);
    CHECK_HEX(pk, 32, pa);
    unhex32(sk, b);
    fkt_agree_public(pk, sk);
    CHECK_HEX(pk, 32, pb);
    agree_hex(a, pb, shared);
    agree_hex(b, pa, shared);
}

static void refuse(const uint8_t pk[32])
{
    static const uint8_t sk[32] = {8, 1, 2, 3, [31] = 0x40}, nothing[32];
    uint8_t out[32];
    memset(out, 0x55, sizeof out);
    CHECK_STATUS(fkt_agree(out, sk, pk), FKT_E_PEER_AUTH);
    assert_memory_equal(out, nothing, 32);
    CHECK(!fkt_agree_key_ok(pk));
}

/* The u of all points of order 1, 2, 4 and 8 on the curve and its twist. */
static void low_order_points_are_refused(void **state)
{
    static const char *const low[] = {"0000000000000000000000000000000000000000000000000000000000000000",
                                      "0100000000000000000000000000000000000000000000000000000000000000",
                                      "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
                                      "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
                                      "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"};
    uint8_t pk[32];
    (void)state;
    for (size_t i = 0; i < sizeof low / sizeof low[0]; i++) {
        unhex32(pk, low[i]);
        refuse(pk);
        pk[31] |= 0x80;
        refuse(pk);
    }
}

static void other_encodings_of_a_key_are_refused(void **state)
{
    static const uint8_t sk[32] = {7, [31] = 0x41};
    uint8_t pk[32], out[32];
    (void)state;
    for (int i = 0; i < 19; i++) { /* p + i, the same point as i */
        memset(pk, 0xff, sizeof pk);
        pk[0] = (uint8_t)(0xed + i);
        pk[31] = 0x7f;
        refuse(pk);
        pk[31] = 0xff;
        refuse(pk);
    }
    memset(pk, 0xff, sizeof pk); /* p - 2 is the largest canonical u of full order */
    pk[0] = 0xeb;
    pk[31] = 0x7f;
    CHECK_OK(fkt_agree(out, sk, pk));
    CHECK(fkt_agree_key_ok(pk));
    fkt_agree_public(pk, sk);
    CHECK_OK(fkt_agree(out, sk, pk));
    CHECK(fkt_agree_key_ok(pk));
    pk[31] |= 0x80;
    refuse(pk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rfc_7748_section_5_2),
        cmocka_unit_test(rfc_7748_a_thousand_times),
        cmocka_unit_test(rfc_7748_section_6_1),
        cmocka_unit_test(low_order_points_are_refused),
        cmocka_unit_test(other_encodings_of_a_key_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
