/* SPDX-License-Identifier: Apache-2.0 */
/* join_result.c - the end of fkt_join: the server's files are fetched, compared with this site's receipt, and moved to
 * the requested folder, all or none.
 *
 * Files that fail the check never replace a folder: they are kept next to it, as evidence (OUT.wrong-1 ...).
 *
 * FKT_OK means: there is a release, everything about it could be checked, and this site's records are in it. A site
 * that was lost after its vector was received is still in the total, as the log states; one that was lost before is
 * not, and the call ends with FKT_E_TOO_FEW. */
#include "remote/join.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/output.h"
#include "base/text.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    RELEASE_MAX = 1 << 30,
    TEXT_MAX = 1 << 20,
    LOG_MAX = 1 << 30,
    GRID_MAX = 64 << 20,
    LOG_BASE = 81 << 20, /* the task in its first line, and a month of refusals */
    LOG_SITE = 8192,     /* a site's lines of one round */
    WRONG_MAX = 9        /* folders with evidence */
};

static const struct file {
    const char *name;
    uint64_t max;         /* 0: log_max */
    int always, optional; /* always: also of a task that was given up */
} files[] = {
    {"release.safetensors", RELEASE_MAX, 0, 0},
    {"certificate.json", TEXT_MAX, 0, 0},
    {"grid.png", GRID_MAX, 0, 1},
    {"transparency.jsonl", 0, 1, 0}, /* last: when every site has it, the server may stop */
};

/* A folder that was made for this task may be written again: the same call continues after a crash. */
static int is_ours(const struct fkt_joining *j)
{
    char *path = NULL;
    json_t *r = NULL;
    const char *task;
    int yes = 0;
    if (fkt_path_join(&path, j->out, "receipt.json") == FKT_OK && access(path, R_OK) == 0) {
        r = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
        task = json_string_value(json_object_get(r, "task_sha256"));
        yes = task && !strcmp(task, j->task->sha256);
    }
    json_decref(r);
    fkt_free(path);
    return yes;
}

fkt_status fkt_joining_check_out(const struct fkt_joining *j)
{
    const char *const inputs[] = {j->spec->task, j->spec->key, j->spec->data, j->state, j->ledger};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (fkt_output_replaces(j->out, inputs[i]))
            return fkt_fail_hint(FKT_E_ARG, "name another folder for the result",
                                 "writing '%s' would overwrite the input '%s'", j->out, inputs[i]);
    return fkt_output_folder(j->out, j->spec->force || is_ours(j));
}

/* No log of this task is longer. */
static uint64_t log_max(const struct fkt_joining *j)
{
    const uint64_t n = LOG_BASE + (uint64_t)LOG_SITE * j->task->federation.sites * j->task->service.rounds;
    return n < LOG_MAX ? n : LOG_MAX;
}

static fkt_status fetch(struct fkt_joining *j, const char *folder, int released)
{
    char *path = NULL;
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < sizeof files / sizeof *files && st == FKT_OK; i++) {
        if (!released && !files[i].always) continue;
        FKT_TRY(fkt_path_join(&path, folder, files[i].name));
        st = fkt_http_transport_fetch(&j->post, files[i].name, path, files[i].max ? files[i].max : log_max(j), 1);
        if (st == FKT_E_STATE && files[i].optional) st = FKT_OK;
        fkt_free(path);
        path = NULL;
    }
out:
    fkt_free(path);
    return st;
}

/* ---- result ---- */

static fkt_status check(const struct fkt_joining *j, const char *folder, struct fkt_verification *r)
{
    char *receipt = NULL;
    fkt_status st;
    FKT_TRY(fkt_path_join(&receipt, folder, "receipt.json"));
    FKT_TRY(fkt_verify_folder(r, folder, j->task, receipt));
out:
    fkt_free(receipt);
    return st;
}

/* The same, and that it matches the verified files that the site already has: a second log that verifies proves that
 * the server keeps two. */
