/* SPDX-License-Identifier: Apache-2.0 */
/* act_lanes.h - the loops that touch activations, for the act_*.c files alone.
 *
 * Arithmetic works on tiles: up to 16 neighbouring pixels (in the order of H * W) of up to 16 neighbouring channels, as
 * floats in a small array. Whatever block and precision memory has, a tile looks the same. */
#ifndef FKT_NN_ACT_LANES_H
#define FKT_NN_ACT_LANES_H

#include "nn/act.h"

#include <stdlib.h> /* defines __GLIBC__ on glibc */

/* A function compiled twice, for AVX2 and for any x86-64; the loader picks the one that the machine supports. Neither
 * fuses multiplications with additions, so both give the same bits. Instrumented builds have the plain one. */
#if defined __x86_64__ && defined __GLIBC__ && !defined __clang__ && !defined __SANITIZE_ADDRESS__ &&                  \
    !defined __SANITIZE_THREAD__
#define FKT_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define FKT_WIDE
#endif

enum { FKT_TILE = 16, FKT_TILE_NUMBERS = FKT_TILE * FKT_TILE };
struct fkt_tile {
    float v[FKT_TILE_NUMBERS]; /* (pixel, channel) */
};

/* Part of an activation. All zeros, then fkt_spot_next: each tile in turn, pixels first, then channels, then images;
 * 0 after the last one. */
struct fkt_spot {
    size_t image, pixel, channel, pixels, channels;
};
int fkt_spot_next(struct fkt_spot *at, const struct fkt_act *a);

/* (at->pixels, at->channels) floats, `stride` apart, from memory and into it; stores leave other lanes alone. The spot
 * may have any number of channels. */
void fkt_spot_load(float *to, size_t stride, const struct fkt_act *a, const struct fkt_spot *at);
void fkt_spot_store(const struct fkt_act *a, const struct fkt_spot *at, const float *from, size_t stride);
/* The same with a tile; elements outside the spot are zero. */
void fkt_tile_load(struct fkt_tile *to, const struct fkt_act *a, const struct fkt_spot *at);
void fkt_tile_store(const struct fkt_act *a, const struct fkt_spot *at, const struct fkt_tile *from);

void fkt_act_zero_padding(const struct fkt_act *a); /* lanes of the last block beyond C */
size_t fkt_act_at(const struct fkt_act *a, size_t image, size_t channel, size_t pixel); /* index of an element */
void *fkt_act_address(const struct fkt_act *a, size_t index);

/* One run of numbers in memory: `step` elements from pixel to pixel. */
struct fkt_lanes {
    void *at;
    size_t step;
    enum fkt_precision precision;
};
/* Lane l of pixel p: to[p to.step + l] = from[p from.step + l], or from[p from.step + offset[l]]. */
void fkt_lanes_copy(struct fkt_lanes to, struct fkt_lanes from, size_t lanes, size_t pixels);
void fkt_lanes_gather(struct fkt_lanes to, struct fkt_lanes from, const size_t *offset, size_t lanes, size_t pixels);

#endif
