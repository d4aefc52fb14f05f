/* SPDX-License-Identifier: Apache-2.0 */
/* personalize.h - options of `fedkt personalize`, and its result. */
#ifndef FKT_CLI_LEARNING_PERSONALIZE_H
#define FKT_CLI_LEARNING_PERSONALIZE_H

#include "fedkt/advanced/baselines.h"

#include "base/text.h"
#include "cli/learning/evaluation.h"
#include "cli/learning/train.h"

struct cli_personalize {
    struct cli_data data, test; /* test.path NULL: the sites' own held-out records */
    struct cli_run run;
    const char *model, *out, *partition, *ways;
    double holdout, rate_local, rate_tune;
    uint64_t size, sites, seed, epochs_local, epochs_tune, batch;
    int filter;
    unsigned mask;          /* of the ways */
    struct cli_train train; /* of the network, when .release is given; else model is given */
    int epochs_given, holdout_given, epochs_local_given, rate_local_given, rounds_given;
    const char *baselines, *baseline_set; /* baselines NULL: none */
    uint64_t rounds;
    unsigned baseline_mask;
    struct fkt_baseline_settings settings;
};

struct cli_personalized {
    const struct cli_personalize *asked;
    struct cli_training training;      /* training of the network in this run; .asked NULL: it was trained before */
    struct fkt_model *network, *tuned; /* tuned: the one site's model, if it is to be saved */
    struct fkt_training_set data, test;
    struct fkt_personal_spec spec;
    struct fkt_personal result;
    struct fkt_personal baselines; /* where some were asked for */
    struct fkt_skipped skipped;
    double seconds, baseline_seconds;
};

/* personalize_network.c */
FKT_MUST_USE fkt_status cli_personalize_network_check(struct cli_personalize *a);
/* The first sets p->network with its classes and size; the second trains it. */
FKT_MUST_USE fkt_status cli_personalize_network_open(struct cli_personalized *p);
FKT_MUST_USE fkt_status cli_personalize_network_train(struct cli_personalized *p);

/* personalize_baselines.c */
FKT_MUST_USE fkt_status cli_personalize_baselines_check(struct cli_personalize *a);
FKT_MUST_USE fkt_status cli_personalize_baselines_run(struct cli_personalized *p);
void cli_personalize_baselines_print(const struct cli_personalized *p);
json_t *cli_personalize_baselines_json(const struct cli_personalized *p); /* gives; NULL: no memory */
/* Further columns of a site's line; UINT32_MAX: of the line of names. */
void cli_personalize_baselines_csv(struct fkt_text *t, const struct cli_personalized *p, uint32_t site);

/* personalize_report.c */
void cli_personalize_print(const struct cli_personalized *p);
json_t *cli_personalize_json(const struct cli_personalized *p); /* gives; NULL: no memory */
/* sites.csv and results.json. */
FKT_MUST_USE fkt_status cli_personalize_folder(const struct cli_personalized *p);

#endif
