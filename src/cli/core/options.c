/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - a small table-driven option parser. Long names only, "--name value" or "--name=value", no
 * abbreviations: a new option must not change the meaning of a script. getopt_long would give the loop but neither
 * the checks nor the help. */
#include "cli/core/options.h"

#include "base/text.h"
#include "cli/core/hints.h"
#include "cli/core/log.h"
#include "cli/core/progress.h"
#include "cli/core/suggest.h"

#include <stdio.h>
#include <string.h>

static const struct cli_option *find(const struct cli_option *table, size_t n, const char *name, size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (table[i].kind != CLI_HEADING && table[i].kind != CLI_WORDS && strlen(table[i].name) == len &&
            !memcmp(table[i].name, name, len))
            return &table[i];
    return NULL;
}

static fkt_status assign(const struct cli_option *o, const char *value)
{
    fkt_status st = FKT_OK;
    int choice;
    switch (o->kind) {
    case CLI_HEADING:
    case CLI_WORDS: break;
    case CLI_FLAG: *(int *)o->value = 1; break;
    case CLI_TEXT:
    case CLI_MAYBE: *(const char **)o->value = value; break;
    case CLI_REAL: st = fkt_fail_in(fkt_parse_double(o->value, value), "--%s", o->name); break;
    case CLI_WHOLE: st = fkt_fail_in(fkt_parse_u64(o->value, value, UINT64_MAX), "--%s", o->name); break;
    case CLI_POSITIVE:
        st = fkt_fail_in(fkt_parse_u64(o->value, value, UINT64_MAX), "--%s", o->name);
        if (st == FKT_OK && *(uint64_t *)o->value == 0) st = fkt_fail(FKT_E_ARG, "--%s must be at least 1", o->name);
        break;
    case CLI_CHOICE:
        choice = o->choice(value);
        if (choice < 0) return fkt_fail(FKT_E_ARG, "--%s: '%s' is not one of %s", o->name, value, o->choices);
        *(int *)o->value = choice;
        break;
    }
    if (st == FKT_OK && o->given) *o->given = 1;
    return st;
}

static const struct cli_option *words_of(const struct cli_option *table, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (table[i].kind == CLI_WORDS) return &table[i];
    return NULL;
}

/* Words without dashes have been moved to the front of argv. */
static fkt_status take_words(const struct cli_option *o, char **argv, size_t n)
{
    if (!o && n) return fkt_fail(FKT_E_ARG, "unexpected word '%s'", argv[0]);
    if (o && o->required && !n) return fkt_fail(FKT_E_ARG, "no %s is given", o->name);
    if (o) *(struct cli_words *)o->value = (struct cli_words){argv, n};
    return FKT_OK;
}

static fkt_status unknown(const struct cli_option *table, size_t n, const char *arg)
{
    struct cli_suggest s;
    char hint[96];
    const char *typed = arg + strspn(arg, "-");
    cli_suggest_begin(&s, typed, strcspn(typed, "="));
    for (size_t i = 0; i < n; i++)
        if (table[i].kind != CLI_HEADING && table[i].kind != CLI_WORDS)
            cli_suggest_try(&s, table[i].name, strlen(table[i].name));
    snprintf(hint, sizeof hint, "did you mean '--%s'?", s.best ? s.best : "");
    return s.best ? fkt_fail_hint(FKT_E_ARG, hint, "unknown option '%s'", arg)
                  : fkt_fail(FKT_E_ARG, "unknown option '%s'", arg);
}

fkt_status cli_parse(const struct cli_option *table, size_t n, int argc, char **argv, int *help)
{
    const struct cli_option *seen[256] = {0};
    size_t n_seen = 0, n_words = 0;
    fkt_status st;
    *help = 0;
    for (int i = 0; i < argc; i++) {
        const char *eq, *value = NULL;
        char *arg = argv[i];
        const struct cli_option *o;
        if (arg[0] != '-' || arg[1] == '\0') {
            argv[n_words++] = arg;
            continue;
        }
        if (!strcmp(arg, "--help") || !strcmp(arg, "-h")) {
            *help = 1;
            return FKT_OK;
        }
        if (arg[1] != '-') return unknown(table, n, arg);
        eq = strchr(arg, '=');
        o = find(table, n, arg + 2, eq ? (size_t)(eq - arg - 2) : strlen(arg + 2));
        if (!o) return unknown(table, n, arg);
        if (o->kind == CLI_FLAG && eq) return fkt_fail(FKT_E_ARG, "--%s takes no value", o->name);
        if (o->kind == CLI_MAYBE) {
            value = eq ? eq + 1 : i + 1 < argc && argv[i + 1][0] != '-' ? argv[++i] : "";
        } else if (o->kind != CLI_FLAG) {
            value = eq ? eq + 1 : i + 1 < argc ? argv[++i] : NULL;
            if (!value) return fkt_fail(FKT_E_ARG, "--%s needs a value", o->name);
        }
        for (size_t s = 0; s < n_seen; s++)
            if (seen[s] == o) return fkt_fail(FKT_E_ARG, "--%s is given twice", o->name);
        if (n_seen < sizeof seen / sizeof *seen) seen[n_seen++] = o;
        st = assign(o, value);
        if (st != FKT_OK) return st;
    }
    st = take_words(words_of(table, n), argv, n_words);
    if (st != FKT_OK) return st;
    for (size_t i = 0; i < n; i++) {
        int found = !table[i].required || table[i].kind == CLI_WORDS;
        for (size_t s = 0; s < n_seen && !found; s++) found = seen[s] == &table[i];
        if (!found) return fkt_fail(FKT_E_ARG, "--%s is required", table[i].name);
    }
    return FKT_OK;
}

/* Names in a message may come from a hostile file: control characters, which could control a terminal, forge a line
 * or reverse its direction, are shown as '?'. */
static void put(FILE *to, const char *text, size_t n)
{
    for (const char *end = text + n; text < end;) {
        size_t control = fkt_control_length(text);
        fputc(control ? '?' : *text, to);
        text += control ? control : 1;
    }
}

void cli_say(const char *text)
{
    put(stderr, text, strlen(text));
    fputc('\n', stderr);
}

void cli_show(const char *text, size_t n) { put(stdout, text, n); }

static int report(fkt_status st, const char *hint)
{
    const int stopped = st == FKT_E_STOPPED ? cli_stopped_by() : 0;
    if (st == FKT_OK) return 0;
    if (cli_log_jsonl()) {
        char text[2048], more[1024];
        fkt_text_cut(text, sizeof text, fkt_error_text());
        fkt_text_cut(more, sizeof more, hint);
        cli_event("error", json_pack("{s:s s:s*}", "text", text, "hint", more[0] ? more : NULL));
    } else {
        fputs("fedkt: ", stderr);
        cli_say(fkt_error_text());
        if (hint[0]) {
            fputs("hint: ", stderr);
            cli_say(hint);
        }
    }
    return stopped ? 128 + stopped : st == FKT_E_ARG ? 2 : 1;
}

int cli_fail(fkt_status st)
{
    char hint[CLI_HINT_MAX];
    cli_hint(hint, sizeof hint);
    return report(st, hint);
}

int cli_misuse(const struct cli_command *c, fkt_status st)
{
    char hint[CLI_HINT_MAX];
    cli_hint(hint, sizeof hint);
    if (st == FKT_E_ARG && !hint[0]) snprintf(hint, sizeof hint, "see 'fedkt %s --help'", c->name);
    return report(st, hint);
}
