/* SPDX-License-Identifier: Apache-2.0 */
/* contribution.h - what a site contributes to a round, and what that costs; the same in memory (simulate/) and over a
 * network (client/). */
#ifndef FKT_PIPELINE_CONTRIBUTION_H
#define FKT_PIPELINE_CONTRIBUTION_H

#include "fedkt/advanced/privacy.h"
#include "fedkt/advanced/secagg.h"
#include "fedkt/ledger.h"
#include "fedkt/task.h"

#include "base/status.h"
#include "crypto/entropy.h"
#include "task/task.h"

/* Streams of an insecure seed: 0 and 1 are taken (federation.c); each site has two, in every round; the rounds of a
 * server use those from FKT_STREAM_ROUND downwards (server/rounds.c). */
#define FKT_STREAM_ROUND UINT64_MAX
#define FKT_STREAM_KEYS(site) (2 + 2 * (uint64_t)(site))
#define FKT_STREAM_NOISE(site) (3 + 2 * (uint64_t)(site))

/* FKT_E_MISMATCH when a class has more records than the task allows a site. exact: in the order of its layout. */
FKT_MUST_USE fkt_status fkt_contribution_check(const struct fkt_task *t, const int64_t *exact);
/* x: exact moments, plus this site's noise share if the task has distributed noise. PRIVATE. Checks first. */
FKT_MUST_USE fkt_status fkt_contribution_make(int64_t *x, const int64_t *exact, const struct fkt_task *t,
                                              const struct fkt_share_plan *shares, struct fkt_entropy *noise);
/* Where a site's keys and noise of one round come from: two streams of `seed`, 256 bits that the operating system gave
 * for this round alone; own (2) is what the streams keep, borrowed by both. With an insecure seed in the task the
 * streams are those of federate.c, so that a test can predict what a site sends: they are the same in every
 * round, keys and noise are reused, and nothing of it is private. */
void fkt_contribution_entropy(struct fkt_entropy *keys, struct fkt_entropy *noise, struct fkt_entropy_seeded own[2],
                              const struct fkt_task *t, uint32_t site, const uint8_t seed[FKT_ENTROPY_KEY]);
/* What a round costs a dataset, for ledger.h; the caller fills in records and budget. Borrows the name and the
 * task's hash. */
FKT_MUST_USE fkt_status fkt_contribution_charge(struct fkt_ledger_charge *out, const struct fkt_task *t,
                                                const struct fkt_share_plan *shares, const char *dataset);

/* The messages that a site sends in a round, in their order: kind, longest form in bytes, and what is in it. The one
 * for a coin is there on a sparse graph only. */
#define FKT_CONTRIBUTION_MESSAGES 6
struct fkt_contribution_message {
    const char *kind, *holds;
    size_t bytes;
};
size_t fkt_contribution_messages(struct fkt_contribution_message out[FKT_CONTRIBUTION_MESSAGES],
                                 const struct fkt_sa_params *p); /* how many */

#endif
