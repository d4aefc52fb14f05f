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
 * mode; x does, by one unit in the last place. Joined parts are one vector in one ball, R^2 = sum of R_p^2. Cost: m
 * numbers, plus m for each step back (usually a handful). */
#include "fedkt/advanced/moments.h"

#include "base/status.h"

#include <assert.h>
#include <math.h>

enum { LENGTH_MAX = 1 << 20 }; /* quantise.md needs it; fkt_coordinates_check has the same bound */
#define SLACK 1e-9             /* how far |w| may exceed R, relatively, and still count as rounding error */

/* Where a vector must end up: `length` numbers, |w| <= radius, |q|^2 <= rq^2. */
struct ball {
    size_t length;
    double radius;
    uint32_t rq;
};

static double scaled(const struct ball *b, double w) { return w / b->radius * b->rq; }

/* Step 3: the excess |q_i| - |x_i| is exact for q_i != 0, and positive for at least one i whenever |q|^2 > Rq^2. */
static size_t furthest_out(const struct ball *b, const double *w, const int32_t *q)
{
    size_t top = 0;
    double most = 0;
    for (size_t i = 0; i < b->length; i++) {
        double excess = fabs((double)q[i]) - fabs(scaled(b, w[i]));
        if (excess > most) most = excess, top = i;
    }
    assert(most > 0);
    return top;
}

/* pre: length <= LENGTH_MAX, FKT_RQ_MIN <= rq <= FKT_RQ_MAX, radius > 0 */
static fkt_status quantise(const struct ball *b, const double *w, int32_t *q)
{
    const int64_t bound = (int64_t)b->rq * b->rq;
    double size = 0; /* |x|^2 */
    int64_t norm = 0;

    for (size_t i = 0; i < b->length; i++) {
        double x = scaled(b, w[i]);
        size += x * x;
    }
    if (!(size <= (double)bound * (1 + SLACK) * (1 + SLACK)))
        return fkt_fail_hint(FKT_E_NUMERIC, "vectors must come from fkt_coordinates_forward",
                             "record vector is outside its ball: |w| = %g of radius %g", sqrt(size) * b->radius / b->rq,
                             b->radius);
    for (size_t i = 0; i < b->length; i++) { /* step 1: |q_i| <= Rq + 1, so norm <= 2^20 * 2^25 */
        q[i] = (int32_t)round(scaled(b, w[i]));
        norm += (int64_t)q[i] * q[i];
    }
    while (norm > bound) { /* step 2: each iteration lowers sum |q_i| by 1 */
        size_t i = furthest_out(b, w, q);
        int32_t back = q[i] > 0 ? q[i] - 1 : q[i] + 1;
        norm += (int64_t)back * back - (int64_t)q[i] * q[i];
        q[i] = back;
    }
    return FKT_OK;
}

fkt_status fkt_quantise(const struct fkt_coordinates *c, const double *w, int32_t *q)
{
    fkt_status st = fkt_coordinates_check(c);
    return st == FKT_OK ? quantise(&(struct ball){c->length, c->radius, c->rq}, w, q) : st;
}

/* quantise.md, *Joined*: |w|^2 = sum of |w_p|^2 <= sum of R_p^2. */
double fkt_joined_radius(const struct fkt_coordinates *part, uint32_t parts)
{
    double square = 0;
    for (uint32_t p = 0; p < parts; p++) square += part[p].radius * part[p].radius;
    return sqrt(square);
}

fkt_status fkt_quantise_joined(const struct fkt_coordinates *part, uint32_t parts, uint32_t rq, const double *w,
                               int32_t *q)
{
    struct ball b = {0, 0, rq};
    if (parts < 1 || parts > FKT_PARTS_MAX)
        return fkt_fail(FKT_E_ARG, "a record vector has 1 to %d parts, not %u", FKT_PARTS_MAX, parts);
    if (rq < FKT_RQ_MIN || rq > FKT_RQ_MAX)
        return fkt_fail(FKT_E_ARG, "integer radius %u is outside %u..%u", rq, FKT_RQ_MIN, FKT_RQ_MAX);
    for (uint32_t p = 0; p < parts; p++) {
        fkt_status st = fkt_coordinates_check(&part[p]);
        if (st != FKT_OK) return st;
        b.length += part[p].length;
    }
    b.radius = fkt_joined_radius(part, parts);
    if (b.length > LENGTH_MAX)
        return fkt_fail(FKT_E_ARG, "a joined record vector of %zu numbers is longer than %d", b.length, LENGTH_MAX);
    return quantise(&b, w, q);
}

/* quantise.md, *Length*: rounding adds 1/12 in each coordinate on average; slack covers coordinates that are mostly
 * rounded to 0 (d/4) and steps back in every record (Rq/2). */
static struct fkt_direction direction_in(const struct fkt_coordinates *c, double radius, double rq)
{
    const double d = c->dim;
    if (c->kind != FKT_COORDINATE_GAIN_SHAPE || !(radius > 0)) return (struct fkt_direction){0};
    return (struct fkt_direction){c->dim, rq * rq / (radius * radius) + d / 12, d / 4 + rq / 2};
}

struct fkt_direction fkt_coordinates_direction(const struct fkt_coordinates *c)
{
    return direction_in(c, c->radius, c->rq);
}

struct fkt_direction fkt_joined_direction(const struct fkt_coordinates *part, uint32_t parts, uint32_t p, uint32_t rq)
{
    return direction_in(&part[p], fkt_joined_radius(part, parts), rq);
}
