/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - growing text, and numbers from text without surprises. */
#ifndef FKT_BASE_TEXT_H
#define FKT_BASE_TEXT_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* A growing, always NUL-terminated string. Errors are sticky: append as you like, ask fkt_text_status() once at the
 * end. */
struct fkt_text {
    char *s; /* "" never NULL after init; owned */
    size_t len, cap;
    fkt_status st;
};
void fkt_text_init(struct fkt_text *t);
void fkt_text_clear(struct fkt_text *t);
void fkt_text_add(struct fkt_text *t, const char *s);
void fkt_text_addn(struct fkt_text *t, const char *s, size_t n);
void fkt_text_addf(struct fkt_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
fkt_status fkt_text_status(const struct fkt_text *t);

/* The whole of `s` must be one number in range; "ten", "1e", "nan", "inf", "" and trailing blanks are refused with
 * FKT_E_ARG. */
FKT_MUST_USE fkt_status fkt_parse_double(double *out, const char *s);
FKT_MUST_USE fkt_status fkt_parse_u64(uint64_t *out, const char *s, uint64_t max);

/* 15 to 17 digits, the fewest that fkt_parse_double reads back as the same number. */
enum { FKT_DOUBLE_TEXT = 32 };
void fkt_double_text(char out[FKT_DOUBLE_TEXT], double x);

/* Bytes of the UTF-8 sequence that s begins with; 0 at the end and where there is none (overlong forms and
 * surrogates are none). */
size_t fkt_utf8_length(const char *s);

/* Copies as much of s as fits into `cap` bytes with its end, whole characters alone; a byte that is no UTF-8 becomes
 * '?'. */
void fkt_text_cut(char *out, size_t cap, const char *s);

/* Bytes of the control character that s begins with, which no terminal must see; 0: it is none. C0, DEL and C1, and
 * those characters that turn the writing around, end a line or cannot be seen, so that one name looks like another:
 * marks, embeddings, overrides and isolates of direction, line and paragraph separators, zero-width space and word
 * joiner, invisible operators, the byte order mark. */
size_t fkt_control_length(const char *s);
/* 1 when s may be shown to people as a name: UTF-8, not empty, no control characters. */
int fkt_plain_text(const char *s);
/* Plain text in which every character can be seen, or is U+0020: for names that people tell apart by their look. Names
 * of classes are not such: their writing may need a joiner (invisible.c). */
int fkt_plain_name(const char *s);

/* Significant digits, 1e-05 as "1e-5"; a dash when it is not finite. */
void fkt_text_number(struct fkt_text *t, double x, int digits);
/* Seconds since 1970 as "2026-12-31 23:59:59 UTC". */
#define FKT_UTC 40
void fkt_utc(char out[FKT_UTC], uint64_t seconds);

void fkt_hex(char *out /* 2n+1 */, const uint8_t *bytes, size_t n);
/* 1 when `hex` is exactly 2n lower-case digits; else 0, and out is as before. */
int fkt_unhex(uint8_t *out, const char *hex, size_t n);

#endif
