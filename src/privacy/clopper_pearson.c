/* SPDX-License-Identifier: Apache-2.0 */
/* clopper_pearson.c - bounds for a binomial probability, by bisection on the tail itself.
 * Source: Clopper, Pearson, Biometrika 1934. The lower bound is the p at which k or more successes have probability
 * alpha; the upper bound is the same with successes and failures swapped. The tail is its first term, in logarithms,
 * times a decreasing series, so that no p is too small. Cost: fifty tails of a few times sqrt(n) terms each. */
#include "privacy/clopper_pearson.h"

#include <float.h>
#include <math.h>

static double log_factorial(uint64_t n)
{
    int sign; /* lgamma() would write a global */
    return lgamma_r((double)n + 1, &sign);
}

/* log P(X >= k), X binomial(n, p), rounded up by more than the error of log_factorial. Both log p and log q, q = 1 - p,
 * are given, so that either may be tiny. pre: 1 <= k <= n, p <= k/n, so the terms decrease */
static double log_tail_up(uint64_t k, uint64_t n, double log_p, double log_q)
{
    const double odds = exp(log_p - log_q), top = log_factorial(n);
    double term = 1, sum = 1;
    for (uint64_t j = k; j < n && term > sum * 1e-18; j++) {
        term *= (double)(n - j) / (double)(j + 1) * odds;
        sum += term;
    }
    return top - log_factorial(k) - log_factorial(n - k) + (double)k * log_p + (double)(n - k) * log_q + log(sum) +
           8 * DBL_EPSILON * top + 1e-9;
}

static int valid(uint64_t k, uint64_t n, double alpha)
{
    return n >= 1 && n <= (uint64_t)1 << 40 && k <= n && alpha > 0 && alpha < 0.5;
}

double fkt_clopper_pearson_lower(uint64_t k, uint64_t n, double alpha)
{
    double lo = 0, hi = (double)k / (double)n;
    if (!valid(k, n, alpha)) return NAN;
    if (k == 0) return 0;
    while (hi - lo > 1e-14 * hi) {
        const double p = 0.5 * (lo + hi);
        if (log_tail_up(k, n, log(p), log1p(-p)) <= log(alpha)) lo = p;
        else hi = p;
    }
    return lo;
}

double fkt_clopper_pearson_upper(uint64_t k, uint64_t n, double alpha)
{
    double lo = (double)k / (double)n, hi = 1;
    if (!valid(k, n, alpha)) return NAN;
    if (k == n) return 1;
    while (hi - lo > 1e-14 * hi) {
        const double p = 0.5 * (lo + hi);
        if (log_tail_up(n - k, n, log1p(-p), log(p)) <= log(alpha)) hi = p;
        else lo = p;
    }
    return hi;
}
