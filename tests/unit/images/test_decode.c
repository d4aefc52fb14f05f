/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG and PNG bytes: the right pixels, or one clean refusal. */
#include "images/decode.h"

#include "base/file.h"
#include "fedkt/image.h"
#include "tests/support/check.h"
#include "tests/support/image_files.h"

#include <jpeglib.h>
#include <png.h>
#include <sys/resource.h>
#include <zlib.h>

static fkt_status decode(const uint8_t *data, size_t len, uint8_t **rgb, uint32_t *w, uint32_t *h, unsigned *note)
{
    uint8_t *exact =
        malloc(len ? len : 1); /* a block of its own length, so that reading past the end shows under asan */
    struct fkt_facts facts = {0};
    fkt_status st;
    CHECK(exact);
    memcpy(exact, data, len);
    st = fkt_image_decode_memory(exact, len, 0, rgb, w, h, &facts);
    *note = facts.note;
    free(exact);
    return st;
}

static void jpeg_is_pillows(void **state)
{
    static const struct {
        const char *name;
        unsigned note;
    } files[] = {
        {"rgb420", 0}, {"rgb444", 0}, {"progressive", 0}, {"grey", FKT_IMAGE_WAS_GREY}, {"cmyk", FKT_IMAGE_CMYK}};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[512];
        uint8_t *data = NULL, *want = NULL, *rgb = NULL;
        size_t len, n;
        uint32_t w, h;
        unsigned note;
        snprintf(path, sizeof path, FKT_TEST_VECTORS "/images/%s.jpg", files[i].name);
        CHECK_OK(fkt_file_read(&data, &len, path, 1 << 20));
        snprintf(path, sizeof path, FKT_TEST_VECTORS "/images/%s.rgb", files[i].name);
        CHECK_OK(fkt_file_read(&want, &n, path, 1 << 20));
        CHECK_OK(decode(data, len, &rgb, &w, &h, &note));
        CHECK(w == 45 && h == 38 && n == 45 * 38 * 3);
        CHECK(note == files[i].note);
        if (memcmp(rgb, want, n)) fail_msg("'%s.jpg' differs from Pillow's pixels", files[i].name);
        fkt_free(rgb);
        fkt_free(want);
        fkt_free(data);
    }
}

/* Decodes `samples` as a PNG of this kind, plain and interlaced, and compares with want (h, w, 3). */
static void check_png(const uint8_t *samples, uint32_t w, uint32_t h, int type, int depth, int transparent,
                      const uint8_t *want, unsigned want_note)
{
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        size_t len;
        uint8_t *png = image_png(&len, samples, w, h, type, depth, interlaced, transparent), *rgb = NULL;
        uint32_t gw, gh;
        unsigned note;
        CHECK_OK(decode(png, len, &rgb, &gw, &gh, &note));
        CHECK(gw == w && gh == h);
        if (note != want_note) fail_msg("type %d depth %d: note %u, want %u", type, depth, note, want_note);
        for (size_t i = 0; i < (size_t)w * h * 3; i++)
            if (rgb[i] != want[i])
                fail_msg("type %d depth %d interlace %d byte %zu: got %u, want %u", type, depth, interlaced, i, rgb[i],
                         want[i]);
        fkt_free(rgb);
        free(png);
    }
}

enum { W = 19, H = 13, N = W * H };

static uint8_t over_white(unsigned v, unsigned a) { return (uint8_t)((v * a + 255 * (255 - a) + 127) / 255); }

