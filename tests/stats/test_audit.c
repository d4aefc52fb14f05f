/* SPDX-License-Identifier: Apache-2.0 */
/* The real release under attack: the lower bound must come close to the claim and not exceed it; five planted bugs must
 * exceed it. Confidence of each bound 99.9 %: a right release fails one of the eight comparisons about once in a
 * hundred seeds; seeds are fixed. */
#include "crypto/entropy.h"
#include "fedkt/advanced/privacy.h"
#include "privacy/audit.h"
#include "tests/support/layouts.h"
#include "tests/support/check.h"

enum {
    M = 2,
    N = 6,
    RQ = 64,
    SIDE = 45,
    BASE = 10
}; /* (45, 45): the longest record with equal coordinates, 45^2 + 45^2 = 4050 <= 64^2 */
enum bug { NONE, HALF_NOISE, FIXED_SEED, NO_CLIP, QUIET_CROSS, COUNT_LEAKED };

struct victim {
    enum bug bug;
    struct fkt_privacy_plan plan;
    struct fkt_entropy_seeded seeded;
    struct fkt_entropy entropy;
    int64_t exact[2][N]; /* ten records at the origin; the same and one at (side, side) */
    double shift[N], sigma[N];
};

static void victim_init(struct victim *v, double epsilon, double delta, enum bug bug, uint64_t seed)
{
    const struct fkt_privacy_spec s = {
        .epsilon = epsilon, .delta = delta, .split_count = 1, .parts = 1, .part = {{RQ, 24, 75}}};
    const int64_t side = bug == NO_CLIP ? 2 * SIDE : SIDE;
    const int64_t record[N] = {1, side, side, side * side, side * side, side * side};
    memset(v, 0, sizeof *v);
    v->bug = bug;
    CHECK_OK(fkt_privacy_plan(&v->plan, &s));
    fkt_entropy_seeded_init(&v->seeded, seed, 0);
    fkt_entropy_seeded(&v->entropy, &v->seeded);
    const double sigma[N] = {v->plan.sigma_count,     v->plan.sigma[0].sum,   v->plan.sigma[0].sum,
                             v->plan.sigma[0].moment, v->plan.sigma[0].cross, v->plan.sigma[0].moment};
    for (int i = 0; i < N; i++) {
        v->exact[0][i] = i == 0 ? BASE : 0;
        v->exact[1][i] = v->exact[0][i] + record[i];
        v->shift[i] = (double)record[i];
        v->sigma[i] = sigma[i];
    }
}

static fkt_status victim_release(void *self, int dataset, int64_t *out)
{
    struct victim *v = self;
    const int64_t *exact = v->exact[dataset];
    struct fkt_ledger ledger;
    fkt_status st;
    if (v->bug == FIXED_SEED) fkt_entropy_seeded_init(&v->seeded, 1, 0);
    FKT_TRY(fkt_ledger_init(&ledger, v->plan.mu * v->plan.mu, 0));
    FKT_TRY(fkt_privacy_release(out, exact, 1, ONE_PART(M, RQ), &v->plan, &ledger, &v->entropy));
    if (v->bug == HALF_NOISE)
        for (int i = 0; i < N; i++) out[i] = exact[i] + (out[i] - exact[i]) / 2;
    if (v->bug == QUIET_CROSS) out[4] = exact[4] + llround((double)(out[4] - exact[4]) / sqrt(2));
    if (v->bug == COUNT_LEAKED) out[0] = exact[0];
out:
    return st;
}

static struct fkt_audit_result attack(struct victim *v, uint64_t trials)
{
    const struct fkt_audit_spec s = {.length = N,
                                     .shift = v->shift,
                                     .sigma = v->sigma,
                                     .trials = trials,
                                     .delta = v->plan.spec.delta,
                                     .confidence = 0.999};
    struct fkt_audit_result r;
    CHECK_OK(fkt_privacy_audit(&r, &s, victim_release, v));
    CHECK(r.measured == trials / 2);
    return r;
}

static const double epsilons[] = {0.5, 1, 2, 4};

/* delta 1e-2: events that are common enough to be counted, nothing assumed of the mechanism. */
static void the_bound_comes_close_and_does_not_pass(void **state)
{
    struct victim v;
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        victim_init(&v, epsilons[i], 1e-2, NONE, 10 + i);
        const struct fkt_audit_result r = attack(&v, i == 0 ? 500000 : 300000);
        print_message("epsilon %g, delta 1e-2: epsilon_low %.3f\n", epsilons[i], r.epsilon_low);
        CHECK(r.epsilon_low <= epsilons[i] && r.epsilon_low >= 0.8 * epsilons[i]);
        CHECK(r.mu_low <= v.plan.mu);
    }
}

