/* SPDX-License-Identifier: Apache-2.0 */
/* learn_norm.c - batch norm by the statistics of its batch, forward and backward (Ioffe and Szegedy, ICML 2015).
 *
 * Per channel, over the n numbers of all images: x' = (x - mean) / sqrt(var + eps), y = weight x' + bias. Mean and var
 * depend on every x, so
 *
 *   dweight = sum dy x'    dbias = sum dy    dx = weight / sqrt(var + eps) (dy - dbias / n - x' dweight / n)
 *
 * The stored variance is the unbiased estimate, n / (n - 1), as in PyTorch and in the paper. */
#include "nn/ref/learn.h"

#include <math.h>

/* The index of number j of a channel. */
static size_t place(struct fkt_shape s, size_t channel, size_t j)
{
    const size_t plane = (size_t)s.h * s.w;
    return (j / plane * s.c + channel) * plane + j % plane;
}

static size_t numbers(const struct fkt_ref_call *k) { return (size_t)k->n * k->x.h * k->x.w; }

static double inverse(const struct fkt_ref_call *k, const struct fkt_ref_moments *m)
{
    return 1 / sqrt(m->var + (double)k->op->value[0]);
}

void fkt_ref_batch_norm_learning(const struct fkt_ref_call *k, struct fkt_ref_moments *moments)
{
    const size_t n = numbers(k);
    for (size_t c = 0; c < k->x.c; c++) {
        struct fkt_ref_moments m = {0, 0};
        double scale;
        for (size_t j = 0; j < n; j++) m.mean += k->a[place(k->x, c, j)];
        m.mean /= (double)n;
        for (size_t j = 0; j < n; j++) {
            double d = k->a[place(k->x, c, j)] - m.mean;
            m.var += d * d;
        }
        m.var /= (double)n;
        scale = inverse(k, &m) * k->weight[c];
        for (size_t j = 0; j < n; j++) {
            size_t at = place(k->x, c, j);
            k->out[at] = (float)((k->a[at] - m.mean) * scale + k->bias[c]);
        }
        moments[c] = m;
    }
}

void fkt_ref_batch_norm_back(const struct fkt_ref_back *k)
{
    const struct fkt_ref_call *f = k->call;
    const size_t n = numbers(f);
    for (size_t c = 0; c < f->x.c; c++) {
        const struct fkt_ref_moments m = k->moments[c];
        const double scale = inverse(f, &m);
        double dweight = 0, dbias = 0;
        for (size_t j = 0; j < n; j++) {
            size_t at = place(f->x, c, j);
            dbias += k->dy[at];
            dweight += k->dy[at] * (f->a[at] - m.mean) * scale;
        }
        k->dweight[c] = (float)dweight;
        k->dbias[c] = (float)dbias;
        for (size_t j = 0; k->da && j < n; j++) {
            size_t at = place(f->x, c, j);
            double inner = k->dy[at] - (dbias + (f->a[at] - m.mean) * scale * dweight) / (double)n;
            k->da[at] = (float)(k->da[at] + f->weight[c] * scale * inner);
        }
    }
}

void fkt_ref_move_statistics(float *mean, float *var, const struct fkt_ref_moments *moments, size_t channels,
                             size_t count, double momentum)
{
    const double unbiased = (double)count / (double)(count - 1);
    for (size_t c = 0; c < channels; c++) {
        mean[c] = (float)((1 - momentum) * mean[c] + momentum * moments[c].mean);
        var[c] = (float)((1 - momentum) * var[c] + momentum * moments[c].var * unbiased);
    }
}
