/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - from (epsilon, delta, adjacency) to the noise of one release; callers never supply a sigma.
 *
 *   joint   mu from gdp.c; the budget split fixes the ratio of the three parts of mu^2, one common scale makes
 *           their sum (or supremum) equal mu^2 exactly
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

static fkt_status check_shares(const struct fkt_privacy_spec *s)
{
    static const char *const what[3] = {"count", "sum", "moment"};
    for (int i = 0; i < 3; i++) {
        const double x = s->split[i];
        const int may_be_zero = i == 0 && fkt_adjacency_counts_public(s->adjacency);
        if (!(x >= 0 && x <= 1e100))
            return fkt_fail(FKT_E_ARG, "the budget share of '%s' is %g: it must be a positive number", what[i], x);
        if (!may_be_zero && !(x >= 1e-100))
            return fkt_fail_hint(FKT_E_ARG, "give each part that is released a part of the budget",
                                 "the budget share of '%s' is %g, yet it is released", what[i], x);
    }
    return FKT_OK;
}

fkt_status fkt_plan_check_spec(const struct fkt_privacy_spec *s)
{
    if (!(s->epsilon >= 1e-4 && s->epsilon <= 1000))
        return fkt_fail_hint(FKT_E_ARG, "0.1 is strong, 1 is usual, 10 is weak protection",
                             "epsilon is %g: it must lie in 0.0001..1000", s->epsilon);
    if (!(s->delta >= 1e-300 && s->delta < 1))
        return fkt_fail_hint(FKT_E_ARG, "delta should be well below one over the number of records, for example 1e-5",
                             "delta is %g: it must be positive and below 1", s->delta);
    if (!(s->radius >= 1e-100 && s->radius <= 1e100))
        return fkt_fail(FKT_E_ARG, "the radius of the ball is %g: it must be a positive number", s->radius);
    if (!fkt_adjacency_info((int)s->adjacency))
        return fkt_fail(FKT_E_ARG, "adjacency %d is unknown", (int)s->adjacency);
    if (s->mechanism != FKT_MECHANISM_JOINT && s->mechanism != FKT_MECHANISM_PAPER)
        return fkt_fail(FKT_E_ARG, "mechanism %d is unknown", (int)s->mechanism);
    if (s->mechanism == FKT_MECHANISM_PAPER && s->adjacency != FKT_ADJACENCY_REPLACE)
        return fkt_fail_hint(FKT_E_ARG, "choose the adjacency 'replace', or the mechanism 'joint'",
                             "mechanism 'paper' protects under the adjacency 'replace' only");
    return s->mechanism == FKT_MECHANISM_PAPER ? FKT_OK : check_shares(s);
}

/* plan.md, step 2: mu^2 is homogeneous in the squares of a, b, c, so the split needs one division. */
void fkt_plan_joint(struct fkt_privacy_plan *p, double mu)
{
    const struct fkt_privacy_spec *s = &p->spec;
    const double top = fmax(s->split[0], fmax(s->split[1], s->split[2])), r = s->radius;
    const double c = fkt_adjacency_counts_public(s->adjacency) ? 0 : sqrt(s->split[0] / top);
    const double a = sqrt(s->split[1] / top), b = sqrt(s->split[2] / top);
    const double unit = sqrt(fkt_privacy_mu_squared(s->adjacency, a, b, c)) / mu * NOISE_UP;
    p->sigma_count = c > 0 ? unit / c : 0;
    p->sigma_sum = r * (unit / a);
    p->sigma_moment = r * r * (unit / b);
}

static void paper_sigmas(struct fkt_privacy_plan *p)
{
    const double mu = fkt_privacy_mu(p->spec.epsilon / 2, p->spec.delta / 2), r = p->spec.radius;
    p->sigma_count = 0;
    p->sigma_sum = 2 * r / mu * NOISE_UP;
    p->sigma_moment = 2 * r * r / mu * NOISE_UP;
}

double fkt_plan_distance(const struct fkt_privacy_plan *p)
{
    const double r = p->spec.radius;
    return sqrt(fkt_privacy_mu_squared(p->spec.adjacency, r / p->sigma_sum, r * r / p->sigma_moment,
                                       p->sigma_count > 0 ? 1 / p->sigma_count : 0)) *
           (1 + 1e-14);
}

fkt_status fkt_privacy_plan(struct fkt_privacy_plan *plan, const struct fkt_privacy_spec *spec)
{
    struct fkt_privacy_plan p = {0};
    fkt_status st = fkt_plan_check_spec(spec);
    if (st != FKT_OK) return st;
    p.spec = *spec;
    if (spec->mechanism == FKT_MECHANISM_PAPER) paper_sigmas(&p);
    else fkt_plan_joint(&p, fkt_privacy_mu(spec->epsilon, spec->delta));
    p.sigma_cross = nextafter(p.sigma_moment * SQRT_HALF, INFINITY) * NOISE_UP;
    p.mu = fkt_plan_distance(&p);
    /* plan.md, step 5: spec->epsilon is a proven bound as well; the smaller of two upper bounds is an upper bound */
    p.epsilon_spent = fmin(spec->epsilon, fkt_privacy_epsilon(spec->delta, p.mu));
    if (!(p.mu > 0 && p.mu < INFINITY && p.epsilon_spent >= 0 && p.sigma_sum < INFINITY && p.sigma_moment < INFINITY))
        return fkt_fail(FKT_E_NUMERIC, "no noise can be computed for epsilon %g, delta %g, radius %g", spec->epsilon,
                        spec->delta, spec->radius);
    *plan = p;
    return FKT_OK;
}
