/* SPDX-License-Identifier: Apache-2.0 */
#include "fedkt/image.h"
#include "images/font.h"
#include "tests/support/check.h"

static const uint8_t *pixel(const uint8_t *rgb, uint32_t width, size_t x, size_t y)
{
    return rgb + (y * width + x) * 3;
}

/* Tiles of one colour each, number i as (i, 100, 200): found again at their places, with paper between them. */
static void tiles_stand_in_rows(void **state)
{
    enum { ROWS = 3, COLS = 4, SIZE = 20 };
    uint8_t *tiles = malloc(ROWS * COLS * SIZE * SIZE * 3), *rgb = NULL;
    uint32_t w, h;
    (void)state;
    for (size_t i = 0; i < ROWS * COLS * SIZE * SIZE; i++) {
        tiles[3 * i] = (uint8_t)(i / (SIZE * SIZE));
        tiles[3 * i + 1] = 100;
        tiles[3 * i + 2] = 200;
    }
    CHECK_OK(fkt_grid(&rgb, &w, &h, tiles, ROWS, COLS, SIZE, NULL));
    CHECK(w == 2 * 12 + 4 * 80 + 3 * 4 && h == 2 * 12 + 3 * 80 + 2 * 4); /* 20 px, enlarged by 4 to reach 64 */
    for (size_t r = 0; r < ROWS; r++)
        for (size_t c = 0; c < COLS; c++)
            for (size_t e = 0; e < 80; e += 79) {
                const uint8_t *p = pixel(rgb, w, 12 + c * 84 + e, 12 + r * 84 + e);
                CHECK(p[0] == r * COLS + c && p[1] == 100 && p[2] == 200);
            }
    CHECK(pixel(rgb, w, 12 + 80, 50)[0] == 252 && pixel(rgb, w, 12 + 83, 50)[1] == 252 &&
          pixel(rgb, w, 11, 11)[2] == 252);
    fkt_image_free(rgb);
    free(tiles);
    CHECK(fkt_alloc_live() == 0);
}

static void pixels_are_repeated_not_blurred(void **state)
{
    uint8_t tile[2 * 2 * 3] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 9}, *rgb = NULL;
    uint32_t w, h;
    (void)state;
    CHECK_OK(fkt_grid(&rgb, &w, &h, tile, 1, 1, 2, NULL));
    CHECK(w == 88 && h == 88);
    for (size_t y = 0; y < 64; y++)
        for (size_t x = 0; x < 64; x++)
            assert_memory_equal(pixel(rgb, w, 12 + x, 12 + y), tile + (y / 32 * 2 + x / 32) * 3, 3);
    fkt_image_free(rgb);
}

static size_t dark_left_of(const uint8_t *rgb, uint32_t w, size_t x1, size_t y0, size_t y1)
{
    size_t n = 0;
    for (size_t y = y0; y < y1; y++)
        for (size_t x = 0; x < x1; x++) n += pixel(rgb, w, x, y)[0] < 128;
    return n;
}

static void names_are_drawn_beside_their_rows(void **state)
{
    static const char *const names[] = {"ant", "",
                                        "a very long name that would otherwise push all of the images off the sheet"};
    uint8_t *tiles = calloc(3 * 64 * 64, 3), *rgb = NULL;
    uint32_t w, h;
    size_t x0;
    (void)state;
    memset(tiles, 255, 3 * 64 * 64 * 3);
    CHECK_OK(fkt_grid(&rgb, &w, &h, tiles, 3, 1, 64, names));
    x0 = w - 12 - 64;
    CHECK(w <= 12 + 220 + 12 + 64 + 12);
    CHECK(dark_left_of(rgb, w, x0, 12, 76) > 30);
    CHECK(dark_left_of(rgb, w, x0, 80, 144) == 0);
    CHECK(dark_left_of(rgb, w, x0, 148, 212) > 300);
    CHECK(dark_left_of(rgb, w, 12, 0, h) == 0 && dark_left_of(rgb, w, x0, 0, h) == dark_left_of(rgb, w, x0 - 8, 0, h));
    fkt_image_free(rgb);
    free(tiles);
}

static void every_message_has_its_own_shape(void **state)
{
    uint8_t seen[95][20 * 9 * 3], white[20 * 9 * 3];
    const uint8_t black[3] = {0, 0, 0};
    (void)state;
    memset(white, 255, sizeof white);
    for (int c = 32; c < 127; c++) {
        char text[2] = {(char)c, 0};
        uint8_t *s = seen[c - 32];
        memcpy(s, white, sizeof white);
        fkt_font_draw(s, 20, 9, 0, 0, 1, black, text);
        CHECK((memcmp(s, white, sizeof white) == 0) == (c == ' '));
        for (int d = 33; d < c; d++) CHECK(memcmp(s, seen[d - 32], sizeof white) != 0);
        CHECK(fkt_font_width(text) >= 1 && fkt_font_width(text) <= 5);
    }
    CHECK(fkt_font_width("\xc3\xa9") == fkt_font_width("?"));
    fkt_font_draw(seen[0], 20, 9, 18, 5, 3, black, "WW"); /* runs over the edge; the sanitizer watches */
}

static void a_sheet_says_that_classes_are_missing(void **state)
{
    uint8_t tiles[2 * 3] = {0}, *all = NULL, *some = NULL;
    uint32_t w, h, w2, h2;
    size_t dark = 0;
    (void)state;
    CHECK_OK(fkt_grid_of(&all, &w, &h, tiles, 2, 1, 1, NULL, 2));
    CHECK_OK(fkt_grid_of(&some, &w2, &h2, tiles, 2, 1, 1, NULL, 100));
    CHECK(h2 > h && w2 > w); /* a line below, and room for it */
    for (size_t i = (size_t)w2 * h * 3; i < (size_t)w2 * h2 * 3; i++) dark += some[i] < 100;
    CHECK(dark > 100);
    fkt_image_free(all);
    fkt_image_free(some);
}

static void impossible_sheets_are_refused(void **state)
{
    uint8_t tile[3] = {0}, *rgb = NULL;
    uint32_t w, h;
    (void)state;
    CHECK_STATUS(fkt_grid(&rgb, &w, &h, tile, 0, 1, 1, NULL), FKT_E_ARG);
    CHECK_STATUS(fkt_grid(&rgb, &w, &h, tile, 1, 0, 1, NULL), FKT_E_ARG);
    CHECK_STATUS(fkt_grid(&rgb, &w, &h, tile, 1, 1, 0, NULL), FKT_E_ARG);
    CHECK_STATUS(fkt_grid(&rgb, &w, &h, tile, 2000, 1, 64, NULL), FKT_E_ARG);
    CHECK_STATUS(fkt_grid(&rgb, &w, &h, tile, SIZE_MAX, SIZE_MAX, 64, NULL), FKT_E_ARG);
    CHECK(rgb == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_stand_in_rows),
        cmocka_unit_test(pixels_are_repeated_not_blurred),
        cmocka_unit_test(names_are_drawn_beside_their_rows),
        cmocka_unit_test(every_message_has_its_own_shape),
        cmocka_unit_test(a_sheet_says_that_classes_are_missing),
        cmocka_unit_test(impossible_sheets_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
