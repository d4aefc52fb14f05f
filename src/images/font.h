/* SPDX-License-Identifier: Apache-2.0 */
/* font.h - small letters for image sheets: printable ASCII in cells of 5 x 9 dots, drawn with whole-pixel dots. */
#ifndef FKT_IMAGES_FONT_H
#define FKT_IMAGES_FONT_H

#include <stddef.h>
#include <stdint.h>

enum { FKT_FONT_HEIGHT = 9, FKT_FONT_ASCENT = 7 }; /* dots: 7 above the baseline, 2 for descenders */

/* Width of `text` in dots, without the gap after the last letter; a byte outside printable ASCII counts as '?',
 * a UTF-8 sequence as one '?'. */
size_t fkt_font_width(const char *text);

/* Draws `text` with its upper left dot at (x, y), each dot `scale` pixels; what falls outside (width, height) is left
 * out. */
void fkt_font_draw(uint8_t *rgb, uint32_t width, uint32_t height, size_t x, size_t y, unsigned scale,
                   const uint8_t colour[3], const char *text);

#endif
