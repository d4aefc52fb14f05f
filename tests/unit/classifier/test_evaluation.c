/* SPDX-License-Identifier: Apache-2.0 */
#include "fedkt/learn.h"
#include "tests/support/check.h"

/* Two classes; the logit of class 0 above class 1 that gives it probability p. */
static float odds(double p) { return (float)log(p / (1 - p)); }

/* Five images, worked by hand. Confidences .9 .9 .9 .6 .7, guesses 0 0 0 1 0, truths 0 0 1 1 1.
 *   bin (13/15, 14/15] holds .9 three times, two hits:   |2 - 2.7| = .7
 *   bin ( 8/15,  9/15] holds .6 once (a hair less), hit:  |1 - .6|  = .4
 *   bin (10/15, 11/15] holds .7 once, none:              |0 - .7|  = .7
 *   error = (.7 + .4 + .7) / 5 = .36; loss = -(2 ln .9 + ln .1 + ln .6 + ln .3) / 5 */
static void calibration_error_as_computed_by_hand(void **state)
{
    const float logits[] = {odds(.9), 0, odds(.9) + 7, 7, odds(.9), 0, 0, odds(.5999), odds(.7) - 20, -20};
    const uint32_t label[] = {0, 0, 1, 1, 1};
    struct fkt_evaluation j;
    (void)state;
    CHECK_OK(fkt_evaluation_init(&j, 2));
    CHECK(isnan(fkt_evaluation_accuracy(&j)) && isnan(fkt_evaluation_loss(&j)));
    CHECK(isnan(fkt_evaluation_calibration_error(&j)));
    CHECK_OK(fkt_evaluation_add(&j, logits, label, 2));
    CHECK_OK(fkt_evaluation_add(&j, logits + 4, label + 2, 3));
    CHECK(j.count[13] == 3 && j.hit[13] == 2 && j.count[8] == 1 && j.hit[8] == 1 && j.count[10] == 1 && !j.hit[10]);
    CHECK_NEAR(j.confidence[13], 2.7, 1e-6);
    CHECK_NEAR(fkt_evaluation_accuracy(&j), 0.6, 1e-12);
    CHECK_NEAR(fkt_evaluation_calibration_error(&j), 0.36, 1e-4);
    CHECK_NEAR(fkt_evaluation_loss(&j), -(2 * log(.9) + log(.1) + log(.6) + log(.3)) / 5, 1e-4);
    CHECK(j.score.confusion[0] == 2 && j.score.confusion[2] == 2 && j.score.confusion[3] == 1);
    fkt_evaluation_clear(&j);
    CHECK(fkt_alloc_live() == 0);
}

/* A bin is open below and closed above: 1/3 of three equal logits is 5/15, the end of bin 4. */
static void bins_are_closed_above(void **state)
{
    const float equal[] = {4, 4, 4}, sure[] = {0, 200, 0};
    const uint32_t zero = 0, one = 1;
    struct fkt_evaluation j;
    (void)state;
    CHECK_OK(fkt_evaluation_init(&j, 3));
    CHECK_OK(fkt_evaluation_add(&j, equal, &zero, 1)); /* of equal ones the first is the guess */
    CHECK(j.count[4] == 1 && j.hit[4] == 1);
    CHECK_NEAR(j.loss, log(3), 1e-12);
    CHECK_OK(fkt_evaluation_add(&j, sure, &one, 1));
    CHECK(j.count[14] == 1 && j.hit[14] == 1);
    CHECK_OK(fkt_evaluation_add(&j, sure, &zero, 1)); /* a sure miss costs 200, and is no infinity */
    CHECK_NEAR(j.loss, log(3) + 200, 1e-9);
    fkt_evaluation_clear(&j);
}

static void far_logits_do_not_overflow(void **state)
{
    const float far[] = {-3e38F, 3e38F};
    const uint32_t one = 1;
    struct fkt_evaluation j;
    (void)state;
    CHECK_OK(fkt_evaluation_init(&j, 2));
    CHECK_OK(fkt_evaluation_add(&j, far, &one, 1));
    CHECK_NEAR(fkt_evaluation_loss(&j), 0, 0);
    CHECK_NEAR(fkt_evaluation_calibration_error(&j), 0, 0);
    fkt_evaluation_clear(&j);
}

static void what_is_not_finite_is_refused_whole(void **state)
{
    float logits[] = {1, 2, 3, 4, 5, 6};
    uint32_t label[] = {0, 1, 2};
    struct fkt_evaluation j;
    const float bad[] = {NAN, INFINITY, -INFINITY};
    (void)state;
    CHECK_OK(fkt_evaluation_init(&j, 2));
    for (int i = 0; i < 3; i++) {
        logits[5] = bad[i];
        label[2] = 0;
        CHECK_STATUS(fkt_evaluation_add(&j, logits, label, 3), FKT_E_NUMERIC);
        assert_string_equal(fkt_error_text(), "the logit of image 2 for class 1 is not finite");
    }
    logits[5] = 6;
    label[2] = 2;
    CHECK_STATUS(fkt_evaluation_add(&j, logits, label, 3), FKT_E_ARG);
    CHECK(isnan(fkt_evaluation_loss(&j)) && isnan(fkt_evaluation_accuracy(&j))); /* nothing of it was counted */
    fkt_evaluation_clear(&j);
    CHECK_STATUS(fkt_evaluation_init(&j, 0), FKT_E_ARG);
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calibration_error_as_computed_by_hand),
        cmocka_unit_test(bins_are_closed_above),
        cmocka_unit_test(far_logits_do_not_overflow),
        cmocka_unit_test(what_is_not_finite_is_refused_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
