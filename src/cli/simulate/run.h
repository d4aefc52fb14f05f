/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - one simulated federation from images to a run folder; `simulate` and `demo` both are this with other
 * options. */
#ifndef FKT_CLI_SIMULATE_RUN_H
#define FKT_CLI_SIMULATE_RUN_H

#include "cli/core/common.h"

#include "fedkt/simulate.h"

enum { CLI_ARMS_MAX = 8 };

struct cli_sim {
    const char *title;
    const char *command; /* for the report: what was typed */
    struct cli_data data, test;
    struct cli_codec codec;
    struct cli_privacy privacy;
    struct cli_run run;
    const char *partition, *out, *encodings;
    const char *dropout, *corrupt, *dropped; /* as typed; NULL: none, a tenth, a tenth or what --dropout loses */
    double holdout, participation;
    uint64_t sites, seed, insecure_seed, per_class;
    uint64_t records; /* most of one class at one site; 0: FKT_RECORDS_UNKNOWN */
    int noise, noise_given, keystream, keystream_given;
    uint64_t runs; /* draws of each release, 0 or 1: one */
    int seeded, format, estimator;
    int train; /* 1 + enum fkt_architecture of --train; 0: no network is trained */
    uint64_t epochs, train_per_class;
    int epochs_given, train_per_class_given;
};

/* A further draw of a release, kept only to be judged. */
struct cli_repeat {
    struct fkt_heads heads;
    struct fkt_score score[FKT_HEAD_KINDS];
};

/* What a release at one epsilon gave. */
struct cli_arm {
    char name[32], folder[32]; /* "eps 10"; "" or "eps-10/" inside the run folder */
    int is_private;            /* 0: the bound without privacy */
    struct fkt_task task;
    struct fkt_release release;
    struct fkt_federate_result round; /* how the sums came together; survivors 0: without a protocol */
    struct fkt_gaussians shapes;      /* for images: the chosen estimator */
    struct fkt_gaussians measured;    /* for heads: raw */
    struct fkt_heads heads;
    struct fkt_score score[FKT_HEAD_KINDS];
    double network; /* accuracy of a network that learned from it, with --train */
    double seconds_release, seconds_generate;
    struct cli_repeat *repeat; /* (n_repeats) */
    size_t n_repeats;
};

/* The federation that a simulation's tasks are made for; sites 0: too few for one. */
struct cli_federation {
    struct fkt_federation_choices choices;
    uint8_t *roster, *secrets;
};

struct cli_outcome {
    struct fkt_dataset *data, *test;
    size_t *train, *held; /* indices into data, and into data or test */
    uint64_t *keys;       /* of the records of data: what hold-out and partition choose by */
    size_t n_train, n_test;
    const struct fkt_dataset *test_set; /* data or test, or NULL: nothing to judge on */
    struct fkt_pipeline *pipeline;
    struct cli_federation federation;
    struct fkt_simulation sim;
    struct fkt_records *records; /* in the total */
    struct fkt_skipped skipped;
    struct cli_arm arm[CLI_ARMS_MAX + 1]; /* private ones first, then the bound */
    size_t n_arms;                        /* with the bound */
    char moments_sha256[FKT_SHA256_HEX];
    double composed_epsilon; /* of all draws of all private arms together, at the task's delta */
    double seconds_evaluate, seconds_train;
    unsigned threads; /* 0: all */
};

FKT_MUST_USE fkt_status cli_sim_run(const struct cli_sim *s, struct cli_outcome *o, struct cli_progress *progress);
void cli_outcome_clear(struct cli_outcome *o);
/* run_train.c: a network for each arm, on pictures drawn from it. */
FKT_MUST_USE fkt_status cli_sim_train_check(const struct cli_sim *s, int tested);
FKT_MUST_USE fkt_status cli_sim_train(const struct cli_sim *s, struct cli_outcome *o, struct cli_progress *progress);

/* run_round.c. The options that say who may be lost and who may collude: --dropout into spec, the rest into
 * o->federation, with keys. */
FKT_MUST_USE fkt_status cli_round_plan(const struct cli_sim *s, struct fkt_simulation_spec *spec,
                                       struct cli_federation *out);
/* What one release under `task` costs: mu^2, and rho where the noise is in shares (else 0). */
FKT_MUST_USE fkt_status cli_round_price(const struct fkt_task *task, double *mu2, double *rho);
/* A draw of an arm's release, the sites' round before it; `ledger` pays first. */
FKT_MUST_USE fkt_status cli_round_clear(const struct cli_sim *s, const struct cli_outcome *o, const struct cli_arm *a,
                                        uint64_t seed, struct fkt_ledger *ledger, const struct fkt_progress *progress,
                                        struct fkt_release *out, struct fkt_federate_result *round);
/* Why the noise did not come from the sites though nobody asked for that; NULL: it did, or somebody did. */
const char *cli_round_fallback(const struct cli_sim *s, const struct cli_outcome *o);
void cli_round_remark(const struct cli_sim *s, const struct cli_outcome *o); /* on stderr, what deserves a line */
void cli_round_print(const struct cli_sim *s, const struct cli_outcome *o);  /* on stdout, how the sums came together */
json_t *cli_round_json(const struct cli_outcome *o); /* of the first arm; null when there was no protocol */

/* Further draws (run_repeats.c): made after the releases, judged with them. Mean and standard deviation of one head's
 * accuracy over all draws of an arm; the draws' accuracies by head. */
enum { CLI_RUNS_MAX = 100 };
struct cli_spread {
    double mean, deviation;
};
FKT_MUST_USE fkt_status cli_repeats_draw(const struct cli_sim *s, struct cli_outcome *o,
                                         const struct fkt_progress *progress);
void cli_repeats_clear(struct cli_arm *a);
struct cli_spread cli_arm_spread(const struct cli_arm *a, int head);
json_t *cli_repeats_json(const struct cli_arm *a);

/* The run folder: task, partition, moments, release, certificate, results, grid.png, report.html, synthetic images
 * if asked for. */
FKT_MUST_USE fkt_status cli_run_folder(const struct cli_sim *s, struct cli_outcome *o, struct cli_progress *progress);
json_t *cli_results_json(const struct cli_sim *s, const struct cli_outcome *o);

#endif
