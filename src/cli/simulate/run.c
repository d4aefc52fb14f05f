/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - a simulated federation: open the data, let the sites work, release at each epsilon, judge all of them in
 * one pass. The last arm is the bound: the same Gaussians from the exact moments, without privacy, never written to
 * disk as a release. */
#include "cli/simulate/run.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "crypto/entropy.h"
#include "pipeline/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static fkt_status all_indices(size_t **out, size_t n)
{
    fkt_status st = fkt_alloc(out, n);
    for (size_t i = 0; st == FKT_OK && i < n; i++) (*out)[i] = i;
    return st;
}

static fkt_status hold_out(const struct cli_sim *s, struct cli_outcome *o)
{
    size_t n = fkt_dataset_size(o->data);
    uint8_t *held = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&held, n));
    FKT_TRY(fkt_alloc(&o->train, n));
    FKT_TRY(fkt_alloc(&o->held, n));
    FKT_TRY(fkt_split_holdout(held, o->keys, n, s->holdout, 0)); /* a fixed seed: the same split in every run */
    for (size_t i = 0; i < n; i++)
        if (held[i]) o->held[o->n_test++] = i;
        else o->train[o->n_train++] = i;
    o->test_set = o->data;
    if (!o->n_train || !o->n_test)
        st = fkt_fail_hint(FKT_E_ARG, "give a share between 0 and 1, for example 0.2, or more images",
                           "--holdout %g leaves %zu images to learn from and %zu to judge on", s->holdout, o->n_train,
                           o->n_test);
out:
    fkt_free(held);
    return st;
}

static fkt_status open_sets(const struct cli_sim *s, struct cli_outcome *o)
{
    struct cli_data data = s->data, test = s->test;
    struct fkt_dataset_options t;
    const char **names = NULL;
    fkt_status st;
    data.fit = test.fit = s->codec.fit;
    data.limit_by_number = s->privacy.adjacency == FKT_ADJACENCY_REPLACE;
    test.bits = data.bits;
    test.skip_bad = data.skip_bad;
    t = cli_data_options(&test);
    FKT_TRY(cli_open_data(&o->data, &data, NULL, &s->run));
    FKT_TRY(fkt_alloc(&o->keys, fkt_dataset_size(o->data)));
    FKT_TRY(fkt_simulation_keys(o->data, (enum fkt_adjacency)s->privacy.adjacency, o->threads, o->keys));
    if (s->holdout != 0) {
        if (s->test.path || s->test.split) {
            st = fkt_fail(FKT_E_ARG, "give either --holdout or a test set, not both");
            goto out;
        }
        FKT_TRY(hold_out(s, o));
        goto out;
    }
    o->n_train = fkt_dataset_size(o->data);
    FKT_TRY(all_indices(&o->train, o->n_train));
    if (!s->test.path && !s->test.split) goto out;
    FKT_TRY(cli_class_names(o->data, &names));
    t.classes = names;
    t.n_classes = fkt_dataset_classes(o->data);
    FKT_TRY(fkt_dataset_open(&o->test, s->test.path ? s->test.path : s->data.path, &t));
    FKT_TRY(cli_print_dataset(o->test, s->test.path ? s->test.path : s->data.path, &s->run));
    o->n_test = fkt_dataset_size(o->test);
    FKT_TRY(all_indices(&o->held, o->n_test));
    o->test_set = o->test;
out:
    fkt_free(names);
    return st;
}

static fkt_status make_tasks(const struct cli_sim *s, struct cli_outcome *o)
{
    struct fkt_codec *codec = NULL;
    struct fkt_calibration cal = {0};
    struct fkt_privacy_spec privacy;
    const char **names = NULL;
    double eps[CLI_ARMS_MAX];
    size_t n;
    fkt_status st;
    FKT_TRY(cli_reals("epsilon", s->privacy.epsilon, eps, CLI_ARMS_MAX, &n));
    FKT_TRY(cli_open_codec(&s->codec, &codec, &cal));
    cli_print_dtype(&s->codec.settings, codec, &s->run);
    FKT_TRY(cli_class_names(o->data, &names));
    for (size_t i = 0; i < n; i++) {
        struct cli_arm *a = &o->arm[i];
        snprintf(a->name, sizeof a->name, "epsilon %g", eps[i]);
        if (n > 1) snprintf(a->folder, sizeof a->folder, "eps-%g", eps[i]);
        for (size_t j = 0; j < i; j++)
            if (!strcmp(a->name, o->arm[j].name)) {
                st = fkt_fail(FKT_E_ARG, "--epsilon: %g is given twice", eps[i]);
                goto out;
            }
        a->is_private = 1;
        FKT_TRY(cli_privacy_spec(&s->privacy, eps[i], &privacy));
        FKT_TRY(cli_make_task(&a->task, s->title, names, fkt_dataset_classes(o->data), &s->codec, codec, &cal, &privacy,
                              o->federation.choices.sites ? &o->federation.choices : NULL, NULL,
                              s->privacy.accept_weak));
        o->n_arms = i + 1;
    }
    snprintf(o->arm[n].name, sizeof o->arm[n].name, "no privacy");
    o->n_arms = n + 1;
    st = fkt_pipeline_assemble(&o->pipeline, &o->arm[0].task, codec, &cal); /* takes the codec: it is opened once */
    codec = NULL;
out:
    fkt_free(names);
    fkt_codec_free(codec);
    fkt_calibration_clear(&cal);
    return st;
}

