/* SPDX-License-Identifier: Apache-2.0 */
/* journal.c - the server's persistent state: rounds, their events, the lines of the transparency log, and the release.
 *
 *   fact      what is true of the whole task: its hash, why it was given up; and how long it has waited (deadlines.c)
 *   round     1, 2, 3 ...: name; and once it has failed, why, and which sites had revealed by then
 *   event     of the rounds, in order: a message and the state machine's verdict, or a deadline
 *   line      of the transparency log
 *   refused   how many requests were refused, by reason
 *   release   exactly one row: its key is 1, and it is inserted, never replaced
 *
 * The aggregation state machine draws nothing and reads no clock, so a round's name and its events determine its state
 * (src/secagg/server.c). Everything between two settles is one transaction: a message, its log line, and the end of the
 * round that it may cause are on disk together or not at all.
 *
 * Events of a finished round are deleted, a part at a time so that requests do not wait, and then overwritten: they are
 * masked vectors and the key shares that unmask them, and with central noise they are equivalent to the exact total.
 *
 * Cost: one synced transaction for each settle, whatever it holds. Memory: one message at a time when reading back. */
#include "server/journal.h"

#include "base/alloc.h"
#include "crypto/hash.h"
#include "secagg/params.h"
#include "store/db.h"

#include <string.h>

#define APP 0x666b746aU /* "fktj" */
#define VERSION 1

static const char schema[] =
    "CREATE TABLE fact(name TEXT PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE round(id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, ended INTEGER NOT NULL, reason TEXT NOT "
    "NULL,"
    " messages INTEGER NOT NULL, bytes INTEGER NOT NULL, spent BLOB NOT NULL);"
    "CREATE TABLE event(id INTEGER PRIMARY KEY, round INTEGER NOT NULL, kind INTEGER NOT NULL, site INTEGER NOT NULL,"
    " verdict INTEGER NOT NULL, bytes BLOB NOT NULL);"
    "CREATE TABLE line(entry INTEGER PRIMARY KEY, text TEXT NOT NULL);"
    "CREATE TABLE refused(why INTEGER PRIMARY KEY, times INTEGER NOT NULL);"
    "CREATE TABLE release(id INTEGER PRIMARY KEY CHECK(id = 1), round INTEGER NOT NULL, survivors BLOB NOT NULL,"
    " sha256 TEXT NOT NULL, bytes BLOB NOT NULL, certificate TEXT NOT NULL);";

#define DAMAGED                                                                                                        \
    "restore a copy of the whole state folder only if no server has run since it was made; otherwise the task "        \
    "is over, and a new one is needed"

static const struct fkt_db_kind file_kind = {
    schema, APP, VERSION, DAMAGED, "another server runs on this state, perhaps as a service: use that one, or stop it",
    NULL};

struct fkt_journal {
    struct fkt_db *db;
    uint32_t sites;
    int open; /* a transaction is */
};

static fkt_status damaged(const char *what)
{
    return fkt_fail_hint(FKT_E_FORMAT, DAMAGED, "the journal is damaged: %s", what);
}

/* ---- writing ---- */

static fkt_status writing(struct fkt_journal *j)
{
    fkt_status st = FKT_OK;
    if (!j->open) st = fkt_db_begin(j->db);
    if (st == FKT_OK) j->open = 1;
    return st;
}

fkt_status fkt_journal_settle(struct fkt_journal *j, int *any)
{
    if (any) *any = j->open;
    if (!j->open) return FKT_OK;
    j->open = 0;
    return fkt_db_commit(j->db);
}

fkt_status fkt_journal_begin(struct fkt_journal *j, uint32_t round, const uint8_t name[FKT_SA_ROUND])
{
    fkt_status st;
    FKT_TRY(writing(j));
    FKT_TRY(fkt_db_do(j->db, "INSERT INTO round VALUES(?, ?, 0, '', 0, 0, x'')", "ib", (int64_t)round, name,
                      (size_t)FKT_SA_ROUND));
out:
    return st;
}

