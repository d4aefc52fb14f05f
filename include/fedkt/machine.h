/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h - where networks run, and how well the libraries below this one use the processor.
 *
 * Networks (codecs, classifiers) run on the processor or, in a library that was built with CUDA, on an NVIDIA card.
 * The device is a matter of speed: it is in no identity, task, release or model. Its arithmetic is its own, so that
 * results on two devices agree within rounding and not bit for bit.
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

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- where networks run ---- */

/* AUTO: the first card where the library was built with CUDA and that card can be used, else the processor. */
enum fkt_device_kind { FKT_DEVICE_CPU = 0, FKT_DEVICE_CUDA = 1, FKT_DEVICE_AUTO = 2 };
/* Zeros are the processor. */
struct fkt_device {
    enum fkt_device_kind kind;
    int index; /* CUDA: which card, from 0, in the order of the driver; else 0 */
};

#define FKT_DEVICE_NAME 16
/* "cpu", "cuda" (card 0), "cuda:1", "auto". FKT_E_ARG: anything else. It does not look for a card. */
FKT_API FKT_MUST_USE fkt_status fkt_device_parse(struct fkt_device *out, const char *s);
FKT_API void fkt_device_name(struct fkt_device d, char out[FKT_DEVICE_NAME]); /* "cpu", "cuda:0", "auto" */

/* Puts what AUTO means on this machine in the place of AUTO. `why` (cap bytes; may be NULL) is then one line that says
 * why it is not a card, else "". A card that is asked for and cannot be used is FKT_E_STATE, with the cause: no CUDA in
 * this library, no driver, no card of that index, a card or a driver that is too old, a library that is missing. */
FKT_API FKT_MUST_USE fkt_status fkt_device_resolve(struct fkt_device *d, char *why, size_t cap);

struct fkt_device_facts {
    char name[128];      /* of the card, "NVIDIA H200", or of the processor */
    char capability[32]; /* compute capability, "9.0"; instruction set of the networks, "avx512" */
    char driver[64];     /* of the card, "CUDA 13.0"; "" for the processor */
    char libraries[128]; /* that networks run with, with their versions */
    uint64_t memory;     /* of the card, in bytes; 0 for the processor */
    uint64_t memory_free;
};
/* Of CPU or CUDA; fails like fkt_device_resolve. */
FKT_API FKT_MUST_USE fkt_status fkt_device_describe(struct fkt_device d, struct fkt_device_facts *out);
/* Cards that the driver shows, usable or not; 0 also where the library was built without CUDA. */
FKT_API int fkt_device_cards(void);

/* ---- the processor's kernels ---- */

/* The kernel set that BLAS runs on, "Haswell" for example. Borrowed; it does not change while the process lives. */
FKT_API const char *fkt_blas_core(void);
/* What OPENBLAS_CORETYPE should be set to before the next start, because BLAS runs on kernels without AVX2 on a
 * processor that has it. NULL: nothing; that is also the answer when BLAS was built for one kernel set. */
FKT_API const char *fkt_blas_core_advice(void);

#ifdef __cplusplus
}
#endif
#endif
