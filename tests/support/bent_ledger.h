/* SPDX-License-Identifier: Apache-2.0 */
/* bent_ledger.h - what a bad disk or somebody with an editor does to a ledger, in SQL. */
#ifndef FKT_TEST_BENT_LEDGER_H
#define FKT_TEST_BENT_LEDGER_H

#include "tests/support/check.h"

#include <sqlite3.h>

#define BEND_SCHEMA "PRAGMA writable_schema = ON; "

/* Runs `sql` with all of SQLite's own checks off. */
static inline void bend_ledger(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    char *why = NULL;
    CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK);
    CHECK(sqlite3_exec(db, "PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF", NULL, NULL, NULL) ==
          SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK) fail_msg("%s: %s", sql, why);
    CHECK(sqlite3_close(db) == SQLITE_OK);
}

#endif
