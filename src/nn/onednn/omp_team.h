/* SPDX-License-Identifier: Apache-2.0 */
/* omp_team.h - our own loops on the threads that oneDNN's kernels run on. */
#ifndef FKT_NN_ONEDNN_OMP_TEAM_H
#define FKT_NN_ONEDNN_OMP_TEAM_H

#include <stddef.h>

/* Calls fn(ctx, member, members) for each member 0..members-1, at most `threads` of them, concurrently; returns when
 * all have returned. The division of work must depend on `member` alone. */
void fkt_team_run(unsigned threads, void (*fn)(void *ctx, unsigned member, unsigned members), void *ctx);

/* A member's part of n items, in steps of `grain`. */
static inline void fkt_team_part(size_t n, size_t grain, unsigned member, unsigned members, size_t *from, size_t *to)
{
    size_t steps = (n + grain - 1) / grain;
    *from = steps * member / members * grain;
    *to = steps * (member + 1) / members * grain;
    if (*from > n) *from = n;
    if (*to > n) *to = n;
}

#endif
