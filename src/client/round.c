/* SPDX-License-Identifier: Apache-2.0 */
/* round.c - one round at a site: messages in, answers out, and the same again after a crash.
 *
 *   message --on disk--> state machine (secagg) --answer--> its hash on disk --> it may leave
 *   crash:  all messages of the file are replayed, secrets from the seed; every answer is compared with its hash
 *
 * The state machine is a function of its messages, its entropy, the vector and the ledger's answers. Messages and seed
 * are in the file, the vector is made of moments in the file and noise from the seed, and the ledger grants again what
 * it granted once (below). So a restarted site sends the same bytes. If it does not (a file from a backup, a broken
 * disk), the answer differs from its hash: the round is over, its secrets are wiped, and only a Leave is sent. Two
 * different messages under one key are never sent.
 *
 * The ledger and this file are two files, so a crash may fall between them. A flag here is on disk before the ledger is
 * asked; after a crash it shows that a session which the ledger knows was reserved by this file. Without the flag a
 * known session belongs to a state file that was removed, and is refused.
 *
 * A failure of the local machine (memory, disk, entropy) is not final: the call fails, and opening the file again
 * continues. Faults of others end the round, and another may begin. A local failure that would recur (the ledger
 * refuses, a number is beyond its bound) ends the task for this site: its moments are deleted with the round, and
 * after the repair joining again computes them again. */
#include "client/client.h"

#include "pipeline/contribution.h"

#include "base/alloc.h"
#include "crypto/digest.h"
#include "secagg/msg.h"

#include <string.h>

enum { LEDGER_TRIES = 3 }; /* each waits ten seconds where another process writes to it */

/* ---- the site's vector and ledger ---- */

static int again(fkt_status st, int *tries) { return st == FKT_E_IO && ++*tries < LEDGER_TRIES; }

static fkt_status stands(const struct fkt_client *a, const char *session, enum fkt_ledger_session *out)
{
    int tries = 0;
    fkt_status st;
    do st = fkt_ledger_file_session(a->ledger, session, a->task.sha256, a->dataset, out);
    while (again(st, &tries));
    return st;
}

static fkt_status charge_of(const struct fkt_client *a, struct fkt_ledger_charge *c)
{
    fkt_status st = fkt_contribution_charge(c, &a->task, &a->shares, a->dataset);
    c->records = a->digests;
    c->n_records = a->n_digests;
    c->budget_epsilon = a->budget_epsilon;
    c->budget_delta = a->budget_delta;
    c->most_epsilon = a->most_epsilon;
    return st;
}

fkt_status fkt_client_ask_ledger(const struct fkt_client *a)
{
    struct fkt_ledger_charge c;
    fkt_status st = charge_of(a, &c);
    return st == FKT_OK ? fkt_ledger_file_ask(a->ledger, &c, NULL) : st;
}

static fkt_status reserve(void *self, const uint8_t session[FKT_SA_SESSION])
{
    struct fkt_client *a = self;
    struct fkt_ledger_charge c;
    enum fkt_ledger_session now;
    char hex[2 * FKT_SA_SESSION + 1];
    int tries = 0;
    fkt_status st;
    fkt_sa_session_hex(hex, session);
    FKT_TRY(stands(a, hex, &now));
    if (!a->reserved && now != FKT_LEDGER_SESSION_UNKNOWN) {
        st = fkt_fail_hint(FKT_E_STATE, "wait for another round: this one was begun with a state file that is gone",
                           "the ledger knows this round already, and the state file does not");
        goto out;
    }
    FKT_TRY(fkt_client_file_flag(a, FKT_CLIENT_RESERVED));
    FKT_TRY(charge_of(a, &c));
    if (now == FKT_LEDGER_SESSION_UNKNOWN) do
            st = fkt_ledger_file_reserve(a->ledger, &c, hex, NULL);
        while (again(st, &tries));
out:
    return st;
}

static fkt_status spend(void *self, const uint8_t session[FKT_SA_SESSION])
{
    struct fkt_client *a = self;
    enum fkt_ledger_session now;
    char hex[2 * FKT_SA_SESSION + 1];
    int tries = 0;
    fkt_status st;
    fkt_sa_session_hex(hex, session);
    FKT_TRY(stands(a, hex, &now));
    if (now == FKT_LEDGER_SESSION_SPENT &&
        !a->spending) { /* before the flag: with it the next open would trust this file */
        st = fkt_fail_hint(FKT_E_STATE, "never restore a state file from a copy; this site has contributed already",
                           "the ledger has spent this round already, and the state file does not know of it");
        goto out;
    }
    if (now != FKT_LEDGER_SESSION_SPENT) {
        FKT_TRY(fkt_client_file_flag(a, FKT_CLIENT_SPENDING));
        do st = fkt_ledger_file_spend(a->ledger, hex);
        while (again(st, &tries));
        FKT_TRY(st);
    }
    FKT_TRY(fkt_client_file_flag(a, FKT_CLIENT_SPENT));
out:
    return st;
}

