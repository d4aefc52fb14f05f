/* SPDX-License-Identifier: Apache-2.0 */
/* What a killed process leaves beside an output folder: removed by the next run into the same folder, and nothing else
 * is. */
#include "base/file.h"

#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct scratch dir;

static int there(const char *name)
{
    struct stat sb;
    return lstat(scratch_path(&dir, name), &sb) == 0;
}

static void put(const char *name) { CHECK_OK(fkt_file_write(scratch_path(&dir, name), "x", 1, 0)); }

static void put_folder(const char *name) { CHECK(mkdir(scratch_path(&dir, name), 0700) == 0); }

/* A process that fills the folder `path` and is killed; the name of what it leaves. */
static void kill_one(const char *path, char left[64])
{
    int status;
    const pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        struct fkt_folder f;
        char *file = NULL;
        if (fkt_folder_begin(&f, path, 0) != FKT_OK || fkt_path_join(&file, f.tmp, "half") != FKT_OK ||
            fkt_file_write(file, "x", 1, 0) != FKT_OK)
            _exit(1);
        raise(SIGKILL);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    for (unsigned i = 0; i < 100; i++) { /* the number in the name is the child's, which began with the parent's */
        snprintf(left, 64, "run.tmp-%ld-%u", (long)child, i);
        if (there(left)) return;
    }
    fail_msg("the killed process left nothing");
}

static void a_killed_run_is_removed_by_the_next(void **state)
{
    char left[64], path[512];
    struct fkt_folder f;
    (void)state;
    scratch_init(&dir);
    snprintf(path, sizeof path, "%s", scratch_path(&dir, "run"));
    kill_one(path, left);
    CHECK_OK(fkt_folder_begin(&f, path, 0));
    CHECK(!there(left));
    CHECK_OK(fkt_folder_commit(&f));
    CHECK(there("run") && there("run/.fedkt"));
    scratch_release(&dir);
}

static void a_running_one_stays(void **state)
{
    char path[512];
    struct fkt_folder a, b;
    struct stat sb;
    (void)state;
    scratch_init(&dir);
    snprintf(path, sizeof path, "%s/", scratch_path(&dir, "run"));
    CHECK_OK(fkt_folder_begin(&a, path, 0));
    CHECK_OK(fkt_folder_begin(&b, path, 0));
    CHECK(strcmp(a.tmp, b.tmp) != 0 && stat(a.tmp, &sb) == 0 && stat(b.tmp, &sb) == 0);
    fkt_folder_clear(&b);
    CHECK(stat(a.tmp, &sb) == 0);
    CHECK_OK(fkt_folder_commit(&a));
    scratch_release(&dir);
}

static void nothing_else_is_removed(void **state)
{
    static const char *const stays[] = {"run.tmp-1-1", /* complete */
                                        "run.tmp-1-2", /* a file */
                                        "run.tmp-1-3", /* a link */
                                        "run.tmp-1",   /* other names */
                                        "run.tmp-1-",    "run.tmp--1",    "run.tmp-a-1",
                                        "run.tmp-1-2-3", "run.tmp-1-2.x", "run2.tmp-1-1"};
    struct fkt_folder f;
    (void)state;
    scratch_init(&dir);
    put_folder("run.tmp-1-1");
    put("run.tmp-1-1/.fedkt");
    put("run.tmp-1-2");
    put_folder("elsewhere");
    put("elsewhere/thesis");
    CHECK(symlink("elsewhere", scratch_path(&dir, "run.tmp-1-3")) == 0);
    for (size_t i = 3; i < sizeof stays / sizeof *stays; i++) put_folder(stays[i]);
    put_folder("run.tmp-1-4");
    CHECK_OK(fkt_folder_begin(&f, scratch_path(&dir, "run"), 0));
    fkt_folder_clear(&f);
    for (size_t i = 0; i < sizeof stays / sizeof *stays; i++)
        if (!there(stays[i])) fail_msg("'%s' was removed", stays[i]);
    CHECK(there("elsewhere/thesis") && !there("run.tmp-1-4"));
    scratch_release(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_run_is_removed_by_the_next),
        cmocka_unit_test(a_running_one_stays),
        cmocka_unit_test(nothing_else_is_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
