/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.h - suggests a name for a mistyped one. */
#ifndef FKT_CLI_CORE_SUGGEST_H
#define FKT_CLI_CORE_SUGGEST_H

#include <stddef.h>

struct cli_suggest {
    const char *typed; /* (len) not terminated */
    size_t len;
    const char *best; /* NULL: no name is near */
    size_t best_len, cost;
};
void cli_suggest_begin(struct cli_suggest *s, const char *typed, size_t len);
void cli_suggest_try(struct cli_suggest *s, const char *name, size_t len); /* borrows name as long as s is used */

/* Edits that turn one word into the other: insert, delete, replace a byte, or exchange two neighbours. Words beyond
 * 63 bytes have the largest distance. */
size_t cli_distance(const char *a, size_t n, const char *b, size_t m);

#endif
