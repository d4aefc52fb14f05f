/* SPDX-License-Identifier: Apache-2.0 */
/* A file system with missing features: no exclusive rename, no links, folders that cannot be synced, no space without
 * writing, or no space. The calls of the C library are replaced here, under their own names. */
#include "base/alloc.h"
#include "base/file.h"
#include "store/db.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int poor;         /* 1: neither RENAME_NOREPLACE nor link */
static int folder_errno; /* the result of syncing a folder; 0: it works */
static int space_errno;  /* the result of reserving space; 0: success */
static ino_t synced[64]; /* folders that were */
static size_t n_synced;

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
    if (poor) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags);
}

int link(const char *from, const char *to)
{
    if (poor) {
        errno = EPERM;
        return -1;
    }
    return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int fallocate(int fd, int mode, off_t offset, off_t len)
{
    if (space_errno) {
        errno = space_errno;
        return -1;
    }
    return (int)syscall(SYS_fallocate, fd, mode, offset, len);
}

int fsync(int fd)
{
    struct stat sb;
    if (fstat(fd, &sb) == 0 && S_ISDIR(sb.st_mode)) {
        if (folder_errno) {
            errno = folder_errno;
            return -1;
        }
        if (n_synced < sizeof synced / sizeof *synced) synced[n_synced++] = sb.st_ino;
    }
    return (int)syscall(SYS_fsync, fd);
}

static int was_synced(const char *path)
{
    struct stat sb;
    CHECK(stat(path, &sb) == 0);
    for (size_t i = 0; i < n_synced; i++)
        if (synced[i] == sb.st_ino) return 1;
    return 0;
}

static int set_up(void **state)
{
    static struct scratch s;
    scratch_init(&s);
    *state = &s;
    poor = folder_errno = space_errno = 0;
    n_synced = 0;
    return 0;
}

static int tear_down(void **state)
{
    scratch_release(*state);
    return 0;
}

static fkt_status open_db(const char *path)
{
    struct fkt_db *db = NULL;
    fkt_status st =
        fkt_db_open(&db, path, &(struct fkt_db_kind){"CREATE TABLE t(a INTEGER);", 7, 1, NULL, NULL, NULL}, 0);
    fkt_db_close(db);
    return st;
}

/* Two processes that create a ledger at once must not replace each other's file; failing is better. */
static void a_database_is_never_replaced(void **state)
{
    char path[512];
    struct stat sb;
    snprintf(path, sizeof path, "%s", scratch_path(*state, "ledger.db"));
    poor = 1;
    CHECK_STATUS(open_db(path), FKT_E_IO);
    CHECK(lstat(path, &sb) != 0 && strstr(fkt_error_hint(), "file system"));
    CHECK_OK(fkt_file_write(scratch_path(*state, "plain"), "x", 1, 0)); /* files that can be made again still are */
    poor = 0;
    CHECK_OK(open_db(path));
    poor = 1;
    CHECK_OK(open_db(path)); /* it is there */
}

/* The names of every new folder and of the file are synced. */
static void names_are_synced(void **state)
{
    char path[512];
    snprintf(path, sizeof path, "%s", scratch_path(*state, "a/b/c"));
    CHECK_OK(fkt_mkdirs(path));
    CHECK(was_synced(((struct scratch *)*state)->dir) && was_synced(scratch_path(*state, "a")));
    CHECK(was_synced(scratch_path(*state, "a/b")) && !was_synced(path));
    CHECK_OK(open_db(scratch_path(*state, "a/b/c/x.db")));
    CHECK(was_synced(path));
    n_synced = 0;
    CHECK_OK(fkt_mkdirs(path)); /* nothing is new */
    CHECK(n_synced == 0);
}

/* Space is taken before a byte is written, also where that needs zeros; unused space is released. */
static void space_that_is_reserved(void **state)
{
    static const int disks[] = {0, EOPNOTSUPP, ENOSYS, ENOSPC};
    char path[512];
    uint8_t *data = NULL;
    size_t len;
    snprintf(path, sizeof path, "%s", scratch_path(*state, "file"));
    for (size_t i = 0; i < sizeof disks / sizeof *disks; i++) {
        struct fkt_file f;
        struct stat sb;
        space_errno = disks[i];
        CHECK_OK(fkt_file_begin(&f, path, FKT_FILE_REPLACE));
        if (disks[i] == ENOSPC) {
            CHECK_STATUS(fkt_file_reserve(&f, 200000), FKT_E_IO);
            CHECK(strstr(fkt_error_text(), "No space left") && *fkt_error_hint());
            fkt_file_clear(&f);
            break;
        }
        CHECK_OK(fkt_file_reserve(&f, 200000));
        CHECK(fstat(fileno(f.stream), &sb) == 0 && sb.st_size == 200000 && sb.st_blocks * 512 >= 200000);
        CHECK(fputs("short", f.stream) >= 0);
        CHECK_OK(fkt_file_commit(&f));
        CHECK_OK(fkt_file_read(&data, &len, path, 1000000));
        CHECK(len == 5 && !memcmp(data, "short", 5));
        fkt_free(data);
    }
    CHECK_OK(fkt_file_read(&data, &len, path, 1000000)); /* the old contents are unchanged */
    CHECK(len == 5);
    fkt_free(data);
}

static void a_sync_that_fails_is_reported(void **state)
{
    folder_errno = EIO;
    CHECK_STATUS(open_db(scratch_path(*state, "x.db")), FKT_E_IO);
    CHECK_STATUS(open_db(scratch_path(*state, "x.db")), FKT_E_IO); /* also when it is there by now */
    CHECK_STATUS(fkt_mkdirs(scratch_path(*state, "new")), FKT_E_IO);
    folder_errno = EINVAL; /* a file system without such a thing */
    CHECK_OK(open_db(scratch_path(*state, "x.db")));
    CHECK_OK(fkt_mkdirs(scratch_path(*state, "other")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_database_is_never_replaced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_are_synced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(space_that_is_reserved, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_sync_that_fails_is_reported, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
