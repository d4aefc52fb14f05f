/* SPDX-License-Identifier: Apache-2.0 */
/* ledger_file.c - a privacy ledger that outlives the process.
 *
 *   {"schema": "fedkt.ledger/2", "records": {"<fingerprint>": account, ...}}                  account: account.c
 *
 * A fingerprint names the exact moments of one site, or its records; it is computed from private numbers, so the
 * ledger is as private as they are (0600). A release of several sites debits each of them, so that {A, B} and then {A}
 * alone is two releases for A. Every change takes a lock, reads, changes, writes, syncs and renames BEFORE noise is
 * drawn or a share leaves: a crash in between costs budget, never privacy.
 *
 *   debit     spent at once                                  a release by one party
 *   reserve   counts in full from before the masked vector leaves; a new round of the same task may take it over, since
 *             the keys of the old one lived in memory only and this site will never reveal in it any more
 *   spend     before the first share is revealed: from then on the task is over for this ledger, in every account
 *
 * What the sites of a federation owe each other is that each reveals for one task once (docs/protocol.md 7): a site's
 * vector can be in a total without its own share, so it is the refusal of those that did reveal that keeps it out of a
 * second one. Hence a task that was spent is refused whatever the budget, sessions are remembered for ever, and nothing
 * takes a reservation back: a site whose round went silent cannot know that it is not in a total. A task has
 * FKT_LEDGER_ROUNDS rounds at most, since every one shows the server another graph.
 *
 * The budget of some records is set at their first charge: the given (epsilon, delta), or else just what that charge
 * costs, so that a second release of the same records is refused until somebody decides otherwise. mu^2 adds up within
 * one adjacency (docs/privacy.md). Version 1 of the file had neither sessions nor zCDP; it is read, and written as
 * version 2, which an older fedkt refuses rather than add up wrongly. */
#include "round/account.h"
#include "round/task.h"

#include "base/alloc.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEMA "fedkt.ledger/2"
#define SCHEMA_OLD "fedkt.ledger/1"
#define MAX_BYTES (64U << 20)

static fkt_status lock(int *fd, const char *path)
{
    char *name = NULL;
    size_t n = strlen(path) + 6;
    fkt_status st;
    FKT_TRY(fkt_alloc(&name, n));
    snprintf(name, n, "%s.lock", path);
    *fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (*fd < 0 || flock(*fd, LOCK_EX) != 0)
        st = fkt_fail(FKT_E_IO, "cannot lock the ledger '%s': %s", path, strerror(errno));
out:
    fkt_free(name);
    return st;
}

static fkt_status load(json_t **root, const char *path)
{
    uint8_t *text = NULL;
    size_t len;
    json_error_t e;
    const char *schema;
    fkt_status st;
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        *root = json_pack("{s:s s:{}}", "schema", SCHEMA, "records");
        return *root ? FKT_OK : fkt_fail(FKT_E_NOMEM, "out of memory while opening the ledger");
    }
    st = fkt_file_read(&text, &len, path, MAX_BYTES);
    if (st != FKT_OK) return st;
    *root = json_loadb((char *)text, len, JSON_REJECT_DUPLICATES, &e);
    schema = json_string_value(json_object_get(*root, "schema"));
    if (!schema || (strcmp(schema, SCHEMA) != 0 && strcmp(schema, SCHEMA_OLD) != 0) ||
        !json_is_object(json_object_get(*root, "records"))) {
        json_decref(*root);
        *root = NULL;
        st = fkt_fail_hint(FKT_E_FORMAT, FKT_LEDGER_DAMAGED, "'%s' is not a privacy ledger", path);
    }
    fkt_free(text);
    return st;
}

/* Through a link the ledger is the file it points to: one account, one lock, whatever the name. Gives *real. */
static fkt_status real_path(char **real, const char *path)
{
    struct stat sb;
    char *resolved = realpath(path, NULL);
    fkt_status st;
    if (lstat(resolved ? resolved : path, &sb) == 0 && (!resolved || !S_ISREG(sb.st_mode) || sb.st_nlink > 1))
        st = fkt_fail_hint(FKT_E_IO, "name the ledger's own file: another name for it would be another account",
                           "the ledger '%s' is a link to nothing, no regular file, or has a second name", path);
    else st = fkt_strdup(real, resolved ? resolved : path);
    free(resolved);
    return st;
}

/* The file between lock and rename. */
struct held {
    char *path;
    int fd;
    json_t *root, *records; /* records is borrowed from root */
};

static fkt_status take(struct held *h, const char *name)
{
    fkt_status st;
    *h = (struct held){.fd = -1};
    FKT_TRY(real_path(&h->path, name));
    FKT_TRY(lock(&h->fd, h->path));
    FKT_TRY(load(&h->root, h->path));
    h->records = json_object_get(h->root, "records");
out:
    return st;
}

static fkt_status put_back(struct held *h)
{
    if (json_object_set_new(h->root, "schema", json_string(SCHEMA)) != 0)
        return fkt_fail(FKT_E_NOMEM, "out of memory while writing the ledger");
    return fkt_json_save(json_incref(h->root), h->path, FKT_FILE_REPLACE | FKT_FILE_PRIVATE);
}

static void let_go(struct held *h)
{
    json_decref(h->root);
    fkt_free(h->path);
    if (h->fd >= 0) close(h->fd);
}

