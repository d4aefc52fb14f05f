/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_plan.c - what a sweep decides before the first image is encoded: which records are tested on, which federation
 * the sites form, and the task of each arm.
 *
 * The federation tolerates the sites that `dropout` will lose and at least as many as a task does by default, unless
 * the spec gives a number. Both numbers cost noise: the promise depends on the noise shares of the sites that are
 * certain to be honest and in the total. */
#include "simulate/sweep.h"

#include "base/alloc.h"
#include "pipeline/pipeline.h"
#include "task/federation.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static fkt_status all_indices(size_t **out, size_t n)
{
    fkt_status st = fkt_alloc(out, n);
    for (size_t i = 0; st == FKT_OK && i < n; i++) (*out)[i] = i;
    return st;
}

static fkt_status hold_out(struct fkt_sweep *s)
{
    size_t n = fkt_dataset_size(s->spec.data);
    uint8_t *held = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&held, n));
    FKT_TRY(fkt_alloc(&s->train, n));
    FKT_TRY(fkt_alloc(&s->test, n));
    FKT_TRY(fkt_split_holdout(held, s->keys, n, s->spec.holdout, 0)); /* a fixed seed: the same split in every run */
    for (size_t i = 0; i < n; i++)
        if (held[i]) s->test[s->n_test++] = i;
        else s->train[s->n_train++] = i;
    s->test_data = s->spec.data;
    if (!s->n_train || !s->n_test)
        st = fkt_fail_hint(FKT_E_ARG, "give a fraction between 0 and 1, for example 0.2, or more images",
                           "a hold-out of %g leaves %zu training and %zu test images", s->spec.holdout, s->n_train,
                           s->n_test);
out:
    fkt_free(held);
    return st;
}

fkt_status fkt_sweep_choose_records(struct fkt_sweep *s)
{
    const size_t n = fkt_dataset_size(s->spec.data);
    fkt_status st;
    FKT_TRY(fkt_alloc(&s->keys, n));
    FKT_TRY(fkt_simulation_keys(s->spec.data, s->spec.task.privacy.adjacency, s->spec.threads, s->keys));
    if (s->spec.holdout != 0) return hold_out(s);
    s->n_train = n;
    FKT_TRY(all_indices(&s->train, n));
    if (!s->spec.test) goto out;
    s->test_data = s->spec.test;
    s->n_test = fkt_dataset_size(s->spec.test);
    FKT_TRY(all_indices(&s->test, s->n_test));
out:
    return st;
}

void fkt_sweep_simulation_spec(const struct fkt_sweep *s, struct fkt_simulation_spec *out)
{
    *out = (struct fkt_simulation_spec){.pipeline = s->pipeline,
                                        .data = s->spec.data,
                                        .train = s->train,
                                        .n_train = s->n_train,
                                        .keys = s->keys,
                                        .partition = s->spec.partition,
                                        .participation = s->spec.participation,
                                        .seed = s->spec.seed,
                                        .keep = s->federation.sites > 0,
                                        .threads = s->spec.threads,
                                        .progress = s->spec.progress,
                                        .encodings = s->spec.encodings,
                                        .records = s->records,
                                        .ranks = s->spec.ranks};
    memcpy(out->dropout, s->spec.dropout, sizeof out->dropout);
}

static enum fkt_noise_place noise_place(const struct fkt_sweep_spec *spec)
{
    if (spec->noise >= 0) return (enum fkt_noise_place)spec->noise;
    return spec->task.privacy.mechanism == FKT_MECHANISM_PAPER ? FKT_NOISE_PLACE_CENTRAL : FKT_NOISE_PLACE_DISTRIBUTED;
}

