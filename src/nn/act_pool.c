/* SPDX-License-Identifier: Apache-2.0 */
/* act_pool.c - max-pool and mean of each map.
 *
 * A max-pool computes up to 16 results of one row and up to 16 channels of one block at a time. For these, position
 * (ky, kx) of the window is a row of input pixels `stride` apart; those inside the map are loaded and compared. A NaN
 * in a window is its result, as in nn/ref/. Sums of a mean run in double, pixel after pixel, in an order that depends
 * on the map alone. */
#include "nn/act_lanes.h"

#include <math.h>

/* Results [first, end) of a row for which position kx of the window is inside the map. */
struct span {
    size_t first, end;
};

static struct span inside(const struct fkt_act *src, const struct fkt_op *op, size_t x, size_t n, size_t kx)
{
    struct span s = {0, n};
    while (s.first < n && (x + s.first) * op->stride + kx < op->pad) s.first++;
    while (s.end > s.first && (x + s.end - 1) * op->stride + kx - op->pad >= src->w) s.end--;
    return s;
}

FKT_WIDE static void keep_larger(float *best, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) best[i] = ((x[i] > best[i]) | (x[i] != x[i])) ? x[i] : best[i];
}

/* The results of a spot, all in row y and in one block of src. */
static void pool_spot(const struct fkt_act *dst, const struct fkt_act *src, const struct fkt_op *op, size_t y,
                      const struct fkt_spot *at)
{
    struct fkt_tile best, x;
    size_t left = at->pixel - y * dst->w;
    for (int i = 0; i < FKT_TILE_NUMBERS; i++) best.v[i] = x.v[i] = -INFINITY;
    for (size_t ky = 0; ky < op->kernel; ky++) {
        size_t row = y * op->stride + ky - op->pad; /* wraps to a huge number above the map */
        if (row >= src->h) continue;
        for (size_t kx = 0; kx < op->kernel; kx++) {
            struct span s = inside(src, op, left, at->pixels, kx);
            size_t from = row * src->w + (left + s.first) * op->stride + kx - op->pad;
            struct fkt_lanes in = {NULL, op->stride * src->block, src->precision};
            if (s.first == s.end) continue;
            in.at = fkt_act_address(src, fkt_act_at(src, at->image, at->channel, from));
            fkt_lanes_copy((struct fkt_lanes){x.v, FKT_TILE, FKT_PRECISION_F32}, in, at->channels, s.end - s.first);
            keep_larger(best.v + s.first * FKT_TILE, x.v, (s.end - s.first) * FKT_TILE);
        }
    }
    fkt_tile_store(dst, at, &best);
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

void fkt_act_max_pool(const struct fkt_act *dst, const struct fkt_act *src, const struct fkt_op *op)
{
    struct fkt_spot at = {0};
    for (at.image = 0; at.image < dst->n; at.image++)
        for (at.channel = 0; at.channel < dst->c; at.channel += at.channels) {
            at.channels = least(least(FKT_TILE, dst->c - at.channel), src->block - at.channel % src->block);
            for (size_t y = 0; y < dst->h; y++)
                for (size_t x = 0; x < dst->w; x += at.pixels) {
                    at.pixel = y * dst->w + x;
                    at.pixels = least(FKT_TILE, dst->w - x);
                    pool_spot(dst, src, op, y, &at);
                }
        }
    fkt_act_zero_padding(dst);
}

static void mean_spot(const struct fkt_act *dst, const struct fkt_act *src, struct fkt_spot at)
{
    const size_t plane = (size_t)src->h * src->w;
    double sum[FKT_TILE] = {0};
    struct fkt_tile x;
    for (struct fkt_spot from = at; from.pixel < plane; from.pixel += from.pixels) {
        from.pixels = least(FKT_TILE, plane - from.pixel);
        fkt_tile_load(&x, src, &from);
        for (size_t p = 0; p < from.pixels; p++)
            for (int l = 0; l < FKT_TILE; l++) sum[l] += x.v[p * FKT_TILE + l];
    }
    for (int l = 0; l < FKT_TILE; l++) x.v[l] = (float)(sum[l] / (double)plane);
    fkt_tile_store(dst, &at, &x);
}

void fkt_act_mean(const struct fkt_act *dst, const struct fkt_act *src)
{
    struct fkt_spot at = {0};
    while (fkt_spot_next(&at, dst)) mean_spot(dst, src, at);
    fkt_act_zero_padding(dst);
}
