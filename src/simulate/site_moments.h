/* SPDX-License-Identifier: Apache-2.0 */
/* site_moments.h - the moments of many sites, kept for further rounds: in memory when they are small, else in an
 * unlinked file. PRIVATE. */
#ifndef FKT_SIMULATE_SITE_MOMENTS_H
#define FKT_SIMULATE_SITE_MOMENTS_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct fkt_site_moments;
/* `slots` vectors of `length`, all zero; sets *out. Up to `memory` bytes they are in memory. */
FKT_MUST_USE fkt_status fkt_site_moments_new(struct fkt_site_moments **out, uint32_t slots, size_t length,
                                             uint64_t memory);
void fkt_site_moments_free(struct fkt_site_moments *s);
/* Both may be called from several threads, for one slot each. */
FKT_MUST_USE fkt_status fkt_site_moments_put(struct fkt_site_moments *s, uint32_t slot, const int64_t *x);
FKT_MUST_USE fkt_status fkt_site_moments_get(const struct fkt_site_moments *s, uint32_t slot, int64_t *x);

#endif
