/* SPDX-License-Identifier: Apache-2.0 */
/* The macros of version.h are the version that the library was built as, which is that of CMakeLists.txt. */
#include "fedkt/status.h"
#include "fedkt/version.h"

#include "tests/support/check.h"

#include <stdio.h>

static void the_macros_are_the_librarys_version(void **state)
{
    char text[64];
    (void)state;
    assert_string_equal(FEDKT_VERSION_STRING, fkt_version());
    snprintf(text, sizeof text, "%d.%d.%d", FEDKT_VERSION_MAJOR, FEDKT_VERSION_MINOR, FEDKT_VERSION_PATCH);
    assert_string_equal(text, fkt_version());
}

static void numbers_are_in_the_order_of_versions(void **state)
{
    (void)state;
    CHECK(FEDKT_VERSION_NUMBER == FEDKT_VERSION_MAJOR * 1000000 + FEDKT_VERSION_MINOR * 1000 + FEDKT_VERSION_PATCH);
    CHECK(FEDKT_VERSION_OF(0, 1, 999) < FEDKT_VERSION_OF(0, 2, 0));
    CHECK(FEDKT_VERSION_OF(0, 999, 999) < FEDKT_VERSION_OF(1, 0, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_macros_are_the_librarys_version),
        cmocka_unit_test(numbers_are_in_the_order_of_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
