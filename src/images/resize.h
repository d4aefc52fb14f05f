/* SPDX-License-Identifier: Apache-2.0 */
/* resize.h - an image of any shape to a square. */
#ifndef FKT_IMAGES_RESIZE_H
#define FKT_IMAGES_RESIZE_H

#include "fedkt/image.h"

#include <stdint.h>

/* out (size, size, 3) from in (h, w, 3), both RGB; see resize.c. Sides are 1..FKT_IMAGE_MAX_SIDE. */
FKT_MUST_USE fkt_status fkt_resize(uint8_t *out, uint32_t size, const uint8_t *in, uint32_t w, uint32_t h,
                                   enum fkt_filter filter, enum fkt_fit fit);

#endif
