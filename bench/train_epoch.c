/* SPDX-License-Identifier: Apache-2.0 */
/* train_epoch.c - epochs of a learner that keeps the images and runs its steps without the host, timed as a whole.
 *
 * The images are synthetic: noise whose brightness depends on the class, so that the loss can fall. An epoch begins
 * with the host's part (order, shifts and flips, as the trainer draws them), queues all steps and waits once, for the
 * sum of the losses. After one epoch that is not counted, EPOCHS are; fewer where they take more than PATIENCE
 * seconds. */
#include "bench/train_epoch.h"

#include "bench/bench.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "classifier/augment.h"

#include <math.h>

enum { EPOCHS = 4, PAD = 4 };
#define PATIENCE 20.0

struct epochs {
    struct fkt_learner *learner;
    size_t images;
    uint32_t batch;
    struct fkt_recipe recipe;
    uint8_t *rgb;
    uint32_t *label;
    size_t *order;
    struct fkt_view_at *view;
    struct fkt_planned_step *step;
    struct fkt_epoch_steps plan;
};

static void epochs_release(struct epochs *e)
{
    fkt_free(e->rgb);
    fkt_free(e->label);
    fkt_free(e->order);
    fkt_free(e->view);
    fkt_free(e->step);
}

static void paint(struct epochs *e, size_t pixels, uint32_t classes)
{
    struct fkt_rng rng;
    fkt_rng_init(&rng, 1, 1);
    for (size_t i = 0; i < e->images; i++) {
        const uint32_t k = (uint32_t)(i % classes);
        uint64_t bits = 0;
        e->label[i] = k;
        for (size_t p = 0; p < pixels; p++) {
            if (p % 8 == 0) bits = fkt_rng_u64(&rng);
            e->rgb[i * pixels + p] = (uint8_t)((bits & 127) + k * 128 / classes);
            bits >>= 8;
        }
    }
}

static fkt_status epochs_open(struct epochs *e, const struct fkt_model *m, uint32_t size)
{
    const size_t pixels = (size_t)size * size * 3;
    float value[3][256];
    fkt_status st;
    fkt_recipe_default(&e->recipe);
    e->recipe.pad = PAD;
    e->plan.steps = e->images / e->batch;
    FKT_TRY(fkt_alloc(&e->rgb, e->images * pixels));
    FKT_TRY(fkt_alloc(&e->label, e->images));
    FKT_TRY(fkt_alloc(&e->order, e->images));
    FKT_TRY(fkt_alloc(&e->view, e->plan.steps * e->batch));
    FKT_TRY(fkt_alloc(&e->step, e->plan.steps));
    paint(e, pixels, fkt_model_classes(m));
    for (size_t i = 0; i < e->plan.steps; i++)
        e->step[i] = (struct fkt_planned_step){
            .optimizer = {.rate = 1e-2F, .momentum = 0.9F, .decay = 5e-4F, .nesterov = 1}, .average = -1};
    e->plan.view = e->view;
    e->plan.step = e->step;
    e->plan.loss = (struct fkt_loss){.temperature = 1};
    fkt_model_pixels(m, value);
    FKT_TRY(fkt_learner_hold(
        e->learner,
        &(struct fkt_held){.rgb = e->rgb, .label = e->label, .n = e->images, .value = (const float(*)[256])value}));
out:
    return st;
}

/* One epoch: *loss its mean loss, *planned the seconds of the host's part. */
static fkt_status epoch(struct epochs *e, uint32_t number, double *loss, double *planned)
{
    const double start = fkt_now();
    uint64_t hits, bad;
    fkt_status st;
    fkt_epoch_order(e->order, e->images, 1, number);
    for (size_t i = 0; i < e->plan.steps * e->batch; i++) {
        const struct fkt_view v = fkt_view_of(&e->recipe, number, e->order[i]);
        e->view[i] = (struct fkt_view_at){(uint32_t)e->order[i], (int16_t)v.top, (int16_t)v.left, (uint16_t)v.flip};
    }
    *planned = fkt_now() - start;
    FKT_TRY(fkt_learner_plan_epoch(e->learner, &e->plan));
    FKT_TRY(fkt_learner_train(e->learner, e->plan.steps));
    FKT_TRY(fkt_learner_collect(e->learner, loss, &hits, &bad));
    *loss /= (double)e->plan.steps;
    if (bad != UINT64_MAX || !isfinite(*loss))
        st = fkt_fail(FKT_E_NUMERIC, "the loss of epoch %u is not finite: not timed", number);
out:
    return st;
}

fkt_status fkt_bench_epochs(struct fkt_learner *l, const struct fkt_model *m, uint32_t batch, uint32_t size,
                            size_t images, struct fkt_bench_epochs *out)
{
    struct epochs e = {.learner = l, .images = images, .batch = batch};
    double took[EPOCHS] = {0}, spent = 0, planned, best = INFINITY;
    fkt_status st;
    *out = (struct fkt_bench_epochs){0};
    FKT_TRY(epochs_open(&e, m, size));
    FKT_TRY(epoch(&e, 0, &out->first, &planned));
    while (out->epochs < EPOCHS && spent < PATIENCE) {
        const double start = fkt_now();
        double now;
        FKT_TRY(epoch(&e, (uint32_t)out->epochs + 1, &out->last, &planned));
        now = fkt_now() - start;
        spent += took[out->epochs++] = now;
        if (now < best) best = now, out->plan = planned;
    }
    if (!(out->last < out->first)) {
        st = fkt_fail(FKT_E_NUMERIC, "the loss went from %g to %g: not timed", out->first, out->last);
        goto out;
    }
    fkt_bench_sort(took, (size_t)out->epochs);
    out->steps = e.plan.steps;
    out->best = (double)(e.plan.steps * batch) / took[0];
    out->median = (double)(e.plan.steps * batch) * 2 / (took[(out->epochs - 1) / 2] + took[out->epochs / 2]);
out:
    epochs_release(&e);
    return st;
}
