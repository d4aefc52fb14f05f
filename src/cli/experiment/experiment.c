/* SPDX-License-Identifier: Apache-2.0 */
/* experiment.c - `fedkt experiment`: tables and figures of the paper, and a report of the cells that are there. */
#include "cli/core/common.h"
#include "cli/core/hints.h"
#include "cli/core/launch.h"
#include "cli/core/verbs.h"
#include "cli/experiment/report.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "base/threads.h"
#include "experiment/store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Cells were skipped: the others are there. */
enum { CLI_INCOMPLETE = 3, NAMES = 64, ROUNDS_MAX = 100000 };

struct asked {
    struct cli_words words;
    const char *data, *out, *seeds, *sets, *encodings, *weights, *fill, *keep, *arms;
    int list, quick, resume, device, network, network_given, rounds_given;
    uint64_t rounds, limit, per_class;
    struct cli_run run;
};

struct job {
    const struct asked *asked;
    struct fkt_experiment_options options;
    const struct fkt_experiment *experiments[NAMES];
    char *names_text;
    const char **names; /* of --sets */
    char *arms_text;
    const char **arms;
    struct cli_progress work, cells;
    size_t skipped;    /* cells */
    char reason[1536]; /* of the last cell, where it was skipped; "": it was not */
    size_t more;       /* cells after the first one with this reason, not yet said */
    char *encodings;
};

static int parse_network(const char *word)
{
    const int a = fkt_architecture_parse(word);
    return !strcmp(word, "auto") ? 0 : !strcmp(word, "none") ? 1 : a < 0 ? a : a + 2;
}

/* ---- --list ---- */

static json_t *arms_json(const struct fkt_experiment *e)
{
    json_t *arms = json_array();
    const struct fkt_arm *arm;
    for (size_t i = 0; (arm = fkt_experiment_arm(e, i)); i++) json_array_append_new(arms, json_string(arm->name));
    return arms;
}

static fkt_status print_list(const struct asked *a)
{
    const struct fkt_experiment *e;
    json_t *all = a->run.json ? json_array() : NULL;
    for (size_t i = 0; (e = fkt_experiment_at(i)); i++)
        if (a->run.json)
            json_array_append_new(all, json_pack("{s:s s:s s:s s:s s:o}", "name", e->name, "paper", e->paper, "about",
                                                 e->about, "time", e->time, "arms", arms_json(e)));
        else printf("%-14s %s\n%-14s %s; %s\n", e->name, e->about, "", e->paper, e->time);
    return a->run.json ? cli_print_json(all) : FKT_OK;
}

/* ---- from options to a plan ---- */

static fkt_status choose_experiments(struct job *j)
{
    const struct cli_words *w = &j->asked->words;
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        const struct fkt_experiment *e = fkt_experiment_find(w->list[i]);
        const int all = !strcmp(w->list[i], "all");
        if (!e && !all)
            return fkt_fail_hint(FKT_E_ARG, "'fedkt experiment --list' names them", "there is no experiment '%s'",
                                 w->list[i]);
        for (size_t k = 0; all ? fkt_experiment_at(k) != NULL : k < 1; k++) {
            const struct fkt_experiment *next = all ? fkt_experiment_at(k) : e;
            for (size_t m = 0; m < n; m++)
                if (j->experiments[m] == next) return fkt_fail(FKT_E_ARG, "experiment '%s' is given twice", next->name);
            if (n == NAMES) return fkt_fail(FKT_E_ARG, "at most %d experiments at once", NAMES);
            j->experiments[n++] = next;
        }
    }
    j->options.experiments = j->experiments;
    j->options.n_experiments = n;
    return n ? FKT_OK : fkt_fail_hint(FKT_E_ARG, "'fedkt experiment --list' names them", "which experiment?");
}

static fkt_status read_seeds(struct job *j)
{
    double list[FKT_SEEDS_MAX];
    fkt_status st =
        cli_reals("seeds", j->asked->seeds ? j->asked->seeds : "0", list, FKT_SEEDS_MAX, &j->options.n_seeds);
    for (size_t i = 0; st == FKT_OK && i < j->options.n_seeds; i++) {
        if (!(list[i] >= 0 && list[i] <= 4294967295.0 && list[i] == (double)(uint64_t)list[i]))
            return fkt_fail(FKT_E_ARG, "--seeds: %g is not a whole number from 0 to 4294967295", list[i]);
        j->options.seed[i] = (uint64_t)list[i];
        for (size_t k = 0; k < i; k++)
            if (j->options.seed[k] == j->options.seed[i])
                return fkt_fail(FKT_E_ARG, "--seeds: %g is given twice", list[i]);
    }
    return st;
}

