/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h - how well the libraries below this one use the processor.
 *
 * OpenBLAS chooses its kernels by the processor's model number while it is loaded. A processor that is newer than the
 * installed OpenBLAS may be taken for one of 2004: results are then as good, but estimates and heads take up to six
 * times as long, and their last bits differ from those of other kernels. A library cannot correct this: the choice is
 * over before it runs. A program can, by starting itself again:
 *
 *   const char *wanted = fkt_blas_core_advice();
 *   if (wanted && !getenv("OPENBLAS_CORETYPE") && setenv("OPENBLAS_CORETYPE", wanted, 1) == 0) execv(path, argv);
 *
 * or whoever starts it sets OPENBLAS_CORETYPE. The command line does the former.
 */
#ifndef FEDKT_MACHINE_H
#define FEDKT_MACHINE_H

#include "fedkt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kernel set that BLAS runs on, "Haswell" for example. Borrowed; it does not change while the process lives. */
FKT_API const char *fkt_blas_core(void);
/* What OPENBLAS_CORETYPE should be set to before the next start, because BLAS runs on kernels without AVX2 on a
 * processor that has it. NULL: nothing; that is also the answer when BLAS was built for one kernel set. */
FKT_API const char *fkt_blas_core_advice(void);

#ifdef __cplusplus
}
#endif
#endif
