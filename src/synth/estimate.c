/* SPDX-License-Identifier: Apache-2.0 */
/* estimate.c - noised integer moments -> one Gaussian per class and part, in units of w. docs/method.md 1.5;
 * derivations in estimate.md.
 *
 *   (n, S, M) + noise -> mean, raw covariance (raw.c) -> pool -> eigenvalues -> estimator -> cov, factor
 *
 * The paper divides by the true n and subtracts the noisy S S^T uncorrected; we have no true n, and the difference is
 * visible at epsilon = 1. All inputs come from the release, so this costs no privacy.
 * Cost: one eigen-decomposition per class (two when pooling). Classes are decomposed side by side; no number of one
 * enters another's, so the bits do not depend on the number of threads. Pooled moments have one covariance and one
 * decomposition for all classes: a small file must not need memory for K of them. */
#include "fedkt/advanced/synth.h"
#include "fedkt/layout.h"

#include "base/alloc.h"
#include "base/threads.h"
#include "base/wipe.h"
#include "synth/estimator.h"
#include "synth/raw.h"
#include "tensor/linalg.h"

#include <math.h>
#include <string.h>

#define TAU_DEFAULT 1e-6
#define SIGNAL_MAX 1e9
enum { THREADS_MAX = 16, THREADS_FROM = 48 }; /* below this length a class takes less than starting a thread */

/* Work arrays of one class: each thread has its own. */
struct class_scratch {
    double *values, *vectors, *shrunk, *work; /* (m), (m,m), (m), (m) */
};

/* Owned by the call below. */
struct scratch {
    struct class_scratch each[THREADS_MAX]; /* (threads) */
    unsigned threads;
    double *pooled; /* (m,m) */
    double *share;  /* (K) n^_k / sum of n^ */
    double *noise;  /* (K) standard deviation of the noise on a diagonal entry of raw_k */
};

static fkt_status check_noise(const struct fkt_layout_noise *l, uint32_t classes)
{
    double sigma = l->sigma_count;
    for (uint32_t p = 0; p < l->parts; p++) {
        const struct fkt_part_noise *x = &l->part[p];
        if (classes < 1 || x->length < 1 || x->length > FKT_LENGTH_MAX)
            return fkt_fail(FKT_E_ARG,
                            "cannot estimate %u classes of length %u: need at least 1 of each and length at most %u",
                            classes, x->length, FKT_LENGTH_MAX);
        for (int i = 0; i < 3; i++) {
            sigma = (const double[]){l->sigma_count, x->sigma_sum, x->sigma_moment}[i];
            if (!(sigma >= 0) || !isfinite(sigma))
                return fkt_fail(FKT_E_ARG, "noise scale %g is not a number >= 0", sigma);
        }
        if (!(x->unit > 0) || !isfinite(x->unit)) return fkt_fail(FKT_E_ARG, "unit %g is not a number > 0", x->unit);
    }
    for (uint32_t j = 0; j < l->n_known; j++) {
        const struct fkt_known_length *x = &l->known[j];
        const uint32_t length = x->part < l->parts ? l->part[x->part].length : 0;
        if (x->count < 1 || x->first >= length || x->count > length - x->first ||
            !(x->square > 0 && x->slack >= 0 && isfinite(x->square + x->slack)))
            return fkt_fail(FKT_E_ARG,
                            "a direction of %u numbers, square length %g and slack %g does not fit length %u", x->count,
                            x->square, x->slack, length);
    }
    return FKT_OK;
}

static fkt_status check_options(const struct fkt_estimate_options *o)
{
    if (o->estimator != FKT_ESTIMATOR_CLAMP && o->estimator != FKT_ESTIMATOR_RIE && o->estimator != FKT_ESTIMATOR_RAW)
        return fkt_fail(FKT_E_ARG, "unknown estimator %d", (int)o->estimator);
    if (!(o->tau >= 0 && o->tau <= 1)) return fkt_fail(FKT_E_ARG, "eigenvalue floor tau %g is not in 0..1", o->tau);
    if (!(o->pool >= 0 && o->pool <= 1)) return fkt_fail(FKT_E_ARG, "pooling weight %g is not in 0..1", o->pool);
    return FKT_OK;
}

