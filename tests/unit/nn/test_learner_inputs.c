/* SPDX-License-Identifier: Apache-2.0 */
/* What learner.c refuses, and the order in which calls may come. */
#include "nn/learner.h"

#include "base/alloc.h"

#include "tests/support/build_net.h"

static const struct fkt_learner_spec spec = {
    .batch = 2, .height = 4, .width = 4, .precision = FKT_PRECISION_F32, .threads = 1, .norm_momentum = 0.1F};

/* Refused with a sentence that says `why`; nothing leaks. */
static void refuse(struct fkt_net *n, struct fkt_learner_spec s, fkt_status want, const char *why)
{
    struct fkt_learner *l = (struct fkt_learner *)n; /* anything but NULL */
    size_t live = fkt_alloc_live();
    CHECK_STATUS(fkt_learner_new(&l, &fkt_learner_ref, n, &s), want);
    if (!strstr(fkt_error_text(), why)) fail_msg("'%s' does not say '%s'", fkt_error_text(), why);
    CHECK(!l && fkt_alloc_live() == live);
}

static void conv_norm_linear(struct fkt_net *n)
{
    uint32_t x;
    fkt_net_init(n, 3);
    x = net_norm(n, net_conv3(n, 0, 3, 4), FKT_OP_BATCH_NORM, 4, 1);
    net_linear(n, net_one(n, FKT_OP_MEAN, x), 4, 2);
}

static void specs(void **state)
{
    struct fkt_learner_spec s;
    struct fkt_net n;
    (void)state;
    conv_norm_linear(&n);
    s = spec, s.batch = 0, refuse(&n, s, FKT_E_ARG, "a batch is 1 to 65536 images, not 0");
    s = spec, s.batch = 65537, refuse(&n, s, FKT_E_ARG, "not 65537");
    s = spec, s.norm_momentum = -0.1F, refuse(&n, s, FKT_E_ARG, "momentum");
    s = spec, s.norm_momentum = 1.1F, refuse(&n, s, FKT_E_ARG, "momentum");
    s = spec, s.norm_momentum = NAN, refuse(&n, s, FKT_E_ARG, "momentum");
    s = spec, s.precision = (enum fkt_precision)7, refuse(&n, s, FKT_E_ARG, "precision");
    s = spec, s.height = 0, refuse(&n, s, FKT_E_ARG, "cannot take images");
    fkt_net_clear(&n);
    fkt_net_init(&n, 3);
    refuse(&n, spec, FKT_E_ARG, "without operations");
    fkt_net_slot_parts(&n, NULL, 0, 1, 0, 0, 0);
    CHECK(fkt_net_status(&n) == FKT_E_ARG);
    refuse(&n, spec, FKT_E_ARG, "");
    fkt_net_clear(&n);
}

static void operations(void **state)
{
    struct fkt_learner_spec s = spec;
    struct fkt_net n;
    uint32_t x;
    (void)state;
    fkt_net_init(&n, 4);
    x = net_one(&n, FKT_OP_RELU, 0);
    net_one(&n, FKT_OP_SILU, x);
    refuse(&n, spec, FKT_E_ARG, "operation 1 of the network (SiLU) cannot learn");
    fkt_net_clear(&n);
    fkt_net_init(&n, 4);
    net_conv(&n, 0, 4, 4, (struct net_window){3, 1, 1, 2, 0});
    refuse(&n, spec, FKT_E_ARG, "operation 0 of the network (convolution in groups) cannot learn");
    fkt_net_clear(&n);
    fkt_net_init(&n, 4);
    x = net_conv3(&n, net_conv3(&n, 0, 4, 4), 4, 4);
    n.op[1].weight = n.op[0].weight;
    refuse(&n, spec, FKT_E_ARG, "shares weight '0.weight'");
    fkt_net_clear(&n);
    conv_norm_linear(&n);
    s.batch = s.height = s.width = 1;
    refuse(&n, s, FKT_E_ARG, "operation 1 of the network (batch norm) cannot learn: one number has no variance");
    CHECK(strstr(fkt_error_hint(), "larger batch"));
    s.width = 2;
    {
        struct fkt_learner *l = NULL;
        CHECK_OK(fkt_learner_new(&l, &fkt_learner_ref, &n, &s)); /* two have one */
        fkt_learner_free(l);
    }
    fkt_net_clear(&n);
}

