/* SPDX-License-Identifier: Apache-2.0 */
/* finish.c - the end of a task: two pieces of heavy work, and between them one row that is written once.
 *
 *   UNMASK --work--> release in memory --worked, settle--> row `release`, line `release`
 *          --work--> files --worked, settle--> lines `file`, `end` --> transparency.jsonl --> RELEASED
 *
 * kill -9 before the row: the state machine is replayed and unmasks again; central noise is drawn again, and the
 * earlier draw was never published. After the row: nothing is drawn any more, and the same files are made again from
 * the same bytes. After `end` all files are compared with the log and made again where they differ, and the log's own
 * file is written from the journal, because they may have changed since.
 *
 * Between has_work and worked the state machine and h->finish belong to the worker; nothing else reads them then. */
#include "server/server.h"

#include "base/alloc.h"
#include "base/text.h"
#include "pipeline/pipeline.h"
#include "secagg/params.h"

#include <string.h>

int fkt_server_has_work(void *self)
{
    struct fkt_server *h = self;
    if (h->broken.status != FKT_OK || h->job == FKT_JOB_NONE || !h->job_waits || !h->ticked) return 0;
    h->job_waits = 0;
    return 1;
}

fkt_status fkt_server_work(void *self)
{
    struct fkt_server *h = self;
    fkt_status st =
        h->job == FKT_JOB_RELEASE ? fkt_publish_release(&h->finish, h->server) : fkt_publish_files(&h->finish);
    fkt_failure_save(&h->worked, st); /* its sentence belongs to this thread */
    return st;
}

static fkt_status write_release(struct fkt_server *h)
{
    const struct fkt_publication *f = &h->finish;
    struct fkt_journal_release r = {
        .round = h->round, .sha256 = f->sha256, .bytes = f->bytes, .len = f->len, .certificate = f->certificate};
    char certificate[FKT_HASH_HEX];
    uint8_t *map = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&map, fkt_bitmap_bytes(h->params.sites)));
    for (uint32_t i = 0; i < h->params.sites; i++)
        if (h->slot[i].counted) fkt_bitmap_set(map, i);
    r.survivors = map;
    fkt_hash_bytes_hex(certificate, f->certificate, strlen(f->certificate));
    FKT_TRY(fkt_journal_release_put(h->journal, &r));
    FKT_TRY(fkt_journal_end(h->journal, h->round,
                            &(struct fkt_journal_round){
                                .reason = "", .messages = h->round_messages, .bytes = h->round_bytes, .spent = map}));
    FKT_TRY(
        fkt_server_note(h, "release",
                        json_pack("{s:I s:I s:s s:s}", "round", (json_int_t)h->round, "survivors",
                                  (json_int_t)f->survivors, "sha256", f->sha256, "certificate_sha256", certificate)));
    fkt_server_close_round(h);
    h->released = 1;
out:
    fkt_free(map);
    return st;
}

/* Unmasking failed, or the result is not a sum of records: caused by a site. */
static fkt_status lose_release(struct fkt_server *h)
{
    struct fkt_failure why = h->worked;
    fkt_status st;
    FKT_TRY(fkt_server_drain(h));
    FKT_TRY(fkt_server_fail_round(h, &why));
out:
    return st;
}

static fkt_status end_log(struct fkt_server *h)
{
    char why[sizeof h->reason];
    fkt_status st = FKT_OK;
    h->log_due = 1;
    if (h->log.ended) goto out; /* the files were made once before */
    FKT_TRY(fkt_refusals_flush(h));
    if (h->finish.bare) {
        fkt_text_cut(why, sizeof why, fkt_task_has_images(h->task) == FKT_OK ? h->worked.text : fkt_error_text());
        FKT_TRY(fkt_server_note(h, "no-dataset", json_pack("{s:s}", "reason", why)));
    }
    for (size_t i = 0; i < FKT_PUBLISH_FILES && !h->finish.bare; i++)
        FKT_TRY(fkt_server_note(h, "file",
                                json_pack("{s:s s:I s:s}", "name", fkt_publication_names[i], "bytes",
                                          (json_int_t)h->finish.file[i].bytes, "sha256", h->finish.file[i].sha256)));
    FKT_TRY(fkt_server_note(h, "end", json_object()));
out:
    return st;
}

/* The release exists, but a decoder refuses its numbers: caused by a site, and the same every time. If the log has
 * announced images, or on any other failure, the fault is on this machine. */
static int no_images(const struct fkt_server *h, fkt_status status) { return status == FKT_E_NUMERIC && !h->log.ended; }

static fkt_status end_bare(struct fkt_server *h)
{
    fkt_publish_no_files(&h->finish);
    return end_log(h);
}

