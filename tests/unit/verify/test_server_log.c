/* SPDX-License-Identifier: Apache-2.0 */
/* What a real host publishes passes the check of verify.c, however its task went, and lies about it do not. */
#include "fedkt/server.h"
#include "fedkt/verify.h"
#include "tests/support/check.h"
#include "tests/support/server_world.h"

#include "base/file.h"

static const char *folder(const struct server_world *w)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/public", w->folder);
    return path;
}

static struct fkt_verification passes(const struct server_world *w)
{
    struct fkt_verification r;
    CHECK_OK(fkt_verify_folder(&r, folder(w), &w->task, NULL));
    CHECK(r.sites == w->plan.sites);
    return r;
}

static void as_it_should_go(void **state)
{
    struct server_world w;
    struct fkt_verification r;
    (void)state;
    server_world_init(&w, &(struct server_plan){.sites = 5, .dropped = 1, .corrupt = 1, .unseeded = 1});
    CHECK(server_world_run(&w) == FKT_STAGE_RELEASED);
    r = passes(&w);
    CHECK(r.survivors == 5 && r.confirmed == 5 && r.rounds == 1 && strlen(r.release_sha256) == 64);
    server_world_release(&w);
}

static void with_central_noise(void **state)
{
    struct server_world w;
    (void)state;
    server_world_init(&w,
                      &(struct server_plan){.sites = 5, .dropped = 1, .corrupt = 1, .noise = FKT_NOISE_PLACE_CENTRAL});
    CHECK(server_world_run(&w) == FKT_STAGE_RELEASED);
    CHECK(passes(&w).survivors == 5);
    server_world_release(&w);
}

static void with_losses_in_each_phase(void **state)
{
    (void)state;
    for (enum fkt_sa_state phase = FKT_SA_STATE_ADVERTISE; phase <= FKT_SA_STATE_REVEAL; phase++) {
        struct server_world w;
        if (phase == FKT_SA_STATE_COIN) continue; /* a complete graph has none */
        server_world_init(&w, &(struct server_plan){.sites = 7, .dropped = 2, .corrupt = 1});
        w.site[3].silent_from = w.site[5].silent_from = phase;
        CHECK(server_world_run(&w) == FKT_STAGE_RELEASED);
        CHECK(passes(&w).survivors == (phase > FKT_SA_STATE_MASK ? 7 : 5));
        server_world_release(&w);
    }
}

static void after_a_round_that_failed(void **state)
{
    struct server_world w;
    (void)state;
    server_world_init(&w, &(struct server_plan){.sites = 5, .dropped = 1, .corrupt = 1});
    for (int i = 0; i < 2; i++) {
        w.site[i].silent_from = FKT_SA_STATE_CONFIRM;
        w.site[i].silent_in = 1;
    }
    CHECK(server_world_run(&w) == FKT_STAGE_RELEASED);
    CHECK(passes(&w).rounds == 2);
    server_world_release(&w);
}

static void when_it_gave_up(void **state)
{
    struct server_world w;
    (void)state;
    server_world_init(&w, &(struct server_plan){.sites = 5, .dropped = 1, .corrupt = 1, .expires = 1790000060});
    w.site[0].away = w.site[1].away = 1;
    CHECK(server_world_run(&w) == FKT_STAGE_GIVEN_UP);
    CHECK(!passes(&w).release_sha256[0]);
    server_world_release(&w);
}

static void when_it_died_on_the_way(void **state)
{
    (void)state;
    for (uint32_t at = 5; at < 100; at += 23) {
        struct server_world w;
        server_world_init(&w, &(struct server_plan){.sites = 5, .dropped = 1, .corrupt = 1});
        w.crash_at = at;
        CHECK(server_world_run(&w) == FKT_STAGE_RELEASED);
        CHECK(passes(&w).survivors == 5);
        server_world_release(&w);
    }
}

/* The dataset is a folder, and one hash in the log. */
static void an_image_more(void **state)
{
    struct fkt_verification r;
    struct server_world w;
    char path[700];
    (void)state;
    server_world_init(&w, &(struct server_plan){.sites = 5, .dropped = 1, .corrupt = 1});
    CHECK(server_world_run(&w) == FKT_STAGE_RELEASED);
    passes(&w);
    snprintf(path, sizeof path, "%s/dataset/one-more.png", folder(&w));
    CHECK_OK(fkt_file_write(path, "x", 1, 0));
    CHECK_STATUS(fkt_verify_folder(&r, folder(&w), NULL, NULL), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "dataset does not have the hash in the log"));
    server_world_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_it_should_go),
        cmocka_unit_test(with_central_noise),
        cmocka_unit_test(with_losses_in_each_phase),
        cmocka_unit_test(after_a_round_that_failed),
        cmocka_unit_test(when_it_gave_up),
        cmocka_unit_test(when_it_died_on_the_way),
        cmocka_unit_test(an_image_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
