/* SPDX-License-Identifier: Apache-2.0 */
/* chi2.h - tail probabilities for tests of distributions. */
#ifndef FKT_TEST_CHI2_H
#define FKT_TEST_CHI2_H

#include <math.h>
#include <stdint.h>

/* P(chi-square with df degrees of freedom > x): the upper incomplete gamma ratio, by series below and continued
 * fraction above. */
static inline double chi2_tail(double x, double df)
{
    const double a = df / 2, z = x / 2, front = exp(-z + a * log(z) - lgamma(a));
    if (!(x > 0)) return 1;
    if (z < a + 1) {
        double term = 1 / a, sum = term;
        for (int n = 1; n < 10000 && term > sum * 1e-17; n++) sum += term *= z / (a + n);
        return 1 - front * sum;
    }
    double b = z + 1 - a, c = 1e300, d = 1 / b, h = d;
    for (int n = 1; n < 10000; n++) {
        const double an = -n * (n - a);
        b += 2;
        d = 1 / (an * d + b);
        c = b + an / c;
        h *= d * c;
        if (fabs(d * c - 1) < 1e-15) break;
    }
    return front * h;
}

/* Pearson's statistic of counts (bins) against probabilities p (bins), n draws; its tail probability. */
static inline double chi2_test(const uint64_t *count, const double *p, int bins, double n)
{
    double x = 0;
    for (int i = 0; i < bins; i++) x += ((double)count[i] - n * p[i]) * ((double)count[i] - n * p[i]) / (n * p[i]);
    return chi2_tail(x, bins - 1);
}

#endif
