/* SPDX-License-Identifier: Apache-2.0 */
/* estimate.c - noised integer moments -> one Gaussian per class, in units of w. docs/method.md 1.5; derivations in
 * estimate.md.
 *
 *   (n, S, M) + noise -> mean = a S, raw = a M - b (S S^T - s_m^2 I) -> pool -> eigenvalues -> estimator -> cov, factor
 *                        a estimates 1/n, b estimates 1/n^2 (inverse.c)
 *
 * Where all records have one length, the trace of M is a second count; n^ combines the two (count_of, estimate.md 5).
 * mean and raw are unbiased: M, S and n carry independent noise, s_m^2 I is what the noise of S adds to S S^T, and the
 * covariance of the combined count with the diagonal of M is known. The paper divides by the true n and subtracts the
 * noisy S S^T uncorrected; we have no true n, and the difference is visible at epsilon = 1. All inputs come from the
 * release, so this costs no privacy.
 * Cost: one eigen-decomposition per class (two when pooling). */
#include "fedkt/advanced/synth.h"

#include "base/alloc.h"
#include "base/wipe.h"
#include "synth/estimator.h"
#include "synth/inverse.h"
#include "tensor/linalg.h"

#include <math.h>
#include <string.h>

#define LENGTH_MAX 16384U
#define TAU_DEFAULT 1e-6
#define SIGNAL_MAX 1e9

/* Work arrays of one class, owned by the call below. */
struct scratch {
    double *values, *vectors, *shrunk, *work; /* (m), (m,m), (m), (m) */
    double *pooled;                           /* (m,m) */
    double *share;                            /* (K) n^_k / sum of n^ */
    double *noise;                            /* (K) standard deviation of the noise on a diagonal entry of raw_k */
};

static fkt_status check_arguments(uint32_t classes, uint32_t length, const struct fkt_noise_scale *s,
                                  const struct fkt_estimate_options *o)
{
    const double sigma[3] = {s->sigma_count, s->sigma_sum, s->sigma_moment};
    if (classes < 1 || length < 1 || length > LENGTH_MAX)
        return fkt_fail(FKT_E_ARG,
                        "cannot estimate %u classes of length %u: need at least 1 of each and length at most %u",
                        classes, length, LENGTH_MAX);
    for (int i = 0; i < 3; i++)
        if (!(sigma[i] >= 0) || !isfinite(sigma[i]))
            return fkt_fail(FKT_E_ARG, "noise scale %g is not a number >= 0", sigma[i]);
    if (!(s->unit > 0) || !isfinite(s->unit)) return fkt_fail(FKT_E_ARG, "unit %g is not a number > 0", s->unit);
    if (s->direction > length || (s->direction && !(s->direction_square > 0 && s->direction_slack >= 0 &&
                                                    isfinite(s->direction_square + s->direction_slack))))
        return fkt_fail(FKT_E_ARG, "a direction of %u numbers, square length %g and slack %g does not fit length %u",
                        s->direction, s->direction_square, s->direction_slack, length);
    if (o->estimator != FKT_ESTIMATOR_CLAMP && o->estimator != FKT_ESTIMATOR_RIE && o->estimator != FKT_ESTIMATOR_RAW)
        return fkt_fail(FKT_E_ARG, "unknown estimator %d", (int)o->estimator);
    if (!(o->tau >= 0 && o->tau <= 1)) return fkt_fail(FKT_E_ARG, "eigenvalue floor tau %g is not in 0..1", o->tau);
    if (!(o->pool >= 0 && o->pool <= 1)) return fkt_fail(FKT_E_ARG, "pooling weight %g is not in 0..1", o->pool);
    return FKT_OK;
}

static fkt_status allocate(struct fkt_gaussians *g, struct scratch *s, uint32_t classes, uint32_t length)
{
    size_t k = classes, m = length;
    fkt_status st;
    memset(g, 0, sizeof *g);
    memset(s, 0, sizeof *s);
    g->classes = classes;
    g->length = length;
    FKT_TRY(fkt_alloc(&g->count, k));
    FKT_TRY(fkt_alloc(&g->count_noise, k));
    FKT_TRY(fkt_alloc(&g->mean, k * m));
    FKT_TRY(fkt_alloc(&g->cov, k * m * m)); /* m <= 2^14, k < 2^32: the product fits, the bytes are checked */
    FKT_TRY(fkt_alloc(&g->factor, k * m * m));
    FKT_TRY(fkt_alloc(&g->noise_edge, k));
    FKT_TRY(fkt_alloc(&g->mean_noise, k));
    FKT_TRY(fkt_alloc(&g->signal, k));
    FKT_TRY(fkt_alloc(&s->values, m));
    FKT_TRY(fkt_alloc(&s->vectors, m * m));
    FKT_TRY(fkt_alloc(&s->shrunk, m));
    FKT_TRY(fkt_alloc(&s->work, m));
    FKT_TRY(fkt_alloc(&s->pooled, m * m));
    FKT_TRY(fkt_alloc(&s->share, k));
    FKT_TRY(fkt_alloc(&s->noise, k));
out:
    return st;
}

static void scratch_clear(struct scratch *s)
{
    fkt_free_secret(s->values);
    fkt_free_secret(s->vectors);
    fkt_free_secret(s->shrunk);
    fkt_free_secret(s->work);
    fkt_free_secret(s->pooled);
    fkt_free(s->share);
    fkt_free(s->noise);
}

/* The count of a class from both sources, and its effect on the second moment (estimate.md 5). */
struct count {
    double value, noise; /* n^ and the standard deviation of its error */
    double shift;        /* to add to the first `direction` diagonal entries of M */
    double tied;         /* covariance of such an entry and n^ */
};

