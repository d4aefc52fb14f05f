/* SPDX-License-Identifier: Apache-2.0 */
/* Deleted data is gone: the raw bytes of the file and of its log are searched for it. Acknowledged data is kept: a
 * writer is killed many times, and each row that was acknowledged to it is found. */
#include "store/db.h"

#include "base/file.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCHEMA "CREATE TABLE t(a INTEGER PRIMARY KEY, d BLOB NOT NULL) STRICT;"
#define APP 0x464b5402
static struct scratch tmp;
static const char secret[] = "THE-SECRET-OF-SITE-17-";

static struct fkt_db *opened(const char *path)
{
    struct fkt_db *db = NULL;
    CHECK_OK(fkt_db_open(&db, path, &(struct fkt_db_kind){SCHEMA, APP, 1, NULL, NULL, NULL}, 0));
    return db;
}

static size_t times_in(const char *path, const char *suffix)
{
    char name[600];
    uint8_t *bytes = NULL;
    size_t len = 0, n = 0;
    snprintf(name, sizeof name, "%s%s", path, suffix);
    if (access(name, F_OK) != 0) return 0;
    CHECK_OK(fkt_file_read(&bytes, &len, name, 1U << 28));
    for (const uint8_t *p = bytes; (p = memmem(p, len - (size_t)(p - bytes), secret, strlen(secret))); p++) n++;
    fkt_free(bytes);
    return n;
}

/* Looking at the raw bytes drops this process's POSIX locks on the file, which no other process needs here. */
static size_t traces(const char *path)
{
    return times_in(path, "") + times_in(path, "-wal") + times_in(path, "-shm") + times_in(path, "-journal");
}

/* Short rows in a scattered order, so that pages split and leave copies of moved cells in their gaps, and some long
 * ones on overflow pages; the secret is in every third. */
static void fill(struct fkt_db *db, int64_t from, int64_t to)
{
    static uint8_t row[9000];
    for (int64_t j = 0; j < to - from; j++) {
        const int64_t i = from + j * 389 % (to - from);
        const size_t n = 30 + (size_t)(i * 7919 % 300) + (i % 50 == 0 ? 5900 : 0);
        memset(row, (int)('a' + i % 26), n);
        if (i % 3 == 0)
            for (size_t at = 0; at + sizeof secret < n; at += 25) memcpy(row + at, secret, strlen(secret));
        CHECK_OK(fkt_db_do(db, "INSERT INTO t VALUES(?, ?)", "ib", i, row, n));
    }
}

static void nothing_is_left_after_a_scrub(void **state)
{
    const char *path = scratch_path(&tmp, "secrets");
    struct fkt_db *db = opened(path);
    struct fkt_rows *r = NULL;
    int there;
    (void)state;
    for (int64_t round = 0; round < 3; round++) { /* deletes between inserts: freed cells are used again */
        CHECK_OK(fkt_db_begin(db));
        fill(db, round * 1000, (round + 1) * 1000);
        CHECK_OK(fkt_db_commit(db));
        CHECK_OK(fkt_db_do(db, "UPDATE t SET d = CAST(d || x'00' AS BLOB) WHERE a % 2 = 0", ""));
        CHECK_OK(fkt_db_do(db, "DELETE FROM t WHERE a % 9 = 0", ""));
    }
    CHECK(traces(path) > 1000); /* the search can find it */
    CHECK_OK(fkt_db_do(db, "DELETE FROM t WHERE a % 3 = 0", ""));
    CHECK(times_in(path, "-wal") > 0); /* and a delete alone is not enough */
    CHECK_OK(fkt_db_scrub(db));
    CHECK(traces(path) == 0);
    CHECK_OK(fkt_db_ask(&r, db, "SELECT count(*), min(a), max(a), sum(a % 3 = 0) FROM t", ""));
    CHECK_OK(fkt_rows_next(r, &there));
    CHECK(there && fkt_rows_int(r, 0) == 2000 && fkt_rows_int(r, 1) == 1 && fkt_rows_int(r, 2) == 2999);
    CHECK(fkt_rows_int(r, 3) == 0);
    fkt_rows_done(r);
    fkt_db_close(db);
    CHECK(traces(path) == 0);
    db = opened(path); /* its marks are still there */
    fkt_db_close(db);
}

