/* SPDX-License-Identifier: Apache-2.0 */
/* Fails the 1st, 2nd, 3rd ... allocation of planning and running on oneDNN until it succeeds; nothing may leak. The
 * network has every kind of step: fused and bare convolutions, folded and plain norms, copies, scratchpads. */
#include "nn/engine.h"
#include "tests/support/build_net.h"
#include "tests/support/random_weights.h"
#include "tests/support/sweep.h"

static struct fkt_net net;
static struct random_weights weights;
static struct fkt_engine_spec spec = {.batch = 2, .height = 8, .width = 8, .precision = FKT_PRECISION_F32};

static void build(struct fkt_net *n)
{
    uint32_t x, y;
    fkt_net_init(n, 3);
    x = net_conv3(n, 0, 3, 60);
    y = net_conv(n, x, 60, 60, (struct net_window){3, 1, 1, 3, 1}); /* groups that no block fits */
    y = net_one(n, FKT_OP_SILU, net_sum(n, net_norm(n, y, FKT_OP_BATCH_NORM, 60, 1), x));
    x = net_sum(n, net_norm(n, net_conv3(n, y, 60, 60), FKT_OP_RMS_NORM, 60, 1), y);
    x = net_attention(n, net_norm(n, x, FKT_OP_BATCH_NORM, 60, 1), 5);
    x = net_one(n, FKT_OP_RELU, fkt_net_move(n, FKT_OP_UPSAMPLE, x, 2));
    net_sum(n, net_conv3(n, x, 20, 20), x);
}

static fkt_status plan_and_run(void)
{
    static float in[2 * 3 * 8 * 8], out[2 * 20 * 16 * 16];
    struct fkt_engine *e = NULL;
    fkt_status st;
    FKT_TRY(fkt_engine_new(&e, &fkt_backend_onednn, &net, weights.bound, &spec));
    FKT_TRY(fkt_engine_run(e, in, 2, out));
out:
    fkt_engine_free(e);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    build(&net);
    CHECK_OK(fkt_net_status(&net));
    random_weights_init(&weights, &net, 1);
    CHECK(sweep_allocations(plan_and_run, NULL) > 20);
    spec.low_memory = 1;
    CHECK(sweep_allocations(plan_and_run, NULL) > 20);
    random_weights_release(&weights);
    fkt_net_clear(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
