/* SPDX-License-Identifier: Apache-2.0 */
/* act_move.c - operations that only move numbers: nothing is rounded unless the precision changes; and the backward of
 * those that copy a number to several places, which adds up.
 *
 * Each reads, for a result, input pixel (y', x') plus a shift, in a channel that depends on the lane:
 *
 *     result (c, fy y' + dy, fx x' + dx)  <-  input (channel(c, dy, dx), sy y' + shift_y(c), sx x' + shift_x(c))
 *
 * Channel and shift of a lane are one offset in memory. So one loop serves all: for some lanes of the result and one
 * phase (dy, dx), compute the offsets once, then go over rows. Phases are inside the loop over images, so the input of
 * a few lanes is still in the cache when the next phase reads it again. */
#include "nn/act_lanes.h"

enum { LANES = 64 }; /* at a time, where a block has as many */

struct move {
    const struct fkt_act *dst, *src;
    size_t spread; /* result pixels per input pixel and side: the phases */
    size_t gather; /* input pixels per result pixel and side */
    /* Of result channel c in phase (dy, dx): the input channel, and where in the group of input pixels. */
    size_t (*channel)(const struct move *m, size_t c, size_t dy, size_t dx, size_t shift[2]);
};

static void move_rows(const struct move *m, size_t image, size_t channel, size_t dy, size_t dx, const size_t *offset,
                      size_t lanes)
{
    const struct fkt_act *dst = m->dst, *src = m->src;
    struct fkt_lanes to = {NULL, m->spread * dst->block, dst->precision};
    struct fkt_lanes from = {NULL, m->gather * src->block, src->precision};
    for (size_t y = 0; y < dst->h / m->spread; y++) {
        size_t to_pixel = (y * m->spread + dy) * dst->w + dx, from_pixel = y * m->gather * src->w;
        to.at = fkt_act_address(dst, fkt_act_at(dst, image, channel, to_pixel));
        from.at = fkt_act_address(src, fkt_act_at(src, image, 0, from_pixel));
        fkt_lanes_gather(to, from, offset, lanes, dst->w / m->spread);
    }
}

static void move(const struct move *m)
{
    const struct fkt_act *dst = m->dst, *src = m->src;
    size_t lanes;
    for (size_t c = 0; c < dst->c; c += lanes) {
        lanes = dst->block - c % dst->block;
        if (lanes > LANES) lanes = LANES;
        if (lanes > dst->c - c) lanes = dst->c - c;
        for (size_t i = 0; i < dst->n; i++)
            for (size_t phase = 0; phase < m->spread * m->spread; phase++) {
                size_t dy = phase / m->spread, dx = phase % m->spread, offset[LANES];
                for (size_t l = 0; l < lanes; l++) {
                    size_t shift[2] = {0, 0}, from = m->channel(m, c + l, dy, dx, shift);
                    offset[l] = fkt_act_at(src, 0, from, shift[0] * src->w + shift[1]);
                }
                move_rows(m, i, c, dy, dx, offset, lanes);
            }
    }
    fkt_act_zero_padding(dst);
}

static size_t same_channel(const struct move *m, size_t c, size_t dy, size_t dx, size_t shift[2])
{
    (void)m, (void)dy, (void)dx, (void)shift;
    return c;
}

void fkt_act_upsample(const struct fkt_act *dst, const struct fkt_act *src, uint32_t factor)
{
    struct move m = {dst, src, factor, 1, same_channel};
    move(&m);
}

static size_t shuffled(const struct move *m, size_t c, size_t dy, size_t dx, size_t shift[2])
{
    (void)shift;
    return (c * m->spread + dy) * m->spread + dx;
}

void fkt_act_shuffle(const struct fkt_act *dst, const struct fkt_act *src, uint32_t factor)
{
    struct move m = {dst, src, factor, 1, shuffled};
    move(&m);
}

static size_t unshuffled(const struct move *m, size_t c, size_t dy, size_t dx, size_t shift[2])
{
    (void)dy, (void)dx;
    shift[0] = c / m->gather % m->gather;
    shift[1] = c % m->gather;
    return c / (m->gather * m->gather);
}

void fkt_act_unshuffle(const struct fkt_act *dst, const struct fkt_act *src, uint32_t factor)
{
    struct move m = {dst, src, 1, factor, unshuffled};
    move(&m);
}

static size_t repeated(const struct move *m, size_t c, size_t dy, size_t dx, size_t shift[2])
{
    (void)dy, (void)dx, (void)shift;
    return c / (m->dst->c / m->src->c);
}

void fkt_act_repeat(const struct fkt_act *dst, const struct fkt_act *src)
{
    struct move m = {dst, src, 1, 1, repeated};
    move(&m);
}

/* All channels of src, at channel `first` of dst. */
static void place(const struct fkt_act *dst, size_t first, const struct fkt_act *src)
{
    struct fkt_spot from = {0}, to;
    struct fkt_tile x;
    while (fkt_spot_next(&from, src)) {
        to = from;
        to.channel += first;
        fkt_tile_load(&x, src, &from);
        fkt_tile_store(dst, &to, &x);
    }
}

void fkt_act_concat(const struct fkt_act *dst, const struct fkt_act *a, const struct fkt_act *b)
{
    place(dst, 0, a);
    place(dst, a->c, b);
    fkt_act_zero_padding(dst);
}

void fkt_act_split(const struct fkt_act *d, const struct fkt_act *g, uint32_t first)
{
    struct fkt_spot to = {0}, from;
    struct fkt_tile x;
    while (fkt_spot_next(&to, d)) {
        from = to;
        from.channel += first;
        fkt_tile_load(&x, g, &from);
        fkt_tile_store(d, &to, &x);
    }
    fkt_act_zero_padding(d);
}

/* Adds to sum (16 channels) the numbers of the square that pixel p of the source became. */
static void add_square(float *sum, const struct fkt_act *g, const struct fkt_spot *at, size_t p, size_t factor)
{
    enum { FACTOR_MAX = 64 }; /* shapes.c */
    const size_t width = g->w / factor, y = p / width, x = p % width;
    float row[FACTOR_MAX * FKT_TILE];
    for (size_t dy = 0; dy < factor; dy++) {
        const struct fkt_spot from = {.image = at->image,
                                      .pixel = (y * factor + dy) * g->w + x * factor,
                                      .channel = at->channel,
                                      .pixels = factor,
                                      .channels = at->channels};
        fkt_spot_load(row, FKT_TILE, g, &from);
        for (size_t dx = 0; dx < factor; dx++)
            for (size_t l = 0; l < at->channels; l++) sum[l] += row[dx * FKT_TILE + l];
    }
}

void fkt_act_upsample_back(const struct fkt_act *d, const struct fkt_act *g, uint32_t factor)
{
    struct fkt_spot at = {0};
    while (fkt_spot_next(&at, d)) {
        struct fkt_tile sum = {0};
        for (size_t p = 0; p < at.pixels; p++) add_square(sum.v + p * FKT_TILE, g, &at, at.pixel + p, factor);
        fkt_tile_store(d, &at, &sum);
    }
    fkt_act_zero_padding(d);
}
