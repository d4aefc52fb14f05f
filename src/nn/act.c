/* SPDX-License-Identifier: Apache-2.0 */
/* act.c - activations in memory: the address of an element, tiles of elements, and copies between layouts.
 *
 * A plain (N, C, H, W) array is an activation with blocks of one channel, so conversion from and to it is the same copy
 * as between any two layouts. */
#include "nn/act_lanes.h"

#include <string.h>

static size_t blocks(const struct fkt_act *a) { return ((size_t)a->c + a->block - 1) / a->block; }
static size_t plane(const struct fkt_act *a) { return (size_t)a->h * a->w; }
static size_t element(const struct fkt_act *a)
{
    return a->precision == FKT_PRECISION_BF16 ? sizeof(uint16_t) : sizeof(float);
}

size_t fkt_act_count(const struct fkt_act *a) { return a->n * blocks(a) * plane(a) * a->block; }
size_t fkt_act_bytes(const struct fkt_act *a) { return fkt_act_count(a) * element(a); }

size_t fkt_act_at(const struct fkt_act *a, size_t image, size_t channel, size_t pixel)
{
    return ((image * blocks(a) + channel / a->block) * plane(a) + pixel) * a->block + channel % a->block;
}

void *fkt_act_address(const struct fkt_act *a, size_t index) { return (uint8_t *)a->data + index * element(a); }

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Large blocks are read channels first, in memory order. */
int fkt_spot_next(struct fkt_spot *at, const struct fkt_act *a)
{
    if (a->block > FKT_TILE) {
        at->channel += at->channels;
        if (at->channel >= a->c) {
            at->channel = 0;
            at->pixel += at->pixels;
        }
        if (at->pixel >= plane(a)) {
            at->pixel = 0;
            at->image++;
        }
    } else {
        at->pixel += at->pixels;
        if (at->pixel >= plane(a)) {
            at->pixel = 0;
            at->channel += at->channels;
        }
        if (at->channel >= a->c) {
            at->channel = 0;
            at->image++;
        }
    }
    at->pixels = least(FKT_TILE, plane(a) - at->pixel);
    at->channels = least(FKT_TILE, a->c - at->channel);
    return at->image < a->n;
}

/* The channels of the spot from `done` on that are in one block. */
static struct fkt_lanes run(const struct fkt_act *a, const struct fkt_spot *at, size_t done, size_t *lanes)
{
    size_t channel = at->channel + done;
    *lanes = least(a->block - channel % a->block, at->channels - done);
    return (struct fkt_lanes){fkt_act_address(a, fkt_act_at(a, at->image, channel, at->pixel)), a->block, a->precision};
}

void fkt_spot_load(float *to, size_t stride, const struct fkt_act *a, const struct fkt_spot *at)
{
    size_t lanes;
    for (size_t done = 0; done < at->channels; done += lanes) {
        struct fkt_lanes from = run(a, at, done, &lanes);
        fkt_lanes_copy((struct fkt_lanes){to + done, stride, FKT_PRECISION_F32}, from, lanes, at->pixels);
    }
}

void fkt_spot_store(const struct fkt_act *a, const struct fkt_spot *at, const float *from, size_t stride)
{
    size_t lanes;
    for (size_t done = 0; done < at->channels; done += lanes) {
        struct fkt_lanes to = run(a, at, done, &lanes);
        fkt_lanes_copy(to, (struct fkt_lanes){(float *)from + done, stride, FKT_PRECISION_F32}, lanes, at->pixels);
    }
}

void fkt_tile_load(struct fkt_tile *to, const struct fkt_act *a, const struct fkt_spot *at)
{
    if (at->pixels < FKT_TILE || at->channels < FKT_TILE) memset(to, 0, sizeof *to);
    fkt_spot_load(to->v, FKT_TILE, a, at);
}

void fkt_tile_store(const struct fkt_act *a, const struct fkt_spot *at, const struct fkt_tile *from)
{
    fkt_spot_store(a, at, from->v, FKT_TILE);
}

void fkt_act_zero_padding(const struct fkt_act *a)
{
    size_t used = a->c % a->block;
    for (size_t i = 0; used && i < a->n; i++)
        for (size_t p = 0; p < plane(a); p++)
            memset(fkt_act_address(a, fkt_act_at(a, i, a->c, p)), 0, (a->block - used) * element(a));
}

void fkt_act_copy(const struct fkt_act *dst, const struct fkt_act *src)
{
    struct fkt_spot at = {0};
    struct fkt_tile x;
    while (fkt_spot_next(&at, dst)) {
        fkt_tile_load(&x, src, &at);
        fkt_tile_store(dst, &at, &x);
    }
    fkt_act_zero_padding(dst);
}

void fkt_act_from_nchw(const struct fkt_act *dst, const float *src)
{
    struct fkt_act plain = *dst;
    plain.data = (float *)src; /* read only */
    plain.block = 1;
    plain.precision = FKT_PRECISION_F32;
    fkt_act_copy(dst, &plain);
}

void fkt_act_to_nchw(float *dst, const struct fkt_act *src)
{
    struct fkt_act plain = *src;
    plain.data = dst;
    plain.block = 1;
    plain.precision = FKT_PRECISION_F32;
    fkt_act_copy(&plain, src);
}
