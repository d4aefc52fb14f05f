/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.c - `fedkt simulate`, and `fedkt demo`, which is a simulation with fixed options. */
#include "cli/core/common.h"
#include "cli/core/guided.h"
#include "cli/core/launch.h"
#include "cli/simulate/run.h"
#include "cli/core/verbs.h"

#include "base/alloc.h"
#include "base/text.h"
#include "fedkt/advanced/federation.h"
#include "fedkt/advanced/simulate.h"
#include "fedkt/learn.h"

#include <stdio.h>
#include <string.h>

/* A simulation's output stays with the owner of the records, so releases that are weak only together do not stop it. */
static void print_weak(const struct fkt_sweep *w)
{
    char why[FKT_PROMISE_WORDS], said[FKT_PROMISE_WORDS] = "";
    for (size_t i = 0; i + 1 < fkt_sweep_arms(w); i++) {
        const struct fkt_release *r = fkt_sweep_arm(w, i)->release;
        (void)fkt_release_promise(r, why);
        if (strcmp(why, said) != 0) cli_print_weak_release(r);
        memcpy(said, why, sizeof said);
    }
}

/* Width of a head's column: its title with some space, and at least "100.00 %". */
static int width_of(int kind)
{
    const int n = (int)strlen(fkt_head_title((enum fkt_head_kind)kind)) + 2;
    return n > 8 ? n : 8;
}

static void print_arm(const struct fkt_sweep *w, size_t i)
{
    const struct fkt_sweep_arm *a = fkt_sweep_arm(w, i);
    double mean[FKT_HEAD_KINDS], deviation[FKT_HEAD_KINDS];
    uint32_t below_noise = 0;
    for (int k = 0; k < FKT_HEAD_KINDS; k++) fkt_sweep_accuracy(w, i, (enum fkt_head_kind)k, &mean[k], &deviation[k]);
    for (uint32_t k = 0; k < a->measured->classes; k++) below_noise += (uint32_t)cli_below_noise(a, k);
    printf("%-16s", a->name);
    for (int k = 0; k < FKT_HEAD_KINDS; k++) printf(" %*.2f %%", width_of(k) - 2, 100 * mean[k]);
    if (below_noise) printf("   %u class%s below the noise", below_noise, below_noise == 1 ? "" : "es");
    printf("%s\n", a->release ? "" : "   (reference without noise, not private)");
    if (a->draws < 2) return;
    printf("%-16s", "");
    for (int k = 0; k < FKT_HEAD_KINDS; k++) printf(" %*.2f  ", width_of(k) - 2, 100 * deviation[k]);
    printf("   standard deviation over %zu draws of the noise\n", a->draws);
}

static void print_network(const struct cli_sim *s, const struct fkt_sweep *w, size_t i)
{
    const struct fkt_sweep_arm *a = fkt_sweep_arm(w, i);
    const double found[2] = {a->network, a->unguided};
    for (int unguided = 0; unguided < 2; unguided++)
        if (found[unguided] >= 0)
            printf("%-16s %12.2f %%   %s, %llu epoch%s on %llu %simages per class, the last epoch's\n", a->name,
                   100 * found[unguided], fkt_sweep_network_name(w), (unsigned long long)s->epochs,
                   s->epochs == 1 ? "" : "s", (unsigned long long)s->train_per_class,
                   unguided           ? "unguided "
                   : a->unguided >= 0 ? "guided "
                                      : "");
}

static void print_accuracies(const struct cli_sim *s, const struct fkt_sweep *w)
{
    printf("%-16s", "");
    for (int k = 0; k < FKT_HEAD_KINDS; k++) printf(" %*s", width_of(k), fkt_head_title((enum fkt_head_kind)k));
    printf("   accuracy on %llu real test images\n",
           (unsigned long long)fkt_score_total(fkt_sweep_score(w, 0, (enum fkt_head_kind)0, 0)));
    for (size_t i = 0; i < fkt_sweep_arms(w); i++) print_arm(w, i);
    for (size_t i = 0; fkt_sweep_network_name(w) && i < fkt_sweep_arms(w); i++) print_network(s, w, i);
    putchar('\n');
}

