/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/site_moments.h"
#include "base/threads.h"
#include "tests/support/check.h"

enum { SLOTS = 50, LENGTH = 3000 };

static void fill(int64_t *x, uint32_t slot)
{
    for (int i = 0; i < LENGTH; i++) x[i] = (int64_t)slot * 1000003 - i * INT64_C(1234567890123);
}

static fkt_status put(void *ctx, size_t slot, unsigned worker)
{
    int64_t x[LENGTH];
    (void)worker;
    fill(x, (uint32_t)slot);
    return slot == 7 ? FKT_OK : fkt_site_moments_put(ctx, (uint32_t)slot, x);
}

static fkt_status get(void *ctx, size_t slot, unsigned worker)
{
    static const int64_t none[LENGTH];
    int64_t x[LENGTH], want[LENGTH];
    fkt_status st = fkt_site_moments_get(ctx, (uint32_t)slot, x);
    (void)worker;
    fill(want, (uint32_t)slot);
    if (st == FKT_OK && memcmp(x, slot == 7 ? none : want, sizeof x)) st = fkt_fail(FKT_E_STATE, "slot %zu", slot);
    return st;
}

/* In memory and in a file: each slot keeps its own numbers, one that nothing was put into holds zeros. */
static void slots_keep_what_was_put(void **state)
{
    const uint64_t all = (uint64_t)SLOTS * LENGTH * sizeof(int64_t), rooms[2] = {all, all - 1};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct fkt_site_moments *s;
        CHECK_OK(fkt_site_moments_new(&s, SLOTS, LENGTH, rooms[i]));
        CHECK_OK(fkt_parallel(4, SLOTS, put, s, NULL, "put"));
        CHECK_OK(fkt_parallel(4, SLOTS, get, s, NULL, "get"));
        fkt_site_moments_free(s);
    }
    fkt_site_moments_free(NULL);
    CHECK(fkt_alloc_live() == 0);
}

static void what_cannot_be_kept_is_refused(void **state)
{
    struct fkt_site_moments *s;
    (void)state;
    CHECK_STATUS(fkt_site_moments_new(&s, UINT32_MAX, SIZE_MAX / 64, 0), FKT_E_ARG);
    CHECK(s == NULL);
    setenv("TMPDIR", "/nowhere/at/all", 1);
    CHECK_STATUS(fkt_site_moments_new(&s, 2, 2, 0), FKT_E_IO);
    CHECK(s == NULL);
    unsetenv("TMPDIR");
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_keep_what_was_put),
        cmocka_unit_test(what_cannot_be_kept_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
