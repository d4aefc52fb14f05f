/* SPDX-License-Identifier: Apache-2.0 */
/* hints.h - hints that name the option or the verb to use next. */
#ifndef FKT_CLI_HINTS_H
#define FKT_CLI_HINTS_H

#include "fedkt/status.h"

#include <stddef.h>

enum { CLI_HINT_MAX = 512 };

/* The hint of the last error: the phrase of its code, or the library's own text when it has no code. */
void cli_hint(char *out, size_t cap);
/* The phrase of a code, with {hint} for the library's text and {1}, {2} for the values; NULL for FKT_HINT_NONE. */
const char *cli_hint_phrase(enum fkt_hint code);

#endif
