/* SPDX-License-Identifier: Apache-2.0 */
/* blas_core.c - OpenBLAS as it behaves on a processor that it does not know: "Prescott", unless it was told a core
 * before it was loaded. Each process that is started with it leaves a line in $SHIM_LOG. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

char *openblas_get_corename(void);

__attribute__((constructor)) static void loaded(void)
{
    const char *log = getenv("SHIM_LOG"), *core = getenv("OPENBLAS_CORETYPE"), *was = getenv("FEDKT_BLAS_CORE_WAS");
    char line[256];
    int n = snprintf(line, sizeof line, "core=%s was=%s\n", core ? core : "-", was ? was : "-");
    int fd = log ? open(log, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (fd < 0 || write(fd, line, (size_t)n) != n) _exit(99);
    close(fd);
}

__attribute__((visibility("default"))) char *openblas_get_corename(void)
{
    static char prescott[] = "Prescott";
    char *core = getenv("OPENBLAS_CORETYPE");
    return core ? core : prescott;
}