fkt_status fkt_journal_add(struct fkt_journal *j, uint32_t round, const struct fkt_journal_event *e)
{
    fkt_status st;
    FKT_TRY(writing(j));
    FKT_TRY(fkt_db_do(j->db, "INSERT INTO event(round, kind, site, verdict, bytes) VALUES(?, ?, ?, ?, ?)", "iiiib",
                      (int64_t)round, (int64_t)e->kind, (int64_t)e->site, (int64_t)e->verdict,
                      e->len ? (const void *)e->bytes : "", e->len));
out:
    return st;
}

fkt_status fkt_journal_end(struct fkt_journal *j, uint32_t round, const struct fkt_journal_round *r)
{
    fkt_status st;
    FKT_TRY(writing(j));
    FKT_TRY(fkt_db_do(j->db, "UPDATE round SET ended = ?, reason = ?, messages = ?, bytes = ?, spent = ? WHERE id = ?",
                      "itiibi", (int64_t)r->ended, r->reason, (int64_t)r->messages, (int64_t)r->bytes, r->spent,
                      fkt_bitmap_bytes(j->sites), (int64_t)round));
out:
    return st;
}

fkt_status fkt_journal_release_put(struct fkt_journal *j, const struct fkt_journal_release *r)
{
    fkt_status st;
    FKT_TRY(writing(j));
    FKT_TRY(fkt_db_do(j->db, "INSERT INTO release VALUES(1, ?, ?, ?, ?, ?)", "ibtbt", (int64_t)r->round, r->survivors,
                      fkt_bitmap_bytes(j->sites), r->sha256, r->bytes, r->len, r->certificate));
out:
    return st;
}

fkt_status fkt_journal_fact_put(struct fkt_journal *j, const char *name, const char *value)
{
    fkt_status st;
    FKT_TRY(writing(j));
    FKT_TRY(fkt_db_do(j->db, "INSERT INTO fact VALUES(?, ?)", "tt", name, value));
out:
    return st;
}

fkt_status fkt_journal_fact_change(struct fkt_journal *j, const char *name, const char *value)
{
    fkt_status st;
    FKT_TRY(writing(j));
    FKT_TRY(fkt_db_do(j->db, "INSERT INTO fact VALUES(?, ?) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
                      "tt", name, value));
out:
    return st;
}

fkt_status fkt_journal_count(struct fkt_journal *j, enum fkt_refusal why, uint64_t times)
{
    fkt_status st;
    FKT_TRY(writing(j));
    FKT_TRY(fkt_db_do(j->db,
                      "INSERT INTO refused VALUES(?, ?) ON CONFLICT(why) DO UPDATE SET times = times + excluded.times",
                      "ii", (int64_t)why, (int64_t)times));
out:
    return st;
}

fkt_status fkt_journal_line(struct fkt_journal *j, uint64_t entry, const char *line)
{
    fkt_status st;
    FKT_TRY(writing(j));
    FKT_TRY(fkt_db_do(j->db, "INSERT INTO line VALUES(?, ?)", "it", (int64_t)entry, line));
out:
    return st;
}

fkt_status fkt_journal_forget(struct fkt_journal *j, uint32_t last, uint32_t limit, int *left)
{
    struct fkt_rows *rows = NULL;
    fkt_status st;
    *left = 0;
    FKT_TRY(fkt_db_ask(&rows, j->db, "SELECT 1 FROM event WHERE round <= ? LIMIT 1", "i", (int64_t)last));
    FKT_TRY(fkt_rows_next(rows, left));
    fkt_rows_done(rows);
    rows = NULL;
    if (!*left) goto out;
    FKT_TRY(writing(j));
    FKT_TRY(fkt_db_do(j->db,
                      "DELETE FROM event WHERE id IN (SELECT id FROM event WHERE round <= ? ORDER BY id LIMIT ?)", "ii",
                      (int64_t)last, (int64_t)limit));
out:
    fkt_rows_done(rows);
    return st;
}

fkt_status fkt_journal_scrub(struct fkt_journal *j) { return fkt_db_scrub(j->db); }

/* ---- reading back ---- */

