/* SPDX-License-Identifier: Apache-2.0 */
/* planned.c - the steps of an epoch on a learner that holds the images: the host plans an epoch, then meets the learner
 * once per chunk of steps.
 *
 *   images --hold--> learner <--plan-- order, views, rates of the epoch's remaining steps
 *                    train chunk, collect; train chunk, collect; ...
 *
 * Order, views, rates and sums are those of the steps in epochs.c, which take batches from the host: both ways give the
 * same bits where the learner computes the same bits, and a checkpoint of one continues in the other. Images are held
 * anew when the source gives others. Where they do not fit the learner's memory, the run goes on with batches from the
 * host. So it does with a teacher that is a network: it sees each view, on the host's side. */
#include "classifier/trainer.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "classifier/augment.h"
#include "classifier/model.h"

/* Progress is reported and a stop is noticed after a chunk. */
enum { CHUNKS = 50, CHUNK_LEAST = 8 };

/* FKT_E_NOMEM: they do not fit. */
static fkt_status hold(struct fkt_trainer *t)
{
    fkt_status st;
    if (t->resident && (!t->source.anew || t->resident_epoch == t->now_epoch)) return FKT_OK;
    t->resident = 0;
    st = fkt_learner_hold(t->learner, &(struct fkt_held){.rgb = t->now.rgb,
                                                         .label = t->now.label,
                                                         .teacher = t->now.teacher,
                                                         .n = t->n,
                                                         .value = (const float(*)[256])t->value});
    t->resident = st == FKT_OK;
    t->resident_epoch = t->now_epoch;
    return st;
}

static void plan_step(const struct fkt_trainer *t, uint64_t step, struct fkt_planned_step *out,
                      struct fkt_view_at *view)
{
    const size_t first = (size_t)(step % t->epoch_steps) * t->batch;
    out->optimizer = fkt_trainer_optimizer(t, step);
    out->average = fkt_trainer_decay(t, step);
    for (size_t i = 0; i < t->batch; i++) {
        const size_t index = t->order[first + i];
        const struct fkt_view v = fkt_view_of(&t->recipe, t->now_epoch, index);
        view[i] = (struct fkt_view_at){
            .index = (uint32_t)index, .top = (int16_t)v.top, .left = (int16_t)v.left, .flip = (uint16_t)v.flip};
    }
}

static fkt_status plan(struct fkt_trainer *t, uint64_t steps)
{
    struct fkt_view_at *view = NULL;
    struct fkt_planned_step *step = NULL;
    const struct fkt_recipe *r = &t->recipe;
    struct fkt_epoch_steps e = {.steps = steps,
                                .loss = {.smoothing = r->smoothing, .temperature = r->temperature, .share = r->share},
                                .loss_before = t->done.loss};
    fkt_status st;
    FKT_TRY(fkt_alloc(&view, (size_t)steps * t->batch));
    FKT_TRY(fkt_alloc(&step, (size_t)steps));
    for (size_t i = 0; i < steps; i++) plan_step(t, t->done.step + i, &step[i], view + i * t->batch);
    e.view = view;
    e.step = step;
    FKT_TRY(fkt_learner_plan_epoch(t->learner, &e));
    t->plan_step = t->done.step;
    t->plan_hits = t->done.hits;
out:
    fkt_free(view);
    fkt_free(step);
    return st;
}

fkt_status fkt_trainer_plan(struct fkt_trainer *t, uint64_t steps, int *planned)
{
    fkt_status st;
    *planned = 0;
    if (!steps || t->teacher || t->too_large || !fkt_learner_holds(t->learner) || t->n > UINT32_MAX) return FKT_OK;
    st = hold(t);
    if (st == FKT_OK) st = plan(t, steps);
    *planned = st == FKT_OK;
    t->too_large = st == FKT_E_NOMEM;
    return t->too_large ? FKT_OK : st;
}

uint64_t fkt_trainer_chunk(const struct fkt_trainer *t, uint64_t left, uint64_t checkpoint_steps)
{
    uint64_t n = t->epoch_steps / CHUNKS;
    if (n < CHUNK_LEAST) n = CHUNK_LEAST;
    if (n > left) n = left;
    if (!checkpoint_steps) return n;
    left = checkpoint_steps - t->done.step % checkpoint_steps;
    return n < left ? n : left;
}

fkt_status fkt_trainer_planned_steps(struct fkt_trainer *t, uint64_t steps)
{
    const double begin = fkt_now();
    double loss;
    uint64_t hits, bad;
    fkt_status st;
    FKT_TRY(fkt_learner_train(t->learner, steps));
    FKT_TRY(fkt_learner_collect(t->learner, &loss, &hits, &bad));
    if (bad != UINT64_MAX) {
        t->done.step = t->plan_step + bad;
        return fkt_trainer_diverged(t);
    }
    t->done.step += steps;
    t->done.loss = loss;
    t->done.hits = t->plan_hits + hits;
    t->done.seconds += fkt_now() - begin;
out:
    return st;
}
