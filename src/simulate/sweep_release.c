/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_release.c - the releases of a sweep, each after its own round.
 *
 *   distributed noise   each site adds its noise share, the protocol adds the vectors up, the total is the release
 *   central noise       the protocol adds exact vectors up, then noise is added to the total
 *   one or two sites    a sum of so few does not hide a site: exact moments are added up, then noise is added
 *
 * The exact sums do not depend on which site holds which record (tests/invariance), so only the noise differs
 * between draws, and images are encoded once. Each further draw is charged in full to its own ledger, evaluated, and
 * not kept. */
#include "fedkt/advanced/moments.h"

#include "simulate/sweep.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/wipe.h"
#include "pipeline/gaussians.h"
#include "task/federation.h"

#include <math.h>

/* What one release under `task` costs: mu^2. *in_shares 1: the sites add noise shares. */
static fkt_status price(const struct fkt_sweep *s, const struct fkt_task *task, double *mu2, int *in_shares)
{
    struct fkt_share_plan shares;
    struct fkt_privacy_plan plan;
    fkt_status st;
    *in_shares = 1;
    if (s->division.number) return fkt_sweep_cohorts_price(s, task, mu2);
    FKT_TRY(fkt_federation_shares(task, &shares));
    plan = shares.plan;
    if (!shares.counted) FKT_TRY(fkt_privacy_plan(&plan, &task->privacy));
    *mu2 = plan.mu * plan.mu;
    *in_shares = shares.rho > 0;
out:
    return st;
}

static fkt_status release_total(const struct fkt_sweep *s, const struct sweep_arm *a, const int64_t *total,
                                const struct fkt_round_facts *facts, struct fkt_ledger *ledger, const uint64_t *seed,
                                struct fkt_release *out)
{
    struct fkt_moments *m = NULL;
    fkt_status st;
    FKT_TRY(fkt_pipeline_moments_new(s->pipeline, &m));
    FKT_TRY(fkt_moments_add_packed(m, total));
    FKT_TRY(fkt_release_make_into(out, &a->task, fkt_pipeline_calibration(s->pipeline, 0), m, facts, ledger, seed));
out:
    fkt_moments_free(m);
    return st;
}

/* A draw of an arm's release, after a round of the sites; `ledger` is debited first. */
static fkt_status release(const struct fkt_sweep *s, struct sweep_arm *a, uint64_t seed, struct fkt_ledger *ledger,
                          struct fkt_release *out, struct fkt_federate_result *round)
{
    const struct fkt_calibration *cal = fkt_pipeline_calibration(s->pipeline, 0);
    const uint64_t *seeded = s->seeded ? &seed : NULL;
    struct fkt_round_facts facts = {s->sim.sites, s->sim.survivors, 1, s->composed_epsilon};
    const struct fkt_simulation_round how = {&a->task, s->secrets, seeded, s->spec.threads, s->spec.progress};
    double mu2;
    int in_shares;
    fkt_status st;
    if (!s->federation.sites) return fkt_release_make_into(out, &a->task, cal, s->sim.total, &facts, ledger, seeded);
    FKT_TRY(price(s, &a->task, &mu2, &in_shares));
    if (in_shares) FKT_TRY(fkt_ledger_debit(ledger, mu2));
    if (s->division.number)
        return fkt_sweep_cohorts_release(s, &a->task, seeded, out, round, &a->largest, &a->seconds_sum);
    FKT_TRY(fkt_simulation_aggregate(round, &s->sim, &how));
    facts.sites = s->sim.parts;
    facts.survivors = round->survivors;
    if (in_shares) FKT_TRY(fkt_release_gather_into(out, &a->task, cal, round->total, &facts, s->seeded));
    else FKT_TRY(release_total(s, a, round->total, &facts, ledger, seeded, out));
out:
    fkt_free_secret(round->total); /* exact if the noise is central */
    round->total = NULL;
    return st;
}

