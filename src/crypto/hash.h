/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - SHA-256 of bytes and files, and BLAKE2b for long inputs; through libsodium. */
#ifndef FKT_CRYPTO_HASH_H
#define FKT_CRYPTO_HASH_H

#include "base/status.h"

#include <sodium.h>
#include <stddef.h>
#include <stdint.h>

#define FKT_HASH_BYTES 32
#define FKT_HASH_HEX 65 /* with the NUL */

struct fkt_hash {
    crypto_hash_sha256_state state;
};
void fkt_hash_init(struct fkt_hash *h);
void fkt_hash_add(struct fkt_hash *h, const void *data, size_t len);
void fkt_hash_add_u64(struct fkt_hash *h, uint64_t x);         /* eight bytes, little-endian */
void fkt_hash_hex(struct fkt_hash *h, char out[FKT_HASH_HEX]); /* ends the hash */
void fkt_hash_end(struct fkt_hash *h, uint8_t out[FKT_HASH_BYTES]);

void fkt_hash_bytes_hex(char out[FKT_HASH_HEX], const void *data, size_t len);
FKT_MUST_USE fkt_status fkt_hash_file_hex(char out[FKT_HASH_HEX], const char *path);

/* BLAKE2b-256: three times as fast, for gigabytes of weights whose digests then go into a SHA-256. */
void fkt_hash_long(uint8_t out[FKT_HASH_BYTES], const void *data, size_t len);

#endif
