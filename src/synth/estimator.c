/* SPDX-License-Identifier: Apache-2.0 */
/* estimator.c - corrects the eigenvalues l of a covariance that carries known noise.
 *
 *   clamp   max(l, floor): the paper's correction; keeps all of the spread that the noise added to the spectrum.
 *   rie     keeps the eigenvectors and moves each eigenvalue to the expected true value along its noisy eigenvector:
 *               xi_i = l_i - 2 e^2 g(l_i),     g(l) = (1/m) sum_j (l - l_j) / ((l - l_j)^2 + eta^2),     e^2 = m v/2
 * Source: Bun, Allez, Bouchaud, Potters, "Rotational invariant estimator for general noisy matrices", IEEE Trans. Inf.
 * Theory 62 (2016): additive Gaussian noise of variance v on the diagonal and v/2 off it, whose own spectrum is a
 * semicircle of radius 2e, the noise edge.
 *
 * The formula is asymptotic in m. Three additions are ours, checked by simulation (tests/unit/synth/test_estimator.c):
 *  - the smoothing eta = e/sqrt(m): wider than the gap between eigenvalues (about e/m), narrower than the spectrum;
 *  - xi is made ascending by isotonic regression, since the optimal eigenvalues almost always are;
 *  - the trace is kept. Noise moves it by sqrt(m v) only, and cutting negative eigenvalues at 0 would add far more; so
 *    all are lowered by one shift until the positive ones carry the trace (the Euclidean projection on that simplex).
 * With these the Frobenius error is within about 10 % of the best that any choice of eigenvalues could reach, for
 * m >= 64 and noise up to the size of the largest eigenvalue. Cost: m^2 divisions. */
#include "synth/estimator.h"

#include <math.h>

void fkt_spectrum_clamp(double *x, size_t m, double floor)
{
    for (size_t i = 0; i < m; i++)
        if (x[i] < floor) x[i] = floor;
}

/* Pool adjacent violators: the ascending sequence nearest to x. size[b] counts the members of block b. */
static void make_ascending(double *x, size_t m, double *size)
{
    size_t blocks = 0, i = m;
    for (size_t k = 0; k < m; k++) {
        x[blocks] = x[k];
        size[blocks++] = 1;
        while (blocks > 1 && x[blocks - 2] >= x[blocks - 1]) {
            double a = size[blocks - 2], b = size[blocks - 1];
            x[blocks - 2] = (a * x[blocks - 2] + b * x[blocks - 1]) / (a + b);
            size[blocks - 2] = a + b;
            blocks--;
        }
    }
    while (blocks > 0) { /* spread the blocks out again, from the end: block b is never after its members */
        double value = x[--blocks];
        for (size_t n = (size_t)size[blocks]; n > 0; n--) x[--i] = value;
    }
}

/* x ascending, trace > 0: subtracts one shift from all, then cuts at 0, so that the sum is `trace`. Never raises. */
static void keep_trace(double *x, size_t m, double trace)
{
    double sum = 0, shift = 0;
    for (size_t k = 0; k < m; k++) { /* k + 1 largest stay positive */
        double candidate;
        sum += x[m - 1 - k];
        candidate = (sum - trace) / (double)(k + 1);
        if (x[m - 1 - k] <= candidate) break;
        shift = candidate;
    }
    if (shift < 0) shift = 0;
    for (size_t i = 0; i < m; i++) x[i] = x[i] > shift ? x[i] - shift : 0;
}

void fkt_spectrum_rie(double *x, const double *values, size_t m, double noise, double *work)
{
    double e2 = (double)m * noise * noise / 2, eta2 = e2 / (double)m, trace = 0;
    for (size_t i = 0; i < m; i++) {
        double g = 0;
        trace += values[i];
        for (size_t j = 0; j < m && e2 > 0; j++) {
            double gap = values[i] - values[j];
            g += gap / (gap * gap + eta2);
        }
        x[i] = values[i] - 2 * e2 * g / (double)m;
    }
    if (e2 > 0) {
        make_ascending(x, m, work);
        keep_trace(x, m, fmax(trace, sqrt((double)m) * noise)); /* below its own noise the trace has no information */
    }
    fkt_spectrum_clamp(x, m, 0);
}
