/* SPDX-License-Identifier: Apache-2.0 */
/* learn_frozen.c - backward by the input of norms with fixed parameters and of attention.
 *
 * With g = weight dy, x' the normalised number, s = 1 / sqrt(... + eps) and means over what the forward took them:
 *
 *   batch norm, stored   dx = s g
 *   group norm           dx = s (g - mean g - x' mean(g x'))
 *   RMS norm             dx = s (g - x' mean(g x')),  x' = s x
 *
 * Attention (net.h), with q and k after ReLU, m_ij = <k_j, q_i>, t_i = sum_j m_ij + eps, o_i = sum_j m_ij v_j / t_i:
 *
 *   dm_ij = (<do_i, v_j> - <do_i, o_i>) / t_i
 *   dv_j  = sum_i m_ij do_i / t_i       dk_j = sum_i dm_ij q_i      dq_i = sum_j dm_ij k_j     (0 where the ReLU was)
 *
 * Sums run in double and are rounded when they are added to what is there. */
#include "nn/ref/learn.h"

#include <math.h>

void fkt_ref_stored_norm_back(const struct fkt_ref_back *k)
{
    const struct fkt_ref_call *f = k->call;
    const size_t plane = (size_t)f->x.h * f->x.w;
    for (size_t j = 0; k->da && j < f->n * f->x.c * plane; j++) {
        const size_t c = j / plane % f->x.c;
        const double scale = 1 / sqrt((double)f->var[c] + (double)f->op->value[0]);
        k->da[j] = (float)(k->da[j] + (double)k->dy[j] * scale * f->weight[c]);
    }
}

/* `count` numbers of a group; their channels change every `plane`, from `first` on. */
static void group_back(const struct fkt_ref_back *k, size_t at, size_t count, size_t plane, size_t first)
{
    const float *x = k->call->a + at, *dy = k->dy + at, *weight = k->call->weight + first;
    double mean = 0, var = 0, scale, slope = 0, along = 0;
    for (size_t j = 0; j < count; j++) mean += x[j];
    mean /= (double)count;
    for (size_t j = 0; j < count; j++) var += (x[j] - mean) * (x[j] - mean);
    scale = 1 / sqrt(var / (double)count + (double)k->call->op->value[0]);
    for (size_t j = 0; j < count; j++) {
        const double g = (double)dy[j] * weight[j / plane];
        slope += g;
        along += g * (x[j] - mean) * scale;
    }
    for (size_t j = 0; j < count; j++) {
        const double g = (double)dy[j] * weight[j / plane], normal = (x[j] - mean) * scale;
        k->da[at + j] = (float)(k->da[at + j] + scale * (g - (slope + normal * along) / (double)count));
    }
}

void fkt_ref_group_norm_back(const struct fkt_ref_back *k)
{
    const struct fkt_ref_call *f = k->call;
    const size_t plane = (size_t)f->x.h * f->x.w, per = f->x.c / f->op->groups, groups = f->op->groups;
    for (size_t g = 0; k->da && g < f->n * groups; g++)
        group_back(k, g * per * plane, per * plane, plane, g % groups * per);
}

void fkt_ref_rms_norm_back(const struct fkt_ref_back *k)
{
    const struct fkt_ref_call *f = k->call;
    const size_t plane = (size_t)f->x.h * f->x.w, channels = f->x.c;
    for (size_t p = 0; k->da && p < f->n * plane; p++) {
        const size_t at = p / plane * channels * plane + p % plane;
        const float *x = f->a + at, *dy = k->dy + at;
        float *da = k->da + at;
        double sum = 0, along = 0, scale;
        for (size_t c = 0; c < channels; c++) {
            sum += (double)x[c * plane] * x[c * plane];
            along += (double)dy[c * plane] * f->weight[c] * x[c * plane];
        }
        scale = 1 / sqrt(sum / (double)channels + (double)f->op->value[0]);
        along *= scale * scale / (double)channels;
        for (size_t c = 0; c < channels; c++) {
            const double g = (double)dy[c * plane] * f->weight[c];
            da[c * plane] = (float)(da[c * plane] + scale * (g - x[c * plane] * along));
        }
    }
}

