/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.c - a privacy budget and what was spent of it; debited before any noise is drawn.
 * Gaussian mechanisms compose exactly: mu^2 adds up (Dong, Roth, Su 2022, corollary 3.3), so the account is one number.
 * The sum is rounded up. A debit may exceed the budget by 1e-12 of it, so that three debits of a third each succeed. */
#include "fedkt/privacy.h"

#include "base/status.h"

#include <math.h>

#define TOLERANCE 1e-12

fkt_status fkt_ledger_init(struct fkt_ledger *l, double budget_mu2, double spent_mu2)
{
    if (!(budget_mu2 >= 0 && budget_mu2 < INFINITY))
        return fkt_fail(FKT_E_ARG, "the ledger's budget is %g: it must be a finite number, 0 or more", budget_mu2);
    if (!(spent_mu2 >= 0 && spent_mu2 < INFINITY))
        return fkt_fail(FKT_E_ARG, "the ledger's spending so far is %g: it must be a finite number, 0 or more",
                        spent_mu2);
    *l = (struct fkt_ledger){.budget_mu2 = budget_mu2, .spent_mu2 = spent_mu2};
    return FKT_OK;
}

fkt_status fkt_ledger_debit(struct fkt_ledger *l, double mu2)
{
    double after;
    if (!(mu2 > 0 && mu2 < INFINITY))
        return fkt_fail(FKT_E_ARG, "cannot debit mu^2 = %g: it must be positive and finite", mu2);
    after = nextafter(l->spent_mu2 + mu2, INFINITY);
    if (!(after <= l->budget_mu2 * (1 + TOLERANCE)))
        return fkt_fail_hint(FKT_E_BUDGET, "ask for a smaller epsilon, or let the owner of the data raise the budget",
                             "the privacy budget is exhausted: mu^2 %g requested, %g of %g spent", mu2, l->spent_mu2,
                             l->budget_mu2);
    l->spent_mu2 = after;
    l->entries++;
    return FKT_OK;
}
