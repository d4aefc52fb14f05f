/* SPDX-License-Identifier: Apache-2.0 */
/* learn_ops.c - backward of the operations that choose, add or average; and the choice of the backward for each kind.
 *
 * Gradients of inputs are added to what is there: the gradient of a value with two readers is the sum of both, and an
 * addition of a value to itself adds it twice. */
#include "nn/ref/learn.h"

static size_t numbers(const struct fkt_ref_call *k) { return (size_t)k->n * k->y.c * k->y.h * k->y.w; }

/* At 0 the slope is 0, as in PyTorch. */
static void relu(const struct fkt_ref_back *k)
{
    for (size_t j = 0; k->da && j < numbers(k->call); j++) k->da[j] += k->call->a[j] > 0 ? k->dy[j] : 0;
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
    case FKT_OP_BATCH_NORM: fkt_ref_batch_norm_back(k); break;
    case FKT_OP_ADD: add(k); break;
    case FKT_OP_MAX_POOL: fkt_ref_max_pool_back(k); break;
    case FKT_OP_MEAN: fkt_ref_mean_back(k); break;
    default: break; /* learner.c refuses other kinds */
    }
}
