/* SPDX-License-Identifier: Apache-2.0 */
/* learner_case.h - a network with a learner, weights and a batch to learn from; and short words for building such
 * networks. */
#ifndef FKT_TEST_PUPIL_H
#define FKT_TEST_PUPIL_H

#include "base/rng.h"
#include "nn/learner.h"
#include "tests/support/build_net.h"

/* kernel, stride, pad, groups, bias */
#define CONV(x, from, to, ...) net_conv(n, x, from, to, (struct net_window){__VA_ARGS__})

static inline uint32_t net_bn(struct fkt_net *n, uint32_t x, uint32_t c)
{
    return net_norm(n, x, FKT_OP_BATCH_NORM, c, 1);
}
static inline uint32_t net_relu(struct fkt_net *n, uint32_t x) { return net_one(n, FKT_OP_RELU, x); }

static inline uint32_t net_pool(struct fkt_net *n, uint32_t x, uint32_t kernel, uint32_t stride, uint32_t pad)
{
    struct fkt_op op = net_op(FKT_OP_MAX_POOL, x);
    op.kernel = kernel;
    op.stride = stride;
    op.pad = pad;
    return fkt_net_add(n, &op);
}

static inline uint32_t net_end(struct fkt_net *n, uint32_t x, uint32_t c, uint32_t classes)
{
    return net_linear(n, net_one(n, FKT_OP_MEAN, x), c, classes);
}

static inline uint32_t net_block(struct fkt_net *n, uint32_t x, uint32_t from, uint32_t to, uint32_t stride)
{
    uint32_t y = net_relu(n, net_bn(n, CONV(x, from, to, 3, stride, 1, 1, 0), to));
    y = net_bn(n, CONV(y, to, to, 3, 1, 1, 1, 0), to);
    if (stride != 1 || from != to) x = net_bn(n, CONV(x, from, to, 1, stride, 0, 1, 0), to);
    return net_relu(n, net_sum(n, y, x));
}

static inline void net_resnet8(struct fkt_net *n)
{
    uint32_t x;
    fkt_net_init(n, 3);
    x = net_relu(n, net_bn(n, CONV(0, 3, 16, 3, 1, 1, 1, 0), 16));
    x = net_block(n, net_block(n, net_block(n, x, 16, 16, 1), 16, 32, 2), 32, 64, 2);
    net_end(n, x, 64, 10);
}

struct problem {
    const char *name;
    void (*build)(struct fkt_net *n);
    uint32_t height, width;
};

static inline float *random_numbers(size_t n, uint64_t seed, double size)
{
    struct fkt_rng r;
    float *x = NULL;
    CHECK_OK(fkt_alloc(&x, n));
    fkt_rng_init(&r, seed, 0);
    for (size_t i = 0; i < n; i++) x[i] = (float)((2 * fkt_rng_unit(&r) - 1) * size);
    return x;
}

/* A learner with a batch to learn from. */
struct learner_case {
    struct fkt_net net;
    struct fkt_learner *l;
    size_t n_in, n_out;
    float *in, *out, *dout;
};

static inline void learner_case_init(struct learner_case *p, const struct problem *k,
                                     const struct fkt_learner_backend *backend, uint32_t batch,
                                     enum fkt_precision precision, unsigned threads)
{
    struct fkt_learner_spec spec = {.batch = batch,
                                    .height = k->height,
                                    .width = k->width,
                                    .precision = precision,
                                    .threads = threads,
                                    .norm_momentum = 0.1F};
    struct fkt_shape *shapes = NULL, last;
    memset(p, 0, sizeof *p);
    k->build(&p->net);
    CHECK_OK(fkt_net_status(&p->net));
    CHECK_OK(fkt_alloc(&shapes, p->net.n_ops + 1));
    CHECK_OK(fkt_net_shapes(&p->net, k->height, k->width, shapes));
    last = shapes[p->net.n_ops];
    fkt_free(shapes);
    CHECK_OK(fkt_learner_new(&p->l, backend, &p->net, &spec));
    p->n_in = (size_t)batch * p->net.channels * k->height * k->width;
    p->n_out = (size_t)batch * last.c * last.h * last.w;
    p->in = random_numbers(p->n_in, 5, 1);
    p->dout = random_numbers(p->n_out, 6, 1.0 / batch);
    CHECK_OK(fkt_alloc(&p->out, p->n_out));
    for (uint32_t s = 0; s < p->net.n_slots; s++) {
        const struct fkt_slot *slot = &p->net.slot[s];
        size_t count = fkt_slot_count(slot);
        int near_one = slot->rank == 1 && strstr(slot->name[0], "weight");
        float *x = random_numbers(count, 100 + s, slot->rank > 1 ? sqrt(6.0 * slot->shape[0] / (double)count) : 0.3);
        for (size_t i = 0; near_one && i < count; i++) x[i] += 1;
        if (fkt_learner_is_parameter(p->l, s)) CHECK_OK(fkt_learner_write(p->l, FKT_WEIGHT, s, x));
        fkt_free(x);
    }
}

static inline void learner_case_release(struct learner_case *p)
{
    fkt_learner_free(p->l);
    fkt_net_clear(&p->net);
    fkt_free(p->in);
    fkt_free(p->out);
    fkt_free(p->dout);
}

/* One step of descent on its batch, plain or Nesterov's in turn, pulled to the average, and of the average, which
 * begins where the first step does. */
static inline void learner_case_step(struct learner_case *p, int i)
{
    const struct fkt_optimizer plain = {.rate = 0.05F, .momentum = 0.9F, .decay = 5e-4F, .pull = 0.5F},
                               nesterov = {.rate = 0.02F, .momentum = 0.9F, .decay = 5e-4F, .nesterov = 1, .pull = 2};
    CHECK_OK(fkt_learner_forward(p->l, p->in, p->out));
    CHECK_OK(fkt_learner_backward(p->l, p->dout));
    if (!i) CHECK_OK(fkt_learner_average(p->l, 0));
    CHECK_OK(fkt_learner_step(p->l, i % 2 ? &nesterov : &plain));
    CHECK_OK(fkt_learner_average(p->l, 0.9F));
}

#endif
