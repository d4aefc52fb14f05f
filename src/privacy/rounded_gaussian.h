/* SPDX-License-Identifier: Apache-2.0 */
/* rounded_gaussian.h - integers distributed exactly as round(N(0, sigma^2)).
 *
 *   fkt_rounded_gaussian_init(&g, entropy);        borrows entropy (NULL: the operating system) until release
 *   fkt_gaussian_scale_init(&s, sigma);            once per sigma
 *   fkt_rounded_gaussian_draw(&g, &s, &out);       as often as you like
 *   fkt_rounded_gaussian_clear(&g);              wipes
 */
#ifndef FKT_PRIVACY_ROUNDED_GAUSSIAN_H
#define FKT_PRIVACY_ROUNDED_GAUSSIAN_H

#include "base/status.h"
#include "privacy/digits.h"

#include <stdint.h>

#define FKT_GAUSSIAN_SIGMA_MIN 0x1p-20
#define FKT_GAUSSIAN_SIGMA_MAX 0x1p52
/* Limits of one draw, beyond which it is an error; a draw is never truncated silently. Their probabilities: below
 * 2^-180, 2^-512 and 2^-9000. */
#define FKT_GAUSSIAN_WHOLE_END 256 /* |draw| <= 256 * sigma + 1/2 */
#define FKT_GAUSSIAN_DIGITS 16     /* of 32 bits, for one uniform number */
#define FKT_GAUSSIAN_TRIES 10000   /* at one normal deviate */

/* sigma = mantissa * 2^(64 - shift), exactly. */
struct fkt_gaussian_scale {
    uint64_t mantissa; /* 0 < mantissa < 2^53 */
    int shift;         /* 64..136 */
};

/* A uniform number in [0, 1) of which only the first n digits have been drawn. */
struct fkt_lazy {
    uint32_t digit[FKT_GAUSSIAN_DIGITS];
    unsigned n;
};

struct fkt_rounded_gaussian {
    struct fkt_digits digits;
    struct fkt_lazy x, y, z, r; /* work space of one draw; not on the stack, so that clear can wipe it */
};

void fkt_rounded_gaussian_init(struct fkt_rounded_gaussian *g, const struct fkt_entropy *entropy);
void fkt_rounded_gaussian_clear(struct fkt_rounded_gaussian *g);
/* FKT_E_ARG when sigma is outside FKT_GAUSSIAN_SIGMA_MIN..MAX, NaN included. */
FKT_MUST_USE fkt_status fkt_gaussian_scale_init(struct fkt_gaussian_scale *s, double sigma);
/* FKT_E_ENTROPY when the source fails, or its output is not uniform. *out is set on FKT_OK only. */
FKT_MUST_USE fkt_status fkt_rounded_gaussian_draw(struct fkt_rounded_gaussian *g, const struct fkt_gaussian_scale *s,
                                                  int64_t *out);

#endif
