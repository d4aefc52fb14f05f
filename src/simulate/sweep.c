/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.c - a simulated federation from images to accuracies: sites' moments once, a release for each epsilon, and all
 * heads evaluated in one pass over the test images. */
#include "simulate/sweep.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/wipe.h"
#include "pipeline/gaussians.h"
#include "pipeline/guided_draw.h"
#include "pipeline/pipeline.h"
#include "ranks/ranks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void fkt_sweep_default(struct fkt_sweep_spec *spec)
{
    *spec = (struct fkt_sweep_spec){.partition = {.sites = 20},
                                    .participation = 1,
                                    .dropped = FKT_SWEEP_DEFAULT,
                                    .corrupt = FKT_SWEEP_DEFAULT,
                                    .noise = -1};
}

static fkt_status check(const struct fkt_sweep_spec *spec)
{
    if (!spec->data || spec->parts < 1 || spec->parts > FKT_PARTS_MAX)
        return fkt_fail(FKT_E_ARG, "a sweep needs a dataset, a codec and a calibration");
    for (uint32_t p = 0; p < spec->parts; p++)
        if (!spec->codec[p] || !spec->calibration[p])
            return fkt_fail(FKT_E_ARG, "a sweep needs a dataset, a codec and a calibration");
    if (spec->test && spec->holdout != 0)
        return fkt_fail(FKT_E_ARG, "test images come from a dataset or from a hold-out, not from both");
    if (spec->n_epsilon < 1 || spec->n_epsilon > FKT_SWEEP_EPSILONS_MAX)
        return fkt_fail(FKT_E_ARG, "a sweep has 1 to %d epsilons, not %zu", FKT_SWEEP_EPSILONS_MAX, spec->n_epsilon);
    if (spec->draws > FKT_SWEEP_DRAWS_MAX)
        return fkt_fail(FKT_E_ARG, "a release is drawn at most %d times, not %zu", FKT_SWEEP_DRAWS_MAX, spec->draws);
    return FKT_OK;
}

/* Which way images are guided, and whether it can be, before an image is encoded. */
static fkt_status settle_guided(struct fkt_sweep *s)
{
    struct fkt_guided_draw way = {0};
    fkt_status st;
    s->guided.kind = FKT_GUIDED_NONE;
    if (fkt_task_has_images(&s->arm[0].task) != FKT_OK) return FKT_OK;
    st = fkt_guided_draw_open(&way, s->pipeline, &s->spec.guided, s->spec.threads);
    s->guided = way.facts;
    fkt_guided_draw_clear(&way);
    return st;
}

fkt_status fkt_sweep_new(struct fkt_sweep **out, const struct fkt_sweep_spec *spec)
{
    struct fkt_sweep *s = NULL;
    int taken = 0;
    fkt_status st;
    *out = NULL;
    FKT_TRY(check(spec));
    FKT_TRY(fkt_alloc(&s, 1));
    s->spec = *spec;
    s->seeded = spec->insecure_seed != NULL;
    if (s->seeded) s->insecure_seed = *spec->insecure_seed;
    s->n_arms = spec->n_epsilon + 1;
    FKT_TRY(fkt_alloc(&s->arm, s->n_arms));
    for (size_t i = 0; i < s->n_arms; i++) {
        struct sweep_arm *a = &s->arm[i];
        a->view = (struct fkt_sweep_arm){
            .name = a->name, .images = a->images, .measured = a->measured, .network = NAN, .unguided = NAN};
    }
    FKT_TRY(fkt_sweep_choose_records(s));
    FKT_TRY(fkt_sweep_plan_federation(s));
    taken = 1;
    FKT_TRY(fkt_sweep_make_tasks(s, spec));
    FKT_TRY(settle_guided(s));
    FKT_TRY(fkt_records_new(&s->records, s->arm[0].task.privacy.adjacency));
    memset(s->spec.codec, 0, sizeof s->spec.codec);
    memset(s->spec.calibration, 0, sizeof s->spec.calibration);
    s->spec.epsilon = NULL;
    s->spec.insecure_seed = NULL;
    *out = s;
    s = NULL;
out:
    for (uint32_t p = 0; !taken && p < FKT_PARTS_MAX; p++) {
        fkt_codec_free(spec->codec[p]);
        if (spec->calibration[p]) fkt_calibration_clear(spec->calibration[p]);
    }
    fkt_sweep_free(s);
    return st;
}

