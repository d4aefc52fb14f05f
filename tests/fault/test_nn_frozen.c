/* SPDX-License-Identifier: Apache-2.0 */
/* Fails the 1st, 2nd, 3rd ... allocation of joining two networks, planning a frozen learner on both backends and
 * differentiating by the input; and of holding images and taking steps of Adam; until it succeeds. Nothing may leak. */
#include "tests/support/frozen_problems.h"
#include "tests/support/sweep.h"

static const struct fkt_learner_backend *backend;
static struct fkt_net parts[2];

static fkt_status differentiate(void)
{
    static float in[2 * 6 * 4 * 6], out[2 * 7], array[24 * 24 * 9];
    const struct fkt_learner_spec spec = {.batch = 2, .height = 4, .width = 6, .threads = 2, .frozen = 1};
    struct fkt_learner *l = NULL;
    struct fkt_net n;
    fkt_status st;
    fkt_net_init(&n, 6);
    fkt_net_append(&n, fkt_net_append(&n, 0, &parts[0], parts[0].n_ops, "a."), &parts[1], parts[1].n_ops, "b.");
    FKT_TRY(fkt_net_status(&n));
    FKT_TRY(fkt_learner_new(&l, backend, &n, &spec));
    FKT_TRY(fkt_learner_write(l, FKT_WEIGHT, 0, array));
    FKT_TRY(fkt_learner_forward(l, in, out));
    FKT_TRY(fkt_learner_backward_input(l, out, in));
out:
    fkt_learner_free(l);
    fkt_net_clear(&n);
    return st;
}

/* The first part: 6 channels to 6, batch norm and group norm; the second has every operation that moves numbers. */
static void build(void)
{
    struct fkt_net *n = &parts[0];
    uint32_t x;
    fkt_net_init(n, 6);
    x = net_relu(n, net_bn(n, CONV(0, 6, 24, 3, 1, 1, 1, 1), 24));
    x = net_one(n, FKT_OP_SILU, net_norm(n, x, FKT_OP_GROUP_NORM, 24, 4));
    net_sum(n, CONV(x, 24, 6, 3, 1, 1, 1, 0), 0);
    frozen_moves(&parts[1]);
    CHECK_OK(fkt_net_status(&parts[0]));
    CHECK_OK(fkt_net_status(&parts[1]));
}

static fkt_status train(void)
{
    static const uint8_t rgb[3 * 8 * 8 * 3];
    static const uint32_t label[3] = {0, 1, 2};
    static const float value[3][256], soft[3 * 10];
    const struct fkt_held images = {.rgb = rgb, .label = label, .teacher = soft, .n = 3, .value = value};
    struct fkt_held fewer = images;
    static const struct fkt_view_at view[4] = {{.index = 2}, {.index = 1, .flip = 1}, {.index = 0}, {.index = 1}};
    static const struct fkt_planned_step step[2] = {
        {.optimizer =
             {.kind = FKT_OPTIMIZER_ADAM, .rate = 0.1F, .beta1 = 0.9F, .beta2 = 0.9F, .epsilon = 1e-8F, .step = 1},
         .average = 0},
        {.optimizer = {.rate = 0.1F}, .average = -1}};
    const struct fkt_epoch_steps plan = {
        .steps = 2, .view = view, .step = step, .loss = {.temperature = 2, .share = 0.5}};
    const struct fkt_learner_spec spec = {.batch = 2, .height = 8, .width = 8, .threads = 1, .norm_momentum = 0.1F};
    struct fkt_learner *l = NULL;
    struct fkt_net n;
    double loss;
    uint64_t hits, bad;
    fkt_status st;
    net_resnet8(&n);
    FKT_TRY(fkt_net_status(&n));
    FKT_TRY(fkt_learner_new(&l, &fkt_learner_ref, &n, &spec));
    fewer.n = 2;
    FKT_TRY(fkt_learner_hold(l, &images));
    FKT_TRY(fkt_learner_hold(l, &fewer)); /* replaces what was held */
    FKT_TRY(fkt_learner_hold(l, &images));
    FKT_TRY(fkt_learner_plan_epoch(l, &plan));
    FKT_TRY(fkt_learner_train(l, 2));
    FKT_TRY(fkt_learner_plan_epoch(l, &plan));
    FKT_TRY(fkt_learner_collect(l, &loss, &hits, &bad));
out:
    fkt_learner_free(l);
    fkt_net_clear(&n);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    build();
    backend = &fkt_learner_ref;
    CHECK(sweep_allocations(differentiate, NULL) > 20);
    backend = &fkt_learner_onednn;
    CHECK(sweep_allocations(differentiate, NULL) > 60);
    CHECK(sweep_allocations(train, NULL) > 20);
    fkt_net_clear(&parts[0]);
    fkt_net_clear(&parts[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
