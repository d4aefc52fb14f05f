/* SPDX-License-Identifier: Apache-2.0 */
#include "base/private.h"

#include "base/alloc.h"
#include "base/file.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <sys/stat.h>
#include <unistd.h>

/* Owner and mode decide; a file of root is accepted. */
static void owner_and_mode(void **state)
{
    const uid_t me = geteuid();
    const struct {
        uid_t owner;
        mode_t mode;
        int flags, good;
    } rows[] = {
        {me, 0600, 0, 1},
        {me, 0400, 0, 1},
        {0, 0600, 0, 1},
        {me + 1, 0600, 0, 0},
        {me + 1, 0400, 0, 0},
        {me, 0640, 0, 0},
        {me, 0604, 0, 0},
        {me, 0620, 0, 0},
        {me, 0601, 0, 0},
        {me, 0640, FKT_PRIVATE_GROUP, 1},
        {me, 0660, FKT_PRIVATE_GROUP, 0},
        {me, 0644, FKT_PRIVATE_GROUP, 0},
        {me + 1, 0640, FKT_PRIVATE_GROUP, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct stat sb = {.st_uid = rows[i].owner, .st_mode = S_IFREG | rows[i].mode};
        const fkt_status st = fkt_private_check(&sb, "it", rows[i].flags);
        if ((st == FKT_OK) != rows[i].good) fail_msg("row %zu: %s", i, fkt_error_text());
        CHECK(st == FKT_OK || (st == FKT_E_STATE && fkt_error_hint()[0]));
    }
}

static void what_is_read(void **state)
{
    struct scratch s;
    uint8_t *text = NULL;
    size_t len;
    (void)state;
    scratch_init(&s);
    CHECK_OK(fkt_file_write(scratch_path(&s, "secret"), "abc", 3, 0));
    CHECK(chmod(scratch_path(&s, "secret"), 0600) == 0);
    CHECK_OK(fkt_private_read(&text, &len, scratch_path(&s, "secret"), 3, 0, NULL));
    CHECK(len == 3 && !strcmp((char *)text, "abc"));
    fkt_free(text);
    CHECK_STATUS(fkt_private_read(&text, &len, scratch_path(&s, "secret"), 2, 0, NULL), FKT_E_FORMAT);
    CHECK(symlink("secret", scratch_path(&s, "link")) == 0);
    CHECK_STATUS(fkt_private_read(&text, &len, scratch_path(&s, "link"), 3, 0, NULL), FKT_E_STATE);
    CHECK_OK(fkt_private_read(&text, &len, scratch_path(&s, "link"), 3, FKT_PRIVATE_LINK, NULL));
    fkt_free(text);
    CHECK(mkfifo(scratch_path(&s, "pipe"), 0600) == 0);
    CHECK_STATUS(fkt_private_read(&text, &len, scratch_path(&s, "pipe"), 3, 0, NULL), FKT_E_IO);
    CHECK_STATUS(fkt_private_read(&text, &len, scratch_path(&s, "none"), 3, 0, NULL), FKT_E_IO);
    CHECK(!text && fkt_alloc_live() == 0);
    scratch_release(&s);
}

static void folders(void **state)
{
    struct scratch s;
    struct stat sb;
    mode_t old = umask(0);
    (void)state;
    scratch_init(&s);
    CHECK_OK(fkt_private_folder(scratch_path(&s, "a/b/c//")));
    CHECK(stat(scratch_path(&s, "a/b"), &sb) == 0 && (sb.st_mode & 0777) == 0777);
    CHECK(stat(scratch_path(&s, "a/b/c"), &sb) == 0 && (sb.st_mode & 0777) == 0700);
    CHECK_OK(fkt_private_folder(scratch_path(&s, "a/b/c")));
    CHECK_STATUS(fkt_private_folder(scratch_path(&s, "a/b")), FKT_E_STATE);
    CHECK(strstr(fkt_error_hint(), "chmod 700"));
    CHECK_OK(fkt_file_write(scratch_path(&s, "file"), "", 0, 0));
    CHECK_STATUS(fkt_private_folder(scratch_path(&s, "file")), FKT_E_EXISTS);
    scratch_release(&s);
    umask(old);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owner_and_mode),
        cmocka_unit_test(what_is_read),
        cmocka_unit_test(folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
