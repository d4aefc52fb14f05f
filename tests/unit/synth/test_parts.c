/* SPDX-License-Identifier: Apache-2.0 */
/* Gaussians of one part of a record vector of several: against the reference, against the estimate of one part alone,
 * and over many draws of noise. Seeds are fixed. */
#include "base/file.h"
#include "base/rng.h"
#include "fedkt/advanced/synth.h"
#include "tests/support/check.h"

#include <sys/resource.h>

static const struct fkt_estimate_options raw = {.estimator = FKT_ESTIMATOR_RAW};

static void near_all(const double *got, const double **want, size_t n, double rel, const char *what)
{
    double top = 0;
    for (size_t i = 0; i < n; i++) top = fmax(top, fabs((*want)[i]));
    for (size_t i = 0; i < n; i++)
        if (!(fabs(got[i] - (*want)[i]) <= rel * top))
            fail_msg("%s[%zu]: got %.17g, want %.17g", what, i, got[i], (*want)[i]);
    *want += n;
}

static void compare(const double **want, const int64_t *noised, size_t k, const struct fkt_layout_noise *l,
                    uint32_t part)
{
    struct fkt_gaussians g;
    size_t m = l->part[part].length;
    CHECK_OK(fkt_gaussians_estimate_part(&g, noised, (uint32_t)k, l, part, &raw));
    CHECK(g.part == part && g.length == m);
    near_all(g.count, want, k, 1e-10, "count");
    near_all(g.count_noise, want, k, 1e-10, "count_noise");
    near_all(g.mean, want, k * m, 1e-10, "mean");
    for (size_t c = 0; c < k; c++) near_all(g.cov + (g.pooled ? 0 : c * m * m), want, m * m, 1e-9, "cov");
    near_all(g.noise_edge, want, k, 1e-10, "noise_edge");
    near_all(g.mean_noise, want, k, 1e-10, "mean_noise");
    near_all(g.signal, want, k, 1e-9, "signal");
    fkt_gaussians_clear(&g);
}

/* tests/vectors/synth/parts.bin: made by oracle/synth.py, which solves for all counts and diagonals at once. */
static void golden_vectors(void **state)
{
    uint8_t *bytes = NULL;
    size_t len, k;
    (void)state;
    CHECK_OK(fkt_file_read(&bytes, &len, FKT_TEST_VECTORS "/synth/parts.bin", 1 << 20));
    k = (size_t)((const int64_t *)(void *)bytes)[0];
    CHECK(k == 3 && len == 8 * (17 + k * 24 + k * 8 + 16 + k * 36 + k * (2 * (25 + 17) + 61)));
    const double *x = (const double *)(void *)bytes + 1;
    const struct fkt_part_noise part[] = {{4, x[1], x[2], x[3]}, {3, x[6], x[7], x[8]}},
                                wide = {7, x[11], x[12], x[13]};
    const struct fkt_known_length known[] = {{0, 0, 3, x[4], x[5]}, {1, 0, 2, x[9], x[10]}},
                                  runs[] = {{0, 0, 3, x[14], x[15]}, {0, 4, 2, x[14], x[15]}};
    const struct fkt_layout_noise apart = {x[0], 0, part, 2, known, 2}, pooled = {x[0], 1, part, 2, known, 2},
                                  joined = {x[0], 0, &wide, 1, runs, 2};
    const int64_t *noised = (const int64_t *)(const void *)(x + 16), *once = noised + k * 24, *both = once + k * 8 + 16;
    const double *want = (const double *)(const void *)(both + k * 36);
    compare(&want, noised, k, &apart, 0);
    compare(&want, noised, k, &apart, 1);
    compare(&want, once, k, &pooled, 0);
    compare(&want, once, k, &pooled, 1);
    compare(&want, both, k, &joined, 0);
    CHECK((const uint8_t *)want == bytes + len);
    fkt_free(bytes);
    CHECK(fkt_alloc_live() == 0);
}

