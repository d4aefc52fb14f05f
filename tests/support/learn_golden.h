/* SPDX-License-Identifier: Apache-2.0 */
/* learn_golden.h - steps of training beside PyTorch's with the same weights and images (oracle/learn_vectors.py).
 *
 * Relative error of a tensor x against PyTorch's y is |x - y| / |y|, Euclidean norms over the whole tensor. Tensors are
 * kept as sketches: the mean square of their sixteen random projections, which is |x - y|^2 on average. */
#ifndef FKT_TEST_LEARN_GOLDEN_H
#define FKT_TEST_LEARN_GOLDEN_H

#include "nn/learner.h"

#include "fedkt/learn.h"

enum { LEARN_STEPS = 20, LEARN_MOVED = 3, LEARN_CLASSES = 10 };

struct learn_case {
    const char *name; /* learn_NAME.safetensors of tests/vectors/nn */
    enum fkt_architecture architecture;
    enum fkt_stem stem;
    uint32_t batch, side;
    float rate;
    float moved; /* biases of norms, away from where ReLUs bend: m of the oracle */
};
extern const struct learn_case learn_resnet8, learn_resnet18_cifar, learn_resnet18_imagenet;

struct learn_golden {
    const struct learn_case *k;
    struct fkt_net net;
    struct fkt_learner *learner;
    struct fkt_safetensors *vectors;
    float *in, *buffer; /* a batch; room for the largest slot */
    int64_t images;     /* which images: T of the oracle */
    int64_t step;       /* the next one */
};
void learn_golden_open(struct learn_golden *g, const struct learn_case *k, const struct fkt_learner_backend *backend,
                       enum fkt_precision precision);
void learn_golden_release(struct learn_golden *g);

/* Forward and backward of the next step; the loss before its update. */
double learn_golden_forward(struct learn_golden *g, float *logits /* (batch, LEARN_CLASSES), may be NULL */);
void learn_golden_update(struct learn_golden *g);
double learn_golden_loss(const struct learn_golden *g, const char *role, size_t step); /* "loss", "double/loss" */

/* Relative error of what the learner holds for a slot against the sketch "ROLE/NAME". */
double learn_golden_error(struct learn_golden *g, enum fkt_learned what, uint32_t slot, const char *role);
/* The only number of "ROLE/NAME". */
double learn_golden_number(const struct learn_golden *g, uint32_t slot, const char *role);

#endif
