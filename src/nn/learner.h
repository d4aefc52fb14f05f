/* SPDX-License-Identifier: Apache-2.0 */
/* learner.h - a network with a backward pass: one that learns (batch statistics, gradients of its weights, a step of an
 * optimiser), or a frozen one that is differentiated by its input.
 *
 * It takes the same list of operations as engine.h. Learning knows these kinds: CONV (one group), LINEAR, RELU,
 * BATCH_NORM, ADD, MAX_POOL, MEAN. A batch norm normalises by the statistics of its batch and moves its stored mean and
 * var towards them (the stored variance is the unbiased one, n/(n-1), as in PyTorch): those two slots are not
 * parameters. A frozen network may have further kinds, as its backend says; its batch norms use what is stored, its
 * weights have no gradients, and weights may be shared. One batch size per learner. The same calls with the same
 * `threads` give the same bits on one machine.
 *
 * Arrays that go in and come out are float in the order of the slot's shape; a backend chooses its own layout.
 * bfloat16: activations, their gradients and the copies of weights that kernels read; masters, gradients of weights,
 * moments of the optimiser and statistics are float. A learner belongs to one thread at a time. */
#ifndef FKT_NN_LEARNER_H
#define FKT_NN_LEARNER_H

#include "nn/engine.h"
#include "nn/loss.h"

struct fkt_learner_spec {
    uint32_t batch, height, width;
    enum fkt_precision precision;
    unsigned threads;    /* 0: all */
    float norm_momentum; /* stored = (1 - this) stored + this * batch's; PyTorch's default is 0.1 */
    int frozen;          /* 1: weights and statistics are fixed, and backward gives the gradient by the input */
    int device;          /* number of the card; processors ignore it */
};

/* On all parameters, with g = gradient + decay w, as PyTorch's SGD and Adam:
 *   SGD   v = momentum v + g; w -= rate (nesterov ? g + momentum v : v); v starts at 0. With a pull the loss has
 *         (pull / 2) |w - average|^2 too: g += pull (w - average), by what fkt_learner_average or a write left there
 *   Adam  m = beta1 m + (1 - beta1) g; s = beta2 s + (1 - beta2) g^2; both start at 0
 *         w -= rate m / (1 - beta1^step) / (sqrt(s / (1 - beta2^step)) + epsilon) */
enum fkt_optimizer_kind { FKT_OPTIMIZER_SGD = 0, FKT_OPTIMIZER_ADAM };
struct fkt_optimizer {
    enum fkt_optimizer_kind kind;
    float rate, decay;
    float momentum; /* SGD, and the next two */
    int nesterov;
    float pull;
    float beta1, beta2, epsilon; /* Adam, and the next */
    uint64_t step;               /* counts from 1 */
};
/* FKT_E_ARG names what is out of range. */
FKT_MUST_USE fkt_status fkt_optimizer_check(const struct fkt_optimizer *o);
/* One step of Adam on plain arrays of n numbers; m and v are zero before the first. Double inside. */
void fkt_adam(float *x, const float *g, float *m, float *v, size_t n, const struct fkt_optimizer *o);

/* The arrays of a slot. VELOCITY is SGD's v or Adam's m, SECOND is Adam's s. Mean and var of batch norms have WEIGHT
 * and AVERAGE alone, a frozen network WEIGHT alone. */
enum fkt_learned { FKT_WEIGHT = 0, FKT_GRADIENT, FKT_VELOCITY, FKT_AVERAGE, FKT_SECOND };
enum { FKT_LEARNED_KINDS = FKT_SECOND + 1 };

/* Steps that need nothing from the host. One image of a batch: out(c, y, x) = image(y + top, x' + left, c) with x' =
 * W-1-x when flipped, else x; outside the image 0 (as classifier/augment.h). */
struct fkt_view_at {
    uint32_t index; /* of the image among those held */
    int16_t top, left;
    uint16_t flip;
};
/* Images that a learner holds; copied. */
struct fkt_held {
    const uint8_t *rgb;    /* (n, H, W, 3) */
    const uint32_t *label; /* (n) */
    const float
        *teacher; /* (n, classes) a teacher's logits of the whole image, the same for each of its views; NULL: none */
    size_t n;
    const float (*value)[256]; /* value[c][v]: what value v of colour c becomes */
};
struct fkt_planned_step {
    struct fkt_optimizer optimizer;
    float average; /* decay of the average that is taken after the step; negative: none */
};
struct fkt_epoch_steps {
    uint64_t steps;
    const struct fkt_view_at *view;      /* (steps, batch) */
    const struct fkt_planned_step *step; /* (steps) */
    struct fkt_loss loss;                /* a teacher's share needs its logits beside the images */
    double loss_before; /* the sum of losses begins with it: an epoch that is continued has the bits of one that ran */
};

struct fkt_learner_facts {
    uint64_t flops;        /* forward, of one image, counted as direct convolutions */
    uint64_t weight_bytes; /* masters, gradients, moments of the optimiser, average, packed copies */
    uint64_t arena_bytes;  /* activations, their gradients, scratch */
    uint32_t convolutions, winograd,
        fused; /* primitives of the three directions; those as Winograd; steps saved by fusion */
};

