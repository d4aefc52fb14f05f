/* SPDX-License-Identifier: Apache-2.0 */
#include "synth/inverse.h"

#include "tests/support/check.h"

/* H(t) and 1 - t H(t), from mpmath.quad of their integrals at 30 digits. */
static void values_are_mills_ratio(void **state)
{
    const double want[][3] = {
        {0.001, 1.25231476363939217, 0.998747685236360608},
        {0.5, 0.876364456453692347, 0.561817771773153827},
        {2.0, 0.421369229288054473, 0.157261541423891054},
        {3.9998999999999998, 0.236657722075850208, 0.0533927774688068011},
        {4.0, 0.236652382913560671, 0.0533904683457573175},
        {6.0, 0.162377660896867462, 0.0257340346187952291},
        {20.0, 0.0498759259818367837, 0.00248148036326432684},
        {1000.0, 0.000999999000002999985, 9.99997000014999895e-7},
    };
    (void)state;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        double t = want[i][0], sigma = 1 / t < 1 ? 1 : 1 / t; /* count = t sigma >= 1 */
        struct fkt_inverse inv = fkt_inverse_count(t * sigma, sigma);
        CHECK_REL(inv.one, want[i][1] / sigma, 1e-13);
        CHECK_REL(inv.two, want[i][2] / (sigma * sigma), 2e-13);
    }
}

/* E over the noise, by the trapezium rule in z on [-8.5, 8.5] (error below 1e-13 for a smooth integrand). */
static void expectation_is_exact(void **state)
{
    const double n = 400, sigma[] = {0.01, 5, 37, 45}; /* n/sigma >= 8.8: the cut at 1 is never met */
    (void)state;
    for (int s = 0; s < 4; s++) {
        double one = 0, two = 0, plain = 0;
        for (int i = -1700; i <= 1700; i++) {
            double z = i / 200.0, weight = exp(-z * z / 2) / sqrt(2 * 3.14159265358979323846) / 200;
            struct fkt_inverse inv = fkt_inverse_count(n + sigma[s] * z, sigma[s]);
            one += weight * inv.one;
            two += weight * inv.two;
            plain += weight / (n + sigma[s] * z);
        }
        CHECK_REL(one, 1 / n, 1e-12);
        CHECK_REL(two, 1 / (n * n), 1e-11);
        if (s == 2) CHECK(fabs(plain * n - 1) > 0.008); /* what 1/N would give */
    }
}

static void nothing_explodes(void **state)
{
    double last = INFINITY;
    (void)state;
    CHECK(fkt_inverse_count(10, 0).one == 0.1 && fkt_inverse_count(10, 0).two == 0.01);
    for (double count = 1; count < 1e6; count *= 1.01) {
        struct fkt_inverse inv = fkt_inverse_count(count, 100);
        CHECK(inv.one > 0 && inv.one <= 1 / count && inv.one <= 0.0125332 && inv.one < last);
        CHECK(inv.two > 0 && inv.two <= 1 / (count * count) && inv.two <= 1e-4);
        last = inv.one;
    }
    CHECK_REL(fkt_inverse_count(1, 1e300).one, 1.2533141373155e-300, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_mills_ratio),
        cmocka_unit_test(expectation_is_exact),
        cmocka_unit_test(nothing_explodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
