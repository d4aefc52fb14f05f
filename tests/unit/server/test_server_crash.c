/* SPDX-License-Identifier: Apache-2.0 */
/* The process dies at every point of a task, before and after each settle and around each piece of work, and another
 * one goes on from the disk as it was: the same release, byte for byte, one row of it, whole files, an unbroken
 * chain. */
#include "tests/support/server_world.h"

#include <dirent.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

static int64_t ask_number(struct server_world *w, const char *sql)
{
    char path[600];
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;
    int64_t n;
    server_world_copy(w->folder, scratch_path(&w->scratch, "look"));
    snprintf(path, sizeof path, "%s/look/journal.db", w->scratch.dir);
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    CHECK(sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW);
    n = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    sqlite3_close(db);
    nftw(scratch_path(&w->scratch, "look"), scratch_remove, 16, FTW_DEPTH | FTW_PHYS);
    return n;
}

/* Nothing half-made is left beside the public files. */
static void check_tidy(struct server_world *w)
{
    char path[600];
    struct dirent *e;
    int n = 0;
    snprintf(path, sizeof path, "%s/public", w->folder);
    DIR *d = opendir(path);
    CHECK(d);
    while ((e = readdir(d)))
        if (e->d_name[0] != '.') {
            n++;
            if (strstr(e->d_name, ".tmp-")) fail_msg("left behind: %s", e->d_name);
        }
    closedir(d);
    assert_int_equal(n, 5);
}

struct outcome {
    char release[65];
    uint32_t points, survivors;
};

/* A run that dies at point `crash_at` (0: never); what came of it. */
static struct outcome run_once(const struct server_plan *plan, size_t each, uint32_t crash_at, int lossy)
{
    struct server_world w;
    struct outcome o = {0};
    struct fkt_mailbox_view v;
    server_world_init(&w, plan);
    w.each = each;
    w.crash_at = crash_at;
    if (lossy) w.site[1].silent_from = FKT_SA_STATE_MASK;
    assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
    server_world_check(&w);
    check_tidy(&w);
    v = server_world_view(&w);
    CHECK(v.round == 1);
    assert_int_equal(ask_number(&w, "SELECT count(*) FROM release"), 1);
    assert_int_equal(ask_number(&w, "SELECT count(*) FROM event"), 0); /* no share and no vector is kept */
    snprintf(o.release, sizeof o.release, "%s", v.release_sha256);
    o.points = w.points;
    o.survivors = v.survivors;
    if (crash_at) assert_int_equal(w.crashes, crash_at <= o.points);
    server_world_release(&w);
    return o;
}

/* At every `step`-th point. */
static void sweep(const struct server_plan *plan, size_t each, int lossy, uint32_t step)
{
    struct outcome calm = run_once(plan, each, 0, lossy), other;
    CHECK(calm.points > 20);
    for (uint32_t at = 1; at <= calm.points; at += step) {
        other = run_once(plan, each, at, lossy);
        if (strcmp(other.release, calm.release) != 0) fail_msg("dying at point %u made another release", at);
        CHECK(other.survivors == calm.survivors);
    }
}

static void dies_anywhere(void **state)
{
    (void)state;
    sweep(&(struct server_plan){.sites = 5, .dropped = 1, .corrupt = 1}, 0, 0, 1);
}

static void dies_between_any_two_messages(void **state)
{
    (void)state;
    sweep(&(struct server_plan){.sites = 5, .dropped = 1, .corrupt = 1}, 1, 0, 3);
}

static void dies_while_one_is_lost(void **state)
{
    (void)state;
    sweep(&(struct server_plan){.sites = 5, .dropped = 1, .corrupt = 1}, 0, 1, 1);
}

/* Noise of the operating system: once the release is settled, no other one is ever drawn. */
static void central_noise_is_drawn_once(void **state)
{
    static const struct server_plan plan = {.sites = 4, .dropped = 1, .noise = FKT_NOISE_PLACE_CENTRAL, .unseeded = 1};
    struct server_world w;
    char sha256[65];
    (void)state;
    server_world_init(&w, &plan);
    server_world_until(&w, FKT_STAGE_FINISHING);
    CHECK(w.box.has_work(w.box.self) && !w.box.has_work(w.box.self));
    CHECK_OK(w.box.work(w.box.self));
    server_world_crash(&w); /* nobody has seen that one */
    CHECK(ask_number(&w, "SELECT count(*) FROM release") == 0);
    CHECK(w.box.has_work(w.box.self));
    CHECK_OK(w.box.work(w.box.self));
    CHECK_OK(w.box.worked(w.box.self, FKT_OK));
    CHECK_OK(w.box.settle(w.box.self));
    CHECK(ask_number(&w, "SELECT count(*) FROM release") == 1);
    for (int i = 0; i < 3; i++) {
        server_world_crash(&w);
        CHECK(server_world_view(&w).stage == FKT_STAGE_FINISHING);
        if (i == 1) {
            CHECK(w.box.has_work(w.box.self));
            CHECK_OK(w.box.work(w.box.self)); /* the files, and then it dies again */
        }
    }
    assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
    server_world_check(&w);
    snprintf(sha256, sizeof sha256, "%s", server_world_view(&w).release_sha256);
    server_world_crash(&w); /* the files are looked at, and nothing else */
    assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
    CHECK(!w.box.has_work(w.box.self) && ask_number(&w, "SELECT count(*) FROM release") == 1);
    CHECK(!strcmp(sha256, server_world_view(&w).release_sha256));
    server_world_check(&w);
    server_world_release(&w);
}

