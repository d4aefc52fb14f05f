/* SPDX-License-Identifier: Apache-2.0 */
/* collusion.c - how many colluding sites a division into cohorts covers, when sites are assigned at random.
 *
 * A of N sites collude. Given the sizes of the cohorts, the members of one are a uniformly random subset, so the
 * colluding ones in a cohort of n are hypergeometric; the cohorts' tails are added up (cohorts.md, step 6). The largest
 * A whose sum stays below 2^-40 is found by bisection: more colluding sites make every tail heavier.
 *
 * Rounding cannot make the result too large: a tail is a sum of positive terms whose first comes from logarithms of
 * factorials. One unit in the last place of log(2^30!) is 3.8e-6. Of the nine logarithms at most four are as large as
 * that, or two and four of half the size: with errors of 4 units in each the first term is wrong by less than 1e-4, by
 * which the sum is enlarged. oracle/cohorts.py computes the same
 * with 30 digits. Cost: some hundred terms for each cohort and step. */
#include "fedkt/advanced/privacy.h"

#include <math.h>

#define SLACK 1e-4

static double log_factorial(double n)
{
    int sign; /* lgamma() would write a global */
    return lgamma_r(n + 1, &sign);
}

static double log_choose(double n, double k) { return log_factorial(n) - log_factorial(k) - log_factorial(n - k); }

/* P(more than `most` of the n drawn from N are among the A marked), enlarged a little. */
static double tail(double N, double A, double n, double most)
{
    const double x = most + 1;
    double sum = 1, term = 1;
    if (x > A || x > n) return 0;
    if (x * N <= n * A) return 1; /* up to the mean: nothing small can come out */
    for (double i = x; i < A && i < n && term > sum * 1e-18; i++) {
        term *= (A - i) * (n - i) / ((i + 1) * (N - A - n + i + 1));
        sum += term;
    }
    return exp(log_choose(A, x) + log_choose(N - A, n - x) - log_choose(N, n)) * sum * (1 + SLACK);
}

static int is_covered(uint32_t sites, uint32_t colluding, const struct fkt_cohort *cohort, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += tail(sites, colluding, cohort[i].sites, cohort[i].corrupt);
    return sum <= ldexp(1, -FKT_COLLUSION_BITS); /* NaN is not */
}

uint32_t fkt_privacy_covered(uint32_t sites, const struct fkt_cohort *cohort, size_t n)
{
    uint32_t yes = 0, no = sites;
    while (no - yes > 1) {
        const uint32_t middle = yes + (no - yes) / 2;
        if (is_covered(sites, middle, cohort, n)) yes = middle;
        else no = middle;
    }
    return yes;
}
