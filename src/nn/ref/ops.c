/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c - the elementwise operations and those that only move numbers, as defined in net.h. */
#include "nn/ref/ops.h"

#include <math.h>
#include <string.h>

static size_t numbers(const struct fkt_ref_call *k) { return (size_t)k->n * k->y.c * k->y.h * k->y.w; }

static double silu(double x) { return x / (1 + exp(-x)); }

static void relu(const struct fkt_ref_call *k)
{
    for (size_t j = 0; j < numbers(k); j++) k->out[j] = k->a[j] < 0 ? 0 : k->a[j];
}

static void relu6(const struct fkt_ref_call *k)
{
    for (size_t j = 0; j < numbers(k); j++) k->out[j] = k->a[j] < 0 ? 0 : k->a[j] > 6 ? 6 : k->a[j];
}

static void swish(const struct fkt_ref_call *k)
{
    for (size_t j = 0; j < numbers(k); j++) k->out[j] = (float)silu((double)k->a[j]);
}

static void soft_clamp(const struct fkt_ref_call *k)
{
    double bound = (double)k->op->value[0];
    for (size_t j = 0; j < numbers(k); j++) k->out[j] = (float)(bound * tanh(k->a[j] / bound));
}

static void affine(const struct fkt_ref_call *k)
{
    for (size_t j = 0; j < numbers(k); j++)
        k->out[j] = (float)((double)k->op->value[0] * k->a[j] + (double)k->op->value[1]);
}

static void add(const struct fkt_ref_call *k)
{
    for (size_t j = 0; j < numbers(k); j++) k->out[j] = k->a[j] + k->b[j];
}

static void glu(const struct fkt_ref_call *k)
{
    size_t half = (size_t)k->y.c * k->y.h * k->y.w;
    for (size_t j = 0; j < numbers(k); j++) {
        const float *in = k->a + j / half * 2 * half + j % half;
        k->out[j] = (float)((double)in[0] * silu((double)in[half]));
    }
}

static void concatenate(const struct fkt_ref_call *k)
{
    size_t a = (size_t)k->x.c * k->x.h * k->x.w, b = (size_t)k->z.c * k->z.h * k->z.w;
    for (size_t i = 0; i < k->n; i++) {
        memcpy(k->out + i * (a + b), k->a + i * a, a * sizeof(float));
        memcpy(k->out + i * (a + b) + a, k->b + i * b, b * sizeof(float));
    }
}

static size_t upsampled(const struct fkt_ref_call *k, size_t i, size_t c, size_t y, size_t x)
{
    return fkt_ref_at(k->x, i, c, y / k->op->factor, x / k->op->factor);
}

static size_t shuffled(const struct fkt_ref_call *k, size_t i, size_t c, size_t y, size_t x)
{
    size_t f = k->op->factor;
    return fkt_ref_at(k->x, i, (c * f + y % f) * f + x % f, y / f, x / f);
}

static size_t unshuffled(const struct fkt_ref_call *k, size_t i, size_t c, size_t y, size_t x)
{
    size_t f = k->op->factor;
    return fkt_ref_at(k->x, i, c / (f * f), y * f + c / f % f, x * f + c % f);
}

static size_t first_of_group(const struct fkt_ref_call *k, size_t i, size_t c, size_t y, size_t x)
{
    return fkt_ref_at(k->x, i, c * (k->x.c / k->y.c), y, x);
}

static size_t repeated(const struct fkt_ref_call *k, size_t i, size_t c, size_t y, size_t x)
{
    return fkt_ref_at(k->x, i, c / (k->y.c / k->x.c), y, x);
}

/* Where result (i, c, y, x) of an operation that moves numbers comes from: the mean of `count` inputs, one plane apart,
 * the first where `first` says. */
struct origin {
    size_t (*first)(const struct fkt_ref_call *k, size_t i, size_t c, size_t y, size_t x);
    size_t count;
};

static struct origin origin_of(const struct fkt_ref_call *k)
{
    switch (k->op->kind) {
    case FKT_OP_UPSAMPLE: return (struct origin){upsampled, 1};
    case FKT_OP_SHUFFLE: return (struct origin){shuffled, 1};
    case FKT_OP_UNSHUFFLE: return (struct origin){unshuffled, 1};
    case FKT_OP_GROUP_MEAN: return (struct origin){first_of_group, k->x.c / k->y.c};
    default: return (struct origin){repeated, 1};
    }
}

static void gather(const struct fkt_ref_call *k)
{
    const struct origin from = origin_of(k);
    size_t plane = (size_t)k->x.h * k->x.w;
    for (size_t i = 0; i < k->n; i++)
        for (size_t c = 0; c < k->y.c; c++)
            for (size_t y = 0; y < k->y.h; y++)
                for (size_t x = 0; x < k->y.w; x++) {
                    const float *in = k->a + from.first(k, i, c, y, x);
                    double sum = 0;
                    for (size_t j = 0; j < from.count; j++) sum += in[j * plane];
                    k->out[fkt_ref_at(k->y, i, c, y, x)] = from.count == 1 ? *in : (float)(sum / (double)from.count);
                }
}

void fkt_ref_scatter(const struct fkt_ref_call *k, const float *dy, float *da)
{
    const struct origin from = origin_of(k);
    size_t plane = (size_t)k->x.h * k->x.w;
    for (size_t i = 0; i < k->n; i++)
        for (size_t c = 0; c < k->y.c; c++)
            for (size_t y = 0; y < k->y.h; y++)
                for (size_t x = 0; x < k->y.w; x++) {
                    float *to = da + from.first(k, i, c, y, x);
                    double share = (double)dy[fkt_ref_at(k->y, i, c, y, x)] / (double)from.count;
                    for (size_t j = 0; j < from.count; j++) to[j * plane] = (float)(to[j * plane] + share);
                }
}

void fkt_ref_run(const struct fkt_ref_call *k)
{
    switch (k->op->kind) {
    case FKT_OP_CONV: fkt_ref_convolution(k); break;
    case FKT_OP_LINEAR: fkt_ref_linear(k); break;
    case FKT_OP_RELU: relu(k); break;
    case FKT_OP_RELU6: relu6(k); break;
    case FKT_OP_RESIZE: fkt_ref_resize(k); break;
    case FKT_OP_SILU: swish(k); break;
    case FKT_OP_SOFT_CLAMP: soft_clamp(k); break;
    case FKT_OP_GLU: glu(k); break;
    case FKT_OP_UPSAMPLE:
    case FKT_OP_SHUFFLE:
    case FKT_OP_UNSHUFFLE:
    case FKT_OP_GROUP_MEAN:
    case FKT_OP_REPEAT: gather(k); break;
    case FKT_OP_RMS_NORM: fkt_ref_rms_norm(k); break;
    case FKT_OP_GROUP_NORM: fkt_ref_group_norm(k); break;
    case FKT_OP_BATCH_NORM: fkt_ref_batch_norm(k); break;
    case FKT_OP_ATTENTION: fkt_ref_attention(k); break;
    case FKT_OP_ADD: add(k); break;
    case FKT_OP_CONCAT: concatenate(k); break;
    case FKT_OP_AFFINE: affine(k); break;
    case FKT_OP_MAX_POOL: fkt_ref_max_pool(k); break;
    case FKT_OP_MEAN: fkt_ref_mean(k); break;
    case FKT_OP_KINDS: break;
    }
}
