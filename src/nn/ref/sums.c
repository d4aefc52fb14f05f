/* SPDX-License-Identifier: Apache-2.0 */
/* sums.c - the operations that sum: convolution, linear, norms, attention.
 *
 * Each function is its line in net.h written as loops. Sums run in double and are rounded once, so that the reference
 * for fast backends has no significant rounding error. Convolutions handle several neighbours at once, which changes no
 * sum and lets compilers use vectors. No blocking and no care for caches: a hundredth of a fast backend's speed is
 * enough for tests. */
#include "nn/ref/ops.h"

#include <math.h>

struct fkt_ref_span fkt_ref_inside(const struct fkt_op *op, size_t width, size_t first, size_t n, size_t kx)
{
    struct fkt_ref_span s = {first, first + n};
    while (s.first < s.end && s.first * op->stride + kx < op->pad) s.first++;
    while (s.first < s.end && (s.end - 1) * op->stride + kx >= width + op->pad) s.end--;
    return s;
}

/* n <= FKT_REF_RUN neighbours of one row of results, from ox on; positions outside the map count as zeros. Every sum
 * adds channel after channel, row after row of the window. */
static void windows(const struct fkt_ref_call *k, size_t i, size_t oc, size_t oy, size_t ox, size_t n, double *sum)
{
    const struct fkt_op *op = k->op;
    size_t per = k->x.c / op->groups, first = oc / (k->y.c / op->groups) * per;
    for (size_t j = 0; j < n; j++) sum[j] = 0;
    for (size_t c = 0; c < per; c++)
        for (size_t ky = 0; ky < op->kernel; ky++) {
            size_t iy = oy * op->stride + ky - op->pad; /* wraps to a huge number above the map */
            const float *w = k->weight + ((oc * per + c) * op->kernel + ky) * op->kernel;
            if (iy >= k->x.h) continue;
            for (size_t kx = 0; kx < op->kernel; kx++) {
                struct fkt_ref_span s = fkt_ref_inside(op, k->x.w, ox, n, kx);
                double weight = (double)w[kx];
                const float *in;
                if (s.first == s.end) continue;
                in = k->a + fkt_ref_at(k->x, i, first + c, iy, s.first * op->stride + kx - op->pad);
                for (size_t j = s.first; j < s.end; j++) sum[j - ox] += weight * in[(j - s.first) * op->stride];
            }
        }
}

void fkt_ref_convolution(const struct fkt_ref_call *k)
{
    double sum[FKT_REF_RUN];
    for (size_t i = 0; i < k->n; i++)
        for (size_t c = 0; c < k->y.c; c++)
            for (size_t y = 0; y < k->y.h; y++)
                for (size_t x = 0, n; x < k->y.w; x += n) {
                    float *out = k->out + fkt_ref_at(k->y, i, c, y, x);
                    n = fkt_ref_run_length(k->y.w - x);
                    windows(k, i, c, y, x, n, sum);
                    for (size_t j = 0; j < n; j++) out[j] = (float)(sum[j] + (k->bias ? (double)k->bias[c] : 0));
                }
}

void fkt_ref_linear(const struct fkt_ref_call *k)
{
    size_t inputs = (size_t)k->x.c * k->x.h * k->x.w;
    for (size_t i = 0; i < k->n; i++)
        for (size_t c = 0; c < k->y.c; c++) {
            double sum = k->bias ? (double)k->bias[c] : 0;
            for (size_t j = 0; j < inputs; j++) sum += (double)k->weight[c * inputs + j] * k->a[i * inputs + j];
            k->out[i * k->y.c + c] = (float)sum;
        }
}

void fkt_ref_rms_norm(const struct fkt_ref_call *k)
{
    size_t plane = (size_t)k->x.h * k->x.w;
    for (size_t i = 0; i < k->n; i++)
        for (size_t p = 0; p < plane; p++) {
            const float *in = k->a + i * k->x.c * plane + p;
            float *out = k->out + i * k->x.c * plane + p;
            double sum = 0, scale;
            for (size_t c = 0; c < k->x.c; c++) sum += (double)in[c * plane] * in[c * plane];
            scale = 1 / sqrt(sum / k->x.c + (double)k->op->value[0]);
            for (size_t c = 0; c < k->x.c; c++)
                out[c * plane] = (float)(in[c * plane] * scale * k->weight[c] + k->bias[c]);
        }
}

void fkt_ref_group_norm(const struct fkt_ref_call *k)
{
    size_t plane = (size_t)k->x.h * k->x.w, per = k->x.c / k->op->groups, count = per * plane;
    for (size_t g = 0; g < (size_t)k->n * k->op->groups; g++) {
        const float *in = k->a + g * count;
        double mean = 0, var = 0, scale;
        for (size_t j = 0; j < count; j++) mean += in[j];
        mean /= (double)count;
        for (size_t j = 0; j < count; j++) var += (in[j] - mean) * (in[j] - mean);
        scale = 1 / sqrt(var / (double)count + (double)k->op->value[0]);
        for (size_t j = 0; j < count; j++) {
            size_t c = g % k->op->groups * per + j / plane;
            k->out[g * count + j] = (float)((in[j] - mean) * scale * k->weight[c] + k->bias[c]);
        }
    }
}

void fkt_ref_batch_norm(const struct fkt_ref_call *k)
{
    size_t plane = (size_t)k->x.h * k->x.w;
    for (size_t j = 0; j < k->n * k->x.c * plane; j++) {
        size_t c = j / plane % k->x.c;
        double scale = 1 / sqrt((double)k->var[c] + (double)k->op->value[0]);
        k->out[j] = (float)(((double)k->a[j] - k->mean[c]) * scale * k->weight[c] + k->bias[c]);
    }
}

static double relu(float x) { return x < 0 ? 0 : (double)x; }

/* One head at one position i: sum over all positions j of v_j <k_j, q_i>, over the sum of <k_j, q_i>. q, k, v and out
 * are (length, plane). */
static void attend(const float *q, const float *k, const float *v, float *out, size_t length, size_t plane, size_t i,
                   double eps)
{
    double sum[FKT_HEAD_MAX] = {0}, total = eps;
    for (size_t j = 0; j < plane; j++) {
        double match = 0;
        for (size_t c = 0; c < length; c++) match += relu(k[c * plane + j]) * relu(q[c * plane + i]);
        for (size_t e = 0; e < length; e++) sum[e] += v[e * plane + j] * match;
        total += match;
    }
    for (size_t e = 0; e < length; e++) out[e * plane + i] = (float)(sum[e] / total);
}

void fkt_ref_attention(const struct fkt_ref_call *k)
{
    size_t length = k->op->groups, plane = (size_t)k->x.h * k->x.w, heads = k->n * (size_t)k->x.c / (3 * length);
    for (size_t h = 0; h < heads; h++)
        for (size_t i = 0; i < plane; i++) {
            const float *q = k->a + h * 3 * length * plane;
            attend(q, q + length * plane, q + 2 * length * plane, k->out + h * length * plane, length, plane, i,
                   (double)k->op->value[0]);
        }
}
