/* SPDX-License-Identifier: Apache-2.0 */
/* group.c - ristretto255 (RFC 9496) through libsodium: a group of prime order l in which a point has one encoding, so
 * that cofactors and small orders cannot occur.
 *
 * The identity is always refused. Its encoding is valid (all zero), but honest parties never send it: honest points are
 * multiples of B by random scalars, and an honest sum is the identity with probability 1/l. Cost: about 50 us for each
 * multiplication. */
#include "crypto/group.h"

#include <sodium.h>
#include <string.h>

int fkt_point_ok(const uint8_t p[FKT_POINT_BYTES])
{
    if (p[FKT_POINT_BYTES - 1] & 0x80) return 0; /* not canonical, but libsodium 1.0.18 accepts it */
    return crypto_core_ristretto255_is_valid_point(p) == 1 && !sodium_is_zero(p, FKT_POINT_BYTES);
}

fkt_status fkt_point_base(uint8_t p[FKT_POINT_BYTES], const uint8_t s[32])
{
    if (crypto_scalarmult_ristretto255_base(p, s) == 0) return FKT_OK;
    memset(p, 0, FKT_POINT_BYTES);
    return fkt_fail(FKT_E_PEER_AUTH, "a commitment is the identity of the group");
}

fkt_status fkt_point_fold(uint8_t r[FKT_POINT_BYTES], const uint8_t p[FKT_POINT_BYTES], const uint8_t h[32],
                          const uint8_t q[FKT_POINT_BYTES])
{
    uint8_t hq[FKT_POINT_BYTES], sum[FKT_POINT_BYTES];
    if (fkt_point_ok(p) && fkt_point_ok(q) && crypto_scalarmult_ristretto255(hq, h, q) == 0 &&
        crypto_core_ristretto255_add(sum, p, hq) == 0 && !sodium_is_zero(sum, sizeof sum)) {
        memcpy(r, sum, sizeof sum); /* r may be p or q */
        return FKT_OK;
    }
    memset(r, 0, FKT_POINT_BYTES);
    return fkt_fail(FKT_E_PEER_AUTH,
                    "a commitment is not a point of the group, or a sum of commitments is the identity");
}

void fkt_scalar_fold(uint8_t r[32], const uint8_t a[32], const uint8_t h[32], const uint8_t b[32])
{
    uint8_t hb[32];
    crypto_core_ristretto255_scalar_mul(hb, h, b);
    crypto_core_ristretto255_scalar_add(r, a, hb);
    sodium_memzero(hb, sizeof hb);
}

void fkt_scalar_reduce(uint8_t r[32], const uint8_t wide[64]) { crypto_core_ristretto255_scalar_reduce(r, wide); }
