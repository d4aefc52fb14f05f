/* SPDX-License-Identifier: Apache-2.0 */
/* Frozen networks of nn/cuda: result and gradient by the input, against the plain loops of nn/ref. */
#include "tests/support/cuda_case.h"
#include "tests/support/frozen_problems.h"
#include "tests/support/learner_compare.h"

static uint32_t one(struct fkt_net *n, enum fkt_op_kind kind, uint32_t x, float a, float b)
{
    struct fkt_op op = net_op(kind, x);
    op.value[0] = a;
    op.value[1] = b;
    return fkt_net_add(n, &op);
}

/* The decoder of TAESD in small, and a ResNet that judges its images. */
static void decoder_and_resnet(struct fkt_net *n)
{
    uint32_t x, y;
    fkt_net_init(n, 4);
    x = one(n, FKT_OP_SOFT_CLAMP, 0, 3, 0);
    x = net_relu(n, CONV(x, 4, 16, 3, 1, 1, 1, 1));
    y = net_relu(n, CONV(x, 16, 16, 3, 1, 1, 1, 1));
    y = CONV(y, 16, 16, 3, 1, 1, 1, 1);
    x = net_relu(n, net_sum(n, y, x));
    x = CONV(fkt_net_move(n, FKT_OP_UPSAMPLE, x, 2), 16, 16, 3, 1, 1, 1, 0);
    x = one(n, FKT_OP_AFFINE, CONV(x, 16, 3, 3, 1, 1, 1, 1), 1.5F, -0.5F);
    x = net_relu(n, net_bn(n, CONV(x, 3, 16, 3, 1, 1, 1, 0), 16));
    x = net_pool(n, x, 3, 2, 1);
    x = net_block(n, net_block(n, x, 16, 16, 1), 16, 20, 2);
    net_end(n, x, 20, 10);
}
static void group_norms(struct fkt_net *n) /* as decoders of Stable Diffusion have them */
{
    uint32_t x, y;
    fkt_net_init(n, 3);
    x = CONV(0, 3, 16, 3, 1, 1, 1, 1);
    y = net_one(n, FKT_OP_SILU, net_norm(n, x, FKT_OP_GROUP_NORM, 16, 4));
    y = net_relu(n, net_norm(n, CONV(y, 16, 24, 3, 1, 1, 1, 1), FKT_OP_GROUP_NORM, 24, 8));
    x = net_sum(n, CONV(x, 16, 24, 1, 1, 0, 1, 1), y);
    net_linear(n, x, 24 * 6 * 7, 12);
}
static void channels_mixed(struct fkt_net *n) /* odd numbers of channels in operations that mix them: no padding */
{
    uint32_t x, y;
    fkt_net_init(n, 5);
    x = net_norm(n, CONV(0, 5, 12, 1, 1, 0, 1, 1), FKT_OP_RMS_NORM, 12, 1);
    y = fkt_net_move(n, FKT_OP_SHUFFLE, x, 2);
    y = fkt_net_move(n, FKT_OP_UNSHUFFLE, y, 2);
    x = net_one(n, FKT_OP_GLU, net_sum(n, x, y));
    x = fkt_net_plain(n, FKT_OP_CONCAT, x, 0, 0);
    x = fkt_net_plain(n, FKT_OP_CONCAT, x, x, 0);
    net_norm(n, CONV(x, 22, 9, 3, 2, 1, 1, 1), FKT_OP_GROUP_NORM, 9, 3);
}
static void many_readers(struct fkt_net *n) /* a value added to itself, convolutions that add; one with no reader */
{
    uint32_t x, y, z;
    fkt_net_init(n, 8);
    x = net_sum(n, 0, 0);
    y = net_relu(n, x);
    z = net_sum(n, CONV(x, 8, 8, 3, 1, 1, 1, 0), CONV(y, 8, 8, 1, 1, 0, 1, 1));
    net_bn(n, z, 8);
    z = net_sum(n, net_sum(n, z, x), net_relu(n, net_bn(n, x, 8)));
    z = net_sum(n, CONV(x, 8, 8, 3, 1, 1, 1, 0), z);
    net_sum(n, net_one(n, FKT_OP_MEAN, z), net_linear(n, 0, 8 * 5 * 4, 8));
}
static void relu_alone(struct fkt_net *n) /* the result is a fused ReLU's */
{
    fkt_net_init(n, 3);
    net_relu(n, net_bn(n, CONV(0, 3, 6, 3, 1, 1, 1, 0), 6));
}
static void one_add(struct fkt_net *n) /* the gradient by the input is that of the result */
{
    fkt_net_init(n, 3);
    net_sum(n, 0, net_one(n, FKT_OP_SILU, 0));
}

static const struct problem nets[] = {
    {"decoder and ResNet", decoder_and_resnet, 5, 6},
    {"group norms", group_norms, 6, 7},
    {"channels mixed", channels_mixed, 4, 6},
    {"many readers", many_readers, 5, 4},
    {"a ReLU", relu_alone, 6, 5},
    {"an addition", one_add, 3, 3},
    {"moves", frozen_moves, 4, 6},
    {"EfficientNet-Lite in small", frozen_lite, 10, 7},
    {"groups", frozen_grouped, 8, 8},
};
enum { NETS = sizeof nets / sizeof *nets };

/* A learner that ran forward and backward once. */
struct frozen {
    struct learner_case c;
    float *din;
};

