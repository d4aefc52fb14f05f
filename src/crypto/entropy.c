/* SPDX-License-Identifier: Apache-2.0 */
/* entropy.c - sources of secret randomness.
 * OS: getrandom(2), which blocks only until the kernel's generator is ready. Seeded: ChaCha20 (RFC 8439 stream, through
 * libsodium) under a key derived from the seed by BLAKE2b with a domain string, so that no two uses share a stream by
 * accident. Keyed: the same stream under 256 bits drawn once from the operating system, for state that must be
 * reproduced after a crash. */
#include "crypto/entropy.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <sys/random.h>

static fkt_status os_fill(void *self, uint8_t *out, size_t len)
{
    (void)self;
    while (len > 0) {
        ssize_t n = getrandom(out, len < 65536 ? len : 65536, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return fkt_fail(FKT_E_ENTROPY, "the operating system gave no randomness: %s", strerror(errno));
        out += n;
        len -= (size_t)n;
    }
    return FKT_OK;
}

void fkt_entropy_os(struct fkt_entropy *e) { *e = (struct fkt_entropy){os_fill, NULL, 1}; }

void fkt_entropy_seeded_init(struct fkt_entropy_seeded *s, uint64_t seed, uint64_t stream)
{
    static const char domain[16] = "fedkt seeded v1";
    uint8_t in[32];
    memset(s, 0, sizeof *s);
    memcpy(in, domain, 16);
    for (int i = 0; i < 8; i++) {
        in[16 + i] = (uint8_t)(seed >> (8 * i));
        in[24 + i] = (uint8_t)(stream >> (8 * i));
    }
    crypto_generichash(s->key, sizeof s->key, in, sizeof in, NULL, 0);
}

void fkt_entropy_keyed_init(struct fkt_entropy_seeded *s, const uint8_t key[FKT_ENTROPY_KEY], uint64_t stream)
{
    static const char domain[16] = "fedkt keyed v1";
    uint8_t in[24];
    memset(s, 0, sizeof *s);
    memcpy(in, domain, 16);
    for (int i = 0; i < 8; i++) in[16 + i] = (uint8_t)(stream >> (8 * i));
    crypto_generichash(s->key, sizeof s->key, in, sizeof in, key, FKT_ENTROPY_KEY);
}

static fkt_status seeded_fill(void *self, uint8_t *out, size_t len)
{
    static const uint8_t nonce[crypto_stream_chacha20_NONCEBYTES];
    struct fkt_entropy_seeded *s = self;
    while (len > 0) {
        size_t n;
        if (s->left == 0) {
            memset(s->buf, 0, sizeof s->buf);
            crypto_stream_chacha20_xor_ic(s->buf, s->buf, sizeof s->buf, nonce, s->block, s->key);
            s->block += sizeof s->buf / 64;
            s->left = sizeof s->buf;
        }
        n = len < s->left ? len : s->left;
        memcpy(out, s->buf + sizeof s->buf - s->left, n);
        s->left -= n;
        out += n;
        len -= n;
    }
    return FKT_OK;
}

void fkt_entropy_seeded(struct fkt_entropy *e, struct fkt_entropy_seeded *s)
{
    *e = (struct fkt_entropy){seeded_fill, s, 0};
}

void fkt_entropy_keyed(struct fkt_entropy *e, struct fkt_entropy_seeded *s)
{
    *e = (struct fkt_entropy){seeded_fill, s, 1};
}