static void a_blocking_reader_is_reported(void **state)
{
    const char *path = scratch_path(&tmp, "reader");
    struct fkt_db *db = opened(path), *other = opened(path);
    struct fkt_rows *r = NULL;
    int there;
    (void)state;
    CHECK_OK(fkt_db_run(db, "PRAGMA busy_timeout=50"));
    fill(db, 0, 9);
    CHECK_OK(fkt_db_ask(&r, other, "SELECT a FROM t", ""));
    CHECK_OK(fkt_rows_next(r, &there));
    CHECK_OK(fkt_db_do(db, "DELETE FROM t", ""));
    CHECK_STATUS(fkt_db_scrub(db), FKT_E_IO); /* its snapshot still needs the old pages */
    fkt_rows_done(r);
    CHECK_OK(fkt_db_scrub(db));
    CHECK(traces(path) == 0);
    fkt_db_close(other);
    fkt_db_close(db);
}

/* Reports each row after it was acknowledged, until it is killed. */
static void write_for_ever(const char *path, int64_t from, int tell)
{
    struct fkt_db *db = NULL;
    uint8_t row[3000] = {7};
    if (fkt_db_open(&db, path, &(struct fkt_db_kind){SCHEMA, APP, 1, NULL, NULL, NULL}, FKT_DB_EXCLUSIVE) != FKT_OK)
        _exit(1);
    for (int64_t i = from;; i++) {
        if (fkt_db_begin(db) != FKT_OK) _exit(2);
        if (fkt_db_do(db, "INSERT INTO t VALUES(?, ?)", "ib", i, row, (size_t)(i * 31 % 3000)) != FKT_OK) _exit(3);
        if (fkt_db_commit(db) != FKT_OK) _exit(4);
        if (write(tell, &i, sizeof i) != sizeof i) _exit(5);
    }
}

static int64_t last_row(const char *path)
{
    struct fkt_db *db = opened(path);
    struct fkt_rows *r = NULL;
    int64_t n;
    int there;
    CHECK_OK(fkt_db_ask(&r, db, "SELECT count(*), max(a) FROM t", ""));
    CHECK_OK(fkt_rows_next(r, &there));
    n = fkt_rows_int(r, 0);
    CHECK(n == 0 || fkt_rows_int(r, 1) == n - 1); /* none is missing in between */
    fkt_rows_done(r);
    CHECK_OK(fkt_db_ask(&r, db, "PRAGMA integrity_check", ""));
    CHECK_OK(fkt_rows_next(r, &there));
    CHECK(there);
    assert_string_equal(fkt_rows_text(r, 0), "ok");
    fkt_rows_done(r);
    fkt_db_close(db);
    return n - 1;
}

static void killed_many_times(void **state)
{
    const char *path = scratch_path(&tmp, "killed");
    int64_t there = -1;
    (void)state;
    for (int run = 0; run < 25; run++) {
        int64_t told = there, got;
        int ends[2], status;
        CHECK(pipe(ends) == 0);
        const pid_t child = fork();
        if (child == 0) {
            close(ends[0]);
            write_for_ever(path, there + 1, ends[1]);
        }
        close(ends[1]);
        for (int i = 0; i < run * 3; i++) { /* run 0 is killed while the file is made */
            CHECK(read(ends[0], &got, sizeof got) == sizeof got);
            told = got;
        }
        usleep((useconds_t)(run * 37 % 900));
        CHECK(kill(child, SIGKILL) == 0);
        while (read(ends[0], &got, sizeof got) == sizeof got) told = got;
        close(ends[0]);
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        there = last_row(path);
        if (!(there >= told)) fail_msg("run %d: told of row %lld, found %lld", run, (long long)told, (long long)there);
    }
    CHECK(there > 500);
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
        cmocka_unit_test(nothing_is_left_after_a_scrub),
        cmocka_unit_test(a_blocking_reader_is_reported),
        cmocka_unit_test(killed_many_times),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
