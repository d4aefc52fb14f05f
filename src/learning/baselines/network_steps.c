/* SPDX-License-Identifier: Apache-2.0 */
/* network_steps.c - the local steps of a site on a learner that holds its images: weights are copied once for many.
 *
 *   x -> weights, anchor -> average;  images of the site -> held;  some steps -> plan -> train, collect, until none is
 *   left;  weights -> x, average -> anchor
 *
 * The pull of a step is the learner's pull to its average; an anchor that follows is an average that is taken. The
 * batches are those of network.c, so the numbers are too, up to rounding: a learner has rate, pull and follow as floats
 * and rounds a slope once more than vector.c. A site whose steps do not fit in the card's memory takes them by
 * gradients, so on a card that others use too, memory decides about rounding (docs/experiments.md).
 *
 * Steps are left to gradients as well:
 * - on a learner that cannot hold images (oneDNN's);
 * - with a teacher and views that are not whole images, since the teacher's logits are of whole ones;
 * - with a number that a float does not hold, a follow above 1, or one so small that 1 - follow loses it. */
#include "learning/baselines/network.h"

#include "base/alloc.h"
#include "classifier/augment.h"

#include <math.h>
#include <string.h>

enum { CHUNK = 64 }; /* steps of a plan: memory does not grow with a round, and a stop is noticed between two */

struct steps {
    struct fkt_network_problem *q;
    uint32_t site, batch;
    const struct fkt_local_step *step;
    uint64_t n;
    struct fkt_learner *learner;
    uint8_t *rgb; /* the site's images */
    uint32_t *label;
    float *teacher;           /* (images, K); NULL: none */
    struct fkt_view_at *view; /* (CHUNK, batch) */
    struct fkt_planned_step planned[CHUNK];
};

static void clear(struct steps *s)
{
    fkt_free(s->rgb);
    fkt_free(s->label);
    fkt_free(s->teacher);
    fkt_free(s->view);
}

/* The average of a step keeps 1 - follow, as a float: follow must come out of it again. */
static int fits(const struct fkt_local_step *step)
{
    const double follows = 1 - (double)(float)(1 - step->follow);
    return isfinite((float)step->rate) && isfinite((float)step->pull) && step->follow <= 1 &&
           fabs(follows - step->follow) <= 1e-4 * fabs(step->follow);
}

static int is_possible(const struct steps *s)
{
    const struct fkt_network_problem *q = s->q;
    if (!s->n || !fkt_learner_holds(s->learner)) return 0;
    if (q->taught && (q->views.flip || q->views.pad)) return 0;
    for (uint64_t k = 0; k < s->n; k++)
        if (!fits(&s->step[k])) return 0;
    return 1;
}

static fkt_status gather(struct steps *s)
{
    const struct fkt_training_set *data = s->q->spec->data;
    const struct fkt_site_records *own = &s->q->site[s->site];
    const size_t image = (size_t)3 * data->size * data->size;
    fkt_status st;
    FKT_TRY(fkt_alloc(&s->rgb, own->n_train * image));
    FKT_TRY(fkt_alloc(&s->label, own->n_train));
    for (size_t i = 0; i < own->n_train; i++) {
        memcpy(s->rgb + i * image, data->rgb + own->train[i] * image, image);
        s->label[i] = data->label[own->train[i]];
    }
out:
    return st;
}

/* A lack of memory on the card, and not here: by gradients then. */
static fkt_status unless_full(fkt_status st, int *fit)
{
    if (st != FKT_E_NOMEM) return st;
    *fit = 0;
    return FKT_OK;
}

static fkt_status hold(struct steps *s, int *fit)
{
    struct fkt_network_problem *q = s->q;
    const struct fkt_predict_options o = {.threads = q->spec->threads, .device = q->spec->device};
    const size_t n = q->site[s->site].n_train;
    fkt_status st;
    FKT_TRY(gather(s));
    if (q->taught) {
        FKT_TRY(fkt_alloc(&s->teacher, n * q->model->n_classes));
        FKT_TRY(fkt_model_predict(q->teacher, s->rgb, n, s->teacher, NULL, &o));
    }
    st = unless_full(fkt_learner_hold(s->learner, &(struct fkt_held){.rgb = s->rgb,
                                                                     .label = s->label,
                                                                     .teacher = s->teacher,
                                                                     .n = n,
                                                                     .value = (const float(*)[256])q->value}),
                     fit);
out:
    return st;
}