/* One head: all arrays (length, plane). total, pull (plane): t_i and <do_i, o_i>. */
struct head {
    const float *q, *k, *v, *dout;
    float *dq, *dk, *dv;
    double *total, *pull;
    size_t length, plane;
};

static double relu(float x) { return x < 0 ? 0 : (double)x; }

static double match(const struct head *h, size_t i, size_t j)
{
    double sum = 0;
    for (size_t c = 0; c < h->length; c++) sum += relu(h->k[c * h->plane + j]) * relu(h->q[c * h->plane + i]);
    return sum;
}

static double match_slope(const struct head *h, size_t i, size_t j)
{
    double sum = -h->pull[i];
    for (size_t e = 0; e < h->length; e++) sum += (double)h->dout[e * h->plane + i] * h->v[e * h->plane + j];
    return sum / h->total[i];
}

/* t_i, and <do_i, o_i> with o_i before it is rounded. */
static void measure(const struct head *h, double eps)
{
    for (size_t i = 0; i < h->plane; i++) {
        double total = eps, pull = 0;
        for (size_t j = 0; j < h->plane; j++) {
            double m = match(h, i, j), along = 0;
            for (size_t e = 0; e < h->length; e++) along += (double)h->dout[e * h->plane + i] * h->v[e * h->plane + j];
            total += m;
            pull += m * along;
        }
        h->total[i] = total;
        h->pull[i] = pull / total;
    }
}

static void add_queries(const struct head *h, size_t i)
{
    double sum[FKT_HEAD_MAX] = {0};
    for (size_t j = 0; j < h->plane; j++) {
        const double slope = match_slope(h, i, j);
        for (size_t c = 0; c < h->length; c++) sum[c] += slope * relu(h->k[c * h->plane + j]);
    }
    for (size_t c = 0; c < h->length; c++) {
        const size_t at = c * h->plane + i;
        if (h->q[at] > 0) h->dq[at] = (float)(h->dq[at] + sum[c]);
    }
}

static void add_keys_and_values(const struct head *h, size_t j)
{
    double key[FKT_HEAD_MAX] = {0}, value[FKT_HEAD_MAX] = {0};
    for (size_t i = 0; i < h->plane; i++) {
        const double slope = match_slope(h, i, j), share = match(h, i, j) / h->total[i];
        for (size_t c = 0; c < h->length; c++) {
            key[c] += slope * relu(h->q[c * h->plane + i]);
            value[c] += share * h->dout[c * h->plane + i];
        }
    }
    for (size_t c = 0; c < h->length; c++) {
        const size_t at = c * h->plane + j;
        if (h->k[at] > 0) h->dk[at] = (float)(h->dk[at] + key[c]);
        h->dv[at] = (float)(h->dv[at] + value[c]);
    }
}

void fkt_ref_attention_back(const struct fkt_ref_back *k)
{
    const struct fkt_ref_call *f = k->call;
    const size_t length = f->op->groups, plane = (size_t)f->x.h * f->x.w, part = length * plane;
    for (size_t i = 0; k->da && i < f->n * (size_t)f->x.c / (3 * length); i++) {
        const float *q = f->a + 3 * i * part;
        float *dq = k->da + 3 * i * part;
        const struct head h = {.q = q,
                               .k = q + part,
                               .v = q + 2 * part,
                               .dout = k->dy + i * part,
                               .dq = dq,
                               .dk = dq + part,
                               .dv = dq + 2 * part,
                               .total = k->scratch,
                               .pull = k->scratch + plane,
                               .length = length,
                               .plane = plane};
        measure(&h, (double)f->op->value[0]);
        for (size_t p = 0; p < plane; p++) add_queries(&h, p);
        for (size_t p = 0; p < plane; p++) add_keys_and_values(&h, p);
    }
}
