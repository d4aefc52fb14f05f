/* SPDX-License-Identifier: Apache-2.0 */
/* image_files.c - see images.h. libpng and libarchive write what our own readers must read. */
#include "image_files.h"

#include "base/file.h"
#include "check.h"

#include <archive.h>
#include <archive_entry.h>
#include <png.h>

void image_draw(uint8_t *out, uint32_t w, uint32_t h)
{
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            for (int64_t c = 0; c < 3; c++) {
                int64_t kind = (x / 11 + y / 7) % 3, v;
                if (kind == 0) v = (x * (3 + c) + y * (5 - c)) % 256;
                else if (kind == 1) v = (x / 5 + y / 3 + c) % 2 == 0 ? 255 : 0;
                else v = ((x * 7919 + y * 104729 + c * 1299709 + x * y * 31) >> 3) & 255;
                out[(y * w + x) * 3 + c] = (uint8_t)v;
            }
}

struct sink {
    uint8_t *data;
    size_t len;
};

static void put(png_structp png, png_bytep data, size_t n)
{
    struct sink *s = png_get_io_ptr(png);
    s->data = realloc(s->data, s->len + n);
    CHECK(s->data);
    memcpy(s->data + s->len, data, n);
    s->len += n;
}

static void flush(png_structp png) { (void)png; }

static void set_colours(png_structp png, png_infop info, int type, int depth, int transparent)
{
    png_color palette[256];
    png_byte alpha[1] = {0};
    png_color_16 colour;
    memset(&colour, 0, sizeof colour);
    if (type == PNG_COLOR_TYPE_PALETTE) {
        for (int i = 0; i < 256; i++) palette[i] = (png_color){(png_byte)i, (png_byte)(255 - i), (png_byte)(i / 2)};
        png_set_PLTE(png, info, palette, 1 << depth);
    }
    if (transparent) png_set_tRNS(png, info, alpha, type == PNG_COLOR_TYPE_PALETTE ? 1 : 0, &colour);
}

uint8_t *image_png(size_t *len, const uint8_t *samples, uint32_t w, uint32_t h, int type, int depth, int interlaced,
                   int transparent)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_bytep *rows = calloc(h, sizeof *rows);
    struct sink s = {NULL, 0};
    size_t stride;
    CHECK(png && info && rows);
    png_set_write_fn(png, &s, put, flush);
    png_set_IHDR(png, info, w, h, depth, type, interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    set_colours(png, info, type, depth, transparent);
    png_write_info(png, info);
    stride = png_get_rowbytes(png, info);
    for (uint32_t y = 0; y < h; y++) {
        rows[y] = malloc(stride);
        CHECK(rows[y]);
        memcpy(rows[y], samples + stride * y, stride);
    }
    png_write_image(png, rows);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    for (uint32_t y = 0; y < h; y++) free(rows[y]);
    free(rows);
    *len = s.len;
    return s.data;
}

uint8_t *image_plain(size_t *len, uint32_t w, uint32_t h, uint8_t r, uint8_t g, uint8_t b)
{
    uint8_t *rgb = malloc((size_t)w * h * 3), *png;
    CHECK(rgb);
    for (size_t i = 0; i < (size_t)w * h; i++) {
        rgb[3 * i] = r;
        rgb[3 * i + 1] = g;
        rgb[3 * i + 2] = b;
    }
    png = image_png(len, rgb, w, h, PNG_COLOR_TYPE_RGB, 8, 0, 0);
    free(rgb);
    return png;
}

void scratch_write(const struct scratch *s, const char *name, const void *data, size_t len)
{
    char path[512], *slash;
    FILE *f;
    CHECK((size_t)snprintf(path, sizeof path, "%s/%s", s->dir, name) < sizeof path);
    slash = strrchr(path, '/');
    *slash = '\0';
    CHECK_OK(fkt_mkdirs(path));
    *slash = '/';
    f = fopen(path, "wb");
    CHECK(f && fwrite(data, 1, len, f) == len && fclose(f) == 0);
}

static void set_format(struct archive *a, const char *format, const char *filter)
{
    if (!strcmp(format, "ustar")) CHECK(archive_write_set_format_ustar(a) == ARCHIVE_OK);
    if (!strcmp(format, "pax")) CHECK(archive_write_set_format_pax(a) == ARCHIVE_OK);
    if (!strcmp(format, "gnutar")) CHECK(archive_write_set_format_gnutar(a) == ARCHIVE_OK);
    if (!strcmp(format, "zip")) {
        CHECK(archive_write_set_format_zip(a) == ARCHIVE_OK);
        CHECK(archive_write_set_format_option(a, "zip", "compression", filter) == ARCHIVE_OK);
    }
    if (!strcmp(format, "raw")) CHECK(archive_write_set_format_raw(a) == ARCHIVE_OK);
    if (!strcmp(filter, "gzip+bzip2"))
        CHECK(archive_write_add_filter_gzip(a) == ARCHIVE_OK && archive_write_add_filter_bzip2(a) == ARCHIVE_OK);
    if (!strcmp(filter, "gzip")) CHECK(archive_write_add_filter_gzip(a) == ARCHIVE_OK);
    if (!strcmp(filter, "xz")) CHECK(archive_write_add_filter_xz(a) == ARCHIVE_OK);
    if (!strcmp(filter, "zstd")) CHECK(archive_write_add_filter_zstd(a) == ARCHIVE_OK);
    if (!strcmp(filter, "bzip2")) CHECK(archive_write_add_filter_bzip2(a) == ARCHIVE_OK);
}

void scratch_archive(const struct scratch *s, const char *name, const char *format, const char *filter,
                     const struct packed_file *files, size_t n)
{
    char path[512];
    struct archive *a = archive_write_new();
    CHECK(a && (size_t)snprintf(path, sizeof path, "%s/%s", s->dir, name) < sizeof path);
    set_format(a, format, filter);
    CHECK(archive_write_open_filename(a, path) == ARCHIVE_OK);
    for (size_t i = 0; i < n; i++) {
        struct archive_entry *e = archive_entry_new();
        archive_entry_set_pathname(e, files[i].name);
        archive_entry_set_size(e, (la_int64_t)files[i].len);
        archive_entry_set_filetype(e, AE_IFREG);
        archive_entry_set_perm(e, 0644);
        CHECK(archive_write_header(a, e) >= ARCHIVE_WARN);
        CHECK(archive_write_data(a, files[i].data, files[i].len) == (la_ssize_t)files[i].len);
        archive_entry_free(e);
    }
    CHECK(archive_write_free(a) == ARCHIVE_OK);
}
