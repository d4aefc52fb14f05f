/* SPDX-License-Identifier: Apache-2.0 */
/* lab.c - one simulated federation of an arm, from images to accuracies: a sweep of the library with the cell's seed.
 *
 * Partition, drop-outs, samples, first weights, keys, masks and noise all come from the seed; images are encoded once
 * and kept. A point has the accuracies of the heads and of a network, where one is trained, and the hash of the
 * exact moments. The best head is chosen by its accuracy on the test images: it is a bound for the choice, not a
 * rule. */
#include "experiment/lab.h"

#include "base/alloc.h"
#include "fedkt/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

fkt_status fkt_lab_new(struct fkt_lab **out, const struct fkt_experiment_options *o, const char *folder,
                       const char *encodings)
{
    struct fkt_lab *lab = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&lab, 1));
    lab->options = *o;
    lab->notes = json_object();
    if (!lab->notes) {
        st = fkt_fail(FKT_E_NOMEM, "out of memory for what a cell says of itself");
        goto out;
    }
    FKT_TRY(fkt_strdup(&lab->run, folder));
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
    fkt_free(lab->run);
    json_decref(lab->notes);
    fkt_free(lab);
}

const struct fkt_experiment_options *fkt_lab_options(const struct fkt_lab *lab) { return &lab->options; }

int fkt_lab_unwritable(const struct fkt_lab *lab) { return lab->unwritable; }

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

int fkt_values_have_network(const json_t *values)
{
    const char *key;
    json_t *v;
    json_object_foreach ((json_t *)values, key, v)
        if (fkt_architecture_parse(key) >= 0) return 1;
    return 0;
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

/* Where not all are asked for: the first epsilon. Without noise, which is the last arm of a sweep, for the first seed
 * alone: networks of releases take the time of a run, and these are no more than a reference. */
static fkt_status train(struct fkt_lab *lab, const struct fkt_lab_run *run, struct fkt_sweep *sweep)
{
    const int reference = run->reference && run->seed == lab->options.seed[0];
    const size_t arms = fkt_sweep_arms(sweep);
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < arms; i++)
        if (i + 1 == arms ? reference : !i || run->train_all) FKT_TRY(fkt_lab_train(lab, run, sweep, i));
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

/* accuracy: of the point. arm: NULL of the one without noise. */
static json_t *facts_of(const struct fkt_lab *lab, const json_t *results, const json_t *arm, const json_t *accuracy)
{
    const json_t *round = json_object_get(results, "aggregation");
    json_t *facts =
        json_pack("{s:O s:O s:O s:O}", "moments_sha256", json_object_get(results, "moments_sha256"), "records",
                  json_object_get(results, "records"), "survivors", json_object_get(results, "survivors"),
                  "bytes_per_site", json_object_get(results, "bytes_per_site"));
    if (facts) json_object_set_new(facts, "partition", json_string(lab->partition));
    if (facts && lab->shared && fkt_values_have_network(accuracy))
        json_object_set_new(facts, "public_images", json_integer((json_int_t)lab->shared));
    if (facts && arm) json_object_set(facts, "release_sha256", json_object_get(arm, "release_sha256"));
    if (facts && json_is_object(round)) json_object_set(facts, "protocol", json_object_get(round, "protocol"));
    return facts;
}

static fkt_status add_points(const struct fkt_lab *lab, const struct fkt_sweep *sweep, const struct fkt_position *x,
                             int reference, json_t *points)
{
    char *text = NULL;
    json_t *results = NULL;
    const json_t *arms, *exact;
    fkt_status st;
    FKT_TRY(fkt_sweep_results_json(sweep, &text));
    results = json_loads(text, 0, NULL);
    arms = json_object_get(results, "arms");
    exact = json_object_get(results, "accuracy_without_privacy");
    for (size_t i = 0; i < json_array_size(arms); i++) {
        const json_t *arm = json_array_get(arms, i), *accuracy = json_object_get(arm, "accuracy");
        FKT_TRY(fkt_point_add(points, &x[i], NULL, values_of(accuracy), facts_of(lab, results, arm, accuracy)));
    }
    if (reference)
        FKT_TRY(fkt_point_add(points, NULL, "no noise", values_of(exact), facts_of(lab, results, NULL, exact)));
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

fkt_status fkt_lab_federation(struct fkt_lab *lab, const struct fkt_lab_run *run, struct fkt_sweep **out)
{
    struct fkt_partition_spec partition = {.sites = run->sites, .seed = run->seed};
    struct fkt_sweep *sweep = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_partition_parse(&partition, run->partition));
    FKT_TRY(fkt_lab_sweep_new(lab, run, &sweep));
    FKT_TRY(fkt_sweep_run(sweep));
    FKT_TRY(fkt_lab_sweep_partition(lab, sweep, &partition, run->arm->adjacency));
    *out = sweep;
    sweep = NULL;
out:
    fkt_sweep_free(sweep);
    return st;
}

fkt_status fkt_lab_sweep(struct fkt_lab *lab, const struct fkt_lab_run *run, const struct fkt_position *x,
                         json_t *points)
{
    struct fkt_sweep *sweep = NULL;
    fkt_status st;
    lab->shared = 0;
    FKT_TRY(fkt_lab_federation(lab, run, &sweep));
    if (run->train && run->arm->codec && lab->options.network) FKT_TRY(train(lab, run, sweep));
    FKT_TRY(add_points(lab, sweep, x, run->reference, points));
out:
    fkt_sweep_free(sweep);
    return st;
}
