/* SPDX-License-Identifier: Apache-2.0 */
/* inverse.c - 1/n and 1/n^2 from a noisy count N = n + s Z, without bias.
 *
 * The expectation of 1/N is not 1/n: it is (1/n)(1 + r + 3 r^2 + ...), r = (s/n)^2. Subtracting the first term gives a
 * correction that grows without bound when r is not small. An exact solution is known (Voinov 1985): with t = N/s and
 * Mills' ratio H(t) = (1 - Phi(t))/phi(t),
 *
 *     E[ H(t)/s ] = 1/n       and, differentiating in n,       E[ (1 - t H(t))/s^2 ] = 1/n^2       for every n > 0.
 *
 * Both are positive, decrease with N and are bounded for N >= 0 (by sqrt(pi/2)/s and 1/s^2), so no cap is needed. They
 * grow without bound only for N < 0, which the caller excludes by N >= 1; the bias of that cut is of the order of
 * Phi(-n/s). estimate.md has the proof. Cost: one erfc and exp, or eighty divisions. */
#include "synth/inverse.h"

#include <math.h>

#define SQRT_HALF_PI 1.2533141373155002512 /* sqrt(pi/2) */
#define SQRT_HALF 0.70710678118654752440
#define LEVELS 80

struct fkt_inverse fkt_inverse_count(double count, double sigma)
{
    double t, tail = 0, mills;
    if (!(sigma > 1e-8 * count)) return (struct fkt_inverse){1 / count, 1 / (count * count)};
    t = count / sigma;
    if (t < 4) {
        mills = SQRT_HALF_PI * exp(t * t / 2) * erfc(t * SQRT_HALF);
        return (struct fkt_inverse){mills / sigma, (1 - t * mills) / (sigma * sigma)};
    }
    /* Laplace's continued fraction H = 1/(t + 1/(t + 2/(t + 3/(...)))): 1 - t H = tail/(t + tail) has no cancellation.
     * From t = 4 on, 80 levels give it to the last bits. */
    for (int k = LEVELS; k >= 1; k--) tail = k / (t + tail);
    return (struct fkt_inverse){1 / (t + tail) / sigma, tail / (t + tail) / (sigma * sigma)};
}
