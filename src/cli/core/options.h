/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - one option table per verb, which parsing, checking and --help all read. */
#ifndef FKT_CLI_CORE_OPTIONS_H
#define FKT_CLI_CORE_OPTIONS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* CLI_MAYBE: a text that may be left out; it is "" then. The next word is its value unless that begins with a dash. */
enum cli_kind { CLI_FLAG, CLI_TEXT, CLI_MAYBE, CLI_REAL, CLI_WHOLE, CLI_POSITIVE, CLI_CHOICE, CLI_HEADING, CLI_WORDS };

/* Words on the command line without dashes, for verbs that have a CLI_OPT_WORDS row. */
struct cli_words {
    char **list; /* (n) borrowed from argv */
    size_t n;
};

struct cli_option {
    enum cli_kind kind;
    const char *name; /* without the dashes; for CLI_HEADING the heading, for CLI_WORDS what a word is */
    /* int * (flag, choice), const char **, double *, uint64_t * (whole; positive: not 0) or struct cli_words * */
    void *value;
    const char *metavar; /* placeholder of the value in --help */
    const char *help;
    int required;
    int (*choice)(const char *); /* CLI_CHOICE: name -> value, -1 unknown */
    const char *choices;         /* CLI_CHOICE: "a, b or c" */
    int *given;                  /* may be NULL: set to 1 when the option is on the command line */
};

#define CLI_OPT_HEAD(text)                                                                                             \
    {                                                                                                                  \
        CLI_HEADING, text, NULL, NULL, NULL, 0, NULL, NULL, NULL                                                       \
    }
#define CLI_OPT_FLAG(name, var, help)                                                                                  \
    {                                                                                                                  \
        CLI_FLAG, name, var, NULL, help, 0, NULL, NULL, NULL                                                           \
    }
#define CLI_OPT_TEXT(name, var, meta, req, help)                                                                       \
    {                                                                                                                  \
        CLI_TEXT, name, var, meta, help, req, NULL, NULL, NULL                                                         \
    }
#define CLI_OPT_MAYBE(name, var, meta, help)                                                                           \
    {                                                                                                                  \
        CLI_MAYBE, name, var, meta, help, 0, NULL, NULL, NULL                                                          \
    }
#define CLI_OPT_REAL(name, var, meta, req, help)                                                                       \
    {                                                                                                                  \
        CLI_REAL, name, var, meta, help, req, NULL, NULL, NULL                                                         \
    }
#define CLI_OPT_WHOLE(name, var, meta, req, help)                                                                      \
    {                                                                                                                  \
        CLI_WHOLE, name, var, meta, help, req, NULL, NULL, NULL                                                        \
    }
#define CLI_OPT_POSITIVE(name, var, meta, req, help)                                                                   \
    {                                                                                                                  \
        CLI_POSITIVE, name, var, meta, help, req, NULL, NULL, NULL                                                     \
    }
#define CLI_OPT_CHOICE(name, var, fn, list, help)                                                                      \
    {                                                                                                                  \
        CLI_CHOICE, name, var, NULL, help, 0, fn, list, NULL                                                           \
    }
#define CLI_OPT_CHOICE_GIVEN(name, var, fn, list, help, given)                                                         \
    {                                                                                                                  \
        CLI_CHOICE, name, var, NULL, help, 0, fn, list, given                                                          \
    }

#define CLI_OPT_WORDS(name, var, req, help)                                                                            \
    {                                                                                                                  \
        CLI_WORDS, name, var, NULL, help, req, NULL, NULL, NULL                                                        \
    }

struct cli_command {
    const char *name;
    const char *summary;
    const char *usage;                                                 /* after "fedkt NAME" */
    const char *teaches;                                               /* a few sentences and an example, for --help */
    int (*run)(const struct cli_command *self, int argc, char **argv); /* exit code */
};

/* Parses argv[0..argc-1], whose order it may change. FKT_E_ARG with a message on misuse. *help becomes 1 on --help:
 * print it and exit. */
FKT_MUST_USE fkt_status cli_parse(const struct cli_option *table, size_t n, int argc, char **argv, int *help);
void cli_help(const struct cli_command *c, const struct cli_option *table, size_t n);
const char *cli_metavar(const struct cli_option *o); /* placeholder of an option's value, "WORD" for a choice */
size_t cli_choice_length(const char *choices);       /* of the first in "a, b or c", the default */
enum { CLI_HELP_LONGEST = 640 };
void cli_option_help(char *out, size_t cap, const struct cli_option *o); /* its help, a choice's with all its words */
/* The exit code of `serve` and `join` when the task has ended without success: a service manager must not start them
 * again. */
enum { CLI_OVER = 3 };
/* Prints the error message and its hint on stderr; returns the exit code: 2 for misuse, 128 and the signal's number
 * for a stop by a signal, 1 for everything else, 0 for FKT_OK. */
int cli_fail(fkt_status st);
void cli_say(const char *text);                             /* a line on stderr, control characters as '?' */
void cli_show(const char *text, size_t n);                  /* so many bytes on stdout, the same */
int cli_misuse(const struct cli_command *c, fkt_status st); /* the same, and refers to --help */

/* A constant as text, for help. */
#define CLI_TEXT_OF(x) #x
#define CLI_NUMBER(x) CLI_TEXT_OF(x)

#endif
