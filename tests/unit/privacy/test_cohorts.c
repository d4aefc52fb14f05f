/* SPDX-License-Identifier: Apache-2.0 */
/* The noise of a sum of cohorts is the formula of src/privacy/cohorts.md, its promise that of the costliest cohort; and
 * totals that are really drawn have that variance. */
#include "fedkt/advanced/privacy.h"
#include "fedkt/layout.h"

#include "tests/support/check.h"

#define T(f) cmocka_unit_test(f)

static const struct fkt_privacy_spec spec = {
    .epsilon = 1, .delta = 1e-5, .split_count = 1, .parts = 1, .part = {{256, 24, 75}}};

/* (sum S_c/n_c) (sum n_c)/(sum S_c) */
static double factor(const struct fkt_cohort *c, size_t n)
{
    double ratios = 0, counted = 0, survivors = 0;
    for (size_t i = 0; i < n; i++) {
        const double here = c[i].sites - c[i].dropped - c[i].corrupt;
        ratios += c[i].survivors / here;
        counted += here;
        survivors += c[i].survivors;
    }
    return ratios * counted / survivors;
}

static void equal_cohorts_cost_their_number(void **state)
{
    struct fkt_cohort c[100];
    struct fkt_cohorts_noise one, all;
    struct fkt_share_plan plan;
    (void)state;
    for (int i = 0; i < 100; i++) c[i] = (struct fkt_cohort){1000, 100, 100, (uint32_t)(900 + i)};
    CHECK_OK(fkt_privacy_plan_shares(&plan, &spec, 800, 1000));
    CHECK_OK(fkt_privacy_cohorts(&one, &spec, c, 1));
    CHECK_NEAR(one.variance_factor, 1, 1e-12);
    CHECK(one.plan.mu == plan.plan.mu);
    CHECK_OK(fkt_privacy_cohorts(&all, &spec, c, 100));
    CHECK_NEAR(all.variance_factor, 100, 1e-4); /* 3 in the variance, and rounding up to 40 bits */
    CHECK(all.plan.mu == plan.plan.mu);
    CHECK(all.sites == 100000 && all.counted == 80000 && all.survivors == 94950);
}

static void uneven_cohorts(void **state)
{
    const struct fkt_cohort c[] = {{1000, 100, 100, 930}, {40, 4, 4, 40}, {300, 60, 30, 250}, {1000, 100, 100, 1000}};
    const struct fkt_cohort same[] = {{1900, 190, 190, 1900}, {100, 10, 10, 100}};
    struct fkt_cohorts_noise got;
    struct fkt_share_plan plan;
    struct fkt_sigmas s;
    double count = 0, sum = 0, moment = 0, cross = 0, mu = 0;
    (void)state;
    CHECK_OK(fkt_privacy_cohorts(&got, &spec, c, 4));
    for (int i = 0; i < 4; i++) {
        CHECK_OK(fkt_privacy_plan_shares(&plan, &spec, c[i].sites - c[i].dropped - c[i].corrupt, c[i].sites));
        CHECK_OK(fkt_privacy_total_sigmas(&s, &plan, c[i].survivors));
        count += s.count * s.count;
        sum += s.part[0].sum * s.part[0].sum;
        moment += s.part[0].moment * s.part[0].moment;
        cross += s.part[0].cross * s.part[0].cross;
        mu = fmax(mu, plan.plan.mu);
    }
    CHECK_REL(got.sigma.count, sqrt(count), 1e-12);
    CHECK_REL(got.sigma.part[0].sum, sqrt(sum), 1e-12);
    CHECK_REL(got.sigma.part[0].moment, sqrt(moment), 1e-12);
    CHECK_REL(got.sigma.part[0].cross, sqrt(cross), 1e-12);
    CHECK(got.plan.mu == mu && got.plan.epsilon_spent <= spec.epsilon);
    CHECK_REL(got.variance_factor, factor(c, 4), 1e-5);
    CHECK_OK(fkt_privacy_cohorts(&got, &spec, same, 2));
    CHECK_NEAR(got.variance_factor, 2, 1e-5);
}

/* A share of one cohort of all sites would be raised to a variance of 4, so the split costs less than its number. */
static void the_floor_of_a_share(void **state)
{
    struct fkt_privacy_spec weak = spec;
    struct fkt_cohort c[40];
    struct fkt_cohorts_noise got;
    (void)state;
    weak.epsilon = 10;
    weak.part[0].radius = 64;
    for (int i = 0; i < 40; i++) c[i] = (struct fkt_cohort){2000, 200, 200, 2000};
    CHECK_OK(fkt_privacy_cohorts(&got, &weak, c, 40));
    CHECK(got.variance_factor > 1 && got.variance_factor <= 40 * (1 + 1e-9));
    CHECK(got.plan.epsilon_spent <= 10);
}

