/* SPDX-License-Identifier: Apache-2.0 */
/* learner.h - the plain learner's arrays, and the calls that its steps without the host are made of. */
#ifndef FKT_NN_REF_LEARNER_H
#define FKT_NN_REF_LEARNER_H

#include "nn/learner.h"
#include "nn/ref/learn.h"

struct fkt_ref_held; /* learn_hold.c */

/*   learned[FKT_WEIGHT ...]   one block each for all slots, slot s from slot_at[s] on
 *   value, gradient           one block each for all values */
struct fkt_ref_learner {
    const struct fkt_net *net; /* borrowed */
    struct fkt_learner_spec spec;
    struct fkt_shape *shape;                /* (n_ops + 1) */
    size_t *value_at, *slot_at, *moment_at; /* (n_ops + 2), (n_slots + 1), (n_ops + 1): where each begins */
    float *value, *gradient;
    float *learned[FKT_LEARNED_KINDS]; /* average and second moment: NULL until there is one; frozen: weights alone */
    float *rounded;                    /* bfloat16: all slots as forward and backward read them */
    struct fkt_ref_moments *moments;   /* of the batch norms in the last forward */
    double *scratch;                   /* frozen: (2, H W) of the largest attention */
    struct fkt_ref_held *held;         /* NULL: none */
};

/* The functions of fkt_learner_ref. */
FKT_MUST_USE fkt_status fkt_ref_learner_forward(void *self, const float *in, float *out);
FKT_MUST_USE fkt_status fkt_ref_learner_backward(void *self, const float *dout, float *din);
FKT_MUST_USE fkt_status fkt_ref_learner_step(void *self, const struct fkt_optimizer *o);
FKT_MUST_USE fkt_status fkt_ref_learner_average(void *self, float decay);

/* learn_hold.c */
FKT_MUST_USE fkt_status fkt_ref_hold(void *self, const struct fkt_held *images);
FKT_MUST_USE fkt_status fkt_ref_plan_epoch(void *self, const struct fkt_epoch_steps *e);
FKT_MUST_USE fkt_status fkt_ref_train(void *self, uint64_t steps);
FKT_MUST_USE fkt_status fkt_ref_collect(void *self, double *loss, uint64_t *hits, uint64_t *first_bad);
void fkt_ref_held_free(struct fkt_ref_held *h);

#endif
