/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.h - the parts of a sweep that its files share. */
#ifndef FKT_SIMULATE_SWEEP_H
#define FKT_SIMULATE_SWEEP_H

#include "fedkt/advanced/federation.h"
#include "fedkt/advanced/simulate.h"
#include "fedkt/sweep.h"

#include "base/status.h"
#include "pipeline/release.h"
#include "task/division.h"

/* One draw of a release, as far as it is evaluated. */
struct sweep_draw {
    struct fkt_heads heads;
    struct fkt_score score[FKT_HEAD_KINDS];
};

struct sweep_arm {
    struct fkt_sweep_arm view; /* points to what follows */
    char name[32];
    struct fkt_task task;
    struct fkt_release release;
    struct fkt_federate_result round;
    double seconds_sum;            /* of adding the cohorts' releases up */
    struct fkt_federation largest; /* parameters of the largest cohort, without its roster; sites 0: no cohorts */
    struct fkt_gaussians images[FKT_PARTS_MAX], measured[FKT_PARTS_MAX]; /* by part of the layout */
    struct sweep_draw draw[FKT_SWEEP_DRAWS_MAX]; /* view.draws of them; the first is of the release */
};

struct fkt_sweep {
    struct fkt_sweep_spec spec; /* parts, epsilon and insecure_seed are not used after fkt_sweep_new */
    uint64_t insecure_seed;     /* where `seeded` */
    int seeded;
    size_t *train, *test; /* records of data, and of test_data */
    uint64_t *keys;       /* of the records of data: hold-out and partition go by them */
    size_t n_train, n_test;
    const struct fkt_dataset *test_data; /* NULL: none */
    struct fkt_pipeline *pipeline;
    struct fkt_federation_choices federation; /* sites 0: none */
    uint8_t *roster, *secrets;
    struct fkt_division division;        /* number 0: one federation */
    struct fkt_division_lists cohort_of; /* of the division */
    uint32_t cohorts_lose;               /* sites that will be lost, of all */
    struct fkt_simulation sim;
    struct fkt_records *records;
    struct fkt_skipped skipped;
    struct sweep_arm *arm; /* (n_arms) the reference last */
    size_t n_arms;
    char moments_sha256[FKT_SHA256_HEX];
    double composed_epsilon;
    double seconds_evaluate, seconds_train;
    char network[32]; /* "": none */
    struct fkt_guided_facts guided;
    struct fkt_device device; /* that it was trained on; zeros: the codec's */
    int ran;
    int done; /* it ran to its end: all scores are complete */
};

/* sweep_plan.c: the test records, the federation, the tasks. */
FKT_MUST_USE fkt_status fkt_sweep_choose_records(struct fkt_sweep *s);
FKT_MUST_USE fkt_status fkt_sweep_plan_federation(struct fkt_sweep *s);
FKT_MUST_USE fkt_status fkt_sweep_make_tasks(struct fkt_sweep *s, const struct fkt_sweep_spec *spec); /* takes parts */
void fkt_sweep_simulation_spec(const struct fkt_sweep *s, struct fkt_simulation_spec *out);

/* sweep_release.c: the releases of all arms with their heads; needs s->sim. */
FKT_MUST_USE fkt_status fkt_sweep_release(struct fkt_sweep *s);

/* A tenth of the sites, rounded up. */
static inline uint32_t fkt_sweep_usual_corrupt(uint32_t sites) { return (sites + 9) / 10; }

/* sweep_cohorts.c: a sweep in cohorts. */
/* Assigns the sites, whose keys are made; `lost` of them will be. */
FKT_MUST_USE fkt_status fkt_sweep_divide(struct fkt_sweep *s, uint32_t lost);
/* What a release of an arm costs: mu^2 of its costliest cohort. */
FKT_MUST_USE fkt_status fkt_sweep_cohorts_price(const struct fkt_sweep *s, const struct fkt_task *task, double *mu2);
/* A round of every cohort, and the sum of their releases; `round` is of all cohorts together. */
FKT_MUST_USE fkt_status fkt_sweep_cohorts_release(const struct fkt_sweep *s, const struct fkt_task *task,
                                                  const uint64_t *seed, struct fkt_release *out,
                                                  struct fkt_federate_result *round, struct fkt_federation *largest,
                                                  double *seconds_sum);

#endif
