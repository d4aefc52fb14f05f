/* SPDX-License-Identifier: Apache-2.0 */
#include "fedkt/privacy.h"
#include "tests/unit/privacy/csv.h"

static enum fkt_adjacency adjacency_of(const char *s)
{
    return !strcmp(s, "replace")       ? FKT_ADJACENCY_REPLACE
           : !strcmp(s, "replace-any") ? FKT_ADJACENCY_REPLACE_ANY
                                       : FKT_ADJACENCY_ADD_REMOVE;
}

/* Never less noise than the optimum to 25 digits, never more than 1e-4 above it. */
static void check_sigma(double got, const char *want_text, double eps, double delta)
{
    const long double want =
        strtold(want_text, NULL); /* 64 bits of mantissa: 1e-19 off at most, the plan's slack is 1e-10 */
    if (want == 0 && got == 0) return;
    if (!((long double)got / want >= 1 && (long double)got / want <= 1.0001L))
        fail_msg("epsilon %g delta %g: sigma %.17g, optimum %.20Lg", eps, delta, got, want);
}

static void sigmas_are_optimal_and_never_below(void **state)
{
    struct csv c;
    int rows = 0;
    (void)state;
    csv_open(&c, "calibration.csv");
    while (csv_next(&c, 11)) {
        struct fkt_privacy_plan p;
        struct fkt_privacy_spec s = {
            .epsilon = strtod(c.field[0], NULL),
            .delta = strtod(c.field[1], NULL),
            .adjacency = adjacency_of(c.field[2]),
            .mechanism = strcmp(c.field[3], "paper") ? FKT_MECHANISM_JOINT : FKT_MECHANISM_PAPER,
            .split_count = strtod(c.field[4], NULL),
            .parts = 1,
            .part = {{strtod(c.field[7], NULL), strtod(c.field[5], NULL), strtod(c.field[6], NULL)}}};
        CHECK_OK(fkt_privacy_plan(&p, &s));
        check_sigma(p.sigma_count, c.field[8], s.epsilon, s.delta);
        check_sigma(p.sigma[0].sum, c.field[9], s.epsilon, s.delta);
        check_sigma(p.sigma[0].moment, c.field[10], s.epsilon, s.delta);
        CHECK((p.sigma_count == 0) == (s.adjacency == FKT_ADJACENCY_REPLACE));
        CHECK(2 * (long double)p.sigma[0].cross * p.sigma[0].cross >=
              (long double)p.sigma[0].moment * p.sigma[0].moment);
        CHECK(p.sigma[0].cross <= p.sigma[0].moment * 0.7072);
        CHECK(p.epsilon_spent <= s.epsilon && p.epsilon_spent >= 0);
        CHECK(fkt_privacy_delta(s.epsilon, p.mu) <= s.delta);
        if (s.mechanism == FKT_MECHANISM_JOINT) CHECK(p.epsilon_spent >= s.epsilon * (1 - 1e-5));
        rows++;
    }
    CHECK(rows >= 2000);
}

struct known {
    double epsilon;
    enum fkt_adjacency adjacency;
    enum fkt_mechanism mechanism;
    double split[3], want[3], tol;
};

static void published_values(void **state)
{
    const struct known known[] = {
        {10, FKT_ADJACENCY_ADD_REMOVE, FKT_MECHANISM_JOINT, {1, 24, 75}, {5.00, 1.02, 0.577}, 0.005},
        {10, FKT_ADJACENCY_REPLACE, FKT_MECHANISM_PAPER, {0, 0, 0}, {0, 1.838, 1.838}, 0.0005},
        {10, FKT_ADJACENCY_REPLACE, FKT_MECHANISM_JOINT, {0, 1, 1}, {0, 1.060, 1.060}, 0.0005},
        {1, FKT_ADJACENCY_ADD_REMOVE, FKT_MECHANISM_JOINT, {0.01, 0.24, 0.75}, {37, 7.6, 4.31}, 0.5},
        {1, FKT_ADJACENCY_REPLACE, FKT_MECHANISM_PAPER, {0, 0, 0}, {0, 14.70, 14.70}, 0.005},
        {1, FKT_ADJACENCY_REPLACE, FKT_MECHANISM_JOINT, {0, 5, 5}, {0, 7.91, 7.91}, 0.005},
    };
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const struct known *k = &known[i];
        struct fkt_privacy_plan p;
        struct fkt_privacy_spec s = {.epsilon = k->epsilon,
                                     .delta = 1e-5,
                                     .adjacency = k->adjacency,
                                     .mechanism = k->mechanism,
                                     .split_count = k->split[0],
                                     .parts = 1,
                                     .part = {{1, k->split[1], k->split[2]}}};
        CHECK_OK(fkt_privacy_plan(&p, &s));
        CHECK_NEAR(p.sigma_count, k->want[0], k->tol);
        CHECK_NEAR(p.sigma[0].sum, k->want[1], k->tol);
        CHECK_NEAR(p.sigma[0].moment, k->want[2], k->tol);
    }
}

