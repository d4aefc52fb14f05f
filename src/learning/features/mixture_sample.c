/* SPDX-License-Identifier: Apache-2.0 */
/* mixture_sample.c - draws from a mixture of Gaussians: a component by its weight, then mean + root z with z normal.
 *
 * The root of a full covariance is V sqrt(l) of its eigenvectors, eigenvalues below 0 taken as 0: a noised covariance
 * is projected onto the positive semidefinite matrices by that. */
#include "learning/features/mixture.h"

#include "base/alloc.h"
#include "tensor/linalg.h"

#include <math.h>

/* roots (components, m, m): column i is sqrt(l_i) times eigenvector i. */
static fkt_status full_roots(const struct fkt_mixture *g, double *roots)
{
    const size_t m = g->m;
    double *values = NULL, *vectors = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&values, m));
    FKT_TRY(fkt_alloc(&vectors, m * m));
    for (uint32_t k = 0; k < g->components; k++) {
        FKT_TRY(fkt_eigen(values, vectors, g->cov + k * m * m, m));
        for (size_t i = 0; i < m; i++)
            for (size_t j = 0; j < m; j++) roots[(k * m + j) * m + i] = sqrt(fmax(values[i], 0)) * vectors[i * m + j];
    }
out:
    fkt_free(values);
    fkt_free(vectors);
    return st;
}

static uint32_t choose(const struct fkt_mixture *g, double u)
{
    uint32_t last = 0;
    for (uint32_t k = 0; k < g->components; k++) {
        if (!(g->weight[k] > 0)) continue;
        last = k;
        if (u < g->weight[k]) return k;
        u -= g->weight[k];
    }
    return last;
}

static void draw(const struct fkt_mixture *g, uint32_t k, const double *root, const double *z, double *out)
{
    const size_t m = g->m;
    for (size_t j = 0; j < m; j++) {
        double d = 0;
        if (root)
            for (size_t i = 0; i < m; i++) d += root[(k * m + j) * m + i] * z[i];
        else d = sqrt(g->cov[g->kind == FKT_COVARIANCE_DIAGONAL ? k * m + j : k]) * z[j];
        out[j] = g->mean[k * m + j] + d;
    }
}

fkt_status fkt_mixture_sample(const struct fkt_mixture *g, size_t n, struct fkt_rng *rng, double *out)
{
    const size_t m = g->m;
    double *roots = NULL, *z = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&z, m));
    if (g->kind == FKT_COVARIANCE_FULL) {
        FKT_TRY(fkt_alloc(&roots, g->components * m * m));
        FKT_TRY(full_roots(g, roots));
    }
    for (size_t i = 0; i < n; i++) {
        const uint32_t k = choose(g, fkt_rng_unit(rng));
        for (size_t j = 0; j < m; j++) z[j] = fkt_rng_normal(rng);
        draw(g, k, roots, z, out + i * m);
    }
out:
    fkt_free(roots);
    fkt_free(z);
    return st;
}
