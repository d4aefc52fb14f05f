/* SPDX-License-Identifier: Apache-2.0 */
/* help.c - --help of a verb, the overview of all verbs, and `fedkt help`. Everything is read from the option tables,
 * which are local variables of the verbs' functions: a verb is run with --help and passes its table to this file,
 * which prints it or passes it on to the generators of man pages and completions (help_man.c, help_shell.c). */
#include "cli/core/help.h"

#include "cli/core/common.h"
#include "cli/core/suggest.h"

#include <string.h>

static const struct cli_help_sink *current; /* NULL: text for people on standard output */

/* Help text folded at 100 columns with a hanging indent of 28. */
static void fold(const char *s)
{
    size_t col = 0, width = 72;
    while (*s) {
        size_t word = strcspn(s, " ");
        if (col && col + 1 + word > width) {
            printf("\n%28s", "");
            col = 0;
        }
        printf("%s%.*s", col ? " " : "", (int)word, s);
        col += word + (col ? 1 : 0);
        s += word;
        while (*s == ' ') s++;
    }
    putchar('\n');
}

void cli_help(const struct cli_command *c, const struct cli_option *table, size_t n)
{
    if (current) {
        current->verb(current->self, c, table, n);
        return;
    }
    printf("fedkt %s - %s\n\nusage: fedkt %s %s\n\n%s\n", c->name, c->summary, c->name, c->usage, c->teaches);
    for (size_t i = 0; i < n; i++) {
        const struct cli_option *o = &table[i];
        char left[64], right[CLI_HELP_LONGEST];
        if (o->kind == CLI_HEADING) {
            printf("\n%s\n", o->name);
            continue;
        }
        if (o->kind == CLI_WORDS) snprintf(left, sizeof left, "%s ...", o->name);
        else
            snprintf(left, sizeof left, "--%s%s%s", o->name, o->kind == CLI_FLAG ? "" : " ",
                     o->kind == CLI_FLAG ? "" : cli_metavar(o));
        printf("  %-24s%s", left, strlen(left) >= 24 ? "\n                            " : "  ");
        cli_option_help(right, sizeof right, o);
        fold(right);
    }
    printf("  %-24s  this text\n", "-h, --help");
}

const char *cli_metavar(const struct cli_option *o) { return o->kind == CLI_CHOICE ? "WORD" : o->metavar; }

size_t cli_choice_length(const char *choices)
{
    const char *end = strstr(choices, " or ");
    const size_t n = strcspn(choices, ",");
    return end && (size_t)(end - choices) < n ? (size_t)(end - choices) : n;
}

void cli_option_help(char *out, size_t cap, const struct cli_option *o)
{
    if (o->kind == CLI_CHOICE)
        snprintf(out, cap, "%s: %s (default: %.*s)", o->help, o->choices, (int)cli_choice_length(o->choices),
                 o->choices);
    else snprintf(out, cap, "%s", o->help);
}

void cli_help_words(const struct cli_command *c, const struct cli_command *words, size_t n)
{
    if (current) {
        current->words(current->self, c, words, n);
        cli_help_visit(words, n, current);
        return;
    }
    printf("fedkt %s - %s\n\nusage: fedkt %s %s\n\n%s\n\n", c->name, c->summary, c->name, c->usage, c->teaches);
    for (size_t i = 0; i < n; i++) printf("  %-14s %s\n", words[i].name, words[i].summary);
    printf("\n'fedkt %s WORD --help' explains a word.\n", c->name);
}

void cli_help_visit(const struct cli_command *commands, size_t n, const struct cli_help_sink *sink)
{
    const struct cli_help_sink *before = current;
    current = sink;
    for (size_t i = 0; i < n; i++) {
        char ask[] = "--help";
        char *argv[] = {ask, NULL};
        (void)commands[i].run(&commands[i], 1, argv);
    }
    current = before;
}

