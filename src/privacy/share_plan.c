/* SPDX-License-Identifier: Apache-2.0 */
/* share_plan.c - from (epsilon, delta, adjacency) to the noise that each site adds.
 *
 *   mu from gdp.c, less the difference between a sum of noise shares and a post-processed Gaussian
 *   -> the sigmas of plan.c at that mu, variances plus 3 -> divided by `counted` -> counts scaled up
 *   -> rounded up to dyadics
 *
 * Source of noise shares: Kairouz, Liu, Steinke, "The distributed discrete Gaussian mechanism", ICML 2021, who account
 * in zCDP (proposition 14; rho is still stated). We differ: a total is shown to be a continuous Gaussian mechanism with
 * 3 less variance, post-processed, up to a factor e^(+-1e-6) (share_gdp.md), so that mu and epsilon are those of gdp.c;
 * coordinates have their own sigmas (count; sum, diagonal and cross of each part); the dimension is a fixed bound of
 * 2^32 and not the task's; and counts are multiplied by a power of two, since only their noise is so small that the
 * lattice matters. The plan's claims are computed from its rounded variances. Cost: about a millisecond. */
#include "privacy/share_plan.h"

#include "fedkt/advanced/privacy.h"

#include "base/status.h"
#include "privacy/discrete_gaussian.h"
#include "privacy/plan.h"

#include <math.h>

#define VARIANCE_MIN 4.0   /* of one share; with it 2^32 log ratios are below 2e-7 together: share_gdp.md */
#define COUNT_COMFORT 16.0 /* the variance that scaling gives the counts at no cost */
#define SCALE_MAX (1U << 20)
#define PRECISION 40 /* bits of a dyadic: rounding up costs at most 2^-39 of the variance */
#define DOWN (1 - 1e-14)
#define UP (1 + 1e-14)
#define TWO_PI_SQUARED 19.739208802178717238
#define LN2 0.69314718055994530942
#define TERMS 64
#define KERNEL 3.0      /* r^2 of share_gdp.md: the variance that a share's lattice costs */
#define RATIO_TERM 4.01 /* log((1 + e)/(1 - e)), e = 2 sum over i of q^(i^2), is below this times q for q < 6e-5 */
#define RATIO_MU 5.02   /* 4 sqrt(pi/2) = 5.0133: what a log ratio of 1 costs in mu */

static double value(const struct fkt_dyadic *v) { return ldexp((double)v->num, -(int)v->shift); }

/* An upper bound of the sum over k < n of exp(-2 pi^2 variance k/(k + 1)). */
static double lattice(double variance, uint32_t n)
{
    double sum = 0;
    for (uint32_t k = 1; k < n && k <= TERMS; k++) sum += exp(-TWO_PI_SQUARED * variance * k / (k + 1.0));
    if (n > TERMS + 1) sum += (n - 1.0 - TERMS) * exp(-TWO_PI_SQUARED * variance * (TERMS + 1) / (TERMS + 2.0));
    return sum * (1 + 1e-9);
}

/* An upper bound of |log ratio| between a total of shares and the processed Gaussian: share_gdp.md, steps 1 to 3. */
static double log_ratio(double variance, uint32_t n)
{
    const double each = lattice(variance, n) + exp(-TWO_PI_SQUARED * KERNEL) * (1 + 1e-9);
    return (double)FKT_SHARE_ENTRIES * RATIO_TERM * each;
}

static double least_variance(const struct fkt_share_plan *p)
{
    double least = p->variance_count.num == 0 ? INFINITY : value(&p->variance_count);
    for (uint32_t i = 0; i < p->plan.spec.parts; i++) {
        const struct fkt_part_variance *v = &p->variance[i];
        least = fmin(least, fmin(value(&v->sum), fmin(value(&v->moment), value(&v->cross))));
    }
    return least * DOWN;
}

