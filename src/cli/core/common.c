/* SPDX-License-Identifier: Apache-2.0 */
/* common.c - functions that several verbs use: open data and codec, turn options into a task, print JSON. */
#include "cli/core/common.h"

#include "base/alloc.h"
#include "base/output.h"
#include "base/text.h"
#include "cli/core/hints.h"
#include "codec/codec.h"
#include "task/federation.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cli_begin(const struct cli_command *c, const struct cli_option *table, size_t n, int argc, char **argv)
{
    int help;
    fkt_status st = cli_parse(table, n, argc, argv, &help);
    if (st != FKT_OK) return cli_misuse(c, st);
    if (help) {
        cli_help(c, table, n);
        return 0;
    }
    return -1;
}

fkt_status cli_codec_spec(const struct cli_codec *c, struct fkt_codec_spec *out)
{
    if (c->size > 65535) return fkt_fail(FKT_E_ARG, "--size must be at most 65535");
    if (c->dim > 1 << 24) return fkt_fail(FKT_E_ARG, "--dim must be at most %d", 1 << 24);
    *out = (struct fkt_codec_spec){.name = c->name, .size = (uint32_t)c->size, .dim = (uint32_t)c->dim};
    cli_codec_settings(&c->settings, &out->settings);
    return FKT_OK;
}

void cli_codec_settings(const struct cli_weights *m, struct fkt_codec_settings *out)
{
    *out = (struct fkt_codec_settings){.weights = m->weights,
                                       .guide_weights = m->guide_weights,
                                       .dtype = (enum fkt_codec_dtype)m->dtype,
                                       .low_memory = m->low_memory,
                                       .device = cli_device_of(m->device)};
}

void cli_print_dtype(const struct cli_weights *m, const struct fkt_codec *c, const struct cli_run *r)
{
    if (!c) return;
    if (m->dtype == FKT_CODEC_DTYPE_AUTO && fkt_codec_dtype_measured(c) && !r->quiet)
        fprintf(stderr, "fedkt: --dtype auto: codec '%s' is measured to be faster in %s on this machine\n",
                fkt_codec_name(c), fkt_codec_dtype_name(fkt_codec_dtype_used(c)));
    if (fkt_codec_is_network(fkt_codec_name(c)))
        cli_print_device(m->device, fkt_codec_device_used(c), fkt_codec_dtype_name(fkt_codec_dtype_used(c)), r->quiet);
}

const char *cli_dtype_words(const struct cli_weights *m, const struct fkt_codec *c)
{
    int bf16 = fkt_codec_dtype_used(c) == FKT_CODEC_DTYPE_BF16;
    if (m->dtype == FKT_CODEC_DTYPE_AUTO)
        return bf16 ? "bf16 (chosen by --dtype auto)" : "f32 (chosen by --dtype auto)";
    return bf16 ? "bf16" : "f32";
}

void cli_calibrate_command(char *out, size_t cap, const struct cli_codec *c, const struct fkt_codec *codec)
{
    const char *weights = c->settings.weights;
    snprintf(out, cap, "fedkt codec calibrate %s%s%s --size %u --public SET --out FILE", fkt_codec_name(codec),
             weights ? " --weights " : "", weights ? weights : "", fkt_codec_size(codec));
}

fkt_status cli_reals(const char *option, const char *list, double *out, size_t cap, size_t *n)
{
    char word[64];
    *n = 0;
    for (const char *s = list;; s++) {
        size_t len = strcspn(s, ",");
        fkt_status st;
        if (*n == cap && cap == 1) return fkt_fail(FKT_E_ARG, "--%s: '%s' is not one number", option, list);
        if (*n == cap) return fkt_fail(FKT_E_ARG, "--%s: '%s' is more than %zu numbers", option, list, cap);
        if (len >= sizeof word) return fkt_fail(FKT_E_ARG, "--%s: '%.*s' is not a number", option, (int)len, s);
        memcpy(word, s, len);
        word[len] = '\0';
        st = fkt_fail_in(fkt_parse_double(&out[(*n)++], word), "--%s", option);
        if (st != FKT_OK) return st;
        s += len;
        if (*s == '\0') return FKT_OK;
    }
}

