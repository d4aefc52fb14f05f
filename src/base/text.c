/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - growing text, and strict number parsers.
 * atoi reads "ten" as 0; the parsers here accept a whole string or nothing. */
#include "base/text.h"

#include "base/alloc.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static char nothing[1] = "";

void fkt_text_init(struct fkt_text *t)
{
    memset(t, 0, sizeof *t);
    t->s = nothing;
}

void fkt_text_clear(struct fkt_text *t)
{
    if (t->s != nothing) fkt_free(t->s);
    fkt_text_init(t);
}

static int reserve(struct fkt_text *t, size_t more)
{
    char *s = t->s == nothing ? NULL : t->s;
    size_t cap = t->cap ? t->cap : 256;
    if (t->st != FKT_OK) return 0;
    if (t->len + more + 1 <= t->cap) return 1;
    while (cap < t->len + more + 1) cap *= 2;
    t->st = fkt_realloc(&s, cap);
    if (t->st != FKT_OK) return 0;
    if (t->len == 0) s[0] = '\0';
    t->s = s;
    t->cap = cap;
    return 1;
}

void fkt_text_addn(struct fkt_text *t, const char *s, size_t n)
{
    if (!reserve(t, n)) return;
    memcpy(t->s + t->len, s, n);
    t->len += n;
    t->s[t->len] = '\0';
}

void fkt_text_add(struct fkt_text *t, const char *s) { fkt_text_addn(t, s, strlen(s)); }

void fkt_text_addf(struct fkt_text *t, const char *fmt, ...)
{
    va_list ap, again;
    int n;
    va_start(ap, fmt);
    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n >= 0 && reserve(t, (size_t)n)) {
        vsnprintf(t->s + t->len, (size_t)n + 1, fmt, again);
        t->len += (size_t)n;
    }
    va_end(again);
}

fkt_status fkt_text_status(const struct fkt_text *t) { return t->st; }

fkt_status fkt_parse_double(double *out, const char *s)
{
    char *end;
    double x;
    if (!s || !(*s == '-' || *s == '.' || (*s >= '0' && *s <= '9')))
        return fkt_fail(FKT_E_ARG, "'%s' is not a number", s ? s : "");
    errno = 0;
    x = strtod(s, &end);
    if (*end != '\0' || end == s || !isfinite(x)) return fkt_fail(FKT_E_ARG, "'%s' is not a number", s);
    *out = x;
    return FKT_OK;
}

void fkt_double_text(char out[FKT_DOUBLE_TEXT], double x)
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, FKT_DOUBLE_TEXT, "%.*g", digits, x);
        if (strtod(out, NULL) == x) return;
    }
}

fkt_status fkt_parse_u64(uint64_t *out, const char *s, uint64_t max)
{
    char *end;
    unsigned long long x;
    if (!s || !(*s >= '0' && *s <= '9')) return fkt_fail(FKT_E_ARG, "'%s' is not a whole number", s ? s : "");
    errno = 0;
    x = strtoull(s, &end, 10);
    if (*end != '\0') return fkt_fail(FKT_E_ARG, "'%s' is not a whole number", s);
    if (errno == ERANGE || x > max) return fkt_fail(FKT_E_ARG, "'%s' is larger than %llu", s, (unsigned long long)max);
    *out = x;
    return FKT_OK;
}

size_t fkt_utf8_length(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = s[0] == 0 ? 0 : s[0] < 0x80 ? 1 : s[0] < 0xc2 || s[0] > 0xf4 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0)) return 0;
    if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90)) return 0;
    return n;
}

void fkt_text_number(struct fkt_text *t, double x, int digits)
{
    char text[48], *zero;
    if (!isfinite(x)) {
        fkt_text_add(t, "\xe2\x80\x93");
        return;
    }
    snprintf(text, sizeof text, "%.*g", digits, x);
    zero = strstr(text, "e-0");
    if (zero) memmove(zero + 2, zero + 3, strlen(zero + 3) + 1);
    fkt_text_add(t, text);
}

void fkt_utc(char out[FKT_UTC], uint64_t seconds)
{
    time_t t = (time_t)seconds;
    struct tm tm;
    if (!gmtime_r(&t, &tm) || !strftime(out, FKT_UTC, "%Y-%m-%d %H:%M:%S UTC", &tm))
        snprintf(out, FKT_UTC, "%llu", (unsigned long long)seconds);
}

void fkt_hex(char *out, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * n] = '\0';
}

int fkt_unhex(uint8_t *out, const char *hex, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    if (strlen(hex) != 2 * n || strspn(hex, digits) != 2 * n) return 0;
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)((strchr(digits, hex[2 * i]) - digits) << 4 | (strchr(digits, hex[2 * i + 1]) - digits));
    return 1;
}

int fkt_ends_in(const char *s, const char *ending)
{
    const size_t n = strlen(s), m = strlen(ending);
    return n > m && !strcmp(s + n - m, ending);
}

void fkt_text_cut(char *out, size_t cap, const char *s)
{
    size_t at = 0, n;
    for (; *s; s += n, at += n) {
        const size_t whole = fkt_utf8_length(s);
        n = whole ? whole : 1;
        if (at + n >= cap) break;
        memcpy(out + at, whole ? s : "?", n);
    }
    out[at] = '\0';
}

/* U+200B, U+200E, U+200F, U+2028 .. U+202E, U+2060 .. U+206F (all e2 80 xx or e2 81 xx). The two joiners U+200C and
 * U+200D are allowed: Persian words and emoji need them. */
static int is_unseen(unsigned char second, unsigned char third)
{
    if (second == 0x81) return third >= 0xA0 && third <= 0xAF;
    return second == 0x80 && (third == 0x8B || third == 0x8E || third == 0x8F || (third >= 0xA8 && third <= 0xAE));
}

size_t fkt_control_length(const char *s)
{
    const unsigned char *u = (const unsigned char *)s;
    if (!*u) return 0;
    if (*u < 0x20 || *u == 0x7F) return 1;
    if (u[0] == 0xC2) return u[1] >= 0x80 && u[1] < 0xA0 ? 2 : 0;
    if (u[0] == 0xD8) return u[1] == 0x9C ? 2 : 0; /* U+061C */
    if (u[0] == 0xE2) return u[1] && is_unseen(u[1], u[2]) ? 3 : 0;
    return u[0] == 0xEF && u[1] == 0xBB && u[2] == 0xBF ? 3 : 0; /* U+FEFF */
}

int fkt_plain_text(const char *s)
{
    if (!*s) return 0;
    for (size_t n; *s; s += n)
        if (!(n = fkt_utf8_length(s)) || fkt_control_length(s)) return 0;
    return 1;
}
