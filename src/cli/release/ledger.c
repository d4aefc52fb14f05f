/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.c - `fedkt ledger`: what each dataset has spent, explained to the person responsible for it.
 *
 * Per account: the total budget, what was spent, what is reserved for unfinished rounds, their composition and what
 * is left, then every entry with its date. Totals are stated at one delta: that of the total budget, else that of
 * the tasks. An entry is stated at its own task's delta, so that it is the number in the task. Totals are computed
 * from sums of mu^2 (docs/privacy.md, Composition), so epsilons do not add up; the text says so. */
#include "cli/core/common.h"
#include "cli/core/help.h"
#include "base/xdg.h"
#include "cli/core/verbs.h"

#include "base/alloc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DELTA 1e-5 /* for stating an epsilon when no delta is known */

struct asked {
    struct cli_data data;
    struct cli_run run;
    const char *ledger, *dataset;
    int delta_given;
    double delta; /* 0: the tasks' own */
};

/* A part of an account. */
struct part {
    size_t n;
    double mu2, epsilon;
};

struct sums {
    struct part spent, reserved, together, left;
    double delta;
};

static double epsilon_of(const struct fkt_ledger_account *a, double delta, double mu2)
{
    const struct fkt_ledger_spent s = {mu2, a->total.accounting};
    return mu2 > 0 ? fkt_ledger_epsilon(delta, &s) : 0;
}

/* The total budget's, else the given one, else the smallest of the tasks. */
static double delta_of(const struct fkt_ledger_account *a, double asked)
{
    double least = 0;
    if (a->budget_delta > 0) return a->budget_delta;
    if (asked > 0) return asked;
    for (size_t i = 0; i < a->n; i++)
        if (a->entries[i].delta > 0 && !(least > 0 && least <= a->entries[i].delta)) least = a->entries[i].delta;
    return least > 0 ? least : DELTA;
}

/* For an entry: its task's, unless another one was given. */
static double entry_delta(const struct fkt_ledger_entry *e, const struct sums *s, double asked)
{
    return e->delta > 0 && !(asked > 0) ? e->delta : s->delta;
}

static struct sums sums_of(const struct fkt_ledger_account *a, double delta)
{
    struct sums s = {.delta = delta_of(a, delta)};
    for (size_t i = 0; i < a->n; i++) {
        struct part *p = a->entries[i].reserved ? &s.reserved : &s.spent;
        p->mu2 += a->entries[i].mu2;
        p->n++;
    }
    s.together = (struct part){a->n, a->total.mu2, 0};
    s.left.mu2 = a->limit_mu2 - a->total.mu2;
    if (!(s.left.mu2 > 1e-9 * a->limit_mu2)) s.left.mu2 = 0; /* a spent budget can leave a rounding error */
    struct part *parts[] = {&s.spent, &s.reserved, &s.together, &s.left};
    for (size_t i = 0; i < CLI_COUNT(parts); i++) parts[i]->epsilon = epsilon_of(a, s.delta, parts[i]->mu2);
    return s;
}

/* "2025-06-01T14:03:00Z", or with a blank and without the letters in text output; "" when it is not known. */
static const char *date(char out[32], int64_t when, int people)
{
    const time_t t = (time_t)when;
    struct tm tm;
    *out = '\0';
    if (when > 0 && gmtime_r(&t, &tm)) (void)strftime(out, 32, people ? "%Y-%m-%d %H:%M" : "%Y-%m-%dT%H:%M:%SZ", &tm);
    return out;
}

/* ---- JSON ---- */

static json_t *part_json(const char *counted, const struct part *p)
{
    json_t *j = json_pack("{s:f s:f}", "epsilon", p->epsilon, "mu2", p->mu2);
    if (j && counted) json_object_set_new(j, counted, json_integer((json_int_t)p->n));
    return j;
}

static json_t *real_or_null(double x) { return x > 0 ? json_real(x) : json_null(); }

static json_t *text_or_null(const char *s) { return *s ? json_string(s) : json_null(); }

