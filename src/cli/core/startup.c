/* SPDX-License-Identifier: Apache-2.0 */
/* startup.c - restarts the program when BLAS has misidentified the processor; protects the process's memory from
 * others.
 *
 * OpenBLAS reads OPENBLAS_CORETYPE while it is loaded, before main: setting it there is too late, so the program is
 * executed again with the variable set. Arguments, descriptors and the rest of the environment stay as they are. A
 * value that the user has set is kept, even a wrong one, and that also ends the loop: the second process finds the
 * variable set. A second variable records the first core, for `fedkt bench`. If the program cannot be found or
 * executed again, was started by a loader that was named on the command line, or has rights that its user does not
 * have, it continues: slower, with the same results. Cost: one more start, about ten milliseconds, on such machines
 * only. */
#include "cli/core/startup.h"

#include "fedkt/machine.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define CORE "OPENBLAS_CORETYPE"
#define FORMER "FEDKT_BLAS_CORE_WAS"

/* Did the kernel execute this program directly, rather than a loader with the program as its argument? Only then
 * does the kernel load the loader too and pass its address (AT_BASE). */
static int executed_directly(void) { return getauxval(AT_BASE) != 0; }

void cli_startup(char **argv)
{
    char self[PATH_MAX];
    const char *wanted;
    ssize_t n;
    if (getenv(CORE) || getenv(FORMER) || getauxval(AT_SECURE) || !executed_directly()) return;
    wanted = fkt_blas_core_advice();
    if (!wanted) return;
    n = readlink("/proc/self/exe", self, sizeof self - 1); /* keeps its name, for lists of processes */
    if (n < 1) return;
    self[n] = '\0';
    if (setenv(FORMER, fkt_blas_core(), 1) != 0) return;
    if (setenv(CORE, wanted, 1) == 0) execv(self, argv);
    unsetenv(CORE);
    unsetenv(FORMER);
}

/* If the system refuses, the verb continues: a user who can read its memory can read its files too. */
void cli_keep_secrets(void)
{
    const struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0,
                0); /* also stops dumps that are piped to a program, which ignore the limit; and ptrace */
}

const char *cli_startup_corrected_from(void) { return getenv(FORMER); }
