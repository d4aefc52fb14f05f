/* SPDX-License-Identifier: Apache-2.0 */
/* discrete_gaussian.c - exact samples of the discrete Gaussian N_Z(0, sigma^2) from uniform bits, in integers.
 *
 *   bits --> u in 0..t-1, kept with probability exp(-u/t); v successes of exp(-1); a sign     y = +-(u + t v): Laplace
 *        --> kept with probability exp(-(|y| - sigma^2/t)^2/(2 sigma^2))                      y: Gaussian
 *
 * Source: Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020, algorithms 1 to 3.
 * We differ: sigma^2 is a dyadic number, so every probability is a ratio of integers below 2^167, and a Bernoulli draw
 * of such a probability is a lazy comparison, digit by digit, that is exact and nearly always decided by its first
 * digit (no division, no modulo bias, no floating point). Proof, widths and the order in which digits are drawn:
 * discrete_gaussian.md, whose steps are cited below. Time depends on the value drawn: see "What leaks" there. Cost:
 * about 12 digits (50 bytes of entropy) and a quarter of a microsecond a draw, entropy from the system included; twice
 * the digits where sigma is below 1. */
#include "privacy/discrete_gaussian.h"

#include "fedkt/advanced/privacy.h"

#include <assert.h>

/* hi * 2^64 + lo */
struct wide {
    unsigned __int128 hi;
    uint64_t lo;
};

static inline struct wide wide_of(unsigned __int128 a) { return (struct wide){a >> 64, (uint64_t)a}; }

static inline struct wide wide_times(unsigned __int128 a, uint64_t b)
{
    const unsigned __int128 low = (unsigned __int128)(uint64_t)a * b;
    return (struct wide){(unsigned __int128)(uint64_t)(a >> 64) * b + (uint64_t)(low >> 64), (uint64_t)low};
}

static inline int wide_at_least(struct wide a, struct wide b) { return a.hi != b.hi ? a.hi > b.hi : a.lo >= b.lo; }

/* pre: a >= b */
static inline struct wide wide_minus(struct wide a, struct wide b)
{
    return (struct wide){a.hi - b.hi - (a.lo < b.lo), a.lo - b.lo};
}

/* pre: a < 2^160 */
static inline struct wide wide_next_digit(struct wide a) { return (struct wide){a.hi << 32 | a.lo >> 32, a.lo << 32}; }

void fkt_discrete_gaussian_init(struct fkt_discrete_gaussian *g, const struct fkt_entropy *entropy)
{
    fkt_digits_init(&g->digits, entropy);
}

void fkt_discrete_gaussian_clear(struct fkt_discrete_gaussian *g) { fkt_wipe(g, sizeof *g); }

/* The largest r with r^2 <= x, bit by bit. */
static uint32_t root(uint64_t x)
{
    uint64_t r = 0;
    for (uint64_t bit = (uint64_t)1 << 31; bit > 0; bit >>= 1)
        if ((r | bit) * (r | bit) <= x) r |= bit;
    return (uint32_t)r;
}

fkt_status fkt_discrete_scale_init(struct fkt_discrete_scale *s, const struct fkt_dyadic *variance)
{
    if (variance->num == 0 || variance->num >> FKT_DISCRETE_BITS || variance->shift > FKT_DISCRETE_BITS)
        return fkt_fail(FKT_E_ARG,
                        "a variance of %llu / 2^%u cannot be sampled: it must have 1 <= numerator < 2^62 and "
                        "an exponent of 62 at most",
                        (unsigned long long)variance->num, variance->shift);
    s->num = variance->num;
    s->shift = variance->shift;
    s->t = root(s->num >> s->shift) + 1;
    s->rest = (0U - s->t) % s->t;
    s->denominator = ((unsigned __int128)s->t * s->t << (s->shift + 1)) * s->num; /* step 5: < 2^127 */
    return FKT_OK;
}

/* Yes with probability r/(d k): a uniform number in [0,1), digit by digit, is below it: step 2.
 * pre: r <= d k, d < 2^127, 1 <= k <= 256 */
