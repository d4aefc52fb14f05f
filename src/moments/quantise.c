/* SPDX-License-Identifier: Apache-2.0 */
/* quantise.c - a record vector w in the ball of radius R becomes integers q in the ball of integer radius Rq.
 *
 *   x = w*Rq/R  ->  q_i = nearest integer to x_i, halves away from zero
 *               ->  while |q|^2 > Rq^2: the coordinate that rounding moved furthest from zero goes back by 1
 *                   (the lowest index on ties)
 *
 * The sensitivity of every later sum follows from |q|^2 <= Rq^2, so that is enforced in integer arithmetic and does not
 * depend on a floating-point comparison. Proof that the loop ends, that it reduces each coordinate at most once, and
 * that |q_i - x_i| < 1: quantise.md, whose steps are cited below. round() and comparisons do not depend on the rounding
 * mode; x does, by one unit in the last place. Cost: m numbers, plus m for each step back (usually a handful). */
#include "fedkt/advanced/moments.h"

#include "base/status.h"

#include <assert.h>
#include <math.h>

#define SLACK 1e-9 /* how far |w| may exceed R, relatively, and still count as rounding error */

static double scaled(const struct fkt_coordinates *c, double w) { return w / c->radius * c->rq; }

/* Step 3: the excess |q_i| - |x_i| is exact for q_i != 0, and positive for at least one i whenever |q|^2 > Rq^2. */
static size_t furthest_out(const struct fkt_coordinates *c, const double *w, const int32_t *q)
{
    size_t top = 0;
    double most = 0;
    for (size_t i = 0; i < c->length; i++) {
        double excess = fabs((double)q[i]) - fabs(scaled(c, w[i]));
        if (excess > most) most = excess, top = i;
    }
    assert(most > 0);
    return top;
}

fkt_status fkt_quantise(const struct fkt_coordinates *c, const double *w, int32_t *q)
{
    const int64_t bound = (int64_t)c->rq * c->rq;
    double size = 0; /* |x|^2 */
    int64_t norm = 0;
    fkt_status st = fkt_coordinates_check(c);

    if (st != FKT_OK) return st;
    for (size_t i = 0; i < c->length; i++) {
        double x = scaled(c, w[i]);
        size += x * x;
    }
    if (!(size <= (double)bound * (1 + SLACK) * (1 + SLACK)))
        return fkt_fail_hint(FKT_E_NUMERIC, "vectors must come from fkt_coordinates_forward",
                             "record vector is outside its ball: |w| = %g of radius %g", sqrt(size) * c->radius / c->rq,
                             c->radius);
    for (size_t i = 0; i < c->length; i++) { /* step 1: |q_i| <= Rq + 1, so norm <= 2^20 * 2^25 */
        q[i] = (int32_t)round(scaled(c, w[i]));
        norm += (int64_t)q[i] * q[i];
    }
    while (norm > bound) { /* step 2: each iteration lowers sum |q_i| by 1 */
        size_t i = furthest_out(c, w, q);
        int32_t back = q[i] > 0 ? q[i] - 1 : q[i] + 1;
        norm += (int64_t)back * back - (int64_t)q[i] * q[i];
        q[i] = back;
    }
    return FKT_OK;
}

/* quantise.md, *Length*: rounding adds 1/12 in each coordinate on average; slack covers coordinates that are mostly
 * rounded to 0 (d/4) and steps back in every record (Rq/2). */
struct fkt_direction fkt_coordinates_direction(const struct fkt_coordinates *c)
{
    double rq = c->rq, d = c->dim;
    if (c->kind != FKT_COORDINATE_GAIN_SHAPE || !(c->radius > 0)) return (struct fkt_direction){0};
    return (struct fkt_direction){c->dim, rq * rq / (c->radius * c->radius) + d / 12, d / 4 + rq / 2};
}
