/* SPDX-License-Identifier: Apache-2.0 */
/* sensitivity.c - the largest distance of two neighbouring datasets, in units of the noise.
 *
 * A record adds to its class 1 and, for each part q in the ball of its radius Rq, q and q q^T. With the noise of
 * privacy.h the squared distance of two neighbours is a quadratic form in those, and its largest value is mu^2. The
 * three closed forms and their proofs, for several parts and for pooled second moments: sensitivity.md. We differ from
 * the paper, which charges mean and second moment separately and takes 2 R^2 for the second, where sqrt(2) R^2 is
 * exact. */
#include "fedkt/advanced/privacy.h"
#include "privacy/adjacency.h"

#include <float.h>
#include <math.h>

#define ROUND_UP (1 + 8 * DBL_EPSILON) /* eleven roundings at most for four parts, each 2^-53; all terms positive */

double fkt_mu_squared_add_remove(double c, uint32_t parts, const double *a, const double *b)
{
    double sum = 0;
    for (uint32_t p = 0; p < parts; p++) sum += a[p] * a[p] + b[p] * b[p];
    return sum + c * c;
}

/* sensitivity.md, step 6. a = 0 or b = 0 need no special case: only b > 0 or a = b = 0 reach the division. */
static double replace_part(double a, double b)
{
    const double a2 = a * a, b2 = b * b;
    if (a2 > 2 * b2) return 4 * a2;
    if (b2 == 0) return 0;
    return 2 * a2 + 2 * b2 + a2 * (a2 / b2) / 2;
}

double fkt_mu_squared_replace(double c, uint32_t parts, const double *a, const double *b)
{
    double sum = 0;
    (void)c; /* counts are public */
    for (uint32_t p = 0; p < parts; p++) sum += replace_part(a[p], b[p]);
    return sum;
}

double fkt_mu_squared_replace_any(double c, uint32_t parts, const double *a, const double *b)
{
    return fmax(2 * fkt_mu_squared_add_remove(c, parts, a, b), fkt_mu_squared_replace(c, parts, a, b));
}

static int finite_size(double x) { return x >= 0 && x < INFINITY; }

double fkt_privacy_mu_squared(enum fkt_adjacency adjacency, double c, uint32_t parts, const double *a, const double *b)
{
    fkt_mu_squared_of *mu_squared = fkt_adjacency_mu_squared(adjacency);
    if (!mu_squared || parts == 0 || parts > FKT_PARTS_MAX || !finite_size(c)) return NAN;
    for (uint32_t p = 0; p < parts; p++)
        if (!finite_size(a[p]) || !finite_size(b[p])) return NAN;
    return ROUND_UP * mu_squared(c, parts, a, b);
}