/* How often each release is drawn: once, where there is nothing to judge it on. */
static uint64_t draws(const struct cli_sim *s, const struct cli_outcome *o)
{
    return s->runs > 1 && o->test_set ? s->runs : 1;
}

/* The joint price of showing all private arms, every draw of them, since they are releases of the same records.
 * *mu2 gets the arms' own, one draw each. */
static fkt_status price(const struct cli_sim *s, struct cli_outcome *o, double *mu2)
{
    const double delta = o->arm[0].task.privacy.delta, times = (double)draws(s, o);
    double one_mu2, one_rho;
    fkt_status st = FKT_OK;
    *mu2 = 0;
    for (size_t i = 0; i + 1 < o->n_arms; i++) {
        FKT_TRY(cli_round_price(&o->arm[i].task, &one_mu2, &one_rho));
        *mu2 += one_mu2;
    }
    o->composed_epsilon = fkt_privacy_epsilon(delta, sqrt(times * *mu2));
out:
    return st;
}

static fkt_status release_arms(const struct cli_sim *s, struct cli_outcome *o, const struct fkt_progress *progress)
{
    const struct fkt_coordinates *c = &fkt_pipeline_task(o->pipeline)->coordinates;
    struct fkt_estimate_options images = {(enum fkt_estimator)s->estimator, 0, 0}, heads = {FKT_ESTIMATOR_RAW, 0, 0};
    struct fkt_noise_scale silence = {.unit = c->radius / c->rq};
    const uint32_t K = fkt_pipeline_task(o->pipeline)->n_classes;
    struct fkt_ledger ledger;
    const int64_t *exact;
    double mu2;
    fkt_status st;
    FKT_TRY(price(s, o, &mu2));
    FKT_TRY(fkt_ledger_init(&ledger, mu2, 0));
    for (size_t i = 0; i + 1 < o->n_arms; i++) {
        struct cli_arm *a = &o->arm[i];
        double start = fkt_now();
        FKT_TRY(cli_round_clear(s, o, a, s->insecure_seed + i, &ledger, progress, &a->release, &a->round));
        FKT_TRY(fkt_release_gaussians(&a->release, &images, &a->shapes));
        FKT_TRY(fkt_release_gaussians(&a->release, &heads, &a->measured));
        a->seconds_release = fkt_now() - start - a->round.seconds;
        o->sim.seconds_aggregate += a->round.seconds;
        FKT_TRY(fkt_heads_fit(&a->heads, &a->measured));
    }
    FKT_TRY(fkt_moments_packed(o->sim.total, &exact));
    struct cli_arm *bound = &o->arm[o->n_arms - 1];
    FKT_TRY(fkt_gaussians_estimate(&bound->shapes, exact, K, c->length, &silence, &images));
    FKT_TRY(fkt_gaussians_estimate(&bound->measured, exact, K, c->length, &silence, &heads));
    FKT_TRY(fkt_heads_fit(&bound->heads, &bound->measured));
out:
    return st;
}

/* Head h of the list of all heads to judge, and where its score goes: the arms' own, then those of further draws. */
static const struct fkt_head *head_at(struct cli_outcome *o, size_t h, struct fkt_score **score)
{
    size_t k = h % FKT_HEAD_KINDS, at = h / FKT_HEAD_KINDS;
    if (at < o->n_arms) {
        *score = &o->arm[at].score[k];
        return o->arm[at].heads.head[k];
    }
    at -= o->n_arms;
    struct cli_arm *a = &o->arm[at % (o->n_arms - 1)];
    *score = &a->repeat[at / (o->n_arms - 1)].score[k];
    return a->repeat[at / (o->n_arms - 1)].heads.head[k];
}

