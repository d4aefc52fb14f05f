/* SPDX-License-Identifier: Apache-2.0 */
/* help.h - output made from a verb's option table: --help, man pages, completion. */
#ifndef FKT_CLI_CORE_HELP_H
#define FKT_CLI_CORE_HELP_H

#include "cli/core/options.h"

#include <stdio.h>

/* Receives the tables, instead of standard output, while cli_help_visit() runs. */
struct cli_help_sink {
    void (*verb)(void *self, const struct cli_command *c, const struct cli_option *table, size_t n);
    void (*words)(void *self, const struct cli_command *c, const struct cli_command *words, size_t n);
    void *self;
};

void cli_overview(FILE *to, const struct cli_command *commands, size_t n);
/* Runs every command with --help; a command whose words have their own tables is run for each of them too. */
void cli_help_visit(const struct cli_command *commands, size_t n, const struct cli_help_sink *sink);
/* For a verb whose words have their own tables: their names and summaries. */
void cli_help_words(const struct cli_command *c, const struct cli_command *words, size_t n);

/* The words that may follow a verb, read from its usage, "list | info [NAME] | pull NAME": the next one at or after
 * *at, and *len its length; NULL when there is none. Begin with *at = c->usage. */
const char *cli_usage_word(const char **at, size_t *len);
/* FKT_E_ARG for a word that the verb does not have, with the nearest one in the hint. */
fkt_status cli_unknown_word(const struct cli_command *c, const char *word);
/* The same for a verb. */
fkt_status cli_unknown_verb(const struct cli_command *commands, size_t n, const char *verb);

/* `fedkt help`: the verb's function; it needs the list of all verbs. */
int cli_help_verb(const struct cli_command *commands, size_t n, const struct cli_command *self, int argc, char **argv);
FKT_MUST_USE fkt_status cli_man_pages(const struct cli_command *commands, size_t n, const char *folder);
FKT_MUST_USE fkt_status cli_completion(const struct cli_command *commands, size_t n, const char *shell);

#endif
