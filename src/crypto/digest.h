/* SPDX-License-Identifier: Apache-2.0 */
/* digest.h - BLAKE2b-256 over labelled, length-prefixed parts: commitments, transcripts and key derivation. Two inputs
 * that differ in label, number of parts or any part never hash the same bytes (docs/protocol.md 2.1). */
#ifndef FKT_CRYPTO_DIGEST_H
#define FKT_CRYPTO_DIGEST_H

#include "base/status.h"

#include <sodium.h>
#include <stddef.h>
#include <stdint.h>

#define FKT_DIGEST_BYTES 32

struct fkt_digest {
    crypto_generichash_state state;
};
/* key (32 bytes) NULL: a plain hash; else a keyed one, used as a key derivation. label: at most 255 bytes. */
void fkt_digest_init(struct fkt_digest *d, const char *label, const uint8_t *key);
void fkt_digest_add(struct fkt_digest *d, const void *part, size_t len);  /* u64le length, then the bytes */
void fkt_digest_add_u32(struct fkt_digest *d, uint32_t x);                /* a part of four bytes, little-endian */
void fkt_digest_end(struct fkt_digest *d, uint8_t out[FKT_DIGEST_BYTES]); /* and wipes the state */

/* 1 when equal; time does not depend on the bytes. */
int fkt_same(const void *a, const void *b, size_t len);

#endif
