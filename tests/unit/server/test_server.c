/* SPDX-License-Identifier: Apache-2.0 */
/* A task's server over whole rounds: the release is that of the plain sum, whoever is lost, and the log says so. */
#include "tests/support/server_world.h"

#include <pthread.h>

static const struct server_plan five = {.sites = 5, .dropped = 1, .corrupt = 1};

static const char *log_of(struct server_world *w) { return w->box.file(w->box.self, "transparency.jsonl"); }

static void whole_round(void **state)
{
    struct server_world w;
    struct fkt_mailbox_view v;
    (void)state;
    server_world_init(&w, &five);
    v = server_world_view(&w);
    CHECK(v.stage == FKT_STAGE_GATHERING && v.round == 0 && v.sites == 5 && v.needed == 4 && v.ready == 0);
    assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
    server_world_check(&w);
    v = server_world_view(&w);
    CHECK(v.round == 1 && v.survivors == 5 && v.lost == 0 && v.messages == 25 && v.message_bytes > 25 * 100);
    CHECK(!strcmp(v.phase, "") && !strcmp(v.reason, ""));
    assert_int_equal(server_world_chain(log_of(&w), "message"), 25);
    assert_int_equal(server_world_chain(log_of(&w), "confirmed"), 5);
    assert_int_equal(server_world_chain(log_of(&w), "phase"), 5);
    assert_int_equal(server_world_chain(log_of(&w), "survivors"), 1);
    assert_int_equal(server_world_chain(log_of(&w), "file"), 2);
    server_world_release(&w);
}

/* The dataset's hash in the log is what anybody gets with the usual tools; the certificate claims no ledger it has not
 * seen. */
static void what_the_files_say(void **state)
{
    struct server_world w;
    char command[1200], hash[65] = "", want[128], line[4096];
    int found = 0, ledger = 0, warned = 0;
    FILE *f;
    (void)state;
    server_world_init(&w, &five);
    assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
    snprintf(
        command, sizeof command,
        "cd '%s/public/dataset' && find . -type f -printf '%%P\\0' | xargs -0 sha256sum | LC_ALL=C sort | sha256sum",
        w.folder);
    f = popen(command, "r");
    CHECK(f && fread(hash, 1, 64, f) == 64);
    pclose(f);
    snprintf(want, sizeof want, "\"name\":\"dataset\"");
    f = fopen(log_of(&w), "r");
    CHECK(f);
    while (fgets(line, sizeof line, f)) found += strstr(line, want) && strstr(line, hash);
    fclose(f);
    assert_int_equal(found, 1);
    f = fopen(w.box.file(w.box.self, "certificate.json"), "r");
    CHECK(f);
    while (fgets(line, sizeof line, f)) {
        ledger += strstr(line, "\"ledger\": \"each site's own\"") != NULL;
        warned += strstr(line, "only each site's own ledger knows") != NULL;
    }
    fclose(f);
    CHECK(ledger == 1 && warned == 1);
    server_world_release(&w);
}

/* Noise that is drawn here, from the operating system: two runs differ, and each is what its file says. */
static void central_noise(void **state)
{
    struct server_world w;
    char first[65] = "";
    (void)state;
    for (int i = 0; i < 2; i++) {
        server_world_init(
            &w, &(struct server_plan){.sites = 4, .dropped = 1, .noise = FKT_NOISE_PLACE_CENTRAL, .unseeded = 1});
        assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
        server_world_check(&w);
        CHECK(strcmp(first, server_world_view(&w).release_sha256) != 0);
        snprintf(first, sizeof first, "%s", server_world_view(&w).release_sha256);
        server_world_release(&w);
    }
}

/* Whoever is lost before its vector has come is not in the sum; afterwards it is. */
static void lost_in_each_phase(void **state)
{
    (void)state;
    for (int phase = FKT_SA_STATE_ADVERTISE; phase <= FKT_SA_STATE_REVEAL; phase++) {
        struct server_world w;
        struct fkt_mailbox_view v;
        if (phase == FKT_SA_STATE_COIN) continue; /* a complete graph throws none */
        server_world_init(&w, &five);
        w.site[3].silent_from = (enum fkt_sa_state)phase;
        assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
        server_world_check(&w);
        v = server_world_view(&w);
        assert_int_equal(v.survivors, phase <= FKT_SA_STATE_MASK ? 4 : 5);
        assert_int_equal(v.lost, 1);
        assert_int_equal(server_world_chain(log_of(&w), "lost"), 1);
        server_world_release(&w);
    }
}

