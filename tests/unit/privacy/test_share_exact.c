/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan for shares claims (share_gdp.md) against the exact delta of its total: one class, records of one number,
 * so that the total is three integers (n, S, M) whose distributions are convolved and summed over a whole grid. No
 * randomness. What lies beyond the grid (7 standard deviations) is left out, which can only lower the exact delta. */
#include "fedkt/advanced/privacy.h"

#include "privacy/share_plan.h"
#include "tests/support/check.h"

#include <stdlib.h>

enum { REACH = 400, WIDE = 2 * REACH + 1 };

struct number {
    double p[WIDE]; /* of the noise, at x - REACH */
    int reach, shift;
};

static double value(const struct fkt_dyadic *v) { return ldexp((double)v->num, -(int)v->shift); }

static void total_of_shares(struct number *out, const struct fkt_dyadic *variance, uint32_t shares, int shift)
{
    double one[WIDE], sum = 0, v = value(variance);
    out->shift = shift;
    out->reach = (int)(7 * sqrt(v * shares)) + shift + 1;
    CHECK(out->reach <= REACH);
    for (int x = 0; x < WIDE; x++) sum += one[x] = exp(-(x - REACH) * (double)(x - REACH) / (2 * v));
    for (int x = 0; x < WIDE; x++) out->p[x] = one[x] /= sum;
    for (uint32_t k = 1; k < shares; k++) {
        double next[WIDE] = {0};
        for (int x = 0; x < WIDE; x++)
            for (int y = 0; y < WIDE; y++)
                if (x - y + REACH >= 0 && x - y + REACH < WIDE) next[x] += out->p[x - y + REACH] * one[y];
        memcpy(out->p, next, sizeof next);
    }
}

/* sum over all totals of max(0, P(total) - e^epsilon P(total - shift)); swap: the record is taken away instead. */
static double exact_delta(const struct number n[3], double epsilon, int swap)
{
    const double factor = exp(epsilon);
    double delta = 0;
    for (int i = -n[0].reach; i <= n[0].reach; i++)
        for (int j = -n[1].reach; j <= n[1].reach; j++)
            for (int k = -n[2].reach; k <= n[2].reach; k++) {
                const int at[3] = {i, j, k};
                double here = 1, there = 1;
                for (int a = 0; a < 3; a++) {
                    const int from = at[a] + REACH, to = from - n[a].shift;
                    here *= n[a].p[swap ? to : from];
                    there *= n[a].p[swap ? from : to];
                }
                if (here > factor * there) delta += here - factor * there;
            }
    return delta;
}

/* The largest exact delta over what the claim says of it, over some epsilons. */
static double worst(const struct fkt_privacy_spec *spec, uint32_t shares, const double *epsilon, int n)
{
    const int side = (int)spec->part[0].radius; /* the longest record: q = Rq */
    struct number number[3];
    struct fkt_share_plan p;
    double most = 0;
    CHECK_OK(fkt_privacy_plan_shares(&p, spec, shares, shares));
    total_of_shares(&number[0], &p.variance_count, shares, (int)p.count_scale);
    total_of_shares(&number[1], &p.variance[0].sum, shares, side);
    total_of_shares(&number[2], &p.variance[0].moment, shares, side * side);
    for (int e = 0; e < n; e++)
        for (int swap = 0; swap < 2; swap++)
            most = fmax(most, exact_delta(number, epsilon[e], swap) / fkt_privacy_delta(epsilon[e], p.plan.mu));
    return most;
}

/* Shares at the least variance there may be: the lattice matters, and the kernel's cost is needed. */
static void narrow_shares_keep_the_promise(void **state)
{
    const struct fkt_privacy_spec s = {
        .epsilon = 100, .delta = 1e-2, .split_count = 1, .parts = 1, .part = {{2, 24, 75}}};
    const double epsilon[] = {0, 0.3, 0.7, 1, 1.3, 1.7, 2, 2.5, 3, 4, 5, 6};
    (void)state;
    for (uint32_t shares = 1; shares <= 3; shares++) CHECK(worst(&s, shares, epsilon, 12) <= 1);
}

/* Wider ones satisfy it too, with little slack. */
static void wider_shares_are_nearly_gaussian(void **state)
{
    const struct fkt_privacy_spec s = {
        .epsilon = 2, .delta = 1e-3, .split_count = 1, .parts = 1, .part = {{3, 24, 75}}};
    const double epsilon[] = {0, 1, 2, 3};
    (void)state;
    for (uint32_t shares = 1; shares <= 4; shares += 3) {
        const double most = worst(&s, shares, epsilon, 4);
        CHECK(most <= 1 && most > 0.8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(narrow_shares_keep_the_promise),
        cmocka_unit_test(wider_shares_are_nearly_gaussian),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
