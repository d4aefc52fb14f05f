/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of the mailbox: what is wanted and what is not, who is told what, and what is never used again. */
#include "tests/support/server_world.h"

#include "base/text.h"
#include "server/server.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct server_plan five = {.sites = 5, .dropped = 1, .corrupt = 1};

static void settled_tick(struct server_world *w, uint64_t ms) { CHECK_OK(server_world_tick(w, ms)); }

static uint64_t entries(struct server_world *w)
{
    uint64_t n;
    char sha256[65];
    w->box.head(w->box.self, &n, sha256);
    return n;
}

/* Every site has its Begin and an answer to it, and nothing was sent yet. */
static void bring_answers(struct server_world *w)
{
    server_world_until(w, FKT_STAGE_RUNNING);
    for (uint32_t i = 0; i < w->plan.sites; i++) {
        struct server_site *s = &w->site[i];
        if (!s->out) server_world_ask(w, i);
        CHECK(s->out);
    }
}

/* ---- deliver ---- */

static void not_wanted(void **state)
{
    struct server_world w;
    uint8_t kept[4096];
    size_t len;
    uint64_t before;
    (void)state;
    server_world_init(&w, &five);
    settled_tick(&w, 1000);
    CHECK_STATUS(w.box.deliver(w.box.self, 0, (const uint8_t *)"x", 1), FKT_E_STATE); /* no round is under way */
    bring_answers(&w);
    len = w.site[0].out_len;
    memcpy(kept, w.site[0].out, len);
    before = entries(&w);
    CHECK_STATUS(w.box.deliver(w.box.self, 77, kept, len), FKT_E_STATE); /* nobody */
    CHECK_OK(w.box.settle(w.box.self));
    CHECK(entries(&w) == before);
    CHECK_OK(w.box.deliver(w.box.self, 0, kept, len));
    CHECK_OK(w.box.settle(w.box.self));
    CHECK(entries(&w) == before + 1);
    CHECK_STATUS(w.box.deliver(w.box.self, 0, kept, len), FKT_E_STATE); /* twice */
    CHECK_OK(w.box.settle(w.box.self));
    CHECK(entries(&w) == before + 1 && server_world_view(&w).messages == 1);
    server_world_run(&w);
    CHECK(w.site[0].refused == 1);                                      /* its own copy, the second one */
    CHECK_STATUS(w.box.deliver(w.box.self, 0, kept, len), FKT_E_STATE); /* the task is over */
    server_world_check(&w);
    server_world_release(&w);
}

/* A message of a round that failed is late mail in the next one. */
static void late_from_another_round(void **state)
{
    struct server_world w;
    uint8_t kept[4096];
    size_t len;
    (void)state;
    server_world_init(&w, &five);
    bring_answers(&w);
    len = w.site[0].out_len;
    memcpy(kept, w.site[0].out, len);
    for (int i = 1; i < 3; i++) {
        w.site[i].silent_from = FKT_SA_STATE_SHARE;
        w.site[i].silent_in = 1;
    }
    while (server_world_view(&w).round < 2) {
        server_world_talk(&w);
        settled_tick(&w, 5000);
    }
    CHECK_STATUS(w.box.deliver(w.box.self, 0, kept, len), FKT_E_STATE);
    assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
    server_world_check(&w);
    server_world_release(&w);
}

static void false_messages(void **state)
{
    struct server_world w;
    struct fkt_message l;
    uint8_t *long_one;
    size_t in_max;
    uint64_t before;
    (void)state;
    server_world_init(&w, &(struct server_plan){.sites = 9, .dropped = 2, .corrupt = 1});
    bring_answers(&w);
    CHECK_STATUS(w.box.deliver(w.box.self, 1, w.site[0].out, w.site[0].out_len),
                 FKT_E_PEER_AUTH); /* in another's name */
    in_max = w.box.in_max + 100;
    long_one = calloc(1, in_max);
    CHECK_OK(w.box.settle(w.box.self));
    before = entries(&w);
    CHECK_STATUS(w.box.deliver(w.box.self, 2, long_one, in_max), FKT_E_STATE); /* not looked at, and not told of */
    CHECK_OK(w.box.settle(w.box.self));
    CHECK(entries(&w) == before && server_world_view(&w).lost == 1);
    CHECK_STATUS(w.box.deliver(w.box.self, 2, long_one, w.box.in_max), FKT_E_PEER_FORMAT);
    free(long_one);
    CHECK_OK(w.box.settle(w.box.self));
    CHECK(server_world_view(&w).lost == 2 && server_world_view(&w).slot[1] == FKT_SITE_LOST);
    CHECK_OK(w.box.collect(w.box.self, 1, w.site[1].round, 1, &l));
    CHECK(l.len == 0 && l.lost == FKT_E_PEER_AUTH && l.stage == FKT_STAGE_RUNNING);
    CHECK_STATUS(w.box.deliver(w.box.self, 1, w.site[1].out, w.site[1].out_len), FKT_E_STATE); /* it is out */
    server_world_crash(&w); /* what they did is in the journal */
    CHECK(server_world_view(&w).lost == 2);
    assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
    server_world_check(&w);
    CHECK(server_world_view(&w).survivors == 7);
    CHECK(server_world_chain(w.box.file(w.box.self, "transparency.jsonl"), "lost") == 2);
    server_world_release(&w);
}

