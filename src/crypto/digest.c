/* SPDX-License-Identifier: Apache-2.0 */
/* digest.c - BLAKE2b-256 (RFC 7693, through libsodium) of a label and a list of parts.
 *
 *   hashed bytes:  u8 length of label | label | for each part: u64le length | bytes
 *
 * Every part carries its length, so the hashed bytes can be parsed in one way only: no two lists of parts, and no two
 * labels, give the same input. An empty part still counts. With a key this is BLAKE2b's keyed mode, a pseudo-random
 * function; it is our key derivation, one call where HKDF over the same hash would take four.
 *
 * Labels are constants of the source ("fedkt/..."), never input; a label longer than 255 bytes would be cut to 255. */
#include "crypto/digest.h"

#include <string.h>

void fkt_digest_init(struct fkt_digest *d, const char *label, const uint8_t *key)
{
    uint8_t len = (uint8_t)strnlen(label, UINT8_MAX);
    crypto_generichash_init(&d->state, key, key ? FKT_DIGEST_BYTES : 0, FKT_DIGEST_BYTES);
    crypto_generichash_update(&d->state, &len, 1);
    crypto_generichash_update(&d->state, (const uint8_t *)label, len);
}

void fkt_digest_add(struct fkt_digest *d, const void *part, size_t len)
{
    uint8_t prefix[8];
    for (int i = 0; i < 8; i++) prefix[i] = (uint8_t)((uint64_t)len >> (8 * i));
    crypto_generichash_update(&d->state, prefix, sizeof prefix);
    crypto_generichash_update(&d->state, part, len);
}

void fkt_digest_add_u32(struct fkt_digest *d, uint32_t x)
{
    uint8_t b[4] = {(uint8_t)x, (uint8_t)(x >> 8), (uint8_t)(x >> 16), (uint8_t)(x >> 24)};
    fkt_digest_add(d, b, sizeof b);
}

void fkt_digest_end(struct fkt_digest *d, uint8_t out[FKT_DIGEST_BYTES])
{
    crypto_generichash_final(&d->state, out, FKT_DIGEST_BYTES);
    sodium_memzero(d, sizeof *d);
}

int fkt_same(const void *a, const void *b, size_t len) { return sodium_memcmp(a, b, len) == 0; }
