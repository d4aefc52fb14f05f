/* SPDX-License-Identifier: Apache-2.0 */
/* mixture.c - a mixture of Gaussians, fitted by expectation-maximisation.
 *
 * Source: Dempster, Laird, Rubin 1977; Bishop, "Pattern Recognition and Machine Learning", 9.2. With responsibilities
 * r_ik of component k for record i and N_k = sum over i of r_ik:
 *
 *   weight_k = N_k / n,  mean_k = sum r_ik x_i / N_k,  cov_k = sum r_ik (x_i - mean_k)(x_i - mean_k)' / N_k
 *
 * of which a diagonal covariance keeps the diagonal and a spherical one the mean of the diagonal. Variances (of a full
 * covariance: eigenvalues) below FKT_MIXTURE_FLOOR are raised to it. That is the maximum under the constraint that no
 * variance is smaller, so the likelihood never falls; adding a constant, as others do, would not have that property.
 * A component without records keeps its parameters and has weight 0.
 *
 * Cost of an iteration: n m components, of full covariances n m^2 components. */
#include "learning/features/mixture.h"

#include "base/alloc.h"
#include "tensor/linalg.h"

#include <math.h>
#include <string.h>

#define LOG_2PI 1.8378770664093454836

size_t fkt_mixture_cov(const struct fkt_mixture *g)
{
    const size_t m = g->m;
    return g->kind == FKT_COVARIANCE_SPHERICAL ? 1 : g->kind == FKT_COVARIANCE_DIAGONAL ? m : m * m;
}

size_t fkt_mixture_numbers(const struct fkt_mixture *g)
{
    const size_t m = g->m, cov = g->kind == FKT_COVARIANCE_FULL ? m * (m + 1) / 2 : fkt_mixture_cov(g);
    return g->components * (1 + m + cov);
}

fkt_status fkt_mixture_new(struct fkt_mixture *g, enum fkt_covariance kind, uint32_t components, uint32_t m)
{
    fkt_status st;
    *g = (struct fkt_mixture){.kind = kind, .components = components, .m = m};
    if (!components || !m) return fkt_fail(FKT_E_ARG, "a mixture needs components and a length");
    FKT_TRY(fkt_alloc(&g->weight, components));
    FKT_TRY(fkt_alloc(&g->mean, (size_t)components * m));
    FKT_TRY(fkt_alloc(&g->cov, components * fkt_mixture_cov(g)));
out:
    if (st != FKT_OK) fkt_mixture_clear(g);
    return st;
}

void fkt_mixture_clear(struct fkt_mixture *g)
{
    fkt_free(g->weight);
    fkt_free(g->mean);
    fkt_free(g->cov);
    *g = (struct fkt_mixture){0};
}

/* ---- one iteration ---- */

struct em {
    struct fkt_mixture *g;
    const double *x; /* (n, m) */
    size_t n;
    double *r;                /* (n, components) log densities, then responsibilities */
    double *centred;          /* (n, m) */
    double *white;            /* (n, m) of full covariances, like the next three */
    double *values, *vectors; /* (m), (m, m) */
};

static void em_close(struct em *e)
{
    fkt_free(e->r);
    fkt_free(e->centred);
    fkt_free(e->white);
    fkt_free(e->values);
    fkt_free(e->vectors);
}

static fkt_status em_open(struct em *e, struct fkt_mixture *g, const double *x, size_t n)
{
    const size_t m = g->m;
    fkt_status st;
    *e = (struct em){.g = g, .x = x, .n = n};
    FKT_TRY(fkt_alloc(&e->r, n * g->components));
    FKT_TRY(fkt_alloc(&e->centred, n * m));
    if (g->kind != FKT_COVARIANCE_FULL) goto out;
    FKT_TRY(fkt_alloc(&e->white, n * m));
    FKT_TRY(fkt_alloc(&e->values, m));
    FKT_TRY(fkt_alloc(&e->vectors, m * m));
out:
    return st;
}

static void centre(struct em *e, uint32_t k)
{
    const size_t m = e->g->m;
    const double *mean = e->g->mean + k * m;
    for (size_t i = 0; i < e->n; i++)
        for (size_t j = 0; j < m; j++) e->centred[i * m + j] = e->x[i * m + j] - mean[j];
}

