/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_cohorts.c - a simulated federation in cohorts: the rounds of all cohorts one after the other, and the sum of
 * their releases.
 *
 *   sites' keys, seed -> cohorts (task/division.c) -> for each: its task, a round (federate.c), its release
 *                                                   -> those that did not fail, added up (pipeline/sum.c)
 *
 * Each cohort is an ordinary federation with its own task, graph, threshold and noise shares, run by the state machines
 * of a real one. A cohort that loses more sites than its task tolerates gives nothing and is missing from the sum.
 * Memory is that of one round and of one release for each cohort. */
#include "simulate/sweep.h"

#include "pipeline/sum.h"
#include "simulate/site_moments.h"
#include "task/federation.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/wipe.h"
#include "crypto/entropy.h"

#include <stdlib.h>
#include <string.h>

#define SEED_STREAM (UINT64_MAX / 2) /* of an insecure seed; sites and rounds have others (pipeline/contribution.h) */

fkt_status fkt_sweep_divide(struct fkt_sweep *s, uint32_t lost)
{
    struct fkt_division *d = &s->division;
    struct fkt_entropy_seeded seeded;
    struct fkt_entropy entropy;
    fkt_status st;
    if (s->federation.noise != FKT_NOISE_PLACE_DISTRIBUTED)
        return fkt_fail_hint(FKT_E_ARG, "let every site add its noise share, or have one cohort",
                             "cohorts need distributed noise, since the operator sees the total of each");
    d->sites = s->federation.sites;
    d->records = s->federation.records;
    s->cohorts_lose = lost;
    fkt_entropy_os(&entropy);
    if (s->seeded) {
        fkt_entropy_seeded_init(&seeded, s->insecure_seed, SEED_STREAM);
        fkt_entropy_seeded(&entropy, &seeded);
    }
    FKT_TRY(entropy.fill(entropy.self, d->seed, sizeof d->seed));
    FKT_TRY(fkt_division_roster(d->roster_sha256, s->roster, d->sites));
    FKT_TRY(fkt_division_lists(&s->cohort_of, d, s->roster));
out:
    return st;
}

static uint32_t sites_of(const struct fkt_sweep *s, uint32_t c)
{
    return s->cohort_of.first[c + 1] - s->cohort_of.first[c];
}

/* What cohort c tolerates, and its number of sites. */
static void crew_of(const struct fkt_sweep *s, uint32_t c, struct fkt_cohort *out)
{
    const uint32_t n = sites_of(s, c), all = s->division.sites;
    const uint32_t lost = fkt_division_share(s->cohorts_lose, n, all);
    *out = (struct fkt_cohort){.sites = n, .survivors = n};
    out->corrupt =
        s->spec.corrupt == FKT_SWEEP_DEFAULT ? fkt_sweep_usual_corrupt(n) : fkt_division_share(s->spec.corrupt, n, all);
    out->dropped = s->spec.dropped == FKT_SWEEP_DEFAULT ? fkt_federation_usual_dropped(n, out->corrupt)
                                                        : fkt_division_share(s->spec.dropped, n, all);
    if (s->spec.dropped == FKT_SWEEP_DEFAULT && lost > out->dropped) out->dropped = lost;
}

fkt_status fkt_sweep_cohorts_price(const struct fkt_sweep *s, const struct fkt_task *task, double *mu2)
{
    struct fkt_cohorts_noise noise;
    struct fkt_cohort *crew = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&crew, s->division.number));
    for (uint32_t c = 0; c < s->division.number; c++) {
        crew_of(s, c, &crew[c]);
        FKT_TRY(fkt_federation_check_crew(crew[c].sites, crew[c].dropped, crew[c].corrupt, s->federation.noise));
    }
    FKT_TRY(fkt_privacy_cohorts(&noise, &task->privacy, crew, s->division.number));
    *mu2 = noise.plan.mu * noise.plan.mu;
out:
    fkt_free(crew);
    return st;
}

/* ---- one cohort ---- */

struct cohort { /* what its round borrows */
    const struct fkt_sweep *sweep;
    uint32_t index, n;
    const uint32_t *place; /* (n) of its sites among those that take part, ascending */
    uint8_t *roster, *secrets;
    struct fkt_federate_loss *lost;
    size_t n_lost;
};

