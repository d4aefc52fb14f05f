/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/rng.h"
#include "fedkt/advanced/synth.h"
#include "tests/support/check.h"

#include <sched.h>

#define CLAMPED                                                                                                        \
    {                                                                                                                  \
        .estimator = FKT_ESTIMATOR_CLAMP                                                                               \
    }
#define SHRUNK                                                                                                         \
    {                                                                                                                  \
        .estimator = FKT_ESTIMATOR_RIE                                                                                 \
    }

static void near_all(const double *got, const double **want, size_t n, double rel, const char *what)
{
    double top = 0;
    for (size_t i = 0; i < n; i++) top = fmax(top, fabs((*want)[i]));
    for (size_t i = 0; i < n; i++)
        if (!(fabs(got[i] - (*want)[i]) <= rel * top))
            fail_msg("%s[%zu]: got %.17g, want %.17g", what, i, got[i], (*want)[i]);
    *want += n;
}

/* tests/vectors/synth/estimate.bin: made by oracle/synth.py from the formulas of estimate.md. */
static void golden_vectors(void **state)
{
    const struct fkt_estimate_options options[] = {{.estimator = FKT_ESTIMATOR_CLAMP, .tau = 1e-3},
                                                   SHRUNK,
                                                   {.estimator = FKT_ESTIMATOR_RIE, .pool = 0.5},
                                                   {.estimator = FKT_ESTIMATOR_CLAMP, .tau = 1e-3},
                                                   {.estimator = FKT_ESTIMATOR_CLAMP, .tau = 1e-3}};
    uint8_t *bytes = NULL;
    size_t len, k, m;
    const double *want;
    (void)state;
    CHECK_OK(fkt_file_read(&bytes, &len, FKT_TEST_VECTORS "/synth/estimate.bin", 1 << 20));
    const int64_t *head = (const int64_t *)(void *)bytes;
    k = (size_t)head[0];
    m = (size_t)head[1];
    CHECK(k == 3 && m == 6 && len == 8 * (8 + k * 28 + 5 * (k * (5 + m + m * m))));
    want = (const double *)(void *)(head + 2);
    struct fkt_noise_scale noise = {want[0], want[1], want[2], want[3], 0, want[4], want[5]};
    const int64_t *noised = head + 8;
    want = (const double *)(const void *)(noised + k * 28);
    for (int i = 0; i < 5; i++) {
        struct fkt_gaussians g;
        if (i == 3) noise.direction = (uint32_t)m - 1;
        if (i == 4) noise.sigma_count = 0;
        CHECK_OK(fkt_gaussians_estimate(&g, noised, (uint32_t)k, (uint32_t)m, &noise, &options[i]));
        near_all(g.count, &want, k, i < 3 ? 0 : 1e-13, "count");
        near_all(g.count_noise, &want, k, 1e-13, "count_noise");
        near_all(g.mean, &want, k * m, 1e-13, "mean");
        near_all(g.cov, &want, k * m * m, 1e-11, "cov");
        near_all(g.noise_edge, &want, k, 1e-13, "noise_edge");
        near_all(g.mean_noise, &want, k, 1e-13, "mean_noise");
        near_all(g.signal, &want, k, 1e-11, "signal");
        for (size_t c = 0; c < k; c++) /* A A^T = cov, exactly symmetric */
            for (size_t r = 0; r < m; r++)
                for (size_t s = 0; s < m; s++) {
                    double sum = 0;
                    for (size_t t = 0; t < m; t++) sum += g.factor[(c * m + r) * m + t] * g.factor[(c * m + s) * m + t];
                    CHECK_NEAR(g.cov[(c * m + r) * m + s], sum, 1e-12 * g.noise_edge[c]);
                    CHECK(g.cov[(c * m + r) * m + s] == g.cov[(c * m + s) * m + r]);
                }
        fkt_gaussians_clear(&g);
    }
    fkt_free(bytes);
    CHECK(fkt_alloc_live() == 0);
}

