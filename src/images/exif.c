/* SPDX-License-Identifier: Apache-2.0 */
/* exif.c - finds the EXIF block of a JPEG (APP1), PNG (eXIf) or WebP (EXIF) file, and in it the tag Orientation.
 *
 * Source: CIPA DC-008 (EXIF 2.32) 4.5.2 and 4.6.2 A; a block is a small TIFF: byte order, 42, the offset of the first
 * directory, entries of 12 bytes. The file is parsed here instead of by the image libraries, which
 * would copy every block of a hostile file into memory first. Only the first directory is looked at, so that no loop of
 * offsets can hang the reader. A block is interpreted as in Pillow's ImageOps.exif_transpose; where we differ: values
 * other than 1 to 8, other types than SHORT, and PNG chunks with a wrong checksum count as no orientation. */
#include "images/exif.h"

#include <string.h>
#include <zlib.h>

enum { ORIENTATION = 0x0112, TYPE_SHORT = 3, ENTRY = 12 };

static uint32_t number(const uint8_t *p, unsigned bytes, int big)
{
    uint32_t v = 0;
    for (unsigned i = 0; i < bytes; i++) v = v << 8 | p[big ? i : bytes - 1 - i];
    return v;
}

static unsigned of_block(const uint8_t *p, size_t len)
{
    static const uint8_t prefix[6] = {'E', 'x', 'i', 'f', 0, 0};
    uint32_t at, entries;
    int big;
    if (len >= sizeof prefix && !memcmp(p, prefix, sizeof prefix)) { /* JPEG always, WebP by habit */
        p += sizeof prefix;
        len -= sizeof prefix;
    }
    if (len < 8 || (memcmp(p, "II", 2) && memcmp(p, "MM", 2))) return 1;
    big = p[0] == 'M';
    at = number(p + 4, 4, big);
    if (number(p + 2, 2, big) != 42 || at > len || len - at < 2) return 1;
    entries = number(p + at, 2, big);
    if (entries > (len - at - 2) / ENTRY) entries = (uint32_t)((len - at - 2) / ENTRY);
    for (uint32_t i = 0; i < entries; i++) {
        const uint8_t *e = p + at + 2 + (size_t)i * ENTRY;
        uint32_t value = number(e + 8, 2, big);
        if (number(e, 2, big) != ORIENTATION) continue;
        return number(e + 2, 2, big) == TYPE_SHORT && number(e + 4, 4, big) == 1 && value >= 1 && value <= 8 ? value
                                                                                                             : 1;
    }
    return 1;
}

unsigned fkt_exif_of_jpeg(const uint8_t *data, size_t len)
{
    size_t at = 2; /* after SOI */
    while (at + 4 <= len && data[at] == 0xff) {
        uint8_t marker = data[at + 1];
        size_t n = number(data + at + 2, 2, 1);
        if (marker == 0xff) { /* fill bytes */
            at++;
            continue;
        }
        if (marker == 0xda || n < 2 || n > len - at - 2) return 1; /* pixels begin, or the lengths are wrong */
        if (marker == 0xe1 && n >= 8 && !memcmp(data + at + 4, "Exif\0\0", 6)) return of_block(data + at + 4, n - 2);
        at += 2 + n;
    }
    return 1;
}

unsigned fkt_exif_of_png(const uint8_t *data, size_t len)
{
    size_t at = 8; /* after the signature */
    while (at + 12 <= len) {
        size_t n = number(data + at, 4, 1);
        if (n > len - at - 12) return 1;
        if (!memcmp(data + at + 4, "eXIf", 4))
            return crc32(crc32(0, NULL, 0), data + at + 4, (uInt)n + 4) == number(data + at + 8 + n, 4, 1)
                       ? of_block(data + at + 8, n)
                       : 1;
        at += 12 + n;
    }
    return 1;
}

unsigned fkt_exif_of_webp(const uint8_t *data, size_t len)
{
    size_t at = 12; /* after RIFF, its length and WEBP */
    while (at + 8 <= len) {
        size_t n = number(data + at + 4, 4, 0);
        if (n > len - at - 8) return 1;
        if (!memcmp(data + at, "EXIF", 4)) return of_block(data + at + 8, n);
        at += 8 + n + (n & 1);
    }
    return 1;
}
