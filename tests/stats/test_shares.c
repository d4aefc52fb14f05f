/* SPDX-License-Identifier: Apache-2.0 */
/* Totals of noise shares: their noise has the planned variance, and under attack they stay below the claim and come
 * near it; three planted bugs exceed it. Variances: 6 standard errors, so a right sampler fails one of the twelve
 * comparisons (six kinds of number, two totals) about once in 4e7 seeds; every number of a total is also checked
 * against the tail, which fails with less than 2^-80. Attacks: three settings with two lower bounds each, epsilon_low
 * and mu_low, of 99.9 % confidence, so that a right mechanism fails one of the six about once in 170 seeds. Seeds are
 * fixed. */
#include "crypto/entropy.h"
#include "fedkt/advanced/privacy.h"
#include "privacy/audit.h"
#include "tests/support/layouts.h"
#include "tests/support/check.h"

enum { M = 2, N = 6, RQ = 64, SIDE = 45, BASE = 10 }; /* as in test_audit.c */

/* ---- variances ---- */

enum { K = 20000, COUNTED = 16, SITES = 20 };

static int64_t exact[K * N], share[K * N], total[K * N], noised[K * N];

static double variance_of(const int64_t *x, int at, int step, double mean)
{
    double sum = 0;
    for (int c = 0; c < K; c++) sum += ((double)x[c * step + at] - mean) * ((double)x[c * step + at] - mean);
    return sum / K;
}

static void totals_have_the_variance_planned(void **state)
{
    const struct fkt_privacy_spec s = {
        .epsilon = 4, .delta = 1e-5, .split_count = 1, .parts = 1, .part = {{RQ, 24, 75}}};
    const double tolerance = 6 * sqrt(2.0 / K);
    struct fkt_share_plan p;
    struct fkt_entropy_seeded seeded;
    struct fkt_entropy e;
    (void)state;
    CHECK_OK(fkt_privacy_plan_shares(&p, &s, COUNTED, SITES));
    CHECK(p.count_scale > 1);
    fkt_entropy_seeded_init(&seeded, 1, 0);
    fkt_entropy_seeded(&e, &seeded);
    for (int c = 0; c < K; c++) exact[c * N] = BASE;
    for (uint32_t site = 0; site < SITES; site++) {
        CHECK_OK(fkt_privacy_share(share, exact, K, ONE_PART(M, RQ), &p, &e));
        for (int i = 0; i < K * N; i++) total[i] += share[i];
        if (site + 1 != COUNTED && site + 1 != SITES) continue;
        const uint32_t shares = site + 1;
        struct fkt_sigmas sigmas;
        CHECK_OK(fkt_privacy_gather(noised, total, K, ONE_PART(M, RQ), &p, shares));
        CHECK_OK(fkt_privacy_total_sigmas(&sigmas, &p, shares));
        const double n2 = sigmas.count * sigmas.count, s2 = sigmas.part[0].sum * sigmas.part[0].sum;
        const double m2 = sigmas.part[0].moment * sigmas.part[0].moment;
        const double want[N] = {n2, s2, s2, m2, m2 / 2, m2};
        for (int i = 0; i < N; i++)
            CHECK_REL(variance_of(noised, i, N, i == 0 ? BASE * (double)shares : 0), want[i], tolerance);
        const double surplus = (double)shares / COUNTED; /* 1, and then 20/16 */
        CHECK_REL(want[1], surplus * p.plan.sigma[0].sum * p.plan.sigma[0].sum, 1e-9);
        const double k2 = (double)p.count_scale * p.count_scale; /* halves to the even integer */
        CHECK_REL(want[0], surplus * p.plan.sigma_count * p.plan.sigma_count + (k2 + 2) / (12 * k2), 1e-9);
        for (int i = 0; i < K * N; i++) {
            const int64_t mean = i % N == 0 ? (int64_t)BASE * shares * p.count_scale : 0;
            CHECK(total[i] - mean <= p.tail && mean - total[i] <= p.tail);
        }
    }
}

/* ---- attacks ---- */

enum { HONEST = 3 };
enum bug { NONE, ONE_SHARE_ONLY, FIXED_SEED, COUNT_LEAKED };

struct victim {
    enum bug bug;
    struct fkt_share_plan plan;
    struct fkt_entropy_seeded seeded;
    struct fkt_entropy entropy;
    int64_t exact[2][N]; /* ten records at the origin; the same and one at (side, side) */
    double shift[N], sigma[N];
};

