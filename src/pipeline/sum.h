/* SPDX-License-Identifier: Apache-2.0 */
/* sum.h - the release of a task in cohorts: the cohorts' releases added up. */
#ifndef FKT_PIPELINE_SUM_H
#define FKT_PIPELINE_SUM_H

#include "pipeline/release.h"

/* Adds the releases of n cohorts of one division up, in any order; the others of the division are missing from it.
 * FKT_E_MISMATCH: they are of different divisions, or one is given twice, or some are simulated and some are not. */
FKT_MUST_USE fkt_status fkt_release_sum_into(struct fkt_release *out, struct fkt_release *const *cohort, uint32_t n);

/* For release.c and certificate.c, of a release whose task is that of a sum. */
/* Which cohorts are in it, from a certificate; hostile. */
FKT_MUST_USE fkt_status fkt_sum_take(struct fkt_release *r, const char *certificate);
FKT_MUST_USE fkt_status fkt_sum_plan(struct fkt_release *r); /* promise and noise, from the list */
json_t *fkt_sum_json(const struct fkt_release *r);           /* the certificate's "cohorts"; NULL when out of memory */
json_t *fkt_sum_holds_against(const struct fkt_release *r);
void fkt_sum_warnings(json_t *list, const struct fkt_release *r);
void fkt_sum_clear(struct fkt_sum *s);

#endif
