/* SPDX-License-Identifier: Apache-2.0 */
/* decode_tiff.c - TIFF and BigTIFF through libtiff: strips and tiles, both planar layouts, grey, RGB, palette.
 *
 *   1 to 8 bits   libtiff's own RGBA reader (palette, YCbCr, CMYK, bilevel scans); alpha comes out premultiplied
 *   16 bits       read here, grey or RGB with or without alpha, since that reader would drop the low bytes and with
 *                 them the depth rule of decode.h
 *
 * All else (12 and 32 bits, signed or real samples) is refused with a sentence. One file is one image: pages that are
 * marked as smaller versions of another (NewSubfileType 1) are passed over, any other second page is refused, since
 * which page was meant is not known.
 *
 * libtiff is large, so little of it is used: only the compressions of the table below; one allocation of at most
 * MAX_ALLOCATION; sides and area are checked before any pixel, and so is the area of a tile, which may be far larger
 * than the image. Its messages go to the job, not to stderr. A warning of the JPEG library inside it means invented
 * pixels, as in decode_jpeg.c, and is an error. */
#include "images/decode.h"

#include "base/alloc.h"
#include "images/dataset.h"

#include <stdio.h>
#include <string.h>

#include <tiffio.h>

#define MAX_ALLOCATION (1L << 29)
#define MAX_TILE_AREA (1U << 24)
enum { MAX_PAGES = 64 };

struct job {
    TIFF *tif;
    const uint8_t *data;
    size_t len;
    uint64_t at;
    struct fkt_pixels *out;
    uint16_t bits, samples, photometric, planar, alpha; /* alpha: EXTRASAMPLE_*; 0: none */
    int damaged;
    char why[160]; /* libtiff's first complaint */
};

static int on_error(TIFF *tif, void *user, const char *module, const char *fmt, va_list ap)
{
    struct job *j = user;
    (void)tif;
    (void)module;
    if (!j->why[0]) vsnprintf(j->why, sizeof j->why, fmt, ap);
    return 1;
}

static int on_warning(TIFF *tif, void *user, const char *module, const char *fmt, va_list ap)
{
    struct job *j = user;
    if (!module || strcmp(module, "JPEGLib") != 0) return 1;
    j->damaged = 1;
    return on_error(tif, user, module, fmt, ap);
}

static tmsize_t on_read(thandle_t h, void *buf, tmsize_t n)
{
    struct job *j = h;
    uint64_t left = j->at < j->len ? j->len - j->at : 0;
    if (n < 0) return -1;
    if ((uint64_t)n > left) n = (tmsize_t)left;
    memcpy(buf, j->data + (j->len - left), (size_t)n);
    j->at += (uint64_t)n;
    return n;
}

static tmsize_t on_write(thandle_t h, void *buf, tmsize_t n)
{
    (void)h;
    (void)buf;
    (void)n;
    return -1;
}

static uint64_t on_seek(thandle_t h, uint64_t to, int whence)
{
    struct job *j = h;
    j->at = whence == SEEK_SET ? to : whence == SEEK_CUR ? j->at + to : j->len + to; /* wraps: read as the end */
    return j->at;
}

static int on_close(thandle_t h)
{
    (void)h;
    return 0;
}

static uint64_t on_size(thandle_t h) { return ((struct job *)h)->len; }

static fkt_status damaged(const struct job *j)
{
    return fkt_fail(FKT_E_FORMAT, "damaged or truncated TIFF (%s)", j->why[0] ? j->why : "bad data");
}

static fkt_status check_compression(TIFF *tif)
{
    static const uint16_t known[] = {COMPRESSION_NONE,     COMPRESSION_LZW,       COMPRESSION_ADOBE_DEFLATE,
                                     COMPRESSION_DEFLATE,  COMPRESSION_JPEG,      COMPRESSION_PACKBITS,
                                     COMPRESSION_CCITTRLE, COMPRESSION_CCITTFAX3, COMPRESSION_CCITTFAX4};
    uint16_t c = COMPRESSION_NONE;
    TIFFGetFieldDefaulted(tif, TIFFTAG_COMPRESSION, &c);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i] == c) return FKT_OK;
    return fkt_fail_hint(FKT_E_FORMAT, "save it again without compression, or with LZW or Deflate",
                         "the TIFF is compressed with method %u, which is not read", c);
}

