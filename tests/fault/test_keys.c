/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of key files and rosters fails once. */
#include "fedkt/keys.h"
#include "fedkt/service.h"

#include "base/status.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/sweep.h"

#include <unistd.h>

static struct scratch scratch;

/* keys -> public parts -> roster, extended once -> read again with its names */
static fkt_status enrolment(void)
{
    static const char *const name[] = {"one", "two", "three"};
    char roster[512];
    struct fkt_key k;
    struct fkt_site_key site[3];
    struct fkt_roster r = {0};
    struct fkt_service_choices service = {0};
    uint32_t total;
    fkt_status st;
    snprintf(roster, sizeof roster, "%s", scratch_path(&scratch, "roster"));
    unlink(roster);
    for (size_t i = 0; i < 3; i++) {
        FKT_TRY(fkt_key_make(&k, name[i]));
        FKT_TRY(fkt_key_save(&k, scratch_path(&scratch, "key"), 1, NULL));
        FKT_TRY(fkt_key_load(&k, scratch_path(&scratch, "key")));
        FKT_TRY(fkt_site_key_save(&k, scratch_path(&scratch, "pub"), 1));
        FKT_TRY(fkt_site_key_load(&site[i], scratch_path(&scratch, "pub")));
    }
    FKT_TRY(fkt_roster_enroll(roster, site, 1, &total));
    FKT_TRY(fkt_roster_enroll(roster, site + 1, 2, &total));
    FKT_TRY(fkt_roster_load(&r, roster));
    FKT_TRY(fkt_roster_apply(&r, NULL, &service));
out:
    fkt_roster_clear(&r);
    fkt_key_clear(&k);
    return st;
}

static void keys_and_a_roster(void **state)
{
    (void)state;
    scratch_init(&scratch);
    CHECK(sweep_allocations(enrolment, NULL) > 10);
    scratch_release(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(keys_and_a_roster)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
