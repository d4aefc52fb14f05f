/* SPDX-License-Identifier: Apache-2.0 */
/* mask.c - vectors over Z_2^b, in words of 32 bits when b <= 32 and of 64 otherwise (docs/protocol.md 2.3, 3.4).
 *
 *   words   modulo 2^32 or 2^64, whose low b bits are the number: additions and masks need no reduction
 *   packed  element i at bits i*b .. i*b + b - 1, least significant first: b bits each, and nothing between them
 *
 * A mask is a keystream of words of the same size, so its high bits are discarded when b is not 32. A stream of b bits
 * per element would be shorter, but reading it would cost more than generating the discarded bits.
 *
 * Packing collects elements in 64 bits and writes eight bytes at a time. Unpacking reads the eight bytes that hold an
 * element's first bit and shifts; nine when b > 57, since an element may then reach into a ninth. Both cost about a
 * nanosecond per element, once per vector; a mask costs half of that, and a site adds k + 1 masks.
 *
 * Time depends only on length and bits; values go only through shifts, additions and masks. The words are
 * little-endian, as is the machine (crypto/stream.c refuses to build on others). */
#include "secagg/mask.h"

#include "fedkt/advanced/secagg.h"

#include "base/alloc.h"
#include "crypto/entropy.h"

#include <assert.h>
#include <string.h>

enum { WINDOW = 9 }; /* bytes that an element may touch: up to 7 bits before it, and 62 of its own */

static uint64_t low_bits(uint32_t bits) { return ((uint64_t)1 << bits) - 1; }

/* x is in -B..B exactly when x + B, as unsigned, is in 0..2B: B < 2^61, so no other x wraps into that range. */
int fkt_sa_in_range(const int64_t *x, uint32_t length, uint64_t bound)
{
    unsigned beyond = 0;
    for (uint32_t i = 0; i < length; i++) beyond |= (uint64_t)x[i] + bound > 2 * bound;
    return !beyond;
}

fkt_status fkt_sa_vector_init(struct fkt_sa_vector *v, const struct fkt_sa_params *p)
{
    assert(p->bits >= 8 && p->bits <= 62);
    *v = (struct fkt_sa_vector){.length = p->length, .bits = p->bits};
    return v->bits <= 32 ? fkt_alloc(&v->w32, v->length) : fkt_alloc(&v->w64, v->length);
}

void fkt_sa_vector_clear(struct fkt_sa_vector *v)
{
    if (v->w32) fkt_wipe(v->w32, v->length * sizeof *v->w32);
    if (v->w64) fkt_wipe(v->w64, v->length * sizeof *v->w64);
    fkt_free(v->w32);
    fkt_free(v->w64);
    memset(v, 0, sizeof *v);
}

void fkt_sa_vector_set(struct fkt_sa_vector *v, const int64_t *x)
{
    if (v->w32)
        for (uint32_t i = 0; i < v->length; i++) v->w32[i] = (uint32_t)(uint64_t)x[i];
    else
        for (uint32_t i = 0; i < v->length; i++) v->w64[i] = (uint64_t)x[i];
}

void fkt_sa_vector_add(struct fkt_sa_vector *v, const struct fkt_sa_vector *other)
{
    assert(v->length == other->length && v->bits == other->bits);
    if (v->w32)
        for (uint32_t i = 0; i < v->length; i++) v->w32[i] += other->w32[i];
    else
        for (uint32_t i = 0; i < v->length; i++) v->w64[i] += other->w64[i];
}

fkt_status fkt_sa_mask_stream(struct fkt_stream **out, const struct fkt_sa_params *p)
{
    return fkt_stream_new(out, p->keystream == FKT_SA_KEYSTREAM_CHACHA20 ? FKT_KEYSTREAM_CHACHA20 : FKT_KEYSTREAM_AES);
}

fkt_status fkt_sa_vector_mask(struct fkt_sa_vector *v, struct fkt_stream *s, const uint8_t key[32], int subtract)
{
    return v->w32 ? fkt_stream_add32(s, key, v->w32, v->length, subtract)
                  : fkt_stream_add64(s, key, v->w64, v->length, subtract);
}

