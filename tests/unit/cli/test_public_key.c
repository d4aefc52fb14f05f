/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "cli/task/public_key.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

static void digits_or_a_file(void **state)
{
    struct scratch s;
    struct fkt_key k;
    char hex[2 * FKT_SA_KEY + 1];
    uint8_t key[FKT_SA_KEY];
    (void)state;
    scratch_init(&s);
    CHECK_OK(fkt_key_make(&k, "one"));
    CHECK_OK(fkt_site_key_save(&k, scratch_path(&s, "pub"), 0));
    CHECK_OK(cli_public_key("operator", scratch_path(&s, "pub"), key));
    assert_memory_equal(key, k.site.key, sizeof key);
    memset(key, 0, sizeof key);
    fkt_hex(hex, k.site.key, sizeof k.site.key);
    CHECK_OK(cli_public_key("operator", hex, key));
    assert_memory_equal(key, k.site.key, sizeof key);
    hex[10] = 'x';
    CHECK_STATUS(cli_public_key("operator", hex, key), FKT_E_IO);
    CHECK(strstr(fkt_error_text(), "--operator") == fkt_error_text());
    scratch_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(digits_or_a_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
