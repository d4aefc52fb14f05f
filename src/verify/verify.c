/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - an outsider's check of a finished task: log, release and certificate are compared with each other.
 *
 * Source: docs/http.md 5.2. Everything comes from the server, which is not trusted; the check rests on what it
 * cannot forge: the operator's signature under the task, the sites' signatures under the survivors, and, with a
 * receipt, the heads that one site received during the round. In this order:
 *
 *   transparency.jsonl   line by line: bytes, chain, keys; the order of events; the task and its signature; rounds
 *   release.safetensors  parsed as hostile input; of this task, with the hash in the log
 *   certificate.json     every claim derived again from the release; then compared byte for byte with the release's own
 *   other files          hash and length, if the log names it and it exists
 *
 * The certificate's reals are compared as text with those inside the release, and those with what this machine computes
 * to nine digits (certificate.c): the last digits of a logarithm are not the same in every C library, and a check that
 * fails for that reason on an honest log would be ignored.
 *
 * What it does not show: that the vectors were honest, that the release is their sum or has noise in it (vectors are
 * masked, and only hashes of them are public), or that the log is complete if there is no receipt. The numbers are
 * only checked against the largest sum of so many vectors within the task's bound.
 *
 * Cost: one pass over the log with one line in memory, then the release; 0.1 ms for each signature. */
#include "verify/verify.h"

#include "fedkt/advanced/federation.h"
#include "fedkt/verify.h"

#include "pipeline/publish.h"
#include "pipeline/release.h"
#include "task/task.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/text.h"
#include "crypto/hash.h"
#include "secagg/params.h"
#include "tensor/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEMA "fedkt.transparency/1"
#define CERTIFICATE_MAX ((size_t)16 << 20) /* of a sum of thousands of cohorts */
#define ENTRIES_MAX ((uint64_t)1 << 32)

void fkt_log_reading_init(struct fkt_log_reading *log, const struct fkt_task *want, struct fkt_log_receipt *receipt)
{
    memset(log, 0, sizeof *log);
    log->want = want;
    log->receipt = receipt;
    memset(log->head, '0', sizeof log->head - 1);
}

void fkt_log_reading_clear(struct fkt_log_reading *log)
{
    fkt_log_round_clear(&log->round);
    fkt_free(log->names);
    fkt_task_clear(&log->task);
    memset(log, 0, sizeof *log);
}

/* ---- the task ---- */

/* An unsigned or wrongly signed task is a fault of a file here, not of a peer. */
static fkt_status check_signature(const struct fkt_task *t, const uint8_t *operator_key)
{
    struct fkt_failure f;
    fkt_status st = fkt_task_verify(t, operator_key);
    if (st != FKT_E_STATE && st != FKT_E_PEER_AUTH) return st;
    fkt_failure_save(&f, st);
    return fkt_fail(FKT_E_MISMATCH, "%s", f.text);
}

static fkt_status check_task(const struct fkt_log_reading *log)
{
    const struct fkt_task *t = &log->task, *want = log->want;
    if (!t->federation.sites || !t->service.address[0])
        return fkt_fail(FKT_E_MISMATCH, "its task has no server, so it cannot have a log");
    if (want && strcmp(want->sha256, t->sha256) != 0)
        return fkt_hint_code(
            fkt_fail(FKT_E_MISMATCH,
                     "it is the log of task %.12s ('%.60s'), and the task that was given is %.12s "
                     "('%.60s')",
                     t->sha256, t->name, want->sha256, want->name),
            FKT_HINT_OTHER_TASK,
            "first check that the task file and the folder are the right ones; if both are of the same "
            "study, do not use the release");
    return check_signature(t, want && want->signature.there ? want->signature.key : NULL);
}

static fkt_status take_open(struct fkt_log_reading *log, const struct fkt_log_line *l)
{
    struct fkt_share_plan shares;
    char *json = NULL;
    fkt_status st;
    if (strcmp(fkt_log_text(l, "schema"), SCHEMA) != 0) return fkt_fail(FKT_E_FORMAT, "schema is not '" SCHEMA "'");
    FKT_TRY(fkt_json_text(&json, json_incref(json_object_get(l->root, "task")), 0));
    FKT_TRY(fkt_task_parse_into(&log->task, json, strlen(json)));
    FKT_TRY(check_task(log));
    FKT_TRY(fkt_federation_open(&log->task, &log->params, &shares));
    FKT_TRY(fkt_log_round_new(&log->round, &log->params));
    FKT_TRY(fkt_alloc(&log->names, log->task.service.rounds));
    if (log->receipt && strcmp(log->receipt->task_sha256, log->task.sha256) != 0)
        st = fkt_hint_code(fkt_fail(FKT_E_MISMATCH, "it is the log of task %.12s, and the receipt is of %.12s",
                                    log->task.sha256, log->receipt->task_sha256),
                           FKT_HINT_OTHER_RECEIPT,
                           "first check that the receipt is the right one: it is in the site's output folder");
    if (st == FKT_OK && log->receipt && log->receipt->site >= log->params.sites)
        st = fkt_fail(FKT_E_MISMATCH, "the receipt is of site %u, and the task has %u", log->receipt->site,
                      log->params.sites);
out:
    fkt_free(json);
    return st;
}

