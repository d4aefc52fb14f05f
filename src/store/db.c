/* SPDX-License-Identifier: Apache-2.0 */
/* db.c - an SQLite file opened with fixed rules: private, synced, checked.
 *
 *   make    a new file gets its tables, its marks (application_id, user_version) and WAL mode under a temporary name,
 *           and is then renamed. So it is complete or absent, and an empty file is damage, never "new". If two
 *           processes make it at the same time, one file results; on a file system without atomic link, perhaps none
 *   name    the folder is synced before a file is used for writing: acknowledged data must not vanish with its name
 *   open    lstat first: a link would be a second name, and SQLite's log and locks depend on the name
 *   check   the application (application_id), the format version (user_version), and that the schema is exactly the
 *           expected one: no foreign trigger or view may run, and no constraint may be missing
 *   write   BEGIN IMMEDIATE .. COMMIT; in WAL mode with synchronous=FULL a commit syncs the log before it returns, so
 *           that kill -9 or a power failure loses nothing that was acknowledged
 *
 * Two processes may share a file: a writer waits WAIT_MS for the other, and then fails with FKT_E_IO. FKT_DB_EXCLUSIVE
 * is SQLite's exclusive locking mode, held until the process ends; others do not wait for it. Both are POSIX locks,
 * which a process loses when it closes ANY descriptor of the file: while a file is open here, the same process must not
 * open and close it by other means.
 *
 * FKT_DB_COPY changes nothing, neither the file nor its log and index. SQLite creates a log and an index even for
 * readers of a file in WAL mode, so a file without a log is opened as immutable; if another process begins to write at
 * that moment, the file may look damaged, and a second try succeeds. An existing log is read with its index, in which
 * SQLite records its readers. All checks are made on the copy: integrity_check skips CHECK constraints in a file that
 * cannot be written.
 *
 * Deleting a secret: secure_delete zeroes freed cells and pages, but a page that was split or rebalanced before keeps
 * older copies of cells in its gap (tests/unit/store/test_scrub.c shows it), and the log holds whole pages. So
 * fkt_db_scrub also runs VACUUM, which writes live rows alone, and truncates the log. The copy that VACUUM makes stays
 * in memory (temp_store) and is as large as the file. Row numbers survive it only where they are an INTEGER PRIMARY
 * KEY. Copies that a disk keeps beneath the file system are out of reach.
 *
 * SQLite's own memory is not counted by base/alloc.h; running out of it is still FKT_E_NOMEM. Statements are prepared
 * for each use: about 10 us, beside the milliseconds of a sync. */
#include "store/db.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/private.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define WAIT_MS 10000

struct fkt_db {
    sqlite3 *h;
    char *path; /* as the caller named it, for error messages */
    struct fkt_db_kind kind;
    int shared; /* others may write too, so a busy file is a temporary error */
};

struct fkt_rows {
    sqlite3_stmt *s;
    const struct fkt_db *db;
};

/* The file itself is bad: the cause, then the caller's advice for this kind of file. */
__attribute__((format(printf, 2, 3))) static fkt_status damaged(const struct fkt_db *db, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fkt_status st = fkt_fail(FKT_E_FORMAT, "%s", text);
    return db->kind.damaged ? fkt_hint(st, db->kind.damaged) : st;
}

static fkt_status busy(const struct fkt_db *db)
{
    if (db->shared)
        return fkt_fail_hint(FKT_E_IO,
                             db->kind.busy ? db->kind.busy : "wait until the other process has finished, and try again",
                             "'%s' is busy: another process uses it", db->path);
    return fkt_fail_hint(FKT_E_STATE,
                         db->kind.busy ? db->kind.busy : "wait until the other process has finished, or stop it",
                         "'%s' is in use by another process", db->path);
}

