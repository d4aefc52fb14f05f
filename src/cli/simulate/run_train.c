/* SPDX-License-Identifier: Apache-2.0 */
/* run_train.c - `fedkt simulate --train`: for every arm a network from scratch on pictures drawn from its Gaussians,
 * judged once, after the last epoch, on the real test set. The bound without privacy is trained the same way, on
 * Gaussians without noise. Of releases that are drawn more than once (--runs) the first is learned from. */
#include "cli/learning/recipe.h"
#include "cli/simulate/run.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "fedkt/train.h"

#include <stdio.h>

/* `each` pictures of every class, as 'fedkt generate' would draw them. */
static fkt_status draw(const struct cli_sim *s, const struct cli_outcome *o, const struct cli_arm *a, uint8_t *rgb,
                       uint32_t *label)
{
    const struct fkt_task *t = fkt_pipeline_task(o->pipeline);
    const size_t each = (size_t)s->train_per_class;
    for (size_t i = 0; i < each * t->n_classes; i++) label[i] = (uint32_t)(i / each);
    return fkt_generate_tiles(o->pipeline, &a->shapes, s->seed, t->n_classes, each, o->threads, rgb);
}

static fkt_status same_images(void *ctx, uint32_t epoch, struct fkt_images *out)
{
    (void)epoch;
    *out = *(const struct fkt_images *)ctx;
    return FKT_OK;
}

static void recipe_of(const struct cli_sim *s, struct fkt_recipe *r)
{
    fkt_recipe_default(r);
    r->epochs = s->epochs > UINT32_MAX ? UINT32_MAX : (uint32_t)s->epochs;
    r->seed = s->seed;
}

/* Before anything is released: a network that cannot be trained is no reason to draw noise. */
fkt_status cli_sim_train_check(const struct cli_sim *s, int tested)
{
    static const struct cli_recipe_option option[] = {CLI_RECIPE("--epochs", epochs)};
    struct fkt_recipe r;
    if (!s->train && (s->epochs_given || s->train_per_class_given))
        return fkt_fail(FKT_E_ARG, "%s needs --train", s->epochs_given ? "--epochs" : "--train-per-class");
    if (!s->train) return FKT_OK;
    if (!tested) return fkt_fail(FKT_E_ARG, "--train needs a test set: --holdout, or --test or --test-split");
    recipe_of(s, &r);
    return cli_recipe_check(&r, option, CLI_COUNT(option));
}

static fkt_status learn(const struct cli_sim *s, const struct cli_outcome *o, struct fkt_images *p,
                        const struct fkt_progress *progress, struct fkt_model **out)
{
    const struct fkt_task *t = fkt_pipeline_task(o->pipeline);
    const struct fkt_model_spec network = {.architecture = (enum fkt_architecture)(s->train - 1),
                                           .size = t->size,
                                           .classes = (const char *const *)t->classes,
                                           .n_classes = t->n_classes,
                                           .seed = s->seed};
    const struct fkt_trainer_hooks hooks = {.progress = progress};
    struct fkt_trainer_spec spec = {.source = {.images = same_images, .ctx = p}};
    struct fkt_model *start = NULL;
    struct fkt_trainer *trainer = NULL;
    fkt_status st;
    *out = NULL;
    recipe_of(s, &spec.recipe);
    spec.recipe.threads = o->threads;
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

static fkt_status evaluate(const struct cli_outcome *o, const struct fkt_model *m, const struct fkt_training_set *test,
                           const struct fkt_progress *progress, double *accuracy)
{
    const struct fkt_predict_options options = {.threads = o->threads, .progress = progress};
    struct fkt_evaluation j = {0};
    fkt_status st;
    FKT_TRY(fkt_evaluation_init(&j, fkt_model_classes(m)));
    FKT_TRY(fkt_training_set_evaluate(&j, m, test, &options));
    *accuracy = fkt_evaluation_accuracy(&j);
out:
    fkt_evaluation_clear(&j);
    return st;
}

fkt_status cli_sim_train(const struct cli_sim *s, struct cli_outcome *o, struct cli_progress *progress)
{
    const struct fkt_task *t = fkt_pipeline_task(o->pipeline);
    struct fkt_skipped skipped = {0};
    const struct fkt_training_set_options read = {
        .threads = o->threads, .progress = &progress->hook, .skipped = s->data.skip_bad ? &skipped : NULL};
    struct fkt_training_set test = {0};
    struct fkt_model *model = NULL;
    size_t n = (size_t)s->train_per_class * t->n_classes;
    uint8_t *rgb = NULL;
    uint32_t *label = NULL;
    double start = fkt_now();
    fkt_status st;
    FKT_TRY(fkt_training_set_read(&test, o->test_set, o->held, o->n_test, t->size, t->filter, NULL, &read));
    FKT_TRY(fkt_fail_in(fkt_alloc(&rgb, n * t->size * t->size * 3), "--train-per-class"));
    FKT_TRY(fkt_alloc(&label, n));
    progress->unit = "img";
    for (size_t i = 0; i < o->n_arms; i++) {
        struct fkt_images p = {rgb, label, n, t->size};
        FKT_TRY(draw(s, o, &o->arm[i], rgb, label));
        FKT_TRY(learn(s, o, &p, &progress->hook, &model));
        FKT_TRY(evaluate(o, model, &test, &progress->hook, &o->arm[i].network));
        fkt_model_free(model);
        model = NULL;
        cli_progress_end(progress);
        if (!s->run.quiet)
            fprintf(stderr, "%s: %s %.2f %%\n", o->arm[i].name,
                    fkt_architecture_name((enum fkt_architecture)(s->train - 1)), 100 * o->arm[i].network);
    }
    o->seconds_train = fkt_now() - start;
out:
    progress->unit = NULL;
    fkt_model_free(model);
    fkt_free(rgb);
    fkt_free(label);
    fkt_training_set_clear(&test);
    fkt_skipped_clear(&skipped);
    return st;
}
