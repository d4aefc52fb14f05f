/* SPDX-License-Identifier: Apache-2.0 */
/* account.c - what some records have spent, what is set aside, and whether one charge more fits.
 *
 *   {"budget_mu2": b, "budget_epsilon": e, "budget_delta": d, "adjacency": a,
 *    "entries": [{"task_sha256": t, "mu2": m, "entropy": e, "accounting": "gdp" | "zcdp",
 *                 "session": s, "past": [s, ...], "state": "reserved" | "spent"}, ...]}
 *
 * "past" holds the sessions that an entry took over, so that none is ever used again.
 *
 * mu^2 adds up, reserved or spent. The limit is the largest sum that keeps (budget_epsilon, budget_delta): by the
 * Gaussian formula while every entry is a Gaussian mechanism ("gdp"), else by that of zCDP on rho = mu^2/2, since a
 * mu-GDP Gaussian mechanism is mu^2/2-zCDP (docs/privacy.md, Composition). An account without (epsilon, delta) has
 * budget_mu2 alone, what its first charge cost; it keeps to that charge's accounting, since the same mu^2 means another
 * epsilon in the other one. Files from before sessions lack the last four keys of an entry: spent, gdp. */
#include "round/account.h"

#include "fedkt/round.h"

#include <math.h>
#include <string.h>

static const char *const accountings[] = {"gdp", "zcdp"};

struct entry {
    double mu2;
    enum fkt_accounting accounting;
    int reserved;
    const char *task, *session; /* may be NULL */
    json_t *past;               /* may be NULL */
};

static fkt_status damaged(const char *path, const char *what)
{
    return fkt_fail_hint(FKT_E_FORMAT, FKT_LEDGER_DAMAGED, "the ledger '%s' holds %s", path, what);
}

static fkt_status no_memory(void) { return fkt_fail(FKT_E_NOMEM, "out of memory while writing the ledger"); }

/* 0 when the entry is damaged: not a positive number, or a word that is not known. */
static int read_entry(struct entry *e, const json_t *j)
{
    const json_t *accounting = json_object_get(j, "accounting"), *state = json_object_get(j, "state");
    const char *how = json_string_value(accounting), *where = json_string_value(state);
    *e = (struct entry){.mu2 = json_number_value(json_object_get(j, "mu2")),
                        .task = json_string_value(json_object_get(j, "task_sha256")),
                        .session = json_string_value(json_object_get(j, "session")),
                        .past = json_object_get(j, "past")};
    if (how && !strcmp(how, accountings[FKT_ACCOUNT_ZCDP])) e->accounting = FKT_ACCOUNT_ZCDP;
    else if (accounting && !(how && !strcmp(how, accountings[FKT_ACCOUNT_GDP]))) return 0;
    e->reserved = where && !strcmp(where, "reserved");
    if (state && !e->reserved && !(where && !strcmp(where, "spent"))) return 0;
    if (e->past && !json_is_array(e->past)) return 0;
    for (size_t i = 0; i < json_array_size(e->past); i++)
        if (!json_is_string(json_array_get(e->past, i))) return 0;
    return e->mu2 > 0 && isfinite(e->mu2) && !(e->reserved && !e->session);
}

static fkt_status damaged_entry(const char *path, const struct entry *e)
{
    return damaged(path, e->mu2 > 0 ? "an entry whose accounting, state or sessions make no sense"
                                    : "an entry that is not a positive number");
}

/* What all entries come to; *kinds gets a bit for each accounting among them. */
static fkt_status add_up(const json_t *account, const char *path, double *sum, unsigned *kinds)
{
    const json_t *entries = json_object_get(account, "entries");
    *sum = 0;
    *kinds = 0;
    for (size_t i = 0; i < json_array_size(entries); i++) {
        struct entry e;
        if (!read_entry(&e, json_array_get(entries, i))) return damaged_entry(path, &e);
        *sum = nextafter(*sum + e.mu2, INFINITY);
        *kinds |= 1U << e.accounting;
    }
    return FKT_OK;
}

static fkt_status set_budget(json_t *account, const struct fkt_ledger_charge *c)
{
    const double mu = fkt_privacy_mu(c->budget_epsilon, c->budget_delta);
    return json_object_set_new(account, "budget_mu2", json_real(mu * mu)) == 0 &&
                   json_object_set_new(account, "budget_epsilon", json_real(c->budget_epsilon)) == 0 &&
                   json_object_set_new(account, "budget_delta", json_real(c->budget_delta)) == 0
               ? FKT_OK
               : no_memory();
}

fkt_status fkt_account_open(json_t **out, json_t *records, const char *fingerprint, const struct fkt_ledger_charge *c,
                            const char *path)
{
    json_t *account = json_object_get(records, fingerprint);
    const char *kept, *asked = fkt_adjacency_name(c->adjacency);
    if (!account) {
        account = json_pack("{s:f s:s s:[]}", "budget_mu2", c->mu * c->mu, "adjacency", asked, "entries");
        if (json_object_set_new(records, fingerprint, account) != 0) return no_memory();
    }
    *out = account;
    kept = json_string_value(json_object_get(account, "adjacency"));
    if (!kept || fkt_adjacency_parse(kept) < 0 || !json_is_array(json_object_get(account, "entries")))
        return damaged(path, "an account without adjacency or entries");
    if (strcmp(kept, asked) != 0)
        return fkt_fail_hint(
            FKT_E_BUDGET, "privacy losses under different adjacencies do not add up; keep to the first one",
            "the ledger '%s' counts these records under '%s', this release is under '%s'", path, kept, asked);
    return c->budget_epsilon > 0 ? set_budget(account, c) : FKT_OK;
}

