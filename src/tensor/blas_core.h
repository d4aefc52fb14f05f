/* SPDX-License-Identifier: Apache-2.0 */
/* blas_core.h - behind fedkt/machine.h: the vector units of the processor, and the kernels that suit them. */
#ifndef FKT_TENSOR_BLAS_CORE_H
#define FKT_TENSOR_BLAS_CORE_H

/* Vector units that the processor has and the operating system supports. */
enum { FKT_CPU_AVX2_FMA = 1, FKT_CPU_AVX512 = 2 };
unsigned fkt_cpu_vectors(void);

/* The kernel set to request instead of `core`, or NULL when `core` is good enough. Pure. */
const char *fkt_blas_core_wanted(const char *core, unsigned vectors);

#endif
