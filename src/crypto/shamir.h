/* SPDX-License-Identifier: Apache-2.0 */
/* shamir.h - a secret scalar in n shares, any t of which give it back; t - 1 reveal nothing. The field is that of
 * Ed25519's scalars, l = 2^252 + 27742317777372353535851937790883648493; numbers are 32 bytes, little-endian, below l.
 * Time depends on n and t alone. */
#ifndef FKT_CRYPTO_SHAMIR_H
#define FKT_CRYPTO_SHAMIR_H

#include "crypto/entropy.h"

#define FKT_SCALAR_BYTES 32

/* Uniform below l: 64 random bytes reduced. */
FKT_MUST_USE fkt_status fkt_scalar_random(uint8_t out[FKT_SCALAR_BYTES], struct fkt_entropy *entropy);
FKT_MUST_USE int fkt_scalar_ok(const uint8_t s[FKT_SCALAR_BYTES]); /* 1 when below l; for public or checked input */

/* shares (n, 32): the polynomial of degree t - 1 with random coefficients and value `secret` at 0, at the points
 * x[0..n-1], which are public, non-zero and distinct. Coefficients are drawn in the order of their degree, from 1. */
FKT_MUST_USE fkt_status fkt_shamir_split(uint8_t *shares, const uint8_t secret[FKT_SCALAR_BYTES], const uint32_t *x,
                                         size_t n, size_t t, struct fkt_entropy *entropy);
/* Value at 0 through the t points (x[i], shares[i]). FKT_E_PEER_FORMAT when a share is not below l. */
FKT_MUST_USE fkt_status fkt_shamir_join(uint8_t secret[FKT_SCALAR_BYTES], const uint8_t *shares, const uint32_t *x,
                                        size_t t);

#endif
