/* SPDX-License-Identifier: Apache-2.0 */
/* params.h - a copy of the parameters, and values that follow from them. */
#ifndef FKT_SECAGG_PARAMS_H
#define FKT_SECAGG_PARAMS_H

#include "fedkt/advanced/secagg.h"

#include "base/status.h"

/* Checks everything except the roster's points, which fkt_sa_params_check does once; then copies p and its roster. */
FKT_MUST_USE fkt_status fkt_sa_params_copy(struct fkt_sa_params *out, const struct fkt_sa_params *p);
void fkt_sa_params_clear(struct fkt_sa_params *p);
static inline int fkt_sa_complete(const struct fkt_sa_params *p) { return p->degree == p->sites - 1; }
/* finder.md 3: 1 when corrupt and lost sites could cut a ring, so that a site must check both of its sides (protocol.md
 * 3.5). All numbers here are below 2^17, or the other rules refuse them. */
static inline int fkt_sa_cuttable(int64_t corrupt, int64_t dropped, int64_t degree, int64_t threshold)
{
    return degree <= corrupt + dropped && 2 * threshold <= degree + corrupt;
}
/* finder.md 4: 1 when, after one total on a sparse graph, more than `dropped` honest sites refuse another. */
static inline int fkt_sa_only_once(int64_t sites, int64_t corrupt, int64_t dropped, int64_t degree, int64_t threshold)
{
    return (sites - 2 * dropped - corrupt) * (degree - threshold + 1) > dropped * (degree - threshold);
}
static inline const uint8_t *fkt_sa_roster_key(const struct fkt_sa_params *p, uint32_t site)
{
    return p->roster + (size_t)site * FKT_SA_KEY;
}
void fkt_sa_session(uint8_t session[FKT_SA_SESSION], const struct fkt_sa_params *p, const uint8_t round[FKT_SA_ROUND]);

/* Bitmaps of protocol.md 2.3. */
static inline size_t fkt_bitmap_bytes(size_t bits) { return (bits + 7) / 8; }
static inline int fkt_bitmap_get(const uint8_t *map, size_t i) { return map[i / 8] >> (i % 8) & 1; }
static inline void fkt_bitmap_set(uint8_t *map, size_t i) { map[i / 8] |= (uint8_t)(1U << (i % 8)); }
int fkt_bitmap_ok(const uint8_t *map, size_t bits); /* 1 when the unused bits are zero */
size_t fkt_bitmap_count(const uint8_t *map, size_t bits);

#endif