static fkt_status check_charge(const struct fkt_ledger_charge *c)
{
    if (!(c->mu > 0 && c->mu < 1e100) || (c->accounting != FKT_ACCOUNT_GDP && c->accounting != FKT_ACCOUNT_ZCDP))
        return fkt_fail(FKT_E_ARG, "a charge of mu %g cannot be booked", c->mu);
    if (c->budget_epsilon != 0 && !(fkt_privacy_mu(c->budget_epsilon, c->budget_delta) > 0))
        return fkt_fail(FKT_E_ARG, "the budget needs epsilon > 0 and 0 < delta < 1");
    for (size_t i = 0; i < c->n; i++)
        for (size_t j = 0; j < i; j++)
            if (!strcmp(c->fingerprints[i], c->fingerprints[j]))
                return fkt_fail(FKT_E_ARG,
                                "the same moments stand twice in one release: their records would count twice");
    return FKT_OK;
}

static fkt_status check_session(const char *session)
{
    if (strlen(session) != FKT_SHA256_HEX - 1 || strspn(session, "0123456789abcdef") != FKT_SHA256_HEX - 1)
        return fkt_fail(FKT_E_ARG, "'%.70s' is no session: 64 hex digits", session);
    return FKT_OK;
}

/* All that the accounts know of m->task and m->session. */
static fkt_status recall(const struct held *h, struct fkt_account_memory *m)
{
    const char *name;
    json_t *account;
    fkt_status st = FKT_OK;
    m->sessions = json_object();
    if (!m->sessions) return fkt_fail(FKT_E_NOMEM, "out of memory while reading the ledger");
    json_object_foreach (h->records, name, account) FKT_TRY(fkt_account_recall(account, h->path, m));
out:
    return st;
}

static fkt_status refuse_spent(const struct held *h, const char *task)
{
    return fkt_fail_hint(FKT_E_BUDGET, "a further release of these records is a new task",
                         "the ledger '%s' has spent task %.8s... already: it is refused whatever the budget", h->path,
                         task);
}

/* May a round of this session begin? */
static fkt_status check_round(const struct held *h, const char *task, const char *session)
{
    struct fkt_account_memory m = {.task = task, .session = session};
    fkt_status st;
    FKT_TRY(recall(h, &m));
    if (m.known)
        st = fkt_fail_hint(FKT_E_STATE, "begin a new round, with fresh keys",
                           "the ledger '%s' knows session %.8s... already", h->path, session);
    else if (m.spent) st = refuse_spent(h, task);
    else if (json_object_size(m.sessions) >= FKT_LEDGER_ROUNDS)
        st = fkt_fail_hint(FKT_E_BUDGET, "ask why its rounds do not end; going on is a new task",
                           "the ledger '%s' has seen %d rounds of task %.8s... that did not end", h->path,
                           FKT_LEDGER_ROUNDS, task);
out:
    json_decref(m.sessions);
    return st;
}

static fkt_status charge_one(struct held *h, const struct fkt_ledger_charge *c, size_t i, const char *session,
                             struct fkt_ledger_spent *most)
{
    json_t *account = NULL, *past = json_array();
    fkt_status st = past ? FKT_OK : fkt_fail(FKT_E_NOMEM, "out of memory while writing the ledger");
    FKT_TRY(st);
    FKT_TRY(fkt_account_open(&account, h->records, c->fingerprints[i], c, h->path));
    if (session) FKT_TRY(fkt_account_take_over(account, c->task_sha256, past));
    FKT_TRY(fkt_account_charge(account, c, session, past, h->path, most));
out:
    json_decref(past);
    return st;
}

static fkt_status charge_all(const char *name, const struct fkt_ledger_charge *c, const char *session,
                             struct fkt_ledger_spent *spent)
{
    struct fkt_ledger_spent most = {0};
    struct held h = {.fd = -1};
    fkt_status st;
    FKT_TRY(check_charge(c));
    FKT_TRY(take(&h, name));
    if (session) FKT_TRY(check_round(&h, c->task_sha256, session));
    for (size_t i = 0; i < c->n; i++) FKT_TRY(charge_one(&h, c, i, session, &most));
    FKT_TRY(put_back(&h));
    if (spent) *spent = most;
out:
    let_go(&h);
    return st;
}

fkt_status fkt_ledger_file_debit(const char *path, const struct fkt_ledger_charge *charge,
                                 struct fkt_ledger_spent *spent)
{
    return charge_all(path, charge, NULL, spent);
}

fkt_status fkt_ledger_file_reserve(const char *path, const struct fkt_ledger_charge *charge, const char *session,
                                   struct fkt_ledger_spent *spent)
{
    fkt_status st = check_session(session);
    if (st == FKT_OK && charge->n == 0) st = fkt_fail(FKT_E_ARG, "a reservation needs the fingerprint of some records");
    return st == FKT_OK ? charge_all(path, charge, session, spent) : st;
}

fkt_status fkt_ledger_file_spend(const char *path, const char *session)
{
    struct fkt_account_memory m = {0};
    struct held h = {.fd = -1};
    const char *name;
    json_t *account;
    fkt_status st;
    FKT_TRY(check_session(session));
    FKT_TRY(take(&h, path));
    json_object_foreach (h.records, name, account)
        if (!m.task) m.task = fkt_account_reserved_for(account, session);
    if (!m.task)
        st = fkt_fail(FKT_E_STATE, "the ledger '%s' holds no reservation for session %.8s...", h.path, session);
    FKT_TRY(st);
    FKT_TRY(recall(&h, &m));
    if (m.spent) st = refuse_spent(&h, m.task);
    FKT_TRY(st);
    json_object_foreach (h.records, name, account) FKT_TRY(fkt_account_spend(account, session));
    FKT_TRY(put_back(&h));
out:
    json_decref(m.sessions);
    let_go(&h);
    return st;
}

double fkt_ledger_epsilon(double delta, const struct fkt_ledger_spent *spent)
{
    return spent->accounting == FKT_ACCOUNT_ZCDP ? fkt_privacy_epsilon_zcdp(delta, spent->mu2 / 2)
                                                 : fkt_privacy_epsilon(delta, sqrt(spent->mu2));
}
