/* SPDX-License-Identifier: Apache-2.0 */
/* help_shell.c - completion for bash and zsh from the option tables: verbs, words, options, the words of a choice,
 * and file or folder names where an option takes one. The bash script needs no helper of the package
 * bash-completion. In both scripts a verb whose words have their own tables ("task new") is matched by both words. */
#include "cli/core/help.h"

#include "cli/core/common.h"

#include <string.h>

enum value { VALUE_NONE, VALUE_TEXT, VALUE_CHOICE, VALUE_FILE, VALUE_FOLDER };

static enum value value_of(const struct cli_option *o)
{
    static const char *const files[] = {"FILE", "PATH", "PEM", "KEY", "F,F,..."};
    if (o->kind == CLI_FLAG || o->kind == CLI_MAYBE) return VALUE_NONE; /* the next word may be an option */
    if (o->kind == CLI_CHOICE) return VALUE_CHOICE;
    if (o->kind != CLI_TEXT) return VALUE_TEXT;
    if (!strcmp(o->metavar, "DIR")) return VALUE_FOLDER;
    for (size_t i = 0; i < CLI_COUNT(files); i++)
        if (!strcmp(o->metavar, files[i])) return VALUE_FILE;
    return VALUE_TEXT;
}

/* "f32, bf16 or auto" -> "f32 bf16 auto"; text with a blank or a quote in it is a description, not a value. */
static void put_choices(const char *choices)
{
    const char *gap = "";
    size_t n;
    for (; (n = cli_choice_length(choices)); choices += n, choices += strspn(choices, ", ")) {
        if (!strncmp(choices, "or ", 3)) n = 3;
        else if (strcspn(choices, " '") >= n) {
            printf("%s%.*s", gap, (int)n, choices);
            gap = " ";
        }
    }
}

static int is_option(const struct cli_option *o) { return o->kind != CLI_HEADING && o->kind != CLI_WORDS; }

static int takes_words(const struct cli_option *table, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (table[i].kind == CLI_WORDS) return 1;
    return 0;
}

static void put_usage_words(const char *usage, const char *gap)
{
    const char *word;
    size_t len;
    for (; (word = cli_usage_word(&usage, &len)); gap = " ") printf("%s%.*s", gap, (int)len, word);
}

static void put_names(const struct cli_command *commands, size_t n)
{
    for (size_t i = 0; i < n; i++) printf("%s%s", i ? " " : "", commands[i].name);
}

/* Inside single quotes of a shell; with `escaped`, those bytes get a backslash. */
static void put_quoted(const char *s, const char *escaped)
{
    for (; *s; s++) {
        if (*s == '\'') fputs("'\\''", stdout);
        else printf("%s%c", strchr(escaped, *s) ? "\\" : "", *s);
    }
}

static const char *last_word(const char *name) { return strrchr(name, ' ') ? strrchr(name, ' ') + 1 : name; }

/* ---- bash ---- */

static void bash_verb(void *self, const struct cli_command *c, const struct cli_option *table, size_t n)
{
    (void)self;
    printf("    '%s')\n        options='", c->name);
    for (size_t i = 0; i < n; i++)
        if (is_option(&table[i])) printf("--%s ", table[i].name);
    printf("--help'\n        words='");
    if (!takes_words(table, n) && strcmp(c->name, "help") != 0) put_usage_words(c->usage, "");
    printf("'\n");
    if (takes_words(table, n)) printf("        others=files\n");
    printf("        case $prev in\n");
    for (size_t i = 0; i < n; i++) {
        const enum value v = is_option(&table[i]) ? value_of(&table[i]) : VALUE_NONE;
        if (v == VALUE_NONE) continue;
        printf("        --%s) values=", table[i].name);
        if (v == VALUE_CHOICE) {
            putchar('\'');
            put_choices(table[i].choices);
            printf("' ;;\n");
        } else {
            printf("%s ;;\n", v == VALUE_FILE ? "@files" : v == VALUE_FOLDER ? "@folders" : "@none");
        }
    }
    printf("        esac ;;\n");
}

static void bash_words(void *self, const struct cli_command *c, const struct cli_command *words, size_t n)
{
    (void)self;
    printf("    '%s') options=--help; words='", c->name);
    for (size_t i = 0; i < n; i++) printf("%s%s", i ? " " : "", last_word(words[i].name));
    printf("' ;;\n");
}

static const char bash_head[] =
    "_fedkt_names() { # KIND CURRENT\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    mapfile -t COMPREPLY < <(compgen \"$1\" -- \"$2\")\n"
    "}\n\n"
    "_fedkt() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} key=${COMP_WORDS[1]} at=2\n"
    "    local options='' words='' values='' others=''\n"
    "    [[ $cur == = ]] && cur=''\n"
    "    [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD-2]}\n"
    "    COMPREPLY=()\n";
static const char bash_tail[] = "    esac\n"
                                "    case $values in\n"
                                "    @files) _fedkt_names -f \"$cur\"; return ;;\n"
                                "    @folders) _fedkt_names -d \"$cur\"; return ;;\n"
                                "    @none) return ;;\n"
                                "    ?*) mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$cur\"); return ;;\n"
                                "    esac\n"
                                "    if [[ $cur != -* ]]; then\n"
                                "        if (( COMP_CWORD == at )) && [[ $words ]]; then\n"
                                "            mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\"); return\n"
                                "        fi\n"
                                "        if [[ $others ]]; then _fedkt_names -f \"$cur\"; return; fi\n"
                                "    fi\n"
                                "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
                                "}\n"
                                "complete -F _fedkt fedkt\n";

