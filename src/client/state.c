/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - a site's state file: what it needs after a crash, and nothing more.
 *
 *   who      one row: task, key, dataset, fingerprint of the records; has its vector left, has it revealed, is the
 *            task over
 *   moments  one row while they may be needed: exact, PRIVATE; with their hash, to detect damage
 *   round    one row while a round is running: its name, the seed of all its secrets, what the ledger was asked
 *   letter   messages of that round, in order
 *   message  every answer of every round: its hash before it leaves; a receipt afterwards
 *   begun    the name of every round that this site has begun
 *   head     heads of the transparency log (log_heads.c)
 *
 * One process holds the file (FKT_DB_EXCLUSIVE). Each function is one transaction, on disk when it returns. When a
 * round is over its seed and messages are deleted and overwritten; when the task needs no more rounds, the moments too.
 * What stays are the names of rounds and the hashes of messages that the server has. */
#include "client/client.h"

#include "pipeline/records.h"

#include "base/alloc.h"
#include "crypto/digest.h"
#include "crypto/hash.h"

#include <string.h>
#include <unistd.h>

#define APP 0x666b7374U /* "fkst" */
#define VERSION 3

static const char schema[] =
    "CREATE TABLE who(one INTEGER PRIMARY KEY CHECK(one = 1), task TEXT NOT NULL, key BLOB NOT NULL,"
    " dataset TEXT NOT NULL, fingerprint TEXT NOT NULL, masked INTEGER NOT NULL DEFAULT 0, spent INTEGER NOT NULL "
    "DEFAULT 0,"
    " stage INTEGER NOT NULL DEFAULT 0, sent INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE moments(one INTEGER PRIMARY KEY CHECK(one = 1), sha256 BLOB NOT NULL, numbers BLOB NOT NULL);"
    "CREATE TABLE round(one INTEGER PRIMARY KEY CHECK(one = 1), name BLOB NOT NULL, seed BLOB NOT NULL,"
    " reserved INTEGER NOT NULL DEFAULT 0, spending INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE letter(idx INTEGER PRIMARY KEY, bytes BLOB NOT NULL);"
    "CREATE TABLE message(n INTEGER PRIMARY KEY, round BLOB NOT NULL, idx INTEGER NOT NULL, kind TEXT NOT NULL,"
    " sha256 BLOB NOT NULL, bytes INTEGER NOT NULL, taken INTEGER NOT NULL DEFAULT 0, UNIQUE(round, idx));"
    "CREATE TABLE begun(n INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE);"
    "CREATE TABLE head(entry INTEGER NOT NULL, sha256 TEXT NOT NULL, kept INTEGER NOT NULL DEFAULT 0,"
    " PRIMARY KEY(entry, sha256));";

/* Never from a backup: a restored state could send a second, different message in the same round. */
static const char damaged[] = "move the state file away and join again; never restore one from a backup. That costs "
                              "at most the running round, "
                              "and the ledger keeps this site from revealing twice";

static const struct fkt_db_kind file_kind = {
    schema,
    APP,
    VERSION,
    damaged,
    "another process takes part in this task with this state, perhaps as a service: use that one, or stop it",
    NULL};

fkt_status fkt_client_file_start(struct fkt_client *a)
{
    fkt_status st = fkt_db_begin(a->db);
    if (st != FKT_OK) return st;
    st = fkt_client_heads_put(a);
    if (st != FKT_OK) fkt_db_rollback(a->db);
    return st;
}

fkt_status fkt_client_file_finish(struct fkt_client *a, fkt_status st)
{
    if (st == FKT_OK) st = fkt_db_commit(a->db);
    if (st != FKT_OK) fkt_db_rollback(a->db);
    else a->tolds = 0;
    return st;
}

static int text_is(struct fkt_rows *r, int column, const char *want)
{
    const char *s = fkt_rows_text(r, column);
    return s && !strcmp(s, want);
}

static int bytes_are(struct fkt_rows *r, int column, const uint8_t *want, size_t n)
{
    size_t len;
    const uint8_t *p = fkt_rows_bytes(r, column, &len);
    return p && len == n && fkt_same(p, want, n);
}

/* ---- who ---- */

static fkt_status check_who(const struct fkt_client *a, struct fkt_rows *r, const char *path)
{
    const char *what = !text_is(r, 0, a->task.sha256)                         ? "of another task"
                       : !bytes_are(r, 1, a->secret + FKT_SA_KEY, FKT_SA_KEY) ? "of another key"
                       : !text_is(r, 2, a->dataset)                           ? "of another dataset"
                       : !text_is(r, 3, a->fingerprint)                       ? "of other records"
                                                                              : NULL;
    if (!what) return FKT_OK;
    return fkt_fail_hint(FKT_E_MISMATCH,
                         "every task has a state file of its own, for one key, one dataset and the same records",
                         "the state file '%s' is %s", path, what);
}

