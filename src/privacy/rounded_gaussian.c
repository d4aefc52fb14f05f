/* SPDX-License-Identifier: Apache-2.0 */
/* rounded_gaussian.c - exact samples of round(N(0, sigma^2)) from uniform bits, in integers.
 *
 *   bits --> k = 0, 1, 2 ..., x in [0,1) whose digits are drawn only when needed      k + x is |N(0,1)|
 *        --> sigma * (k + x), digits of x drawn until its nearest integer is certain, a sign
 *
 * Source: Karney, "Sampling exactly from the normal distribution", ACM TOMS 42 (2016), algorithm N with its parts H and
 * B. We differ: digits have 32 bits; the last step, from (k, x) to the nearest integer of sigma*(k + x), is ours (proof
 * of all of it: rounded_gaussian.md, whose steps are cited below). No floating point between the bits and the integer,
 * so no tail is cut and no value is missing. Time depends on the value drawn: see "What leaks" in rounded_gaussian.md.
 * Cost: about 18 digits (74 bytes of entropy) and a third of a microsecond a draw, entropy from the system included. */
#include "privacy/rounded_gaussian.h"

#include <math.h>
#include <string.h>

void fkt_rounded_gaussian_init(struct fkt_rounded_gaussian *g, const struct fkt_entropy *entropy)
{
    memset(g, 0, sizeof *g);
    fkt_digits_init(&g->digits, entropy);
}

void fkt_rounded_gaussian_clear(struct fkt_rounded_gaussian *g) { fkt_wipe(g, sizeof *g); }

fkt_status fkt_gaussian_scale_init(struct fkt_gaussian_scale *s, double sigma)
{
    int exponent;
    if (!(sigma >= FKT_GAUSSIAN_SIGMA_MIN && sigma <= FKT_GAUSSIAN_SIGMA_MAX))
        return fkt_fail(FKT_E_ARG, "sigma %g cannot be sampled: it must lie in 2^-20..2^52", sigma);
    s->mantissa = (uint64_t)ldexp(frexp(sigma, &exponent), 53); /* exact: a double has 53 bits */
    s->shift = 64 + 53 - exponent;
    return FKT_OK;
}

/* Draws the digits of u up to index i. */
static inline fkt_status need_digit(struct fkt_rounded_gaussian *g, struct fkt_lazy *u, unsigned i)
{
    while (u->n <= i) {
        fkt_status st;
        if (u->n == FKT_GAUSSIAN_DIGITS) return fkt_digits_broken("two uniform numbers agree in 512 bits");
        st = fkt_digits_draw(&g->digits, &u->digit[u->n]);
        if (st != FKT_OK) return st;
        u->n++;
    }
    return FKT_OK;
}

/* *less = (u < v), drawing of each no more than is needed: step 2. */
static inline fkt_status compare(struct fkt_rounded_gaussian *g, struct fkt_lazy *u, struct fkt_lazy *v, int *less)
{
    for (unsigned i = 0;; i++) {
        fkt_status st = need_digit(g, u, i);
        if (st == FKT_OK) st = need_digit(g, v, i);
        if (st != FKT_OK) return st;
        if (u->digit[i] != v->digit[i]) {
            *less = u->digit[i] < v->digit[i];
            return FKT_OK;
        }
    }
}

static inline void copy(struct fkt_lazy *to, const struct fkt_lazy *from)
{
    to->n = from->n;
    for (unsigned i = 0; i < from->n; i++) to->digit[i] = from->digit[i];
}

/* Uniform in 0..m-1: step 3. pre: 2 <= m <= 2^16 */
static inline fkt_status below(struct fkt_rounded_gaussian *g, uint32_t m, uint32_t *out)
{
    return fkt_digits_below(&g->digits, m, (0U - m) % m, out); /* 2^32 mod m */
}

/* Algorithm H, yes with probability exp(-1/2): step 4. Falling run 1/2 > u1 > u2 > ..., yes if its length is even. */
static inline fkt_status half_exp(struct fkt_rounded_gaussian *g, int *yes)
{
    fkt_status st;
    int less;
    g->y.n = 0;
    st = need_digit(g, &g->y, 0);
    if (st != FKT_OK) return st;
    *yes = 1;
    if (g->y.digit[0] >= 0x80000000U) return FKT_OK;
    for (;;) {
        *yes = !*yes;
        g->z.n = 0;
        st = compare(g, &g->z, &g->y, &less);
        if (st != FKT_OK || !less) return st;
        copy(&g->y, &g->z);
    }
}

