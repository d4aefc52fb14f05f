/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.h - eight floats at a time, for the loops of a learner. The compiler's own vectors: AVX2 where a function is
 * made for it (FKT_WIDE), plain x86-64 otherwise, and the same bits either way. Passed by address, since how vectors
 * are passed by value depends on the target. */
#ifndef FKT_NN_ONEDNN_LANES_H
#define FKT_NN_ONEDNN_LANES_H

#include "nn/act_lanes.h" /* FKT_WIDE */

#include <string.h>

#define FKT_ALWAYS static inline __attribute__((always_inline))

typedef float fkt_f8 __attribute__((vector_size(32)));
typedef int32_t fkt_i8 __attribute__((vector_size(32)));
typedef uint32_t fkt_u8 __attribute__((vector_size(32)));
typedef uint16_t fkt_h8 __attribute__((vector_size(16)));

FKT_ALWAYS void fkt_f8_load(fkt_f8 *to, const void *from, size_t at, int half)
{
    if (half) {
        fkt_h8 narrow;
        fkt_u8 bits;
        memcpy(&narrow, (const uint16_t *)from + at, sizeof narrow);
        bits = __builtin_convertvector(narrow, fkt_u8) << 16;
        memcpy(to, &bits, sizeof *to);
    } else memcpy(to, (const float *)from + at, sizeof *to);
}

/* As fkt_bf16_narrow. */
FKT_ALWAYS void fkt_f8_store(void *to, size_t at, const fkt_f8 *from, int half)
{
    if (half) {
        fkt_u8 bits, rounded, is_nan;
        fkt_h8 narrow;
        memcpy(&bits, from, sizeof bits);
        rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        is_nan = (fkt_u8)((fkt_i8)(bits & 0x7fffffff) > 0x7f800000);
        rounded = (is_nan & (bits >> 16 | 0x40)) | (~is_nan & rounded);
        narrow = __builtin_convertvector(rounded, fkt_h8);
        memcpy((uint16_t *)to + at, &narrow, sizeof narrow);
    } else memcpy((float *)to + at, from, sizeof *from);
}

/* 0 where `by` <= 0, else x: a NaN passes a ReLU and so is detected at the end. */
FKT_ALWAYS void fkt_f8_mask(fkt_f8 *x, const fkt_f8 *by)
{
    fkt_i8 bits, mask = ~(*by <= 0);
    memcpy(&bits, x, sizeof bits);
    bits &= mask;
    memcpy(x, &bits, sizeof *x);
}

#endif
