/* SPDX-License-Identifier: Apache-2.0 */
/* descent.h - Adam on one flat vector of parameters, for the small models of this folder. */
#ifndef FKT_LEARNING_FEATURES_DESCENT_H
#define FKT_LEARNING_FEATURES_DESCENT_H

#include "base/alloc.h"
#include "nn/learner.h"

struct fkt_descent {
    size_t n;
    float *x, *g, *m, *v; /* (n) parameters, gradient, Adam's moments */
    struct fkt_optimizer adam;
};

static inline fkt_status fkt_descent_new(struct fkt_descent *d, size_t n, double rate, double decay)
{
    fkt_status st;
    *d = (struct fkt_descent){.n = n,
                              .adam = {.kind = FKT_OPTIMIZER_ADAM,
                                       .rate = (float)rate,
                                       .decay = (float)decay,
                                       .beta1 = 0.9F,
                                       .beta2 = 0.999F,
                                       .epsilon = 1e-8F}};
    FKT_TRY(fkt_alloc(&d->x, n));
    FKT_TRY(fkt_alloc(&d->g, n));
    FKT_TRY(fkt_alloc(&d->m, n));
    FKT_TRY(fkt_alloc(&d->v, n));
out:
    return st;
}

static inline void fkt_descent_clear(struct fkt_descent *d)
{
    fkt_free(d->x);
    fkt_free(d->g);
    fkt_free(d->m);
    fkt_free(d->v);
    *d = (struct fkt_descent){0};
}

static inline void fkt_descent_step(struct fkt_descent *d)
{
    d->adam.step++;
    fkt_adam(d->x, d->g, d->m, d->v, d->n, &d->adam);
}

#endif