/* What a backend implements; one learner is one `self`. */
struct fkt_learner_backend {
    const char *name;
    int own_memory; /* 1: it learns in a card's memory, and `make` refuses what does not fit; 0: in the machine's */
    fkt_status (*make)(void **self, const struct fkt_net *net, const struct fkt_shape *shapes,
                       const struct fkt_learner_spec *spec, struct fkt_learner_facts *facts);
    void (*free)(void *self);
    fkt_status (*write)(void *self, enum fkt_learned what, uint32_t slot, const float *x);
    fkt_status (*read)(const void *self, enum fkt_learned what, uint32_t slot, float *x);
    fkt_status (*forward)(void *self, const float *in, float *out);
    fkt_status (*backward)(void *self, const float *dout, float *din /* NULL unless frozen */);
    fkt_status (*step)(void *self, const struct fkt_optimizer *o);
    fkt_status (*average)(void *self, float decay);
    /* All four or none; arguments are checked by learner.c and copied. Every other function waits for queued steps. */
    fkt_status (*hold)(void *self, const struct fkt_held *images);
    fkt_status (*plan_epoch)(void *self, const struct fkt_epoch_steps *e);
    fkt_status (*train)(void *self, uint64_t steps);
    fkt_status (*collect)(void *self, double *loss, uint64_t *hits, uint64_t *first_bad);
};
extern const struct fkt_learner_backend fkt_learner_ref;    /* plain loops: the definition */
extern const struct fkt_learner_backend fkt_learner_onednn; /* the fast implementation */
extern const struct fkt_learner_backend fkt_learner_cuda;   /* NVIDIA cards; in a build with CUDA alone */

struct fkt_learner;
/* The network is borrowed. All arrays are zero, running variances one. FKT_E_ARG names the operation that cannot learn;
 * FKT_E_NOMEM names the batch, the memory it needs and the memory available. */
FKT_MUST_USE fkt_status fkt_learner_new(struct fkt_learner **out, const struct fkt_learner_backend *backend,
                                        const struct fkt_net *net, const struct fkt_learner_spec *spec);
void fkt_learner_free(struct fkt_learner *l);
const struct fkt_learner_facts *fkt_learner_facts(const struct fkt_learner *l);
int fkt_learner_is_parameter(const struct fkt_learner *l, uint32_t slot); /* 0: mean or var of a batch norm */

/* FKT_E_NUMERIC names the element that is not finite, or not a variance where a frozen network needs one. Reading an
 * average or Adam's second moment before there is one: FKT_E_STATE. */
FKT_MUST_USE fkt_status fkt_learner_write(struct fkt_learner *l, enum fkt_learned what, uint32_t slot, const float *x);
FKT_MUST_USE fkt_status fkt_learner_read(const struct fkt_learner *l, enum fkt_learned what, uint32_t slot, float *x);
/* Slots first .. first + slots - 1 from the weights of `part`, a network that fkt_net_append put there. */
FKT_MUST_USE fkt_status fkt_learner_load(struct fkt_learner *l, uint32_t first, const struct fkt_net *part,
                                         uint32_t slots, const struct fkt_weights *w);
/* in (batch, C, H, W) -> out: the last value, (batch, C', H', W'). Moves the running statistics, unless frozen. */
FKT_MUST_USE fkt_status fkt_learner_forward(struct fkt_learner *l, const float *in, float *out);
/* After a forward: the loss's gradient by `out` -> gradients of all parameters, which are replaced, not added to. */
FKT_MUST_USE fkt_status fkt_learner_backward(struct fkt_learner *l, const float *dout);
/* The same for a frozen network: din (batch, C, H, W), the gradient by `in`. */
FKT_MUST_USE fkt_status fkt_learner_backward_input(struct fkt_learner *l, const float *dout, float *din);
/* After a backward. FKT_E_STATE: it pulls, and there is no average. */
FKT_MUST_USE fkt_status fkt_learner_step(struct fkt_learner *l, const struct fkt_optimizer *o);
/* average = decay average + (1 - decay) weight, statistics included; decay 0 copies. The first call allocates it. */
FKT_MUST_USE fkt_status fkt_learner_average(struct fkt_learner *l, float decay);

/* Steps without the host: the same numbers as forward, fkt_loss_softmax, backward, step and average one by one. The
 * network takes 3 channels and gives (classes, 1, 1). */
int fkt_learner_holds(const struct fkt_learner *l); /* 1: the backend has the four calls below, and is not frozen */
/* Replaces what was held. FKT_E_ARG names a label beyond the classes, FKT_E_NUMERIC the first of the teacher's numbers
 * that is not finite. */
FKT_MUST_USE fkt_status fkt_learner_hold(struct fkt_learner *l, const struct fkt_held *images);
/* Copies the plan; the sums of fkt_learner_collect begin with loss_before and 0 hits. FKT_E_ARG names what is out of
 * range. */
FKT_MUST_USE fkt_status fkt_learner_plan_epoch(struct fkt_learner *l, const struct fkt_epoch_steps *e);
FKT_MUST_USE fkt_status fkt_learner_train(struct fkt_learner *l,
                                          uint64_t steps); /* queues the next steps of the plan */
/* Waits for all queued steps. *loss: loss_before and the steps' losses, added one by one in order; *hits: correct
 * answers since the plan. *first_bad: the first step (from 0) whose logits are not finite, UINT64_MAX: none; after one
 * the loss is NaN and the arrays are undefined. */
FKT_MUST_USE fkt_status fkt_learner_collect(struct fkt_learner *l, double *loss, uint64_t *hits, uint64_t *first_bad);

#endif
