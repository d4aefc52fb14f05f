/* SPDX-License-Identifier: Apache-2.0 */
/* startup.c - a second start when BLAS has mistaken the processor; and memory that stays the process's own.
 *
 * OpenBLAS reads OPENBLAS_CORETYPE while it is loaded, before main: setting it there is too late, so the program is
 * executed again with the variable set. Words, descriptors and the rest of the environment stay as they are. What a
 * user has set is respected, wrong or not, and that also ends the loop: the second process finds the variable set. A
 * second variable remembers the first core, for `fedkt bench`. Where the program cannot be found or executed again, was
 * started by a loader that was named on the command line, or has rights that its user has not, it goes on, slower and
 * just as right. Cost: one more start, about ten milliseconds, on such machines alone. */
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

/* Did the kernel execute this program, and not a loader that was told to run it? For a program it also loads the loader
 * and says where (AT_BASE); a loader by itself has none. */
static int executed_directly(void) { return getauxval(AT_BASE) != 0; }

void cli_startup(char **argv)
{
    char self[PATH_MAX];
    const char *wanted;
    ssize_t n;
    if (getenv(CORE) || getenv(FORMER) || getauxval(AT_SECURE) || !executed_directly()) return;
    wanted = fkt_blas_core_advice();
    if (!wanted) return;
    n = readlink("/proc/self/exe", self, sizeof self - 1); /* by its name, so that it keeps it in lists of processes */
    if (n < 1) return;
    self[n] = '\0';
    if (setenv(FORMER, fkt_blas_core(), 1) != 0) return;
    if (setenv(CORE, wanted, 1) == 0) execv(self, argv);
    unsetenv(CORE);
    unsetenv(FORMER);
}

/* Where the system does not let us, the verb goes on: whoever can read its memory then can read its files too. */
void cli_keep_secrets(void)
{
    const struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0,
                0); /* also where dumps go to a program, which no limit stops; and no ptrace */
}

const char *cli_startup_corrected_from(void) { return getenv(FORMER); }
