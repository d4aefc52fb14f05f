/* SPDX-License-Identifier: Apache-2.0 */
/* blas_core.c - detects that BLAS runs kernels far older than the processor.
 *
 * OpenBLAS picks its kernels by the processor's model number, and treats an unknown model as the oldest that could run:
 * on a server of 2023 its release of 2022 says "Prescott", a core of 2004, and dgemm runs at a sixth of the speed. The
 * processor's feature flags show what it can do: kernels without AVX2 on a processor that has it are too old. Haswell
 * or Zen kernels on a processor with AVX-512 are left alone: they are within a factor of two, and where OpenBLAS
 * chooses them it knew the processor. An unknown kernel name is newer than this list.
 *
 * OpenBLAS chooses when the library is loaded, from OPENBLAS_CORETYPE, so a process cannot change its own choice: it
 * must be restarted, which a library must not do (src/cli/core/startup.c does it). */
#include "tensor/blas_core.h"

#include "fedkt/machine.h"

#include <cblas.h>
#include <stddef.h>
#include <string.h>

unsigned fkt_cpu_vectors(void)
{
    unsigned v = 0;
#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) v |= FKT_CPU_AVX2_FMA;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
        v |= FKT_CPU_AVX512;
#endif
    return v;
}

const char *fkt_blas_core_wanted(const char *core, unsigned vectors)
{
    static const char *const without_avx2[] = {"Prescott", "Core2",     "Penryn",       "Dunnington",  "Nehalem",
                                               "Atom",     "Athlon",    "Opteron",      "Barcelona",   "Bobcat",
                                               "Nano",     "Katmai",    "Opteron_SSE3", "Coppermine",  "Northwood",
                                               "Banias",   "Bulldozer", "Piledriver",   "Steamroller", "Sandybridge"};
    for (size_t i = 0; i < sizeof without_avx2 / sizeof *without_avx2; i++)
        if (!strcmp(core, without_avx2[i]))
            return vectors & FKT_CPU_AVX512 ? "SkylakeX" : vectors & FKT_CPU_AVX2_FMA ? "Haswell" : NULL;
    return NULL;
}

const char *fkt_blas_core(void) { return openblas_get_corename(); }

const char *fkt_blas_core_advice(void)
{
    if (!strstr(openblas_get_config(), "DYNAMIC_ARCH")) return NULL;
    return fkt_blas_core_wanted(fkt_blas_core(), fkt_cpu_vectors());
}
