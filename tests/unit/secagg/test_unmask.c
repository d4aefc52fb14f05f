/* SPDX-License-Identifier: Apache-2.0 */
/* Masks are subtracted alike in any number of lanes and in any order of jobs; anything else is refused. */
#include "base/threads.h"
#include "tests/support/sa_bend.h"

enum { LANES = 3 };

/* A sparse round with two sites lost after sharing, in UNMASK. */
static void to_unmask(struct sa_world *w)
{
    struct fkt_sa_params p = sa_params(20, 4, 1, 10, 0, 100, 32);
    CHECK_OK(sa_world_init(w, &p, 3));
    sa_world_kill(w, 4, FKT_SA_STATE_MASK);
    sa_world_kill(w, 9, FKT_SA_STATE_MASK);
    CHECK_OK(sa_world_run_to_unmask(w));
    CHECK(fkt_sa_server_state(w->server) == FKT_SA_STATE_UNMASK);
}

static void lanes_equal_one_call(void **state)
{
    struct fkt_sa_lane *lane[LANES] = {NULL};
    const int64_t *one, *many;
    const uint8_t *sa, *sb;
    struct sa_world a, b;
    size_t jobs;
    (void)state;
    to_unmask(&a);
    to_unmask(&b);
    CHECK_OK(fkt_sa_server_unmask(a.server));
    jobs = fkt_sa_server_jobs(b.server);
    CHECK(jobs >= 18 + 2 * 8 &&
          jobs <= 18 + 2 * 10); /* self masks, and the survivors among the peers of each lost one */
    for (size_t i = 0; i < LANES; i++) CHECK_OK(fkt_sa_lane_new(&lane[i], b.server));
    for (size_t i = jobs; i-- > 0;) CHECK_OK(fkt_sa_server_job(b.server, i, lane[i * 7 % LANES]));
    CHECK_OK(fkt_sa_server_finish(b.server, lane, LANES));
    CHECK(fkt_sa_server_state(b.server) == FKT_SA_STATE_DONE && fkt_sa_server_jobs(b.server) == 0);
    CHECK_OK(fkt_sa_server_total(a.server, &one, &sa));
    CHECK_OK(fkt_sa_server_total(b.server, &many, &sb));
    assert_memory_equal(one, many, 100 * sizeof *one);
    assert_memory_equal(sa, sb, 20);
    sa_world_check(&b);
    for (size_t i = 0; i < LANES; i++) fkt_sa_lane_free(lane[i]);
    sa_world_release(&a);
    sa_world_release(&b);
}

struct crew {
    const struct fkt_sa_server *server;
    struct fkt_sa_lane *lane[LANES];
};
static fkt_status work(void *ctx, size_t item, unsigned worker)
{
    struct crew *c = ctx;
    return fkt_sa_server_job(c->server, item, c->lane[worker]);
}
static void lanes_in_threads(void **state)
{
    struct crew c = {0};
    struct sa_world w;
    (void)state;
    to_unmask(&w);
    c.server = w.server;
    for (size_t i = 0; i < LANES; i++) CHECK_OK(fkt_sa_lane_new(&c.lane[i], w.server));
    CHECK_OK(fkt_parallel(LANES, fkt_sa_server_jobs(w.server), work, &c, NULL, NULL));
    CHECK_OK(fkt_sa_server_finish(w.server, c.lane, LANES));
    sa_world_check(&w);
    for (size_t i = 0; i < LANES; i++) fkt_sa_lane_free(c.lane[i]);
    sa_world_release(&w);
}

