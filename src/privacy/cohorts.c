/* SPDX-License-Identifier: Apache-2.0 */
/* cohorts.c - the promise and the noise of a sum of cohort totals, each of which carries noise shares of its own.
 *
 *   (epsilon, delta) and each cohort's sites, losses, survivors -> share plans -> largest mu, sum of the variances
 *
 * Proof: cohorts.md. Cohorts of the same shape that follow each other have one plan, which is made once. Cost: a
 * millisecond for each. */
#include "fedkt/advanced/privacy.h"

#include "base/status.h"

#include <math.h>
#include <string.h>

static int same_shape(const struct fkt_cohort *a, const struct fkt_cohort *b)
{
    return a->sites == b->sites && a->dropped == b->dropped && a->corrupt == b->corrupt;
}

static fkt_status check(const struct fkt_cohort *c, size_t i)
{
    if (c->dropped < c->sites && c->corrupt < c->sites - c->dropped && c->survivors <= c->sites &&
        c->survivors >= c->sites - c->dropped)
        return FKT_OK;
    return fkt_fail(FKT_E_ARG, "cohort %zu: %u survivors of %u sites, of which %u may be lost and %u may collude", i,
                    c->survivors, c->sites, c->dropped, c->corrupt);
}

static void add_variances(struct fkt_sigmas *sum, const struct fkt_sigmas *s, uint32_t parts)
{
    sum->count += s->count * s->count;
    for (uint32_t p = 0; p < parts; p++) {
        sum->part[p].sum += s->part[p].sum * s->part[p].sum;
        sum->part[p].moment += s->part[p].moment * s->part[p].moment;
        sum->part[p].cross += s->part[p].cross * s->part[p].cross;
    }
}

static void take_roots(struct fkt_sigmas *s, uint32_t parts)
{
    s->count = sqrt(s->count);
    for (uint32_t p = 0; p < parts; p++) {
        s->part[p].sum = sqrt(s->part[p].sum);
        s->part[p].moment = sqrt(s->part[p].moment);
        s->part[p].cross = sqrt(s->part[p].cross);
    }
}

/* The same sites in one cohort that tolerates as many: step 4. */
static fkt_status compare_with_one(struct fkt_cohorts_noise *out, const struct fkt_privacy_spec *spec)
{
    struct fkt_share_plan one;
    struct fkt_sigmas s;
    fkt_status st;
    FKT_TRY(fkt_privacy_plan_shares(&one, spec, out->counted, out->sites));
    FKT_TRY(fkt_privacy_total_sigmas(&s, &one, out->survivors));
    out->variance_factor = pow(out->sigma.part[0].moment / s.part[0].moment, 2);
out:
    return st;
}

fkt_status fkt_privacy_cohorts(struct fkt_cohorts_noise *out, const struct fkt_privacy_spec *spec,
                               const struct fkt_cohort *cohort, size_t n)
{
    struct fkt_share_plan plan;
    struct fkt_sigmas s;
    uint64_t sites = 0;
    fkt_status st;
    memset(out, 0, sizeof *out);
    if (!n) return fkt_fail(FKT_E_ARG, "a sum of cohorts needs at least one");
    for (size_t i = 0; i < n; i++) {
        FKT_TRY(check(&cohort[i], i));
        sites += cohort[i].sites;
        if (sites > UINT32_MAX / 2) return fkt_fail(FKT_E_ARG, "%zu cohorts have too many sites", n);
        if (!i || !same_shape(&cohort[i], &cohort[i - 1]))
            FKT_TRY(fkt_privacy_plan_shares(&plan, spec, cohort[i].sites - cohort[i].dropped - cohort[i].corrupt,
                                            cohort[i].sites));
        if (!i || plan.plan.mu > out->plan.mu || isnan(plan.plan.mu)) out->plan = plan.plan; /* NaN stays */
        FKT_TRY(fkt_privacy_total_sigmas(&s, &plan, cohort[i].survivors));
        add_variances(&out->sigma, &s, spec->parts);
        out->sites += cohort[i].sites;
        out->survivors += cohort[i].survivors;
        out->counted += plan.counted;
    }
    take_roots(&out->sigma, spec->parts);
    FKT_TRY(compare_with_one(out, spec));
out:
    if (st != FKT_OK) memset(out, 0, sizeof *out);
    return st;
}
