/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - shared by the two planners: checks, the split of a mu over three sigmas, and the reverse. */
#ifndef FKT_PRIVACY_PLAN_H
#define FKT_PRIVACY_PLAN_H

#include "fedkt/privacy.h"

FKT_MUST_USE fkt_status fkt_plan_check_spec(const struct fkt_privacy_spec *s);
/* The three sigmas of p->spec under which neighbours are at most mu apart, rounded up: plan.md, steps 2 and 4. */
void fkt_plan_joint(struct fkt_privacy_plan *p, double mu);
/* How far apart neighbours are under the sigmas of p, rounded up. NaN when a sigma is not a number. */
double fkt_plan_distance(const struct fkt_privacy_plan *p);

#endif
