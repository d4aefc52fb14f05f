/* SPDX-License-Identifier: Apache-2.0 */
/* ledger_import.c - ledgers from before they were SQLite files: one JSON document.
 *
 *   {"schema": "fedkt.ledger/2", "records": {"<fingerprint>": account, ...}}
 *   account: {"budget_mu2": b, "budget_epsilon": e, "budget_delta": d, "adjacency": a,
 *             "entries": [{"task_sha256": t, "mu2": m, "entropy": e, "accounting": "gdp" | "zcdp",
 *                          "session": s, "past": [s, ...], "state": "reserved" | "spent"}, ...]}
 *
 * "past" held the sessions that an entry took over. Version 1 had neither sessions nor zCDP: all spent, all gdp. There
 * were no dates. Everything is read and checked before the new ledger is touched, and comes over in one change. */
#include "fedkt/ledger.h"

#include "fedkt/round.h"
#include "round/account.h"
#include "round/book.h"

#include "base/alloc.h"
#include "base/file.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#define MAX_BYTES (64U << 20)

static const char *hex_of(const json_t *j)
{
    const char *s = json_string_value(j);
    return s && strlen(s) == FKT_SHA256_HEX - 1 && strspn(s, "0123456789abcdef") == FKT_SHA256_HEX - 1 ? s : NULL;
}

/* 0 when something in it makes no sense. */
static int read_entry(struct fkt_ledger_entry *e, const json_t *j)
{
    const json_t *accounting = json_object_get(j, "accounting"), *state = json_object_get(j, "state");
    const json_t *session = json_object_get(j, "session"), *past = json_object_get(j, "past");
    const char *task = hex_of(json_object_get(j, "task_sha256")), *where = json_string_value(state);
    const char *entropy = json_string_value(json_object_get(j, "entropy"));
    const int kind = accounting ? fkt_accounting_parse(json_string_value(accounting)) : FKT_ACCOUNT_GDP;
    *e = (struct fkt_ledger_entry){.mu2 = json_number_value(json_object_get(j, "mu2"))};
    if (!(e->mu2 > 0 && e->mu2 < 1e300) || !task || kind < 0 || (session && !hex_of(session))) return 0;
    e->accounting = (enum fkt_accounting)kind;
    e->reserved = where && !strcmp(where, "reserved");
    if (state && !e->reserved && !(where && !strcmp(where, "spent"))) return 0;
    if ((e->reserved || past) && !session) return 0;
    if (past && !json_is_array(past)) return 0;
    for (size_t i = 0; i < json_array_size(past); i++)
        if (!hex_of(json_array_get(past, i))) return 0;
    if (!entropy) return 0;
    e->insecure_seed = strcmp(entropy, "operating system") != 0;
    snprintf(e->task_sha256, sizeof e->task_sha256, "%s", task);
    snprintf(e->session, sizeof e->session, "%s", session ? json_string_value(session) : "");
    return 1;
}

static int read_account(struct fkt_ledger_account *a, const char *fingerprint, const json_t *j)
{
    const char *adjacency = json_string_value(json_object_get(j, "adjacency"));
    const json_t *epsilon = json_object_get(j, "budget_epsilon"), *delta = json_object_get(j, "budget_delta");
    const int kind = adjacency ? fkt_adjacency_parse(adjacency) : -1;
    *a = (struct fkt_ledger_account){.budget_mu2 = json_number_value(json_object_get(j, "budget_mu2")),
                                     .budget_epsilon = json_number_value(epsilon),
                                     .budget_delta = json_number_value(delta)};
    if (kind < 0 || strlen(fingerprint) != FKT_SHA256_HEX - 1 || !json_is_array(json_object_get(j, "entries")))
        return 0;
    if (strspn(fingerprint, "0123456789abcdef") != FKT_SHA256_HEX - 1) return 0;
    if (!(a->budget_mu2 > 0 && a->budget_mu2 < 1e300) || !epsilon != !delta) return 0;
    if (epsilon && !(fkt_privacy_mu(a->budget_epsilon, a->budget_delta) > 0)) return 0;
    a->adjacency = (enum fkt_adjacency)kind;
    snprintf(a->fingerprint, sizeof a->fingerprint, "%s", fingerprint);
    return 1;
}