fkt_status fkt_sweep_plan_federation(struct fkt_sweep *s)
{
    const struct fkt_sweep_spec *spec = &s->spec;
    struct fkt_federation_choices *c = &s->federation;
    struct fkt_simulation_spec sim;
    uint32_t parts, lost, cohorts;
    fkt_status st;
    fkt_sweep_simulation_spec(s, &sim);
    FKT_TRY(fkt_simulation_size(&sim, &parts, &lost));
    cohorts = fkt_division_number(parts, spec->cohort_size);
    if (parts < 3) {
        if (spec->noise == FKT_NOISE_PLACE_DISTRIBUTED)
            st = fkt_fail_hint(FKT_E_ARG, "let at least three sites take part, or add the noise in one place",
                               "%u site%s cannot hide in a sum, so noise cannot be distributed", parts,
                               parts == 1 ? "" : "s");
        goto out;
    }
    if (cohorts == 1 && parts > FKT_SA_SITES_MAX) {
        st = fkt_fail_hint(FKT_E_ARG, "let fewer sites take part, or divide them into cohorts",
                           "%u sites take part; one round can have %u", parts, FKT_SA_SITES_MAX);
        goto out;
    }
    c->noise = noise_place(spec);
    c->corrupt = spec->corrupt == FKT_SWEEP_DEFAULT ? fkt_sweep_usual_corrupt(parts) : spec->corrupt;
    c->dropped = spec->dropped;
    if (c->dropped == FKT_SWEEP_DEFAULT) {
        c->dropped = fkt_federation_usual_dropped(parts, c->corrupt);
        if (lost > c->dropped) c->dropped = lost;
    }
    c->keystream = spec->keystream;
    c->records = spec->records ? spec->records : FKT_RECORDS_UNKNOWN;
    FKT_TRY(fkt_alloc(&s->roster, (size_t)parts * FKT_SA_KEY));
    FKT_TRY(fkt_alloc(&s->secrets, (size_t)parts * FKT_SA_SECRET));
    c->sites = parts;
    c->roster = s->roster;
    FKT_TRY(fkt_federation_keys(s->roster, s->secrets, parts, s->seeded ? &s->insecure_seed : NULL));
    if (cohorts > 1) {
        s->division.number = cohorts;
        FKT_TRY(fkt_sweep_divide(s, lost));
    }
out:
    return st;
}

static fkt_status make_task(struct fkt_sweep *s, size_t i, struct fkt_task_choices *choices,
                            const struct fkt_part_choice *parts)
{
    struct sweep_arm *a = &s->arm[i];
    const double epsilon = s->spec.epsilon[i];
    fkt_status st;
    for (size_t j = 0; j < i; j++)
        if (s->spec.epsilon[j] == epsilon) return fkt_fail(FKT_E_ARG, "epsilon %g is given twice", epsilon);
    snprintf(a->name, sizeof a->name, "epsilon %g", epsilon);
    choices->privacy.epsilon = epsilon;
    a->view.task = &a->task;
    a->view.release = &a->release;
    a->view.round = &a->round;
    st = fkt_task_make_into(&a->task, choices, parts, s->spec.parts);
    if (st == FKT_OK && s->division.number) st = fkt_task_divide(&a->task, &s->division, choices->accept_weak);
    a->view.parts = a->task.layout.parts;
    return st;
}

fkt_status fkt_sweep_make_tasks(struct fkt_sweep *s, const struct fkt_sweep_spec *spec)
{
    const size_t classes = fkt_dataset_classes(spec->data);
    struct fkt_task_choices choices = spec->task;
    struct fkt_part_choice parts[FKT_PARTS_MAX];
    struct fkt_calibration cal[FKT_PARTS_MAX] = {{0}};
    struct fkt_codec *codec[FKT_PARTS_MAX] = {NULL};
    const char **names = NULL;
    struct sweep_arm *reference = &s->arm[s->n_arms - 1];
    fkt_status st;
    for (uint32_t p = 0; p < spec->parts; p++) {
        parts[p] = spec->part[p];
        parts[p].codec = codec[p] = spec->codec[p];
        cal[p] = *spec->calibration[p];
        memset(spec->calibration[p], 0, sizeof *spec->calibration[p]);
        parts[p].calibration = &cal[p];
    }
    FKT_TRY(fkt_alloc(&names, classes));
    for (size_t k = 0; k < classes; k++) names[k] = fkt_dataset_class(spec->data, k);
    choices.classes = names;
    choices.n_classes = (uint32_t)classes;
    choices.federation = s->federation.sites && !s->division.number ? &s->federation : NULL;
    choices.service = NULL;
    for (size_t i = 0; i + 1 < s->n_arms; i++) FKT_TRY(make_task(s, i, &choices, parts));
    snprintf(reference->name, sizeof reference->name, "no privacy");
    reference->view.parts = s->arm[0].view.parts;
    for (size_t i = 0; i < s->n_arms; i++)
        if (!fkt_task_gives_images(&s->arm[0].task)) s->arm[i].view.images = NULL;
    FKT_TRY(fkt_pipeline_assemble(&s->pipeline, &s->arm[0].task, codec, cal)); /* takes both */
out:
    fkt_free(names);
    for (uint32_t p = 0; p < FKT_PARTS_MAX; p++) {
        fkt_codec_free(codec[p]);
        fkt_calibration_clear(&cal[p]);
    }
    return st;
}
