/* SPDX-License-Identifier: Apache-2.0 */
/* personalize.h - what was asked of `fedkt personalize`, and how its result is told. */
#ifndef FKT_CLI_PERSONALIZE_H
#define FKT_CLI_PERSONALIZE_H

#include "cli/judged.h"

struct cli_personalize {
    struct cli_data data, test; /* test.path NULL: records of the sites' own */
    struct cli_run run;
    const char *model, *out, *partition, *ways;
    double test_share, rate_local, rate_tune;
    uint64_t clients, seed, epochs_local, epochs_tune, batch;
    int filter;
    unsigned mask; /* of the ways */
};

struct cli_personalized {
    const struct cli_personalize *asked;
    struct fkt_model *pretrained, *tuned; /* tuned: of the one site, where it is to be saved */
    struct fkt_pool data, test;
    struct fkt_personal_spec spec;
    struct fkt_personal result;
    struct fkt_skipped skipped;
    double seconds;
};

void cli_personalize_tell(const struct cli_personalized *p);
json_t *cli_personalize_json(const struct cli_personalized *p); /* gives; NULL: no memory */
/* sites.csv and results.json. */
FKT_MUST_USE fkt_status cli_personalize_folder(const struct cli_personalized *p);

#endif
