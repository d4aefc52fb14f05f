/* SPDX-License-Identifier: Apache-2.0 */
/* decode_jpeg.c - JPEG through libjpeg-turbo, with its defaults (accurate integer DCT, smooth chroma upsampling): the
 * pixels that Pillow gives.
 *
 * libjpeg reports bad data in two ways. An error calls error_exit, which must not return: we longjmp. A warning means
 * that it has filled in missing data (with grey) and continues: a file cut in half "decodes". So a warning about
 * damaged image data is an error here and stops at once, which also avoids the work on a tiny file that
 * claims to be huge. Harmless oddities (stray bytes between markers, an unknown JFIF version), common in collections
 * from the web, pass.
 *
 * Nothing that the compiler might keep in a register lives across the longjmp: all state is in `struct job`, in the
 * caller's frame. Memory of libjpeg is its own, bounded by max_memory_to_use; sides and area are checked before it
 * takes any for the image. Progressive files get a bound on the number of scans, and on scans times pixels, since
 * each scan of a few bytes costs a pass over the whole image: encoders make about ten, the largest image may have
 * 32. */
#include "images/decode.h"

#include "base/alloc.h"
#include "images/dataset.h"
#include "images/exif.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

#define MAX_SCANS 500
#define MAX_WORK (UINT64_C(1) << 31) /* scans times pixels */
#define MAX_LIBRARY_MEMORY (1L << 30)

struct job {
    struct jpeg_decompress_struct cinfo;
    struct jpeg_error_mgr err;
    struct jpeg_progress_mgr progress;
    jmp_buf back;
    struct fkt_pixels *out;
    fkt_status st; /* set by ourselves before a jump; FKT_OK: the sentence is libjpeg's */
};

static void give_up(j_common_ptr cinfo)
{
    struct job *j = cinfo->client_data;
    longjmp(j->back, 1);
}

static void on_message(j_common_ptr cinfo, int level)
{
    int code = cinfo->err->msg_code;
    if (level >= 0) return; /* traces */
    if (code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM) return;
    give_up(cinfo);
}

static void say_nothing(j_common_ptr cinfo) { (void)cinfo; }

static void on_progress(j_common_ptr cinfo)
{
    struct job *j = cinfo->client_data;
    uint64_t area = (uint64_t)j->cinfo.image_width * j->cinfo.image_height;
    int scan = j->cinfo.input_scan_number;
    if (scan <= MAX_SCANS && (uint64_t)scan * area <= MAX_WORK) return;
    j->st = fkt_fail_hint(FKT_E_FORMAT, "save it again as an ordinary JPEG",
                          "the JPEG has too many scans for its size: %d of %u x %u pixels so far", scan,
                          j->cinfo.image_width, j->cinfo.image_height);
    give_up(cinfo);
}

static void read_all(struct job *j, const uint8_t *data, size_t len)
{
    struct jpeg_decompress_struct *c = &j->cinfo;
    size_t stride;
    jpeg_mem_src(c, data, (unsigned long)len);
    (void)jpeg_read_header(c, TRUE);
    j->st = fkt_image_check_size("the JPEG is", c->image_width, c->image_height);
    if (j->st != FKT_OK) longjmp(j->back, 1);
    if (c->jpeg_color_space == JCS_GRAYSCALE) {
        c->out_color_space = JCS_GRAYSCALE;
        j->out->note = FKT_IMAGE_WAS_GREY;
    } else if (c->jpeg_color_space == JCS_CMYK || c->jpeg_color_space == JCS_YCCK) {
        c->out_color_space = JCS_CMYK;
        j->out->note = FKT_IMAGE_CMYK;
    } else {
        c->out_color_space = JCS_RGB;
    }
    (void)jpeg_start_decompress(c);
    j->out->w = c->output_width;
    j->out->h = c->output_height;
    j->out->channels = (uint32_t)c->output_components;
    stride = (size_t)c->output_width * (size_t)c->output_components;
    j->st = fkt_alloc(&j->out->samples, stride * c->output_height);
    if (j->st != FKT_OK) longjmp(j->back, 1);
    while (c->output_scanline < c->output_height) {
        JSAMPROW row = j->out->samples + stride * c->output_scanline;
        (void)jpeg_read_scanlines(c, &row, 1);
    }
    (void)jpeg_finish_decompress(c);
}

/* 1 when the image is complete. In a function of its own, so that `j` belongs to the caller's frame. */
static int decode_or_jump(struct job *j, const uint8_t *data, size_t len)
{
    if (setjmp(j->back) != 0) return 0;
    jpeg_create_decompress(&j->cinfo);
    j->cinfo.progress = &j->progress;
    j->cinfo.mem->max_memory_to_use = MAX_LIBRARY_MEMORY;
    read_all(j, data, len);
    return 1;
}

fkt_status fkt_jpeg_decode(struct fkt_pixels *out, const uint8_t *data, size_t len)
{
    struct job j;
    char text[JMSG_LENGTH_MAX];
    memset(&j, 0, sizeof j);
    memset(out, 0, sizeof *out);
    j.out = out;
    j.cinfo.err = jpeg_std_error(&j.err);
    j.err.error_exit = give_up;
    j.err.emit_message = on_message;
    j.err.output_message = say_nothing;
    j.progress.progress_monitor = on_progress;
    j.cinfo.client_data = &j; /* jpeg_create_decompress keeps err and client_data */
    if (!decode_or_jump(&j, data, len)) {
        if (j.st == FKT_OK) {
            j.err.format_message((j_common_ptr)&j.cinfo, text);
            if (j.err.msg_code == JERR_OUT_OF_MEMORY) j.st = fkt_fail(FKT_E_NOMEM, "out of memory in the JPEG library");
            else j.st = fkt_fail(FKT_E_FORMAT, "damaged or truncated JPEG (%s)", text);
        }
        fkt_free(out->samples);
        memset(out, 0, sizeof *out);
    }
    jpeg_destroy_decompress(&j.cinfo);
    if (j.st == FKT_OK) out->orientation = fkt_exif_of_jpeg(data, len);
    return j.st;
}
