/* SPDX-License-Identifier: Apache-2.0 */
/* tune.c - trains the last layer alone, by stochastic gradient descent on features: softmax regression.
 *
 *   z = X W^T + b          X (B, F) a batch of features, W (K, F), b (K)
 *   dW = dz^T X, db = sum of dz; then the learner's step (nn/learner.h) with momentum, decay and the step's rate
 *
 * It starts from the model's own last layer (fkt_model_new_head draws a new one) and runs the same recipe as a whole
 * network: the order of an epoch by (seed, epoch), incomplete last batches left out, the same schedules, the same loss
 * with smoothed labels. Images are turned into features once, so there are no views, and no teacher.
 *
 * Weights, velocity and sums are double, in the order of BLAS on this processor; the loss takes the logits as
 * float. Cost: 4 n F K flops an epoch. The model is changed only on success. */
#include "fedkt/learn.h"

#include "base/alloc.h"
#include "classifier/augment.h"
#include "classifier/model.h"
#include "nn/loss.h"
#include "tensor/linalg.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct tuner {
    const struct fkt_recipe *r;
    size_t features, classes, batch, epoch_steps;
    size_t *order;                     /* (n) */
    double *x;                         /* (batch, F) */
    double *product;                   /* (batch, K) X W^T, or (K, F) a gradient: one after the other */
    double *slope_t;                   /* (K, batch) */
    float *logits, *slope;             /* (batch, K) */
    uint32_t *label;                   /* (batch) */
    double *weight, *bias;             /* (K, F), (K) */
    double *weight_speed, *bias_speed; /* velocities */
    double *bias_slope;                /* (K) */
};

static void clear(struct tuner *t)
{
    fkt_free(t->order);
    fkt_free(t->x);
    fkt_free(t->product);
    fkt_free(t->slope_t);
    fkt_free(t->logits);
    fkt_free(t->slope);
    fkt_free(t->label);
    fkt_free(t->weight);
    fkt_free(t->bias);
    fkt_free(t->weight_speed);
    fkt_free(t->bias_speed);
    fkt_free(t->bias_slope);
}

static fkt_status allocate(struct tuner *t, size_t n)
{
    const size_t numbers = t->classes * t->features, answers = t->batch * t->classes;
    fkt_status st;
    FKT_TRY(fkt_alloc(&t->order, n));
    FKT_TRY(fkt_alloc(&t->x, t->batch * t->features));
    FKT_TRY(fkt_alloc(&t->product, numbers > answers ? numbers : answers));
    FKT_TRY(fkt_alloc(&t->slope_t, answers));
    FKT_TRY(fkt_alloc(&t->logits, answers));
    FKT_TRY(fkt_alloc(&t->slope, answers));
    FKT_TRY(fkt_alloc(&t->label, t->batch));
    FKT_TRY(fkt_alloc(&t->weight, numbers));
    FKT_TRY(fkt_alloc(&t->bias, t->classes));
    FKT_TRY(fkt_alloc(&t->weight_speed, numbers));
    FKT_TRY(fkt_alloc(&t->bias_speed, t->classes));
    FKT_TRY(fkt_alloc(&t->bias_slope, t->classes));
out:
    return st;
}

static fkt_status check(const struct tuner *t, const float *features, const uint32_t *label, size_t n)
{
    if (n < 1) return fkt_fail(FKT_E_ARG, "there are no features to tune a last layer on");
    for (size_t i = 0; i < n; i++)
        if (label[i] >= t->classes)
            return fkt_fail(FKT_E_ARG, "label %" PRIu32 " of image %zu is outside the network's %zu classes", label[i],
                            i, t->classes);
    for (size_t i = 0; i < n * t->features; i++)
        if (!isfinite(features[i]))
            return fkt_fail(FKT_E_NUMERIC, "feature %zu of image %zu is not finite", i % t->features, i / t->features);
    return FKT_OK;
}

static void fill_batch(struct tuner *t, const float *features, const uint32_t *label, size_t first)
{
    for (size_t i = 0; i < t->batch; i++) {
        const size_t index = t->order[first + i];
        t->label[i] = label[index];
        for (size_t f = 0; f < t->features; f++) t->x[i * t->features + f] = (double)features[index * t->features + f];
    }
}

