/* SPDX-License-Identifier: Apache-2.0 */
/* hints.h - what to do next, with the option or the verb that does it. */
#ifndef FKT_CLI_HINTS_H
#define FKT_CLI_HINTS_H

#include "fedkt/status.h"

#include <stddef.h>

enum { CLI_HINT_MAX = 512 };

/* The hint of the last failure: the phrase of its code, or the library's own words where it has none. */
void cli_hint(char *out, size_t cap);
/* The phrase of a code, with {hint} for the library's words and {1}, {2} for the values; NULL for FKT_HINT_NONE. */
const char *cli_hint_phrase(enum fkt_hint code);

#endif