/* centred -> coordinates in which the covariance is 1; the logarithm of its determinant. */
static fkt_status whiten(struct em *e, uint32_t k, double *log_det)
{
    const size_t m = e->g->m;
    fkt_status st = fkt_eigen(e->values, e->vectors, e->g->cov + k * m * m, m);
    *log_det = 0;
    for (size_t i = 0; i < m && st == FKT_OK; i++) {
        const double l = fmax(e->values[i], FKT_MIXTURE_FLOOR);
        *log_det += log(l);
        for (size_t j = 0; j < m; j++) e->vectors[i * m + j] /= sqrt(l);
    }
    if (st == FKT_OK) fkt_gemm_nt(e->white, e->centred, e->vectors, e->n, m, m);
    return st;
}

static fkt_status densities(struct em *e, uint32_t k)
{
    const struct fkt_mixture *g = e->g;
    const size_t m = g->m;
    const double *cov = g->cov + k * fkt_mixture_cov(g);
    double log_det = 0;
    fkt_status st = FKT_OK;
    centre(e, k);
    if (g->kind == FKT_COVARIANCE_FULL) FKT_TRY(whiten(e, k, &log_det));
    else
        for (size_t j = 0; j < m; j++) log_det += log(cov[g->kind == FKT_COVARIANCE_DIAGONAL ? j : 0]);
    for (size_t i = 0; i < e->n; i++) {
        const double *row = (g->kind == FKT_COVARIANCE_FULL ? e->white : e->centred) + i * m;
        double square = 0;
        for (size_t j = 0; j < m; j++)
            square += row[j] * row[j] /
                      (g->kind == FKT_COVARIANCE_FULL ? 1 : cov[g->kind == FKT_COVARIANCE_DIAGONAL ? j : 0]);
        e->r[i * g->components + k] = log(g->weight[k]) - 0.5 * ((double)m * LOG_2PI + log_det + square);
    }
out:
    return st;
}

/* Responsibilities; the mean log-likelihood. */
static fkt_status expect(struct em *e, double *likelihood)
{
    const uint32_t K = e->g->components;
    double all = 0;
    fkt_status st = FKT_OK;
    for (uint32_t k = 0; k < K; k++) FKT_TRY(densities(e, k));
    for (size_t i = 0; i < e->n; i++) {
        double *r = e->r + i * K, top = -INFINITY, sum = 0;
        for (uint32_t k = 0; k < K; k++) top = fmax(top, r[k]);
        for (uint32_t k = 0; k < K; k++) sum += exp(r[k] - top);
        all += top + log(sum);
        for (uint32_t k = 0; k < K; k++) r[k] = exp(r[k] - top) / sum;
    }
    *likelihood = all / (double)e->n;
    if (!isfinite(*likelihood)) st = fkt_fail(FKT_E_NUMERIC, "the likelihood of a mixture is not finite");
out:
    return st;
}

/* Eigenvalues below the floor are raised to it; a (m, m) has its upper triangle, and gets both. */
static fkt_status floor_full(struct em *e, double *a)
{
    const size_t m = e->g->m;
    fkt_status st;
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < i; j++) a[i * m + j] = a[j * m + i];
    FKT_TRY(fkt_eigen(e->values, e->vectors, a, m));
    if (e->values[0] >= FKT_MIXTURE_FLOOR) goto out;
    memset(a, 0, m * m * sizeof *a);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < m; j++) e->vectors[i * m + j] *= sqrt(fmax(e->values[i], FKT_MIXTURE_FLOOR));
    fkt_syrk(a, e->vectors, m, m);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < i; j++) a[i * m + j] = a[j * m + i];
out:
    return st;
}

static fkt_status covariance(struct em *e, uint32_t k, double records)
{
    struct fkt_mixture *g = e->g;
    const size_t m = g->m, c = fkt_mixture_cov(g);
    double *cov = g->cov + k * c;
    memset(cov, 0, c * sizeof *cov);
    centre(e, k);
    for (size_t i = 0; i < e->n; i++) {
        const double r = e->r[i * g->components + k] / records;
        double *d = e->centred + i * m;
        for (size_t j = 0; j < m; j++) {
            if (g->kind == FKT_COVARIANCE_FULL) d[j] *= sqrt(r);
            else cov[g->kind == FKT_COVARIANCE_DIAGONAL ? j : 0] += r * d[j] * d[j];
        }
    }
    if (g->kind == FKT_COVARIANCE_FULL) {
        fkt_syrk(cov, e->centred, e->n, m);
        return floor_full(e, cov);
    }
    for (size_t j = 0; j < c; j++)
        cov[j] = fmax(g->kind == FKT_COVARIANCE_DIAGONAL ? cov[j] : cov[j] / (double)m, FKT_MIXTURE_FLOOR);
    return FKT_OK;
}

