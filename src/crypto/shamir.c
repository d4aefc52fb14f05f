/* SPDX-License-Identifier: Apache-2.0 */
/* shamir.c - Shamir's secret sharing (CACM 22, 1979) over the scalars of Ed25519, with libsodium's field arithmetic.
 *
 * split: share i = f(x_i), f(x) = secret + c_1 x + ... + c_{t-1} x^{t-1}, by Horner's rule.
 * join:  f(0) = P * sum_i s_i / d_i,  P = prod_j x_j,  d_i = x_i * prod_{j != i} (x_j - x_i)   (Lagrange).
 *
 * Where we differ from the textbook: points have 32 bits, so the field's multiplication is seldom needed. `step`
 * multiplies by one word and reduces at once, cheaply, because l is close to 2^252; as many public factors of d_i as
 * fit are combined into that word. The sum of fractions is kept as one fraction N/D, to which s_i/d_i is added by
 * N := N*d_i + s_i*D, D := D*d_i: one inversion is enough, and join needs no memory for weights. libsodium does the
 * rest: reductions of 512 bits, the inversion, the last products.
 *
 * Cost: split n*t steps of six 64-bit products. join t^2 small products and, with points below 2^10, a step for every
 * six of them; 2t reductions; one inversion (half of the time when t = 67).
 *
 * Secrets: shares, secret, coefficients, N. They are used only in additions, multiplications and libsodium's scalar
 * functions, none of which branches or indexes by value; loops depend on points and counts, which are public. Whether a
 * share was below l is reported, and is public. */
#include "crypto/shamir.h"

#include "base/alloc.h"

#include <sodium.h>
#include <string.h>

/* Limb 0 is the lowest. In this file numbers are below 2^254, not always below l, until num_get. */
struct num {
    uint64_t limb[4];
};

enum { WORD_BITS = 60 }; /* of the factor of a step */

static const uint64_t excess[2] = {0x5812631a5cf5d3ed, 0x14def9dea2f79cd6}; /* l - 2^252, below 2^125 */
static const struct num order = {{0x5812631a5cf5d3ed, 0x14def9dea2f79cd6, 0, 0x1000000000000000}}, zero;

static void num_set(struct num *a, const uint8_t s[FKT_SCALAR_BYTES])
{
    memset(a, 0, sizeof *a);
    for (int i = 0; i < FKT_SCALAR_BYTES; i++) a->limb[i / 8] |= (uint64_t)s[i] << (8 * (i % 8));
}

/* r := p modulo l, below l. */
static void reduce(uint8_t r[FKT_SCALAR_BYTES], const uint64_t p[8])
{
    uint8_t b[64];
    for (int i = 0; i < 64; i++) b[i] = (uint8_t)(p[i / 8] >> (8 * (i % 8)));
    crypto_core_ed25519_scalar_reduce(r, b);
    sodium_memzero(b, sizeof b);
}

static void num_get(uint8_t s[FKT_SCALAR_BYTES], const struct num *a)
{
    uint64_t p[8] = {0};
    memcpy(p, a->limb, sizeof a->limb);
    reduce(s, p);
    sodium_memzero(p, sizeof p);
}

/* r := a - b without a borrow at the end. */
static void num_sub(struct num *r, const struct num *a, const struct num *b)
{
    __int128 carry = 0;
    for (int i = 0; i < 4; i++) {
        carry += (__int128)a->limb[i] - b->limb[i];
        r->limb[i] = (uint64_t)carry;
        carry >>= 64;
    }
}

/* a := a*w + c modulo l, for a word w below 2^60.
 *   a*w + c = 2^252 h + low  ==  low + l - h*(l - 2^252)  (mod l)
 * a, c < 2^254, so h < 2^62 + 4 is one limb and h*(l - 2^252) < 2^188 < l: the result is above 0 and below
 * 2^252 + l < 2^254. */
