/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - the server's side of one task: opening it, replaying its journal, and the functions of its mailbox.
 *
 *   state folder (0700)   journal.db: everything; the process that has it open holds the lock
 *   public folder         release.safetensors  certificate.json  dataset/  grid.png, at the end transparency.jsonl
 *
 * What could fail at the end is tried at the beginning: codec, calibration and federation are opened, and the folders
 * tried (folders.c). A task is refused when it is not signed or has no service.
 *
 * Failures of this machine are sticky (fkt_server_break): the state in memory may then differ from the journal, so
 * nothing of it may leave, and nothing more is written. A new process starts from the journal. Failures that sites
 * cause end a round or lose a site, and are not failures of these calls. */
#include "server/server.h"

#include "fedkt/advanced/federation.h"

#include "task/federation.h"
#include "task/task.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/private.h"
#include "base/text.h"
#include "secagg/params.h"

#include <string.h>

#define JOURNAL "journal.db"

/* A status that means a verdict about a message is never returned for a failure of this machine (mailbox.h). */
static int is_verdict(fkt_status st) { return st == FKT_E_STATE || st == FKT_E_PEER_FORMAT || st == FKT_E_PEER_AUTH; }

fkt_status fkt_server_break(struct fkt_server *h, fkt_status st)
{
    if (h->broken.status == FKT_OK) fkt_failure_save(&h->broken, is_verdict(st) ? FKT_E_IO : st);
    return fkt_failure_restore(&h->broken);
}

int fkt_server_own_failure(fkt_status st)
{
    switch (st) {
    case FKT_E_FORMAT:
    case FKT_E_NUMERIC:
    case FKT_E_MISMATCH:
    case FKT_E_PEER_FORMAT:
    case FKT_E_PEER_AUTH:
    case FKT_E_TOO_FEW: return 0;
    default: return 1;
    }
}

fkt_status fkt_server_note(struct fkt_server *h, const char *event, json_t *fields)
{
    return fkt_log_writer_add(&h->log, h->now_ms, event, fields);
}

void fkt_server_enter(struct fkt_server *h, enum fkt_stage stage)
{
    h->stage = stage;
    h->stage_since = h->ticked ? h->now_ms : 0;
}

/* ---- the task ---- */

static fkt_status check_task(const struct fkt_task *t)
{
    fkt_status st;
    if (!t->federation.sites || !t->service.address[0])
        return fkt_hint_code(
            fkt_fail(FKT_E_ARG, "task '%s' has no %s", t->name, t->federation.sites ? "server" : "federation"),
            FKT_HINT_TASK_FEDERATION, "make a task with a roster and a server's address");
    if (t->service.rounds < 1 || t->service.rounds > FKT_LEDGER_ROUNDS)
        return fkt_fail(FKT_E_ARG, "a server tries 1 to %d rounds, not %u", FKT_LEDGER_ROUNDS, t->service.rounds);
    FKT_TRY(fkt_federation_fits(t));
    FKT_TRY(fkt_task_verify(t, NULL));
out:
    return fkt_hint_code(st, FKT_HINT_TASK_SIGN, "sign the task");
}

static fkt_status make_room(struct fkt_server *h)
{
    const size_t n = h->params.sites;
    fkt_status st;
    h->scratch_len = fkt_sa_to_site_max(&h->params);
    FKT_TRY(fkt_alloc(&h->scratch, h->scratch_len));
    FKT_TRY(fkt_alloc(&h->slot, n));
    FKT_TRY(fkt_alloc(&h->slots_shown, n));
    FKT_TRY(fkt_alloc(&h->past, h->task->service.rounds));
    FKT_TRY(fkt_alloc(&h->refusals.times, (n + 1) * FKT_REFUSALS));
    FKT_TRY(fkt_alloc(&h->refusals.said, (n + 1) * FKT_REFUSALS));
out:
    return st;
}

/* ---- replay ---- */

