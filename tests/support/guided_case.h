/* SPDX-License-Identifier: Apache-2.0 */
/* guided_case.h - the tiny decoder and guide of tests/vectors/guided.md, and guided images of them held against
 * PyTorch's, for every backend. */
#ifndef FKT_TEST_GUIDED_CASE_H
#define FKT_TEST_GUIDED_CASE_H

#include "pipeline/guided.h"
#include "tensor/safetensors.h"
#include "tests/support/check.h"

enum { GUIDED_N = 3, GUIDED_D = 5, GUIDED_K = 4, GUIDED_SIDE = 8, GUIDED_PIXELS = 3 * GUIDED_SIDE * GUIDED_SIDE };

struct guided_case {
    struct fkt_safetensors *file;
    struct fkt_net decoder, guide;
    struct fkt_weights *weights[2];
    struct fkt_calibration codec, features;
    struct fkt_guided_spec spec;
    struct fkt_guided_image image[GUIDED_N];
    double u[GUIDED_N * GUIDED_D], s[GUIDED_N * GUIDED_K];
};

static inline float *guided_numbers(const struct guided_case *c, const char *name, size_t want)
{
    const struct fkt_tensor *t = fkt_safetensors_find(c->file, name);
    float *x = NULL;
    if (!t || t->count != want) fail_msg("no '%s' of %zu numbers", name, want);
    CHECK_OK(fkt_alloc(&x, want));
    CHECK_OK(fkt_tensor_copy_f32(x, t));
    return x;
}

static inline int64_t guided_whole(const struct guided_case *c, const char *name, size_t i)
{
    const struct fkt_tensor *t = fkt_safetensors_find(c->file, name);
    int64_t x;
    CHECK(t && t->dtype == FKT_I64 && i < t->count);
    memcpy(&x, (const char *)t->data + i * sizeof x, sizeof x);
    return x;
}

static inline uint32_t guided_conv(struct fkt_net *n, uint32_t x, const char *place, uint32_t from, uint32_t to,
                                   uint32_t stride)
{
    struct fkt_op op = {.kind = FKT_OP_CONV, .in = {x, 0}, .channels = to, .kernel = 3, .stride = stride, .pad = 1};
    char name[64];
    op.groups = 1;
    op.mean = op.var = FKT_NO_SLOT;
    snprintf(name, sizeof name, "%s.weight", place);
    op.weight = fkt_net_slot(n, name, to, from, 3, 3);
    snprintf(name, sizeof name, "%s.bias", place);
    op.bias = fkt_net_slot(n, name, to, 0, 0, 0);
    return fkt_net_add(n, &op);
}

static inline int guided_ignores(const char *name) { return name != NULL; }

static inline void guided_bind(struct guided_case *c, struct fkt_codec_net *out, struct fkt_net *net, int which,
                               struct fkt_shape in, struct fkt_shape end)
{
    CHECK_OK(fkt_net_status(net));
    CHECK_OK(fkt_weights_bind(&c->weights[which], net, (const struct fkt_safetensors *const[]){c->file}, 1,
                              guided_ignores, NULL));
    *out = (struct fkt_codec_net){.net = net, .weights = c->weights[which], .input = in, .output = end};
}

static inline void guided_networks(struct guided_case *c)
{
    uint32_t x;
    fkt_net_init(&c->decoder, 2);
    x = fkt_net_plain(&c->decoder, FKT_OP_SOFT_CLAMP, 0, 0, 3);
    x = fkt_net_plain(&c->decoder, FKT_OP_RELU, guided_conv(&c->decoder, x, "decoder.1", 2, 8, 1), 0, 0);
    guided_conv(&c->decoder, fkt_net_move(&c->decoder, FKT_OP_UPSAMPLE, x, 2), "decoder.4", 8, 3, 1);
    fkt_net_init(&c->guide, 3);
    x = fkt_net_plain(&c->guide, FKT_OP_RELU, guided_conv(&c->guide, 0, "guide.0", 3, 6, 1), 0, 0);
    x = fkt_net_plain(&c->guide, FKT_OP_RELU, guided_conv(&c->guide, x, "guide.2", 6, 7, 2), 0, 0);
    fkt_net_plain(&c->guide, FKT_OP_MEAN, x, 0, 0);
    guided_bind(c, &c->spec.decoder, &c->decoder, 0, (struct fkt_shape){2, 4, 4},
                (struct fkt_shape){3, GUIDED_SIDE, GUIDED_SIDE});
    guided_bind(c, &c->spec.guide, &c->guide, 1, (struct fkt_shape){3, GUIDED_SIDE, GUIDED_SIDE},
                (struct fkt_shape){7, 1, 1});
}

