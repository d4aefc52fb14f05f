/* SPDX-License-Identifier: Apache-2.0 */
/* privacy.h - the mechanisms: noise added in one place, or in shares at the sites. For programs that release numbers of
 * their own; a task's release is made by fkt_release_make (release.h). */
#ifndef FEDKT_ADVANCED_PRIVACY_H
#define FEDKT_ADVANCED_PRIVACY_H

#include "fedkt/privacy.h"
#include "fedkt/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The largest mu^2 that two neighbours can be apart under `adjacency`: for each part a = radius/s_m, b = radius^2/s_M,
 * and c = 1/s_n (0 where counts are public). NaN on bad input. */
FKT_API double fkt_privacy_mu_squared(enum fkt_adjacency adjacency, double c, uint32_t parts, const double *a,
                                      const double *b);

struct fkt_entropy; /* not public: pass NULL, which means the operating system; others are for this library's tests */
/* noised = exact + integer noise, both in the order of the layout, in which the noise is drawn. Debits plan->mu^2
 * first. noised may be exact. Rounded Gaussians, exactly sampled: since the query is an integer, this is
 * post-processing of the continuous mechanism. FKT_E_MISMATCH, before the debit, when the plan is for another layout,
 * or when `exact` cannot be a sum of records inside the plan's radii. After the debit a failure leaves `noised` all
 * zero, in place too. */
FKT_API FKT_MUST_USE fkt_status fkt_privacy_release(int64_t *noised, const int64_t *exact, uint32_t classes,
                                                    const struct fkt_moments_layout *layout,
                                                    const struct fkt_privacy_plan *plan, struct fkt_ledger *ledger,
                                                    struct fkt_entropy *entropy);

/* ---- noise in shares: each site adds its own before masking, and nobody ever sees a total without noise ----
 *
 * A share is a discrete Gaussian (Canonne, Kamath, Steinke 2020). The promise rests on `counted` of them, those of the
 * honest sites that are certain to be in a total; every further one is surplus noise. A total of them is a Gaussian
 * mechanism with 3 less variance, processed, up to a factor that is counted (docs/privacy.md), so mu below is
 * a GDP parameter and epsilon follows from it by the Gaussian formula. Counts are multiplied by count_scale first, so
 * that a small share of their noise is still many units wide. */
struct fkt_dyadic { /* num / 2^shift */
    uint64_t num;
    uint32_t shift;
};
struct fkt_part_variance { /* of one share, in one part */
    struct fkt_dyadic sum, moment, cross;
};
struct fkt_share_plan {
    struct fkt_privacy_plan plan;                     /* of `counted` shares together, in the units of the moments */
    uint32_t counted;                                 /* shares that the promise rests on */
    uint32_t sites;                                   /* most shares that one total can hold */
    uint32_t count_scale;                             /* a power of two */
    struct fkt_dyadic variance_count;                 /* of one share, of a scaled count; num 0: counts are public */
    struct fkt_part_variance variance[FKT_PARTS_MAX]; /* (plan.spec.parts) */
    double rho;                                       /* zCDP of one release; at most mu^2/2 */
    int64_t tail; /* |noise of a total| exceeds it in any of 2^32 entries with probability < 2^-80 */
};
FKT_API FKT_MUST_USE fkt_status fkt_privacy_plan_shares(struct fkt_share_plan *out, const struct fkt_privacy_spec *spec,
                                                        uint32_t counted, uint32_t sites);
FKT_API double fkt_privacy_rho(double epsilon, double delta);      /* largest safe rho, rounded down; NaN */
FKT_API double fkt_privacy_epsilon_zcdp(double delta, double rho); /* smallest epsilon, rounded up */
/* x = exact with counts scaled + one share of noise, in the order of the layout. PRIVATE: it may leave only
 * under masks (advanced/secagg.h), since one share protects nobody. FKT_E_MISMATCH as above. On
 * failure x is all zero. The caller's ledger must have been asked first. */
FKT_API FKT_MUST_USE fkt_status fkt_privacy_share(int64_t *x, const int64_t *exact, uint32_t classes,
                                                  const struct fkt_moments_layout *layout,
                                                  const struct fkt_share_plan *plan, struct fkt_entropy *entropy);
/* A total of shares back to the units of the moments: counts divided by count_scale and rounded (post-processing).
 * noised may be total. */
FKT_API FKT_MUST_USE fkt_status fkt_privacy_gather(int64_t *noised, const int64_t *total, uint32_t classes,
                                                   const struct fkt_moments_layout *layout,
                                                   const struct fkt_share_plan *plan, uint32_t shares);
/* The standard deviations that `shares` shares really give in what fkt_privacy_gather makes. Both refuse a number of
 * shares outside counted..sites. */
FKT_API FKT_MUST_USE fkt_status fkt_privacy_total_sigmas(struct fkt_sigmas *out, const struct fkt_share_plan *plan,
                                                         uint32_t shares);

/* ---- cohorts: totals of disjoint sites, each with shares of its own, added up ----
 *
 * A record is in one cohort, so all totals together cost what the costliest of them does; each needs the whole noise,
 * since its total is known by itself. The sum of C equal cohorts has C times the variance of one cohort of all sites
 * (src/privacy/cohorts.md). */
struct fkt_cohort {
    uint32_t sites, dropped, corrupt; /* of its task: `dropped` may be lost, `corrupt` may collude with the server */
    uint32_t survivors;               /* whose vectors are in its total */
};
struct fkt_cohorts_noise {
    struct fkt_privacy_plan plan; /* of the cohort with the largest mu: the promise of all totals together */
    struct fkt_sigmas sigma;      /* noise that is really in the sum */
    uint32_t sites, survivors, counted;
    double variance_factor; /* of the second moments, against one cohort that has all sites and tolerates as many */
};
FKT_API FKT_MUST_USE fkt_status fkt_privacy_cohorts(struct fkt_cohorts_noise *out, const struct fkt_privacy_spec *spec,
                                                    const struct fkt_cohort *cohort, size_t n);
/* The most colluding sites, of `sites` that were assigned to cohorts at random, for which every one of these cohorts
 * has at most its `corrupt` of them, except with probability 2^-FKT_COLLUSION_BITS over all of these cohorts. Rounded
 * down; 0 where some cohort tolerates none. sites: at least those of the cohorts together. */
#define FKT_COLLUSION_BITS 40
FKT_API uint32_t fkt_privacy_covered(uint32_t sites, const struct fkt_cohort *cohort, size_t n);

#ifdef __cplusplus
}
#endif
#endif
