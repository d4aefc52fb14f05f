/* SPDX-License-Identifier: Apache-2.0 */
/* act_norm.c - norms: factors and shifts for each channel, after a mean over channels or over a group.
 *
 * RMS norm reads a column of 16 pixels twice, all channels each time: the second time it comes from the cache. Squares
 * are summed lane by lane (16 partial sums for each pixel) and the lanes one after the other at the end, an order that
 * depends on the number of channels alone. Group norm makes three passes over a group, mean and variance in double, so
 * that a large mean does not swallow the variance. */
#include "nn/act_lanes.h"

#include <math.h>
#include <string.h>

/* 16 numbers of a vector over channels; zero where the spot ends. */
static void vector(float out[FKT_TILE], const float *from, const struct fkt_spot *at)
{
    memset(out, 0, FKT_TILE * sizeof *out);
    memcpy(out, from + at->channel, at->channels * sizeof *out);
}

/* The next 16 channels of the same pixels; 0 after the last. Begin with channels = 0. */
static int next_channels(struct fkt_spot *at, size_t end)
{
    at->channel += at->channels;
    at->channels = end - at->channel < FKT_TILE ? end - at->channel : FKT_TILE;
    return at->channel < end;
}

/* 1 / root mean square of each of the spot's pixels. */
FKT_WIDE static void inverse_rms(float out[FKT_TILE], const struct fkt_act *src, struct fkt_spot at, float eps)
{
    struct fkt_tile sum, x;
    memset(&sum, 0, sizeof sum);
    while (next_channels(&at, src->c)) {
        fkt_tile_load(&x, src, &at);
        for (int i = 0; i < FKT_TILE_NUMBERS; i++) sum.v[i] += x.v[i] * x.v[i];
    }
    for (int p = 0; p < FKT_TILE; p++) {
        float all = 0;
        for (int l = 0; l < FKT_TILE; l++) all += sum.v[p * FKT_TILE + l];
        out[p] = 1 / sqrtf(all / (float)src->c + eps);
    }
}

FKT_WIDE static void rms_pixels(const struct fkt_act *dst, const struct fkt_act *src, const float *weight,
                                const float *bias, float eps, const struct fkt_act *add, struct fkt_spot at)
{
    float scale[FKT_TILE], w[FKT_TILE], b[FKT_TILE];
    struct fkt_tile x, more;
    inverse_rms(scale, src, at, eps);
    while (next_channels(&at, src->c)) {
        vector(w, weight, &at);
        vector(b, bias, &at);
        fkt_tile_load(&x, src, &at);
        for (int p = 0; p < FKT_TILE; p++)
            for (int l = 0; l < FKT_TILE; l++) x.v[p * FKT_TILE + l] = x.v[p * FKT_TILE + l] * scale[p] * w[l] + b[l];
        if (add) {
            fkt_tile_load(&more, add, &at);
            for (int i = 0; i < FKT_TILE_NUMBERS; i++) x.v[i] += more.v[i];
        }
        fkt_tile_store(dst, &at, &x);
    }
}

void fkt_act_rms_norm(const struct fkt_act *dst, const struct fkt_act *src, const float *weight, const float *bias,
                      float eps, const struct fkt_act *add)
{
    size_t plane = (size_t)src->h * src->w;
    for (size_t i = 0; i < src->n; i++)
        for (size_t p = 0; p < plane; p += FKT_TILE) {
            struct fkt_spot at = {.image = i, .pixel = p, .pixels = plane - p < FKT_TILE ? plane - p : FKT_TILE};
            rms_pixels(dst, src, weight, bias, eps, add, at);
        }
    fkt_act_zero_padding(dst);
}

/* The next tile of channels [begin, end) of one image; begin with pixels = channels = 0. */
static int next_in_group(struct fkt_spot *at, size_t plane, size_t begin, size_t end)
{
    if (!at->pixels || at->channel + at->channels >= end) {
        at->pixel += at->pixels;
        at->channel = begin;
        at->channels = 0;
    }
    at->pixels = plane - at->pixel < FKT_TILE ? plane - at->pixel : FKT_TILE;
    return next_channels(at, end) && at->pixel < plane;
}

/* Sum of (x - centre)^power over the group, power 1 or 2. */
FKT_WIDE static double moment(const struct fkt_act *src, size_t image, size_t begin, size_t end, double centre,
                              int power)
{
    struct fkt_spot at = {.image = image};
    struct fkt_tile x;
    double sum = 0;
    while (next_in_group(&at, (size_t)src->h * src->w, begin, end)) {
        fkt_tile_load(&x, src, &at);
        for (size_t p = 0; p < at.pixels; p++)
            for (size_t l = 0; l < at.channels; l++) {
                double d = x.v[p * FKT_TILE + l] - centre;
                sum += power == 2 ? d * d : d;
            }
    }
    return sum;
}

FKT_WIDE static void group(const struct fkt_act *dst, const struct fkt_act *src, const float *weight, const float *bias,
                           float eps, size_t image, size_t begin, size_t end)
{
    size_t plane = (size_t)src->h * src->w;
    double count = (double)(plane * (end - begin)), mean = moment(src, image, begin, end, 0, 1) / count;
    float scale = (float)(1 / sqrt(moment(src, image, begin, end, mean, 2) / count + (double)eps));
    float centre = (float)mean, w[FKT_TILE], b[FKT_TILE];
    struct fkt_spot at = {.image = image};
    struct fkt_tile x;
    while (next_in_group(&at, plane, begin, end)) {
        vector(w, weight, &at);
        vector(b, bias, &at);
        fkt_tile_load(&x, src, &at);
        for (int p = 0; p < FKT_TILE; p++)
            for (int l = 0; l < FKT_TILE; l++)
                x.v[p * FKT_TILE + l] = (x.v[p * FKT_TILE + l] - centre) * scale * w[l] + b[l];
        fkt_tile_store(dst, &at, &x);
    }
}

void fkt_act_group_norm(const struct fkt_act *dst, const struct fkt_act *src, const float *weight, const float *bias,
                        float eps, uint32_t groups)
{
    size_t per = src->c / groups;
    for (size_t i = 0; i < src->n; i++)
        for (size_t g = 0; g < groups; g++) group(dst, src, weight, bias, eps, i, g * per, (g + 1) * per);
    fkt_act_zero_padding(dst);
}

FKT_WIDE void fkt_act_channel_affine(const struct fkt_act *dst, const struct fkt_act *src, const float *scale,
                                     const float *shift)
{
    struct fkt_spot at = {0};
    struct fkt_tile x;
    float a[FKT_TILE], b[FKT_TILE];
    while (fkt_spot_next(&at, dst)) {
        vector(a, scale, &at);
        vector(b, shift, &at);
        fkt_tile_load(&x, src, &at);
        for (int p = 0; p < FKT_TILE; p++)
            for (int l = 0; l < FKT_TILE; l++) x.v[p * FKT_TILE + l] = x.v[p * FKT_TILE + l] * a[l] + b[l];
        fkt_tile_store(dst, &at, &x);
    }
    fkt_act_zero_padding(dst);
}