void cli_overview(FILE *to, const struct cli_command *commands, size_t n)
{
    fprintf(to,
            "fedkt %s - one synthetic, differentially private image dataset from many sites\n\nusage: fedkt VERB "
            "[options]\n\n",
            fkt_version());
    for (size_t i = 0; i < n; i++) fprintf(to, "  %-11s %s\n", commands[i].name, commands[i].summary);
    fprintf(
        to,
        "\nA codec makes a short vector of an image, and an image of a vector; a guide makes features of what an image "
        "shows.\nMoments are count, sum and second moment of a class's vectors; a release is the moments with noise: "
        "images and\nheads (closed-form classifiers) are made from it alone.\n"
        "\n'fedkt help VERB' explains a verb; 'fedkt --version' prints the version. Results go to stdout, all else to "
        "stderr;\n--json prints results as JSON. Exit codes: 0 ok, 1 failed, 2 misuse, 3 the task is over (serve, "
        "join),\n130 stopped by Ctrl-C, 143 by SIGTERM. Start with 'fedkt demo'.\n");
}

/* ---- unknown names ---- */

const char *cli_usage_word(const char **at, size_t *len)
{
    const char *word = *at + strspn(*at, "[ ");
    *len = strspn(word, "abcdefghijklmnopqrstuvwxyz");
    if (!*len || (word[*len] && !strchr(" ]", word[*len]))) return NULL;
    *at = word + *len + strcspn(word + *len, "|");
    if (**at) ++*at;
    return word;
}

static fkt_status unknown(const struct cli_suggest *s, const char *hint, const char *what, const char *after)
{
    char meant[96];
    snprintf(meant, sizeof meant, "did you mean '%.*s'?", (int)s->best_len, s->best ? s->best : "");
    return fkt_fail_hint(FKT_E_ARG, s->best ? meant : hint, "unknown %s '%s'%s%s", what, s->typed,
                         *after ? " after " : "", after);
}

fkt_status cli_unknown_word(const struct cli_command *c, const char *word)
{
    struct cli_suggest s;
    char hint[64];
    const char *at = c->usage, *known;
    size_t len;
    cli_suggest_begin(&s, word, strlen(word));
    while ((known = cli_usage_word(&at, &len))) cli_suggest_try(&s, known, len);
    snprintf(hint, sizeof hint, "see 'fedkt %s --help'", c->name);
    return unknown(&s, hint, "word", c->name);
}

fkt_status cli_unknown_verb(const struct cli_command *commands, size_t n, const char *verb)
{
    struct cli_suggest s;
    cli_suggest_begin(&s, verb, strlen(verb));
    for (size_t i = 0; i < n; i++) cli_suggest_try(&s, commands[i].name, strlen(commands[i].name));
    return unknown(&s, "see 'fedkt --help'", "verb", "");
}

/* ---- fedkt help ---- */

static int has_word(const struct cli_command *c, const char *word)
{
    const char *at = c->usage, *known;
    size_t len;
    while ((known = cli_usage_word(&at, &len)))
        if (strlen(word) == len && !memcmp(word, known, len)) return 1;
    return 0;
}

static int help_of(const struct cli_command *commands, size_t n, const struct cli_command *self, int argc, char **argv)
{
    char ask[] = "--help";
    char *words[] = {argc > 1 ? argv[1] : ask, argc > 1 ? ask : NULL, NULL};
    if (argc > 2) return cli_misuse(self, fkt_fail(FKT_E_ARG, "unexpected word '%s'", argv[2]));
    for (size_t i = 0; i < n; i++) {
        if (strcmp(argv[0], commands[i].name) != 0) continue;
        if (argc > 1 && !has_word(&commands[i], argv[1]))
            return cli_misuse(&commands[i], cli_unknown_word(&commands[i], argv[1]));
        return commands[i].run(&commands[i], argc > 1 ? 2 : 1, words);
    }
    return cli_fail(cli_unknown_verb(commands, n, argv[0]));
}

int cli_help_verb(const struct cli_command *commands, size_t n, const struct cli_command *self, int argc, char **argv)
{
    const char *folder = NULL, *shell = NULL;
    const struct cli_option table[] = {
        CLI_OPT_TEXT("man", &folder, "DIR", 0, "write the man pages fedkt(1) and fedkt-VERB(1) into DIR"),
        CLI_OPT_TEXT("completion", &shell, "SHELL", 0, "print completions for bash or zsh"),
    };
    int code;
    if (argc > 0 && argv[0][0] != '-') return help_of(commands, n, self, argc, argv);
    code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    if (code >= 0) return code;
    if (folder) code = cli_misuse(self, cli_man_pages(commands, n, folder));
    if (shell && code <= 0) code = cli_misuse(self, cli_completion(commands, n, shell));
    if (!folder && !shell) cli_overview(stdout, commands, n);
    return code < 0 ? 0 : code;
}
