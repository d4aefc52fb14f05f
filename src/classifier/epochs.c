/* SPDX-License-Identifier: Apache-2.0 */
/* epochs.c - the training run: steps form epochs; each epoch ends with an evaluation and a checkpoint.
 *
 *   batch of views -> forward -> loss -> backward -> SGD or Adam at this step's rate -> moving average
 *        |                        ^
 *        +-> teacher's forward, or its logits that came with the images
 *
 * A learner that holds the images runs many steps at a time (planned.c), with the same numbers.
 *
 * Evaluation uses the running statistics and the same engine as any later prediction, so that the reported figures are
 * those of the saved model. The moving average is PyTorch's AveragedModel with use_buffers: a copy of the weights after
 * the first step, then average = decay average + (1 - decay) weights, running statistics included.
 *
 * When a hook stops a run, its state is consistent, and calling run again continues there. After a stop at the last
 * step of an epoch, or while held-out images are evaluated, the next call makes the evaluation. A step that fails
 * half-way has already changed running statistics: after it only a checkpoint can be continued. A loss that is not
 * finite stops the run before its checkpoint can replace a good one. */
#include "classifier/trainer.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "classifier/augment.h"
#include "classifier/model.h"
#include "nn/loss.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { EVALUATED_AT_ONCE = 256, EVALUATED_ON_CARD = 4096 }; /* images between two reports of progress */

static uint64_t steps_of(const struct fkt_trainer *t) { return t->recipe.epochs * t->epoch_steps; }

/* The views of this step's images, and their labels. */
static void fill_batch(struct fkt_trainer *t)
{
    const uint32_t size = t->model->size;
    const size_t classes = t->model->n_classes;
    const size_t image = (size_t)3 * size * size;
    const size_t first = (size_t)(t->done.step % t->epoch_steps) * t->batch;
    for (size_t i = 0; i < t->batch; i++) {
        const size_t index = t->order[first + i];
        const struct fkt_view v = fkt_view_of(&t->recipe, t->now_epoch, index);
        t->label[i] = t->now.label[index];
        fkt_view_apply(&v, t->value, t->now.rgb + index * image, size, t->in + i * image);
        if (t->now.teacher)
            memcpy(t->teacher_out + i * classes, t->now.teacher + index * classes, classes * sizeof *t->teacher_out);
        if (t->teacher)
            fkt_view_apply(&v, t->teacher_value, t->now.rgb + index * image, size, t->teacher_in + i * image);
    }
}

fkt_status fkt_trainer_diverged(const struct fkt_trainer *t)
{
    return fkt_fail_hint(FKT_E_NUMERIC, "use a smaller rate, or a warm-up",
                         "training diverged: the loss is not finite at step %" PRIu64 " of %" PRIu64
                         " in epoch %" PRIu32 ", where the rate is %g",
                         t->done.step % t->epoch_steps + 1, t->epoch_steps, t->now_epoch + 1,
                         fkt_recipe_rate(&t->recipe, t->done.step, t->epoch_steps));
}

struct fkt_optimizer fkt_trainer_optimizer(const struct fkt_trainer *t, uint64_t step)
{
    const struct fkt_recipe *r = &t->recipe;
    return (struct fkt_optimizer){.kind = r->optimizer == FKT_LEARN_ADAM ? FKT_OPTIMIZER_ADAM : FKT_OPTIMIZER_SGD,
                                  .rate = (float)fkt_recipe_rate(r, step, t->epoch_steps),
                                  .decay = (float)r->decay,
                                  .momentum = (float)r->momentum,
                                  .nesterov = r->nesterov,
                                  .beta1 = (float)r->beta1,
                                  .beta2 = (float)r->beta2,
                                  .epsilon = 1e-8F,
                                  .step = step + 1};
}

float fkt_trainer_decay(const struct fkt_trainer *t, uint64_t step)
{
    if (!(t->recipe.ema > 0)) return -1;
    return step == 0 ? 0 : (float)t->recipe.ema;
}