static void victim_init(struct victim *v, double epsilon, double delta, enum bug bug, uint64_t seed)
{
    const struct fkt_privacy_spec s = {
        .epsilon = epsilon, .delta = delta, .split_count = 1, .parts = 1, .part = {{RQ, 24, 75}}};
    const int64_t record[N] = {1, SIDE, SIDE, SIDE * SIDE, SIDE * SIDE, SIDE * SIDE};
    memset(v, 0, sizeof *v);
    v->bug = bug;
    CHECK_OK(fkt_privacy_plan_shares(&v->plan, &s, HONEST, HONEST));
    fkt_entropy_seeded_init(&v->seeded, seed, 0);
    fkt_entropy_seeded(&v->entropy, &v->seeded);
    const struct fkt_privacy_plan *p = &v->plan.plan;
    const double sigma[N] = {p->sigma_count,     p->sigma[0].sum,   p->sigma[0].sum,
                             p->sigma[0].moment, p->sigma[0].cross, p->sigma[0].moment};
    for (int i = 0; i < N; i++) {
        const double unit = i == 0 ? v->plan.count_scale : 1; /* the attacker sees the total as the server does */
        v->exact[0][i] = i == 0 ? BASE : 0;
        v->exact[1][i] = v->exact[0][i] + record[i];
        v->shift[i] = unit * (double)record[i];
        v->sigma[i] = unit * sigma[i];
    }
}

static fkt_status victim_release(void *self, int dataset, int64_t *out)
{
    struct victim *v = self;
    int64_t x[N];
    fkt_status st = FKT_OK;
    memset(out, 0, N * sizeof *out);
    if (v->bug == FIXED_SEED) fkt_entropy_seeded_init(&v->seeded, 1, 0);
    for (int site = 0; site < HONEST; site++) {
        const int64_t *own = v->exact[site == 0 ? dataset : 0];
        FKT_TRY(fkt_privacy_share(x, own, 1, ONE_PART(M, RQ), &v->plan, &v->entropy));
        if (v->bug == ONE_SHARE_ONLY && site > 0) {
            memcpy(x, own, sizeof x);
            x[0] *= v->plan.count_scale;
        }
        if (v->bug == COUNT_LEAKED) x[0] = own[0] * v->plan.count_scale;
        for (int i = 0; i < N; i++) out[i] += x[i];
    }
out:
    return st;
}

static struct fkt_audit_result attack(struct victim *v, uint64_t trials)
{
    const struct fkt_audit_spec s = {.length = N,
                                     .shift = v->shift,
                                     .sigma = v->sigma,
                                     .trials = trials,
                                     .delta = v->plan.plan.spec.delta,
                                     .confidence = 0.999};
    struct fkt_audit_result r;
    CHECK_OK(fkt_privacy_audit(&r, &s, victim_release, v));
    return r;
}

/* The claim is in zCDP and a little above what a Gaussian of the same variance costs, so the bound ends below it by
 * that much; mu itself must come close. */
static void the_bound_comes_close_and_does_not_pass(void **state)
{
    const double epsilons[] = {1, 4, 4}, deltas[] = {1e-2, 1e-2, 1e-5};
    struct victim v;
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        victim_init(&v, epsilons[i], deltas[i], NONE, 10 + i);
        const struct fkt_audit_result r = attack(&v, 100000);
        print_message("epsilon %g, delta %g: epsilon_low %.3f, mu_low %.4f of %.4f\n", epsilons[i], deltas[i],
                      r.epsilon_low, r.mu_low, v.plan.plan.mu);
        CHECK(r.epsilon_low <= epsilons[i]);
        CHECK(r.mu_low <= v.plan.plan.mu && r.mu_low >= 0.85 * v.plan.plan.mu);
    }
}

static void caught(enum bug bug, double epsilon, uint64_t trials)
{
    struct victim v;
    victim_init(&v, epsilon, 1e-2, bug, 30);
    const struct fkt_audit_result r = attack(&v, trials);
    print_message("bug %d, epsilon %g: epsilon_low %.3f\n", (int)bug, epsilon, r.epsilon_low);
    CHECK(r.epsilon_low > epsilon && r.mu_low > v.plan.plan.mu);
}

/* Noise shares that the promise counts, but that have no noise. */
static void missing_shares_are_caught(void **state)
{
    (void)state;
    caught(ONE_SHARE_ONLY, 1, 50000);
}

static void a_fixed_seed_is_caught(void **state)
{
    (void)state;
    caught(FIXED_SEED, 1, 10000);
}

static void a_leaked_count_is_caught(void **state)
{
    (void)state;
    caught(COUNT_LEAKED, 1, 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_have_the_variance_planned), cmocka_unit_test(the_bound_comes_close_and_does_not_pass),
        cmocka_unit_test(missing_shares_are_caught),        cmocka_unit_test(a_fixed_seed_is_caught),
        cmocka_unit_test(a_leaked_count_is_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
