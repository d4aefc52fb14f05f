/* SPDX-License-Identifier: Apache-2.0 */
/* mask.h - the ring Z_2^b in words of 32 or 64 bits: packing, masking, unmasking (docs/protocol.md 2.3, 3.4). */
#ifndef FKT_SECAGG_MASK_H
#define FKT_SECAGG_MASK_H

#include "fedkt/advanced/secagg.h"

#include "secagg/params.h"

#include "crypto/stream.h"

/* 1 when every number is in -bound..bound, bound < 2^61; constant time, so only the result is revealed. */
FKT_MUST_USE int fkt_sa_in_range(const int64_t *x, uint32_t length, uint64_t bound);

/* A vector modulo 2^32 (bits <= 32) or 2^64; only the low b bits mean anything. */
struct fkt_sa_vector {
    uint32_t length, bits;
    uint32_t *w32; /* (length) when bits <= 32, else NULL */
    uint64_t *w64; /* (length) otherwise */
};
FKT_MUST_USE fkt_status fkt_sa_vector_init(struct fkt_sa_vector *v, const struct fkt_sa_params *p); /* all zero */
void fkt_sa_vector_clear(struct fkt_sa_vector *v);                                                  /* wipes */
void fkt_sa_vector_set(struct fkt_sa_vector *v, const int64_t *x);                                  /* constant time */
void fkt_sa_vector_add(struct fkt_sa_vector *v, const struct fkt_sa_vector *other);
FKT_MUST_USE fkt_status fkt_sa_vector_mask(struct fkt_sa_vector *v, struct fkt_stream *s, const uint8_t key[32],
                                           int subtract);
/* The keystream of the parameters, for fkt_sa_vector_mask. */
FKT_MUST_USE fkt_status fkt_sa_mask_stream(struct fkt_stream **out, const struct fkt_sa_params *p);
void fkt_sa_vector_pack(const struct fkt_sa_vector *v, uint8_t *out);
/* v += the packed vector. FKT_E_PEER_FORMAT when unused bits are set. */
FKT_MUST_USE fkt_status fkt_sa_vector_add_packed(struct fkt_sa_vector *v, const uint8_t *packed);
void fkt_sa_vector_signed(const struct fkt_sa_vector *v, int64_t *out); /* read as -2^(b-1)..2^(b-1)-1 */

#endif