static fkt_status load_who(struct fkt_client *a, const char *path, int *there)
{
    struct fkt_rows *r = NULL;
    fkt_status st;
    FKT_TRY(fkt_db_ask(&r, a->db, "SELECT task, key, dataset, fingerprint, masked, spent, stage, sent FROM who", ""));
    FKT_TRY(fkt_rows_next(r, there));
    if (!*there) goto out;
    FKT_TRY(check_who(a, r, path));
    a->masked = fkt_rows_int(r, 4) != 0;
    a->spent = fkt_rows_int(r, 5) != 0;
    a->ended = fkt_rows_int(r, 6) == FKT_STAGE_RELEASED   ? FKT_STAGE_RELEASED
               : fkt_rows_int(r, 6) == FKT_STAGE_GIVEN_UP ? FKT_STAGE_GIVEN_UP
                                                          : FKT_STAGE_GATHERING;
    a->sent_bytes = (uint64_t)fkt_rows_int(r, 7);
    fkt_rows_done(r);
    r = NULL;
    FKT_TRY(fkt_db_ask(&r, a->db, "SELECT count(*) FROM begun", ""));
    FKT_TRY(fkt_rows_next(r, there));
    a->begun = (uint32_t)fkt_rows_int(r, 0);
out:
    fkt_rows_done(r);
    return st;
}

fkt_status fkt_client_file_open(struct fkt_client *a, const char *path)
{
    int there;
    fkt_status st;
    FKT_TRY(fkt_db_open(&a->db, path, &file_kind, FKT_DB_EXCLUSIVE));
    FKT_TRY(load_who(a, path, &there));
    if (!there)
        FKT_TRY(fkt_db_do(a->db, "INSERT INTO who(one, task, key, dataset, fingerprint) VALUES(1, ?, ?, ?, ?)", "tbtt",
                          a->task.sha256, a->secret + FKT_SA_KEY, (size_t)FKT_SA_KEY, a->dataset, a->fingerprint));
    FKT_TRY(fkt_client_heads_load(a));
out:
    return st;
}

/* ---- moments ---- */

static fkt_status load_moments(struct fkt_client *a, int *there)
{
    const size_t bytes = a->numbers * sizeof *a->moments;
    struct fkt_rows *r = NULL;
    const uint8_t *p;
    uint8_t hash[FKT_HASH_BYTES];
    struct fkt_hash h;
    size_t len;
    fkt_status st;
    FKT_TRY(fkt_db_ask(&r, a->db, "SELECT sha256, numbers FROM moments", ""));
    FKT_TRY(fkt_rows_next(r, there));
    if (!*there) goto out;
    p = fkt_rows_bytes(r, 1, &len);
    fkt_hash_init(&h);
    fkt_hash_add(&h, p, len);
    fkt_hash_end(&h, hash);
    if (len != bytes || !bytes_are(r, 0, hash, sizeof hash)) {
        st = fkt_fail_hint(FKT_E_FORMAT, damaged, "the moments in the state file are damaged");
        goto out;
    }
    FKT_TRY(fkt_alloc(&a->moments, a->numbers));
    memcpy(a->moments, p, bytes);
out:
    fkt_rows_done(r);
    return st;
}

static fkt_status store_moments(struct fkt_client *a, const int64_t *given)
{
    const size_t bytes = a->numbers * sizeof *a->moments;
    uint8_t hash[FKT_HASH_BYTES];
    struct fkt_hash h;
    fkt_status st;
    FKT_TRY(fkt_alloc(&a->moments, a->numbers));
    memcpy(a->moments, given, bytes);
    fkt_hash_init(&h);
    fkt_hash_add(&h, given, bytes);
    fkt_hash_end(&h, hash);
    FKT_TRY(fkt_db_do(a->db, "INSERT INTO moments VALUES(1, ?, ?)", "bb", hash, sizeof hash, given, bytes));
out:
    return st;
}

fkt_status fkt_client_file_moments(struct fkt_client *a, const int64_t *given)
{
    int there;
    fkt_status st;
    FKT_TRY(load_moments(a, &there));
    if (!there && given) FKT_TRY(store_moments(a, given));
out:
    return st;
}

