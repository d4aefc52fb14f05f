/* SPDX-License-Identifier: Apache-2.0 */
/* statistics.c - shared by all heads: means shrunk against their noise, and one covariance for all classes.
 *
 * Means. Class k's mean carries noise of variance s_k^2 per coordinate, and the classes differ in s_k. Model: the true
 * means lie around the grand mean with variance b per coordinate. b comes from the method of moments with weights
 * p_k = n_k/sum n,
 *     E[sum p_k |mean_k - grand|^2]/m = b (1 - sum p_k^2) + sum p_k (1 - p_k) s_k^2,
 * and the posterior of a mean is   grand + f_k (mean_k - grand),   f_k = b/(b + s_k^2),   with the variance f_k s_k^2
 * ("doubt") remaining in each coordinate (Efron, Morris 1973). Without noise f_k = 1 and nothing changes. b is never
 * below a hundredth of the noise, so that the ranking of the classes remains when the noise hides everything.
 *
 * Why not only subtract m s_k^2 from |mean_k|^2: the score of a noisy class would then be unbiased but vary widely, and
 * small classes would win far too often (docs/decisions/0003-noise-aware-heads.md has the figures).
 *
 * Covariance. sum p_k cov_k, whose noise edge is sqrt(sum p_k^2 edge_k^2); eigenvalues below it are raised to it.
 * The cov_k are not shrunk: their noise averages out here, while the bias of shrinking would not. Pooled moments give
 * that covariance directly, with sqrt(K) less noise. The errors of the class sums, which come in through S S^T and
 * which no edge counts, then reach beyond the edge: eigenvalues are raised to POOLED_FLOOR times it
 * (docs/decisions/0025-heads-on-parts.md has the figures).
 * Cost: one eigen-decomposition. */
#include "classifier/statistics.h"

#include "base/alloc.h"
#include "base/wipe.h"
#include "classifier/heads.h"
#include "tensor/linalg.h"

#include <math.h>
#include <string.h>

#define SPREAD_MIN 0.01 /* of the noise */
#define TINY 1e-9       /* of the average eigenvalue */
#define POOLED_FLOOR 4  /* noise edges */

static fkt_status check_finite(const double *x, size_t n, size_t each, const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return fkt_fail(FKT_E_NUMERIC, "%s of class %zu is not finite", what, i / each);
    return FKT_OK;
}

static fkt_status check_statistics(const struct fkt_class_statistics *s)
{
    size_t k = s->classes, m = s->length, covariances = s->pooled ? 1 : k;
    fkt_status st;
    if (k < 1 || m < 1 || m > FKT_LENGTH_MAX)
        return fkt_fail(FKT_E_ARG,
                        "cannot fit a head to %u classes of length %u: need at least 1 of each, length at most %u",
                        s->classes, s->length, FKT_LENGTH_MAX);
    FKT_TRY(check_finite(s->count, k, 1, "count"));
    FKT_TRY(check_finite(s->mean, k * m, m, "mean"));
    FKT_TRY(check_finite(s->cov, covariances * m * m, m * m, "covariance"));
    FKT_TRY(check_finite(s->noise_edge, covariances, 1, "noise edge"));
    FKT_TRY(check_finite(s->mean_noise, k, 1, "noise of the mean"));
    for (size_t i = 0; i < k; i++)
        if (!(s->count[i] > 0) || s->noise_edge[i < covariances ? i : 0] < 0 || s->mean_noise[i] < 0)
            return fkt_fail(FKT_E_ARG, "class %zu has a count that is not positive, or negative noise", i);
out:
    return st;
}

static double total_count(const struct fkt_class_statistics *s)
{
    double total = 0;
    for (size_t k = 0; k < s->classes; k++) total += s->count[k];
    return total;
}

