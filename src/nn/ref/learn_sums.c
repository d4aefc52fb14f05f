/* SPDX-License-Identifier: Apache-2.0 */
/* learn_sums.c - convolution and linear map, backward.
 *
 * With y(oy, ox) = sum of w(ky, kx) x(oy stride + ky - pad, ox stride + kx - pad), over channels too,
 *
 *   dx(iy, ix) = sum of w(ky, kx) dy(oy, ox) over the places with oy stride + ky - pad = iy, and likewise for x
 *   dw(ky, kx) = sum over images and places of dy(oy, ox) x(oy stride + ky - pad, ox stride + kx - pad)
 *
 * Sums run in double and are rounded once, as in sums.c. Gradients of weights
 * are those of one group (learner.c refuses to train others); a frozen network has none and may have groups. */
#include "nn/ref/learn.h"

/* Adds what the results of row (oc, oy) contribute to n numbers of row iy of the input from ix on, for one row of w. */
static void spread_row(const struct fkt_op *op, const float *w, const float *dy, size_t results, size_t ix, size_t n,
                       double *sum)
{
    for (size_t kx = 0; kx < op->kernel; kx++) {
        /* ox stride + kx - pad in [ix, ix + n) */
        size_t low = ix + op->pad, first = low > kx ? (low - kx + op->stride - 1) / op->stride : 0;
        size_t end = low + n > kx ? (low + n - kx + op->stride - 1) / op->stride : 0;
        double weight = (double)w[kx];
        if (end > results) end = results;
        for (size_t ox = first; ox < end; ox++) sum[ox * op->stride + kx - low] += weight * dy[ox];
    }
}

static void data_run(const struct fkt_ref_back *k, size_t i, size_t c, size_t iy, size_t ix, size_t n, double *sum)
{
    const struct fkt_ref_call *f = k->call;
    const struct fkt_op *op = f->op;
    const size_t per = f->x.c / op->groups, results = f->y.c / op->groups, first = c / per * results;
    for (size_t j = 0; j < n; j++) sum[j] = 0;
    for (size_t oc = first; oc < first + results; oc++)
        for (size_t ky = 0; ky < op->kernel; ky++) {
            size_t oy = (iy + op->pad - ky) / op->stride; /* wraps to a huge number before the first row */
            if (iy + op->pad < ky || (iy + op->pad - ky) % op->stride || oy >= f->y.h) continue;
            spread_row(op, f->weight + ((oc * per + c % per) * op->kernel + ky) * op->kernel,
                       k->dy + fkt_ref_at(f->y, i, oc, oy, 0), f->y.w, ix, n, sum);
        }
}

static void convolution_data(const struct fkt_ref_back *k)
{
    const struct fkt_shape s = k->call->x;
    double sum[FKT_REF_RUN];
    for (size_t i = 0; i < k->call->n; i++)
        for (size_t c = 0; c < s.c; c++)
            for (size_t y = 0; y < s.h; y++)
                for (size_t x = 0, n; x < s.w; x += n) {
                    float *da = k->da + fkt_ref_at(s, i, c, y, x);
                    n = fkt_ref_run_length(s.w - x);
                    data_run(k, i, c, y, x, n, sum);
                    for (size_t j = 0; j < n; j++) da[j] = (float)(da[j] + sum[j]);
                }
}

/* One weight. Each place in a run of neighbours has its own sum; they are added up at the end. */
static double weight_sum(const struct fkt_ref_back *k, size_t oc, size_t c, size_t ky, size_t kx)
{
    const struct fkt_ref_call *f = k->call;
    const struct fkt_op *op = f->op;
    const size_t lanes = fkt_ref_run_length(f->y.w);
    double sum[FKT_REF_RUN] = {0}, all = 0;
    for (size_t i = 0; i < f->n; i++)
        for (size_t oy = 0; oy < f->y.h; oy++) {
            size_t iy = oy * op->stride + ky - op->pad;
            if (iy >= f->x.h) continue;
            for (size_t ox = 0, n; ox < f->y.w; ox += n) {
                struct fkt_ref_span s;
                const float *x, *dy;
                n = fkt_ref_run_length(f->y.w - ox);
                s = fkt_ref_inside(op, f->x.w, ox, n, kx);
                if (s.first == s.end) continue;
                x = f->a + fkt_ref_at(f->x, i, c, iy, s.first * op->stride + kx - op->pad);
                dy = k->dy + fkt_ref_at(f->y, i, oc, oy, s.first);
                for (size_t j = 0; j < s.end - s.first; j++) sum[j] += (double)dy[j] * x[j * op->stride];
            }
        }
    for (size_t j = 0; j < lanes; j++) all += sum[j];
    return all;
}

static void bias_sums(const struct fkt_ref_back *k)
{
    const struct fkt_shape y = k->call->y;
    const size_t plane = (size_t)y.h * y.w;
    for (size_t c = 0; c < y.c; c++) {
        double sum = 0;
        for (size_t i = 0; i < k->call->n; i++)
            for (size_t p = 0; p < plane; p++) sum += k->dy[(i * y.c + c) * plane + p];
        k->dbias[c] = (float)sum;
    }
}

void fkt_ref_convolution_back(const struct fkt_ref_back *k)
{
    const struct fkt_ref_call *f = k->call;
    float *dw = k->dweight;
    if (k->da) convolution_data(k);
    for (size_t oc = 0; dw && oc < f->y.c; oc++)
        for (size_t c = 0; c < f->x.c; c++)
            for (size_t ky = 0; ky < f->op->kernel; ky++)
                for (size_t kx = 0; kx < f->op->kernel; kx++) *dw++ = (float)weight_sum(k, oc, c, ky, kx);
    if (k->dbias) bias_sums(k);
}

void fkt_ref_linear_back(const struct fkt_ref_back *k)
{
    const struct fkt_ref_call *f = k->call;
    const size_t inputs = (size_t)f->x.c * f->x.h * f->x.w, outputs = f->y.c;
    for (size_t i = 0; k->da && i < f->n; i++)
        for (size_t j = 0; j < inputs; j++) {
            double sum = 0;
            for (size_t c = 0; c < outputs; c++) sum += (double)f->weight[c * inputs + j] * k->dy[i * outputs + c];
            k->da[i * inputs + j] = (float)(k->da[i * inputs + j] + sum);
        }
    for (size_t c = 0; k->dweight && c < outputs; c++)
        for (size_t j = 0; j < inputs; j++) {
            double sum = 0;
            for (size_t i = 0; i < f->n; i++) sum += (double)k->dy[i * outputs + c] * f->a[i * inputs + j];
            k->dweight[c * inputs + j] = (float)sum;
        }
    if (k->dbias) bias_sums(k);
}