/* ---- the order of events ---- */

static fkt_status take_begin(struct fkt_log_reading *log, const struct fkt_log_line *l)
{
    if (log->in_round) return fkt_fail(FKT_E_MISMATCH, "a round begins before the last one has ended");
    if (log->rounds >= log->task.service.rounds)
        return fkt_fail(FKT_E_MISMATCH, "the task allows %u rounds, and this is one more", log->task.service.rounds);
    if (fkt_log_number(l, "round") != log->rounds + 1)
        return fkt_fail(FKT_E_MISMATCH, "round %u must come next", log->rounds + 1);
    if (!fkt_unhex(log->round.name, fkt_log_text(l, "name"), FKT_MAILBOX_ROUND))
        return fkt_fail(FKT_E_FORMAT, "the round's name is malformed");
    for (uint32_t i = 0; i < log->rounds; i++)
        if (!memcmp(log->names[i], log->round.name, FKT_MAILBOX_ROUND))
            return fkt_fail(FKT_E_MISMATCH, "round %u had the same name", i + 1);
    memcpy(log->names[log->rounds], log->round.name, FKT_MAILBOX_ROUND);
    fkt_log_round_begin(&log->round, &log->params);
    log->rounds++;
    log->in_round = 1;
    return FKT_OK;
}

static fkt_status take_release(struct fkt_log_reading *log, const struct fkt_log_line *l)
{
    fkt_status st = fkt_log_round_check(&log->round, &log->params, &log->signatures);
    if (st != FKT_OK) return st;
    if (fkt_log_number(l, "survivors") != log->round.count)
        return fkt_fail(FKT_E_MISMATCH, "the list of survivors has %u", log->round.count);
    memcpy(log->release_sha256, fkt_log_text(l, "sha256"), sizeof log->release_sha256);
    memcpy(log->certificate_sha256, fkt_log_text(l, "certificate_sha256"), sizeof log->certificate_sha256);
    log->released = 1;
    log->in_round = 0;
    return FKT_OK;
}

static fkt_status take_file(struct fkt_log_reading *log, const struct fkt_log_line *l)
{
    static const char *const plain = "abcdefghijklmnopqrstuvwxyz0123456789._-";
    const size_t max = sizeof log->file / sizeof *log->file;
    const char *name = fkt_log_text(l, "name");
    struct fkt_log_file *f = &log->file[log->files < max ? log->files : 0];
    if (log->bare) return fkt_fail(FKT_E_MISMATCH, "the log states that there are no images");
    if (log->files == max || strlen(name) >= sizeof f->name || !name[0] || name[0] == '.' ||
        strspn(name, plain) != strlen(name))
        return fkt_fail(FKT_E_FORMAT, "a log cannot list such a file, or so many");
    snprintf(f->name, sizeof f->name, "%s", name);
    memcpy(f->sha256, fkt_log_text(l, "sha256"), sizeof f->sha256);
    f->bytes = fkt_log_number(l, "bytes");
    log->files++;
    return FKT_OK;
}

/* Events of a round name it and, where they name a site, one of the roster. */
static fkt_status check_place(const struct fkt_log_reading *log, const struct fkt_log_line *l)
{
    const json_t *site = json_object_get(l->root, "site");
    if (json_is_integer(site) && fkt_log_number(l, "site") >= log->params.sites && l->event != FKT_LOG_REFUSED)
        return fkt_fail(FKT_E_MISMATCH, "the roster has no site %llu", (unsigned long long)fkt_log_number(l, "site"));
    if (l->event == FKT_LOG_BEGIN || !json_object_get(l->root, "round")) return FKT_OK;
    if (!log->in_round || fkt_log_number(l, "round") != log->rounds)
        return fkt_fail(FKT_E_MISMATCH, "round %llu is not running", (unsigned long long)fkt_log_number(l, "round"));
    return FKT_OK;
}