static void find_words(void *self, const struct cli_command *c, const struct cli_command *words, size_t n)
{
    (void)self;
    for (size_t i = 0; i < n; i++) printf(" | '%s %s'", c->name, last_word(words[i].name));
}

static void no_verb(void *self, const struct cli_command *c, const struct cli_option *table, size_t n)
{
    (void)self, (void)c, (void)table, (void)n;
}

static void bash(const struct cli_command *commands, size_t n)
{
    const struct cli_help_sink sink = {bash_verb, bash_words, NULL}, pairs = {no_verb, find_words, NULL};
    printf("# completion of fedkt %s for bash, made by 'fedkt help --completion bash'\n%s", fkt_version(), bash_head);
    printf("    if (( COMP_CWORD == 1 )); then\n        words='");
    put_names(commands, n);
    printf("'\n        mapfile -t COMPREPLY < <(compgen -W \"$words --help --version\" -- \"$cur\"); return\n    fi\n"
           "    (( COMP_CWORD > 2 )) && case \"$key ${COMP_WORDS[2]}\" in\n    ''");
    cli_help_visit(commands, n, &pairs);
    printf(") key=\"$key ${COMP_WORDS[2]}\" at=3 ;;\n    esac\n    case $key in\n");
    cli_help_visit(commands, n, &sink);
    printf("    esac\n    case $key in\n    help) words='");
    put_names(commands, n);
    printf("' ;;\n%s", bash_tail);
}

/* ---- zsh ---- */

static void zsh_verb(void *self, const struct cli_command *c, const struct cli_option *table, size_t n)
{
    const char *at = c->usage;
    size_t len;
    (void)self;
    printf("  '%s')\n    _arguments \\\n", c->name);
    for (size_t i = 0; i < n; i++) {
        const enum value v = is_option(&table[i]) ? value_of(&table[i]) : VALUE_NONE;
        if (!is_option(&table[i])) continue;
        printf("      '--%s%s[", table[i].name, v == VALUE_NONE ? "" : "=");
        put_quoted(table[i].help, "[]\\");
        putchar(']');
        if (v != VALUE_NONE) {
            putchar(':');
            put_quoted(cli_metavar(&table[i]), ":\\");
        }
        if (v == VALUE_FILE) fputs(":_files", stdout);
        else if (v == VALUE_FOLDER) fputs(":_files -/", stdout);
        else if (v == VALUE_CHOICE) {
            fputs(":(", stdout);
            put_choices(table[i].choices);
            putchar(')');
        } else if (v == VALUE_TEXT) fputs(": ", stdout);
        printf("' \\\n");
    }
    if (takes_words(table, n)) printf("      '*:file:_files' \\\n");
    else if (!strcmp(c->name, "help")) printf("      \"1:verb:($names)\" \\\n");
    else if (cli_usage_word(&at, &len)) {
        printf("      '1:word:(");
        put_usage_words(c->usage, "");
        printf(")' \\\n");
    }
    printf("      '(-h --help)'{-h,--help}'[print the options]' ;;\n");
}

static void zsh_words(void *self, const struct cli_command *c, const struct cli_command *words, size_t n)
{
    (void)self;
    printf("  '%s')\n    _arguments '1:word:(", c->name);
    for (size_t i = 0; i < n; i++) printf("%s%s", i ? " " : "", last_word(words[i].name));
    printf(")' '--help[print the words]' ;;\n");
}

static void zsh(const struct cli_command *commands, size_t n)
{
    const struct cli_help_sink sink = {zsh_verb, zsh_words, NULL}, pairs = {no_verb, find_words, NULL};
    printf("#compdef fedkt\n# completion of fedkt %s for zsh, made by 'fedkt help --completion zsh'\n\n"
           "local -a verbs\nlocal key=$words[2] names='",
           fkt_version());
    put_names(commands, n);
    printf("'\nverbs=(\n");
    for (size_t i = 0; i < n; i++) {
        printf("  '%s:", commands[i].name);
        put_quoted(commands[i].summary, ":\\");
        printf("'\n");
    }
    printf(")\nif (( CURRENT == 2 )); then\n  _describe verb verbs\n  return\nfi\n"
           "shift words; (( CURRENT-- ))\n"
           "(( CURRENT > 2 )) && case \"$key $words[2]\" in\n(''");
    cli_help_visit(commands, n, &pairs);
    printf(") key=\"$key $words[2]\"; shift words; (( CURRENT-- )) ;;\nesac\ncase $key in\n");
    cli_help_visit(commands, n, &sink);
    printf("esac\n");
}

fkt_status cli_completion(const struct cli_command *commands, size_t n, const char *shell)
{
    if (!strcmp(shell, "bash")) bash(commands, n);
    else if (!strcmp(shell, "zsh")) zsh(commands, n);
    else return fkt_fail(FKT_E_ARG, "--completion: '%s' is not one of bash or zsh", shell);
    return cli_flush();
}
