/* SPDX-License-Identifier: Apache-2.0 */
/* test_attack.c - the ROC of scores counted by hand, and the likelihood-ratio attack on Gaussians whose ROC is
 * known. */
#include "experiment/attack.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "tests/support/check.h"

#include <math.h>

/* Others 1 2 3 4, members 2.5 3.5 5: of 12 pairs 9 are in order. One false positive allowed (rate 0.25) puts the
 * threshold at 3: two of three members are above. None allowed: above 4, one. */
static void roc_by_hand(void **state)
{
    static const double ratio[] = {1, 2.5, 2, 3.5, 3, 5, 4}, rates[] = {0, 0.25, 1};
    static const uint8_t member[] = {0, 1, 0, 1, 0, 1, 0};
    double found[3], area;
    (void)state;
    CHECK_OK(fkt_roc(ratio, member, 7, rates, found, 3, &area));
    CHECK_NEAR(area, 9.0 / 12, 1e-15);
    CHECK_NEAR(found[0], 1.0 / 3, 1e-15);
    CHECK_NEAR(found[1], 2.0 / 3, 1e-15);
    CHECK_NEAR(found[2], 1, 0);
}

static void ties_are_missed_and_count_half(void **state)
{
    static const double ratio[] = {0, 0, 0, 0}, rates[] = {0.5};
    static const uint8_t member[] = {0, 1, 0, 1};
    double found, area;
    (void)state;
    CHECK_OK(fkt_roc(ratio, member, 4, rates, &found, 1, &area));
    CHECK_NEAR(found, 0, 0);
    CHECK_NEAR(area, 0.5, 0);
}

static void bad_scores_are_refused(void **state)
{
    static const double ratio[] = {0, NAN}, good[] = {0, 1};
    static const uint8_t member[] = {0, 1}, all[] = {1, 1};
    double area;
    (void)state;
    CHECK_STATUS(fkt_roc(ratio, member, 2, NULL, NULL, 0, &area), FKT_E_NUMERIC);
    CHECK_STATUS(fkt_roc(good, all, 2, NULL, NULL, 0, &area), FKT_E_ARG);
}

/* Scores N(r, 1) without and N(r + 1, 1) with record r: area Phi(1/sqrt 2) = 0.7602, and Phi(1 - 1.2816) = 0.3891 at a
 * false positive rate of 0.1. 40,000 scores: standard errors 0.0024 and 0.0035; the limits are at six of them. */
static void known_gaussians(void **state)
{
    enum { TRIALS = 2000, RECORDS = 20 };
    const double rate = 0.1;
    double *score = NULL, *ratio = NULL, found, area;
    uint8_t *member = NULL;
    struct fkt_rng rng;
    (void)state;
    CHECK_OK(fkt_alloc(&score, TRIALS * RECORDS));
    CHECK_OK(fkt_alloc(&ratio, TRIALS * RECORDS));
    CHECK_OK(fkt_alloc(&member, TRIALS * RECORDS));
    fkt_rng_init(&rng, 4, 0);
    for (size_t i = 0; i < TRIALS * RECORDS; i++) {
        member[i] = fkt_rng_u64(&rng) & 1;
        score[i] = (double)(i % RECORDS) + member[i] + fkt_rng_normal(&rng);
    }
    fkt_lira(ratio, score, member, TRIALS, RECORDS);
    CHECK_OK(fkt_roc(ratio, member, TRIALS * RECORDS, &rate, &found, 1, &area));
    CHECK_NEAR(area, 0.7602, 0.015);
    CHECK_NEAR(found, 0.3891, 0.021);
    fkt_free(score);
    fkt_free(ratio);
    fkt_free(member);
}

/* Two independent scores that are one standard deviation apart each: as one that is sqrt 2 apart, area Phi(1). */
static void two_scores_say_more(void **state)
{
    enum { TRIALS = 2000, RECORDS = 10 };
    double *score = NULL, *ratio = NULL, area;
    uint8_t *member = NULL;
    struct fkt_rng rng;
    (void)state;
    CHECK_OK(fkt_alloc(&score, TRIALS * RECORDS));
    CHECK_OK(fkt_alloc(&ratio, TRIALS * RECORDS));
    CHECK_OK(fkt_alloc(&member, TRIALS * RECORDS));
    fkt_rng_init(&rng, 5, 0);
    for (size_t i = 0; i < TRIALS * RECORDS; i++) member[i] = fkt_rng_u64(&rng) & 1;
    for (int s = 0; s < 2; s++) {
        for (size_t i = 0; i < TRIALS * RECORDS; i++) score[i] = member[i] + fkt_rng_normal(&rng);
        fkt_lira(ratio, score, member, TRIALS, RECORDS);
    }
    CHECK_OK(fkt_roc(ratio, member, TRIALS * RECORDS, NULL, NULL, 0, &area));
    CHECK_NEAR(area, 0.8413, 0.02); /* standard error at most 0.0041 */
    fkt_free(score);
    fkt_free(ratio);
    fkt_free(member);
}

/* Values by SciPy: norm.cdf(mu - norm.isf(rate)). */
static void bound_of_gdp(void **state)
{
    (void)state;
    CHECK_REL(fkt_gdp_allowed(1, 0.1), 0.3891436916, 1e-7);
    CHECK_REL(fkt_gdp_allowed(0.5, 0.001), 0.004795559209, 1e-7);
    CHECK_REL(fkt_gdp_allowed(2, 0.3), 0.9299742786, 1e-7);
    CHECK_NEAR(fkt_gdp_allowed(2, 1), 1, 0);
}

/* softmax(0, log 2, log 3) = 1/6, 1/3, 1/2; a lead of 1000 leaves no room for 1 - p in a double. */
static void log_odds_by_hand(void **state)
{
    const double score[] = {0, log(2), log(3)}, far[] = {1000, 0};
    (void)state;
    CHECK_REL(fkt_log_odds(score, 3, 0), log(1.0 / 5), 1e-14);
    CHECK_REL(fkt_log_odds(score, 3, 1), log(1.0 / 2), 1e-14);
    CHECK_NEAR(fkt_log_odds(score, 3, 2), 0, 1e-14);
    CHECK_NEAR(fkt_log_odds(far, 2, 0), 1000, 1e-12);
    CHECK_NEAR(fkt_log_odds(far, 2, 1), -1000, 1e-12);
}

/* Too few shadows to fit a Gaussian: no opinion, and no NaN. */
static void few_shadows_say_nothing(void **state)
{
    static const double score[] = {1, 2, 3};
    static const uint8_t member[] = {0, 1, 0};
    double ratio[3] = {9, 9, 9}; /* what other scores said stays */
    (void)state;
    fkt_lira(ratio, score, member, 3, 1);
    for (int i = 0; i < 3; i++) CHECK_NEAR(ratio[i], 9, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roc_by_hand),
        cmocka_unit_test(ties_are_missed_and_count_half),
        cmocka_unit_test(bad_scores_are_refused),
        cmocka_unit_test(known_gaussians),
        cmocka_unit_test(two_scores_say_more),
        cmocka_unit_test(bound_of_gdp),
        cmocka_unit_test(log_odds_by_hand),
        cmocka_unit_test(few_shadows_say_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