/* 64 maps of a million numbers, 65,536 times: 16 TiB for one value alone. */
static void too_little_memory_names_the_batch(void **state)
{
    struct fkt_learner_spec s = {.batch = 65536,
                                 .height = 1024,
                                 .width = 1024,
                                 .precision = FKT_PRECISION_F32,
                                 .threads = 1,
                                 .norm_momentum = 0.1F};
    struct fkt_net n;
    (void)state;
    fkt_net_init(&n, 3);
    net_conv3(&n, 0, 3, 64);
    refuse(&n, s, FKT_E_NOMEM, "a batch of 65536 images of 1024 x 1024 needs about 17152.0 GiB");
    CHECK(strstr(fkt_error_text(), "this machine's memory") && strstr(fkt_error_hint(), "smaller batch"));
    s.precision = FKT_PRECISION_BF16;
    refuse(&n, s, FKT_E_NOMEM, "needs about 8576.0 GiB");
    fkt_net_clear(&n);
}

static fkt_status reached(void **self, const struct fkt_net *net, const struct fkt_shape *shapes,
                          const struct fkt_learner_spec *s, struct fkt_learner_facts *facts)
{
    (void)net;
    (void)shapes;
    (void)s;
    (void)facts;
    *self = NULL;
    return fkt_fail(FKT_E_STATE, "reached");
}

/* A card's memory has nothing to do with the machine's. */
static void memory_of_its_own_is_not_the_machines(void **state)
{
    const struct fkt_learner_spec s = {.batch = 65535, .height = 1024, .width = 1024, .norm_momentum = 0.1F};
    const struct fkt_learner_backend card = {.name = "card", .own_memory = 1, .make = reached};
    struct fkt_learner *l = NULL;
    struct fkt_net n;
    (void)state;
    fkt_net_init(&n, 3);
    net_conv3(&n, 0, 3, 64);
    CHECK_STATUS(fkt_learner_new(&l, &card, &n, &s), FKT_E_STATE);
    CHECK(!l && !strcmp(fkt_error_text(), "reached"));
    fkt_net_clear(&n);
}

/* A limit on the process, which the machine's size does not show: an allocation of the backend fails. */
static void an_allocation_that_fails_names_the_batch(void **state)
{
    struct fkt_net n;
    unsigned named = 0;
    (void)state;
    conv_norm_linear(&n);
    for (size_t at = 1;; at++) {
        struct fkt_learner *l = NULL;
        fkt_status st;
        fkt_alloc_fault_at(at, 0);
        st = fkt_learner_new(&l, &fkt_learner_ref, &n, &spec);
        fkt_alloc_fault_at(0, 0);
        fkt_learner_free(l);
        if (st == FKT_OK) break;
        CHECK_STATUS(st, FKT_E_NOMEM);
        if (!strstr(fkt_error_text(), "learning with a batch of 2 images of 4 x 4: out of memory")) continue;
        CHECK(strstr(fkt_error_hint(), "smaller batch"));
        named++;
    }
    CHECK(named > 2);
    fkt_net_clear(&n);
}

