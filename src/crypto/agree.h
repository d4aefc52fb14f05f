/* SPDX-License-Identifier: Apache-2.0 */
/* agree.h - X25519 (RFC 7748): two parties, one shared secret. */
#ifndef FKT_CRYPTO_AGREE_H
#define FKT_CRYPTO_AGREE_H

#include "base/status.h"

#include <stdint.h>

#define FKT_AGREE_BYTES 32

void fkt_agree_public(uint8_t pk[FKT_AGREE_BYTES], const uint8_t sk[FKT_AGREE_BYTES]);
/* FKT_E_PEER_AUTH when pk is of low order or not canonical (>= 2^255 - 19, or its top bit set); `shared` is then all
 * zero. The result goes through fkt_digest before use. */
FKT_MUST_USE fkt_status fkt_agree(uint8_t shared[32], const uint8_t sk[FKT_AGREE_BYTES],
                                  const uint8_t pk[FKT_AGREE_BYTES]);

/* 1 when fkt_agree accepts pk, without the cost of an agreement: for code that only forwards keys. Public input. */
FKT_MUST_USE int fkt_agree_key_ok(const uint8_t pk[FKT_AGREE_BYTES]);

#endif
