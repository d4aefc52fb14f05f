/* SPDX-License-Identifier: Apache-2.0 */
/* checksum.c - one multiplication per eight bytes, and the finish of splitmix64 (Steele, Lea, Flood 2014).
 *
 *   h = (rotl(h, 27) xor word) * odd constant
 *
 * Each step is a bijection of h for a given word, so two inputs that differ in one word always differ in the result. It
 * finds mistakes (other images, a failing disk), not forgeries: this module has no cryptography, and an attacker who
 * can write a checkpoint needs no collision. About 2 bytes a cycle. */
#include "classifier/checksum.h"

#include <string.h>

static uint64_t mix(uint64_t h, uint64_t word) { return (((h << 27) | (h >> 37)) ^ word) * 0x9e3779b97f4a7c15U; }

void fkt_checksum_init(struct fkt_checksum *c) { c->h = 0x243f6a8885a308d3U; }

void fkt_checksum_add(struct fkt_checksum *c, const void *data, size_t len)
{
    const uint8_t *p = data;
    uint64_t h = mix(c->h, len), word;
    for (; len >= 8; p += 8, len -= 8) {
        memcpy(&word, p, 8);
        h = mix(h, word);
    }
    if (len) {
        word = 0;
        memcpy(&word, p, len);
        h = mix(h, word);
    }
    c->h = h;
}

uint64_t fkt_checksum_value(const struct fkt_checksum *c)
{
    uint64_t z = c->h;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}
