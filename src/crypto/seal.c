/* SPDX-License-Identifier: Apache-2.0 */
/* seal.c - ChaCha20-Poly1305 (RFC 8439 section 2.8, through libsodium), no associated data.
 *
 * The nonce is zero because each key seals one message: pair, direction, round and task go into the key (see
 * crypto/digest.h), and a nonce or associated data would only repeat them. No counter is needed, and a message of
 * another round, pair or direction does not open. */
#include "crypto/seal.h"

#include <sodium.h>

static const uint8_t nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];

void fkt_seal(uint8_t *out, const uint8_t *in, size_t len, const uint8_t key[32])
{
    crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, in, len, NULL, 0, NULL, nonce, key);
}

int fkt_unseal(uint8_t *out, const uint8_t *in, size_t len, const uint8_t key[32])
{
    if (crypto_aead_chacha20poly1305_ietf_decrypt(out, NULL, NULL, in, (unsigned long long)len + FKT_SEAL_TAG, NULL, 0,
                                                  nonce, key) == 0)
        return 1;
    sodium_memzero(out, len);
    return 0;
}
