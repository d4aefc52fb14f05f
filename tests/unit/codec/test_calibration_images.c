/* SPDX-License-Identifier: Apache-2.0 */
/* The list of a calibration's images: what is in it is found, nothing else is, and a list that cannot be is refused. */
#include "fedkt/advanced/calibration.h"

#include "codec/codec.h"

#include "tests/support/check.h"

enum { N = 500 };

/* Digests whose first eight bytes are 3 i, big-endian: between any two there are two that are not in the list. */
static void digest(uint8_t out[32], uint32_t i)
{
    memset(out, 0xee, 32);
    memset(out, 0, 8);
    for (int b = 0; b < 4; b++) out[7 - b] = (uint8_t)(i >> 8 * b);
}

static void every_image_is_found_and_no_other(void **state)
{
    static uint8_t all[N + 2][32];
    uint8_t one[32];
    struct fkt_calibration cal = {.images = N + 2};
    (void)state;
    for (uint32_t i = 0; i < N; i++) digest(all[i], 3 * (i * 7 % N)); /* in no order */
    digest(all[N], 3 * 17);                                           /* two of them twice */
    digest(all[N + 1], 3 * 17);
    CHECK_OK(fkt_calibration_set_images(&cal, (const uint8_t(*)[32])all, N + 2));
    assert_int_equal(cal.n_digests, N);
    for (uint32_t i = 0; i < 3 * N; i++) {
        digest(one, i);
        assert_int_equal(fkt_calibration_holds(&cal, one), i % 3 == 0);
    }
    fkt_calibration_clear(&cal);
    assert_int_equal(fkt_calibration_holds(&cal, one), 0); /* no list: nothing in it */
}

static void the_order_of_the_images_does_not_show(void **state)
{
    uint8_t two[2][32], back[2][32];
    struct fkt_calibration a = {.images = 2}, b = {.images = 2}, c = {.images = 2};
    (void)state;
    digest(two[0], 5), digest(two[1], 9);
    digest(back[0], 9), digest(back[1], 5);
    CHECK_OK(fkt_calibration_set_images(&a, (const uint8_t(*)[32])two, 2));
    CHECK_OK(fkt_calibration_set_images(&b, (const uint8_t(*)[32])back, 2));
    CHECK_OK(fkt_calibration_set_images(&c, (const uint8_t(*)[32])two, 1));
    assert_string_equal(a.digests_sha256, b.digests_sha256);
    assert_string_not_equal(a.digests_sha256, c.digests_sha256);
    CHECK_OK(fkt_calibration_set_images(&c, (const uint8_t(*)[32])two, 2)); /* replaces */
    assert_string_equal(a.digests_sha256, c.digests_sha256);
    fkt_calibration_clear(&a);
    fkt_calibration_clear(&b);
    fkt_calibration_clear(&c);
    CHECK(fkt_alloc_live() == 0);
}

static void lists_that_cannot_be_are_refused(void **state)
{
    static const uint8_t good[24] = {[7] = 1, [15] = 2, [23] = 3}, twice[24] = {[7] = 1, [15] = 1, [23] = 3},
                         back[24] = {[7] = 1, [15] = 3, [23] = 2};
    struct fkt_calibration cal = {.images = 3};
    (void)state;
    CHECK_STATUS(fkt_calibration_set_images(&cal, (const uint8_t(*)[32])good, 0), FKT_E_ARG);
    CHECK_STATUS(fkt_calibration_set_images(&cal, (const uint8_t(*)[32])good, 4), FKT_E_ARG);
    CHECK_STATUS(fkt_calibration_take_digests(&cal, good, 0), FKT_E_FORMAT);
    CHECK_STATUS(fkt_calibration_take_digests(&cal, good, UINT64_MAX), FKT_E_FORMAT);
    CHECK_STATUS(fkt_calibration_take_digests(&cal, twice, 3), FKT_E_FORMAT);
    CHECK_STATUS(fkt_calibration_take_digests(&cal, back, 3), FKT_E_FORMAT);
    cal.images = 2;
    CHECK_STATUS(fkt_calibration_take_digests(&cal, good, 3), FKT_E_FORMAT);
    CHECK(!cal.digests && !*cal.digests_sha256);
    cal.images = 3;
    CHECK_OK(fkt_calibration_take_digests(&cal, good, 3));
    fkt_calibration_clear(&cal);
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_image_is_found_and_no_other),
        cmocka_unit_test(the_order_of_the_images_does_not_show),
        cmocka_unit_test(lists_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
