/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a site's preparation fails once: task, key, images, ledger, moments, preview. */
#include "tests/support/small_site.h"
#include "tests/support/sweep.h"

static struct small_site site;

static fkt_status preview(void)
{
    struct fkt_join_preview p;
    const fkt_status st = fkt_join_preview(&site.spec, &p);
    if (st != FKT_OK) CHECK(!p.task && !p.held && !p.ledger && !p.privacy);
    fkt_join_preview_clear(&p);
    return st;
}

static void a_preview(void **state)
{
    (void)state;
    small_site_init(&site, NULL, 1);
    CHECK(sweep_allocations(preview, NULL) > 50);
    small_site_clear(&site);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_preview)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
