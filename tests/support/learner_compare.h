/* SPDX-License-Identifier: Apache-2.0 */
/* learner_compare.h - networks with every operation that learns and every pattern that becomes one step, in shapes that
 * fit no block; and learners compared array by array: |got - want| / |want| (Euclidean). */
#ifndef FKT_TEST_LEARNER_COMPARE_H
#define FKT_TEST_LEARNER_COMPARE_H

#include "tests/support/learner_case.h"

static inline void conv_bias(struct fkt_net *n) /* three channels in, odd channels out, windows of 1, 3 and 5 */
{
    uint32_t x;
    fkt_net_init(n, 3);
    x = net_relu(n, CONV(0, 3, 24, 3, 1, 1, 1, 1));
    x = net_relu(n, CONV(x, 24, 10, 5, 2, 2, 1, 1));
    CONV(x, 10, 33, 1, 1, 0, 1, 1);
}
static inline void conv_wide(struct fkt_net *n) /* Winograd from batch 16 on, with and without bias, tiles cut off */
{
    uint32_t x;
    fkt_net_init(n, 48);
    x = net_relu(n, CONV(0, 48, 48, 3, 1, 1, 1, 1));
    CONV(x, 48, 64, 3, 1, 1, 1, 0);
}
static inline void linear(struct fkt_net *n) /* from maps, and from one pixel */
{
    uint32_t x;
    fkt_net_init(n, 5);
    x = net_relu(n, net_linear(n, 0, 5 * 8 * 6, 40));
    net_linear(n, x, 40, 10);
}
static inline void norms(struct fkt_net *n) /* bare, with a ReLU, with an addition, with both; on the input too */
{
    uint32_t x, y;
    fkt_net_init(n, 24);
    x = net_bn(n, 0, 24);
    y = net_relu(n, net_bn(n, CONV(x, 24, 24, 3, 1, 1, 1, 0), 24));
    y = net_sum(n, net_bn(n, CONV(y, 24, 24, 3, 1, 1, 1, 0), 24), y);
    x = net_relu(n, net_sum(n, x, net_bn(n, CONV(y, 24, 24, 1, 1, 0, 1, 0), 24)));
    net_bn(n, net_relu(n, net_sum(n, x, y)), 24);
}
static inline void
sums(struct fkt_net *n) /* many readers, a value with itself, ReLU of a sum, of a ReLU, of the input */
{
    uint32_t x, y, z;
    fkt_net_init(n, 16);
    x = CONV(net_relu(n, 0), 16, 16, 3, 1, 1, 1, 1);
    y = net_relu(n, x);
    z = net_sum(n, net_relu(n, y), net_sum(n, x, x));
    z = net_relu(n, net_sum(n, net_sum(n, z, y), x));
    y = CONV(z, 16, 16, 1, 1, 0, 1, 0);
    net_sum(n, net_sum(n, y, z), net_sum(n, z, 0));
}
static inline void norms_meet(struct fkt_net *n) /* two norms in one addition; a norm whose result has two readers */
{
    uint32_t a, b, c;
    fkt_net_init(n, 20);
    a = net_bn(n, CONV(0, 20, 40, 3, 2, 1, 1, 0), 40);
    b = net_bn(n, CONV(0, 20, 40, 1, 2, 0, 1, 0), 40);
    c = net_relu(n, net_sum(n, a, b));
    a = net_bn(n, c, 40);
    net_sum(n, net_relu(n, a), net_sum(n, a, c));
}
static inline void pools(struct fkt_net *n)
{
    uint32_t x;
    fkt_net_init(n, 3);
    x = net_pool(n, net_relu(n, CONV(0, 3, 20, 3, 1, 1, 1, 1)), 3, 2, 1);
    x = net_sum(n, x, net_pool(n, x, 3, 1, 1));
    net_end(n, net_pool(n, net_bn(n, x, 20), 2, 2, 0), 20, 10);
}
static inline void idle(struct fkt_net *n) /* operations that the result does not depend on */
{
    uint32_t x;
    fkt_net_init(n, 8);
    x = CONV(0, 8, 16, 3, 1, 1, 1, 1);
    net_bn(n, CONV(x, 16, 16, 3, 1, 1, 1, 1), 16);
    net_pool(n, 0, 2, 2, 0);
    CONV(x, 16, 8, 1, 1, 0, 1, 0);
}

static inline void imagenet(struct fkt_net *n) /* the large stem and a hundred classes */
{
    uint32_t x;
    fkt_net_init(n, 3);
    x = net_relu(n, net_bn(n, CONV(0, 3, 32, 7, 2, 3, 1, 0), 32));
    x = net_pool(n, x, 3, 2, 1);
    x = net_block(n, net_block(n, x, 32, 32, 1), 32, 48, 2);
    net_end(n, x, 48, 100);
}

static const struct problem problems[] = {
    {"conv_bias", conv_bias, 9, 12},
    {"conv_wide", conv_wide, 11, 10},
    {"linear", linear, 8, 6},
    {"norms", norms, 7, 5},
    {"sums", sums, 6, 7},
    {"norms_meet", norms_meet, 8, 9},
    {"pools", pools, 11, 9},
    {"idle", idle, 6, 6},
    {"resnet8", net_resnet8, 12, 12},
    {"imagenet", imagenet, 24, 19},
};
enum { PROBLEMS = sizeof problems / sizeof *problems };

static inline double distance(const float *got, const float *want, size_t n)
{
    double d = 0, w = 0;
    for (size_t i = 0; i < n; i++) {
        d += ((double)got[i] - (double)want[i]) * ((double)got[i] - (double)want[i]);
        w += (double)want[i] * (double)want[i];
    }
    return sqrt(d) / (sqrt(w) + 1e-7);
}

static inline float *array_of(const struct learner_case *p, enum fkt_learned what, uint32_t slot)
{
    float *x = NULL;
    CHECK_OK(fkt_alloc(&x, fkt_slot_count(&p->net.slot[slot])));
    CHECK_OK(fkt_learner_read(p->l, what, slot, x));
    return x;
}

/* All arrays of one kind: as near to `want` as tolerance says, or three times as far more as `other` is. */
static inline void compare(const struct learner_case *got, const struct learner_case *want,
                           const struct learner_case *other, enum fkt_learned what, double tolerance, const char *where)
{
    for (uint32_t s = 0; s < got->net.n_slots; s++) {
        size_t n = fkt_slot_count(&got->net.slot[s]);
        float *a, *b, *c;
        double d, allowed = tolerance;
        if (!fkt_learner_is_parameter(got->l, s) && what != FKT_WEIGHT && what != FKT_AVERAGE) continue;
        a = array_of(got, what, s);
        b = array_of(want, what, s);
        c = other ? array_of(other, what, s) : NULL;
        d = distance(a, b, n);
        if (c) allowed += 3 * distance(c, b, n);
        if (!(d <= allowed))
            fail_msg("%s: array %d of '%s' differs by %.3g, allowed %.3g", where, (int)what, got->net.slot[s].name[0],
                     d, allowed);
        fkt_free(a);
        fkt_free(b);
        fkt_free(c);
    }
}

/* Gradients are replaced, not added to, those of operations that nothing depends on too. */
static inline void spoil_gradients(struct learner_case *p)
{
    for (uint32_t s = 0; s < p->net.n_slots; s++) {
        float *x;
        if (!fkt_learner_is_parameter(p->l, s)) continue;
        x = random_numbers(fkt_slot_count(&p->net.slot[s]), 7 + s, 1);
        CHECK_OK(fkt_learner_write(p->l, FKT_GRADIENT, s, x));
        fkt_free(x);
    }
}

#endif
