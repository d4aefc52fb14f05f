/* SPDX-License-Identifier: Apache-2.0 */
/* test_hints.c - the phrases of the hint codes. That each code has one is the compiler's and check_messages.py's. */
#include "base/status.h"
#include "cli/core/hints.h"
#include "tests/support/check.h"

#include <string.h>

static void a_code_is_phrased_with_its_values(void **state)
{
    char hint[CLI_HINT_MAX];
    (void)state;
    fkt_hint_code(fkt_fail(FKT_E_EXISTS, "'a' exists already"), FKT_HINT_EXISTS, "replace it on purpose");
    cli_hint(hint, sizeof hint);
    assert_string_equal(hint, "give --force to replace it");
    fkt_hint_code(fkt_fail(FKT_E_STATE, "no calibration"), FKT_HINT_CALIBRATE, "make one");
    fkt_hint_values(FKT_E_STATE, FKT_HINT_CALIBRATE, "{2}", "64"); /* a value is not read as a phrase */
    cli_hint(hint, sizeof hint);
    assert_string_equal(hint, "make one: fedkt codec calibrate {2} --size 64 --public SET --out FILE");
    fkt_hint_code(fkt_fail(FKT_E_FORMAT, "damaged"), FKT_HINT_PULL_AGAIN, "fetch them again");
    cli_hint(hint, sizeof hint);
    assert_string_equal(hint, "fetch the weights again: fedkt codec pull NAME --force");
}

static void without_a_code_the_words_stand(void **state)
{
    char hint[CLI_HINT_MAX];
    (void)state;
    fkt_fail_hint(FKT_E_IO, "look for {1} of it", "gone");
    cli_hint(hint, sizeof hint);
    assert_string_equal(hint, "look for {1} of it");
    fkt_fail(FKT_E_IO, "gone");
    cli_hint(hint, sizeof hint);
    assert_string_equal(hint, "");
}

static void a_long_hint_is_cut(void **state)
{
    char hint[24], longer[400];
    (void)state;
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    fkt_hint_code(fkt_fail(FKT_E_IO, "gone"), FKT_HINT_PULL, longer);
    for (size_t cap = 1; cap <= sizeof hint; cap++) {
        memset(hint, '#', sizeof hint);
        cli_hint(hint, cap);
        CHECK(strlen(hint) == cap - 1 && (cap == sizeof hint || hint[cap] == '#'));
    }
    fkt_hint_code(fkt_fail(FKT_E_IO, "gone"), FKT_HINT_OTHER_CODEC, longer);
    cli_hint(hint, sizeof hint);
    CHECK(strlen(hint) == sizeof hint - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_code_is_phrased_with_its_values),
        cmocka_unit_test(without_a_code_the_words_stand),
        cmocka_unit_test(a_long_hint_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
