/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.c - the verb or option that was probably meant: the nearest name by the optimal string alignment distance
 * (Damerau 1964; restricted form: no substring is edited twice). A name is near when at most a third of the longer
 * word is edited, one edit at least; or when three or more typed bytes begin it (--eps for --epsilon). The first of
 * equally near names wins, so the order of a table decides. Cost: n*m for every name, some microseconds for the
 * largest table. */
#include "cli/core/suggest.h"

#include <stdint.h>
#include <string.h>

enum { LONGEST = 63, SHORTEST_PREFIX = 3 };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

size_t cli_distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t rows[3][LONGEST + 1];
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    if (n > LONGEST || m > LONGEST) return SIZE_MAX;
    for (size_t j = 0; j <= m; j++) last[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *spare = before;
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], before[j - 2] + 1);
        }
        before = last;
        last = now;
        now = spare;
    }
    return last[m];
}

void cli_suggest_begin(struct cli_suggest *s, const char *typed, size_t len)
{
    *s = (struct cli_suggest){.typed = typed, .len = len, .cost = SIZE_MAX};
}

void cli_suggest_try(struct cli_suggest *s, const char *name, size_t len)
{
    size_t cost = cli_distance(s->typed, s->len, name, len), longer = s->len > len ? s->len : len;
    const size_t bearable = longer / 3 > 1 ? longer / 3 : 1;
    if (cost > bearable && s->len >= SHORTEST_PREFIX && s->len < len && !memcmp(s->typed, name, s->len))
        cost = bearable;
    if (cost > bearable || cost >= s->cost || cost >= longer) return;
    s->best = name;
    s->best_len = len;
    s->cost = cost;
}
