/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/rng.h"
#include "fedkt/image.h"
#include "tests/support/check.h"

#include <png.h>
#include <sys/stat.h>
#include <unistd.h>

static void fill(uint8_t *rgb, size_t n, uint64_t seed)
{
    struct fkt_rng r;
    fkt_rng_init(&r, seed, 0);
    for (size_t i = 0; i < n; i++) rgb[i] = (uint8_t)fkt_rng_below(&r, 256);
}

/* libpng's simplified reader is a different path through the library than the writer we use. */
static void check_pixels(const uint8_t *png, size_t len, const uint8_t *rgb, uint32_t w, uint32_t h)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    uint8_t *back = malloc((size_t)w * h * 3);
    CHECK(png_image_begin_read_from_memory(&image, png, len));
    CHECK(image.width == w && image.height == h);
    image.format = PNG_FORMAT_RGB;
    CHECK(png_image_finish_read(&image, NULL, back, 0, NULL));
    assert_memory_equal(back, rgb, (size_t)w * h * 3);
    free(back);
}

static void pixels_come_back(void **state)
{
    static const uint32_t sides[][2] = {{1, 1}, {32, 32}, {3, 200}, {257, 5}};
    uint8_t *rgb = malloc(257 * 200 * 3);
    (void)state;
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        uint8_t *png = NULL, *again = NULL;
        size_t len, len2;
        fill(rgb, (size_t)sides[i][0] * sides[i][1] * 3, i);
        CHECK_OK(fkt_png_encode(&png, &len, rgb, sides[i][0], sides[i][1]));
        CHECK_OK(fkt_png_encode(&again, &len2, rgb, sides[i][0], sides[i][1]));
        CHECK(len == len2 && !memcmp(png, again, len));
        check_pixels(png, len, rgb, sides[i][0], sides[i][1]);
        fkt_image_free(png);
        fkt_image_free(again);
    }
    free(rgb);
    CHECK(fkt_alloc_live() == 0);
}

static void the_file_is_whole_or_absent(void **state)
{
    char path[] = "/tmp/fkt_png_XXXXXX";
    char file[64];
    uint8_t rgb[12 * 7 * 3], *bytes = NULL;
    size_t len;
    (void)state;
    CHECK(mkdtemp(path));
    snprintf(file, sizeof file, "%s/a.png", path);
    fill(rgb, sizeof rgb, 9);
    CHECK_OK(fkt_png_write(file, rgb, 12, 7, 0));
    CHECK_OK(fkt_file_read(&bytes, &len, file, 1 << 20));
    check_pixels(bytes, len, rgb, 12, 7);
    CHECK_STATUS(fkt_png_write(file, rgb, 12, 7, 0), FKT_E_EXISTS);
    CHECK_OK(fkt_png_write(file, rgb, 12, 7, 1));
    unlink(file);
    CHECK_STATUS(fkt_png_write(file, rgb, 0, 7, 0), FKT_E_ARG);
    CHECK_STATUS(fkt_png_write(file, rgb, 12, 70000, 0), FKT_E_ARG);
    CHECK(access(file, F_OK) != 0);
    CHECK_STATUS(fkt_png_write("/nonexistent/folder/a.png", rgb, 12, 7, 0), FKT_E_IO);
    fkt_free(bytes);
    CHECK(rmdir(path) == 0);
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_come_back),
        cmocka_unit_test(the_file_is_whole_or_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
