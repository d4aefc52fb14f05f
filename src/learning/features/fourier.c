/* SPDX-License-Identifier: Apache-2.0 */
/* fourier.c - random Fourier features, and noised sums of them: what DP-MERF releases.
 * Sources: Rahimi, Recht 2007; Harder, Adamczewski, Park, "DP-MERF: Differentially Private Mean Embeddings with Random
 * Features for Practical Privacy-Preserving Data Generation", AISTATS 2021.
 *
 * phi(x) = (cos(w_1 x), ..., sin(w_1 x), ...) / sqrt(F), F frequencies; |phi(x)|^2 = sum (cos^2 + sin^2) / F = 1. The
 * embedding of labelled records, phi(x) times the label's unit vector, is a row of sums for each class.
 *
 * Adjacency: add-remove, as in our releases (presence, features and label of one record). Sensitivity: a record changes
 * one row of the sums by a vector of length 1 and one count by 1, so with noise s_sum on sums and s_count on counts
 * mu^2 = 1 / s_sum^2 + 1 / s_count^2; counts get COUNT_SHARE of mu^2, as ours do. A lie about |x| changes nothing: the
 * bound holds for every x.
 *
 * Where we differ: the paper divides by the number of records, which it takes as public, and has 2 / n under
 * replacement; its class weights have sqrt(2) / n. Sums under add-remove need half the noise for a stricter promise.
 * Noise is drawn in floating point. */
#include "learning/features/features.h"

#include "base/alloc.h"
#include "base/wipe.h"
#include "tensor/linalg.h"

#include <math.h>
#include <string.h>

#define COUNT_SHARE 0.01
enum { ROWS = 512 }; /* records at a time */

fkt_status fkt_fourier_new(struct fkt_fourier *f, uint32_t m, uint32_t frequencies, double scale, struct fkt_rng *rng)
{
    fkt_status st;
    *f = (struct fkt_fourier){.m = m, .frequencies = frequencies};
    if (!m || !frequencies || !(scale > 0) || !isfinite(scale))
        return fkt_fail(FKT_E_ARG, "random features need a length, frequencies and a scale above 0");
    FKT_TRY(fkt_alloc(&f->w, (size_t)frequencies * m));
    for (size_t i = 0; i < (size_t)frequencies * m; i++) f->w[i] = fkt_rng_normal(rng) / scale;
out:
    return st;
}

void fkt_fourier_clear(struct fkt_fourier *f)
{
    fkt_free(f->w);
    *f = (struct fkt_fourier){0};
}

fkt_status fkt_fourier_apply(const struct fkt_fourier *f, const double *x, size_t n, double *phi)
{
    const size_t F = f->frequencies;
    const double unit = 1 / sqrt((double)F);
    double *angle = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&angle, n * F));
    fkt_gemm_nt(angle, x, f->w, n, f->m, F);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < F; j++) {
            phi[i * 2 * F + j] = unit * cos(angle[i * F + j]);
            phi[i * 2 * F + F + j] = unit * sin(angle[i * F + j]);
        }
out:
    fkt_free(angle);
    return st;
}

/* ---- sums ---- */

fkt_status fkt_embedding_new(struct fkt_embedding *e, uint32_t classes, uint32_t length)
{
    fkt_status st;
    *e = (struct fkt_embedding){.classes = classes, .length = length};
    FKT_TRY(fkt_alloc(&e->sum, (size_t)classes * length));
    FKT_TRY(fkt_alloc(&e->count, classes));
out:
    if (st != FKT_OK) fkt_embedding_clear(e);
    return st;
}

void fkt_embedding_clear(struct fkt_embedding *e)
{
    fkt_free(e->sum);
    fkt_free(e->count);
    *e = (struct fkt_embedding){0};
}

fkt_status fkt_embedding_add(struct fkt_embedding *e, const struct fkt_fourier *f, const struct fkt_features *in,
                             uint32_t site)
{
    double *rows = NULL, *phi = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&rows, in->n * in->m));
    FKT_TRY(fkt_alloc(&phi, (size_t)ROWS * e->length));
    for (uint32_t k = 0; k < e->classes; k++) {
        const size_t n = fkt_features_take(in, site, k, rows);
        double *sum = e->sum + (size_t)k * e->length;
        for (size_t at = 0; at < n; at += ROWS) {
            const size_t some = n - at < ROWS ? n - at : ROWS;
            FKT_TRY(fkt_fourier_apply(f, rows + at * in->m, some, phi));
            for (size_t i = 0; i < some; i++)
                for (size_t j = 0; j < e->length; j++) sum[j] += phi[i * e->length + j];
        }
        e->count[k] += (double)n;
    }
out:
    fkt_free_secret(rows);
    fkt_free_secret(phi);
    return st;
}

void fkt_embedding_sigmas(double mu, double *sigma_count, double *sigma_sum)
{
    *sigma_count = 1 / (mu * sqrt(COUNT_SHARE));
    *sigma_sum = 1 / (mu * sqrt(1 - COUNT_SHARE));
}

void fkt_embedding_noise(struct fkt_embedding *e, double mu, struct fkt_rng *rng)
{
    double sigma_count, sigma_sum;
    fkt_embedding_sigmas(mu, &sigma_count, &sigma_sum);
    for (size_t i = 0; i < (size_t)e->classes * e->length; i++) e->sum[i] += sigma_sum * fkt_rng_normal(rng);
    for (uint32_t k = 0; k < e->classes; k++) e->count[k] += sigma_count * fkt_rng_normal(rng);
}