static fkt_status take_round(struct fkt_journal *j, struct fkt_rows *rows, struct fkt_journal_round *r)
{
    size_t len;
    int64_t ended = fkt_rows_int(rows, 2);
    const uint8_t *name = fkt_rows_bytes(rows, 1, &len);
    if (!name || len != FKT_SA_ROUND) return damaged("the name of a round is not 16 bytes long");
    memcpy(r->name, name, len);
    r->reason = fkt_rows_text(rows, 3);
    if (ended < 0 || ended > 255 || !r->reason || fkt_rows_int(rows, 4) < 0 || fkt_rows_int(rows, 5) < 0)
        return damaged("the end of a round is out of range");
    r->ended = (fkt_status)ended;
    r->messages = (uint64_t)fkt_rows_int(rows, 4);
    r->bytes = (uint64_t)fkt_rows_int(rows, 5);
    r->spent = fkt_rows_bytes(rows, 6, &len);
    if (!r->spent || (len != fkt_bitmap_bytes(j->sites) && (ended || len)))
        return damaged("the sites of a round do not fit the task");
    if (!len) r->spent = NULL;
    return FKT_OK;
}

fkt_status fkt_journal_rounds(struct fkt_journal *j, fkt_journal_on_round *visit, void *self)
{
    struct fkt_rows *rows = NULL;
    uint32_t n = 0;
    int there;
    fkt_status st;
    FKT_TRY(
        fkt_db_ask(&rows, j->db, "SELECT id, name, ended, reason, messages, bytes, spent FROM round ORDER BY id", ""));
    for (;;) {
        struct fkt_journal_round r = {0};
        FKT_TRY(fkt_rows_next(rows, &there));
        if (!there) break;
        if (fkt_rows_int(rows, 0) != ++n) FKT_TRY(damaged("a round is missing"));
        FKT_TRY(take_round(j, rows, &r));
        FKT_TRY(visit(self, n, &r));
    }
out:
    fkt_rows_done(rows);
    return st;
}

static fkt_status take_event(struct fkt_journal *j, struct fkt_rows *rows, struct fkt_journal_event *e)
{
    int64_t kind = fkt_rows_int(rows, 0), site = fkt_rows_int(rows, 1), verdict = fkt_rows_int(rows, 2);
    if ((kind != FKT_EVENT_MESSAGE && kind != FKT_EVENT_DEADLINE) || site < 0 || site >= j->sites ||
        (verdict != FKT_OK && verdict != FKT_E_PEER_FORMAT && verdict != FKT_E_PEER_AUTH))
        return damaged("an event of a round is out of range");
    e->kind = (enum fkt_journal_kind)kind;
    e->site = (uint32_t)site;
    e->verdict = (fkt_status)verdict;
    e->bytes = fkt_rows_bytes(rows, 3, &e->len);
    return FKT_OK;
}

fkt_status fkt_journal_events(struct fkt_journal *j, uint32_t round, fkt_journal_on_event *visit, void *self)
{
    struct fkt_rows *rows = NULL;
    int there;
    fkt_status st;
    FKT_TRY(fkt_db_ask(&rows, j->db, "SELECT kind, site, verdict, bytes FROM event WHERE round = ? ORDER BY id", "i",
                       (int64_t)round));
    for (;;) {
        struct fkt_journal_event e = {0};
        FKT_TRY(fkt_rows_next(rows, &there));
        if (!there) break;
        FKT_TRY(take_event(j, rows, &e));
        FKT_TRY(visit(self, &e));
    }
out:
    fkt_rows_done(rows);
    return st;
}

fkt_status fkt_journal_lines(struct fkt_journal *j, fkt_journal_on_line *visit, void *self)
{
    struct fkt_rows *rows = NULL;
    int there;
    fkt_status st;
    FKT_TRY(fkt_db_ask(&rows, j->db, "SELECT entry, text FROM line ORDER BY entry", ""));
    for (;;) {
        const char *line;
        FKT_TRY(fkt_rows_next(rows, &there));
        if (!there) break;
        line = fkt_rows_text(rows, 1);
        if (!line || fkt_rows_int(rows, 0) < 1) FKT_TRY(damaged("a line of the transparency log is not text"));
        FKT_TRY(visit(self, (uint64_t)fkt_rows_int(rows, 0), line));
    }
out:
    fkt_rows_done(rows);
    return st;
}