static void calls_have_an_order(void **state)
{
    static const float in[2 * 3 * 16] = {1, 2, 3}, dout[4] = {1};
    const struct fkt_optimizer sgd = {.rate = 0.1F, .momentum = 0.9F};
    struct fkt_learner *l = NULL;
    struct fkt_net n;
    float out[4], x[108] = {0};
    (void)state;
    conv_norm_linear(&n);
    CHECK_OK(fkt_learner_new(&l, &fkt_learner_ref, &n, &spec));
    CHECK_STATUS(fkt_learner_backward(l, dout), FKT_E_STATE);
    CHECK_STATUS(fkt_learner_step(l, &sgd), FKT_E_STATE);
    CHECK_OK(fkt_learner_forward(l, in, out));
    CHECK_STATUS(fkt_learner_step(l, &sgd), FKT_E_STATE);
    CHECK_OK(fkt_learner_backward(l, dout));
    CHECK_STATUS(fkt_learner_backward(l, dout), FKT_E_STATE); /* a forward serves one backward */
    CHECK_OK(fkt_learner_step(l, &sgd));
    CHECK_OK(fkt_learner_forward(l, in, out));
    CHECK_OK(fkt_learner_step(l, &sgd)); /* with the gradients that are there */
    CHECK_STATUS(fkt_learner_backward(l, dout), FKT_E_STATE);
    CHECK_OK(fkt_learner_forward(l, in, out));
    CHECK_OK(fkt_learner_write(l, FKT_WEIGHT, n.op[0].weight, x));
    CHECK_STATUS(fkt_learner_backward(l, dout), FKT_E_STATE); /* with other weights */
    CHECK_OK(fkt_learner_forward(l, in, out));
    CHECK_OK(fkt_learner_write(l, FKT_VELOCITY, n.op[0].weight, x));
    CHECK_OK(fkt_learner_backward(l, dout));
    fkt_learner_free(l);
    fkt_net_clear(&n);
    fkt_learner_free(NULL);
}

static fkt_status cannot_forward(void *self, const float *in, float *out)
{
    (void)self;
    (void)in;
    (void)out;
    return fkt_fail(FKT_E_NUMERIC, "a backend that fails");
}

static fkt_status cannot_backward(void *self, const float *dout, float *din)
{
    (void)self;
    (void)dout;
    (void)din;
    return fkt_fail(FKT_E_NUMERIC, "a backend that fails");
}

/* A failed call has no effect: after a failed forward no backward, after a failed backward no gradients. */
static void what_failed_does_not_count(void **state)
{
    static const float in[2 * 3 * 16] = {1, 2, 3}, dout[4] = {1};
    const struct fkt_optimizer sgd = {.rate = 0.1F, .momentum = 0.9F};
    struct fkt_learner_backend broken = fkt_learner_ref;
    struct fkt_learner *l = NULL;
    struct fkt_net n;
    float out[4];
    (void)state;
    conv_norm_linear(&n);
    CHECK_OK(fkt_learner_new(&l, &broken, &n, &spec));
    CHECK_OK(fkt_learner_forward(l, in, out));
    CHECK_OK(fkt_learner_backward(l, dout));
    CHECK_OK(fkt_learner_forward(l, in, out));
    broken.backward = cannot_backward;
    CHECK_STATUS(fkt_learner_backward(l, dout), FKT_E_NUMERIC);
    CHECK_STATUS(fkt_learner_step(l, &sgd), FKT_E_STATE);
    broken.backward = fkt_learner_ref.backward;
    CHECK_OK(fkt_learner_forward(l, in, out));
    broken.forward = cannot_forward;
    CHECK_STATUS(fkt_learner_forward(l, in, out), FKT_E_NUMERIC);
    CHECK_STATUS(fkt_learner_backward(l, dout), FKT_E_STATE);
    fkt_learner_free(l);
    fkt_net_clear(&n);
}

