/* SPDX-License-Identifier: Apache-2.0 */
/* Fails the 1st, 2nd, 3rd ... allocation of opening a site's side of a task, fresh and in the middle of a round;
 * nothing may leak, and nothing that was on disk is lost. What fails inside a round is in test_client_crash.c. */
#include "tests/support/client_world.h"
#include "tests/support/sweep.h"

static struct scratch tmp;
static struct aw w;

static fkt_status open_and_close(void)
{
    struct fkt_client_spec spec = aw_spec(&w);
    struct fkt_client *a = NULL;
    fkt_status st = fkt_client_open(&a, &spec);
    fkt_client_close(a);
    return st;
}

static fkt_status open_fresh(void)
{
    fkt_status st;
    aw_forget(&w);
    st = open_and_close();
    return st;
}

static fkt_status write_receipt(void) { return fkt_client_receipt(w.a, scratch_path(&tmp, "receipt"), 1); }

static void every_allocation_may_fail(void **state)
{
    (void)state;
    aw_init(&w, &tmp, FKT_NOISE_PLACE_DISTRIBUTED, NULL);
    CHECK(sweep_allocations(open_fresh, NULL) > 10);
    CHECK_OK(aw_open(&w));
    aw_begin_round(&w, 1);
    for (int i = 0; i < 5; i++) CHECK(aw_step(&w));
    aw_close(&w);
    CHECK(sweep_allocations(open_and_close, NULL) > 20); /* letters are read again */
    CHECK_OK(aw_open(&w));
    CHECK(sweep_allocations(write_receipt, NULL) > 2);
    aw_run(&w);
    assert_int_equal(w.said_twice, 0);
    assert_int_equal(fkt_sa_server_state(w.server), FKT_SA_STATE_UNMASK);
    aw_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    int failed;
    scratch_init(&tmp);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    scratch_release(&tmp);
    return failed;
}
