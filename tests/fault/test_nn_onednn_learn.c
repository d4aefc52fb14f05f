/* SPDX-License-Identifier: Apache-2.0 */
/* Fails the 1st, 2nd, 3rd ... allocation of planning a learner on oneDNN, a step on it, and reading and writing its
 * arrays, until it succeeds; nothing may leak. The network has every kind of step. */
#include "tests/support/learner_case.h"
#include "tests/support/sweep.h"

static struct fkt_net net;
static struct fkt_learner_spec spec = {
    .batch = 2, .height = 8, .width = 8, .precision = FKT_PRECISION_F32, .threads = 2, .norm_momentum = 0.1F};

static void build(struct fkt_net *n)
{
    uint32_t x, y;
    fkt_net_init(n, 3);
    x = net_pool(n, net_relu(n, CONV(0, 3, 40, 3, 1, 1, 1, 1)), 3, 1, 1);
    y = net_block(n, x, 40, 40, 1);
    y = net_sum(n, CONV(net_block(n, y, 40, 40, 2), 40, 40, 1, 1, 0, 1, 0), net_pool(n, y, 2, 2, 0));
    net_bn(n, y, 40); /* nobody reads it */
    net_end(n, net_relu(n, y), 40, 10);
}

static fkt_status learn(void)
{
    static float in[2 * 3 * 8 * 8], out[2 * 10], array[40 * 40 * 9];
    const struct fkt_optimizer sgd = {.rate = 0.1F, .momentum = 0.9F};
    struct fkt_learner *l = NULL;
    fkt_status st;
    FKT_TRY(fkt_learner_new(&l, &fkt_learner_onednn, &net, &spec));
    for (uint32_t s = 0; s < net.n_slots; s++) FKT_TRY(fkt_learner_read(l, FKT_WEIGHT, s, array));
    FKT_TRY(fkt_learner_write(l, FKT_WEIGHT, 0, array));
    FKT_TRY(fkt_learner_forward(l, in, out));
    FKT_TRY(fkt_learner_backward(l, out));
    FKT_TRY(fkt_learner_step(l, &sgd));
    FKT_TRY(fkt_learner_average(l, 0));
    FKT_TRY(fkt_learner_read(l, FKT_AVERAGE, 0, array));
out:
    fkt_learner_free(l);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    build(&net);
    CHECK_OK(fkt_net_status(&net));
    CHECK(sweep_allocations(learn, NULL) > 60);
    fkt_net_clear(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
