/* SPDX-License-Identifier: Apache-2.0 */
/* personalize.c - `fedkt personalize`: a network trained on synthetic images whose last layer is tuned at each site
 * on the site's own records, compared with local training and one round of averaging (learning/personal.c). */
#include "cli/learning/personalize.h"
#include "cli/learning/recipe.h"
#include "cli/core/verbs.h"

#include "base/alloc.h"
#include "base/output.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/threads.h"

#include <stdio.h>
#include <string.h>

enum { ALL_WAYS = (1 << FKT_PERSONAL_WAYS) - 1, MOST = 1000000 };

/* ---- options ---- */

/* One site cannot average with others; its user wants the tuned model. */
static fkt_status parse_ways(struct cli_personalize *a)
{
    char *text = NULL;
    const char **names = NULL;
    size_t n = 0;
    fkt_status st = FKT_OK;
    a->mask = a->sites == 1 ? 1U << FKT_PERSONAL_GLOBAL | 1U << FKT_PERSONAL_TUNED : ALL_WAYS;
    if (!a->ways) return FKT_OK;
    a->mask = 0;
    FKT_TRY(cli_split(a->ways, &text, &names, &n));
    for (size_t i = 0; i < n; i++) {
        int w = 0;
        while (w < FKT_PERSONAL_WAYS && strcmp(names[i], fkt_personal_name((enum fkt_personal_way)w)) != 0) w++;
        if (w == FKT_PERSONAL_WAYS) {
            st = fkt_fail(FKT_E_ARG, "--ways: '%s' is not global, tuned, local, fedavg or fedavg_tuned", names[i]);
            goto out;
        }
        a->mask |= 1U << w;
    }
out:
    fkt_free(names);
    fkt_free(text);
    return st;
}

/* Rejects options of local training when --ways leaves it out. */
static fkt_status check_local(const struct cli_personalize *a)
{
    const unsigned local = 1U << FKT_PERSONAL_LOCAL | 1U << FKT_PERSONAL_FEDAVG | 1U << FKT_PERSONAL_FEDAVG_TUNED;
    if (a->mask & local || !(a->epochs_local_given || a->rate_local_given)) return FKT_OK;
    return fkt_fail_hint(FKT_E_ARG, "add local to --ways, or omit it",
                         "%s is for local training, which --ways leaves out",
                         a->epochs_local_given ? "--epochs-local" : "--rate-local");
}

static fkt_status check(struct cli_personalize *a)
{
    fkt_status st = FKT_OK;
    if (a->sites < 1 || a->sites > MOST) return fkt_fail(FKT_E_ARG, "--sites must be between 1 and %d", MOST);
    if (!(a->holdout >= 0 && a->holdout < 1)) return fkt_fail(FKT_E_ARG, "--holdout must be at least 0 and below 1");
    if (a->epochs_local > MOST || a->epochs_tune > MOST || a->batch > MOST)
        return fkt_fail(FKT_E_ARG, "--epochs-local, --epochs-tune and --batch must be at most %d", MOST);
    if (a->seed > INT64_MAX)
        return fkt_fail(FKT_E_ARG, "--seed must be at most %lld", (long long)INT64_MAX); /* in JSON */
    if (!a->test.path && a->test.split) a->test.path = a->data.path;                     /* as in simulate */
    if (!a->test.path && a->test.limit) return fkt_fail(FKT_E_ARG, "--test-limit needs --test or --test-split");
    if (a->test.path && a->holdout_given) return fkt_fail(FKT_E_ARG, "--holdout cannot be used with a test set");
    FKT_TRY(parse_ways(a));
    FKT_TRY(check_local(a));
    FKT_TRY(cli_personalize_baselines_check(a));
    if (a->out && a->sites == 1 && !(a->mask >> FKT_PERSONAL_TUNED & 1))
        return fkt_fail_hint(FKT_E_ARG, "add tuned to --ways, or omit --out",
                             "with one site --out saves the tuned model, which --ways leaves out");
    FKT_TRY(cli_personalize_network_check(a));
    FKT_TRY(cli_not_an_input(a->out, a->model));
    FKT_TRY(cli_not_an_input(a->out, a->data.path));
    FKT_TRY(cli_not_an_input(a->out, a->test.path));
    if (a->out)
        FKT_TRY(a->sites == 1 ? fkt_output_file(a->out, a->run.force) : fkt_output_folder(a->out, a->run.force));
out:
    return st;
}