fkt_status fkt_client_has_moments(const char *state, const struct fkt_task *task, struct fkt_records *records, int *yes)
{
    const struct fkt_record_digest *digests;
    char fingerprint[FKT_SHA256_HEX];
    size_t n;
    struct fkt_db *db = NULL;
    struct fkt_rows *r = NULL;
    int there;
    fkt_status st = FKT_OK;
    *yes = 0;
    if (access(state, F_OK) != 0) return FKT_OK;
    FKT_TRY(fkt_records_list(records, &digests, &n));
    fkt_records_name(fingerprint, digests, n);
    FKT_TRY(fkt_db_open(&db, state, &file_kind, FKT_DB_READ));
    FKT_TRY(fkt_db_ask(&r, db,
                       "SELECT (SELECT count(*) FROM moments) OR spent OR stage OR"
                       " ((SELECT count(*) FROM begun) >= ? AND NOT (SELECT count(*) FROM round)) FROM who"
                       " WHERE task = ? AND fingerprint = ?",
                       "itt", (int64_t)FKT_LEDGER_ROUNDS, task->sha256, fingerprint));
    FKT_TRY(fkt_rows_next(r, &there));
    *yes = there && fkt_rows_int(r, 0) != 0;
out:
    fkt_rows_done(r);
    fkt_db_close(db);
    return st;
}

fkt_status fkt_client_expire(const char *state, const struct fkt_task *task, int *goes_on)
{
    struct fkt_db *db = NULL;
    struct fkt_rows *r = NULL;
    int there;
    fkt_status st = FKT_OK;
    *goes_on = 0;
    if (access(state, F_OK) != 0) return FKT_OK;
    FKT_TRY(fkt_db_open(&db, state, &file_kind, FKT_DB_EXCLUSIVE));
    FKT_TRY(fkt_db_ask(&r, db,
                       "SELECT masked OR spent OR stage OR (SELECT count(*) FROM round) FROM who WHERE task = ?", "t",
                       task->sha256));
    FKT_TRY(fkt_rows_next(r, &there));
    *goes_on = there && fkt_rows_int(r, 0) != 0;
    fkt_rows_done(r);
    r = NULL;
    if (!there || *goes_on) goto out;
    FKT_TRY(fkt_db_run(db, "DELETE FROM moments"));
    FKT_TRY(fkt_db_scrub(db));
out:
    fkt_rows_done(r);
    fkt_db_close(db);
    return st;
}

/* ---- the running round ---- */

fkt_status fkt_client_file_round(struct fkt_client *a, uint8_t seed[FKT_ENTROPY_KEY], int *there)
{
    struct fkt_rows *r = NULL;
    const uint8_t *name, *secret;
    size_t n = 0, m = 0;
    fkt_status st;
    FKT_TRY(fkt_db_ask(&r, a->db, "SELECT name, seed, reserved, spending FROM round", ""));
    FKT_TRY(fkt_rows_next(r, there));
    if (!*there) goto out;
    name = fkt_rows_bytes(r, 0, &n);
    secret = fkt_rows_bytes(r, 1, &m);
    if (n != sizeof a->round || m != FKT_ENTROPY_KEY) {
        st = fkt_fail_hint(FKT_E_FORMAT, damaged, "the round in the state file is damaged");
        goto out;
    }
    memcpy(a->round, name, n);
    memcpy(seed, secret, m);
    a->reserved = fkt_rows_int(r, 2) != 0;
    a->spending = fkt_rows_int(r, 3) != 0;
out:
    fkt_rows_done(r);
    return st;
}

fkt_status fkt_client_file_begun(struct fkt_client *a, const uint8_t name[FKT_MAILBOX_ROUND], int *yes)
{
    struct fkt_rows *r = NULL;
    fkt_status st;
    FKT_TRY(fkt_db_ask(&r, a->db, "SELECT 1 FROM begun WHERE name = ?", "b", name, (size_t)FKT_MAILBOX_ROUND));
    FKT_TRY(fkt_rows_next(r, yes));
out:
    fkt_rows_done(r);
    return st;
}

static fkt_status put_message(struct fkt_client *a, const struct fkt_message *message)
{
    return fkt_db_do(a->db, "INSERT INTO letter VALUES(?, ?)", "ib", (int64_t)message->index, message->bytes,
                     message->len);
}

fkt_status fkt_client_file_message(struct fkt_client *a, const struct fkt_message *message)
{
    fkt_status st = fkt_client_file_start(a);
    return st == FKT_OK ? fkt_client_file_finish(a, put_message(a, message)) : st;
}

