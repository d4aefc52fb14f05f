/* SPDX-License-Identifier: Apache-2.0 */
/* student.c - a network that learns from a release and is evaluated once, after the last epoch, on real test images.
 *
 * A full run has the recipe of docs/results.md ("The guide"): other images in each epoch, 10,000 in all classes
 * together. An arm with a guide has its own head as the teacher, half of its images decoded without the guide, half of
 * them blends of two, and unlabelled images of the set `public`, where the folder of sets has one. Where the number of
 * images is the question (`per_class`), they are drawn once, there are no public ones and no blends, and epochs are as
 * many as make the usual number of steps. A quick run draws some images once.
 *
 * The same release gives the same network, so its accuracy is remembered: releases of one seed do not depend on the
 * partition. The reference is a release of exact moments, which never leaves this file. */
#include "experiment/student.h"

#include "base/alloc.h"
#include "fedkt/advanced/simulate.h"
#include "codec/codec.h"
#include "fedkt/training_source.h"
#include "pipeline/release.h"

#include <stdio.h>
#include <string.h>

enum {
    IMAGES = 10000, /* of an epoch */
    EPOCHS = 50,
    EPOCHS_TAUGHT = 75,
    EPOCHS_MOST = 500,
    REAL_EPOCHS = 20,
    BATCH = 256,
    QUICK_EPOCHS = 2,
    QUICK_PER_CLASS = 40
};
#define SHARE_PLAIN 0.5
#define SHARE_BLEND 0.5
#define TEMPERATURE 4
#define PUBLIC_SET "public"

struct student {
    struct fkt_lab *lab;
    const struct fkt_lab_run *run;
    const struct fkt_sweep *sweep;
    const struct fkt_release *release; /* one of the sweep's, or: */
    struct fkt_release exact;
    struct fkt_pipeline *pipeline;
    struct fkt_teacher *teacher;
    struct fkt_dataset *shared;
    struct fkt_training_source *source;
    struct fkt_training_set test;
    struct fkt_recipe recipe;
    size_t per_class;
};

void fkt_lab_recipe(const struct fkt_lab *lab, uint64_t seed, struct fkt_recipe *r)
{
    const int card = lab->options.device.kind == FKT_DEVICE_CUDA;
    fkt_recipe_default(r);
    r->epochs = QUICK_EPOCHS;
    r->seed = seed;
    r->threads = lab->options.threads;
    r->device = lab->options.device;
    if (lab->options.quick) return;
    r->epochs = REAL_EPOCHS;
    r->batch = BATCH;
    r->rate = 0.1;
    r->warmup = 2;
    r->dtype = card ? FKT_LEARN_DTYPE_BF16 : FKT_LEARN_DTYPE_F32;
}

fkt_status fkt_lab_learn(const struct fkt_lab *lab, const struct fkt_image_source *images,
                         const struct fkt_training_set *like, const struct fkt_recipe *recipe,
                         const struct fkt_training_set *test, double *accuracy)
{
    const struct fkt_model_spec network = {.architecture = (enum fkt_architecture)(lab->options.network - 1),
                                           .size = like->size,
                                           .classes = (const char *const *)like->classes,
                                           .n_classes = like->n_classes,
                                           .seed = recipe->seed};
    const struct fkt_trainer_hooks hooks = {.progress = lab->options.progress};
    const struct fkt_predict_options predict = {
        .threads = lab->options.threads, .progress = lab->options.progress, .device = lab->options.device};
    struct fkt_trainer_spec spec = {.source = *images, .recipe = *recipe};
    struct fkt_model *start = NULL, *model = NULL;
    struct fkt_trainer *trainer = NULL;
    struct fkt_evaluation e = {0};
    fkt_status st;
    FKT_TRY(fkt_model_new(&start, &network));
    spec.start = start;
    FKT_TRY(fkt_trainer_new(&trainer, &spec));
    FKT_TRY(fkt_trainer_run(trainer, &hooks));
    FKT_TRY(fkt_trainer_model(trainer, 0, &model));
    FKT_TRY(fkt_evaluation_init(&e, like->n_classes));
    FKT_TRY(fkt_training_set_evaluate(&e, model, test, &predict));
    *accuracy = fkt_evaluation_accuracy(&e);
out:
    fkt_evaluation_clear(&e);
    fkt_model_free(model);
    fkt_trainer_free(trainer);
    fkt_model_free(start);
    return st;
}

