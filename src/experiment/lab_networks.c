/* SPDX-License-Identifier: Apache-2.0 */
/* lab_networks.c - what networks of cells have in common: the records of a set as images, the training, the accuracy;
 * and the bounds, a network and a head on the real records.
 *
 * A network is evaluated once, after the last epoch. The accuracies of the last ones are remembered, since several
 * cells ask for the same one. */
#include "experiment/lab.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

enum { EPOCHS = 20, BATCH = 256, QUICK_EPOCHS = 2 };

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

fkt_status fkt_lab_network(struct fkt_lab *lab, const struct fkt_training_set *images, uint64_t seed,
                           struct fkt_model **out)
{
    const struct fkt_model_spec network = {.architecture = (enum fkt_architecture)(lab->options.network - 1),
                                           .size = images->size,
                                           .classes = (const char *const *)images->classes,
                                           .n_classes = images->n_classes,
                                           .seed = seed};
    fkt_status st;
    FKT_TRY(fkt_model_new(out, &network));
    FKT_TRY(fkt_lab_note_network(lab));
out:
    return st;
}

void fkt_lab_recipe(const struct fkt_lab *lab, uint64_t seed, struct fkt_recipe *r)
{
    fkt_recipe_default(r);
    r->epochs = QUICK_EPOCHS;
    r->seed = seed;
    r->threads = lab->options.threads;
    r->device = lab->options.device;
    if (lab->options.quick) return;
    r->epochs = EPOCHS;
    r->batch = BATCH;
    r->rate = 0.1;
    r->warmup = 2;
    if (r->device.kind == FKT_DEVICE_CUDA) r->dtype = FKT_LEARN_DTYPE_BF16;
}

fkt_status fkt_lab_learn(struct fkt_lab *lab, const struct fkt_recipe *recipe, const struct fkt_image_source *source,
                         const struct fkt_training_set *like, struct fkt_model **out)
{
    const struct fkt_trainer_hooks hooks = {.progress = lab->options.progress};
    struct fkt_trainer_spec spec = {.recipe = *recipe, .source = *source};
    struct fkt_trainer *trainer = NULL;
    struct fkt_model *start = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_lab_network(lab, like, recipe->seed, &start));
    spec.start = start;
    FKT_TRY(fkt_trainer_new(&trainer, &spec));
    FKT_TRY(fkt_trainer_run(trainer, &hooks));
    FKT_TRY(fkt_trainer_model(trainer, 0, out));
out:
    fkt_trainer_free(trainer);
    fkt_model_free(start);
    return st;
}

fkt_status fkt_lab_evaluate(const struct fkt_lab *lab, const struct fkt_model *m, const struct fkt_training_set *test,
                            double *accuracy)
{
    const struct fkt_predict_options predict = {
        .threads = lab->options.threads, .progress = lab->options.progress, .device = lab->options.device};
    struct fkt_evaluation e = {0};
    fkt_status st;
    FKT_TRY(fkt_evaluation_init(&e, fkt_model_classes(m)));
    FKT_TRY(fkt_training_set_evaluate(&e, m, test, &predict));
    *accuracy = fkt_evaluation_accuracy(&e);
out:
    fkt_evaluation_clear(&e);
    return st;
}

/* ---- what is remembered ---- */

int fkt_lab_recall(const struct fkt_lab *lab, struct fkt_lab_student *s)
{
    for (size_t i = 0; i < FKT_LAB_STUDENTS; i++) {
        const struct fkt_lab_student *old = &lab->student[i];
        if (!strcmp(old->from, s->from) && old->per_class == s->per_class && old->seed == s->seed &&
            old->epochs == s->epochs && old->fresh == s->fresh) {
            *s = *old;
            return 1;
        }
    }
    return 0;
}

void fkt_lab_remember(struct fkt_lab *lab, const struct fkt_lab_student *s)
{
    lab->student[lab->n_students++ % FKT_LAB_STUDENTS] = *s;
}

/* ---- the bound ---- */

static fkt_status learn_real(struct fkt_lab *lab, const char *name, const struct fkt_recipe *recipe, double *accuracy)
{
    struct fkt_lab_images p = {.train_record = NULL};
    const struct fkt_image_source source = {.images = the_images, .ctx = &p.train};
    struct fkt_model *model = NULL;
    fkt_status st;
    FKT_TRY(fkt_lab_images(lab, name, &p));
    FKT_TRY(fkt_lab_learn(lab, recipe, &source, &p.train, &model));
    FKT_TRY(fkt_lab_evaluate(lab, model, &p.test, accuracy));
out:
    fkt_model_free(model);
    fkt_lab_images_clear(&p);
    return st;
}

static fkt_status real_network(struct fkt_lab *lab, const struct fkt_cell *c, json_t *values)
{
    const char *network = fkt_architecture_name((enum fkt_architecture)(lab->options.network - 1));
    struct fkt_lab_student known = {.seed = c->seed};
    struct fkt_recipe recipe;
    fkt_status st = FKT_OK;
    fkt_lab_recipe(lab, c->seed, &recipe);
    known.epochs = recipe.epochs;
    snprintf(known.from, sizeof known.from, "%s", c->panel);
    if (!fkt_lab_recall(lab, &known)) {
        FKT_TRY(learn_real(lab, c->panel, &recipe, &known.accuracy));
        fkt_lab_remember(lab, &known);
    }
    FKT_TRY(fkt_lab_note_network(lab));
    json_object_set_new(values, network, json_real(known.accuracy));
out:
    return st;
}

fkt_status fkt_lab_real(struct fkt_lab *lab, const struct fkt_cell *c, json_t *points)
{
    json_t *values = json_object();
    double head;
    fkt_status st;
    FKT_TRY(fkt_lab_real_head(lab, c->panel, c->seed, &head));
    json_object_set_new(values, "real_head", json_real(head));
    if (fkt_experiment_trains(c->experiment, &lab->options)) FKT_TRY(real_network(lab, c, values));
    st = fkt_point_add(points, NULL, "real images", json_incref(values), NULL);
out:
    json_decref(values);
    return st;
}
