/* SPDX-License-Identifier: Apache-2.0 */
/* decode.c - bytes of a JPEG or PNG file to RGB; which of the two is seen from the bytes, never from the name.
 *
 * Colour follows Pillow's convert("RGB"): grey is repeated, CMYK is the naive ink model (no profiles). Where we differ:
 * alpha is laid over white, while convert() drops it and shows whatever colour hides under transparent pixels.
 * Profiles, gamma and the EXIF orientation are ignored, as Pillow and torchvision ignore them by default: a camera's
 * rotated picture stays rotated. */
#include "images/decode.h"

#include "base/alloc.h"
#include "images/dataset.h"

#include <string.h>

/* round(x/255) for x in 0..65025, exactly. */
static uint8_t div255(unsigned x)
{
    x += 128;
    return (uint8_t)(((x >> 8) + x) >> 8);
}

static void grey_to_rgb(uint8_t *out, const uint8_t *in, size_t n, int alpha)
{
    for (size_t i = 0; i < n; i++, in += 1 + alpha) {
        uint8_t v = alpha ? div255(in[0] * in[1] + 255U * (255U - in[1])) : in[0];
        out[3 * i] = out[3 * i + 1] = out[3 * i + 2] = v;
    }
}

static void rgba_to_rgb(uint8_t *out, const uint8_t *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            out[3 * i + c] = div255(in[4 * i + c] * in[4 * i + 3] + 255U * (255U - in[4 * i + 3]));
}

/* Adobe's inverted inks: with c' = 255 - c, k' = 255 - k, Pillow's nk - nk*C/255 is k' - round(k'*(255 - c')/255). */
static void cmyk_to_rgb(uint8_t *out, const uint8_t *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            out[3 * i + c] = (uint8_t)(in[4 * i + 3] - div255((255U - in[4 * i + c]) * in[4 * i + 3]));
}

fkt_status fkt_pixels_to_rgb(struct fkt_pixels *p, uint8_t **rgb)
{
    size_t n = (size_t)p->w * p->h;
    fkt_status st = FKT_OK;
    *rgb = NULL;
    if (p->channels == 3) {
        *rgb = p->samples;
        p->samples = NULL;
        return FKT_OK;
    }
    FKT_TRY(fkt_alloc(rgb, n * 3));
    if (p->channels <= 2) grey_to_rgb(*rgb, p->samples, n, p->channels == 2);
    else if (p->note & FKT_IMAGE_CMYK) cmyk_to_rgb(*rgb, p->samples, n);
    else rgba_to_rgb(*rgb, p->samples, n);
out:
    fkt_free(p->samples);
    p->samples = NULL;
    return st;
}

fkt_status fkt_image_check_size(const char *what, uint32_t w, uint32_t h)
{
    if (w >= 1 && h >= 1 && w <= FKT_IMAGE_MAX_SIDE && h <= FKT_IMAGE_MAX_SIDE && w * h <= FKT_IMAGE_MAX_AREA)
        return FKT_OK; /* the product is below 2^28 */
    return fkt_fail_hint(FKT_E_FORMAT, "scale them down first: images are read at the size of the task anyway",
                         "%s %u x %u pixels; 1 to %u a side and %u in all can be read", what, w, h, FKT_IMAGE_MAX_SIDE,
                         FKT_IMAGE_MAX_AREA);
}

fkt_status fkt_image_decode_memory(const uint8_t *data, size_t len, uint8_t **rgb, uint32_t *w, uint32_t *h,
                                   unsigned *note)
{
    static const uint8_t png[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    struct fkt_pixels p;
    fkt_status st;
    memset(&p, 0, sizeof p);
    *rgb = NULL;
    *w = *h = 0;
    if (len == 0) return fkt_fail(FKT_E_FORMAT, "the file is empty");
    if (len >= 3 && data[0] == 0xff && data[1] == 0xd8 && data[2] == 0xff) st = fkt_jpeg_decode(&p, data, len);
    else if (len >= sizeof png && !memcmp(data, png, sizeof png)) st = fkt_png_decode(&p, data, len);
    else st = fkt_fail_hint(FKT_E_FORMAT, "convert it to JPEG or PNG, or take it away", "it is neither JPEG nor PNG");
    if (st == FKT_OK) st = fkt_pixels_to_rgb(&p, rgb);
    if (st != FKT_OK) return st;
    *w = p.w;
    *h = p.h;
    *note |= p.note;
    return FKT_OK;
}
