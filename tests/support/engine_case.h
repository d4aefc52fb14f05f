/* SPDX-License-Identifier: Apache-2.0 */
/* engine_case.h - a network of net_problems.h with random weights and an engine, and a backend held against the plain
 * loops of nn/ref/ on it. */
#ifndef FKT_TEST_ENGINE_CASE_H
#define FKT_TEST_ENGINE_CASE_H

#include "nn/engine.h"
#include "tests/support/net_problems.h"
#include "tests/support/random_weights.h"

static inline float *engine_numbers(size_t n, uint64_t seed)
{
    struct fkt_rng r;
    float *x = NULL;
    CHECK_OK(fkt_alloc(&x, n));
    fkt_rng_init(&r, seed, 1);
    for (size_t i = 0; i < n; i++) x[i] = (float)(2 * fkt_rng_unit(&r) - 1);
    return x;
}

struct engine_case {
    struct fkt_net net;
    struct random_weights w;
    struct fkt_engine *e;
    size_t each_in, each_out;
};

/* The problem gives the spec its sides. */
static inline void engine_case_init(struct engine_case *b, const struct fkt_backend *backend,
                                    const struct net_problem *p, struct fkt_engine_spec spec)
{
    struct fkt_shape s;
    memset(b, 0, sizeof *b);
    p->build(&b->net);
    CHECK_OK(fkt_net_status(&b->net));
    random_weights_init(&b->w, &b->net, 7);
    spec.height = p->height;
    spec.width = p->width;
    CHECK_OK(fkt_engine_new(&b->e, backend, &b->net, b->w.bound, &spec));
    s = fkt_engine_output(b->e);
    b->each_in = (size_t)b->net.channels * p->height * p->width;
    b->each_out = (size_t)s.c * s.h * s.w;
}

static inline void engine_case_clear(struct engine_case *b)
{
    fkt_engine_free(b->e);
    random_weights_release(&b->w);
    fkt_net_clear(&b->net);
}

/* The largest difference over the largest number; NaN stays. */
static inline double engine_relative(const float *got, const float *want, size_t n)
{
    double worst = 0, largest = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)got[i] - (double)want[i]);
        if (!(d <= worst)) worst = d;
        if (fabsf(want[i]) > largest) largest = fabsf(want[i]);
    }
    CHECK(largest > 1e-3);
    return worst / largest;
}

/* The same of both backends on n images; the plain loops take images one by one anyway. */
static inline double engine_difference(const struct fkt_backend *backend, const struct net_problem *p,
                                       struct fkt_engine_spec spec, size_t n)
{
    struct engine_case fast, plain;
    float *in, *got = NULL, *want = NULL;
    double d;
    engine_case_init(&fast, backend, p, spec);
    spec.batch = 1;
    engine_case_init(&plain, &fkt_backend_ref, p, spec);
    in = engine_numbers(n * fast.each_in, 11);
    CHECK_OK(fkt_alloc(&got, n * fast.each_out));
    CHECK_OK(fkt_alloc(&want, n * fast.each_out));
    CHECK_OK(fkt_engine_run(fast.e, in, n, got));
    CHECK_OK(fkt_engine_run(plain.e, in, n, want));
    d = engine_relative(got, want, n * fast.each_out);
    engine_case_clear(&fast);
    engine_case_clear(&plain);
    fkt_free(in);
    fkt_free(got);
    fkt_free(want);
    return d;
}

#endif
