/* SPDX-License-Identifier: Apache-2.0 */
/* winograd.h - does oneDNN have Winograd kernels here? Version 2 has them for AVX-512, version 3 for no x86 processor:
 * there every convolution is direct, and slower. */
#ifndef FKT_TEST_WINOGRAD_H
#define FKT_TEST_WINOGRAD_H

#include "nn/cpu.h"
#include "tests/support/check.h"

static inline int winograd_is_there(void)
{
    const char *isa;
    CHECK_OK(fkt_cpu_isa(&isa));
    if (strncmp(fkt_cpu_library(), "oneDNN 2.", 9) != 0) return 0;
    return !strncmp(isa, "avx512", 6) || !strcmp(isa, "amx");
}

#endif
