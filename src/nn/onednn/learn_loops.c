/* SPDX-License-Identifier: Apache-2.0 */
/* learn_loops.c - operations of a learner besides convolutions and norms: sums with a ReLU, their gradients, means of
 * maps, the step of gradient descent. One pass each, on the OpenMP team; each number is computed by itself or in a
 * fixed order, so that the bits do not depend on the number of threads.
 *
 * Cost: memory. A step of gradient descent reads three numbers and writes two for each parameter: of ResNet-18's 11
 * million, 220 MB. */
#include "nn/onednn/lanes.h"
#include "nn/onednn/learn.h"
#include "nn/onednn/omp_team.h"

#include <math.h>

enum { GRAIN = 4096, EIGHT = 8 }; /* maps and arrays are whole blocks: multiples of 8 */

struct loop {
    const void *in[3];
    void *out;
    size_t n;
    int relu, half;
    const struct fkt_field *field, *to;
};

/* in[0] + in[1] (if present), followed by a ReLU of itself or masked by in[2] (if present). */
FKT_ALWAYS void sum_part(const struct loop *k, size_t from, size_t to, int half)
{
    for (size_t i = from; i < to; i += EIGHT) {
        fkt_f8 a, b;
        fkt_f8_load(&a, k->in[0], i, half);
        if (k->in[1]) {
            fkt_f8_load(&b, k->in[1], i, half);
            a += b;
        }
        b = a;
        if (k->in[2]) fkt_f8_load(&b, k->in[2], i, half);
        if (k->relu) fkt_f8_mask(&a, &b);
        fkt_f8_store(k->out, i, &a, half);
    }
}

FKT_WIDE static void sum(void *ctx, unsigned member, unsigned members)
{
    const struct loop k = *(const struct loop *)ctx;
    size_t from, to;
    fkt_team_part(k.n, GRAIN, member, members, &from, &to);
    if (k.half) sum_part(&k, from, to, 1);
    else sum_part(&k, from, to, 0);
}

void fkt_loop_sum(void *y, const void *a, const void *b, int relu, size_t n, int half, unsigned threads)
{
    struct loop k = {.in = {a, b}, .out = y, .n = n, .relu = relu, .half = half};
    fkt_team_run(threads, sum, &k);
}

void fkt_loop_mask(void *d, const void *g, const void *h, const void *y, size_t n, int half, unsigned threads)
{
    struct loop k = {.in = {g, h, y}, .out = d, .n = n, .relu = y != NULL, .half = half};
    fkt_team_run(threads, sum, &k);
}

/* Item: eight lanes of one map. The offset of item i in maps of the field; in maps of one pixel it is 8 i. */
FKT_ALWAYS size_t item_at(const struct fkt_field *f, size_t i)
{
    size_t eights = f->lanes / EIGHT, map = i / eights;
    return map / f->blocks * f->image + map % f->blocks * f->block + i % eights * EIGHT;
}

FKT_ALWAYS void mean_part(const struct loop *k, size_t from, size_t to, int half)
{
    const struct fkt_field *f = k->field;
    for (size_t i = from; i < to; i++) {
        size_t at = item_at(f, i);
        fkt_f8 x, sum = {0};
        for (size_t p = 0; p < f->pixels; p++) {
            fkt_f8_load(&x, k->in[0], at + p * f->pixel, half);
            sum += x;
        }
        sum *= 1 / (float)f->pixels;
        fkt_f8_store(k->out, i * EIGHT, &sum, half);
    }
}

FKT_ALWAYS void spread_part(const struct loop *k, size_t from, size_t to, int half)
{
    const struct fkt_field *f = k->field;
    for (size_t i = from; i < to; i++) {
        size_t at = item_at(f, i);
        fkt_f8 x;
        fkt_f8_load(&x, k->in[0], i * EIGHT, half);
        x *= 1 / (float)f->pixels;
        for (size_t p = 0; p < f->pixels; p++) fkt_f8_store(k->out, at + p * f->pixel, &x, half);
    }
}

FKT_WIDE static void mean(void *ctx, unsigned member, unsigned members)
{
    const struct loop k = *(const struct loop *)ctx;
    size_t from, to;
    fkt_team_part(k.n, 1, member, members, &from, &to);
    if (k.half) mean_part(&k, from, to, 1);
    else mean_part(&k, from, to, 0);
}

FKT_WIDE static void spread(void *ctx, unsigned member, unsigned members)
{
    const struct loop k = *(const struct loop *)ctx;
    size_t from, to;
    fkt_team_part(k.n, 1, member, members, &from, &to);
    if (k.half) spread_part(&k, from, to, 1);
    else spread_part(&k, from, to, 0);
}

void fkt_loop_mean(void *y, const void *x, const struct fkt_field *f, unsigned threads)
{
    struct loop k = {.in = {x}, .out = y, .half = f->half, .field = f};
    k.n = f->images * f->blocks * f->lanes / EIGHT;
    fkt_team_run(threads, mean, &k);
}

void fkt_loop_mean_back(void *d, const void *g, const struct fkt_field *f, unsigned threads)
{
    struct loop k = {.in = {g}, .out = d, .half = f->half, .field = f};
    k.n = f->images * f->blocks * f->lanes / EIGHT;
    fkt_team_run(threads, spread, &k);
}

