/* SPDX-License-Identifier: Apache-2.0 */
/* coordinates.c - from a calibrated latent u to a record vector w in a ball of public radius R, and back.
 *
 *   clip        w = u * min(1, R/|u|)                                       length d
 *   gain-shape  w = (u/|u|, g),  g = gamma * clamp((log|u| - c)/s, -1, 1)   length d + 1, R^2 = 1 + gamma^2
 *
 * Source: `clip` is the paper's (FedKT-CSD, the clipping step of the class moments). We differ by `gain-shape`, the
 * default: direction and size are separate, so no radius has to be guessed and the direction is never clipped.
 *
 * u = 0 has no direction: w = (0, -gamma), a record of the smallest size. In the inverse, a gain outside the range of
 * any record is clamped to +-gamma, and a direction of length 0 gives u = 0. |u| is computed from u/max|u_i|, so that
 * no square overflows or underflows. Cost: two passes over d numbers. */
#include "fedkt/advanced/moments.h"

#include "base/status.h"

#include <math.h>
#include <string.h>

#define DIM_MAX (1U << 20) /* the bound that quantise.md relies on */
#define LOG_MAX 700.0      /* keeps exp(c + s*g/gamma) finite and normal: exp(+-709) is not */

static fkt_status check_common(uint32_t dim, uint32_t rq)
{
    if (dim < 1 || dim >= DIM_MAX) return fkt_fail(FKT_E_ARG, "latent length %u is outside 1..%u", dim, DIM_MAX - 1);
    if (rq < FKT_RQ_MIN || rq > FKT_RQ_MAX)
        return fkt_fail(FKT_E_ARG, "integer radius %u is outside %u..%u", rq, FKT_RQ_MIN, FKT_RQ_MAX);
    return FKT_OK;
}

fkt_status fkt_coordinates_gain_shape(struct fkt_coordinates *c, uint32_t dim, uint32_t rq, double gamma,
                                      double log_mean, double log_spread)
{
    fkt_status st = check_common(dim, rq);
    memset(c, 0, sizeof *c);
    if (st != FKT_OK) return st;
    if (!(gamma >= 1e-3 && gamma <= 1e3)) return fkt_fail(FKT_E_ARG, "gain weight %g is outside 0.001..1000", gamma);
    if (!(log_spread > 0 && fabs(log_mean) + log_spread <= LOG_MAX))
        return fkt_fail(FKT_E_ARG, "log-size mean %g and spread %g: need spread > 0 and |mean| + spread <= %g",
                        log_mean, log_spread, LOG_MAX);
    *c = (struct fkt_coordinates){.kind = FKT_COORDINATE_GAIN_SHAPE,
                                  .dim = dim,
                                  .length = dim + 1,
                                  .rq = rq,
                                  .radius = sqrt(1 + gamma * gamma),
                                  .gamma = gamma,
                                  .log_mean = log_mean,
                                  .log_spread = log_spread};
    return FKT_OK;
}

fkt_status fkt_coordinates_clip(struct fkt_coordinates *c, uint32_t dim, uint32_t rq, double radius)
{
    fkt_status st = check_common(dim, rq);
    memset(c, 0, sizeof *c);
    if (st != FKT_OK) return st;
    if (!(radius > 0 && isnormal(radius)))
        return fkt_fail(FKT_E_ARG, "radius %g is not a positive finite number", radius);
    *c = (struct fkt_coordinates){.kind = FKT_COORDINATE_CLIP, .dim = dim, .length = dim, .rq = rq, .radius = radius};
    return FKT_OK;
}

/* Made again from its own fields: what differs was not made by a constructor. */
fkt_status fkt_coordinates_check(const struct fkt_coordinates *c)
{
    struct fkt_coordinates made = {0};
    fkt_status st;
    if (c->kind == FKT_COORDINATE_GAIN_SHAPE)
        st = fkt_coordinates_gain_shape(&made, c->dim, c->rq, c->gamma, c->log_mean, c->log_spread);
    else if (c->kind == FKT_COORDINATE_CLIP) st = fkt_coordinates_clip(&made, c->dim, c->rq, c->radius);
    else st = fkt_fail(FKT_E_ARG, "kind of coordinates %d is unknown", (int)c->kind);
    if (st == FKT_OK && (made.length != c->length || made.radius != c->radius))
        st = fkt_fail(FKT_E_ARG, "coordinates of dimension %u have length %u and radius %g: they must be %u and %g",
                      c->dim, c->length, c->radius, made.length, made.radius);
    return st;
}

/* |x| = scale * norm with scale = max|x_i| and 1 <= norm <= sqrt(n); both 0 when x is. */
struct size {
    double scale, norm;
};

static fkt_status measure(struct size *s, const double *x, size_t n)
{
    double sum = 0;
    s->scale = s->norm = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) return fkt_fail(FKT_E_NUMERIC, "coordinate %zu of %zu is not finite", i, n);
        if (fabs(x[i]) > s->scale) s->scale = fabs(x[i]);
    }
    if (s->scale == 0) return FKT_OK;
    for (size_t i = 0; i < n; i++) {
        double t = x[i] / s->scale;
        sum += t * t;
    }
    s->norm = sqrt(sum);
    return FKT_OK;
}

static double clamp(double x, double bound) { return x < -bound ? -bound : x > bound ? bound : x; }

/* pre: finite u; post: |w| <= R up to rounding (a few units in the last place; quantise.c takes 1e-9) */
fkt_status fkt_coordinates_forward(const struct fkt_coordinates *c, const double *u, double *w)
{
    struct size s = {0};
    fkt_status st = fkt_coordinates_check(c);
    if (st == FKT_OK) st = measure(&s, u, c->dim);
    if (st != FKT_OK) return st;
    if (c->kind == FKT_COORDINATE_CLIP) {
        int outside = s.scale / c->radius * s.norm > 1;
        for (size_t i = 0; i < c->dim; i++) w[i] = outside ? u[i] / s.scale * (c->radius / s.norm) : u[i];
        return FKT_OK;
    }
    for (size_t i = 0; i < c->dim; i++) w[i] = s.scale > 0 ? u[i] / s.scale / s.norm : 0;
    w[c->dim] = -c->gamma;
    if (s.scale > 0) w[c->dim] = c->gamma * clamp((log(s.scale) + log(s.norm) - c->log_mean) / c->log_spread, 1);
    return FKT_OK;
}

fkt_status fkt_coordinates_inverse(const struct fkt_coordinates *c, const double *w, double *u)
{
    struct size s = {0}, whole = {0};
    fkt_status st = fkt_coordinates_check(c);
    if (st == FKT_OK) st = measure(&whole, w, c->length); /* the gain must be finite as well */
    if (st == FKT_OK) st = measure(&s, w, c->dim);
    if (st != FKT_OK) return st;
    if (c->kind == FKT_COORDINATE_CLIP) {
        memcpy(u, w, c->dim * sizeof *u);
        return FKT_OK;
    }
    double size = exp(c->log_mean + c->log_spread * (clamp(w[c->dim], c->gamma) / c->gamma));
    for (size_t i = 0; i < c->dim; i++) u[i] = s.scale > 0 ? w[i] / s.scale / s.norm * size : 0;
    return FKT_OK;
}
