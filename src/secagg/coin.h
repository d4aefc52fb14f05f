/* SPDX-License-Identifier: Apache-2.0 */
/* coin.h - a common random number that cannot be biased once the commitments are in (docs/protocol.md 4). */
#ifndef FKT_SECAGG_COIN_H
#define FKT_SECAGG_COIN_H

#include "secagg/params.h"

#define FKT_SA_NODE 64 /* digest, point */

struct fkt_sa_leaf {
    uint32_t site;
    const uint8_t *channel_key, *mask_key, *commitment; /* borrowed, 32 bytes each */
};

/* Server: the whole tree of one throw. */
struct fkt_sa_coin {
    uint32_t leaves;
    uint8_t *nodes; /* all levels, leaves first, FKT_SA_NODE each */
    size_t n_nodes;
};
FKT_MUST_USE fkt_status fkt_sa_coin_build(struct fkt_sa_coin *c, const uint8_t session[FKT_SA_SESSION],
                                          uint32_t throw_number, const struct fkt_sa_leaf *leaf, uint32_t n);
void fkt_sa_coin_clear(struct fkt_sa_coin *c);
size_t fkt_sa_coin_path_bytes(uint32_t leaves, uint32_t position); /* 0 also when position >= leaves */
void fkt_sa_coin_path(const struct fkt_sa_coin *c, uint32_t position, uint8_t *path);
const uint8_t *fkt_sa_coin_root(const struct fkt_sa_coin *c); /* FKT_SA_NODE bytes */
/* All scalars (leaves, 32) in order -> V; they are overwritten. Each must open its own commitment: then V*G is the
 * root's point, which fkt_sa_coin_seed checks. */
void fkt_sa_coin_open(const struct fkt_sa_coin *c, uint8_t *scalars, uint8_t v[32]);

/* Site: its leaf and the siblings -> root. FKT_E_PEER_FORMAT, FKT_E_PEER_AUTH on bad points. */
FKT_MUST_USE fkt_status fkt_sa_coin_climb(uint8_t root[FKT_SA_NODE], const uint8_t session[FKT_SA_SESSION],
                                          uint32_t throw_number, const struct fkt_sa_leaf *own, uint32_t leaves,
                                          uint32_t position, const uint8_t *path, size_t path_len);
/* Site and server: V*G must be the root's point; gives the seed. root NULL, v NULL: the complete graph. */
FKT_MUST_USE fkt_status fkt_sa_coin_seed(uint8_t seed[32], const uint8_t session[FKT_SA_SESSION], const uint8_t *root,
                                         const uint8_t *v);

#endif
