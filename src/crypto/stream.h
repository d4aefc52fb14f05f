/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - masks: a 256-bit key is expanded to a long sequence of little-endian words, added to or subtracted from a
 * vector as it is generated, so that no mask is stored. AES-256-CTR or ChaCha20, both through OpenSSL's EVP (measured:
 * 2.4 times as fast as libsodium's ChaCha20); nonce and counter start at zero, since a key makes one stream only. */
#ifndef FKT_CRYPTO_STREAM_H
#define FKT_CRYPTO_STREAM_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum fkt_keystream { FKT_KEYSTREAM_AES = 0, FKT_KEYSTREAM_CHACHA20 = 1 };

struct fkt_stream; /* holds the cipher context, reusable */
FKT_MUST_USE fkt_status fkt_stream_new(struct fkt_stream **out, enum fkt_keystream kind);
void fkt_stream_free(struct fkt_stream *s); /* wipes */
/* acc[i] += or -= word i of the stream of `key`, modulo 2^32 or 2^64. subtract is public. */
FKT_MUST_USE fkt_status fkt_stream_add32(struct fkt_stream *s, const uint8_t key[32], uint32_t *acc, size_t n,
                                         int subtract);
FKT_MUST_USE fkt_status fkt_stream_add64(struct fkt_stream *s, const uint8_t key[32], uint64_t *acc, size_t n,
                                         int subtract);
/* The first n bytes of the stream of `key`. */
FKT_MUST_USE fkt_status fkt_stream_bytes(struct fkt_stream *s, const uint8_t key[32], uint8_t *out, size_t n);

#endif