static void png_of_eight_bits(void **state)
{
    uint8_t rgb[N * 3], in[N * 4], want[N * 3];
    (void)state;
    image_draw(rgb, W, H);
    check_png(rgb, W, H, PNG_COLOR_TYPE_RGB, 8, 0, rgb, 0);
    for (int i = 0; i < N; i++) {
        in[i] = rgb[3 * i];
        for (int c = 0; c < 3; c++) want[3 * i + c] = in[i];
    }
    check_png(in, W, H, PNG_COLOR_TYPE_GRAY, 8, 0, want, FKT_IMAGE_WAS_GREY);
    for (int i = 0; i < N * 3; i++)
        if (!in[i / 3]) want[i] = 255; /* the colour 0 is see-through */
    check_png(in, W, H, PNG_COLOR_TYPE_GRAY, 8, 1, want, FKT_IMAGE_WAS_GREY | FKT_IMAGE_HAD_ALPHA);
    for (int i = 0; i < N; i++) {
        for (int c = 0; c < 3; c++) {
            in[4 * i + c] = rgb[3 * i + c];
            want[3 * i + c] = over_white(rgb[3 * i + c], (unsigned)(i * 7) & 255);
        }
        in[4 * i + 3] = (uint8_t)(i * 7);
    }
    check_png(in, W, H, PNG_COLOR_TYPE_RGB_ALPHA, 8, 0, want, FKT_IMAGE_HAD_ALPHA);
    for (int i = 0; i < N; i++) {
        in[2 * i] = rgb[3 * i + 1];
        in[2 * i + 1] = (uint8_t)(i * 11);
        for (int c = 0; c < 3; c++) want[3 * i + c] = over_white(rgb[3 * i + 1], (unsigned)(i * 11) & 255);
    }
    check_png(in, W, H, PNG_COLOR_TYPE_GRAY_ALPHA, 8, 0, want, FKT_IMAGE_WAS_GREY | FKT_IMAGE_HAD_ALPHA);
    for (int i = 0; i < N; i++) {
        unsigned v = in[i] = rgb[3 * i + 2];
        want[3 * i] = (uint8_t)v;
        want[3 * i + 1] = (uint8_t)(255 - v);
        want[3 * i + 2] = (uint8_t)(v / 2);
    }
    check_png(in, W, H, PNG_COLOR_TYPE_PALETTE, 8, 0, want, 0);
    for (int i = 0; i < N * 3; i++)
        if (!in[i / 3]) want[i] = 255;
    check_png(in, W, H, PNG_COLOR_TYPE_PALETTE, 8, 1, want, FKT_IMAGE_HAD_ALPHA);
}

static void png_of_other_depths(void **state)
{
    uint8_t in[N * 8], want[N * 3];
    (void)state;
    for (int depth = 1; depth <= 4; depth *= 2) {
        size_t stride = (size_t)(W * depth + 7) / 8;
        for (size_t i = 0; i < stride * H; i++) in[i] = (uint8_t)(i * 73 + 5);
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++) {
                int bit = x * depth,
                    v = in[stride * (size_t)y + (size_t)bit / 8] >> (8 - depth - bit % 8) & ((1 << depth) - 1);
                for (int c = 0; c < 3; c++) want[(y * W + x) * 3 + c] = (uint8_t)(v * 255 / ((1 << depth) - 1));
            }
        check_png(in, W, H, PNG_COLOR_TYPE_GRAY, depth, 0, want, FKT_IMAGE_WAS_GREY);
    }
    for (int i = 0; i < N * 6; i++) in[i] = (uint8_t)(i * 37);
    for (int i = 0; i < N * 3; i++) want[i] = in[2 * i];
    check_png(in, W, H, PNG_COLOR_TYPE_RGB, 16, 0, want, FKT_IMAGE_16BIT);
    for (int i = 0; i < N * 3; i++) want[i] = in[2 * (i / 3)];
    check_png(in, W, H, PNG_COLOR_TYPE_GRAY, 16, 0, want, FKT_IMAGE_16BIT | FKT_IMAGE_WAS_GREY);
}

/* Every shorter file is refused; every flipped bit gives pixels or a refusal, and leaks nothing. */
static void maim(const uint8_t *data, size_t len, size_t tail)
{
    uint8_t *copy = malloc(len), *rgb = NULL;
    uint32_t w, h;
    unsigned note;
    CHECK(copy);
    for (size_t cut = 0; cut + tail < len; cut++) {
        CHECK_STATUS(decode(data, cut, &rgb, &w, &h, &note), FKT_E_FORMAT);
        CHECK(!rgb);
    }
    for (size_t bit = 0; bit < len * 8; bit++) {
        fkt_status st;
        memcpy(copy, data, len);
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
        st = decode(copy, len, &rgb, &w, &h, &note);
        CHECK(st == FKT_OK || (st == FKT_E_FORMAT && !rgb));
        fkt_free(rgb);
    }
    CHECK(fkt_alloc_live() == 0);
    free(copy);
}

static void maimed_png_is_refused(void **state)
{
    uint8_t rgb[N * 3], *png;
    size_t len;
    (void)state;
    image_draw(rgb, W, H);
    png = image_png(&len, rgb, W, H, PNG_COLOR_TYPE_RGB, 8, 1, 0);
    maim(png, len, 0);
    free(png);
}

