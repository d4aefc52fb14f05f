/* SPDX-License-Identifier: Apache-2.0 */
/* hash.c - SHA-256 (FIPS 180-4) of bytes and files. Every hash that a task, release or certificate quotes is made
 * here. Inside the hash of a network's weights BLAKE2b (RFC 7693) is used, because SHA-256 would be slow there. */
#include "crypto/hash.h"

#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void fkt_hash_init(struct fkt_hash *h) { crypto_hash_sha256_init(&h->state); }

void fkt_hash_add(struct fkt_hash *h, const void *data, size_t len) { crypto_hash_sha256_update(&h->state, data, len); }

void fkt_hash_add_u64(struct fkt_hash *h, uint64_t x)
{
    uint8_t b[8];
    for (int i = 0; i < 8; i++) b[i] = (uint8_t)(x >> (8 * i));
    fkt_hash_add(h, b, sizeof b);
}

void fkt_hash_end(struct fkt_hash *h, uint8_t out[FKT_HASH_BYTES]) { crypto_hash_sha256_final(&h->state, out); }

void fkt_hash_hex(struct fkt_hash *h, char out[FKT_HASH_HEX])
{
    uint8_t d[FKT_HASH_BYTES];
    fkt_hash_end(h, d);
    fkt_hex(out, d, sizeof d);
}

void fkt_hash_bytes_hex(char out[FKT_HASH_HEX], const void *data, size_t len)
{
    struct fkt_hash h;
    fkt_hash_init(&h);
    fkt_hash_add(&h, data, len);
    fkt_hash_hex(&h, out);
}

fkt_status fkt_hash_file_hex(char out[FKT_HASH_HEX], const char *path)
{
    uint8_t buf[16384];
    struct fkt_hash h;
    FILE *f = fopen(path, "rb");
    size_t n;
    int bad;
    if (!f) return fkt_fail(FKT_E_IO, "cannot read '%s': %s", path, strerror(errno));
    fkt_hash_init(&h);
    while ((n = fread(buf, 1, sizeof buf, f)) > 0) fkt_hash_add(&h, buf, n);
    bad = ferror(f);
    fclose(f);
    if (bad) return fkt_fail(FKT_E_IO, "cannot read '%s'", path);
    fkt_hash_hex(&h, out);
    return FKT_OK;
}

void fkt_hash_long(uint8_t out[FKT_HASH_BYTES], const void *data, size_t len)
{
    int ready = sodium_init(); /* detects vector units; without them the result is the same, slower */
    (void)ready;
    crypto_generichash_blake2b(out, FKT_HASH_BYTES, data, len, NULL, 0);
}
