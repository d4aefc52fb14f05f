/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - a site's side of one task over all its rounds: open, process what the server sends, close.
 *
 *              Begin of a new round              Reveal accepted, lost, failed, another round
 *   WAITING ----------------------> RUNNING -------------------------------------------> WAITING
 *      |                                |                                                   |
 *      +---- stage released or given up, local failure, 64 rounds begun --------------------+---> ENDED
 *
 *   WAITING   file: moments, as long as a round may begin; receipts           memory: the same
 *   RUNNING   file: also seed and messages of the round (round.c)             memory: state machine, its answer
 *   ENDED     file: receipts                                                  memory: receipts
 *
 * docs/protocol.md 7 requires that a site takes part in one round of a task at a time and never reveals twice. The
 * state file's lock and its single row for a round ensure the first; the ledger, and the state file beside it, the
 * second. A site that has revealed waits for the release and answers no further Begin.
 *
 * Cost: the state machine's, three synced transactions for each message, and the replay of at most one round at
 * open. */
#include "client/client.h"

#include "fedkt/advanced/federation.h"

#include "pipeline/contribution.h"
#include "pipeline/records.h"
#include "task/task.h"

#include "base/alloc.h"

#include <string.h>

/* ---- open and close ---- */

static fkt_status check_spec(const struct fkt_client_spec *spec)
{
    if (!spec->task->service.address[0])
        return fkt_hint_code(fkt_fail(FKT_E_ARG, "task '%s' names no server", spec->task->name), FKT_HINT_TASK_SERVER,
                             "ask the operator for a task that names the server's address");
    if (!spec->dataset || !spec->records)
        return fkt_fail(FKT_E_ARG, "the ledger needs the name of the dataset and the digests of its records");
    return FKT_OK;
}

static fkt_status take_spec(struct fkt_client *a, const struct fkt_client_spec *spec)
{
    const struct fkt_record_digest *digests;
    fkt_status st;
    FKT_TRY(check_spec(spec));
    FKT_TRY(fkt_task_copy(&a->task, spec->task));
    FKT_TRY(fkt_federation_open(&a->task, &a->params, &a->shares));
    FKT_TRY(fkt_task_site(&a->task, spec->secret + FKT_SA_KEY, &a->site));
    memcpy(a->secret, spec->secret, sizeof a->secret);
    FKT_TRY(fkt_records_list(spec->records, &digests, &a->n_digests));
    fkt_records_name(a->fingerprint, digests, a->n_digests);
    FKT_TRY(fkt_alloc(&a->digests, a->n_digests + 1));
    if (a->n_digests) memcpy(a->digests, digests, a->n_digests * sizeof *digests);
    FKT_TRY(fkt_strdup(&a->dataset, spec->dataset));
    FKT_TRY(fkt_strdup(&a->ledger, spec->ledger));
    a->budget_epsilon = spec->budget_epsilon;
    a->budget_delta = spec->budget_delta;
    a->most_epsilon = spec->most_epsilon;
    a->numbers = a->params.length;
    a->answer_cap = fkt_sa_to_server_max(&a->params);
    FKT_TRY(fkt_alloc(&a->answer, a->answer_cap));
out:
    return st;
}

/* Everything that can refuse does so before the first message is answered. */
static fkt_status check_home(struct fkt_client *a)
{
    fkt_status st = FKT_OK;
    if (!a->moments) {
        st = fkt_fail(FKT_E_ARG, "the state file holds no moments, and none are given");
        goto out;
    }
    FKT_TRY(fkt_contribution_check(&a->task, a->moments));
    if (!a->reserved) FKT_TRY(fkt_client_ask_ledger(a));
out:
    return st;
}

fkt_status fkt_client_open(struct fkt_client **out, const struct fkt_client_spec *spec)
{
    struct fkt_client *a = NULL;
    uint8_t seed[FKT_ENTROPY_KEY];
    int there, done;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&a, 1));
    FKT_TRY(take_spec(a, spec));
    FKT_TRY(fkt_client_file_open(a, spec->state));
    FKT_TRY(fkt_client_file_round(a, seed, &there));                  /* has its ledger been asked? */
    done = a->spent || a->ended || (!there && fkt_client_is_done(a)); /* only what was reserved will be asked for */
    FKT_TRY(fkt_client_file_moments(a, done ? NULL : spec->moments));
    if (!done) FKT_TRY(check_home(a));
    a->stage = a->ended;
    FKT_TRY(fkt_client_resume(a));
    *out = a;
    a = NULL;
out:
    fkt_wipe(seed, sizeof seed);
    fkt_client_close(a);
    return st;
}

void fkt_client_close(struct fkt_client *a)
{
    if (!a) return;
    if (a->db && fkt_client_heads_settle(a) != FKT_OK) a->tolds = 0; /* heads of empty answers: little is lost */
    fkt_sa_client_free(a->client);
    fkt_db_close(a->db);
    if (a->moments) fkt_wipe(a->moments, a->numbers * sizeof *a->moments);
    fkt_free(a->moments);
    if (a->answer) fkt_wipe(a->answer, a->answer_cap);
    fkt_free(a->answer);
    if (a->digests) fkt_wipe(a->digests, a->n_digests * sizeof *a->digests);
    fkt_free(a->digests);
    fkt_free(a->dataset);
    fkt_free(a->ledger);
    fkt_task_clear(&a->task);
    fkt_wipe(a, sizeof *a);
    fkt_free(a);
}