static fkt_status one_step(struct fkt_trainer *t)
{
    const struct fkt_recipe *r = &t->recipe;
    const struct fkt_loss kind = {.smoothing = r->smoothing, .temperature = r->temperature, .share = r->share};
    const struct fkt_optimizer sgd = fkt_trainer_optimizer(t, t->done.step);
    const float decay = fkt_trainer_decay(t, t->done.step);
    const double begin = fkt_now();
    double loss = NAN;
    size_t hits = 0;
    fkt_status st;
    fill_batch(t);
    if (t->teacher)
        FKT_TRY(fkt_model_forward(t->teacher, t->teacher_in, t->batch, t->teacher_out, r->threads, r->device));
    FKT_TRY(fkt_learner_forward(t->learner, t->in, t->out));
    st = fkt_loss_softmax(&kind, t->out, t->label, t->teacher_out, t->batch, t->model->n_classes, &loss, t->slope,
                          &hits);
    if (st == FKT_E_NUMERIC) return fkt_trainer_diverged(t);
    FKT_TRY(st);
    FKT_TRY(fkt_learner_backward(t->learner, t->slope));
    FKT_TRY(fkt_learner_step(t->learner, &sgd));
    if (decay >= 0) FKT_TRY(fkt_learner_average(t->learner, decay));
    t->done.step++;
    t->done.loss += loss;
    t->done.hits += hits;
    t->done.seconds += fkt_now() - begin;
out:
    return st;
}

/* When asked to stop, a checkpoint is written first. */
static fkt_status stopped(struct fkt_trainer *t, const struct fkt_trainer_hooks *hooks)
{
    fkt_status st;
    if (hooks->checkpoint) FKT_TRY(fkt_trainer_save(t, hooks->checkpoint));
    st = fkt_fail_hint(FKT_E_STOPPED,
                       hooks->checkpoint ? "resume from the checkpoint"
                                         : "without a checkpoint the run must start again",
                       "stopped while training, after step %" PRIu64 " of %" PRIu64, t->done.step, steps_of(t));
out:
    return st;
}

/* Progress of the evaluation over its parts; with an average the images are evaluated twice. */
struct evaluation_progress {
    const struct fkt_progress *progress;
    unsigned long long before, total;
};

static int report_evaluated(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    const struct evaluation_progress *j = self;
    (void)what;
    (void)total;
    return j->progress->step(j->progress->self, "evaluating", j->before + done, j->total);
}

/* Loss and accuracy on the held-out images of the weights, or of their average. */
static fkt_status evaluate(struct fkt_trainer *t, enum fkt_learned what, struct evaluation_progress *parts,
                           double *loss, double *accuracy)
{
    const struct fkt_progress progress = {report_evaluated, parts};
    const struct fkt_predict_options options = {.threads = t->recipe.threads,
                                                .dtype = t->recipe.dtype,
                                                .progress = parts->progress ? &progress : NULL,
                                                .device = t->recipe.device};
    const size_t image = (size_t)3 * t->held.size * t->held.size;
    const size_t most = t->recipe.device.kind == FKT_DEVICE_CUDA ? EVALUATED_ON_CARD : EVALUATED_AT_ONCE;
    struct fkt_evaluation j;
    float *logits = NULL;
    fkt_status st;
    memset(&j, 0, sizeof j);
    FKT_TRY(fkt_trainer_read(t, what, t->model));
    FKT_TRY(fkt_evaluation_init(&j, t->model->n_classes));
    FKT_TRY(fkt_alloc(&logits, most * t->model->n_classes));
    for (size_t i = 0; i < t->held.n; i += most) {
        const size_t n = t->held.n - i < most ? t->held.n - i : most;
        FKT_TRY(fkt_model_predict(t->model, t->held.rgb + i * image, n, logits, NULL, &options));
        FKT_TRY(fkt_evaluation_add(&j, logits, t->held.label + i, n));
        parts->before += n;
    }
    *loss = fkt_evaluation_loss(&j);
    *accuracy = fkt_evaluation_accuracy(&j);
out:
    fkt_free(logits);
    fkt_evaluation_clear(&j);
    return st;
}