static fkt_status take_line(struct fkt_log_reading *log, const struct fkt_log_line *l)
{
    const int over = log->released || log->given_up;
    fkt_status st;
    if (log->ended) return fkt_fail(FKT_E_MISMATCH, "it is after the end of the log");
    if ((l->event == FKT_LOG_OPEN) != (log->entries == 0))
        return fkt_fail(FKT_E_MISMATCH, "a log begins with 'open', which occurs once");
    if (over && (l->event == FKT_LOG_BEGIN || l->event == FKT_LOG_RELEASE || l->event == FKT_LOG_GIVEN_UP))
        return fkt_fail(FKT_E_MISMATCH, "it comes after the end of the task: a task has one release");
    if (l->event == FKT_LOG_OPEN) return take_open(log, l);
    FKT_TRY(check_place(log, l));
    switch (l->event) {
    case FKT_LOG_BEGIN: return take_begin(log, l);
    case FKT_LOG_RELEASE: return take_release(log, l);
    case FKT_LOG_FAILED: log->in_round = 0; return FKT_OK;
    case FKT_LOG_FILE: return take_file(log, l);
    case FKT_LOG_NO_DATASET:
        if (!log->released || log->files || log->bare)
            return fkt_fail(FKT_E_MISMATCH, "it occurs once, after a release, and not together with a file");
        log->bare = 1;
        return FKT_OK;
    case FKT_LOG_GIVEN_UP:
        if (log->in_round) return fkt_fail(FKT_E_MISMATCH, "round %u is still running", log->rounds);
        log->given_up = 1;
        return FKT_OK;
    case FKT_LOG_END:
        if (!over) return fkt_fail(FKT_E_MISMATCH, "the log ends with neither a release nor 'given-up'");
        log->ended = 1;
        return FKT_OK;
    default: return fkt_log_round_line(&log->round, &log->params, l);
    }
out:
    return st;
}

fkt_status fkt_log_reading_line(struct fkt_log_reading *log, const char *bytes, size_t len)
{
    struct fkt_log_line l;
    char round[2 * FKT_MAILBOX_ROUND + 1] = "";
    fkt_status st = fkt_log_line_read(&l, bytes, len, log->entries + 1, log->head);
    if (st != FKT_OK) return st;
    if (log->in_round) fkt_hex(round, log->round.name, FKT_MAILBOX_ROUND);
    FKT_TRY(fkt_fail_in(take_line(log, &l), "transparency.jsonl line %llu", (unsigned long long)log->entries + 1));
    log->entries++;
    memcpy(log->head, l.sha256, sizeof log->head);
    if (log->receipt) FKT_TRY(fkt_log_receipt_line(log->receipt, &l, log->entries, round));
out:
    fkt_log_line_clear(&l);
    return st;
}

fkt_status fkt_log_reading_end(const struct fkt_log_reading *log)
{
    if (!log->ended)
        return fkt_fail(FKT_E_MISMATCH, "transparency.jsonl has no line 'end' after line %llu: it was truncated",
                        (unsigned long long)log->entries);
    return log->receipt ? fkt_log_receipt_end(log->receipt, log->entries) : FKT_OK;
}

/* ---- the files ---- */

/* Only a regular file: a pipe would block. */
static fkt_status open_log(FILE **out, const char *path)
{
    struct stat s;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    *out = fd >= 0 ? fdopen(fd, "rb") : NULL;
    if (*out && fstat(fd, &s) == 0)
        return S_ISREG(s.st_mode) ? FKT_OK : fkt_fail(FKT_E_FORMAT, "transparency.jsonl is not a regular file");
    if (!*out && fd >= 0) close(fd);
    return fkt_io_fail("read", path);
}

static fkt_status read_log(struct fkt_log_reading *log, const char *path)
{
    FILE *f = NULL;
    char *line = NULL;
    size_t cap = 0;
    fkt_status st;
    FKT_TRY(open_log(&f, path));
    FKT_TRY(fkt_alloc(&line, cap = FKT_LOG_LINE_MAX + 2));
    for (;;) {
        size_t n = 0;
        int c;
        while ((c = fgetc(f)) != EOF && c != '\n') {
            if (n + 2 > cap) FKT_TRY(fkt_realloc(&line, cap *= 2));
            line[n++] = (char)c;
            if (n > (log->entries ? FKT_LOG_LINE_MAX : FKT_LOG_OPEN_MAX)) break;
        }
        if (c == EOF && ferror(f)) {
            st = fkt_io_fail("read", path);
            goto out;
        }
        if (c == EOF && !n) break;
        if (c == EOF || log->entries >= ENTRIES_MAX) {
            st = fkt_fail(FKT_E_FORMAT, "transparency.jsonl line %llu: it does not end with a newline",
                          (unsigned long long)log->entries + 1);
            goto out;
        }
        FKT_TRY(fkt_log_reading_line(log, line, n)); /* refuses what is too long */
    }
    st = fkt_log_reading_end(log);
out:
    fkt_free(line);
    if (f) fclose(f);
    return st;
}