/* grand (m) = sum of p_k mean_k; gives b. */
static double between_classes(const struct fkt_class_statistics *s, double *grand)
{
    size_t m = s->length;
    double total = total_count(s), distance = 0, expected = 0, noise = 0, free = 1, b;
    for (size_t k = 0; k < s->classes; k++)
        for (size_t i = 0; i < m; i++) grand[i] += s->count[k] / total * s->mean[k * m + i];
    for (size_t k = 0; k < s->classes; k++) {
        double p = s->count[k] / total, var = s->mean_noise[k] * s->mean_noise[k], square = 0;
        for (size_t i = 0; i < m; i++) square += (s->mean[k * m + i] - grand[i]) * (s->mean[k * m + i] - grand[i]);
        distance += p * square / (double)m;
        expected += p * (1 - p) * var;
        noise += p * var;
        free -= p * p;
    }
    b = free > 1e-12 ? (distance - expected) / free : 0;
    return fmax(b, SPREAD_MIN * noise);
}

static fkt_status shrink_means(struct fkt_ready *r, const struct fkt_class_statistics *s)
{
    size_t m = s->length;
    double *grand = NULL, b;
    fkt_status st;
    FKT_TRY(fkt_alloc(&grand, m));
    b = between_classes(s, grand);
    for (size_t k = 0; k < s->classes; k++) {
        double var = s->mean_noise[k] * s->mean_noise[k], f = var > 0 ? b / (b + var) : 1;
        r->doubt[k] = f * var;
        for (size_t i = 0; i < m; i++) {
            double own = s->mean[k * m + i];
            r->mean[k * m + i] = f < 1 ? grand[i] + f * (own - grand[i]) : own;
        }
    }
out:
    fkt_free(grand);
    return st;
}

static fkt_status pool_covariances(struct fkt_ready *r, const struct fkt_class_statistics *s)
{
    size_t m = s->length;
    double *pooled = NULL, total = total_count(s), edge2 = 0, edge, trace = 0;
    fkt_status st;
    FKT_TRY(fkt_alloc(&pooled, m * m));
    if (s->pooled) {
        edge2 = POOLED_FLOOR * s->noise_edge[0] * POOLED_FLOOR * s->noise_edge[0];
        memcpy(pooled, s->cov, m * m * sizeof *pooled);
    }
    for (size_t k = 0; !s->pooled && k < s->classes; k++) {
        double p = s->count[k] / total, part = p * s->noise_edge[k];
        edge2 += part * part;
        for (size_t i = 0; i < m * m; i++) pooled[i] += p * s->cov[k * m * m + i];
    }
    edge = sqrt(edge2);
    FKT_TRY(fkt_eigen(r->plain, r->vectors, pooled, m));
    for (size_t i = 0; i < m; i++) trace += fmax(r->plain[i], edge);
    r->tiny = trace > 0 ? TINY * trace / (double)m : 1; /* no spread: any metric is right */
    for (size_t i = 0; i < m; i++) r->values[i] = fmax(fmax(r->plain[i], edge), r->tiny);
out:
    fkt_free(pooled);
    return st;
}

fkt_status fkt_ready_make(struct fkt_ready *r, const struct fkt_class_statistics *s)
{
    size_t k = s->classes, m = s->length;
    fkt_status st;
    memset(r, 0, sizeof *r);
    FKT_TRY(check_statistics(s));
    FKT_TRY(fkt_alloc(&r->mean, k * m));
    FKT_TRY(fkt_alloc(&r->doubt, k));
    FKT_TRY(fkt_alloc(&r->plain, m));
    FKT_TRY(fkt_alloc(&r->values, m));
    FKT_TRY(fkt_alloc(&r->vectors, m * m));
    FKT_TRY(shrink_means(r, s));
    FKT_TRY(pool_covariances(r, s));
out:
    return st;
}

void fkt_ready_clear(struct fkt_ready *r)
{
    fkt_free_secret(r->mean); /* in a simulation the reference comes from exact moments */
    fkt_free(r->doubt);
    fkt_free_secret(r->plain);
    fkt_free_secret(r->values);
    fkt_free_secret(r->vectors);
    memset(r, 0, sizeof *r);
}