fkt_status cli_split(const char *list, char **text, const char ***names, size_t *n)
{
    fkt_status st;
    *n = 1;
    for (const char *s = list; *s; s++) *n += *s == ',';
    FKT_TRY(fkt_strdup(text, list));
    FKT_TRY(fkt_alloc(names, *n));
    *n = 0;
    for (char *s = *text; s;) {
        char *comma = strchr(s, ',');
        if (comma) *comma++ = '\0';
        s += strspn(s, " ");
        for (size_t len = strlen(s); len > 0 && s[len - 1] == ' '; len--) s[len - 1] = '\0';
        (*names)[(*n)++] = s;
        s = comma;
    }
out:
    return st;
}

/* An option for a part that the task does not have would be ignored in silence. */
static fkt_status check_part_options(const struct fkt_task *t, const struct fkt_part_files *files,
                                     const struct cli_weights *w)
{
    const int codec = fkt_task_part_of(t, FKT_PART_CODEC) != NULL, guide = fkt_task_part_of(t, FKT_PART_GUIDE) != NULL;
    const char *option = !codec && files && files->calibration         ? "--calibration"
                         : !codec && w && w->weights                   ? "--weights"
                         : !guide && files && files->guide_calibration ? "--guide-calibration"
                         : !guide && w && w->guide_weights             ? "--guide-weights"
                                                                       : NULL;
    if (!option) return FKT_OK;
    return codec ? fkt_fail(FKT_E_ARG, "%s: task '%s' has no guide", option, t->name)
                 : fkt_fail_hint(FKT_E_ARG, "for its guide give --guide-calibration or --guide-weights",
                                 "%s: task '%s' has a guide and no codec", option, t->name);
}

fkt_status cli_open_pipeline(struct fkt_pipeline **pipeline, const char *task_path, const struct fkt_part_files *files,
                             const struct cli_weights *settings)
{
    struct fkt_codec_settings m;
    struct fkt_task task = {0};
    fkt_status st = fkt_task_load_into(&task, task_path);
    if (st != FKT_OK) return st;
    if (settings) cli_codec_settings(settings, &m);
    st = check_part_options(&task, files, settings);
    if (st != FKT_OK) goto out;
    st = settings ? fkt_pipeline_open(pipeline, &task, files, &m) : fkt_pipeline_open_latents(pipeline, &task, files);
out:
    fkt_task_clear(&task);
    return st;
}

const char *cli_adjacencies(void)
{
    static char words[96];
    size_t n = 0;
    words[0] = '\0';
    for (int i = 0; fkt_adjacency_info(i) && n < sizeof words; i++)
        n += (size_t)snprintf(words + n, sizeof words - n, "%s%s",
                              !i                          ? ""
                              : fkt_adjacency_info(i + 1) ? ", "
                                                          : " or ",
                              fkt_adjacency_info(i)->name);
    return words;
}

fkt_status cli_privacy_spec(const struct cli_privacy *p, double epsilon, struct fkt_privacy_spec *out)
{
    double split[3];
    size_t n;
    *out = (struct fkt_privacy_spec){.epsilon = epsilon,
                                     .delta = p->delta,
                                     .adjacency = (enum fkt_adjacency)p->adjacency,
                                     .mechanism = (enum fkt_mechanism)p->mechanism,
                                     .split_count = FKT_BUDGET_SPLIT_COUNT,
                                     .parts = 1,
                                     .part = {{1, FKT_BUDGET_SPLIT_SUM, FKT_BUDGET_SPLIT_MOMENT}}};
    if (!p->split) return FKT_OK;
    if (cli_reals("budget-split", p->split, split, 3, &n) != FKT_OK || n != 3)
        return fkt_fail(FKT_E_ARG, "--budget-split: '%s' is not three numbers like " CLI_BUDGET_SPLIT, p->split);
    if (!(split[1] > 0 && split[2] > 0)) return fkt_fail(FKT_E_ARG, "--budget-split: sum and moment must be above 0");
    out->split_count = split[0];
    out->part[0].split_sum = split[1];
    out->part[0].split_moment = split[2];
    return FKT_OK;
}