static void print(const struct cli_sim *s, const struct fkt_sweep *w)
{
    const struct fkt_task *t = fkt_pipeline_task(fkt_sweep_pipeline(w));
    const struct fkt_simulation *sim = fkt_sweep_simulation(w);
    const struct fkt_federate_result *r = fkt_sweep_arm(w, 0)->round;
    printf("%u of %u sites, %llu records, %u classes, %s coordinates of length %u", sim->survivors, sim->sites,
           (unsigned long long)sim->records, t->n_classes, fkt_coordinate_name(t->part[0].coordinates.kind),
           t->part[0].coordinates.length);
    for (uint32_t p = 1; p < t->parts; p++) printf(" + %u", t->part[p].coordinates.length);
    printf("%s%s, %.0f KB%s per site, once\n", t->joined ? " joined" : "", t->layout.pooled ? ", pooled moments" : "",
           (double)(r->survivors ? r->up : sim->bytes_per_site) / 1000, r->survivors ? "" : " of exact sums");
    cli_round_print(w);
    putchar('\n');
    if (fkt_sweep_test_data(w)) print_accuracies(s, w);
    else printf("no test set: give --holdout 0.2, or --test and --test-split, to see accuracies\n");
    if (fkt_sweep_arms(w) > 2 || fkt_sweep_arm(w, 0)->draws > 1)
        printf("releases of the same records compose: publishing all of them costs epsilon %.4g\n",
               fkt_sweep_composed_epsilon(w));
    print_weak(w);
    if (s->seeded) printf("NOT PRIVATE: the noise came from --insecure-seed\n");
    if (s->out)
        printf(fkt_sweep_arm(w, 0)->images
                   ? "see %s/report.html and %s/grid.png; report, results, partition and moments are private\n"
                   : "see %s/report.html; report, results, partition and moments are private\n",
               s->out, s->out);
    else printf("nothing was kept: give --out to keep the release, images and a report\n");
    printf("a simulation does not use a ledger: every run on the same records is a further release\n");
}

static fkt_status print_json(const struct fkt_sweep *w)
{
    char *text = NULL;
    fkt_status st = fkt_sweep_results_json(w, &text);
    if (st == FKT_OK) {
        puts(text);
        st = cli_flush();
    }
    fkt_string_free(text);
    return st;
}

static fkt_status run(const void *ctx)
{
    const struct cli_sim *s = ctx;
    struct cli_outcome o = {0};
    struct cli_progress progress;
    enum fkt_adjacency adjacency = (enum fkt_adjacency)s->privacy.adjacency;
    fkt_status st;
    cli_progress_init(&progress, s->run.quiet);
    FKT_TRY(cli_sim_run(s, &o, &progress));
    if (!cli_first_rank()) goto out;
    cli_print_skipped(fkt_sweep_skipped(o.sweep));
    cli_print_copies(fkt_sweep_records(o.sweep), adjacency);
    cli_print_limit(&s->data, adjacency);
    if (s->out) FKT_TRY(cli_run_folder(s, &o, &progress));
    cli_round_remark(s, o.sweep);
    if (s->run.json) FKT_TRY(print_json(o.sweep));
    else print(s, o.sweep);
out:
    cli_progress_end(&progress);
    cli_outcome_clear(&o);
    return st;
}

/* The command line as typed, for the report. */
static fkt_status command_line(struct fkt_text *t, const char *verb, int argc, char **argv)
{
    fkt_text_init(t);
    fkt_text_addf(t, "fedkt %s", verb);
    for (int i = 0; i < argc; i++) fkt_text_addf(t, " %s", argv[i]);
    return fkt_text_status(t);
}

static int parse_network(const char *word)
{
    int a = fkt_architecture_parse(word);
    return !strcmp(word, "none") ? 0 : a < 0 ? a : a + 1;
}

