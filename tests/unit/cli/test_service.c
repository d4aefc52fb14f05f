/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "cli/task/service.h"
#include "tests/support/check.h"

#define NOW UINT64_C(1767225600) /* 2026-01-01 00:00:00 UTC */

static void days_and_dates(void **state)
{
    static const struct {
        const char *text;
        uint64_t want; /* 0: refused */
    } row[] = {
        {"1d", NOW + 86400},
        {"30d", NOW + 30 * 86400},
        {"36525d", NOW + UINT64_C(36525) * 86400},
        {"2026-01-01", NOW + 86399}, /* a day is over when it is over */
        {"2026-12-31", 1798761599},
        {"2028-02-29", 1835481599},
        {"9999-12-31", UINT64_C(253402300799)},
        {"2025-12-31", 0},
        {"1969-12-31", 0},
        {"0000-01-01", 0},
        {"2026-02-29", 0},
        {"2026-13-01", 0},
        {"2026-00-10", 0},
        {"2026-04-31", 0},
        {"2026-1-1", 0},
        {"2026/12/31", 0},
        {"2026-12-31 ", 0},
        {"2026-12-31T00:00:00Z", 0},
        {"+026-12-31", 0},
        {"0d", 0},
        {"36526d", 0},
        {"-1d", 0},
        {"d", 0},
        {"1", 0},
        {"1.5d", 0},
        {"99999999999999999999d", 0},
        {"", 0},
        {"soon", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        uint64_t got = 0;
        fkt_status st = cli_expires(row[i].text, NOW, &got);
        if (st != (row[i].want ? FKT_OK : FKT_E_ARG) || (row[i].want && got != row[i].want))
            fail_msg("'%s': %s, %llu", row[i].text, fkt_status_name(st), (unsigned long long)got);
    }
}

/* A task for a server always has an end, unless somebody says 'never'. */
static void an_end_by_default(void **state)
{
    static const struct {
        const char *text;
        uint64_t want;
    } row[] = {{NULL, NOW + 90 * UINT64_C(86400)}, {"1d", NOW + 86400}, {"never", 0}};
    const char *names[3] = {NULL, NULL, NULL};
    size_t lines[3] = {1, 2, 3};
    const struct fkt_roster roster = {.names = names, .lines = lines, .n = 3};
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const struct cli_service_asked asked = {.server = "https://a", .expires = row[i].text};
        struct cli_service got;
        CHECK_OK(cli_service_choices(&asked, &roster, NOW, &got));
        CHECK(got.choices.expires == row[i].want);
    }
}

static void a_time_in_words(void **state)
{
    char when[FKT_UTC];
    (void)state;
    fkt_utc(when, 1798761599);
    assert_string_equal(when, "2026-12-31 23:59:59 UTC");
    fkt_utc(when, UINT64_C(253402300799));
    assert_string_equal(when, "9999-12-31 23:59:59 UTC");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(days_and_dates),
        cmocka_unit_test(an_end_by_default),
        cmocka_unit_test(a_time_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
