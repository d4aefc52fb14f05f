/* SPDX-License-Identifier: Apache-2.0 */
#include "base/xdg.h"

#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/sweep.h"

#include <sys/stat.h>
#include <unistd.h>

static struct scratch tmp;

static void is_at(enum fkt_xdg_folder place, const char *want)
{
    char *path = NULL;
    CHECK_OK(fkt_xdg_folder(place, "x.db", 0, &path));
    assert_string_equal(path, want);
    fkt_free(path);
}

static void the_specification(void **state)
{
    char *path = NULL;
    (void)state;
    setenv("HOME", "/users/anna", 1);
    unsetenv("XDG_DATA_HOME");
    unsetenv("XDG_STATE_HOME");
    is_at(FKT_XDG_DATA, "/users/anna/.local/share/fedkt/x.db");
    is_at(FKT_XDG_STATE, "/users/anna/.local/state/fedkt/x.db");
    setenv("XDG_DATA_HOME", "/srv/data/", 1);
    is_at(FKT_XDG_DATA, "/srv/data/fedkt/x.db");
    is_at(FKT_XDG_STATE, "/users/anna/.local/state/fedkt/x.db");
    setenv("XDG_DATA_HOME", "data", 1); /* a relative path is to be ignored */
    is_at(FKT_XDG_DATA, "/users/anna/.local/share/fedkt/x.db");
    setenv("XDG_DATA_HOME", "", 1);
    is_at(FKT_XDG_DATA, "/users/anna/.local/share/fedkt/x.db");
    unsetenv("HOME");
    CHECK_STATUS(fkt_xdg_folder(FKT_XDG_DATA, "x.db", 1, &path), FKT_E_IO);
    CHECK(!path && strstr(fkt_error_text(), "XDG_DATA_HOME") && strstr(fkt_error_hint(), "HOME"));
    setenv("XDG_STATE_HOME", "/var/s", 1);
    is_at(FKT_XDG_STATE, "/var/s/fedkt/x.db");
    setenv("HOME", "/proc/nowhere", 1);
    CHECK_STATUS(fkt_xdg_folder(FKT_XDG_DATA, "x.db", 1, &path), FKT_E_IO);
}

static fkt_status make(void)
{
    char *path = NULL;
    const fkt_status st = fkt_xdg_folder(FKT_XDG_STATE, "x.db", 1, &path);
    fkt_free(path);
    return st;
}

static void folders_are_their_owners_alone(void **state)
{
    struct stat sb;
    const mode_t old = umask(0);
    (void)state;
    setenv("HOME", tmp.dir, 1);
    unsetenv("XDG_STATE_HOME");
    CHECK(sweep_allocations(make, NULL) == 4);
    CHECK(stat(scratch_path(&tmp, ".local/state/fedkt"), &sb) == 0 && (sb.st_mode & 0777) == 0700);
    CHECK(stat(scratch_path(&tmp, ".local"), &sb) == 0 && (sb.st_mode & 0777) == 0700);
    CHECK(chmod(scratch_path(&tmp, ".local"), 0755) == 0);
    CHECK(chmod(scratch_path(&tmp, ".local/state/fedkt"), 0755) == 0);
    CHECK_OK(make());
    CHECK(stat(scratch_path(&tmp, ".local/state/fedkt"), &sb) == 0 && (sb.st_mode & 0777) == 0700);
    CHECK(stat(scratch_path(&tmp, ".local"), &sb) == 0 && (sb.st_mode & 0777) == 0755); /* not ours to change */
    umask(old);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_specification),
                                       cmocka_unit_test(folders_are_their_owners_alone)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
