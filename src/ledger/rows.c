/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - a ledger's file as rows: SQLite, through store/db.h.
 *
 *   accounts  the name of a dataset, its adjacency, and the total budget
 *   records   a digest of each image that was in an entry, and its account; nothing is ever deleted from it
 *   entries   what was spent or reserved, for which task, in which session, and when (oldest first by id); for
 *             people also the task's name and its delta, at which epsilon was agreed
 *   sessions  every session that was ever used, and its task; nothing is ever deleted from it
 *
 * One change is one transaction: it begins when the file is opened, so that what was checked cannot change before the
 * write, and concurrent processes wait for each other. Doubles are stored as their eight bytes.
 *
 * The tables are strict and carry their own rules (CHECK, UNIQUE, REFERENCES). A file can still break
 * them, through a bad disk or an editor; so each open lets SQLite check every row and every index against the rules
 * (integrity_check, foreign_key_check) before anything is used. That reads the whole file. A NaN
 * on disk reads as NULL and breaks NOT NULL.
 *
 * Digests are inserted and searched as one blob that SQL cuts into pieces of 16 bytes: one statement for all
 * records. */
#include "ledger/rows.h"

#include "ledger/account.h"

#include "base/alloc.h"
#include "base/file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define APP 0x464b544c /* "FKTL" */
#define VERSION 5
#define LOOKS 3

#define HEX(column) " CHECK(length(" column ") = 64 AND " column " NOT GLOB '*[^0-9a-f]*')"
/* clang-format off */
static const char schema[] =
    "CREATE TABLE accounts(\n"
    "  id INTEGER PRIMARY KEY,\n"
    "  dataset TEXT NOT NULL UNIQUE CHECK(length(CAST(dataset AS BLOB)) BETWEEN 1 AND 127),\n"
    "  adjacency TEXT NOT NULL CHECK(adjacency IN ('add-remove', 'replace', 'replace-any')),\n"
    "  budget_mu2 REAL NOT NULL CHECK(budget_mu2 > 0 AND budget_mu2 < 1e300),\n"
    "  budget_epsilon REAL CHECK(budget_epsilon > 0 AND budget_epsilon < 1e300),\n"
    "  budget_delta REAL CHECK(budget_delta > 0 AND budget_delta < 1),\n"
    "  CHECK((budget_epsilon IS NULL) = (budget_delta IS NULL))) STRICT;\n"
    "CREATE TABLE records(\n"
    "  digest BLOB PRIMARY KEY NOT NULL CHECK(length(digest) = 16),\n"
    "  account INTEGER NOT NULL REFERENCES accounts(id)) STRICT, WITHOUT ROWID;\n"
    "CREATE TABLE sessions(\n"
    "  session TEXT PRIMARY KEY NOT NULL" HEX("session") ",\n"
    "  task TEXT NOT NULL" HEX("task") ") STRICT;\n"
    "CREATE INDEX sessions_of_task ON sessions(task);\n"
    "CREATE TABLE entries(\n"
    "  id INTEGER PRIMARY KEY,\n"
    "  account INTEGER NOT NULL REFERENCES accounts(id),\n"
    "  task TEXT NOT NULL" HEX("task") ",\n"
    "  mu2 REAL NOT NULL CHECK(mu2 > 0 AND mu2 < 1e300),\n"
    "  accounting TEXT NOT NULL CHECK(accounting IN ('gdp', 'zcdp')),\n"
    "  state TEXT NOT NULL CHECK(state IN ('reserved', 'spent')),\n"
    "  session TEXT REFERENCES sessions(session) CHECK(session IS NOT NULL OR state = 'spent'),\n"
    "  insecure_seed INTEGER NOT NULL CHECK(insecure_seed IN (0, 1)),\n"
    "  at INTEGER NOT NULL CHECK(at >= 0),\n"
    "  delta REAL CHECK(delta > 0 AND delta < 1),\n"
    "  name TEXT CHECK(length(CAST(name AS BLOB)) < 128)) STRICT;\n"
    "CREATE INDEX entries_of_task ON entries(task);\n"
    "CREATE UNIQUE INDEX one_of_a_session ON entries(account, session);\n"
    "CREATE UNIQUE INDEX reserved_once ON entries(account, task) WHERE state = 'reserved';\n";
