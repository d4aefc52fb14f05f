/* SPDX-License-Identifier: Apache-2.0 */
/* grid.c - a sheet of samples, one row per class.
 *
 *   margin | class name | gap | tile gap tile gap ... | margin
 *
 * Tiles are enlarged by a whole factor without interpolation. Names longer than NAME_DOTS are cut, so that one class
 * cannot push the images off the sheet. If not all classes are shown, a line below says so. */
#include "fedkt/image.h"

#include "base/alloc.h"
#include "images/font.h"

#include <stdio.h>
#include <string.h>

enum {
    TILE_MIN = 64,
    GAP = 4,
    MARGIN = 12,
    NAME_GAP = 12,
    NAME_SCALE = 2,
    NAME_DOTS = 110,
    PAPER = 252,
    SIDE_MAX = 65535
};

static const uint8_t ink[3] = {52, 54, 64};

struct layout {
    size_t factor, tile, names, width, height; /* pixels */
};

/* Cuts `name` into `out` so that it is at most NAME_DOTS wide. */
static void fit_name(char *out, size_t cap, const char *name)
{
    size_t n;
    snprintf(out, cap, "%s", name);
    if (fkt_font_width(out) <= NAME_DOTS) return;
    for (n = strlen(out); n > 0 && fkt_font_width(out) > NAME_DOTS - 6; n--) out[n - 1] = '\0';
    snprintf(out + n, cap - n, "..");
}

static fkt_status plan(struct layout *l, size_t rows, size_t cols, uint32_t size, const char *const *row_names,
                       const char *below)
{
    char name[256];
    memset(l, 0, sizeof *l);
    if (rows < 1 || cols < 1 || size < 1 || size > SIDE_MAX || rows > SIDE_MAX || cols > SIDE_MAX)
        return fkt_fail(FKT_E_ARG, "cannot lay out %zu x %zu tiles of %u pixels", rows, cols, size);
    l->factor = (TILE_MIN + size - 1) / size;
    l->tile = l->factor * size;
    for (size_t r = 0; row_names && r < rows; r++) {
        size_t w;
        fit_name(name, sizeof name, row_names[r]);
        w = fkt_font_width(name) * NAME_SCALE;
        if (w > l->names) l->names = w;
    }
    if (l->names) l->names += NAME_GAP;
    l->width = 2 * MARGIN + l->names + cols * l->tile + (cols - 1) * GAP;
    l->height = 2 * MARGIN + rows * l->tile + (rows - 1) * GAP;
    if (below) {
        size_t wide = 2 * MARGIN + fkt_font_width(below) * NAME_SCALE;
        if (wide > l->width) l->width = wide;
        l->height += MARGIN + FKT_FONT_HEIGHT * NAME_SCALE;
    }
    if (l->width > SIDE_MAX || l->height > SIDE_MAX)
        return fkt_fail_hint(FKT_E_ARG, "ask for fewer tiles", "a sheet of %zu x %zu pixels is too large", l->width,
                             l->height);
    return FKT_OK;
}

static void paste(uint8_t *sheet, const struct layout *l, size_t x0, size_t y0, const uint8_t *tile, uint32_t size)
{
    for (size_t y = 0; y < l->tile; y++) {
        uint8_t *to = sheet + ((y0 + y) * l->width + x0) * 3;
        const uint8_t *from = tile + y / l->factor * size * 3;
        for (size_t x = 0; x < l->tile; x++) memcpy(to + 3 * x, from + x / l->factor * 3, 3);
    }
}

/* `below` (may be NULL) is a line under the tiles. */
static fkt_status lay_out(uint8_t **rgb, uint32_t *width, uint32_t *height, const uint8_t *tiles, size_t rows,
                          size_t cols, uint32_t size, const char *const *row_names, const char *below)
{
    struct layout l;
    uint8_t *sheet = NULL;
    char name[256];
    fkt_status st;

    *rgb = NULL;
    *width = *height = 0;
    FKT_TRY(plan(&l, rows, cols, size, row_names, below));
    FKT_TRY(fkt_alloc(&sheet, l.width * l.height * 3));
    memset(sheet, PAPER, l.width * l.height * 3);
    for (size_t r = 0; r < rows; r++) {
        size_t y = MARGIN + r * (l.tile + GAP);
        if (row_names) {
            fit_name(name, sizeof name, row_names[r]);
            fkt_font_draw(sheet, (uint32_t)l.width, (uint32_t)l.height, MARGIN,
                          y + (l.tile - FKT_FONT_ASCENT * NAME_SCALE) / 2, NAME_SCALE, ink, name);
        }
        for (size_t c = 0; c < cols; c++)
            paste(sheet, &l, MARGIN + l.names + c * (l.tile + GAP), y, tiles + (r * cols + c) * size * size * 3, size);
    }
    if (below)
        fkt_font_draw(sheet, (uint32_t)l.width, (uint32_t)l.height, MARGIN,
                      l.height - MARGIN - FKT_FONT_HEIGHT * NAME_SCALE, NAME_SCALE, ink, below);
    *width = (uint32_t)l.width;
    *height = (uint32_t)l.height;
    *rgb = sheet;
out:
    return st;
}

fkt_status fkt_grid(uint8_t **rgb, uint32_t *width, uint32_t *height, const uint8_t *tiles, size_t rows, size_t cols,
                    uint32_t size, const char *const *row_names)
{
    return lay_out(rgb, width, height, tiles, rows, cols, size, row_names, NULL);
}

fkt_status fkt_grid_of(uint8_t **rgb, uint32_t *width, uint32_t *height, const uint8_t *tiles, size_t rows, size_t cols,
                       uint32_t size, const char *const *row_names, size_t classes)
{
    char below[80];
    snprintf(below, sizeof below, "the first %zu of %zu classes", rows, classes);
    return lay_out(rgb, width, height, tiles, rows, cols, size, row_names, classes > rows ? below : NULL);
}
