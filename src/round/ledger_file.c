/* SPDX-License-Identifier: Apache-2.0 */
/* ledger_file.c - a privacy ledger that outlives the process.
 *
 *   {"schema": "fedkt.ledger/1",
 *    "records": {"<fingerprint>": {"budget_mu2": b, "adjacency": a,
 *                                  "entries": [{"task_sha256": t, "mu2": m, "entropy": e}, ...]}}}
 *
 * The fingerprint is the SHA-256 of one site's exact moments, so the ledger is as private as they are (0600). A
 * release of several sites debits each of them, so that {A, B} and then {A} alone is two releases for A. A debit
 * takes a lock, reads, adds, writes, syncs and renames BEFORE any noise is drawn: a crash in between costs budget,
 * never privacy. The budget of some records is set at their first debit: the given (epsilon, delta), or else just
 * what that first release costs, so that a second release of the same records is refused until somebody decides
 * otherwise. mu^2 adds up within one adjacency
 * (docs/privacy.md). */
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

#define SCHEMA "fedkt.ledger/1"
#define MAX_BYTES (64U << 20)
#define DAMAGED "restore it from a backup; a damaged ledger must not be replaced by an empty one"

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
    if (!schema || strcmp(schema, SCHEMA) != 0 || !json_is_object(json_object_get(*root, "records"))) {
        json_decref(*root);
        *root = NULL;
        st = fkt_fail_hint(FKT_E_FORMAT, DAMAGED, "'%s' is not a privacy ledger", path);
    }
    fkt_free(text);
    return st;
}

/* What the entries of one set of records have spent; NaN or a negative number in the file counts as everything. */
static double spent(const json_t *record)
{
    const json_t *entries = json_object_get(record, "entries");
    double sum = 0;
    for (size_t i = 0; i < json_array_size(entries); i++) {
        double mu2 = json_number_value(json_object_get(json_array_get(entries, i), "mu2"));
        sum += mu2 > 0 ? mu2 : INFINITY;
    }
    return sum;
}

static fkt_status open_account(json_t **out, json_t *root, const char *fingerprint, const struct fkt_ledger_charge *c,
                               double budget_mu2, const char *path)
{
    json_t *records = json_object_get(root, "records"), *record = json_object_get(records, fingerprint);
    const char *kept, *asked = fkt_adjacency_name(c->adjacency);
    *out = record;
    if (!record) {
        record = json_pack("{s:f s:s s:[]}", "budget_mu2", budget_mu2 > 0 ? budget_mu2 : c->mu * c->mu, "adjacency",
                           asked, "entries");
        *out = record;
        return json_object_set_new(records, fingerprint, record) == 0
                   ? FKT_OK
                   : fkt_fail(FKT_E_NOMEM, "out of memory while writing the ledger");
    }
    kept = json_string_value(json_object_get(record, "adjacency"));
    if (!kept || fkt_adjacency_parse(kept) < 0 || !json_is_array(json_object_get(record, "entries")))
        return fkt_fail_hint(FKT_E_FORMAT, DAMAGED, "the ledger '%s' holds an account without adjacency or entries",
                             path);
    if (strcmp(kept, asked) != 0)
        return fkt_fail_hint(
            FKT_E_BUDGET, "privacy losses under different adjacencies do not add up; keep to the first one",
            "the ledger '%s' counts these records under '%s', this release is under '%s'", path, kept, asked);
    if (budget_mu2 > 0) json_object_set_new(record, "budget_mu2", json_real(budget_mu2));
    return FKT_OK;
}

/* *most becomes the largest sum of mu^2 of any account that was charged. */
static fkt_status debit(json_t *root, const char *fingerprint, const struct fkt_ledger_charge *c, double budget_mu2,
                        const char *path, double *most)
{
    json_t *record = NULL;
    struct fkt_ledger l;
    double had, budget, mu2 = c->mu * c->mu;
    fkt_status st;
    FKT_TRY(open_account(&record, root, fingerprint, c, budget_mu2, path));
    had = spent(record);
    if (!isfinite(had))
        return fkt_fail_hint(FKT_E_FORMAT, DAMAGED, "the ledger '%s' holds an entry that is not a positive number",
                             path);
    budget = json_number_value(json_object_get(record, "budget_mu2"));
    if (!(budget > 0 && isfinite(budget)))
        return fkt_fail_hint(FKT_E_FORMAT, DAMAGED, "the ledger '%s' holds a budget that is not a positive number",
                             path);
    FKT_TRY(fkt_ledger_init(&l, budget, had));
    st = fkt_ledger_debit(&l, mu2);
    if (st == FKT_E_BUDGET)
        st = fkt_fail_hint(
            FKT_E_BUDGET,
            "sample more from the release that exists (free of cost), or raise the total with --budget-epsilon and "
            "--budget-delta",
            "the ledger '%s' has no budget left for these records: spent mu^2 = %.6g, budget %.6g, asked %.6g", path,
            had, l.budget_mu2, mu2);
    FKT_TRY(st);
    *most = fmax(*most, had + mu2);
    if (json_array_append_new(json_object_get(record, "entries"),
                              json_pack("{s:s s:f s:s}", "task_sha256", c->task_sha256, "mu2", mu2, "entropy",
                                        c->insecure_seed ? "INSECURE SEED" : "operating system")) != 0)
        st = fkt_fail(FKT_E_NOMEM, "out of memory while writing the ledger");
out:
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

fkt_status fkt_ledger_file_debit(const char *name, const struct fkt_ledger_charge *c, double *spent_mu2)
{
    json_t *root = NULL;
    char *path = NULL;
    int fd = -1;
    double most = 0;
    double budget_mu = c->budget_epsilon != 0 ? fkt_privacy_mu(c->budget_epsilon, c->budget_delta) : 0;
    fkt_status st = FKT_OK;
    if (!(budget_mu >= 0) || !(c->mu > 0)) return fkt_fail(FKT_E_ARG, "the budget needs epsilon > 0 and 0 < delta < 1");
    for (size_t i = 0; i < c->n; i++)
        for (size_t j = 0; j < i; j++)
            if (!strcmp(c->fingerprints[i], c->fingerprints[j]))
                return fkt_fail(FKT_E_ARG,
                                "the same moments stand twice in one release: their records would count twice");
    FKT_TRY(real_path(&path, name));
    FKT_TRY(lock(&fd, path));
    FKT_TRY(load(&root, path));
    for (size_t i = 0; i < c->n; i++) FKT_TRY(debit(root, c->fingerprints[i], c, budget_mu * budget_mu, path, &most));
    FKT_TRY(fkt_json_save(json_incref(root), path, FKT_FILE_REPLACE | FKT_FILE_PRIVATE));
    if (spent_mu2) *spent_mu2 = most;
out:
    json_decref(root);
    fkt_free(path);
    if (fd >= 0) close(fd);
    return st;
}
