/* SPDX-License-Identifier: Apache-2.0 */
/* decode.c - bytes of an image file to upright RGB; which format it is in is seen from the bytes, never from the name.
 *
 * Colour follows Pillow's convert("RGB"): grey is repeated, CMYK is the naive ink model (no profiles). Where we differ:
 * alpha is laid over white in every format, while convert() drops it and shows whatever colour hides under transparent
 * pixels; the EXIF orientation is applied, as ImageOps.exif_transpose does, since images of different cameras must
 * have the same orientation. Profiles and gamma are ignored. docs/formats.md, "Images in", states the rules. */
#include "images/decode.h"

#include "base/alloc.h"
#include "crypto/hash.h"
#include "base/wipe.h"
#include "images/dataset.h"

#include <string.h>

/* round(x/255) for x in 0..65025, exactly. */
static uint8_t div255(unsigned x)
{
    x += 128;
    return (uint8_t)(((x >> 8) + x) >> 8);
}

/* `v` with alpha `a` over white. */
static uint8_t over_white(unsigned v, unsigned a, int premultiplied)
{
    if (!premultiplied) return div255(v * a + 255U * (255U - a));
    return (uint8_t)(v > a ? 255 : v + 255U - a); /* v <= a, unless the file is wrong */
}

static void grey_to_rgb(uint8_t *out, const struct fkt_pixels *p, size_t n)
{
    const uint32_t step = p->channels;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *in = p->samples + i * step;
        out[3 * i] = out[3 * i + 1] = out[3 * i + 2] = step == 2 ? over_white(in[0], in[1], p->premultiplied) : in[0];
    }
}

static void rgba_to_rgb(uint8_t *out, const struct fkt_pixels *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            out[3 * i + c] = over_white(p->samples[4 * i + c], p->samples[4 * i + 3], p->premultiplied);
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
    if (p->channels <= 2) grey_to_rgb(*rgb, p, n);
    else if (p->note & FKT_IMAGE_CMYK) cmyk_to_rgb(*rgb, p->samples, n);
    else rgba_to_rgb(*rgb, p, n);
out:
    fkt_free(p->samples);
    p->samples = NULL;
    return st;
}

/* Both passes look at this image alone: what is done with a record must not depend on other records. */
fkt_status fkt_pixels_narrow(struct fkt_pixels *p, unsigned bits)
{
    const size_t n = (size_t)p->w * p->h * p->channels;
    const int alpha = p->channels == 2 || p->channels == 4;
    const unsigned shift = (bits ? bits : 16) - 8;
    uint16_t *wide = (uint16_t *)(void *)p->samples, most = 0; /* from malloc: aligned for anything */
    fkt_status st;
    for (size_t i = 0; i < n; i++)
        if (wide[i] > most && !(alpha && i % p->channels == p->channels - 1)) most = wide[i];
    if (!bits && most > 0 && most < 1U << 14)
        return fkt_fail_hint(FKT_E_FORMAT,
                             "state the depth of its samples with the option bits: 12 for a 12-bit scanner, 16 for a "
                             "dark image that uses the whole range",
                             "its 16-bit samples end at %u, so it may hold values of 10 to 14 bits", most);
    if (bits && most >> bits)
        return fkt_fail_hint(FKT_E_FORMAT, "state a larger depth, or repair the image",
                             "it has a sample of %u, above the largest of %u bits, %u", most, bits, (1U << bits) - 1);
    for (size_t i = 0; i < n; i++)
        p->samples[i] = (uint8_t)(wide[i] >> (alpha && i % p->channels == p->channels - 1 ? 8 : shift));
    for (size_t i = 0; p->inverted && i < n; i += p->channels) p->samples[i] ^= 0xff;
    st = fkt_realloc(&p->samples, n);
    return st;
}

/* Where the pixel at (x, y) of the upright image lies in the stored one of w x h, by CIPA DC-008 4.6.4 A. */
static size_t stored_at(unsigned orientation, uint32_t x, uint32_t y, uint32_t w, uint32_t h)
{
    uint32_t sx = orientation > 4 ? y : x, sy = orientation > 4 ? x : y;
    if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8) sx = w - 1 - sx;
    if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7) sy = h - 1 - sy;
    return (size_t)sy * w + sx;
}

fkt_status fkt_rgb_upright(uint8_t **rgb, uint32_t *w, uint32_t *h, unsigned orientation)
{
    uint32_t new_w = orientation > 4 ? *h : *w, new_h = orientation > 4 ? *w : *h;
    uint8_t *out = NULL;
    fkt_status st;
    if (orientation < 2 || orientation > 8) return FKT_OK;
    FKT_TRY(fkt_alloc(&out, (size_t)new_w * new_h * 3));
    for (uint32_t y = 0; y < new_h; y++)
        for (uint32_t x = 0; x < new_w; x++)
            memcpy(out + 3 * ((size_t)y * new_w + x), *rgb + 3 * stored_at(orientation, x, y, *w, *h), 3);
    fkt_free(*rgb);
    *rgb = out;
    *w = new_w;
    *h = new_h;
out:
    return st;
}

