/* SPDX-License-Identifier: Apache-2.0 */
/* agree.c - X25519 (RFC 7748) through libsodium.
 *
 * Where we differ: RFC 7748 section 5 masks the top bit of a peer's u and takes u modulo p = 2^255 - 19, so that one
 * point has several encodings. Public keys are signed and hashed as bytes here, so a point has one: a u that is not
 * below p, or has its top bit set, is refused. The low-order points, for which every private key gives the same
 * all-zero secret (section 6.1), are refused too.
 *
 * Different keys do not imply different secrets: private keys are multiples of eight, so P + T with T of small order is
 * another canonical u that gives the same secret as P with every peer. An attacker without the private key of P gains
 * nothing by presenting it (it cannot compute the secret), keys are signed under the roster with their owner's number,
 * and seal keys have a direction. So code here must not assume that unequal keys give unequal secrets, and none does.
 *
 * Cost: one scalar multiplication, about 45 us; it does not depend on the private key. */
#include "crypto/agree.h"

#include <sodium.h>

/* 1 when u < p. Public input; the borrow of u - p decides. */
static int canonical(const uint8_t u[FKT_AGREE_BYTES])
{
    unsigned borrow = 0;
    for (int i = 0; i < FKT_AGREE_BYTES; i++) {
        unsigned p = i == 0 ? 0xed : i == 31 ? 0x7f : 0xff;
        borrow = (u[i] - p - borrow) >> 8 & 1;
    }
    return (int)borrow;
}

void fkt_agree_public(uint8_t pk[FKT_AGREE_BYTES], const uint8_t sk[FKT_AGREE_BYTES])
{
    crypto_scalarmult_base(pk, sk);
}

fkt_status fkt_agree(uint8_t shared[32], const uint8_t sk[FKT_AGREE_BYTES], const uint8_t pk[FKT_AGREE_BYTES])
{
    int ready = sodium_init(); /* detects vector units; without them the result is the same, slower */
    (void)ready;
    if (canonical(pk) && crypto_scalarmult(shared, sk, pk) == 0) return FKT_OK;
    sodium_memzero(shared, 32);
    return fkt_fail(FKT_E_PEER_AUTH, "a peer's agreement key is of low order or not canonical");
}

/* The canonical u of order 1 or 2, 4 and 8, on the curve and its twist. */
int fkt_agree_key_ok(const uint8_t pk[FKT_AGREE_BYTES])
{
    static const uint8_t low[][FKT_AGREE_BYTES] = {
        {0},
        {1},
        {0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4, 0x6a,
         0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00},
        {0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1, 0x55, 0x9c, 0x83, 0xef, 0x5b,
         0x04, 0x44, 0x5c, 0xc4, 0x58, 0x1c, 0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f, 0x11, 0x57},
        {0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
         0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
    };
    int ok = canonical(pk);
    for (size_t i = 0; i < sizeof low / sizeof *low; i++) ok &= sodium_memcmp(pk, low[i], FKT_AGREE_BYTES) != 0;
    return ok;
}
