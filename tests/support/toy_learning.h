/* SPDX-License-Identifier: Apache-2.0 */
/* toy_learning.h - a set of tiny images that can be learned in seconds, and a trainer for it. */
#ifndef FKT_TEST_TOY_LEARNING_H
#define FKT_TEST_TOY_LEARNING_H

#include "base/rng.h"
#include "classifier/trainer.h"
#include "tests/support/check.h"

enum { TOY_SIDE = 8, TOY_IMAGE = TOY_SIDE * TOY_SIDE * 3, TOY_CLASSES = 3, TOY_MAX = 96 };

static const char *const toy_names[TOY_CLASSES + 1] = {"red", "green", "blue", "grey"};

struct toy {
    uint8_t rgb[TOY_MAX * TOY_IMAGE];
    uint32_t label[TOY_MAX];
    float teacher[TOY_MAX * TOY_CLASSES];
    struct fkt_images images;
    uint64_t seed;
    int fresh;      /* another set each epoch */
    int taught;     /* the images come with a teacher's logits */
    unsigned calls; /* of the source */
};

/* Noise around grey, and one colour a bit brighter: class = colour. */
static inline void toy_draw(struct toy *t, uint64_t seed, size_t n)
{
    struct fkt_rng rng;
    fkt_rng_init(&rng, seed, 77);
    for (size_t i = 0; i < n; i++) {
        t->label[i] = (uint32_t)(i % TOY_CLASSES);
        for (size_t p = 0; p < TOY_IMAGE; p++)
            t->rgb[i * TOY_IMAGE + p] = (uint8_t)(64 + fkt_rng_below(&rng, 96) + (p % 3 == t->label[i] ? 40 : 0));
    }
    for (size_t i = 0; i < n * TOY_CLASSES; i++) t->teacher[i] = (float)(6 * fkt_rng_unit(&rng) - 3);
    t->images = (struct fkt_images){.rgb = t->rgb, .label = t->label, .n = n, .size = TOY_SIDE};
    if (t->taught) t->images.teacher = t->teacher;
    t->seed = seed;
}

static inline fkt_status toy_source(void *ctx, uint32_t epoch, struct fkt_images *out)
{
    struct toy *t = ctx;
    t->calls++;
    if (t->fresh) toy_draw(t, 1000 + epoch, t->images.n);
    *out = t->images;
    return FKT_OK;
}

/* The plain loops without the calls that hold images: every step by itself. */
static inline const struct fkt_learner_backend *toy_steps(void)
{
    static struct fkt_learner_backend b;
    b = fkt_learner_ref;
    b.hold = NULL;
    b.plan_epoch = NULL;
    b.train = NULL;
    b.collect = NULL;
    return &b;
}

static inline struct fkt_model *toy_model(uint32_t classes, uint64_t seed)
{
    const struct fkt_model_spec spec = {.architecture = FKT_ARCHITECTURE_RESNET8,
                                        .size = TOY_SIDE,
                                        .classes = toy_names,
                                        .n_classes = classes,
                                        .seed = seed};
    struct fkt_model *m = NULL;
    CHECK_OK(fkt_model_new(&m, &spec));
    return m;
}

/* Two epochs of a handful of steps, one thread. */
static inline struct fkt_recipe toy_recipe(void)
{
    struct fkt_recipe r;
    fkt_recipe_default(&r);
    r.epochs = 2;
    r.batch = 8;
    r.pad = 1;
    r.threads = 1;
    return r;
}

static inline struct fkt_trainer_spec toy_spec(struct toy *t, const struct fkt_model *start, struct fkt_recipe recipe)
{
    return (struct fkt_trainer_spec){
        .start = start, .recipe = recipe, .source = {.images = toy_source, .ctx = t, .anew = t->fresh}};
}

/* 1 when all weights are the same to the bit. */
static inline int toy_same(const struct fkt_model *a, const struct fkt_model *b)
{
    for (size_t i = 0; i < fkt_model_tensors(a); i++) {
        const struct fkt_model_tensor x = fkt_model_tensor(a, i), y = fkt_model_tensor(b, i);
        if (x.count != y.count || memcmp(x.data, y.data, x.count * sizeof *x.data) != 0) return 0;
    }
    return 1;
}

/* The same but for time; NaN is the same as NaN. */
static inline int toy_same_epoch(struct fkt_epoch a, struct fkt_epoch b)
{
    const double x[] = {a.loss, a.accuracy, a.held_loss, a.held_accuracy, a.ema_held_loss, a.ema_held_accuracy, a.rate};
    const double y[] = {b.loss, b.accuracy, b.held_loss, b.held_accuracy, b.ema_held_loss, b.ema_held_accuracy, b.rate};
    return a.epoch == b.epoch && memcmp(x, y, sizeof x) == 0;
}

#endif
