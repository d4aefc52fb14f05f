/* SPDX-License-Identifier: Apache-2.0 */
/* Resizing against what Pillow made of the same images: equal, byte for byte. */
#include "images/resize.h"

#include "base/file.h"
#include "tests/support/check.h"
#include "tests/support/image_files.h"

static const uint32_t cases[][3] = {{64, 64, 32}, {33, 57, 16}, {57, 33, 15},  {150, 99, 20}, {7, 5, 12},
                                    {1, 9, 6},    {31, 32, 32}, {40, 101, 13}, {24, 24, 24}};

static void resizing_is_pillows(void **state)
{
    uint8_t *want = NULL, in[150 * 101 * 3], out[32 * 32 * 3];
    size_t len = 0, at = 0;
    (void)state;
    CHECK_OK(fkt_file_read(&want, &len, FKT_TEST_VECTORS "/images/resize.bin", 1 << 20));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t w = cases[i][0], h = cases[i][1], s = cases[i][2];
        static const enum fkt_filter filters[] = {FKT_FILTER_BILINEAR, FKT_FILTER_BICUBIC, FKT_FILTER_LANCZOS,
                                                  FKT_FILTER_BOX};
        image_draw(in, w, h);
        for (size_t f = 0; f < 4; f++) {
            CHECK_OK(fkt_resize(out, s, in, w, h, filters[f], FKT_FIT_CROP));
            CHECK(at + (size_t)s * s * 3 <= len);
            for (size_t p = 0; p < (size_t)s * s * 3; p++)
                if (out[p] != want[at + p])
                    fail_msg("%u x %u to %u, filter %zu, byte %zu: got %u, want %u", w, h, s, f, p, out[p],
                             want[at + p]);
            at += (size_t)s * s * 3;
        }
    }
    CHECK(at == len);
    fkt_free(want);
}

/* fit.bin: for each case and filter Pillow's ImageOps.pad with black, then its resize to (S, S). */
static void padding_and_stretching_are_pillows(void **state)
{
    uint8_t *want = NULL, in[150 * 101 * 3], out[32 * 32 * 3];
    size_t len = 0, at = 0;
    (void)state;
    CHECK_OK(fkt_file_read(&want, &len, FKT_TEST_VECTORS "/image_files/fit.bin", 1 << 20));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t w = cases[i][0], h = cases[i][1], s = cases[i][2];
        image_draw(in, w, h);
        for (int f = FKT_FILTER_BILINEAR; f <= FKT_FILTER_BOX; f++)
            for (int fit = FKT_FIT_PAD; fit <= FKT_FIT_STRETCH; fit++) {
                CHECK_OK(fkt_resize(out, s, in, w, h, (enum fkt_filter)f, (enum fkt_fit)fit));
                CHECK(at + (size_t)s * s * 3 <= len);
                if (memcmp(out, want + at, (size_t)s * s * 3))
                    fail_msg("%u x %u to %u, filter %d, fit %d: not Pillow's pixels", w, h, s, f, fit);
                at += (size_t)s * s * 3;
            }
    }
    CHECK(at == len);
    CHECK_OK(fkt_resize(out, 32, in, 150, 1, FKT_FILTER_LANCZOS, FKT_FIT_PAD)); /* one row is kept, not none */
    CHECK_STATUS(fkt_resize(out, 32, in, 9, 9, FKT_FILTER_BOX, (enum fkt_fit)3), FKT_E_ARG);
    fkt_free(want);
}

static void a_long_strip_needs_little_memory(void **state)
{
    static uint8_t in[16384 * 3];
    uint8_t out[64 * 64 * 3];
    (void)state;
    for (size_t i = 0; i < sizeof in; i++) in[i] = (uint8_t)(i % 3 * 100);
    CHECK_OK(fkt_resize(out, 64, in, 16384, 1, FKT_FILTER_LANCZOS,
                        FKT_FIT_CROP)); /* the whole would be 64 x 1,048,576 pixels */
    for (size_t i = 0; i < sizeof out; i++) CHECK(out[i] == i % 3 * 100);
    CHECK_OK(fkt_resize(out, 1, in, 1, 16384, FKT_FILTER_BOX, FKT_FIT_CROP));
    CHECK_STATUS(fkt_resize(out, 64, in, 64, 64, (enum fkt_filter)9, FKT_FIT_CROP), FKT_E_ARG);
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(resizing_is_pillows),
                                       cmocka_unit_test(padding_and_stretching_are_pillows),
                                       cmocka_unit_test(a_long_strip_needs_little_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