#define DRAWS 40000
struct spread {
    double sum[12], square[12];
};
static void spread_add(struct spread *s, const double *x)
{
    for (int i = 0; i < 12; i++) {
        s->sum[i] += x[i];
        s->square[i] += x[i] * x[i];
    }
}
/* The largest distance of a mean from its truth, in standard errors. */
static double spread_worst(const struct spread *s, const double *truth)
{
    double worst = 0;
    for (int i = 0; i < 12; i++) {
        double mean = s->sum[i] / DRAWS, var = s->square[i] / DRAWS - mean * mean;
        worst = fmax(worst, fabs(mean - truth[i]) / sqrt(var / DRAWS));
    }
    return worst;
}

/* Many draws of noise around fixed moments whose eigenvalues no draw brings near zero. */
static void unbiased_under(struct fkt_noise_scale noise, uint64_t seed)
{
    const double n = 100, sum[3] = {3000, -2000, 700}, moment[6] = {3e6, -1e5, 2e5, 2.8e6, 1e5, 2.6e6};
    const struct fkt_estimate_options options = CLAMPED;
    struct spread ours = {{0}, {0}}, plugin = {{0}, {0}};
    double truth[12], u = noise.unit;
    struct fkt_rng rng;
    for (size_t i = 0, p = 0; i < 3; i++) {
        truth[i] = sum[i] / n * u;
        for (size_t j = i; j < 3; j++, p++)
            truth[3 + 3 * i + j] = truth[3 + 3 * j + i] = (moment[p] / n - sum[i] * sum[j] / (n * n)) * u * u;
    }
    fkt_rng_init(&rng, seed, 0);
    for (int d = 0; d < DRAWS; d++) {
        struct fkt_gaussians g;
        int64_t b[10];
        double x[12];
        b[0] = llround(n + noise.sigma_count * fkt_rng_normal(&rng));
        for (int i = 0; i < 3; i++) b[1 + i] = llround(sum[i] + noise.sigma_sum * fkt_rng_normal(&rng));
        for (int p = 0; p < 6; p++)
            b[4 + p] = llround(moment[p] + noise.sigma_moment * (p == 0 || p == 3 || p == 5 ? 1 : sqrt(0.5)) *
                                               fkt_rng_normal(&rng));
        CHECK_OK(fkt_gaussians_estimate(&g, b, 1, 3, &noise, &options));
        memcpy(x, g.mean, 3 * sizeof *x);
        memcpy(x + 3, g.cov, 9 * sizeof *x);
        spread_add(&ours, x);
        for (size_t i = 0, p = 4; i < 3; i++) {
            x[i] = (double)b[1 + i] / (double)b[0] * u;
            for (size_t j = i; j < 3; j++, p++)
                x[3 + 3 * i + j] = x[3 + 3 * j + i] =
                    ((double)b[p] / (double)b[0] - (double)b[1 + i] * (double)b[1 + j] / (double)(b[0] * b[0])) * u * u;
        }
        spread_add(&plugin, x);
        fkt_gaussians_clear(&g);
    }
    CHECK(spread_worst(&ours, truth) < 5);
    CHECK(spread_worst(&plugin, truth) > 20);
}

/* 9 different entries, 5 standard errors, two settings: a right estimator fails for one pair of seeds in 97,000. The
 * plug-in M/N - S S^T/N^2 must be seen to fail, first by the noise of the count (s_n/n = 0.15), then of the sum. */
static void estimate_is_unbiased(void **state)
{
    (void)state;
    unbiased_under((struct fkt_noise_scale){15, 300, 15000, 0.5, 0, 0, 0}, 3);
    unbiased_under((struct fkt_noise_scale){1, 2500, 15000, 0.5, 0, 0, 0}, 4);
}

static void no_noise_is_the_plain_formula(void **state)
{
    const int64_t b[] = {4, 8, -4, 40, -20, 28}; /* n 4; S (8,-4); M ((40,-20),(-20,28)) */
    const struct fkt_noise_scale noise = {0, 0, 0, 0.5, 0, 0, 0};
    const double want[] = {(10 - 4) * 0.25, (-5 + 2) * 0.25, (-5 + 2) * 0.25, (7 - 1) * 0.25};
    (void)state;
    for (int e = 0; e < 2; e++) {
        const struct fkt_estimate_options options = {.estimator = e ? FKT_ESTIMATOR_RIE : FKT_ESTIMATOR_CLAMP};
        struct fkt_gaussians g;
        CHECK_OK(fkt_gaussians_estimate(&g, b, 1, 2, &noise, &options));
        CHECK(g.count[0] == 4 && g.mean[0] == 1 && g.mean[1] == -0.5);
        for (int i = 0; i < 4; i++) CHECK_NEAR(g.cov[i], want[i], 1e-14);
        CHECK(g.noise_edge[0] == 0 && g.mean_noise[0] == 0 && g.signal[0] == 1e9);
        fkt_gaussians_clear(&g);
    }
}

