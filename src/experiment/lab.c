/* SPDX-License-Identifier: Apache-2.0 */
/* lab.c - one simulated federation of an arm, from images to accuracies: a sweep of the library with the cell's seed.
 *
 * Partition, drop-outs, samples, first weights, keys, masks and noise all come from the seed; images are encoded once
 * and kept. A point has the accuracies of the three heads and of a network, where one is trained, and the hash of the
 * exact moments. The best head is chosen by its accuracy on the test images: it is a bound for the choice, not a
 * rule. */
#include "experiment/lab.h"

#include "base/alloc.h"
#include "fedkt/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EPOCHS = 20, PER_CLASS = 1000, QUICK_EPOCHS = 2, QUICK_PER_CLASS = 40 };

fkt_status fkt_lab_new(struct fkt_lab **out, const struct fkt_experiment_options *o, const char *encodings)
{
    struct fkt_lab *lab = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&lab, 1));
    lab->options = *o;
    FKT_TRY(fkt_strdup(&lab->folder, encodings));
    FKT_TRY(fkt_encodings_open(&lab->encodings, encodings));
    *out = lab;
    lab = NULL;
out:
    fkt_lab_free(lab);
    return st;
}

void fkt_lab_free(struct fkt_lab *lab)
{
    if (!lab) return;
    fkt_lab_close_set(lab);
    if (lab->encodings) fkt_encodings_close(lab->encodings);
    fkt_free(lab->folder);
    fkt_free(lab);
}

const struct fkt_experiment_options *fkt_lab_options(const struct fkt_lab *lab) { return &lab->options; }

fkt_status fkt_point_add(json_t *points, const struct fkt_position *x, const char *reference, json_t *values,
                         json_t *facts)
{
    json_t *point = json_object();
    char label[48] = "";
    int bad = !point || !values;
    if (!bad && x) {
        fkt_position_label(x, label);
        bad |= json_object_set_new(point, "x", json_real(x->x)) || json_object_set_new(point, "at", json_string(label));
    }
    if (!bad && reference) bad |= json_object_set_new(point, "reference", json_string(reference));
    if (!bad) bad |= json_object_set(point, "values", values);
    if (!bad && facts) bad |= json_object_set(point, "facts", facts);
    if (!bad) bad |= json_array_append(points, point);
    json_decref(point);
    json_decref(values);
    json_decref(facts);
    return bad ? fkt_fail(FKT_E_NOMEM, "out of memory for the points of a cell") : FKT_OK;
}

/* ---- a sweep ---- */

static void fill_spec(struct fkt_lab *lab, const struct fkt_lab_run *run, const struct fkt_lab_set *set,
                      struct fkt_sweep_spec *spec)
{
    const struct fkt_arm *a = run->arm;
    fkt_sweep_default(spec);
    spec->data = set->data;
    spec->test = set->test;
    spec->holdout = set->holdout;
    spec->task = (struct fkt_task_choices){
        .name = "an experiment",
        .privacy = {.delta = FKT_EXPERIMENT_DELTA, .adjacency = a->adjacency, .mechanism = a->mechanism},
        .accept_weak = 1};
    spec->epsilon = run->epsilon;
    spec->n_epsilon = run->n_epsilon;
    spec->partition = (struct fkt_partition_spec){.sites = run->sites, .seed = run->seed};
    spec->participation = run->participation;
    spec->noise = a->noise;
    spec->seed = run->seed;
    spec->insecure_seed = &run->seed;
    spec->encodings = lab->encodings;
    spec->threads = lab->options.threads;
    spec->progress = lab->options.progress;
}

static void recipe_of(const struct fkt_lab *lab, uint64_t seed, struct fkt_recipe *r)
{
    fkt_recipe_default(r);
    r->epochs = lab->options.quick ? QUICK_EPOCHS : EPOCHS;
    r->seed = seed;
    r->threads = lab->options.threads;
    r->device = lab->options.device;
}

static fkt_status train(struct fkt_lab *lab, const struct fkt_lab_run *run, struct fkt_sweep *sweep)
{
    struct fkt_sweep_network network = {.architecture = (enum fkt_architecture)(lab->options.network - 1),
                                        .per_class = run->per_class       ? run->per_class
                                                     : lab->options.quick ? QUICK_PER_CLASS
                                                                          : PER_CLASS,
                                        .progress = lab->options.progress};
    fkt_status st;
    recipe_of(lab, run->seed, &network.recipe);
    if (run->train_all) return fkt_sweep_train(sweep, &network);
    network.only = 1;
    FKT_TRY(fkt_sweep_train(sweep, &network));
    network.only = fkt_sweep_arms(sweep);
    if (run->reference) FKT_TRY(fkt_sweep_train(sweep, &network));
out:
    return st;
}

