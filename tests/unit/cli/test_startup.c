/* SPDX-License-Identifier: Apache-2.0 */
/* The binary under a BLAS that answers "Prescott" until it is told otherwise (tests/shim/blas_core.c): one line of log
 * per process that was started. */
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include "base/file.h"
#include "cli/core/startup.h"
#include "tensor/blas_core.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct scratch scratch;

/* Runs `fedkt bench nothing` (misuse: exit code 2, so that a lost one shows) with `core` in the environment or without;
 * gives the log. */
static void run_by(const char *loader, const char *core, const char *was, char log[512])
{
    const char *path = scratch_path(&scratch, "log");
    uint8_t *text = NULL;
    size_t n;
    int status;
    pid_t pid;
    unlink(path);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setenv("LD_PRELOAD", FKT_TEST_SHIMS "/libshim_blas_core.so", 1);
        setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
        setenv("SHIM_LOG", path, 1);
        unsetenv("OPENBLAS_CORETYPE");
        unsetenv("FEDKT_BLAS_CORE_WAS");
        if (core) setenv("OPENBLAS_CORETYPE", core, 1);
        if (was) setenv("FEDKT_BLAS_CORE_WAS", was, 1);
        if (!freopen("/dev/null", "w", stderr)) _exit(98);
        if (loader) execl(loader, loader, FKT_TEST_BINARY, "bench", "a room that is not there", (char *)NULL);
        else execl(FKT_TEST_BINARY, FKT_TEST_BINARY, "bench", "a room that is not there", (char *)NULL);
        _exit(97);
    }
    assert_true(waitpid(pid, &status, 0) == pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 2);
    CHECK_OK(fkt_file_read(&text, &n, path, 511));
    snprintf(log, 512, "%s", (const char *)text);
    fkt_free(text);
}

static void run(const char *core, const char *was, char log[512]) { run_by(NULL, core, was, log); }

static void an_outclassed_core_is_corrected_once(void **state)
{
    const char *wanted = fkt_blas_core_wanted("Prescott", fkt_cpu_vectors());
    char log[512], want[512];
    (void)state;
    run(NULL, NULL, log);
    if (wanted) snprintf(want, sizeof want, "core=- was=-\ncore=%s was=Prescott\n", wanted);
    else snprintf(want, sizeof want, "core=- was=-\n");
    assert_string_equal(log, want);
}

static void what_a_user_set_is_respected(void **state)
{
    char log[512];
    (void)state;
    run("Prescott", NULL, log);
    assert_string_equal(log, "core=Prescott was=-\n");
}

/* A wrapper that loses the one variable and keeps the other must not send us round for ever. */
static void one_start_more_at_most(void **state)
{
    char log[512];
    (void)state;
    run(NULL, "Prescott", log);
    assert_string_equal(log, "core=- was=Prescott\n");
}

/* What the kernel executed is then the loader, and to execute that again would be something else. */
static void a_loader_on_the_command_line(void **state)
{
    static const char loader[] = "/lib64/ld-linux-x86-64.so.2";
    char log[512];
    (void)state;
    if (access(loader, X_OK) != 0) skip();
    run_by(loader, NULL, NULL, log);
    assert_string_equal(log, "core=- was=-\n");
}

/* In a process of its own: there is no way back. */
static void secrets_stay_in_memory(void **state)
{
    int status;
    pid_t pid = fork();
    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rlimit core = {1, 1};
        cli_keep_secrets();
        if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0 || getrlimit(RLIMIT_CORE, &core) != 0) _exit(1);
        _exit(core.rlim_cur != 0 || core.rlim_max != 0);
    }
    assert_true(waitpid(pid, &status, 0) == pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_outclassed_core_is_corrected_once),
        cmocka_unit_test(what_a_user_set_is_respected),
        cmocka_unit_test(one_start_more_at_most),
        cmocka_unit_test(a_loader_on_the_command_line),
        cmocka_unit_test(secrets_stay_in_memory),
    };
    int failed;
    scratch_init(&scratch);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    scratch_release(&scratch);
    return failed;
}
