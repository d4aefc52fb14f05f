/* SPDX-License-Identifier: Apache-2.0 */
/* guide_gradient.h - guides as frozen networks: features and the gradient by the scaled pixels, held against PyTorch's
 * (tests/vectors/guide/gradients.md), for every backend. Weights are made by the law of oracle/random_weights.py. */
#ifndef FKT_TEST_GUIDE_GRADIENT_H
#define FKT_TEST_GUIDE_GRADIENT_H

#include "codec/codec.h"
#include "nn/learner.h"
#include "tensor/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/golden_weights.h"
#include "tests/support/scratch.h"

struct guide_gradient {
    const char *list; /* of tensors, in tests/vectors/guide; its first letters say which family it is */
    uint32_t input;   /* side of the network's input */
    int whole;        /* a published size: slow in plain loops and on the emulation */
};
static const struct guide_gradient guide_gradients[] = {
    {"small-basic", 32, 0}, {"small-bottleneck", 64, 0}, {"small-lite0", 64, 0},
    {"fedkt-guide", 32, 0}, {"resnet50", 32, 1},         {"efficientnet-lite0", 64, 1},
};
enum { GUIDE_GRADIENTS = sizeof guide_gradients / sizeof *guide_gradients };

static inline float *guide_gradient_copy(const struct fkt_safetensors *f, const char *name, const char *role,
                                         const struct fkt_tensor **t)
{
    char full[64];
    float *x = NULL;
    snprintf(full, sizeof full, "%s/%s", name, role);
    *t = fkt_safetensors_find(f, full);
    if (!*t) fail_msg("no '%s'", full);
    CHECK_OK(fkt_alloc(&x, (*t)->count));
    CHECK_OK(fkt_tensor_copy_f32(x, *t));
    return x;
}

static inline double guide_gradient_distance(const float *got, const float *want, size_t n)
{
    double d = 0, w = 0;
    for (size_t i = 0; i < n; i++) {
        d += ((double)got[i] - (double)want[i]) * ((double)got[i] - (double)want[i]);
        w += (double)want[i] * (double)want[i];
    }
    return sqrt(d / w);
}

/* The guide whose networks a learner runs. */
static inline struct fkt_codec *guide_gradient_open(const struct guide_gradient *k, struct scratch *dir, uint32_t size)
{
    char list[512], file[64], name[700];
    struct fkt_codec_spec spec = {.name = name, .size = size};
    struct fkt_codec *c = NULL;
    snprintf(list, sizeof list, FKT_TEST_VECTORS "/guide/%s.txt", k->list);
    snprintf(file, sizeof file, "%s.safetensors", k->list);
    golden_weights_write(list, scratch_path(dir, file), NULL);
    snprintf(name, sizeof name, "%s@%u", scratch_path(dir, file), k->input);
    CHECK_OK(fkt_codec_open(&c, &spec));
    return c;
}

static inline void guide_gradient_check(const struct guide_gradient *k, const struct fkt_learner_backend *backend,
                                        double tolerance)
{
    struct scratch dir;
    struct fkt_safetensors *f = NULL;
    struct fkt_learner_spec spec = {.threads = 2, .frozen = 1};
    const struct fkt_tensor *tx, *ty, *t;
    struct fkt_codec_net n;
    struct fkt_codec *guide;
    struct fkt_learner *l = NULL;
    float *out = NULL, *din = NULL;
    double far[2];
    CHECK_OK(fkt_safetensors_open(&f, FKT_TEST_VECTORS "/guide/gradients.safetensors"));
    float *x = guide_gradient_copy(f, k->list, "x", &tx), *y = guide_gradient_copy(f, k->list, "y", &ty),
          *dy = guide_gradient_copy(f, k->list, "dy", &t), *dx = guide_gradient_copy(f, k->list, "dx", &t);
    scratch_init(&dir);
    guide = guide_gradient_open(k, &dir, (uint32_t)tx->shape[2]);
    CHECK_OK(fkt_codec_net(guide, FKT_CODEC_SIDE_ENCODER, &n));
    spec.batch = (uint32_t)tx->shape[0];
    spec.height = spec.width = (uint32_t)tx->shape[2];
    CHECK_OK(fkt_learner_new(&l, backend, n.net, &spec));
    CHECK_OK(fkt_learner_load(l, 0, n.net, (uint32_t)n.net->n_slots, n.weights));
    CHECK_OK(fkt_alloc(&out, ty->count));
    CHECK_OK(fkt_alloc(&din, tx->count));
    CHECK_OK(fkt_learner_forward(l, x, out));
    CHECK_OK(fkt_learner_backward_input(l, dy, din));
    far[0] = guide_gradient_distance(out, y, ty->count);
    far[1] = guide_gradient_distance(din, dx, tx->count);
    print_message("%-20s %s: features %.1e, gradient %.1e\n", k->list, backend->name, far[0], far[1]);
    if (!(far[0] <= tolerance && far[1] <= tolerance))
        fail_msg("%s, %s: features are %.3g away, the gradient %.3g", k->list, backend->name, far[0], far[1]);
    fkt_learner_free(l);
    fkt_codec_free(guide);
    fkt_safetensors_free(f);
    scratch_release(&dir);
    float *all[] = {x, y, dy, dx, out, din};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) fkt_free(all[i]);
}

#endif
