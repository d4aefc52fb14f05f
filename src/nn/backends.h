/* SPDX-License-Identifier: Apache-2.0 */
/* backends.h - the implementations of networks, and which one to use. Nothing outside nn/ names one, but tests and
 * benchmarks that compare two. */
#ifndef FKT_NN_BACKENDS_H
#define FKT_NN_BACKENDS_H

#include "nn/engine.h"
#include "nn/learner.h"

#include <stddef.h>

struct fkt_backend_row {
    const char *name;
    const struct fkt_backend *engine;          /* runs a network */
    const struct fkt_learner_backend *learner; /* trains one; NULL: it cannot */
    int (*usable)(void);                       /* on this machine; NULL: always */
};

/* The backend of that name where this machine can use it; NULL as name: the fastest that it can use. NULL: there is
 * none, which cannot be for NULL as name. */
const struct fkt_backend *fkt_backend_pick(const char *name);
const struct fkt_learner_backend *fkt_learner_pick(const char *name);
/* All rows, fastest first; NULL beyond the last. */
const struct fkt_backend_row *fkt_backend_row(size_t i);

#endif
