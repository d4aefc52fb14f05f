/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - `fedkt verify`: checks what a server published without trusting it. It prints what was compared with
 * what, what was not compared because it was not given, and what cannot be checked from outside. */
#include "cli/core/common.h"
#include "cli/task/public_key.h"
#include "cli/core/verbs.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"

#include "fedkt/server.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct asked {
    const char *folder, *task, *receipt, *operator_key;
    uint32_t cohorts, in_sum; /* of a sum of cohorts */
    int task_signed;          /* the given one, which identifies the operator */
    struct cli_run run;
};

static int operator_compared(const struct asked *a) { return a->operator_key || a->task_signed; }

/* The fields that come from the release; checked before this is called. */
static fkt_status open_release(struct fkt_release *r, const char *folder)
{
    char *path = NULL;
    fkt_status st;
    FKT_TRY(fkt_path_join(&path, folder, "release.safetensors"));
    FKT_TRY(fkt_release_load_into(r, path));
out:
    fkt_free(path);
    return st;
}

static void row(const char *what) { printf("%-12s ", what); }

static void print_operator(const struct asked *a, const struct fkt_verification *r)
{
    uint8_t key[FKT_SA_KEY] = {0};
    char short_key[FKT_FINGERPRINT];
    if (!fkt_unhex(key, r->operator_key, sizeof key)) return;
    fkt_fingerprint(short_key, key);
    row("operator");
    if (a->operator_key) printf("%s, the given key, signed the task\n", short_key);
    else if (a->task_signed) printf("%s, who signed the given task, signed this one\n", short_key);
    else if (a->task)
        printf("%s signed the task; NOT compared: the given task is not signed (--operator)\n", short_key);
    else printf("%s signed the task; NOT compared with a known key (give --operator or --task)\n", short_key);
}

static void print_release(const struct fkt_verification *r, const struct fkt_release *release)
{
    const struct fkt_privacy_spec *p = &release->task.privacy;
    row("survivors");
    printf("%u of %u sites, those with vectors in the log\n", r->survivors, r->sites);
    row("signatures");
    printf("%u of these sites signed that list, and every signature is valid\n", r->confirmed);
    row("release");
    printf("%s, %s\n", r->release_sha256,
           release->sum.n ? "the sum of the only ones in these logs" : "the only one in this log");
    row("certificate");
    printf("the server's claim: epsilon %g, delta %g, %s; it matches the release\n", p->epsilon, p->delta,
           fkt_adjacency_name(p->adjacency));
    printf("             NOT checked: that its numbers are the sum of these sites' vectors, and that they contain noise"
           "%s;\n             no file can prove that\n",
           release->task.federation.noise == FKT_NOISE_PLACE_CENTRAL ? ", drawn once" : "");
    if (release->insecure_seed) printf("             NOT PRIVATE: all randomness came from a known seed\n");
    cli_print_weak_release(release);
}

static void print(const struct asked *a, const struct fkt_verification *r, const struct fkt_release *release)
{
    uint8_t key[FKT_SA_KEY] = {0};
    char print[FKT_FINGERPRINT] = "";
    row(a->cohorts ? "logs" : "log");
    if (a->cohorts)
        printf("%llu lines, one chain for each of %u cohorts; %u cohorts are in the sum%s\n",
               (unsigned long long)r->entries, a->cohorts, a->in_sum,
               a->in_sum < a->cohorts ? ", and the logs of the others end without a release" : "");
    else printf("%llu lines in one chain, head %s\n", (unsigned long long)r->entries, r->head);
    row("task");
    printf("%s%s\n", r->task_sha256, a->task ? ", the given task" : "");
    print_operator(a, r);
    row("rounds");
    printf("%u%s\n", r->rounds, r->release_sha256[0] ? ", the last of which gave the release" : "");
    if (r->release_sha256[0]) print_release(r, release);
    else printf("%-12s none: the server gave the task up, as its log states\n", "release");
    row("receipt");
    if (a->receipt) {
        if (fkt_unhex(key, r->receipt_key, sizeof key)) fkt_fingerprint(print, key);
        printf("of site %u%s", r->receipt_site, r->receipt_name[0] ? ", " : "");
        cli_show(r->receipt_name, strlen(r->receipt_name));
        printf(" (%s): all of its %zu heads and %zu messages are in the log\n", print, r->heads, r->messages);
    } else printf("none given: a completely rewritten log would pass (give --receipt)\n");
    printf("everything that was checked is consistent\n");
}