/* The directory at hand: sides, depth, colours; refuses what is not read. */
static fkt_status look(struct job *j)
{
    uint32_t w = 0, h = 0, tile_w = 0, tile_h = 0;
    uint16_t format = SAMPLEFORMAT_UINT, extras = 0, *kinds = NULL;
    fkt_status st;
    if (!TIFFGetField(j->tif, TIFFTAG_IMAGEWIDTH, &w) || !TIFFGetField(j->tif, TIFFTAG_IMAGELENGTH, &h) ||
        !TIFFGetField(j->tif, TIFFTAG_PHOTOMETRIC, &j->photometric))
        return fkt_fail(FKT_E_FORMAT, "the TIFF does not state its size or its colours");
    FKT_TRY(fkt_image_check_size("the TIFF is", w, h));
    FKT_TRY(check_compression(j->tif));
    if (TIFFIsTiled(j->tif) &&
        (!TIFFGetField(j->tif, TIFFTAG_TILEWIDTH, &tile_w) || !TIFFGetField(j->tif, TIFFTAG_TILELENGTH, &tile_h) ||
         !tile_w || !tile_h || (uint64_t)tile_w * tile_h > MAX_TILE_AREA))
        return fkt_fail(FKT_E_FORMAT, "the TIFF has tiles of %u x %u pixels", tile_w, tile_h);
    TIFFGetFieldDefaulted(j->tif, TIFFTAG_BITSPERSAMPLE, &j->bits);
    TIFFGetFieldDefaulted(j->tif, TIFFTAG_SAMPLESPERPIXEL, &j->samples);
    TIFFGetFieldDefaulted(j->tif, TIFFTAG_PLANARCONFIG, &j->planar);
    TIFFGetFieldDefaulted(j->tif, TIFFTAG_SAMPLEFORMAT, &format);
    TIFFGetFieldDefaulted(j->tif, TIFFTAG_EXTRASAMPLES, &extras, &kinds);
    if ((format != SAMPLEFORMAT_UINT && format != SAMPLEFORMAT_VOID) ||
        (j->bits != 16 && j->bits != 8 && j->bits != 4 && j->bits != 2 && j->bits != 1))
        return fkt_fail_hint(FKT_E_FORMAT, "save it again with 8 or 16 bits",
                             "the TIFF has samples of %u bits%s; 1, 2, 4, 8 and 16 unsigned bits are read", j->bits,
                             format == SAMPLEFORMAT_IEEEFP ? " (real numbers)"
                             : format == SAMPLEFORMAT_INT  ? " (signed)"
                                                           : "");
    j->alpha = extras && kinds && kinds[0] != EXTRASAMPLE_UNSPECIFIED ? kinds[0] : 0;
    j->out->w = w;
    j->out->h = h;
    if (j->photometric == PHOTOMETRIC_MINISBLACK || j->photometric == PHOTOMETRIC_MINISWHITE)
        j->out->note |= FKT_IMAGE_WAS_GREY;
    if (j->alpha) j->out->note |= FKT_IMAGE_HAD_ALPHA;
out:
    return st;
}

/* Every further page must be a smaller version. Leaves libtiff at the first page. */
static fkt_status check_pages(struct job *j)
{
    for (int page = 1; TIFFReadDirectory(j->tif); page++) {
        uint32_t kind = 0;
        TIFFGetFieldDefaulted(j->tif, TIFFTAG_SUBFILETYPE, &kind);
        if (page > MAX_PAGES || !(kind & FILETYPE_REDUCEDIMAGE))
            return fkt_fail_hint(FKT_E_FORMAT, "save the page that is meant as a file of its own",
                                 "the TIFF has more than one page");
    }
    if (j->why[0] || !TIFFSetDirectory(j->tif, 0)) return damaged(j);
    return FKT_OK;
}

/* ---- up to 8 bits ---- */

/* The raster has R, G, B, A from the low byte up; turned off are libtiff's own flips, which know no quarter turns. */
static fkt_status read_narrow(struct job *j)
{
    struct fkt_pixels *o = j->out;
    const size_t n = (size_t)o->w * o->h;
    TIFFRGBAImage img;
    char text[1024] = "";
    uint32_t *raster = NULL;
    fkt_status st = FKT_OK;
    int fine;
    if (!TIFFRGBAImageOK(j->tif, text) || !TIFFRGBAImageBegin(&img, j->tif, 1, text))
        return fkt_fail_hint(FKT_E_FORMAT, "save it again as grey or RGB",
                             "the TIFF is of a kind that is not read: %.120s", text[0] ? text : j->why);
    FKT_TRY(fkt_alloc(&raster, n));
    img.req_orientation = img.orientation;
    fine = TIFFRGBAImageGet(&img, raster, o->w, o->h);
    if (!fine || j->damaged) {
        st = damaged(j);
        goto out;
    }
    o->samples = (uint8_t *)raster;
    for (size_t i = 0; i < n; i++) {
        uint32_t v = raster[i];
        o->samples[4 * i] = (uint8_t)TIFFGetR(v);
        o->samples[4 * i + 1] = (uint8_t)TIFFGetG(v);
        o->samples[4 * i + 2] = (uint8_t)TIFFGetB(v);
        o->samples[4 * i + 3] = (uint8_t)TIFFGetA(v);
    }
    o->channels = 4;
    o->premultiplied = 1;
    raster = NULL;
out:
    TIFFRGBAImageEnd(&img);
    fkt_free(raster);
    return st;
}

/* ---- 16 bits ---- */

struct blocks { /* a strip is a tile of the image's width */
    uint32_t w, h;
    tmsize_t size;
    uint16_t *buf;
};