void fkt_share_sigmas(const struct fkt_share_plan *p, uint32_t shares, struct fkt_sigmas *sigma)
{
    *sigma = (struct fkt_sigmas){.count = sqrt(shares * value(&p->variance_count)) * DOWN / p->count_scale};
    for (uint32_t i = 0; i < p->plan.spec.parts; i++) {
        const struct fkt_part_variance *v = &p->variance[i];
        sigma->part[i].sum = sqrt(shares * value(&v->sum)) * DOWN;
        sigma->part[i].moment = sqrt(shares * value(&v->moment)) * DOWN;
        sigma->part[i].cross = sqrt(shares * value(&v->cross)) * UP; /* at least moment / sqrt 2 */
    }
}

static void set_sigmas(struct fkt_privacy_plan *p, const struct fkt_sigmas *sigma)
{
    p->sigma_count = sigma->count;
    for (uint32_t i = 0; i < p->spec.parts; i++) p->sigma[i] = sigma->part[i];
}

double fkt_share_rho(const struct fkt_share_plan *p)
{
    const double root_entries = sqrt((double)FKT_SHARE_ENTRIES);
    struct fkt_privacy_plan q = p->plan;
    struct fkt_sigmas sigma;
    double mu;
    fkt_share_sigmas(p, p->counted, &sigma);
    set_sigmas(&q, &sigma);
    mu = fkt_plan_distance(&q) + 10 * lattice(least_variance(p), p->counted) * root_entries;
    return mu * mu / 2 * UP;
}

double fkt_share_mu(const struct fkt_share_plan *p)
{
    const double n = p->counted, least = least_variance(p);
    struct fkt_privacy_plan q = p->plan;
    if (!(least >= 1 && n * least >= 4 * DOWN)) return INFINITY; /* the bounds below need wider noise */
    q.sigma_count = p->variance_count.num ? sqrt(n * value(&p->variance_count) - KERNEL) * DOWN / p->count_scale : 0;
    for (uint32_t i = 0; i < q.spec.parts; i++) {
        const struct fkt_part_variance *v = &p->variance[i];
        const double moment = n * value(&v->moment) - KERNEL, cross = n * value(&v->cross) - KERNEL;
        q.sigma[i].sum = sqrt(n * value(&v->sum) - KERNEL) * DOWN;
        q.sigma[i].moment = sqrt(fmin(moment, 2 * cross)) * DOWN;
    }
    return (fkt_plan_distance(&q) + RATIO_MU * log_ratio(least, p->counted)) * UP;
}

/* The smallest dyadic of PRECISION bits (more where shift is 0) that is at least v. */
static fkt_status dyadic_up(struct fkt_dyadic *out, double v)
{
    int exponent;
    if (!(v < ldexp(1, FKT_DISCRETE_BITS - 1)))
        return fkt_fail_hint(FKT_E_ARG, "ask for a larger epsilon, or quantise the records more coarsely",
                             "a noise share would have a standard deviation of %g, more than can be drawn", sqrt(v));
    (void)frexp(v, &exponent);
    out->shift = exponent < PRECISION ? (uint32_t)(PRECISION - exponent) : 0;
    out->num = (uint64_t)ceil(ldexp(v, (int)out->shift));
    return FKT_OK;
}

/* The largest mu to plan for: mu less the cost of the log ratio. More noise can only widen the shares, so the ratio of
 * the plan made without this cost is a bound (16: counts may be scaled less). */
static double target_mu(const struct fkt_privacy_spec *spec, uint32_t counted)
{
    const double mu = fkt_privacy_mu(spec->epsilon, spec->delta) * DOWN;
    struct fkt_privacy_plan p = {.spec = *spec};
    double least = INFINITY;
    fkt_plan_joint(&p, mu);
    for (uint32_t i = 0; i < spec->parts; i++) {
        const struct fkt_part_sigma *s = &p.sigma[i];
        least = fmin(least, fmin(s->sum * s->sum, s->moment * s->moment / 2));
    }
    least = fmax(fmin(least / counted, COUNT_COMFORT), VARIANCE_MIN);
    return mu - RATIO_MU * log_ratio(least * DOWN, counted);
}