/* Every number and word of it, before anything is written. */
static fkt_status check_all(json_t *records, const char *old)
{
    const char *fingerprint;
    json_t *account;
    json_object_foreach (records, fingerprint, account) {
        const json_t *entries = json_object_get(account, "entries");
        struct fkt_ledger_account a;
        struct fkt_ledger_entry e;
        if (!read_account(&a, fingerprint, account))
            return fkt_ledger_damaged(old, "an account whose adjacency, budget or entries make no sense");
        for (size_t i = 0; i < json_array_size(entries); i++)
            if (!read_entry(&e, json_array_get(entries, i)))
                return fkt_ledger_damaged(old, "an entry whose number, accounting, state or sessions make no sense");
    }
    return FKT_OK;
}

static fkt_status load(json_t **root, const char *old)
{
    uint8_t *text = NULL;
    size_t len = 0;
    json_error_t e;
    const char *schema;
    fkt_status st;
    FKT_TRY(fkt_file_read(&text, &len, old, MAX_BYTES));
    *root = json_loadb((char *)text, len, JSON_REJECT_DUPLICATES, &e);
    schema = json_string_value(json_object_get(*root, "schema"));
    if (!schema || (strcmp(schema, "fedkt.ledger/1") != 0 && strcmp(schema, "fedkt.ledger/2") != 0) ||
        !json_is_object(json_object_get(*root, "records")))
        st = fkt_fail_hint(FKT_E_FORMAT, "import is for ledgers of an older fedkt, which were JSON files",
                           "'%s' is not an old privacy ledger", old);
    else st = check_all(json_object_get(*root, "records"), old);
out:
    fkt_free(text);
    return st;
}

static fkt_status put_entry(struct fkt_book *b, int64_t account, const json_t *j)
{
    const json_t *past = json_object_get(j, "past");
    struct fkt_ledger_entry e;
    fkt_status st = FKT_OK;
    (void)read_entry(&e, j); /* was checked */
    if (*e.session) FKT_TRY(fkt_book_put_session(b, e.session, e.task_sha256));
    for (size_t i = 0; i < json_array_size(past); i++)
        FKT_TRY(fkt_book_put_session(b, json_string_value(json_array_get(past, i)), e.task_sha256));
    FKT_TRY(fkt_book_put_entry(b, account, &e));
out:
    return st;
}

static fkt_status put_account(struct fkt_book *b, const char *fingerprint, const json_t *j, const char *old)
{
    const json_t *entries = json_object_get(j, "entries");
    struct fkt_ledger_account a, there = {0};
    int64_t id = 0;
    fkt_status st;
    (void)read_account(&a, fingerprint, j); /* was checked */
    FKT_TRY(fkt_book_account(b, fingerprint, &there, &id));
    if (id)
        st = fkt_fail_hint(FKT_E_EXISTS, "nothing was imported; name a new ledger, or one without these records",
                           "the ledger '%s' has an account for records %.8s... of '%s' already", b->path, fingerprint,
                           old);
    FKT_TRY(st);
    FKT_TRY(fkt_book_put_account(b, &a, &id));
    for (size_t i = 0; i < json_array_size(entries); i++) FKT_TRY(put_entry(b, id, json_array_get(entries, i)));
out:
    fkt_account_release(&there);
    return st;
}

fkt_status fkt_ledger_file_import(const char *path, const char *old, size_t *n)
{
    struct fkt_book b = {0};
    json_t *root = NULL, *records, *account;
    const char *fingerprint;
    fkt_status st;
    FKT_TRY(load(&root, old));
    records = json_object_get(root, "records");
    FKT_TRY(fkt_book_open(&b, path, FKT_BOOK_MAKE));
    json_object_foreach (records, fingerprint, account) {
        st = put_account(&b, fingerprint, account, old);
        if (st == FKT_E_STATE) /* a rule of the tables: the same reservation twice, or a session in two entries */
            st = fkt_ledger_damaged(old, "entries that contradict each other");
        FKT_TRY(st);
    }
    FKT_TRY(fkt_book_commit(&b));
    if (n) *n = json_object_size(records);
out:
    fkt_book_close(&b);
    json_decref(root);
    return st;
}
