/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - shared by the two planners: checks, the split of a mu over the sigmas, and the reverse. */
#ifndef FKT_PRIVACY_PLAN_H
#define FKT_PRIVACY_PLAN_H

#include "fedkt/privacy.h"

FKT_MUST_USE fkt_status fkt_plan_check_spec(const struct fkt_privacy_spec *s);
/* The sigmas of p->spec (cross excepted) under which neighbours are at most mu apart, rounded up: plan.md, steps 2
 * and 4. */
void fkt_plan_joint(struct fkt_privacy_plan *p, double mu);
/* How far apart neighbours are under the sigmas of p, rounded up. NaN when a sigma is not a number. */
double fkt_plan_distance(const struct fkt_privacy_plan *p);
double fkt_plan_mu_squared(const struct fkt_privacy_plan *p); /* the square of it, rounded up less */
int fkt_plan_finite(const struct fkt_privacy_plan *p);        /* 1: every sigma of a part is a finite number */
FKT_MUST_USE fkt_status fkt_plan_impossible(const struct fkt_privacy_spec *s); /* the error when it is not */

#endif
