/* SPDX-License-Identifier: Apache-2.0 */
/* noise_watch.c - compares means, variances, products and repeated values of noise with their limits by chance.
 *
 *   z = noise / claimed sigma;  over n draws, if the claim is right and draws are independent:
 *   sum z^2       chi-squared with n degrees of freedom: n + sqrt(2n) N(0,1) for large n
 *   sum z         sqrt(n) N(0,1)
 *   sum z z'      sqrt(n) N(0,1), for two numbers of one draw, or one number in two draws that follow each other
 *   repeats       two independent integers of deviation s are equal with probability 1/(2 sqrt(pi) s), so that their
 *                 number is Poisson; only numbers with s > WIDE count, where a repeat is rare
 *
 * The limit of a statistic is the quantile that all numbers (or pairs) of its kind together exceed with probability
 * alpha/FKT_NOISE_CHECKS (union bound). Noise made twice from the same random bytes, shifted by any number of bytes,
 * repeats values without being linearly dependent; the last statistic finds it. Source: textbook. Cost: a
 * multiplication for each pair of numbers and draw. */
#include "privacy/noise_watch.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

#define SQRT_HALF 0.70710678118654752440
#define TWO_SQRT_PI 3.5449077018110320546
#define WIDE 5000.0

struct fkt_noise_watch {
    size_t length;
    uint64_t draws, repeats;
    double expected;              /* repeats of one draw */
    double *sigma, *sum, *square; /* (length) */
    double *product;              /* (length, length), upper triangle */
    double *succession;           /* (length) */
    double *z, *last_z;           /* (length) */
    int64_t *last;                /* (length) */
};

fkt_status fkt_noise_watch_new(struct fkt_noise_watch **out, const double *sigma, size_t length)
{
    struct fkt_noise_watch *w = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&w, 1));
    w->length = length;
    FKT_TRY(fkt_alloc(&w->sigma, length));
    FKT_TRY(fkt_alloc(&w->sum, length));
    FKT_TRY(fkt_alloc(&w->square, length));
    FKT_TRY(fkt_alloc(&w->product, length * length));
    FKT_TRY(fkt_alloc(&w->succession, length));
    FKT_TRY(fkt_alloc(&w->z, length));
    FKT_TRY(fkt_alloc(&w->last_z, length));
    FKT_TRY(fkt_alloc(&w->last, length));
    memcpy(w->sigma, sigma, length * sizeof *sigma);
    for (size_t i = 0; i < length; i++)
        for (size_t j = 0; sigma[i] > WIDE && j < length; j++)
            if (sigma[j] == sigma[i]) w->expected += (j < i ? 2 : 1) / (TWO_SQRT_PI * sigma[i]); /* see add */
    *out = w;
    w = NULL;
out:
    fkt_noise_watch_free(w);
    return st;
}

void fkt_noise_watch_free(struct fkt_noise_watch *w)
{
    if (!w) return;
    fkt_free(w->last);
    fkt_free(w->last_z);
    fkt_free(w->z);
    fkt_free(w->succession);
    fkt_free(w->product);
    fkt_free(w->square);
    fkt_free(w->sum);
    fkt_free(w->sigma);
    fkt_free(w);
}

/* Equal values of equally wide numbers: within this draw (j < i), and of this draw with the one before (every j). */
static uint64_t count_repeats(const struct fkt_noise_watch *w, const int64_t *noise)
{
    uint64_t found = 0;
    for (size_t i = 0; i < w->length; i++)
        for (size_t j = 0; w->sigma[i] > WIDE && j < w->length; j++) {
            if (w->sigma[j] != w->sigma[i]) continue;
            found += (j < i && noise[i] == noise[j]) + (w->draws > 0 && noise[i] == w->last[j]);
        }
    return found;
}

void fkt_noise_watch_add(struct fkt_noise_watch *w, const int64_t *noise)
{
    double *z = w->z;
    for (size_t i = 0; i < w->length; i++) {
        z[i] = w->sigma[i] > 0 ? (double)noise[i] / w->sigma[i] : 0;
        w->sum[i] += z[i];
        w->square[i] += z[i] * z[i];
        if (w->draws > 0) w->succession[i] += z[i] * w->last_z[i];
        for (size_t j = 0; j < i; j++) w->product[j * w->length + i] += z[i] * z[j];
    }
    w->repeats += count_repeats(w, noise);
    memcpy(w->last_z, z, w->length * sizeof *z);
    memcpy(w->last, noise, w->length * sizeof *noise);
    w->draws++;
}

/* x with P(N(0,1) > x) = p; bisection of erfc, 0 < p < 1/2. */
static double normal_above(double p)
{
    double lo = 0, hi = 40;
    while (hi - lo > 1e-9) {
        const double mid = 0.5 * (lo + hi);
        if (0.5 * erfc(mid * SQRT_HALF) > p) lo = mid;
        else hi = mid;
    }
    return hi;
}

/* The smallest k with P(Poisson(mean) > k) <= p. */
static double poisson_above(double mean, double p)
{
    double term = exp(-mean), below = term, k = 0;
    if (mean > 500) return mean + normal_above(p) * sqrt(mean) + 20;
    while (1 - below > p && k < 1e6) {
        k++;
        term *= mean / k;
        below += term;
    }
    return k;
}

/* Keeps the larger value; NaN counts as largest. */
static void worst(struct fkt_noise_check *c, double value, size_t at, size_t beside)
{
    if (value <= c->value || isnan(c->value)) return;
    c->value = value;
    c->at = at;
    c->beside = beside;
}

void fkt_noise_watch_verdict(const struct fkt_noise_watch *w, double alpha,
                             struct fkt_noise_check out[FKT_NOISE_CHECKS])
{
    const double n = (double)w->draws, length = (double)w->length, each = alpha / FKT_NOISE_CHECKS;
    const double one = normal_above(each / (2 * length)), pair = normal_above(each / fmax(2, length * (length - 1)));
    for (int k = 0; k < FKT_NOISE_CHECKS; k++) out[k] = (struct fkt_noise_check){.value = 0};
    out[FKT_NOISE_VARIANCE].limit = one * sqrt(2 / n) + 2 * one * one / (3 * n); /* chi-squared is skewed */
    out[FKT_NOISE_MEAN].limit = out[FKT_NOISE_SUCCESSION].limit = one / sqrt(n);
    out[FKT_NOISE_CORRELATION].limit = pair / sqrt(n);
    out[FKT_NOISE_REPEATS].limit = poisson_above(w->expected * n, each);
    out[FKT_NOISE_REPEATS].value = (double)w->repeats;
    for (size_t i = 0; i < w->length; i++) {
        if (!(w->sigma[i] > 0)) continue;
        worst(&out[FKT_NOISE_VARIANCE], fabs(w->square[i] / n - 1), i, i);
        worst(&out[FKT_NOISE_MEAN], fabs(w->sum[i] / n), i, i);
        worst(&out[FKT_NOISE_SUCCESSION], fabs(w->succession[i] / n), i, i);
        for (size_t j = 0; j < i; j++)
            worst(&out[FKT_NOISE_CORRELATION], fabs(w->product[j * w->length + i] / n), i, j);
    }
}
