/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "fedkt/round.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include <sys/stat.h>
#include <unistd.h>

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define T "0000000000000000000000000000000000000000000000000000000000000000"

static const char both[2][FKT_SHA256_HEX] = {A, B};
static const char only_b[1][FKT_SHA256_HEX] = {B};

static fkt_status debit(const char *path, const char (*prints)[FKT_SHA256_HEX], size_t n, const char *task, double mu,
                        double budget_epsilon, double budget_delta)
{
    return fkt_ledger_file_debit(path,
                                 &(struct fkt_ledger_charge){prints, n, task, FKT_ADD_REMOVE, mu, budget_epsilon,
                                                             budget_delta, 0, FKT_ACCOUNT_GDP},
                                 NULL);
}

static void a_second_release_is_refused(void **state)
{
    struct scratch s;
    struct stat sb;
    const char *p;
    (void)state;
    scratch_init(&s);
    p = scratch_path(&s, "ledger.json");
    CHECK_OK(debit(p, both, 1, T, 0.5, 0, 0));
    CHECK(stat(p, &sb) == 0 && (sb.st_mode & 0777) == 0600);
    CHECK_STATUS(debit(p, both, 1, T, 0.5, 0, 0), FKT_E_BUDGET);
    /* all or none: A has nothing left, so B must not pay */
    CHECK_STATUS(debit(p, both, 2, T, 0.5, 0, 0), FKT_E_BUDGET);
    CHECK_OK(debit(p, only_b, 1, T, 0.5, 0, 0));
    CHECK_STATUS(debit(p, only_b, 1, T, 0.5, 0, 0), FKT_E_BUDGET);
    /* a larger budget, in words of (epsilon, delta), pays for a few more */
    CHECK_OK(debit(p, both, 2, T, 0.5, 8, 1e-5));
    CHECK_OK(debit(p, both, 2, T, 0.5, 0, 0));
    scratch_release(&s);
}

static void the_budget_is_kept_to_the_last_draw(void **state)
{
    struct scratch s;
    double mu = 0.4, budget = fkt_privacy_mu(3, 1e-6);
    int allowed = (int)(budget * budget / (mu * mu)), made = 0;
    (void)state;
    scratch_init(&s);
    while (debit(scratch_path(&s, "l"), both, 1, T, mu, 3, 1e-6) == FKT_OK) made++;
    CHECK(allowed >= 2 && made == allowed);
    scratch_release(&s);
}

static void a_damaged_ledger_stops_everything(void **state)
{
    static const char *const bad[] = {"", "{", "[]", "{\"schema\": \"other\", \"records\": {}}",
                                      "{\"schema\": \"fedkt.ledger/1\", \"records\": 1}"};
    struct scratch s;
    const char *p;
    (void)state;
    scratch_init(&s);
    p = scratch_path(&s, "ledger.json");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_OK(fkt_file_write(p, bad[i], strlen(bad[i]), 1));
        CHECK_STATUS(debit(p, both, 1, T, 0.5, 0, 0), FKT_E_FORMAT);
    }
    /* an entry that is no positive number counts as everything; so does a budget that is none, or a record of
     * another shape */
    static const char *const poor[] = {
        "{\"schema\": \"fedkt.ledger/1\", \"records\": {\"" A
        "\": {\"budget_mu2\": 100, \"adjacency\": \"add-remove\", \"entries\": [{\"mu2\": -9}]}}}",
        "{\"schema\": \"fedkt.ledger/1\", \"records\": {\"" A
        "\": {\"budget_mu2\": 100, \"adjacency\": \"add-remove\", \"entries\": [{\"mu2\": \"x\"}]}}}",
        "{\"schema\": \"fedkt.ledger/1\", \"records\": {\"" A
        "\": {\"budget_mu2\": 100, \"adjacency\": \"add-remove\", \"entries\": 3}}}",
        "{\"schema\": \"fedkt.ledger/1\", \"records\": {\"" A "\": {\"adjacency\": \"add-remove\", \"entries\": []}}}",
        "{\"schema\": \"fedkt.ledger/1\", \"records\": {\"" A "\": 5}}",
    };
    for (size_t i = 0; i < sizeof poor / sizeof *poor; i++) {
        CHECK_OK(fkt_file_write(p, poor[i], strlen(poor[i]), 1));
        if (debit(p, both, 1, T, 0.5, 0, 0) == FKT_OK) fail_msg("ledger %zu paid", i);
    }
    CHECK_STATUS(debit(p, both, 1, T, NAN, 0, 0), FKT_E_ARG);
    CHECK_STATUS(debit(p, both, 1, T, 0.5, 1, 2), FKT_E_ARG);
    scratch_release(&s);
}

/* The same records twice in one sum are at twice the distance: no ledger may pay for that as for one. */
static void moments_may_stand_once_only(void **state)
{
    static const char twice[2][FKT_SHA256_HEX] = {A, A};
    struct scratch s;
    (void)state;
    scratch_init(&s);
    CHECK_STATUS(debit(scratch_path(&s, "l"), twice, 2, T, 0.5, 0, 0), FKT_E_ARG);
    CHECK(access(scratch_path(&s, "l"), F_OK) != 0);
    scratch_release(&s);
}

/* A release with exact counts costs infinitely much under add-remove: accounts of two adjacencies must not be added. */
static void adjacencies_are_not_mixed(void **state)
{
    struct fkt_ledger_charge c = {both, 1, T, FKT_REPLACE, 0.1, 8, 1e-5, 0, FKT_ACCOUNT_GDP};
    struct scratch s;
    (void)state;
    scratch_init(&s);
    CHECK_OK(fkt_ledger_file_debit(scratch_path(&s, "l"), &c, NULL));
    CHECK_OK(fkt_ledger_file_debit(scratch_path(&s, "l"), &c, NULL));
    c.adjacency = FKT_ADD_REMOVE;
    CHECK_STATUS(fkt_ledger_file_debit(scratch_path(&s, "l"), &c, NULL), FKT_E_BUDGET);
    scratch_release(&s);
}

static void a_link_is_the_ledger_it_points_to(void **state)
{
    struct scratch s;
    (void)state;
    scratch_init(&s);
    CHECK_OK(debit(scratch_path(&s, "real"), both, 1, T, 0.5, 0, 0));
    CHECK(symlink(scratch_path(&s, "real"), scratch_path(&s, "link")) == 0);
    CHECK_STATUS(debit(scratch_path(&s, "link"), both, 1, T, 0.5, 0, 0), FKT_E_BUDGET);
    CHECK_OK(debit(scratch_path(&s, "link"), only_b, 1, T, 0.5, 0, 0));
    CHECK_STATUS(debit(scratch_path(&s, "real"), only_b, 1, T, 0.5, 0, 0), FKT_E_BUDGET);
    CHECK(symlink(scratch_path(&s, "nothing"), scratch_path(&s, "dangling")) == 0);
    CHECK_STATUS(debit(scratch_path(&s, "dangling"), only_b, 1, T, 0.5, 0, 0), FKT_E_IO);
    CHECK(link(scratch_path(&s, "real"), scratch_path(&s, "second")) == 0);
    CHECK_STATUS(debit(scratch_path(&s, "second"), only_b, 1, T, 0.5, 9, 1e-5), FKT_E_IO);
    scratch_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_release_is_refused),       cmocka_unit_test(the_budget_is_kept_to_the_last_draw),
        cmocka_unit_test(a_damaged_ledger_stops_everything), cmocka_unit_test(moments_may_stand_once_only),
        cmocka_unit_test(adjacencies_are_not_mixed),         cmocka_unit_test(a_link_is_the_ledger_it_points_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