static fkt_status vector(void *self, int64_t *x, uint32_t length)
{
    struct fkt_client *a = self;
    if (!a->moments || length != a->numbers) return fkt_fail(FKT_E_STATE, "the state file holds no moments");
    return fkt_contribution_make(x, a->moments, &a->task, &a->shares, &a->noise);
}

/* ---- the state machine ---- */

static fkt_status open_machine(struct fkt_client *a, const uint8_t seed[FKT_ENTROPY_KEY])
{
    fkt_contribution_entropy(&a->keys, &a->noise, a->own, &a->task, a->site, seed);
    a->brings = (struct fkt_sa_site){reserve, vector, spend, a};
    return fkt_sa_client_new(&a->client, &a->params, a->site, a->secret, &a->brings, &a->keys);
}

void fkt_client_drop_answer(struct fkt_client *a)
{
    if (a->answer) fkt_wipe(a->answer, a->answer_len);
    a->answer_len = 0;
}

int fkt_client_is_done(const struct fkt_client *a)
{
    return a->spent || a->ended || a->stop.status != FKT_OK || a->begun >= FKT_LEDGER_ROUNDS;
}

fkt_status fkt_client_end_round(struct fkt_client *a)
{
    fkt_sa_client_free(a->client);
    a->client = NULL;
    fkt_wipe(a->own, sizeof a->own);
    a->reserved = a->spending = 0;
    if (fkt_client_is_done(a) && a->moments) {
        fkt_wipe(a->moments, a->numbers * sizeof *a->moments);
        fkt_free(a->moments);
        a->moments = NULL;
    }
    return fkt_client_file_wipe(a);
}

/* The round is over in any case; a Leave without a reason may be sent. */
static fkt_status leave(struct fkt_client *a)
{
    uint8_t session[FKT_SA_SESSION];
    struct fkt_sa_msg m = {.kind = FKT_SA_M_LEAVE, .site = a->site, .leave.status = FKT_E_STOPPED};
    int same, taken;
    fkt_status st;
    fkt_client_drop_answer(a);
    FKT_TRY(fkt_client_end_round(a));
    fkt_sa_session(session, &a->params, a->round);
    m.session = (struct fkt_sa_bytes){session, sizeof session};
    FKT_TRY(fkt_sa_msg_encode(&m, a->answer, a->answer_cap, &a->answer_len));
    a->answer_index = FKT_CLIENT_LEAVE;
    FKT_TRY(fkt_client_file_answer(a, FKT_SA_M_LEAVE, &same, &taken));
out:
    if (st != FKT_OK) fkt_client_drop_answer(a);
    return st;
}

static int of_others(fkt_status st)
{
    return st == FKT_E_PEER_FORMAT || st == FKT_E_PEER_AUTH || st == FKT_E_TOO_FEW || st == FKT_E_STOPPED;
}

static int of_the_machine(fkt_status st) { return st == FKT_E_NOMEM || st == FKT_E_IO || st == FKT_E_ENTROPY; }

/* The state machine has failed with `why`; its last message, if any, is pending. */
static fkt_status give_up(struct fkt_client *a, const struct fkt_failure *why)
{
    fkt_status st;
    if (!of_others(why->status)) a->stop = *why; /* first: the moments are deleted with the round */
    st = fkt_client_end_round(a);
    if (st != FKT_OK || a->stop.status == FKT_OK) return st;
    return a->answer_len ? FKT_OK : fkt_failure_restore(why);
}

/* The kind of the answer, as the server will see it. */
static fkt_status kind_of(const struct fkt_client *a, enum fkt_sa_kind *out)
{
    struct fkt_sa_msg m = {0};
    fkt_status st;
    *out = FKT_SA_M_NONE;
    if (!a->answer_len) return FKT_OK;
    st = fkt_sa_msg_decode(&m, 1, a->answer, a->answer_len, a->answer_cap);
    if (st == FKT_OK) *out = m.kind;
    fkt_sa_msg_clear(&m);
    return st;
}

/* The state machine's answer to a stored message. */
static fkt_status hear(struct fkt_client *a, uint32_t index, const uint8_t *bytes, size_t len)
{
    struct fkt_failure why = {.status = FKT_OK};
    enum fkt_sa_kind kind;
    int same, taken;
    fkt_status st = fkt_sa_client_recv(a->client, bytes, len);
    if (of_the_machine(st)) return st;
    if (st != FKT_OK) fkt_failure_save(&why, st);
    a->after = index;
    a->answer_index = index;
    fkt_client_drop_answer(a);
    if (fkt_sa_client_wants(a->client) & FKT_SA_SEND) {
        st = fkt_sa_client_send(a->client, a->answer, a->answer_cap, &a->answer_len);
        if (st != FKT_OK) return st;
    }
    st = kind_of(a, &kind);
    if (st == FKT_OK) st = fkt_client_file_answer(a, kind, &same, &taken);
    if (st != FKT_OK) return st;
    if (!same) return leave(a);
    if (taken) fkt_client_drop_answer(a);
    if (why.status != FKT_OK) return give_up(a, &why);
    if (taken && fkt_sa_client_state(a->client) == FKT_SA_STATE_DONE) return fkt_client_end_round(a);
    return FKT_OK;
}