static struct count count_of(const int64_t *block, size_t m, const struct fkt_noise_scale *s)
{
    const double plain = (double)block[0], square = s->direction_square, own = s->sigma_count * s->sigma_count;
    const int64_t *diagonal = block + 1 + m;
    double trace = 0, noise, slack, all, h, g;
    if (s->direction == 0) return (struct count){.value = fmax(plain, 1), .noise = s->sigma_count};
    for (size_t i = 0; i < s->direction; diagonal += m - i++) trace += (double)*diagonal;
    noise = s->sigma_moment / square;
    noise *= noise * s->direction;
    slack = s->direction_slack / square * fmax(plain, 1);
    slack *= slack;
    all = own + noise + slack;
    h = all > 0 ? own / all : 0;
    g = all > 0 ? noise / all : 0;
    return (struct count){.value = fmax(plain + h * (trace / square - plain), 1),
                          .noise = s->sigma_count * sqrt(1 - h),
                          .shift = g * (plain * square - trace) / s->direction,
                          .tied = h * (noise + g * slack) * square / s->direction};
}

/* One packed block (n, S, upper triangle of M) -> count, mean, raw covariance, noise in both (estimate.md 2, 5). */
static void raw_moments(struct fkt_gaussians *g, struct scratch *s, size_t k, const int64_t *block,
                        const struct fkt_noise_scale *scale)
{
    size_t m = g->length;
    const int64_t *sum = block + 1, *moment = sum + m;
    double *mean = g->mean + k * m, *cov = g->cov + k * m * m, u = scale->unit;
    struct count count = count_of(block, m, scale);
    struct fkt_inverse inv = fkt_inverse_count(count.value, count.noise);
    double noise2 = scale->sigma_sum * scale->sigma_sum;

    g->count[k] = count.value;
    g->count_noise[k] = count.noise;
    g->mean_noise[k] = scale->sigma_sum * u * inv.one;
    s->noise[k] = scale->sigma_moment * u * u * inv.one;
    for (size_t i = 0; i < m; i++) {
        mean[i] = (double)sum[i] * inv.one * u;
        for (size_t j = i; j < m; j++, moment++) {
            int known = i == j && i < scale->direction;
            double outer = (double)sum[i] * (double)sum[j] - (i == j ? noise2 : 0) - (known ? count.tied : 0);
            double second = (double)*moment + (known ? count.shift : 0);
            cov[i * m + j] = cov[j * m + i] = (second * inv.one - outer * inv.two) * u * u;
        }
    }
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

static fkt_status decompose(const struct fkt_gaussians *g, struct scratch *s, size_t k)
{
    size_t m = g->length;
    return fkt_fail_in(fkt_eigen(s->values, s->vectors, g->cov + k * m * m, m), "covariance of class %zu", k);
}

/* After decompose of the unpooled class: how far its own covariance exceeds its own noise. */
static void set_signal(struct fkt_gaussians *g, const struct scratch *s, size_t k)
{
    double edge = edge_of(s->noise[k], g->length), top = fmax(s->values[g->length - 1], 0);
    g->signal[k] = top < SIGNAL_MAX * edge ? top / edge : SIGNAL_MAX;
}

/* After decompose: applies the estimator to the eigenvalues, makes factor_k and, unless cov_k is to stay raw, rebuilds
 * cov_k. unit2 keeps the floor above 0. */
static void shrink_class(struct fkt_gaussians *g, struct scratch *s, size_t k, const struct fkt_estimate_options *o,
                         double unit2)
{
    size_t m = g->length;
    double *cov = g->cov + k * m * m, *factor = g->factor + k * m * m;
    double floor = (o->tau > 0 ? o->tau : TAU_DEFAULT) * fmax(s->values[m - 1], unit2);

    if (o->estimator == FKT_ESTIMATOR_RIE) fkt_spectrum_rie(s->shrunk, s->values, m, s->noise[k], s->work);
    else memcpy(s->shrunk, s->values, m * sizeof *s->values);
    fkt_spectrum_clamp(s->shrunk, m, floor);
    for (size_t j = 0; j < m; j++)
        for (size_t i = 0; i < m; i++) factor[i * m + j] = s->vectors[j * m + i] * sqrt(s->shrunk[j]);
    g->noise_edge[k] = edge_of(s->noise[k], m);
    if (o->estimator == FKT_ESTIMATOR_RAW) return;
    fkt_gemm_nt(cov, factor, factor, m, m, m);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < i; j++) cov[i * m + j] = cov[j * m + i];
}

fkt_status fkt_gaussians_estimate(struct fkt_gaussians *out, const int64_t *noised, uint32_t classes, uint32_t length,
                                  const struct fkt_noise_scale *noise, const struct fkt_estimate_options *options)
{
    size_t block = ((size_t)length + 1) * ((size_t)length + 2) / 2;
    struct scratch s;
    fkt_status st;

    memset(out, 0, sizeof *out);
    st = check_arguments(classes, length, noise, options);
    if (st != FKT_OK) return st;
    FKT_TRY(allocate(out, &s, classes, length));
    for (size_t k = 0; k < classes; k++) raw_moments(out, &s, k, noised + k * block, noise);
    for (size_t k = 0; k < classes && options->pool > 0; k++) {
        FKT_TRY(decompose(out, &s, k));
        set_signal(out, &s, k);
    }
    if (options->pool > 0) pool_classes(out, &s, options->pool);
    for (size_t k = 0; k < classes; k++) {
        FKT_TRY(decompose(out, &s, k));
        if (!(options->pool > 0)) set_signal(out, &s, k);
        shrink_class(out, &s, k, options, noise->unit * noise->unit);
    }
out:
    scratch_clear(&s);
    if (st != FKT_OK) fkt_gaussians_clear(out);
    return st;
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