/* A public file that somebody removed is made again, and the log stays as it was. */
static void lost_files_are_made_again(void **state)
{
    struct server_world w;
    char grid[512], log[512], sha256[65], head[65], again[65];
    uint64_t entry, later;
    (void)state;
    server_world_init(&w, &(struct server_plan){.sites = 5, .dropped = 1, .corrupt = 1});
    assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
    snprintf(sha256, sizeof sha256, "%s", server_world_view(&w).release_sha256);
    w.box.head(w.box.self, &entry, head);
    snprintf(grid, sizeof grid, "%s", w.box.file(w.box.self, "grid.png"));
    snprintf(log, sizeof log, "%s", w.box.file(w.box.self, "transparency.jsonl"));
    CHECK(unlink(grid) == 0 && unlink(log) == 0);
    server_world_crash(&w);
    CHECK(server_world_view(&w).stage == FKT_STAGE_FINISHING && !w.box.file(w.box.self, "grid.png"));
    assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
    server_world_check(&w);
    w.box.head(w.box.self, &later, again);
    CHECK(!strcmp(sha256, server_world_view(&w).release_sha256) && entry == later && !strcmp(head, again));
    server_world_release(&w);
}

/* A deadline starts again after a restart: nobody is lost because the server was away. */
static void deadlines_count_anew(void **state)
{
    struct server_world w;
    (void)state;
    server_world_init(&w, &(struct server_plan){.sites = 5, .dropped = 1, .corrupt = 1});
    server_world_until(&w, FKT_STAGE_RUNNING);
    CHECK_OK(server_world_tick(&w, 29000));
    CHECK(server_world_view(&w).lost == 0);
    server_world_crash(&w);
    CHECK_OK(server_world_tick(&w, 29000));
    CHECK(server_world_view(&w).lost == 0 && server_world_view(&w).stage == FKT_STAGE_RUNNING);
    CHECK(server_world_view(&w).phase_until - w.now <= 1000);
    CHECK_OK(server_world_tick(&w, 1000));
    CHECK(server_world_view(&w).stage == FKT_STAGE_GATHERING); /* nobody answered */
    server_world_release(&w);
}

/* A server that is restarted for ever, more often than a phase lasts, and a site that is dead: the phase ends all the
 * same, after four times its length in all. So does the time that the others are given to gather. */
static void restarts_do_not_hold_up(void **state)
{
    static const struct server_plan plan = {.sites = 5, .dropped = 1, .corrupt = 1};
    struct server_world w;
    uint64_t waited = 0;
    (void)state;
    server_world_init(&w, &plan);
    server_world_until(&w, FKT_STAGE_RUNNING);
    w.site[2].away = 1;
    server_world_talk(&w);
    server_world_talk(&w);
    CHECK(server_world_view(&w).heard == 4 && server_world_view(&w).phase_until > w.now);
    for (; server_world_view(&w).lost == 0; waited += 10000) {
        CHECK(waited < 200000);
        server_world_crash(&w);
        CHECK_OK(server_world_tick(&w, 10000));
    }
    CHECK(waited >= 90000 && waited <= 130000);
    server_world_talk(&w); /* the next phase has all its time again */
    server_world_crash(&w);
    CHECK_OK(server_world_tick(&w, 25000));
    CHECK(server_world_view(&w).stage == FKT_STAGE_RUNNING && server_world_view(&w).lost == 1);
    assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
    server_world_check(&w);
    server_world_release(&w);

    server_world_init(&w, &plan);
    w.site[2].away = 1;
    for (waited = 0; server_world_view(&w).stage == FKT_STAGE_GATHERING; waited += 10000) {
        CHECK(waited < 200000);
        server_world_crash(&w);
        server_world_talk(&w);
        CHECK_OK(server_world_tick(&w, 5000));
        server_world_talk(&w);
        CHECK_OK(server_world_tick(&w, 5000));
    }
    CHECK(waited >= 60000);
    server_world_release(&w);
}

/* Even one that lives for a second only. */
static void short_lives_count(void **state)
{
    struct server_world w;
    int lives = 0;
    (void)state;
    server_world_init(&w, &(struct server_plan){.sites = 5, .dropped = 1, .corrupt = 1});
    server_world_until(&w, FKT_STAGE_RUNNING);
    for (; server_world_view(&w).stage == FKT_STAGE_RUNNING; lives++) {
        CHECK(lives < 200);
        server_world_crash(&w);
        CHECK_OK(server_world_tick(&w, 200));
    }
    CHECK(lives > 20);
    server_world_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dies_anywhere),
        cmocka_unit_test(dies_between_any_two_messages),
        cmocka_unit_test(dies_while_one_is_lost),
        cmocka_unit_test(central_noise_is_drawn_once),
        cmocka_unit_test(lost_files_are_made_again),
        cmocka_unit_test(deadlines_count_anew),
        cmocka_unit_test(restarts_do_not_hold_up),
        cmocka_unit_test(short_lives_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