/* The error for a result code of SQLite; `verb` as in "cannot write 'x'". */
static fkt_status fail(const struct fkt_db *db, int rc, const char *verb)
{
    const int os = db->h ? sqlite3_system_errno(db->h) : 0;
    const char *why = db->h ? sqlite3_errmsg(db->h) : sqlite3_errstr(rc);
    switch (rc & 0xff) {
    case SQLITE_NOMEM: return fkt_fail(FKT_E_NOMEM, "out of memory: cannot %s '%s'", verb, db->path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return busy(db);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return damaged(db, "'%s' is damaged, or is not a database", db->path);
    case SQLITE_CONSTRAINT: return fkt_fail(FKT_E_STATE, "cannot %s '%s': %s", verb, db->path, why);
    case SQLITE_FULL:
        return fkt_fail_hint(FKT_E_IO, "free some space; nothing that was written before is lost",
                             "cannot %s '%s': no space left", verb, db->path);
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
        errno = os;
        return os ? fkt_io_fail(verb, db->path) : fkt_fail(FKT_E_IO, "cannot %s '%s': %s", verb, db->path, why);
    default: return fkt_fail(FKT_E_ARG, "cannot %s '%s': %s", verb, db->path, why);
    }
}

static fkt_status run(struct fkt_db *db, const char *sql, const char *verb)
{
    const int rc = sqlite3_exec(db->h, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? FKT_OK : fail(db, rc, verb);
}

/* ---- the file -------------------------------------------------------------------------------------------------- */

/* The real path of the folder plus the file's own name: SQLite then refuses any remaining link. Allocates *out. */
static fkt_status real_name(char **out, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *folder = NULL, *real = NULL;
    fkt_status st;
    if (!*name) return fkt_fail(FKT_E_ARG, "'%s' is not a file name", path);
    FKT_TRY(fkt_strdup(&folder, slash ? path : "."));
    if (slash) folder[slash == path ? 1 : slash - path] = '\0';
    real = realpath(folder, NULL);
    if (real) st = fkt_path_join(out, real, name);
    else st = fkt_io_fail("open", path);
out:
    free(real);
    fkt_free(folder);
    return st;
}

/* A log without its file: SQLite would apply it to a file made later under that name. */
static fkt_status check_no_log(const struct fkt_db *db, const char *real)
{
    static const char *const logs[] = {"-wal", "-journal"};
    struct stat sb;
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < 2 && st == FKT_OK; i++) {
        const size_t n = strlen(real) + 16;
        char *log = NULL;
        st = fkt_alloc(&log, n);
        if (st != FKT_OK) break;
        snprintf(log, n, "%s%s", real, logs[i]);
        if (lstat(log, &sb) == 0 && sb.st_size > 0 && lstat(real, &sb) != 0)
            st = damaged(db, "'%s' is missing, but its log '%s%s' exists", db->path, db->path, logs[i]);
        fkt_free(log);
    }
    return st;
}

/* Made completely under a temporary name, then renamed. If another process was faster, its file is used. */
static fkt_status make(const char *real, const char *path, const struct fkt_db_kind *kind)
{
    struct fkt_db db = {.path = (char *)(uintptr_t)path, .kind = *kind};
    struct fkt_file f = {0};
    char marks[96];
    fkt_status st;
    int rc;
    FKT_TRY(check_no_log(&db, real));
    FKT_TRY(fkt_file_begin(&f, real, FKT_FILE_PRIVATE | FKT_FILE_FIRST));
    if (fchmod(fileno(f.stream), 0600) != 0) st = fkt_io_fail("write", path);
    FKT_TRY(st);
    rc = sqlite3_open_v2(f.tmp, &db.h, SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX | SQLITE_OPEN_NOFOLLOW, NULL);
    if (rc != SQLITE_OK) st = fail(&db, rc, "make");
    FKT_TRY(st);
    snprintf(marks, sizeof marks, "PRAGMA application_id=%d; PRAGMA user_version=%d;", (int)kind->app,
             (int)kind->version);
    FKT_TRY(run(&db, "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=FULL; BEGIN;", "make"));
    FKT_TRY(run(&db, kind->schema, "make"));
    FKT_TRY(run(&db, marks, "make"));
    FKT_TRY(run(&db, "COMMIT; PRAGMA journal_mode=WAL;", "make"));
    sqlite3_close(db.h);
    db.h = NULL;
    FKT_TRY(fkt_file_commit(&f));
out:
    if (db.h) sqlite3_close(db.h);
    fkt_file_clear(&f);
    return st == FKT_E_EXISTS ? FKT_OK : st;
}

/* A regular file with one name, owned by this user, that no other user may change, or read from now on. SQLite gives
 * its log the mode of the file. A reader needs only the permission to read. */
static fkt_status check_file(const char *real, const char *path, int flags)
{
    const int reads = flags & (FKT_DB_READ | FKT_DB_COPY);
    struct stat sb, ours;
    fkt_status st;
    if (lstat(real, &sb) != 0) return fkt_io_fail("open", path);
    if (!S_ISREG(sb.st_mode) || sb.st_nlink > 1)
        return fkt_fail_hint(FKT_E_IO, "use the file's own path: its log and its locks depend on the name",
                             "'%s' is a link, not a regular file, or has a second name", path);
    ours = sb;
    ours.st_mode &= ~(mode_t)055;
    st = reads ? FKT_OK : fkt_private_check(&ours, path, 0);
    if (st == FKT_OK && (sb.st_mode & 0777) != 0600 && !reads && chmod(real, 0600) != 0)
        st = fkt_io_fail("make private", path);
    return st;
}

/* ---- checks of an existing file -------------------------------------------------------------------------------- */

static fkt_status ask_number(struct fkt_db *db, const char *sql, uint32_t *out)
{
    struct fkt_rows *r = NULL;
    int there = 0;
    fkt_status st;
    FKT_TRY(fkt_db_ask(&r, db, sql, ""));
    FKT_TRY(fkt_rows_next(r, &there));
    *out = there ? (uint32_t)fkt_rows_int(r, 0) : 0;
out:
    fkt_rows_done(r);
    return st;
}

/* The whole schema of the file, in an order that VACUUM preserves. */
static fkt_status declared(struct fkt_db *db, struct fkt_text *t)
{
    struct fkt_rows *r = NULL;
    int there = 0;
    fkt_status st;
    FKT_TRY(fkt_db_ask(&r, db, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name", ""));
    for (;;) {
        FKT_TRY(fkt_rows_next(r, &there));
        if (!there) break;
        const char *sql = fkt_rows_text(r, 0);
        fkt_text_add(t, sql ? sql : "?");
        fkt_text_add(t, ";\n");
    }
    st = fkt_text_status(t);
out:
    fkt_rows_done(r);
    return st;
}

static fkt_status check_tables(struct fkt_db *db)
{
    struct fkt_db fresh = {.path = db->path, .kind = db->kind};
    struct fkt_text has, expected;
    fkt_status st = FKT_OK;
    fkt_text_init(&has);
    fkt_text_init(&expected);
    const int rc = sqlite3_open_v2(":memory:", &fresh.h, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    if (rc != SQLITE_OK) st = fail(&fresh, rc, "open");
    FKT_TRY(st);
    FKT_TRY(run(&fresh, db->kind.schema, "open"));
    FKT_TRY(declared(&fresh, &expected));
    FKT_TRY(declared(db, &has));
    if (strcmp(has.s, expected.s) != 0) st = damaged(db, "'%s' has an unexpected schema", db->path);
out:
    sqlite3_close(fresh.h);
    fkt_text_clear(&has);
    fkt_text_clear(&expected);
    return st;
}

static fkt_status check_marks(struct fkt_db *db)
{
    const uint32_t app = db->kind.app, version = db->kind.version;
    uint32_t got_app = 0, got_version = 0;
    fkt_status st;
    FKT_TRY(ask_number(db, "PRAGMA application_id", &got_app));
    FKT_TRY(ask_number(db, "PRAGMA user_version", &got_version));
    if (got_app != app) st = damaged(db, "'%s' is empty, or is a file of another kind", db->path);
    else if (got_version > version)
        st = fkt_fail_hint(FKT_E_FORMAT, "use a newer fedkt",
                           "'%s' was written by a later version: format %u, this fedkt supports %u", db->path,
                           got_version, version);
    else if (got_version < version)
        st = fkt_fail_hint(FKT_E_FORMAT, db->kind.old ? db->kind.old : "use the fedkt that wrote it",
                           "'%s' has the old format %u, this fedkt supports %u", db->path, got_version, version);
out:
    return st;
}

/* ---- open and close -------------------------------------------------------------------------------------------- */

static fkt_status configure(struct fkt_db *db, int flags)
{
    static const struct {
        int what, value;
    } config[] = {{SQLITE_DBCONFIG_DEFENSIVE, 1},
                  {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                  {SQLITE_DBCONFIG_ENABLE_FKEY, 1},
                  {SQLITE_DBCONFIG_DQS_DML, 0},
                  {SQLITE_DBCONFIG_DQS_DDL, 0}};
    fkt_status st = FKT_OK;
    sqlite3_extended_result_codes(db->h, 1);
    sqlite3_busy_timeout(db->h, flags & FKT_DB_EXCLUSIVE ? 0 : WAIT_MS);
    for (size_t i = 0; i < sizeof config / sizeof *config; i++) {
        const int rc = sqlite3_db_config(db->h, config[i].what, config[i].value, NULL);
        if (rc != SQLITE_OK) return fail(db, rc, "open");
    }
    if (flags & FKT_DB_EXCLUSIVE) FKT_TRY(run(db, "PRAGMA locking_mode=EXCLUSIVE", "open"));
    FKT_TRY(run(db, "PRAGMA synchronous=FULL; PRAGMA secure_delete=ON; PRAGMA temp_store=MEMORY;", "open"));
    FKT_TRY(run(db, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0;", "open"));
out:
    return st;
}

/* "file:" and the name, with every special character escaped. */
static fkt_status as_uri(char **out, const char *real, const char *options)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-";
    struct fkt_text t;
    fkt_status st;
    fkt_text_init(&t);
    fkt_text_add(&t, "file:");
    for (const char *c = real; *c; c++)
        if (strchr(plain, *c)) fkt_text_addf(&t, "%c", *c);
        else fkt_text_addf(&t, "%%%02x", (unsigned)(unsigned char)*c);
    fkt_text_add(&t, options);
    FKT_TRY(fkt_text_status(&t));
    FKT_TRY(fkt_strdup(out, t.s));
out:
    fkt_text_clear(&t);
    return st;
}

/* Copies the current file into a database in memory. */
static fkt_status copy_file(struct fkt_db *db, const char *real)
{
    const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_FULLMUTEX | SQLITE_OPEN_NOFOLLOW;
    struct fkt_db file = {.path = db->path, .kind = db->kind, .shared = db->shared};
    const size_t n = strlen(real) + 8;
    char *wal = NULL, *uri = NULL;
    sqlite3_backup *copy = NULL;
    struct stat sb;
    fkt_status st;
    int rc;
    FKT_TRY(fkt_alloc(&wal, n));
    snprintf(wal, n, "%s-wal", real);
    FKT_TRY(as_uri(&uri, real, lstat(wal, &sb) == 0 ? "?mode=ro" : "?mode=ro&immutable=1"));
    rc = sqlite3_open_v2(uri, &file.h, flags, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_busy_timeout(file.h, WAIT_MS);
    if (rc != SQLITE_OK) st = fail(&file, rc, "open");
    FKT_TRY(st);
    rc = sqlite3_open_v2(":memory:", &db->h, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, NULL);
    copy = rc == SQLITE_OK ? sqlite3_backup_init(db->h, "main", file.h, "main") : NULL;
    if (copy) rc = sqlite3_backup_step(copy, -1);
    if (!copy || rc != SQLITE_DONE) st = fail(copy ? &file : db, rc, "read");
out:
    sqlite3_backup_finish(copy);
    sqlite3_close(file.h);
    fkt_free(uri);
    fkt_free(wal);
    return st;
}

static fkt_status connect(struct fkt_db *db, const char *real)
{
    const int rc =
        sqlite3_open_v2(real, &db->h, SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX | SQLITE_OPEN_NOFOLLOW, NULL);
    return rc == SQLITE_OK ? FKT_OK : fail(db, rc, "open");
}

static fkt_status open_file(struct fkt_db *db, const char *path, int flags)
{
    const int writes = !(flags & (FKT_DB_READ | FKT_DB_COPY));
    char *real = NULL;
    struct stat sb;
    fkt_status st;
    db->shared = !(flags & (FKT_DB_EXCLUSIVE | FKT_DB_READ));
    FKT_TRY(real_name(&real, path));
    if (writes && lstat(real, &sb) != 0 && errno == ENOENT) FKT_TRY(make(real, path, &db->kind));
    FKT_TRY(check_file(real, path, flags));
    if (writes && fkt_sync_parent(real) != 0) st = fkt_io_fail("open", path);
    FKT_TRY(st);
    FKT_TRY(flags & FKT_DB_COPY ? copy_file(db, real) : connect(db, real));
    FKT_TRY(configure(db, flags));
    FKT_TRY(check_marks(db));
    FKT_TRY(check_tables(db));
    if (!(flags & FKT_DB_COPY)) FKT_TRY(run(db, "PRAGMA journal_mode=WAL", "open"));
    if (flags & FKT_DB_READ) FKT_TRY(run(db, "PRAGMA query_only=ON", "open"));
out:
    fkt_free(real);
    return st;
}

static fkt_status open_memory(struct fkt_db *db)
{
    fkt_status st = FKT_OK;
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
    const int rc = sqlite3_open_v2(":memory:", &db->h, flags, NULL);
    if (rc != SQLITE_OK) st = fail(db, rc, "open");
    FKT_TRY(st);
    FKT_TRY(configure(db, 0));
    FKT_TRY(run(db, db->kind.schema, "open"));
out:
    return st;
}

fkt_status fkt_db_open(struct fkt_db **out, const char *path, const struct fkt_db_kind *kind, int flags)
{
    struct fkt_db *db = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&db, 1));
    db->kind = *kind;
    FKT_TRY(fkt_strdup(&db->path, path));
    FKT_TRY(*path ? open_file(db, path, flags) : open_memory(db));
    *out = db;
    db = NULL;
out:
    fkt_db_close(db);
    return st;
}

void fkt_db_close(struct fkt_db *db)
{
    if (!db) return;
    sqlite3_close_v2(db->h);
    fkt_free(db->path);
    fkt_free(db);
}

/* ---- transactions ---------------------------------------------------------------------------------------------- */

fkt_status fkt_db_begin(struct fkt_db *db)
{
    if (!sqlite3_get_autocommit(db->h)) return fkt_fail(FKT_E_STATE, "a transaction on '%s' is already open", db->path);
    return run(db, "BEGIN IMMEDIATE", "write");
}

fkt_status fkt_db_commit(struct fkt_db *db)
{
    fkt_status st;
    if (sqlite3_get_autocommit(db->h)) return fkt_fail(FKT_E_STATE, "no transaction on '%s' is open", db->path);
    st = run(db, "COMMIT", "write");
    if (st != FKT_OK) fkt_db_rollback(db);
    return st;
}

void fkt_db_rollback(struct fkt_db *db)
{
    if (db && !sqlite3_get_autocommit(db->h)) (void)sqlite3_exec(db->h, "ROLLBACK", NULL, NULL, NULL);
}

fkt_status fkt_db_run(struct fkt_db *db, const char *sql) { return run(db, sql, "write"); }

fkt_status fkt_db_scrub(struct fkt_db *db)
{
    struct fkt_rows *r = NULL;
    int there = 0;
    fkt_status st;
    if (!sqlite3_get_autocommit(db->h)) return fkt_fail(FKT_E_STATE, "a transaction on '%s' is still open", db->path);
    FKT_TRY(run(db, "VACUUM", "write"));
    FKT_TRY(fkt_db_ask(&r, db, "PRAGMA wal_checkpoint(TRUNCATE)", ""));
    FKT_TRY(fkt_rows_next(r, &there));
    if (there && fkt_rows_int(r, 0) != 0) st = fail(db, SQLITE_BUSY, "write"); /* a reader still needs the log */
out:
    fkt_rows_done(r);
    return st;
}

/* ---- statements ------------------------------------------------------------------------------------------------ */

static int bind(sqlite3_stmt *s, int at, char kind, va_list *args)
{
    switch (kind) {
    case 'i': return sqlite3_bind_int64(s, at, va_arg(*args, int64_t));
    case 'd': return sqlite3_bind_double(s, at, va_arg(*args, double));
    case 't': return sqlite3_bind_text(s, at, va_arg(*args, const char *), -1, SQLITE_TRANSIENT);
    case 'b': {
        const void *p = va_arg(*args, const void *);
        const size_t n = va_arg(*args, size_t);
        return n ? sqlite3_bind_blob64(s, at, p, n, SQLITE_TRANSIENT) : sqlite3_bind_zeroblob(s, at, 0);
    }
    default: return SQLITE_MISUSE;
    }
}

static fkt_status prepare(sqlite3_stmt **out, struct fkt_db *db, const char *sql, const char *fmt, va_list *args)
{
    const char *rest = "";
    sqlite3_stmt *s = NULL;
    fkt_status st = FKT_OK;
    int rc = sqlite3_prepare_v2(db->h, sql, -1, &s, &rest);
    if (rc != SQLITE_OK) return fail(db, rc, "read or write");
    if (!s || rest[strspn(rest, " \t\n;")] || sqlite3_bind_parameter_count(s) != (int)strlen(fmt))
        st = fkt_fail(FKT_E_ARG, "expected one statement with %zu parameters: %.200s", strlen(fmt), sql);
    for (int i = 0; st == FKT_OK && fmt[i]; i++) {
        rc = bind(s, i + 1, fmt[i], args);
        if (rc != SQLITE_OK) st = fail(db, rc, "read or write");
    }
    if (st != FKT_OK) sqlite3_finalize(s);
    else *out = s;
    return st;
}

fkt_status fkt_db_do(struct fkt_db *db, const char *sql, const char *fmt, ...)
{
    sqlite3_stmt *s = NULL;
    va_list args;
    fkt_status st;
    int rc;
    va_start(args, fmt);
    st = prepare(&s, db, sql, fmt, &args);
    va_end(args);
    if (st != FKT_OK) return st;
    do rc = sqlite3_step(s);
    while (rc == SQLITE_ROW);
    if (rc != SQLITE_DONE) st = fail(db, rc, "write");
    sqlite3_finalize(s);
    return st;
}

fkt_status fkt_db_ask(struct fkt_rows **out, struct fkt_db *db, const char *sql, const char *fmt, ...)
{
    struct fkt_rows *r = NULL;
    va_list args;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&r, 1));
    r->db = db;
    va_start(args, fmt);
    st = prepare(&r->s, db, sql, fmt, &args);
    va_end(args);
    FKT_TRY(st);
    *out = r;
    r = NULL;
out:
    fkt_rows_done(r);
    return st;
}

fkt_status fkt_rows_next(struct fkt_rows *r, int *there)
{
    const int rc = sqlite3_step(r->s);
    *there = rc == SQLITE_ROW;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? FKT_OK : fail(r->db, rc, "read");
}

int64_t fkt_rows_int(struct fkt_rows *r, int column) { return sqlite3_column_int64(r->s, column); }

double fkt_rows_real(struct fkt_rows *r, int column)
{
    const int type = sqlite3_column_type(r->s, column);
    return type == SQLITE_FLOAT || type == SQLITE_INTEGER ? sqlite3_column_double(r->s, column) : (double)NAN;
}

const char *fkt_rows_text(struct fkt_rows *r, int column)
{
    const char *s;
    if (sqlite3_column_type(r->s, column) != SQLITE_TEXT) return NULL;
    s = (const char *)sqlite3_column_text(r->s, column);
    return s && strlen(s) == (size_t)sqlite3_column_bytes(r->s, column) ? s : NULL; /* a NUL inside: not text */
}

const uint8_t *fkt_rows_bytes(struct fkt_rows *r, int column, size_t *len)
{
    static const uint8_t nothing[1];
    const uint8_t *p;
    *len = 0;
    if (sqlite3_column_type(r->s, column) != SQLITE_BLOB) return NULL;
    p = sqlite3_column_blob(r->s, column);
    *len = (size_t)sqlite3_column_bytes(r->s, column);
    return *len ? p : nothing;
}

void fkt_rows_done(struct fkt_rows *r)
{
    if (!r) return;
    sqlite3_finalize(r->s);
    fkt_free(r);
}
