/* SPDX-License-Identifier: Apache-2.0 */
/* test_adjacency.c - the table of adjacencies: each row is whole, and its names lead back to it. */
#include "fedkt/advanced/privacy.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

/* mu^2 of one part. */
static double mu_squared(enum fkt_adjacency adjacency, double a, double b, double c)
{
    return fkt_privacy_mu_squared(adjacency, c, 1, &a, &b);
}

static void each_row_is_whole(void **state)
{
    int n = 0;
    (void)state;
    for (const struct fkt_adjacency_info *i; (i = fkt_adjacency_info(n)); n++) {
        const enum fkt_adjacency a = (enum fkt_adjacency)n;
        if (!i->name || !i->protects || !i->hides || !i->question) fail_msg("row %d is not whole", n);
        CHECK(fkt_adjacency_parse(i->name) == n && !strcmp(fkt_adjacency_name(a), i->name));
        CHECK(!strcmp(fkt_adjacency_protects(a), i->protects));
        CHECK(fkt_adjacency_counts_public(a) == i->counts_public);
        const double mu2 = mu_squared(a, 1, 1, 1);
        CHECK(mu2 >= 2 && mu2 < INFINITY);
        /* what is public needs no noise, and its distance is not counted */
        CHECK((mu_squared(a, 1, 1, 5) == mu2) == i->counts_public);
    }
    CHECK(n == FKT_ADJACENCY_REPLACE_ANY + 1);
}

static void there_are_no_others(void **state)
{
    (void)state;
    CHECK(!fkt_adjacency_info(-1) && fkt_adjacency_parse("add_remove") < 0 && fkt_adjacency_parse(NULL) < 0);
    CHECK(!strcmp(fkt_adjacency_name((enum fkt_adjacency)9), "?") &&
          !fkt_adjacency_counts_public((enum fkt_adjacency)9));
    CHECK(isnan(mu_squared((enum fkt_adjacency)9, 1, 1, 1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_is_whole),
        cmocka_unit_test(there_are_no_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