static fkt_status allocate(struct fkt_gaussians *g, struct scratch *s, uint32_t classes, uint32_t length, int pooled)
{
    size_t k = classes, m = length, covariances = pooled ? 1 : k;
    fkt_status st;
    memset(g, 0, sizeof *g);
    memset(s, 0, sizeof *s);
    s->threads = length < THREADS_FROM ? 1 : fkt_cpu_count();
    if (s->threads > THREADS_MAX) s->threads = THREADS_MAX;
    if (s->threads > covariances) s->threads = (unsigned)covariances;
    g->classes = classes;
    g->length = length;
    g->pooled = pooled;
    FKT_TRY(fkt_alloc(&g->count, k));
    FKT_TRY(fkt_alloc(&g->count_noise, k));
    FKT_TRY(fkt_alloc(&g->mean, k * m));
    FKT_TRY(fkt_alloc(&g->cov, covariances * m * m)); /* m <= 2^14, k < 2^32: the product fits, the bytes are checked */
    FKT_TRY(fkt_alloc(&g->factor, covariances * m * m));
    FKT_TRY(fkt_alloc(&g->noise_edge, k));
    FKT_TRY(fkt_alloc(&g->mean_noise, k));
    FKT_TRY(fkt_alloc(&g->signal, k));
    for (unsigned i = 0; i < s->threads; i++) {
        FKT_TRY(fkt_alloc(&s->each[i].values, m));
        FKT_TRY(fkt_alloc(&s->each[i].vectors, m * m));
        FKT_TRY(fkt_alloc(&s->each[i].shrunk, m));
        FKT_TRY(fkt_alloc(&s->each[i].work, m));
    }
    FKT_TRY(fkt_alloc(&s->pooled, m * m));
    FKT_TRY(fkt_alloc(&s->share, k));
    FKT_TRY(fkt_alloc(&s->noise, k));
out:
    return st;
}

static void scratch_clear(struct scratch *s)
{
    for (unsigned i = 0; i < s->threads; i++) {
        fkt_free_secret(s->each[i].values);
        fkt_free_secret(s->each[i].vectors);
        fkt_free_secret(s->each[i].shrunk);
        fkt_free_secret(s->each[i].work);
    }
    fkt_free_secret(s->pooled);
    fkt_free(s->share);
    fkt_free(s->noise);
}

/* cov_k = (1 - p) raw_k + p sum_j share_j raw_j; the noise of the mixture is that of its independent parts. */
static void pool_classes(struct fkt_gaussians *g, struct scratch *s, double p)
{
    size_t mm = (size_t)g->length * g->length;
    double common = 0, total = 0;
    for (size_t k = 0; k < g->classes; k++) total += g->count[k];
    for (size_t k = 0; k < g->classes; k++) {
        double part;
        s->share[k] = g->count[k] / total;
        part = p * s->share[k] * s->noise[k];
        common += part * part;
        for (size_t i = 0; i < mm; i++) s->pooled[i] += s->share[k] * g->cov[k * mm + i];
    }
    for (size_t k = 0; k < g->classes; k++) {
        double own = (1 - p + p * s->share[k]) * s->noise[k], foreign = p * s->share[k] * s->noise[k];
        for (size_t i = 0; i < mm; i++) g->cov[k * mm + i] = (1 - p) * g->cov[k * mm + i] + p * s->pooled[i];
        s->noise[k] = sqrt(fmax(common - foreign * foreign, 0) + own * own);
    }
}

static double edge_of(double noise, size_t m) { return sqrt(2 * (double)m) * noise; }

static fkt_status decompose(const struct fkt_gaussians *g, const struct class_scratch *d, size_t k)
{
    size_t m = g->length;
    return fkt_fail_in(fkt_eigen(d->values, d->vectors, g->cov + k * m * m, m), "covariance of class %zu", k);
}

/* After decompose of the unpooled class: how far its own covariance exceeds its own noise. */
static void set_signal(struct fkt_gaussians *g, const struct class_scratch *d, double noise, size_t k)
{
    double edge = edge_of(noise, g->length), top = fmax(d->values[g->length - 1], 0);
    g->signal[k] = top < SIGNAL_MAX * edge ? top / edge : SIGNAL_MAX;
}

/* After decompose: applies the estimator to the eigenvalues, makes factor_k and, unless cov_k is to stay raw, rebuilds
 * cov_k. unit2 keeps the floor above 0. */
static void shrink_class(struct fkt_gaussians *g, const struct class_scratch *s, double noise, size_t k,
                         const struct fkt_estimate_options *o, double unit2)
{
    size_t m = g->length;
    double *cov = g->cov + k * m * m, *factor = g->factor + k * m * m;
    double floor = (o->tau > 0 ? o->tau : TAU_DEFAULT) * fmax(s->values[m - 1], unit2);

    if (o->estimator == FKT_ESTIMATOR_RIE) fkt_spectrum_rie(s->shrunk, s->values, m, noise, s->work);
    else memcpy(s->shrunk, s->values, m * sizeof *s->values);
    fkt_spectrum_clamp(s->shrunk, m, floor);
    for (size_t j = 0; j < m; j++)
        for (size_t i = 0; i < m; i++) factor[i * m + j] = s->vectors[j * m + i] * sqrt(s->shrunk[j]);
    g->noise_edge[k] = edge_of(noise, m);
    if (o->estimator == FKT_ESTIMATOR_RAW) return;
    fkt_gemm_nt(cov, factor, factor, m, m, m);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < i; j++) cov[i * m + j] = cov[j * m + i];
}