/* After the last step of an epoch: its results go into history. */
static fkt_status finish_epoch(struct fkt_trainer *t, const struct fkt_trainer_hooks *hooks)
{
    const double begin = fkt_now(), images = (double)t->epoch_steps * t->batch;
    struct fkt_epoch e = {
        .epoch = t->done.epochs + 1,
        .loss = t->done.loss / (double)t->epoch_steps,
        .accuracy = (double)t->done.hits / images,
        .held_loss = NAN,
        .held_accuracy = NAN,
        .ema_held_loss = NAN,
        .ema_held_accuracy = NAN,
        .rate = fkt_recipe_rate(&t->recipe, t->done.step - 1, t->epoch_steps),
        .images_per_second = t->done.seconds > 0 ? images / t->done.seconds : 0,
    };
    struct evaluation_progress parts = {.progress = hooks->progress && hooks->progress->step ? hooks->progress : NULL,
                                        .total = t->held.n * (t->recipe.ema > 0 ? 2 : 1)};
    fkt_status st = FKT_OK;
    if (t->held.n && t->recipe.ema > 0) st = evaluate(t, FKT_AVERAGE, &parts, &e.ema_held_loss, &e.ema_held_accuracy);
    if (t->held.n && st == FKT_OK) st = evaluate(t, FKT_WEIGHT, &parts, &e.held_loss, &e.held_accuracy);
    if (st == FKT_E_STOPPED) st = stopped(t, hooks);
    FKT_TRY(st);
    e.seconds = t->done.seconds + fkt_now() - begin;
    t->history[t->done.epochs++] = e;
    t->done.loss = t->done.seconds = 0;
    t->done.hits = 0;
out:
    return st;
}

static fkt_status report(struct fkt_trainer *t, const struct fkt_trainer_hooks *hooks)
{
    const struct fkt_progress *p = hooks->progress;
    if (!p || !p->step || !p->step(p->self, "training", t->done.step * t->batch, steps_of(t) * t->batch)) return FKT_OK;
    return stopped(t, hooks);
}

static fkt_status one_epoch(struct fkt_trainer *t, const struct fkt_trainer_hooks *hooks)
{
    const uint64_t end = (t->done.epochs + 1) * t->epoch_steps;
    const uint64_t saves = hooks->checkpoint ? hooks->checkpoint_steps : 0;
    int planned = 0;
    fkt_status st;
    FKT_TRY(fkt_trainer_fetch(t, t->done.epochs));
    fkt_epoch_order(t->order, t->n, t->recipe.seed, t->done.epochs);
    FKT_TRY(fkt_trainer_plan(t, end - t->done.step, &planned));
    while (t->done.step < end) {
        if (planned) st = fkt_trainer_planned_steps(t, fkt_trainer_chunk(t, end - t->done.step, saves));
        else st = one_step(t);
        t->failed_midway = st != FKT_OK;
        if (st != FKT_OK) goto out;
        FKT_TRY(report(t, hooks));
        if (saves && t->done.step < end && t->done.step % saves == 0) FKT_TRY(fkt_trainer_save(t, hooks->checkpoint));
    }
    FKT_TRY(finish_epoch(t, hooks));
    if (hooks->checkpoint) FKT_TRY(fkt_trainer_save(t, hooks->checkpoint));
    if (hooks->epoch) FKT_TRY(hooks->epoch(hooks->ctx, &t->history[t->done.epochs - 1]));
out:
    return st;
}

fkt_status fkt_trainer_run(struct fkt_trainer *t, const struct fkt_trainer_hooks *hooks)
{
    static const struct fkt_trainer_hooks none = {0};
    fkt_status st = FKT_OK;
    if (t->failed_midway) return fkt_fail(FKT_E_STATE, "a trainer that failed in a step or a resume cannot continue");
    while (t->done.epochs < t->recipe.epochs && st == FKT_OK) st = one_epoch(t, hooks ? hooks : &none);
    return st;
}
