/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation of the module fails in turn; nothing leaks. The release itself allocates nothing at all. */
#include "fedkt/advanced/privacy.h"
#include "privacy/audit.h"
#include "tests/support/layouts.h"
#include "tests/support/check.h"

static fkt_status toy_release(void *self, int dataset, int64_t *out)
{
    int64_t *n = self;
    for (int i = 0; i < 3; i++) out[i] = dataset * 5 + (*n += 7) % 11;
    return FKT_OK;
}

static void an_audit_without_memory(void **state)
{
    const double shift[3] = {5, 5, 5}, sigma[3] = {3, 3, 3};
    const struct fkt_audit_spec s = {
        .length = 3, .shift = shift, .sigma = sigma, .trials = 1000, .delta = 0.01, .confidence = 0.99};
    const size_t live = fkt_alloc_live();
    struct fkt_audit_result r;
    int64_t n = 0;
    fkt_status st = FKT_E_NOMEM;
    size_t fails = 0;
    (void)state;
    for (size_t at = 1; st != FKT_OK; at++) {
        fkt_alloc_fault_at(at, 0);
        st = fkt_privacy_audit(&r, &s, toy_release, &n);
        fkt_alloc_fault_at(0, 0);
        CHECK(fkt_alloc_live() == live);
        if (st == FKT_OK) break;
        CHECK_STATUS(st, FKT_E_NOMEM);
        fails++;
    }
    CHECK(fails == 15); /* 5, and 2 for each of 5 directions */
}

static void a_release_needs_no_memory(void **state)
{
    const struct fkt_privacy_spec s = {
        .epsilon = 1, .delta = 1e-5, .split_count = 1, .parts = 1, .part = {{64, 24, 75}}};
    struct fkt_privacy_plan p;
    struct fkt_ledger l;
    int64_t x[6] = {10, 0, 0, 0, 0, 0};
    (void)state;
    fkt_alloc_fault_at(1, 1);
    CHECK_OK(fkt_privacy_plan(&p, &s));
    CHECK_OK(fkt_ledger_init(&l, p.mu * p.mu, 0));
    CHECK_OK(fkt_privacy_release(x, x, 1, ONE_PART(2, 64), &p, &l, NULL));
    fkt_alloc_fault_at(0, 0);
}

static void nor_does_a_share(void **state)
{
    const struct fkt_privacy_spec s = {
        .epsilon = 1, .delta = 1e-5, .split_count = 1, .parts = 1, .part = {{64, 24, 75}}};
    struct fkt_share_plan p;
    int64_t x[6] = {10, 0, 0, 0, 0, 0};
    (void)state;
    fkt_alloc_fault_at(1, 1);
    CHECK_OK(fkt_privacy_plan_shares(&p, &s, 3, 4));
    CHECK_OK(fkt_privacy_share(x, x, 1, ONE_PART(2, 64), &p, NULL));
    CHECK_OK(fkt_privacy_gather(x, x, 1, ONE_PART(2, 64), &p, 3));
    fkt_alloc_fault_at(0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_audit_without_memory),
                                       cmocka_unit_test(a_release_needs_no_memory), cmocka_unit_test(nor_does_a_share)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
