/* SPDX-License-Identifier: Apache-2.0 */
/* The golden image is the one that the recorded latents were made from. */
#include "codec/golden.h"
#include "crypto/hash.h"
#include "tests/support/check.h"

static void the_image_is_fixed(void **state)
{
    static uint8_t rgb[FKT_GOLDEN_SIZE * FKT_GOLDEN_SIZE * 3], one[3] = {9, 9, 9};
    char hash[FKT_HASH_HEX];
    (void)state;
    fkt_golden_image(rgb, FKT_GOLDEN_SIZE);
    fkt_hash_bytes_hex(hash, rgb, sizeof rgb);
    /* oracle/golden_image.py makes the same bytes from its own formula */
    assert_string_equal(hash, "88c94c85ddaef48d0d95ecd3eaf363cf338a0d0205bb0f5e5b6a8910145a7e14");
    fkt_golden_image(one, 1);
    CHECK(one[0] != 9 || one[1] != 9 || one[2] != 9);
}

static void a_codec_brings_it_back(void **state)
{
    struct fkt_codec_spec spec = {.name = "dct", .size = FKT_GOLDEN_SIZE, .dim = FKT_GOLDEN_SIZE * FKT_GOLDEN_SIZE};
    struct fkt_codec *codec = NULL;
    struct fkt_golden g;
    (void)state;
    CHECK_OK(fkt_codec_open(&codec, &spec));
    CHECK_OK(fkt_golden_run(&g, codec, NULL));
    CHECK(g.psnr > 25 && g.psnr < 100 && isnan(g.max_error) && !g.recorded);
    CHECK_OK(fkt_golden_run(&g, codec, "a6b8c0fda4aad50784e543389e0239c72c5e31e9775c9e612ea8333bf3a77dcb"));
    CHECK(g.max_error > 1); /* recorded, and not for this codec */
    fkt_codec_free(codec);
    spec.size *= 2;
    CHECK_OK(fkt_codec_open(&codec, &spec));
    CHECK_OK(fkt_golden_run(&g, codec, "a6b8c0fda4aad50784e543389e0239c72c5e31e9775c9e612ea8333bf3a77dcb"));
    CHECK(g.recorded && isnan(g.max_error)); /* recorded, and not for this size */
    fkt_codec_free(codec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_image_is_fixed), cmocka_unit_test(a_codec_brings_it_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
