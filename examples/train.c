/* SPDX-License-Identifier: Apache-2.0 */
/* train.c - a network that has seen nothing but a private release, from images to the saved model, in memory.
 *
 *   real images -> moments    | debit, noise |  -> synthetic images -> ResNet-8 -> model.safetensors
 *   secret from here ...      | the release  |  ... public from here, whatever is done with it
 *
 * The images are the built-in set "demo:train", ten classes; your own are a path instead of it. Images and epochs
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
    TRY(fkt_task_make(&task, &choices, &(struct fkt_part_choice){.codec = codec, .calibration = &calibration}, 1));
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

static fkt_status print_epoch(void *ctx, const struct fkt_epoch *e)
{
    (void)ctx;
    printf("epoch %u: loss %.3f, %.0f %% of what it learns from, %.0f images/s\n", e->epoch, e->loss, 100 * e->accuracy,
           e->images_per_second);
    return FKT_OK;
}

static int print_step(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    (void)self;
    fprintf(stderr, "\r%s: %llu of %llu images%s", what, done, total, done == total ? "\n" : "");
    return 0; /* any other answer stops the run, and writes the checkpoint that was asked for */
}

/* Each epoch trains on other samples of the release. */
static void learn(struct fkt_training_source *source, struct fkt_model **model)
{
    const struct fkt_training_set *images = fkt_training_source_set(source);
    const struct fkt_model_spec network = {.architecture = FKT_ARCHITECTURE_RESNET8,
                                           .size = images->size,
                                           .seed = 1,
                                           .classes = (const char *const *)images->classes,
                                           .n_classes = images->n_classes};
    const struct fkt_progress progress = {.step = print_step};
    const struct fkt_trainer_hooks hooks = {.epoch = print_epoch, .progress = &progress};
    struct fkt_trainer_spec spec = {.held = fkt_training_source_held(source)};
    struct fkt_model_origin origin;
    struct fkt_model *start = NULL;
    struct fkt_trainer *trainer = NULL;
    fkt_training_source_images(source, &spec.source);
    fkt_recipe_default(&spec.recipe);
    spec.recipe.epochs = EPOCHS;
    spec.recipe.batch = 20;
    spec.recipe.pad = 2;
    TRY(fkt_model_start(&start, NULL, &network, NULL));
    spec.start = start;
    TRY(fkt_trainer_new(&trainer, &spec));
    TRY(fkt_trainer_run(trainer, &hooks));
    TRY(fkt_trainer_model(trainer, 0, model));
    fkt_training_origin(&origin, images, NULL, NULL); /* what the model may claim */
    if (st == FKT_OK) fkt_model_set_origin(*model, &origin);
    fkt_trainer_free(trainer);
    fkt_model_free(start);
}

/* On real images, once, at the end. */
static double evaluate(const struct fkt_model *model)
{
    struct fkt_dataset *test = NULL;
    struct fkt_evaluation evaluation = {0};
    double accuracy;
    TRY(fkt_model_open_dataset(&test, model, "demo:test", &(struct fkt_dataset_options){.limit = TESTS}, 1));
    TRY(fkt_evaluation_init(&evaluation, fkt_model_classes(model)));
    TRY(fkt_model_evaluate(&evaluation, NULL, model, test, FKT_FILTER_BILINEAR, NULL,
                           &(struct fkt_training_set_options){0}));
    accuracy = st == FKT_OK ? fkt_evaluation_accuracy(&evaluation) : 0;
    fkt_evaluation_clear(&evaluation);
    fkt_dataset_free(test);
    return accuracy;
}

int main(void)
{
    struct fkt_release *release = NULL;
    struct fkt_pipeline *pipeline = NULL;
    struct fkt_training_source_spec spec = {.draw = {.per_class = PER_CLASS}, .fresh = 1};
    struct fkt_training_source *source = NULL;
    struct fkt_model *model = NULL, *again = NULL;
    double accuracy = 0, same = 1;
    make_release(&release);
    TRY(fkt_release_pipeline(release, NULL, &pipeline));
    spec.release = release;
    spec.draw.pipeline = pipeline;
    TRY(fkt_training_source_new(&source, &spec));
    TRY(fkt_training_source_hold_out(source, 0.1, 0, EPOCHS)); /* samples that no epoch trains on */
    if (st == FKT_OK) learn(source, &model);
    if (st == FKT_OK) accuracy = evaluate(model);
    TRY(fkt_model_save(model, "model.safetensors", 0));
    TRY(fkt_model_load(&again, "model.safetensors", 0));
    if (st == FKT_OK) same = evaluate(again);
    if (st == FKT_OK) {
        const struct fkt_model_origin *o = fkt_model_origin(again);
        printf("%.0f %% of %d real images are right; chance is %.0f %%\n", 100 * accuracy, TESTS,
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
    fkt_training_source_free(source);
    fkt_pipeline_free(pipeline);
    fkt_release_free(release);
    return st == FKT_OK ? 0 : 1;
}
