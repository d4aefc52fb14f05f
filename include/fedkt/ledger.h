/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.h - a privacy account that outlives the process: one SQLite file, changed as a whole and synced before
 * anything leaves.
 *
 *   central release   fkt_ledger_file_debit, then noise is drawn
 *   federation        fkt_ledger_file_reserve before the masked vector is made (docs/protocol.md 7),
 *                     fkt_ledger_file_spend before the first share is revealed
 *
 * A reservation cannot be returned. Once its masked vector has left, a site cannot know whether it is in a total: other
 * sites hold the key shares that remove its masks. So a reservation counts in full until the same task spends it, and a
 * spent task cannot be used again.
 *
 * An account is a dataset: a name that the operator chose. Every release under that name adds its mu^2, whatever its
 * records are, so nothing that is published depends on the set of records. The ledger also keeps a digest of each image
 * with the name of its dataset: a charge that holds an image of another dataset is refused. mu^2 adds up within one
 * adjacency. If an account holds a charge in zCDP, its whole sum is converted to epsilon by the zCDP formula: a mu-GDP
 * Gaussian mechanism is mu^2/2-zCDP, but the converse does not hold.
 */
#ifndef FEDKT_LEDGER_H
#define FEDKT_LEDGER_H

#include "fedkt/privacy.h"
#include "fedkt/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FKT_LEDGER_NAME 128

/* An image as it was decoded, before any task: the first 16 bytes of SHA-256(width, height, RGB); of 16-bit samples
 * before they are narrowed (docs/formats.md). As PRIVATE as the image. */
#define FKT_RECORD_DIGEST 16
struct fkt_record_digest {
    uint8_t bytes[FKT_RECORD_DIGEST];
};

struct fkt_ledger_charge {
    const char *dataset; /* names the account; plain text, shorter than FKT_LEDGER_NAME; borrowed */
    const struct fkt_record_digest
        *records; /* (n_records) of all images in it (records.h: fkt_records_read); borrowed */
    size_t n_records;
    const char *task_sha256;
    enum fkt_adjacency adjacency; /* an account is kept in one adjacency; another one is refused */
    double mu; /* of a federation: shares.plan.mu, with FKT_ACCOUNTING_GDP below (federation.h: fkt_federation_open) */
    double budget_epsilon, budget_delta; /* over all charges; epsilon 0: unchanged, and for a new account just this
                                          * charge, so that a second one is refused */
    double most_epsilon; /* at `delta`: a charge that would bring the account above it is refused; 0: no such limit */
    int insecure_seed;   /* noted in the entry */
    enum fkt_accounting accounting;
    double delta;          /* for display: the task's delta, at which its epsilon is stated; 0: not known */
    const char *task_name; /* for display, borrowed; NULL: none */
};

/* Of the account, this charge included. */
struct fkt_ledger_spent {
    double mu2;
    enum fkt_accounting accounting; /* zCDP when any charge of the account is */
};
FKT_API double fkt_ledger_epsilon(double delta, const struct fkt_ledger_spent *spent); /* rounded up */

/* Below: FKT_E_BUDGET when what is spent and reserved would pass the budget, or a record belongs to another dataset,
 * or the account would pass most_epsilon (only then *spent is set: the sum that it would have reached); FKT_E_FORMAT
 * when the file is damaged; nothing changes then. spent may be NULL. A session is 64 lower-case hex digits:
 * fkt_sa_session_hex makes them of what a site of advanced/secagg.h is given. */
FKT_API FKT_MUST_USE fkt_status fkt_ledger_file_debit(const char *path, const struct fkt_ledger_charge *charge,
                                                      struct fkt_ledger_spent *spent);
/* The same, and sets *once to the permission for one release of the charge's task: fkt_release_make takes it, and
 * its certificate then states that a ledger file was debited. */
FKT_API FKT_MUST_USE fkt_status fkt_ledger_file_pay(struct fkt_ledger *once, const char *path,
                                                    const struct fkt_ledger_charge *charge,
                                                    struct fkt_ledger_spent *spent);
