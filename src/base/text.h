/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - growing text, and strict number parsers. */
#ifndef FKT_BASE_TEXT_H
#define FKT_BASE_TEXT_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* A growing, always NUL-terminated string. Errors are sticky: append freely, then check fkt_text_status() once. */
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

/* Length in bytes of the UTF-8 sequence at s; 0 at the end and where there is no valid one (overlong forms and
 * surrogates are invalid). */
size_t fkt_utf8_length(const char *s);

/* Copies as much of s as fits into `cap` bytes including the NUL, whole characters only; bytes that are not UTF-8
 * become '?'. */
void fkt_text_cut(char *out, size_t cap, const char *s);
int fkt_ends_in(const char *s, const char *ending); /* and is longer */

/* Length in bytes of the control character at s, which must not reach a terminal; 0: it is not one. C0, DEL and C1, and
 * characters that change the writing direction, end a line or are invisible, so that one name looks like another:
 * marks, embeddings, overrides and isolates of direction, line and paragraph separators, zero-width space and word
 * joiner, invisible operators, the byte order mark. */
size_t fkt_control_length(const char *s);
/* 1 when s may be shown to people as a name: UTF-8, not empty, no control characters. */
int fkt_plain_text(const char *s);
/* Plain text in which every character is visible, or is U+0020: for names that people compare by eye. Class names may
 * be otherwise: their script may need a joiner (invisible.c). */
int fkt_plain_name(const char *s);

/* Significant digits, 1e-05 as "1e-5"; a dash when it is not finite. */
void fkt_text_number(struct fkt_text *t, double x, int digits);
/* Seconds since 1970 as "2026-12-31 23:59:59 UTC". */
#define FKT_UTC 40
void fkt_utc(char out[FKT_UTC], uint64_t seconds);

void fkt_hex(char *out /* 2n+1 */, const uint8_t *bytes, size_t n);
/* 1 when `hex` is exactly 2n lower-case digits; else 0, and out is unchanged. */
int fkt_unhex(uint8_t *out, const char *hex, size_t n);

#endif