static void what_is_refused(void **state)
{
    const struct fkt_cohort lost = {100, 10, 10, 89}, more = {100, 10, 10, 101}, all = {10, 5, 5, 10}, none = {0};
    struct fkt_cohorts_noise got;
    (void)state;
    CHECK_STATUS(fkt_privacy_cohorts(&got, &spec, &lost, 1), FKT_E_ARG);
    CHECK(got.sigma.count == 0 && got.plan.mu == 0);
    CHECK_STATUS(fkt_privacy_cohorts(&got, &spec, &more, 1), FKT_E_ARG);
    CHECK_STATUS(fkt_privacy_cohorts(&got, &spec, &all, 1), FKT_E_ARG);
    CHECK_STATUS(fkt_privacy_cohorts(&got, &spec, &none, 1), FKT_E_ARG);
    CHECK_STATUS(fkt_privacy_cohorts(&got, &spec, &lost, 0), FKT_E_ARG);
}

/* 3 cohorts of 5 sites, 300 times 45 second moments off the diagonal: the mean square of n draws has a standard error
 * of sqrt(2/n) of itself; beyond 6 of them a right sum fails about once in 5e8 runs. Noise is from the system. */
static void drawn_totals_have_this_variance(void **state)
{
    enum { M = 10, CROSS = M * (M - 1) / 2, RUNS = 300, NUMBERS = 1 + M + M * (M + 1) / 2 };
    const struct fkt_moments_layout layout = {.parts = 1, .length = {M}, .rq = {256}};
    const struct fkt_cohort c[3] = {{5, 1, 1, 5}, {6, 1, 1, 5}, {5, 0, 1, 5}};
    const int64_t exact[NUMBERS] = {0};
    int64_t share[NUMBERS], total[NUMBERS];
    struct fkt_cohorts_noise want;
    struct fkt_share_plan plan;
    double squares = 0, variance;
    (void)state;
    CHECK_OK(fkt_privacy_cohorts(&want, &spec, c, 3));
    for (int run = 0; run < RUNS; run++) {
        int64_t sum[NUMBERS] = {0};
        for (int i = 0; i < 3; i++) {
            CHECK_OK(fkt_privacy_plan_shares(&plan, &spec, c[i].sites - c[i].dropped - c[i].corrupt, c[i].sites));
            memset(total, 0, sizeof total);
            for (uint32_t s = 0; s < c[i].survivors; s++) {
                CHECK_OK(fkt_privacy_share(share, exact, 1, &layout, &plan, NULL));
                for (int k = 0; k < NUMBERS; k++) total[k] += share[k];
            }
            CHECK_OK(fkt_privacy_gather(total, total, 1, &layout, &plan, c[i].survivors));
            for (int k = 0; k < NUMBERS; k++) sum[k] += total[k];
        }
        for (int i = 0, k = 1 + M; i < M; i++)
            for (int j = i; j < M; j++, k++)
                if (j > i) squares += (double)sum[k] * (double)sum[k];
    }
    variance = want.sigma.part[0].cross * want.sigma.part[0].cross;
    CHECK_REL(squares / (RUNS * CROSS), variance, 6 * sqrt(2.0 / (RUNS * CROSS)));
}

/* oracle/cohorts.py, covered_by, with 30 digits. */
static void colluding_sites_that_are_covered(void **state)
{
    const struct fkt_cohort few[] = {{21, 3, 3, 21}, {22, 3, 3, 22}, {17, 2, 2, 17}};
    const struct fkt_cohort mixed[] = {{100, 1, 10, 100}, {150, 1, 15, 150}, {50, 1, 5, 50}};
    const struct fkt_cohort none[] = {{100, 1, 10, 100}, {100, 1, 0, 100}};
    struct fkt_cohort c[100];
    (void)state;
    for (int i = 0; i < 100; i++) c[i] = (struct fkt_cohort){1000, 100, 100, 1000};
    CHECK(fkt_privacy_covered(100000, c, 100) == 4355);
    for (int i = 0; i < 100; i++) c[i].corrupt = 20;
    CHECK(fkt_privacy_covered(100000, c, 100) == 215);
    CHECK(fkt_privacy_covered(60, few, 3) == 2 && fkt_privacy_covered(300, mixed, 3) == 5);
    CHECK(fkt_privacy_covered(200, none, 2) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {T(colluding_sites_that_are_covered),
                                       T(equal_cohorts_cost_their_number),
                                       T(uneven_cohorts),
                                       T(the_floor_of_a_share),
                                       T(what_is_refused),
                                       T(drawn_totals_have_this_variance)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
