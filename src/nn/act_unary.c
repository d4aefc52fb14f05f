/* SPDX-License-Identifier: Apache-2.0 */
/* act_unary.c - elementwise arithmetic, forward and backward.
 *
 * SiLU needs e^x for every number, and the C library computes one at a time. Here: x = k ln 2 + r with |r| <=
 * ln(2)/2, e^r by its Taylor series to r^7 (the rest is below 6e-9), 2^k from the exponent bits; all of it plain
 * float arithmetic that compilers turn into vector instructions, and the same bits on every machine. */
#include "nn/act_lanes.h"

#include <math.h>
#include <string.h>

/* e^x for x between -87 and 88. */
static inline float exponential(float x)
{
    const float log2e = 1.44269504F, ln2_high = 0.693359375F, ln2_low = -2.12194440e-4F;
    const float round = 12582912; /* 1.5 * 2^23: in a sum with it the low bits are the nearest whole number */
    float k = x * log2e + round, r, e = 1 / 5040.0F, scale;
    uint32_t bits;
    memcpy(&bits, &k, sizeof bits);
    k -= round;
    r = x - k * ln2_high - k * ln2_low;
    e = e * r + 1 / 720.0F;
    e = e * r + 1 / 120.0F;
    e = e * r + 1 / 24.0F;
    e = e * r + 1 / 6.0F;
    e = e * r + 0.5F;
    e = e * r + 1;
    e = e * r + 1;
    bits = (bits + 127) << 23;
    memcpy(&scale, &bits, sizeof scale);
    return e * scale;
}

/* x / (1 + e^-x). Beyond the range of exponential, -x is clamped to its end: there the result is x, or 0. NaN stays
 * NaN. One loop for each comparison, since compilers do not vectorise a loop with two. */
FKT_WIDE static void silu(float v[FKT_TILE_NUMBERS])
{
    float y[FKT_TILE_NUMBERS];
    for (int i = 0; i < FKT_TILE_NUMBERS; i++) y[i] = v[i] > 87 ? -87 : -v[i];
    for (int i = 0; i < FKT_TILE_NUMBERS; i++) y[i] = y[i] > 88 ? 88 : y[i];
    for (int i = 0; i < FKT_TILE_NUMBERS; i++) v[i] /= 1 + exponential(y[i]);
}

FKT_WIDE static void apply(float *v, const struct fkt_op *op)
{
    float a = op->value[0], b = op->value[1];
    switch (op->kind) {
    case FKT_OP_RELU:
        for (int i = 0; i < FKT_TILE_NUMBERS; i++) v[i] = v[i] < 0 ? 0 : v[i];
        break;
    case FKT_OP_RELU6:
        for (int i = 0; i < FKT_TILE_NUMBERS; i++) v[i] = v[i] < 0 ? 0 : v[i];
        for (int i = 0; i < FKT_TILE_NUMBERS; i++) v[i] = v[i] > 6 ? 6 : v[i];
        break;
    case FKT_OP_SILU: silu(v); break;
    case FKT_OP_SOFT_CLAMP:
        for (int i = 0; i < FKT_TILE_NUMBERS; i++) v[i] = a * (float)tanh((double)v[i] / (double)a);
        break;
    case FKT_OP_AFFINE:
        for (int i = 0; i < FKT_TILE_NUMBERS; i++) v[i] = a * v[i] + b;
        break;
    default: break;
    }
}

void fkt_act_unary(const struct fkt_act *dst, const struct fkt_act *src, const struct fkt_op *op)
{
    struct fkt_spot at = {0};
    struct fkt_tile x;
    while (fkt_spot_next(&at, dst)) {
        fkt_tile_load(&x, src, &at);
        apply(x.v, op);
        fkt_tile_store(dst, &at, &x);
    }
    fkt_act_zero_padding(dst);
}

FKT_WIDE void fkt_act_add(const struct fkt_act *dst, const struct fkt_act *a, const struct fkt_act *b)
{
    struct fkt_spot at = {0};
    struct fkt_tile x, y;
    while (fkt_spot_next(&at, dst)) {
        fkt_tile_load(&x, a, &at);
        fkt_tile_load(&y, b, &at);
        for (int i = 0; i < FKT_TILE_NUMBERS; i++) x.v[i] += y.v[i];
        fkt_tile_store(dst, &at, &x);
    }
    fkt_act_zero_padding(dst);
}

FKT_WIDE void fkt_act_glu(const struct fkt_act *dst, const struct fkt_act *src)
{
    struct fkt_spot at = {0}, gate;
    struct fkt_tile x, y;
    while (fkt_spot_next(&at, dst)) {
        gate = at;
        gate.channel += dst->c;
        fkt_tile_load(&x, src, &at);
        fkt_tile_load(&y, src, &gate);
        silu(y.v);
        for (int i = 0; i < FKT_TILE_NUMBERS; i++) x.v[i] *= y.v[i];
        fkt_tile_store(dst, &at, &x);
    }
    fkt_act_zero_padding(dst);
}

