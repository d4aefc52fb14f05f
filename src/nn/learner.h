/* SPDX-License-Identifier: Apache-2.0 */
/* learner.h - a network that learns: forward with batch statistics, backward, one step of stochastic gradient descent.
 *
 * It takes the same list of operations as engine.h, of these kinds: CONV (one group), LINEAR, RELU, BATCH_NORM, ADD,
 * MAX_POOL, MEAN. A batch norm normalises by the statistics of its batch and moves its stored mean and var towards
 * them (the stored variance is the unbiased one, n/(n-1), as in PyTorch): those two slots are not
 * parameters. One batch size per learner. The same calls with the same `threads` give the same bits on one machine.
 *
 * Arrays that go in and come out are float in the order of the slot's shape; a backend chooses its own layout.
 * bfloat16: activations and the copies of weights that kernels read; masters, gradients of weights, momentum and
 * statistics are float. A learner belongs to one thread at a time. */
#ifndef FKT_NN_LEARNER_H
#define FKT_NN_LEARNER_H

#include "nn/engine.h"

struct fkt_learner_spec {
    uint32_t batch, height, width;
    enum fkt_precision precision;
    unsigned threads;    /* 0: all */
    float norm_momentum; /* stored = (1 - this) stored + this * batch's; PyTorch's default is 0.1 */
};

/* v = momentum v + (g + decay w); w -= rate (nesterov ? g + decay w + momentum v : v). On all parameters, as in
 * PyTorch's SGD; v starts at 0. */
struct fkt_sgd {
    float rate, momentum, decay;
    int nesterov;
};

/* A slot has four arrays. Mean and var of batch norms have only the first and the last. */
enum fkt_learned { FKT_WEIGHT = 0, FKT_GRADIENT, FKT_VELOCITY, FKT_AVERAGE };

struct fkt_learner_facts {
    uint64_t flops;        /* forward, of one image, counted as direct convolutions */
    uint64_t weight_bytes; /* masters, gradients, velocity, average, packed copies */
    uint64_t arena_bytes;  /* activations, their gradients, scratch */
    uint32_t convolutions, winograd,
        fused; /* primitives of the three directions; those as Winograd; steps saved by fusion */
};

/* What a backend implements; one learner is one `self`. */
struct fkt_learner_backend {
    const char *name;
    fkt_status (*make)(void **self, const struct fkt_net *net, const struct fkt_shape *shapes,
                       const struct fkt_learner_spec *spec, struct fkt_learner_facts *facts);
    void (*free)(void *self);
    fkt_status (*write)(void *self, enum fkt_learned what, uint32_t slot, const float *x);
    fkt_status (*read)(const void *self, enum fkt_learned what, uint32_t slot, float *x);
    fkt_status (*forward)(void *self, const float *in, float *out);
    fkt_status (*backward)(void *self, const float *dout);
    fkt_status (*step)(void *self, const struct fkt_sgd *sgd);
    fkt_status (*average)(void *self, float decay);
};
extern const struct fkt_learner_backend fkt_learner_ref;    /* plain loops: the definition */
extern const struct fkt_learner_backend fkt_learner_onednn; /* the fast implementation */

struct fkt_learner;
/* The network is borrowed. All arrays are zero, running variances one. FKT_E_ARG names the operation that cannot learn;
 * FKT_E_NOMEM names the batch, the memory it needs and the memory available. */
FKT_MUST_USE fkt_status fkt_learner_new(struct fkt_learner **out, const struct fkt_learner_backend *backend,
                                        const struct fkt_net *net, const struct fkt_learner_spec *spec);
void fkt_learner_free(struct fkt_learner *l);
const struct fkt_learner_facts *fkt_learner_facts(const struct fkt_learner *l);
int fkt_learner_is_parameter(const struct fkt_learner *l, uint32_t slot); /* 0: mean or var of a batch norm */

/* FKT_E_NUMERIC names the element that is not finite. Reading an average before there is one: FKT_E_STATE. */
FKT_MUST_USE fkt_status fkt_learner_write(struct fkt_learner *l, enum fkt_learned what, uint32_t slot, const float *x);
FKT_MUST_USE fkt_status fkt_learner_read(const struct fkt_learner *l, enum fkt_learned what, uint32_t slot, float *x);
/* in (batch, C, H, W) -> out: the last value, (batch, C', H', W'). Moves the running statistics. */
FKT_MUST_USE fkt_status fkt_learner_forward(struct fkt_learner *l, const float *in, float *out);
/* After a forward: the loss's gradient by `out` -> gradients of all parameters, which are replaced, not added to. */
FKT_MUST_USE fkt_status fkt_learner_backward(struct fkt_learner *l, const float *dout);
FKT_MUST_USE fkt_status fkt_learner_step(struct fkt_learner *l, const struct fkt_sgd *sgd); /* after a backward */
/* average = decay average + (1 - decay) weight, statistics included; decay 0 copies. The first call allocates it. */
FKT_MUST_USE fkt_status fkt_learner_average(struct fkt_learner *l, float decay);

#endif