/* ---- the run ---- */

static fkt_status read_set(struct cli_personalized *p, const struct cli_data *d, struct fkt_training_set *out,
                           struct cli_progress *progress)
{
    const struct cli_personalize *a = p->asked;
    struct cli_data set = *d;
    struct fkt_dataset *ds = NULL;
    struct fkt_training_set_options o = {.progress = &progress->hook, .skipped = d->skip_bad ? &p->skipped : NULL};
    fkt_status st;
    FKT_TRY(cli_threads(a->run.threads, &o.threads));
    if (a->train.release) { /* the network is not trained yet, and has no image settings */
        set.fit = (int)p->training.images.release.task.fit;
        set.fit_given = 1;
    }
    FKT_TRY(cli_open_for_model(&ds, &set, p->network, &a->run));
    FKT_TRY(fkt_model_take_names(&p->network, ds));
    FKT_TRY(fkt_training_set_read(out, ds, NULL, 0, fkt_model_size(p->network), (enum fkt_filter)a->filter, NULL, &o));
out:
    fkt_dataset_free(ds);
    return st;
}

/* The options that made it, without paths, which may be private. */
static void recipe_line(char *out, size_t cap, const struct cli_personalized *p)
{
    const struct fkt_recipe *r = &p->spec.tune;
    const int kept = !p->asked->test.path; /* held-out records */
    char share[FKT_DOUBLE_TEXT], rate[FKT_DOUBLE_TEXT];
    fkt_double_text(share, p->asked->holdout);
    fkt_double_text(rate, r->rate);
    snprintf(out, cap, "personalize --sites 1%s%s --epochs-tune %u --rate-tune %s --batch %u --seed %llu --threads %u",
             kept ? " --holdout " : "", kept ? share : "", r->epochs, rate, r->batch,
             (unsigned long long)p->asked->seed, r->threads ? r->threads : fkt_cpu_count());
}

static fkt_status keep_tuned(void *ctx, uint32_t site, enum fkt_personal_way way, const struct fkt_model *m)
{
    struct cli_personalized *p = ctx;
    struct fkt_model_origin o;
    fkt_status st;
    (void)site;
    if (way != FKT_PERSONAL_TUNED) return FKT_OK;
    st = fkt_model_copy(&p->tuned, m);
    if (st != FKT_OK) return st;
    o = *fkt_model_origin(m);
    recipe_line(o.recipe, sizeof o.recipe, p);
    fkt_model_set_origin(p->tuned, &o);
    return FKT_OK;
}

static fkt_status check_recipes(const struct fkt_recipe *local, const struct fkt_recipe *tune)
{
    static const struct cli_recipe_option of_local[] = {
        CLI_RECIPE("--batch", batch), CLI_RECIPE("--epochs-local", epochs), CLI_RECIPE("--rate-local", rate)};
    static const struct cli_recipe_option of_tune[] = {CLI_RECIPE("--epochs-tune", epochs),
                                                       CLI_RECIPE("--rate-tune", rate)};
    fkt_status st;
    FKT_TRY(cli_recipe_check(local, of_local, CLI_COUNT(of_local)));
    FKT_TRY(cli_recipe_check(tune, of_tune, CLI_COUNT(of_tune)));
out:
    return st;
}

static fkt_status fill_spec(struct cli_personalized *p, struct cli_progress *progress)
{
    const struct cli_personalize *a = p->asked;
    struct fkt_personal_spec *s = &p->spec;
    fkt_status st;
    *s = (struct fkt_personal_spec){.data = &p->data,
                                    .test = a->test.path ? &p->test : NULL,
                                    .partition = {.sites = (uint32_t)a->sites, .seed = a->seed},
                                    .holdout = a->holdout,
                                    .ways = a->mask,
                                    .seed = a->seed,
                                    .progress = &progress->hook,
                                    .model = a->out && a->sites == 1 ? keep_tuned : NULL,
                                    .ctx = p};
    FKT_TRY(fkt_fail_in(fkt_partition_parse(&s->partition, a->partition), "--partition"));
    fkt_recipe_default(&s->local);
    s->local.batch = (uint32_t)a->batch;
    FKT_TRY(cli_threads(a->run.threads, &s->local.threads));
    FKT_TRY(cli_device_settle(a->train.settings.device, &s->local.device));
    s->tune = s->local;
    s->local.epochs = (uint32_t)a->epochs_local;
    s->local.rate = a->rate_local;
    s->tune.epochs = (uint32_t)a->epochs_tune;
    s->tune.rate = a->rate_tune;
    FKT_TRY(check_recipes(&s->local, &s->tune));
out:
    return st;
}

