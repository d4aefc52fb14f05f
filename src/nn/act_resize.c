/* SPDX-License-Identifier: Apache-2.0 */
/* act_resize.c - RESIZE and its backward, which is the transpose, on activations.
 *
 * Up to 16 results of one row and 16 channels at a time: the rows of the source are blended into one, then its pixels
 * into results. Each result reads at most 2 * 64 + 1 numbers of a row (shapes.c bounds the change of a side), so the
 * pixels that the results of a tile read fit in a small array if the tile is narrow enough. */
#include "nn/act_lanes.h"
#include "nn/resize.h"

#include <string.h>

enum { SPAN = 256 };

/* Rows or columns of one call: `to` results of `from` numbers; back: gradients of `to` numbers from those of `from`
 * results. */
struct axis {
    uint32_t from, to;
    int back;
};

static struct fkt_resize_span reads(const struct axis *a, uint32_t o)
{
    return a->back ? fkt_resize_readers(a->to, a->from, o) : fkt_resize_reads(a->from, a->to, o);
}

static float weight(const struct axis *a, uint32_t o, uint32_t s)
{
    if (a->back) return (float)fkt_resize_t(a->to, a->from, s, o) / (float)fkt_resize_total(a->to, a->from, s);
    return (float)fkt_resize_t(a->from, a->to, o, s) / (float)fkt_resize_total(a->from, a->to, o);
}

/* The columns of a tile: results [left, left + n), from pixels [span.first, span.end) of a row. */
struct columns {
    uint32_t left, n;
    struct fkt_resize_span span, read[FKT_TILE];
    float w[FKT_TILE][SPAN]; /* from span.first on */
};

static void describe(struct columns *k, const struct axis *a, uint32_t left)
{
    k->left = left;
    k->span = reads(a, left);
    for (k->n = 0; k->n < FKT_TILE && left + k->n < a->to; k->n++) {
        const struct fkt_resize_span s = reads(a, left + k->n);
        if (s.end - k->span.first > SPAN) break;
        k->read[k->n] = s;
        k->span.end = s.end;
        for (uint32_t j = s.first; j < s.end; j++) k->w[k->n][j - k->span.first] = weight(a, left + k->n, j);
    }
}

FKT_WIDE static void add_scaled(float *to, const float *from, float w, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] += w * from[i];
}

/* Adds w times row y of the source to `sum`, pixels of the span. */
static void blend(float *sum, const struct fkt_act *src, const struct fkt_spot *at, const struct columns *k, size_t y,
                  float w)
{
    float row[SPAN * FKT_TILE];
    const size_t pixels = k->span.end - k->span.first;
    const struct fkt_spot from = {.image = at->image,
                                  .pixel = y * src->w + k->span.first,
                                  .channel = at->channel,
                                  .pixels = pixels,
                                  .channels = at->channels};
    if (at->channels < FKT_TILE) memset(row, 0, pixels * FKT_TILE * sizeof *row);
    fkt_spot_load(row, FKT_TILE, src, &from);
    add_scaled(sum, row, w, pixels * FKT_TILE);
}

static void resize_row(const struct fkt_act *dst, const struct fkt_act *src, const struct axis *rows,
                       const struct columns *k, struct fkt_spot at, uint32_t y)
{
    const struct fkt_resize_span read = reads(rows, y);
    float sum[SPAN * FKT_TILE];
    struct fkt_tile out;
    memset(sum, 0, (k->span.end - k->span.first) * FKT_TILE * sizeof *sum);
    memset(&out, 0, sizeof out);
    for (uint32_t i = read.first; i < read.end; i++) blend(sum, src, &at, k, i, weight(rows, y, i));
    for (uint32_t x = 0; x < k->n; x++)
        for (uint32_t j = k->read[x].first - k->span.first; j < k->read[x].end - k->span.first; j++)
            add_scaled(out.v + x * FKT_TILE, sum + j * FKT_TILE, k->w[x][j], FKT_TILE);
    at.pixel = (size_t)y * dst->w + k->left;
    at.pixels = k->n;
    fkt_tile_store(dst, &at, &out);
}

static void resize(const struct fkt_act *dst, const struct fkt_act *src, int back)
{
    const struct axis rows = {src->h, dst->h, back}, columns = {src->w, dst->w, back};
    struct columns k;
    for (uint32_t left = 0; left < dst->w; left += k.n) {
        struct fkt_spot at = {0};
        describe(&k, &columns, left);
        for (at.image = 0; at.image < dst->n; at.image++)
            for (at.channel = 0; at.channel < dst->c; at.channel += at.channels) {
                at.channels = dst->c - at.channel < FKT_TILE ? dst->c - at.channel : FKT_TILE;
                for (uint32_t y = 0; y < dst->h; y++) resize_row(dst, src, &rows, &k, at, y);
            }
    }
    fkt_act_zero_padding(dst);
}

void fkt_act_resize(const struct fkt_act *dst, const struct fkt_act *src) { resize(dst, src, 0); }

void fkt_act_resize_back(const struct fkt_act *d, const struct fkt_act *g) { resize(d, g, 1); }
