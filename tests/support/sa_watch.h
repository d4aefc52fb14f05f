/* SPDX-License-Identifier: Apache-2.0 */
/* sa_watch.h - an observer of a world's transcript that knows what no honest site may ever do, whatever it was told:
 *
 *   - reveal both kinds of share of one peer;
 *   - let a Masked leave before its ledger reserved, or a Reveal before its ledger spent;
 *   - say anything but one Leave after it failed;
 *   - say the same thing twice, out of order, or in bytes that are not canonical.
 *
 * It does not ask the site. It keeps the randomness that each site drew and works out every share of every owner anew
 * (docs/protocol.md fixes the order of the draws), so that a revealed number is known by its value.
 *
 *   sa_watch_init(&v, &w);        after sa_world_init; sits before w.hook and passes on to it
 *   ... run the world ...
 *   CHECK(!v.broken[0]);          the first broken promise, as a sentence
 *   sa_watch_release(&v);
 *
 * A site that the script lets lie is taken out with v.site[i].corrupt = 1. */
#ifndef FKT_TEST_SA_WATCH_H
#define FKT_TEST_SA_WATCH_H

#include "tests/support/sa_world.h"

#define SA_KINDS (FKT_SA_M_ABORTED + 1)
#define SA_U 1U /* a share of a self seed */
#define SA_S 2U /* a share of a mask seed */

struct sa_watched {
    struct fkt_entropy inner; /* what the world gave the site */
    uint8_t *drawn;
    size_t n_drawn, cap;
    uint8_t *poly; /* (2, threshold, 32) coefficients of s, then of u; NULL until its Shares left */
    uint8_t *gave; /* (sites) SA_U | SA_S: kinds of share of each owner that it revealed; NULL until it revealed */
    unsigned said[SA_KINDS];
    int corrupt;
};

struct sa_watch {
    struct sa_world *world;
    sa_hook inner;
    void *inner_self;
    struct sa_watched *site; /* (sites) */
    int honest_only;         /* 1: nobody lies, so every number revealed must be a share of somebody */
    uint64_t revealed;       /* shares recognised */
    char broken[200];
};

int sa_watch_init(struct sa_watch *v, struct sa_world *w); /* 0, or -1 without memory */
void sa_watch_release(struct sa_watch *v);

/* The share of `owner`'s secret (SA_U, SA_S) that `holder` gets; 0 when its Shares never left. */
int sa_watch_share(const struct sa_watch *v, uint32_t owner, unsigned kind, uint32_t holder, uint8_t share[32]);
/* How many different holders, colluders with both kinds among them, the server has a share of `owner`'s secret from. */
uint32_t sa_watch_known(const struct sa_watch *v, uint32_t owner, unsigned kind);
/* Masked and Reveal messages that left the site so far. */
unsigned sa_watch_leaked(const struct sa_watch *v, uint32_t site);

#endif
