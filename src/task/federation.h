/* SPDX-License-Identifier: Apache-2.0 */
/* federation.h - the federation's part of a task, for task.c. */
#ifndef FKT_TASK_FEDERATION_H
#define FKT_TASK_FEDERATION_H

#include "fedkt/advanced/privacy.h"
#include "fedkt/task.h"

#include "base/status.h"
#include "task/task.h"

#include <jansson.h>

/* Both fill t->federation from what was chosen; classes, coordinates and privacy of t must be there. */
FKT_MUST_USE fkt_status fkt_federation_make(struct fkt_task *t, const struct fkt_federation_choices *c);
FKT_MUST_USE fkt_status fkt_federation_take(struct fkt_task *t, const json_t *j); /* hostile */
/* The noise of one site; counted 0 when the task has none in shares. */
FKT_MUST_USE fkt_status fkt_federation_shares(const struct fkt_task *t, struct fkt_share_plan *shares);
/* How many may be lost and collude; the same words wherever such numbers are given. */
FKT_MUST_USE fkt_status fkt_federation_check_crew(uint32_t sites, uint32_t dropped, uint32_t corrupt,
                                                  enum fkt_noise_place noise);
/* Can a server keep what this task's round makes? FKT_E_ARG says what to reduce. For tasks with a service. */
FKT_MUST_USE fkt_status fkt_federation_fits(const struct fkt_task *t);
static inline int fkt_task_has_shares(const struct fkt_task *t)
{
    return t->federation.sites && t->federation.noise == FKT_NOISE_PLACE_DISTRIBUTED;
}
FKT_MUST_USE fkt_status fkt_federation_copy(struct fkt_federation *out, const struct fkt_federation *f);
void fkt_federation_clear(struct fkt_federation *f);
json_t *fkt_federation_json(const struct fkt_federation *f); /* a new reference, or NULL when memory is out */

/* How many lost sites a task bears when nobody says: a tenth, rounded up, and two at least, but no more than
 * docs/protocol.md 1 allows beside `corrupt` (sites >= corrupt + 2 * dropped + 2). */
uint32_t fkt_federation_usual_dropped(uint32_t sites, uint32_t corrupt);

#endif
