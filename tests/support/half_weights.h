/* SPDX-License-Identifier: Apache-2.0 */
/* half_weights.h - a file as our networks are shipped, convolutions in f16 and norms in f32, against one in f32 with
 * the same numbers: the same bits from every backend. */
#ifndef FKT_TEST_HALF_WEIGHTS_H
#define FKT_TEST_HALF_WEIGHTS_H

#include "nn/learner.h"
#include "tests/support/net_problems.h"
#include "tests/support/random_weights.h"

/* A multiple of 2^-8 below 8, which f16 holds exactly. */
static inline float half_rounded(float x) { return rintf(x * 256) / 256; }

static inline uint16_t half_bits(float x)
{
    const uint32_t m = (uint32_t)(fabsf(x) * 256);
    uint32_t top = 0;
    CHECK(m < 2048 && (float)m == fabsf(x) * 256);
    if (!m) return 0;
    while (m >> (top + 1)) top++;
    return (uint16_t)((x < 0 ? 0x8000U : 0) | (top + 7) << 10 | ((m << (10 - top)) & 1023));
}

/* `from`, rounded so, with matrices in f16 (`half`) or all in f32. */
static inline void half_weights_init(struct random_weights *out, const struct random_weights *from,
                                     const struct fkt_net *net, int half)
{
    struct fkt_st_writer *writer = NULL;
    float **data = NULL;
    size_t len, tensors = fkt_safetensors_count(from->file);
    memset(out, 0, sizeof *out);
    CHECK_OK(fkt_st_writer_new(&writer));
    CHECK_OK(fkt_alloc(&data, tensors));
    for (size_t i = 0; i < tensors; i++) {
        const struct fkt_tensor *t = fkt_safetensors_at(from->file, i);
        const float *x = (const float *)t->data;
        const int narrow = half && t->rank > 1;
        CHECK_OK(fkt_alloc(&data[i], t->count));
        for (size_t k = 0; k < t->count; k++) {
            if (narrow) ((uint16_t *)(void *)data[i])[k] = half_bits(half_rounded(x[k]));
            else data[i][k] = half_rounded(x[k]);
        }
        CHECK_OK(fkt_st_writer_add(writer, t->name, narrow ? FKT_F16 : FKT_F32, t->rank, t->shape, data[i]));
    }
    CHECK_OK(fkt_st_writer_bytes(writer, &out->bytes, &len));
    fkt_st_writer_free(writer);
    for (size_t i = 0; i < tensors; i++) fkt_free(data[i]);
    fkt_free(data);
    CHECK_OK(fkt_safetensors_parse(&out->file, out->bytes, len, half ? "weights in f16" : "weights in f32"));
    CHECK_OK(fkt_weights_bind(&out->bound, net, (const struct fkt_safetensors *const[]){out->file}, 1, NULL, NULL));
}

enum { HALF_BATCH = 3, HALF_ROOM = 1 << 16 };

/* One run of an engine, or of a frozen learner's forward and backward. */
static inline size_t half_weights_run(const struct net_problem *k, const struct fkt_net *net,
                                      const struct fkt_weights *w, const struct fkt_backend *backend,
                                      const struct fkt_learner_backend *learner, int low_memory, const float *in,
                                      float *out)
{
    struct fkt_engine_spec spec = {
        .batch = HALF_BATCH, .height = k->height, .width = k->width, .low_memory = low_memory};
    const struct fkt_learner_spec frozen = {
        .batch = HALF_BATCH, .height = k->height, .width = k->width, .threads = 1, .frozen = 1};
    struct fkt_engine *e = NULL;
    struct fkt_learner *l = NULL;
    struct fkt_shape s;
    size_t n;
    CHECK_OK(fkt_engine_new(&e, backend ? backend : &fkt_backend_ref, net, w, &spec));
    s = fkt_engine_output(e);
    n = (size_t)HALF_BATCH * s.c * s.h * s.w;
    CHECK(n <= HALF_ROOM);
    if (backend) CHECK_OK(fkt_engine_run(e, in, HALF_BATCH, out));
    fkt_engine_free(e);
    if (!learner) return n;
    CHECK_OK(fkt_learner_new(&l, learner, net, &frozen));
    CHECK_OK(fkt_learner_load(l, 0, net, (uint32_t)net->n_slots, w));
    CHECK_OK(fkt_learner_forward(l, in, out));
    fkt_learner_free(l);
    return n;
}

static inline void half_weights_check(const struct fkt_backend *backend, const struct fkt_learner_backend *learner,
                                      int low_memory)
{
    static const char *const names[] = {"EfficientNet-Lite in small", "a small autoencoder", "norms", "linear"};
    static float in[HALF_ROOM], out[2][HALF_ROOM];
    struct fkt_rng r;
    fkt_rng_init(&r, 9, 0);
    for (size_t i = 0; i < HALF_ROOM; i++) in[i] = (float)(2 * fkt_rng_unit(&r) - 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct net_problem *k = net_problem(names[i]);
        struct random_weights first, w;
        struct fkt_net net;
        size_t n = 0;
        k->build(&net);
        CHECK((size_t)HALF_BATCH * net.channels * k->height * k->width <= HALF_ROOM);
        random_weights_init(&first, &net, 7);
        for (int half = 0; half < 2; half++) {
            half_weights_init(&w, &first, &net, half);
            n = half_weights_run(k, &net, w.bound, backend, learner, low_memory, in, out[half]);
            random_weights_release(&w);
        }
        if (memcmp(out[0], out[1], n * sizeof **out)) fail_msg("%s: other results from weights in f16", k->name);
        random_weights_release(&first);
        fkt_net_clear(&net);
    }
}

#endif
