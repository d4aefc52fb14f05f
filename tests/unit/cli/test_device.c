/* SPDX-License-Identifier: Apache-2.0 */
/* test_device.c - which card a process takes among several on one host. */
#include "cli/core/device.h"

#include "tests/support/check.h"

static void processes_of_a_host_take_its_cards_in_turn(void **state)
{
    (void)state;
    for (unsigned long rank = 0; rank < 9; rank++) {
        assert_int_equal(cli_card_of(rank, 4), (int)(rank % 4));
        assert_int_equal(cli_card_of(rank, 1), 0);
        assert_int_equal(cli_card_of(rank, 0), 0);
        assert_int_equal(cli_card_of(rank, -1), 0);
    }
    assert_int_equal(cli_card_of(~0UL, 3), (int)(~0UL % 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(processes_of_a_host_take_its_cards_in_turn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