/* *yes with probability (2k + x)/(2k + 2): step 5. */
static inline fkt_status ratio(struct fkt_rounded_gaussian *g, uint32_t k, int *yes)
{
    uint32_t w = 0;
    fkt_status st = below(g, 2 * k + 2, &w);
    if (st != FKT_OK) return st;
    *yes = w < 2 * k;
    if (w != 2 * k) return FKT_OK;
    g->r.n = 0;
    return compare(g, &g->r, &g->x, yes);
}

/* Algorithm B, yes with probability exp(-x (2k + x)/(2k + 2)): step 5. */
static inline fkt_status accept(struct fkt_rounded_gaussian *g, uint32_t k, int *yes)
{
    struct fkt_lazy *y = &g->x; /* the run starts at x itself, which may get further digits */
    *yes = 1;
    for (;;) {
        int go;
        fkt_status st;
        g->z.n = 0;
        st = compare(g, &g->z, y, &go);
        if (st == FKT_OK && go) st = ratio(g, k, &go);
        if (st != FKT_OK || !go) return st;
        *yes = !*yes;
        copy(&g->y, &g->z);
        y = &g->y;
    }
}

/* One try at algorithm N; *yes is set if k + x (in g->x) is a sample of |N(0,1)|: step 6. */
static inline fkt_status try_normal(struct fkt_rounded_gaussian *g, uint32_t *k, int *yes)
{
    fkt_status st;
    for (*k = 0;; ++*k) { /* N1: geometric */
        if (*k == FKT_GAUSSIAN_WHOLE_END) return fkt_digits_broken("a normal deviate of 256 or more");
        st = half_exp(g, yes);
        if (st != FKT_OK) return st;
        if (!*yes) break;
    }
    *yes = 1;
    for (uint32_t i = *k * (*k - 1); *k > 1 && i > 0; i--) { /* N2 */
        st = half_exp(g, yes);
        if (st != FKT_OK || !*yes) return st;
    }
    g->x.n = 0;                          /* N3 */
    for (uint32_t i = 0; i <= *k; i++) { /* N4 */
        st = accept(g, *k, yes);
        if (st != FKT_OK || !*yes) return st;
    }
    return FKT_OK;
}

/* The integer nearest to sigma*(k + x), drawing digits of x while it is undecided: steps 7 to 9. */
static inline fkt_status nearest(struct fkt_rounded_gaussian *g, const struct fkt_gaussian_scale *s, uint32_t k,
                                 uint64_t *out)
{
    unsigned __int128 v, gap;
    fkt_status st;
    if (s->shift > 126) { /* sigma < 2^-9, so sigma*(k + x) < 1/2 */
        *out = 0;
        return FKT_OK;
    }
    st = need_digit(g, &g->x, 1);
    if (st != FKT_OK) return st;
    v = (unsigned __int128)k << 64 | (uint64_t)g->x.digit[0] << 32 | g->x.digit[1]; /* < 2^72 */
    v = v * s->mantissa + ((unsigned __int128)1 << (s->shift - 1));                 /* < 2^125 + 2^125 */
    *out = (uint64_t)(v >> s->shift);
    gap = ((unsigned __int128)1 << s->shift) - (v & (((unsigned __int128)1 << s->shift) - 1));
    for (unsigned i = 2; gap < s->mantissa; i++) { /* gap < 2^53: both products below stay under 2^85 */
        unsigned __int128 step;
        st = need_digit(g, &g->x, i);
        if (st != FKT_OK) return st;
        gap <<= 32;
        step = (unsigned __int128)s->mantissa * g->x.digit[i];
        if (step >= gap) {
            ++*out;
            break;
        }
        gap -= step;
    }
    return FKT_OK;
}

fkt_status fkt_rounded_gaussian_draw(struct fkt_rounded_gaussian *g, const struct fkt_gaussian_scale *s, int64_t *out)
{
    uint32_t k = 0, sign = 0;
    uint64_t size = 0;
    int yes = 0;
    fkt_status st;
    for (int tries = 0; !yes; tries++) {
        st = tries < FKT_GAUSSIAN_TRIES ? try_normal(g, &k, &yes)
                                        : fkt_digits_broken("10000 tries give no normal deviate");
        if (st != FKT_OK) return st;
    }
    st = nearest(g, s, k, &size);
    if (st == FKT_OK) st = fkt_digits_draw(&g->digits, &sign);
    if (st == FKT_OK) *out = sign >> 31 ? -(int64_t)size : (int64_t)size; /* size <= 256 * 2^52 + 1 */
    return st;
}
