/* SPDX-License-Identifier: Apache-2.0 */
/* The count of a class from the noisy count and from the trace of its second moment (estimate.md 5): real records in
 * gain-shape coordinates, quantised, with fresh noise in each of many draws. Seeds are fixed. */
#include "base/rng.h"
#include "fedkt/advanced/moments.h"
#include "fedkt/advanced/synth.h"
#include "tests/support/layouts.h"
#include "tests/support/check.h"

enum { RECORDS = 300, DIM_MAX = 16, BLOCK_MAX = (DIM_MAX + 2) * (DIM_MAX + 3) / 2 };

struct scene {
    size_t d, m, n, block;
    int64_t exact[BLOCK_MAX], noised[BLOCK_MAX];
    struct fkt_noise_scale with, without; /* with the direction given, and without */
    struct fkt_rng rng;
};

/* n records of d directions, one strong, round a mean. */
static void set_scene(struct scene *s, size_t d, size_t n, const double sigma[3], uint64_t seed)
{
    struct fkt_coordinates c;
    struct fkt_moments *moments = NULL;
    const int64_t *packed;
    struct fkt_direction direction;
    memset(s, 0, sizeof *s);
    s->d = d, s->m = d + 1, s->n = n;
    s->block = fkt_moments_block(s->m);
    fkt_rng_init(&s->rng, seed, 0);
    CHECK_OK(fkt_coordinates_gain_shape(&c, (uint32_t)d, 256, 0.35, 1.0, 1.0));
    CHECK_OK(fkt_moments_new(&moments, 1, ONE_PART((uint32_t)s->m, c.rq), 0));
    for (size_t r = 0; r < n; r++) {
        double u[DIM_MAX], w[DIM_MAX + 1];
        const uint32_t label = 0;
        int32_t q[DIM_MAX + 1];
        for (size_t i = 0; i < d; i++) u[i] = (i == 0 ? 3 : 1) * fkt_rng_normal(&s->rng) + (i == 1);
        CHECK_OK(fkt_coordinates_forward(&c, u, w));
        CHECK_OK(fkt_quantise(&c, w, q));
        CHECK_OK(fkt_moments_add(moments, &label, q, 1));
    }
    CHECK_OK(fkt_moments_packed(moments, &packed));
    memcpy(s->exact, packed, s->block * sizeof *packed);
    fkt_moments_free(moments);
    direction = fkt_coordinates_direction(&c);
    CHECK(direction.length == d);
    s->with = (struct fkt_noise_scale){sigma[0],         sigma[1],         sigma[2],       c.radius / c.rq,
                                       direction.length, direction.square, direction.slack};
    s->without = (struct fkt_noise_scale){sigma[0], sigma[1], sigma[2], c.radius / c.rq, 0, 0, 0};
}

static void draw_noise(struct scene *s)
{
    const struct fkt_noise_scale *x = &s->with;
    int64_t *p = s->noised;
    memcpy(s->noised, s->exact, sizeof s->exact);
    *p++ += llround(x->sigma_count * fkt_rng_normal(&s->rng));
    for (size_t i = 0; i < s->m; i++) *p++ += llround(x->sigma_sum * fkt_rng_normal(&s->rng));
    for (size_t i = 0; i < s->m; i++)
        for (size_t j = i; j < s->m; j++)
            *p++ += llround(x->sigma_moment * (i == j ? 1 : sqrt(0.5)) * fkt_rng_normal(&s->rng));
}

static void estimate(struct fkt_gaussians *g, const struct scene *s, const struct fkt_noise_scale *x)
{
    const struct fkt_estimate_options raw = {.estimator = FKT_ESTIMATOR_RAW};
    CHECK_OK(fkt_gaussians_estimate(g, s->noised, 1, (uint32_t)s->m, x, &raw));
}

/* Mean (m) and covariance (m,m) without noise. */
static void truth_of(double *mean, double *cov, struct scene *s)
{
    const struct fkt_noise_scale none = {.unit = s->with.unit};
    struct fkt_gaussians g;
    memcpy(s->noised, s->exact, sizeof s->exact);
    estimate(&g, s, &none);
    memcpy(mean, g.mean, s->m * sizeof *mean);
    memcpy(cov, g.cov, s->m * s->m * sizeof *cov);
    fkt_gaussians_clear(&g);
}

