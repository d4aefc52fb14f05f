/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - a site's side of one task over all its rounds, as an endpoint (advanced/mailbox.h), on a state file.
 *
 * Secrets of a round are drawn from one 256-bit seed that is in the state file (0600) with every message received. A
 * message is on disk before the site acts on it, and the hash of an answer before it leaves. After a crash the same
 * messages give the same answers, byte for byte, or the site leaves the round: it never signs two different messages of
 * one phase. At the end of a round its seed and messages are wiped. One round at a time; a task has at most
 * FKT_LEDGER_ROUNDS beginnings here. The ledger pays before anything leaves (ledger.h).
 */
#ifndef FEDKT_CLIENT_H
#define FEDKT_CLIENT_H

#include "fedkt/records.h"
#include "fedkt/status.h"
#include "fedkt/task.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fkt_client_spec {
    const struct fkt_task *task;         /* signature checked by the caller; copied */
    const uint8_t *secret;               /* (FKT_SA_SECRET) its public key is on the roster; copied */
    const char *state;                   /* the state file; made 0600 when it is not there */
    const char *ledger;                  /* path of the site's ledger */
    double budget_epsilon, budget_delta; /* as in fkt_ledger_charge */
    double most_epsilon;                 /* the same */
    const char *dataset;                 /* names the account in the ledger; copied */
    struct fkt_records *records;         /* of the moments; its digests are copied */
    const int64_t *moments;              /* (K, block) exact, borrowed for the call; NULL: those that the state holds */
};
struct fkt_client;
struct fkt_endpoint; /* advanced/mailbox.h */
/* FKT_E_STATE: another process holds the state file. FKT_E_MISMATCH: the file belongs to another task, key, dataset or
 * records, or the key is not on the roster. FKT_E_BUDGET: the ledger would refuse. Resumes a round where it stood. */
FKT_API FKT_MUST_USE fkt_status fkt_client_open(struct fkt_client **out, const struct fkt_client_spec *spec);
FKT_API void fkt_client_close(struct fkt_client *a); /* wipes what is in memory; the state file stays */
FKT_API void fkt_client_endpoint(struct fkt_client *a, struct fkt_endpoint *out); /* borrows a */
FKT_API uint32_t fkt_client_site(const struct fkt_client *a);                     /* its index on the roster */
/* 1 when the file holds the moments of these records under this task, so that they need not be computed again. */
FKT_API FKT_MUST_USE fkt_status fkt_client_has_moments(const char *state, const struct fkt_task *task,
                                                       struct fkt_records *records, int *yes);
/* The task's last day is over. *goes_on 1: a round is under way, or its vector has left, or the task has ended: open it
 * and go on. 0: nothing of this task will happen here any more, and moments that the file held are gone. FKT_E_STATE:
 * another process holds it. No file is fine. */
FKT_API FKT_MUST_USE fkt_status fkt_client_expire(const char *state, const struct fkt_task *task, int *goes_on);
/* What it sent and which heads of the transparency log it received, as JSON: for fkt_verify_folder. */
FKT_API FKT_MUST_USE fkt_status fkt_client_receipt(struct fkt_client *a, const char *path, int force);

/* Its state; after ENDED, its result. */
struct fkt_client_view {
    enum fkt_stage stage; /* as the server last said */
    uint32_t begun;       /* rounds of this task that this site has begun */
    const char *phase;    /* of the round under way, "" */
    int masked, spent;    /* its vector has left; it has revealed (its contribution counts as released) */
    uint64_t sent_bytes;
};
FKT_API void fkt_client_get_view(const struct fkt_client *a, struct fkt_client_view *out);

#ifdef __cplusplus
}
#endif
#endif
