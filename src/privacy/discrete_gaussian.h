/* SPDX-License-Identifier: Apache-2.0 */
/* discrete_gaussian.h - integers x with probability proportional to exp(-x^2/(2 sigma^2)), exactly.
 *
 *   fkt_discrete_gaussian_init(&g, entropy);       borrows entropy (NULL: the operating system) until release
 *   fkt_discrete_scale_init(&s, &variance);        once per sigma^2 = num/2^shift
 *   fkt_discrete_gaussian_draw(&g, &s, &out);      as often as you like
 *   fkt_discrete_gaussian_clear(&g);             wipes
 */
#ifndef FKT_PRIVACY_DISCRETE_GAUSSIAN_H
#define FKT_PRIVACY_DISCRETE_GAUSSIAN_H

#include "base/status.h"
#include "fedkt/advanced/privacy.h"
#include "privacy/digits.h"

#include <stdint.h>

#define FKT_DISCRETE_BITS 62 /* 1 <= num < 2^62, shift <= 62: what the widths in discrete_gaussian.md rest on */
/* Limits of one draw, beyond which it is an error; a draw is never truncated silently. Their probabilities: below
 * 2^-368, 2^-1600, 2^-500 and 2^-5000. */
#define FKT_DISCRETE_WHOLE_END 256 /* |draw| < 256 * (floor(sigma) + 1) */
#define FKT_DISCRETE_RUN_END 256   /* length of a decreasing run in Bernoulli(exp(-x)) */
#define FKT_DISCRETE_DIGITS 16     /* of 32 bits, for one uniform number */
#define FKT_DISCRETE_TRIES 10000   /* at one draw */

struct fkt_discrete_scale {
    uint64_t num;
    uint32_t shift;
    uint32_t t;                    /* floor(sigma) + 1, the Laplace scale; <= 2^31 */
    uint32_t rest;                 /* 2^32 mod t */
    unsigned __int128 denominator; /* of the rejection's exponent: t^2 2^(shift+1) num < 2^127 */
};

struct fkt_discrete_gaussian {
    struct fkt_digits digits;
};

void fkt_discrete_gaussian_init(struct fkt_discrete_gaussian *g, const struct fkt_entropy *entropy);
void fkt_discrete_gaussian_clear(struct fkt_discrete_gaussian *g);
/* FKT_E_ARG when num or shift are outside what FKT_DISCRETE_BITS allows. */
FKT_MUST_USE fkt_status fkt_discrete_scale_init(struct fkt_discrete_scale *s, const struct fkt_dyadic *variance);
/* FKT_E_ENTROPY when the source fails, or its output is not uniform. *out is set on FKT_OK only. */
FKT_MUST_USE fkt_status fkt_discrete_gaussian_draw(struct fkt_discrete_gaussian *g, const struct fkt_discrete_scale *s,
                                                   int64_t *out);

#endif