static void out_of_order(void **state)
{
    struct fkt_sa_params p = sa_params(5, 1, 0, 0, 0, 10, 32);
    struct fkt_sa_lane *lane = NULL;
    const int64_t *total;
    const uint8_t *survivors;
    struct sa_world w;
    (void)state;
    CHECK_OK(sa_world_init(&w, &p, 3));
    CHECK(fkt_sa_server_jobs(w.server) == 0);
    CHECK_STATUS(fkt_sa_server_unmask(w.server), FKT_E_STATE);
    CHECK_STATUS(fkt_sa_server_finish(w.server, NULL, 0), FKT_E_STATE);
    CHECK_STATUS(fkt_sa_lane_new(&lane, w.server), FKT_E_STATE);
    CHECK(!lane);
    CHECK_STATUS(fkt_sa_server_total(w.server, &total, &survivors), FKT_E_STATE);
    CHECK(!total && !survivors);
    CHECK_OK(sa_world_run_to_unmask(&w));
    CHECK_STATUS(fkt_sa_server_close(w.server), FKT_E_STATE);
    CHECK_OK(fkt_sa_server_lost(w.server, 2)); /* no site is needed any more */
    CHECK_OK(fkt_sa_lane_new(&lane, w.server));
    CHECK_STATUS(fkt_sa_server_job(w.server, 5, lane), FKT_E_ARG);
    for (size_t i = 0; i < 4; i++) CHECK_OK(fkt_sa_server_job(w.server, i, lane));
    CHECK_STATUS(fkt_sa_server_finish(w.server, &lane, 1), FKT_E_STATE); /* one job short; the call changes nothing */
    CHECK_OK(fkt_sa_server_job(w.server, 4, lane));
    CHECK_OK(fkt_sa_server_finish(w.server, &lane, 1));
    sa_world_check(&w);
    CHECK_STATUS(fkt_sa_server_unmask(w.server), FKT_E_STATE);
    fkt_sa_lane_free(lane);
    sa_world_release(&w);
}

/* As many jobs as there are, but one of them twice and another not at all: in one lane, and over two. */
static void one_job_twice(void **state)
{
    struct fkt_sa_lane *lane[2] = {NULL};
    struct sa_world w;
    size_t jobs;
    (void)state;
    to_unmask(&w);
    jobs = fkt_sa_server_jobs(w.server);
    for (size_t i = 0; i < 2; i++) CHECK_OK(fkt_sa_lane_new(&lane[i], w.server));
    for (size_t i = 0; i < jobs - 1; i++) CHECK_OK(fkt_sa_server_job(w.server, i, lane[0]));
    CHECK_STATUS(fkt_sa_server_job(w.server, 3, lane[0]), FKT_E_STATE); /* and nothing was done by that */
    CHECK_OK(fkt_sa_server_job(w.server, 3, lane[1]));
    CHECK_STATUS(fkt_sa_server_finish(w.server, lane, 2), FKT_E_STATE);
    CHECK(strstr(fkt_error_text(), "job 3 ") != NULL);
    CHECK_STATUS(fkt_sa_server_finish(w.server, lane, 1), FKT_E_STATE);
    fkt_sa_lane_free(lane[1]);
    CHECK_OK(fkt_sa_lane_new(&lane[1], w.server));
    CHECK_OK(fkt_sa_server_job(w.server, jobs - 1, lane[1]));
    CHECK_OK(fkt_sa_server_finish(w.server, lane, 2));
    sa_world_check(&w);
    for (size_t i = 0; i < 2; i++) fkt_sa_lane_free(lane[i]);
    sa_world_release(&w);
}

static void far_too_large(struct sa_world *w, uint32_t site, struct fkt_sa_msg *m, uint8_t *room)
{
    (void)w, (void)site;
    sa_bend_own(&m->masked.packed, room)[4 * 3 + 3] ^= 0x40; /* number 3, by 2^30 */
}

static void numbers_out_of_range(void **state)
{
    struct fkt_sa_params p = sa_params(5, 1, 0, 0, 0, 10, 32);
    struct sa_bend bend = {.site = 1, .kind = FKT_SA_M_MASKED, .edit = far_too_large};
    const int64_t *total;
    const uint8_t *survivors;
    struct sa_world w;
    (void)state;
    p.bound = 1000;
    CHECK_OK(sa_world_init(&w, &p, 3));
    w.hook = sa_bend_hook;
    w.self = &bend;
    CHECK_STATUS(sa_world_run(&w), FKT_E_PEER_AUTH);
    CHECK(strstr(fkt_error_text(), "1 of the 10 numbers") == fkt_error_text());
    CHECK(fkt_sa_server_state(w.server) == FKT_SA_STATE_FAILED);
    CHECK_STATUS(fkt_sa_server_total(w.server, &total, &survivors), FKT_E_PEER_AUTH);
    CHECK(!total);
    sa_world_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_equal_one_call), cmocka_unit_test(lanes_in_threads),     cmocka_unit_test(out_of_order),
        cmocka_unit_test(one_job_twice),        cmocka_unit_test(numbers_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
