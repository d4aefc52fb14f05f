/* SPDX-License-Identifier: Apache-2.0 */
/* ledger_file.c - a persistent privacy ledger. Its rows: rows.c; its sums: account.c.
 *
 * An account is a dataset, by the name that its operator gave it. What is published of it (composed_epsilon) is a
 * function of the charges under that name alone: with one record more or less it is the same. The digests of the images
 * are a second check: a charge with an image that is known under another name is refused, so that the same images are
 * not charged to two accounts whose sum nobody computes. The ledger is as private as the images (0600). Every change is
 * one transaction, on disk BEFORE noise is drawn or a key share leaves: a crash in between costs budget, never privacy.
 *
 *   debit     spent at once                                  a release by one party
 *   reserve   counts in full from before the masked vector leaves; a new round of the same task may take it over, since
 *             this site will never reveal in the old one any more
 *   spend     before the first share is revealed: from then on the task is over for this ledger, in every account
 *   ask       a reserve that is rolled back: its answer alone
 *
 * The protocol requires that each site reveals once for a task (docs/protocol.md 7): a site's vector can be in a total
 * without its own key share, so the refusal of the sites that did reveal keeps it out of a second total. Hence a spent
 * task is refused whatever the budget, sessions are kept for ever, and a reservation is never taken back: a site whose
 * round went silent cannot know that it is not in a total. A task has
 * FKT_LEDGER_ROUNDS rounds at most, since every one shows the server another graph.
 *
 * The budget of a dataset is set at its first charge: the given (epsilon, delta), or else just what that charge costs,
 * so that a second release under the same name is refused until the operator sets a larger budget. mu^2 adds up within
 * one adjacency (docs/privacy.md). The date of an entry is the wall clock's, for people; nothing depends on it. */
#include "fedkt/ledger.h"

#include "ledger/account.h"
#include "ledger/rows.h"

#include "base/alloc.h"
#include "base/text.h"

#include <string.h>
#include <time.h>

static int is_hex(const char *s)
{
    return strlen(s) == FKT_SHA256_HEX - 1 && strspn(s, "0123456789abcdef") == FKT_SHA256_HEX - 1;
}

static fkt_status check_charge(const struct fkt_ledger_charge *c)
{
    if (!(c->mu > 0 && c->mu < 1e100) || (c->accounting != FKT_ACCOUNTING_GDP && c->accounting != FKT_ACCOUNTING_ZCDP))
        return fkt_fail(FKT_E_ARG, "a charge of mu %g cannot be booked", c->mu);
    if (c->budget_epsilon != 0 && !(fkt_privacy_mu(c->budget_epsilon, c->budget_delta) > 0))
        return fkt_fail(FKT_E_ARG, "the budget needs epsilon > 0 and 0 < delta < 1");
    if ((c->delta != 0 || c->most_epsilon != 0) && !(c->delta > 0 && c->delta < 1))
        return fkt_fail(FKT_E_ARG, "a charge at delta %g cannot be booked", c->delta);
    if (!is_hex(c->task_sha256))
        return fkt_fail(FKT_E_ARG, "'%.70s' is not the hash of a task: 64 hex digits", c->task_sha256);
    if (!fkt_plain_name(c->dataset) || strlen(c->dataset) >= FKT_LEDGER_NAME)
        return fkt_fail(FKT_E_ARG, "'%.160s' cannot be the name of a dataset: it needs 1 to %d bytes of plain text",
                        c->dataset, FKT_LEDGER_NAME - 1);
    return FKT_OK;
}

static fkt_status check_session(const char *session)
{
    return is_hex(session) ? FKT_OK : fkt_fail(FKT_E_ARG, "'%.70s' is not a session: 64 hex digits", session);
}

static fkt_status check_not_spent(struct fkt_ledger_rows *b, const char *task)
{
    int64_t spent = 0;
    fkt_status st =
        fkt_ledger_rows_count(b, &spent, "SELECT count(*) FROM entries WHERE task = ? AND state = 'spent'", task, NULL);
    if (st == FKT_OK && spent)
        st = fkt_fail_hint(FKT_E_BUDGET, "a further release of this dataset is a new task",
                           "the ledger '%s' has spent task %.8s... already: it is refused whatever the budget", b->path,
                           task);
    return st;
}

