/* SPDX-License-Identifier: Apache-2.0 */
/* estimator.h - eigenvalues of a noisy covariance -> eigenvalues to use. m eigenvalues, ascending; work (m) is scratch.
 */
#ifndef FKT_SYNTH_ESTIMATOR_H
#define FKT_SYNTH_ESTIMATOR_H

#include <stddef.h>

/* Raises values below `floor` to it. */
void fkt_spectrum_clamp(double *x, size_t m, double floor);
/* x = values shrunk against symmetric Gaussian noise with standard deviation `noise` on the diagonal and noise/sqrt(2)
 * off it; ascending, >= 0, of the same sum as values where the sum exceeds the noise. noise = 0: the values,
 * negative ones as 0. */
void fkt_spectrum_rie(double *x, const double *values, size_t m, double noise, double *work);

#endif
