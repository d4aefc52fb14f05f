/* SPDX-License-Identifier: Apache-2.0 */
/* frozen_problems.h - networks to be differentiated by their input, for all backends: every kind of operation, values
 * with several readers, shapes that fit no block; and a learner for one of them. */
#ifndef FKT_TEST_FROZEN_PROBLEMS_H
#define FKT_TEST_FROZEN_PROBLEMS_H

#include "tests/support/learner_case.h"

static inline uint32_t net_affine(struct fkt_net *n, uint32_t x, float a, float b)
{
    struct fkt_op op = net_op(FKT_OP_AFFINE, x);
    op.value[0] = a;
    op.value[1] = b;
    return fkt_net_add(n, &op);
}

/* clamp, upsampling, SiLU, group norm, affine; a value that three operations read */
static inline void frozen_decoder(struct fkt_net *n)
{
    uint32_t x, y;
    fkt_net_init(n, 4);
    x = net_relu(n, CONV(fkt_net_plain(n, FKT_OP_SOFT_CLAMP, 0, 0, 3), 4, 20, 3, 1, 1, 1, 1));
    y = net_one(n, FKT_OP_SILU, net_norm(n, x, FKT_OP_GROUP_NORM, 20, 5));
    y = CONV(y, 20, 20, 3, 1, 1, 1, 1);
    x = net_relu(n, net_sum(n, net_sum(n, y, x), x));
    x = CONV(fkt_net_move(n, FKT_OP_UPSAMPLE, x, 2), 20, 20, 3, 1, 1, 1, 0);
    x = CONV(fkt_net_move(n, FKT_OP_UPSAMPLE, net_one(n, FKT_OP_SILU, x), 3), 20, 3, 3, 1, 1, 1, 1);
    net_affine(n, x, 2, -1);
}
/* batch norms as stored: bare, with a ReLU, with an addition, with both, on the input; pool, mean, linear */
static inline void frozen_classifier(struct fkt_net *n)
{
    uint32_t x, y;
    fkt_net_init(n, 24);
    x = net_bn(n, 0, 24);
    y = net_relu(n, net_bn(n, CONV(x, 24, 24, 3, 1, 1, 1, 0), 24));
    y = net_sum(n, net_bn(n, CONV(y, 24, 24, 3, 1, 1, 1, 0), 24), y);
    x = net_relu(n, net_sum(n, x, net_bn(n, CONV(y, 24, 24, 1, 1, 0, 1, 0), 24)));
    x = net_block(n, net_pool(n, net_sum(n, x, y), 3, 2, 1), 24, 40, 2);
    net_end(n, x, 40, 10);
}
/* what only moves numbers, gates and joins */
static inline void frozen_moves(struct fkt_net *n)
{
    uint32_t x, y;
    fkt_net_init(n, 6);
    x = CONV(0, 6, 24, 3, 1, 1, 1, 1);
    y = fkt_net_plain(n, FKT_OP_CONCAT, x, 0, 0);                          /* 30 */
    y = fkt_net_plain(n, FKT_OP_CONCAT, y, y, 0);                          /* 60 */
    y = fkt_net_move(n, FKT_OP_GROUP_MEAN, net_one(n, FKT_OP_GLU, y), 10); /* 30, then 10 */
    y = fkt_net_move(n, FKT_OP_REPEAT, y, 20);                             /* 20 */
    x = fkt_net_move(n, FKT_OP_UNSHUFFLE, fkt_net_move(n, FKT_OP_SHUFFLE, y, 2), 2);
    x = net_norm(n, net_sum(n, x, y), FKT_OP_RMS_NORM, 20, 1);
    net_linear(n, x, 20 * 4 * 6, 7);
}
/* wide enough for Winograd at a batch of 16 */
static inline void frozen_wide(struct fkt_net *n)
{
    uint32_t x;
    fkt_net_init(n, 48);
    x = net_relu(n, CONV(0, 48, 48, 3, 1, 1, 1, 1));
    net_sum(n, CONV(x, 48, 48, 3, 1, 1, 1, 0), x);
}
/* operations that the result does not depend on, and weights that two operations share */
static inline void frozen_shared(struct fkt_net *n)
{
    struct fkt_op op;
    uint32_t x;
    fkt_net_init(n, 8);
    x = CONV(0, 8, 8, 3, 1, 1, 1, 1);
    net_bn(n, CONV(x, 8, 16, 3, 1, 1, 1, 1), 16);
    net_one(n, FKT_OP_SILU, x);
    op = n->op[0];
    op.in[0] = net_relu(n, x);
    fkt_net_add(n, &op);
}
/* EfficientNet-Lite in small: resizing, "same" padding, ReLU6, depthwise windows of 3 and 5 with strides 1 and 2 */
static inline uint32_t frozen_bottleneck(struct fkt_net *n, uint32_t x, uint32_t from, uint32_t to, uint32_t kernel,
                                         uint32_t stride, uint32_t side)
{
    const uint32_t wide = 2 * from;
    uint32_t y = net_one(n, FKT_OP_RELU6, net_bn(n, CONV(x, from, wide, 1, 1, 0, 1, 0), wide));
    y = net_same(n, y, wide, wide, (struct net_window){kernel, stride, 0, wide, 0}, side);
    y = net_one(n, FKT_OP_RELU6, net_bn(n, y, wide));
    y = net_bn(n, CONV(y, wide, to, 1, 1, 0, 1, 0), to);
    return stride == 1 && from == to ? net_sum(n, y, x) : y;
}
static inline void frozen_lite(struct fkt_net *n)
{
    uint32_t x;
    fkt_net_init(n, 3);
    x = net_affine(n, fkt_net_move(n, FKT_OP_RESIZE, 0, 12), 4, 1); /* some numbers are above 6 */
    x = net_same(n, x, 3, 20, (struct net_window){3, 2, 0, 1, 1}, 12);
    x = frozen_bottleneck(n, net_one(n, FKT_OP_RELU6, x), 20, 20, 3, 1, 6);
    x = frozen_bottleneck(n, x, 20, 12, 3, 2, 6);
    x = frozen_bottleneck(n, fkt_net_move(n, FKT_OP_RESIZE, x, 8), 12, 12, 5, 1, 8);
    x = frozen_bottleneck(n, x, 12, 9, 5, 2, 8);
    x = net_one(n, FKT_OP_RELU6, net_sum(n, net_one(n, FKT_OP_RELU6, x), x));
    net_linear(n, net_one(n, FKT_OP_MEAN, x), 9, 10);
}
/* groups that are no single channels, of widths that fit no block; more than one result for each channel; zeros behind
 * the map alone; what is read twice */
