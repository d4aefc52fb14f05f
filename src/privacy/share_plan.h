/* SPDX-License-Identifier: Apache-2.0 */
/* share_plan.h - the guarantees of a plan with noise shares, computed from its variances alone. */
#ifndef FKT_PRIVACY_SHARE_PLAN_H
#define FKT_PRIVACY_SHARE_PLAN_H

#include "fedkt/advanced/privacy.h"

#define FKT_SHARE_ENTRIES ((uint64_t)1 << 32) /* most numbers in one total; tail and tau assume it */

/* Standard deviations of `shares` shares together in the units of the moments, rounded down; cross rounded up. */
void fkt_share_sigmas(const struct fkt_share_plan *p, uint32_t shares, struct fkt_sigmas *sigma);
/* GDP of `counted` shares: share_gdp.md; rounded up. Infinite where a share has a variance below 1, or all of them
 * together below 4; NaN when the plan has NaN. */
double fkt_share_mu(const struct fkt_share_plan *p);
/* rho of `counted` shares: share_plan.md, steps 2 to 4; rounded up. NaN when the plan has NaN. Never above
 * mu^2/2 of the same plan. */
double fkt_share_rho(const struct fkt_share_plan *p);

#endif