static fkt_status draw_again(const struct fkt_sweep *s, struct sweep_arm *a, uint64_t seed, struct sweep_draw *out)
{
    const struct fkt_estimate_options raw = {FKT_ESTIMATOR_RAW, 0, 0};
    struct fkt_federate_result round = {0};
    struct fkt_gaussians measured[FKT_PARTS_MAX] = {{0}};
    struct fkt_release again = {0};
    struct fkt_ledger ledger;
    fkt_status st;
    FKT_TRY(fkt_ledger_init(&ledger, a->release.plan.mu * a->release.plan.mu, 0));
    FKT_TRY(release(s, a, seed, &ledger, &again, &round));
    FKT_TRY(fkt_release_gaussians_all(&again, &raw, measured));
    FKT_TRY(fkt_heads_fit(&out->heads, measured, &again.task, FKT_HEADS_DEFAULT, &again));
out:
    fkt_gaussians_clear_all(measured);
    fkt_federate_clear(&round);
    fkt_release_clear(&again);
    return st;
}

static fkt_status release_arm(struct fkt_sweep *s, size_t i, size_t draws, struct fkt_ledger *ledger)
{
    const struct fkt_estimate_options images = {s->spec.estimator, 0, 0}, raw = {FKT_ESTIMATOR_RAW, 0, 0};
    struct sweep_arm *a = &s->arm[i];
    const double start = fkt_now();
    fkt_status st;
    FKT_TRY(release(s, a, s->insecure_seed + i, ledger, &a->release, &a->round));
    if (a->view.images) FKT_TRY(fkt_release_gaussians_all(&a->release, &images, a->images));
    FKT_TRY(fkt_release_gaussians_all(&a->release, &raw, a->measured));
    a->view.seconds_release = fkt_now() - start - a->round.seconds;
    s->sim.seconds_aggregate += a->round.seconds;
    FKT_TRY(fkt_heads_fit(&a->draw[0].heads, a->measured, &a->release.task, FKT_HEADS_DEFAULT, &a->release));
    a->view.draws = 1;
    for (size_t d = 1; d < draws; d++, a->view.draws++)
        FKT_TRY(draw_again(s, a, s->insecure_seed + FKT_SWEEP_EPSILONS_MAX * d + i, &a->draw[d]));
    if (s->spec.released) FKT_TRY(s->spec.released(s->spec.ctx, s, i));
out:
    return st;
}

/* The reference: the same estimates from exact moments. */
static fkt_status estimate_reference(struct fkt_sweep *s)
{
    const struct fkt_task *t = fkt_pipeline_task(s->pipeline);
    const struct fkt_estimate_options images = {s->spec.estimator, 0, 0}, raw = {FKT_ESTIMATOR_RAW, 0, 0};
    struct sweep_arm *a = &s->arm[s->n_arms - 1];
    const int64_t *exact;
    fkt_status st;
    FKT_TRY(fkt_moments_packed(s->sim.total, &exact));
    if (a->view.images) FKT_TRY(fkt_task_gaussians_all(a->images, t, exact, NULL, &images));
    FKT_TRY(fkt_task_gaussians_all(a->measured, t, exact, NULL, &raw));
    FKT_TRY(fkt_heads_fit(&a->draw[0].heads, a->measured, t, FKT_HEADS_DEFAULT, NULL));
    a->view.draws = 1;
out:
    return st;
}

fkt_status fkt_sweep_release(struct fkt_sweep *s)
{
    const size_t draws = s->spec.draws > 1 && s->test_data ? s->spec.draws : 1;
    struct fkt_ledger ledger;
    double one, all = 0;
    int in_shares;
    fkt_status st;
    for (size_t i = 0; i + 1 < s->n_arms; i++) {
        FKT_TRY(price(s, &s->arm[i].task, &one, &in_shares));
        all += one;
    }
    s->composed_epsilon = fkt_privacy_epsilon(s->arm[0].task.privacy.delta, sqrt((double)draws * all));
    FKT_TRY(fkt_ledger_init(&ledger, all, 0));
    for (size_t i = 0; i + 1 < s->n_arms; i++) FKT_TRY(release_arm(s, i, draws, &ledger));
    FKT_TRY(estimate_reference(s));
out:
    return st;
}
