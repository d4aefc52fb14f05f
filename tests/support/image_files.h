/* SPDX-License-Identifier: Apache-2.0 */
/* image_files.h - small images, files, tars and folders for tests that read image sets. Everything fails the test at
 * hand when it fails. */
#ifndef FKT_TEST_IMAGE_FILES_H
#define FKT_TEST_IMAGE_FILES_H

#include "scratch.h"

#include <stddef.h>
#include <stdint.h>

/* out (h, w, 3): the same as image() of oracle/resize.py. */
void image_draw(uint8_t *out, uint32_t w, uint32_t h);

/* samples (h, w, channels of `type`) of `depth` bits as a PNG; type is libpng's PNG_COLOR_TYPE_*. Palette files get a
 * made-up palette with entry i = (i, 255-i, i/2), and with `transparent` entry 0 is see-through; for grey and RGB
 * `transparent` makes the colour 0 see-through. Gives malloc'ed bytes. */
uint8_t *image_png(size_t *len, const uint8_t *samples, uint32_t w, uint32_t h, int type, int depth, int interlaced,
                   int transparent);
/* A w x h PNG of one colour. */
uint8_t *image_plain(size_t *len, uint32_t w, uint32_t h, uint8_t r, uint8_t g, uint8_t b);

/* s->dir/name with its folders made; data is written whole. */
void scratch_write(const struct scratch *s, const char *name, const void *data, size_t len);

/* An archive from (name, bytes) pairs: format "ustar", "pax", "gnutar", "zip" or "raw" (one file, as it is); filter
 * "none", "gzip", "xz", "zstd", "bzip2", "gzip+bzip2" (packed twice), and for zip "store" or "deflate". */
struct packed_file {
    const char *name;
    const void *data;
    size_t len;
};
void scratch_archive(const struct scratch *s, const char *name, const char *format, const char *filter,
                     const struct packed_file *files, size_t n);

#endif