/* A class without records: pure noise, finite numbers, a positive covariance, and no signal. */
static void an_empty_class_is_reported(void **state)
{
    enum { M = 40, BLOCK = 41 * 42 / 2 };
    const struct fkt_noise_scale noise = {30, 2000, 280000, 1.0 / 256, 0, 0, 0};
    int64_t b[2 * BLOCK];
    struct fkt_rng rng;
    (void)state;
    fkt_rng_init(&rng, 5, 0);
    for (int c = 0; c < 2; c++) {
        int64_t *p = b + c * BLOCK;
        *p++ = c ? 5000 : -12;
        for (int i = 0; i < M; i++) *p++ = llround(noise.sigma_sum * fkt_rng_normal(&rng));
        for (int i = 0; i < M; i++)
            for (int j = i; j < M; j++)
                *p++ = llround((c && i == j && i < 4 ? 5000 * 9000.0 : 0) +
                               noise.sigma_moment * (i == j ? 1 : sqrt(0.5)) * fkt_rng_normal(&rng));
    }
    for (int e = 0; e < 2; e++) {
        const struct fkt_estimate_options options = {.estimator = e ? FKT_ESTIMATOR_RIE : FKT_ESTIMATOR_CLAMP};
        struct fkt_gaussians g;
        CHECK_OK(fkt_gaussians_estimate(&g, b, 2, M, &noise, &options));
        CHECK(g.count[0] == 1 && g.signal[0] < 1.3 && g.signal[1] > 10);
        for (size_t i = 0; i < 2 * M * M; i++) CHECK(isfinite(g.cov[i]) && isfinite(g.factor[i]));
        for (size_t i = 0; i < M; i++) CHECK(g.cov[i * M + i] > 0);
        fkt_gaussians_clear(&g);
    }
}

static void one_dimension(void **state)
{
    const int64_t b[] = {10, 20, 10};
    const struct fkt_noise_scale noise = {1, 2, 3, 1, 0, 0, 0};
    const struct fkt_estimate_options options = SHRUNK;
    struct fkt_gaussians g;
    (void)state;
    CHECK_OK(fkt_gaussians_estimate(&g, b, 1, 1, &noise, &options)); /* raw variance is negative: floored, not zero */
    CHECK(g.cov[0] > 0 && g.cov[0] <= 1e-6 && g.signal[0] == 0);
    fkt_gaussians_clear(&g);
}

/* FKT_ESTIMATOR_RAW: the covariance of estimate.md 2, negative eigenvalues and all; the factor is that of the clamped
 * one. */
static void raw_is_left_alone(void **state)
{
    const int64_t b[] = {10, 20, 10, 10, 0, 90};
    const struct fkt_noise_scale noise = {0, 0, 3, 0.5, 0, 0, 0};
    const struct fkt_estimate_options raw = {.estimator = FKT_ESTIMATOR_RAW}, clamp = CLAMPED;
    struct fkt_gaussians g, c;
    (void)state;
    CHECK_OK(fkt_gaussians_estimate(&g, b, 1, 2, &noise, &raw));
    CHECK_OK(fkt_gaussians_estimate(&c, b, 1, 2, &noise, &clamp));
    CHECK_NEAR(g.cov[0], (1 - 4) * 0.25, 1e-15); /* M/n - (S/n)^2, in units of w */
    CHECK_NEAR(g.cov[1], (0 - 2) * 0.25, 1e-15);
    CHECK_NEAR(g.cov[3], (9 - 1) * 0.25, 1e-15);
    CHECK(g.cov[1] == g.cov[2] && g.noise_edge[0] == c.noise_edge[0] && g.signal[0] == c.signal[0]);
    for (size_t i = 0; i < 4; i++) CHECK(g.factor[i] == c.factor[i]);
    fkt_gaussians_clear(&g);
    fkt_gaussians_clear(&c);
}