static fkt_status print_json(const struct asked *a, const struct fkt_verification *r, const struct fkt_release *release)
{
    const int there = r->release_sha256[0] != '\0';
    json_t *j =
        json_pack("{s:b s:I s:s? s:i s:i s:i s:i s:s s:s s:s? s:b s:b s:b s:o s:I s:I}", "ok", 1, "entries",
                  (json_int_t)r->entries, "head", a->cohorts ? NULL : r->head, "rounds", (int)r->rounds, "sites",
                  (int)r->sites, "survivors", (int)r->survivors, "signatures", (int)r->confirmed, "task_sha256",
                  r->task_sha256, "operator_key", r->operator_key, "release_sha256", there ? r->release_sha256 : NULL,
                  "task_compared", a->task != NULL, "operator_compared", operator_compared(a), "receipt_compared",
                  a->receipt != NULL, "receipt_site", a->receipt ? json_integer(r->receipt_site) : json_null(), "heads",
                  (json_int_t)r->heads, "messages", (json_int_t)r->messages);
    if (j && there)
        json_object_update_new(j, json_pack("{s:f s:f s:s s:b s:b s:b}", "epsilon", release->task.privacy.epsilon,
                                            "delta", release->task.privacy.delta, "adjacency",
                                            fkt_adjacency_name(release->task.privacy.adjacency), "private",
                                            !fkt_release_not_private(release), "sum_proved", 0, "noise_proved", 0));
    if (j && a->cohorts) {
        json_object_set_new(j, "cohorts", json_integer(a->cohorts));
        json_object_set_new(j, "in_sum", json_integer(a->in_sum));
    }
    if (there) cli_mark_weak_release(j, release);
    return cli_print_json(j);
}

static fkt_status compare_operator(const struct asked *a, const struct fkt_verification *r)
{
    uint8_t key[FKT_SA_KEY];
    char hex[2 * FKT_SA_KEY + 1];
    fkt_status st = cli_public_key("operator", a->operator_key, key);
    if (st != FKT_OK) return st;
    fkt_hex(hex, key, sizeof key);
    if (!strcmp(hex, r->operator_key)) return FKT_OK;
    return fkt_fail_hint(FKT_E_MISMATCH, "ask the operator for the key over another channel, for instance by telephone",
                         "the task was signed by %.16s..., not by the operator's key", r->operator_key);
}

static int is_sum(const char *folder)
{
    char *log = NULL, *cohorts = NULL;
    const int yes = fkt_path_join(&log, folder, "transparency.jsonl") == FKT_OK && access(log, F_OK) != 0 &&
                    fkt_path_join(&cohorts, folder, "cohorts/0000") == FKT_OK && access(cohorts, F_OK) == 0;
    fkt_free(log);
    fkt_free(cohorts);
    return yes;
}

/* Recognises a server's state folder, given instead of the public one in it. */
static fkt_status check_folder(const char *folder)
{
    char *log = NULL, *within = NULL, hint[384];
    fkt_status st;
    FKT_TRY(fkt_path_join(&log, folder, "transparency.jsonl"));
    FKT_TRY(fkt_path_join(&within, folder, "public/transparency.jsonl"));
    if (access(log, F_OK) == 0 || errno != ENOENT || is_sum(folder)) goto out;
    if (access(within, F_OK) == 0)
        snprintf(hint, sizeof hint, "give the public folder in it: --folder %.300s/public", folder);
    else snprintf(hint, sizeof hint, "give the folder that 'fedkt join' wrote (--out), or the server's 'public'");
    st = fkt_fail_hint(FKT_E_IO, hint, "there is no transparency.jsonl in '%s'", folder);
out:
    fkt_free(log);
    fkt_free(within);
    return st;
}

static fkt_status run(struct asked *a)
{
    struct fkt_verification report;
    struct fkt_release release = {0};
    struct fkt_task task = {0};
    fkt_status st;
    FKT_TRY(check_folder(a->folder));
    if (a->task) FKT_TRY(fkt_task_load_into(&task, a->task));
    a->task_signed = task.signature.there;
    if (is_sum(a->folder))
        FKT_TRY(fkt_verify_sum(&report, &a->cohorts, &a->in_sum, a->folder, a->task ? &task : NULL, a->receipt));
    else FKT_TRY(fkt_verify_folder(&report, a->folder, a->task ? &task : NULL, a->receipt));
    if (a->operator_key) FKT_TRY(compare_operator(a, &report));
    if (report.release_sha256[0]) FKT_TRY(open_release(&release, a->folder));
    if (a->run.json) FKT_TRY(print_json(a, &report, &release));
    else print(a, &report, &release);
out:
    fkt_release_clear(&release);
    fkt_task_clear(&task);
    return st;
}

int cli_verify(const struct cli_command *self, int argc, char **argv)
{
    struct asked a = {0};
    const struct cli_option table[] = {
        CLI_OPT_TEXT(
            "folder", &a.folder, "DIR", 1,
            "holds transparency.jsonl, release.safetensors and certificate.json; of a sum of cohorts the public "
            "folder, with those of all cohorts in it"),
        CLI_OPT_TEXT("task", &a.task, "FILE", 0, "the task that you received: the log must belong to it"),
        CLI_OPT_TEXT("receipt", &a.receipt, "FILE", 0, "the receipt that your site kept"),
        CLI_OPT_TEXT("operator", &a.operator_key, "KEY", 0,
                     "the operator's public key, 64 digits or a file: it must have signed the task"),
        CLI_TALK_ROWS(a.run),
    };
    int code = cli_begin(self, table, CLI_COUNT(table), argc, argv);
    return code >= 0 ? code : cli_misuse(self, run(&a));
}
