/* SPDX-License-Identifier: Apache-2.0 */
/* account.h - one account of a ledger's file: its entries, what they add up to, and what they may. */
#ifndef FKT_ROUND_ACCOUNT_H
#define FKT_ROUND_ACCOUNT_H

#include "fedkt/ledger.h"

#include "base/status.h"

#include <jansson.h>

#define FKT_LEDGER_DAMAGED "restore it from a backup; a damaged ledger must not be replaced by an empty one"

/* The account of `fingerprint` in *out, opened when new, with the charge's budget where it brings one. `path` is for
 * sentences. */
FKT_MUST_USE fkt_status fkt_account_open(json_t **out, json_t *records, const char *fingerprint,
                                         const struct fkt_ledger_charge *c, const char *path);
/* Adds an entry: spent at once (session NULL), or reserved for a session, with the sessions `past` (may be NULL,
 * borrowed) that it takes the place of. *most grows to what the account then has. */
FKT_MUST_USE fkt_status fkt_account_charge(json_t *account, const struct fkt_ledger_charge *c, const char *session,
                                           json_t *past, const char *path, struct fkt_ledger_spent *most);
/* Removes the reservations of a task, since a new round of it takes over, and adds their sessions to `past`. */
FKT_MUST_USE fkt_status fkt_account_take_over(json_t *account, const char *task_sha256, json_t *past);

/* What a ledger remembers, put together over its accounts. */
struct fkt_account_memory {
    const char *task, *session; /* asked for; session may be NULL */
    int spent;                  /* the task has been spent */
    int known;                  /* the session was used, for whatever task */
    json_t *sessions;           /* an object whose keys are the sessions of the task; the caller's */
};
/* FKT_E_FORMAT when an entry is damaged: it might be the one that matters. */
FKT_MUST_USE fkt_status fkt_account_recall(const json_t *account, const char *path, struct fkt_account_memory *m);

/* The task that `session` is reserved for, or NULL. */
const char *fkt_account_reserved_for(const json_t *account, const char *session);
/* Turns what is reserved for a session into spent. */
FKT_MUST_USE fkt_status fkt_account_spend(json_t *account, const char *session);

#endif