enum { A = 3, B = 2, CLASSES = 2, BY_CLASS = 1 + A + 6 + B + 3, HEAD = 1 + A + B };

/* Exact moments of records (v, g): v of square length 10,000 in its first A - 1 (B - 1) coordinates. */
struct scene {
    double count[CLASSES], sum[CLASSES][A + B], moment[CLASSES][A + B][A + B];
    struct fkt_part_noise part[2];
    struct fkt_known_length known[2];
    struct fkt_layout_noise noise;
    struct fkt_rng rng;
};

static void set_scene(struct scene *s, int pooled, uint64_t seed)
{
    memset(s, 0, sizeof *s);
    fkt_rng_init(&s->rng, seed, 0);
    for (int k = 0; k < CLASSES; k++) {
        s->count[k] = 60 + 60 * k;
        for (int r = 0; r < (int)s->count[k]; r++) {
            double turn = 0.5 * k + 0.4 * fkt_rng_normal(&s->rng), x[A + B];
            x[0] = 100 * cos(turn), x[1] = 100 * sin(turn), x[2] = 20 * fkt_rng_normal(&s->rng) + 30 * k;
            x[3] = 100, x[4] = 25 * fkt_rng_normal(&s->rng) - 10 * k;
            for (int i = 0; i < A + B; i++) {
                s->sum[k][i] += x[i];
                for (int j = 0; j < A + B; j++) s->moment[k][i][j] += x[i] * x[j];
            }
        }
    }
    s->part[0] = (struct fkt_part_noise){A, 300, 60000, 0.5};
    s->part[1] = (struct fkt_part_noise){B, 200, 50000, 0.25};
    s->known[0] = (struct fkt_known_length){0, 0, A - 1, 10000, 0};
    s->known[1] = (struct fkt_known_length){1, 0, B - 1, 10000, 0};
    s->noise = (struct fkt_layout_noise){9, pooled, s->part, 2, s->known, 2};
}

static int64_t noisy(struct scene *s, double x, double sigma) { return llround(x + sigma * fkt_rng_normal(&s->rng)); }

static int64_t *put_moment(struct scene *s, int64_t *p, int part, int k)
{
    int from = part ? A : 0, to = part ? A + B : A;
    for (int i = from; i < to; i++)
        for (int j = i; j < to; j++) {
            double x = k < 0 ? s->moment[0][i][j] + s->moment[1][i][j] : s->moment[k][i][j];
            *p++ = noisy(s, x, s->part[part].sigma_moment * (i == j ? 1 : sqrt(0.5)));
        }
    return p;
}

static void draw(struct scene *s, int64_t *p)
{
    for (int k = 0; k < CLASSES; k++) {
        *p++ = noisy(s, s->count[k], s->noise.sigma_count);
        for (int i = 0; i < A; i++) *p++ = noisy(s, s->sum[k][i], s->part[0].sigma_sum);
        if (!s->noise.pooled) p = put_moment(s, p, 0, k);
        for (int i = A; i < A + B; i++) *p++ = noisy(s, s->sum[k][i], s->part[1].sigma_sum);
        if (!s->noise.pooled) p = put_moment(s, p, 1, k);
    }
    for (int part = 0; part < 2 && s->noise.pooled; part++) p = put_moment(s, p, part, -1);
}

static double true_cov(const struct scene *s, int k, int i, int j)
{
    double c = 0, n = 0;
    if (!s->noise.pooled)
        return s->moment[k][i][j] / s->count[k] - s->sum[k][i] * s->sum[k][j] / (s->count[k] * s->count[k]);
    for (int l = 0; l < CLASSES; l++) {
        c += s->moment[l][i][j] - s->sum[l][i] * s->sum[l][j] / s->count[l];
        n += s->count[l];
    }
    return c / n;
}

struct mean {
    double sum, square;
};
static void add(struct mean *m, double x) { m->sum += x, m->square += x * x; }
static double off(const struct mean *m, double truth, int n) /* in standard errors */
{
    double mean = m->sum / n, var = m->square / n - mean * mean;
    return fabs(mean - truth) / sqrt(var / n);
}

