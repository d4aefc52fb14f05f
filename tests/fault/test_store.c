/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation of the module fails in turn; nothing leaks, and no partial file exists under its final name. */
#include "store/db.h"

#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/sweep.h"

#include <dirent.h>
#include <unistd.h>

#define SCHEMA "CREATE TABLE t(a INTEGER PRIMARY KEY, c TEXT) STRICT;"
static struct scratch tmp;
static char path[600];

static fkt_status work(void)
{
    struct fkt_db *db = NULL;
    struct fkt_rows *r = NULL;
    int there = 0;
    fkt_status st;
    FKT_TRY(fkt_db_open(&db, path, &(struct fkt_db_kind){SCHEMA, 7, 1, NULL, NULL, NULL}, 0));
    FKT_TRY(fkt_db_begin(db));
    FKT_TRY(fkt_db_do(db, "INSERT OR REPLACE INTO t VALUES(?, ?)", "it", (int64_t)1, "x"));
    FKT_TRY(fkt_db_commit(db));
    FKT_TRY(fkt_db_ask(&r, db, "SELECT c FROM t", ""));
    FKT_TRY(fkt_rows_next(r, &there));
    fkt_rows_done(r);
    r = NULL;
    FKT_TRY(fkt_db_scrub(db));
out:
    fkt_rows_done(r);
    fkt_db_close(db);
    return st;
}

static int files(void)
{
    DIR *d = opendir(tmp.dir);
    int n = 0;
    CHECK(d);
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void nothing_half_made(fkt_status st)
{
    CHECK(files() == (access(path, F_OK) == 0));
    if (st != FKT_OK) (void)unlink(path); /* each run makes it again */
}

static void a_store_without_memory(void **state)
{
    (void)state;
    scratch_init(&tmp);
    snprintf(path, sizeof path, "%s", scratch_path(&tmp, "db"));
    CHECK(sweep_allocations(work, nothing_half_made) > 12);
    CHECK(files() == 1);
    scratch_release(&tmp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_store_without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