static inline void frozen_grouped(struct fkt_net *n)
{
    uint32_t x, y;
    fkt_net_init(n, 6);
    x = CONV(0, 6, 18, 3, 1, 1, 3, 1);
    y = net_same(n, x, 18, 12, (struct net_window){5, 2, 0, 2, 1}, 8);
    y = net_relu(n, net_same(n, y, 12, 24, (struct net_window){3, 1, 0, 12, 0}, 4));
    y = net_same(n, y, 24, 32, (struct net_window){2, 1, 0, 1, 1}, 4);
    y = net_one(n, FKT_OP_RELU6, fkt_net_move(n, FKT_OP_GROUP_MEAN, y, 8));
    y = fkt_net_move(n, FKT_OP_REPEAT, y, 24);
    y = net_sum(n, CONV(y, 24, 24, 1, 1, 0, 6, 1), CONV(y, 24, 24, 3, 1, 1, 24, 1));
    y = net_sum(n, y, net_conv(n, x, 18, 24, (struct net_window){2, 2, 0, 1, 0}));
    net_sum(n, net_one(n, FKT_OP_RELU6, net_affine(n, y, 3, 3)), fkt_net_move(n, FKT_OP_RESIZE, y, 4));
}
/* attention: the reference alone has it */
static inline void frozen_groups(struct fkt_net *n)
{
    uint32_t x;
    fkt_net_init(n, 6);
    x = CONV(0, 6, 18, 3, 1, 1, 3, 1);
    x = net_attention(n, CONV(x, 18, 18, 3, 1, 1, 18, 0), 3);
    net_sum(n, x, 0);
}

static const struct problem frozen_problems[] = {
    {"decoder", frozen_decoder, 5, 3}, {"classifier", frozen_classifier, 9, 7}, {"moves", frozen_moves, 4, 6},
    {"wide", frozen_wide, 11, 10},     {"shared", frozen_shared, 6, 6},         {"lite", frozen_lite, 10, 7},
    {"grouped", frozen_grouped, 8, 8},
};
enum { FROZEN_PROBLEMS = sizeof frozen_problems / sizeof *frozen_problems };

/* A frozen learner with weights; release with learner_case_release. *din: as in, freed by the caller. */
static inline void frozen_case_init(struct learner_case *p, const struct problem *k,
                                    const struct fkt_learner_backend *backend, uint32_t batch,
                                    enum fkt_precision precision, unsigned threads)
{
    const struct fkt_learner_spec spec = {.batch = batch,
                                          .height = k->height,
                                          .width = k->width,
                                          .precision = precision,
                                          .threads = threads,
                                          .frozen = 1};
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
    p->in = random_numbers(p->n_in, 5, 2);
    p->dout = random_numbers(p->n_out, 6, 1);
    CHECK_OK(fkt_alloc(&p->out, p->n_out));
    for (uint32_t s = 0; s < p->net.n_slots; s++) {
        const struct fkt_slot *slot = &p->net.slot[s];
        const size_t count = fkt_slot_count(slot);
        const int near_one = slot->rank == 1 && (strstr(slot->name[0], "weight") || strstr(slot->name[0], "var"));
        float *x = random_numbers(count, 100 + s, slot->rank > 1 ? sqrt(6.0 * slot->shape[0] / (double)count) : 0.3);
        for (size_t i = 0; near_one && i < count; i++) x[i] += 1;
        CHECK_OK(fkt_learner_write(p->l, FKT_WEIGHT, s, x));
        fkt_free(x);
    }
}

/* One forward and one backward; the gradient by the input, freed by the caller. */
static inline float *frozen_case_run(struct learner_case *p)
{
    float *din = NULL;
    CHECK_OK(fkt_alloc(&din, p->n_in));
    for (size_t i = 0; i < p->n_in; i++) din[i] = NAN;
    CHECK_OK(fkt_learner_forward(p->l, p->in, p->out));
    CHECK_OK(fkt_learner_backward_input(p->l, p->dout, din));
    return din;
}

#endif