fkt_status fkt_client_file_begin(struct fkt_client *a, const uint8_t seed[FKT_ENTROPY_KEY],
                                 const struct fkt_message *message)
{
    fkt_status st = fkt_client_file_start(a);
    if (st != FKT_OK) return st;
    FKT_TRY(fkt_db_do(a->db, "INSERT INTO begun(name) VALUES(?)", "b", message->round, (size_t)FKT_MAILBOX_ROUND));
    FKT_TRY(fkt_db_do(a->db, "INSERT INTO round(one, name, seed) VALUES(1, ?, ?)", "bb", message->round,
                      (size_t)FKT_MAILBOX_ROUND, seed, (size_t)FKT_ENTROPY_KEY));
    FKT_TRY(put_message(a, message));
out:
    st = fkt_client_file_finish(a, st);
    if (st == FKT_OK) a->begun++;
    return st;
}

fkt_status fkt_client_file_flag(struct fkt_client *a, enum fkt_client_flag flag)
{
    static const char *const sql[] = {"UPDATE round SET reserved = 1", "UPDATE round SET spending = 1",
                                      "UPDATE who SET spent = 1"};
    int *const set[] = {&a->reserved, &a->spending, &a->spent};
    fkt_status st = *set[flag] ? FKT_OK : fkt_db_run(a->db, sql[flag]);
    if (st == FKT_OK) *set[flag] = 1;
    return st;
}

/* ---- answers ---- */

fkt_status fkt_client_file_answer(struct fkt_client *a, enum fkt_sa_kind kind, int *same, int *taken)
{
    struct fkt_rows *r = NULL;
    uint8_t hash[FKT_HASH_BYTES];
    struct fkt_hash h;
    const int vector = kind == FKT_SA_M_MASKED;
    int there;
    fkt_status st;
    fkt_hash_init(&h);
    fkt_hash_add(&h, a->answer, a->answer_len);
    fkt_hash_end(&h, hash);
    *same = 1;
    *taken = 0;
    FKT_TRY(fkt_db_ask(&r, a->db, "SELECT sha256, taken FROM message WHERE round = ? AND idx = ?", "bi", a->round,
                       sizeof a->round, a->answer_index));
    FKT_TRY(fkt_rows_next(r, &there));
    if (there) {
        *same = a->answer_len && bytes_are(r, 0, hash, sizeof hash);
        *taken = fkt_rows_int(r, 1) != 0;
    }
    if (there || !a->answer_len) goto out;
    fkt_rows_done(r);
    r = NULL;
    st = fkt_client_file_start(a);
    if (st != FKT_OK) goto out;
    st = fkt_db_do(a->db, "INSERT INTO message(round, idx, kind, sha256, bytes) VALUES(?, ?, ?, ?, ?)", "bitbi",
                   a->round, sizeof a->round, a->answer_index, fkt_sa_kind_name(kind), hash, sizeof hash,
                   (int64_t)a->answer_len);
    if (st == FKT_OK && vector) st = fkt_db_run(a->db, "UPDATE who SET masked = 1");
    st = fkt_client_file_finish(a, st);
    if (st == FKT_OK && vector) a->masked = 1;
out:
    fkt_rows_done(r);
    return st;
}

fkt_status fkt_client_file_taken(struct fkt_client *a)
{
    fkt_status st = fkt_client_file_start(a);
    if (st != FKT_OK) return st;
    FKT_TRY(fkt_db_do(a->db, "UPDATE message SET taken = 1 WHERE round = ? AND idx = ?", "bi", a->round,
                      sizeof a->round, a->answer_index));
    FKT_TRY(fkt_db_do(a->db, "UPDATE who SET sent = sent + ?", "i", (int64_t)a->answer_len));
    FKT_TRY(fkt_client_heads_receipt(a));
out:
    st = fkt_client_file_finish(a, st);
    if (st == FKT_OK) a->sent_bytes += a->answer_len;
    return st;
}

/* ---- the end ---- */

fkt_status fkt_client_file_wipe(struct fkt_client *a)
{
    fkt_status st = fkt_client_file_start(a);
    if (st != FKT_OK) return st;
    FKT_TRY(fkt_db_run(a->db, "DELETE FROM letter"));
    FKT_TRY(fkt_db_run(a->db, "DELETE FROM round"));
    if (fkt_client_is_done(a)) FKT_TRY(fkt_db_run(a->db, "DELETE FROM moments"));
    FKT_TRY(fkt_db_do(a->db, "UPDATE who SET stage = ?", "i", (int64_t)a->ended));
out:
    st = fkt_client_file_finish(a, st);
    return st == FKT_OK ? fkt_db_scrub(a->db) : st;
}
