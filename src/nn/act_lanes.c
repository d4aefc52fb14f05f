/* SPDX-License-Identifier: Apache-2.0 */
/* act_lanes.c - the loops that touch activations: from any block and precision to any other.
 *
 * All other files use these two functions, copy and gather. Both are written once and instantiated sixteen times, for
 * four pairs of precisions and for the lane counts that occur (16 and 8: blocks; 1: planes; any other). With a constant
 * count the lane loop becomes vector instructions; a single lane is a loop over pixels. */
#include "nn/act_lanes.h"

#include "nn/bf16.h"

#define ALWAYS static inline __attribute__((always_inline))

uint16_t fkt_bf16(float x) { return fkt_bf16_narrow(x); }
float fkt_from_bf16(uint16_t x) { return fkt_bf16_widen(x); }

ALWAYS void put(void *restrict to, int to_half, size_t i, const void *restrict from, int from_half, size_t j)
{
    if (to_half && from_half) ((uint16_t *)to)[i] = ((const uint16_t *)from)[j];
    else if (to_half) ((uint16_t *)to)[i] = fkt_bf16_narrow(((const float *)from)[j]);
    else if (from_half) ((float *)to)[i] = fkt_bf16_widen(((const uint16_t *)from)[j]);
    else ((float *)to)[i] = ((const float *)from)[j];
}

ALWAYS void copy(struct fkt_lanes to, int to_half, struct fkt_lanes from, int from_half, size_t lanes, size_t pixels)
{
    void *restrict t = to.at;
    const void *restrict f = from.at;
    for (size_t p = 0; p < pixels; p++)
        for (size_t l = 0; l < lanes; l++) put(t, to_half, p * to.step + l, f, from_half, p * from.step + l);
}

ALWAYS void gather(struct fkt_lanes to, int to_half, struct fkt_lanes from, int from_half, const size_t *offset,
                   size_t lanes, size_t pixels)
{
    void *restrict t = to.at;
    const void *restrict f = from.at;
    for (size_t p = 0; p < pixels; p++)
        for (size_t l = 0; l < lanes; l++) put(t, to_half, p * to.step + l, f, from_half, p * from.step + offset[l]);
}

ALWAYS void copy_any(struct fkt_lanes to, int to_half, struct fkt_lanes from, int from_half, size_t lanes,
                     size_t pixels)
{
    if (lanes == 16) copy(to, to_half, from, from_half, 16, pixels);
    else if (lanes == 8) copy(to, to_half, from, from_half, 8, pixels);
    else if (lanes == 1) copy(to, to_half, from, from_half, 1, pixels);
    else copy(to, to_half, from, from_half, lanes, pixels);
}

FKT_WIDE void fkt_lanes_copy(struct fkt_lanes to, struct fkt_lanes from, size_t lanes, size_t pixels)
{
    int to_half = to.precision == FKT_PRECISION_BF16, from_half = from.precision == FKT_PRECISION_BF16;
    if (to_half && from_half) copy_any(to, 1, from, 1, lanes, pixels);
    else if (to_half) copy_any(to, 1, from, 0, lanes, pixels);
    else if (from_half) copy_any(to, 0, from, 1, lanes, pixels);
    else copy_any(to, 0, from, 0, lanes, pixels);
}

ALWAYS void gather_any(struct fkt_lanes to, int to_half, struct fkt_lanes from, int from_half, const size_t *offset,
                       size_t lanes, size_t pixels)
{
    if (lanes == 16) gather(to, to_half, from, from_half, offset, 16, pixels);
    else if (lanes == 8) gather(to, to_half, from, from_half, offset, 8, pixels);
    else gather(to, to_half, from, from_half, offset, lanes, pixels);
}

FKT_WIDE void fkt_lanes_gather(struct fkt_lanes to, struct fkt_lanes from, const size_t *offset, size_t lanes,
                               size_t pixels)
{
    int to_half = to.precision == FKT_PRECISION_BF16, from_half = from.precision == FKT_PRECISION_BF16;
    size_t in_row = 1;
    while (in_row < lanes && offset[in_row] == offset[0] + in_row) in_row++;
    if (in_row >= lanes) {
        size_t size = from_half ? sizeof(uint16_t) : sizeof(float);
        from.at = (uint8_t *)from.at + offset[0] * size;
        fkt_lanes_copy(to, from, lanes, pixels);
    } else if (to_half && from_half) gather_any(to, 1, from, 1, offset, lanes, pixels);
    else if (to_half) gather_any(to, 1, from, 0, offset, lanes, pixels);
    else if (from_half) gather_any(to, 0, from, 1, offset, lanes, pixels);
    else gather_any(to, 0, from, 0, offset, lanes, pixels);
}
