/* SPDX-License-Identifier: Apache-2.0 */
/* decode.h - JPEG and PNG bytes to RGB, as hostile input. */
#ifndef FKT_IMAGES_DECODE_H
#define FKT_IMAGES_DECODE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* What a decoder leaves: `samples` (h, w, channels) of 8 bits. channels: 1 grey, 2 grey+alpha, 3 RGB, 4 RGB+alpha, or 4
 * CMYK as Adobe stores it (255 is no ink) when note has FKT_IMAGE_CMYK. */
struct fkt_pixels {
    uint8_t *samples; /* fkt_free */
    uint32_t w, h, channels;
    unsigned note;
};

/* FKT_E_FORMAT unless the sides are 1..FKT_IMAGE_MAX_SIDE and their product is at most FKT_IMAGE_MAX_AREA. `what`
 * begins the sentence: "the JPEG is". */
FKT_MUST_USE fkt_status fkt_image_check_size(const char *what, uint32_t w, uint32_t h);

/* Decodes by looking at the first bytes; sizes are those of fkt_image_check_size. Borrows data; gives *rgb (h, w, 3),
 * freed with fkt_free; ORs FKT_IMAGE_* bits into *note. On failure *rgb is NULL and the sentence does not name the
 * file. */
FKT_MUST_USE fkt_status fkt_image_decode_memory(const uint8_t *data, size_t len, uint8_t **rgb, uint32_t *w,
                                                uint32_t *h, unsigned *note);

FKT_MUST_USE fkt_status fkt_jpeg_decode(struct fkt_pixels *out, const uint8_t *data, size_t len);
FKT_MUST_USE fkt_status fkt_png_decode(struct fkt_pixels *out, const uint8_t *data, size_t len);

/* Takes p->samples and gives RGB: grey repeated, alpha laid over white, CMYK as ink on white. */
FKT_MUST_USE fkt_status fkt_pixels_to_rgb(struct fkt_pixels *p, uint8_t **rgb);

#endif
