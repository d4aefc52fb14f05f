/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - `fedkt simulate`: from its options to a finished sweep. */
#include "cli/core/parts.h"
#include "cli/core/guided.h"
#include "cli/core/launch.h"
#include "cli/learning/recipe.h"
#include "cli/simulate/run.h"

#include "base/alloc.h"
#include "base/output.h"

#include <stdio.h>
#include <string.h>

static fkt_status check_outputs(const struct cli_sim *s)
{
    fkt_status st;
    if (!cli_first_rank()) return FKT_OK;
    FKT_TRY(cli_not_an_input(s->out, s->data.path));
    FKT_TRY(cli_not_an_input(s->out, s->test.path));
    FKT_TRY(cli_not_an_input(s->out, s->codec.calibration));
    FKT_TRY(cli_not_an_input(s->out, s->codec.guide_calibration));
    FKT_TRY(cli_not_an_input(s->out, s->codec.settings.weights));
    FKT_TRY(cli_not_an_input(s->out, s->codec.settings.guide_weights));
    if (s->out) FKT_TRY(fkt_output_folder(s->out, s->run.force));
out:
    return st;
}

static fkt_status open_sets(const struct cli_sim *s, struct cli_outcome *o)
{
    const char *path = s->test.path ? s->test.path : s->data.path;
    struct cli_data data = s->data, test = s->test;
    struct fkt_dataset_options t;
    const char **names = NULL;
    fkt_status st;
    data.fit = test.fit = s->codec.fit;
    data.limit_by_number = fkt_adjacency_counts_public((enum fkt_adjacency)s->privacy.adjacency);
    test.bits = data.bits;
    test.skip_bad = data.skip_bad;
    FKT_TRY(cli_open_data(&o->data, &data, NULL, &s->run));
    if (!s->test.path && !s->test.split) goto out;
    if (s->holdout != 0) {
        st = fkt_fail(FKT_E_ARG, "give either --holdout or a test set, not both");
        goto out;
    }
    FKT_TRY(cli_class_names(o->data, &names));
    t = cli_data_options(&test);
    t.classes = names;
    t.n_classes = fkt_dataset_classes(o->data);
    FKT_TRY(fkt_dataset_open(&o->test, path, &t));
    FKT_TRY(cli_print_dataset(o->test, path, &s->run));
out:
    fkt_free(names);
    return st;
}

static void recipe_of(const struct cli_sim *s, struct fkt_recipe *r)
{
    fkt_recipe_default(r);
    r->epochs = s->epochs > UINT32_MAX ? UINT32_MAX : (uint32_t)s->epochs;
    r->seed = s->seed;
    if (s->teacher) {
        r->temperature = s->temperature_given ? s->temperature : FKT_TEACHER_TEMPERATURE;
        r->share = s->share >= 0 ? s->share : 1;
    }
    r->device = cli_device_of(s->codec.settings.device);
}

/* An option that was given without the option that it needs. */
static fkt_status needs(int given, const char *option, int there, const char *wanted)
{
    return given && !there ? fkt_fail(FKT_E_ARG, "%s needs %s", option, wanted) : FKT_OK;
}

static fkt_status check_teacher(const struct cli_sim *s)
{
    const int taught = s->teacher != NULL, shared = s->shared.path != NULL;
    fkt_status st;
    FKT_TRY(needs(taught, "--teacher", s->train != 0, "--train"));
    if (taught && strcmp(s->teacher, "head") != 0)
        return fkt_fail_hint(FKT_E_ARG, "a model as teacher: 'fedkt train --teacher FILE' on the run's release",
                             "--teacher: '%s' is not 'head'", s->teacher);
    FKT_TRY(needs(s->head_kind_given, "--teacher-head", taught, "--teacher head"));
    FKT_TRY(needs(s->head_on_given, "--teacher-parts", taught, "--teacher head"));
    FKT_TRY(needs(s->temperature_given, "--temperature", taught, "--teacher head"));
    FKT_TRY(needs(s->share >= 0, "--teacher-share", taught, "--teacher head"));
    FKT_TRY(needs(shared, "--public", taught, "--teacher head, which labels the images"));
    FKT_TRY(needs(s->shared.split != NULL, "--public-split", shared, "--public"));
    FKT_TRY(needs(s->shared.limit != 0, "--public-limit", shared, "--public"));
    FKT_TRY(needs(s->shared_each != 0, "--public-per-epoch", shared, "--public"));
out:
    return st;
}

