/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.h - a privacy account that outlives the process: one SQLite file, changed as a whole and synced before
 * anything leaves.
 *
 *   central release   fkt_ledger_file_debit, then noise is drawn
 *   federation        fkt_ledger_file_reserve before the masked vector is made (docs/protocol.md 7),
 *                     fkt_ledger_file_spend before the first share is revealed
 *
 * There is no way to give a reservation back. Once its masked vector has left, a site cannot know whether it is in a
 * total: the shares that take its masks off lie with others. So a reservation counts in full until the same task spends
 * it, and what was spent once is over.
 *
 * An account is a dataset: a name that the operator chose. Every release under that name adds its mu^2, whatever its
 * records are, so nothing that is published depends on which records there were. Beside that the ledger keeps a digest
 * of each image, and under which name it was released: a charge that holds an image of another dataset is refused. mu^2
 * adds up within one adjacency. Where an account holds a charge in zCDP, its whole sum is turned into epsilon by the
 * zCDP formula: a mu-GDP Gaussian mechanism is mu^2/2-zCDP, the other way round does not hold.
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

/* An image as it was decoded, before any task: the first 16 bytes of SHA-256(width, height, RGB); of 16-bit
 * samples before they are narrowed (docs/formats.md). As PRIVATE as it. */
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
    double budget_epsilon, budget_delta; /* over all charges; epsilon 0: as it stands, and for a new account just this
                                          * charge, so that a second one is refused */
    double most_epsilon; /* at `delta`: a charge that would bring the account above it is refused; 0: no such limit */
    int insecure_seed;   /* noted in the entry */
    enum fkt_accounting accounting;
    double delta;          /* for people: the task's, at which its epsilon was agreed; 0: not known */
    const char *task_name; /* for people, borrowed; NULL: none */
};

/* Of the account, this charge included. */
struct fkt_ledger_spent {
    double mu2;
    enum fkt_accounting accounting; /* zCDP when any charge of the account is */
};
FKT_API double fkt_ledger_epsilon(double delta, const struct fkt_ledger_spent *spent); /* rounded up */

/* Below: FKT_E_BUDGET when what is spent and reserved would pass the budget, or a record belongs to another dataset, or
 * the account would pass most_epsilon (then alone *spent is set: what it would have come to);
 * FKT_E_FORMAT when the file is damaged; nothing changes then. spent may be NULL. A session is 64 lower-case hex
 * digits: fkt_sa_session_hex makes them of what a site of advanced/secagg.h is given. */
FKT_API FKT_MUST_USE fkt_status fkt_ledger_file_debit(const char *path, const struct fkt_ledger_charge *charge,
                                                      struct fkt_ledger_spent *spent);
/* The same, and gives in *once the permission for one release of the charge's task: fkt_release_make takes it, and its
 * certificate then says that a ledger file has paid. */
FKT_API FKT_MUST_USE fkt_status fkt_ledger_file_pay(struct fkt_ledger *once, const char *path,
                                                    const struct fkt_ledger_charge *charge,
                                                    struct fkt_ledger_spent *spent);
/* Sets aside what `session` will cost. A reservation of the same task for the same dataset that was never spent is
 * taken over: its round's keys are gone. Where the two differ in price, accounting or noise, the worse one stands.
 * FKT_E_STATE when the ledger has ever seen the session; FKT_E_BUDGET, whatever the budget, when the task was spent by
 * any of the ledger's accounts, or had FKT_LEDGER_ROUNDS sessions. */
#define FKT_LEDGER_ROUNDS 64
FKT_API FKT_MUST_USE fkt_status fkt_ledger_file_reserve(const char *path, const struct fkt_ledger_charge *charge,
                                                        const char *session, struct fkt_ledger_spent *spent);
/* From reserved to spent, on disk when it answers. FKT_E_STATE when nothing is reserved for `session`, FKT_E_BUDGET
 * when its task was spent in another one. */
FKT_API FKT_MUST_USE fkt_status fkt_ledger_file_spend(const char *path, const char *session);
/* How a session stands, for whoever resumes after a crash between asking and noting the answer. */
enum fkt_ledger_session { FKT_LEDGER_SESSION_UNKNOWN = 0, FKT_LEDGER_SESSION_RESERVED, FKT_LEDGER_SESSION_SPENT };
FKT_API FKT_MUST_USE fkt_status fkt_ledger_file_session(const char *path, const char *session, const char *task_sha256,
                                                        const char *dataset,
                                                        enum fkt_ledger_session *out); /* UNKNOWN unless both fit */
/* Would a reservation of this charge be granted now? The statuses of fkt_ledger_file_reserve; changes nothing. spent:
 * what it would come to. A ledger that is not there is an empty one. */
FKT_API FKT_MUST_USE fkt_status fkt_ledger_file_ask(const char *path, const struct fkt_ledger_charge *charge,
                                                    struct fkt_ledger_spent *spent);
/* The dataset that most of these records belong to; "" when the ledger knows none of them. */
FKT_API FKT_MUST_USE fkt_status fkt_ledger_file_owner(const char *path, const struct fkt_record_digest *records,
                                                      size_t n_records, char dataset[FKT_LEDGER_NAME]);

/* ---- what stands in a ledger, for people ---- */

struct fkt_ledger_entry {
    char task_sha256[FKT_SHA256_HEX];
    char session[FKT_SHA256_HEX]; /* "": a release by one party, not a round of a federation */
    double mu2;
    enum fkt_accounting accounting;
    int reserved; /* 1: set aside for a round, 0: spent; both count */
    int insecure_seed;
    int64_t when;                    /* set aside or spent, the later of them: seconds since 1970, UTC; 0: not known */
    double delta;                    /* of its task; 0: not known */
    char task_name[FKT_LEDGER_NAME]; /* "": none */
};
struct fkt_ledger_account {
    char dataset[FKT_LEDGER_NAME];
    uint64_t records; /* images that were in any of its entries; PRIVATE */
    enum fkt_adjacency adjacency;
    double budget_epsilon, budget_delta; /* 0: nobody set a total */
    double budget_mu2;                   /* then this is all there is: what the first charge cost */
    double limit_mu2;                    /* the largest sum of mu2 that it may come to, in its accounting */
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