/* Options of --train. */
#define NETWORK_ROWS(s)                                                                                                \
    CLI_OPT_HEAD("a network trained on the images"),                                                                   \
        {CLI_CHOICE,                                                                                                   \
         "train",                                                                                                      \
         &(s).train,                                                                                                   \
         NULL,                                                                                                         \
         "train one for every epsilon, and one without privacy",                                                       \
         0,                                                                                                            \
         parse_network,                                                                                                \
         "none, resnet18 or resnet8",                                                                                  \
         NULL},                                                                                                        \
        {CLI_WHOLE, "epochs", &(s).epochs,      "N", "passes over its images (default: 20)", 0,                        \
         NULL,      NULL,     &(s).epochs_given},                                                                      \
        {CLI_POSITIVE,                                                                                                 \
         "train-per-class",                                                                                            \
         &(s).train_per_class,                                                                                         \
         "N",                                                                                                          \
         "images drawn for each class, in memory (default: 500)",                                                      \
         0,                                                                                                            \
         NULL,                                                                                                         \
         NULL,                                                                                                         \
         &(s).train_per_class_given},                                                                                  \
        CLI_OPT_TEXT("teacher", &(s).teacher, "head", 0, "soft labels from the head of the same release"),             \
        CLI_OPT_CHOICE_GIVEN("teacher-head", &(s).head_kind, fkt_head_parse, "rda, lda, qda or nearest_mean",          \
                             "which head of the release teaches", &(s).head_kind_given),                               \
        CLI_OPT_CHOICE_GIVEN("teacher-parts", &(s).head_on, fkt_heads_on_parse, "default, all or guide",               \
                             "which parts of an image's record vector it looks at; default: the guide alone, if any",  \
                             &(s).head_on_given),                                                                      \
        {CLI_REAL, "temperature", &(s).temperature,      "T", "softmax temperature of the teacher (default: 2)", 0,    \
         NULL,     NULL,          &(s).temperature_given},                                                             \
        CLI_OPT_REAL("teacher-share", &(s).share, "F", 0, "weight of the teacher's loss (default: 1)"),                \
        CLI_OPT_TEXT("public", &(s).shared.path, "PATH", 0,                                                            \
                     "add unlabelled public images, which --teacher head labels; no promise covers them"),             \
        CLI_OPT_TEXT("public-split", &(s).shared.split, "NAME", 0, "split of --public"),                               \
        CLI_OPT_WHOLE("public-limit", &(s).shared.limit, "N", 0, "use N images of --public"),                          \
        CLI_OPT_WHOLE("public-per-epoch", &(s).shared_each, "N", 0,                                                    \
                      "of them in each epoch, others in the next (default: as many as the drawn images)")

#define SYNTHETIC_ROWS(s)                                                                                              \
    CLI_OPT_HEAD("synthetic images"),                                                                                  \
        CLI_OPT_WHOLE("per-class", &(s).per_class, "N", 0,                                                             \
                      "write N synthetic images per class into the run folder (default: none)"),                       \
        CLI_OPT_CHOICE("format", &(s).format, fkt_export_parse, "folder, npz, webdataset or dpimagebench",             \
                       "format of the images"),                                                                        \
        CLI_OPT_CHOICE("estimator", &(s).estimator, fkt_estimator_parse, "clamp or rie",                               \
                       "how covariances are repaired for sampling"),                                                   \
        CLI_GUIDED_ROW((s).guided)

