/* SPDX-License-Identifier: Apache-2.0 */
/* invisible.c - code points that are invisible or blank.
 *
 * Two names that differ by one of them have different bytes but look the same, so a byte comparison does not find the
 * duplicate. The table is Default_Ignorable_Code_Point of the Unicode Character Database, version 15.0.0
 * (DerivedCoreProperties.txt), including unassigned ranges, so that a later version leaves no gap there; and assigned
 * blanks: separators other than U+0020 (general categories Zs, Zl, Zp), U+2800 BRAILLE PATTERN BLANK, and the
 * interlinear marks U+FFF9 to U+FFFB. Letters that look like others (Cyrillic and Latin a) are not included: no table
 * of them would be complete, and names are shown with fingerprints for that reason.
 *
 * tests/conventions/check_invisible.py compares it with Python's own database. */
#include "base/text.h"

#include <stddef.h>
#include <stdint.h>

static const struct {
    uint32_t from, to;
} ranges[] = {
    {0x00A0, 0x00A0},   /* NO-BREAK SPACE */
    {0x00AD, 0x00AD},   /* SOFT HYPHEN */
    {0x034F, 0x034F},   /* COMBINING GRAPHEME JOINER */
    {0x061C, 0x061C},   /* ARABIC LETTER MARK */
    {0x115F, 0x1160},   /* HANGUL FILLERS */
    {0x1680, 0x1680},   /* OGHAM SPACE MARK */
    {0x17B4, 0x17B5},   /* KHMER INHERENT VOWELS */
    {0x180B, 0x180F},   /* MONGOLIAN SELECTORS AND SEPARATOR */
    {0x2000, 0x200F},   /* SPACES, ZERO WIDTH CHARACTERS, DIRECTION MARKS */
    {0x2028, 0x202F},   /* LINE AND PARAGRAPH SEPARATORS, DIRECTIONS, NARROW SPACE */
    {0x205F, 0x206F},   /* MATHEMATICAL SPACE, INVISIBLE OPERATORS, ISOLATES */
    {0x2800, 0x2800},   /* BRAILLE PATTERN BLANK */
    {0x3000, 0x3000},   /* IDEOGRAPHIC SPACE */
    {0x3164, 0x3164},   /* HANGUL FILLER */
    {0xFE00, 0xFE0F},   /* VARIATION SELECTORS */
    {0xFEFF, 0xFEFF},   /* ZERO WIDTH NO-BREAK SPACE */
    {0xFFA0, 0xFFA0},   /* HALFWIDTH HANGUL FILLER */
    {0xFFF0, 0xFFFB},   /* UNASSIGNED, INTERLINEAR MARKS */
    {0x1BCA0, 0x1BCA3}, /* SHORTHAND FORMAT CONTROLS */
    {0x1D173, 0x1D17A}, /* MUSICAL SYMBOL CONTROLS */
    {0xE0000, 0xE0FFF}, /* TAGS, VARIATION SELECTORS SUPPLEMENT, UNASSIGNED */
};

/* Of a well-formed sequence (fkt_utf8_length). */
static uint32_t code_point(const unsigned char *u, size_t n)
{
    uint32_t c = n == 1 ? u[0] : u[0] & (0xFFU >> (n + 1));
    for (size_t i = 1; i < n; i++) c = c << 6 | (u[i] & 0x3F);
    return c;
}

static int invisible(uint32_t c)
{
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i].from && c <= ranges[i].to) return 1;
    return 0;
}

int fkt_plain_name(const char *s)
{
    if (!fkt_plain_text(s)) return 0;
    for (size_t n; *s; s += n) {
        n = fkt_utf8_length(s);
        if (invisible(code_point((const unsigned char *)s, n))) return 0;
    }
    return 1;
}