/* Opened before the releases too. */
static fkt_status open_public(const struct cli_sim *s, struct cli_outcome *o)
{
    struct cli_data shared = s->shared;
    struct fkt_dataset_options options;
    fkt_status st;
    if (!shared.path) return FKT_OK;
    shared.bits = s->data.bits;
    shared.fit = s->data.fit;
    options = cli_data_options(&shared);
    st = fkt_dataset_open(&o->shared, shared.path, &options);
    if (st == FKT_OK) st = cli_print_dataset(o->shared, shared.path, &s->run);
    return fkt_fail_in(st, "--public");
}

/* Checked before the releases: a network that cannot be trained must be reported first. */
static fkt_status check_training(const struct cli_sim *s, int tested)
{
    static const struct cli_recipe_option option[] = {
        CLI_RECIPE("--epochs", epochs), CLI_RECIPE("--temperature", temperature), CLI_RECIPE("--teacher-share", share)};
    struct fkt_recipe r;
    fkt_status st;
    if (!s->train && (s->epochs_given || s->train_per_class_given))
        return fkt_fail(FKT_E_ARG, "%s needs --train", s->epochs_given ? "--epochs" : "--train-per-class");
    st = check_teacher(s);
    if (st != FKT_OK || !s->train) return st;
    st = cli_parts_want_images(&s->codec, "--train");
    if (st != FKT_OK) return st;
    if (!tested) return fkt_fail(FKT_E_ARG, "--train needs a test set: --holdout, or --test or --test-split");
    recipe_of(s, &r);
    st = fkt_device_resolve(&r.device, NULL, 0);
    if (st != FKT_OK) return st;
    cli_print_device(s->codec.settings.device, r.device, "f32", s->run.quiet);
    return cli_recipe_check(&r, option, CLI_COUNT(option));
}

static fkt_status read_epsilons(const struct cli_sim *s, double *epsilon, size_t *n)
{
    fkt_status st = cli_reals("epsilon", s->privacy.epsilon, epsilon, FKT_SWEEP_EPSILONS_MAX, n);
    for (size_t i = 0; st == FKT_OK && i < *n; i++)
        for (size_t j = 0; j < i; j++)
            if (epsilon[i] == epsilon[j]) return fkt_fail(FKT_E_ARG, "--epsilon: %g is given twice", epsilon[i]);
    return st;
}

/* The sweep with its tasks, from all options. */
static fkt_status open_sweep(const struct cli_sim *s, struct cli_outcome *o, struct fkt_sweep_spec *spec)
{
    double epsilon[FKT_SWEEP_EPSILONS_MAX];
    struct cli_parts parts = {0};
    fkt_status st;
    FKT_TRY(read_epsilons(s, epsilon, &spec->n_epsilon));
    spec->epsilon = epsilon;
    FKT_TRY(cli_open_parts(&parts, &spec->task, &s->codec, &s->privacy, epsilon[0]));
    spec->task.name = s->title;
    spec->parts = parts.n;
    for (uint32_t p = 0; p < parts.n; p++) {
        cli_print_dtype(&s->codec.settings, parts.codec[p], &s->run);
        spec->codec[p] = parts.codec[p];
        parts.codec[p] = NULL; /* the sweep takes it */
        spec->calibration[p] = &parts.calibration[p];
        spec->part[p] = parts.choice[p];
    }
    FKT_TRY(fkt_sweep_new(&o->sweep, spec));
    for (size_t i = 0; i < spec->n_epsilon; i++)
        FKT_TRY(cli_check_promise(fkt_sweep_arm(o->sweep, i)->task, s->privacy.accept_weak));
out:
    cli_parts_clear(&parts);
    return st;
}

static fkt_status after_release(void *ctx, const struct fkt_sweep *w, size_t arm)
{
    (void)ctx;
    return arm + 2 == fkt_sweep_arms(w) ? cli_progress_check("after the release") : FKT_OK;
}

struct trained {
    const struct cli_sim *asked;
    struct cli_progress *progress;
};

static fkt_status print_network(void *ctx, const struct fkt_sweep *w, size_t arm)
{
    const struct trained *t = ctx;
    const struct fkt_sweep_arm *a = fkt_sweep_arm(w, arm);
    cli_progress_end(t->progress);
    if (!t->asked->run.quiet) {
        fprintf(stderr, "%s: %s %.2f %%", a->name, fkt_sweep_network_name(w), 100 * a->network);
        if (a->unguided >= 0) fprintf(stderr, " on guided images, %.2f %% on unguided ones", 100 * a->unguided);
        fputc('\n', stderr);
    }
    return FKT_OK;
}

