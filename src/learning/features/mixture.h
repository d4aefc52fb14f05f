/* SPDX-License-Identifier: Apache-2.0 */
/* mixture.h - a mixture of Gaussians: fitted by expectation-maximisation, and drawn from. */
#ifndef FKT_LEARNING_FEATURES_MIXTURE_H
#define FKT_LEARNING_FEATURES_MIXTURE_H

#include "base/rng.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum fkt_covariance { FKT_COVARIANCE_SPHERICAL = 0, FKT_COVARIANCE_DIAGONAL = 1, FKT_COVARIANCE_FULL = 2 };
#define FKT_MIXTURE_FLOOR 1e-6 /* least variance in any direction */

struct fkt_mixture {
    enum fkt_covariance kind;
    uint32_t components, m;
    double *weight; /* (components) */
    double *mean;   /* (components, m) */
    double *cov;    /* (components, c) c = fkt_mixture_cov: one variance, m variances, or (m, m) */
};
FKT_MUST_USE fkt_status fkt_mixture_new(struct fkt_mixture *g, enum fkt_covariance kind, uint32_t components,
                                        uint32_t m);
void fkt_mixture_clear(struct fkt_mixture *g);
size_t fkt_mixture_cov(const struct fkt_mixture *g);
/* Numbers that a site sends: of a full covariance one triangle. */
size_t fkt_mixture_numbers(const struct fkt_mixture *g);

/* Where EM begins: equal weights, means by k-means++ (Arthur, Vassilvitskii 2007) out of x (n, m), n >= components, and
 * the covariance of all of x. */
FKT_MUST_USE fkt_status fkt_mixture_start(struct fkt_mixture *g, const double *x, size_t n, struct fkt_rng *rng);
/* At most `iterations` of EM; ends when the mean log-likelihood rises by less than `tolerance`. likelihood (may be
 * NULL): (iterations) that before each iteration; *done of them (may be NULL). FKT_E_NUMERIC for a number that is not
 * finite. */
FKT_MUST_USE fkt_status fkt_mixture_em(struct fkt_mixture *g, const double *x, size_t n, uint32_t iterations,
                                       double tolerance, double *likelihood, uint32_t *done);
/* n draws into out (n, m). Negative eigenvalues of a full covariance count as 0: its projection onto the positive
 * semidefinite matrices. */
FKT_MUST_USE fkt_status fkt_mixture_sample(const struct fkt_mixture *g, size_t n, struct fkt_rng *rng, double *out);

#endif
