/* SPDX-License-Identifier: Apache-2.0 */
/* db.h - an SQLite file: owner only, WAL, synchronous=FULL, secure_delete, one writer, a sentence for every failure.
 * The only interface to SQLite. */
#ifndef FKT_STORE_DB_H
#define FKT_STORE_DB_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct fkt_db;
struct fkt_rows; /* a running statement */

enum {
    FKT_DB_EXCLUSIVE = 1, /* no other process may have it open, else FKT_E_STATE */
    FKT_DB_READ = 2,      /* must exist; nothing is written */
    FKT_DB_COPY = 4,      /* the same, on a copy in memory: its log and index are not touched either */
};
/* The purpose of a file. A damaged ledger can be restored from a backup, a site's state cannot: only the caller knows,
 * so it supplies the advice (NULL: none). All texts are printed as they are. */
struct fkt_db_kind {
    const char *schema;    /* run when the file is new */
    uint32_t app, version; /* application_id and user_version */
    const char *damaged, *busy;
    const char *old; /* what to do about an older format; NULL: use the fedkt that wrote it */
};
/* FKT_E_FORMAT for a file of another app or of a later version. "" as path: in memory. The file is created with mode
 * 0600; links and files with second names are refused. The texts of `kind` are borrowed while the file is open. */
FKT_MUST_USE fkt_status fkt_db_open(struct fkt_db **out, const char *path, const struct fkt_db_kind *kind, int flags);
void fkt_db_close(struct fkt_db *db);
FKT_MUST_USE fkt_status fkt_db_begin(struct fkt_db *db);  /* IMMEDIATE: waits for other writers, then FKT_E_IO */
FKT_MUST_USE fkt_status fkt_db_commit(struct fkt_db *db); /* on disk when it returns */
void fkt_db_rollback(struct fkt_db *db);                  /* allowed when no transaction is open */
FKT_MUST_USE fkt_status fkt_db_run(struct fkt_db *db, const char *sql); /* no parameters, rows ignored */
/* After rows were deleted: nothing of them is left in the file or its log. */
FKT_MUST_USE fkt_status fkt_db_scrub(struct fkt_db *db);

/* fmt: one letter per ?: i int64_t, d double, t const char* (may be NULL), b const void*,size_t.
 *   FKT_TRY(fkt_db_do(db, "INSERT INTO t VALUES(?, ?)", "it", (int64_t)1, "x")); */
FKT_MUST_USE fkt_status fkt_db_do(struct fkt_db *db, const char *sql, const char *fmt, ...);
FKT_MUST_USE fkt_status fkt_db_ask(struct fkt_rows **out, struct fkt_db *db, const char *sql, const char *fmt, ...);
FKT_MUST_USE fkt_status fkt_rows_next(struct fkt_rows *r, int *there); /* *there 0: no more rows */
int64_t fkt_rows_int(struct fkt_rows *r, int column);
double fkt_rows_real(struct fkt_rows *r, int column);
const char *fkt_rows_text(struct fkt_rows *r, int column);                  /* NULL: not text */
const uint8_t *fkt_rows_bytes(struct fkt_rows *r, int column, size_t *len); /* borrowed until the next row */
void fkt_rows_done(struct fkt_rows *r);                                     /* NULL is fine */

#endif