/* The names of --sets or --arms, each once; text and list are freed by the caller. */
static fkt_status read_names(const char *option, const char *given, char **text, const char ***names, size_t *n)
{
    fkt_status st;
    FKT_TRY(cli_split(given, text, names, n));
    for (size_t i = 0; i < *n; i++) {
        if (!fkt_experiment_plain((*names)[i], NULL))
            return fkt_fail(FKT_E_ARG, "--%s: '%s' is not a name: letters, digits, '-', '_' and '.'", option,
                            (*names)[i]);
        for (size_t k = 0; k < i; k++)
            if (!strcmp((*names)[i], (*names)[k]))
                return fkt_fail(FKT_E_ARG, "--%s: '%s' is given twice", option, (*names)[i]);
    }
out:
    return st;
}

static fkt_status read_sets(struct job *j)
{
    fkt_status st;
    if (!j->asked->sets) return FKT_OK;
    FKT_TRY(read_names("sets", j->asked->sets, &j->names_text, &j->names, &j->options.n_sets));
    j->options.sets = j->names;
    for (size_t i = 0; i < j->options.n_sets; i++) {
        if (fkt_ends_in(j->names[i], FKT_UNLABELLED_ENDING))
            return fkt_fail(FKT_E_ARG, "--sets: '%s': no set of records ends in " FKT_UNLABELLED_ENDING, j->names[i]);
        if (fkt_experiment_is_input(j->names[i]))
            return fkt_fail(FKT_E_ARG,
                            "--sets: '%s': no set of records begins with '" FKT_CALIBRATION_INPUT
                            "' or '" FKT_WEIGHTS_INPUT "'",
                            j->names[i]);
        if (!strcmp(j->names[i], FKT_PUBLIC_SET))
            return fkt_fail(FKT_E_ARG, "--sets: '%s' is the set of unlabelled images that networks learn from",
                            j->names[i]);
    }
out:
    return st;
}

static int has_arm(const struct fkt_experiment *e, const char *name)
{
    const struct fkt_arm *arm;
    size_t i = 0;
    while ((arm = fkt_experiment_arm(e, i)) && strcmp(arm->name, name) != 0) i++;
    return arm != NULL;
}

/* Each must be an arm of an experiment of the run. */
static fkt_status read_arms(struct job *j)
{
    fkt_status st;
    if (!j->asked->arms) return FKT_OK;
    FKT_TRY(read_names("arms", j->asked->arms, &j->arms_text, &j->arms, &j->options.n_arms));
    j->options.arms = j->arms;
    for (size_t i = 0; i < j->options.n_arms; i++) {
        int found = 0;
        for (size_t k = 0; k < j->options.n_experiments; k++) found |= has_arm(j->experiments[k], j->arms[i]);
        if (!found)
            return fkt_fail_hint(FKT_E_ARG, "'fedkt experiment --list --json' names the arms of each",
                                 "--arms: there is no arm '%s'", j->arms[i]);
    }
out:
    return st;
}

static int needs_sets(const struct job *j)
{
    for (size_t i = 0; i < j->options.n_experiments; i++)
        if (!j->experiments[i]->panel) return 1;
    return 0;
}

/* Rounds that no experiment of the run has are a mistake. */
static fkt_status read_rounds(struct job *j)
{
    const struct asked *a = j->asked;
    int used = 0;
    if (!a->rounds_given) return FKT_OK;
    for (size_t i = 0; i < j->options.n_experiments; i++) used |= j->experiments[i]->rounds > 0;
    if (!used) return fkt_fail(FKT_E_ARG, "--rounds is for experiments with federated methods: personalised");
    if (a->rounds > ROUNDS_MAX) return fkt_fail(FKT_E_ARG, "--rounds must be at most %d", ROUNDS_MAX);
    j->options.rounds = (uint32_t)a->rounds;
    return FKT_OK;
}