/* Block at (x, y) of plane `plane` into the image; each of its pixels has `per` samples. */
static fkt_status place(struct job *j, struct blocks *b, uint32_t x, uint32_t y, uint16_t plane, uint32_t per)
{
    struct fkt_pixels *o = j->out;
    uint16_t *out = (uint16_t *)(void *)o->samples;
    uint32_t cols = o->w - x < b->w ? o->w - x : b->w, rows = o->h - y < b->h ? o->h - y : b->h;
    uint32_t first = plane, take = per < o->channels ? per : o->channels; /* planes are one sample deep */
    tmsize_t got = TIFFIsTiled(j->tif)
                       ? TIFFReadEncodedTile(j->tif, TIFFComputeTile(j->tif, x, y, 0, plane), b->buf, b->size)
                       : TIFFReadEncodedStrip(j->tif, TIFFComputeStrip(j->tif, y, plane), b->buf, b->size);
    if (got < (tmsize_t)((size_t)rows * b->w * per * 2) || j->damaged) return damaged(j);
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < cols; c++)
            for (uint32_t s = 0; s < take; s++)
                out[((size_t)(y + r) * o->w + x + c) * o->channels + first + s] =
                    b->buf[((size_t)r * b->w + c) * per + s];
    return FKT_OK;
}

static fkt_status blocks_init(struct job *j, struct blocks *b)
{
    uint32_t rows = 0;
    if (TIFFIsTiled(j->tif)) {
        TIFFGetField(j->tif, TIFFTAG_TILEWIDTH, &b->w);
        TIFFGetField(j->tif, TIFFTAG_TILELENGTH, &b->h);
        b->size = TIFFTileSize(j->tif);
    } else {
        TIFFGetFieldDefaulted(j->tif, TIFFTAG_ROWSPERSTRIP, &rows);
        b->w = j->out->w;
        b->h = rows == 0 || rows > j->out->h ? j->out->h : rows;
        b->size = TIFFStripSize(j->tif);
    }
    if (b->size <= 0 || b->size > MAX_ALLOCATION) return damaged(j);
    return fkt_alloc(&b->buf, ((size_t)b->size + 1) / 2);
}

static fkt_status read_wide(struct job *j)
{
    struct fkt_pixels *o = j->out;
    const uint32_t colours = j->photometric == PHOTOMETRIC_RGB ? 3 : 1;
    const int apart = j->planar == PLANARCONFIG_SEPARATE;
    struct blocks b = {0};
    fkt_status st;
    if ((colours == 1 && !(o->note & FKT_IMAGE_WAS_GREY)) || j->samples < colours + (j->alpha ? 1U : 0U))
        return fkt_fail_hint(FKT_E_FORMAT, "save it again as grey or RGB",
                             "the TIFF has 16 bits and is neither grey nor RGB");
    o->channels = colours + (j->alpha ? 1 : 0);
    o->premultiplied = j->alpha == EXTRASAMPLE_ASSOCALPHA;
    o->inverted = j->photometric == PHOTOMETRIC_MINISWHITE;
    o->note |= FKT_IMAGE_16BIT;
    FKT_TRY(blocks_init(j, &b));
    FKT_TRY(fkt_alloc(&o->samples, (size_t)o->w * o->h * o->channels * 2));
    for (uint16_t plane = 0; plane < (apart ? o->channels : 1); plane++)
        for (uint32_t y = 0; y < o->h; y += b.h)
            for (uint32_t x = 0; x < o->w; x += b.w) FKT_TRY(place(j, &b, x, y, plane, apart ? 1 : j->samples));
out:
    fkt_free(b.buf);
    return st;
}

static fkt_status open_memory(struct job *j)
{
    TIFFOpenOptions *o = TIFFOpenOptionsAlloc();
    if (!o) return fkt_fail(FKT_E_NOMEM, "out of memory in the TIFF library");
    TIFFOpenOptionsSetMaxSingleMemAlloc(o, MAX_ALLOCATION);
    TIFFOpenOptionsSetErrorHandlerExtR(o, on_error, j);
    TIFFOpenOptionsSetWarningHandlerExtR(o, on_warning, j);
    j->tif = TIFFClientOpenExt("image", "rm", j, on_read, on_write, on_seek, on_close, on_size, NULL, NULL, o);
    TIFFOpenOptionsFree(o);
    return j->tif ? FKT_OK : damaged(j);
}

fkt_status fkt_tiff_decode(struct fkt_pixels *out, const uint8_t *data, size_t len)
{
    struct job j;
    uint16_t orientation = 1;
    fkt_status st;
    memset(&j, 0, sizeof j);
    memset(out, 0, sizeof *out);
    j.data = data;
    j.len = len;
    j.out = out;
    FKT_TRY(open_memory(&j));
    FKT_TRY(check_pages(&j));
    FKT_TRY(look(&j));
    FKT_TRY(j.bits == 16 ? read_wide(&j) : read_narrow(&j));
    TIFFGetFieldDefaulted(j.tif, TIFFTAG_ORIENTATION, &orientation);
    out->orientation = orientation;
out:
    if (j.tif) TIFFClose(j.tif);
    if (st != FKT_OK) {
        fkt_free(out->samples);
        memset(out, 0, sizeof *out);
    }
    return st;
}
