/* SPDX-License-Identifier: Apache-2.0 */
/* An SQLite file through store/db.h: data is read back exactly, the file is private, and an unexpected file is refused
 * with a sentence. */
#include "store/db.h"

#include "base/file.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <float.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCHEMA "CREATE TABLE t(a INTEGER PRIMARY KEY, b REAL, c TEXT, d BLOB) STRICT;"
#define APP 0x464b5401
static struct scratch tmp;

static struct fkt_db *opened(const char *path, int flags)
{
    struct fkt_db *db = NULL;
    CHECK_OK(fkt_db_open(&db, path, &(struct fkt_db_kind){SCHEMA, APP, 3, "what the caller says", "who it is", NULL},
                         flags));
    return db;
}

static int64_t count(struct fkt_db *db)
{
    struct fkt_rows *r = NULL;
    int there;
    int64_t n;
    CHECK_OK(fkt_db_ask(&r, db, "SELECT count(*) FROM t", ""));
    CHECK_OK(fkt_rows_next(r, &there));
    CHECK(there);
    n = fkt_rows_int(r, 0);
    fkt_rows_done(r);
    return n;
}

static void refused(const char *path, int flags, fkt_status want, const char *sentence)
{
    struct fkt_db *db = NULL;
    CHECK_STATUS(
        fkt_db_open(&db, path, &(struct fkt_db_kind){SCHEMA, APP, 3, "what the caller says", "who it is", NULL}, flags),
        want);
    CHECK(!db);
    if (!strstr(fkt_error_text(), sentence)) fail_msg("'%s' lacks '%s'", fkt_error_text(), sentence);
}

static void what_goes_in_comes_out(void **state)
{
    static const double reals[] = {0.1, -0.0, DBL_MIN, DBL_TRUE_MIN, DBL_MAX, 3, 0x1.fffffffffffffp-1};
    const uint8_t bytes[] = {0, 255, 0, 7};
    struct fkt_rows *r = NULL;
    size_t len = 99;
    int there = 0;
    (void)state;
    for (int memory = 0; memory < 2; memory++) {
        const char *path = memory ? "" : scratch_path(&tmp, "values");
        struct fkt_db *db = opened(path, 0);
        for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
            CHECK_OK(fkt_db_do(db, "INSERT INTO t VALUES(?, ?, ?, ?)", "idtb", (int64_t)(INT64_MIN + (int64_t)i),
                               reals[i], "wort", bytes, sizeof bytes));
        CHECK_OK(fkt_db_do(db, "INSERT INTO t VALUES(?, ?, ?, ?)", "idtb", INT64_MAX, (double)NAN, (const char *)NULL,
                           NULL, (size_t)0));
        if (!memory) {
            fkt_db_close(db);
            db = opened(path, FKT_DB_READ);
        }
        CHECK_OK(fkt_db_ask(&r, db, "SELECT a, b, c, d FROM t ORDER BY a", ""));
        for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
            CHECK_OK(fkt_rows_next(r, &there));
            CHECK(there && fkt_rows_int(r, 0) == INT64_MIN + (int64_t)i);
            double got = fkt_rows_real(r, 1);
            CHECK(!memcmp(&got, &reals[i], sizeof got) || (got == 0 && reals[i] == 0));
            assert_string_equal(fkt_rows_text(r, 2), "wort");
            const uint8_t *b = fkt_rows_bytes(r, 3, &len);
            CHECK(b && len == sizeof bytes && !memcmp(b, bytes, len));
            CHECK(!fkt_rows_text(r, 3) && !fkt_rows_bytes(r, 2, &len) && len == 0 && isnan(fkt_rows_real(r, 2)));
        }
        CHECK_OK(fkt_rows_next(r, &there));
        CHECK(there && fkt_rows_int(r, 0) == INT64_MAX && isnan(fkt_rows_real(r, 1)) && !fkt_rows_text(r, 2));
        CHECK(fkt_rows_bytes(r, 3, &len) && len == 0); /* empty, yet bytes */
        CHECK_OK(fkt_rows_next(r, &there));
        CHECK(!there);
        fkt_rows_done(r);
        fkt_db_close(db);
    }
}