/* May a round of the task begin, in this session (NULL: in a new one)? */
static fkt_status check_round(struct fkt_ledger_rows *b, const char *task, const char *session)
{
    int64_t known = 0, rounds = 0;
    fkt_status st;
    if (session)
        FKT_TRY(fkt_ledger_rows_count(b, &known, "SELECT count(*) FROM sessions WHERE session = ?", session, NULL));
    if (known)
        st = fkt_fail_hint(FKT_E_STATE, "begin a new round, with fresh keys",
                           "the ledger '%s' knows session %.8s... already", b->path, session);
    else st = check_not_spent(b, task);
    FKT_TRY(st);
    FKT_TRY(fkt_ledger_rows_count(b, &rounds, "SELECT count(*) FROM sessions WHERE task = ?", task, NULL));
    if (rounds >= FKT_LEDGER_ROUNDS)
        st = fkt_fail_hint(FKT_E_BUDGET, "ask the operator why its rounds fail; to continue, a new task is needed",
                           "the ledger '%s' has seen %d rounds of task %.8s... that did not end", b->path,
                           FKT_LEDGER_ROUNDS, task);
out:
    return st;
}

/* The same images under two names would be two accounts whose sum nobody computes. */
static fkt_status check_owner(struct fkt_ledger_rows *b, const struct fkt_ledger_charge *c, int64_t account)
{
    struct fkt_ledger_rows_owner o;
    fkt_status st = fkt_ledger_rows_owner(b, account, c->records, c->n_records, &o);
    if (st != FKT_OK || !o.datasets) return st;
    st = fkt_fail(FKT_E_BUDGET, "the ledger '%s' knows %lld of these %zu images under dataset '%s', not under '%s'",
                  b->path, (long long)o.records, c->n_records, o.dataset, c->dataset);
    return o.datasets > 1 ? fkt_hint(st, "one release is charged to one dataset: release each dataset by itself")
                          : fkt_hint_weakly(st, "charge them to that dataset: an image has one account");
}

/* The account that a charge is for, opened when new, with the charge's budget where it brings one. */
static fkt_status open_account(struct fkt_ledger_rows *b, const struct fkt_ledger_charge *c,
                               struct fkt_ledger_account *a, int64_t *id)
{
    fkt_status st;
    FKT_TRY(fkt_ledger_rows_account(b, c->dataset, a, id));
    FKT_TRY(check_owner(b, c, *id));
    if (*id && a->adjacency != c->adjacency)
        st = fkt_fail_hint(FKT_E_BUDGET,
                           "privacy losses under different adjacencies do not add up; keep to the first one",
                           "the ledger '%s' counts dataset '%s' under '%s', this release is under '%s'", b->path,
                           a->dataset, fkt_adjacency_name(a->adjacency), fkt_adjacency_name(c->adjacency));
    FKT_TRY(st);
    if (*id && c->budget_epsilon == 0) goto out;
    a->adjacency = c->adjacency;
    a->budget_mu2 = c->mu * c->mu;
    if (c->budget_epsilon > 0) {
        const double mu = fkt_privacy_mu(c->budget_epsilon, c->budget_delta);
        a->budget_mu2 = mu * mu;
        a->budget_epsilon = c->budget_epsilon;
        a->budget_delta = c->budget_delta;
    }
    FKT_TRY(fkt_ledger_rows_put_account(b, a, id));
out:
    return st;
}

/* A new round of the task replaces earlier reservations; their sessions stay known. *e becomes the largest of all of
 * them: a task has one cost, and if two rounds state two, the larger one may be in a total. */
static fkt_status take_over(struct fkt_ledger_rows *b, int64_t id, struct fkt_ledger_account *a,
                            struct fkt_ledger_entry *e)
{
    size_t kept = 0;
    for (size_t i = 0; i < a->n; i++) {
        const struct fkt_ledger_entry *old = &a->entries[i];
        if (!old->reserved || strcmp(old->task_sha256, e->task_sha256) != 0) {
            a->entries[kept++] = *old;
            continue;
        }
        if (old->mu2 > e->mu2) e->mu2 = old->mu2;
        if (old->accounting == FKT_ACCOUNTING_ZCDP) e->accounting = FKT_ACCOUNTING_ZCDP;
        e->insecure_seed |= old->insecure_seed;
    }
    a->n = kept;
    return fkt_db_do(b->db, "DELETE FROM entries WHERE account = ? AND task = ? AND state = 'reserved'", "it", id,
                     e->task_sha256);
}

/* The budget would allow it; but would the releases of the dataset together still be called private? */
static fkt_status check_most(const struct fkt_ledger_charge *c, const struct fkt_ledger_spent *spent)
{
    double together;
    if (c->most_epsilon == 0) return FKT_OK;
    together = fkt_ledger_epsilon(c->delta, spent);
    if (together <= c->most_epsilon * (1 + 1e-9)) return FKT_OK;
    return fkt_hint_weakly(fkt_fail(FKT_E_BUDGET,
                                    "the releases of dataset '%s' would be too weak to be called private: epsilon %.6g "
                                    "together at delta %g is above %g",
                                    c->dataset, together, c->delta, c->most_epsilon),
                           "release less of it; or accept it as weak: what is made of it then says so");
}