static fkt_status one_loss(struct tuner *t, uint64_t step)
{
    const struct fkt_loss kind = {.smoothing = t->r->smoothing};
    double loss = NAN;
    fkt_status st;
    fkt_gemm_nt(t->product, t->x, t->weight, t->batch, t->features, t->classes);
    for (size_t i = 0; i < t->batch * t->classes; i++) t->logits[i] = (float)(t->product[i] + t->bias[i % t->classes]);
    st = fkt_loss_softmax(&kind, t->logits, t->label, NULL, t->batch, t->classes, &loss, t->slope, NULL);
    if (st == FKT_E_NUMERIC)
        st = fkt_fail_hint(FKT_E_NUMERIC, "use a smaller rate",
                           "tuning diverged: the loss is not finite at step %zu of %zu in epoch %" PRIu64,
                           (size_t)(step % t->epoch_steps) + 1, t->epoch_steps, step / t->epoch_steps + 1);
    return st;
}

/* The step of nn/learner.h on n numbers. */
static void descend(const struct fkt_recipe *r, double rate, double *w, double *v, const double *g, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const double slope = g[i] + r->decay * w[i];
        v[i] = r->momentum * v[i] + slope;
        w[i] -= rate * (r->nesterov ? slope + r->momentum * v[i] : v[i]);
    }
}

static fkt_status one_step(struct tuner *t, uint64_t step)
{
    const double rate = fkt_recipe_rate(t->r, step, t->epoch_steps);
    fkt_status st = one_loss(t, step);
    if (st != FKT_OK) return st;
    memset(t->bias_slope, 0, t->classes * sizeof *t->bias_slope);
    for (size_t i = 0; i < t->batch; i++)
        for (size_t k = 0; k < t->classes; k++) {
            const double g = (double)t->slope[i * t->classes + k];
            t->slope_t[k * t->batch + i] = g;
            t->bias_slope[k] += g;
        }
    fkt_gemm(t->product, t->slope_t, t->x, t->classes, t->batch, t->features);
    descend(t->r, rate, t->weight, t->weight_speed, t->product, t->classes * t->features);
    descend(t->r, rate, t->bias, t->bias_speed, t->bias_slope, t->classes);
    return FKT_OK;
}

static fkt_status store(const struct tuner *t, float *weight, float *bias)
{
    for (size_t i = 0; i < t->classes * t->features; i++)
        if (!isfinite((float)t->weight[i]) || !isfinite((float)t->bias[i / t->features]))
            return fkt_fail_hint(FKT_E_NUMERIC, "use a smaller rate",
                                 "tuning diverged: the last layer is not finite after the last step");
    for (size_t i = 0; i < t->classes * t->features; i++) weight[i] = (float)t->weight[i];
    for (size_t k = 0; k < t->classes; k++) bias[k] = (float)t->bias[k];
    return FKT_OK;
}

fkt_status fkt_head_tune(struct fkt_model *m, const struct fkt_recipe *recipe, const float *features,
                         const uint32_t *label, size_t n)
{
    float *weight = m->array[m->net.n_slots - 2], *bias = m->array[m->net.n_slots - 1];
    struct tuner t = {.r = recipe, .features = m->features, .classes = m->n_classes};
    uint64_t step = 0;
    fkt_status st;
    FKT_TRY(fkt_recipe_check(recipe));
    if (recipe->optimizer != FKT_LEARN_SGD) return fkt_fail(FKT_E_ARG, "a last layer is tuned by SGD alone");
    FKT_TRY(check(&t, features, label, n));
    t.batch = n < recipe->batch ? n : recipe->batch;
    t.epoch_steps = n / t.batch;
    FKT_TRY(allocate(&t, n));
    for (size_t i = 0; i < t.classes * t.features; i++) t.weight[i] = (double)weight[i];
    for (size_t k = 0; k < t.classes; k++) t.bias[k] = (double)bias[k];
    for (uint32_t e = 0; e < recipe->epochs; e++) {
        fkt_epoch_order(t.order, n, recipe->seed, e);
        for (size_t b = 0; b < t.epoch_steps; b++, step++) {
            fill_batch(&t, features, label, b * t.batch);
            FKT_TRY(one_step(&t, step));
        }
    }
    FKT_TRY(store(&t, weight, bias));
    fkt_model_changed(m);
out:
    clear(&t);
    return st;
}