int cli_simulate(const struct cli_command *self, int argc, char **argv)
{
    struct cli_sim s = {.codec = CLI_CODEC_DEFAULTS,
                        .partition = "iid",
                        .participation = 1,
                        .sites = 20,
                        .epochs = 20,
                        .train_per_class = 500,
                        .head_kind = fkt_head_default(0),
                        .share = -1,
                        .title = "fedkt simulation"};
    struct fkt_text typed;
    const struct cli_option table[] = {
        CLI_OPT_TEXT("out", &s.out, "DIR", 0, "run folder: release, certificate, results, grid.png, report.html"),
        CLI_DATA_ROWS(s.data, 1),
        CLI_ENCODINGS_ROW(s.encodings),
        CLI_OPT_TEXT("test", &s.test.path, "PATH", 0,
                     "real images to evaluate on (default: --data, when --test-split is given)"),
        CLI_OPT_TEXT("test-split", &s.test.split, "NAME", 0, "split of the test set"),
        CLI_OPT_WHOLE("test-limit", &s.test.limit, "N", 0, "use N test images in all"),
        CLI_OPT_REAL("holdout", &s.holdout, "F", 0,
                     "hold out each record with this probability, by a hash of its bytes, so always the same records"),
        CLI_OPT_HEAD("federation"),
        CLI_OPT_WHOLE("sites", &s.sites, "N", 0, "sites (default: 20)"),
        CLI_OPT_POSITIVE("cohort-size", &s.cohort_size, "N", 0,
                         "divide the sites into cohorts of about N, each with its own masked sum and its own noise"),
        CLI_OPT_TEXT("partition", &s.partition, "RULE", 0,
                     "how records are split over sites: iid, dirichlet:A, pfllib:A or pathological:K (default: iid)"),
        CLI_OPT_REAL("participation", &s.participation, "P", 0, "fraction of the sites that take part (default: 1)"),
        CLI_OPT_TEXT(
            "dropout", &s.dropout, "P", 0,
            "fraction of those that are lost before their upload, or by phase: PHASE:P,PHASE:P with advertise, coin, "
            "share, mask, confirm, reveal; their sum is rounded to whole sites (default: 0)"),
        CLI_OPT_TEXT("dropped", &s.dropped, "F|N", 0,
                     "fraction (0.1; rounded up) or number (1) of lost sites that the task tolerates (default: 0.1 and "
                     "at least 2, but 1 of five or six sites and 0 of fewer; or what --dropout loses where that is "
                     "more)"),
        CLI_OPT_TEXT(
            "corrupt", &s.corrupt, "F|N", 0,
            "fraction (0.1; rounded up) or number (1) of sites that may collude with the server (default: 0.1, "
            "so one at least)"),
        CLI_OPT_CHOICE_GIVEN("noise", &s.noise, fkt_noise_parse, "distributed or central",
                             "who adds noise: every site its noise share before masking, or one place after the sum",
                             &s.noise_given),
        CLI_OPT_CHOICE_GIVEN("keystream", &s.keystream, fkt_keystream_parse, "aes-256-ctr or chacha20",
                             "what masks are made of", &s.keystream_given),
        CLI_OPT_POSITIVE("records", &s.records, "N", 0,
                         "upper bound on records of one class at one site, published in the task (default: 2^20, which "
                         "reveals nothing about the set)"),
        CLI_OPT_WHOLE("runs", &s.runs, "R", 0,
                      "draw every release R times and evaluate each: mean and standard deviation; the first is kept "
                      "(default: 1)"),
        CLI_OPT_WHOLE("seed", &s.seed, "S", 0,
                      "partition (with each record's bytes), drop-outs, samples (default: 0); public"),
        {CLI_WHOLE, "insecure-seed", &s.insecure_seed, "S",
         "TESTS ONLY: noise from a known seed too; the result is not private and says so", 0, NULL, NULL, &s.seeded},
        SYNTHETIC_ROWS(s),
        NETWORK_ROWS(s),
        CLI_CODEC_ROWS(s.codec, CLI_TASK_CODEC),
        CLI_GUIDE_ROWS(s.codec),
        CLI_DEVICE_ROW(s.codec.settings.device),
        CLI_PRIVACY_ROWS(s.privacy, 1),
        CLI_WEAK_ROW(s.privacy.accept_weak),
        CLI_RUN_ROWS(s.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    if (code >= 0) return code;
    if (command_line(&typed, "simulate", argc, argv) != FKT_OK) return cli_fail(FKT_E_NOMEM);
    s.command = typed.s;
    if (s.per_class && !s.out) code = cli_misuse(self, fkt_fail(FKT_E_ARG, "--per-class needs --out"));
    else code = cli_on_ranks(self, run, &s);
    fkt_text_clear(&typed);
    return code;
}

int cli_demo(const struct cli_command *self, int argc, char **argv)
{
    struct cli_sim s = {.codec = CLI_CODEC_DEFAULTS,
                        .partition = "dirichlet:0.3",
                        .participation = 1,
                        .sites = 20,
                        .title = "fedkt demo",
                        .share = -1,
                        .data = {.path = "demo:train"},
                        .test = {.path = "demo:test"},
                        .privacy = {.epsilon = "1,10", .delta = 1e-5},
                        .train = 1 + FKT_ARCHITECTURE_RESNET8, /* on images of the first epsilon, guided and not */
                        .train_only = 1,
                        .train_unguided = 1,
                        .epochs = 6,
                        .train_per_class = 100,
                        .per_class = 50,
                        /* 600 records of a class: at epsilon 1 most directions are noise, which clamp would draw */
                        .estimator = FKT_ESTIMATOR_RIE,
                        .out = "fedkt-demo"};
    struct fkt_text typed;
    const struct cli_option table[] = {
        CLI_OPT_TEXT("out", &s.out, "DIR", 0, "run folder (default: fedkt-demo)"),
        CLI_OPT_WHOLE("limit", &s.data.limit, "N", 0, "use N of the 6000 images, spread evenly over the classes"),
        CLI_OPT_WHOLE("seed", &s.seed, "S", 0, "partition and samples (default: 0)"),
        {CLI_WHOLE, "insecure-seed", &s.insecure_seed, "S",
         "TESTS ONLY: noise from a known seed too; the result is not private and says so", 0, NULL, NULL, &s.seeded},
        CLI_RUN_ROWS(s.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    if (code >= 0) return code;
    if (!s.run.quiet)
        fprintf(stderr, "twenty sites hold a generated image set of ten classes; only noised sums leave them\n");
    if (command_line(&typed, "demo", argc, argv) != FKT_OK) return cli_fail(FKT_E_NOMEM);
    s.command = typed.s;
    code = cli_misuse(self, run(&s));
    fkt_text_clear(&typed);
    return code;
}