/* The certificate inside the release, as fedkt writes it to a file. Its claims were checked on loading. */
static fkt_status carried(char **out, const char *release)
{
    struct fkt_safetensors *file = NULL;
    const char *text;
    json_error_t e;
    json_t *root;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_safetensors_open(&file, release));
    text = fkt_safetensors_meta(file, "certificate");
    root = text ? json_loads(text, JSON_REJECT_DUPLICATES, &e) : NULL;
    st = root ? fkt_json_text(out, root, 2) : fkt_fail(FKT_E_FORMAT, "release.safetensors: it carries no certificate");
out:
    fkt_safetensors_free(file);
    return st;
}

fkt_status fkt_log_certificate(const char *release, const char *certificate, const char *sha256)
{
    uint8_t *bytes = NULL;
    char *want = NULL, sha[FKT_SHA256_HEX];
    size_t len;
    fkt_status st;
    FKT_TRY(fkt_file_read(&bytes, &len, certificate, CERTIFICATE_MAX));
    FKT_TRY(carried(&want, release));
    fkt_hash_bytes_hex(sha, bytes, len);
    if (sha256 && strcmp(sha, sha256) != 0)
        st = fkt_fail(FKT_E_MISMATCH, "certificate.json does not have the hash in the log");
    else if (len != strlen(want) || memcmp(bytes, want, len) != 0)
        st = fkt_fail(FKT_E_MISMATCH, "certificate.json does not follow from release.safetensors");
out:
    fkt_free(want);
    fkt_free(bytes);
    return st;
}

/* An honest server checks the total before it adds anything (docs/protocol.md 3.7). Noise that it adds has no largest
 * value; beyond 40 sigma it is seen with a chance of 10^-347. */
static fkt_status check_range(const struct fkt_log_reading *log, const struct fkt_release *r)
{
    const uint64_t most = log->params.bound * log->round.count; /* below 2^61: fkt_sa_params_check */
    const size_t n = fkt_task_numbers(&r->task);
    double sigma = r->shares.counted ? 0 : r->sigma.count, noise;
    for (uint32_t p = 0; p < r->task.layout.parts && !r->shares.counted; p++)
        sigma = fmax(sigma, fmax(r->sigma.part[p].sum, r->sigma.part[p].moment));
    noise = 40 * sigma;
    for (size_t i = 0; i < n; i++) {
        const uint64_t size = r->moments[i] < 0 ? 0 - (uint64_t)r->moments[i] : (uint64_t)r->moments[i];
        if (size > most && !((double)(size - most) <= noise))
            return fkt_fail(FKT_E_MISMATCH, "a number of the release is larger than any sum of %u sites",
                            log->round.count);
    }
    return FKT_OK;
}

static fkt_status check_release(const struct fkt_log_reading *log, const char *path)
{
    struct fkt_release r = {0};
    fkt_status st;
    FKT_TRY(fkt_release_load_into(&r, path));
    if (strcmp(r.sha256, log->release_sha256) != 0)
        st = fkt_fail(FKT_E_MISMATCH, "release.safetensors does not have the hash in the log");
    else if (strcmp(r.task.sha256, log->task.sha256) != 0)
        st = fkt_fail(FKT_E_MISMATCH, "release.safetensors is of task %.12s, and the log of %.12s", r.task.sha256,
                      log->task.sha256);
    else if (r.facts.survivors != log->round.count)
        st = fkt_fail(FKT_E_MISMATCH, "release.safetensors states %u survivors, and the log %u", r.facts.survivors,
                      log->round.count);
    else if (r.facts.simulated || r.insecure_seed != log->task.service.seeded)
        st = fkt_fail(FKT_E_MISMATCH, "release.safetensors and the task differ in how the noise was made");
    else st = check_range(log, &r);
out:
    fkt_release_clear(&r);
    return st;
}

/* A file, or a folder (a dataset); links are refused. *there 0: it does not exist. */
static fkt_status weigh(const char *path, int *there, char sha256[FKT_SHA256_HEX], uint64_t *bytes)
{
    struct stat s;
    *there = lstat(path, &s) == 0;
    if (!*there) return errno == ENOENT ? FKT_OK : fkt_io_fail("read", path);
    if (S_ISDIR(s.st_mode)) return fkt_folder_hash(path, sha256, bytes);
    if (!S_ISREG(s.st_mode)) return fkt_fail(FKT_E_FORMAT, "'%s' is neither a file nor a folder", path);
    *bytes = (uint64_t)s.st_size;
    return fkt_hash_file_hex(sha256, path);
}

