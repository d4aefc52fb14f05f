/* SPDX-License-Identifier: Apache-2.0 */
/* synth.h - noised moments -> one Gaussian per class -> record vectors. Sees released numbers only, so all of it is
 * free of privacy cost.
 *
 * Letters: K classes, m length of w, or of one part of it where the record vector has several. Means and covariances
 * are in units of w (already divided by Rq/R).
 */
#ifndef FEDKT_SYNTH_H
#define FEDKT_SYNTH_H

#include "fedkt/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* FKT_ESTIMATOR_RAW leaves the covariance as it was measured, maybe not positive, and is for heads, which know what to
 * do with its noise; its factor is that of FKT_ESTIMATOR_CLAMP. */
enum fkt_estimator { FKT_ESTIMATOR_CLAMP = 0, FKT_ESTIMATOR_RIE = 1, FKT_ESTIMATOR_RAW = 2 };

struct fkt_estimate_options {
    enum fkt_estimator estimator;
    double tau;  /* 0..1: eigenvalue floor, relative to the largest eigenvalue of the class before it; 0: 1e-6 */
    double pool; /* 0..1: weight of the covariance pooled over classes; 0: none */
};

struct fkt_gaussians {
    uint32_t classes, length;
    uint32_t part;      /* of the record vector's layout; each has Gaussians of its own, with the same counts */
    uint32_t offset;    /* where the part begins in the record vector */
    int pooled;         /* 1: all classes have one covariance, from pooled moments: cov and factor are (1, m, m) */
    double *count;      /* (K) n^ >= 1: the noisy n, combined with the counts in second moments where there are any */
    double *mean;       /* (K, m) */
    double *cov;        /* (K, m, m) symmetric, positive semidefinite except after FKT_ESTIMATOR_RAW */
    double *factor;     /* (K, m, m) A with A A^T = cov (FKT_ESTIMATOR_RAW: = the clamped cov), row-major */
    double *noise_edge; /* (K) spectral edge of the noise in cov: sqrt(2m) s_M unit^2 / n^ */
    double *mean_noise; /* (K) standard deviation of the noise in each coordinate of mean */
    double *signal; /* (K) largest eigenvalue of the raw, unpooled covariance over its noise edge; at most 1e9, which
                         * also stands for a release without noise */
    double *count_noise; /* (K) standard deviation of the error of count; 0: counts are exact */
};

FKT_API void fkt_gaussians_clear(struct fkt_gaussians *g);
/* 1 when class k cannot be told from no records at all: its count is within three standard deviations of none, or its
 * largest eigenvalue within what pure noise reaches (Tracy-Widom, about one false all-clear in 10,000); and
 * where there is no class k. */
FKT_API double fkt_gaussians_reach(uint32_t length); /* the signal that pure noise may have, a little above 1 */
FKT_API int fkt_gaussians_below_noise(const struct fkt_gaussians *g, uint32_t k);

/* w (n, m) ~ N(mean_k, cov_k). Sample number first+i of class k depends on (seed, part, k, first+i) alone: any number,
 * in any chunks, at any time; parts are independent. */
FKT_API FKT_MUST_USE fkt_status fkt_gaussians_sample(const struct fkt_gaussians *g, uint32_t k, uint64_t seed,
                                                     uint64_t first, size_t n, double *w);

/* Names, as in a task and on the command line; -1 when unknown. */
FKT_API const char *fkt_estimator_name(enum fkt_estimator e);
FKT_API int fkt_estimator_parse(const char *s);

#ifdef __cplusplus
}
#endif
#endif
