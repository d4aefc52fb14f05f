/* SPDX-License-Identifier: Apache-2.0 */
/* small_cohorts.h - the sites of a small federation in three cohorts, and the releases of their rounds. */
#ifndef FKT_TEST_SMALL_COHORTS_H
#define FKT_TEST_SMALL_COHORTS_H

#include "pipeline/release.h"
#include "task/division.h"
#include "task/federation.h"
#include "tests/support/small_federation.h"

enum { COHORT_SITES = 30, COHORTS = 3 };

struct small_cohorts {
    struct small_federation f; /* its task is that of the sum */
    struct fkt_division division;
    struct fkt_division_lists lists;
};

static inline fkt_status small_cohorts_init(struct small_cohorts *c, uint8_t seed)
{
    fkt_status st;
    memset(c, 0, sizeof *c);
    FKT_TRY(small_federation_init(
        &c->f, (struct fkt_federation_choices){.sites = COHORT_SITES, .dropped = 1, .corrupt = 1}, 10));
    fkt_federation_clear(&c->f.task.federation);
    c->division = (struct fkt_division){.number = COHORTS, .sites = COHORT_SITES, .records = 16};
    memset(c->division.seed, seed, sizeof c->division.seed);
    FKT_TRY(fkt_division_roster(c->division.roster_sha256, c->f.roster, COHORT_SITES));
    FKT_TRY(fkt_division_lists(&c->lists, &c->division, c->f.roster));
    FKT_TRY(fkt_task_divide(&c->f.task, &c->division, 0));
out:
    return st;
}

static inline void small_cohorts_release(struct small_cohorts *c)
{
    fkt_division_lists_clear(&c->lists);
    small_federation_release(&c->f);
}

static inline uint32_t cohort_sites(const struct small_cohorts *c, uint32_t index)
{
    return c->lists.first[index + 1] - c->lists.first[index];
}

/* The task of a cohort; `keys` and `secrets` have room for all sites. */
static inline fkt_status cohort_task(struct fkt_task *out, const struct small_cohorts *c, uint32_t index, uint8_t *keys,
                                     uint8_t *secrets)
{
    const uint32_t *site = c->lists.site + c->lists.first[index];
    struct fkt_federation_choices choices = {
        .sites = cohort_sites(c, index), .dropped = 1, .corrupt = 1, .records = 16, .roster = keys};
    for (uint32_t i = 0; i < choices.sites; i++) {
        memcpy(keys + i * FKT_SA_KEY, c->f.roster + site[i] * FKT_SA_KEY, FKT_SA_KEY);
        if (secrets) memcpy(secrets + i * FKT_SA_SECRET, c->f.secrets + site[i] * FKT_SA_SECRET, FKT_SA_SECRET);
    }
    return fkt_task_cohort(out, &c->f.task, index, &choices, NULL);
}

/* The release of a whole round of a cohort; its sites bring what small_moments gives their places in it. */
static inline struct fkt_release *cohort_release(const struct small_cohorts *c, uint32_t index)
{
    uint8_t keys[COHORT_SITES * FKT_SA_KEY], secrets[COHORT_SITES * FKT_SA_SECRET];
    const uint64_t seed = fkt_division_seed(9, index);
    struct fkt_task task = {0};
    struct fkt_federate_result round = {0};
    struct fkt_federate_spec spec = {
        .task = &task, .secrets = secrets, .moments = small_moments, .insecure_seed = &seed, .threads = 1};
    struct fkt_release *out = NULL;
    CHECK_OK(cohort_task(&task, c, index, keys, secrets));
    CHECK_OK(fkt_federate(&round, &spec));
    CHECK_OK(fkt_release_gather(&out, &task, &c->f.calibration, round.total,
                                &(struct fkt_round_facts){task.federation.sites, round.survivors, 0, 10}, 1));
    fkt_federate_clear(&round);
    fkt_task_clear(&task);
    return out;
}

#endif