static const double EPSILON_1[3] = {37.3, 7.62 * 256, 4.31 * 65536}; /* epsilon 1, delta 1e-5, budget split 1/24/75 */

/* 4,000 draws: a mean square has a relative standard error of 2.2 %, and 11 % are five of them, so a right estimator
 * fails for one seed in 870,000. The noisy count alone would be 4.7 times the stated variance. */
static void two_counts_are_better_than_one(void **state)
{
    enum { DRAWS = 4000 };
    struct scene s;
    double alone = 0, both = 0, stated = 0;
    (void)state;
    set_scene(&s, DIM_MAX, RECORDS, EPSILON_1, 11);
    for (int i = 0; i < DRAWS; i++) {
        struct fkt_gaussians g;
        draw_noise(&s);
        estimate(&g, &s, &s.with);
        both += (g.count[0] - RECORDS) * (g.count[0] - RECORDS) / DRAWS;
        alone += ((double)s.noised[0] - RECORDS) * ((double)s.noised[0] - RECORDS) / DRAWS;
        stated += g.count_noise[0] * g.count_noise[0] / DRAWS;
        fkt_gaussians_clear(&g);
    }
    CHECK_REL(alone, 37.3 * 37.3, 0.11);
    CHECK_REL(both, stated, 0.11);
    CHECK_REL(sqrt(stated), 17.2, 0.01); /* 1/sqrt(1/37.3^2 + 1/19.35^2), 19.35 = sqrt(16) s_M R^2/Rq^2 */
}

/* n^ and the diagonal of M now carry common noise: without the term for it the diagonal would be low by (s/n)^2 =
 * 2 % of its average, ten standard errors. 12 entries of a mean and a covariance, five standard errors: one right
 * estimator in 87,000 fails. */
static void a_tied_count_leaves_no_bias(void **state)
{
    enum { D = 4, M = D + 1, DRAWS = 40000, N = 120 };
    const double sigma[3] = {24, 3 * 256, 12.0 / 1.1225 * 65536}; /* the trace as good as the count: s_T = 24 */
    double mean[M], cov[M * M], sum[M + M * M] = {0}, square[M + M * M] = {0}, n_sum = 0, n_square = 0;
    struct scene s;
    (void)state;
    set_scene(&s, D, N, sigma, 12);
    truth_of(mean, cov, &s);
    for (int i = 0; i < DRAWS; i++) {
        struct fkt_gaussians g;
        draw_noise(&s);
        estimate(&g, &s, &s.with);
        for (size_t j = 0; j < M + M * M; j++) {
            double x = j < M ? g.mean[j] - mean[j] : g.cov[j - M] - cov[j - M];
            sum[j] += x / DRAWS;
            square[j] += x * x / DRAWS;
        }
        n_sum += (g.count[0] - N) / DRAWS;
        n_square += (g.count[0] - N) * (g.count[0] - N) / DRAWS;
        fkt_gaussians_clear(&g);
    }
    for (size_t j = 0; j < M + M * M; j++)
        if (!(fabs(sum[j]) < 5 * sqrt(square[j] / DRAWS)))
            fail_msg("entry %zu is off by %g, %g standard errors", j, sum[j], sum[j] / sqrt(square[j] / DRAWS));
    CHECK(fabs(n_sum) < 5 * sqrt(n_square / DRAWS));
}

struct errors {
    double mean, cov, trace;
};
static void add_errors(struct errors *e, const struct fkt_gaussians *g, const struct scene *s, const double *mean,
                       const double *cov)
{
    double trace = 0;
    for (size_t i = 0; i < s->m; i++) {
        e->mean += (g->mean[i] - mean[i]) * (g->mean[i] - mean[i]);
        for (size_t j = 0; j < s->m; j++) {
            double x = g->cov[i * s->m + j] - cov[i * s->m + j];
            e->cov += x * x;
            if (i == j && i < s->d) trace += x;
        }
    }
    e->trace += trace * trace;
}