/* 40,000 draws; 30 different entries, five standard errors: one right estimator in 58,000 fails. Without the term for
 * the noise that count and diagonal have in common the diagonal would be more than ten off. */
static void unbiased(int pooled, uint64_t seed)
{
    enum { DRAWS = 40000 };
    static struct mean mean[2][CLASSES][A], cov[2][CLASSES][A][A], count[CLASSES];
    int64_t numbers[CLASSES * BY_CLASS];
    double stated = 0, spread = 0;
    struct scene s;
    memset(mean, 0, sizeof mean), memset(cov, 0, sizeof cov), memset(count, 0, sizeof count);
    set_scene(&s, pooled, seed);
    for (int d = 0; d < DRAWS; d++) {
        struct fkt_gaussians g[2];
        draw(&s, numbers);
        for (uint32_t p = 0; p < 2; p++)
            CHECK_OK(fkt_gaussians_estimate_part(&g[p], numbers, CLASSES, &s.noise, p, &raw));
        for (int k = 0; k < CLASSES; k++) {
            CHECK(g[0].count[k] == g[1].count[k] && g[0].count_noise[k] == g[1].count_noise[k]);
            add(&count[k], g[0].count[k]);
            stated = g[0].count_noise[k];
            for (uint32_t p = 0; p < 2; p++)
                for (size_t i = 0, m = g[p].length; i < m; i++) {
                    add(&mean[p][k][i], g[p].mean[k * m + i]);
                    for (size_t j = i; j < m; j++) add(&cov[p][k][i][j], g[p].cov[((pooled ? 0 : k) * m + i) * m + j]);
                }
        }
        for (uint32_t p = 0; p < 2; p++) fkt_gaussians_clear(&g[p]);
    }
    for (int k = 0; k < CLASSES; k++) {
        CHECK(off(&count[k], s.count[k], DRAWS) < 5);
        spread = count[k].square / DRAWS - (count[k].sum / DRAWS) * (count[k].sum / DRAWS);
        CHECK_REL(spread, stated * stated, 0.04); /* a variance of 40,000 has a standard error of 0.7 % */
        for (int p = 0; p < 2; p++)
            for (int i = 0, m = p ? B : A; i < m; i++) {
                int at = p ? A + i : i;
                double u = s.part[p].unit;
                CHECK(off(&mean[p][k][i], s.sum[k][at] / s.count[k] * u, DRAWS) < 5);
                for (int j = i; j < m; j++)
                    CHECK(off(&cov[p][k][i][j], true_cov(&s, k, at, p ? A + j : j) * u * u, DRAWS) < 5);
            }
    }
    /* inverse variances: 81, 2 * 36, 25; pooled: the class has half of what the total gains */
    if (!pooled) CHECK_NEAR(stated * stated, 1 / (1 / 81.0 + 1 / 72.0 + 1 / 25.0), 1e-9);
    else CHECK_NEAR(stated * stated, 81 - (162 - 1 / (1 / 162.0 + 1 / 72.0 + 1 / 25.0)) / 4, 1e-9);
}

static void several_parts_are_unbiased(void **state)
{
    (void)state;
    unbiased(0, 21);
}

static void pooled_moments_are_unbiased(void **state)
{
    (void)state;
    unbiased(1, 22);
}

/* A file of pooled moments is small for many classes; what is made of it must not be K times as large. One covariance
 * for all: 2000 of length 150 would be 720 MB, and its factor of every class. */