/* A missing file is not an error: a copy of the folder may leave the images out. */
static fkt_status check_others(const struct fkt_log_reading *log, const char *folder)
{
    char *path = NULL, sha[FKT_SHA256_HEX];
    uint64_t bytes = 0;
    int there;
    fkt_status st = FKT_OK;
    for (size_t i = 0; i < log->files; i++) {
        const struct fkt_log_file *f = &log->file[i];
        fkt_free(path);
        path = NULL;
        FKT_TRY(fkt_path_join(&path, folder, f->name));
        FKT_TRY(weigh(path, &there, sha, &bytes));
        if (there && (bytes != f->bytes || strcmp(sha, f->sha256) != 0)) {
            st = fkt_fail(FKT_E_MISMATCH, "%s does not have the hash in the log", f->name);
            goto out;
        }
    }
out:
    fkt_free(path);
    return st;
}

static fkt_status check_files(const struct fkt_log_reading *log, const char *folder)
{
    char *release = NULL, *certificate = NULL;
    struct stat s;
    fkt_status st;
    FKT_TRY(fkt_path_join(&release, folder, "release.safetensors"));
    FKT_TRY(fkt_path_join(&certificate, folder, "certificate.json"));
    if (log->given_up) {
        if (lstat(release, &s) == 0)
            st = fkt_fail(FKT_E_MISMATCH, "release.safetensors exists, and the log states that there is no release");
        goto out;
    }
    FKT_TRY(check_release(log, release));
    FKT_TRY(fkt_log_certificate(release, certificate, log->certificate_sha256));
    FKT_TRY(check_others(log, folder));
out:
    fkt_free(release);
    fkt_free(certificate);
    return st;
}

static void report(struct fkt_verification *out, const struct fkt_log_reading *log)
{
    out->entries = log->entries;
    memcpy(out->head, log->head, sizeof out->head);
    out->rounds = log->rounds;
    out->sites = log->params.sites;
    out->survivors = log->released ? log->round.count : 0;
    out->confirmed = log->signatures;
    memcpy(out->task_sha256, log->task.sha256, sizeof out->task_sha256);
    memcpy(out->release_sha256, log->release_sha256, sizeof out->release_sha256);
    fkt_hex(out->operator_key, log->task.signature.key, FKT_SA_KEY);
    out->counted = log->receipt && log->released && log->receipt->site < log->params.sites &&
                   fkt_bitmap_get(log->round.survivors, log->receipt->site);
}

fkt_status fkt_verify_folder(struct fkt_verification *out, const char *folder, const struct fkt_task *task,
                             const char *receipt)
{
    return fkt_verify_folder_task(out, folder, task, receipt, NULL);
}

fkt_status fkt_verify_folder_task(struct fkt_verification *out, const char *folder, const struct fkt_task *task,
                                  const char *receipt, struct fkt_task *found)
{
    struct fkt_log_receipt kept = {0};
    struct fkt_log_reading log;
    char *path = NULL;
    fkt_status st;
    memset(out, 0, sizeof *out);
    fkt_log_reading_init(&log, task, receipt ? &kept : NULL);
    FKT_TRY(fkt_path_join(&path, folder, "transparency.jsonl"));
    if (task && task->signature.there) /* the key beside an invalid signature means nothing */
        FKT_TRY(fkt_fail_in(check_signature(task, NULL), "the task that was given"));
    if (receipt) FKT_TRY(fkt_log_receipt_load(&kept, receipt));
    FKT_TRY(read_log(&log, path));
    FKT_TRY(check_files(&log, folder));
    if (found) FKT_TRY(fkt_task_copy(found, &log.task));
    report(out, &log);
    out->heads = kept.heads;
    out->messages = kept.messages;
    out->receipt_site = kept.site;
    if (receipt) fkt_hex(out->receipt_key, log.task.federation.roster + (size_t)kept.site * FKT_SA_KEY, FKT_SA_KEY);
    if (receipt && log.task.service.names)
        fkt_text_cut(out->receipt_name, sizeof out->receipt_name, log.task.service.names[kept.site]);
out:
    fkt_free(path);
    fkt_log_reading_clear(&log);
    fkt_log_receipt_clear(&kept);
    if (st == FKT_E_IO)
        return fkt_hint(st, "give the folder with transparency.jsonl, release.safetensors, certificate.json");
    if (st == FKT_E_NOMEM) return st;
    return fkt_hint(st, "do not use this release; ask the operator, and compare with what other sites hold");
}
