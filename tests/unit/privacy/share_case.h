/* SPDX-License-Identifier: Apache-2.0 */
/* share_case.h - one case of tests/vectors/privacy_shares.json as a plan. */
#ifndef FKT_TEST_PRIVACY_SHARE_CASE_H
#define FKT_TEST_PRIVACY_SHARE_CASE_H

#include "fedkt/advanced/privacy.h"
#include "tests/support/layouts.h"
#include "tests/support/vectors.h"

/* 0: of a scaled count, 1: a sum, 2: the diagonal, 3: off it; of the first part. */
static inline const struct fkt_dyadic *share_case_variance(const struct fkt_share_plan *p, int kind)
{
    return kind == 0   ? &p->variance_count
           : kind == 1 ? &p->variance[0].sum
           : kind == 2 ? &p->variance[0].moment
                       : &p->variance[0].cross;
}

static inline void share_case_plan(struct fkt_share_plan *p, const json_t *c)
{
    const json_t *j = json_object_get(c, "plan");
    const char *adjacency = vectors_text(j, "adjacency");
    const json_t *variance = json_object_get(j, "variance"), *split = json_object_get(j, "budget_split");
    *p = (struct fkt_share_plan){.counted = (uint32_t)vectors_int(j, "counted"),
                                 .sites = (uint32_t)vectors_int(j, "sites"),
                                 .count_scale = (uint32_t)vectors_int(j, "count_scale"),
                                 .rho = vectors_number(j, "rho"),
                                 .tail = vectors_int(j, "tail")};
    p->plan.mu = vectors_number(j, "mu");
    p->plan.spec =
        (struct fkt_privacy_spec){.epsilon = vectors_number(j, "epsilon"),
                                  .delta = vectors_number(j, "delta"),
                                  .adjacency = !strcmp(adjacency, "replace")       ? FKT_ADJACENCY_REPLACE
                                               : !strcmp(adjacency, "replace-any") ? FKT_ADJACENCY_REPLACE_ANY
                                                                                   : FKT_ADJACENCY_ADD_REMOVE,
                                  .split_count = json_number_value(json_array_get(split, 0)),
                                  .parts = 1,
                                  .part = {{vectors_number(j, "radius"), json_number_value(json_array_get(split, 1)),
                                            json_number_value(json_array_get(split, 2))}}};
    CHECK(json_array_size(variance) == 4 && json_array_size(split) == 3);
    for (size_t i = 0; i < 4; i++) {
        const json_t *v = json_array_get(variance, i);
        struct fkt_dyadic *to = (struct fkt_dyadic *)(uintptr_t)share_case_variance(p, (int)i);
        to->num = (uint64_t)json_integer_value(json_array_get(v, 0));
        to->shift = (uint32_t)json_integer_value(json_array_get(v, 1));
    }
}

static inline double share_case_value(const struct fkt_dyadic *v) { return ldexp((double)v->num, -(int)v->shift); }

#endif
