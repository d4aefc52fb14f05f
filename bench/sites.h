/* SPDX-License-Identifier: Apache-2.0 */
/* sites.h - the sites of a benched federation, in separate processes, so that the server's cost can be separated
 * from theirs. */
#ifndef FKT_BENCH_SITES_H
#define FKT_BENCH_SITES_H

#include "fedkt/advanced/secagg.h"

#include "base/status.h"

#include <sys/types.h>

/* Processor time of one site, without drawing its vector. */
struct cli_site_cost {
    uint32_t site;
    double seconds;
    uint64_t up, down; /* bytes */
};

struct cli_crew { /* one process, which runs every n-th site */
    pid_t pid;
    int fd;
    int busy;      /* it has a message and has not answered yet */
    uint32_t site; /* the site of that message */
};

/* Entry `j` of site `i`'s vector: the same in both processes. */
int64_t cli_bench_number(const struct fkt_sa_params *p, uint32_t i, uint32_t j);

/* Forks `n` crews; the signing key of site i has the seed cli_bench_seed(i). Sites with lost[i] are silent from MASK
 * on. */
void cli_bench_seed(uint8_t seed[32], uint32_t i);
FKT_MUST_USE fkt_status cli_crews_start(struct cli_crew *crews, unsigned n, const struct fkt_sa_params *p,
                                        const uint8_t *lost);
FKT_MUST_USE fkt_status cli_crew_give(struct cli_crew *c, uint32_t site, const uint8_t *msg, size_t len);
/* The answer to the last message: *len 0 when the site is silent. */
FKT_MUST_USE fkt_status cli_crew_take(struct cli_crew *c, uint8_t *msg, size_t cap, size_t *len);
/* Ends the crews; costs (sites) of those that reached the end, *n of them. */
FKT_MUST_USE fkt_status cli_crews_end(struct cli_crew *crews, unsigned n, struct cli_site_cost *costs, size_t *n_costs);
void cli_crews_kill(struct cli_crew *crews, unsigned n);

#endif
