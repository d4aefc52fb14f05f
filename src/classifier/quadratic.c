/* SPDX-License-Identifier: Apache-2.0 */
/* quadratic.c - class covariances for QDA and RDA, by empirical Bayes in the metric of the pooled covariance.
 *
 * Let P = Q diag(l) Q^T be the pooled covariance, floored at its noise edge (statistics.c). Relative to it, class k is
 *     d_k = P^-1/2 (cov_k - pool) P^-1/2 in the basis Q,     pool = sum p_j cov_j before the floor,  p_j = n_j/sum n,
 * and the error of its entry (i, j) has a known variance, (1 + [i=j]) h_k(i, j),
 *     h_k(i, j) = 1/n_k + (v_k/2)/(l_i l_j),
 * the first from n_k Gaussian records, the second from the noise of the release (v_k = edge_k^2/(2 m) on the diagonal,
 * half of it off, in every basis). The same release measures strong directions well and weak ones badly. Left
 * out are two errors that are not of this shape: that of n_k, which multiplies all of cov_k by one factor 1 +- s/n_k
 * (src/synth/estimate.md 4), and that of the mean's noise in S S^T, of rank 2.
 * Prior: the true differences have variance (1 + [i=j]) t, the same in every basis. Classes need not differ in
 * weak directions as they do in strong ones, so t is one number for each quarter of the directions, and an entry
 * belongs to the weaker of its two. pool holds class k itself; with c_k = 1 - 2 p_k + sum_q p_q^2,
 *     E[d_k(i, j)^2]/(1 + [i=j]) = c_k t + (1 - 2 p_k) h_k(i, j) + sum_q p_q^2 h_q(i, j)
 * gives t by the method of moments over all classes and the entries of a band, each weighted by the inverse square of
 * its own expectation, the inverse variance of a squared normal. The posterior is
 *     d^_k(i, j) = f d_k(i, j),    f = t/(t + h_k(i, j)),    variance left in it (1 + [i=j]) f h_k(i, j),
 *     C_k = P^1/2 (I + d^_k) P^1/2 + doubt_k I.
 * The remaining error is noise of a known edge, e_k = 2 sqrt(average row sum of its variances): no eigenvalue of I +
 * d^_k below a fifth of it is trusted; it is raised to that, or to 1 if that is less.
 *
 * RDA takes the geometric mean of P and C_k, P^1/2 (I + d^_k)^1/2 P^1/2 (+ doubt_k I): half-way between LDA and QDA
 * on the shortest path between the two covariances in the metric of positive matrices. The posterior above knows the
 * errors of a Gaussian class. Features of a network are not Gaussian: QDA is too sure of what it sees in their tails,
 * whatever the noise. After Friedman 1989 (regularised discriminant analysis), who mixes the covariances linearly;
 * docs/decisions/0032-rda.md has the figures.
 *
 * Limits: without noise and for n -> infinity f = 1 and the floor is 0, textbook QDA; if the classes cannot be
 * distinguished t = 0, f = 0 and C_k = P, LDA. Between the two only the fifth and the quarters are tuned; half or twice
 * of either works as well: docs/decisions/0003-noise-aware-heads.md has the figures, and those of the earlier rule
 * (one weight per class, after Friedman 1989), which mixed strong directions too much, weak ones too little.
 * Elementwise shrinkage is not optimal: it ignores the eigenvectors of d_k.
 *
 * The d_k are stored in h->map until the map itself replaces them. Cost: two eigen-decompositions and three products
 * per class. */
#include "classifier/quadratic.h"

#include "base/alloc.h"
#include "tensor/linalg.h"

#include <math.h>
#include <string.h>

#define TRUSTED_PART 0.2 /* of the edge of the remaining noise */
#define RATIO_MIN 1e-9   /* of the pooled variance: a lower bound for every class */
#define STEPS 50
#define BANDS 4

/* The directions run from the weakest to the strongest; bands of equal size. */
static size_t band_of(size_t i, size_t j, size_t m) { return (i < j ? i : j) * BANDS / m; }

/* The two parts of an error variance: a + b/(l_i l_j). */
struct error {
    double sample, noise;
};

static struct error error_of(const struct fkt_class_statistics *s, size_t k)
{
    double edge = s->noise_edge[k];
    return (struct error){1 / s->count[k], edge * edge / (4 * (double)s->length)};
}

/* Sums that all classes share: total of the counts, and sum p^2, sum p^2 h. */
struct shared {
    double total, squares;
    struct error pool;
};

static struct shared share(const struct fkt_class_statistics *s)
{
    struct shared a = {0};
    for (size_t k = 0; k < s->classes; k++) a.total += s->count[k];
    for (size_t k = 0; k < s->classes; k++) {
        double p = s->count[k] / a.total;
        struct error h = error_of(s, k);
        a.squares += p * p;
        a.pool.sample += p * p * h.sample;
        a.pool.noise += p * p * h.noise;
    }
    return a;
}

/* One step of the method of moments: an improved t for this band, with weights from the previous one. */
static double step(double t, size_t band, const struct fkt_head *h, const struct fkt_ready *r,
                   const struct fkt_class_statistics *s, const struct shared *a)
{
    size_t m = h->length;
    double above = 0, below = 0;
    for (size_t k = 0; k < h->classes; k++) {
        double p = s->count[k] / a->total, c = fmax(1 - 2 * p + a->squares, 0);
        struct error own = error_of(s, k);
        double sample = fmax((1 - 2 * p) * own.sample + a->pool.sample, 0);
        double noise = fmax((1 - 2 * p) * own.noise + a->pool.noise, 0);
        for (size_t i = 0; i < m; i++)
            for (size_t j = i; j < m && band_of(i, j, m) == band; j++) { /* the whole row lies in the band of i */
                double d = h->map[(k * m + i) * m + j], square = i == j ? d * d / 2 : d * d;
                double e = sample + noise / (r->values[i] * r->values[j]), x = c * t + e;
                if (!(x > 0)) continue;
                above += (square - e) / x / x;
                below += c / x / x;
            }
    }
    return below > 0 ? fmax(above / below, 0) : 0;
}

