/* SPDX-License-Identifier: Apache-2.0 */
#include "fedkt/advanced/privacy.h"
#include "tests/unit/privacy/csv.h"

/* The bound that zcdp.md states: never on the unsafe side of the truth at 50 digits, and within 1e-9 of it
 * (or 1e-11, where epsilon is nearly nothing). */
static void rho_and_epsilon_are_the_oracles(void **state)
{
    struct csv c;
    int rows = 0;
    double worst_rho = 0, worst_epsilon = 0;
    (void)state;
    csv_open(&c, "privacy_zcdp.csv");
    while (csv_next(&c, 3)) {
        const double eps = strtod(c.field[0], NULL), delta = strtod(c.field[1], NULL);
        const long double want = strtold(c.field[2], NULL);
        const double rho = fkt_privacy_rho(eps, delta), up = nextafter((double)want, INFINITY);
        const double back = fkt_privacy_epsilon_zcdp(delta, up);
        const long double short_by = 1 - (long double)rho / want;
        if (!(short_by >= 0 && short_by <= 1e-9L)) fail_msg("rho(%g, %g) = %.17g, truth %.20Lg", eps, delta, rho, want);
        if (!(back >= eps && back <= eps * (1 + 1e-9) + 1e-11))
            fail_msg("epsilon(%g, %.17g) = %.17g, truth %.17g", delta, up, back, eps);
        CHECK(fkt_privacy_epsilon_zcdp(delta, rho) <= eps * (1 + 1e-12));
        worst_rho = fmax(worst_rho, (double)short_by);
        worst_epsilon = fmax(worst_epsilon, (back - eps) / fmax(eps, 1e-2));
        rows++;
    }
    print_message("%d points: rho short by %.2g at most, epsilon over by %.2g\n", rows, worst_rho, worst_epsilon);
    CHECK(rows == 63);
}

/* A mu-GDP Gaussian mechanism is mu^2/2-zCDP, so going through rho can only cost. */
static void never_better_than_the_gaussian_formula(void **state)
{
    const double epsilons[] = {0.01, 0.1, 1, 10, 100}, deltas[] = {1e-12, 1e-5, 1e-2};
    (void)state;
    for (size_t i = 0; i < 5; i++)
        for (size_t j = 0; j < 3; j++) {
            const double mu = sqrt(2 * fkt_privacy_rho(epsilons[i], deltas[j]));
            const double gdp = fkt_privacy_mu(epsilons[i], deltas[j]);
            CHECK(mu < gdp && mu > 0.7 * gdp);
            CHECK(fkt_privacy_epsilon_zcdp(deltas[j], gdp * gdp / 2) > epsilons[i]);
        }
    /* what docs/privacy.md says that it costs at delta 1e-5 */
    CHECK_NEAR(fkt_privacy_mu(1, 1e-5) / sqrt(2 * fkt_privacy_rho(1, 1e-5)), 1.084, 5e-4);
    CHECK_NEAR(fkt_privacy_mu(10, 1e-5) / sqrt(2 * fkt_privacy_rho(10, 1e-5)), 1.059, 5e-4);
}

static void extremes_are_bounds_too(void **state)
{
    (void)state;
    CHECK(fkt_privacy_epsilon_zcdp(1e-5, 0) == 0);
    CHECK(fkt_privacy_epsilon_zcdp(0.9, 1e-3) == 0); /* delta alone covers it */
    CHECK(isinf(fkt_privacy_epsilon_zcdp(1e-5, 1e13)));
    CHECK(fkt_privacy_rho(1e-4, 1e-300) > 0);
    CHECK(fkt_privacy_rho(1e-12, 1e-300) > 0);
    CHECK(fkt_privacy_rho(1e12, 0.5) > 1e11);
    CHECK(fkt_privacy_rho(1, 1 - 1e-16) > 0);
    CHECK_REL(fkt_privacy_epsilon_zcdp(1e-5, 1e6), 1e6 + 2 * sqrt(1e6 * log(1e5)), 1e-3); /* Bun, Steinke 2016 */
}

static void nonsense_gives_nan(void **state)
{
    const double bad[] = {NAN, INFINITY, -INFINITY, -1};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(isnan(fkt_privacy_rho(bad[i], 0.1)) && isnan(fkt_privacy_rho(1, bad[i])));
        CHECK(isnan(fkt_privacy_epsilon_zcdp(bad[i], 1)) && isnan(fkt_privacy_epsilon_zcdp(0.1, bad[i])));
    }
    CHECK(isnan(fkt_privacy_rho(1, 0)) && isnan(fkt_privacy_rho(1, 1)) && isnan(fkt_privacy_rho(0, 0.1)));
    CHECK(isnan(fkt_privacy_epsilon_zcdp(0, 1)) && isnan(fkt_privacy_epsilon_zcdp(1, 1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rho_and_epsilon_are_the_oracles),
        cmocka_unit_test(never_better_than_the_gaussian_formula),
        cmocka_unit_test(extremes_are_bounds_too),
        cmocka_unit_test(nonsense_gives_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