/* Reserves the cost of `session`. An unspent reservation of the same task for the same dataset is taken over: its
 * round's keys no longer exist. If the two differ in cost, accounting or noise, the worse one is kept. FKT_E_STATE
 * when the ledger has seen the session before; FKT_E_BUDGET, whatever the budget, when the task was spent by any of
 * the ledger's accounts, or had FKT_LEDGER_ROUNDS sessions. */
#define FKT_LEDGER_ROUNDS 64
FKT_API FKT_MUST_USE fkt_status fkt_ledger_file_reserve(const char *path, const struct fkt_ledger_charge *charge,
                                                        const char *session, struct fkt_ledger_spent *spent);
/* From reserved to spent, on disk when it returns. FKT_E_STATE when nothing is reserved for `session`, FKT_E_BUDGET
 * when its task was spent in another one. */
FKT_API FKT_MUST_USE fkt_status fkt_ledger_file_spend(const char *path, const char *session);
/* The state of a session, for resuming after a crash between a call and recording its result. */
enum fkt_ledger_session { FKT_LEDGER_SESSION_UNKNOWN = 0, FKT_LEDGER_SESSION_RESERVED, FKT_LEDGER_SESSION_SPENT };
FKT_API FKT_MUST_USE fkt_status fkt_ledger_file_session(const char *path, const char *session, const char *task_sha256,
                                                        const char *dataset,
                                                        enum fkt_ledger_session *out); /* UNKNOWN unless both fit */
/* Would a reservation of this charge be granted now? The statuses of fkt_ledger_file_reserve; changes nothing.
 * spent: the sum that it would reach. A missing ledger is an empty one. */
FKT_API FKT_MUST_USE fkt_status fkt_ledger_file_ask(const char *path, const struct fkt_ledger_charge *charge,
                                                    struct fkt_ledger_spent *spent);
/* The dataset that most of these records belong to; "" when the ledger knows none of them. */
FKT_API FKT_MUST_USE fkt_status fkt_ledger_file_owner(const char *path, const struct fkt_record_digest *records,
                                                      size_t n_records, char dataset[FKT_LEDGER_NAME]);

/* ---- the contents of a ledger, for display ---- */

struct fkt_ledger_entry {
    char task_sha256[FKT_SHA256_HEX];
    char session[FKT_SHA256_HEX]; /* "": a release by one party, not a round of a federation */
    double mu2;
    enum fkt_accounting accounting;
    int reserved; /* 1: reserved for a round, 0: spent; both count */
    int insecure_seed;
    int64_t when;                    /* reserved or spent, the later of them: seconds since 1970, UTC; 0: not known */
    double delta;                    /* of its task; 0: not known */
    char task_name[FKT_LEDGER_NAME]; /* "": none */
};
struct fkt_ledger_account {
    char dataset[FKT_LEDGER_NAME];
    uint64_t records; /* images that were in any of its entries; PRIVATE */
    enum fkt_adjacency adjacency;
    double budget_epsilon, budget_delta; /* 0: no total was set */
    double budget_mu2;                   /* then this is the whole budget: the cost of the first charge */
    double limit_mu2;                    /* the largest allowed sum of mu2, in its accounting */
    struct fkt_ledger_spent total;       /* of all its entries, rounded up */
    struct fkt_ledger_entry *entries;    /* (n) oldest first; owned */
    size_t n;
};
struct fkt_ledger_contents {
    struct fkt_ledger_account *accounts; /* (n) oldest first; owned */
    size_t n;
};
/* All accounts, or that of `dataset` alone (n is 0 when there is none). FKT_E_IO when there is no such file. */
FKT_API FKT_MUST_USE fkt_status fkt_ledger_file_read(struct fkt_ledger_contents *out, const char *path,
                                                     const char *dataset /* may be NULL */);
FKT_API void fkt_ledger_contents_clear(struct fkt_ledger_contents *b);

#ifdef __cplusplus
}
#endif
#endif