void fkt_sa_vector_pack(const struct fkt_sa_vector *v, uint8_t *out)
{
    const uint64_t keep = low_bits(v->bits);
    uint64_t acc = 0;
    unsigned fill = 0; /* bits waiting in acc, below 64 */
    if (v->bits == 32) {
        memcpy(out, v->w32, (size_t)v->length * 4);
        return;
    }
    for (uint32_t i = 0; i < v->length; i++) {
        uint64_t e = (v->w32 ? v->w32[i] : v->w64[i]) & keep;
        acc |= e << fill;
        fill += v->bits;
        if (fill < 64) continue;
        memcpy(out, &acc, 8);
        out += 8;
        fill -= 64;
        acc = e >> (v->bits - fill); /* the bits that did not fit; zero when fill is 0, as e < 2^bits */
    }
    memcpy(out, &acc, (fill + 7) / 8);
    fkt_wipe(&acc, sizeof acc);
}

/* The element that begins at bit `shift` (0..7) of the nine bytes at p; short_window: of eight, for up to 57 bits. */
static inline uint64_t window(const uint8_t *p, unsigned shift, uint64_t keep)
{
    uint64_t low;
    memcpy(&low, p, 8);
    return (low >> shift | (uint64_t)p[8] << 1 << (63 - shift)) & keep;
}

static inline uint64_t short_window(const uint8_t *p, unsigned shift, uint64_t keep)
{
    uint64_t low;
    memcpy(&low, p, 8);
    return low >> shift & keep;
}

/* Whole windows for all but the last elements, which are read from a zero-padded copy of the last bytes. */
static void add_elements(struct fkt_sa_vector *v, const uint8_t *packed, size_t bytes)
{
    const uint64_t keep = low_bits(v->bits);
    uint32_t whole = bytes < WINDOW ? 0 : (uint32_t)(((bytes - WINDOW) * 8 + 7) / v->bits + 1), i = 0;
    size_t bit = 0;
    if (whole > v->length) whole = v->length;
    if (v->w32)
        for (; i < whole; i++, bit += v->bits) v->w32[i] += (uint32_t)short_window(packed + bit / 8, bit % 8, keep);
    else
        for (; i < whole; i++, bit += v->bits) v->w64[i] += window(packed + bit / 8, bit % 8, keep);
    for (; i < v->length; i++, bit += v->bits) {
        uint8_t tail[WINDOW] = {0};
        size_t at = bit / 8, n = bytes - at < WINDOW ? bytes - at : WINDOW;
        uint64_t e;
        memcpy(tail, packed + at, n);
        e = window(tail, bit % 8, keep);
        if (v->w32) v->w32[i] += (uint32_t)e;
        else v->w64[i] += e;
    }
}

fkt_status fkt_sa_vector_add_packed(struct fkt_sa_vector *v, const uint8_t *packed)
{
    size_t bytes = fkt_sa_packed(v->length, v->bits), used = (size_t)v->length * v->bits % 8;
    if (used && packed[bytes - 1] >> used)
        return fkt_fail(FKT_E_PEER_FORMAT, "a packed vector has bits set after its last number");
    if (v->bits == 32) {
        for (uint32_t i = 0; i < v->length; i++) {
            uint32_t e;
            memcpy(&e, packed + (size_t)i * 4, 4);
            v->w32[i] += e;
        }
        return FKT_OK;
    }
    add_elements(v, packed, bytes);
    return FKT_OK;
}

void fkt_sa_vector_signed(const struct fkt_sa_vector *v, int64_t *out)
{
    const uint64_t keep = low_bits(v->bits), half = (uint64_t)1 << (v->bits - 1);
    for (uint32_t i = 0; i < v->length; i++) {
        uint64_t e = (v->w32 ? v->w32[i] : v->w64[i]) & keep;
        out[i] = (int64_t)(e ^ half) - (int64_t)half;
    }
}
