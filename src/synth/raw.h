/* SPDX-License-Identifier: Apache-2.0 */
/* raw.h - packed integers of one part -> counts, means and covariances before any estimator. */
#ifndef FKT_SYNTH_RAW_H
#define FKT_SYNTH_RAW_H

#include "fedkt/advanced/synth.h"

/* Fills count, count_noise, mean, mean_noise and cov of every class; noise (K): the standard deviation of the noise on
 * a diagonal entry of cov. g has its arrays, and g->part says which part. */
FKT_MUST_USE fkt_status fkt_raw_moments(struct fkt_gaussians *g, double *noise, const int64_t *noised,
                                        const struct fkt_layout_noise *l);

#endif