/* clang-format on */

static const struct fkt_db_kind file_kind = {
    schema,
    APP,
    VERSION,
    FKT_LEDGER_DAMAGED,
    "another fedkt writes to this ledger just now; try again in a minute",
    "an older ledger cannot be read: keep it, open a new ledger under another name, and set the total of each dataset "
    "there "
    "to "
    "what may still be spent; the fedkt that wrote the old one shows what was"};

/* Through a link the ledger is the file it points to: one account, whatever the name. Gives *real. */
static fkt_status real_path(char **real, const char *path)
{
    struct stat sb;
    char *resolved = realpath(path, NULL);
    fkt_status st;
    if (lstat(resolved ? resolved : path, &sb) == 0 && (!resolved || !S_ISREG(sb.st_mode) || sb.st_nlink > 1))
        st = fkt_fail_hint(FKT_E_IO, "name the ledger's own file: another name for it would be another account",
                           "the ledger '%s' is a dangling link, not a regular file, or has a second name", path);
    else st = fkt_strdup(real, resolved ? resolved : path);
    free(resolved);
    return st;
}

/* Every row and index against the rules of the tables; `sql` answers with nothing, or with "ok". */
static fkt_status check(struct fkt_ledger_rows *b, const char *sql)
{
    struct fkt_rows *r = NULL;
    int there = 0;
    fkt_status st;
    FKT_TRY(fkt_db_ask(&r, b->db, sql, ""));
    FKT_TRY(fkt_rows_next(r, &there));
    const char *said = there ? fkt_rows_text(r, 0) : "ok";
    if (!said || strcmp(said, "ok") != 0)
        st = fkt_fail_hint(FKT_E_FORMAT, FKT_LEDGER_DAMAGED, "the ledger '%s' is damaged: %s", b->path,
                           said ? said : "it is inconsistent");
out:
    fkt_rows_done(r);
    return st;
}

static fkt_status open_once(struct fkt_ledger_rows *b, const char *path, int how)
{
    int absent;
    fkt_status st;
    *b = (struct fkt_ledger_rows){0};
    FKT_TRY(real_path(&b->path, path));
    absent = (how & FKT_LEDGER_ROWS_EMPTY) && access(b->path, F_OK) != 0 && errno == ENOENT;
    FKT_TRY(fkt_db_open(&b->db, absent ? "" : b->path, &file_kind, how & FKT_LEDGER_ROWS_LOOK ? FKT_DB_COPY : 0));
    FKT_TRY(fkt_db_begin(b->db));
    FKT_TRY(check(b, "PRAGMA integrity_check(1)"));
    FKT_TRY(check(b, "SELECT \"table\" || ' names a row that is not there' FROM pragma_foreign_key_check"));
out:
    if (st != FKT_OK) fkt_ledger_rows_close(b);
    return st;
}

/* A concurrent writer can make an intact file look damaged for a moment (store/db.c). */
fkt_status fkt_ledger_rows_open(struct fkt_ledger_rows *b, const char *path, int how)
{
    fkt_status st;
    int tries = 0;
    do st = open_once(b, path, how);
    while (st == FKT_E_FORMAT && (how & FKT_LEDGER_ROWS_LOOK) && ++tries < LOOKS);
    return st;
}

fkt_status fkt_ledger_rows_commit(struct fkt_ledger_rows *b) { return fkt_db_commit(b->db); }

void fkt_ledger_rows_close(struct fkt_ledger_rows *b)
{
    fkt_db_rollback(b->db);
    fkt_db_close(b->db);
    fkt_free(b->path);
    *b = (struct fkt_ledger_rows){0};
}

static void copy_hex(char out[FKT_SHA256_HEX], const char *s) { snprintf(out, FKT_SHA256_HEX, "%s", s ? s : ""); }

