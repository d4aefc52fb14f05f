/* SPDX-License-Identifier: Apache-2.0 */
/* decode_png.c - PNG through libpng: every bit depth, palette, interlace, grey, alpha and transparent colour.
 *
 * 16-bit samples are read as they are and then narrowed (decode.h). The chunk sBIT is not asked for their depth: by the
 * specification samples fill 16 bits whatever it says, and instruments that break this rule do not write it. Checksums
 * of critical chunks and the end chunk are required: a file that was cut after its last pixel is refused too.
 *
 * libpng takes its memory from our allocator, so that fault tests reach it. Memory is bounded before it is taken: the
 * sides and the area are checked before there is room for a row, and of the chunks only those that make pixels are read
 * (IHDR, PLTE, tRNS, IDAT, IEND). Texts, profiles and the like are stepped over without being unpacked: a text of 8 KB
 * can unpack to 8 MB, there may be any number of them, and libpng makes room for the length that a text claims before
 * it looks for its bytes. As in decode_jpeg.c nothing lives in registers across longjmp. */
#include "images/decode.h"

#include "base/alloc.h"
#include "images/dataset.h"
#include "images/exif.h"

#include <setjmp.h>
#include <string.h>

#include <png.h>

/* What libpng may keep of chunks that some later version does not step over. */
#define MAX_CHUNKS 16
#define MAX_CHUNK_BYTES (1U << 20)

struct job {
    png_structp png;
    png_infop info;
    const uint8_t *data;
    size_t len, at;
    struct fkt_pixels *out;
    png_bytep *rows;
    fkt_status st;
    jmp_buf back;
};

static void on_error(png_structp png, png_const_charp text)
{
    struct job *j = png_get_error_ptr(png);
    if (j->st == FKT_OK) j->st = fkt_fail(FKT_E_FORMAT, "damaged or truncated PNG (%s)", text);
    longjmp(j->back, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static png_voidp on_malloc(png_structp png, png_alloc_size_t size)
{
    struct job *j = png_get_mem_ptr(png);
    void *p = fkt_malloc_raw(size);
    if (!p && j->st == FKT_OK) j->st = fkt_fail(FKT_E_NOMEM, "out of memory in the PNG library");
    return p;
}

static void on_free(png_structp png, png_voidp p)
{
    (void)png;
    fkt_free(p);
}

static void on_read(png_structp png, png_bytep out, size_t n)
{
    struct job *j = png_get_io_ptr(png);
    if (n > j->len - j->at) png_error(png, "the file ends too early");
    memcpy(out, j->data + j->at, n);
    j->at += n;
}

/* Asks libpng for 8-bit samples of 1 to 4 channels and notes what the file was. */
static void set_transforms(struct job *j)
{
    png_structp png = j->png;
    int type = png_get_color_type(png, j->info), depth = png_get_bit_depth(png, j->info);
    int transparent = png_get_valid(png, j->info, PNG_INFO_tRNS) != 0;
    if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
    if (type == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(png);
    if (transparent) png_set_tRNS_to_alpha(png);
    if (depth == 16 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) png_set_swap(png);
    (void)png_set_interlace_handling(png);
    if (depth == 16) j->out->note |= FKT_IMAGE_16BIT;
    if (type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_GRAY_ALPHA) j->out->note |= FKT_IMAGE_WAS_GREY;
    if (transparent || (type & PNG_COLOR_MASK_ALPHA)) j->out->note |= FKT_IMAGE_HAD_ALPHA;
}

static void read_all(struct job *j)
{
    struct fkt_pixels *o = j->out;
    size_t stride, bytes;
    png_set_user_limits(j->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* our own check has the better sentence */
    png_set_keep_unknown_chunks(j->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_chunk_cache_max(j->png, MAX_CHUNKS);
    png_set_chunk_malloc_max(j->png, MAX_CHUNK_BYTES);
    png_set_read_fn(j->png, j, on_read);
    png_read_info(j->png, j->info);
    o->w = png_get_image_width(j->png, j->info);
    o->h = png_get_image_height(j->png, j->info);
    j->st = fkt_image_check_size("the PNG is", o->w, o->h);
    if (j->st != FKT_OK) longjmp(j->back, 1);
    set_transforms(j);
    png_read_update_info(j->png, j->info);
    o->channels = png_get_channels(j->png, j->info);
    stride = png_get_rowbytes(j->png, j->info);
    bytes = o->note & FKT_IMAGE_16BIT ? 2 : 1;
    if (o->channels < 1 || o->channels > 4 || stride != (size_t)o->w * o->channels * bytes)
        png_error(j->png, "samples of an unknown kind");
    j->st = fkt_alloc(&o->samples, stride * o->h);
    if (j->st == FKT_OK) j->st = fkt_alloc(&j->rows, o->h);
    if (j->st != FKT_OK) longjmp(j->back, 1);
    for (uint32_t y = 0; y < o->h; y++) j->rows[y] = o->samples + stride * y;
    png_read_image(j->png, j->rows);
    png_read_end(j->png, NULL);
}

/* In a function of its own, so that `j` belongs to the caller's frame and is whole after a jump. */
static void decode_or_jump(struct job *j)
{
    if (setjmp(j->back) != 0) return;
    j->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, j, on_error, on_warning, j, on_malloc, on_free);
    if (j->png) j->info = png_create_info_struct(j->png);
    if (j->info) read_all(j);
    else j->st = fkt_fail(FKT_E_NOMEM, "out of memory in the PNG library");
}

fkt_status fkt_png_decode(struct fkt_pixels *out, const uint8_t *data, size_t len)
{
    struct job j;
    memset(&j, 0, sizeof j);
    memset(out, 0, sizeof *out);
    j.data = data;
    j.len = len;
    j.out = out;
    decode_or_jump(&j);
    png_destroy_read_struct(j.png ? &j.png : NULL, j.info ? &j.info : NULL, NULL);
    fkt_free(j.rows);
    if (j.st == FKT_OK) out->orientation = fkt_exif_of_png(data, len);
    if (j.st != FKT_OK) {
        fkt_free(out->samples);
        memset(out, 0, sizeof *out);
    }
    return j.st;
}
