/* SPDX-License-Identifier: Apache-2.0 */
/* bf16.h - bfloat16 to float and back, written without branches so that a loop of it becomes vector instructions. */
#ifndef FKT_NN_BF16_H
#define FKT_NN_BF16_H

#include <stdint.h>
#include <string.h>

/* Nearest, ties to even; NaN stays NaN. */
static inline __attribute__((always_inline)) uint16_t fkt_bf16_narrow(float x)
{
    int32_t bits, is_nan;
    uint32_t rounded, quiet;
    memcpy(&bits, &x, sizeof bits);
    is_nan = (bits & 0x7fffffff) > 0x7f800000;
    rounded = ((uint32_t)bits + 0x7fff + ((uint32_t)bits >> 16 & 1)) >> 16;
    quiet = (uint32_t)bits >> 16 | 0x40; /* rounding could make an infinity of it */
    return (uint16_t)(is_nan ? quiet : rounded);
}

static inline __attribute__((always_inline)) float fkt_bf16_widen(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

#endif
