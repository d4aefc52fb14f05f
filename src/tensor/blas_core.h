/* SPDX-License-Identifier: Apache-2.0 */
/* blas_core.h - what fedkt/machine.h answers from: the processor's vector units, and the kernels that suit them. */
#ifndef FKT_TENSOR_BLAS_CORE_H
#define FKT_TENSOR_BLAS_CORE_H

/* What the processor has, and the operating system keeps for us. */
enum { FKT_CPU_AVX2_FMA = 1, FKT_CPU_AVX512 = 2 };
unsigned fkt_cpu_vectors(void);

/* The kernel set to ask for instead of `core`, or NULL when that one will do. Pure. */
const char *fkt_blas_core_wanted(const char *core, unsigned vectors);

#endif