static json_t *account_json(const struct fkt_ledger_account *a, double delta)
{
    const struct sums s = sums_of(a, delta);
    json_t *entries = json_array();
    for (size_t i = 0; i < a->n; i++) {
        const struct fkt_ledger_entry *e = &a->entries[i];
        const struct fkt_ledger_spent alone = {e->mu2, e->accounting};
        const double at = entry_delta(e, &s, delta);
        char when[32];
        json_array_append_new(entries,
                              json_pack("{s:s s:o s:s s:f s:f s:f s:s s:s s:o s:o}", "task_sha256", e->task_sha256,
                                        "task", text_or_null(e->task_name), "state", e->reserved ? "reserved" : "spent",
                                        "epsilon", fkt_ledger_epsilon(at, &alone), "delta", at, "mu2", e->mu2,
                                        "accounting", e->accounting == FKT_ACCOUNTING_ZCDP ? "zcdp" : "gdp", "entropy",
                                        e->insecure_seed ? "INSECURE SEED" : "operating system", "session",
                                        text_or_null(e->session), "time", text_or_null(date(when, e->when, 0))));
    }
    if (json_array_size(entries) != a->n) { /* out of memory: an incomplete account must not be printed */
        json_decref(entries);
        return NULL;
    }
    return json_pack("{s:s s:I s:s s:s s:s s:f s:{s:o s:o s:f} s:o s:o s:o s:o s:o}", "dataset", a->dataset, "images",
                     (json_int_t)a->records, "adjacency", fkt_adjacency_name(a->adjacency), "protects",
                     fkt_adjacency_protects(a->adjacency), "accounting",
                     a->total.accounting == FKT_ACCOUNTING_ZCDP ? "zcdp" : "gdp", "delta", s.delta, "budget", "epsilon",
                     real_or_null(a->budget_epsilon), "delta", real_or_null(a->budget_delta), "mu2", a->limit_mu2,
                     "spent", part_json("releases", &s.spent), "reserved", part_json("rounds", &s.reserved), "together",
                     part_json(NULL, &s.together), "left", part_json(NULL, &s.left), "entries", entries);
}

static json_t *contents_json(const struct fkt_ledger_contents *b, const char *path, double delta)
{
    json_t *accounts = json_array();
    for (size_t i = 0; i < b->n; i++) json_array_append_new(accounts, account_json(&b->accounts[i], delta));
    if (json_array_size(accounts) != b->n) {
        json_decref(accounts);
        return NULL;
    }
    return json_pack("{s:s s:o}", "ledger", path, "accounts", accounts);
}

/* ---- text ---- */

static void print_total(const struct fkt_ledger_account *a, const struct sums *s)
{
    if (a->budget_epsilon > 0)
        printf("  allowed     epsilon %.4g at delta %.3g in all\n", a->budget_epsilon, a->budget_delta);
    else
        printf("  allowed     its first release only, epsilon %.4g at delta %.3g: no total budget was set\n",
               epsilon_of(a, s->delta, a->limit_mu2), s->delta);
    printf("  spent       epsilon %.4g at delta %.3g in %zu release%s\n", s->spent.epsilon, s->delta, s->spent.n,
           s->spent.n == 1 ? "" : "s");
    if (s->reserved.n)
        printf("  reserved    epsilon %.4g for %zu unfinished round%s; it counts as spent\n", s->reserved.epsilon,
               s->reserved.n, s->reserved.n == 1 ? "" : "s");
    printf("  together    epsilon %.4g\n", s->together.epsilon);
    /* rounding to three digits adds at most half a percent */
    if (s->left.mu2 > 0) printf("  left        a further release of up to epsilon %.3g\n", s->left.epsilon * 0.995);
    else printf("  left        nothing: a further release would be refused\n");
}

static void print_account(const struct fkt_ledger_account *a, double delta)
{
    const struct sums s = sums_of(a, delta);
    fputs("\ndataset ", stdout);
    cli_show(a->dataset, strlen(a->dataset));
    printf("\n  images      %llu were in its releases\n", (unsigned long long)a->records);
    printf("  protects    %s\n", fkt_adjacency_protects(a->adjacency));
    print_total(a, &s);
    printf("  %-18s%-12s%-10s%-10s%s\n", "date (UTC)", "state", "epsilon", "at delta", "task");
    for (size_t i = 0; i < a->n; i++) {
        const struct fkt_ledger_entry *e = &a->entries[i];
        const struct fkt_ledger_spent alone = {e->mu2, e->accounting};
        char when[32];
        const double at = entry_delta(e, &s, delta);
        printf("  %-18s%-12s%-10.4g%-10.3g%.16s...  ", *date(when, e->when, 1) ? when : "not known",
               e->reserved ? "set aside" : "spent", fkt_ledger_epsilon(at, &alone), at, e->task_sha256);
        cli_show(e->task_name, strlen(e->task_name));
        puts(e->insecure_seed ? "  NOT PRIVATE: its noise came from a known seed" : "");
    }
}