static void a_change_is_whole_or_absent(void **state)
{
    const char *path = scratch_path(&tmp, "changes");
    struct fkt_db *db = opened(path, 0), *other = opened(path, 0);
    (void)state;
    CHECK_OK(fkt_db_begin(db));
    CHECK_STATUS(fkt_db_begin(db), FKT_E_STATE);
    CHECK_OK(fkt_db_run(db, "INSERT INTO t(a) VALUES(1); INSERT INTO t(a) VALUES(2)"));
    CHECK(count(other) == 0);
    fkt_db_rollback(db);
    fkt_db_rollback(db);
    CHECK(count(db) == 0);
    CHECK_STATUS(fkt_db_commit(db), FKT_E_STATE);
    CHECK_OK(fkt_db_begin(db));
    CHECK_OK(fkt_db_do(db, "INSERT INTO t(a) VALUES(1)", ""));
    CHECK_STATUS(fkt_db_scrub(db), FKT_E_STATE);
    CHECK_OK(fkt_db_commit(db));
    CHECK(count(other) == 1);
    CHECK_STATUS(fkt_db_do(db, "INSERT INTO t(a) VALUES(1)", ""), FKT_E_STATE); /* twice */
    fkt_db_close(other);
    fkt_db_close(db);
    fkt_db_close(NULL);
    fkt_db_rollback(NULL);
}

static void statements_that_are_none(void **state)
{
    struct fkt_db *db = opened("", 0);
    struct fkt_rows *r = NULL;
    (void)state;
    CHECK_STATUS(fkt_db_do(db, "INSERT INTO t(a) VALUES(?)", ""), FKT_E_ARG);
    CHECK_STATUS(fkt_db_do(db, "INSERT INTO t(a) VALUES(1)", "i", (int64_t)1), FKT_E_ARG);
    CHECK_STATUS(fkt_db_do(db, "INSERT INTO t(a) VALUES(1); DELETE FROM t", ""), FKT_E_ARG);
    CHECK_STATUS(fkt_db_do(db, "", ""), FKT_E_ARG);
    CHECK_STATUS(fkt_db_do(db, "INSERT INTO nothing VALUES(1)", ""), FKT_E_ARG);
    CHECK_STATUS(fkt_db_do(db, "INSERT INTO t(a) VALUES(?)", "x", 1), FKT_E_ARG);
    CHECK_STATUS(fkt_db_ask(&r, db, "SELECT \"a string\" FROM t", ""), FKT_E_ARG); /* no such column, not a word */
    CHECK(!r && count(db) == 0);
    fkt_db_close(db);
}

static unsigned mode_of(const char *path)
{
    struct stat sb;
    CHECK(stat(path, &sb) == 0);
    return sb.st_mode & 0777;
}

static void it_is_its_owners_alone(void **state)
{
    static const mode_t masks[] = {0, 022, 0777};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "mode%zu", i);
        const char *path = scratch_path(&tmp, name);
        char wal[600], shm[600];
        snprintf(wal, sizeof wal, "%s-wal", path);
        snprintf(shm, sizeof shm, "%s-shm", path);
        const mode_t old = umask(masks[i]);
        struct fkt_db *db = opened(path, 0);
        CHECK_OK(fkt_db_do(db, "INSERT INTO t(a) VALUES(1)", ""));
        umask(old);
        CHECK(mode_of(path) == 0600 && mode_of(wal) == 0600 && mode_of(shm) == 0600);
        fkt_db_close(db);
        CHECK(access(wal, F_OK) != 0); /* a clean end leaves one file */
        CHECK(chmod(path, 0644) == 0);
        fkt_db_close(opened(path, FKT_DB_READ));
        CHECK(mode_of(path) == 0644); /* a reader changes nothing */
        fkt_db_close(opened(path, 0));
        CHECK(mode_of(path) == 0600);
    }
}