static void bad_arguments_are_named(void **state)
{
    const int64_t b[] = {10, 20, 60};
    const struct fkt_noise_scale good = {1, 2, 3, 1, 0, 0, 0};
    const struct fkt_estimate_options o = SHRUNK;
    struct fkt_noise_scale n;
    struct fkt_estimate_options p;
    struct fkt_gaussians g;
    (void)state;
    CHECK_STATUS(fkt_gaussians_estimate(&g, b, 0, 1, &good, &o), FKT_E_ARG);
    CHECK_STATUS(fkt_gaussians_estimate(&g, b, 1, 0, &good, &o), FKT_E_ARG);
    CHECK_STATUS(fkt_gaussians_estimate(&g, b, 1, UINT32_MAX, &good, &o), FKT_E_ARG);
    for (int i = 0; i < 3; i++) {
        n = good;
        *(i == 0 ? &n.sigma_count : i == 1 ? &n.sigma_sum : &n.sigma_moment) = i == 1 ? NAN : -1;
        CHECK_STATUS(fkt_gaussians_estimate(&g, b, 1, 1, &n, &o), FKT_E_ARG);
    }
    n = good;
    n.unit = 0;
    CHECK_STATUS(fkt_gaussians_estimate(&g, b, 1, 1, &n, &o), FKT_E_ARG);
    n.unit = 1e200; /* a covariance beyond the range of a double */
    CHECK_STATUS(fkt_gaussians_estimate(&g, b, 1, 1, &n, &o), FKT_E_NUMERIC);
    p = o, p.tau = NAN;
    CHECK_STATUS(fkt_gaussians_estimate(&g, b, 1, 1, &good, &p), FKT_E_ARG);
    p = o, p.pool = 1.5;
    CHECK_STATUS(fkt_gaussians_estimate(&g, b, 1, 1, &good, &p), FKT_E_ARG);
    p = o, p.estimator = (enum fkt_estimator)7;
    CHECK_STATUS(fkt_gaussians_estimate(&g, b, 1, 1, &good, &p), FKT_E_ARG);
    CHECK(g.cov == NULL && fkt_alloc_live() == 0);
}

/* One thread where the process may run on one processor alone, and several. */
static void threads_do_not_matter(void **state)
{
    enum { CLASSES = 5, LENGTH = 52, BLOCK = 1 + LENGTH + LENGTH * (LENGTH + 1) / 2 };
    const struct fkt_estimate_options options = {.estimator = FKT_ESTIMATOR_RIE, .pool = 0.25};
    const struct fkt_noise_scale noise = {.sigma_count = 3, .sigma_sum = 40, .sigma_moment = 60, .unit = 1.0 / 64};
    static int64_t noised[CLASSES * BLOCK];
    struct fkt_gaussians g[2];
    struct fkt_rng r;
    cpu_set_t all, one;
    (void)state;
    fkt_rng_init(&r, 4, 1);
    for (size_t i = 0; i < CLASSES * BLOCK; i++)
        noised[i] = i % BLOCK ? (int64_t)(20000 * fkt_rng_unit(&r)) - 10000 : 500;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    CHECK_OK(fkt_gaussians_estimate(&g[0], noised, CLASSES, LENGTH, &noise, &options));
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK_OK(fkt_gaussians_estimate(&g[1], noised, CLASSES, LENGTH, &noise, &options));
    CHECK(sched_setaffinity(0, sizeof all, &all) == 0);
    assert_memory_equal(g[0].cov, g[1].cov, sizeof(double) * CLASSES * LENGTH * LENGTH);
    assert_memory_equal(g[0].factor, g[1].factor, sizeof(double) * CLASSES * LENGTH * LENGTH);
    assert_memory_equal(g[0].signal, g[1].signal, sizeof(double) * CLASSES);
    CHECK(g[0].signal[CLASSES - 1] > 0 && g[0].noise_edge[CLASSES - 1] > 0);
    fkt_gaussians_clear(&g[0]);
    fkt_gaussians_clear(&g[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_vectors),
        cmocka_unit_test(estimate_is_unbiased),
        cmocka_unit_test(no_noise_is_the_plain_formula),
        cmocka_unit_test(an_empty_class_is_reported),
        cmocka_unit_test(one_dimension),
        cmocka_unit_test(raw_is_left_alone),
        cmocka_unit_test(bad_arguments_are_named),
        cmocka_unit_test(threads_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