static void step(struct num *a, uint64_t w, const struct num *c)
{
    unsigned __int128 up = 0, back = 0;
    __int128 sum = 0;
    uint64_t h;
    for (int i = 0; i < 4; i++) {
        up += (unsigned __int128)a->limb[i] * w + c->limb[i];
        a->limb[i] = (uint64_t)up;
        up >>= 64;
    }
    h = (uint64_t)up << 4 | a->limb[3] >> 60;
    a->limb[3] &= UINT64_MAX >> 4;
    for (int i = 0; i < 4; i++) {
        if (i < 2) back += (unsigned __int128)h * excess[i];
        sum += (__int128)a->limb[i] + order.limb[i] - (uint64_t)back;
        a->limb[i] = (uint64_t)sum;
        back >>= 64;
        sum >>= 64;
    }
}

/* p := p + a*b, which the caller knows to be below 2^512. */
static void add_product(uint64_t p[8], const struct num *a, const struct num *b)
{
    for (int i = 0; i < 4; i++) {
        unsigned __int128 carry = 0;
        for (int j = 0; j < 4; j++) {
            carry += (unsigned __int128)a->limb[i] * b->limb[j] + p[i + j];
            p[i + j] = (uint64_t)carry;
            carry >>= 64;
        }
        for (int j = i + 4; j < 8; j++) {
            carry += p[j];
            p[j] = (uint64_t)carry;
            carry >>= 64;
        }
    }
}

/* 1 when below l: the borrow of s - l. */
int fkt_scalar_ok(const uint8_t s[FKT_SCALAR_BYTES])
{
    struct num a;
    uint64_t borrow = 0;
    num_set(&a, s);
    for (int i = 0; i < 4; i++) borrow = (uint64_t)(((unsigned __int128)a.limb[i] - order.limb[i] - borrow) >> 64) & 1;
    sodium_memzero(&a, sizeof a);
    return (int)borrow;
}

fkt_status fkt_scalar_random(uint8_t out[FKT_SCALAR_BYTES], struct fkt_entropy *entropy)
{
    uint8_t b[64];
    fkt_status st = entropy->fill(entropy->self, b, sizeof b);
    if (st == FKT_OK) crypto_core_ed25519_scalar_reduce(out, b);
    else memset(out, 0, FKT_SCALAR_BYTES);
    sodium_memzero(b, sizeof b);
    return st;
}

/* The only branch on the bytes of a secret or share; a separate function, so that tests/ct can name it. */
static __attribute__((noinline)) fkt_status scalar_verdict(int good, fkt_status otherwise, const char *what)
{
    if (good) return FKT_OK;
    return fkt_fail(otherwise, "a %s is not below the order of the group", what);
}

static fkt_status check_points(const uint32_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (x[i] == 0) return fkt_fail(FKT_E_ARG, "share %zu has the point 0, which is the secret", i);
        for (size_t j = 0; j < i; j++)
            if (x[i] == x[j]) return fkt_fail(FKT_E_ARG, "shares %zu and %zu have the same point %u", j, i, x[i]);
    }
    return FKT_OK;
}

/* c[1..t-1] uniform below l. Many are drawn in one call: a system call for fewer is not faster. */
static fkt_status draw_coefficients(struct num *c, size_t t, struct fkt_entropy *entropy)
{
    uint8_t raw[16][64], s[FKT_SCALAR_BYTES] = {0};
    fkt_status st = FKT_OK;
    for (size_t j = 1, m; j < t; j += m) {
        m = t - j < 16 ? t - j : 16;
        FKT_TRY(entropy->fill(entropy->self, raw[0], 64 * m));
        for (size_t k = 0; k < m; k++) {
            crypto_core_ed25519_scalar_reduce(s, raw[k]);
            num_set(&c[j + k], s);
        }
    }
out:
    sodium_memzero(raw, sizeof raw);
    sodium_memzero(s, sizeof s);
    return st;
}

