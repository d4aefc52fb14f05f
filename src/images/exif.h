/* SPDX-License-Identifier: Apache-2.0 */
/* exif.h - the orientation that a camera noted beside the pixels. */
#ifndef FKT_IMAGES_EXIF_H
#define FKT_IMAGES_EXIF_H

#include <stddef.h>
#include <stdint.h>

/* The EXIF orientation, 1 to 8, of a whole JPEG, PNG or WebP file. 1 (as stored) where the file has none, or one that
 * cannot be read: a damaged note beside sound pixels is not a damaged image. Allocates nothing. */
unsigned fkt_exif_of_jpeg(const uint8_t *data, size_t len);
unsigned fkt_exif_of_png(const uint8_t *data, size_t len);
unsigned fkt_exif_of_webp(const uint8_t *data, size_t len);

#endif
