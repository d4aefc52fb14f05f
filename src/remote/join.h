/* SPDX-License-Identifier: Apache-2.0 */
/* join.h - the state of fkt_join, which the files of this module share. */
#ifndef FKT_REMOTE_JOIN_H
#define FKT_REMOTE_JOIN_H

#include "fedkt/advanced/privacy.h"
#include "fedkt/advanced/secagg.h"
#include "fedkt/join.h"

#include "base/status.h"
#include "net/http_transport.h"
#include "task/task.h"

struct fkt_joining {
    const struct fkt_join_spec *spec;
    int dry_run;                  /* nothing is written but encodings, and nothing is sent */
    struct fkt_progress progress; /* checks the stop flag, then calls the caller's hook */
    struct fkt_task *task;        /* owned */
    int verified;                 /* its signature is valid */
    struct fkt_key key;
    uint32_t site;
    uint8_t hash[32]; /* the task's */
    struct fkt_sa_params params;
    struct fkt_share_plan shares;
    char *state, *ledger, *out; /* owned */
    const char *dataset;        /* the account in the ledger */
    struct fkt_records *of;     /* which images */
    size_t records;
    uint64_t *held; /* (n_classes) records of each class, including unreadable ones */
    struct fkt_skipped skipped;
    struct fkt_moments *moments;
    const int64_t *exact; /* of moments; NULL: the state file has them */

    struct fkt_client *client;
    struct fkt_endpoint side;
    struct fkt_http_client *http;
    struct fkt_http_transport_spec post;
    struct fkt_client_view shown; /* what was last reported of it */
    char trouble[200];            /* the cause that was reported last; "": none */
    int showed, expired, stopped;
    int over; /* it ended without a release that this site is in */
};

/* ---- join.c ---- */
FKT_MUST_USE fkt_status fkt_joining_begin(struct fkt_joining *j, const struct fkt_join_spec *spec, int dry_run);
/* Frees and wipes; returns st with its message. */
FKT_MUST_USE fkt_status fkt_joining_end(struct fkt_joining *j, fkt_status st);
void fkt_joining_report(struct fkt_joining *j, struct fkt_join_event event); /* fills in the task */
int fkt_joining_stopped(const struct fkt_joining *j);

/* ---- join_prepare.c ---- */
/* All checks that need no computation, then the digests, the ledger, the moments. */
FKT_MUST_USE fkt_status fkt_joining_prepare(struct fkt_joining *j);
FKT_MUST_USE fkt_status fkt_joining_charge(const struct fkt_joining *j, struct fkt_ledger_charge *out);
int fkt_joining_expired(const struct fkt_joining *j);
FKT_MUST_USE fkt_status fkt_joining_too_late(struct fkt_joining *j); /* the failure, with the times */

/* ---- join_result.c ---- */
FKT_MUST_USE fkt_status fkt_joining_check_out(const struct fkt_joining *j);
/* Fetches and verifies the files, moves them into place with the receipt, and reports the result. */
FKT_MUST_USE fkt_status fkt_joining_finish(struct fkt_joining *j, struct fkt_join_result *result);

#endif