static fkt_status read_entries(struct fkt_ledger_rows *b, int64_t account, struct fkt_ledger_account *a)
{
    struct fkt_rows *r = NULL;
    int64_t n = 0;
    int there = 0;
    fkt_status st;
    FKT_TRY(fkt_db_ask(&r, b->db, "SELECT count(*) FROM entries WHERE account = ?", "i", account));
    FKT_TRY(fkt_rows_next(r, &there));
    n = fkt_rows_int(r, 0);
    fkt_rows_done(r);
    r = NULL;
    FKT_TRY(fkt_alloc(&a->entries, (size_t)n));
    FKT_TRY(fkt_db_ask(&r, b->db,
                       "SELECT task, session, mu2, accounting, state, insecure_seed, at, "
                       "coalesce(delta, 0.0), coalesce(name, '') FROM entries "
                       "WHERE account = ? ORDER BY id",
                       "i", account));
    for (; a->n < (size_t)n; a->n++) {
        struct fkt_ledger_entry *e = &a->entries[a->n];
        FKT_TRY(fkt_rows_next(r, &there));
        const int kind = fkt_accounting_parse(fkt_rows_text(r, 3));
        const char *state = fkt_rows_text(r, 4);
        if (!there || kind < 0 || !state) {
            st = fkt_ledger_damaged(b->path, "an entry whose accounting or state is invalid");
            goto out;
        }
        copy_hex(e->task_sha256, fkt_rows_text(r, 0));
        copy_hex(e->session, fkt_rows_text(r, 1));
        e->mu2 = fkt_rows_real(r, 2);
        e->accounting = (enum fkt_accounting)kind;
        e->reserved = !strcmp(state, "reserved");
        e->insecure_seed = (int)fkt_rows_int(r, 5);
        e->when = fkt_rows_int(r, 6);
        e->delta = fkt_rows_real(r, 7);
        const char *name = fkt_rows_text(r, 8);
        snprintf(e->task_name, sizeof e->task_name, "%s", name ? name : "");
    }
out:
    fkt_rows_done(r);
    return st;
}

fkt_status fkt_ledger_rows_account(struct fkt_ledger_rows *b, const char *dataset, struct fkt_ledger_account *a,
                                   int64_t *id)
{
    struct fkt_rows *r = NULL;
    int there = 0;
    fkt_status st;
    *id = 0;
    *a = (struct fkt_ledger_account){0};
    snprintf(a->dataset, sizeof a->dataset, "%s", dataset);
    FKT_TRY(fkt_db_ask(&r, b->db,
                       "SELECT id, adjacency, budget_mu2, coalesce(budget_epsilon, 0.0), coalesce(budget_delta, 0.0), "
                       "(SELECT count(*) FROM records WHERE account = accounts.id) FROM accounts WHERE dataset = ?",
                       "t", dataset));
    FKT_TRY(fkt_rows_next(r, &there));
    if (!there) goto out;
    const char *adjacency = fkt_rows_text(r, 1);
    const int kind = adjacency ? fkt_adjacency_parse(adjacency) : -1;
    if (kind < 0) st = fkt_ledger_damaged(b->path, "an account without adjacency");
    FKT_TRY(st);
    *id = fkt_rows_int(r, 0);
    a->adjacency = (enum fkt_adjacency)kind;
    a->budget_mu2 = fkt_rows_real(r, 2);
    a->budget_epsilon = fkt_rows_real(r, 3);
    a->budget_delta = fkt_rows_real(r, 4);
    a->records = (uint64_t)fkt_rows_int(r, 5);
    FKT_TRY(read_entries(b, *id, a));
out:
    fkt_rows_done(r);
    return st;
}

void fkt_account_clear(struct fkt_ledger_account *a)
{
    fkt_free(a->entries);
    a->entries = NULL;
    a->n = 0;
}

fkt_status fkt_ledger_rows_put_account(struct fkt_ledger_rows *b, const struct fkt_ledger_account *a, int64_t *id)
{
    fkt_status st;
    if (*id) {
        FKT_TRY(fkt_db_do(b->db, "UPDATE accounts SET budget_mu2 = ? WHERE id = ?", "di", a->budget_mu2, *id));
    } else {
        FKT_TRY(fkt_db_do(b->db, "INSERT INTO accounts(dataset, adjacency, budget_mu2) VALUES(?, ?, ?)", "ttd",
                          a->dataset, fkt_adjacency_name(a->adjacency), a->budget_mu2));
        FKT_TRY(fkt_ledger_rows_count(b, id, "SELECT id FROM accounts WHERE dataset = ?", a->dataset, NULL));
    }
    if (a->budget_epsilon > 0)
        FKT_TRY(fkt_db_do(b->db, "UPDATE accounts SET budget_epsilon = ?, budget_delta = ? WHERE id = ?", "ddi",
                          a->budget_epsilon, a->budget_delta, *id));
out:
    return st;
}

