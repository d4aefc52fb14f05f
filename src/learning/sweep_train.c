/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_train.c - a network for each arm of a sweep (sweep.h), trained from scratch on images drawn from its
 * Gaussians and evaluated once, after the last epoch, on the real test images. The reference is trained the same
 * way, on Gaussians without noise. This module uses a sweep only through its public header. */
#include "fedkt/sweep.h"
#include "fedkt/train.h"

#include "base/alloc.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/status.h"
#include "pipeline/release.h"

struct training {
    struct fkt_sweep *sweep;
    const struct fkt_sweep_network *network;
    const struct fkt_task *task;
    struct fkt_training_set test;
    uint8_t *rgb;    /* (n, S, S, 3) of one arm */
    uint32_t *label; /* (n) */
    size_t n;
};

static fkt_status same_images(void *ctx, uint32_t epoch, struct fkt_images *out)
{
    const struct training *t = ctx;
    (void)epoch;
    *out = (struct fkt_images){.rgb = t->rgb, .label = t->label, .n = t->n, .size = t->task->size};
    return FKT_OK;
}

static fkt_status learn(struct training *t, struct fkt_model **out)
{
    const struct fkt_model_spec network = {.architecture = t->network->architecture,
                                           .size = t->task->size,
                                           .classes = (const char *const *)t->task->classes,
                                           .n_classes = t->task->n_classes,
                                           .seed = t->network->recipe.seed};
    const struct fkt_trainer_hooks hooks = {.progress = t->network->progress};
    struct fkt_trainer_spec spec = {.recipe = t->network->recipe, .source = {.images = same_images, .ctx = t}};
    struct fkt_model *start = NULL;
    struct fkt_trainer *trainer = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_model_new(&start, &network));
    spec.start = start;
    FKT_TRY(fkt_trainer_new(&trainer, &spec));
    FKT_TRY(fkt_trainer_run(trainer, &hooks));
    FKT_TRY(fkt_trainer_model(trainer, 0, out));
out:
    fkt_trainer_free(trainer);
    fkt_model_free(start);
    return st;
}

static fkt_status evaluate(const struct training *t, const struct fkt_model *m, double *accuracy)
{
    const struct fkt_predict_options options = {
        .threads = t->network->recipe.threads, .progress = t->network->progress, .device = t->network->recipe.device};
    struct fkt_evaluation e = {0};
    fkt_status st;
    FKT_TRY(fkt_evaluation_init(&e, fkt_model_classes(m)));
    FKT_TRY(fkt_training_set_evaluate(&e, m, &t->test, &options));
    *accuracy = fkt_evaluation_accuracy(&e);
out:
    fkt_evaluation_clear(&e);
    return st;
}

static fkt_status train_arm(struct training *t, size_t i)
{
    struct fkt_model *model = NULL;
    const double start = fkt_now();
    double accuracy;
    fkt_status st;
    FKT_TRY(fkt_sweep_tiles(t->sweep, i, t->task->n_classes, t->network->per_class, t->rgb));
    FKT_TRY(learn(t, &model));
    FKT_TRY(evaluate(t, model, &accuracy));
    FKT_TRY(fkt_sweep_set_network(t->sweep, i, fkt_architecture_name(t->network->architecture), accuracy,
                                  fkt_now() - start));
    if (t->network->trained) FKT_TRY(t->network->trained(t->network->ctx, t->sweep, i));
out:
    fkt_model_free(model);
    return st;
}

static fkt_status read_test(struct training *t)
{
    struct fkt_skipped skipped = {0}; /* the same count as in the heads' evaluation */
    const struct fkt_training_set_options read = {.threads = t->network->recipe.threads,
                                                  .progress = t->network->progress,
                                                  .skipped = t->network->skip_bad ? &skipped : NULL};
    size_t n;
    const size_t *idx = fkt_sweep_test_records(t->sweep, &n);
    fkt_status st = fkt_training_set_read(&t->test, fkt_sweep_test_data(t->sweep), idx, n, t->task->size,
                                          t->task->filter, NULL, &read);
    fkt_skipped_clear(&skipped);
    return st;
}

fkt_status fkt_sweep_train(struct fkt_sweep *s, const struct fkt_sweep_network *network)
{
    struct fkt_sweep_network settled = *network;
    struct training t = {.sweep = s, .network = &settled, .task = fkt_pipeline_task(fkt_sweep_pipeline(s))};
    const size_t arms = fkt_sweep_arms(s);
    size_t bytes;
    fkt_status st;
    if (!fkt_sweep_test_data(s)) return fkt_fail(FKT_E_STATE, "the sweep has no test images to evaluate a network on");
    if (!fkt_sweep_arm(s, arms - 1)->draws) return fkt_fail(FKT_E_STATE, "the sweep has not run to its end");
    if (network->per_class < 1) return fkt_fail(FKT_E_ARG, "at least one image per class must be drawn");
    FKT_TRY(fkt_recipe_check(&network->recipe));
    FKT_TRY(fkt_device_resolve(&settled.recipe.device, NULL, 0));
    fkt_sweep_set_device(s, settled.recipe.device);
    if (!fkt_mul_size(network->per_class, t.task->n_classes, &t.n) ||
        !fkt_mul_size(t.n, (size_t)t.task->size * t.task->size * 3, &bytes))
        bytes = SIZE_MAX;
    FKT_TRY(read_test(&t));
    FKT_TRY(fkt_alloc(&t.rgb, bytes));
    FKT_TRY(fkt_alloc(&t.label, t.n));
    for (size_t k = 0; k < t.n; k++) t.label[k] = (uint32_t)(k / network->per_class);
    for (size_t i = 0; i < arms; i++) FKT_TRY(train_arm(&t, i));
out:
    fkt_free(t.rgb);
    fkt_free(t.label);
    fkt_training_set_clear(&t.test);
    return st;
}
