/* SPDX-License-Identifier: Apache-2.0 */
/* learn_ops.c - backward of the elementwise operations and of those that choose, move, add or average; and the choice
 * of the backward for each kind.
 *
 * Gradients of inputs are added to what is there: the gradient of a value with two readers is the sum of both, and an
 * addition of a value to itself adds it twice. */
#include "nn/ref/learn.h"

#include <math.h>

static size_t numbers(const struct fkt_ref_call *k) { return (size_t)k->n * k->y.c * k->y.h * k->y.w; }

/* At 0 the slope is 0, as in PyTorch. */
static void relu(const struct fkt_ref_back *k)
{
    for (size_t j = 0; k->da && j < numbers(k->call); j++) k->da[j] += k->call->a[j] > 0 ? k->dy[j] : 0;
}

/* At 0 and at 6 the slope is 0, as in PyTorch. */
static void relu6(const struct fkt_ref_back *k)
{
    for (size_t j = 0; k->da && j < numbers(k->call); j++)
        k->da[j] += k->call->a[j] > 0 && k->call->a[j] < 6 ? k->dy[j] : 0;
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double silu(double x) { return x * sigmoid(x); }
static double silu_slope(double x)
{
    const double s = sigmoid(x);
    return s * (1 + x * (1 - s));
}

static double slope_of(const struct fkt_op *op, double x)
{
    double t;
    switch (op->kind) {
    case FKT_OP_SILU: return silu_slope(x);
    case FKT_OP_SOFT_CLAMP: t = tanh(x / (double)op->value[0]); return 1 - t * t;
    default: return (double)op->value[0]; /* AFFINE */
    }
}

static void smooth(const struct fkt_ref_back *k)
{
    for (size_t j = 0; k->da && j < numbers(k->call); j++)
        k->da[j] = (float)(k->da[j] + k->dy[j] * slope_of(k->call->op, (double)k->call->a[j]));
}

static void glu(const struct fkt_ref_back *k)
{
    const size_t half = (size_t)k->call->y.c * k->call->y.h * k->call->y.w;
    for (size_t j = 0; k->da && j < numbers(k->call); j++) {
        const size_t at = j / half * 2 * half + j % half;
        const double a = (double)k->call->a[at], b = (double)k->call->a[at + half];
        k->da[at] = (float)(k->da[at] + k->dy[j] * silu(b));
        k->da[at + half] = (float)(k->da[at + half] + k->dy[j] * a * silu_slope(b));
    }
}

static void split(const struct fkt_ref_back *k)
{
    const struct fkt_ref_call *f = k->call;
    const size_t a = (size_t)f->x.c * f->x.h * f->x.w, b = (size_t)f->z.c * f->z.h * f->z.w;
    for (size_t i = 0; i < f->n; i++) {
        for (size_t j = 0; k->da && j < a; j++) k->da[i * a + j] += k->dy[i * (a + b) + j];
        for (size_t j = 0; k->db && j < b; j++) k->db[i * b + j] += k->dy[i * (a + b) + a + j];
    }
}

static void add(const struct fkt_ref_back *k)
{
    for (size_t j = 0; k->da && j < numbers(k->call); j++) k->da[j] += k->dy[j];
    for (size_t j = 0; k->db && j < numbers(k->call); j++) k->db[j] += k->dy[j];
}

/* A window's whole gradient goes to the number that was the largest in the forward, of equal ones to the first. */
void fkt_ref_max_pool_back(const struct fkt_ref_back *k)
{
    const struct fkt_ref_call *f = k->call;
    for (size_t i = 0; k->da && i < f->n; i++)
        for (size_t c = 0; c < f->y.c; c++)
            for (size_t y = 0; y < f->y.h; y++)
                for (size_t x = 0; x < f->y.w; x++)
                    k->da[fkt_ref_largest(f, i, c, y, x)] += k->dy[fkt_ref_at(f->y, i, c, y, x)];
}

void fkt_ref_mean_back(const struct fkt_ref_back *k)
{
    const size_t plane = (size_t)k->call->x.h * k->call->x.w;
    for (size_t j = 0; k->da && j < numbers(k->call) * plane; j++)
        k->da[j] = (float)(k->da[j] + (double)k->dy[j / plane] / (double)plane);
}

void fkt_ref_backward(const struct fkt_ref_back *k)
{
    switch (k->call->op->kind) {
    case FKT_OP_CONV: fkt_ref_convolution_back(k); break;
    case FKT_OP_LINEAR: fkt_ref_linear_back(k); break;
    case FKT_OP_RELU: relu(k); break;
    case FKT_OP_RELU6: relu6(k); break;
    case FKT_OP_RESIZE: fkt_ref_resize_back(k); break;
    case FKT_OP_SILU:
    case FKT_OP_SOFT_CLAMP:
    case FKT_OP_AFFINE: smooth(k); break;
    case FKT_OP_GLU: glu(k); break;
    case FKT_OP_UPSAMPLE:
    case FKT_OP_SHUFFLE:
    case FKT_OP_UNSHUFFLE:
    case FKT_OP_GROUP_MEAN:
    case FKT_OP_REPEAT:
        if (k->da) fkt_ref_scatter(k->call, k->dy, k->da);
        break;
    case FKT_OP_RMS_NORM: fkt_ref_rms_norm_back(k); break;
    case FKT_OP_GROUP_NORM: fkt_ref_group_norm_back(k); break;
    case FKT_OP_BATCH_NORM: (k->moments ? fkt_ref_batch_norm_back : fkt_ref_stored_norm_back)(k); break;
    case FKT_OP_ATTENTION: fkt_ref_attention_back(k); break;
    case FKT_OP_ADD: add(k); break;
    case FKT_OP_CONCAT: split(k); break;
    case FKT_OP_MAX_POOL: fkt_ref_max_pool_back(k); break;
    case FKT_OP_MEAN: fkt_ref_mean_back(k); break;
    case FKT_OP_KINDS: break;
    }
}