static fkt_status keep(const struct cli_personalized *p)
{
    const struct cli_personalize *a = p->asked;
    if (p->tuned) return fkt_model_save(p->tuned, a->out, a->run.force);
    return a->out ? cli_personalize_folder(p) : FKT_OK;
}

/* Prints results even if they could not be saved, since they may have taken hours; then reports the error. */
static fkt_status print(const struct cli_personalized *p, struct cli_personalize *a, fkt_status kept)
{
    struct fkt_failure failure;
    fkt_status st = FKT_OK;
    fkt_failure_save(&failure, kept);
    if (kept != FKT_OK) a->out = NULL; /* p->asked: nothing to save */
    if (a->run.json) st = cli_print_json(cli_personalize_json(p));
    else cli_personalize_print(p);
    return kept != FKT_OK ? fkt_failure_restore(&failure) : st;
}

static fkt_status run(struct cli_personalize *a)
{
    struct cli_personalized p = {.asked = a};
    struct cli_progress progress;
    double start;
    fkt_status st;
    cli_progress_init(&progress, a->run.quiet);
    FKT_TRY(check(a));
    FKT_TRY(fill_spec(&p, &progress));
    cli_print_device(a->train.settings.device, p.spec.local.device, "f32", a->run.quiet);
    FKT_TRY(cli_personalize_network_open(&p));
    FKT_TRY(read_set(&p, &a->data, &p.data, &progress));
    if (a->test.path) FKT_TRY(read_set(&p, &a->test, &p.test, &progress));
    cli_progress_end(&progress);
    FKT_TRY(cli_personalize_network_train(&p));
    p.spec.pretrained = p.network;
    progress.unit = "img";
    start = fkt_now();
    FKT_TRY(fkt_personalize(&p.result, &p.spec));
    p.seconds = fkt_now() - start;
    cli_progress_end(&progress);
    progress.unit = NULL;
    FKT_TRY(cli_personalize_baselines_run(&p));
    cli_progress_end(&progress);
    cli_print_skipped(&p.skipped);
    FKT_TRY(print(&p, a, keep(&p)));
out:
    cli_progress_end(&progress);
    fkt_personal_clear(&p.result);
    fkt_personal_clear(&p.baselines);
    fkt_skipped_clear(&p.skipped);
    fkt_training_set_clear(&p.data);
    fkt_training_set_clear(&p.test);
    fkt_model_free(p.tuned);
    fkt_model_free(p.network);
    cli_training_clear(&p.training);
    return st;
}

