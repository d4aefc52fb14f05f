/* SPDX-License-Identifier: Apache-2.0 */
/* ledger_check.c - checks that the ledger's file records the cost of releases. `fedkt audit` charges some releases
 * to a file as `fedkt release` does, then a round of a federation as `fedkt join` does (reserved, then spent), reads
 * the file back, and requests one more, which exceeds the budget. The file is in a temporary folder. */
#include "audit/privacy_audit.h"

#include "pipeline/contribution.h"
#include "task/federation.h"

#include "base/alloc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char dataset[] = "audited";
static const struct fkt_record_digest records[] = {{{1}}, {{2}}, {{3}}};
static const char session[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/* Compares the file with the promised cost; rounding is upwards and small. */
static fkt_status compare(struct fkt_audit_outcome *o, const char *path, double claimed, const char *who)
{
    struct fkt_ledger_contents contents = {0};
    double found;
    fkt_status st = fkt_ledger_file_read(&contents, path, NULL);
    if (st != FKT_OK) return st;
    found = contents.n == 1 ? contents.accounts[0].total.mu2 : NAN;
    fkt_ledger_contents_clear(&contents);
    o->ledger_claimed += claimed;
    o->ledger_found += found;
    if (!(found >= claimed * (1 - 1e-9) && found <= claimed * (1 + 1e-6)))
        st = fkt_fail(FKT_E_NUMERIC, "%s cost mu^2 %.9g, but the file has %.9g", who, claimed, found);
    return st;
}

static fkt_status pay_central(struct fkt_audit_outcome *o, const struct fkt_privacy_spec *p, const char *path, int n)
{
    struct fkt_audit_world *w = NULL;
    struct fkt_audit_draw draw;
    struct fkt_privacy_plan plan;
    fkt_status st;
    FKT_TRY(fkt_alloc(&w, 1));
    FKT_TRY(fkt_audit_world_init(w, p, FKT_NOISE_PLACE_CENTRAL, FKT_CANARY_ADD, FKT_AUDIT_ONE));
    FKT_TRY(fkt_privacy_plan(&plan, &w->task.privacy));
    const struct fkt_ledger_charge charge = {.dataset = dataset,
                                             .records = records,
                                             .n_records = sizeof records / sizeof *records,
                                             .task_sha256 = w->task.sha256,
                                             .adjacency = p->adjacency,
                                             .mu = plan.mu,
                                             .budget_epsilon = fkt_privacy_epsilon(p->delta, plan.mu * sqrt(n + 0.5)),
                                             .budget_delta = p->delta,
                                             .accounting = FKT_ACCOUNTING_GDP,
                                             .delta = p->delta,
                                             .task_name = w->task.name};
    for (int i = 0; i < n; i++) {
        FKT_TRY(fkt_ledger_file_debit(path, &charge, NULL));
        FKT_TRY(fkt_ledger_init(&w->once, plan.mu * plan.mu, 0));
        FKT_TRY(fkt_audit_world_draw(w, 0, &draw));
        if (fkt_audit_world_draw(w, 0, &draw) != FKT_E_BUDGET) {
            st = fkt_fail(FKT_E_NUMERIC, "a release that was charged once was drawn twice");
            goto out;
        }
    }
    if (fkt_ledger_file_debit(path, &charge, NULL) != FKT_E_BUDGET)
        st = fkt_fail(FKT_E_NUMERIC, "the ledger allowed more releases than its budget");
    else st = compare(o, path, n * plan.mu * plan.mu, "releases");
out:
    if (w) fkt_audit_world_clear(w);
    fkt_free(w);
    return st;
}

static fkt_status pay_share(struct fkt_audit_outcome *o, const struct fkt_privacy_spec *p, const char *path)
{
    struct fkt_audit_world *w = NULL;
    struct fkt_ledger_charge charge;
    fkt_status st;
    FKT_TRY(fkt_alloc(&w, 1));
    FKT_TRY(fkt_audit_world_init(w, p, FKT_NOISE_PLACE_DISTRIBUTED, FKT_CANARY_ADD, FKT_AUDIT_ONE));
    FKT_TRY(fkt_contribution_charge(&charge, &w->task, &w->shares, dataset));
    charge.records = records;
    charge.n_records = sizeof records / sizeof *records;
    FKT_TRY(fkt_ledger_file_reserve(path, &charge, session, NULL));
    FKT_TRY(fkt_ledger_file_spend(path, session));
    FKT_TRY(compare(o, path, w->shares.plan.mu * w->shares.plan.mu, "a share"));
out:
    if (w) fkt_audit_world_clear(w);
    fkt_free(w);
    return st;
}

fkt_status fkt_audit_ledger(struct fkt_audit_outcome *o, const struct fkt_audit_options *options, int releases)
{
    const char *tmp = getenv("TMPDIR");
    struct fkt_privacy_spec p = options->privacy;
    char folder[256], central[300], shared[300];
    fkt_status st;
    p.adjacency = FKT_ADJACENCY_ADD_REMOVE;
    p.mechanism = FKT_MECHANISM_JOINT;
    snprintf(folder, sizeof folder, "%.200s/fedkt-audit-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
    if (!mkdtemp(folder)) return fkt_fail(FKT_E_IO, "cannot make a temporary folder");
    snprintf(central, sizeof central, "%s/central.db", folder);
    snprintf(shared, sizeof shared, "%s/shared.db", folder);
    FKT_TRY(pay_central(o, &p, central, releases));
    FKT_TRY(pay_share(o, &p, shared));
out:
    (void)unlink(central);
    (void)unlink(shared);
    (void)rmdir(folder);
    return st;
}
