/* SPDX-License-Identifier: Apache-2.0 */
/* rng.c - public randomness: xoshiro256++ (Blackman, Vigna 2019) seeded by splitmix64; Marsaglia's polar normals;
 * Marsaglia-Tsang gammas (2000), in logarithms so that Dirichlet(0.001) partitions do not turn into 0/0. */
#include "base/rng.h"

#include <math.h>

static uint64_t splitmix(uint64_t *x)
{
    uint64_t z = (*x += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

static uint64_t rotl(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

void fkt_rng_init(struct fkt_rng *r, uint64_t seed, uint64_t stream)
{
    uint64_t a = seed, b = stream ^ 0x6a09e667f3bcc909U;
    uint64_t x = splitmix(&a) ^ rotl(splitmix(&b), 17);
    for (int i = 0; i < 4; i++) r->s[i] = splitmix(&x);
    r->has_spare = 0;
    r->spare = 0;
}

uint64_t fkt_rng_u64(struct fkt_rng *r)
{
    uint64_t *s = r->s, out = rotl(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return out;
}

uint64_t fkt_rng_below(struct fkt_rng *r, uint64_t n)
{
    uint64_t limit = (0 - n) % n, x; /* the lowest 2^64 mod n values would cause a bias */
    do x = fkt_rng_u64(r);
    while (x < limit);
    return x % n;
}

double fkt_rng_unit(struct fkt_rng *r) { return (double)(fkt_rng_u64(r) >> 11) * 0x1p-53; }

double fkt_rng_normal(struct fkt_rng *r)
{
    double x, y, s, f;
    if (r->has_spare) {
        r->has_spare = 0;
        return r->spare;
    }
    do {
        x = 2 * fkt_rng_unit(r) - 1;
        y = 2 * fkt_rng_unit(r) - 1;
        s = x * x + y * y;
    } while (s >= 1 || s == 0);
    f = sqrt(-2 * log(s) / s);
    r->spare = y * f;
    r->has_spare = 1;
    return x * f;
}

double fkt_rng_log_gamma(struct fkt_rng *r, double shape)
{
    double boost = 0, d, c, x, v, u;
    if (shape < 1) { /* Gamma(a) = Gamma(a+1) * U^(1/a) */
        boost = log(1 - fkt_rng_unit(r)) / shape;
        shape += 1;
    }
    d = shape - 1.0 / 3;
    c = 1 / sqrt(9 * d);
    for (;;) {
        do {
            x = fkt_rng_normal(r);
            v = 1 + c * x;
        } while (v <= 0);
        v = v * v * v;
        u = 1 - fkt_rng_unit(r);
        if (log(u) < 0.5 * x * x + d - d * v + d * log(v)) return log(d * v) + boost;
    }
}

void fkt_rng_shuffle(struct fkt_rng *r, size_t *idx, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)fkt_rng_below(r, i), t = idx[i - 1];
        idx[i - 1] = idx[j];
        idx[j] = t;
    }
}