/* One that never comes is not waited for longer than the task says. */
static void begins_without_one(void **state)
{
    struct server_world w;
    uint64_t start;
    (void)state;
    server_world_init(&w, &five);
    w.site[0].away = 1;
    start = w.now;
    while (server_world_view(&w).stage == FKT_STAGE_GATHERING) {
        server_world_talk(&w);
        CHECK_OK(server_world_tick(&w, 1000));
        CHECK(w.now - start < 60000);
    }
    CHECK(w.now - start >= 20000);
    assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
    server_world_check(&w);
    server_world_release(&w);
}

/* Two too few are there: no round begins. They stay away again after it was enough for a while: it counts anew. */
static void too_few_to_begin(void **state)
{
    struct server_world w;
    (void)state;
    server_world_init(&w, &five);
    w.site[0].away = w.site[1].away = 1;
    for (int i = 0; i < 60; i++) {
        server_world_talk(&w);
        CHECK_OK(server_world_tick(&w, 1000));
    }
    CHECK(server_world_view(&w).stage == FKT_STAGE_GATHERING && server_world_view(&w).ready == 3);
    w.site[1].away = 0;
    for (int i = 0; i < 5; i++) {
        server_world_talk(&w);
        CHECK_OK(server_world_tick(&w, 1000));
    }
    CHECK(server_world_view(&w).ready == 4);
    w.site[1].away = 1;
    for (int i = 0; i < 12; i++) {
        server_world_talk(&w);
        CHECK_OK(server_world_tick(&w, 1000));
    }
    CHECK(server_world_view(&w).ready == 3);
    w.site[1].away = 0;
    for (int i = 0; i < 15; i++) {
        server_world_talk(&w);
        CHECK_OK(server_world_tick(&w, 1000));
    }
    CHECK(server_world_view(&w).stage == FKT_STAGE_GATHERING && server_world_view(&w).round == 0);
    server_world_release(&w);
}

static void failed_round_then_a_good_one(void **state)
{
    (void)state;
    for (int phase = FKT_SA_STATE_SHARE; phase <= FKT_SA_STATE_CONFIRM; phase++) {
        struct server_world w;
        struct fkt_mailbox_view v;
        server_world_init(&w, &five);
        for (int i = 1; i < 3; i++) {
            w.site[i].silent_from = (enum fkt_sa_state)phase;
            w.site[i].silent_in = 1;
        }
        assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
        server_world_check(&w);
        v = server_world_view(&w);
        CHECK(v.round == 2 && v.survivors == 5 && strstr(v.reason, "too few sites"));
        assert_int_equal(server_world_chain(log_of(&w), "failed"), 1);
        assert_int_equal(server_world_chain(log_of(&w), "begin"), 2);
        server_world_release(&w);
    }
}

static void all_rounds_fail(void **state)
{
    struct server_world w;
    struct fkt_mailbox_view v;
    (void)state;
    server_world_init(&w, &five);
    for (int i = 1; i < 3; i++) {
        w.site[i].silent_from = FKT_SA_STATE_SHARE;
        w.site[i].silent_in = 1; /* comes back, and is silent again */
    }
    for (int turn = 0; turn < 200 && server_world_view(&w).stage < FKT_STAGE_RELEASED; turn++) {
        for (int i = 1; i < 3; i++) w.site[i].silent_in = w.site[i].begun ? w.site[i].begun : 1;
        uint32_t taken = server_world_talk(&w);
        CHECK_OK(server_world_tick(&w, taken ? 100 : 5000));
    }
    for (int i = 0; i < 3; i++) CHECK_OK(server_world_tick(&w, 1000));
    v = server_world_view(&w);
    CHECK(v.stage == FKT_STAGE_GIVEN_UP && v.round == 3 && strstr(v.reason, "3 rounds have failed"));
    assert_int_equal(server_world_chain(log_of(&w), "failed"), 3);
    assert_int_equal(server_world_chain(log_of(&w), "given-up"), 1);
    CHECK(!w.box.file(w.box.self, "release.safetensors"));
    server_world_crash(&w);
    v = server_world_view(&w);
    CHECK(v.stage == FKT_STAGE_GIVEN_UP && v.round == 3 && strstr(v.reason, "3 rounds have failed"));
    server_world_release(&w);
}

/* Two of five are gone after their masked vectors, or after their signatures. The round is not given up while they can
 * still come back: what the others have set aside, or spent, would be lost. */
