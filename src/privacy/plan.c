/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - from (epsilon, delta, adjacency) to the noise of one release; callers never supply a sigma.
 *
 *   joint   mu from gdp.c; the budget split fixes the ratio of the terms of mu^2 (count; sum and second moment of
 *           each part), one common scale makes their sum (or supremum) equal mu^2 exactly
 *   paper   the recipe of FedKT-CSD, kept for comparison: epsilon/2 and delta/2 each for the mean and the second
 *           moment, sensitivities 2R and 2R^2, the analytic Gaussian mechanism for each, counts in the clear
 *
 * We differ from the paper in `joint` (one mechanism, one mu), in charging for the counts, and in rounding: every sigma
 * is rounded up, and mu and epsilon_spent are computed again from the rounded sigmas. Proof: plan.md. Cost: about
 * 0.2 ms. */
#include "fedkt/advanced/privacy.h"

#include "base/status.h"
#include "privacy/plan.h"

#include <math.h>

#define NOISE_UP (1 + 1e-10) /* plan.md, step 4: above the rounding error here, far below the promised 1e-4 */
#define SQRT_HALF 0.70710678118654752440

static fkt_status check_share(double x, const char *what, int may_be_zero)
{
    if (!(x >= 0 && x <= 1e100))
        return fkt_fail(FKT_E_ARG, "the budget share of '%s' is %g: it must be a positive number", what, x);
    if (!may_be_zero && !(x >= 1e-100))
        return fkt_fail_hint(FKT_E_ARG, "give each part that is released a part of the budget",
                             "the budget share of '%s' is %g, yet it is released", what, x);
    return FKT_OK;
}

static fkt_status check_shares(const struct fkt_privacy_spec *s)
{
    fkt_status st = check_share(s->split_count, "count", fkt_adjacency_counts_public(s->adjacency));
    for (uint32_t p = 0; p < s->parts && st == FKT_OK; p++) {
        st = check_share(s->part[p].split_sum, "sum", 0);
        if (st == FKT_OK) st = check_share(s->part[p].split_moment, "moment", 0);
        if (st != FKT_OK && s->parts > 1) st = fkt_fail_in(st, "part %u", p + 1);
    }
    return st;
}

static fkt_status check_parts(const struct fkt_privacy_spec *s)
{
    if (s->parts < 1 || s->parts > FKT_PARTS_MAX)
        return fkt_fail(FKT_E_ARG, "a record vector has 1 to %d parts, not %u", FKT_PARTS_MAX, s->parts);
    for (uint32_t p = 0; p < s->parts; p++)
        if (!(s->part[p].radius >= 1e-100 && s->part[p].radius <= 1e100))
            return fkt_fail(FKT_E_ARG, "the radius of the ball is %g: it must be a positive number", s->part[p].radius);
    return FKT_OK;
}

fkt_status fkt_plan_check_spec(const struct fkt_privacy_spec *s)
{
    fkt_status st;
    if (!(s->epsilon >= 1e-4 && s->epsilon <= 1000))
        return fkt_fail_hint(FKT_E_ARG, "0.1 is strong, 1 is usual, 10 is weak protection",
                             "epsilon is %g: it must lie in 0.0001..1000", s->epsilon);
    if (!(s->delta >= 1e-300 && s->delta < 1))
        return fkt_fail_hint(FKT_E_ARG, "delta should be well below one over the number of records, for example 1e-5",
                             "delta is %g: it must be positive and below 1", s->delta);
    st = check_parts(s);
    if (st != FKT_OK) return st;
    if (!fkt_adjacency_info((int)s->adjacency))
        return fkt_fail(FKT_E_ARG, "adjacency %d is unknown", (int)s->adjacency);
    if (s->mechanism != FKT_MECHANISM_JOINT && s->mechanism != FKT_MECHANISM_PAPER)
        return fkt_fail(FKT_E_ARG, "mechanism %d is unknown", (int)s->mechanism);
    if (s->mechanism == FKT_MECHANISM_PAPER && s->adjacency != FKT_ADJACENCY_REPLACE)
        return fkt_fail_hint(FKT_E_ARG, "choose the adjacency 'replace', or the mechanism 'joint'",
                             "mechanism 'paper' protects under the adjacency 'replace' only");
    if (s->mechanism == FKT_MECHANISM_PAPER && (s->parts > 1 || s->pooled))
        return fkt_fail_hint(FKT_E_ARG, "choose the mechanism 'joint', or leave the guide and pooled moments out",
                             "mechanism 'paper' is for one part with its moments in each class");
    return s->mechanism == FKT_MECHANISM_PAPER ? FKT_OK : check_shares(s);
}