static void maimed_jpeg_is_refused(void **state)
{
    static const char *const names[] = {"grey", "progressive"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        uint8_t *data = NULL, *copy;
        size_t len;
        char path[512];
        snprintf(path, sizeof path, FKT_TEST_VECTORS "/images/%s.jpg", names[i]);
        CHECK_OK(fkt_file_read(&data, &len, path, 1 << 20));
        copy = malloc(len);
        CHECK(copy);
        memcpy(copy, data, len);
        fkt_free(data); /* maim() counts live blocks */
        maim(copy, len, 0);
        free(copy);
    }
}

static void lies_about_size_are_refused(void **state)
{
    uint8_t *png, *rgb = NULL, *data = NULL;
    size_t len;
    uint32_t w, h;
    unsigned note;
    (void)state;
    png = image_plain(&len, 4, 4, 1, 2, 3);
    memcpy(png + 16, "\x7f\xff\xff\xff\x7f\xff\xff\xff", 8); /* the sides; the checksum would be wrong too */
    CHECK_STATUS(decode(png, len, &rgb, &w, &h, &note), FKT_E_FORMAT);
    free(png);
    CHECK_OK(fkt_file_read(&data, &len, FKT_TEST_VECTORS "/images/grey.jpg", 1 << 20));
    for (size_t i = 0; i + 9 < len; i++)
        if (data[i] == 0xff && data[i + 1] == 0xc0) memcpy(data + i + 5, "\x50\x00\x40\x01", 4);
    CHECK_STATUS(decode(data, len, &rgb, &w, &h, &note), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "16385 x 20480"));
    fkt_free(data);
    CHECK_STATUS(decode((const uint8_t *)"", 0, &rgb, &w, &h, &note), FKT_E_FORMAT);
    CHECK_STATUS(decode((const uint8_t *)"GIF89a", 6, &rgb, &w, &h, &note), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "not a JPEG, PNG, WebP or TIFF") && fkt_error_hint()[0]);
}

static long peak_mib(void)
{
    struct rusage u;
    CHECK(getrusage(RUSAGE_SELF, &u) == 0);
    return u.ru_maxrss / 1024;
}

static void put32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* A good 8 x 8 PNG with `copies` chunks of this kind before its pixels; the length they claim may be a lie. */
static uint8_t *png_with(size_t *len, const char *kind, const uint8_t *body, uint32_t n, uint32_t claimed, int copies)
{
    size_t plain_len, head = 33; /* signature and IHDR */
    uint8_t *plain = image_plain(&plain_len, 8, 8, 1, 2, 3), *out = malloc(plain_len + (size_t)copies * (n + 12)), *p;
    CHECK(out);
    memcpy(out, plain, head);
    p = out + head;
    for (int i = 0; i < copies; i++, p += n + 12) {
        put32(p, claimed);
        memcpy(p + 4, kind, 4);
        memcpy(p + 8, body, n);
        put32(p + 8 + n, (uint32_t)crc32(0, p + 4, n + 4));
    }
    memcpy(p, plain + head, plain_len - head);
    *len = (size_t)(p - out) + plain_len - head;
    free(plain);
    return out;
}

/* Texts that unpack to a thousand times their size, or that claim a length of 2 GiB: stepped over, not believed. */
static void texts_in_a_png_take_no_memory(void **state)
{
    enum { TEXT = 7900000 };
    uint8_t *text = malloc(TEXT), *body, *png, *rgb = NULL;
    uLongf n = compressBound(TEXT);
    size_t len;
    uint32_t w, h;
    unsigned note;
    long before;
    (void)state;
    body = malloc(n + 3);
    CHECK(text && body);
    memset(text, 'x', TEXT);
    memcpy(body, "k\0", 3);
    CHECK(compress2(body + 3, &n, text, TEXT, 9) == Z_OK);
    free(text);
    before = peak_mib();
    png = png_with(&len, "zTXt", body, (uint32_t)n + 3, (uint32_t)n + 3, 60);
    CHECK_OK(decode(png, len, &rgb, &w, &h, &note));
    CHECK(w == 8 && h == 8 && rgb[0] == 1);
    fkt_free(rgb);
    free(png);
    free(body);
    png = png_with(&len, "zTXt", (const uint8_t *)"k\0", 3, 0x7ffffff0, 1);
    CHECK_STATUS(decode(png, len, &rgb, &w, &h, &note), FKT_E_FORMAT);
    free(png);
    if (peak_mib() - before > 100) fail_msg("texts took %ld MiB", peak_mib() - before);
}