/* The same draws with and without the second count: no error may grow, and that of the scale must almost go. 2,000
 * draws shared by both; the difference of the two Frobenius errors is more than twenty of its standard errors. */
static void no_error_grows(void **state)
{
    enum { DRAWS = 2000 };
    double mean[DIM_MAX + 1], cov[(DIM_MAX + 1) * (DIM_MAX + 1)];
    struct errors with = {0}, without = {0};
    struct scene s;
    (void)state;
    set_scene(&s, DIM_MAX, RECORDS, EPSILON_1, 13);
    truth_of(mean, cov, &s);
    for (int i = 0; i < DRAWS; i++) {
        struct fkt_gaussians g, plain;
        draw_noise(&s);
        estimate(&g, &s, &s.with);
        estimate(&plain, &s, &s.without);
        add_errors(&with, &g, &s, mean, cov);
        add_errors(&without, &plain, &s, mean, cov);
        fkt_gaussians_clear(&g);
        fkt_gaussians_clear(&plain);
    }
    CHECK(with.mean < without.mean);
    CHECK(with.cov < 0.98 * without.cov);
    CHECK(with.trace < 0.1 * without.trace);
}

static void without_noise_nothing_changes(void **state)
{
    const double none[3] = {0, 0, 0};
    struct fkt_gaussians g, plain;
    struct scene s;
    (void)state;
    set_scene(&s, 4, 50, none, 14);
    memcpy(s.noised, s.exact, sizeof s.exact);
    estimate(&g, &s, &s.with);
    estimate(&plain, &s, &s.without);
    CHECK(g.count[0] == 50 && g.count_noise[0] == 0);
    for (size_t i = 0; i < s.m; i++) CHECK(g.mean[i] == plain.mean[i]);
    for (size_t i = 0; i < s.m * s.m; i++) CHECK(g.cov[i] == plain.cov[i]);
    fkt_gaussians_clear(&g);
    fkt_gaussians_clear(&plain);
}

/* Counts are public under `replace`: they stay as they are, and the trace takes the value that they say. */
static void public_counts_set_the_trace(void **state)
{
    const double sigma[3] = {0, 0, 4.31 * 65536};
    double trace = 0;
    struct fkt_gaussians g;
    struct scene s;
    (void)state;
    set_scene(&s, DIM_MAX, RECORDS, sigma, 15);
    draw_noise(&s);
    estimate(&g, &s, &s.with);
    CHECK(g.count[0] == RECORDS && g.count_noise[0] == 0);
    for (size_t i = 0; i < s.d; i++) trace += g.cov[i * s.m + i] + g.mean[i] * g.mean[i];
    CHECK_NEAR(trace, 1, 0.01);
    fkt_gaussians_clear(&g);
}

static void a_direction_that_cannot_be_is_refused(void **state)
{
    const double none[3] = {0, 0, 0};
    const struct fkt_estimate_options raw = {.estimator = FKT_ESTIMATOR_RAW};
    struct fkt_noise_scale bad[4];
    struct fkt_gaussians g;
    struct scene s;
    (void)state;
    set_scene(&s, 4, 50, none, 16);
    for (int i = 0; i < 4; i++) bad[i] = s.with;
    bad[0].direction = (uint32_t)s.m + 1;
    bad[1].direction_square = 0;
    bad[2].direction_square = NAN;
    bad[3].direction_slack = -1;
    for (int i = 0; i < 4; i++)
        CHECK_STATUS(fkt_gaussians_estimate(&g, s.exact, 1, (uint32_t)s.m, &bad[i], &raw), FKT_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_counts_are_better_than_one),
        cmocka_unit_test(a_tied_count_leaves_no_bias),
        cmocka_unit_test(no_error_grows),
        cmocka_unit_test(without_noise_nothing_changes),
        cmocka_unit_test(public_counts_set_the_trace),
        cmocka_unit_test(a_direction_that_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
