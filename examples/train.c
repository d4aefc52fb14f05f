/* SPDX-License-Identifier: Apache-2.0 */
/* train.c - a network that has seen nothing but a private release, from pictures to the saved model, in memory.
 *
 *   real pictures -> moments  | debit, noise |  -> drawn pictures -> ResNet-8 -> model.safetensors
 *   secret from here ...      | the release  |  ... public from here, whatever is done with it
 *
 * The pictures are the built-in set "demo:train", ten classes; your own are a path instead of it. Pictures and epochs
 * are few, so that it takes seconds: the network is better than chance and no more. `fedkt train` does the same with
 * files. Writes "model.safetensors" into the working folder. Build it against an installed library:
 *   cc train.c $(pkg-config --cflags --libs fedkt) */
#include "fedkt/fedkt.h"

#include <stdio.h>

enum { SIZE = 16, RECORDS = 2000, PER_CLASS = 60, TESTS = 200, EPOCHS = 3, CLASSES_MAX = 16 };

static fkt_status st = FKT_OK; /* the first failure ends it */
#define TRY(call) st = st == FKT_OK ? (call) : st

/* The site's part: what comes out may be shown to anyone. Records that live on need a ledger in a file (ledger.h). */
static void make_release(struct fkt_release **out)
{
    struct fkt_codec *codec = NULL;
    struct fkt_calibration calibration = {0};
    struct fkt_dataset *records = NULL;
    struct fkt_task *task = NULL;
    struct fkt_pipeline *pipeline = NULL;
    struct fkt_moments *moments = NULL;
    struct fkt_privacy_plan plan = {0};
    struct fkt_ledger ledger = {0};
    const char *classes[CLASSES_MAX];
    struct fkt_task_choices choices = {.classes = classes, .privacy = {.epsilon = 10, .delta = 1e-5}};

    TRY(fkt_dataset_open(&records, "demo:train", &(struct fkt_dataset_options){.limit = RECORDS}));
    for (size_t k = 0; st == FKT_OK && k < fkt_dataset_classes(records) && k < CLASSES_MAX; k++)
        classes[choices.n_classes++] = fkt_dataset_class(records, k);
    TRY(fkt_codec_open(&codec, &(struct fkt_codec_spec){.name = "dct", .size = SIZE, .dim = 32}));
    TRY(fkt_calibration_embedded(&calibration, codec));
    TRY(fkt_task_make(&task, &choices, codec, &calibration));
    TRY(fkt_pipeline_open(&pipeline, task, NULL, NULL));
    TRY(fkt_pipeline_moments_new(pipeline, &moments));
    TRY(fkt_pipeline_moments(pipeline, records, NULL, 0, moments, &(struct fkt_pipeline_options){0}));
    TRY(fkt_privacy_plan(&plan, fkt_task_privacy(task)));
    TRY(fkt_ledger_init(&ledger, plan.mu * plan.mu, 0.0)); /* enough for one release, not for two */
    TRY(fkt_release_make(out, task, &calibration, moments, &(struct fkt_round_facts){.sites = 1, .survivors = 1},
                         &ledger, NULL));
    fkt_moments_free(moments);
    fkt_pipeline_free(pipeline);
    fkt_task_free(task);
    fkt_calibration_clear(&calibration);
    fkt_codec_free(codec);
    fkt_dataset_free(records);
}

/* The pictures of an epoch: here always the same. A source may as well draw others each time. */
static fkt_status same_images(void *ctx, uint32_t epoch, struct fkt_images *out)
{
    const struct fkt_training_set *p = ctx;
    (void)epoch;
    *out = (struct fkt_images){p->rgb, p->label, p->n, p->size};
    return FKT_OK;
}

static fkt_status tell_epoch(void *ctx, const struct fkt_epoch *e)
{
    (void)ctx;
    printf("epoch %u: loss %.3f, %.0f %% of what it learns from, %.0f images/s\n", e->epoch, e->loss, 100 * e->accuracy,
           e->images_per_second);
    return FKT_OK;
}

static int tell_step(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    (void)self;
    fprintf(stderr, "\r%s: %llu of %llu images%s", what, done, total, done == total ? "\n" : "");
    return 0; /* any other answer stops the run, and writes the checkpoint that was asked for */
}

