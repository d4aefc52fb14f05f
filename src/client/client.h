/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - the state of a site's side of a task, for this module alone. client.c has the state diagram. */
#ifndef FKT_CLIENT_CLIENT_H
#define FKT_CLIENT_CLIENT_H

#include "fedkt/advanced/mailbox.h"
#include "fedkt/advanced/privacy.h"
#include "fedkt/advanced/secagg.h"
#include "fedkt/client.h"

#include "crypto/entropy.h"
#include "secagg/msg.h"
#include "store/db.h"
#include "task/task.h"

#define FKT_CLIENT_LEAVE (-1) /* instead of a message's index: a Leave that answers none */

enum { FKT_CLIENT_TOLD = 16 };
struct fkt_client_head {
    uint64_t entry; /* 0: none */
    char sha256[FKT_SHA256_HEX];
};

struct fkt_client {
    struct fkt_task task;
    struct fkt_sa_params params; /* its roster is the task's */
    struct fkt_share_plan shares;
    uint32_t site;
    uint8_t secret[FKT_SA_SECRET];
    char fingerprint[FKT_SHA256_HEX];  /* of the records: fkt_records_name */
    struct fkt_record_digest *digests; /* (n_digests) */
    size_t n_digests;
    char *dataset, *ledger;
    double budget_epsilon, budget_delta, most_epsilon;

    struct fkt_db *db;
    int64_t *moments; /* (numbers) exact, PRIVATE; NULL: wiped */
    size_t numbers;
    int masked, spent;    /* of the task, as the file has them */
    enum fkt_stage ended; /* RELEASED or GIVEN_UP: the task is over; as the file has it */
    uint32_t begun;
    uint64_t sent_bytes;

    enum fkt_stage stage;             /* as the server last reported */
    uint8_t round[FKT_MAILBOX_ROUND]; /* the message it has */
    uint32_t after;
    struct fkt_client_head head;                  /* the newest of the transparency log */
    struct fkt_client_head told[FKT_CLIENT_TOLD]; /* not yet on disk, ascending */
    size_t tolds;

    struct fkt_sa_client *client; /* NULL: no round is running */
    int reserved, spending;       /* of the round: the ledger was asked, or may have been */
    struct fkt_sa_site brings;
    struct fkt_entropy_seeded own[2]; /* keys, noise */
    struct fkt_entropy keys, noise;

    uint8_t *answer; /* (answer_cap) what is to be sent */
    size_t answer_len, answer_cap;
    int64_t answer_index;
    struct fkt_failure stop;   /* a local failure: the end, once the Leave has been sent */
    struct fkt_failure broken; /* every call returns it */
};

/* ---- state.c: the file ---- */
FKT_MUST_USE fkt_status fkt_client_file_open(struct fkt_client *a, const char *path);
/* The file's moments, or else `given`, which are stored; NULL: none are needed. */
FKT_MUST_USE fkt_status fkt_client_file_moments(struct fkt_client *a, const int64_t *given);
/* The running round: *there, its seed, and a->round, a->reserved, a->spending. */
FKT_MUST_USE fkt_status fkt_client_file_round(struct fkt_client *a, uint8_t seed[FKT_ENTROPY_KEY], int *there);
FKT_MUST_USE fkt_status fkt_client_file_begun(struct fkt_client *a, const uint8_t name[FKT_MAILBOX_ROUND], int *yes);
FKT_MUST_USE fkt_status fkt_client_file_begin(struct fkt_client *a, const uint8_t seed[FKT_ENTROPY_KEY],
                                              const struct fkt_message *message);
FKT_MUST_USE fkt_status fkt_client_file_message(struct fkt_client *a, const struct fkt_message *message);
enum fkt_client_flag { FKT_CLIENT_RESERVED, FKT_CLIENT_SPENDING, FKT_CLIENT_SPENT };
FKT_MUST_USE fkt_status fkt_client_file_flag(struct fkt_client *a, enum fkt_client_flag flag);
/* Records the answer at a->answer, of that kind, or that there is none, if none to this message is recorded; *same 0:
 * another one is. *taken: the server has it. */
FKT_MUST_USE fkt_status fkt_client_file_answer(struct fkt_client *a, enum fkt_sa_kind kind, int *same, int *taken);
FKT_MUST_USE fkt_status fkt_client_file_taken(struct fkt_client *a);
/* Deletes seed and messages, and the moments when nothing needs them; they are overwritten in the file. */
FKT_MUST_USE fkt_status fkt_client_file_wipe(struct fkt_client *a);
/* A change of the file; pending heads are stored with it. finish ends the change in any case. */
FKT_MUST_USE fkt_status fkt_client_file_start(struct fkt_client *a);
FKT_MUST_USE fkt_status fkt_client_file_finish(struct fkt_client *a, fkt_status st);

/* ---- log_heads.c: heads of the transparency log, as the server reported them ---- */
FKT_MUST_USE fkt_status fkt_client_heads_load(struct fkt_client *a);
FKT_MUST_USE fkt_status fkt_client_heads_hear(struct fkt_client *a, uint64_t entry, const char *sha256);
FKT_MUST_USE fkt_status fkt_client_heads_put(struct fkt_client *a);     /* within a change */
FKT_MUST_USE fkt_status fkt_client_heads_receipt(struct fkt_client *a); /* within a change: the newest came with one */
FKT_MUST_USE fkt_status fkt_client_heads_settle(struct fkt_client *a);  /* pending heads are on disk */

/* ---- round.c: one round ---- */
/* Outside a round: 1 when the moments are not needed any more: revealed, ended, a local failure, or the limit of rounds
 * reached. */
int fkt_client_is_done(const struct fkt_client *a);
FKT_MUST_USE fkt_status
fkt_client_ask_ledger(const struct fkt_client *a); /* would the ledger reserve? changes nothing */
FKT_MUST_USE fkt_status fkt_client_resume(struct fkt_client *a);
FKT_MUST_USE fkt_status fkt_client_message(struct fkt_client *a, const struct fkt_message *message);
/* The round is over for this site: its secrets are wiped, in memory and in the file. A pending answer stays. May be
 * called without a running round. */
FKT_MUST_USE fkt_status fkt_client_end_round(struct fkt_client *a);
void fkt_client_drop_answer(struct fkt_client *a);

#endif
