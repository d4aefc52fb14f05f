/* SPDX-License-Identifier: Apache-2.0 */
/* png_write.c - RGB pixels as a PNG, in memory or as a file that is whole or absent.
 *
 * libpng does the format; its memory comes from base/alloc.h, so that a fault test reaches every one of its
 * allocations, and its errors arrive by longjmp at one place. Each adaptive filter is tried per row and zlib runs at
 * its default level: for thumbnails the time lies in the file system, not here. No time stamp, no text chunk: the same
 * pixels are the same bytes. Cost: about 0.1 ms for 32 x 32. */
#include "fedkt/image.h"

#include "base/alloc.h"
#include "base/file.h"

#include <png.h>
#include <setjmp.h>
#include <string.h>

struct sink {
    uint8_t *data;
    size_t len, cap;
    int no_memory;
    char message[160];
};

static png_voidp take(png_structp png, png_alloc_size_t size)
{
    struct sink *s = png_get_mem_ptr(png);
    void *p = fkt_malloc_raw(size);
    if (!p) s->no_memory = 1;
    return p;
}

static void give(png_structp png, png_voidp p)
{
    (void)png;
    fkt_free(p);
}

static void on_error(png_structp png, png_const_charp message)
{
    struct sink *s = png_get_error_ptr(png);
    snprintf(s->message, sizeof s->message, "%s", message);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static void put(png_structp png, png_bytep data, size_t n)
{
    struct sink *s = png_get_io_ptr(png);
    if (s->cap - s->len < n) {
        size_t cap = s->cap ? s->cap : 4096;
        while (cap - s->len < n) cap *= 2;
        if (fkt_realloc(&s->data, cap) != FKT_OK) {
            s->no_memory = 1;
            png_error(png, "out of memory");
        }
        s->cap = cap;
    }
    memcpy(s->data + s->len, data, n);
    s->len += n;
}

static void flush(png_structp png) { (void)png; }

/* Everything between setjmp and its return; locals that change in between would need `volatile`, so there are none. */
static int compress(struct sink *s, png_structp png, png_infop info, const uint8_t *rgb, uint32_t width,
                    uint32_t height)
{
    if (setjmp(png_jmpbuf(png))) return 0;
    png_set_write_fn(png, s, put, flush);
    png_set_IHDR(png, info, width, height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_ALL_FILTERS);
    png_set_compression_level(png, 6);
    png_write_info(png, info);
    for (uint32_t y = 0; y < height; y++) png_write_row(png, rgb + (size_t)y * width * 3);
    png_write_end(png, NULL);
    return 1;
}

fkt_status fkt_png_encode(uint8_t **out, size_t *len, const uint8_t *rgb, uint32_t width, uint32_t height)
{
    struct sink s = {0};
    png_structp png = NULL;
    png_infop info = NULL;
    fkt_status st = FKT_OK;

    *out = NULL;
    *len = 0;
    if (width < 1 || height < 1 || width > 65535 || height > 65535)
        return fkt_fail(FKT_E_ARG, "cannot write an image of %u x %u pixels: sides must be 1 to 65535", width, height);
    png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &s, on_error, on_warning, &s, take, give);
    if (png) info = png_create_info_struct(png);
    if (!info || !compress(&s, png, info, rgb, width, height)) {
        st = !info || s.no_memory
                 ? fkt_fail(FKT_E_NOMEM, "out of memory: cannot compress a %u x %u image", width, height)
                 : fkt_fail(FKT_E_IO, "cannot compress a %u x %u image: %s", width, height, s.message);
        goto out;
    }
    *out = s.data;
    *len = s.len;
    s.data = NULL;
out:
    if (png) png_destroy_write_struct(&png, &info);
    fkt_free(s.data);
    return st;
}

fkt_status fkt_png_write(const char *path, const uint8_t *rgb, uint32_t width, uint32_t height, int force)
{
    uint8_t *png = NULL;
    size_t len;
    fkt_status st;
    FKT_TRY(fkt_png_encode(&png, &len, rgb, width, height));
    FKT_TRY(fkt_file_write(path, png, len, force ? FKT_FILE_REPLACE : 0));
out:
    fkt_free(png);
    return fkt_fail_in(st, "image '%s'", path);
}

void fkt_image_free(uint8_t *rgb) { fkt_free(rgb); }