/* The largest sum of mu^2 that an account of entries of these kinds may hold. */
static fkt_status limit_of(const json_t *account, unsigned kinds, const char *path, double *limit)
{
    const json_t *epsilon = json_object_get(account, "budget_epsilon");
    const double e = json_number_value(epsilon), d = json_number_value(json_object_get(account, "budget_delta"));
    const unsigned both = 1U << FKT_ACCOUNT_GDP | 1U << FKT_ACCOUNT_ZCDP;
    if (!epsilon && kinds == both)
        return fkt_fail_hint(FKT_E_BUDGET, "set the total for these records as epsilon and delta",
                             "the ledger '%s' counts these records in another accounting, and has no epsilon and delta "
                             "to convert between the two",
                             path);
    if (!epsilon) *limit = json_number_value(json_object_get(account, "budget_mu2"));
    else if (kinds & 1U << FKT_ACCOUNT_ZCDP) *limit = 2 * fkt_privacy_rho(e, d);
    else *limit = fkt_privacy_mu(e, d) * fkt_privacy_mu(e, d);
    return *limit > 0 && isfinite(*limit) ? FKT_OK : damaged(path, "a budget that is not a positive number");
}

static fkt_status append(json_t *account, const struct fkt_ledger_charge *c, const char *session, json_t *past,
                         double mu2)
{
    json_t *e = json_pack("{s:s s:f s:s s:s s:s}", "task_sha256", c->task_sha256, "mu2", mu2, "entropy",
                          c->insecure_seed ? "INSECURE SEED" : "operating system", "accounting",
                          accountings[c->accounting], "state", session ? "reserved" : "spent");
    if (!e) return no_memory();
    if ((session && json_object_set_new(e, "session", json_string(session)) != 0) ||
        (json_array_size(past) > 0 && json_object_set(e, "past", past) != 0)) {
        json_decref(e);
        return no_memory();
    }
    return json_array_append_new(json_object_get(account, "entries"), e) == 0 ? FKT_OK : no_memory();
}

fkt_status fkt_account_charge(json_t *account, const struct fkt_ledger_charge *c, const char *session, json_t *past,
                              const char *path, struct fkt_ledger_spent *most)
{
    const double mu2 = c->mu * c->mu;
    struct fkt_ledger l;
    double had = 0, limit = 0;
    unsigned kinds = 0;
    fkt_status st;
    FKT_TRY(add_up(account, path, &had, &kinds));
    kinds |= 1U << c->accounting;
    FKT_TRY(limit_of(account, kinds, path, &limit));
    FKT_TRY(fkt_ledger_init(&l, limit, had));
    st = fkt_ledger_debit(&l, mu2);
    if (st == FKT_E_BUDGET)
        st = fkt_fail_hint(
            FKT_E_BUDGET,
            "sample more from the release that exists (free of cost), or raise the total with --budget-epsilon and "
            "--budget-delta",
            "the ledger '%s' has no budget left for these records: spent mu^2 = %.6g, budget %.6g, asked %.6g", path,
            had, limit, mu2);
    FKT_TRY(st);
    FKT_TRY(append(account, c, session, past, mu2));
    most->mu2 = fmax(most->mu2, l.spent_mu2);
    if (kinds & 1U << FKT_ACCOUNT_ZCDP) most->accounting = FKT_ACCOUNT_ZCDP;
out:
    return st;
}

fkt_status fkt_account_take_over(json_t *account, const char *task_sha256, json_t *past)
{
    json_t *entries = json_object_get(account, "entries");
    for (size_t i = json_array_size(entries); i-- > 0;) {
        struct entry e;
        if (!read_entry(&e, json_array_get(entries, i)) || !e.reserved || !e.task || strcmp(e.task, task_sha256) != 0)
            continue;
        if ((e.past && json_array_extend(past, e.past) != 0) ||
            json_array_append_new(past, json_string(e.session)) != 0)
            return no_memory();
        json_array_remove(entries, i);
    }
    return FKT_OK;
}

/* One session of an entry. */
static fkt_status recall_session(struct fkt_account_memory *m, const char *session, int same_task)
{
    if (m->session && !strcmp(session, m->session)) m->known = 1;
    return !same_task || json_object_set_new(m->sessions, session, json_true()) == 0 ? FKT_OK : no_memory();
}

fkt_status fkt_account_recall(const json_t *account, const char *path, struct fkt_account_memory *m)
{
    const json_t *entries = json_object_get(account, "entries");
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < json_array_size(entries); i++) {
        struct entry e;
        if (!read_entry(&e, json_array_get(entries, i))) return damaged_entry(path, &e);
        const int same = e.task && !strcmp(e.task, m->task);
        if (same && !e.reserved) m->spent = 1;
        if (e.session) FKT_TRY(recall_session(m, e.session, same));
        for (size_t j = 0; j < json_array_size(e.past); j++)
            FKT_TRY(recall_session(m, json_string_value(json_array_get(e.past, j)), same));
    }
out:
    return st;
}

/* The entry that is reserved for a session, or NULL. An account has one at most: a task's are taken over. */
static json_t *find_reserved(const json_t *account, const char *session, struct entry *e)
{
    const json_t *entries = json_object_get(account, "entries");
    for (size_t i = 0; i < json_array_size(entries); i++) {
        json_t *j = json_array_get(entries, i);
        if (read_entry(e, j) && e->reserved && !strcmp(e->session, session)) return j;
    }
    return NULL;
}

const char *fkt_account_reserved_for(const json_t *account, const char *session)
{
    struct entry e;
    return find_reserved(account, session, &e) ? e.task : NULL;
}

fkt_status fkt_account_spend(json_t *account, const char *session)
{
    struct entry e;
    json_t *j = find_reserved(account, session, &e);
    return !j || json_object_set_new(j, "state", json_string("spent")) == 0 ? FKT_OK : no_memory();
}