static fkt_status check_anew(const struct fkt_joining *j, const char *folder, struct fkt_verification *r)
{
    struct fkt_verification before;
    fkt_status st = check(j, folder, r);
    if (st != FKT_OK || !is_ours(j) || check(j, j->out, &before) != FKT_OK) return st;
    if (!strcmp(before.head, r->head)) return FKT_OK;
    return fkt_fail_hint(FKT_E_MISMATCH, "keep both, and compare with what other sites hold",
                         "it is another log than the one in '%s', and both can be verified", j->out);
}

static fkt_status evaluate(struct fkt_joining *j, const struct fkt_verification *r)
{
    struct fkt_client_view view;
    fkt_client_get_view(j->client, &view);
    j->over = !r->release_sha256[0] || !r->counted;
    if (!r->release_sha256[0])
        return fkt_fail_hint(FKT_E_TOO_FEW,
                             view.masked ? "what the ledger has reserved stays reserved: a new task pays for itself"
                                         : "nothing of this site's records has left",
                             "the task was given up: nothing was released");
    if (!r->counted)
        return fkt_fail_hint(FKT_E_TOO_FEW, "the release can still be used; the ledger shows its cost",
                             "there is a release, but this site's records are not in it");
    return FKT_OK;
}

/* An unused name next to `out`; NULL: WRONG_MAX of them exist. */
static fkt_status free_name(char **name, const char *out)
{
    const size_t n = strlen(out) + 16;
    fkt_status st = fkt_alloc(name, n);
    for (int i = 1; st == FKT_OK && i <= WRONG_MAX; i++) {
        snprintf(*name, n, "%s.wrong-%d", out, i);
        if (access(*name, F_OK) != 0) return FKT_OK;
    }
    fkt_free(*name);
    *name = NULL;
    return st;
}

/* Files that failed the check, for the reason `why`, are evidence: they are kept next to the result folder, and
 * nothing is replaced. */
static fkt_status keep_evidence(struct fkt_folder *f, fkt_status why)
{
    struct fkt_failure wrong;
    char *name = NULL;
    fkt_status st;
    fkt_failure_save(&wrong, why);
    FKT_TRY(free_name(&name, f->path));
    if (!name) {
        st = fkt_fail_in(fkt_failure_restore(&wrong),
                         "the server's files failed the check, and are not kept: '%s.wrong-%d' and all before it exist",
                         f->path, WRONG_MAX);
        goto out;
    }
    fkt_free(f->path);
    f->path = NULL;
    f->force = 0;
    FKT_TRY(fkt_strdup(&f->path, name));
    FKT_TRY(fkt_folder_commit(f));
    st = fkt_fail_in(fkt_failure_restore(&wrong), "the server's files, now in '%s', failed the check", name);
out:
    fkt_free(name);
    return st;
}

fkt_status fkt_joining_finish(struct fkt_joining *j, struct fkt_join_result *result)
{
    struct fkt_folder f = {0};
    struct fkt_client_view view;
    struct fkt_verification *r = &result->verified;
    char *receipt = NULL;
    fkt_status st;
    fkt_client_get_view(j->client, &view);
    FKT_TRY(fkt_folder_begin(&f, j->out, j->spec->force || is_ours(j)));
    FKT_TRY(fetch(j, f.tmp, view.stage == FKT_STAGE_RELEASED));
    FKT_TRY(fkt_path_join(&receipt, f.tmp, "receipt.json"));
    FKT_TRY(fkt_client_receipt(j->client, receipt, 1));
    st = check_anew(j, f.tmp, r);
    if (st != FKT_OK && st != FKT_E_NOMEM) st = keep_evidence(&f, st);
    FKT_TRY(st);
    FKT_TRY(fkt_folder_commit(&f));
    result->stage = view.stage;
    result->rounds = view.begun;
    result->sent_bytes = view.sent_bytes;
    result->out = j->out;
    j->out = NULL;
    FKT_TRY(evaluate(j, r));
out:
    fkt_free(receipt);
    fkt_folder_clear(&f);
    return st;
}
