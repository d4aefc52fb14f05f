/* SPDX-License-Identifier: Apache-2.0 */
/* raw.c - one part of the packed integers -> count, mean and raw covariance of each class, without bias.
 *
 *   by class:  n, S_1, M_1, S_2, M_2, ...     class after class
 *   pooled:    n, S_1, S_2, ...               class after class, then M_1, M_2, ... once, sums over all classes
 *
 *   mean = a S,   raw = a M - b (S S^T - s_m^2 I)                     a estimates 1/n, b estimates 1/n^2 (inverse.c)
 *   pooled:       raw = a M - a sum_k a_k (S_k S_k^T - s_m^2 I)       a of all records, a_k of class k
 *
 * Where the records of a part have one length, the trace of its M is a further count; n^ combines all of them
 * (count.c), so the count of a class is the same, to the bit, in every part. M, S and n carry independent noise,
 * s_m^2 I is what the noise of S adds to S S^T, and the covariance of the combined count with the diagonal of M is
 * known. Derivations: estimate.md 2, 5, 6 and 7. */
#include "synth/raw.h"

#include "base/alloc.h"
#include "base/status.h"
#include "synth/count.h"
#include "synth/inverse.h"

#include <math.h>
#include <string.h>

static size_t triangle(size_t m) { return m * (m + 1) / 2; }

/* Numbers of one class, M included where it has its own. */
static size_t block_of(const struct fkt_layout_noise *l)
{
    size_t n = 1;
    for (uint32_t p = 0; p < l->parts; p++) n += l->part[p].length + (l->pooled ? 0 : triangle(l->part[p].length));
    return n;
}

static const int64_t *sum_of(const struct fkt_layout_noise *l, const int64_t *noised, size_t k, uint32_t part)
{
    const int64_t *at = noised + k * block_of(l) + 1;
    for (uint32_t p = 0; p < part; p++) at += l->part[p].length + (l->pooled ? 0 : triangle(l->part[p].length));
    return at;
}

/* Of class k; pooled: of all classes, whatever k. */
static const int64_t *moment_of(const struct fkt_layout_noise *l, const int64_t *noised, size_t k, size_t classes,
                                uint32_t part)
{
    const int64_t *at = noised + classes * block_of(l);
    if (!l->pooled) return sum_of(l, noised, k, part) + l->part[part].length;
    for (uint32_t p = 0; p < part; p++) at += triangle(l->part[p].length);
    return at;
}

/* All traces that count the records of class k, or, pooled, of all classes. */
static void traces_of(struct fkt_trace *t, const struct fkt_layout_noise *l, const int64_t *noised, size_t k,
                      size_t classes)
{
    for (uint32_t j = 0; j < l->n_known; j++) {
        const struct fkt_known_length *x = &l->known[j];
        const size_t m = l->part[x->part].length;
        const int64_t *diagonal = moment_of(l, noised, k, classes, x->part);
        double trace = 0;
        for (size_t i = 0; i < (size_t)x->first + x->count; diagonal += m - i++)
            if (i >= x->first) trace += (double)*diagonal;
        t[j] = (struct fkt_trace){trace, x->count, l->part[x->part].sigma_moment, x->square, x->slack};
    }
}

/* What each diagonal entry of M of this part takes from the counts (m); 0 where nothing is known. */
static void corrections_of(struct fkt_trace_correction *fix, const struct fkt_layout_noise *l, uint32_t part,
                           double plain, double sigma, const struct fkt_trace *t)
{
    memset(fix, 0, l->part[part].length * sizeof *fix);
    for (uint32_t j = 0; j < l->n_known; j++) {
        struct fkt_trace_correction c;
        if (l->known[j].part != part) continue;
        c = fkt_trace_correct(plain, sigma, t, l->n_known, j);
        for (uint32_t i = 0; i < l->known[j].count; i++) fix[l->known[j].first + i] = c;
    }
}