/* A few bytes that claim 16384 x 16384 pixels, with a right checksum. */
static void huge_areas_are_refused(void **state)
{
    uint8_t *png, *rgb = NULL, *data = NULL;
    size_t len;
    uint32_t w, h;
    unsigned note;
    long before = peak_mib();
    (void)state;
    png = image_plain(&len, 4, 4, 1, 2, 3);
    put32(png + 16, 16384);
    put32(png + 20, 16384);
    put32(png + 29, (uint32_t)crc32(0, png + 12, 17));
    CHECK_STATUS(decode(png, len, &rgb, &w, &h, &note), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "the PNG is 16384 x 16384 pixels") && strstr(fkt_error_text(), "67108864 in all"));
    put32(png + 16, 16385);
    put32(png + 20, 1);
    put32(png + 29, (uint32_t)crc32(0, png + 12, 17));
    CHECK_STATUS(decode(png, len, &rgb, &w, &h, &note), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "the PNG is 16385 x 1 pixels"));
    free(png);
    CHECK_OK(fkt_file_read(&data, &len, FKT_TEST_VECTORS "/images/grey.jpg", 1 << 20));
    for (size_t i = 0; i + 9 < len; i++)
        if (data[i] == 0xff && data[i + 1] == 0xc0) memcpy(data + i + 5, "\x20\x01\x20\x00", 4);
    CHECK_STATUS(decode(data, len, &rgb, &w, &h, &note), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "the JPEG is 8192 x 8193 pixels") && strstr(fkt_error_text(), "67108864 in all"));
    fkt_free(data);
    CHECK(peak_mib() - before < 100);
}

/* A black side x side JPEG that sends each of its 63 waves in three scans of its own, and the mean in one: 190. */
static uint8_t *jpeg_of_190_scans(size_t *len, uint32_t side)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr err;
    jpeg_scan_info scans[190];
    uint8_t *row = calloc(1, side), *out = NULL;
    unsigned long n = 0;
    CHECK(row);
    c.err = jpeg_std_error(&err);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &out, &n);
    c.image_width = c.image_height = side;
    c.input_components = 1;
    c.in_color_space = JCS_GRAYSCALE;
    jpeg_set_defaults(&c);
    scans[0] = (jpeg_scan_info){.comps_in_scan = 1};
    for (int i = 0; i < 189; i++) {
        int wave = 1 + i % 63, bit = 2 - i / 63;
        scans[1 + i] =
            (jpeg_scan_info){.comps_in_scan = 1, .Ss = wave, .Se = wave, .Ah = bit == 2 ? 0 : bit + 1, .Al = bit};
    }
    c.scan_info = scans;
    c.num_scans = 190;
    jpeg_start_compress(&c, TRUE);
    while (c.next_scanline < side) (void)jpeg_write_scanlines(&c, &row, 1);
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    free(row);
    *len = n;
    return out;
}

static void scans_times_pixels_are_bounded(void **state)
{
    uint8_t *jpeg, *rgb = NULL;
    size_t len;
    uint32_t w, h;
    unsigned note;
    (void)state;
    jpeg = jpeg_of_190_scans(&len, 64);
    CHECK_OK(decode(jpeg, len, &rgb, &w, &h, &note));
    fkt_free(rgb);
    free(jpeg);
    jpeg = jpeg_of_190_scans(&len, 4096); /* 2^24 pixels: 128 scans are allowed */
    CHECK_STATUS(decode(jpeg, len, &rgb, &w, &h, &note), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "too many scans for its size: 129 of 4096 x 4096"));
    free(jpeg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_in_a_png_take_no_memory),
        cmocka_unit_test(huge_areas_are_refused),
        cmocka_unit_test(scans_times_pixels_are_bounded),
        cmocka_unit_test(jpeg_is_pillows),
        cmocka_unit_test(png_of_eight_bits),
        cmocka_unit_test(png_of_other_depths),
        cmocka_unit_test(maimed_png_is_refused),
        cmocka_unit_test(maimed_jpeg_is_refused),
        cmocka_unit_test(lies_about_size_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