static void the_silent_come_back(void **state)
{
    (void)state;
    for (int phase = FKT_SA_STATE_MASK; phase <= FKT_SA_STATE_REVEAL; phase++) {
        struct server_world w;
        struct fkt_mailbox_view v;
        server_world_init(&w, &(struct server_plan){.sites = 5, .dropped = 1, .corrupt = 1, .rounds = 1});
        for (int i = 1; i < 3; i++) w.site[i].silent_from = (enum fkt_sa_state)phase;
        for (int i = 0; i < 600; i++) CHECK_OK(server_world_tick(&w, server_world_talk(&w) ? 100 : 5000));
        v = server_world_view(&w);
        CHECK(v.stage == FKT_STAGE_RUNNING && v.round == 1 && v.overdue && v.lost == 0);
        assert_string_equal(v.phase, fkt_sa_state_name((enum fkt_sa_state)phase));
        server_world_crash(&w); /* the server, too */
        for (int i = 1; i < 3; i++) w.site[i].silent_from = FKT_SA_STATE_BEGIN, w.site[i].away = 0;
        assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
        server_world_check(&w);
        CHECK(server_world_view(&w).survivors == 5 && !server_world_view(&w).overdue);
        server_world_release(&w);
    }
}

/* Two that were lost earlier are back, and two others fall silent: another round can begin, so that this one ends. */
static void another_round_is_better(void **state)
{
    struct server_world w;
    (void)state;
    server_world_init(&w, &(struct server_plan){.sites = 7, .dropped = 2, .corrupt = 1});
    w.site[1].silent_from = w.site[2].silent_from = FKT_SA_STATE_SHARE;
    w.site[1].silent_in = w.site[2].silent_in = 1;
    w.site[3].silent_from = w.site[4].silent_from = FKT_SA_STATE_CONFIRM;
    assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
    server_world_check(&w);
    CHECK(server_world_view(&w).round == 2 && server_world_view(&w).survivors == 5);
    server_world_release(&w);
}

/* Too few reveal before the task expires: those that did have spent, and too few are left for any other round. */
static void spent_for_nothing(void **state)
{
    struct server_world w;
    struct fkt_mailbox_view v;
    (void)state;
    server_world_init(&w, &(struct server_plan){.sites = 6, .dropped = 1, .corrupt = 1, .expires = 1790000600});
    w.site[0].silent_from = w.site[1].silent_from = w.site[2].silent_from = w.site[3].silent_from = FKT_SA_STATE_REVEAL;
    assert_int_equal(server_world_run(&w), FKT_STAGE_GIVEN_UP);
    v = server_world_view(&w);
    CHECK(v.round == 1 && strstr(v.reason, "2 sites have spent"));
    CHECK(server_world_chain(log_of(&w), "end") == 1);
    server_world_release(&w);
}

static void expires(void **state)
{
    struct server_world w;
    (void)state;
    server_world_init(&w, &(struct server_plan){.sites = 5, .dropped = 1, .corrupt = 1, .expires = 1790000060});
    w.site[0].away = w.site[1].away = 1;
    assert_int_equal(server_world_run(&w), FKT_STAGE_GIVEN_UP);
    CHECK(strstr(server_world_view(&w).reason, "expired") && server_world_view(&w).round == 0);
    CHECK(w.now >= UINT64_C(1790000120000) && w.now < UINT64_C(1790000140000)); /* it was so for a minute */
    server_world_release(&w);
    /* a round that is under way is not cut off */
    server_world_init(&w, &(struct server_plan){.sites = 5, .dropped = 1, .corrupt = 1, .expires = 1790000060});
    server_world_until(&w, FKT_STAGE_RUNNING);
    w.now += 61000;
    for (int i = 0; i < 40; i++) { /* talk first: the jump is no one's silence */
        if (!server_world_talk(&w)) break;
    }
    server_world_work(&w);
    assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
    server_world_check(&w);
    server_world_release(&w);
}

/* A clock that is set forward, or a machine that slept, is nobody's silence: a day goes by in one tick. */
static void clock_jumps(void **state)
{
    const uint64_t day = 86400000;
    struct server_world w;
    (void)state;
    server_world_init(&w, &five);
    server_world_until(&w, FKT_STAGE_RUNNING);
    for (int turn = 0; turn < 40 && server_world_view(&w).stage == FKT_STAGE_RUNNING; turn++) {
        w.now += day;
        CHECK_OK(w.box.tick(w.box.self, w.now));
        CHECK(server_world_view(&w).stage == FKT_STAGE_RUNNING && server_world_view(&w).lost == 0);
        CHECK(server_world_view(&w).phase_until > w.now && server_world_view(&w).phase_until <= w.now + 30000);
        server_world_talk(&w);
        server_world_talk(&w);
    }
    assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
    server_world_check(&w);
    CHECK(server_world_view(&w).survivors == 5 && server_world_view(&w).round == 1);
    server_world_release(&w);
}