static fkt_status check_data(const char *folder)
{
    static const char hint[] = "--data names the folder that holds sets by name: eurosat, cifar10, ...";
    struct stat s;
    if (!folder) return FKT_OK;
    if (stat(folder, &s) != 0 || (S_ISDIR(s.st_mode) && access(folder, X_OK) != 0))
        return fkt_fail_hint(FKT_E_IO, hint, "cannot open the folder of image sets '%s': %s", folder, strerror(errno));
    return S_ISDIR(s.st_mode) ? FKT_OK : fkt_fail_hint(FKT_E_ARG, hint, "'%s' is not a folder of image sets", folder);
}

static fkt_status settle(struct job *j)
{
    const struct asked *a = j->asked;
    struct fkt_experiment_options *o = &j->options;
    fkt_status st;
    FKT_TRY(choose_experiments(j));
    if (!a->out) return fkt_fail(FKT_E_ARG, "give a folder for the results: --out FOLDER");
    FKT_TRY(read_seeds(j));
    FKT_TRY(read_sets(j));
    FKT_TRY(read_arms(j));
    FKT_TRY(read_rounds(j));
    o->data = a->data;
    o->quick = a->quick;
    o->limit = a->limit;
    o->per_class = a->per_class;
    o->weights = a->weights;
    if (!a->data && !a->quick && !a->sets && needs_sets(j))
        return fkt_fail_hint(FKT_E_ARG,
                             "give the folder that holds eurosat, cifar10, ... with --data, or --quick, which "
                             "takes the embedded set",
                             "experiments need image sets");
    FKT_TRY(check_data(a->data));
    o->network = !a->network ? 1 + (a->quick ? FKT_ARCHITECTURE_RESNET8 : FKT_ARCHITECTURE_RESNET18) : a->network - 1;
    FKT_TRY(cli_threads(a->run.threads, &o->threads));
    if (!o->threads) o->threads = fkt_cpu_count(); /* the bits of a network depend on it */
    FKT_TRY(cli_device_settle(a->device, &o->device));
    cli_print_device(a->device, o->device, "bf16 to draw and to learn, else f32", a->run.quiet);
    if (a->encodings) FKT_TRY(fkt_strdup(&j->encodings, a->encodings));
    else FKT_TRY(fkt_path_join(&j->encodings, a->out, "encodings"));
    o->progress = &j->work.hook;
out:
    return st;
}

/* ---- the run ---- */

/* Phrases of the command line, where this verb has their option or they name another verb; else the library's words:
 * --skip-bad and --size are not options here. */
static void say_hint(char *out, size_t cap)
{
    switch (fkt_error_hint_code()) {
    case FKT_HINT_CACHE:
    case FKT_HINT_WEIGHTS_PATH:
    case FKT_HINT_WEIGHTS_KIND:
    case FKT_HINT_WEIGHTS_VERIFY:
    case FKT_HINT_PULL:
    case FKT_HINT_PULL_AGAIN:
    case FKT_HINT_DEVICE_CPU:
    case FKT_HINT_DEVICE_BUILD: cli_hint(out, cap); return;
    default: snprintf(out, cap, "%s", fkt_error_hint());
    }
}

/* One missing set or file of weights can stop a hundred cells: the reason is said once for cells in a row, so that it
 * can be read. */
static void say_more(struct job *j)
{
    char line[96];
    if (!j->more) return;
    snprintf(line, sizeof line, "fedkt: and %zu more cell%s for the same reason", j->more, j->more == 1 ? "" : "s");
    cli_say(line);
    j->more = 0;
}

static void say_skip(struct job *j, const struct fkt_cell *c, const struct fkt_skip *skip)
{
    char reason[sizeof j->reason], line[sizeof reason + FKT_CELL_KEY + 32];
    snprintf(reason, sizeof reason, "%s%s%s", skip->why, skip->hint[0] ? "\n" : "", skip->hint);
    if (!strcmp(reason, j->reason)) {
        j->more++;
        return;
    }
    say_more(j);
    memcpy(j->reason, reason, sizeof reason);
    snprintf(line, sizeof line, "fedkt: skipped cell '%s': %s", c->key, skip->why);
    cli_say(line);
    if (!skip->hint[0]) return;
    snprintf(line, sizeof line, "hint: %s", skip->hint);
    cli_say(line);
}

