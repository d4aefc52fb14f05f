/* SPDX-License-Identifier: Apache-2.0 */
/* backends.h - the implementations of networks, and which one to use. Nothing outside nn/ names one, but tests and
 * benchmarks that compare two: others give a device (fedkt/machine.h). */
#ifndef FKT_NN_BACKENDS_H
#define FKT_NN_BACKENDS_H

#include "fedkt/machine.h"

#include "nn/engine.h"
#include "nn/learner.h"

#include <stddef.h>

struct fkt_backend_row {
    const char *name;
    enum fkt_device_kind kind;                 /* CPU or CUDA */
    const struct fkt_backend *engine;          /* runs a network */
    const struct fkt_learner_backend *learner; /* trains one; NULL: it cannot */
    int (*usable)(void);                       /* on this machine; NULL: always */
    /* Of a card alone. check: FKT_OK, or why the card of that index cannot be used, with a hint. */
    int (*cards)(void);
    fkt_status (*check)(int index);
    fkt_status (*describe)(int index, struct fkt_device_facts *out);
};

/* The backend of that name where this machine can use it; NULL as name: the fastest that runs on the processor. NULL:
 * there is none, which cannot be for NULL as name. */
const struct fkt_backend *fkt_backend_pick(const char *name);
const struct fkt_learner_backend *fkt_learner_pick(const char *name);
/* The fastest of a device that fkt_device_resolve has settled: never NULL for CPU; NULL for AUTO, and for CUDA in a
 * library without it. The index of a card goes into the spec of engine or learner. */
const struct fkt_backend *fkt_backend_for(struct fkt_device d);
const struct fkt_learner_backend *fkt_learner_for(struct fkt_device d);
/* All rows, fastest first; NULL beyond the last. */
const struct fkt_backend_row *fkt_backend_row(size_t i);

#endif
