/* SPDX-License-Identifier: Apache-2.0 */
/* graph.h - the neighbours of each site (docs/protocol.md 5). */
#ifndef FKT_SECAGG_GRAPH_H
#define FKT_SECAGG_GRAPH_H

#include "fedkt/advanced/secagg.h"

#include "secagg/params.h"

struct fkt_sa_graph {
    uint32_t sites, degree;
    uint32_t *ring;  /* (sites) site at each place; NULL when complete */
    uint32_t *place; /* (sites) place of each site; NULL when complete */
};
FKT_MUST_USE fkt_status fkt_sa_graph_make(struct fkt_sa_graph *g, const struct fkt_sa_params *p,
                                          const uint8_t session[FKT_SA_SESSION], const uint8_t seed[32]);
void fkt_sa_graph_clear(struct fkt_sa_graph *g);
/* out (degree): ascending. */
void fkt_sa_graph_neighbours(const struct fkt_sa_graph *g, uint32_t site, uint32_t *out);
/* Sparse graphs only. out (degree): the witnesses, whose signatures every site requires, ascending. */
void fkt_sa_graph_witnesses(const struct fkt_sa_graph *g, uint32_t *out);
/* Sparse graphs only. 1 when the neighbour is after the site on the ring, 0 when before. */
int fkt_sa_graph_after(const struct fkt_sa_graph *g, uint32_t site, uint32_t neighbour);

#endif