/* Where alpha stands among the channels; -1: nowhere. */
static int alpha_at(const struct fkt_pixels *p)
{
    return p->channels == 2 || p->channels == 4 ? (int)p->channels - 1 : -1;
}

/* A pixel of 16-bit samples as 8-bit RGB over white (`narrow`), or as 16-bit RGB with alpha where `channels` is 4. */
static uint8_t *put_pixel(uint8_t *out, const struct fkt_pixels *p, const uint16_t *in, int narrow, uint32_t channels)
{
    const int alpha = alpha_at(p);
    for (uint32_t c = 0; c < channels; c++) {
        uint16_t v = c == 3 ? in[alpha] : in[p->channels > 2 ? c : 0];
        if (p->inverted && c < 3) v ^= 0xffff;
        if (!narrow) {
            *out++ = (uint8_t)v;
            *out++ = (uint8_t)(v >> 8);
        } else *out++ = alpha < 0 ? (uint8_t)(v >> 8) : over_white(v >> 8, in[alpha] >> 8, p->premultiplied);
    }
    return out;
}

fkt_status fkt_pixels_digest(const struct fkt_pixels *p, uint8_t sha256[32])
{
    static const char domain[] = "fedkt wide image 1";
    const uint16_t *wide = (const uint16_t *)(const void *)p->samples;
    const size_t n = (size_t)p->w * p->h * p->channels;
    const unsigned turn = p->orientation <= 8 ? p->orientation : 0; /* as fkt_rgb_upright */
    const uint32_t w = turn > 4 ? p->h : p->w, h = turn > 4 ? p->w : p->h;
    const int alpha = alpha_at(p);
    int narrow = 1, opaque = 1;
    uint32_t channels;
    uint8_t *row = NULL, *end;
    struct fkt_hash hash;
    fkt_status st;
    for (size_t i = 0; i < n; i++) {
        narrow &= wide[i] >> 8 == (wide[i] & 0xff);
        opaque &= alpha < 0 || i % p->channels != (size_t)alpha || wide[i] == UINT16_MAX;
    }
    channels = narrow || opaque ? 3 : 4;
    FKT_TRY(fkt_alloc(&row, (size_t)w * 8));
    fkt_hash_init(&hash);
    if (!narrow) fkt_hash_add(&hash, domain, sizeof domain);
    fkt_hash_add_u64(&hash, w);
    fkt_hash_add_u64(&hash, h);
    if (!narrow) fkt_hash_add_u64(&hash, channels);
    if (!narrow) fkt_hash_add_u64(&hash, channels == 4 && p->premultiplied);
    for (uint32_t y = 0; y < h; y++) {
        end = row;
        for (uint32_t x = 0; x < w; x++)
            end = put_pixel(end, p, wide + stored_at(turn, x, y, p->w, p->h) * p->channels, narrow, channels);
        fkt_hash_add(&hash, row, (size_t)(end - row));
    }
    fkt_hash_end(&hash, sha256);
out:
    fkt_free_secret(row);
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

static int is_tiff(const uint8_t *d, size_t len) /* classic and BigTIFF, either byte order */
{
    return len >= 4 &&
           (!memcmp(d, "II*\0", 4) || !memcmp(d, "MM\0*", 4) || !memcmp(d, "II+\0", 4) || !memcmp(d, "MM\0+", 4));
}

static fkt_status unknown(const uint8_t *data, size_t len)
{
    if (len >= FKT_DICOM_HEAD && !memcmp(data + FKT_DICOM_HEAD - 4, "DICM", 4))
        return fkt_fail_hint(
            FKT_E_FORMAT,
            "convert it, with one window for all images of all sites: dcmj2pnm --write-png --set-window "
            "CENTRE WIDTH IN.dcm OUT.png (package dcmtk)",
            "it is a DICOM file, which is not read");
    return fkt_fail_hint(FKT_E_FORMAT, "convert it to one of these, or remove it",
                         "it is not a JPEG, PNG, WebP or TIFF file");
}

fkt_status fkt_image_decode_memory(const uint8_t *data, size_t len, unsigned bits, uint8_t **rgb, uint32_t *w,
                                   uint32_t *h, struct fkt_facts *facts)
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
    else if (len >= 12 && !memcmp(data, "RIFF", 4) && !memcmp(data + 8, "WEBP", 4)) st = fkt_webp_decode(&p, data, len);
    else if (is_tiff(data, len)) st = fkt_tiff_decode(&p, data, len);
    else st = unknown(data, len);
    if (st == FKT_OK && p.note & FKT_IMAGE_16BIT) {
        facts->wide = 1;
        st = fkt_pixels_digest(&p, facts->sha256);
        if (st == FKT_OK) st = fkt_pixels_narrow(&p, bits);
    }
    if (st == FKT_OK) st = fkt_pixels_to_rgb(&p, rgb);
    if (st == FKT_OK) st = fkt_rgb_upright(rgb, &p.w, &p.h, p.orientation);
    if (st != FKT_OK) {
        fkt_free(p.samples);
        fkt_free(*rgb);
        *rgb = NULL;
        return st;
    }
    *w = p.w;
    *h = p.h;
    facts->note |= p.note | (p.orientation > 1 ? FKT_IMAGE_TURNED : 0);
    return FKT_OK;
}