static void one_name_and_no_links(void **state)
{
    char link_to[600], hard[600], nowhere[600];
    const char *path = scratch_path(&tmp, "own");
    (void)state;
    snprintf(link_to, sizeof link_to, "%s", scratch_path(&tmp, "link"));
    snprintf(nowhere, sizeof nowhere, "%s", scratch_path(&tmp, "dangling"));
    snprintf(hard, sizeof hard, "%s", scratch_path(&tmp, "hard"));
    fkt_db_close(opened(path, 0));
    CHECK(symlink(path, link_to) == 0 && symlink("/nowhere/at/all", nowhere) == 0);
    refused(link_to, 0, FKT_E_IO, "is a link");
    refused(link_to, FKT_DB_READ, FKT_E_IO, "is a link");
    refused(nowhere, 0, FKT_E_IO, "is a link");
    refused(tmp.dir, 0, FKT_E_IO, "not a regular file");
    CHECK(link(path, hard) == 0);
    refused(path, 0, FKT_E_IO, "second name");
    CHECK(unlink(hard) == 0);
    fkt_db_close(opened(path, 0));
    refused(scratch_path(&tmp, "no/such/folder"), 0, FKT_E_IO, "No such file");
    refused(scratch_path(&tmp, "folder/"), 0, FKT_E_ARG, "not a file name");
    refused(scratch_path(&tmp, "absent"), FKT_DB_READ, FKT_E_IO, "No such file");
    CHECK(access(scratch_path(&tmp, "absent"), F_OK) != 0);
}

static void application_and_format_version(void **state)
{
    const char *path = scratch_path(&tmp, "marks");
    struct fkt_db *db = opened(path, 0);
    (void)state;
    fkt_db_close(db);
    CHECK_STATUS(fkt_db_open(&db, path, &(struct fkt_db_kind){SCHEMA, APP + 1, 3, NULL, NULL, NULL}, 0), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "another kind"));
    CHECK_STATUS(fkt_db_open(&db, path, &(struct fkt_db_kind){SCHEMA, APP, 2, NULL, NULL, NULL}, 0), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "later version: format 3, this fedkt supports 2"));
    CHECK_STATUS(fkt_db_open(&db, path, &(struct fkt_db_kind){SCHEMA, APP, 4, NULL, NULL, NULL}, 0), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "old format 3") && !strcmp(fkt_error_hint(), "use the fedkt that wrote it"));
    CHECK_STATUS(fkt_db_open(&db, path, &(struct fkt_db_kind){SCHEMA, APP, 4, NULL, NULL, "open a new one"}, 0),
                 FKT_E_FORMAT);
    CHECK(!strcmp(fkt_error_hint(), "open a new one"));
    CHECK_STATUS(
        fkt_db_open(&db, path, &(struct fkt_db_kind){SCHEMA "CREATE TABLE u(a);", APP, 3, NULL, NULL, NULL}, 0),
        FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "unexpected schema"));
    db = opened(path, 0);
    CHECK_OK(fkt_db_run(db, "CREATE TRIGGER x AFTER INSERT ON t BEGIN DELETE FROM t; END"));
    fkt_db_close(db);
    refused(path, 0, FKT_E_FORMAT, "unexpected schema");
    refused(path, FKT_DB_READ, FKT_E_FORMAT, "unexpected schema");
}

static void damage_is_refused_not_replaced(void **state)
{
    const char *path = scratch_path(&tmp, "damaged"), *wal = scratch_path(&tmp, "gone-wal");
    struct fkt_db *db;
    uint8_t *bytes = NULL;
    size_t len;
    (void)state;
    CHECK_OK(fkt_file_write(path, "", 0, 0));
    refused(path, 0, FKT_E_FORMAT, "is empty");
    CHECK_OK(fkt_file_write(path, "{\"schema\": \"fedkt.ledger/2\"}", 28, FKT_FILE_REPLACE));
    refused(path, 0, FKT_E_FORMAT, "not a database");
    CHECK(unlink(path) == 0);
    db = opened(path, 0);
    for (int64_t i = 0; i < 2000; i++) CHECK_OK(fkt_db_do(db, "INSERT INTO t(a, c) VALUES(?, ?)", "it", i, "row"));
    fkt_db_close(db);
    CHECK_OK(fkt_file_read(&bytes, &len, path, 1 << 24));
    CHECK_OK(fkt_file_write(path, bytes, len / 2, FKT_FILE_REPLACE));
    CHECK_STATUS(
        fkt_db_open(&db, path, &(struct fkt_db_kind){SCHEMA, APP, 3, "what the caller says", "who it is", NULL}, 0),
        FKT_E_FORMAT);
    memset(bytes + 4096, 0xa5, len - 4096);
    CHECK_OK(fkt_file_write(path, bytes, len, FKT_FILE_REPLACE));
    db = opened(path, 0);
    CHECK_STATUS(fkt_db_do(db, "INSERT INTO t(a) VALUES(5000)", ""), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "is damaged") && !strcmp(fkt_error_hint(), "what the caller says"));
    fkt_db_close(db);
    fkt_free(bytes);
    CHECK_OK(fkt_file_write(wal, "a log without its file", 22, 0));
    refused(scratch_path(&tmp, "gone"), 0, FKT_E_FORMAT, "but its log");
}

