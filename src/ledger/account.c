/* SPDX-License-Identifier: Apache-2.0 */
/* account.c - what a dataset has spent and reserved, and whether one more charge fits.
 *
 * mu^2 adds up, reserved or spent. The limit is the largest sum that keeps (budget_epsilon, budget_delta): by the
 * Gaussian formula while every entry is a Gaussian mechanism ("gdp"), else by that of zCDP on rho = mu^2/2, since a
 * mu-GDP Gaussian mechanism is mu^2/2-zCDP (docs/privacy.md, Composition). An account without (epsilon, delta) has
 * budget_mu2 alone, what its first charge cost; it keeps to that charge's accounting, since the same mu^2 means another
 * epsilon in the other one. How an account is kept on disk: rows.c. */
#include "ledger/account.h"

#include "fedkt/advanced/privacy.h"

#include <math.h>
#include <string.h>

static const char *const accountings[] = {[FKT_ACCOUNTING_GDP] = "gdp", [FKT_ACCOUNTING_ZCDP] = "zcdp"};

const char *fkt_accounting_name(enum fkt_accounting a) { return accountings[a]; }

int fkt_accounting_parse(const char *s)
{
    for (int i = 0; s && i < 2; i++)
        if (!strcmp(s, accountings[i])) return i;
    return -1;
}

fkt_status fkt_ledger_damaged(const char *path, const char *what)
{
    return fkt_fail_hint(FKT_E_FORMAT, FKT_LEDGER_DAMAGED, "the ledger '%s' holds %s", path, what);
}

/* The sum of all entries; *kinds gets a bit for each accounting among them. */
static fkt_status add_up(const struct fkt_ledger_account *a, const char *path, double *sum, unsigned *kinds)
{
    *sum = 0;
    *kinds = 0;
    for (size_t i = 0; i < a->n; i++) {
        const double mu2 = a->entries[i].mu2;
        if (!(mu2 > 0 && isfinite(mu2))) return fkt_ledger_damaged(path, "an entry that is not a positive number");
        *sum = nextafter(*sum + mu2, INFINITY);
        *kinds |= 1U << a->entries[i].accounting;
    }
    return FKT_OK;
}

/* The largest sum of mu^2 that an account of entries of these kinds may hold. */
static fkt_status limit_of(const struct fkt_ledger_account *a, unsigned kinds, const char *path, double *limit)
{
    const double e = a->budget_epsilon, d = a->budget_delta;
    const unsigned both = 1U << FKT_ACCOUNTING_GDP | 1U << FKT_ACCOUNTING_ZCDP;
    if (e == 0 && kinds == both)
        return fkt_fail_hint(FKT_E_BUDGET, "set the total for this dataset as epsilon and delta",
                             "the ledger '%s' counts dataset '%s' in another accounting, and has no epsilon and delta "
                             "to convert between the two",
                             path, a->dataset);
    if (e == 0) *limit = a->budget_mu2;
    else if (kinds & 1U << FKT_ACCOUNTING_ZCDP) *limit = 2 * fkt_privacy_rho(e, d);
    else *limit = fkt_privacy_mu(e, d) * fkt_privacy_mu(e, d);
    return *limit > 0 && isfinite(*limit) ? FKT_OK : fkt_ledger_damaged(path, "a budget that is not a positive number");
}

fkt_status fkt_account_add_up(struct fkt_ledger_account *a, const char *path)
{
    unsigned kinds;
    fkt_status st = add_up(a, path, &a->total.mu2, &kinds);
    if (st != FKT_OK) return st;
    a->total.accounting = kinds & 1U << FKT_ACCOUNTING_ZCDP ? FKT_ACCOUNTING_ZCDP : FKT_ACCOUNTING_GDP;
    return limit_of(a, kinds, path, &a->limit_mu2);
}

/* What can be done without more budget. Spent budget may have become a release; reserved budget belongs to rounds whose
 * end this ledger has not seen, and a further round of their task takes it over. */
static const char *instead(const struct fkt_ledger_account *a)
{
    size_t reserved = 0;
    for (size_t i = 0; i < a->n; i++) reserved += a->entries[i].reserved != 0;
    if (!a->n) return "";
    if (reserved == a->n)
        return "it is reserved for a task that has no release here: join that task again (a further round of it takes "
               "the reservation over, nothing gives it back); or ";
    return "sample more from the release that it was spent on (free of cost), or ";
}

/* In epsilon, as everywhere in the output: at the delta of the total, else at the task's. */
static fkt_status refuse(const struct fkt_ledger_account *a, const struct fkt_ledger_entry *e, const char *path,
                         unsigned kinds, const double sums[2])
{
    const double delta = a->budget_delta > 0 ? a->budget_delta : e->delta > 0 ? e->delta : 1e-5;
    const double mu2[] = {sums[0], sums[1], sums[0] + e->mu2};
    double epsilon[3];
    char hint[384], least[2][24];
    for (int i = 0; i < 3; i++) {
        const struct fkt_ledger_spent s = {mu2[i], kinds & 1U << FKT_ACCOUNTING_ZCDP ? FKT_ACCOUNTING_ZCDP
                                                                                     : FKT_ACCOUNTING_GDP};
        epsilon[i] = mu2[i] > 0 ? fkt_ledger_epsilon(delta, &s) : 0;
    }
    snprintf(least[0], sizeof least[0], "%.3g", epsilon[2] * 1.01);
    snprintf(least[1], sizeof least[1], "%g", delta);
    snprintf(hint, sizeof hint, "%sdecide that this dataset may spend more", instead(a));
    fkt_fail(FKT_E_BUDGET,
             "the ledger '%s' has no budget left for dataset '%s': epsilon %.4g of %.4g is spent or "
             "reserved, and with this task it would be %.4g, at delta %g",
             path, a->dataset, epsilon[0], epsilon[1], epsilon[2], delta);
    fkt_hint_code(FKT_E_BUDGET, FKT_HINT_BUDGET, hint);
    return fkt_hint_values(FKT_E_BUDGET, FKT_HINT_BUDGET, least[0], least[1]);
}

fkt_status fkt_account_fit(const struct fkt_ledger_account *a, const struct fkt_ledger_entry *e, const char *path,
                           struct fkt_ledger_spent *spent)
{
    struct fkt_ledger l;
    double had = 0, limit = 0;
    unsigned kinds = 0;
    fkt_status st;
    FKT_TRY(add_up(a, path, &had, &kinds));
    kinds |= 1U << e->accounting;
    FKT_TRY(limit_of(a, kinds, path, &limit));
    FKT_TRY(fkt_ledger_init(&l, limit, had));
    st = fkt_ledger_debit(&l, e->mu2);
    if (st == FKT_E_BUDGET) st = refuse(a, e, path, kinds, (const double[]){had, limit});
    FKT_TRY(st);
    spent->mu2 = l.spent_mu2;
    spent->accounting = kinds & 1U << FKT_ACCOUNTING_ZCDP ? FKT_ACCOUNTING_ZCDP : FKT_ACCOUNTING_GDP;
out:
    return st;
}

double fkt_ledger_epsilon(double delta, const struct fkt_ledger_spent *spent)
{
    return spent->accounting == FKT_ACCOUNTING_ZCDP ? fkt_privacy_epsilon_zcdp(delta, spent->mu2 / 2)
                                                    : fkt_privacy_epsilon(delta, sqrt(spent->mu2));
}
