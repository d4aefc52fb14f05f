/* SPDX-License-Identifier: Apache-2.0 */
/* sign.h - Ed25519 (RFC 8032), the identity of a site. Signs short digests of labelled transcripts, never raw data. */
#ifndef FKT_CRYPTO_SIGN_H
#define FKT_CRYPTO_SIGN_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define FKT_SIGN_PUBLIC 32
#define FKT_SIGN_SECRET 64
#define FKT_SIGN_SEED 32
#define FKT_SIGN_BYTES 64

void fkt_sign_keypair(uint8_t pk[FKT_SIGN_PUBLIC], uint8_t sk[FKT_SIGN_SECRET], const uint8_t seed[FKT_SIGN_SEED]);
void fkt_sign(uint8_t sig[FKT_SIGN_BYTES], const void *msg, size_t len, const uint8_t sk[FKT_SIGN_SECRET]);
/* 1 when valid. Small-order keys and non-canonical encodings of R and S are invalid. */
FKT_MUST_USE int fkt_verify(const uint8_t sig[FKT_SIGN_BYTES], const void *msg, size_t len,
                            const uint8_t pk[FKT_SIGN_PUBLIC]);
/* 1 when pk is a canonical point of the prime-order group and not the identity: required of every key in a roster. */
FKT_MUST_USE int fkt_sign_key_ok(const uint8_t pk[FKT_SIGN_PUBLIC]);

#endif
