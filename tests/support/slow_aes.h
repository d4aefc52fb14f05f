/* SPDX-License-Identifier: Apache-2.0 */
/* slow_aes.h - AES-256 in counter mode as FIPS 197 and SP 800-38A tell it, byte by byte: the keystream's slow twin. */
#ifndef FKT_TEST_SLOW_AES_H
#define FKT_TEST_SLOW_AES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint8_t slow_aes_times(uint8_t a, uint8_t b) /* in GF(2^8), modulo x^8 + x^4 + x^3 + x + 1 */
{
    uint8_t r = 0;
    for (; b; b >>= 1) {
        if (b & 1) r ^= a;
        a = (uint8_t)(a << 1 ^ (a & 0x80 ? 0x1b : 0));
    }
    return r;
}

static inline uint8_t slow_aes_sbox(uint8_t x)
{
    uint8_t inverse = 1, r = 0x63;
    for (int i = 0; i < 254; i++) inverse = slow_aes_times(inverse, x); /* x^254 */
    for (int i = 0; i < 5; i++) r ^= (uint8_t)(inverse << i | inverse >> (8 - i));
    return r;
}

struct slow_aes {
    uint8_t sbox[256], round[15][16];
};

static inline void slow_aes_init(struct slow_aes *a, const uint8_t key[32])
{
    uint8_t *w = a->round[0], rcon = 1;
    for (int i = 0; i < 256; i++) a->sbox[i] = slow_aes_sbox((uint8_t)i);
    memcpy(w, key, 32);
    for (int i = 8; i < 60; i++) {
        uint8_t t[4];
        memcpy(t, w + 4 * (i - 1), 4);
        if (i % 8 == 0) {
            uint8_t first = t[0];
            t[0] = a->sbox[t[1]] ^ rcon;
            t[1] = a->sbox[t[2]];
            t[2] = a->sbox[t[3]];
            t[3] = a->sbox[first];
            rcon = slow_aes_times(rcon, 2);
        } else if (i % 8 == 4) {
            for (int k = 0; k < 4; k++) t[k] = a->sbox[t[k]];
        }
        for (int k = 0; k < 4; k++) w[4 * i + k] = w[4 * (i - 8) + k] ^ t[k];
    }
}

static inline void slow_aes_block(const struct slow_aes *a, uint8_t out[16], const uint8_t in[16])
{
    static const uint8_t mix[4] = {2, 3, 1, 1};
    uint8_t s[16], t[16];
    for (int i = 0; i < 16; i++) s[i] = in[i] ^ a->round[0][i];
    for (int r = 1; r <= 14; r++) {
        for (int i = 0; i < 16; i++) t[i] = a->sbox[s[(i + 4 * (i % 4)) % 16]]; /* bytes and rows */
        for (int i = 0; i < 16; i++) {
            uint8_t x = r == 14 ? t[i] : 0;
            for (int k = 0; k < 4 && r < 14; k++) x ^= slow_aes_times(t[i / 4 * 4 + k], mix[(k - i % 4 + 4) % 4]);
            s[i] = x ^ a->round[r][i];
        }
    }
    memcpy(out, s, 16);
}

/* n bytes of keystream from the counter block, which is a big-endian number and is left at the next. */
static inline void slow_aes_ctr(const struct slow_aes *a, uint8_t counter[16], uint8_t *out, size_t n)
{
    uint8_t block[16];
    for (size_t i = 0; i < n; i++) {
        if (i % 16 == 0) {
            slow_aes_block(a, block, counter);
            for (int k = 15; k >= 0 && ++counter[k] == 0; k--) continue;
        }
        out[i] = block[i % 16];
    }
}

#endif
