/* SPDX-License-Identifier: Apache-2.0 */
/* The public folder: whose it is, what stands in it after a restart, and what never gets there. */
#include "fedkt/verify.h"

#include "tests/support/server_world.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct server_plan five = {.sites = 5, .dropped = 1, .corrupt = 1};

static const char *const names[] = {"release.safetensors", "certificate.json", "transparency.jsonl", "grid.png",
                                    "dataset"};

static const char *in_public(struct server_world *w, const char *name)
{
    static char path[700];
    snprintf(path, sizeof path, "%s/public/%s", w->folder, name);
    return path;
}

static void overwrite(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static int holds(const char *path, const char *text)
{
    char line[4096] = "";
    FILE *f = fopen(path, "r");
    int yes = f && fgets(line, sizeof line, f) && strstr(line, text);
    if (f) fclose(f);
    return yes;
}

static void change_journal(struct server_world *w, const char *sql)
{
    char path[700];
    sqlite3 *db = NULL;
    snprintf(path, sizeof path, "%s/journal.db", w->folder);
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    CHECK(sqlite3_changes(db) == 1);
    sqlite3_close(db);
}

static void stop(struct server_world *w)
{
    fkt_server_close(w->server);
    w->server = NULL;
}

/* ---- whose it is ---- */

/* A fresh state of the same task, or another task: what was published stays. */
static void nobody_takes_a_folder(void **state)
{
    struct server_world w, two;
    char out[512], left[600];
    struct stat before, after;
    (void)state;
    server_world_init(&w, &five);
    assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
    snprintf(out, sizeof out, "%s/public", w.folder);
    snprintf(left, sizeof left, "%s/release.safetensors.tmp-1-1", out);
    overwrite(left, "of a server that runs");
    CHECK(stat(in_public(&w, "transparency.jsonl"), &before) == 0);
    for (int other = 0; other < 2; other++) {
        server_world_init(&two, other ? &(struct server_plan){.sites = 6, .dropped = 1, .corrupt = 1} : &five);
        stop(&two);
        two.out = out;
        CHECK_STATUS(server_world_open(&two, scratch_path(&two.scratch, "another")), FKT_E_EXISTS);
        CHECK(strstr(fkt_error_text(), out) && fkt_error_hint_code() == FKT_HINT_SERVER_FOLDER);
        server_world_release(&two);
    }
    CHECK(stat(in_public(&w, "transparency.jsonl"), &after) == 0 && before.st_ino == after.st_ino);
    CHECK(access(left, F_OK) == 0);
    server_world_check(&w);
    server_world_crash(&w); /* the one whose it is cleans it up */
    CHECK(access(in_public(&w, "release.safetensors.tmp-1-1"), F_OK) != 0);
    server_world_release(&w);
}

/* Files of somebody's under one of the names: not one of them is replaced. */
static void nothing_foreign_is_replaced(void **state)
{
    struct server_world w;
    char out[512], path[600];
    (void)state;
    server_world_init(&w, &five);
    stop(&w);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(out, sizeof out, "%s", scratch_path(&w.scratch, "out"));
        snprintf(path, sizeof path, "%s/%s", out, names[i]);
        CHECK(mkdir(out, 0777) == 0);
        overwrite(path, "mine");
        w.out = out;
        CHECK_STATUS(server_world_open(&w, scratch_path(&w.scratch, "fresh")), FKT_E_EXISTS);
        CHECK(holds(path, "mine"));
        CHECK(unlink(path) == 0);
        CHECK_OK(server_world_open(&w, scratch_path(&w.scratch, "fresh"))); /* and now it may have it */
        stop(&w);
        nftw(out, scratch_remove, 16, FTW_DEPTH | FTW_PHYS);
        nftw(scratch_path(&w.scratch, "fresh"), scratch_remove, 16, FTW_DEPTH | FTW_PHYS);
    }
    server_world_release(&w);
}

/* ---- what stands in it ---- */

/* Whatever was done to the files while the server was away, they are what the log says again. */
static void files_are_what_the_log_says(void **state)
{
    struct server_world w;
    char head[65], later[65], command[1000];
    uint64_t entry, again;
    (void)state;
    server_world_init(&w, &five);
    assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
    w.box.head(w.box.self, &entry, head);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], "dataset") != 0) {
            overwrite(in_public(&w, names[i]), "{\"event\":\"open\"}");
        } else {
            snprintf(command, sizeof command, "rm '%s'/train/*/*1.png", in_public(&w, "dataset"));
            CHECK(system(command) == 0);
        }
        server_world_crash(&w);
        CHECK(!w.box.file(w.box.self, "transparency.jsonl")); /* nothing is shown before it was looked at */
        assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
        server_world_check(&w);
        w.box.head(w.box.self, &again, later);
        CHECK(entry == again && !strcmp(head, later));
    }
    server_world_release(&w);
}