uint32_t fkt_client_site(const struct fkt_client *a) { return a->site; }

/* The state machine is done when it has produced its Reveal, the round when the server has it. */
static const char *phase_of(const struct fkt_client *a)
{
    enum fkt_sa_state state = a->client ? fkt_sa_client_state(a->client) : FKT_SA_STATE_BEGIN;
    return a->client ? fkt_sa_state_name(state == FKT_SA_STATE_DONE ? FKT_SA_STATE_REVEAL : state) : "";
}

void fkt_client_get_view(const struct fkt_client *a, struct fkt_client_view *out)
{
    *out = (struct fkt_client_view){.stage = a->stage,
                                    .begun = a->begun,
                                    .phase = phase_of(a),
                                    .masked = a->masked,
                                    .spent = a->spent,
                                    .sent_bytes = a->sent_bytes};
}

/* ---- endpoint ---- */

/* A failure here is final for this process: the transport stops. The file is unchanged. */
static fkt_status keep(struct fkt_client *a, fkt_status st)
{
    if (st != FKT_OK && a->broken.status == FKT_OK) fkt_failure_save(&a->broken, st);
    return st;
}

static unsigned wants(void *self)
{
    const struct fkt_client *a = self;
    if (a->broken.status != FKT_OK) return FKT_ENDPOINT_ENDED;
    if (a->answer_len) return FKT_ENDPOINT_SEND;
    return a->ended ? FKT_ENDPOINT_ENDED : FKT_ENDPOINT_RECV;
}

static void has(void *self, uint8_t round[FKT_MAILBOX_ROUND], uint32_t *after)
{
    const struct fkt_client *a = self;
    memcpy(round, a->round, FKT_MAILBOX_ROUND);
    *after = a->after;
}

static fkt_status send(void *self, uint8_t *out, size_t cap, size_t *len)
{
    const struct fkt_client *a = self;
    *len = 0;
    if (a->broken.status != FKT_OK) return fkt_failure_restore(&a->broken);
    if (!a->answer_len) return fkt_fail(FKT_E_STATE, "site %u has nothing to send", a->site);
    if (cap < a->answer_len)
        return fkt_fail(FKT_E_ARG, "a message of %zu bytes does not fit into %zu", a->answer_len, cap);
    memcpy(out, a->answer, a->answer_len);
    *len = a->answer_len;
    return FKT_OK;
}

static fkt_status note_sent(struct fkt_client *a, int taken)
{
    fkt_status st = FKT_OK;
    if (taken) FKT_TRY(fkt_client_file_taken(a));
    fkt_client_drop_answer(a);
    if (a->client && fkt_sa_client_state(a->client) == FKT_SA_STATE_DONE) FKT_TRY(fkt_client_end_round(a));
    if (a->stop.status != FKT_OK) st = fkt_failure_restore(&a->stop);
out:
    return st;
}

static fkt_status sent(void *self, int taken)
{
    struct fkt_client *a = self;
    if (a->broken.status != FKT_OK) return fkt_failure_restore(&a->broken);
    if (!a->answer_len) return fkt_fail(FKT_E_STATE, "site %u has sent nothing", a->site);
    return keep(a, note_sent(a, taken));
}

static fkt_status take(struct fkt_client *a, const struct fkt_message *message)
{
    a->stage = message->stage;
    if (a->ended) return FKT_OK;
    if (message->stage >= FKT_STAGE_RELEASED) {
        a->ended = message->stage;
        fkt_client_drop_answer(a);
        return fkt_client_end_round(a);
    }
    if (message->len && a->stop.status != FKT_OK) return FKT_OK; /* only its Leave is left */
    if (message->len) return fkt_client_message(a, message);
    if (message->lost == FKT_OK || !a->client) return FKT_OK;
    fkt_client_drop_answer(a);
    return fkt_client_end_round(a);
}

static fkt_status recv(void *self, const struct fkt_message *message)
{
    struct fkt_client *a = self;
    if (a->broken.status != FKT_OK) return fkt_failure_restore(&a->broken);
    return keep(a, take(a, message));
}

static fkt_status heard_head(void *self, uint64_t entry, const char *sha256)
{
    struct fkt_client *a = self;
    if (a->broken.status != FKT_OK) return fkt_failure_restore(&a->broken);
    return keep(a, fkt_client_heads_hear(a, entry, sha256));
}

void fkt_client_endpoint(struct fkt_client *a, struct fkt_endpoint *out)
{
    *out = (struct fkt_endpoint){.self = a,
                                 .out_max = a->answer_cap,
                                 .wants = wants,
                                 .has = has,
                                 .send = send,
                                 .sent = sent,
                                 .recv = recv,
                                 .heard_head = heard_head};
}
