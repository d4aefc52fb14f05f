/* SPDX-License-Identifier: Apache-2.0 */
/* digest64.c - a SHA-256 as base64 (RFC 4648 section 4), for pins (tls.c) and the page's policy (page_file.c). */
#include "net/digest64.h"

#include "crypto/hash.h"

#include <openssl/evp.h>

void fkt_digest64(char out[FKT_DIGEST64], const void *data, size_t len)
{
    uint8_t digest[FKT_HASH_BYTES];
    struct fkt_hash h;
    fkt_hash_init(&h);
    fkt_hash_add(&h, data, len);
    fkt_hash_end(&h, digest);
    EVP_EncodeBlock((unsigned char *)out, digest, sizeof digest);
}