void fkt_sweep_free(struct fkt_sweep *s)
{
    if (!s) return;
    for (size_t i = 0; s->arm && i < s->n_arms; i++) {
        struct sweep_arm *a = &s->arm[i];
        fkt_task_clear(&a->task);
        fkt_release_clear(&a->release);
        fkt_federate_clear(&a->round);
        fkt_gaussians_clear_all(a->images);
        fkt_gaussians_clear_all(a->measured);
        for (size_t d = 0; d < FKT_SWEEP_DRAWS_MAX; d++) {
            fkt_heads_clear(&a->draw[d].heads);
            for (int k = 0; k < FKT_HEAD_KINDS; k++) fkt_score_clear(&a->draw[d].score[k]);
        }
    }
    fkt_free(s->arm);
    fkt_simulation_clear(&s->sim);
    fkt_free(s->roster);
    fkt_division_lists_clear(&s->cohort_of);
    if (s->secrets) fkt_wipe(s->secrets, s->federation.sites * (size_t)FKT_SA_SECRET);
    fkt_free(s->secrets);
    fkt_skipped_clear(&s->skipped);
    fkt_records_free(s->records);
    fkt_pipeline_free(s->pipeline);
    fkt_free(s->keys);
    fkt_free(s->train);
    fkt_free(s->test);
    fkt_free(s);
}

/* All heads of all draws in one list, and the place of each one's score. */
static size_t list_heads(struct fkt_sweep *s, const struct fkt_head **heads, struct fkt_score **scores)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_arms; i++)
        for (size_t d = 0; d < s->arm[i].view.draws; d++)
            for (int k = 0; k < FKT_HEAD_KINDS; k++, n++) {
                if (!heads) continue;
                heads[n] = s->arm[i].draw[d].heads.head[k];
                scores[n] = &s->arm[i].draw[d].score[k];
            }
    return n;
}

static fkt_status evaluate(struct fkt_sweep *s)
{
    const struct fkt_pipeline_options options = {.threads = s->spec.threads,
                                                 .progress = s->spec.progress,
                                                 .skipped = s->spec.skip_bad ? &s->skipped : NULL,
                                                 .encodings = s->spec.encodings,
                                                 .ranks = s->spec.ranks};
    const uint32_t classes = fkt_pipeline_task(s->pipeline)->n_classes;
    const size_t n = list_heads(s, NULL, NULL);
    const struct fkt_head **heads = NULL;
    struct fkt_score *scores = NULL, **places = NULL;
    const double start = fkt_now();
    fkt_status st;
    FKT_TRY(fkt_alloc(&heads, n));
    FKT_TRY(fkt_alloc(&scores, n));
    FKT_TRY(fkt_alloc(&places, n));
    (void)list_heads(s, heads, places);
    for (size_t i = 0; i < n; i++) FKT_TRY(fkt_score_init(&scores[i], classes));
    FKT_TRY(fkt_heads_score(s->pipeline, s->test_data, s->test, s->n_test, heads, n, scores, &options));
    s->seconds_evaluate = fkt_now() - start;
out:
    for (size_t i = 0; scores && i < n; i++) {
        if (st == FKT_OK) *places[i] = scores[i];
        else fkt_score_clear(&scores[i]);
    }
    fkt_free(heads);
    fkt_free(scores);
    fkt_free(places);
    return st;
}

fkt_status fkt_sweep_run(struct fkt_sweep *s)
{
    struct fkt_simulation_spec sim;
    fkt_status st;
    if (s->ran) return fkt_fail(FKT_E_STATE, "a sweep runs once");
    s->ran = 1;
    fkt_sweep_simulation_spec(s, &sim);
    if (s->spec.skip_bad) sim.skipped = &s->skipped;
    FKT_TRY(fkt_simulate(&s->sim, &sim));
    if (!s->spec.ranks || !s->spec.ranks->rank) {
        st = fkt_moments_sha256(s->sim.total, s->moments_sha256);
        if (st == FKT_OK) st = fkt_sweep_release(s);
    }
    FKT_TRY(fkt_ranks_agree(s->spec.ranks, st));
    if (s->test_data) FKT_TRY(evaluate(s));
    s->done = 1;
out:
    return st;
}

fkt_status fkt_sweep_set_unguided(struct fkt_sweep *s, size_t i, double accuracy, double seconds)
{
    if (i >= s->n_arms) return fkt_fail(FKT_E_ARG, "there is no arm %zu", i);
    s->arm[i].view.unguided = accuracy;
    s->seconds_train += seconds;
    return FKT_OK;
}

fkt_status fkt_sweep_set_network(struct fkt_sweep *s, size_t i, const char *name, double accuracy, double seconds)
{
    if (i >= s->n_arms) return fkt_fail(FKT_E_ARG, "a sweep of %zu arms has no arm %zu", s->n_arms, i);
    if (!*name || strlen(name) >= sizeof s->network)
        return fkt_fail(FKT_E_ARG, "the name of a network has 1 to %zu bytes", sizeof s->network - 1);
    snprintf(s->network, sizeof s->network, "%s", name);
    s->arm[i].view.network = accuracy;
    s->seconds_train += seconds;
    return FKT_OK;
}

void fkt_sweep_set_device(struct fkt_sweep *s, struct fkt_device used) { s->device = used; }

/* ---- results ---- */

size_t fkt_sweep_arms(const struct fkt_sweep *s) { return s->n_arms; }

const struct fkt_sweep_arm *fkt_sweep_arm(const struct fkt_sweep *s, size_t i)
{
    return i < s->n_arms ? &s->arm[i].view : NULL;
}

