/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a server's round fails in turn: the round ends with FKT_E_NOMEM and nothing leaks. The round is
 * recorded once, sites and all, and replayed to a server alone. */
#include "tests/support/sa_world.h"
#include "tests/support/sweep.h"

static struct sa_world world;

static fkt_status replay(void) { return sa_world_replay(&world); }

static void sweep(struct fkt_sa_params p, enum fkt_sa_state lost_in, fkt_status end)
{
    CHECK_OK(sa_world_init(&world, &p, 8));
    sa_world_kill(&world, 2, lost_in);
    CHECK_STATUS(sa_world_run(&world), end);
    CHECK(sweep_allocations(replay, NULL) > 20);
    sa_world_release(&world);
}

static void every_allocation(void **state)
{
    (void)state;
    sweep(sa_params(5, 1, 0, 0, 0, 8, 40), FKT_SA_STATE_MASK, FKT_OK);
    sweep(sa_params(9, 1, 0, 6, 0, 8, 32), FKT_SA_STATE_COIN, FKT_OK);
    sweep(sa_params(9, 0, 0, 6, 0, 8, 32), FKT_SA_STATE_CONFIRM, FKT_E_TOO_FEW);
}

/* A lane that cannot be allocated does not end the round: another try subtracts the masks. */
static void unmask_tries_again(void **state)
{
    struct fkt_sa_params p = sa_params(5, 1, 0, 0, 0, 8, 40);
    size_t n;
    fkt_status st = FKT_E_NOMEM;
    (void)state;
    CHECK_OK(sa_world_init(&world, &p, 8));
    CHECK_OK(sa_world_run_to_unmask(&world));
    for (n = 1; st == FKT_E_NOMEM; n++) {
        CHECK(fkt_sa_server_state(world.server) == FKT_SA_STATE_UNMASK);
        fkt_alloc_fault_at(n, 0);
        st = fkt_sa_server_unmask(world.server);
        fkt_alloc_fault_at(0, 0);
    }
    CHECK_OK(st);
    CHECK(n > 3);
    sa_world_check(&world);
    sa_world_release(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation), cmocka_unit_test(unmask_tries_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
