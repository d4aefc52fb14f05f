/* SPDX-License-Identifier: Apache-2.0 */
#include "fedkt/classifier.h"
#include "tests/support/check.h"

static void hits_are_counted(void **state)
{
    const uint32_t truth[] = {0, 0, 0, 2, 2}, guess[] = {0, 1, 0, 2, 0};
    struct fkt_score s;
    (void)state;
    CHECK_OK(fkt_score_init(&s, 3));
    CHECK(fkt_score_total(&s) == 0 && isnan(fkt_score_accuracy(&s)));
    CHECK_OK(fkt_score_add(&s, truth, guess, 5));
    CHECK_OK(fkt_score_add(&s, truth, guess, 0));
    CHECK(fkt_score_total(&s) == 5);
    CHECK_NEAR(fkt_score_accuracy(&s), 0.6, 1e-15);
    CHECK_NEAR(fkt_score_class_accuracy(&s, 0), 2.0 / 3, 1e-15);
    CHECK_NEAR(fkt_score_class_accuracy(&s, 2), 0.5, 1e-15);
    CHECK(isnan(fkt_score_class_accuracy(&s, 1)) && isnan(fkt_score_class_accuracy(&s, 3)));
    CHECK(s.confusion[1] == 1 && s.confusion[6] == 1 && s.confusion[8] == 1);
    fkt_score_clear(&s);
    CHECK(fkt_alloc_live() == 0);
}

static void labels_out_of_range_change_nothing(void **state)
{
    const uint32_t good[] = {0, 1}, bad[] = {1, 2};
    struct fkt_score s;
    (void)state;
    CHECK_STATUS(fkt_score_init(&s, 0), FKT_E_ARG);
    CHECK_OK(fkt_score_init(&s, 2));
    CHECK_STATUS(fkt_score_add(&s, good, bad, 2), FKT_E_ARG);
    CHECK_STATUS(fkt_score_add(&s, bad, good, 2), FKT_E_ARG);
    CHECK(fkt_score_total(&s) == 0);
    fkt_score_clear(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hits_are_counted),
        cmocka_unit_test(labels_out_of_range_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
