/* SPDX-License-Identifier: Apache-2.0 */
/* dpfedpft.c - DP-FedPFT: each site releases one noised Gaussian of each of its classes.
 * Source: Beitollahi et al. 2024, section 4.3: one component with full covariance, Gaussian noise of one scale on mean
 * and covariance, projection onto the positive semidefinite matrices. The noise is the site's own: nobody is trusted.
 *
 * Adjacency, as published: one record of one class at one site is replaced by another of that class; class counts of
 * every site are public. That is weaker than the add-remove of our releases. A record is in one class of one site, so
 * all of these releases together cost what one does.
 *
 * Sensitivity. n records in a ball of radius R, mean m of the n - 1 others; x becomes y; a = x - m, b = y - m. Then
 *
 *   change of the mean        (y - x) / n                       length at most 2 R / n
 *   change of the covariance  (n - 1) / n^2 (b b' - a a')       Frobenius norm at most 4 R^2 (n - 1) / n^2
 *
 * |b b' - a a'| <= 4 R^2: b b' - a a' = y y' - x x' - m (y - x)' - (y - x) m' is affine in m, so its norm is largest
 * for some |m| = R. Then |x| <= R says |a| <= 2 R cos A with A the angle between a and -m, and likewise for b and B.
 * |b b' - a a'|^2 = |a|^4 + |b|^4 - 2 (a.b)^2 is convex in |a|^2 and in |b|^2 while directions stay, so it is largest
 * where each is 0 (then it is at most 16 R^4) or at its bound: |a| = 2 R cos A, |b| = 2 R cos B, the angle between them
 * at most A + B. For A + B >= 90 degrees the value is at most 16 R^4 (cos^4 A + cos^4 B) <= 16 R^4, since
 * cos B <= sin A. Otherwise, with P = cos(A + B) and Q = cos(A - B), it is at most
 * 16 R^4 (1 - (Q - P)^2 / 2 + P^2 ((Q - P)^2 - 2 P^2) / 2) <= 16 R^4, since P <= 1. x = -y = -m attains both bounds at
 * once, so the joint one is exact: with noise s R on the mean and s R^2 on the covariance (Frobenius: s R^2 on the
 * diagonal, s R^2 / sqrt 2 off it)
 *
 *   mu^2 = (2 / n)^2 (1 + 4 (1 - 1/n)^2) / s^2,   delta(epsilon; mu) of the Gaussian mechanism (docs/privacy.md).
 *
 * Where we differ: the noise is calibrated by this exact formula, and not by the classical bound, which asks for more;
 * noise is drawn in floating point. */
#include "learning/features/features.h"

#include "base/alloc.h"
#include "tensor/linalg.h"

#include <math.h>

enum { BYTES = 4 };

void fkt_dpfedpft_sigmas(double radius, size_t n, double mu, double *sigma_mean, double *sigma_cov)
{
    const double share = 1 - 1 / (double)n, s = 2 / (double)n * sqrt(1 + 4 * share * share) / mu;
    *sigma_mean = s * radius;
    *sigma_cov = s * radius * radius;
}

static void mean_of(const double *x, size_t n, size_t m, double *mean)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < m; j++) mean[j] += x[i * m + j] / (double)n;
}

fkt_status fkt_dpfedpft_release(struct fkt_mixture *g, const double *x, size_t n, uint32_t m, double radius, double mu,
                                struct fkt_rng *rng)
{
    double *centred = NULL, sigma_mean, sigma_cov;
    fkt_status st;
    *g = (struct fkt_mixture){0};
    if (!n || !(mu > 0) || !(radius > 0) || !isfinite(radius))
        return fkt_fail(FKT_E_ARG, "a noised Gaussian needs records in a ball, and a privacy parameter above 0");
    FKT_TRY(fkt_mixture_new(g, FKT_COVARIANCE_FULL, 1, m));
    FKT_TRY(fkt_alloc(&centred, n * m));
    g->weight[0] = 1;
    mean_of(x, n, m, g->mean);
    for (size_t i = 0; i < n * m; i++) centred[i] = (x[i] - g->mean[i % m]) / sqrt((double)n);
    fkt_syrk(g->cov, centred, n, m);
    fkt_dpfedpft_sigmas(radius, n, mu, &sigma_mean, &sigma_cov);
    for (size_t j = 0; j < m; j++) g->mean[j] += sigma_mean * fkt_rng_normal(rng);
    for (size_t i = 0; i < m; i++)
        for (size_t j = i; j < m; j++) {
            g->cov[i * m + j] += sigma_cov * (i == j ? 1 : sqrt(0.5)) * fkt_rng_normal(rng);
            g->cov[j * m + i] = g->cov[i * m + j];
        }
out:
    fkt_free(centred);
    if (st != FKT_OK) fkt_mixture_clear(g);
    return st;
}

static fkt_status transfer(const void *settings, double *draws, const double *x, size_t n,
                           const struct fkt_features *in, struct fkt_rng *rng, uint64_t *bytes)
{
    const double mu = *(const double *)settings;
    struct fkt_mixture g = {0};
    fkt_status st;
    FKT_TRY(fkt_dpfedpft_release(&g, x, n, in->m, in->radius, mu, rng));
    FKT_TRY(fkt_mixture_sample(&g, n, rng, draws));
    *bytes += BYTES * fkt_mixture_numbers(&g); /* the count in the place of the weight, which is 1 */
out:
    fkt_mixture_clear(&g);
    return st;
}

fkt_status fkt_dpfedpft(struct fkt_features *out, const struct fkt_features *in, double mu, uint64_t seed,
                        uint64_t *bytes)
{
    return fkt_features_transfer(out, in, transfer, &mu, seed, bytes);
}
