/* SPDX-License-Identifier: Apache-2.0 */
/* sample.c - record vectors from a class Gaussian: w = mean + A x, x standard normal, A A^T = cov. docs/method.md 1.6.
 *
 * Sample number i of class k is a function of (seed, part, k, i) alone: each sample has its own random stream, and the
 * product with A runs in one fixed order, not through BLAS, whose sums may depend on how many rows a call holds. So a
 * dataset can be extended later, split into chunks or made by many threads, and every sample stays the same to the last
 * bit. Cost: 2 m^2 flops and m normals per sample. */
#include "fedkt/synth.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "base/status.h"

/* The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection, so that two samples of one class never share a
 * stream. */
static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

/* The stream of sample i. Parts are told apart before the class is; part 0 has the streams of a vector of one part. */
static uint64_t stream_of(uint32_t part, uint32_t k, uint64_t i)
{
    const uint64_t domain = part ? mix((uint64_t)part + 0xd1b54a32d192ed03U) : 0;
    return mix(mix((domain ^ k) + 0x9e3779b97f4a7c15U) ^ i);
}

fkt_status fkt_gaussians_sample(const struct fkt_gaussians *g, uint32_t k, uint64_t seed, uint64_t first, size_t n,
                                double *w)
{
    size_t m = g->length;
    const double *mean, *factor;
    double *x = NULL;
    fkt_status st;

    if (k >= g->classes) return fkt_fail(FKT_E_ARG, "class %u is out of range: there are %u", k, g->classes);
    mean = g->mean + k * m;
    factor = g->factor + (g->pooled ? 0 : k * m * m);
    FKT_TRY(fkt_alloc(&x, m));
    for (size_t i = 0; i < n; i++, w += m) {
        struct fkt_rng rng;
        fkt_rng_init(&rng, seed, stream_of(g->part, k, first + i));
        for (size_t j = 0; j < m; j++) x[j] = fkt_rng_normal(&rng);
        for (size_t r = 0; r < m; r++) {
            double sum = mean[r];
            for (size_t j = 0; j < m; j++) sum += factor[r * m + j] * x[j];
            w[r] = sum;
        }
    }
out:
    fkt_free(x);
    return st;
}
