/* SPDX-License-Identifier: Apache-2.0 */
/* group.h - the ristretto255 group (RFC 9496), for additive commitments. Scalars as in shamir.h. */
#ifndef FKT_CRYPTO_GROUP_H
#define FKT_CRYPTO_GROUP_H

#include "base/status.h"

#include <stdint.h>

#define FKT_POINT_BYTES 32

FKT_MUST_USE int fkt_point_ok(const uint8_t p[FKT_POINT_BYTES]); /* 1: canonical encoding, not the identity */
/* p = s*B. FKT_E_PEER_AUTH when the result is the identity. */
FKT_MUST_USE fkt_status fkt_point_base(uint8_t p[FKT_POINT_BYTES], const uint8_t s[32]);
/* r = p + h*q, all public. FKT_E_PEER_AUTH on a bad encoding or when an intermediate result is the identity. */
FKT_MUST_USE fkt_status fkt_point_fold(uint8_t r[FKT_POINT_BYTES], const uint8_t p[FKT_POINT_BYTES],
                                       const uint8_t h[32], const uint8_t q[FKT_POINT_BYTES]);
/* r = a + h*b modulo l: what fkt_point_fold does, on the scalars. */
void fkt_scalar_fold(uint8_t r[32], const uint8_t a[32], const uint8_t h[32], const uint8_t b[32]);
/* 64 bytes to a scalar below l, by reduction. */
void fkt_scalar_reduce(uint8_t r[32], const uint8_t wide[64]);

#endif