static fkt_status charge_account(struct fkt_ledger_rows *b, const struct fkt_ledger_charge *c, const char *session,
                                 int round, struct fkt_ledger_spent *spent)
{
    struct fkt_ledger_entry e = {.mu2 = c->mu * c->mu,
                                 .accounting = c->accounting,
                                 .reserved = round,
                                 .insecure_seed = c->insecure_seed != 0,
                                 .when = (int64_t)time(NULL),
                                 .delta = c->delta};
    struct fkt_ledger_account a = {0};
    int64_t id = 0;
    fkt_status st;
    snprintf(e.task_sha256, sizeof e.task_sha256, "%s", c->task_sha256);
    snprintf(e.session, sizeof e.session, "%s", session ? session : "");
    snprintf(e.task_name, sizeof e.task_name, "%s", c->task_name ? c->task_name : "");
    FKT_TRY(open_account(b, c, &a, &id));
    if (round) FKT_TRY(take_over(b, id, &a, &e));
    FKT_TRY(fkt_account_fit(&a, &e, b->path, spent));
    FKT_TRY(check_most(c, spent));
    if (round && !session) goto out; /* only checked */
    FKT_TRY(fkt_ledger_rows_put_entry(b, id, &e));
    FKT_TRY(fkt_ledger_rows_put_records(b, id, c->records, c->n_records));
out:
    fkt_account_clear(&a);
    return st;
}

/* `round` 0: spent at once. Else a reservation; without a session it is only checked. */
static fkt_status charge_dataset(const char *path, const struct fkt_ledger_charge *c, const char *session, int round,
                                 struct fkt_ledger_spent *spent)
{
    const int look = round && !session;
    struct fkt_ledger_spent with = {0};
    struct fkt_ledger_rows b = {0};
    fkt_status st;
    FKT_TRY(check_charge(c));
    FKT_TRY(fkt_ledger_rows_open(&b, path, look ? FKT_LEDGER_ROWS_EMPTY | FKT_LEDGER_ROWS_LOOK : FKT_LEDGER_ROWS_MAKE));
    if (round) FKT_TRY(check_round(&b, c->task_sha256, session));
    if (session) FKT_TRY(fkt_ledger_rows_put_session(&b, session, c->task_sha256));
    FKT_TRY(charge_account(&b, c, session, round, &with));
    if (!look) FKT_TRY(fkt_ledger_rows_commit(&b));
out:
    if (spent && with.mu2 > 0) *spent = with; /* it fitted the budget */
    fkt_ledger_rows_close(&b);
    return st;
}

fkt_status fkt_ledger_file_debit(const char *path, const struct fkt_ledger_charge *charge,
                                 struct fkt_ledger_spent *spent)
{
    return charge_dataset(path, charge, NULL, 0, spent);
}

fkt_status fkt_ledger_file_pay(struct fkt_ledger *once, const char *path, const struct fkt_ledger_charge *charge,
                               struct fkt_ledger_spent *spent)
{
    fkt_status st;
    memset(once, 0, sizeof *once);
    FKT_TRY(fkt_ledger_file_debit(path, charge, spent));
    FKT_TRY(fkt_ledger_init(once, charge->mu * charge->mu, 0));
    snprintf(once->task_sha256, sizeof once->task_sha256, "%s", charge->task_sha256);
out:
    return st;
}

fkt_status fkt_ledger_file_reserve(const char *path, const struct fkt_ledger_charge *charge, const char *session,
                                   struct fkt_ledger_spent *spent)
{
    fkt_status st = check_session(session);
    return st == FKT_OK ? charge_dataset(path, charge, session, 1, spent) : st;
}

fkt_status fkt_ledger_file_ask(const char *path, const struct fkt_ledger_charge *charge, struct fkt_ledger_spent *spent)
{
    return charge_dataset(path, charge, NULL, 1, spent);
}

/* The task that `session` is reserved for; "" when it is not. */
static fkt_status reserved_for(struct fkt_ledger_rows *b, const char *session, char task[FKT_SHA256_HEX])
{
    struct fkt_rows *r = NULL;
    const char *found = NULL;
    int there = 0;
    fkt_status st;
    FKT_TRY(fkt_db_ask(&r, b->db, "SELECT task FROM entries WHERE session = ? AND state = 'reserved'", "t", session));
    FKT_TRY(fkt_rows_next(r, &there));
    if (there) found = fkt_rows_text(r, 0);
    snprintf(task, FKT_SHA256_HEX, "%s", found ? found : "");
out:
    fkt_rows_done(r);
    return st;
}

