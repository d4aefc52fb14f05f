/* SPDX-License-Identifier: Apache-2.0 */
/* gdp.c - from a Gaussian mechanism's mu to (epsilon, delta) and back, without cancellation, always on the safe side.
 *
 *   delta(epsilon; mu) = Phi(-a) - e^epsilon Phi(-b),     a = epsilon/mu - mu/2,  b = epsilon/mu + mu/2
 *
 * Source: Balle, Wang 2018 (theorem 8); Dong, Roth, Su 2022 (corollary 2.13). We differ in how it is computed: the two
 * terms agree to many digits when delta is small, so their difference is written as one integral of a positive function
 * (gdp.md, step 2) and summed by Gauss-Legendre panels that double in width. The answer is kept as a logarithm, so
 * delta = 1e-300 is not a special case. Every result is moved to the safe side by more than its proven error (gdp.md,
 * step 5). Cost: a few microseconds for one delta, fifty of them for a mu or an epsilon. */
#include "fedkt/privacy.h"

#include <float.h>
#include <math.h>

#define LOG_SQRT_2PI 0.91893853320467274178
#define SQRT_HALF 0.70710678118654752440
#define SLACK 1e-10        /* a hundred times the error that step 5 of gdp.md leaves; rounding of a, b is added */
#define FULL_WEIGHT (-1.0) /* instead of mu: the weight is 1, the integral is Mills' ratio */

/* Gauss-Legendre on [-1, 1], 16 points: the eight positive nodes and their weights. */
static const double node[8][2] = {
    {0.095012509837637440185, 0.18945061045506849629}, {0.28160355077925891323, 0.18260341504492358887},
    {0.45801677765722738634, 0.16915651939500253819},  {0.61787624440264374845, 0.14959598881657673208},
    {0.7554044083550030339, 0.12462897125553387205},   {0.86563120238783174388, 0.09515851168249278481},
    {0.94457502307323257608, 0.062253523938647892863}, {0.9894009349916499326, 0.027152459411754094852},
};

/* The integral over s > 0 of exp(-s^2/2 - a s) (1 - exp(-mu s)), relative error below 1e-12: steps 3, 4.
 * pre: a >= -1 */
static double tail_integral(double a, double mu)
{
    const double end = 90 / (a + sqrt(a * a + 90)); /* here the exponent has reached -45: step 3 */
    int doublings = 7;
    double lo = 0, hi, sum = 0;
    while (doublings < 64 && mu * ldexp(end, -doublings) > 1) doublings++;
    for (hi = ldexp(end, -doublings); doublings >= 0; doublings--, lo = hi, hi *= 2) {
        const double mid = 0.5 * (lo + hi), half = 0.5 * (hi - lo);
        double panel = 0;
        for (int i = 0; i < 16; i++) {
            const double s = mid + (i & 1 ? -half : half) * node[i / 2][0];
            const double weight = mu == FULL_WEIGHT ? 1 : -expm1(-mu * s);
            panel += node[i / 2][1] * exp(-s * (0.5 * s + a)) * weight;
        }
        sum += half * panel;
    }
    return sum;
}

/* An upper bound of log delta(epsilon; mu), tight to SLACK and the rounding of a and b.
 * pre: epsilon >= 0, mu > 0, both finite */
static double log_delta_up(double epsilon, double mu)
{
    const double x = epsilon / mu, a = x - 0.5 * mu, b = x + 0.5 * mu;
    double log_delta;
    if (a > 1e150) return -1e299; /* log delta <= -a^2/2 */
    if (a < -1)                   /* step 4: here the second term is below a fifth of the first */
        log_delta = log(0.5 * erfc(a * SQRT_HALF) - exp(-0.5 * a * a - LOG_SQRT_2PI) * tail_integral(b, FULL_WEIGHT));
    else log_delta = log(tail_integral(a, mu)) - 0.5 * a * a - LOG_SQRT_2PI;
    return fmin(0, log_delta + SLACK + 4 * DBL_EPSILON * b * b); /* step 5 */
}

double fkt_privacy_delta(double epsilon, double mu)
{
    if (!(epsilon >= 0 && epsilon < INFINITY && mu >= 0 && mu < INFINITY)) return NAN;
    if (mu == 0) return 0;
    return fmin(1, nextafter(exp(log_delta_up(epsilon, mu)), INFINITY));
}

/* Both searches below end on a point that has itself passed the test `log_delta_up <= log(delta)`: step 6. */
double fkt_privacy_mu(double epsilon, double delta)
{
    double lo = 1, hi = 1, target;
    if (!(epsilon >= 1e-12 && epsilon <= 1e12 && delta > 0 && delta < 1)) return NAN;
    target = log(delta);
    while (log_delta_up(epsilon, lo) > target) lo *= 0.5;
    while (log_delta_up(epsilon, hi) <= target) hi *= 2;
    while (hi - lo > 1e-13 * lo) {
        const double mid = 0.5 * (lo + hi);
        if (log_delta_up(epsilon, mid) <= target) lo = mid;
        else hi = mid;
    }
    return lo;
}

double fkt_privacy_epsilon(double delta, double mu)
{
    double lo = 0, hi = 1, target;
    if (!(delta > 0 && delta < 1 && mu >= 0 && mu < INFINITY)) return NAN;
    if (mu > 1e6) return INFINITY; /* no useful protection */
    target = log(delta);
    if (mu == 0 || log_delta_up(0, mu) <= target) return 0;
    while (log_delta_up(hi, mu) > target) hi *= 2;
    while (hi - lo > 1e-13 * hi) {
        const double mid = 0.5 * (lo + hi);
        if (mid <= lo || mid >= hi) break;
        if (log_delta_up(mid, mu) <= target) hi = mid;
        else lo = mid;
    }
    return hi;
}