const struct fkt_score *fkt_sweep_score(const struct fkt_sweep *s, size_t i, enum fkt_head_kind head, size_t draw)
{
    if (!s->done || i >= s->n_arms || draw >= s->arm[i].view.draws || (int)head < 0 || head >= FKT_HEAD_KINDS)
        return NULL;
    return &s->arm[i].draw[draw].score[head];
}

void fkt_sweep_accuracy(const struct fkt_sweep *s, size_t i, enum fkt_head_kind head, double *mean, double *deviation)
{
    const size_t n = s->done && s->test_data && i < s->n_arms ? s->arm[i].view.draws : 0;
    double sum = 0, squares = 0;
    for (size_t d = 0; d < n; d++) sum += fkt_score_accuracy(fkt_sweep_score(s, i, head, d));
    *mean = n ? sum / (double)n : NAN;
    for (size_t d = 0; d < n; d++)
        squares += pow(fkt_score_accuracy(fkt_sweep_score(s, i, head, d)) - sum / (double)n, 2);
    if (deviation) *deviation = !n ? NAN : n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
}

const char *fkt_sweep_network_name(const struct fkt_sweep *s) { return s->network[0] ? s->network : NULL; }
const struct fkt_pipeline *fkt_sweep_pipeline(const struct fkt_sweep *s) { return s->pipeline; }
const struct fkt_simulation *fkt_sweep_simulation(const struct fkt_sweep *s) { return &s->sim; }
const struct fkt_dataset *fkt_sweep_data(const struct fkt_sweep *s) { return s->spec.data; }
const struct fkt_dataset *fkt_sweep_test_data(const struct fkt_sweep *s) { return s->test_data; }
struct fkt_records *fkt_sweep_records(const struct fkt_sweep *s) { return s->records; }
const struct fkt_skipped *fkt_sweep_skipped(const struct fkt_sweep *s) { return &s->skipped; }
double fkt_sweep_composed_epsilon(const struct fkt_sweep *s) { return s->composed_epsilon; }

const size_t *fkt_sweep_train_records(const struct fkt_sweep *s, size_t *n)
{
    *n = s->n_train;
    return s->train;
}

const size_t *fkt_sweep_test_records(const struct fkt_sweep *s, size_t *n)
{
    *n = s->n_test;
    return s->test;
}

const char *fkt_sweep_fallback(const struct fkt_sweep *s)
{
    if (!s->federation.sites)
        return "fewer than three sites cannot hide in a sum: no masks, and the noise was added in one place";
    if (s->spec.noise < 0 && s->federation.noise == FKT_NOISE_PLACE_CENTRAL)
        return "the paper's recipe has no noise shares: the noise was added in one place";
    return NULL;
}

void fkt_sweep_seconds(const struct fkt_sweep *s, struct fkt_sweep_seconds *out)
{
    *out = (struct fkt_sweep_seconds){.encode = s->sim.seconds_encode,
                                      .moments = s->sim.seconds_moments,
                                      .aggregate = s->sim.seconds_aggregate,
                                      .evaluate = s->seconds_evaluate,
                                      .train = s->seconds_train};
    for (size_t i = 0; i < s->n_arms; i++) {
        out->release += s->arm[i].view.seconds_release;
        out->generate += s->arm[i].view.seconds_generate;
    }
}

const struct fkt_guided_facts *fkt_sweep_guided(const struct fkt_sweep *s) { return &s->guided; }

fkt_status fkt_sweep_tiles(const struct fkt_sweep *s, size_t i, int guided, uint32_t rows, size_t cols, uint8_t *rgb)
{
    if (i >= s->n_arms || !s->arm[i].view.draws || !s->arm[i].view.images)
        return fkt_fail(FKT_E_STATE, "arm %zu has no images", i);
    return fkt_generate_tiles(s->pipeline, s->arm[i].images, guided ? &s->spec.guided : NULL, s->spec.seed, rows, cols,
                              s->spec.threads, rgb);
}

fkt_status fkt_sweep_generate(struct fkt_sweep *s, size_t i, const char *folder, size_t per_class,
                              enum fkt_export_format format, int force)
{
    const struct fkt_generate_options options = {.per_class = per_class,
                                                 .seed = s->spec.seed,
                                                 .format = format,
                                                 .estimate = {s->spec.estimator, 0, 0},
                                                 .force = force,
                                                 .threads = s->spec.threads,
                                                 .progress = s->spec.progress,
                                                 .pipeline = s->pipeline,
                                                 .guided = s->spec.guided};
    const double start = fkt_now();
    fkt_status st;
    if (i >= s->n_arms - 1 || !s->arm[i].view.draws) return fkt_fail(FKT_E_STATE, "arm %zu has no release", i);
    st = fkt_generate(&s->arm[i].release, folder, &options);
    s->arm[i].view.seconds_generate = fkt_now() - start;
    return st;
}
