/* SPDX-License-Identifier: Apache-2.0 */
/* lab_networks.c - networks of cells beside those of a sweep: on the real records of a set, which is the bound, and on
 * images of a release, for what is then done at the sites.
 *
 * The second is the usual network of an arm with a guide (guided images, the usual number of epochs) that also learns
 * from the head of its release (docs/results.md, "The guide"); no public images. Several cells start from it, so it
 * is trained once and kept in the folder of the run. */
#include "experiment/lab.h"

#include "base/alloc.h"
#include "base/file.h"
#include "fedkt/training_source.h"

#include <stdio.h>
#include <unistd.h>

static fkt_status the_images(void *ctx, uint32_t epoch, struct fkt_images *out)
{
    const struct fkt_training_set *p = ctx;
    (void)epoch;
    *out = (struct fkt_images){.rgb = p->rgb, .label = p->label, .n = p->n, .size = p->size};
    return FKT_OK;
}

void fkt_lab_images_clear(struct fkt_lab_images *p)
{
    fkt_training_set_clear(&p->train);
    fkt_training_set_clear(&p->test);
    fkt_free(p->train_record);
    fkt_free(p->test_record);
    *p = (struct fkt_lab_images){0};
}

/* Numbers of the records that are trained on, and of those that are held out. */
static fkt_status choose(const struct fkt_lab *lab, const struct fkt_lab_set *set, struct fkt_lab_images *p,
                         size_t *n_train, size_t *n_test)
{
    const size_t n = fkt_dataset_size(set->data);
    uint64_t *keys = NULL;
    uint8_t *held = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&p->train_record, n));
    FKT_TRY(fkt_alloc(&keys, n));
    FKT_TRY(fkt_alloc(&held, n));
    if (!set->test) {
        FKT_TRY(fkt_alloc(&p->test_record, n));
        FKT_TRY(fkt_dataset_keys(set->data, NULL, n, lab->options.threads, keys));
        FKT_TRY(fkt_split_holdout(held, keys, n, set->holdout, 0));
    }
    for (size_t i = 0; i < n; i++)
        if (held[i]) p->test_record[(*n_test)++] = i;
        else p->train_record[(*n_train)++] = i;
    if (set->test) *n_test = fkt_dataset_size(set->test);
out:
    fkt_free(keys);
    fkt_free(held);
    return st;
}

fkt_status fkt_lab_images(struct fkt_lab *lab, const char *name, struct fkt_lab_images *out)
{
    const struct fkt_training_set_options read = {.threads = lab->options.threads, .progress = lab->options.progress};
    size_t n = 0, n_test = 0;
    struct fkt_lab_set set;
    fkt_status st;
    FKT_TRY(fkt_lab_set(lab, name, &set));
    FKT_TRY(choose(lab, &set, out, &n, &n_test));
    FKT_TRY(
        fkt_training_set_read(&out->train, set.data, out->train_record, n, set.size, FKT_FILTER_BILINEAR, NULL, &read));
    FKT_TRY(fkt_training_set_read(&out->test, set.test ? set.test : set.data, out->test_record, n_test, set.size,
                                  FKT_FILTER_BILINEAR, NULL, &read));
out:
    return st;
}

fkt_status fkt_lab_network(const struct fkt_lab *lab, const struct fkt_training_set *images, uint64_t seed,
                           struct fkt_model **out)
{
    const struct fkt_model_spec network = {.architecture = (enum fkt_architecture)(lab->options.network - 1),
                                           .size = images->size,
                                           .classes = (const char *const *)images->classes,
                                           .n_classes = images->n_classes,
                                           .seed = seed};
    return fkt_model_new(out, &network);
}

static fkt_status learn(const struct fkt_lab *lab, const struct fkt_recipe *recipe,
                        const struct fkt_image_source *source, const struct fkt_training_set *images,
                        struct fkt_model **out)
{
    const struct fkt_trainer_hooks hooks = {.progress = lab->options.progress};
    struct fkt_trainer_spec spec = {.recipe = *recipe, .source = *source};
    struct fkt_trainer *trainer = NULL;
    struct fkt_model *start = NULL;
    fkt_status st;
    FKT_TRY(fkt_lab_network(lab, images, recipe->seed, &start));
    spec.start = start;
    FKT_TRY(fkt_trainer_new(&trainer, &spec));
    FKT_TRY(fkt_trainer_run(trainer, &hooks));
    FKT_TRY(fkt_trainer_model(trainer, 0, out));
out:
    fkt_trainer_free(trainer);
    fkt_model_free(start);
    return st;
}

