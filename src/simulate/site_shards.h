/* SPDX-License-Identifier: Apache-2.0 */
/* site_shards.h - the sites of a simulation over several ranks. */
#ifndef FKT_SIMULATE_SITE_SHARDS_H
#define FKT_SIMULATE_SITE_SHARDS_H

#include "fedkt/advanced/simulate.h"

/* Walks the records of the surviving sites: those of site s are order[first[s] .. first[s+1]-1]. Rank 0's sim gets the
 * total, the sites' moments where they are kept, and the norms. */
FKT_MUST_USE fkt_status fkt_site_shards(struct fkt_simulation *sim, const struct fkt_simulation_spec *spec,
                                        const size_t *order, const size_t *first);
uint32_t fkt_simulation_place(const struct fkt_simulation *sim, uint32_t site); /* in the roster */

#endif