/* One wrong reading past `expires` ends nothing, and no round begins while it lasts. */
static void clock_jumps_past_expiry(void **state)
{
    struct server_world w;
    (void)state;
    server_world_init(&w, &(struct server_plan){.sites = 5, .dropped = 1, .corrupt = 1, .expires = 1790000060});
    CHECK_OK(server_world_tick(&w, 1000));
    w.now += 86400000;
    for (int i = 0; i < 10; i++) {
        server_world_talk(&w);
        CHECK_OK(server_world_tick(&w, 5000));
    }
    CHECK(server_world_view(&w).stage == FKT_STAGE_GATHERING && server_world_view(&w).round == 0);
    w.now -= 86400000 + 50000; /* set right again */
    assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
    server_world_check(&w);
    server_world_release(&w);
}

/* A sparse graph: its coin is thrown again when a site does not open, and the page turns each time. */
static void sparse_graph(void **state)
{
    struct server_world w;
    struct fkt_mailbox_view v;
    (void)state;
    server_world_init(&w, &(struct server_plan){.sites = 64, .dropped = 6, .corrupt = 3});
    CHECK(w.task.federation.degree < 63);
    w.site[7].silent_from = FKT_SA_STATE_COIN;
    w.site[9].silent_from = FKT_SA_STATE_MASK;
    w.site[11].silent_from = FKT_SA_STATE_REVEAL;
    assert_int_equal(server_world_until(&w, FKT_STAGE_FINISHING), FKT_STAGE_FINISHING);
    server_world_crash(&w); /* all of it told again */
    assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
    server_world_check(&w);
    v = server_world_view(&w);
    CHECK(v.survivors == 62 && v.round == 1);
    assert_int_equal(server_world_chain(log_of(&w), "phase"), 7);
    assert_int_equal(server_world_chain(log_of(&w), "lost"), 3);
    server_world_release(&w);
}

/* The heavy work runs beside the rest: what a carrier's thread does meanwhile touches nothing that the worker has. */
static void *worker(void *mailbox)
{
    struct fkt_mailbox *box = mailbox;
    fkt_status st = box->work(box->self);
    return st == FKT_OK ? box : NULL;
}

static void works_beside_the_rest(void **state)
{
    struct server_world w;
    (void)state;
    server_world_init(&w, &five);
    server_world_until(&w, FKT_STAGE_FINISHING);
    for (int job = 0; job < 2; job++) {
        pthread_t thread;
        void *done = NULL;
        CHECK(w.box.has_work(w.box.self));
        CHECK(pthread_create(&thread, NULL, worker, &w.box) == 0);
        for (int i = 0; i < 50; i++) {
            struct fkt_message l;
            CHECK_OK(w.box.collect(w.box.self, (uint32_t)i % 5, w.site[0].round, 9, &l));
            CHECK_STATUS(w.box.deliver(w.box.self, 0, (const uint8_t *)"x", 1), FKT_E_STATE);
            CHECK_OK(w.box.refuse(w.box.self, 1, FKT_REFUSAL_REPLAYED));
            CHECK_OK(w.box.tick(w.box.self, w.now += 10));
            CHECK_OK(w.box.settle(w.box.self));
            CHECK(server_world_view(&w).stage == FKT_STAGE_FINISHING && !w.box.has_work(w.box.self));
        }
        CHECK(pthread_join(thread, &done) == 0 && done);
        CHECK_OK(w.box.worked(w.box.self, FKT_OK));
        CHECK_OK(w.box.settle(w.box.self));
    }
    assert_int_equal(server_world_run(&w), FKT_STAGE_RELEASED);
    server_world_check(&w);
    server_world_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_round),
        cmocka_unit_test(what_the_files_say),
        cmocka_unit_test(central_noise),
        cmocka_unit_test(lost_in_each_phase),
        cmocka_unit_test(begins_without_one),
        cmocka_unit_test(too_few_to_begin),
        cmocka_unit_test(failed_round_then_a_good_one),
        cmocka_unit_test(all_rounds_fail),
        cmocka_unit_test(the_silent_come_back),
        cmocka_unit_test(another_round_is_better),
        cmocka_unit_test(spent_for_nothing),
        cmocka_unit_test(expires),
        cmocka_unit_test(clock_jumps),
        cmocka_unit_test(clock_jumps_past_expiry),
        cmocka_unit_test(sparse_graph),
        cmocka_unit_test(works_beside_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
