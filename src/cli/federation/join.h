/* SPDX-License-Identifier: Apache-2.0 */
/* join.h - what the files of `fedkt join` share: what was asked for, and what is at home before anybody is called. */
#ifndef FKT_CLI_FEDERATION_JOIN_H
#define FKT_CLI_FEDERATION_JOIN_H

#include "cli/core/common.h"
#include "cli/task/public_key.h"

#include "fedkt/client.h"

#include "net/http_transport.h"

struct cli_join_asked {
    const char *task, *key, *operator_key, *ledger, *dataset, *state, *out, *calibration, *encodings;
    struct cli_data data;
    struct cli_weights settings;
    struct cli_run run;
    double budget_epsilon, budget_delta;
    int budget_epsilon_given, budget_delta_given;
    int dry_run, insecure_seed, accept_weak;
    uint64_t patience;
};

struct cli_join {
    const struct cli_join_asked *a;
    struct cli_progress progress;
    struct fkt_task task;
    struct fkt_key key;
    uint32_t site;
    uint8_t hash[32]; /* the task's */
    struct fkt_sa_params params;
    struct fkt_share_plan shares;
    char *state, *ledger, *out;
    const char *dataset;    /* the account in the ledger */
    struct fkt_records *of; /* which images */
    size_t records;
    uint64_t *held; /* (n_classes) records of each class, unreadable ones among them */
    struct fkt_skipped skipped;
    struct fkt_moments *moments;
    const int64_t *exact; /* of moments; NULL: the state file has them */

    struct fkt_client *client;
    struct fkt_endpoint side;
    struct fkt_http_client *http;
    struct fkt_http_transport_spec post;
    struct fkt_client_view shown; /* what was last said of it */
    char trouble[200];            /* the cause that was told last; "": none */
    int showed, expired;
    int over; /* it ended, without a release that this site is in */
};

/* ---- join_home.c ---- */
/* Everything that can be refused before anything is computed, then the digests, the ledger, the moments. */
FKT_MUST_USE fkt_status cli_join_prepare(struct cli_join *j);
FKT_MUST_USE fkt_status cli_join_charge(const struct cli_join *j, struct fkt_ledger_charge *out);
void cli_join_clear(struct cli_join *j);
int cli_join_expired(const struct cli_join *j);
FKT_MUST_USE fkt_status
cli_join_too_late(struct cli_join *j); /* the failure: when it ended, and what time it is here */

/* ---- join_dry.c ---- */
FKT_MUST_USE fkt_status cli_join_print(struct cli_join *j); /* what would be sent, and what it would cost */

/* ---- join_talk.c ---- */
void cli_join_warn(const char *text);
int cli_join_heartbeat(void *self, const char *trouble);

/* ---- join_result.c ---- */
FKT_MUST_USE fkt_status cli_join_check_out(const struct cli_join *j);
/* Files, receipt, verdict. */
FKT_MUST_USE fkt_status cli_join_result(struct cli_join *j);

#endif