static fkt_status train(const struct cli_sim *s, const struct cli_outcome *o, unsigned threads,
                        struct cli_progress *progress)
{
    struct trained t = {s, progress};
    struct fkt_sweep_network network = {.architecture = (enum fkt_architecture)(s->train - 1),
                                        .per_class = (size_t)s->train_per_class,
                                        .skip_bad = s->data.skip_bad,
                                        .head_teaches = s->teacher != NULL,
                                        .head = (enum fkt_head_kind)s->head_kind,
                                        .head_on = (enum fkt_heads_on)s->head_on,
                                        .shared = o->shared,
                                        .shared_name = s->shared.path,
                                        .shared_each = (size_t)s->shared_each,
                                        .unguided = s->train_unguided,
                                        .only = s->train_only,
                                        .progress = &progress->hook,
                                        .trained = print_network,
                                        .ctx = &t};
    fkt_status st;
    recipe_of(s, &network.recipe);
    network.recipe.threads = threads;
    progress->unit = "img";
    st = fkt_sweep_train(o->sweep, &network);
    progress->unit = NULL;
    return st;
}

/* A round that lost too many sites: the hint names the option that tolerates more. */
static fkt_status too_few(fkt_status st)
{
    char why[256];
    if (st != FKT_E_TOO_FEW) return st;
    snprintf(why, sizeof why, "%s", fkt_error_text());
    return fkt_fail_hint(
        st, "let fewer sites be lost, tolerate more with --dropped, or run it again: keys and graph are drawn afresh",
        "%s", why);
}

fkt_status cli_sim_run(const struct cli_sim *s, struct cli_outcome *o, struct cli_progress *progress)
{
    struct fkt_sweep_spec spec;
    fkt_status st;
    fkt_sweep_default(&spec);
    spec.holdout = s->holdout;
    spec.draws = (size_t)s->runs;
    spec.partition = (struct fkt_partition_spec){.sites = (uint32_t)s->sites, .seed = s->seed};
    spec.participation = s->participation;
    spec.estimator = (enum fkt_estimator)s->estimator;
    spec.seed = s->seed;
    spec.insecure_seed = s->seeded ? &s->insecure_seed : NULL;
    spec.skip_bad = s->data.skip_bad;
    spec.progress = &progress->hook;
    spec.released = after_release;
    spec.ranks = cli_ranks();
    if (s->runs > FKT_SWEEP_DRAWS_MAX) return fkt_fail(FKT_E_ARG, "--runs must be at most %d", FKT_SWEEP_DRAWS_MAX);
    if (s->per_class) FKT_TRY(cli_parts_want_images(&s->codec, "--per-class"));
    if (s->sites < 1 || s->sites > 1000000) return fkt_fail(FKT_E_ARG, "--sites must be between 1 and 1000000");
    FKT_TRY(cli_guided(s->guided, &spec.guided));
    FKT_TRY(check_outputs(s));
    FKT_TRY(fkt_fail_in(fkt_partition_parse(&spec.partition, s->partition), "--partition"));
    FKT_TRY(cli_threads(s->run.threads, &spec.threads));
    FKT_TRY(open_sets(s, o));
    spec.data = o->data;
    spec.test = o->test;
    FKT_TRY(check_training(s, s->holdout != 0 || o->test != NULL));
    FKT_TRY(open_public(s, o));
    FKT_TRY(cli_sim_federation(s, &spec));
    FKT_TRY(cli_open_encodings(&spec.encodings, s->encodings));
    FKT_TRY(open_sweep(s, o, &spec));
    FKT_TRY(too_few(fkt_sweep_run(o->sweep)));
    if (s->train && cli_first_rank()) FKT_TRY(train(s, o, spec.threads, progress));
out:
    cli_progress_end(progress);
    return cli_close_encodings(spec.encodings, s->encodings, &s->run, st);
}

void cli_outcome_clear(struct cli_outcome *o)
{
    fkt_sweep_free(o->sweep);
    fkt_dataset_free(o->data);
    fkt_dataset_free(o->test);
    fkt_dataset_free(o->shared);
    memset(o, 0, sizeof *o);
}
