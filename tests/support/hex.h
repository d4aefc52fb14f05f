/* SPDX-License-Identifier: Apache-2.0 */
/* hex.h - bytes written as hexadecimal digits, as published test vectors have them. */
#ifndef FKT_TEST_HEX_H
#define FKT_TEST_HEX_H

#include "base/text.h"
#include "tests/support/check.h"

/* Gives the number of bytes; "-" is none. Fails the test on anything but pairs of digits, or beyond `cap` bytes. */
static inline size_t unhex(uint8_t *out, size_t cap, const char *hex)
{
    size_t n = strcmp(hex, "-") == 0 ? 0 : strlen(hex);
    if (n % 2 || n / 2 > cap) fail_msg("%zu digits do not fit %zu bytes", n, cap);
    for (size_t i = 0; i < n / 2; i++) {
        char pair[3] = {hex[2 * i], hex[2 * i + 1], 0}, *end;
        out[i] = (uint8_t)strtoul(pair, &end, 16);
        if (end != pair + 2) fail_msg("'%s' is not hexadecimal", pair);
    }
    return n / 2;
}

static inline void unhex32(uint8_t out[32], const char *hex)
{
    if (unhex(out, 32, hex) != 32) fail_msg("'%s' is not 32 bytes", hex);
}

static inline void check_hex(const uint8_t *got, size_t n, const char *want, int line)
{
    char hex[2 * 256 + 1];
    if (n > 256) fail_msg("line %d: too long to compare", line);
    fkt_hex(hex, got, n);
    if (strcmp(hex, want) != 0) fail_msg("line %d: got %s, want %s", line, hex, want);
}
#define CHECK_HEX(got, n, want) check_hex((got), (n), (want), __LINE__)

#endif
