/* SPDX-License-Identifier: Apache-2.0 */
/* sum.c - an outsider's check of a task in cohorts: every cohort's public folder, then their sum.
 *
 *   folder/release.safetensors, certificate.json     the sum, and which cohorts it says are in it
 *   folder/cohorts/0000/ ...                         each checked as the folder of an ordinary task (verify.c)
 *
 * The releases of the cohorts are added again and must give the numbers of the sum. A cohort that is not in the sum
 * must have a log that ends without a release. All tasks were signed by one operator, and their rosters together have
 * the hash that each of them states: no enrolled site may be left out. A receipt is compared with the log of its own
 * cohort.
 *
 * What it does not show: that a cohort's log without a release is the one its sites saw. A receipt of that cohort does.
 * No hash covers the images of the sum. */
#include "verify/verify.h"

#include "fedkt/verify.h"

#include "base/alloc.h"
#include "base/file.h"
#include "pipeline/sum.h"
#include "task/division.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct reading {
    struct fkt_verification *out;
    const char *folder, *receipt;
    const struct fkt_task *task;
    char receipt_task[FKT_SHA256_HEX]; /* "": no receipt */
    struct fkt_release sum;
    struct fkt_release **made; /* (sum.sum.n) */
    struct fkt_division_keys keys;
    int receipt_found, task_found;
};

/* The entry of the sum's list, or NULL. */
static const struct fkt_sum_cohort *listed(const struct fkt_sum *s, uint32_t index)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->cohort[i].index == index) return &s->cohort[i];
    return NULL;
}

static fkt_status check_task(struct reading *r, const struct fkt_task *own, const struct fkt_verification *v,
                             uint32_t index)
{
    struct fkt_task whole = {0};
    fkt_status st;
    FKT_TRY(fkt_task_whole(&whole, own));
    if (own->division.index != index || strcmp(whole.sha256, r->sum.task.sha256) != 0)
        st = fkt_fail(FKT_E_MISMATCH, "its log is of cohort %u of a division with another task of the sum",
                      own->division.index);
    else if (r->out->operator_key[0] && strcmp(r->out->operator_key, v->operator_key) != 0)
        st = fkt_fail(FKT_E_MISMATCH, "its task was signed by another operator than that of the cohorts before it");
    memcpy(r->out->operator_key, v->operator_key, sizeof r->out->operator_key);
out:
    fkt_task_clear(&whole);
    return st;
}

static void add_report(struct reading *r, const struct fkt_verification *v, int mine)
{
    struct fkt_verification *out = r->out;
    out->entries += v->entries;
    out->rounds += v->rounds;
    out->survivors += v->survivors;
    out->confirmed += v->confirmed;
    if (!mine) return;
    out->heads = v->heads;
    out->messages = v->messages;
    out->counted = v->counted;
    out->receipt_site = v->receipt_site;
    memcpy(out->receipt_key, v->receipt_key, sizeof out->receipt_key);
    memcpy(out->receipt_name, v->receipt_name, sizeof out->receipt_name);
    r->receipt_found = 1;
}

static fkt_status read_cohort(struct reading *r, uint32_t index, uint32_t *n)
{
    const struct fkt_sum_cohort *in = listed(&r->sum.sum, index);
    struct fkt_verification v;
    struct fkt_task own = {0};
    char name[32], *folder = NULL, *release = NULL;
    const struct fkt_task *want = r->task && r->task->division.index == index ? r->task : NULL;
    int mine;
    fkt_status st;
    snprintf(name, sizeof name, "cohorts/%04u", index);
    FKT_TRY(fkt_path_join(&folder, r->folder, name));
    FKT_TRY(fkt_path_join(&release, folder, "release.safetensors"));
    FKT_TRY(fkt_verify_folder_task(&v, folder, want, NULL, &own));
    mine = r->receipt && !strcmp(v.task_sha256, r->receipt_task);
    if (mine) FKT_TRY(fkt_verify_folder(&v, folder, want, r->receipt));
    r->task_found |= want != NULL;
    FKT_TRY(check_task(r, &own, &v, index));
    FKT_TRY(fkt_division_keys_add(&r->keys, &own.federation));
    if (!in && v.release_sha256[0]) FKT_TRY(fkt_fail(FKT_E_MISMATCH, "it has a release, which is not in the sum"));
    if (in && (strcmp(in->task_sha256, v.task_sha256) != 0 || strcmp(in->release_sha256, v.release_sha256) != 0))
        FKT_TRY(fkt_fail(FKT_E_MISMATCH, "its log has another task or release than the sum's certificate"));
    if (in) {
        FKT_TRY(fkt_release_load(&r->made[*n], release));
        ++*n;
    }
    add_report(r, &v, mine);
out:
    fkt_task_clear(&own);
    fkt_free(folder);
    fkt_free(release);
    return fkt_fail_in(st, "cohort %u", index);
}