/* The message that leaves too few behind is answered for itself; the round is over. */
static void last_straw(void **state)
{
    struct server_world w;
    (void)state;
    server_world_init(&w, &five);
    bring_answers(&w);
    CHECK_STATUS(w.box.deliver(w.box.self, 1, (const uint8_t *)"?", 1), FKT_E_PEER_FORMAT);
    CHECK(server_world_view(&w).stage == FKT_STAGE_RUNNING);
    CHECK_STATUS(w.box.deliver(w.box.self, 2, (const uint8_t *)"?", 1), FKT_E_PEER_FORMAT);
    CHECK(server_world_view(&w).stage == FKT_STAGE_GATHERING && strstr(server_world_view(&w).reason, "too few"));
    CHECK_OK(w.box.settle(w.box.self));
    assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
    CHECK(server_world_view(&w).round == 2);
    server_world_check(&w);
    server_world_release(&w);
}

/* ---- collect ---- */

static void messages(void **state)
{
    static const uint8_t zero[FKT_SA_ROUND], other[FKT_SA_ROUND] = {1};
    struct server_world w;
    struct fkt_message l, again;
    uint8_t name[FKT_SA_ROUND], kept[4096];
    (void)state;
    server_world_init(&w, &five);
    CHECK_OK(w.box.collect(w.box.self, 0, NULL, 0, &l));
    CHECK(l.len == 0 && l.stage == FKT_STAGE_GATHERING && l.lost == FKT_OK);
    CHECK_OK(w.box.collect(w.box.self, 0, other, 3, &l));
    CHECK(l.len == 0 && l.lost == FKT_E_STATE); /* no such round */
    CHECK_STATUS(w.box.collect(w.box.self, 5, NULL, 0, &l), FKT_E_ARG);
    server_world_until(&w, FKT_STAGE_RUNNING);
    CHECK_OK(w.box.collect(w.box.self, 0, NULL, 0, &l));
    CHECK(l.len > 0 && l.index == 1 && l.stage == FKT_STAGE_RUNNING);
    memcpy(name, l.round, sizeof name);
    CHECK(l.len <= sizeof kept);
    memcpy(kept, l.bytes, l.len);
    CHECK_OK(w.box.settle(w.box.self)); /* leaves a letter alone */
    CHECK(!memcmp(l.bytes, kept, l.len));
    CHECK_OK(w.box.collect(w.box.self, 0, zero, 9, &again)); /* no round is none */
    CHECK(again.len == l.len && again.bytes == l.bytes);
    CHECK_OK(w.box.collect(w.box.self, 0, other, 9, &again)); /* another round's gets this one's */
    CHECK(again.len == l.len && !memcmp(again.round, name, sizeof name));
    CHECK_OK(w.box.collect(w.box.self, 0, name, 0, &again));
    CHECK(again.len == l.len);
    CHECK_OK(w.box.collect(w.box.self, 0, name, 1, &again));
    CHECK(again.len == 0 && again.lost == FKT_OK);
    server_world_crash(&w); /* the same letter again, with its number */
    CHECK_OK(w.box.collect(w.box.self, 0, name, 0, &again));
    CHECK(again.len > 0 && again.index == 1 && !memcmp(again.round, name, sizeof name));
    for (int i = 1; i < 3; i++) w.site[i].away = 1;
    while (server_world_view(&w).stage == FKT_STAGE_RUNNING) {
        server_world_talk(&w);
        settled_tick(&w, 5000);
    }
    CHECK_OK(w.box.collect(w.box.self, 1, name, 1, &l));
    CHECK(l.len > 0 && l.index == 2 && l.stage == FKT_STAGE_GATHERING); /* that it was aborted */
    CHECK_OK(w.box.collect(w.box.self, 1, name, 2, &l));
    CHECK(l.len == 0 && l.lost == FKT_E_STOPPED);
    CHECK_OK(w.box.collect(w.box.self, 0, name, 7, &l));
    CHECK(l.len == 0 && l.lost == FKT_E_TOO_FEW);
    CHECK_OK(w.box.collect(w.box.self, 1, NULL, 0, &l));
    CHECK(l.len == 0 && l.lost == FKT_OK);
    server_world_release(&w);
}