static void plan_step(struct steps *s, const struct fkt_local_step *step, size_t k)
{
    struct fkt_network_problem *q = s->q;
    const uint32_t epoch = (uint32_t)(step->batch / q->epoch[s->site]);
    const size_t first = (size_t)(step->batch % q->epoch[s->site]) * s->batch;
    s->planned[k] = (struct fkt_planned_step){.optimizer = {.rate = (float)step->rate, .pull = (float)step->pull},
                                              .average = step->follow > 0 ? (float)(1 - step->follow) : -1};
    fkt_network_order(q, s->site, epoch);
    for (uint32_t i = 0; i < s->batch; i++) {
        const size_t index = q->order[first + i];
        const struct fkt_view v = fkt_view_of(&q->views, epoch, index);
        s->view[k * s->batch + i] = (struct fkt_view_at){
            .index = (uint32_t)index, .top = (int16_t)v.top, .left = (int16_t)v.left, .flip = (uint16_t)v.flip};
    }
}

/* The average has statistics too, which nobody reads. */
static fkt_status move_anchor(struct steps *s, float *anchor, int back)
{
    const struct fkt_network_problem *q = s->q;
    fkt_status st = FKT_OK;
    for (size_t k = 0; anchor && k < q->problem.spans && st == FKT_OK; k++) {
        float *part = anchor + q->span[k].start;
        if (q->span[k].start >= q->problem.parameters) break;
        st = back ? fkt_learner_read(s->learner, FKT_AVERAGE, q->slot[k], part)
                  : fkt_learner_write(s->learner, FKT_AVERAGE, q->slot[k], part);
    }
    return st;
}

/* n <= CHUNK steps from number `first` on. */
static fkt_status train_some(struct steps *s, uint64_t first, size_t n)
{
    const struct fkt_epoch_steps e = {.view = s->view, .step = s->planned, .steps = n, .loss = s->q->loss};
    double loss;
    uint64_t hits, bad = UINT64_MAX;
    fkt_status st;
    for (size_t k = 0; k < n; k++) plan_step(s, &s->step[first + k], k);
    FKT_TRY(fkt_learner_plan_epoch(s->learner, &e));
    FKT_TRY(fkt_learner_train(s->learner, n));
    FKT_TRY(fkt_learner_collect(s->learner, &loss, &hits, &bad));
    if (bad != UINT64_MAX)
        st = fkt_fail(FKT_E_NUMERIC, "step %llu has results that are not finite", (unsigned long long)(first + bad));
out:
    return st;
}

static fkt_status train(struct steps *s, int *fit)
{
    fkt_status st = FKT_OK;
    for (uint64_t k = 0; *fit && k < s->n; k += CHUNK) {
        if (fkt_network_stopped(s->q)) return fkt_fail(FKT_E_STOPPED, "stopped while training; nothing is kept");
        FKT_TRY(unless_full(train_some(s, k, s->n - k < CHUNK ? (size_t)(s->n - k) : CHUNK), fit));
    }
out:
    return st;
}

/* *fit: there is room for images and anchor on the card. x and anchor are only read. */
static fkt_status prepare(struct steps *s, const float *x, float *anchor, int *fit)
{
    fkt_status st;
    *fit = 1;
    FKT_TRY(fkt_alloc(&s->view, (size_t)CHUNK * s->batch));
    FKT_TRY(hold(s, fit));
    if (!*fit) goto out;
    FKT_TRY(fkt_network_write(s->q, s->learner, x));
    FKT_TRY(unless_full(move_anchor(s, anchor, 0), fit));
out:
    return st;
}

static fkt_status read_back(struct steps *s, float *x, float *anchor)
{
    const struct fkt_network_problem *q = s->q;
    fkt_status st = FKT_OK;
    for (size_t k = 0; k < q->problem.spans; k++)
        FKT_TRY(fkt_learner_read(s->learner, FKT_WEIGHT, q->slot[k], x + q->span[k].start));
    FKT_TRY(move_anchor(s, anchor, 1));
out:
    return st;
}

fkt_status fkt_network_descend(void *self, uint32_t site, const struct fkt_local_step *step, uint64_t n, float *x,
                               float *anchor, int *done)
{
    struct fkt_network_problem *q = self;
    struct steps s = {.q = q, .site = site, .batch = fkt_network_batch(q, site), .step = step, .n = n};
    fkt_status st;
    int fit;
    *done = 0;
    FKT_TRY(fkt_network_learner(q, s.batch, &s.learner));
    if (!is_possible(&s)) goto out;
    FKT_TRY(prepare(&s, x, anchor, &fit));
    if (fit) FKT_TRY(train(&s, &fit));
    if (!fit) {
        if (q->spec->full) ++*q->spec->full;
        goto out; /* x and anchor are as they were */
    }
    FKT_TRY(read_back(&s, x, anchor));
    *done = 1;
out:
    clear(&s);
    if (st == FKT_E_NUMERIC) st = fkt_hint(fkt_fail_in(st, "training diverged"), "use a smaller rate");
    return fkt_fail_in(st, "site %u", q->site[site].site);
}
