/* SPDX-License-Identifier: Apache-2.0 */
/* rounds.c - the sequence of rounds: how one begins, how it fails, and when the task is given up.
 *
 * A failed round has released nothing; another one is begun until the task's rounds are used up. But a site that has
 * revealed in it has spent its budget for this task and answers no further round (docs/protocol.md 7): once more than D
 * sites have revealed, no round can succeed, and the task is given up. */
#include "server/server.h"

#include "base/alloc.h"
#include "base/text.h"
#include "crypto/entropy.h"
#include "secagg/params.h"
#include "task/task.h"

#include <string.h>

/* Streams of an insecure seed: round 1 uses the same one as a simulated round (simulate/federate.c), later rounds those
 * below it. */
#define STREAM_ROUND(number) (UINT64_MAX - ((number)-1))

void fkt_server_drop_messages(struct fkt_server_set_status *slot)
{
    fkt_free(slot->mail);
    slot->mail = NULL;
    slot->mail_len = 0;
}

fkt_status fkt_server_set_status_all(struct fkt_server *h)
{
    fkt_status st;
    for (uint32_t i = 0; i < h->params.sites; i++) {
        struct fkt_server_set_status *slot = &h->slot[i];
        fkt_server_drop_messages(slot);
        *slot = (struct fkt_server_set_status){.spent = slot->spent, .seen = slot->seen};
    }
    h->lost = h->survivors = 0;
    h->round_messages = h->round_bytes = 0;
    FKT_TRY(fkt_sa_server_new(&h->server, &h->params, h->past[h->round - 1].name, 0));
    fkt_sa_server_census(h->server, &h->census);
    h->phase = fkt_sa_server_state(h->server);
    fkt_server_wait_anew(h, 1);
    fkt_server_enter(h, FKT_STAGE_RUNNING);
    FKT_TRY(fkt_server_drain(h));
out:
    return st;
}

fkt_status fkt_server_begin(struct fkt_server *h)
{
    const struct fkt_service *service = &h->task->service;
    struct fkt_entropy_seeded seeded;
    struct fkt_entropy entropy;
    uint8_t *name = h->past[h->round].name;
    char hex[2 * FKT_SA_ROUND + 1];
    fkt_status st;
    fkt_entropy_os(&entropy);
    if (service->seeded) {
        fkt_entropy_seeded_init(&seeded, service->insecure_seed, STREAM_ROUND((uint64_t)h->round + 1));
        fkt_entropy_seeded(&entropy, &seeded);
    }
    FKT_TRY(entropy.fill(entropy.self, name, FKT_SA_ROUND));
    h->round++;
    h->past[h->round - 1].ended = FKT_OK;
    fkt_hex(hex, name, FKT_SA_ROUND);
    FKT_TRY(fkt_journal_begin(h->journal, h->round, name));
    FKT_TRY(fkt_server_note(h, "begin", json_pack("{s:I s:s}", "round", (json_int_t)h->round, "name", hex)));
    FKT_TRY(fkt_server_set_status_all(h));
out:
    return st;
}

void fkt_server_close_round(struct fkt_server *h)
{
    fkt_sa_server_free(h->server);
    h->server = NULL;
    h->messages += h->round_messages;
    h->bytes += h->round_bytes;
    h->round_messages = h->round_bytes = 0;
    h->phase = FKT_SA_STATE_BEGIN;
    fkt_server_wait_anew(h, 0);
    h->sweep = 1;
}

/* A site that has revealed has spent its budget, also in earlier rounds. */
static fkt_status write_end(struct fkt_server *h, const struct fkt_failure *why)
{
    uint8_t *spent = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&spent, fkt_bitmap_bytes(h->params.sites)));
    for (uint32_t i = 0; i < h->params.sites; i++) {
        if (!h->slot[i].revealed) continue;
        fkt_bitmap_set(spent, i);
        h->slot[i].spent = 1;
    }
    FKT_TRY(fkt_journal_end(h->journal, h->round,
                            &(struct fkt_journal_round){.ended = why->status,
                                                        .reason = why->text,
                                                        .messages = h->round_messages,
                                                        .bytes = h->round_bytes,
                                                        .spent = spent}));
out:
    fkt_free(spent);
    return st;
}

static uint32_t spent_sites(const struct fkt_server *h)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->params.sites; i++) n += h->slot[i].spent;
    return n;
}

fkt_status fkt_server_fail_round(struct fkt_server *h, const struct fkt_failure *why)
{
    const uint32_t most = h->task->federation.dropped;
    char reason[1024];
    fkt_status st;
    h->past[h->round - 1].ended = why->status;
    fkt_text_cut(h->reason, sizeof h->reason, why->text);
    FKT_TRY(fkt_server_note(h, "failed", json_pack("{s:I s:s}", "round", (json_int_t)h->round, "reason", h->reason)));
    FKT_TRY(write_end(h, why));
    fkt_server_close_round(h);
    fkt_server_enter(h, FKT_STAGE_GATHERING);
    h->enough_since = 0;
    for (uint32_t i = 0; i < h->params.sites; i++) h->slot[i].seen = 0; /* a site that returns is present */
    if (spent_sites(h) > most) {
        snprintf(reason, sizeof reason, "%u sites have spent their budget on a round that failed: %s", spent_sites(h),
                 why->text);
        FKT_TRY(fkt_server_give_up(h, reason));
    } else if (h->round >= h->task->service.rounds) {
        snprintf(reason, sizeof reason,
                 h->round == 1 ? "%u round has failed: %s" : "%u rounds have failed, the last one with: %s", h->round,
                 why->text);
        FKT_TRY(fkt_server_give_up(h, reason));
    }
out:
    return st;
}

fkt_status fkt_server_give_up(struct fkt_server *h, const char *reason)
{
    fkt_status st;
    fkt_text_cut(h->reason, sizeof h->reason, reason);
    FKT_TRY(fkt_refusals_flush(h));
    FKT_TRY(fkt_journal_fact_put(h->journal, "given-up", h->reason));
    FKT_TRY(fkt_server_note(h, "given-up", json_pack("{s:s}", "reason", h->reason)));
    FKT_TRY(fkt_server_note(h, "end", json_object()));
    h->gave_up = h->log_due = 1; /* announced once the log is written: finish.c */
out:
    return st;
}