/* ---- refusals ---- */

static size_t refused_lines(struct server_world *w) { return server_world_count(w, "refused"); }

static void refusals_are_few_lines(void **state)
{
    struct server_world w;
    size_t n;
    (void)state;
    server_world_init(&w, &five);
    settled_tick(&w, 1000);
    for (int i = 0; i < 10000; i++) CHECK_OK(w.box.refuse(w.box.self, FKT_MAILBOX_NOBODY, FKT_REFUSAL_MALFORMED));
    CHECK_OK(w.box.refuse(w.box.self, 2, FKT_REFUSAL_BAD_SIGNATURE));
    CHECK_STATUS(w.box.refuse(w.box.self, 2, FKT_REFUSALS), FKT_E_ARG);
    CHECK_OK(w.box.settle(w.box.self));
    assert_int_equal(refused_lines(&w), 2); /* on disk at once */
    CHECK(server_world_view(&w).refused[FKT_REFUSAL_MALFORMED] == 10000);
    settled_tick(&w, 61000);
    assert_int_equal(refused_lines(&w), 3); /* and the other 9999 */
    server_world_crash(&w);
    CHECK(server_world_view(&w).refused[FKT_REFUSAL_MALFORMED] == 10000);
    CHECK(server_world_view(&w).refused[FKT_REFUSAL_BAD_SIGNATURE] == 1);
    for (int minute = 0; minute < 300; minute++) { /* five hours of everything */
        for (uint32_t site = 0; site < 7; site++)
            for (int why = 0; why < FKT_REFUSALS; why++)
                for (int k = 0; k < 3; k++) CHECK_OK(w.box.refuse(w.box.self, site, (enum fkt_refusal)why));
        settled_tick(&w, 60000);
    }
    n = refused_lines(&w);
    CHECK(n > 10 * 240 && n <= 3 + 6 * (480 + FKT_REFUSALS)); /* two kinds */
    settled_tick(&w, 3600001);
    server_world_crash(&w);
    CHECK(server_world_view(&w).refused[FKT_REFUSAL_MALFORMED] == 10000 + UINT64_C(300) * 7 * 3);
    server_world_release(&w);
}

/* What anybody can bring about does not use up the lines of what only the key's owner can. */
static void strangers_drown_nobody(void **state)
{
    struct server_world w;
    size_t before;
    (void)state;
    server_world_init(&w, &five);
    settled_tick(&w, 1000);
    for (int minute = 0; minute < 50; minute++) {
        for (uint32_t site = 0; site < 5; site++)
            for (int k = 0; k < 2; k++) {
                CHECK_OK(w.box.refuse(w.box.self, site, FKT_REFUSAL_BAD_SIGNATURE));
                CHECK_OK(w.box.refuse(w.box.self, site, FKT_REFUSAL_OTHER_TASK));
            }
        settled_tick(&w, 60000);
    }
    before = refused_lines(&w);
    assert_int_equal(before, 240);
    CHECK_OK(w.box.refuse(w.box.self, 3, FKT_REFUSAL_REPLAYED)); /* with a right signature, so with the key */
    CHECK_OK(w.box.refuse(w.box.self, 3, FKT_REFUSAL_TOO_OFTEN));
    CHECK_OK(w.box.refuse(w.box.self, 3, FKT_REFUSAL_MALFORMED));
    CHECK_OK(w.box.settle(w.box.self));
    assert_int_equal(refused_lines(&w), before + 2);
    server_world_release(&w);
}

/* ---- opening ---- */

static fkt_status open_other(struct server_world *w, const struct fkt_task *task, const char *folder, const char *out)
{
    struct fkt_server_spec spec = {.task = task, .folder = folder, .out = out, .threads = 1};
    struct fkt_server *h = NULL;
    fkt_status st = fkt_server_open(&h, &spec);
    (void)w;
    fkt_server_close(h);
    return st;
}

