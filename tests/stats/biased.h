/* SPDX-License-Identifier: Apache-2.0 */
/* biased.h - a source of digits in which one bit is set slightly too often: a test of a sampler must detect it. */
#ifndef FKT_TEST_BIASED_H
#define FKT_TEST_BIASED_H

#include "crypto/entropy.h"
#include "privacy/digits.h"

struct biased {
    struct fkt_entropy inner, coin;
    int bit, one_in;
};

static inline fkt_status biased_fill(void *self, uint8_t *out, size_t len)
{
    struct biased *b = self;
    uint16_t coin[FKT_DIGITS_BUFFER / 4];
    fkt_status st = b->inner.fill(b->inner.self, out, len);
    if (st == FKT_OK) st = b->coin.fill(b->coin.self, (uint8_t *)coin, len / 2);
    for (size_t i = 0; i < len / 4; i++)
        if (coin[i] % b->one_in == 0) out[4 * i + (size_t)b->bit / 8] |= (uint8_t)(1 << b->bit % 8);
    return st;
}

#endif
