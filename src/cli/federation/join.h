/* SPDX-License-Identifier: Apache-2.0 */
/* join.h - what the files of `fedkt join` share: options and output. */
#ifndef FKT_CLI_FEDERATION_JOIN_H
#define FKT_CLI_FEDERATION_JOIN_H

#include "fedkt/join.h"

#include "base/status.h"
#include "cli/core/common.h"

struct cli_join_asked {
    const char *task, *key, *operator_key, *ledger, *dataset, *state, *out, *calibration, *guide_calibration,
        *encodings;
    struct cli_data data;
    struct cli_weights settings;
    struct cli_run run;
    double budget_epsilon, budget_delta;
    int budget_epsilon_given, budget_delta_given;
    int dry_run, insecure_seed, accept_weak;
    uint64_t patience;
};

/* The listener of fkt_join's events. */
struct cli_join {
    const struct cli_join_asked *a;
    struct cli_progress progress;
    int opened; /* 1: the codec was, and runs on: */
    struct fkt_device device;
    struct fkt_failure refused; /* the ledger's refusal, with a hint that names options; status FKT_OK: none */
};

/* ---- join_progress.c: on standard error ---- */
int cli_join_event(void *self, const struct fkt_join_event *e);

/* ---- join_print.c: on standard output ---- */
FKT_MUST_USE fkt_status cli_join_print_preview(const struct cli_join *j, const struct fkt_join_preview *p);
FKT_MUST_USE fkt_status cli_join_print_result(const struct cli_join *j, const struct fkt_join_result *r);

#endif