static fkt_status maximise(struct em *e)
{
    struct fkt_mixture *g = e->g;
    const size_t m = g->m;
    fkt_status st = FKT_OK;
    for (uint32_t k = 0; k < g->components; k++) {
        double *mean = g->mean + k * m, records = 0;
        for (size_t i = 0; i < e->n; i++) records += e->r[i * g->components + k];
        g->weight[k] = records / (double)e->n;
        if (!(records > 1e-12)) {
            g->weight[k] = 0;
            continue;
        }
        memset(mean, 0, m * sizeof *mean);
        for (size_t i = 0; i < e->n; i++) {
            const double r = e->r[i * g->components + k] / records;
            for (size_t j = 0; j < m; j++) mean[j] += r * e->x[i * m + j];
        }
        FKT_TRY(covariance(e, k, records));
    }
out:
    return st;
}

static fkt_status check(const double *x, size_t n, size_t m)
{
    if (!n) return fkt_fail(FKT_E_ARG, "a mixture of no records");
    for (size_t i = 0; i < n * m; i++)
        if (!isfinite(x[i])) return fkt_fail(FKT_E_NUMERIC, "number %zu of a record is not finite", i % m);
    return FKT_OK;
}

fkt_status fkt_mixture_em(struct fkt_mixture *g, const double *x, size_t n, uint32_t iterations, double tolerance,
                          double *likelihood, uint32_t *done)
{
    double before = -INFINITY, now;
    struct em e = {0};
    uint32_t t = 0;
    fkt_status st;
    FKT_TRY(check(x, n, g->m));
    FKT_TRY(em_open(&e, g, x, n));
    for (; t < iterations; t++) {
        FKT_TRY(expect(&e, &now));
        if (likelihood) likelihood[t] = now;
        if (now - before < tolerance) {
            t++;
            break;
        }
        before = now;
        FKT_TRY(maximise(&e));
    }
    if (done) *done = t;
out:
    em_close(&e);
    return st;
}

/* ---- the start ---- */

static double distance(const double *a, const double *b, size_t m)
{
    double s = 0;
    for (size_t j = 0; j < m; j++) s += (a[j] - b[j]) * (a[j] - b[j]);
    return s;
}

/* Each further mean is a record, with probability in proportion to its squared distance from the nearest one. */
static void choose_means(struct fkt_mixture *g, const double *x, size_t n, double *nearest, struct fkt_rng *rng)
{
    const size_t m = g->m;
    size_t chosen = (size_t)fkt_rng_below(rng, n);
    for (size_t i = 0; i < n; i++) nearest[i] = INFINITY;
    for (uint32_t k = 0;; k++) {
        double all = 0, at;
        memcpy(g->mean + k * m, x + chosen * m, m * sizeof *x);
        if (k + 1 == g->components) return;
        for (size_t i = 0; i < n; i++) all += nearest[i] = fmin(nearest[i], distance(x + i * m, g->mean + k * m, m));
        at = fkt_rng_unit(rng) * all;
        for (chosen = 0; chosen + 1 < n && !(at < nearest[chosen]); chosen++) at -= nearest[chosen];
    }
}

fkt_status fkt_mixture_start(struct fkt_mixture *g, const double *x, size_t n, struct fkt_rng *rng)
{
    const size_t c = fkt_mixture_cov(g);
    struct fkt_mixture one = {0};
    double *nearest = NULL;
    fkt_status st;
    if (n < g->components) return fkt_fail(FKT_E_ARG, "%u components cannot begin at %zu records", g->components, n);
    FKT_TRY(check(x, n, g->m));
    FKT_TRY(fkt_alloc(&nearest, n));
    FKT_TRY(fkt_mixture_new(&one, g->kind, 1, g->m)); /* one iteration of a single component fits it */
    one.weight[0] = 1;
    for (size_t j = 0; j < c; j++) one.cov[j] = g->kind != FKT_COVARIANCE_FULL || j % (g->m + 1) == 0;
    FKT_TRY(fkt_mixture_em(&one, x, n, 1, 0, NULL, NULL));
    choose_means(g, x, n, nearest, rng);
    for (uint32_t k = 0; k < g->components; k++) {
        g->weight[k] = 1.0 / g->components;
        memcpy(g->cov + k * c, one.cov, c * sizeof *one.cov);
    }
out:
    fkt_mixture_clear(&one);
    fkt_free(nearest);
    return st;
}
