/* SPDX-License-Identifier: Apache-2.0 */
/* federation.h - the federation's part of a task, for task.c. */
#ifndef FKT_TASK_FEDERATION_H
#define FKT_TASK_FEDERATION_H

#include "fedkt/advanced/privacy.h"
#include "fedkt/task.h"

#include "base/status.h"
#include "task/task.h"

#include <jansson.h>

/* Both fill t->federation; classes, coordinates and privacy of t must be set. */
FKT_MUST_USE fkt_status fkt_federation_make(struct fkt_task *t, const struct fkt_federation_choices *c);
FKT_MUST_USE fkt_status fkt_federation_take(struct fkt_task *t, const json_t *j); /* hostile */
/* The noise share of one site; counted 0 when the task has no noise shares. */
FKT_MUST_USE fkt_status fkt_federation_shares(const struct fkt_task *t, struct fkt_share_plan *shares);
/* Checks how many sites may be lost and collude; every place that takes these numbers uses its messages. */
FKT_MUST_USE fkt_status fkt_federation_check_crew(uint32_t sites, uint32_t dropped, uint32_t corrupt,
                                                  enum fkt_noise_place noise);
/* Checks that a server can store this task's messages and release; the FKT_E_ARG hint says what to reduce. For tasks
 * with a service. */
FKT_MUST_USE fkt_status fkt_federation_fits(const struct fkt_task *t);
static inline int fkt_task_has_shares(const struct fkt_task *t)
{
    return t->federation.sites && t->federation.noise == FKT_NOISE_PLACE_DISTRIBUTED;
}
FKT_MUST_USE fkt_status fkt_federation_copy(struct fkt_federation *out, const struct fkt_federation *f);
void fkt_federation_clear(struct fkt_federation *f);
json_t *fkt_federation_json(const struct fkt_federation *f); /* a new reference, or NULL when out of memory */

/* The default number of lost sites that a task tolerates: a tenth, rounded up, and at least two, but not more than
 * docs/protocol.md 1 allows with `corrupt` (sites >= corrupt + 2 * dropped + 2). */
uint32_t fkt_federation_usual_dropped(uint32_t sites, uint32_t corrupt);

#endif