static void frozen_init(struct frozen *f, const struct problem *k, const struct fkt_learner_backend *backend,
                        uint32_t batch, enum fkt_precision precision)
{
    frozen_case_init(&f->c, k, backend, batch, precision, 1);
    f->din = frozen_case_run(&f->c);
}

static void frozen_release(struct frozen *f)
{
    learner_case_release(&f->c);
    fkt_free(f->din);
}

static void f32_agrees(void **state)
{
    (void)state;
    for (int t = 0; t < NETS * CUDA_ORDERS; t++) {
        const struct problem *k = &nets[t % NETS];
        struct frozen a, b;
        double of_out, of_din;
        cuda_order(t / NETS);
        frozen_init(&a, k, &fkt_learner_cuda, 3, FKT_PRECISION_F32);
        frozen_init(&b, k, &fkt_learner_ref, 3, FKT_PRECISION_F32);
        of_out = distance(a.c.out, b.c.out, a.c.n_out);
        of_din = distance(a.din, b.din, a.c.n_in);
        if (!(of_out <= 2e-6 && of_din <= 1e-5)) fail_msg("%s: %.3g, by the input %.3g", k->name, of_out, of_din);
        frozen_release(&a);
        frozen_release(&b);
    }
    cuda_order(0);
}

/* From the answer in f32 at most three times as far as the plain loops in bf16, and 2e-2. */
static void bf16_agrees(void **state)
{
    (void)state;
    for (int t = 0; t < NETS; t++) {
        struct frozen a, b, exact;
        double got, want;
        frozen_init(&a, &nets[t], &fkt_learner_cuda, 2, FKT_PRECISION_BF16);
        frozen_init(&b, &nets[t], &fkt_learner_ref, 2, FKT_PRECISION_BF16);
        frozen_init(&exact, &nets[t], &fkt_learner_ref, 2, FKT_PRECISION_F32);
        got = distance(a.din, exact.din, a.c.n_in);
        want = distance(b.din, exact.din, a.c.n_in);
        if (!(got <= 2e-2 + 3 * want)) fail_msg("%s: %.3g, plain loops %.3g", nets[t].name, got, want);
        CHECK(distance(a.c.out, exact.c.out, a.c.n_out) <= 2e-2 + 3 * distance(b.c.out, exact.c.out, a.c.n_out));
        frozen_release(&a);
        frozen_release(&b);
        frozen_release(&exact);
    }
}

/* A second pass, and one after a weight and a statistic were written, are right too. */
static void passes_repeat(void **state)
{
    struct frozen a, b;
    float *old = NULL;
    int weights = 0, statistics = 0;
    (void)state;
    frozen_init(&a, &nets[0], &fkt_learner_cuda, 2, FKT_PRECISION_BF16);
    frozen_init(&b, &nets[0], &fkt_learner_cuda, 2, FKT_PRECISION_BF16);
    CHECK_OK(fkt_learner_forward(a.c.l, a.c.in, a.c.out));
    CHECK_OK(fkt_learner_backward_input(a.c.l, a.c.dout, a.din));
    CHECK(!memcmp(a.din, b.din, a.c.n_in * sizeof *a.din));
    for (uint32_t s = 0; s < a.c.net.n_slots; s++) {
        size_t count = fkt_slot_count(&a.c.net.slot[s]);
        float *zero = NULL;
        if (a.c.net.slot[s].rank > 1) weights++;
        else if (strstr(a.c.net.slot[s].name[0], "var")) statistics++;
        else continue;
        CHECK_OK(fkt_alloc(&old, count));
        CHECK_OK(fkt_alloc(&zero, count));
        CHECK_OK(fkt_learner_read(a.c.l, FKT_WEIGHT, s, old));
        CHECK_OK(fkt_learner_write(a.c.l, FKT_WEIGHT, s, zero));
        CHECK_OK(fkt_learner_forward(a.c.l, a.c.in, a.c.out));
        CHECK(memcmp(a.c.out, b.c.out, a.c.n_out * sizeof *a.c.out) != 0);
        CHECK_OK(fkt_learner_write(a.c.l, FKT_WEIGHT, s, old));
        fkt_free(old);
        fkt_free(zero);
    }
    CHECK(weights > 10 && statistics > 4);
    CHECK_OK(fkt_learner_forward(a.c.l, a.c.in, a.c.out));
    CHECK(!memcmp(a.c.out, b.c.out, a.c.n_out * sizeof *a.c.out));
    frozen_release(&a);
    frozen_release(&b);
}

static void others_are_refused(void **state)
{
    const struct fkt_learner_spec spec = {.batch = 1, .height = 4, .width = 4, .threads = 1, .frozen = 1};
    struct fkt_learner *l = NULL;
    struct fkt_net net;
    (void)state;
    fkt_net_init(&net, 12);
    net_attention(&net, 0, 4);
    CHECK_STATUS(fkt_learner_new(&l, &fkt_learner_cuda, &net, &spec), FKT_E_ARG);
    CHECK(!l && strstr(fkt_error_text(), "operation 0 of the network (attention) has no backward on a card"));
    fkt_net_clear(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f32_agrees),
        cmocka_unit_test(bf16_agrees),
        cmocka_unit_test(passes_repeat),
        cmocka_unit_test(others_are_refused),
    };
    if (!cuda_here()) return 77;
    return cuda_nothing_left(cmocka_run_group_tests(tests, NULL, NULL));
}