static fkt_status evaluate_arms(const struct cli_sim *s, struct cli_outcome *o, struct cli_progress *progress,
                                struct fkt_encodings *encodings)
{
    struct fkt_pipeline_options w = {
        .progress = &progress->hook, .skipped = s->data.skip_bad ? &o->skipped : NULL, .encodings = encodings};
    size_t n = (o->n_arms + o->arm[0].n_repeats * (o->n_arms - 1)) * FKT_HEAD_KINDS;
    const struct fkt_head **heads = NULL;
    struct fkt_score *scores = NULL, *place;
    double start = fkt_now();
    fkt_status st;
    FKT_TRY(cli_threads(s->run.threads, &w.threads));
    FKT_TRY(fkt_alloc(&heads, n));
    FKT_TRY(fkt_alloc(&scores, n));
    for (size_t i = 0; i < n; i++) {
        heads[i] = head_at(o, i, &place);
        FKT_TRY(fkt_score_init(&scores[i], fkt_pipeline_task(o->pipeline)->n_classes));
    }
    FKT_TRY(fkt_heads_evaluate(o->pipeline, o->test_set, o->held, o->n_test, heads, n, scores, &w));
    o->seconds_evaluate = fkt_now() - start;
out:
    for (size_t i = 0; scores && i < n; i++) {
        (void)head_at(o, i, &place);
        *place = scores[i];
    }
    fkt_free(heads);
    fkt_free(scores);
    return st;
}

fkt_status cli_sim_run(const struct cli_sim *s, struct cli_outcome *o, struct cli_progress *progress)
{
    struct fkt_simulation_spec spec = {.partition = {.seed = s->seed},
                                       .participation = s->participation,
                                       .seed = s->seed,
                                       .progress = &progress->hook};
    fkt_status st;
    memset(o, 0, sizeof *o);
    if (s->runs > CLI_RUNS_MAX) return fkt_fail(FKT_E_ARG, "--runs must be at most %d", CLI_RUNS_MAX);
    if (s->sites < 1 || s->sites > 1000000) return fkt_fail(FKT_E_ARG, "--sites must be between 1 and 1000000");
    FKT_TRY(cli_not_an_input(s->out, s->data.path));
    FKT_TRY(cli_not_an_input(s->out, s->test.path));
    FKT_TRY(cli_not_an_input(s->out, s->codec.calibration));
    FKT_TRY(cli_not_an_input(s->out, s->codec.settings.weights));
    if (s->out) FKT_TRY(cli_out_folder(s->out, s->run.force));
    spec.partition.sites = (uint32_t)s->sites;
    FKT_TRY(cli_partition(s->partition, &spec.partition));
    FKT_TRY(cli_threads(s->run.threads, &spec.threads));
    o->threads = spec.threads;
    FKT_TRY(open_sets(s, o));
    FKT_TRY(cli_sim_train_check(s, o->test_set != NULL));
    FKT_TRY(cli_round_plan(s, &spec, &o->federation));
    FKT_TRY(make_tasks(s, o));
    FKT_TRY(cli_open_encodings(&spec.encodings, s->encodings));
    spec.keep = o->federation.choices.sites > 0;
    spec.pipeline = o->pipeline;
    spec.data = o->data;
    spec.train = o->train;
    spec.keys = o->keys;
    spec.n_train = o->n_train;
    spec.skipped = s->data.skip_bad ? &o->skipped : NULL;
    FKT_TRY(fkt_records_new(&o->records, o->arm[0].task.privacy.adjacency));
    spec.records = o->records;
    FKT_TRY(fkt_simulate(&o->sim, &spec));
    FKT_TRY(fkt_moments_sha256(o->sim.total, o->moments_sha256));
    FKT_TRY(release_arms(s, o, &progress->hook));
    if (draws(s, o) > 1) FKT_TRY(cli_repeats_draw(s, o, &progress->hook));
    FKT_TRY(cli_progress_check("after the release"));
    if (o->test_set) FKT_TRY(evaluate_arms(s, o, progress, spec.encodings));
    if (s->train) FKT_TRY(cli_sim_train(s, o, progress));
out:
    cli_progress_end(progress);
    return cli_close_encodings(spec.encodings, s->encodings, &s->run, st);
}

void cli_outcome_clear(struct cli_outcome *o)
{
    for (size_t i = 0; i < CLI_ARMS_MAX + 1; i++) {
        struct cli_arm *a = &o->arm[i];
        fkt_task_clear(&a->task);
        fkt_release_clear(&a->release);
        fkt_federate_clear(&a->round);
        fkt_gaussians_clear(&a->shapes);
        fkt_gaussians_clear(&a->measured);
        fkt_heads_clear(&a->heads);
        cli_repeats_clear(a);
        for (int k = 0; k < FKT_HEAD_KINDS; k++) fkt_score_clear(&a->score[k]);
    }
    fkt_simulation_clear(&o->sim);
    fkt_free(o->federation.roster);
    if (o->federation.secrets) fkt_wipe(o->federation.secrets, o->federation.choices.sites * (size_t)FKT_SA_SECRET);
    fkt_free(o->federation.secrets);
    fkt_skipped_clear(&o->skipped);
    fkt_records_free(o->records);
    fkt_pipeline_free(o->pipeline);
    fkt_free(o->keys);
    fkt_free(o->train);
    fkt_free(o->held);
    fkt_dataset_free(o->data);
    fkt_dataset_free(o->test);
    memset(o, 0, sizeof *o);
}