#define ACCEPT "give --accept-weak-promise to go on; then nothing made of it is called private"

static fkt_status too_weak(const char *what, const char *why)
{
    return fkt_fail_hint(FKT_E_ARG, "lower it; or " ACCEPT, "the %s is too weak to be called private: %s", what, why);
}

fkt_status cli_accept_promise(const char *what, double epsilon, double delta, int accepted)
{
    char why[FKT_PROMISE_WORDS];
    if (fkt_privacy_promise(epsilon, delta, 0, why) == FKT_PROMISE_SOUND || accepted) return FKT_OK;
    return too_weak(what, why);
}

fkt_status cli_accept_task(const struct fkt_task *t, int accepted)
{
    char why[FKT_PROMISE_WORDS];
    if (fkt_task_promise(t, why) == FKT_PROMISE_SOUND || accepted) return FKT_OK;
    return fkt_fail_hint(FKT_E_MISMATCH, "ask its author for a stricter task; or " ACCEPT,
                         "the promise of task '%s' is weak: %s", t->name, why);
}

int cli_task_is_private(const struct fkt_task *t)
{
    return !t->service.seeded && fkt_task_promise(t, NULL) == FKT_PROMISE_SOUND;
}

static void print_weak(enum fkt_promise p, const char *why)
{
    if (p == FKT_PROMISE_WEAK) printf("WEAK PROMISE: %s; nothing made of it is called private\n", why);
}

static void mark_weak(json_t *j, enum fkt_promise p)
{
    if (j && p == FKT_PROMISE_WEAK) json_object_set_new(j, "promise", json_string("weak"));
}

void cli_print_weak(const struct fkt_task *t)
{
    char why[FKT_PROMISE_WORDS];
    print_weak(fkt_task_promise(t, why), why);
}

void cli_print_weak_release(const struct fkt_release *r)
{
    char why[FKT_PROMISE_WORDS];
    print_weak(fkt_release_promise(r, why), why);
}

void cli_mark_weak(json_t *j, const struct fkt_task *t) { mark_weak(j, fkt_task_promise(t, NULL)); }

void cli_mark_weak_release(json_t *j, const struct fkt_release *r) { mark_weak(j, fkt_release_promise(r, NULL)); }

fkt_status cli_check_promise(const struct fkt_task *t, int accept_weak)
{
    char why[FKT_PROMISE_WORDS];
    if (accept_weak || fkt_task_promise(t, why) == FKT_PROMISE_SOUND) return FKT_OK;
    return too_weak("promise", why);
}

fkt_status cli_share_of(const char *option, const char *text, uint32_t sites, uint32_t *out)
{
    double x;
    fkt_status st = fkt_fail_in(fkt_parse_double(&x, text), "--%s", option);
    if (st != FKT_OK) return st;
    if (!(x >= 0 && x <= sites) || (x >= 1 && x != floor(x)))
        return fkt_fail(FKT_E_ARG, "--%s: '%s' is neither a fraction below 1 nor a number of the %u sites", option,
                        text, sites);
    *out = (uint32_t)(x < 1 ? ceil(x * sites - 1e-9)
                            : x); /* 0.1 of 20 must be 2, although the double 0.1 is slightly above one tenth */
    return FKT_OK;
}

fkt_status cli_dropped_of(const char *text, uint32_t sites, uint32_t corrupt, uint32_t *out)
{
    if (text) return cli_share_of("dropped", text, sites, out);
    *out = fkt_federation_usual_dropped(sites, corrupt);
    return FKT_OK;
}

void cli_print_no_loss(uint32_t dropped, const struct cli_run *r)
{
    if (!dropped && !r->quiet)
        fprintf(stderr, "fedkt: no site may be lost (--dropped 0): one missing site ends the round\n");
}

fkt_status cli_class_names(const struct fkt_dataset *ds, const char ***names)
{
    size_t K = fkt_dataset_classes(ds);
    fkt_status st = fkt_alloc(names, K);
    for (size_t k = 0; st == FKT_OK && k < K; k++) (*names)[k] = fkt_dataset_class(ds, k);
    return st;
}