static void say_cell(void *ctx, const struct fkt_cell *c, const struct fkt_skip *skip)
{
    struct job *j = ctx;
    char line[FKT_CELL_KEY + 32];
    cli_progress_end(&j->work);
    cli_progress_end(&j->cells);
    if (cli_log_jsonl()) {
        cli_event("cell", json_pack("{s:s s:s* s:s*}", "cell", c->key, "skipped", skip ? skip->why : NULL, "hint",
                                    skip && skip->hint[0] ? skip->hint : NULL));
        return;
    }
    if (skip) {
        say_skip(j, c, skip);
        return;
    }
    say_more(j);
    j->reason[0] = '\0';
    if (j->asked->run.quiet) return;
    snprintf(line, sizeof line, "fedkt: cell '%s' is done", c->key);
    cli_say(line);
}

static fkt_status begin(const struct job *j)
{
    const struct asked *a = j->asked;
    fkt_status st;
    FKT_TRY(cli_not_an_input(a->out, a->data));
    st = fkt_store_begin(a->out, &j->options, a->resume);
    if (st == FKT_E_EXISTS)
        st = fkt_hint(st, a->resume ? "name another folder" : "give --resume to go on with it, or name another folder");
out:
    return st;
}

static fkt_status print_result(const struct job *j, const json_t *skipped)
{
    const struct asked *a = j->asked;
    if (a->run.json)
        return cli_print_json(json_pack("{s:s s:O s:s}", "schema", "fedkt.experiment-result/1", "skipped", skipped,
                                        "report", "report.html"));
    cli_say_report(a->out);
    if (j->skipped)
        printf("%zu cell%s skipped; --resume tries %s again\n", j->skipped, j->skipped == 1 ? " was" : "s were",
               j->skipped == 1 ? "it" : "them");
    return FKT_OK;
}

static fkt_status run(const void *ctx)
{
    struct job *j = (struct job *)ctx;
    const struct asked *a = j->asked;
    const struct fkt_ranks *ranks = cli_ranks();
    struct fkt_experiment_run r = {.options = &j->options,
                                   .folder = a->out,
                                   .rank = ranks ? ranks->rank : 0,
                                   .ranks = ranks ? ranks->size : 1,
                                   .cells = &j->cells.hook,
                                   .done = say_cell,
                                   .hint = say_hint,
                                   .ctx = j};
    static const char go_on[] = "finished cells are kept: the same command with --resume goes on";
    json_t *skipped = NULL;
    fkt_status st;
    cli_progress_init(&j->work, a->run.quiet);
    cli_progress_init(&j->cells, a->run.quiet);
    FKT_TRY(settle(j));
    r.encodings = j->encodings;
    st = cli_first_rank() ? begin(j) : FKT_OK;
    FKT_TRY(fkt_ranks_agree(cli_ranks(), st));
    st = fkt_experiment_run(&r, &skipped);
    cli_progress_end(&j->work);
    cli_progress_end(&j->cells);
    say_more(j);
    if (st == FKT_E_STOPPED) /* where it was inside a cell does not matter: that cell starts again */
        st = fkt_fail_hint(st, go_on, "stopped before all cells were computed");
    else if (st != FKT_OK && !fkt_error_hint()[0]) st = fkt_hint(st, go_on);
    FKT_TRY(fkt_ranks_agree(cli_ranks(), st));
    if (!cli_first_rank()) goto out;
    FKT_TRY(fkt_experiment_gather(&r, skipped));
    j->skipped = json_array_size(skipped);
    FKT_TRY(cli_run_report(a->out, skipped, a->fill));
    FKT_TRY(print_result(j, skipped));
out:
    json_decref(skipped);
    return st;
}

/* An option of a run that was given with report; NULL: none. */
static const char *of_a_run(const struct asked *a)
{
    const struct {
        int given;
        const char *name;
    } list[] = {{a->resume, "resume"},
                {a->quick, "quick"},
                {a->data != NULL, "data"},
                {a->sets != NULL, "sets"},
                {a->arms != NULL, "arms"},
                {a->seeds != NULL, "seeds"},
                {a->encodings != NULL, "encodings"},
                {a->weights != NULL, "weights"},
                {a->limit || a->per_class, a->limit ? "limit" : "per-class"},
                {a->network_given, "network"},
                {a->rounds_given, "rounds"},
                {a->device != 0, "device"},
                {a->run.threads != 0, "threads"}};
    for (size_t i = 0; i < CLI_COUNT(list); i++)
        if (list[i].given) return list[i].name;
    return NULL;
}