/* t of each band, from the d_k in h->map. */
static void spread(double t[BANDS], const struct fkt_head *h, const struct fkt_ready *r,
                   const struct fkt_class_statistics *s)
{
    struct shared a = share(s);
    for (size_t band = 0; band < BANDS; band++) {
        double last = 0;
        t[band] = 1;
        for (int i = 0; i < STEPS && fabs(t[band] - last) > 1e-13 * t[band]; i++) {
            last = t[band];
            t[band] = step(last, band, h, r, s, &a);
        }
    }
}

/* d (m,m) of class k, exactly symmetric; work (m,m). */
static void whiten(double *d, const struct fkt_ready *r, const double *cov, size_t m, double *work)
{
    fkt_gemm_nt(work, r->vectors, cov, m, m, m); /* cov is symmetric */
    fkt_gemm_nt(d, work, r->vectors, m, m, m);
    for (size_t i = 0; i < m; i++)
        for (size_t j = i; j < m; j++) {
            double x = d[i * m + j] - (i == j ? r->plain[i] : 0);
            d[i * m + j] = d[j * m + i] = x / sqrt(r->values[i] * r->values[j]);
        }
}

/* d -> I + posterior of d; returns the floor of its eigenvalues. */
static double posterior(double *d, const struct fkt_ready *r, struct error e, const double *t, size_t m)
{
    double left = 0;
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < m; j++) {
            double h = e.sample + e.noise / (r->values[i] * r->values[j]), own = t[band_of(i, j, m)];
            double f = own > 0 ? own / (own + h) : 0;
            left += f * h * (i == j ? 2 : 1);
            d[i * m + j] = f * d[i * m + j] + (i == j ? 1 : 0);
        }
    return fmax(fmin(TRUSTED_PART * 2 * sqrt(left / (double)m), 1), RATIO_MIN);
}

/* Work arrays of one class. */
struct scratch {
    double *values, *vectors, *a, *b; /* (m), (m,m) each */
};

/* ratio (m,m) = I + d^ -> cov (m,m) = P^1/2 ratio P^1/2, or with ratio^1/2; eigenvalues of ratio floored; in the
 * coordinates of w. */
static fkt_status colour(double *cov, const double *ratio, double floor, int root, const struct fkt_ready *r, size_t m,
                         struct scratch *x)
{
    fkt_status st = fkt_eigen(x->values, x->vectors, ratio, m);
    if (st != FKT_OK) return st;
    for (size_t i = 0; i < m; i++) {
        const double value = fmax(x->values[i], floor), own = root ? sqrt(value) : value;
        for (size_t j = 0; j < m; j++) x->vectors[i * m + j] *= sqrt(own * r->values[j]);
    }
    fkt_gemm(x->b, x->vectors, r->vectors, m, m, m);
    memset(cov, 0, m * m * sizeof *cov);
    fkt_syrk(cov, x->b, m, m);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < i; j++) cov[i * m + j] = cov[j * m + i];
    return FKT_OK;
}

static fkt_status fit_class(struct fkt_head *h, size_t k, const struct fkt_ready *r,
                            const struct fkt_class_statistics *s, const double *t, struct scratch *x)
{
    size_t m = h->length;
    double *map = h->map + k * m * m, floor = posterior(map, r, error_of(s, k), t, m);
    fkt_status st = colour(x->a, map, floor, h->kind == FKT_HEAD_RDA, r, m, x);
    if (st == FKT_OK) st = fkt_eigen(x->values, x->vectors, x->a, m);
    if (st != FKT_OK) return fkt_fail_in(st, "covariance of class %zu", k);
    for (size_t i = 0; i < m; i++) {
        double l = fmax(x->values[i], r->tiny) + r->doubt[k];
        h->bias[k] -= log(l) / 2;
        for (size_t j = 0; j < m; j++) map[j * m + i] = x->vectors[i * m + j] / sqrt(l);
    }
    return FKT_OK;
}

fkt_status fkt_quadratic_fit(struct fkt_head *h, const struct fkt_ready *r, const struct fkt_class_statistics *s)
{
    size_t m = h->length;
    struct scratch x = {0};
    double t[BANDS];
    fkt_status st;
    FKT_TRY(fkt_alloc(&x.values, m));
    FKT_TRY(fkt_alloc(&x.vectors, m * m));
    FKT_TRY(fkt_alloc(&x.a, m * m));
    FKT_TRY(fkt_alloc(&x.b, m * m));
    memcpy(h->mean, r->mean, h->classes * m * sizeof *h->mean);
    for (size_t k = 0; k < h->classes; k++) whiten(h->map + k * m * m, r, s->cov + k * m * m, m, x.a);
    spread(t, h, r, s);
    for (size_t k = 0; k < h->classes; k++) FKT_TRY(fit_class(h, k, r, s, t, &x));
out:
    fkt_free(x.values);
    fkt_free(x.vectors);
    fkt_free(x.a);
    fkt_free(x.b);
    return st;
}
