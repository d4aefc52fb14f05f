/* SPDX-License-Identifier: Apache-2.0 */
/* decode.h - bytes of a JPEG, PNG, WebP or TIFF file to RGB, as hostile input. */
#ifndef FKT_IMAGES_DECODE_H
#define FKT_IMAGES_DECODE_H

#include "base/status.h"
#include "images/backend.h"

#include <stddef.h>
#include <stdint.h>

/* What a decoder leaves: `samples` (h, w, channels) of 8 bits, or of 16 in the machine's byte order when note has
 * FKT_IMAGE_16BIT. channels: 1 grey, 2 grey+alpha, 3 RGB, 4 RGB+alpha, or 4
 * CMYK as Adobe stores it (255 is no ink) when note has FKT_IMAGE_CMYK. */
struct fkt_pixels {
    uint8_t *samples; /* fkt_free */
    uint32_t w, h, channels;
    unsigned note;
    int premultiplied;    /* colours are already multiplied by alpha (TIFF) */
    int inverted;         /* 16 bits: 0 is white (TIFF) */
    unsigned orientation; /* EXIF's 1 to 8; 0 counts as 1 */
};

/* FKT_E_FORMAT unless the sides are 1..FKT_IMAGE_MAX_SIDE and their product is at most FKT_IMAGE_MAX_AREA. `what`
 * begins the sentence: "the JPEG is". */
FKT_MUST_USE fkt_status fkt_image_check_size(const char *what, uint32_t w, uint32_t h);

/* Decodes by looking at the first bytes; sizes are those of fkt_image_check_size. `bits` is the depth of the samples in
 * files of 16 bits, 9 to 16, or 0: not stated (see fkt_pixels_narrow). Borrows data; gives *rgb (h, w, 3) upright,
 * freed with fkt_free; fills *facts. On failure *rgb is NULL and the sentence does not name the file. */
FKT_MUST_USE fkt_status fkt_image_decode_memory(const uint8_t *data, size_t len, unsigned bits, uint8_t **rgb,
                                                uint32_t *w, uint32_t *h, struct fkt_facts *facts);

enum { FKT_DICOM_HEAD = 132 }; /* a DICOM file begins with 128 bytes of anything, then "DICM" */

FKT_MUST_USE fkt_status fkt_jpeg_decode(struct fkt_pixels *out, const uint8_t *data, size_t len);
FKT_MUST_USE fkt_status fkt_png_decode(struct fkt_pixels *out, const uint8_t *data, size_t len);
FKT_MUST_USE fkt_status fkt_webp_decode(struct fkt_pixels *out, const uint8_t *data, size_t len);
FKT_MUST_USE fkt_status fkt_tiff_decode(struct fkt_pixels *out, const uint8_t *data, size_t len);

/* The digest of an image with 16-bit samples, which no stated depth changes: SHA-256(width, height, RGB) of its 8-bit
 * pixels where both bytes of every sample are equal, so that a lossless copy with 16 bits has the digest of the 8-bit
 * image; else SHA-256("fedkt wide image 1" with its NUL, width, height, channels, premultiplied, samples), where the
 * samples are RGB of the upright image, 16 bits each, little-endian, with alpha as a fourth where it is not opaque. */
FKT_MUST_USE fkt_status fkt_pixels_digest(const struct fkt_pixels *p, uint8_t sha256[32]);
/* p->samples holds (h, w, channels) 16-bit samples in the machine's byte order; they become 8-bit samples in place:
 * the upper 8 of `bits` bits. A sample beyond 2^bits - 1 is FKT_E_FORMAT. With bits 0 the depth is 16, and an image
 * whose largest sample is above 0 and below 2^14 is FKT_E_FORMAT: its samples are likely of 10 to 14 bits, and would
 * come out black. The last of 2 or 4 channels is alpha, which always has 16 bits. */
FKT_MUST_USE fkt_status fkt_pixels_narrow(struct fkt_pixels *p, unsigned bits);
/* Takes p->samples and gives RGB: grey repeated, alpha laid over white, CMYK as ink on white; not yet upright. */
FKT_MUST_USE fkt_status fkt_pixels_to_rgb(struct fkt_pixels *p, uint8_t **rgb);
/* Turns *rgb (h, w, 3) upright; for orientations 5 to 8 *w and *h change places. */
FKT_MUST_USE fkt_status fkt_rgb_upright(uint8_t **rgb, uint32_t *w, uint32_t *h, unsigned orientation);

#endif
