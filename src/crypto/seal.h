/* SPDX-License-Identifier: Apache-2.0 */
/* seal.h - one message under one key: ChaCha20-Poly1305 (RFC 8439) with an all-zero nonce. A key must never seal twice;
 * docs/protocol.md derives a fresh one for each pair, direction and round. */
#ifndef FKT_CRYPTO_SEAL_H
#define FKT_CRYPTO_SEAL_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define FKT_SEAL_TAG 16

void fkt_seal(uint8_t *out /* (len + 16) */, const uint8_t *in, size_t len, const uint8_t key[32]);
/* in: len + 16 bytes. 1 when authentic; else 0 and `out` is all zero. */
FKT_MUST_USE int fkt_unseal(uint8_t *out /* (len) */, const uint8_t *in, size_t len, const uint8_t key[32]);

#endif
