/* SPDX-License-Identifier: Apache-2.0 */
/* sensitivity.c - the largest distance of two neighbouring datasets, in units of the noise.
 *
 * A record q in the ball of radius Rq adds (1, q, q q^T) to its class. With the noise of privacy.h the squared distance
 * of two neighbours is a quadratic form in those, and its largest value is mu^2. The three closed forms and their
 * proofs: sensitivity.md. We differ from the paper, which charges mean and second moment separately and takes 2 R^2 for
 * the second, where sqrt(2) R^2 is exact. */
#include "fedkt/advanced/privacy.h"
#include "privacy/adjacency.h"

#include <float.h>
#include <math.h>

#define ROUND_UP (1 + 8 * DBL_EPSILON) /* eight roundings at most, all terms positive */

double fkt_mu_squared_add_remove(double a, double b, double c) { return a * a + b * b + c * c; }

/* sensitivity.md, step 6. a = 0 or b = 0 need no special case: only b > 0 or a = b = 0 reach the division. */
double fkt_mu_squared_replace(double a, double b, double c)
{
    const double a2 = a * a, b2 = b * b;
    (void)c; /* counts are public */
    if (a2 > 2 * b2) return 4 * a2;
    if (b2 == 0) return 0;
    return 2 * a2 + 2 * b2 + a2 * (a2 / b2) / 2;
}

double fkt_mu_squared_replace_any(double a, double b, double c)
{
    return fmax(2 * fkt_mu_squared_add_remove(a, b, c), fkt_mu_squared_replace(a, b, c));
}

double fkt_privacy_mu_squared(enum fkt_adjacency adjacency, double a, double b, double c)
{
    fkt_mu_squared_of *mu_squared = fkt_adjacency_mu_squared(adjacency);
    if (!(a >= 0 && b >= 0 && c >= 0 && a < INFINITY && b < INFINITY && c < INFINITY)) return NAN;
    return mu_squared ? ROUND_UP * mu_squared(a, b, c) : NAN;
}