struct job {
    struct fkt_gaussians *g;
    const struct scratch *s;
    const struct fkt_estimate_options *options;
    double pool, unit2;
};

static fkt_status measure_class(void *job, size_t k, unsigned worker)
{
    const struct job *j = job;
    const struct class_scratch *d = &j->s->each[worker];
    fkt_status st = decompose(j->g, d, k);
    if (st == FKT_OK) set_signal(j->g, d, j->s->noise[k], k);
    return st;
}

static fkt_status estimate_class(void *job, size_t k, unsigned worker)
{
    const struct job *j = job;
    const struct class_scratch *d = &j->s->each[worker];
    fkt_status st = decompose(j->g, d, k);
    if (st != FKT_OK) return st;
    if (!(j->pool > 0)) set_signal(j->g, d, j->s->noise[k], k);
    shrink_class(j->g, d, j->s->noise[k], k, j->options, j->unit2);
    return FKT_OK;
}

fkt_status fkt_gaussians_estimate_part(struct fkt_gaussians *out, const int64_t *noised, uint32_t classes,
                                       const struct fkt_layout_noise *noise, uint32_t part,
                                       const struct fkt_estimate_options *options)
{
    const double pool = noise->pooled ? 0 : options->pool; /* what is pooled already has one covariance */
    struct scratch s;
    struct job job = {.g = out, .s = &s, .options = options, .pool = pool};
    fkt_status st;

    memset(out, 0, sizeof *out);
    if (part >= noise->parts) return fkt_fail(FKT_E_ARG, "part %u is out of range: there are %u", part, noise->parts);
    st = check_noise(noise, classes);
    if (st == FKT_OK) st = check_options(options);
    if (st != FKT_OK) return st;
    FKT_TRY(allocate(out, &s, classes, noise->part[part].length, noise->pooled != 0));
    out->part = part;
    for (uint32_t p = 0; p < part; p++) out->offset += noise->part[p].length;
    FKT_TRY(fkt_raw_moments(out, s.noise, noised, noise));
    job.unit2 = noise->part[part].unit * noise->part[part].unit;
    if (pool > 0) {
        FKT_TRY(fkt_parallel(s.threads, classes, measure_class, &job, NULL, NULL));
        pool_classes(out, &s, pool);
    }
    FKT_TRY(fkt_parallel(s.threads, out->pooled ? 1 : classes, estimate_class, &job, NULL, NULL));
    for (size_t k = 1; out->pooled && k < classes; k++) {
        out->noise_edge[k] = out->noise_edge[0];
        out->signal[k] = out->signal[0];
    }
out:
    scratch_clear(&s);
    if (st != FKT_OK) fkt_gaussians_clear(out);
    return st;
}

fkt_status fkt_gaussians_estimate(struct fkt_gaussians *out, const int64_t *noised, uint32_t classes, uint32_t length,
                                  const struct fkt_noise_scale *noise, const struct fkt_estimate_options *options)
{
    const struct fkt_part_noise part = {length, noise->sigma_sum, noise->sigma_moment, noise->unit};
    const struct fkt_known_length known = {
        .count = noise->direction, .square = noise->direction_square, .slack = noise->direction_slack};
    const struct fkt_layout_noise l = {.sigma_count = noise->sigma_count,
                                       .part = &part,
                                       .parts = 1,
                                       .known = &known,
                                       .n_known = noise->direction ? 1 : 0};
    return fkt_gaussians_estimate_part(out, noised, classes, &l, 0, options);
}

/* The largest eigenvalue of GOE noise is edge (1 + X m^(-2/3)/2), X ~ Tracy-Widom; X < 4 except with probability of
 * about 1e-4. */
double fkt_gaussians_reach(uint32_t length) { return 1 + 2 * pow(length, -2.0 / 3); }

int fkt_gaussians_below_noise(const struct fkt_gaussians *g, uint32_t k)
{
    if (k >= g->classes) return 1;
    return !(g->signal[k] >= fkt_gaussians_reach(g->length)) || g->count[k] < 3 * g->count_noise[k];
}

void fkt_gaussians_clear(struct fkt_gaussians *g)
{
    fkt_free_secret(g->count); /* in a simulation the reference comes from exact moments */
    fkt_free(g->count_noise);
    fkt_free_secret(g->mean);
    fkt_free_secret(g->cov);
    fkt_free_secret(g->factor);
    fkt_free(g->noise_edge);
    fkt_free(g->mean_noise);
    fkt_free(g->signal);
    memset(g, 0, sizeof *g);
}
