/* SPDX-License-Identifier: Apache-2.0 */
/* Files of strangers (tests/vectors/image_files): the pixels that index.txt names, or a refusal with its words. */
#include "images/decode.h"

#include "base/file.h"
#include "fedkt/image.h"
#include "tests/support/check.h"

#define FOLDER FKT_TEST_VECTORS "/image_files/"

struct line {
    char name[64], rest[128];
    unsigned bits, w, h;
};

static uint8_t *read_file(size_t *len, const char *name)
{
    char path[512];
    uint8_t *data = NULL;
    snprintf(path, sizeof path, FOLDER "%s", name);
    CHECK_OK(fkt_file_read(&data, len, path, 1 << 20));
    return data;
}

/* Calls `with` for each line of the index; fails unless there are as many files to read and to refuse as there should
 * be at least. */
static void each(void (*with)(const struct line *l, const uint8_t *data, size_t len), int refused, int at_least)
{
    size_t n, len;
    uint8_t *index = read_file(&n, "index.txt");
    int seen = 0;
    for (char *at = (char *)index, *end; *at; at = end + 1) {
        struct line l;
        uint8_t *data;
        end = strchr(at, '\n');
        CHECK(end);
        *end = '\0';
        CHECK(sscanf(at, "%63s %u %u %u %127[^\n]", l.name, &l.bits, &l.w, &l.h, l.rest) == 5);
        if ((l.w == 0) != refused) continue;
        data = read_file(&len, l.name);
        with(&l, data, len);
        fkt_free(data);
        seen++;
    }
    CHECK(seen >= at_least);
    fkt_free(index);
}

/* Whatever depth is stated: with alpha, inverted, turned, in strips and tiles. */
static void digest_is_of_no_depth(const uint8_t *data, size_t len, const struct fkt_facts *facts)
{
    for (unsigned bits = 9; bits <= 16; bits++) {
        uint8_t *rgb = NULL;
        uint32_t w, h;
        struct fkt_facts again = {0};
        fkt_status st = fkt_image_decode_memory(data, len, bits, &rgb, &w, &h, &again);
        CHECK(st == FKT_OK || (st == FKT_E_FORMAT && bits < 16)); /* has larger samples */
        if (st == FKT_OK) CHECK(again.wide && !memcmp(again.sha256, facts->sha256, sizeof again.sha256));
        fkt_free(rgb);
    }
}

static void pixels_are_equal(const struct line *l, const uint8_t *data, size_t len)
{
    uint8_t *rgb = NULL, *want;
    size_t n;
    uint32_t w, h;
    struct fkt_facts facts = {0};
    fkt_status st = fkt_image_decode_memory(data, len, l->bits, &rgb, &w, &h, &facts);
    if (st != FKT_OK) fail_msg("'%s': %s", l->name, fkt_error_text());
    want = read_file(&n, l->rest);
    if (w != l->w || h != l->h || n != (size_t)w * h * 3) fail_msg("'%s' is %u x %u", l->name, w, h);
    for (size_t i = 0; i < n; i++)
        if (rgb[i] != want[i]) fail_msg("'%s' byte %zu: got %u, want %u", l->name, i, rgb[i], want[i]);
    CHECK(!(facts.note & FKT_IMAGE_TURNED) == (strncmp(l->name, "turned-", 7) != 0 || l->name[7] == '1'));
    CHECK(!(facts.note & FKT_IMAGE_HAD_ALPHA) == (strncmp(l->name, "alpha", 5) != 0));
    CHECK(!facts.wide == !(facts.note & FKT_IMAGE_16BIT));
    if (facts.wide) digest_is_of_no_depth(data, len, &facts);
    fkt_free(want);
    fkt_free(rgb);
}

static void files_of_strangers_have_their_pixels(void **state)
{
    (void)state;
    each(pixels_are_equal, 0, 50);
    CHECK(fkt_alloc_live() == 0);
}

static void is_refused(const struct line *l, const uint8_t *data, size_t len)
{
    uint8_t *rgb = NULL;
    uint32_t w, h;
    struct fkt_facts facts = {0};
    CHECK_STATUS(fkt_image_decode_memory(data, len, l->bits, &rgb, &w, &h, &facts), FKT_E_FORMAT);
    CHECK(!rgb);
    if (!strstr(fkt_error_text(), l->rest)) fail_msg("'%s': '%s', want '%s'", l->name, fkt_error_text(), l->rest);
    if (strstr(l->rest, "pixels") == NULL && !fkt_error_hint()[0]) fail_msg("'%s' has no hint", l->name);
}

static void what_is_not_read_is_refused_in_words(void **state)
{
    (void)state;
    each(is_refused, 1, 12);
    CHECK(fkt_alloc_live() == 0);
}

static const char *const maimed[] = {"turned-6.webp", "lossy.webp", "turned-6.tif", "tiles16.tif", "turned-6.jpg"};

/* Cut anywhere, or with any bit turned: pixels or a clean refusal, and nothing leaks. */
static void maimed_files_are_harmless(void **state)
{
    (void)state;
    for (size_t f = 0; f < sizeof maimed / sizeof *maimed; f++) {
        size_t len;
        uint8_t *data = read_file(&len, maimed[f]), *copy = malloc(len), *rgb = NULL;
        uint32_t w, h;
        struct fkt_facts facts = {0};
        CHECK(copy);
        for (size_t k = 0; k < len + 8 * len; k++) {
            size_t n = k < len ? k : len;
            uint8_t *exact = malloc(n ? n : 1); /* of its own length: asan sees reads past the end */
            fkt_status st;
            CHECK(exact);
            memcpy(copy, data, len);
            if (k >= len) copy[(k - len) / 8] ^= (uint8_t)(1 << (k - len) % 8);
            memcpy(exact, copy, n);
            st = fkt_image_decode_memory(exact, n, 0, &rgb, &w, &h, &facts);
            CHECK(st == FKT_OK || (st == FKT_E_FORMAT && !rgb));
            fkt_free(rgb);
            rgb = NULL;
            free(exact);
        }
        free(copy);
        fkt_free(data);
    }
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_strangers_have_their_pixels),
        cmocka_unit_test(what_is_not_read_is_refused_in_words),
        cmocka_unit_test(maimed_files_are_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
