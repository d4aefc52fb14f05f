/* SPDX-License-Identifier: Apache-2.0 */
/* DC-AE at full width against PyTorch: 323 and 677 million random weights, written to a scratch folder by the test. It
 * needs no image set, but gigabytes of disk and memory, so that it goes with the tests that want FEDKT_DATA. */
#include "tests/support/check.h"
#include "tests/support/golden.h"

static void agree(const struct golden *g, const char *stem, uint32_t side, int low_memory)
{
    struct golden_run run = {&fkt_backend_onednn, FKT_PRECISION_F32, low_memory, side};
    struct golden_error e;
    golden_measure(&e, g, &run);
    print_message("%-26s %3u px%s  encode %.1e  decode %.1e of the largest\n", stem, side,
                  low_memory ? " low memory" : "", e.apart[0] / e.size[0], e.apart[1] / e.size[1]);
    for (int half = 0; half < 2; half++) CHECK_NEAR(e.apart[half] / e.size[half], 0, 1e-4);
}

static void f32c32(const char *stem)
{
    struct golden g;
    golden_open(&g, stem);
    agree(&g, stem, 64, 0);
    agree(&g, stem, 64, 1);
    agree(&g, stem, 128, 0);
    golden_release(&g);
    CHECK(fkt_alloc_live() == 0);
}

static void f64c128(const char *stem)
{
    struct golden g;
    golden_open(&g, stem);
    agree(&g, stem, 64, 0);
    agree(&g, stem, 128, 1);
    golden_release(&g);
    CHECK(fkt_alloc_live() == 0);
}

static void f32c32_in_both_layouts(void **state)
{
    (void)state;
    f32c32("dc-ae-f32c32.efficientvit");
    f32c32("dc-ae-f32c32.diffusers");
}

static void f64c128_in_both_layouts(void **state)
{
    (void)state;
    f64c128("dc-ae-f64c128.efficientvit");
    f64c128("dc-ae-f64c128.diffusers");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f32c32_in_both_layouts),
        cmocka_unit_test(f64c128_in_both_layouts),
    };
    if (!getenv("FEDKT_DATA")) {
        printf("FEDKT_DATA is not set: skipped\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
