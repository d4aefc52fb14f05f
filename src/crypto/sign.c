/* SPDX-License-Identifier: Apache-2.0 */
/* sign.c - Ed25519 (RFC 8032) through libsodium, detached.
 *
 * libsodium's verification is stricter than the RFC: S must be below l, R is compared as bytes and so must be
 * canonical, and small-order or non-canonical keys and small-order R are refused. It accepts one kind of bad key: a
 * point of the prime-order group plus one of small order. Implementations disagree about signatures under such keys, so
 * a roster may not hold them.
 *
 * Therefore fkt_sign_key_ok multiplies: (l - 1)*P = -P exactly when l*P = 0. The product is in canonical form, so
 * comparing bytes also refuses every non-canonical P. (crypto_core_ed25519_is_valid_point is not used: releases before
 * 2026 check only the x of l*P and accept P plus the point of order two.) Cost: about 0.1 ms a key, once per key of a
 * roster. */
#include "crypto/sign.h"

#include <sodium.h>

void fkt_sign_keypair(uint8_t pk[FKT_SIGN_PUBLIC], uint8_t sk[FKT_SIGN_SECRET], const uint8_t seed[FKT_SIGN_SEED])
{
    crypto_sign_seed_keypair(pk, sk, seed);
}

void fkt_sign(uint8_t sig[FKT_SIGN_BYTES], const void *msg, size_t len, const uint8_t sk[FKT_SIGN_SECRET])
{
    crypto_sign_detached(sig, NULL, msg, len, sk);
}

int fkt_verify(const uint8_t sig[FKT_SIGN_BYTES], const void *msg, size_t len, const uint8_t pk[FKT_SIGN_PUBLIC])
{
    return crypto_sign_verify_detached(sig, msg, len, pk) == 0;
}

int fkt_sign_key_ok(const uint8_t pk[FKT_SIGN_PUBLIC])
{
    static const uint8_t minus_one[32] = {0xec, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58,       0xd6,
                                          0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, [31] = 0x10}; /* l - 1 */
    uint8_t negated[FKT_SIGN_PUBLIC];
    if (crypto_scalarmult_ed25519_noclamp(negated, minus_one, pk) != 0) return 0; /* not a point, or of small order */
    negated[31] ^= 0x80;                                                          /* the sign of x */
    return sodium_memcmp(negated, pk, sizeof negated) == 0;
}
