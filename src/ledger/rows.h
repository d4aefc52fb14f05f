/* SPDX-License-Identifier: Apache-2.0 */
/* rows.h - a ledger's file, open: accounts, records, entries and sessions as rows. */
#ifndef FKT_LEDGER_ROWS_H
#define FKT_LEDGER_ROWS_H

#include "fedkt/ledger.h"

#include "base/status.h"
#include "store/db.h"

struct fkt_ledger_rows {
    char *path; /* through a link: of the file it points to */
    struct fkt_db *db;
};
/* No file: make one; see an empty one; FKT_E_IO. LOOK, alone or with EMPTY, is a copy: nothing of it is kept. */
enum { FKT_LEDGER_ROWS_MAKE = 1, FKT_LEDGER_ROWS_EMPTY = 2, FKT_LEDGER_ROWS_LOOK = 4 };
/* Opens, begins a change and checks everything that is in it; FKT_E_FORMAT when something is damaged, whichever account
 * it is in. Close gives up what was not committed. */
FKT_MUST_USE fkt_status fkt_ledger_rows_open(struct fkt_ledger_rows *b, const char *path, int how);
FKT_MUST_USE fkt_status fkt_ledger_rows_commit(struct fkt_ledger_rows *b);
void fkt_ledger_rows_close(struct fkt_ledger_rows *b);

/* The account of `dataset` with its entries; *id 0: there is none. release(a) in any case. */
FKT_MUST_USE fkt_status fkt_ledger_rows_account(struct fkt_ledger_rows *b, const char *dataset,
                                                struct fkt_ledger_account *a, int64_t *id);
void fkt_account_clear(struct fkt_ledger_account *a);
/* Stores the account in *a, without entries: a new one (*id 0, set) or its changed budget. */
FKT_MUST_USE fkt_status fkt_ledger_rows_put_account(struct fkt_ledger_rows *b, const struct fkt_ledger_account *a,
                                                    int64_t *id);
FKT_MUST_USE fkt_status fkt_ledger_rows_put_entry(struct fkt_ledger_rows *b, int64_t account,
                                                  const struct fkt_ledger_entry *e);
/* Stores the account of these records; known ones keep theirs. */
FKT_MUST_USE fkt_status fkt_ledger_rows_put_records(struct fkt_ledger_rows *b, int64_t account,
                                                    const struct fkt_record_digest *records, size_t n);
/* Which accounts but `except` (0: none is left out) know some of these records. */
struct fkt_ledger_rows_owner {
    char dataset[FKT_LEDGER_NAME]; /* the one that knows most of them; "": none */
    int64_t records;               /* that it knows */
    size_t datasets;               /* that know any */
};
FKT_MUST_USE fkt_status fkt_ledger_rows_owner(struct fkt_ledger_rows *b, int64_t except,
                                              const struct fkt_record_digest *records, size_t n,
                                              struct fkt_ledger_rows_owner *out);
/* Stores that a session was used for this task; FKT_E_FORMAT when it is known for another one. */
FKT_MUST_USE fkt_status fkt_ledger_rows_put_session(struct fkt_ledger_rows *b, const char *session, const char *task);
/* The first column of the first row of a question with the text parameters `a` and `b` (NULL: fewer of them). */
FKT_MUST_USE fkt_status fkt_ledger_rows_count(struct fkt_ledger_rows *b, int64_t *out, const char *sql, const char *one,
                                              const char *two);

#endif