static int ascending(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static fkt_status site_moments(void *self, uint32_t site, int64_t *exact)
{
    const struct cohort *c = self;
    return fkt_site_moments_get(c->sweep->sim.site_moments, c->place[site], exact);
}

static fkt_status open_cohort(struct cohort *c, const struct fkt_sweep *s, uint32_t index)
{
    fkt_status st;
    *c = (struct cohort){.sweep = s, .index = index, .n = sites_of(s, index)};
    c->place = s->cohort_of.site + s->cohort_of.first[index];
    FKT_TRY(fkt_alloc(&c->roster, (size_t)c->n * FKT_SA_KEY));
    FKT_TRY(fkt_alloc(&c->secrets, (size_t)c->n * FKT_SA_SECRET));
    FKT_TRY(fkt_alloc(&c->lost, c->n));
    for (uint32_t i = 0; i < c->n; i++) {
        memcpy(c->roster + (size_t)i * FKT_SA_KEY, s->roster + (size_t)c->place[i] * FKT_SA_KEY, FKT_SA_KEY);
        memcpy(c->secrets + (size_t)i * FKT_SA_SECRET, s->secrets + (size_t)c->place[i] * FKT_SA_SECRET, FKT_SA_SECRET);
    }
    for (size_t i = 0; i < s->sim.n_lost; i++) {
        const uint32_t *at = bsearch(&s->sim.lost[i].site, c->place, c->n, sizeof *c->place, ascending);
        if (at) c->lost[c->n_lost++] = (struct fkt_federate_loss){(uint32_t)(at - c->place), s->sim.lost[i].phase};
    }
out:
    return st;
}

static void close_cohort(struct cohort *c)
{
    if (c->secrets) fkt_wipe(c->secrets, (size_t)c->n * FKT_SA_SECRET);
    fkt_free(c->secrets);
    fkt_free(c->roster);
    fkt_free(c->lost);
}

static fkt_status cohort_task(struct fkt_task *out, const struct cohort *c, const struct fkt_task *whole)
{
    struct fkt_federation_choices choices = c->sweep->federation;
    struct fkt_cohort crew;
    crew_of(c->sweep, c->index, &crew);
    choices.sites = crew.sites;
    choices.dropped = crew.dropped;
    choices.corrupt = crew.corrupt;
    choices.roster = c->roster;
    return fkt_task_cohort(out, whole, c->index, &choices, NULL);
}

/* Adds what a round of one cohort was like to what is known of all. */
static void add_round(struct fkt_federate_result *all, const struct fkt_federate_result *one, const struct cohort *c)
{
    const uint32_t both = all->survivors + one->survivors;
    for (uint32_t i = 0; i < c->n; i++) all->survived[c->place[i]] = one->survived[i];
    for (int phase = 0; phase <= FKT_SA_STATE_REVEAL; phase++) all->lost[phase] += one->lost[phase];
    if (one->throws > all->throws) all->throws = one->throws;
    if (one->packed > all->packed) all->packed = one->packed;
    if (both) {
        all->up = (all->up * all->survivors + one->up * one->survivors) / both;
        all->down = (all->down * all->survivors + one->down * one->survivors) / both;
    }
    all->survivors = both;
    all->seconds += one->seconds;
    all->seconds_unmask += one->seconds_unmask;
    all->cpu_sites += one->cpu_sites;
    all->cpu_server += one->cpu_server;
}

/* *out stays NULL when the cohort fails: too few of its sites were left. */
static fkt_status run_cohort(struct fkt_release **out, const struct cohort *c, const struct fkt_task *whole,
                             const uint64_t *seed, struct fkt_federate_result *all, struct fkt_federation *largest)
{
    const struct fkt_sweep *s = c->sweep;
    const uint64_t own = seed ? fkt_division_seed(*seed, c->index) : 0;
    struct fkt_round_facts facts = {c->n, 0, 1, s->composed_epsilon};
    struct fkt_federate_result round = {0};
    struct fkt_task task = {0};
    struct fkt_federate_spec spec = {.task = &task,
                                     .secrets = c->secrets,
                                     .moments = site_moments,
                                     .self = (void *)(uintptr_t)c,
                                     .lost = c->lost,
                                     .n_lost = c->n_lost,
                                     .insecure_seed = seed ? &own : NULL,
                                     .threads = s->spec.threads,
                                     .progress = s->spec.progress};
    fkt_status st;
    FKT_TRY(cohort_task(&task, c, whole));
    if (task.federation.sites > largest->sites) {
        *largest = task.federation;
        largest->roster = NULL;
    }
    st = fkt_federate(&round, &spec);
    if (st == FKT_E_TOO_FEW) {
        st = FKT_OK;
        goto out;
    }
    FKT_TRY(st);
    facts.survivors = round.survivors;
    FKT_TRY(
        fkt_release_gather(out, &task, fkt_pipeline_calibration(s->pipeline, 0), round.total, &facts, seed != NULL));
    add_round(all, &round, c);
out:
    fkt_federate_clear(&round);
    fkt_task_clear(&task);
    return st;
}

fkt_status fkt_sweep_cohorts_release(const struct fkt_sweep *s, const struct fkt_task *task, const uint64_t *seed,
                                     struct fkt_release *out, struct fkt_federate_result *round,
                                     struct fkt_federation *largest, double *seconds_sum)
{
    const uint32_t number = s->division.number;
    struct fkt_release **made = NULL;
    struct cohort c = {0};
    uint32_t n = 0;
    double start;
    fkt_status st;
    memset(round, 0, sizeof *round);
    memset(largest, 0, sizeof *largest);
    FKT_TRY(fkt_alloc(&made, number));
    FKT_TRY(fkt_alloc(&round->survived, s->division.sites));
    for (uint32_t i = 0; i < number; i++) {
        FKT_TRY(open_cohort(&c, s, i));
        FKT_TRY(run_cohort(&made[n], &c, task, seed, round, largest));
        close_cohort(&c);
        memset(&c, 0, sizeof c);
        n += made[n] != NULL;
    }
    if (!n)
        FKT_TRY(fkt_fail(FKT_E_TOO_FEW, "every one of %u cohorts failed: too few of their sites were left", number));
    start = fkt_now();
    FKT_TRY(fkt_release_sum_into(out, made, n));
    *seconds_sum = fkt_now() - start;
out:
    close_cohort(&c);
    for (uint32_t i = 0; made && i < number; i++) fkt_release_free(made[i]);
    fkt_free(made);
    return st;
}