fkt_status fkt_journal_counts(struct fkt_journal *j, uint64_t refused[FKT_REFUSALS])
{
    struct fkt_rows *rows = NULL;
    int there;
    fkt_status st;
    memset(refused, 0, FKT_REFUSALS * sizeof *refused);
    FKT_TRY(fkt_db_ask(&rows, j->db, "SELECT why, times FROM refused", ""));
    for (;;) {
        int64_t why, times;
        FKT_TRY(fkt_rows_next(rows, &there));
        if (!there) break;
        why = fkt_rows_int(rows, 0);
        times = fkt_rows_int(rows, 1);
        if (why < 0 || why >= FKT_REFUSALS || times < 0) FKT_TRY(damaged("a count of refusals is out of range"));
        refused[why] = (uint64_t)times;
    }
out:
    fkt_rows_done(rows);
    return st;
}

fkt_status fkt_journal_fact(struct fkt_journal *j, const char *name, char **value)
{
    struct fkt_rows *rows = NULL;
    const char *text;
    int there;
    fkt_status st;
    *value = NULL;
    FKT_TRY(fkt_db_ask(&rows, j->db, "SELECT value FROM fact WHERE name = ?", "t", name));
    FKT_TRY(fkt_rows_next(rows, &there));
    if (!there) goto out;
    text = fkt_rows_text(rows, 0);
    if (!text) FKT_TRY(damaged("a fact is not text"));
    FKT_TRY(fkt_strdup(value, text));
out:
    fkt_rows_done(rows);
    return st;
}

fkt_status fkt_journal_release_get(struct fkt_journal *j, fkt_journal_on_release *visit, void *self)
{
    struct fkt_rows *rows = NULL;
    struct fkt_journal_release r;
    char really[FKT_HASH_HEX];
    size_t map;
    int64_t round;
    int there;
    fkt_status st;
    FKT_TRY(fkt_db_ask(&rows, j->db, "SELECT round, survivors, sha256, bytes, certificate FROM release", ""));
    FKT_TRY(fkt_rows_next(rows, &there));
    if (!there) goto out;
    round = fkt_rows_int(rows, 0);
    r.survivors = fkt_rows_bytes(rows, 1, &map);
    r.sha256 = fkt_rows_text(rows, 2);
    r.bytes = fkt_rows_bytes(rows, 3, &r.len);
    r.certificate = fkt_rows_text(rows, 4);
    if (round < 1 || round > UINT32_MAX || !r.survivors || map != fkt_bitmap_bytes(j->sites) ||
        !fkt_bitmap_ok(r.survivors, j->sites) || !r.sha256 || !r.bytes || !r.certificate)
        FKT_TRY(damaged("the release is out of range"));
    r.round = (uint32_t)round;
    fkt_hash_bytes_hex(really, r.bytes, r.len);
    if (strcmp(really, r.sha256) != 0) FKT_TRY(damaged("the release does not have its recorded hash"));
    FKT_TRY(visit(self, &r));
out:
    fkt_rows_done(rows);
    return st;
}

/* ---- opening ---- */

/* A new file is marked with the task before anything else is in it. */
static fkt_status claim(struct fkt_journal *j, const char *task_sha256)
{
    char *whose = NULL;
    fkt_status st;
    FKT_TRY(fkt_journal_fact(j, "task", &whose));
    if (!whose) {
        FKT_TRY(fkt_journal_fact_put(j, "task", task_sha256));
        FKT_TRY(fkt_journal_settle(j, NULL));
    } else if (strcmp(whose, task_sha256) != 0) {
        st = fkt_fail_hint(FKT_E_MISMATCH, "give each task a state folder of its own",
                           "the state folder belongs to another task (%.12s...)", whose);
    }
out:
    fkt_free(whose);
    return st;
}

fkt_status fkt_journal_open(struct fkt_journal **out, const char *path, const char *task_sha256, uint32_t sites)
{
    struct fkt_journal *j = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&j, 1));
    j->sites = sites;
    FKT_TRY(fkt_db_open(&j->db, path, &file_kind, FKT_DB_EXCLUSIVE));
    FKT_TRY(claim(j, task_sha256));
    *out = j;
    j = NULL;
out:
    fkt_journal_close(j);
    return st;
}

void fkt_journal_close(struct fkt_journal *j)
{
    if (!j) return;
    if (j->db && j->open) fkt_db_rollback(j->db);
    fkt_db_close(j->db);
    fkt_free(j);
}