fkt_status fkt_ledger_file_spend(const char *path, const char *session)
{
    char task[FKT_SHA256_HEX] = "";
    struct fkt_ledger_rows b = {0};
    fkt_status st;
    FKT_TRY(check_session(session));
    FKT_TRY(fkt_ledger_rows_open(&b, path, FKT_LEDGER_ROWS_EMPTY));
    FKT_TRY(reserved_for(&b, session, task));
    if (!*task) st = fkt_fail(FKT_E_STATE, "the ledger '%s' holds no reservation for session %.8s...", b.path, session);
    FKT_TRY(st);
    FKT_TRY(check_not_spent(&b, task));
    FKT_TRY(fkt_db_do(b.db, "UPDATE entries SET state = 'spent', at = ? WHERE session = ? AND state = 'reserved'", "it",
                      (int64_t)time(NULL), session));
    FKT_TRY(fkt_ledger_rows_commit(&b));
out:
    fkt_ledger_rows_close(&b);
    return st;
}

fkt_status fkt_ledger_file_session(const char *path, const char *session, const char *task_sha256, const char *dataset,
                                   enum fkt_ledger_session *out)
{
    struct fkt_ledger_account a = {0};
    struct fkt_ledger_rows b = {0};
    int64_t id;
    fkt_status st;
    *out = FKT_LEDGER_SESSION_UNKNOWN;
    FKT_TRY(check_session(session));
    FKT_TRY(fkt_ledger_rows_open(&b, path, FKT_LEDGER_ROWS_EMPTY));
    FKT_TRY(fkt_ledger_rows_account(&b, dataset, &a, &id));
    for (size_t i = 0; i < a.n; i++)
        if (!strcmp(a.entries[i].session, session) && !strcmp(a.entries[i].task_sha256, task_sha256))
            *out = a.entries[i].reserved ? FKT_LEDGER_SESSION_RESERVED : FKT_LEDGER_SESSION_SPENT;
out:
    fkt_account_clear(&a);
    fkt_ledger_rows_close(&b);
    return st;
}

fkt_status fkt_ledger_file_owner(const char *path, const struct fkt_record_digest *records, size_t n_records,
                                 char dataset[FKT_LEDGER_NAME])
{
    struct fkt_ledger_rows_owner o = {0};
    struct fkt_ledger_rows b = {0};
    fkt_status st;
    *dataset = '\0';
    FKT_TRY(fkt_ledger_rows_open(&b, path, FKT_LEDGER_ROWS_EMPTY | FKT_LEDGER_ROWS_LOOK));
    FKT_TRY(fkt_ledger_rows_owner(&b, 0, records, n_records, &o));
    snprintf(dataset, FKT_LEDGER_NAME, "%s", o.dataset);
out:
    fkt_ledger_rows_close(&b);
    return st;
}

static fkt_status read_one(struct fkt_ledger_rows *b, const char *dataset, struct fkt_ledger_contents *out)
{
    struct fkt_ledger_account *a = &out->accounts[out->n];
    int64_t id = 0;
    fkt_status st;
    FKT_TRY(fkt_ledger_rows_account(b, dataset, a, &id));
    if (id) FKT_TRY(fkt_account_add_up(a, b->path));
out:
    if (st == FKT_OK && id) out->n++;
    else fkt_account_clear(a);
    return st;
}

fkt_status fkt_ledger_file_read(struct fkt_ledger_contents *out, const char *path, const char *dataset)
{
    struct fkt_rows *r = NULL;
    struct fkt_ledger_rows b = {0};
    int64_t n = 0;
    int there = 0;
    fkt_status st;
    *out = (struct fkt_ledger_contents){0};
    FKT_TRY(fkt_ledger_rows_open(&b, path, FKT_LEDGER_ROWS_LOOK));
    FKT_TRY(fkt_ledger_rows_count(&b, &n, "SELECT count(*) FROM accounts WHERE ?1 = '' OR dataset = ?1",
                                  dataset ? dataset : "", NULL));
    FKT_TRY(fkt_alloc(&out->accounts, (size_t)n));
    if (dataset) {
        if (n) FKT_TRY(read_one(&b, dataset, out));
        goto out;
    }
    FKT_TRY(fkt_db_ask(&r, b.db, "SELECT dataset FROM accounts ORDER BY id", ""));
    while (out->n < (size_t)n) {
        FKT_TRY(fkt_rows_next(r, &there));
        FKT_TRY(read_one(&b, fkt_rows_text(r, 0), out));
    }
out:
    fkt_rows_done(r);
    fkt_ledger_rows_close(&b);
    if (st != FKT_OK) fkt_ledger_contents_clear(out);
    return st;
}

void fkt_ledger_contents_clear(struct fkt_ledger_contents *b)
{
    for (size_t i = 0; i < b->n; i++) fkt_account_clear(&b->accounts[i]);
    fkt_free(b->accounts);
    *b = (struct fkt_ledger_contents){0};
}
