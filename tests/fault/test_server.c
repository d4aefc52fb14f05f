/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a host's steps fails in turn: one clear status that stays, nothing leaked, and a journal from
 * which the next process goes on. */
#include "tests/support/server_world.h"
#include "tests/support/sweep.h"

static struct server_world w;
static char image[512], copy[512];

/* The folder as it stands, for every run of a sweep; the world's own host is closed. */
static void keep_image(const char *name)
{
    snprintf(image, sizeof image, "%s", scratch_path(&w.scratch, name));
    snprintf(copy, sizeof copy, "%s", scratch_path(&w.scratch, "copy"));
    server_world_copy(w.folder, image);
    fkt_server_close(w.server);
    w.server = NULL;
}

static void fresh_copy(void)
{
    nftw(copy, scratch_remove, 16, FTW_DEPTH | FTW_PHYS);
    server_world_copy(image, copy);
}

static void open_copy(void)
{
    fresh_copy();
    CHECK_OK(server_world_open(&w, copy));
    CHECK_OK(w.box.tick(w.box.self, w.now));
    CHECK_OK(w.box.settle(w.box.self));
}

static void close_copy(void)
{
    fkt_server_close(w.server);
    w.server = NULL;
}

/* After a failure of any step nothing works any more, and nothing is handed out. */
static void check_sticky(void)
{
    struct fkt_message l;
    CHECK_STATUS(w.box.settle(w.box.self), FKT_E_NOMEM);
    CHECK_STATUS(w.box.tick(w.box.self, w.now + 1000), FKT_E_NOMEM);
    CHECK_STATUS(w.box.collect(w.box.self, 0, NULL, 0, &l), FKT_E_NOMEM);
    CHECK(l.len == 0 && !w.box.has_work(w.box.self));
}

/* `ready` (may be NULL) brings an opened copy to where `act` is tried. Gives the number of allocations. */
static size_t sweep_step(void (*ready)(void), fkt_status (*act)(void))
{
    size_t before = fkt_alloc_live(), n;
    for (n = 1; n < 20000; n++) {
        fkt_status st;
        open_copy();
        if (ready) ready();
        fkt_alloc_fault_at(n, 0);
        st = act();
        fkt_alloc_fault_at(0, 0);
        if (st != FKT_OK) {
            if (st != FKT_E_NOMEM) fail_msg("allocation %zu: %s (%s)", n, fkt_status_name(st), fkt_error_text());
            check_sticky();
        }
        close_copy();
        if (fkt_alloc_live() != before) fail_msg("allocation %zu: %zu blocks leaked", n, fkt_alloc_live() - before);
        if (st == FKT_OK) return n;
        CHECK_OK(server_world_open(&w, copy)); /* the journal is what it was */
        close_copy();
    }
    fail_msg("no run succeeded");
    return 0;
}

static fkt_status open_and_close(void)
{
    fkt_status st = server_world_open(&w, copy);
    close_copy();
    return st;
}

static fkt_status settled(fkt_status st) { return st == FKT_OK ? w.box.settle(w.box.self) : st; }

static void come_in(void)
{
    struct fkt_message l;
    for (uint32_t i = 0; i < w.plan.sites; i++) CHECK_OK(w.box.collect(w.box.self, i, NULL, 0, &l));
}

static fkt_status begin(void) { return settled(w.box.tick(w.box.self, w.now)); }
static fkt_status past_deadline(void)
{
    fkt_status st = FKT_OK;
    for (uint64_t ms = 5000; st == FKT_OK && ms <= 35000; ms += 5000) st = w.box.tick(w.box.self, w.now + ms);
    return settled(st);
}
static fkt_status last_message(void) { return settled(w.box.deliver(w.box.self, 4, w.site[4].out, w.site[4].out_len)); }
static fkt_status refuse(void) { return settled(w.box.refuse(w.box.self, 1, FKT_REFUSAL_REPLAYED)); }

static fkt_status work(void)
{
    if (!w.box.has_work(w.box.self)) return fkt_fail(FKT_E_STATE, "no work");
    return settled(w.box.worked(w.box.self, w.box.work(w.box.self)));
}

/* All but the last site have answered in every phase; when it does, the phase ends. */
static void beginnings_and_phases(void **state)
{
    (void)state;
    server_world_init(&w, &(struct server_plan){.sites = 5, .dropped = 1, .corrupt = 1, .rounds = 1});
    CHECK_OK(server_world_tick(&w, 1000));
    keep_image("gathering");
    CHECK(sweep_step(come_in, begin) > 5);
    CHECK(sweep_step(NULL, refuse) > 1);
    open_copy();
    server_world_until(&w, FKT_STAGE_RUNNING);
    for (int phase = 0; phase < 5; phase++) {
        char name[32];
        snprintf(name, sizeof name, "phase-%d", phase);
        for (uint32_t i = 0; i < 5; i++)
            if (!w.site[i].out) server_world_ask(&w, i);
        for (uint32_t i = 0; i < 4; i++) {
            CHECK_OK(w.box.deliver(w.box.self, i, w.site[i].out, w.site[i].out_len));
            free(w.site[i].out);
            w.site[i].out = NULL;
        }
        CHECK_OK(w.box.settle(w.box.self));
        keep_image(name);
        CHECK(sweep_step(NULL, last_message) > 3);
        CHECK(sweep_step(NULL, past_deadline) > 3);
        fresh_copy();
        CHECK(sweep_allocations(open_and_close, NULL) > 20);
        open_copy();
        CHECK_OK(last_message());
        free(w.site[4].out);
        w.site[4].out = NULL;
    }
    CHECK(server_world_view(&w).stage == FKT_STAGE_FINISHING);
    keep_image("finishing");
    CHECK(sweep_step(NULL, work) > 20);
    open_copy();
    CHECK_OK(work());
    keep_image("released");
    CHECK(sweep_step(NULL, work) > 50);
    open_copy();
    server_world_run(&w);
    server_world_crash(&w);
    keep_image("over");
    fresh_copy();
    CHECK(sweep_allocations(open_and_close, NULL) > 20);
    CHECK(sweep_step(NULL, work) > 5); /* the files are there, and looked at */
    server_world_release(&w);
}

/* A round that fails, and with it the task. */
static void failures(void **state)
{
    (void)state;
    server_world_init(&w, &(struct server_plan){.sites = 5, .dropped = 1, .corrupt = 1, .rounds = 1});
    server_world_until(&w, FKT_STAGE_RUNNING);
    keep_image("running");
    CHECK(sweep_step(NULL, past_deadline) > 3);
    open_copy();
    CHECK_OK(past_deadline());
    CHECK(server_world_view(&w).stage == FKT_STAGE_GATHERING && strstr(server_world_view(&w).reason, "failed"));
    for (int i = 0; i < 3; i++) CHECK_OK(server_world_tick(&w, 1000)); /* told once the log is there */
    CHECK(server_world_view(&w).stage == FKT_STAGE_GIVEN_UP);
    server_world_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beginnings_and_phases),
        cmocka_unit_test(failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
