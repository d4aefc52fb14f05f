/* SPDX-License-Identifier: Apache-2.0 */
/* zcdp.c - from zero-concentrated privacy rho to (epsilon, delta) and back, always on the safe side.
 *
 *   delta(epsilon; rho) = inf over x > 0 of exp(x ((x + 1) rho - epsilon)) x^x / (x + 1)^(x + 1),     x = alpha - 1
 *
 * Source: Canonne, Kamath, Steinke 2020, proposition 12 (rho-zCDP: the Renyi divergence of order alpha is at most alpha
 * rho). We differ in how it is computed: the logarithm of the right side is convex in x, so its derivative has one
 * root, found by bisection of log x. Any x gives a bound, so an error in x costs tightness but not safety; the largest
 * error of the sum of three logarithms is added (zcdp.md, step 3). Cost: about 10 microseconds for one delta, fifty of
 * them for a rho or an epsilon. */
#include "fedkt/advanced/privacy.h"

#include <float.h>
#include <math.h>

#define SLACK 1e-12 /* on log delta; the rounding of its terms is added */

/* d/dx of the logarithm; increases from -infinity to infinity. */
static double slope(double x, double epsilon, double rho) { return rho * (2 * x + 1) - epsilon - log1p(1 / x); }

/* An upper bound of log delta(epsilon; rho). pre: epsilon >= 0, rho > 0, both finite */
static double log_delta_up(double epsilon, double rho)
{
    double lo = -700, hi = 700, x, loss, shape; /* of log x */
    for (int i = 0; i < 64 && hi - lo > 1e-9; i++) {
        const double mid = 0.5 * (lo + hi);
        if (slope(exp(mid), epsilon, rho) < 0) lo = mid;
        else hi = mid;
    }
    x = exp(0.5 * (lo + hi));
    loss = x * ((x + 1) * rho + epsilon); /* magnitude of the first term's parts */
    shape = x * log1p(1 / x) + log1p(x);
    return fmin(0, x * ((x + 1) * rho - epsilon) - shape + SLACK + 8 * DBL_EPSILON * (loss + shape));
}

/* Both searches below end on a point that has itself passed the test `log_delta_up <= log(delta)`: step 4. */
double fkt_privacy_rho(double epsilon, double delta)
{
    double lo = 1, hi = 1, target;
    if (!(epsilon >= 1e-12 && epsilon <= 1e12 && delta > 0 && delta < 1)) return NAN;
    target = log(delta);
    while (lo > 0 && log_delta_up(epsilon, lo) > target) lo *= 0.5;
    while (log_delta_up(epsilon, hi) <= target) hi *= 2;
    while (hi - lo > 1e-13 * lo) {
        const double mid = 0.5 * (lo + hi);
        if (log_delta_up(epsilon, mid) <= target) lo = mid;
        else hi = mid;
    }
    return lo;
}

double fkt_privacy_epsilon_zcdp(double delta, double rho)
{
    double lo = 0, hi = 1, target;
    if (!(delta > 0 && delta < 1 && rho >= 0 && rho < INFINITY)) return NAN;
    if (rho > 1e12) return INFINITY; /* no useful protection */
    target = log(delta);
    if (rho == 0 || log_delta_up(0, rho) <= target) return 0;
    while (log_delta_up(hi, rho) > target) hi *= 2;
    while (hi - lo > 1e-13 * hi) {
        const double mid = 0.5 * (lo + hi);
        if (mid <= lo || mid >= hi) break;
        if (log_delta_up(mid, rho) <= target) hi = mid;
        else lo = mid;
    }
    return hi;
}