static void opens_with_care(void **state)
{
    struct server_world w, two;
    struct small_federation bare;
    char folder[512], out[512];
    struct stat sb;
    (void)state;
    server_world_init(&w, &five);
    server_world_init(&two, &(struct server_plan){.sites = 6, .dropped = 1, .corrupt = 1});
    CHECK(stat(w.folder, &sb) == 0 && (sb.st_mode & 0777) == 0700);
    snprintf(folder, sizeof folder, "%s", scratch_path(&w.scratch, "a/b/c"));
    CHECK_OK(open_other(&w, &w.task, folder, NULL));
    CHECK(stat(folder, &sb) == 0 && (sb.st_mode & 0777) == 0700);
    CHECK_OK(open_other(&w, &w.task, folder, NULL)); /* and again */
    CHECK_STATUS(open_other(&w, &two.task, folder, NULL), FKT_E_MISMATCH);
    CHECK_STATUS(open_other(&w, &w.task, w.folder, NULL), FKT_E_STATE); /* w has it */
    w.task.signature.bytes[5] ^= 1;
    CHECK_STATUS(open_other(&w, &w.task, folder, NULL), FKT_E_PEER_AUTH);
    w.task.signature.bytes[5] ^= 1;
    w.task.signature.there = 0;
    CHECK_STATUS(open_other(&w, &w.task, folder, NULL), FKT_E_STATE);
    w.task.signature.there = 1;
    CHECK_OK(small_federation_init(&bare, (struct fkt_federation_choices){.sites = 5, .dropped = 1, .corrupt = 1}, 10));
    CHECK_STATUS(open_other(&w, &bare.task, folder, NULL), FKT_E_ARG); /* no service */
    small_federation_release(&bare);
    snprintf(out, sizeof out, "%s", scratch_path(&w.scratch, "out"));
    CHECK(mkdir(out, 0777) == 0);
    CHECK(mkdir(scratch_path(&w.scratch, "out/dataset"), 0777) == 0);
    CHECK(mkdir(scratch_path(&w.scratch, "out/dataset/mine"), 0777) == 0);
    CHECK_STATUS(open_other(&w, &w.task, folder, out), FKT_E_EXISTS); /* now, and not in the end */
    CHECK(access(scratch_path(&w.scratch, "out/dataset/mine"), F_OK) == 0);
    server_world_release(&two);
    server_world_release(&w);
}

/* ---- a damaged journal ---- */

static void damage(const char *folder, const char *sql)
{
    char path[600];
    sqlite3 *db = NULL;
    snprintf(path, sizeof path, "%s/journal.db", folder);
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    CHECK(sqlite3_changes(db) > 0);
    sqlite3_close(db);
}

static void hostile_journal(void **state)
{
    static const char *const running[] = {
        "UPDATE event SET verdict = 41 WHERE id = 2",
        "UPDATE event SET verdict = 7 WHERE id = 2",
        "UPDATE event SET site = 999 WHERE id = 2",
        "UPDATE event SET site = 4 WHERE id = 2",
        "UPDATE event SET kind = 3 WHERE id = 2",
        "UPDATE event SET kind = 2 WHERE id = 1",
        "UPDATE event SET bytes = x'00' WHERE id = 3",
        "UPDATE event SET bytes = 'text' WHERE id = 3",
        "INSERT INTO event(round, kind, site, verdict, bytes) SELECT round, kind, site, verdict, bytes FROM event",
        "UPDATE round SET name = x'00' WHERE id = 1",
        "UPDATE round SET id = 2",
        "UPDATE round SET ended = -1",
        "UPDATE round SET ended = 42",
        "INSERT INTO round VALUES(2, x'000102030405060708090a0b0c0d0e0f', 0, '', 0, 0, x'')",
        "UPDATE line SET text = replace(text, 'start', 'START') WHERE entry = 2",
        "DELETE FROM line WHERE entry = 3",
        "UPDATE line SET text = 5 WHERE entry = 1",
        "UPDATE line SET text = '' WHERE entry = 1",
        "INSERT INTO fact VALUES('given-up', 'because')",
        "INSERT INTO release VALUES(1, 1, x'1f', 'aa', x'00', '{}')",
        "INSERT INTO refused VALUES(99, 1)",
        "UPDATE fact SET value = x'00' WHERE name = 'task'",
        "UPDATE fact SET value = '0' WHERE name = 'per-class'",
        "UPDATE fact SET value = 'tape' WHERE name = 'format'",
        "UPDATE fact SET value = 'mine' WHERE name = 'state'",
        "INSERT INTO fact VALUES('waited', 'long')",
        "INSERT INTO fact VALUES('waited', '1 1 99999999999999999999')",
    };
    static const char *const released[] = {
        "UPDATE release SET bytes = x'00'",
        "UPDATE release SET survivors = x'ff'",
        "UPDATE release SET round = 2",
        "UPDATE release SET certificate = x'00'",
        "DELETE FROM release",
    };
    struct server_world w;
    char copy[512];
    (void)state;
    server_world_init(&w, &five);
    server_world_until(&w, FKT_STAGE_RUNNING);
    server_world_talk(&w);
    for (int over = 0; over < 2; over++) {
        const char *const *sql = over ? released : running;
        size_t n = over ? sizeof released / sizeof *released : sizeof running / sizeof *running;
        for (size_t i = 0; i < n; i++) {
            snprintf(copy, sizeof copy, "%s", scratch_path(&w.scratch, "damaged"));
            server_world_copy(w.folder, copy);
            damage(copy, sql[i]);
            fkt_status st = open_other(&w, &w.task, copy, NULL);
            if (st != FKT_E_FORMAT) fail_msg("%s: %s: %s", sql[i], fkt_status_name(st), fkt_error_text());
            nftw(copy, scratch_remove, 16, FTW_DEPTH | FTW_PHYS);
        }
        if (!over) server_world_run(&w);
    }
    server_world_release(&w);
}