/* ---- messages ---- */

/* A round begins with a Begin that names it: the session is made of the name inside. */
static fkt_status is_begin(const struct fkt_client *a, const struct fkt_message *message, int *yes)
{
    struct fkt_sa_msg m = {0};
    fkt_status st = fkt_sa_msg_decode(&m, 0, message->bytes, message->len, fkt_sa_to_site_max(&a->params));
    *yes = st == FKT_OK && m.kind == FKT_SA_M_BEGIN && m.begin.round.n == FKT_MAILBOX_ROUND &&
           fkt_same(m.begin.round.p, message->round, FKT_MAILBOX_ROUND);
    fkt_sa_msg_clear(&m);
    return st == FKT_E_NOMEM ? st : FKT_OK;
}

static fkt_status begin(struct fkt_client *a, const struct fkt_message *message)
{
    uint8_t seed[FKT_ENTROPY_KEY];
    struct fkt_entropy os;
    fkt_status st;
    if (a->begun >= FKT_LEDGER_ROUNDS)
        return fkt_fail_hint(FKT_E_BUDGET, "ask the operator why the rounds fail; to continue, a new task is needed",
                             "this site has begun %d rounds of task '%s', which is the limit", FKT_LEDGER_ROUNDS,
                             a->task.name);
    fkt_entropy_os(&os);
    FKT_TRY(os.fill(os.self, seed, sizeof seed));
    FKT_TRY(fkt_client_file_begin(a, seed, message));
    FKT_TRY(open_machine(a, seed));
    FKT_TRY(hear(a, message->index, message->bytes, message->len));
out:
    fkt_wipe(seed, sizeof seed);
    return st;
}

/* A message of another round: the server has moved on, and the running round is over. */
static fkt_status other_round(struct fkt_client *a, const struct fkt_message *message)
{
    int yes, before = 0;
    fkt_status st = FKT_OK;
    if (a->client) FKT_TRY(fkt_client_end_round(a));
    fkt_client_drop_answer(a);
    memcpy(a->round, message->round, sizeof a->round);
    a->after = message->index;
    FKT_TRY(is_begin(a, message, &yes));
    if (!yes || a->spent) goto out; /* a site reveals once */
    FKT_TRY(fkt_client_file_begun(a, message->round, &before));
    if (!before) FKT_TRY(begin(a, message));
out:
    return st;
}

fkt_status fkt_client_message(struct fkt_client *a, const struct fkt_message *message)
{
    fkt_status st = FKT_OK;
    if (!fkt_same(message->round, a->round, sizeof a->round)) return other_round(a, message);
    if (message->index <= a->after || a->answer_len) return FKT_OK; /* it has that one, or owes an answer first */
    if (!a->client) a->after = message->index;
    else if (message->len > fkt_sa_to_site_max(&a->params)) st = leave(a); /* longer than any valid message */
    else {
        FKT_TRY(fkt_client_file_message(a, message));
        FKT_TRY(hear(a, message->index, message->bytes, message->len));
    }
out:
    return st;
}

/* ---- after a crash ---- */

struct kept { /* the stored messages in memory: processing them writes to the same file */
    uint32_t index;
    uint8_t *bytes;
    size_t len;
};

static fkt_status read_messages(struct fkt_client *a, struct kept **out, size_t *n)
{
    struct fkt_rows *r = NULL;
    int there;
    fkt_status st;
    FKT_TRY(fkt_db_ask(&r, a->db, "SELECT idx, bytes FROM letter ORDER BY idx", ""));
    for (;;) {
        const uint8_t *p;
        FKT_TRY(fkt_rows_next(r, &there));
        if (!there) break;
        FKT_TRY(fkt_realloc(out, *n + 1));
        (*out)[*n] = (struct kept){.index = (uint32_t)fkt_rows_int(r, 0)};
        ++*n;
        p = fkt_rows_bytes(r, 1, &(*out)[*n - 1].len);
        FKT_TRY(fkt_alloc(&(*out)[*n - 1].bytes, (*out)[*n - 1].len));
        memcpy((*out)[*n - 1].bytes, p, (*out)[*n - 1].len);
    }
out:
    fkt_rows_done(r);
    return st;
}

fkt_status fkt_client_resume(struct fkt_client *a)
{
    uint8_t seed[FKT_ENTROPY_KEY];
    struct kept *message = NULL;
    size_t n = 0;
    int there;
    fkt_status st;
    FKT_TRY(fkt_db_scrub(a->db)); /* the previous process may have stopped between deleting a round and this */
    FKT_TRY(fkt_client_file_round(a, seed, &there));
    if (!there) goto out;
    FKT_TRY(read_messages(a, &message, &n));
    FKT_TRY(open_machine(a, seed));
    for (size_t i = 0; i < n && a->client; i++) {
        fkt_client_drop_answer(a); /* the message after an answer shows that the server has it */
        FKT_TRY(hear(a, message[i].index, message[i].bytes, message[i].len));
    }
out:
    for (size_t i = 0; i < n; i++) fkt_free(message[i].bytes);
    fkt_free(message);
    fkt_wipe(seed, sizeof seed);
    return st;
}
