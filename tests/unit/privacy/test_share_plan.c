/* SPDX-License-Identifier: Apache-2.0 */
#include "fedkt/advanced/privacy.h"

#include "tests/unit/privacy/share_case.h"

/* The oracle plans with fractions and 50 digits; ours may have 1e-8 more noise, and never less. */
static void plans_are_the_oracles(void **state)
{
    json_t *root, *cases = vectors_open(&root, "privacy_shares.json");
    int n = 0;
    (void)state;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i);
        struct fkt_share_plan want, p;
        if (strcmp(vectors_text(c, "verdict"), "FKT_OK")) continue;
        share_case_plan(&want, c);
        CHECK_OK(fkt_privacy_plan_shares(&p, &want.plan.spec, want.counted, want.sites));
        CHECK(p.counted == want.counted && p.sites == want.sites && p.count_scale == want.count_scale);
        for (int v = 0; v < 4; v++) {
            const double got = share_case_value(share_case_variance(&p, v)),
                         least = share_case_value(share_case_variance(&want, v));
            CHECK_REL(got, least, 1e-8);
            CHECK(got >= least * (1 - 1e-11)); /* the oracle's own rounding up to 40 bits */
        }
        CHECK_REL(p.rho, want.rho, 1e-8);
        CHECK_REL(p.plan.mu, want.plan.mu, 1e-8);
        CHECK(p.plan.mu * p.plan.mu / 2 >= p.rho);
        CHECK_REL((double)p.tail, (double)want.tail, 1e-4);
        CHECK(p.tail >= want.tail);
        n++;
    }
    CHECK(n == 13);
    json_decref(root);
}

static void the_promise_is_kept_and_not_by_far(void **state)
{
    const double epsilons[] = {1e-3, 0.1, 1, 10, 100}, deltas[] = {1e-12, 1e-5, 1e-2};
    const uint32_t counted[] = {1, 2, 64, 900, 100000};
    (void)state;
    for (int a = 0; a < 3; a++)
        for (size_t e = 0; e < 5; e++)
            for (size_t d = 0; d < 3; d++)
                for (size_t n = 0; n < 5; n++) {
                    const struct fkt_privacy_spec s = {.epsilon = epsilons[e],
                                                       .delta = deltas[d],
                                                       .adjacency = (enum fkt_adjacency)a,
                                                       .split_count = 1,
                                                       .parts = 1,
                                                       .part = {{256, 24, 75}}};
                    struct fkt_share_plan p;
                    CHECK_OK(fkt_privacy_plan_shares(&p, &s, counted[n], counted[n] + counted[n] / 4));
                    CHECK(p.plan.epsilon_spent <= s.epsilon);
                    CHECK(fkt_privacy_epsilon(s.delta, p.plan.mu) <= s.epsilon * (1 + 1e-9));
                    /* where no variance was raised, there is no slack */
                    if (share_case_value(share_case_variance(&p, 1)) > 4.001)
                        CHECK(p.plan.epsilon_spent >= s.epsilon * (1 - 1e-5));
                    for (int v = a == FKT_ADJACENCY_REPLACE; v < 4; v++)
                        CHECK(share_case_value(share_case_variance(&p, v)) >= 4);
                    if (a != FKT_ADJACENCY_REPLACE)
                        CHECK(share_case_value(share_case_variance(&p, 0)) >= 16 || p.count_scale == 1U << 20);
                    CHECK((p.variance_count.num == 0) == (a == FKT_ADJACENCY_REPLACE));
                    CHECK(2 * p.plan.sigma[0].cross * p.plan.sigma[0].cross >=
                          p.plan.sigma[0].moment * p.plan.sigma[0].moment);
                    CHECK_REL(p.plan.sigma[0].sum, sqrt(counted[n] * share_case_value(share_case_variance(&p, 1))),
                              1e-12);
                    CHECK((double)p.tail > 12.5 * p.plan.sigma[0].moment); /* sqrt(2 * 113 ln 2) = 12.52 */
                }
}

/* A tiny ball under a weak promise over many sites: here the floor on a share's variance applies. */
static void small_variances_are_raised(void **state)
{
    const struct fkt_privacy_spec s = {
        .epsilon = 100, .delta = 1e-2, .split_count = 1, .parts = 1, .part = {{1, 24, 75}}};
    struct fkt_share_plan p;
    (void)state;
    CHECK_OK(fkt_privacy_plan_shares(&p, &s, 1000000, 1000000));
    for (int v = 1; v < 4; v++) CHECK_NEAR(share_case_value(share_case_variance(&p, v)), 4, 1e-9);
    CHECK(p.plan.epsilon_spent < 50 && p.rho > 0);
    CHECK_OK(fkt_privacy_plan_shares(&p, &s, UINT32_MAX, UINT32_MAX));
    CHECK(p.count_scale <= 1U << 20 && share_case_value(share_case_variance(&p, 0)) >= 4);
}

static void nonsense_is_refused(void **state)
{
    const struct fkt_privacy_spec good = {
        .epsilon = 1, .delta = 1e-5, .split_count = 1, .parts = 1, .part = {{256, 24, 75}}};
    struct fkt_share_plan p = {.counted = 77};
    struct fkt_privacy_spec s = good;
    (void)state;
    CHECK_STATUS(fkt_privacy_plan_shares(&p, &good, 0, 10), FKT_E_ARG);
    CHECK_STATUS(fkt_privacy_plan_shares(&p, &good, 11, 10), FKT_E_ARG);
    s.epsilon = NAN;
    CHECK_STATUS(fkt_privacy_plan_shares(&p, &s, 5, 10), FKT_E_ARG);
    s = good;
    s.delta = 1;
    CHECK_STATUS(fkt_privacy_plan_shares(&p, &s, 5, 10), FKT_E_ARG);
    s = good;
    s.split_count = 0;
    CHECK_STATUS(fkt_privacy_plan_shares(&p, &s, 5, 10), FKT_E_ARG);
    s = good;
    s.part[0].radius = 1e12; /* sigma 1e24 */
    CHECK_STATUS(fkt_privacy_plan_shares(&p, &s, 5, 10), FKT_E_ARG);
    CHECK(*fkt_error_hint());
    s = good;
    s.adjacency = FKT_ADJACENCY_REPLACE;
    s.mechanism = FKT_MECHANISM_PAPER;
    CHECK_STATUS(fkt_privacy_plan_shares(&p, &s, 5, 10), FKT_E_ARG);
    CHECK(*fkt_error_hint() && strstr(fkt_error_text(), "paper"));
    CHECK(p.counted == 77); /* nothing was written */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_the_oracles),
        cmocka_unit_test(the_promise_is_kept_and_not_by_far),
        cmocka_unit_test(small_variances_are_raised),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