fkt_status fkt_shamir_split(uint8_t *shares, const uint8_t secret[FKT_SCALAR_BYTES], const uint32_t *x, size_t n,
                            size_t t, struct fkt_entropy *entropy)
{
    struct num *c = NULL, a; /* c (t), by degree */
    fkt_status st;
    if (t < 1 || t > n) return fkt_fail(FKT_E_ARG, "threshold %zu of %zu shares: must be 1 to %zu", t, n, n);
    FKT_TRY(check_points(x, n));
    FKT_TRY(scalar_verdict(fkt_scalar_ok(secret), FKT_E_ARG, "secret"));
    FKT_TRY(fkt_alloc(&c, t));
    num_set(&c[0], secret);
    FKT_TRY(draw_coefficients(c, t, entropy));
    for (size_t i = 0; i < n; i++) {
        a = c[t - 1];
        for (size_t j = t - 1; j > 0; j--) step(&a, x[i], &c[j - 1]);
        num_get(shares + FKT_SCALAR_BYTES * i, &a);
    }
    sodium_memzero(&a, sizeof a);
out:
    if (c) sodium_memzero(c, t * sizeof *c);
    fkt_free(c);
    return st;
}

/* d := |d_i|; returns 1 when d_i is negative. The points are public and checked by check_points. */
static int denominator(struct num *d, const uint32_t *x, size_t t, size_t i)
{
    uint64_t word = x[i];
    int negative = 0;
    *d = (struct num){{1}};
    for (size_t j = 0; j < t; j++) {
        uint64_t gap = x[j] > x[i] ? x[j] - x[i] : x[i] - x[j], more;
        if (j == i) continue;
        negative ^= x[j] < x[i];
        if (__builtin_mul_overflow(word, gap, &more) || more >> WORD_BITS) {
            step(d, word, &zero);
            more = gap;
        }
        word = more;
    }
    step(d, word, &zero);
    return negative;
}

/* N/D := N/D + s/d, all below l but d, which is below 2^254. */
static void add_fraction(struct num *N, struct num *D, const struct num *s, const struct num *d)
{
    uint64_t above[8] = {0}, below[8] = {0};
    uint8_t b[FKT_SCALAR_BYTES];
    add_product(above, N, d);
    add_product(above, s, D);
    add_product(below, D, d);
    reduce(b, above);
    num_set(N, b);
    sodium_memzero(above, sizeof above);
    sodium_memzero(b, sizeof b);
    reduce(b, below);
    num_set(D, b);
}

fkt_status fkt_shamir_join(uint8_t secret[FKT_SCALAR_BYTES], const uint8_t *shares, const uint32_t *x, size_t t)
{
    struct num N = {{0}}, D = {{1}}, P = {{1}}, d, s;
    uint8_t above[FKT_SCALAR_BYTES], below[FKT_SCALAR_BYTES], factor[FKT_SCALAR_BYTES];
    fkt_status st;
    int good = 1;
    memset(secret, 0, FKT_SCALAR_BYTES);
    if (t < 1) return fkt_fail(FKT_E_ARG, "no shares to join");
    FKT_TRY(check_points(x, t));
    for (size_t i = 0; i < t; i++) good &= fkt_scalar_ok(shares + FKT_SCALAR_BYTES * i);
    FKT_TRY(scalar_verdict(good, FKT_E_PEER_FORMAT, "share"));
    for (size_t i = 0; i < t; i++) {
        num_set(&s, shares + FKT_SCALAR_BYTES * i);
        if (denominator(&d, x, t, i)) num_sub(&s, &order, &s);
        add_fraction(&N, &D, &s, &d);
        step(&P, x[i], &zero);
    }
    num_get(above, &N);
    num_get(below, &D);
    num_get(factor, &P);
    crypto_core_ed25519_scalar_mul(above, above, factor);
    crypto_core_ed25519_scalar_invert(factor, below);
    crypto_core_ed25519_scalar_mul(secret, above, factor);
    sodium_memzero(&N, sizeof N);
    sodium_memzero(&s, sizeof s);
    sodium_memzero(above, sizeof above);
out:
    return st;
}
