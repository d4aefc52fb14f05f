/* SPDX-License-Identifier: Apache-2.0 */
/* act_norm.c - norms: factors and shifts for each channel, after a mean over channels or over a group.
 *
 * RMS norm reads a column of 16 pixels twice, all channels each time: the second time it comes from the cache. Squares
 * are summed lane by lane (16 partial sums for each pixel) and the lanes one after the other at the end, an order that
 * depends on the number of channels alone. Group norm makes three passes over a group, mean and variance in double, so
 * that a large mean does not swallow the variance. Backward, with w the weight, x' the normalised number and means as
 * in the forward: RMS d = scale (w g - x' mean(w g x')), group d = scale (w g - mean(w g) - x' mean(w g x')). */
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

FKT_WIDE static void rms_pixels_back(const struct fkt_act *d, const struct fkt_act *g, const struct fkt_act *x,
                                     const float *weight, float eps, struct fkt_spot at)
{
    const struct fkt_spot start = at;
    float scale[FKT_TILE], along[FKT_TILE] = {0}, w[FKT_TILE];
    struct fkt_tile slope, from;
    inverse_rms(scale, x, at, eps);
    while (next_channels(&at, x->c)) {
        vector(w, weight, &at);
        fkt_tile_load(&slope, g, &at);
        fkt_tile_load(&from, x, &at);
        for (int p = 0; p < FKT_TILE; p++)
            for (int l = 0; l < FKT_TILE; l++) along[p] += slope.v[p * FKT_TILE + l] * w[l] * from.v[p * FKT_TILE + l];
    }
    for (int p = 0; p < FKT_TILE; p++) along[p] *= scale[p] * scale[p] / (float)x->c;
    at = start;
    while (next_channels(&at, x->c)) {
        vector(w, weight, &at);
        fkt_tile_load(&slope, g, &at);
        fkt_tile_load(&from, x, &at);
        for (int p = 0; p < FKT_TILE; p++)
            for (int l = 0; l < FKT_TILE; l++) {
                float *s = &slope.v[p * FKT_TILE + l];
                *s = scale[p] * (*s * w[l] - from.v[p * FKT_TILE + l] * along[p]);
            }
        fkt_tile_store(d, &at, &slope);
    }
}

void fkt_act_rms_norm_back(const struct fkt_act *d, const struct fkt_act *g, const struct fkt_act *x,
                           const float *weight, float eps)
{
    const size_t plane = (size_t)x->h * x->w;
    for (size_t i = 0; i < x->n; i++)
        for (size_t p = 0; p < plane; p += FKT_TILE) {
            const struct fkt_spot at = {.image = i, .pixel = p, .pixels = plane - p < FKT_TILE ? plane - p : FKT_TILE};
            rms_pixels_back(d, g, x, weight, eps, at);
        }
    fkt_act_zero_padding(d);
}

/* Channels [begin, end) of one image. */
struct member {
    size_t image, begin, end;
    double mean, scale;
};

/* Sums of w g and of w g x'. */
FKT_WIDE static void slopes(double sum[2], const struct fkt_act *g, const struct fkt_act *x, const float *weight,
                            const struct member *m)
{
    struct fkt_spot at = {.image = m->image};
    struct fkt_tile slope, from;
    float w[FKT_TILE];
    sum[0] = sum[1] = 0;
    while (next_in_group(&at, (size_t)x->h * x->w, m->begin, m->end)) {
        vector(w, weight, &at);
        fkt_tile_load(&slope, g, &at);
        fkt_tile_load(&from, x, &at);
        for (size_t p = 0; p < at.pixels; p++)
            for (size_t l = 0; l < at.channels; l++) {
                const double s = (double)(slope.v[p * FKT_TILE + l] * w[l]);
                sum[0] += s;
                sum[1] += s * (from.v[p * FKT_TILE + l] - m->mean) * m->scale;
            }
    }
}

FKT_WIDE static void group_back(const struct fkt_act *d, const struct fkt_act *g, const struct fkt_act *x,
                                const float *weight, const struct member *m)
{
    const double count = (double)((size_t)x->h * x->w * (m->end - m->begin));
    const float centre = (float)m->mean, scale = (float)m->scale;
    double sum[2];
    float w[FKT_TILE], mean, along;
    struct fkt_spot at = {.image = m->image};
    struct fkt_tile slope, from;
    slopes(sum, g, x, weight, m);
    mean = (float)(sum[0] / count);
    along = (float)(sum[1] / count * m->scale);
    while (next_in_group(&at, (size_t)x->h * x->w, m->begin, m->end)) {
        vector(w, weight, &at);
        fkt_tile_load(&slope, g, &at);
        fkt_tile_load(&from, x, &at);
        for (int p = 0; p < FKT_TILE; p++)
            for (int l = 0; l < FKT_TILE; l++) {
                float *s = &slope.v[p * FKT_TILE + l];
                *s = scale * (*s * w[l] - mean - (from.v[p * FKT_TILE + l] - centre) * along);
            }
        fkt_tile_store(d, &at, &slope);
    }
}

void fkt_act_group_norm_back(const struct fkt_act *d, const struct fkt_act *g, const struct fkt_act *x,
                             const float *weight, float eps, uint32_t groups)
{
    const size_t per = x->c / groups;
    const double count = (double)((size_t)x->h * x->w * per);
    for (size_t i = 0; i < (size_t)x->n * groups; i++) {
        struct member m = {.image = i / groups, .begin = i % groups * per, .end = (i % groups + 1) * per};
        m.mean = moment(x, m.image, m.begin, m.end, 0, 1) / count;
        m.scale = 1 / sqrt(moment(x, m.image, m.begin, m.end, m.mean, 2) / count + (double)eps);
        group_back(d, g, x, weight, &m);
    }
    fkt_act_zero_padding(d);
}
