/* SPDX-License-Identifier: Apache-2.0 */
/* font.c - a bitmap font of our own, so that a sample sheet needs no font file and is the same on every machine.
 *
 * A glyph is nine digits to the base 32 (0-9, A-V), one a row from the top; the five bits of a digit are the dots,
 * leftmost first: "EHHVHHH00" is an A. Letters are set proportionally: a glyph is as wide as its inked columns, one dot
 * apart. */
#include "images/font.h"

#include <string.h>

enum { FIRST = 32, LAST = 126, COLUMNS = 5, SPACE = 3 };

static const char glyphs[LAST - FIRST + 1][FKT_FONT_HEIGHT + 1] = {
    "000000000", "444440400", "AAA000000", "AAVAVAA00", "4FKE5U400", "OP248J300", "CIK8LID00", "444000000", /*   to ' */
    "248884200", "842224800", "04LEL4000", "044V44000", "000004480", "000E00000", "00000CC00", "11248GG00", /* ( to / */
    "EHJLPHE00", "4C4444E00", "EH1248V00", "EH161HE00", "26AIV2200", "VGU11HE00", "68GUHHE00", "V12488800", /* 0 to 7 */
    "EHHEHHE00", "EHHF12C00", "00CC0CC00", "00CC0C480", "248G84200", "00V0V0000", "842124800", "EH1240400", /* 8 to ? */
    "EHNLNGE00", "EHHVHHH00", "UHHUHHU00", "EHGGGHE00", "SIHHHIS00", "VGGUGGV00", "VGGUGGG00", "EHGNHHF00", /* @ to G */
    "HHHVHHH00", "E44444E00", "72222IC00", "HIKOKIH00", "GGGGGGV00", "HRLLHHH00", "HHPLJHH00", "EHHHHHE00", /* H to O */
    "UHHUGGG00", "EHHHLID00", "UHHUKIH00", "FGGE11U00", "V44444400", "HHHHHHE00", "HHHHHA400", "HHHLLLA00", /* P to W */
    "HHA4AHH00", "HHHA44400", "V1248GV00", "E88888E00", "GG8421100", "E22222E00", "4AH000000", "0000000V0", /* X to _ */
    "842000000", "00E1FHF00", "GGUHHHU00", "00EHGHE00", "11FHHHF00", "00EHVGE00", "698S88800", "00FHHHF1E", /* ` to g */
    "GGUHHHH00", "40C444E00", "2062222IC", "GGIKOKI00", "C44444E00", "00QLLLL00", "00UHHHH00", "00EHHHE00", /* h to o */
    "00UHHHUGG", "00FHHHF11", "00MPGGG00", "00FGE1U00", "88S889600", "00HHHHF00", "00HHHA400", "00HLLLA00", /* p to w */
    "00HA4AH00", "00HHHHF1E", "00V248V00", "644844600", "444444400", "C44244C00", "008L20000",              /* x to ~ */
};

struct glyph {
    uint8_t rows[FKT_FONT_HEIGHT]; /* ink starts at bit `width - 1` */
    unsigned width;
};

static struct glyph glyph_of(unsigned char c)
{
    struct glyph g = {.width = SPACE};
    unsigned ink = 0, right = 0, left = COLUMNS;
    if (c < FIRST || c > LAST) c = '?';
    for (int y = 0; y < FKT_FONT_HEIGHT; y++) {
        char digit = glyphs[c - FIRST][y];
        g.rows[y] = (uint8_t)(digit <= '9' ? digit - '0' : digit - 'A' + 10);
        ink |= g.rows[y];
    }
    if (!ink) return g;
    while (!(ink >> right & 1)) right++;
    while (!(ink >> (left - 1) & 1)) left--;
    g.width = left - right;
    for (int y = 0; y < FKT_FONT_HEIGHT; y++) g.rows[y] = (uint8_t)(g.rows[y] >> right);
    return g;
}

static int continues_utf8(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

size_t fkt_font_width(const char *text)
{
    size_t w = 0;
    for (; *text; text++)
        if (!continues_utf8(*text)) w += glyph_of((unsigned char)*text).width + 1;
    return w ? w - 1 : 0;
}

static void dot(uint8_t *rgb, uint32_t width, uint32_t height, size_t x, size_t y, unsigned scale,
                const uint8_t colour[3])
{
    for (size_t v = y; v < y + scale && v < height; v++)
        for (size_t u = x; u < x + scale && u < width; u++) memcpy(rgb + (v * width + u) * 3, colour, 3);
}

void fkt_font_draw(uint8_t *rgb, uint32_t width, uint32_t height, size_t x, size_t y, unsigned scale,
                   const uint8_t colour[3], const char *text)
{
    for (; *text; text++) {
        struct glyph g;
        if (continues_utf8(*text)) continue;
        g = glyph_of((unsigned char)*text);
        for (size_t row = 0; row < FKT_FONT_HEIGHT; row++)
            for (unsigned col = 0; col < g.width; col++)
                if (g.rows[row] >> (g.width - 1 - col) & 1)
                    dot(rgb, width, height, x + col * scale, y + row * scale, scale, colour);
        x += (size_t)(g.width + 1) * scale;
    }
}