/* ---- the bound ---- */

fkt_status fkt_lab_real(struct fkt_lab *lab, const char *name, uint64_t seed, json_t *points)
{
    const struct fkt_predict_options predict = {
        .threads = lab->options.threads, .progress = lab->options.progress, .device = lab->options.device};
    struct fkt_lab_images p = {.train_record = NULL};
    const struct fkt_image_source source = {.images = the_images, .ctx = &p.train};
    struct fkt_evaluation e = {0};
    struct fkt_model *model = NULL;
    struct fkt_recipe recipe;
    fkt_status st;
    fkt_lab_recipe(lab, seed, &recipe);
    FKT_TRY(fkt_lab_images(lab, name, &p));
    FKT_TRY(learn(lab, &recipe, &source, &p.train, &model));
    FKT_TRY(fkt_evaluation_init(&e, p.train.n_classes));
    FKT_TRY(fkt_training_set_evaluate(&e, model, &p.test, &predict));
    FKT_TRY(fkt_point_add(
        points, NULL, "real images",
        json_pack("{s:f}", fkt_architecture_name(fkt_model_architecture(model)), fkt_evaluation_accuracy(&e)), NULL));
out:
    fkt_evaluation_clear(&e);
    fkt_model_free(model);
    fkt_lab_images_clear(&p);
    return st;
}

/* ---- from a release ---- */

static fkt_status pretrain(struct fkt_lab *lab, const struct fkt_lab_run *run, struct fkt_model **out)
{
    struct fkt_training_source_spec spec = {
        .draw = {.per_class = fkt_lab_per_class(lab), .seed = run->seed},
        .options = {.threads = lab->options.threads, .progress = lab->options.progress, .device = lab->options.device}};
    struct fkt_training_source *images = NULL;
    struct fkt_teacher *teacher = NULL;
    struct fkt_sweep *sweep = NULL;
    struct fkt_image_source source;
    struct fkt_recipe recipe;
    fkt_status st;
    FKT_TRY(fkt_lab_federation(lab, run, &sweep));
    spec.release = fkt_sweep_arm(sweep, 0)->release;
    spec.draw.pipeline = fkt_sweep_pipeline(sweep);
    FKT_TRY(fkt_teacher_of_release(&teacher, spec.release, spec.draw.pipeline, fkt_head_default(0), FKT_HEADS_DEFAULT));
    spec.teacher = teacher;
    FKT_TRY(fkt_training_source_new(&images, &spec));
    fkt_training_source_images(images, &source);
    fkt_lab_recipe(lab, run->seed, &recipe);
    recipe.temperature = FKT_TEACHER_TEMPERATURE;
    recipe.share = 1;
    FKT_TRY(learn(lab, &recipe, &source, fkt_training_source_set(images), out));
    fkt_model_set_origin(*out, &fkt_training_source_set(images)->origin);
out:
    fkt_training_source_free(images);
    fkt_teacher_free(teacher);
    fkt_sweep_free(sweep);
    return st;
}

fkt_status fkt_lab_pretrained(struct fkt_lab *lab, const struct fkt_lab_run *run, struct fkt_model **out)
{
    char name[128], *folder = NULL, *file = NULL;
    fkt_status st;
    *out = NULL;
    snprintf(name, sizeof name, "%s.%llu.safetensors", run->set, (unsigned long long)run->seed);
    FKT_TRY(fkt_path_join(&folder, lab->run, "networks"));
    FKT_TRY(fkt_path_join(&file, folder, name));
    if (access(file, R_OK) == 0) {
        FKT_TRY(fkt_model_load(out, file, 0));
        goto out;
    }
    FKT_TRY(pretrain(lab, run, out));
    FKT_TRY(fkt_mkdirs(folder));
    FKT_TRY(fkt_model_save(*out, file, 1));
out:
    fkt_free(folder);
    fkt_free(file);
    return st;
}
