/* SPDX-License-Identifier: Apache-2.0 */
#include "fedkt/privacy.h"
#include "tests/unit/privacy/csv.h"

/* The bound that gdp.md states: never below the truth, at most 1e-9 of it above. */
static void delta_is_an_upper_bound_within_1e9(void **state)
{
    struct csv c;
    int rows = 0;
    double worst = 0;
    (void)state;
    csv_open(&c, "privacy_gdp.csv");
    while (csv_next(&c, 3)) {
        const double eps = strtod(c.field[0], NULL), mu = strtod(c.field[1], NULL);
        const long double want = strtold(c.field[2], NULL);
        const long double over = (long double)fkt_privacy_delta(eps, mu) / want - 1;
        if (!(over >= 0 && over <= 1e-9L))
            fail_msg("epsilon %g mu %g: delta %.17g, truth %.20Lg", eps, mu, fkt_privacy_delta(eps, mu), want);
        worst = fmax(worst, (double)over);
        rows++;
    }
    CHECK(rows == 1200);
    CHECK(worst < 2e-10); /* the slack itself is 1e-10: the computation adds very little */
}

static void mu_and_epsilon_invert_delta(void **state)
{
    struct csv c;
    (void)state;
    csv_open(&c, "privacy_gdp.csv");
    while (csv_next(&c, 3)) {
        const double eps = strtod(c.field[0], NULL), mu = strtod(c.field[1], NULL), delta = strtod(c.field[2], NULL);
        const double back = fkt_privacy_mu(eps, delta), e = fkt_privacy_epsilon(delta, mu);
        if (delta > 0.999) continue; /* there delta hardly depends on mu */
        if (!(back <= mu && back >= mu * (1 - 1e-6))) fail_msg("mu(%g, %g) = %.17g, want %.17g", eps, delta, back, mu);
        if (!(e >= eps && e <= eps * (1 + 1e-6) + 1e-9))
            fail_msg("epsilon(%g, %g) = %.17g, want %.17g", delta, mu, e, eps);
        CHECK(fkt_privacy_delta(eps, back) <= delta * (1 + 1e-12));
    }
}

static void extremes_are_bounds_too(void **state)
{
    (void)state;
    CHECK(fkt_privacy_delta(1000, 1e-3) > 0); /* e^-5e11: rounded up to the smallest number */
    CHECK(fkt_privacy_delta(1000, 1e-320) > 0);
    CHECK_NEAR(fkt_privacy_delta(0, 1), erf(0.5 / sqrt(2)), 1e-9);
    CHECK_NEAR(fkt_privacy_delta(1, 1000), 1, 0);
    CHECK(fkt_privacy_delta(1, 0) == 0);
    CHECK(fkt_privacy_epsilon(0.5, 0.1) == 0); /* delta alone covers it */
    CHECK(fkt_privacy_epsilon(1e-5, 0) == 0);
    CHECK(isinf(fkt_privacy_epsilon(1e-5, 1e7)));
    CHECK(fkt_privacy_mu(1e-4, 1e-300) > 0);
    CHECK(fkt_privacy_mu(1000, 1 - 1e-16) > 0);
    CHECK_REL(fkt_privacy_epsilon(1e-5, 200), 20000 + 200 * 4.26, 1e-2);
}

static void nonsense_gives_nan(void **state)
{
    const double bad[] = {NAN, INFINITY, -INFINITY, -1};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(isnan(fkt_privacy_delta(bad[i], 1)) && isnan(fkt_privacy_delta(1, bad[i])));
        CHECK(isnan(fkt_privacy_mu(bad[i], 0.1)) && isnan(fkt_privacy_mu(1, bad[i])));
        CHECK(isnan(fkt_privacy_epsilon(bad[i], 1)) && isnan(fkt_privacy_epsilon(0.1, bad[i])));
    }
    CHECK(isnan(fkt_privacy_mu(1, 0)) && isnan(fkt_privacy_mu(1, 1)) && isnan(fkt_privacy_mu(0, 0.1)));
    CHECK(isnan(fkt_privacy_epsilon(0, 1)) && isnan(fkt_privacy_epsilon(1, 1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delta_is_an_upper_bound_within_1e9),
        cmocka_unit_test(mu_and_epsilon_invert_delta),
        cmocka_unit_test(extremes_are_bounds_too),
        cmocka_unit_test(nonsense_gives_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