static void one_at_a_time(void **state)
{
    const char *path = scratch_path(&tmp, "exclusive");
    struct fkt_db *db = opened(path, FKT_DB_EXCLUSIVE);
    int status;
    (void)state;
    refused(path, FKT_DB_EXCLUSIVE, FKT_E_STATE, "is in use by another process");
    CHECK(!strcmp(fkt_error_hint(), "who it is"));
    const pid_t child = fork();
    if (child == 0) {
        struct fkt_db *mine = NULL;
        fkt_status st =
            fkt_db_open(&mine, path, &(struct fkt_db_kind){SCHEMA, APP, 3, "what the caller says", "who it is", NULL},
                        FKT_DB_EXCLUSIVE);
        _exit(st == FKT_E_STATE && !mine && strstr(fkt_error_text(), "is in use by another process") ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_OK(fkt_db_do(db, "INSERT INTO t(a) VALUES(1)", ""));
    fkt_db_close(db);
    db = opened(path, 0);
    CHECK(count(db) == 1);
    refused(path, FKT_DB_EXCLUSIVE, FKT_E_STATE,
            "is in use by another process"); /* nor while another process has it open */
    fkt_db_close(db);
    db = opened(path, FKT_DB_EXCLUSIVE);
    CHECK(count(db) == 1);
    fkt_db_close(db);
}

static void who_reads_cannot_write(void **state)
{
    const char *path = scratch_path(&tmp, "read");
    struct fkt_db *db = opened(path, 0);
    (void)state;
    fkt_db_close(db);
    db = opened(path, FKT_DB_READ);
    CHECK_STATUS(fkt_db_do(db, "INSERT INTO t(a) VALUES(1)", ""), FKT_E_IO);
    CHECK(count(db) == 0);
    fkt_db_close(db);
}

static void no_space(void **state)
{
    const char *path = scratch_path(&tmp, "full");
    struct fkt_db *db = opened(path, 0);
    uint8_t big[20000] = {1};
    int status;
    (void)state;
    CHECK_OK(fkt_db_do(db, "INSERT INTO t(a) VALUES(1)", ""));
    CHECK_OK(fkt_db_run(db, "PRAGMA max_page_count=3"));
    CHECK_STATUS(fkt_db_do(db, "INSERT INTO t(a, d) VALUES(2, ?)", "b", big, sizeof big), FKT_E_IO);
    CHECK(strstr(fkt_error_text(), "no space left") && strstr(fkt_error_hint(), "free some space"));
    CHECK_OK(fkt_db_run(db, "PRAGMA max_page_count=1000000"));
    CHECK(count(db) == 1);
    fkt_db_close(db);
    const pid_t child = fork();
    if (child == 0) { /* the kernel stops the log from growing */
        const struct rlimit r = {16384, 16384};
        struct fkt_db *mine = NULL;
        signal(SIGXFSZ, SIG_IGN);
        if (fkt_db_open(&mine, path, &(struct fkt_db_kind){SCHEMA, APP, 3, "what the caller says", "who it is", NULL},
                        0) != FKT_OK ||
            setrlimit(RLIMIT_FSIZE, &r) != 0)
            _exit(1);
        fkt_status st = fkt_db_do(mine, "INSERT INTO t(a, d) VALUES(2, ?)", "b", big, sizeof big);
        _exit(st == FKT_E_IO && strstr(fkt_error_text(), "cannot write") ? 0 : 2);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    db = opened(path, 0);
    CHECK(count(db) == 1);
    fkt_db_close(db);
}

static int setup(void **state)
{
    (void)state;
    scratch_init(&tmp);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_release(&tmp);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_in_comes_out),         cmocka_unit_test(a_change_is_whole_or_absent),
        cmocka_unit_test(statements_that_are_none),       cmocka_unit_test(it_is_its_owners_alone),
        cmocka_unit_test(one_name_and_no_links),          cmocka_unit_test(application_and_format_version),
        cmocka_unit_test(damage_is_refused_not_replaced), cmocka_unit_test(one_at_a_time),
        cmocka_unit_test(who_reads_cannot_write),         cmocka_unit_test(no_space),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
