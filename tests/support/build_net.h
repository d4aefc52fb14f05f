/* SPDX-License-Identifier: Apache-2.0 */
/* build_net.h - short words for building small networks in tests; slots get names of their own ("7.weight"). */
#ifndef FKT_TEST_BUILD_NET_H
#define FKT_TEST_BUILD_NET_H

#include "nn/net.h"
#include "tests/support/check.h"

static inline uint32_t net_vector(struct fkt_net *n, const char *what, uint32_t length)
{
    char name[32];
    snprintf(name, sizeof name, "%zu.%s", n->n_ops, what);
    return fkt_net_slot(n, name, length, 0, 0, 0);
}

static inline struct fkt_op net_op(enum fkt_op_kind kind, uint32_t x)
{
    return (struct fkt_op){.kind = kind,
                           .in = {x, 0},
                           .stride = 1,
                           .groups = 1,
                           .weight = FKT_NO_SLOT,
                           .bias = FKT_NO_SLOT,
                           .mean = FKT_NO_SLOT,
                           .var = FKT_NO_SLOT};
}

struct net_window {
    uint32_t kernel, stride, pad, groups;
    int bias;
};

static inline uint32_t net_conv(struct fkt_net *n, uint32_t x, uint32_t from, uint32_t to, struct net_window w)
{
    struct fkt_op op = net_op(FKT_OP_CONV, x);
    char name[32];
    snprintf(name, sizeof name, "%zu.weight", n->n_ops);
    op.channels = to;
    op.kernel = w.kernel;
    op.stride = w.stride;
    op.pad = w.pad;
    op.groups = w.groups;
    op.weight = fkt_net_slot(n, name, to, from / w.groups, w.kernel, w.kernel);
    if (w.bias) op.bias = net_vector(n, "bias", to);
    return fkt_net_add(n, &op);
}

static inline uint32_t net_conv3(struct fkt_net *n, uint32_t x, uint32_t from, uint32_t to)
{
    return net_conv(n, x, from, to, (struct net_window){3, 1, 1, 1, 1});
}

/* With TensorFlow's "same" padding for maps of this side; no bias. */
static inline uint32_t net_same(struct fkt_net *n, uint32_t x, uint32_t from, uint32_t to, struct net_window w,
                                uint32_t side)
{
    const uint32_t y = net_conv(n, x, from, to, w);
    if (y) fkt_net_same(&n->op[y - 1], side);
    return y;
}

static inline uint32_t net_linear(struct fkt_net *n, uint32_t x, uint32_t from, uint32_t to)
{
    struct fkt_op op = net_op(FKT_OP_LINEAR, x);
    char name[32];
    snprintf(name, sizeof name, "%zu.weight", n->n_ops);
    op.channels = to;
    op.weight = fkt_net_slot(n, name, to, from, 0, 0);
    op.bias = net_vector(n, "bias", to);
    return fkt_net_add(n, &op);
}

static inline uint32_t net_norm(struct fkt_net *n, uint32_t x, enum fkt_op_kind kind, uint32_t channels,
                                uint32_t groups)
{
    struct fkt_op op = net_op(kind, x);
    op.groups = groups;
    op.value[0] = 1e-5f;
    op.weight = net_vector(n, "weight", channels);
    op.bias = net_vector(n, "bias", channels);
    if (kind == FKT_OP_BATCH_NORM) {
        op.mean = net_vector(n, "mean", channels);
        op.var = net_vector(n, "var", channels);
    }
    return fkt_net_add(n, &op);
}

static inline uint32_t net_attention(struct fkt_net *n, uint32_t x, uint32_t length)
{
    struct fkt_op op = net_op(FKT_OP_ATTENTION, x);
    op.groups = length;
    op.value[0] = 1e-15f;
    return fkt_net_add(n, &op);
}

static inline uint32_t net_one(struct fkt_net *n, enum fkt_op_kind kind, uint32_t x)
{
    return fkt_net_plain(n, kind, x, 0, 0);
}

static inline uint32_t net_sum(struct fkt_net *n, uint32_t a, uint32_t b)
{
    return fkt_net_plain(n, FKT_OP_ADD, a, b, 0);
}

#endif