static fkt_status take_round(void *self, uint32_t number, const struct fkt_journal_round *r)
{
    struct fkt_server *h = self;
    if (number > h->task->service.rounds || (h->round && h->past[h->round - 1].ended == FKT_OK))
        return fkt_fail(FKT_E_FORMAT, "the journal is damaged: round %u has an impossible start", number);
    h->round = number;
    memcpy(h->past[number - 1].name, r->name, FKT_SA_ROUND);
    h->past[number - 1].ended = r->ended;
    h->messages += r->messages;
    h->bytes += r->bytes;
    if (r->ended == FKT_OK) return FKT_OK;
    fkt_text_cut(h->reason, sizeof h->reason, r->reason);
    for (uint32_t i = 0; r->spent && i < h->params.sites; i++)
        if (fkt_bitmap_get(r->spent, i)) h->slot[i].spent = 1;
    return FKT_OK;
}

static fkt_status remember(struct fkt_server *h)
{
    fkt_status st;
    FKT_TRY(fkt_log_writer_open(&h->log, h->journal));
    FKT_TRY(fkt_journal_counts(h->journal, h->refused));
    FKT_TRY(fkt_journal_rounds(h->journal, take_round, h));
    FKT_TRY(fkt_server_resume_end(h));
    if (!h->released && h->stage == FKT_STAGE_GATHERING && h->round && h->past[h->round - 1].ended == FKT_OK)
        FKT_TRY(fkt_server_resume(h));
    FKT_TRY(fkt_server_resume_wait(h));
    h->sweep = h->round > 0;
out:
    return st;
}

static fkt_status open_all(struct fkt_server *h, const struct fkt_server_spec *spec)
{
    struct fkt_share_plan shares;
    char *path = NULL;
    fkt_status st;
    FKT_TRY(check_task(spec->task));
    FKT_TRY(fkt_pipeline_open(&h->pipeline, spec->task,
                              &(struct fkt_part_files){spec->calibration, spec->guide_calibration}, &spec->settings));
    h->task = fkt_pipeline_task(h->pipeline);
    FKT_TRY(fkt_federation_open(h->task, &h->params, &shares));
    FKT_TRY(make_room(h));
    FKT_TRY(fkt_private_folder(spec->folder));
    FKT_TRY(fkt_path_join(&path, spec->folder, JOURNAL));
    FKT_TRY(fkt_journal_open(&h->journal, path, h->task->sha256, h->params.sites));
    FKT_TRY(fkt_server_open_out(h, spec));
    FKT_TRY(remember(h));
    if (!h->log.ended) FKT_TRY(fkt_server_try_out(h));
    h->live = 1;
out:
    fkt_free(path);
    return st;
}

fkt_status fkt_server_open(struct fkt_server **out, const struct fkt_server_spec *spec)
{
    struct fkt_server *h = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&h, 1));
    FKT_TRY(open_all(h, spec));
    *out = h;
    h = NULL;
out:
    fkt_server_close(h);
    return st;
}

void fkt_server_close(struct fkt_server *h)
{
    if (!h) return;
    fkt_journal_close(h->journal);
    fkt_sa_server_free(h->server);
    for (uint32_t i = 0; h->slot && i < h->params.sites; i++) fkt_free(h->slot[i].mail);
    fkt_publication_clear(&h->finish);
    fkt_free(h->slot);
    fkt_free(h->slots_shown);
    fkt_free(h->past);
    fkt_free(h->refusals.times);
    fkt_free(h->refusals.said);
    fkt_free(h->scratch);
    for (size_t i = 0; i < FKT_SERVER_PATHS; i++) fkt_free(h->path[i]);
    fkt_free(h->out);
    fkt_pipeline_free(h->pipeline);
    fkt_free(h);
}

void fkt_server_mailbox(struct fkt_server *h, struct fkt_mailbox *out)
{
    *out = (struct fkt_mailbox){.self = h,
                                .sites = h->params.sites,
                                .in_max = fkt_sa_to_server_max(&h->params),
                                .deliver = fkt_server_deliver,
                                .collect = fkt_server_collect,
                                .refuse = fkt_server_refuse,
                                .tick = fkt_server_tick,
                                .settle = fkt_server_settle,
                                .has_work = fkt_server_has_work,
                                .work = fkt_server_work,
                                .worked = fkt_server_worked,
                                .view = fkt_server_view,
                                .head = fkt_server_head,
                                .file = fkt_server_file};
}