static inline fkt_status coin(struct fkt_discrete_gaussian *g, struct wide r, unsigned __int128 d, uint32_t k, int *yes)
{
    const struct wide whole = wide_times(d, k);
    for (int i = 0; i < FKT_DISCRETE_DIGITS; i++) {
        uint32_t digit;
        struct wide part;
        fkt_status st = fkt_digits_draw(&g->digits, &digit);
        if (st != FKT_OK) return st;
        part = wide_times(d, (uint64_t)digit * k);
        r = wide_next_digit(r);
        *yes = 0;
        if (wide_at_least(part, r)) return FKT_OK;
        r = wide_minus(r, part);
        *yes = 1;
        if (wide_at_least(r, whole)) return FKT_OK;
    }
    return fkt_digits_broken("a uniform number agrees with a probability in 512 bits");
}

/* Yes with probability exp(-r/d), given that the coins below `first` were yes: step 3. pre: r <= d */
static inline fkt_status exp_coin(struct fkt_discrete_gaussian *g, struct wide r, unsigned __int128 d, uint32_t first,
                                  int *yes)
{
    for (uint32_t k = first; k <= FKT_DISCRETE_RUN_END; k++) {
        int go;
        fkt_status st = coin(g, r, d, k, &go);
        if (st != FKT_OK) return st;
        *yes = k & 1;
        if (!go) return FKT_OK;
    }
    return fkt_digits_broken("256 unlikely events in a row");
}

/* Yes with probability exp(-1): its first coin is certain and is not drawn. */
static inline fkt_status exp_one(struct fkt_discrete_gaussian *g, int *yes)
{
    return exp_coin(g, (struct wide){0, 1}, 1, 2, yes);
}

/* Yes with probability exp(-r/d) for any r: step 3. */
static inline fkt_status exp_many(struct fkt_discrete_gaussian *g, struct wide r, unsigned __int128 d, int *yes)
{
    const struct wide one = wide_of(d);
    for (int i = 0; wide_at_least(r, one); i++) {
        fkt_status st =
            i < FKT_DISCRETE_WHOLE_END ? exp_one(g, yes) : fkt_digits_broken("256 unlikely events in a row");
        if (st != FKT_OK || !*yes) return st;
        r = wide_minus(r, one);
    }
    return exp_coin(g, r, d, 1, yes);
}

/* One try at the discrete Laplace distribution of scale t; *yes is set if it succeeded: step 4. */
static inline fkt_status try_laplace(struct fkt_discrete_gaussian *g, const struct fkt_discrete_scale *s,
                                     uint64_t *size, int *negative, int *yes)
{
    uint32_t u = 0, v, sign = 0;
    int more;
    fkt_status st = fkt_digits_below(&g->digits, s->t, s->rest, &u);
    if (st == FKT_OK) st = exp_coin(g, (struct wide){0, u}, s->t, 1, yes);
    if (st != FKT_OK || !*yes) return st;
    for (v = 0;; v++) {
        if (v == FKT_DISCRETE_WHOLE_END) return fkt_digits_broken("a Laplace deviate of 256 scales or more");
        st = exp_one(g, &more);
        if (st != FKT_OK) return st;
        if (!more) break;
    }
    st = fkt_digits_draw(&g->digits, &sign);
    *size = u + (uint64_t)s->t * v;
    *negative = (int)(sign >> 31);
    *yes = !(*negative && *size == 0); /* else 0 would have twice its weight */
    return st;
}

/* Yes with probability exp(-(|y| - sigma^2/t)^2/(2 sigma^2)): step 5. */
static inline fkt_status keep(struct fkt_discrete_gaussian *g, const struct fkt_discrete_scale *s, uint64_t size,
                              int *yes)
{
    const unsigned __int128 y = ((unsigned __int128)size * s->t) << s->shift, num = s->num;
    const unsigned __int128 a = y > num ? y - num : num - y;
    struct wide square = wide_times(a, (uint64_t)a);
    assert(a >> 72 == 0);
    square.hi += a * (uint64_t)(a >> 64); /* < 2^80 */
    return exp_many(g, square, s->denominator, yes);
}

fkt_status fkt_discrete_gaussian_draw(struct fkt_discrete_gaussian *g, const struct fkt_discrete_scale *s, int64_t *out)
{
    for (int tries = 0; tries < FKT_DISCRETE_TRIES; tries++) {
        uint64_t size = 0;
        int negative = 0, yes = 0;
        fkt_status st = try_laplace(g, s, &size, &negative, &yes);
        if (st == FKT_OK && yes) st = keep(g, s, size, &yes);
        if (st != FKT_OK) return st;
        if (!yes) continue;
        *out = negative ? -(int64_t)size : (int64_t)size; /* size < 2^39 */
        return FKT_OK;
    }
    return fkt_digits_broken("10000 tries give no discrete Gaussian");
}
