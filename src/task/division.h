/* SPDX-License-Identifier: Apache-2.0 */
/* division.h - a task in cohorts: which site is in which, the block of it in a task, and the tasks of cohorts. */
#ifndef FKT_TASK_DIVISION_H
#define FKT_TASK_DIVISION_H

#include "fedkt/keys.h"
#include "fedkt/task.h"

#include "base/status.h"
#include "task/task.h"

#include <jansson.h>

/* fkt_roster_load for more sites than one federation takes. */
#define FKT_ROSTER_SITES_MAX 1048576U
FKT_MUST_USE fkt_status fkt_roster_load_all(struct fkt_roster *out, const char *path);

/* The cohort of a site. */
uint32_t fkt_division_cohort(const uint8_t seed[32], uint32_t number, const uint8_t key[FKT_SA_KEY]);
/* SHA-256 of the keys as lower-case hexadecimal digits, sorted, a newline after each. */
FKT_MUST_USE fkt_status fkt_division_roster(uint8_t out[32], const uint8_t *keys /* (n, 32) */, uint32_t n);
/* The rosters of all cohorts of a division, one after the other. */
struct fkt_division_keys {
    uint8_t *key; /* (n, 32) owned */
    uint32_t n;
};
FKT_MUST_USE fkt_status fkt_division_keys_add(struct fkt_division_keys *k, const struct fkt_federation *cohort);
/* FKT_E_MISMATCH: they are not the roster of d, a site was left out or put in. */
FKT_MUST_USE fkt_status fkt_division_keys_check(const struct fkt_division_keys *k, const struct fkt_division *d);
void fkt_division_keys_clear(struct fkt_division_keys *k);

/* How many cohorts `sites` sites make, each of about `size`; 1: no division. */
uint32_t fkt_division_number(uint32_t sites, uint32_t size);
/* An insecure seed of cohort `index`, so that no two cohorts draw the same noise; that of cohort 0 is `seed`. */
uint64_t fkt_division_seed(uint64_t seed, uint32_t index);
/* The share of `of_all` that a cohort of `sites` sites tolerates, rounded up. */
uint32_t fkt_division_share(uint32_t of_all, uint32_t sites, uint32_t all);

/* Which sites (places in `keys`) each cohort has, in the order of `keys`. */
struct fkt_division_lists {
    uint32_t *site;  /* (n) owned: those of cohort c are site[first[c] .. first[c + 1]) */
    uint32_t *first; /* (number + 1) owned */
};
/* FKT_E_ARG when a cohort has fewer than three sites. */
FKT_MUST_USE fkt_status fkt_division_lists(struct fkt_division_lists *out, const struct fkt_division *d,
                                           const uint8_t *keys /* (d->sites, 32) */);
void fkt_division_lists_clear(struct fkt_division_lists *l);

/* Makes an ordinary task without a federation the task of a sum of cohorts. d->index is ignored. FKT_E_ARG when the
 * promise is too weak for so many sites, unless accept_weak. */
FKT_MUST_USE fkt_status fkt_task_divide(struct fkt_task *t, const struct fkt_division *d, int accept_weak);
/* The task of one cohort, from the task of the sum; service may be NULL. FKT_E_ARG: a key of its roster belongs to
 * another cohort. */
FKT_MUST_USE fkt_status fkt_task_cohort(struct fkt_task *out, const struct fkt_task *whole, uint32_t index,
                                        const struct fkt_federation_choices *federation,
                                        const struct fkt_service_choices *service);
/* The task of the sum, from that of any cohort: the same for cohorts of one division, and for no others. */
FKT_MUST_USE fkt_status fkt_task_whole(struct fkt_task *out, const struct fkt_task *cohort);

static inline int fkt_task_is_whole(const struct fkt_task *t)
{
    return t->division.number && t->division.index == FKT_DIVISION_WHOLE;
}
FKT_MUST_USE fkt_status fkt_division_take(struct fkt_task *t, const json_t *j); /* hostile; after the federation */
json_t *fkt_division_json(const struct fkt_division *d); /* a new reference, or NULL when out of memory */

#endif
