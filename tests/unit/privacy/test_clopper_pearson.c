/* SPDX-License-Identifier: Apache-2.0 */
#include "privacy/clopper_pearson.h"
#include "tests/unit/privacy/csv.h"

static void bounds_are_scipys_rounded_outwards(void **state)
{
    struct csv c;
    int rows = 0;
    (void)state;
    csv_open(&c, "privacy_clopper_pearson.csv");
    while (csv_next(&c, 5)) {
        const uint64_t k = strtoull(c.field[0], NULL, 10), n = strtoull(c.field[1], NULL, 10);
        const double alpha = strtod(c.field[2], NULL), lo = strtod(c.field[3], NULL), hi = strtod(c.field[4], NULL);
        CHECK_NEAR(fkt_clopper_pearson_lower(k, n, alpha), lo, 1e-5 * lo);
        CHECK_NEAR(1 - fkt_clopper_pearson_lower(k, n, alpha), 1 - lo, 1e-5 * (1 - lo) + 2e-14);
        CHECK_NEAR(fkt_clopper_pearson_upper(k, n, alpha), hi, 1e-5 * hi);
        CHECK_NEAR(1 - fkt_clopper_pearson_upper(k, n, alpha), 1 - hi, 1e-5 * (1 - hi) + 2e-14);
        CHECK(fkt_clopper_pearson_lower(k, n, alpha) <= lo * (1 + 1e-12));
        CHECK(fkt_clopper_pearson_upper(k, n, alpha) >= hi * (1 - 1e-12));
        rows++;
    }
    CHECK(rows > 100);
}

static void nonsense_gives_nan(void **state)
{
    (void)state;
    CHECK(isnan(fkt_clopper_pearson_lower(5, 4, 0.1)) && isnan(fkt_clopper_pearson_upper(5, 4, 0.1)));
    CHECK(isnan(fkt_clopper_pearson_lower(0, 0, 0.1)) && isnan(fkt_clopper_pearson_upper(0, 0, 0.1)));
    CHECK(isnan(fkt_clopper_pearson_lower(1, 4, 0)) && isnan(fkt_clopper_pearson_upper(1, 4, 0.5)));
    CHECK(isnan(fkt_clopper_pearson_lower(1, 4, NAN)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bounds_are_scipys_rounded_outwards),
                                       cmocka_unit_test(nonsense_gives_nan)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