static void learn(const struct fkt_training_set *images, struct fkt_model **model)
{
    const struct fkt_model_spec network = {.architecture = FKT_ARCHITECTURE_RESNET8,
                                           .size = images->size,
                                           .seed = 1,
                                           .classes = (const char *const *)images->classes,
                                           .n_classes = images->n_classes};
    const struct fkt_progress progress = {.step = tell_step};
    const struct fkt_trainer_hooks hooks = {.epoch = tell_epoch, .progress = &progress};
    struct fkt_trainer_spec spec = {.source = {.images = same_images, .ctx = (void *)images}};
    struct fkt_model *start = NULL;
    struct fkt_trainer *trainer = NULL;
    fkt_recipe_default(&spec.recipe);
    spec.recipe.epochs = EPOCHS;
    spec.recipe.batch = 20;
    spec.recipe.pad = 2;
    TRY(fkt_model_new(&start, &network));
    spec.start = start;
    TRY(fkt_trainer_new(&trainer, &spec));
    TRY(fkt_trainer_run(trainer, &hooks));
    TRY(fkt_trainer_model(trainer, 0, model));
    if (st == FKT_OK) fkt_model_set_origin(*model, &images->origin); /* what it may claim goes with it */
    fkt_trainer_free(trainer);
    fkt_model_free(start);
}

/* On real pictures, once, at the end. */
static double evaluate(const struct fkt_model *model)
{
    struct fkt_dataset *set = NULL;
    struct fkt_training_set test = {0};
    struct fkt_evaluation evaluation = {0};
    double accuracy;
    TRY(fkt_dataset_open(&set, "demo:test", &(struct fkt_dataset_options){.limit = TESTS}));
    TRY(fkt_training_set_read(&test, set, NULL, 0, SIZE, FKT_FILTER_BILINEAR, NULL,
                              &(struct fkt_training_set_options){0}));
    TRY(fkt_evaluation_init(&evaluation, test.n_classes));
    TRY(fkt_training_set_evaluate(&evaluation, model, &test, &(struct fkt_predict_options){0}));
    accuracy = st == FKT_OK ? fkt_evaluation_accuracy(&evaluation) : 0;
    fkt_evaluation_clear(&evaluation);
    fkt_training_set_clear(&test);
    fkt_dataset_free(set);
    return accuracy;
}

int main(void)
{
    struct fkt_release *release = NULL;
    struct fkt_pipeline *pipeline = NULL;
    struct fkt_training_set train = {0};
    struct fkt_model *model = NULL, *again = NULL;
    double accuracy = 0, same = 1;
    make_release(&release);
    TRY(fkt_release_pipeline(release, NULL, &pipeline));
    TRY(fkt_training_set_draw(&train, release, &(struct fkt_draw_options){.per_class = PER_CLASS, .pipeline = pipeline},
                              &(struct fkt_training_set_options){0}));
    if (st == FKT_OK) learn(&train, &model);
    if (st == FKT_OK) accuracy = evaluate(model);
    TRY(fkt_model_save(model, "model.safetensors", 0));
    TRY(fkt_model_load(&again, "model.safetensors", 0));
    if (st == FKT_OK) same = evaluate(again);
    if (st == FKT_OK) {
        const struct fkt_model_origin *o = fkt_model_origin(again);
        printf("%.0f %% of %d real pictures are right; chance is %.0f %%\n", 100 * accuracy, TESTS,
               100.0 / fkt_model_classes(again));
        printf("model.safetensors: %s, epsilon %g, delta %g; it learned from %s\n",
               o->is_private ? "private" : "NOT private", o->epsilon, o->delta, o->data);
        if (same != accuracy || !o->is_private || accuracy < 0.15) {
            fprintf(stderr, "train: the model learned nothing, or lost something on its way through the file\n");
            st = FKT_E_STATE;
        }
    } else {
        fprintf(stderr, "train: %s\n", fkt_error_text());
    }
    fkt_model_free(again);
    fkt_model_free(model);
    fkt_training_set_clear(&train);
    fkt_pipeline_free(pipeline);
    fkt_release_free(release);
    return st == FKT_OK ? 0 : 1;
}