fkt_status fkt_ledger_rows_put_entry(struct fkt_ledger_rows *b, int64_t account, const struct fkt_ledger_entry *e)
{
    return fkt_db_do(
        b->db,
        "INSERT INTO entries(account, task, mu2, accounting, state, session, insecure_seed, at, delta, name) "
        "VALUES(?, ?, ?, ?, ?, ?, ?, ?, nullif(?, 0.0), ?)",
        "itdtttiidt", account, e->task_sha256, e->mu2, fkt_accounting_name(e->accounting),
        e->reserved ? "reserved" : "spent", *e->session ? e->session : NULL, (int64_t)(e->insecure_seed != 0), e->when,
        e->delta, *e->task_name ? e->task_name : NULL);
}

fkt_status fkt_ledger_rows_put_session(struct fkt_ledger_rows *b, const char *session, const char *task)
{
    int64_t same = 0;
    fkt_status st;
    FKT_TRY(fkt_db_do(b->db, "INSERT OR IGNORE INTO sessions VALUES(?, ?)", "tt", session, task));
    FKT_TRY(
        fkt_ledger_rows_count(b, &same, "SELECT count(*) FROM sessions WHERE session = ? AND task = ?", session, task));
    if (!same) st = fkt_ledger_damaged(b->path, "a session that belongs to two tasks");
out:
    return st;
}

/* The digests of a blob, ?1 of ?2 of them, as rows. */
#define PIECES                                                                                                         \
    "WITH RECURSIVE i(k) AS (SELECT 0 WHERE ?2 > 0 UNION ALL SELECT k + 1 FROM i WHERE k + 1 < ?2), "                  \
    "piece(digest) AS (SELECT substr(?1, 16 * k + 1, 16) FROM i) "

fkt_status fkt_ledger_rows_put_records(struct fkt_ledger_rows *b, int64_t account,
                                       const struct fkt_record_digest *records, size_t n)
{
    return fkt_db_do(b->db, PIECES "INSERT OR IGNORE INTO records SELECT digest, ?3 FROM piece WHERE true", "bii",
                     records, n * sizeof *records, (int64_t)n, account);
}

fkt_status fkt_ledger_rows_owner(struct fkt_ledger_rows *b, int64_t except, const struct fkt_record_digest *records,
                                 size_t n, struct fkt_ledger_rows_owner *out)
{
    struct fkt_rows *r = NULL;
    int there = 0;
    fkt_status st;
    *out = (struct fkt_ledger_rows_owner){0};
    FKT_TRY(fkt_db_ask(&r, b->db,
                       PIECES "SELECT dataset, count(*) FROM piece JOIN records USING(digest) JOIN accounts ON "
                              "accounts.id = account WHERE account <> ?3 GROUP BY account ORDER BY 2 DESC, 1",
                       "bii", records, n * sizeof *records, (int64_t)n, except));
    for (;; out->datasets++) {
        FKT_TRY(fkt_rows_next(r, &there));
        if (!there) break;
        if (out->datasets) continue;
        const char *name = fkt_rows_text(r, 0);
        snprintf(out->dataset, sizeof out->dataset, "%s", name ? name : "");
        out->records = fkt_rows_int(r, 1);
    }
out:
    fkt_rows_done(r);
    return st;
}

fkt_status fkt_ledger_rows_count(struct fkt_ledger_rows *b, int64_t *out, const char *sql, const char *one,
                                 const char *two)
{
    struct fkt_rows *r = NULL;
    int there = 0;
    fkt_status st;
    *out = 0;
    FKT_TRY(two ? fkt_db_ask(&r, b->db, sql, "tt", one, two) : fkt_db_ask(&r, b->db, sql, "t", one));
    FKT_TRY(fkt_rows_next(r, &there));
    if (there) *out = fkt_rows_int(r, 0);
out:
    fkt_rows_done(r);
    return st;
}