/* Also of a task that was given up. */
static void a_given_up_log_is_written_again(void **state)
{
    struct server_world w;
    (void)state;
    server_world_init(&w, &(struct server_plan){.sites = 6, .dropped = 1, .corrupt = 1, .expires = 1790000600});
    for (int i = 0; i < 4; i++) w.site[i].silent_from = FKT_SA_STATE_REVEAL;
    assert_int_equal(server_world_run(&w), FKT_STAGE_GIVEN_UP);
    overwrite(in_public(&w, "transparency.jsonl"), "{}");
    server_world_crash(&w);
    for (int i = 0; i < 3; i++) CHECK_OK(server_world_tick(&w, 1000));
    CHECK(server_world_chain(w.box.file(w.box.self, "transparency.jsonl"), "given-up") == 1);
    server_world_release(&w);
}

/* ---- what the first start has chosen ---- */

static void choices_stay(void **state)
{
    struct server_world w;
    (void)state;
    server_world_init(&w, &five);
    CHECK_OK(server_world_tick(&w, 1000));
    stop(&w);
    w.per_class = 3;
    CHECK_STATUS(server_world_open(&w, w.folder), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "2 images") && fkt_error_hint_code() == FKT_HINT_SERVER_CHOICES);
    w.per_class = 2;
    w.format = FKT_EXPORT_NPZ;
    CHECK_STATUS(server_world_open(&w, w.folder), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "npz"));
    w.format = FKT_EXPORT_FOLDER;
    w.per_class = 0; /* as the first time */
    CHECK_OK(server_world_open(&w, w.folder));
    assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
    server_world_check(&w);
    CHECK(access(in_public(&w, "dataset/train/cat/00002.png"), F_OK) != 0);
    server_world_release(&w);
}

/* Files that come out otherwise than the log says are not published. */
static void other_files_are_not_published(void **state)
{
    struct server_world w;
    fkt_status st;
    (void)state;
    server_world_init(&w, &five);
    assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
    stop(&w);
    change_journal(&w, "UPDATE fact SET value = '3' WHERE name = 'per-class'");
    nftw(in_public(&w, "dataset"), scratch_remove, 16, FTW_DEPTH | FTW_PHYS);
    w.per_class = 0;
    CHECK_OK(server_world_open(&w, w.folder));
    CHECK_OK(w.box.tick(w.box.self, w.now));
    CHECK_OK(w.box.settle(w.box.self));
    CHECK(w.box.has_work(w.box.self));
    st = w.box.work(w.box.self);
    CHECK_STATUS(st, FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "dataset"));
    CHECK(access(in_public(&w, "dataset"), F_OK) != 0);
    CHECK_STATUS(w.box.worked(w.box.self, st), FKT_E_MISMATCH);
    CHECK(!w.box.file(w.box.self, "grid.png"));
    server_world_release(&w);
}

/* ---- no dataset ---- */

/* Numbers that no decoder takes are some site's doing, and no reason to hide the release: it is served alone. */
static void a_release_without_images(void **state)
{
    struct server_world w;
    struct fkt_verification report;
    char public[600];
    (void)state;
    server_world_init(&w, &five);
    server_world_until(&w, FKT_STAGE_FINISHING);
    for (int job = 0; job < 2; job++) {
        fkt_status st;
        CHECK(w.box.has_work(w.box.self));
        st = w.box.work(w.box.self);
        CHECK_OK(st);
        CHECK_OK(w.box.worked(w.box.self, job ? fkt_fail(FKT_E_NUMERIC, "the decoder gave NaN") : st));
        CHECK_OK(w.box.settle(w.box.self));
    }
    for (int life = 0; life < 2; life++) {
        assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
        CHECK(!w.box.file(w.box.self, "grid.png") && access(in_public(&w, "grid.png"), F_OK) != 0);
        CHECK(access(in_public(&w, "dataset"), F_OK) != 0);
        CHECK(access(w.box.file(w.box.self, "release.safetensors"), R_OK) == 0);
        CHECK(access(w.box.file(w.box.self, "certificate.json"), R_OK) == 0);
        CHECK(server_world_chain(w.box.file(w.box.self, "transparency.jsonl"), "no-dataset") == 1);
        CHECK(server_world_chain(w.box.file(w.box.self, "transparency.jsonl"), "file") == 0);
        snprintf(public, sizeof public, "%s/public", w.folder);
        CHECK_OK(fkt_verify_folder(&report, public, &w.task, NULL));
        server_world_crash(&w);
    }
    server_world_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_takes_a_folder),
        cmocka_unit_test(nothing_foreign_is_replaced),
        cmocka_unit_test(files_are_what_the_log_says),
        cmocka_unit_test(a_given_up_log_is_written_again),
        cmocka_unit_test(choices_stay),
        cmocka_unit_test(other_files_are_not_published),
        cmocka_unit_test(a_release_without_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