FKT_ALWAYS void mark_part(const struct loop *k, size_t from, size_t to, int half)
{
    const struct fkt_field *f = k->field;
    for (size_t i = from; i < to; i++) {
        size_t at = item_at(f, i);
        fkt_i8 seen = {0}, bits;
        fkt_f8 x;
        for (size_t p = 0; p < f->pixels; p++) {
            fkt_f8_load(&x, k->in[0], at + p * f->pixel, half);
            seen |= x != x;
        }
        at = item_at(k->to, i);
        fkt_f8_load(&x, k->out, at, half);
        memcpy(&bits, &x, sizeof bits);
        bits |= seen; /* all ones are a NaN */
        memcpy(&x, &bits, sizeof x);
        fkt_f8_store(k->out, at, &x, half);
    }
}

FKT_WIDE static void mark(void *ctx, unsigned member, unsigned members)
{
    const struct loop k = *(const struct loop *)ctx;
    size_t from, to;
    fkt_team_part(k.n, 1, member, members, &from, &to);
    if (k.half) mark_part(&k, from, to, 1);
    else mark_part(&k, from, to, 0);
}

void fkt_loop_mark(void *y, const struct fkt_field *to, const void *x, const struct fkt_field *f, unsigned threads)
{
    struct loop k = {.in = {x}, .out = y, .half = f->half, .field = f, .to = to};
    k.n = f->images * f->blocks * f->lanes / EIGHT;
    fkt_team_run(threads, mark, &k);
}

struct descent {
    float *w, *v, *s;
    const float *g, *a; /* a: what weights are pulled to; NULL: nothing */
    size_t n;
    struct fkt_optimizer k;
};

FKT_WIDE static void descend(void *ctx, unsigned member, unsigned members)
{
    const struct descent *d = ctx;
    const float rate = d->k.rate, momentum = d->k.momentum, decay = d->k.decay, pull = d->k.pull;
    size_t from, to;
    fkt_team_part(d->n, GRAIN, member, members, &from, &to);
    for (size_t i = from; i < to; i += EIGHT) {
        fkt_f8 w, v, g, a;
        fkt_f8_load(&w, d->w, i, 0);
        fkt_f8_load(&v, d->v, i, 0);
        fkt_f8_load(&g, d->g, i, 0);
        g += decay * w;
        if (d->a) {
            fkt_f8_load(&a, d->a, i, 0);
            g += pull * (w - a);
        }
        v = momentum * v + g;
        fkt_f8_store(d->v, i, &v, 0);
        if (d->k.nesterov) v = g + momentum * v;
        w -= rate * v;
        fkt_f8_store(d->w, i, &w, 0);
    }
}

/* The two corrections and the complements of the betas come from double: 1 - beta2 would lose digits in float. */
FKT_WIDE static void descend_adam(void *ctx, unsigned member, unsigned members)
{
    const struct descent *d = ctx;
    const double b1 = (double)d->k.beta1, b2 = (double)d->k.beta2, t = (double)d->k.step;
    const float decay = d->k.decay, keep1 = d->k.beta1, keep2 = d->k.beta2, rest1 = (float)(1 - b1),
                rest2 = (float)(1 - b2), epsilon = d->k.epsilon, rate = (float)((double)d->k.rate / (1 - pow(b1, t))),
                root = (float)(1 / sqrt(1 - pow(b2, t)));
    size_t from, to;
    fkt_team_part(d->n, GRAIN, member, members, &from, &to);
    for (size_t i = from; i < to; i += EIGHT) {
        fkt_f8 w, v, s, g, below;
        fkt_f8_load(&w, d->w, i, 0);
        fkt_f8_load(&v, d->v, i, 0);
        fkt_f8_load(&s, d->s, i, 0);
        fkt_f8_load(&g, d->g, i, 0);
        g += decay * w;
        v = keep1 * v + rest1 * g;
        s = keep2 * s + rest2 * g * g;
        for (int j = 0; j < EIGHT; j++) below[j] = sqrtf(s[j]);
        w -= rate * v / (below * root + epsilon);
        fkt_f8_store(d->v, i, &v, 0);
        fkt_f8_store(d->s, i, &s, 0);
        fkt_f8_store(d->w, i, &w, 0);
    }
}

void fkt_loop_step(const struct fkt_learned_blocks *b, size_t n, const struct fkt_optimizer *k, unsigned threads)
{
    struct descent d = {.w = b->weight, .v = b->velocity, .s = b->second, .g = b->gradient, .n = n, .k = *k};
    d.a = k->pull > 0 ? b->average : NULL;
    fkt_team_run(threads, k->kind == FKT_OPTIMIZER_ADAM ? descend_adam : descend, &d);
}

FKT_WIDE static void follow(void *ctx, unsigned member, unsigned members)
{
    const struct descent *d = ctx;
    const float decay = d->k.decay;
    size_t from, to;
    fkt_team_part(d->n, GRAIN, member, members, &from, &to);
    for (size_t i = from; i < to; i += EIGHT) {
        fkt_f8 a, w;
        fkt_f8_load(&a, d->v, i, 0);
        fkt_f8_load(&w, d->g, i, 0);
        a = decay * a + (1 - decay) * w;
        fkt_f8_store(d->v, i, &a, 0);
    }
}

void fkt_loop_average(float *average, const float *w, size_t n, float decay, unsigned threads)
{
    struct descent d = {.v = average, .g = w, .n = n, .k.decay = decay};
    fkt_team_run(threads, follow, &d);
}