/* v becomes 1 / (1 + e^-v), in the range of silu. */
FKT_WIDE static void sigmoid(float v[FKT_TILE_NUMBERS])
{
    for (int i = 0; i < FKT_TILE_NUMBERS; i++) v[i] = v[i] > 87 ? -87 : -v[i];
    for (int i = 0; i < FKT_TILE_NUMBERS; i++) v[i] = v[i] > 88 ? 88 : v[i];
    for (int i = 0; i < FKT_TILE_NUMBERS; i++) v[i] = 1 / (1 + exponential(v[i]));
}

/* g becomes g times the slope of SiLU at x: with s the sigmoid of x, s (1 + x (1 - s)). */
FKT_WIDE static void silu_back(float g[FKT_TILE_NUMBERS], const float x[FKT_TILE_NUMBERS])
{
    float s[FKT_TILE_NUMBERS];
    memcpy(s, x, sizeof s);
    sigmoid(s);
    for (int i = 0; i < FKT_TILE_NUMBERS; i++) g[i] *= s[i] * (1 + x[i] * (1 - s[i]));
}

FKT_WIDE static void apply_back(float *g, const float *x, const struct fkt_op *op)
{
    const float a = op->value[0];
    switch (op->kind) {
    case FKT_OP_RELU6:
        for (int i = 0; i < FKT_TILE_NUMBERS; i++) g[i] = ((x[i] > 0) & (x[i] < 6)) ? g[i] : 0;
        break;
    case FKT_OP_SILU: silu_back(g, x); break;
    case FKT_OP_SOFT_CLAMP:
        for (int i = 0; i < FKT_TILE_NUMBERS; i++) {
            const double t = tanh((double)x[i] / (double)a);
            g[i] *= (float)(1 - t * t);
        }
        break;
    case FKT_OP_AFFINE:
        for (int i = 0; i < FKT_TILE_NUMBERS; i++) g[i] *= a;
        break;
    default: break;
    }
}

void fkt_act_unary_back(const struct fkt_act *d, const struct fkt_act *g, const struct fkt_act *x,
                        const struct fkt_op *op)
{
    struct fkt_spot at = {0};
    struct fkt_tile slope, from = {0};
    while (fkt_spot_next(&at, d)) {
        fkt_tile_load(&slope, g, &at);
        if (x) fkt_tile_load(&from, x, &at);
        apply_back(slope.v, from.v, op);
        fkt_tile_store(d, &at, &slope);
    }
    fkt_act_zero_padding(d);
}

/* One tile of GLU: its gradient by the first half, and by the gate. */
FKT_WIDE static void glu_tile_back(struct fkt_tile d[2], const struct fkt_tile *g, const struct fkt_tile x[2])
{
    d[0] = x[1];
    silu(d[0].v);
    for (int i = 0; i < FKT_TILE_NUMBERS; i++) d[0].v[i] *= g->v[i];
    for (int i = 0; i < FKT_TILE_NUMBERS; i++) d[1].v[i] = g->v[i] * x[0].v[i];
    silu_back(d[1].v, x[1].v);
}

void fkt_act_glu_back(const struct fkt_act *d, const struct fkt_act *g, const struct fkt_act *x)
{
    struct fkt_spot at = {0};
    struct fkt_tile slope, from[2], out[2];
    while (fkt_spot_next(&at, g)) {
        struct fkt_spot gate = at;
        gate.channel += g->c;
        fkt_tile_load(&slope, g, &at);
        fkt_tile_load(&from[0], x, &at);
        fkt_tile_load(&from[1], x, &gate);
        glu_tile_back(out, &slope, from);
        fkt_tile_store(d, &at, &out[0]);
        fkt_tile_store(d, &gate, &out[1]);
    }
    fkt_act_zero_padding(d);
}

/* Means of groups of adjacent channels; the groups of 16 adjacent results may start anywhere in blocks. */
FKT_WIDE void fkt_act_group_mean(const struct fkt_act *dst, const struct fkt_act *src)
{
    size_t per = src->c / dst->c;
    struct fkt_spot at = {0};
    struct fkt_tile x, sum;
    while (fkt_spot_next(&at, dst)) {
        struct fkt_spot from = at;
        size_t end = (at.channel + at.channels) * per;
        memset(&sum, 0, sizeof sum);
        for (from.channel = at.channel * per; from.channel < end; from.channel += from.channels) {
            from.channels = end - from.channel < FKT_TILE ? end - from.channel : FKT_TILE;
            fkt_tile_load(&x, src, &from);
            for (size_t l = 0; l < from.channels; l++) {
                size_t to = (from.channel + l) / per - at.channel;
                for (int p = 0; p < FKT_TILE; p++) sum.v[p * FKT_TILE + to] += x.v[p * FKT_TILE + l];
            }
        }
        for (int i = 0; i < FKT_TILE_NUMBERS; i++) sum.v[i] /= (float)per;
        fkt_tile_store(dst, &at, &sum);
    }
    fkt_act_zero_padding(dst);
}
