/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/layouts.h"
#include "tests/support/slow_moments.h"

/* Two sites and their sum; every allocation of it in turn is refused. */
static fkt_status whole_story(const uint32_t *labels, const int32_t *q, size_t n, int64_t *first)
{
    struct fkt_moments *a = NULL, *b = NULL;
    const int64_t *packed;
    fkt_status st;
    FKT_TRY(fkt_moments_new(&a, 3, ONE_PART(5, 256), 0));
    FKT_TRY(fkt_moments_new(&b, 3, ONE_PART(5, 256), 0));
    FKT_TRY(fkt_moments_add(a, labels, q, n));
    FKT_TRY(fkt_moments_merge(b, a));
    FKT_TRY(fkt_moments_packed(a, &packed));
    FKT_TRY(fkt_moments_add_packed(b, packed));
    FKT_TRY(fkt_moments_packed(b, &packed));
    *first = packed[0];
out:
    fkt_moments_free(a);
    fkt_moments_free(b);
    return st;
}

static void each_allocation_may_fail(void **state)
{
    const uint32_t labels[2] = {0, 0};
    const int32_t q[10] = {1, 2, 3, 4, 5, -1, -2, -3, -4, 5};
    (void)state;
    for (int sticky = 0; sticky < 2; sticky++) {
        size_t n = 1;
        int64_t count = 0;
        for (;; n++) {
            fkt_alloc_fault_at(n, sticky);
            fkt_status st = whole_story(labels, q, 2, &count);
            fkt_alloc_fault_at(0, 0);
            CHECK(fkt_alloc_live() == 0);
            if (st == FKT_OK) break;
            CHECK(st == FKT_E_NOMEM);
        }
        CHECK(n == 15 && count == 4); /* seven blocks for each of the two; adding, merging and packing take none */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
