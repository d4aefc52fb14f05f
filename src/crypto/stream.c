/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - masks: AES-256-CTR (NIST SP 800-38A 6.5) or ChaCha20 (RFC 8439 2.4), added to a vector as it is generated.
 *
 *   16 KiB of keystream  ->  acc[i] += word i, while the chunk is still in the first-level cache  ->  the next 16 KiB
 *
 * The only file of the project that uses OpenSSL's ciphers: EVP runs AES-256-CTR at 5.2-5.6 GB/s and ChaCha20 at
 * 3.8-4.2 on a core where libsodium's ChaCha20 runs at 2.0-2.15. The keystream is the encryption of zeros, and the
 * cipher's whole 16-byte block (AES) or counter and nonce (ChaCha20: 4 + 12 bytes) start at zero: a key makes one
 * stream, once. ChaCha20's 32-bit counter reaches 256 GiB, more than any vector in memory.
 *
 * Nothing secret remains: after each call the chunk is wiped and the context is keyed with zeros, which overwrites the
 * key schedule. Only whole 64-byte blocks are requested, so the context never buffers part of one. Time does not depend
 * on key or data where OpenSSL's AES does not: it uses the processor's AES instructions or otherwise bit-sliced or
 * vector-permuted code. A build of OpenSSL without assembly uses tables: choose ChaCha20 in the task there. */
#include "crypto/stream.h"

#include "base/alloc.h"
#include "crypto/entropy.h"

#include <openssl/evp.h>
#include <string.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the words of a mask are little-endian and are read in place: this machine is not"
#endif

enum { CHUNK = 16384, BLOCK = 64 };

static const uint8_t zeros[CHUNK];

struct fkt_stream {
    EVP_CIPHER_CTX *ctx;
    union {
        uint8_t b[CHUNK];
        uint32_t w32[CHUNK / 4];
        uint64_t w64[CHUNK / 8];
    } chunk;
};

fkt_status fkt_stream_new(struct fkt_stream **out, enum fkt_keystream kind)
{
    const EVP_CIPHER *cipher = NULL;
    struct fkt_stream *s = NULL;
    fkt_status st;
    *out = NULL;
    if (kind == FKT_KEYSTREAM_AES) cipher = EVP_aes_256_ctr();
    if (kind == FKT_KEYSTREAM_CHACHA20) cipher = EVP_chacha20();
    if (!cipher) return fkt_fail(FKT_E_ARG, "keystream %d is unknown", (int)kind);
    FKT_TRY(fkt_alloc(&s, 1));
    s->ctx = EVP_CIPHER_CTX_new();
    if (!s->ctx) {
        st = fkt_fail(FKT_E_NOMEM, "libcrypto has no memory for a cipher");
        goto out;
    }
    if (EVP_EncryptInit_ex(s->ctx, cipher, NULL, zeros, zeros) != 1) {
        st = fkt_fail_hint(FKT_E_STATE, "choose the other keystream in the task, or check libcrypto's configuration",
                           "libcrypto does not provide %s", kind == FKT_KEYSTREAM_AES ? "AES-256-CTR" : "ChaCha20");
        goto out;
    }
    *out = s;
    s = NULL;
out:
    fkt_stream_free(s);
    return st;
}

void fkt_stream_free(struct fkt_stream *s)
{
    if (!s) return;
    EVP_CIPHER_CTX_free(s->ctx); /* wipes its own state */
    fkt_wipe(s, sizeof *s);
    fkt_free(s);
}

static fkt_status begin(struct fkt_stream *s, const uint8_t key[32])
{
    if (EVP_EncryptInit_ex(s->ctx, NULL, NULL, key, zeros) == 1) return FKT_OK;
    return fkt_fail(FKT_E_NOMEM, "libcrypto could not set the key of a mask");
}

/* The next len <= CHUNK bytes, and some more to the end of a block, into the chunk. */
static fkt_status next(struct fkt_stream *s, size_t len)
{
    int got = 0, want = (int)((len + BLOCK - 1) / BLOCK * BLOCK);
    if (EVP_EncryptUpdate(s->ctx, s->chunk.b, &got, zeros, want) == 1 && got == want) return FKT_OK;
    return fkt_fail(FKT_E_NOMEM, "libcrypto could not continue a mask");
}

/* Wipes the key and `len` bytes of stream; returns st, or the failure to wipe. */
static fkt_status end(struct fkt_stream *s, size_t len, fkt_status st)
{
    size_t used = (len + BLOCK - 1) / BLOCK * BLOCK;
    fkt_status forgot = begin(s, zeros);
    fkt_wipe(s->chunk.b, used < CHUNK ? used : CHUNK);
    return st != FKT_OK ? st : forgot;
}

fkt_status fkt_stream_add32(struct fkt_stream *s, const uint8_t key[32], uint32_t *acc, size_t n, int subtract)
{
    fkt_status st = begin(s, key);
    for (size_t at = 0, m; at < n && st == FKT_OK; at += m) {
        const uint32_t *w = s->chunk.w32;
        m = n - at < CHUNK / 4 ? n - at : CHUNK / 4;
        st = next(s, 4 * m);
        if (st != FKT_OK) break;
        if (subtract)
            for (size_t i = 0; i < m; i++) acc[at + i] -= w[i];
        else
            for (size_t i = 0; i < m; i++) acc[at + i] += w[i];
    }
    return end(s, n < CHUNK ? 4 * n : CHUNK, st);
}

fkt_status fkt_stream_add64(struct fkt_stream *s, const uint8_t key[32], uint64_t *acc, size_t n, int subtract)
{
    fkt_status st = begin(s, key);
    for (size_t at = 0, m; at < n && st == FKT_OK; at += m) {
        const uint64_t *w = s->chunk.w64;
        m = n - at < CHUNK / 8 ? n - at : CHUNK / 8;
        st = next(s, 8 * m);
        if (st != FKT_OK) break;
        if (subtract)
            for (size_t i = 0; i < m; i++) acc[at + i] -= w[i];
        else
            for (size_t i = 0; i < m; i++) acc[at + i] += w[i];
    }
    return end(s, n < CHUNK ? 8 * n : CHUNK, st);
}

fkt_status fkt_stream_bytes(struct fkt_stream *s, const uint8_t key[32], uint8_t *out, size_t n)
{
    fkt_status st = begin(s, key);
    for (size_t at = 0, m; at < n && st == FKT_OK; at += m) {
        m = n - at < CHUNK ? n - at : CHUNK;
        st = next(s, m);
        if (st == FKT_OK) memcpy(out + at, s->chunk.b, m);
    }
    return end(s, n, st);
}