int cli_personalize(const struct cli_command *self, int argc, char **argv)
{
    struct cli_personalize a = {.sites = 20,
                                .partition = "iid",
                                .holdout = 0.25,
                                .epochs_local = 20,
                                .epochs_tune = 20,
                                .rate_local = 0.05,
                                .rate_tune = 0.05,
                                .rounds = 10,
                                .batch = 32};
    struct cli_train *t = &a.train;
    const struct cli_option table[] = {
        CLI_OPT_TEXT("model", &a.model, "FILE", 0, "the network that 'fedkt train' made from a release"),
        CLI_OPT_WHOLE("size", &a.size, "PX", 0, "side of its images, for a file with only weights"),
        CLI_OPT_TEXT("release", &t->release, "FILE", 0,
                     "instead: train it in this run, on images drawn from a release"),
        CLI_OPT_TEXT("out", &a.out, "PATH", 0,
                     "output: with --sites 1 the tuned model, a file; else a folder with sites.csv and "
                     "results.json"),
        CLI_DATA_ROWS(a.data, 1),
        CLI_OPT_CHOICE("filter", &a.filter, fkt_filter_parse, "bilinear, bicubic, lanczos or box",
                       "how images are scaled"),
        CLI_OPT_CHOICE_GIVEN("fit", &a.data.fit, fkt_fit_parse, "the model's, crop, pad or stretch", CLI_FIT_HELP,
                             &a.data.fit_given),
        CLI_OPT_HEAD("the network, with --release; other settings are the defaults of 'fedkt train'"),
        CLI_OPT_CHOICE_GIVEN("network", &t->architecture, fkt_architecture_parse, "resnet18 or resnet8", "which one",
                             &t->architecture_given),
        {CLI_WHOLE, "per-class", &t->per_class, "N", "images drawn for each class (default: 500)", 0, NULL, NULL,
         &t->per_class_given},
        CLI_OPT_FLAG("fresh", &t->fresh, "draw new images for each epoch (default: the same images)"),
        {CLI_WHOLE, "epochs", &t->epochs, "N", "passes over them (default: 20)", 0, NULL, NULL, &a.epochs_given},
        CLI_OPT_TEXT("weights", &t->settings.weights, "PATH", 0, "the codec's weights (default: the cache)"),
        CLI_OPT_TEXT("model-out", &t->out, "FILE", 0, "file for this network, before any site has tuned it"),
        CLI_OPT_HEAD("evaluating"),
        {CLI_REAL, "holdout", &a.holdout, "F",
         "fraction of each class of each site that is held out for evaluation; 0: none (default: 0.25)", 0, NULL, NULL,
         &a.holdout_given},
        CLI_OPT_TEXT("test", &a.test.path, "PATH", 0,
                     "evaluate on these instead, weighted by the class proportions of each site (default: --data, when "
                     "--test-split is given)"),
        CLI_OPT_TEXT("test-split", &a.test.split, "NAME", 0, "split of the test set"),
        CLI_OPT_WHOLE("test-limit", &a.test.limit, "N", 0, "use N test images in all"),
        CLI_OPT_HEAD("sites"),
        CLI_OPT_WHOLE("sites", &a.sites, "N", 0, "number of sites; 1: all of --data belongs to one site (default: 20)"),
        CLI_OPT_TEXT("partition", &a.partition, "RULE", 0,
                     "how records are split over sites: iid, dirichlet:A, pfllib:A or pathological:K (default: iid)"),
        CLI_OPT_WHOLE("seed", &a.seed, "S", 0, "partition, splits, first weights, order of batches (default: 0)"),
        CLI_OPT_HEAD("learning"),
        CLI_OPT_TEXT("ways", &a.ways, "LIST", 0,
                     "a list of global, tuned, local, fedavg, fedavg_tuned (default: all; with one site global,tuned)"),
        {CLI_POSITIVE, "epochs-local", &a.epochs_local, "N", "epochs of local training, also for fedavg (default: 20)",
         0, NULL, NULL, &a.epochs_local_given},
        CLI_OPT_POSITIVE("epochs-tune", &a.epochs_tune, "N", 0, "epochs of tuning the last layer (default: 20)"),
        {CLI_REAL, "rate-local", &a.rate_local, "R", "largest learning rate of local training (default: 0.05)", 0, NULL,
         NULL, &a.rate_local_given},
        CLI_OPT_REAL("rate-tune", &a.rate_tune, "R", 0, "largest learning rate of tuning (default: 0.05)"),
        CLI_OPT_POSITIVE("batch", &a.batch, "N", 0, "batch size of local training and tuning (default: 32)"),
        CLI_DEVICE_ROW(t->settings.device),
        CLI_OPT_HEAD("methods of others, on the same split, network and first weights"),
        CLI_OPT_TEXT("baselines", &a.baselines, "LIST", 0,
                     "a list of local, fedavg_once, fedavg, perfedavg, pfedme, fedamp, fedphp, fedfomo, apple, "
                     "partialfed, or all (default: none)"),
        {CLI_POSITIVE, "rounds", &a.rounds, "N", "rounds of each of them, all sites in every round (default: 10)", 0,
         NULL, NULL, &a.rounds_given},
        CLI_OPT_TEXT("baseline-set", &a.baseline_set, "LIST", 0,
                     "their other numbers, as in rate=0.05,epochs=1,pfedme_lambda=15; docs/train.md has all"),
        CLI_RUN_ROWS(a.run),
    };
    int code;
    cli_train_defaults(t);
    code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    if (code >= 0) return code;
    a.test.skip_bad = a.data.skip_bad;
    a.test.bits = a.data.bits;
    a.test.fit = a.data.fit;
    a.test.fit_given = a.data.fit_given;
    return cli_misuse(self, run(&a));
}