fkt_status cli_not_an_input(const char *out, const char *in) { return cli_output_not_an_input("--out", out, in); }

fkt_status cli_output_not_an_input(const char *option, const char *out, const char *in)
{
    if (fkt_output_replaces(out, in))
        return fkt_fail(FKT_E_ARG, "%s: writing '%s' would overwrite the input '%s'", option, out, in);
    return FKT_OK;
}

json_t *cli_path_json(const char *path)
{
    char shown[PATH_MAX];
    if (!path) return json_null();
    fkt_text_cut(shown, sizeof shown, path);
    return json_string(shown);
}

fkt_status cli_print_json(json_t *j)
{
    char *text = j ? json_dumps(j, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(j);
    if (!text) return fkt_fail(FKT_E_NOMEM, "out of memory while writing JSON, or a name in it is not UTF-8");
    puts(text);
    free(text);
    return cli_flush();
}

fkt_status cli_flush(void)
{
    int failed = ferror(stdout);
    if (fflush(stdout) == 0 && !failed) return FKT_OK;
    return fkt_fail_hint(FKT_E_IO, "check where the output goes: the disk may be full, or the reader may have ended",
                         "cannot write to standard output");
}

void cli_print_skipped(const struct fkt_skipped *s)
{
    if (!s->count) return;
    fprintf(stderr, "fedkt: left out %zu image%s that could not be read:\n", s->count, s->count == 1 ? "" : "s");
    for (const char *line = s->names; line && *line;) {
        const char *end = strchr(line, '\n');
        char one[1024];
        snprintf(one, sizeof one, "%.*s", end ? (int)(end - line) : (int)strlen(line), line);
        cli_say(one);
        line = end ? end + 1 : NULL;
    }
}

void cli_print_copies(const struct fkt_records *r, enum fkt_adjacency adjacency)
{
    const size_t n = fkt_records_copies(r);
    if (!n) return;
    fprintf(stderr, "fedkt: %zu record%s the pixels and the label of another one: %s\n", n, n == 1 ? " has" : "s have",
            fkt_adjacency_counts_public(adjacency)
                ? "each counts as a record of its own, since counts are published exactly"
                : "such copies count once");
}

static int has_account(const char *ledger, const char *dataset)
{
    struct fkt_ledger_contents contents;
    int yes = 0;
    if (fkt_ledger_file_read(&contents, ledger, dataset) != FKT_OK) return 0;
    yes = contents.n > 0;
    fkt_ledger_contents_clear(&contents);
    return yes;
}

fkt_status cli_hint_charge(fkt_status st, const struct fkt_ledger_charge *charge, const struct fkt_ledger_spent *spent,
                           const char *ledger)
{
    struct fkt_failure why;
    char name[FKT_LEDGER_NAME], hint[CLI_HINT_MAX], said[CLI_HINT_MAX];
    int taken; /* charged by other images, or by these before they were changed */
    if (st != FKT_E_BUDGET) return st;
    if (spent->mu2 > 0) st = fkt_hint(st, "release less of it; or " ACCEPT);
    fkt_failure_save(&why, st);
    if (fkt_ledger_file_owner(ledger, charge->records, charge->n_records, name) != FKT_OK)
        return fkt_failure_restore(&why);
    taken = !*name && charge->n_records && has_account(ledger, charge->dataset);
    st = fkt_failure_restore(&why);
    if (taken) {
        cli_hint(said, sizeof said);
        snprintf(hint, sizeof hint, "%.400s; if these are images of others, name their dataset: --dataset NAME", said);
        return fkt_fail_hint(st, hint, "%s", why.text);
    }
    if (!*name || !strcmp(name, charge->dataset)) return st;
    snprintf(hint, sizeof hint, "an image belongs to one account: charge these images to it with --dataset '%s'", name);
    return fkt_hint(st, hint);
}

fkt_status cli_threads(uint64_t asked, unsigned *out)
{
    if (asked > 256) return fkt_fail(FKT_E_ARG, "--threads must be at most 256");
    *out = (unsigned)asked;
    return FKT_OK;
}