static inline void guided_case_init(struct guided_case *c)
{
    float *numbers, *pixels, *x;
    memset(c, 0, sizeof *c);
    CHECK_OK(fkt_safetensors_open(&c->file, FKT_TEST_VECTORS "/guided.safetensors"));
    guided_networks(c);
    c->codec.raw_dim = 32;
    c->codec.dim = GUIDED_D;
    c->codec.centre = guided_numbers(c, "centre", 32);
    c->codec.unmap = guided_numbers(c, "unmap", 32 * (size_t)GUIDED_D);
    c->features.raw_dim = 7;
    c->features.dim = GUIDED_K;
    c->features.centre = guided_numbers(c, "mean", 7);
    c->features.map = guided_numbers(c, "map", 7 * (size_t)GUIDED_K);
    numbers = guided_numbers(c, "numbers", 4);
    pixels = guided_numbers(c, "pixels", 12);
    for (int k = 0; k < 3; k++) {
        c->spec.decoder.pixel_scale[k] = pixels[k];
        c->spec.decoder.pixel_shift[k] = pixels[3 + k];
        c->spec.guide.pixel_scale[k] = pixels[6 + k];
        c->spec.guide.pixel_shift[k] = pixels[9 + k];
    }
    c->spec.decoder.latent_scale = (double)numbers[0];
    c->spec.decoder.latent_shift = (double)numbers[1];
    c->spec.guide.latent_scale = 1;
    c->spec.codec = &c->codec;
    c->spec.features = &c->features;
    c->spec.size = GUIDED_SIDE;
    c->spec.shift = 1;
    c->spec.rho = (double)numbers[2];
    c->spec.rate = (double)numbers[3];
    c->spec.batch = GUIDED_N;
    fkt_free(numbers);
    fkt_free(pixels);
    x = guided_numbers(c, "u", sizeof c->u / sizeof *c->u);
    for (size_t i = 0; i < sizeof c->u / sizeof *c->u; i++) c->u[i] = (double)x[i];
    fkt_free(x);
    x = guided_numbers(c, "s", sizeof c->s / sizeof *c->s);
    for (size_t i = 0; i < sizeof c->s / sizeof *c->s; i++) c->s[i] = (double)x[i];
    fkt_free(x);
    for (size_t i = 0; i < GUIDED_N; i++)
        c->image[i] = (struct fkt_guided_image){.seed = (uint64_t)guided_whole(c, "seed", 0),
                                                .number = (uint64_t)guided_whole(c, "number", i),
                                                .label = (uint32_t)guided_whole(c, "label", i)};
}

static inline void guided_case_release(struct guided_case *c)
{
    float *const all[] = {c->codec.centre, c->codec.unmap, c->features.centre, c->features.map};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) fkt_free(all[i]);
    for (int i = 0; i < 2; i++) fkt_weights_free(c->weights[i]);
    fkt_net_clear(&c->decoder);
    fkt_net_clear(&c->guide);
    fkt_safetensors_free(c->file);
}

/* `steps` of 1 or 6 on a backend, against PyTorch. */
static inline void guided_case_check(const struct fkt_learner_backend *backend, uint32_t steps)
{
    struct guided_case c;
    struct fkt_guided *g = NULL;
    float a[GUIDED_N * GUIDED_D], *want, *pixels;
    uint8_t rgb[GUIDED_N * GUIDED_PIXELS];
    char name[32];
    guided_case_init(&c);
    c.spec.backend = backend;
    c.spec.steps = steps;
    CHECK_OK(fkt_guided_new(&g, &c.spec));
    CHECK_OK(fkt_guided_run(g, c.image, c.u, c.s, GUIDED_N, rgb, a));
    snprintf(name, sizeof name, "%u/a", steps);
    want = guided_numbers(&c, name, sizeof a / sizeof *a);
    for (size_t i = 0; i < sizeof a / sizeof *a; i++) CHECK_NEAR(a[i], want[i], 1e-4);
    snprintf(name, sizeof name, "%u/pixels", steps);
    pixels = guided_numbers(&c, name, sizeof rgb);
    for (size_t i = 0; i < sizeof rgb; i++) { /* (n, c, y, x) there, (n, y, x, c) here */
        const size_t plane = GUIDED_PIXELS / 3, n = i / GUIDED_PIXELS, p = i % GUIDED_PIXELS % plane;
        const float x = pixels[i] < 0 ? 0 : pixels[i] > 255 ? 255 : pixels[i];
        CHECK_NEAR(rgb[n * GUIDED_PIXELS + p * 3 + i % GUIDED_PIXELS / plane], x, 0.6);
    }
    fkt_free(want);
    fkt_free(pixels);
    fkt_guided_free(g);
    guided_case_release(&c);
}

#endif