/* share_plan.md, step 5. */
static fkt_status divide_part(struct fkt_part_variance *out, const struct fkt_part_sigma *s, uint32_t counted)
{
    double v;
    fkt_status st;
    v = (s->sum * s->sum + KERNEL) / counted;
    FKT_TRY(dyadic_up(&out->sum, fmax(v, VARIANCE_MIN)));
    v = (s->moment * s->moment + 2 * KERNEL) / counted; /* twice: cross terms have half of it */
    FKT_TRY(dyadic_up(&out->moment, fmax(v, VARIANCE_MIN)));
    FKT_TRY(dyadic_up(&out->cross, fmax(value(&out->moment) / 2, VARIANCE_MIN)));
out:
    return st;
}

static fkt_status divide(struct fkt_share_plan *s, const struct fkt_privacy_plan *p)
{
    fkt_status st = FKT_OK;
    s->count_scale = 1;
    if (p->sigma_count > 0) {
        double v = p->sigma_count * p->sigma_count / s->counted;
        for (; v < COUNT_COMFORT && s->count_scale < SCALE_MAX; s->count_scale *= 2) v *= 4;
        FKT_TRY(dyadic_up(&s->variance_count, fmax(v + KERNEL / s->counted, VARIANCE_MIN)));
    }
    for (uint32_t i = 0; i < p->spec.parts; i++) FKT_TRY(divide_part(&s->variance[i], &p->sigma[i], s->counted));
out:
    return st;
}

/* share_plan.md, step 7. */
static fkt_status set_tail(struct fkt_share_plan *s)
{
    double most = value(&s->variance_count), tail;
    for (uint32_t i = 0; i < s->plan.spec.parts; i++) {
        const struct fkt_part_variance *v = &s->variance[i];
        most = fmax(most, fmax(value(&v->sum), fmax(value(&v->moment), value(&v->cross))));
    }
    tail = ceil(sqrt(2 * 113 * LN2 * most * s->sites) * (1 + 1e-9)) + 1;
    if (!(tail < 0x1p61))
        return fkt_fail_hint(FKT_E_ARG, "ask for a larger epsilon, or quantise the records more coarsely",
                             "the sum of %u noise shares does not fit into 61 bits", s->sites);
    s->tail = (int64_t)tail;
    return FKT_OK;
}

static fkt_status check_request(const struct fkt_privacy_spec *spec, uint32_t counted, uint32_t sites)
{
    if (spec->mechanism == FKT_MECHANISM_PAPER)
        return fkt_fail_hint(FKT_E_ARG, "choose the mechanism 'joint', or noise added in one place",
                             "mechanism 'paper' does not support noise shares");
    if (counted == 0 || counted > sites)
        return fkt_fail(FKT_E_ARG, "the plan cannot count %u noise shares of %u sites", counted, sites);
    return fkt_plan_check_spec(spec);
}

fkt_status fkt_privacy_plan_shares(struct fkt_share_plan *out, const struct fkt_privacy_spec *spec, uint32_t counted,
                                   uint32_t sites)
{
    struct fkt_share_plan s = {.counted = counted, .sites = sites};
    struct fkt_sigmas sigma;
    double target;
    fkt_status st = FKT_OK;
    FKT_TRY(check_request(spec, counted, sites));
    s.plan.spec = *spec;
    target = target_mu(spec, counted);
    fkt_plan_joint(&s.plan, target);
    if (!(target > 0 && fkt_plan_finite(&s.plan))) {
        st = fkt_plan_impossible(spec);
        goto out;
    }
    FKT_TRY(divide(&s, &s.plan));
    FKT_TRY(set_tail(&s));
    fkt_share_sigmas(&s, counted, &sigma);
    set_sigmas(&s.plan, &sigma);
    s.rho = fkt_share_rho(&s);
    s.plan.mu = fkt_share_mu(&s);
    /* step 6: spec->epsilon is a proven bound as well */
    s.plan.epsilon_spent = fmin(spec->epsilon, fkt_privacy_epsilon(spec->delta, s.plan.mu));
    *out = s;
out:
    return st;
}
