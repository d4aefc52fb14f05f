/* SPDX-License-Identifier: Apache-2.0 */
#include "fedkt/privacy.h"
#include "tests/support/check.h"

static void parts_make_the_whole_and_not_more(void **state)
{
    struct fkt_ledger l, before;
    (void)state;
    CHECK_OK(fkt_ledger_init(&l, 0.3, 0));
    for (int i = 0; i < 3; i++) CHECK_OK(fkt_ledger_debit(&l, 0.1)); /* 0.1 + 0.1 + 0.1 > 0.3 in doubles */
    CHECK(l.entries == 3 && l.spent_mu2 >= 0.3);
    before = l;
    CHECK_STATUS(fkt_ledger_debit(&l, 1e-9), FKT_E_BUDGET);
    CHECK(strstr(fkt_error_text(), "exhausted") && *fkt_error_hint());
    CHECK(l.entries == before.entries && l.spent_mu2 == before.spent_mu2);
    CHECK_OK(fkt_ledger_init(&l, 1, 0.75));
    CHECK_STATUS(fkt_ledger_debit(&l, 0.2500001), FKT_E_BUDGET);
    CHECK_OK(fkt_ledger_debit(&l, 0.25));
    CHECK_OK(fkt_ledger_init(&l, 1, 2)); /* a raised debt is no error, it only allows nothing more */
    CHECK_STATUS(fkt_ledger_debit(&l, 1e-300), FKT_E_BUDGET);
}

static void many_small_debits_do_not_slip_through(void **state)
{
    struct fkt_ledger l;
    int n = 0;
    (void)state;
    CHECK_OK(fkt_ledger_init(&l, 1, 0));
    while (fkt_ledger_debit(&l, 1e-5) == FKT_OK && n < 200000) n++;
    CHECK(n >= 99999 && n <= 100000);
}

static void nonsense_is_refused(void **state)
{
    const double bad[] = {NAN, INFINITY, -INFINITY, -1};
    struct fkt_ledger l;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_STATUS(fkt_ledger_init(&l, bad[i], 0), FKT_E_ARG);
        CHECK_STATUS(fkt_ledger_init(&l, 1, bad[i]), FKT_E_ARG);
        CHECK_OK(fkt_ledger_init(&l, 1, 0));
        CHECK_STATUS(fkt_ledger_debit(&l, bad[i]), FKT_E_ARG);
    }
    CHECK_STATUS(fkt_ledger_debit(&l, 0), FKT_E_ARG);
    CHECK(l.spent_mu2 == 0 && l.entries == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_make_the_whole_and_not_more),
                                       cmocka_unit_test(many_small_debits_do_not_slip_through),
                                       cmocka_unit_test(nonsense_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