static double largest_share(const struct fkt_privacy_spec *s)
{
    double top = s->split_count;
    for (uint32_t p = 0; p < s->parts; p++) top = fmax(top, fmax(s->part[p].split_sum, s->part[p].split_moment));
    return top;
}

/* plan.md, step 2: mu^2 is homogeneous in the squares of all a, b and c, so the split needs one division. */
void fkt_plan_joint(struct fkt_privacy_plan *p, double mu)
{
    const struct fkt_privacy_spec *s = &p->spec;
    const double top = largest_share(s);
    const double c = fkt_adjacency_counts_public(s->adjacency) ? 0 : sqrt(s->split_count / top);
    double a[FKT_PARTS_MAX], b[FKT_PARTS_MAX], unit;
    for (uint32_t i = 0; i < s->parts; i++) {
        a[i] = sqrt(s->part[i].split_sum / top);
        b[i] = sqrt(s->part[i].split_moment / top);
    }
    unit = sqrt(fkt_privacy_mu_squared(s->adjacency, c, s->parts, a, b)) / mu * NOISE_UP;
    p->sigma_count = c > 0 ? unit / c : 0;
    for (uint32_t i = 0; i < s->parts; i++) {
        const double r = s->part[i].radius;
        p->sigma[i].sum = r * (unit / a[i]);
        p->sigma[i].moment = r * r * (unit / b[i]);
    }
}

static void paper_sigmas(struct fkt_privacy_plan *p)
{
    const double mu = fkt_privacy_mu(p->spec.epsilon / 2, p->spec.delta / 2), r = p->spec.part[0].radius;
    p->sigma_count = 0;
    p->sigma[0].sum = 2 * r / mu * NOISE_UP;
    p->sigma[0].moment = 2 * r * r / mu * NOISE_UP;
}

double fkt_plan_mu_squared(const struct fkt_privacy_plan *p)
{
    double a[FKT_PARTS_MAX] = {0}, b[FKT_PARTS_MAX] = {0};
    for (uint32_t i = 0; i < p->spec.parts && i < FKT_PARTS_MAX; i++) {
        const double r = p->spec.part[i].radius;
        a[i] = r / p->sigma[i].sum;
        b[i] = r * r / p->sigma[i].moment;
    }
    return fkt_privacy_mu_squared(p->spec.adjacency, p->sigma_count > 0 ? 1 / p->sigma_count : 0, p->spec.parts, a, b);
}

double fkt_plan_distance(const struct fkt_privacy_plan *p) { return sqrt(fkt_plan_mu_squared(p)) * (1 + 1e-14); }

int fkt_plan_finite(const struct fkt_privacy_plan *p)
{
    for (uint32_t i = 0; i < p->spec.parts; i++)
        if (!(p->sigma[i].sum < INFINITY && p->sigma[i].moment < INFINITY)) return 0;
    return 1;
}

fkt_status fkt_plan_impossible(const struct fkt_privacy_spec *s)
{
    return fkt_fail(FKT_E_NUMERIC, "no noise can be computed for epsilon %g, delta %g, radius %g", s->epsilon, s->delta,
                    s->part[0].radius);
}

fkt_status fkt_privacy_plan(struct fkt_privacy_plan *plan, const struct fkt_privacy_spec *spec)
{
    struct fkt_privacy_plan p = {0};
    fkt_status st = fkt_plan_check_spec(spec);
    if (st != FKT_OK) return st;
    p.spec = *spec;
    if (spec->mechanism == FKT_MECHANISM_PAPER) paper_sigmas(&p);
    else fkt_plan_joint(&p, fkt_privacy_mu(spec->epsilon, spec->delta));
    for (uint32_t i = 0; i < spec->parts; i++)
        p.sigma[i].cross = nextafter(p.sigma[i].moment * SQRT_HALF, INFINITY) * NOISE_UP;
    p.mu = fkt_plan_distance(&p);
    /* plan.md, step 5: spec->epsilon is a proven bound as well; the smaller of two upper bounds is an upper bound */
    p.epsilon_spent = fmin(spec->epsilon, fkt_privacy_epsilon(spec->delta, p.mu));
    if (!(p.mu > 0 && p.mu < INFINITY && p.epsilon_spent >= 0 && fkt_plan_finite(&p))) return fkt_plan_impossible(spec);
    *plan = p;
    return FKT_OK;
}
