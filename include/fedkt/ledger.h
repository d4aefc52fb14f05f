/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.h - a privacy account that outlives the process: one JSON file, locked and synced before anything leaves.
 *
 *   central release   fkt_ledger_file_debit, then noise is drawn
 *   federation        fkt_ledger_file_reserve before the masked vector is made (docs/protocol.md 7),
 *                     fkt_ledger_file_spend before the first share is revealed
 *
 * There is no way to give a reservation back. Once its masked vector has left, a site cannot know whether it is in a
 * total: the shares that take its masks off lie with others. So a reservation counts in full until the same task spends
 * it, and what was spent once is over.
 *
 * An account is named by a fingerprint: fkt_moments_sha256 of one site's exact moments, or fkt_records_fingerprint of
 * its records, which is the same under every task. mu^2 adds up within one adjacency. Where an account holds a charge
 * in zCDP, its whole sum is turned into epsilon by the zCDP formula: a mu-GDP Gaussian mechanism is mu^2/2-zCDP, the
 * other way round does not hold.
 */
#ifndef FEDKT_LEDGER_H
#define FEDKT_LEDGER_H

#include "fedkt/privacy.h"
#include "fedkt/status.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FKT_SHA256_HEX 65

/* All n are charged or none; a fingerprint twice is FKT_E_ARG, since its records would count twice. */
struct fkt_ledger_charge {
    const char (*fingerprints)[FKT_SHA256_HEX]; /* (n) borrowed */
    size_t n;
    const char *task_sha256;
    enum fkt_adjacency adjacency; /* an account is kept in one adjacency; another one is refused */
    double mu; /* of a federation: shares.plan.mu, with FKT_ACCOUNT_ZCDP below (federation.h: fkt_federation_open) */
    double budget_epsilon, budget_delta; /* over all charges; epsilon 0: as it stands, and for a new account just this
                                          * charge, so that a second one is refused */
    int insecure_seed;                   /* noted in the entry */
    enum fkt_accounting accounting;
};

/* Of the account that has most, this charge included. */
struct fkt_ledger_spent {
    double mu2;
    enum fkt_accounting accounting; /* zCDP when any charge in any of the accounts is */
};
FKT_API double fkt_ledger_epsilon(double delta, const struct fkt_ledger_spent *spent); /* rounded up */

/* Below: FKT_E_BUDGET when what is spent and reserved would pass the budget, FKT_E_FORMAT when the file is damaged;
 * nothing changes then. spent may be NULL. A session is 64 lower-case hex digits: fkt_sa_session_hex
 * makes them of what a site of secagg.h is given. */
FKT_API FKT_MUST_USE fkt_status fkt_ledger_file_debit(const char *path, const struct fkt_ledger_charge *charge,
                                                      struct fkt_ledger_spent *spent);
/* Sets aside what `session` will cost. A reservation of the same task for the same records that was never spent is
 * taken over: its round's keys are gone. FKT_E_STATE when the ledger has ever seen the session; FKT_E_BUDGET, whatever
 * the budget, when the task was spent by any of the ledger's accounts, or had FKT_LEDGER_ROUNDS sessions. */
#define FKT_LEDGER_ROUNDS 64
FKT_API FKT_MUST_USE fkt_status fkt_ledger_file_reserve(const char *path, const struct fkt_ledger_charge *charge,
                                                        const char *session, struct fkt_ledger_spent *spent);
/* From reserved to spent, on disk when it answers. FKT_E_STATE when nothing is reserved for `session`, FKT_E_BUDGET
 * when its task was spent in another one. */
FKT_API FKT_MUST_USE fkt_status fkt_ledger_file_spend(const char *path, const char *session);

#ifdef __cplusplus
}
#endif
#endif