/* Accuracies of fedkt.results/1 with the best head among them. */
static json_t *values_of(const json_t *accuracy)
{
    json_t *values = json_deep_copy(accuracy), *v;
    const char *key;
    double best = NAN;
    json_object_foreach (values, key, v)
        if (fkt_head_parse(key) >= 0 && !(json_real_value(v) <= best)) best = json_real_value(v);
    if (values && isfinite(best)) json_object_set_new(values, "best_head", json_real(best));
    return values;
}

static json_t *facts_of(const json_t *results, const json_t *arm)
{
    const json_t *round = json_object_get(results, "aggregation");
    json_t *facts =
        json_pack("{s:O s:O s:O s:O}", "moments_sha256", json_object_get(results, "moments_sha256"), "records",
                  json_object_get(results, "records"), "survivors", json_object_get(results, "survivors"),
                  "bytes_per_site", json_object_get(results, "bytes_per_site"));
    if (facts && arm) json_object_set(facts, "release_sha256", json_object_get(arm, "release_sha256"));
    if (facts && json_is_object(round)) json_object_set(facts, "protocol", json_object_get(round, "protocol"));
    return facts;
}

static fkt_status add_points(const struct fkt_sweep *sweep, const struct fkt_position *x, int reference, json_t *points)
{
    char *text = NULL;
    json_t *results = NULL;
    const json_t *arms;
    fkt_status st;
    FKT_TRY(fkt_sweep_results_json(sweep, &text));
    results = json_loads(text, 0, NULL);
    arms = json_object_get(results, "arms");
    for (size_t i = 0; i < json_array_size(arms); i++) {
        const json_t *arm = json_array_get(arms, i);
        FKT_TRY(
            fkt_point_add(points, &x[i], NULL, values_of(json_object_get(arm, "accuracy")), facts_of(results, arm)));
    }
    if (reference)
        FKT_TRY(fkt_point_add(points, NULL, "no noise", values_of(json_object_get(results, "accuracy_without_privacy")),
                              facts_of(results, NULL)));
out:
    json_decref(results);
    fkt_string_free(text);
    return st;
}

fkt_status fkt_lab_sweep_new(struct fkt_lab *lab, const struct fkt_lab_run *run, struct fkt_sweep **out)
{
    struct fkt_calibration calibration[FKT_PARTS_MAX] = {{0}};
    struct fkt_sweep_spec spec;
    struct fkt_lab_set set;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_lab_set(lab, run->set, &set));
    fill_spec(lab, run, &set, &spec);
    FKT_TRY(fkt_partition_parse(&spec.partition, run->partition));
    for (uint32_t p = 0; p < FKT_PARTS_MAX; p++) spec.calibration[p] = &calibration[p];
    FKT_TRY(fkt_lab_parts(lab, run->arm, run->arm->size ? run->arm->size : set.size, &spec));
    FKT_TRY(fkt_sweep_new(out, &spec));
out:
    for (uint32_t p = 0; p < FKT_PARTS_MAX; p++) fkt_calibration_clear(&calibration[p]);
    return st;
}

fkt_status fkt_lab_sweep(struct fkt_lab *lab, const struct fkt_lab_run *run, const struct fkt_position *x,
                         json_t *points)
{
    struct fkt_sweep *sweep = NULL;
    fkt_status st;
    FKT_TRY(fkt_lab_sweep_new(lab, run, &sweep));
    FKT_TRY(fkt_sweep_run(sweep));
    if (run->train && lab->options.network) FKT_TRY(train(lab, run, sweep));
    FKT_TRY(add_points(sweep, x, run->reference, points));
out:
    fkt_sweep_free(sweep);
    return st;
}

/* ---- the bound: a network on the real records ---- */

static fkt_status the_images(void *ctx, uint32_t epoch, struct fkt_images *out)
{
    const struct fkt_training_set *p = ctx;
    (void)epoch;
    *out = (struct fkt_images){.rgb = p->rgb, .label = p->label, .n = p->n, .size = p->size};
    return FKT_OK;
}

