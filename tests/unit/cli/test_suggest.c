/* SPDX-License-Identifier: Apache-2.0 */
/* test_suggest.c - the distance against a slow twin by recursion, and what is near enough to be suggested. */
#include "cli/core/suggest.h"
#include "tests/support/check.h"

#include <stdint.h>
#include <string.h>

/* The definition, without a table: the same three edits and an exchange of neighbours. */
static size_t slow(const char *a, size_t n, const char *b, size_t m)
{
    size_t best, other;
    if (!n || !m) return n + m;
    best = slow(a + 1, n - 1, b + 1, m - 1) + (*a != *b);
    other = slow(a + 1, n - 1, b, m) + 1;
    if (other < best) best = other;
    other = slow(a, n, b + 1, m - 1) + 1;
    if (other < best) best = other;
    if (n > 1 && m > 1 && a[0] == b[1] && a[1] == b[0]) {
        other = slow(a + 2, n - 2, b + 2, m - 2) + 1;
        if (other < best) best = other;
    }
    return best;
}

static void test_distance(void **state)
{
    char a[6], b[6];
    (void)state;
    for (unsigned i = 0; i < 1024; i++) /* words of 5 letters from 'a' to 'd', against every 7th */
        for (unsigned j = i % 7; j < 1024; j += 7) {
            for (unsigned k = 0; k < 5; k++) {
                a[k] = (char)('a' + (i >> 2 * k & 3));
                b[k] = (char)('a' + (j >> 2 * k & 3));
            }
            CHECK(cli_distance(a, 3 + i % 3, b, 3 + j % 3) == slow(a, 3 + i % 3, b, 3 + j % 3));
        }
    CHECK(cli_distance("", 0, "", 0) == 0 && cli_distance("abc", 3, "", 0) == 3 && cli_distance("ab", 2, "ba", 2) == 1);
    CHECK(cli_distance("epsilon", 7, "epsilon", 64) == SIZE_MAX); /* too long to be read */
}

static const char *nearest(const char *typed)
{
    static const char *const names[] = {"epsilon", "delta", "test", "test-limit", "test-split", "out", "seed"};
    struct cli_suggest s;
    cli_suggest_begin(&s, typed, strlen(typed));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) cli_suggest_try(&s, names[i], strlen(names[i]));
    return s.best ? s.best : "";
}

static void test_near(void **state)
{
    static const char *const rows[][2] = {
        {"epsilno", "epsilon"},
        {"eps", "epsilon"},
        {"ep", ""},
        {"detla", "delta"},
        {"tset", "test"},
        {"test-limt", "test-limit"},
        {"ou", "out"},
        {"xyz", ""},
        {"", ""},
        {"quiet", ""},
        {"tests", "test"},
        {"test-", "test"},
        {"test-sp", "test-split"},
        {"a", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(nearest(rows[i][0]), rows[i][1]) != 0)
            fail_msg("'%s' gives '%s', not '%s'", rows[i][0], nearest(rows[i][0]), rows[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_distance), cmocka_unit_test(test_near)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