/* ---- what it learns from ---- */

static int is_taught(const struct student *s) { return s->run->arm->guide != NULL && s->run->arm->codec != NULL; }

static int is_fresh(const struct student *s) { return !s->lab->options.quick && !s->run->per_class; }

static void plan(struct student *s)
{
    const uint32_t classes = s->release->task.n_classes;
    const size_t usual = IMAGES / classes ? IMAGES / classes : 1;
    fkt_lab_recipe(s->lab, s->run->seed, &s->recipe);
    if (is_taught(s)) {
        s->recipe.temperature = TEMPERATURE;
        s->recipe.share = 1;
    }
    s->per_class = s->run->per_class ? s->run->per_class : s->lab->options.quick ? QUICK_PER_CLASS : usual;
    if (s->lab->options.quick) return;
    s->recipe.epochs = is_taught(s) && is_fresh(s) ? EPOCHS_TAUGHT : EPOCHS;
    if (!is_fresh(s)) {
        const size_t epochs = EPOCHS * usual / s->per_class;
        s->recipe.epochs = epochs < 1 ? 1 : epochs > EPOCHS_MOST ? EPOCHS_MOST : (uint32_t)epochs;
    }
}

/* The reference: exact moments in the shape of a release. */
static fkt_status without_noise(struct student *s)
{
    const struct fkt_release *like = fkt_sweep_arm(s->sweep, 0)->release;
    const int64_t *exact;
    fkt_status st;
    FKT_TRY(fkt_release_begin(&s->exact, &like->task, like->calibration, &like->facts));
    FKT_TRY(fkt_moments_packed(fkt_sweep_simulation(s->sweep)->total, &exact));
    memcpy(s->exact.moments, exact, fkt_task_numbers(&like->task) * sizeof *exact);
    memset(&s->exact.sigma, 0, sizeof s->exact.sigma);
    s->exact.insecure_seed = 1; /* NOT private */
    FKT_TRY(fkt_release_seal(&s->exact));
    s->release = &s->exact;
out:
    return st;
}

/* Public images beside those of the release; neither test images nor private records may be among them. */
static fkt_status add_public(struct student *s, const struct fkt_lab_set *set)
{
    const struct fkt_dataset_options o = {.unlabelled = 1};
    char *path = NULL;
    fkt_status st;
    if (!is_taught(s) || !is_fresh(s) || fkt_lab_find(s->lab, PUBLIC_SET, &path) != FKT_OK) return FKT_OK;
    FKT_TRY(fkt_dataset_open(&s->shared, path, &o));
    FKT_TRY(fkt_training_source_public(s->source, s->shared, PUBLIC_SET, 0, NULL));
    FKT_TRY(fkt_training_source_check_test(s->source, set->data));
    if (set->test) FKT_TRY(fkt_training_source_check_test(s->source, set->test));
out:
    fkt_free(path);
    return st;
}