/* ---- a disk that is full ---- */

static void a_failed_settle_is_the_end(void **state)
{
    struct server_world w;
    struct rlimit before, none;
    struct fkt_message l;
    uint32_t there;
    (void)state;
    server_world_init(&w, &five);
    bring_answers(&w);
    there = server_world_view(&w).messages > 0;
    assert_int_equal(there, 0);
    signal(SIGXFSZ, SIG_IGN);
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    none = (struct rlimit){1, before.rlim_max};
    CHECK_OK(w.box.deliver(w.box.self, 0, w.site[0].out, w.site[0].out_len));
    CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
    CHECK_STATUS(w.box.settle(w.box.self), FKT_E_IO);
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0); /* there is room again, and that changes nothing */
    CHECK_STATUS(w.box.settle(w.box.self), FKT_E_IO);
    CHECK_STATUS(w.box.deliver(w.box.self, 1, w.site[1].out, w.site[1].out_len), FKT_E_IO);
    CHECK_STATUS(w.box.collect(w.box.self, 1, NULL, 0, &l), FKT_E_IO);
    CHECK_STATUS(w.box.tick(w.box.self, w.now + 1), FKT_E_IO);
    CHECK_STATUS(w.box.refuse(w.box.self, 1, FKT_REFUSAL_REPLAYED), FKT_E_IO);
    CHECK(!w.box.has_work(w.box.self) && l.len == 0);
    server_world_crash(&w); /* a new process knows what was settled, and no more */
    assert_int_equal(server_world_view(&w).messages, 0);
    assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
    server_world_check(&w);
    server_world_release(&w);
}

/* ---- a failure is no verdict ---- */

/* The journal cannot take round 2: its name is there. Nobody is told that it was his message. */
static void a_failure_is_no_verdict(void **state)
{
    struct server_world w;
    struct fkt_entropy_seeded seeded;
    struct fkt_entropy entropy;
    struct fkt_message l;
    uint8_t name[FKT_SA_ROUND];
    char hex[2 * FKT_SA_ROUND + 1], sql[128];
    fkt_status st = FKT_OK;
    (void)state;
    server_world_init(&w, &five);
    for (int i = 1; i < 3; i++) {
        w.site[i].silent_from = FKT_SA_STATE_SHARE;
        w.site[i].silent_in = 1;
    }
    server_world_until(&w, FKT_STAGE_RUNNING);
    while (server_world_view(&w).stage == FKT_STAGE_RUNNING) {
        server_world_talk(&w);
        settled_tick(&w, 5000);
    }
    fkt_entropy_seeded_init(&seeded, w.task.service.insecure_seed, UINT64_MAX - 1);
    fkt_entropy_seeded(&entropy, &seeded);
    CHECK_OK(entropy.fill(entropy.self, name, sizeof name));
    fkt_hex(hex, name, sizeof name);
    snprintf(sql, sizeof sql, "UPDATE round SET name = x'%s' WHERE id = 1", hex);
    fkt_server_close(w.server);
    w.server = NULL;
    damage(w.folder, sql);
    CHECK_OK(server_world_open(&w, w.folder));
    for (int i = 0; i < 20 && st == FKT_OK; i++) {
        for (uint32_t site = 0; site < 5; site++) CHECK_OK(w.box.collect(w.box.self, site, NULL, 0, &l));
        st = w.box.tick(w.box.self, w.now += 1000);
        if (st == FKT_OK) CHECK_OK(w.box.settle(w.box.self));
    }
    CHECK_STATUS(st, FKT_E_IO);
    CHECK_STATUS(w.box.deliver(w.box.self, 0, (const uint8_t *)"x", 1), FKT_E_IO);
    CHECK_STATUS(w.box.settle(w.box.self), FKT_E_IO);
    CHECK(strstr(fkt_error_text(), "journal.db"));
    server_world_release(&w);
}