static void class_moments(struct fkt_gaussians *g, double *noise, size_t k, const int64_t *noised,
                          const struct fkt_layout_noise *l, struct fkt_trace *t, struct fkt_trace_correction *fix)
{
    const struct fkt_part_noise *part = &l->part[g->part];
    const size_t m = g->length;
    const int64_t *sum = sum_of(l, noised, k, g->part), *moment = sum + m;
    const double plain = (double)noised[k * block_of(l)], u = part->unit, noise2 = part->sigma_sum * part->sigma_sum;
    double *mean = g->mean + k * m, *cov = g->cov + k * m * m;
    struct fkt_count count;
    struct fkt_inverse inv;

    traces_of(t, l, noised, k, g->classes);
    count = fkt_count_combine(plain, l->sigma_count, t, l->n_known);
    count.value = fmax(count.value, 1);
    corrections_of(fix, l, g->part, plain, l->sigma_count, t);
    inv = fkt_inverse_count(count.value, count.noise);
    g->count[k] = count.value;
    g->count_noise[k] = count.noise;
    g->mean_noise[k] = part->sigma_sum * u * inv.one;
    noise[k] = part->sigma_moment * u * u * inv.one;
    for (size_t i = 0; i < m; i++) {
        mean[i] = (double)sum[i] * inv.one * u;
        for (size_t j = i; j < m; j++, moment++) {
            double outer = (double)sum[i] * (double)sum[j] - (i == j ? noise2 : 0) - (i == j ? fix[i].tied : 0);
            double second = (double)*moment + (i == j ? fix[i].shift : 0);
            cov[i * m + j] = cov[j * m + i] = (second * inv.one - outer * inv.two) * u * u;
        }
    }
}

/* Means of all classes, and the one covariance. */
static void pooled_moments(struct fkt_gaussians *g, double *noise, const int64_t *noised,
                           const struct fkt_layout_noise *l, struct fkt_trace *t, struct fkt_trace_correction *fix)
{
    const struct fkt_part_noise *part = &l->part[g->part];
    const size_t m = g->length, K = g->classes, block = block_of(l);
    const int64_t *moment = moment_of(l, noised, 0, K, g->part);
    const double u = part->unit, noise2 = part->sigma_sum * part->sigma_sum, sigma = l->sigma_count * sqrt((double)K);
    double plain = 0, saved;
    struct fkt_count all;
    struct fkt_inverse inv;

    for (size_t k = 0; k < K; k++) plain += (double)noised[k * block];
    traces_of(t, l, noised, 0, K);
    all = fkt_count_combine(plain, sigma, t, l->n_known);
    corrections_of(fix, l, g->part, plain, sigma, t);
    inv = fkt_inverse_count(fmax(all.value, 1), all.noise);
    saved = sigma > 0 ? 1 - (all.noise / sigma) * (all.noise / sigma) : 0; /* of the variance of the total */
    for (size_t i = 0; i < m; i++)
        for (size_t j = i; j < m; j++, moment++)
            g->cov[i * m + j] =
                (double)*moment * inv.one + (i == j ? fix[i].shift * inv.one + fix[i].tied * inv.two : 0);
    for (size_t k = 0; k < K; k++) {
        const int64_t *sum = sum_of(l, noised, k, g->part);
        struct fkt_inverse own;
        g->count[k] = fmax((double)noised[k * block] + (all.value - plain) / (double)K, 1);
        g->count_noise[k] = l->sigma_count * sqrt(1 - saved / (double)K);
        own = fkt_inverse_count(g->count[k], g->count_noise[k]);
        g->mean_noise[k] = part->sigma_sum * u * own.one;
        noise[k] = part->sigma_moment * u * u * inv.one;
        for (size_t i = 0; i < m; i++) {
            g->mean[k * m + i] = (double)sum[i] * own.one * u;
            for (size_t j = i; j < m; j++)
                g->cov[i * m + j] -= ((double)sum[i] * (double)sum[j] - (i == j ? noise2 : 0)) * own.one * inv.one;
        }
    }
    for (size_t i = 0; i < m; i++)
        for (size_t j = i; j < m; j++) g->cov[i * m + j] = g->cov[j * m + i] = g->cov[i * m + j] * u * u;
}

fkt_status fkt_raw_moments(struct fkt_gaussians *g, double *noise, const int64_t *noised,
                           const struct fkt_layout_noise *l)
{
    struct fkt_trace *traces = NULL;
    struct fkt_trace_correction *fix = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&traces, l->n_known + 1));
    FKT_TRY(fkt_alloc(&fix, g->length));
    if (l->pooled) pooled_moments(g, noise, noised, l, traces, fix);
    else
        for (size_t k = 0; k < g->classes; k++) class_moments(g, noise, k, noised, l, traces, fix);
out:
    fkt_free(traces);
    fkt_free(fix);
    return st;
}