static void slots(void **state)
{
    static const enum fkt_learned none[] = {FKT_GRADIENT, FKT_VELOCITY};
    struct fkt_learner *l = NULL;
    struct fkt_net n;
    float x[108] = {0};
    (void)state;
    conv_norm_linear(&n);
    CHECK_OK(fkt_learner_new(&l, &fkt_learner_ref, &n, &spec));
    CHECK_STATUS(fkt_learner_read(l, FKT_WEIGHT, (uint32_t)n.n_slots, x), FKT_E_ARG);
    CHECK_STATUS(fkt_learner_write(l, FKT_WEIGHT, FKT_NO_SLOT, x), FKT_E_ARG);
    CHECK_STATUS(fkt_learner_read(l, (enum fkt_learned)FKT_LEARNED_KINDS, 0, x), FKT_E_ARG);
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(fkt_learner_read(l, none[i], n.op[1].mean, x), FKT_E_ARG);
        CHECK_STATUS(fkt_learner_write(l, none[i], n.op[1].var, x), FKT_E_ARG);
        CHECK(strstr(fkt_error_text(), "'1.var' is a statistic"));
        CHECK_OK(fkt_learner_write(l, none[i], n.op[1].weight, x));
    }
    x[5] = NAN;
    CHECK_STATUS(fkt_learner_write(l, FKT_WEIGHT, n.op[0].weight, x), FKT_E_NUMERIC);
    CHECK(strstr(fkt_error_text(), "element 5 of '0.weight'"));
    x[5] = INFINITY;
    CHECK_STATUS(fkt_learner_write(l, FKT_AVERAGE, n.op[0].weight, x), FKT_E_NUMERIC);
    CHECK_STATUS(fkt_learner_read(l, FKT_AVERAGE, 0, x), FKT_E_STATE);
    x[5] = 3;
    CHECK_OK(fkt_learner_write(l, FKT_AVERAGE, n.op[0].weight, x)); /* one that is written is one */
    x[5] = 0;
    CHECK_OK(fkt_learner_read(l, FKT_AVERAGE, n.op[0].weight, x));
    CHECK(x[5] == 3);
    fkt_learner_free(l);
    fkt_net_clear(&n);
}

#define ADAM(at, b1, b2, e, ...)                                                                                       \
    {                                                                                                                  \
        .kind = FKT_OPTIMIZER_ADAM, .rate = 0.1F, .beta1 = b1, .beta2 = b2, .epsilon = e, .step = at, __VA_ARGS__      \
    }

static void steps_have_bounds(void **state)
{
    static const struct fkt_optimizer bad[] = {{.rate = NAN},
                                               {.rate = INFINITY},
                                               {.rate = 0.1F, .momentum = 1},
                                               {.rate = 0.1F, .momentum = -0.1F},
                                               {.rate = 0.1F, .momentum = NAN},
                                               {.rate = 0.1F, .decay = -1},
                                               {.rate = 0.1F, .decay = NAN},
                                               {.rate = 0.1F, .decay = INFINITY},
                                               {.rate = 0.1F, .pull = -1},
                                               {.rate = 0.1F, .pull = NAN},
                                               {.rate = 0.1F, .pull = INFINITY},
                                               {.kind = (enum fkt_optimizer_kind)2, .rate = 0.1F},
                                               ADAM(1, 0.5F, 0.5F, 1e-8F, .decay = -1),
                                               ADAM(0, 0.5F, 0.5F, 1e-8F, .decay = 0),
                                               ADAM(1, 1, 0.5F, 1e-8F, .decay = 0),
                                               ADAM(1, 0.5F, NAN, 1e-8F, .decay = 0),
                                               ADAM(1, 0.5F, -0.5F, 1e-8F, .decay = 0),
                                               ADAM(1, 0.5F, 0.5F, 0, .decay = 0),
                                               ADAM(1, 0.5F, 0.5F, INFINITY, .decay = 0),
                                               ADAM(1, 0.5F, 0.5F, 1e-8F, .pull = 1)};
    struct fkt_learner *l = NULL;
    struct fkt_net n;
    float x[108] = {0};
    (void)state;
    conv_norm_linear(&n);
    CHECK_OK(fkt_learner_new(&l, &fkt_learner_ref, &n, &spec));
    CHECK_OK(fkt_learner_write(l, FKT_GRADIENT, n.op[0].weight, x));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) CHECK_STATUS(fkt_learner_step(l, &bad[i]), FKT_E_ARG);
    CHECK_OK(fkt_learner_step(l, &(const struct fkt_optimizer){.rate = 0}));
    fkt_learner_free(l);
    fkt_net_clear(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(specs),
        cmocka_unit_test(operations),
        cmocka_unit_test(too_little_memory_names_the_batch),
        cmocka_unit_test(memory_of_its_own_is_not_the_machines),
        cmocka_unit_test(an_allocation_that_fails_names_the_batch),
        cmocka_unit_test(calls_have_an_order),
        cmocka_unit_test(what_failed_does_not_count),
        cmocka_unit_test(slots),
        cmocka_unit_test(steps_have_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