/* ---- giving up ---- */

/* Whoever hears that it is over may ask for the log in the same breath: it is told when the log is there. */
static void given_up_once_the_log_is_there(void **state)
{
    struct server_world w;
    struct fkt_message l;
    char log[600];
    int waited = 0;
    (void)state;
    server_world_init(&w, &(struct server_plan){.sites = 5, .dropped = 1, .corrupt = 1, .rounds = 1});
    w.site[1].silent_from = w.site[2].silent_from = FKT_SA_STATE_SHARE;
    for (int i = 0; i < 10000; i++) {
        server_world_talk(&w);
        CHECK_OK(w.box.tick(w.box.self, w.now += 5000));
        CHECK_OK(w.box.collect(w.box.self, 0, NULL, 0, &l));
        if (l.stage == FKT_STAGE_GIVEN_UP || server_world_view(&w).stage == FKT_STAGE_GIVEN_UP) break;
        CHECK(!w.box.file(w.box.self, "transparency.jsonl"));
        waited += strstr(server_world_view(&w).reason, "1 round") != NULL;
        CHECK_OK(w.box.settle(w.box.self));
    }
    CHECK(l.stage == FKT_STAGE_GIVEN_UP && waited > 0 && w.box.file(w.box.self, "transparency.jsonl"));
    snprintf(log, sizeof log, "%s", w.box.file(w.box.self, "transparency.jsonl"));
    CHECK(server_world_chain(log, "given-up") == 1);
    fkt_server_close(w.server);
    CHECK(remove(log) == 0); /* the server died before it was written */
    CHECK_OK(server_world_open(&w, w.folder));
    CHECK(server_world_view(&w).stage != FKT_STAGE_GIVEN_UP && !w.box.file(w.box.self, "transparency.jsonl"));
    for (int i = 0; i < 3; i++) settled_tick(&w, 1000);
    CHECK(server_world_view(&w).stage == FKT_STAGE_GIVEN_UP);
    CHECK(server_world_chain(w.box.file(w.box.self, "transparency.jsonl"), "given-up") == 1);
    server_world_release(&w);
}

/* ---- words ---- */

/* A reason that is longer than there is room for ends with a whole character, and foreign bytes break nothing. */
static void long_reasons(void **state)
{
    struct server_world w;
    char reason[2000] = "\xff";
    (void)state;
    for (int shift = 0; shift < 2; shift++) {
        server_world_init(&w, &five);
        settled_tick(&w, 1000);
        for (size_t i = (size_t)shift; i + 2 < sizeof reason; i += 2) memcpy(reason + i, "\xc3\xa9", 3);
        CHECK_OK(fkt_server_give_up(w.server, reason));
        CHECK_OK(w.box.settle(w.box.self));
        for (int i = 0; i < 3; i++) settled_tick(&w, 1000);
        CHECK(server_world_view(&w).stage == FKT_STAGE_GIVEN_UP && strlen(server_world_view(&w).reason) > 700);
        CHECK(server_world_chain(w.box.file(w.box.self, "transparency.jsonl"), "given-up") == 1);
        server_world_release(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_wanted),
        cmocka_unit_test(late_from_another_round),
        cmocka_unit_test(false_messages),
        cmocka_unit_test(last_straw),
        cmocka_unit_test(messages),
        cmocka_unit_test(refusals_are_few_lines),
        cmocka_unit_test(strangers_drown_nobody),
        cmocka_unit_test(opens_with_care),
        cmocka_unit_test(hostile_journal),
        cmocka_unit_test(a_failed_settle_is_the_end),
        cmocka_unit_test(a_failure_is_no_verdict),
        cmocka_unit_test(given_up_once_the_log_is_there),
        cmocka_unit_test(long_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