static void pooled_moments_need_one_covariance(void **state)
{
    enum { K = 2000, M = 150, NUMBERS = K * (1 + M) + M * (M + 1) / 2 };
    const struct fkt_part_noise part = {M, 100, 1000, 0.01};
    const struct fkt_layout_noise noise = {2, 1, &part, 1, NULL, 0};
    struct rusage before, after;
    struct fkt_gaussians g;
    double one[M], other[M];
    int64_t *numbers = NULL;
    (void)state;
    CHECK_OK(fkt_alloc(&numbers, NUMBERS));
    for (size_t k = 0; k < K; k++) numbers[k * (1 + M)] = 100;
    for (size_t i = 0, at = K * (1 + M); i < M; at += M - i++) numbers[at] = 100 * K * 400;
    getrusage(RUSAGE_SELF, &before);
    CHECK_OK(fkt_gaussians_estimate_part(&g, numbers, K, &noise, 0, &raw));
    getrusage(RUSAGE_SELF, &after);
    CHECK(g.pooled && after.ru_maxrss - before.ru_maxrss < 200 * 1024); /* KiB */
    for (size_t k = 1; k < K; k++) CHECK(g.noise_edge[k] == g.noise_edge[0] && g.signal[k] == g.signal[0]);
    CHECK_OK(fkt_gaussians_sample(&g, K - 1, 1, 0, 1, one));
    CHECK_OK(fkt_gaussians_sample(&g, 0, 1, 0, 1, other));
    for (size_t i = 0; i < M; i++) CHECK(isfinite(one[i]) && one[i] != other[i]);
    fkt_gaussians_clear(&g);
    fkt_free(numbers);
    CHECK(fkt_alloc_live() == 0);
}

/* Where no length is known, a part is estimated as if it were alone, to the bit. */
static void a_part_is_what_it_is_alone(void **state)
{
    int64_t numbers[CLASSES * BY_CLASS], alone[CLASSES * 6];
    struct fkt_gaussians g, h;
    struct fkt_noise_scale one;
    struct scene s;
    (void)state;
    set_scene(&s, 0, 23);
    s.noise.n_known = 0;
    draw(&s, numbers);
    for (size_t k = 0; k < CLASSES; k++) {
        alone[k * 6] = numbers[k * BY_CLASS];
        memcpy(alone + k * 6 + 1, numbers + k * BY_CLASS + 1 + A + 6, 5 * sizeof *alone);
    }
    one = (struct fkt_noise_scale){9, 200, 50000, 0.25, 0, 0, 0};
    CHECK_OK(fkt_gaussians_estimate_part(&g, numbers, CLASSES, &s.noise, 1, &raw));
    CHECK_OK(fkt_gaussians_estimate(&h, alone, CLASSES, B, &one, &raw));
    CHECK(!memcmp(g.cov, h.cov, CLASSES * B * B * sizeof *g.cov));
    CHECK(!memcmp(g.mean, h.mean, CLASSES * B * sizeof *g.mean) && g.count[1] == h.count[1] && h.part == 0);
    fkt_gaussians_clear(&g);
    fkt_gaussians_clear(&h);
}

static void what_does_not_fit_is_refused(void **state)
{
    int64_t numbers[CLASSES * BY_CLASS] = {0};
    struct fkt_gaussians g;
    struct scene s;
    (void)state;
    set_scene(&s, 0, 24);
    CHECK_STATUS(fkt_gaussians_estimate_part(&g, numbers, CLASSES, &s.noise, 2, &raw), FKT_E_ARG);
    s.part[1].sigma_sum = NAN;
    CHECK_STATUS(fkt_gaussians_estimate_part(&g, numbers, CLASSES, &s.noise, 0, &raw), FKT_E_ARG);
    set_scene(&s, 0, 24);
    s.known[1].part = 2;
    CHECK_STATUS(fkt_gaussians_estimate_part(&g, numbers, CLASSES, &s.noise, 0, &raw), FKT_E_ARG);
    set_scene(&s, 0, 24);
    s.known[1].first = 2;
    CHECK_STATUS(fkt_gaussians_estimate_part(&g, numbers, CLASSES, &s.noise, 0, &raw), FKT_E_ARG);
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_vectors),
        cmocka_unit_test(several_parts_are_unbiased),
        cmocka_unit_test(pooled_moments_are_unbiased),
        cmocka_unit_test(pooled_moments_need_one_covariance),
        cmocka_unit_test(a_part_is_what_it_is_alone),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