static void the_paper_spends_about_half(void **state)
{
    struct fkt_privacy_plan p;
    struct fkt_privacy_spec s = {.epsilon = 10,
                                 .delta = 1e-5,
                                 .adjacency = FKT_ADJACENCY_REPLACE,
                                 .mechanism = FKT_MECHANISM_PAPER,
                                 .parts = 1,
                                 .part = {{3, 0, 0}}};
    (void)state;
    CHECK_OK(fkt_privacy_plan(&p, &s));
    CHECK_NEAR(p.epsilon_spent, 5.17, 0.01);
    CHECK_REL(p.mu, 3 * sqrt(2 / (p.sigma[0].sum * p.sigma[0].sum) + 2.5 * 9 / (p.sigma[0].moment * p.sigma[0].moment)),
              1e-9);
}

static void radius_scales_the_noise(void **state)
{
    struct fkt_privacy_plan one, big;
    struct fkt_privacy_spec s = {.epsilon = 2,
                                 .delta = 1e-6,
                                 .adjacency = FKT_ADJACENCY_REPLACE_ANY,
                                 .split_count = 1,
                                 .parts = 1,
                                 .part = {{1, 24, 75}}};
    (void)state;
    CHECK_OK(fkt_privacy_plan(&one, &s));
    s.part[0].radius = 256;
    CHECK_OK(fkt_privacy_plan(&big, &s));
    CHECK_REL(big.sigma_count, one.sigma_count, 1e-15);
    CHECK_REL(big.sigma[0].sum, 256 * one.sigma[0].sum, 1e-15);
    CHECK_REL(big.sigma[0].moment, 65536 * one.sigma[0].moment, 1e-15);
    CHECK_REL(big.mu, one.mu, 1e-14);
}

static void bad_specs_are_refused_with_a_sentence(void **state)
{
    const struct fkt_privacy_spec good = {
        .epsilon = 1, .delta = 1e-5, .split_count = 1, .parts = 1, .part = {{256, 24, 75}}};
    const double bad[] = {NAN, INFINITY, -INFINITY, -1, 0};
    struct fkt_privacy_plan p, untouched;
    struct fkt_privacy_spec s;
    (void)state;
    memset(&p, 7, sizeof p);
    memset(&untouched, 7, sizeof untouched);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        for (int which = 0; which < 6; which++) {
            s = good;
            double *const field[6] = {
                &s.epsilon, &s.delta, &s.part[0].radius, &s.split_count, &s.part[0].split_sum, &s.part[0].split_moment};
            *field[which] = bad[i];
            CHECK_STATUS(fkt_privacy_plan(&p, &s), FKT_E_ARG);
            CHECK(strlen(fkt_error_text()) > 20);
        }
    }
    s = good;
    s.delta = 1;
    CHECK_STATUS(fkt_privacy_plan(&p, &s), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "delta is 1") && *fkt_error_hint());
    s = good;
    s.mechanism = FKT_MECHANISM_PAPER;
    CHECK_STATUS(fkt_privacy_plan(&p, &s), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "'paper'") && strstr(fkt_error_hint(), "'replace'"));
    s = good;
    s.adjacency = (enum fkt_adjacency)7;
    CHECK_STATUS(fkt_privacy_plan(&p, &s), FKT_E_ARG);
    s = good;
    s.mechanism = (enum fkt_mechanism)7;
    CHECK_STATUS(fkt_privacy_plan(&p, &s), FKT_E_ARG);
    assert_memory_equal(&p, &untouched, sizeof p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sigmas_are_optimal_and_never_below),    cmocka_unit_test(published_values),
        cmocka_unit_test(the_paper_spends_about_half),           cmocka_unit_test(radius_scales_the_noise),
        cmocka_unit_test(bad_specs_are_refused_with_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
