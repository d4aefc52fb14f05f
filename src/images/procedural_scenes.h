/* SPDX-License-Identifier: Apache-2.0 */
/* procedural_scenes.h - the ten kinds of demo image. */
#ifndef FKT_IMAGES_PROCEDURAL_SCENES_H
#define FKT_IMAGES_PROCEDURAL_SCENES_H

#include "images/procedural_paint.h"

const char *fkt_demo_class(unsigned k); /* k < FKT_DEMO_CLASSES */
/* Image `index` of class k; `test` is 0 or 1. Depends on these three alone. */
void fkt_demo_draw(uint8_t *rgb /* (SIDE, SIDE, 3) */, int test, unsigned k, unsigned index);

#endif