static fkt_status report(const struct asked *a)
{
    const struct cli_joined joined = {.place = a->words.list + 1,
                                      .places = a->words.n - 1,
                                      .out = a->out,
                                      .fill = a->fill,
                                      .keep = a->keep,
                                      .json = a->run.json};
    if (!joined.places) return fkt_fail(FKT_E_ARG, "report needs a folder of 'fedkt experiment', or kept cells");
    if (of_a_run(a)) return fkt_fail(FKT_E_ARG, "--%s belongs to a run: report takes all cells there are", of_a_run(a));
    return cli_joined_report(&joined);
}

int cli_experiment(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {0};
    struct job j = {.asked = &a};
    const struct cli_option table[] = {
        CLI_OPT_WORDS("NAME", &a.words, 0, "experiments of --list, or all; or report and folders or kept cells"),
        CLI_OPT_FLAG("list", &a.list, "name the experiments, with a line each and the time they take"),
        CLI_OPT_TEXT("out", &a.out, "FOLDER", 0, "folder of the results: cells, tables, plots, report.html"),
        CLI_OPT_FLAG("resume", &a.resume, "go on with a folder: cells that are there are kept"),
        CLI_OPT_TEXT("data", &a.data, "DIR", 0,
                     "folder with image sets by name: eurosat, cifar10, cifar100, imagenette64, bloodmnist, as folder, "
                     "tar or .npz (default with --quick: the embedded set)"),
        CLI_OPT_TEXT("sets", &a.sets, "NAME,NAME", 0, "these sets alone (default: those of each experiment)"),
        CLI_OPT_WHOLE(
            "limit", &a.limit, "N", 0,
            "use N records of each set in place of all, spread evenly over the classes; test splits stay whole"),
        CLI_OPT_TEXT("arms", &a.arms, "NAME,NAME", 0, "these arms alone; --list --json names them (default: all)"),
        CLI_OPT_FLAG("quick", &a.quick, "some hundred records, a small network, few positions: minutes on two cores"),
        CLI_OPT_TEXT("seeds", &a.seeds, "S,S", 0, "seeds of all randomness, noise included (default: 0)"),
        CLI_OPT_CHOICE_GIVEN("network", &a.network, parse_network, "auto, none, resnet18 or resnet8",
                             "network that learns from images; auto: resnet18, with --quick resnet8; none: heads alone",
                             &a.network_given),
        {CLI_POSITIVE, "rounds", &a.rounds, "N", "rounds of federated methods (default: 50 as in the paper, --quick 2)",
         0, NULL, NULL, &a.rounds_given},
        {CLI_POSITIVE, "per-class", &a.per_class, "N",
         "networks of releases learn from N images of a class that are drawn once, in place of new ones in each epoch, "
         "and "
         "without public images: what one can wait for without a card",
         0, NULL, NULL, NULL},
        CLI_ENCODINGS_ROW(a.encodings),
        CLI_OPT_TEXT("weights", &a.weights, "PATH", 0,
                     "published weights of codecs that do not come with the program (default: the cache)"),
        CLI_OPT_TEXT("fill", &a.fill, "FILE", 0,
                     "also put the tables into this Markdown file, between <!-- experiment:NAME --> marks"),
        CLI_OPT_TEXT(
            "keep", &a.keep, "FOLDER", 0,
            "with report: also keep the cells, a file NAME.jsonl for each experiment, of which report makes the "
            "same tables again"),
        CLI_DEVICE_ROW(a.device),
        CLI_TALK_ROWS(a.run),
        CLI_OPT_WHOLE("threads", &a.run.threads, "N", 0, "worker threads (default: all cores)"),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    if (code >= 0) return code;
    if (a.list) return cli_misuse(self, print_list(&a));
    if (a.keep && !(a.words.n && !strcmp(a.words.list[0], "report")))
        return cli_misuse(self, fkt_fail(FKT_E_ARG, "--keep goes with report"));
    if (a.words.n && !strcmp(a.words.list[0], "report")) return cli_misuse(self, report(&a));
    code = cli_on_ranks(self, run, &j);
    fkt_free(j.names_text);
    fkt_free(j.names);
    fkt_free(j.arms_text);
    fkt_free(j.arms);
    fkt_free(j.encodings);
    return code ? code : j.skipped ? CLI_INCOMPLETE : 0;
}
