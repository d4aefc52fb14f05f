/* SPDX-License-Identifier: Apache-2.0 */
/* digits.h - uniform 32-bit digits for the samplers, drawn from a buffer that is refilled from a source of entropy. */
#ifndef FKT_PRIVACY_DIGITS_H
#define FKT_PRIVACY_DIGITS_H

#include "base/status.h"
#include "crypto/entropy.h"

#include <stdint.h>

#define FKT_DIGITS_BUFFER 4096 /* bytes of entropy fetched at a time, after a shorter start */

struct fkt_digits {
    struct fkt_entropy entropy;
    size_t at, filled, next_fill; /* bytes of buf */
    uint8_t buf[FKT_DIGITS_BUFFER];
};

void fkt_digits_init(struct fkt_digits *d, const struct fkt_entropy *entropy); /* NULL: the operating system */
FKT_MUST_USE fkt_status fkt_digits_refill(struct fkt_digits *d);
/* FKT_E_ENTROPY: the output of the source is not uniform. */
FKT_MUST_USE fkt_status fkt_digits_broken(const char *what);

/* One digit: four bytes, little-endian, so that a seed gives the same noise on every machine. */
static inline fkt_status fkt_digits_draw(struct fkt_digits *d, uint32_t *digit)
{
    const uint8_t *b;
    if (d->at == d->filled) {
        fkt_status st = fkt_digits_refill(d);
        if (st != FKT_OK) return st;
    }
    b = d->buf + d->at;
    *digit = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    d->at += 4;
    return FKT_OK;
}

/* Uniform in 0..m-1: of the 2^32 values of a digit the lowest rest = 2^32 mod m are rejected, the others are divided
 * evenly. pre: m >= 1 */
static inline fkt_status fkt_digits_below(struct fkt_digits *d, uint32_t m, uint32_t rest, uint32_t *out)
{
    for (int tries = 0; tries < 512; tries++) { /* each fails with probability below 1/2 */
        uint32_t digit;
        fkt_status st = fkt_digits_draw(d, &digit);
        if (st != FKT_OK) return st;
        if (digit < rest) continue;
        *out = digit % m;
        return FKT_OK;
    }
    return fkt_digits_broken("512 digits in a row are small");
}

#endif
