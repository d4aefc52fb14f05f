/* SPDX-License-Identifier: Apache-2.0 */
/* contribution.c - a site's vector for secure aggregation: exact moments, checked, plus its noise share.
 *
 *   exact moments --records within the task's bound?--> + noise share (privacy/) --> x for the aggregation
 *
 * With central noise nothing is added here: the masks hide the site, and the party that unmasks adds the noise. A round
 * costs every site the same: mu^2 of the task's plan. */
#include "pipeline/contribution.h"

#include "fedkt/advanced/privacy.h"

#include <string.h>

enum { KEYS = 0, NOISE = 1 }; /* streams of a round's seed */

/* With a message for the site's owner; the aggregation checks every number again. */
fkt_status fkt_contribution_check(const struct fkt_task *t, const int64_t *exact)
{
    for (uint32_t k = 0; k < t->n_classes; k++) {
        const int64_t n = exact[fkt_layout_count(&t->layout, t->n_classes, k)];
        if (n < 0 || (uint64_t)n > t->federation.records)
            return fkt_hint_code(fkt_fail(FKT_E_MISMATCH, "%lld records of class '%s', but the task allows a site %llu",
                                          (long long)n, t->classes[k], (unsigned long long)t->federation.records),
                                 FKT_HINT_TASK_RECORDS, "make the task with a larger bound on records");
    }
    return FKT_OK;
}

fkt_status fkt_contribution_make(int64_t *x, const int64_t *exact, const struct fkt_task *t,
                                 const struct fkt_share_plan *shares, struct fkt_entropy *noise)
{
    fkt_status st;
    FKT_TRY(fkt_contribution_check(t, exact));
    if (shares->counted) FKT_TRY(fkt_privacy_share(x, exact, t->n_classes, &t->layout, shares, noise));
    else memcpy(x, exact, fkt_task_numbers(t) * sizeof *x);
out:
    return st;
}

void fkt_contribution_entropy(struct fkt_entropy *keys, struct fkt_entropy *noise, struct fkt_entropy_seeded own[2],
                              const struct fkt_task *t, uint32_t site, const uint8_t seed[FKT_ENTROPY_KEY])
{
    if (t->service.seeded) {
        fkt_entropy_seeded_init(&own[KEYS], t->service.insecure_seed, FKT_STREAM_KEYS(site));
        fkt_entropy_seeded_init(&own[NOISE], t->service.insecure_seed, FKT_STREAM_NOISE(site));
        fkt_entropy_seeded(keys, &own[KEYS]);
        fkt_entropy_seeded(noise, &own[NOISE]);
        return;
    }
    fkt_entropy_keyed_init(&own[KEYS], seed, KEYS);
    fkt_entropy_keyed_init(&own[NOISE], seed, NOISE);
    fkt_entropy_keyed(keys, &own[KEYS]);
    fkt_entropy_keyed(noise, &own[NOISE]);
}

fkt_status fkt_contribution_charge(struct fkt_ledger_charge *out, const struct fkt_task *t,
                                   const struct fkt_share_plan *shares, const char *dataset)
{
    struct fkt_privacy_plan plan;
    fkt_status st = FKT_OK;
    *out = (struct fkt_ledger_charge){.dataset = dataset,
                                      .task_sha256 = t->sha256,
                                      .adjacency = t->privacy.adjacency,
                                      .mu = shares->plan.mu,
                                      .insecure_seed = t->service.seeded,
                                      .accounting = FKT_ACCOUNTING_GDP,
                                      .delta = t->privacy.delta,
                                      .task_name = t->name};
    if (shares->counted) return FKT_OK;
    FKT_TRY(fkt_privacy_plan(&plan, &t->privacy));
    out->mu = plan.mu;
out:
    return st;
}
