/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - one simulated federation from options to a run folder; used by `simulate` and `demo`. sweep.h does the
 * work. */
#ifndef FKT_CLI_SIMULATE_RUN_H
#define FKT_CLI_SIMULATE_RUN_H

#include "cli/core/common.h"

#include "fedkt/sweep.h"
#include "fedkt/teacher.h"

struct cli_sim {
    const char *title;
    const char *command; /* the command line, for the report */
    struct cli_data data, test;
    struct cli_codec codec;
    struct cli_privacy privacy;
    struct cli_run run;
    const char *partition, *out, *encodings;
    const char *dropout, *corrupt, *dropped; /* as typed; NULL: none, a tenth, a tenth or what --dropout loses */
    double holdout, participation;
    uint64_t sites, seed, insecure_seed, per_class;
    uint64_t cohort_size; /* 0: one cohort */
    uint64_t records;     /* most of one class at one site; 0: FKT_RECORDS_UNKNOWN */
    int noise, noise_given, keystream, keystream_given;
    uint64_t runs; /* draws of each release, 0 or 1: one */
    int seeded, format, estimator;
    const char *guided; /* as typed; NULL: not given */
    int train_unguided; /* 1: another one on unguided images, where they are guided */
    size_t train_only;  /* 1 + the only arm that a network is trained for; 0: all */
    int train;          /* 1 + enum fkt_architecture of --train; 0: no network is trained */
    uint64_t epochs, train_per_class;
    int epochs_given, train_per_class_given;
    const char *teacher; /* of the network: NULL, or "head" */
    int head_kind, head_kind_given, head_on, head_on_given, temperature_given;
    double temperature, share; /* share negative: not given */
    struct cli_data shared;    /* --public */
    uint64_t shared_each;
};

struct cli_outcome {
    struct fkt_dataset *data, *test, *shared;
    struct fkt_sweep *sweep;
};
FKT_MUST_USE fkt_status cli_sim_run(const struct cli_sim *s, struct cli_outcome *o, struct cli_progress *progress);
void cli_outcome_clear(struct cli_outcome *o);
/* run_report.c: class k of an arm cannot be told from no records, in the codec's part or in the guide's. */
int cli_below_noise(const struct fkt_sweep_arm *a, uint32_t k);

/* run_federation.c: puts the options about lost and colluding sites into spec, whose partition and participation
 * must be set. */
FKT_MUST_USE fkt_status cli_sim_federation(const struct cli_sim *s, struct fkt_sweep_spec *spec);
void cli_round_remark(const struct cli_sim *s, const struct fkt_sweep *w); /* remarks, on stderr */
void cli_round_print(const struct fkt_sweep *w);                           /* on stdout, how the sums were computed */

/* run_folder.c: the run folder: task, partition, moments, release, certificate, results, grid.png, report.html, and
 * synthetic images on request. */
FKT_MUST_USE fkt_status cli_run_folder(const struct cli_sim *s, const struct cli_outcome *o,
                                       struct cli_progress *progress);
#endif