fkt_status fkt_server_worked(void *self, fkt_status status)
{
    struct fkt_server *h = self;
    const enum fkt_server_job job = h->job;
    fkt_status st;
    if (h->broken.status != FKT_OK) return fkt_failure_restore(&h->broken);
    if (job == FKT_JOB_NONE || h->job_waits) return fkt_fail(FKT_E_ARG, "no work was handed out");
    h->job = FKT_JOB_NONE;
    if (status != FKT_OK) {
        fkt_failure_restore(&h->worked);
        if (fkt_server_own_failure(status) || (job == FKT_JOB_FILES && !no_images(h, status)))
            return fkt_server_break(h, status);
        st = job == FKT_JOB_FILES ? end_bare(h) : lose_release(h);
    } else {
        st = job == FKT_JOB_RELEASE ? write_release(h) : end_log(h);
    }
    return st == FKT_OK ? st : fkt_server_break(h, st);
}

/* Work that may start once everything before it is on disk. */
static fkt_status follow_up(struct fkt_server *h)
{
    fkt_status st = FKT_OK;
    if (h->scrub && !h->server) {
        FKT_TRY(fkt_journal_scrub(h->journal));
        h->scrub = 0;
    }
    if (h->log_due && !h->sweep && !h->scrub) { /* key shares and vectors are deleted before the end is announced */
        FKT_TRY(fkt_log_writer_write(&h->log, h->path[FKT_SERVER_LOG]));
        h->log_due = 0;
        fkt_server_enter(h, h->gave_up ? FKT_STAGE_GIVEN_UP : FKT_STAGE_RELEASED);
    }
    if (h->released && h->stage == FKT_STAGE_FINISHING && h->job == FKT_JOB_NONE && !h->log_due) {
        h->job = FKT_JOB_FILES;
        h->job_waits = 1;
    }
out:
    return st;
}

fkt_status fkt_server_settle(void *self)
{
    struct fkt_server *h = self;
    fkt_status st;
    if (h->broken.status != FKT_OK) return fkt_failure_restore(&h->broken);
    FKT_TRY(fkt_journal_settle(h->journal, NULL));
    fkt_log_writer_settled(&h->log);
    FKT_TRY(follow_up(h));
out:
    return st == FKT_OK ? st : fkt_server_break(h, st);
}

/* ---- after a restart ---- */

static fkt_status take_release(void *self, const struct fkt_journal_release *r)
{
    struct fkt_server *h = self;
    struct fkt_publication *f = &h->finish;
    fkt_status st;
    if (r->round != h->round || h->past[h->round - 1].ended != FKT_OK)
        return fkt_fail(FKT_E_FORMAT, "the journal is damaged: its release belongs to no round");
    FKT_TRY(fkt_alloc(&f->bytes, r->len));
    memcpy(f->bytes, r->bytes, r->len);
    f->len = r->len;
    FKT_TRY(fkt_strdup(&f->certificate, r->certificate));
    snprintf(f->sha256, sizeof f->sha256, "%s", r->sha256);
    for (uint32_t i = 0; i < h->params.sites; i++) h->slot[i].counted = (uint8_t)fkt_bitmap_get(r->survivors, i);
    h->survivors = f->survivors = (uint32_t)fkt_bitmap_count(r->survivors, h->params.sites);
    h->lost = h->params.sites - h->survivors;
    h->released = 1;
out:
    return st;
}

/* The files that an ended log lists. */
static void take_files(struct fkt_server *h)
{
    struct fkt_publication *f = &h->finish;
    f->known = h->log.ended;
    f->bare = h->log.ended && !h->log.files;
    for (size_t i = 0; i < h->log.files; i++)
        for (size_t k = 0; k < FKT_PUBLISH_FILES; k++) {
            if (strcmp(h->log.file[i].name, fkt_publication_names[k]) != 0) continue;
            f->file[k].bytes = h->log.file[i].bytes;
            memcpy(f->file[k].sha256, h->log.file[i].sha256, sizeof f->file[k].sha256);
        }
}

fkt_status fkt_server_resume_end(struct fkt_server *h)
{
    char *reason = NULL;
    fkt_status st;
    FKT_TRY(fkt_journal_release_get(h->journal, take_release, h));
    FKT_TRY(fkt_journal_fact(h->journal, "given-up", &reason));
    if ((h->released && reason) || h->log.ended != (reason || (h->released && h->log.ended))) {
        st = fkt_fail(FKT_E_FORMAT, "the journal is damaged: it contradicts itself about the end of the task");
        goto out;
    }
    h->comparing = h->log.ended;
    if (reason) {
        fkt_text_cut(h->reason, sizeof h->reason, reason);
        h->gave_up = 1;
        h->log_due = 1; /* replaces what is there; announced once it is written */
        h->stage = FKT_STAGE_FINISHING;
    } else if (h->released) {
        take_files(h);
        h->stage = FKT_STAGE_FINISHING;
        h->job = FKT_JOB_FILES;
        h->job_waits = 1;
    }
out:
    fkt_free(reason);
    return st;
}