static fkt_status check_sum(const struct reading *r, uint32_t n)
{
    struct fkt_release again = {0};
    fkt_status st;
    FKT_TRY(fkt_release_sum_into(&again, r->made, n));
    if (memcmp(again.moments, r->sum.moments, fkt_task_numbers(&again.task) * sizeof *again.moments) != 0)
        st = fkt_fail(FKT_E_MISMATCH, "release.safetensors is not the sum of its cohorts' releases");
    else if (again.facts.survivors != r->sum.facts.survivors || again.insecure_seed != r->sum.insecure_seed ||
             again.facts.simulated != r->sum.facts.simulated ||
             !(fabs(r->sum.facts.composed_epsilon - again.facts.composed_epsilon) <=
               1e-9 * again.facts.composed_epsilon) ||
             memcmp(again.sum.shape, r->sum.sum.shape, n * sizeof *again.sum.shape) != 0)
        st = fkt_fail(FKT_E_MISMATCH, "the certificate of the sum does not follow from its cohorts' releases");
out:
    fkt_release_clear(&again);
    return st;
}

static fkt_status open_sum(struct reading *r)
{
    char *release = NULL, *certificate = NULL;
    fkt_status st;
    FKT_TRY(fkt_path_join(&release, r->folder, "release.safetensors"));
    FKT_TRY(fkt_path_join(&certificate, r->folder, "certificate.json"));
    FKT_TRY(fkt_release_load_into(&r->sum, release));
    if (!fkt_task_is_whole(&r->sum.task)) FKT_TRY(fkt_fail(FKT_E_MISMATCH, "'%s' is not a sum of cohorts", release));
    FKT_TRY(fkt_log_certificate(release, certificate, NULL));
    if (r->task && fkt_task_is_whole(r->task)) r->task_found = !strcmp(r->task->sha256, r->sum.task.sha256);
    FKT_TRY(fkt_alloc(&r->made, r->sum.sum.n));
out:
    fkt_free(release);
    fkt_free(certificate);
    return st;
}

static fkt_status read_all(struct reading *r)
{
    const uint32_t number = r->sum.task.division.number;
    uint32_t n = 0;
    fkt_status st = FKT_OK;
    for (uint32_t i = 0; i < number; i++) FKT_TRY(read_cohort(r, i, &n));
    FKT_TRY(fkt_division_keys_check(&r->keys, &r->sum.task.division));
    FKT_TRY(check_sum(r, n));
    if (r->receipt && !r->receipt_found)
        FKT_TRY(fkt_fail(FKT_E_MISMATCH, "the receipt is of task %.12s, which is none of %u cohorts", r->receipt_task,
                         number));
    if (r->task && !r->task_found)
        FKT_TRY(fkt_fail(FKT_E_MISMATCH, "the task that was given is neither that of the sum nor that of a cohort"));
out:
    return st;
}

fkt_status fkt_verify_sum(struct fkt_verification *out, uint32_t *cohorts, uint32_t *in_sum, const char *folder,
                          const struct fkt_task *task, const char *receipt)
{
    struct reading r = {.out = out, .folder = folder, .task = task, .receipt = receipt};
    struct fkt_log_receipt kept = {0};
    fkt_status st;
    memset(out, 0, sizeof *out);
    *cohorts = *in_sum = 0;
    if (receipt) {
        FKT_TRY(fkt_log_receipt_load(&kept, receipt));
        memcpy(r.receipt_task, kept.task_sha256, sizeof r.receipt_task);
    }
    FKT_TRY(open_sum(&r));
    FKT_TRY(read_all(&r));
    out->sites = r.sum.facts.sites;
    memcpy(out->task_sha256, r.sum.task.sha256, sizeof out->task_sha256);
    memcpy(out->release_sha256, r.sum.sha256, sizeof out->release_sha256);
    *cohorts = r.sum.task.division.number;
    *in_sum = r.sum.sum.n;
out:
    for (uint32_t i = 0; r.made && i < r.sum.sum.n; i++) fkt_release_free(r.made[i]);
    fkt_free(r.made);
    fkt_division_keys_clear(&r.keys);
    fkt_release_clear(&r.sum);
    fkt_log_receipt_clear(&kept);
    if (st == FKT_OK || st == FKT_E_NOMEM) return st;
    if (st == FKT_E_IO)
        return fkt_hint(st, "give the public folder of the sum, with the public folders of all cohorts in it");
    return fkt_hint(st, "do not use this release; ask the operator, and compare with what other sites hold");
}