static fkt_status open_source(struct student *s, const struct fkt_lab_set *set)
{
    const int card = s->lab->options.device.kind == FKT_DEVICE_CUDA;
    const struct fkt_codec_settings settings = {
        .weights = fkt_codec_has_calibration(s->run->arm->codec) ? NULL : s->lab->options.weights,
        .dtype = card ? FKT_CODEC_DTYPE_BF16 : FKT_CODEC_DTYPE_F32,
        .device = s->lab->options.device};
    struct fkt_training_source_spec spec = {
        .release = s->release,
        .fresh = is_fresh(s),
        .ahead = is_fresh(s) && card ? s->recipe.epochs : 0,
        .plain = is_taught(s) ? SHARE_PLAIN : 0,
        .blend = is_taught(s) && is_fresh(s) ? SHARE_BLEND : 0,
        .options = {.threads = s->lab->options.threads, .progress = s->lab->options.progress}};
    fkt_status st;
    FKT_TRY(fkt_release_pipeline(s->release, &settings, &s->pipeline));
    if (is_taught(s))
        FKT_TRY(fkt_teacher_of_release(&s->teacher, s->release, s->pipeline,
                                       fkt_head_default(s->release->task.layout.pooled), FKT_HEADS_DEFAULT));
    spec.teacher = s->teacher;
    spec.draw = (struct fkt_draw_options){.per_class = s->per_class, .seed = s->run->seed, .pipeline = s->pipeline};
    FKT_TRY(fkt_training_source_new(&s->source, &spec));
    FKT_TRY(add_public(s, set));
out:
    return st;
}

static fkt_status read_test(struct student *s)
{
    const struct fkt_training_set_options read = {.threads = s->lab->options.threads,
                                                  .progress = s->lab->options.progress};
    size_t n;
    const size_t *idx = fkt_sweep_test_records(s->sweep, &n);
    return fkt_training_set_read(&s->test, fkt_sweep_test_data(s->sweep), idx, n, s->release->task.size,
                                 s->release->task.filter, NULL, &read);
}

static void clear(struct student *s)
{
    fkt_training_set_clear(&s->test);
    fkt_training_source_free(s->source);
    fkt_dataset_free(s->shared);
    fkt_teacher_free(s->teacher);
    fkt_pipeline_free(s->pipeline);
    fkt_release_clear(&s->exact);
}

/* ---- what is remembered ---- */

int fkt_lab_recall(const struct fkt_lab *lab, struct fkt_lab_student *s)
{
    for (size_t i = 0; i < FKT_LAB_STUDENTS; i++) {
        const struct fkt_lab_student *old = &lab->student[i];
        if (!strcmp(old->from, s->from) && old->per_class == s->per_class && old->seed == s->seed &&
            old->epochs == s->epochs) {
            s->accuracy = old->accuracy;
            return 1;
        }
    }
    return 0;
}

void fkt_lab_remember(struct fkt_lab *lab, const struct fkt_lab_student *s)
{
    lab->student[lab->n_students++ % FKT_LAB_STUDENTS] = *s;
}

fkt_status fkt_lab_train(struct fkt_lab *lab, const struct fkt_lab_run *run, struct fkt_sweep *sweep, size_t arm)
{
    struct student s = {.lab = lab, .run = run, .sweep = sweep, .release = fkt_sweep_arm(sweep, arm)->release};
    const char *name = fkt_architecture_name((enum fkt_architecture)(lab->options.network - 1));
    struct fkt_image_source images;
    struct fkt_lab_student known;
    struct fkt_lab_set set;
    fkt_status st = FKT_OK;
    if (!s.release) FKT_TRY(without_noise(&s));
    plan(&s);
    known = (struct fkt_lab_student){.per_class = s.per_class, .seed = run->seed, .epochs = s.recipe.epochs};
    snprintf(known.from, sizeof known.from, "%s", s.release->sha256);
    if (!fkt_lab_recall(lab, &known)) {
        FKT_TRY(fkt_lab_set(lab, run->set, &set));
        FKT_TRY(read_test(&s));
        FKT_TRY(open_source(&s, &set));
        fkt_training_source_images(s.source, &images);
        FKT_TRY(fkt_lab_learn(lab, &images, fkt_training_source_set(s.source), &s.recipe, &s.test, &known.accuracy));
        fkt_lab_remember(lab, &known);
    }
    FKT_TRY(fkt_sweep_set_network(sweep, arm, name, known.accuracy, 0));
out:
    clear(&s);
    return st;
}