/* delta 1e-5: its optimal event is seen once in 1e5 trials, so the bound goes through mu, which common events fix. */
static void the_bound_through_mu_at_small_delta(void **state)
{
    struct victim v;
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        victim_init(&v, epsilons[i], 1e-5, NONE, 20 + i);
        const struct fkt_audit_result r = attack(&v, i == 0 ? 500000 : 300000);
        print_message("epsilon %g, delta 1e-5: epsilon_low %.3f, through mu %.3f\n", epsilons[i], r.epsilon_low,
                      r.epsilon_gdp_low);
        CHECK(r.epsilon_gdp_low <= epsilons[i] && r.epsilon_gdp_low >= 0.8 * epsilons[i]);
        CHECK(r.mu_low <= v.plan.mu && r.epsilon_low <= epsilons[i]);
    }
}

static void caught(enum bug bug, double epsilon, uint64_t trials)
{
    struct victim v;
    victim_init(&v, epsilon, 1e-2, bug, 30);
    const struct fkt_audit_result r = attack(&v, trials);
    print_message("bug %d, epsilon %g: epsilon_low %.3f\n", (int)bug, epsilon, r.epsilon_low);
    CHECK(r.epsilon_low > epsilon);
    CHECK(r.mu_low > v.plan.mu);
}

static void half_the_noise_is_caught(void **state)
{
    (void)state;
    caught(HALF_NOISE, 1, 50000);
}
static void a_fixed_seed_is_caught(void **state)
{
    (void)state;
    caught(FIXED_SEED, 1, 10000);
}
static void a_missing_clip_is_caught(void **state)
{
    (void)state;
    caught(NO_CLIP, 1, 50000);
}
static void cross_terms_with_too_little_noise_are_caught(void **state)
{
    (void)state;
    caught(QUIET_CROSS, 2, 500000);
}
static void a_leaked_count_is_caught(void **state)
{
    (void)state;
    caught(COUNT_LEAKED, 1, 10000);
}

static fkt_status failing_release(void *self, int dataset, int64_t *out)
{
    int *left = self;
    (void)dataset;
    memset(out, 0, N * sizeof *out);
    return --*left < 0 ? fkt_fail(FKT_E_IO, "gone") : FKT_OK;
}

static void failures_and_nonsense(void **state)
{
    struct victim v;
    struct fkt_audit_result r;
    (void)state;
    victim_init(&v, 1, 1e-2, NONE, 0);
    const struct fkt_audit_spec good = {
        .length = N, .shift = v.shift, .sigma = v.sigma, .trials = 1000, .delta = 0.01, .confidence = 0.99};
    for (int calls = 0; calls < 2000; calls += 97) {
        int left = calls;
        CHECK_STATUS(fkt_privacy_audit(&r, &good, failing_release, &left), FKT_E_IO);
    }
    int left = 2000;
    CHECK_OK(fkt_privacy_audit(&r, &good, failing_release, &left)); /* always the same answer: nothing is learned */
    CHECK(r.epsilon_low == 0 && r.mu_low == 0 && r.epsilon_gdp_low == 0);
    for (int which = 0; which < 6; which++) {
        struct fkt_audit_spec s = good;
        double nan[N] = {NAN};
        switch (which) {
        case 0: s.length = 0; break;
        case 1: s.trials = 999; break;
        case 2: s.delta = 0; break;
        case 3: s.confidence = NAN; break;
        case 4: s.shift = nan; break;
        case 5: s.sigma = nan; break;
        }
        CHECK_STATUS(fkt_privacy_audit(&r, &s, victim_release, &v), FKT_E_ARG);
    }
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bound_comes_close_and_does_not_pass),
        cmocka_unit_test(the_bound_through_mu_at_small_delta),
        cmocka_unit_test(half_the_noise_is_caught),
        cmocka_unit_test(a_fixed_seed_is_caught),
        cmocka_unit_test(a_missing_clip_is_caught),
        cmocka_unit_test(cross_terms_with_too_little_noise_are_caught),
        cmocka_unit_test(a_leaked_count_is_caught),
        cmocka_unit_test(failures_and_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
