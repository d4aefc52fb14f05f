/* SPDX-License-Identifier: Apache-2.0 */
/* test_promise.c - which promises may be called private: both limits, on both sides of each. */
#include "tests/support/check.h"

#include "fedkt/privacy.h"

#include <math.h>
#include <string.h>

static void one(double epsilon, double delta, double records, const char *why)
{
    char said[FKT_PROMISE_WORDS];
    const enum fkt_promise p = fkt_privacy_promise(epsilon, delta, records, said);
    assert_int_equal(p, *why ? FKT_PROMISE_WEAK : FKT_PROMISE_SOUND);
    assert_string_equal(said, why);
    assert_int_equal(fkt_privacy_promise(epsilon, delta, records, NULL), p);
}

static void epsilon_ends_at_twenty(void **state)
{
    (void)state;
    one(1, 1e-5, 0, "");
    one(20, 1e-5, 0, "");
    one(20.001, 1e-5, 0, "epsilon 20.001 is above 20");
    one(1000, 0.9, 0, "epsilon 1000 is above 20 and delta 0.9 is above 0.001");
    one(NAN, 1e-5, 0, "epsilon nan is above 20");
    one(INFINITY, 1e-5, 0, "epsilon inf is above 20");
}

static void delta_ends_at_one_over_the_bound(void **state)
{
    (void)state;
    one(1, 1e-3, 0, "");
    one(1, 0.0011, 0, "delta 0.0011 is above 0.001");
    one(1, NAN, 0, "delta nan is above 0.001");
    one(1, 1e-4, 1e4, "");
    one(1, 1.1e-4, 1e4, "delta 0.00011 is above 0.0001, one over the bound of 10000 records");
    one(1, 0.1, 6000, "delta 0.1 is above 0.000167, one over the bound of 6000 records");
    one(1, 1.0 / 6000, 6000, "");
    one(1, 1e-3, 10, ""); /* a small set does not make delta larger */
    one(1, 2e-3, 10, "delta 0.002 is above 0.001");
    assert_true(fkt_promise_delta(0) == 1e-3 && fkt_promise_delta(1e6) == 1e-6);
    one(1, 1e-5, NAN, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epsilon_ends_at_twenty),
        cmocka_unit_test(delta_ends_at_one_over_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