/* The records that a sweep under add-remove trains and tests on. */
static fkt_status choose(const struct fkt_lab *lab, const struct fkt_lab_set *set, size_t **train, size_t *n_train,
                         size_t **test, size_t *n_test)
{
    const size_t n = fkt_dataset_size(set->data);
    uint64_t *keys = NULL;
    uint8_t *held = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(train, n));
    FKT_TRY(fkt_alloc(test, n));
    FKT_TRY(fkt_alloc(&keys, n));
    FKT_TRY(fkt_alloc(&held, n));
    if (!set->test) {
        FKT_TRY(fkt_dataset_keys(set->data, NULL, n, lab->options.threads, keys));
        FKT_TRY(fkt_split_holdout(held, keys, n, set->holdout, 0));
    }
    for (size_t i = 0; i < n; i++)
        if (held[i]) (*test)[(*n_test)++] = i;
        else (*train)[(*n_train)++] = i;
out:
    fkt_free(keys);
    fkt_free(held);
    return st;
}

static fkt_status learn(const struct fkt_lab *lab, uint64_t seed, struct fkt_training_set *train,
                        const struct fkt_training_set *test, double *accuracy)
{
    const struct fkt_model_spec network = {.architecture = (enum fkt_architecture)(lab->options.network - 1),
                                           .size = train->size,
                                           .classes = (const char *const *)train->classes,
                                           .n_classes = train->n_classes,
                                           .seed = seed};
    const struct fkt_trainer_hooks hooks = {.progress = lab->options.progress};
    const struct fkt_predict_options predict = {
        .threads = lab->options.threads, .progress = lab->options.progress, .device = lab->options.device};
    struct fkt_trainer_spec spec = {.source = {.images = the_images, .ctx = train}};
    struct fkt_model *start = NULL, *model = NULL;
    struct fkt_trainer *trainer = NULL;
    struct fkt_evaluation e = {0};
    fkt_status st;
    recipe_of(lab, seed, &spec.recipe);
    FKT_TRY(fkt_model_new(&start, &network));
    spec.start = start;
    FKT_TRY(fkt_trainer_new(&trainer, &spec));
    FKT_TRY(fkt_trainer_run(trainer, &hooks));
    FKT_TRY(fkt_trainer_model(trainer, 0, &model));
    FKT_TRY(fkt_evaluation_init(&e, train->n_classes));
    FKT_TRY(fkt_training_set_evaluate(&e, model, test, &predict));
    *accuracy = fkt_evaluation_accuracy(&e);
out:
    fkt_evaluation_clear(&e);
    fkt_model_free(model);
    fkt_trainer_free(trainer);
    fkt_model_free(start);
    return st;
}

fkt_status fkt_lab_real(struct fkt_lab *lab, const char *name, uint64_t seed, json_t *points)
{
    const struct fkt_training_set_options read = {.threads = lab->options.threads, .progress = lab->options.progress};
    struct fkt_training_set train = {0}, test = {0};
    size_t *idx = NULL, *held = NULL, n = 0, n_held = 0;
    struct fkt_lab_set set;
    double accuracy = NAN;
    fkt_status st;
    FKT_TRY(fkt_lab_set(lab, name, &set));
    FKT_TRY(choose(lab, &set, &idx, &n, &held, &n_held));
    FKT_TRY(fkt_training_set_read(&train, set.data, idx, n, set.size, FKT_FILTER_BILINEAR, NULL, &read));
    if (set.test)
        FKT_TRY(fkt_training_set_read(&test, set.test, NULL, fkt_dataset_size(set.test), set.size, FKT_FILTER_BILINEAR,
                                      NULL, &read));
    else FKT_TRY(fkt_training_set_read(&test, set.data, held, n_held, set.size, FKT_FILTER_BILINEAR, NULL, &read));
    FKT_TRY(learn(lab, seed, &train, &test, &accuracy));
    FKT_TRY(fkt_point_add(
        points, NULL, "real images",
        json_pack("{s:f}", fkt_architecture_name((enum fkt_architecture)(lab->options.network - 1)), accuracy), NULL));
out:
    fkt_training_set_clear(&train);
    fkt_training_set_clear(&test);
    fkt_free(idx);
    fkt_free(held);
    return st;
}
