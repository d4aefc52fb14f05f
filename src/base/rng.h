/* SPDX-License-Identifier: Apache-2.0 */
/* rng.h - PUBLIC randomness: partitions, splits, procedural images, sampling from a finished release.
 * Never for noise, keys or masks: those come from crypto/entropy.h. The modules crypto and privacy may not include this
 * file (tools/modules.toml). The same seed gives the same numbers on every machine for fkt_rng_u64/below/unit; normal
 * and gamma depend on libm. */
#ifndef FKT_BASE_RNG_H
#define FKT_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct fkt_rng {
    uint64_t s[4];
    double spare;
    int has_spare;
};

/* Streams of one seed with different `stream` numbers are independent: (seed, class), (seed, image index) ... */
void fkt_rng_init(struct fkt_rng *r, uint64_t seed, uint64_t stream);
uint64_t fkt_rng_u64(struct fkt_rng *r);
uint64_t fkt_rng_below(struct fkt_rng *r, uint64_t n); /* uniform in 0..n-1, unbiased; n >= 1 */
double fkt_rng_unit(struct fkt_rng *r);                /* uniform in [0,1), 53 bits */
double fkt_rng_normal(struct fkt_rng *r);
double fkt_rng_log_gamma(struct fkt_rng *r,
                         double shape); /* log of a Gamma(shape, 1) deviate: tiny shapes do not underflow */
void fkt_rng_shuffle(struct fkt_rng *r, size_t *idx, size_t n);

#endif