static void print(const struct fkt_ledger_contents *b, const char *path, const struct asked *a, int there)
{
    if (!there) {
        printf("there is no ledger at %s: nothing was spent yet, or it is elsewhere (--ledger)\n", path);
        return;
    }
    printf("ledger %s\n", path);
    if (b->n == 0) {
        printf("%s\n", a->dataset     ? "nothing was spent under this name yet"
                       : a->data.path ? "none of these images is in the ledger: nothing was spent on them"
                                      : "nothing was spent yet");
        return;
    }
    for (size_t i = 0; i < b->n; i++) print_account(&b->accounts[i], a->delta);
    printf("\nepsilon bounds what anyone can learn about one record from all that was released; smaller is safer.\n"
           "Epsilons do not add up: 'together' is the epsilon of all releases combined.\n");
}

/* ---- the verb ---- */

/* The dataset that some images belong to. */
static fkt_status find_dataset(const struct asked *a, const char *path, char out[FKT_LEDGER_NAME])
{
    struct fkt_dataset *ds = NULL;
    struct fkt_records *records = NULL;
    const struct fkt_record_digest *digests;
    struct fkt_skipped skipped = {0};
    struct cli_progress progress;
    struct fkt_pipeline_options o = {.progress = &progress.hook, .skipped = a->data.skip_bad ? &skipped : NULL};
    size_t n;
    fkt_status st;
    cli_progress_init(&progress, a->run.quiet);
    FKT_TRY(cli_threads(a->run.threads, &o.threads));
    FKT_TRY(cli_open_data(&ds, &a->data, NULL, &a->run));
    FKT_TRY(fkt_records_new(&records, FKT_ADJACENCY_ADD_REMOVE));
    FKT_TRY(fkt_records_read(records, ds, NULL, 0, &o));
    FKT_TRY(fkt_records_list(records, &digests, &n));
    FKT_TRY(fkt_ledger_file_owner(path, digests, n, out));
out:
    cli_progress_end(&progress);
    fkt_records_free(records);
    fkt_dataset_free(ds);
    return st;
}

static fkt_status show(const struct asked *a, const char *path)
{
    struct fkt_ledger_contents b = {0};
    char found[FKT_LEDGER_NAME] = "";
    const char *dataset = a->data.path ? found : a->dataset;
    int there;
    fkt_status st = FKT_OK;
    if (a->delta_given && !(a->delta > 0 && a->delta < 1))
        return fkt_fail(FKT_E_ARG, "--delta must be between 0 and 1");
    if (a->dataset && a->data.path) return fkt_fail(FKT_E_ARG, "give either --dataset or --data");
    there = access(path, F_OK) == 0 || errno != ENOENT;
    if (!there && a->ledger)
        st = fkt_fail_hint(FKT_E_IO, "'fedkt join' and 'fedkt release' create it when they first charge a dataset",
                           "there is no ledger at '%s'", path);
    FKT_TRY(st);
    if (a->data.path) FKT_TRY(find_dataset(a, path, found));
    if (there) FKT_TRY(fkt_ledger_file_read(&b, path, dataset));
    if (a->run.json) FKT_TRY(cli_print_json(contents_json(&b, path, a->delta)));
    else print(&b, path, a, there);
out:
    fkt_ledger_contents_clear(&b);
    return st;
}

static fkt_status run(const struct asked *a)
{
    char *path = NULL;
    fkt_status st;
    if (a->ledger) FKT_TRY(fkt_strdup(&path, a->ledger));
    else FKT_TRY(fkt_xdg_folder(FKT_XDG_DATA, "ledger.db", 0, &path));
    FKT_TRY(show(a, path));
out:
    fkt_free(path);
    return st;
}

int cli_ledger(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {0};
    const struct cli_option table[] = {
        CLI_OPT_TEXT("ledger", &a.ledger, "FILE", 0,
                     "the ledger (default: $XDG_DATA_HOME/fedkt/ledger.db, else ~/.local/share/fedkt/ledger.db)"),
        CLI_OPT_TEXT("dataset", &a.dataset, "NAME", 0, "show this dataset alone"),
        {CLI_REAL, "delta", &a.delta, "D",
         "delta at which epsilon is stated, for a dataset without a total budget (default: that of its tasks)", 0, NULL,
         NULL, &a.delta_given},
        CLI_DATA_ROWS(a.data, 0),
        CLI_TALK_ROWS(a.run),
        CLI_OPT_WHOLE("threads", &a.run.threads, "N", 0, "worker threads (default: all cores)"),
    };
    const int showing = argc > 0 && !strcmp(argv[0], "show");
    int code;
    if (argc > 0 && !showing && argv[0][0] != '-') return cli_misuse(self, cli_unknown_word(self, argv[0]));
    code = cli_begin(self, table, CLI_COUNT(table), argc - showing, argv + showing);
    return code >= 0 ? code : cli_misuse(self, run(&a));
}
