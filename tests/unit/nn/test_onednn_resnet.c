/* SPDX-License-Identifier: Apache-2.0 */
/* Residual networks for classification in the oneDNN engine against the plain loops: both stems, strided blocks with a
 * 1x1 convolution beside them, batch norms folded, ReLU after the addition, mean and linear at the end; maps of odd
 * sides and sides down to one; f32, low-memory f32 and bf16. Weights come from arrays, as those of a learner do.
 *
 * f32: the largest difference is below 1e-5 of the largest logit; bf16: below 3e-2, as in test_onednn.c. */
#include "base/rng.h"
#include "nn/cpu.h"
#include "nn/engine.h"
#include "tests/support/build_net.h"

#define CONV(x, from, to, ...) net_conv(n, x, from, to, (struct net_window){__VA_ARGS__})

static uint32_t conv_norm(struct fkt_net *n, uint32_t x, uint32_t from, uint32_t to, uint32_t kernel, uint32_t stride)
{
    return net_norm(n, CONV(x, from, to, kernel, stride, kernel / 2, 1, 0), FKT_OP_BATCH_NORM, to, 1);
}

static uint32_t block(struct fkt_net *n, uint32_t x, uint32_t from, uint32_t to, uint32_t stride)
{
    uint32_t y = net_one(n, FKT_OP_RELU, conv_norm(n, x, from, to, 3, stride));
    y = conv_norm(n, y, to, to, 3, 1);
    if (stride != 1 || from != to) x = conv_norm(n, x, from, to, 1, stride);
    return net_one(n, FKT_OP_RELU, net_sum(n, y, x));
}

static void build(struct fkt_net *n, int large_stem, uint32_t width, int stages, int blocks)
{
    uint32_t x, c = width;
    fkt_net_init(n, 3);
    x = net_one(n, FKT_OP_RELU, conv_norm(n, 0, 3, c, large_stem ? 7 : 3, large_stem ? 2 : 1));
    if (large_stem) {
        struct fkt_op pool = net_op(FKT_OP_MAX_POOL, x);
        pool.kernel = 3;
        pool.stride = 2;
        pool.pad = 1;
        x = fkt_net_add(n, &pool);
    }
    for (int i = 0; i < stages; i++)
        for (int k = 0; k < blocks; k++) {
            int widens = i && !k;
            x = block(n, x, c, widens ? 2 * c : c, widens ? 2 : 1);
            if (widens) c *= 2;
        }
    net_linear(n, net_one(n, FKT_OP_MEAN, x), c, 10);
    CHECK_OK(fkt_net_status(n));
}

/* Weights in arrays: a random step of He's size in matrices, norms near the identity. */
struct arrays {
    float *data, **at;
    struct fkt_weights *w;
};

static void arrays_init(struct arrays *a, const struct fkt_net *n)
{
    float *next;
    struct fkt_rng r;
    CHECK_OK(fkt_alloc(&a->at, n->n_slots));
    CHECK_OK(fkt_alloc(&a->data, fkt_net_parameters(n)));
    next = a->data;
    fkt_rng_init(&r, 99, 1);
    for (size_t s = 0; s < n->n_slots; s++) {
        const struct fkt_slot *slot = &n->slot[s];
        size_t count = fkt_slot_count(slot);
        double size = slot->rank > 1 ? sqrt(6.0 * slot->shape[0] / (double)count) : 0.2;
        int near_one = strstr(slot->name[0], "var") || (slot->rank == 1 && strstr(slot->name[0], "weight"));
        a->at[s] = next;
        for (size_t i = 0; i < count; i++) *next++ = (float)((2 * fkt_rng_unit(&r) - 1) * size + near_one);
    }
    CHECK_OK(fkt_weights_from_arrays(&a->w, n, (const float *const *)a->at));
}

static void arrays_release(struct arrays *a)
{
    fkt_weights_free(a->w);
    fkt_free(a->at);
    fkt_free(a->data);
}

/* Both engines on three images, in one batch and a half. Gives the largest difference over the largest logit. */
static double difference(const struct fkt_net *net, const struct fkt_weights *w, struct fkt_engine_spec spec,
                         struct fkt_engine_facts *facts)
{
    enum { IMAGES = 3 };
    struct fkt_engine *fast = NULL, *plain = NULL;
    size_t count = (size_t)IMAGES * 3 * spec.height * spec.width;
    float *in = NULL, got[IMAGES * 10], want[IMAGES * 10];
    double worst = 0, largest = 0;
    struct fkt_rng r;
    CHECK_OK(fkt_alloc(&in, count));
    fkt_rng_init(&r, 5, 0);
    for (size_t i = 0; i < count; i++) in[i] = (float)(2 * fkt_rng_unit(&r) - 1);
    CHECK_OK(fkt_engine_new(&fast, &fkt_backend_onednn, net, w, &spec));
    CHECK_OK(fkt_engine_run(fast, in, IMAGES, got));
    *facts = *fkt_engine_facts(fast);
    spec.batch = 1;
    CHECK_OK(fkt_engine_new(&plain, &fkt_backend_ref, net, w, &spec));
    CHECK_OK(fkt_engine_run(plain, in, IMAGES, want));
    for (size_t i = 0; i < IMAGES * 10; i++) {
        double d = fabs((double)got[i] - (double)want[i]);
        if (!(d <= worst)) worst = d; /* a NaN stays */
        largest = fmax(largest, fabs((double)want[i]));
    }
    CHECK(largest > 1e-3);
    fkt_engine_free(fast);
    fkt_engine_free(plain);
    fkt_free(in);
    return worst / largest;
}

static const uint32_t sides[][2] = {{32, 32}, {17, 23}, {9, 9}, {5, 2}, {1, 1}};
enum { SIDES = sizeof sides / sizeof *sides };

static void compare_all(enum fkt_precision precision, int low_memory, double tolerance)
{
    for (int stem = 0; stem < 2; stem++) {
        struct fkt_net net;
        struct arrays a;
        build(&net, stem, 24, 3, 1); /* 24, 48, 96 channels: half blocks too */
        arrays_init(&a, &net);
        for (int i = 0; i < SIDES; i++) {
            struct fkt_engine_spec spec = {.batch = 2,
                                           .height = sides[i][0],
                                           .width = sides[i][1],
                                           .precision = precision,
                                           .low_memory = low_memory};
            struct fkt_engine_facts facts;
            double d = difference(&net, a.w, spec, &facts);
            if (!(d <= tolerance))
                fail_msg("stem %d, %u x %u: differs by %.3g, allowed %.3g", stem, sides[i][0], sides[i][1], d,
                         tolerance);
        }
        arrays_release(&a);
        fkt_net_clear(&net);
    }
}

static void f32_agrees(void **state)
{
    (void)state;
    compare_all(FKT_PRECISION_F32, 0, 1e-5);
}

static void low_memory_agrees(void **state)
{
    (void)state;
    compare_all(FKT_PRECISION_F32, 1, 1e-5);
}

static void bf16_agrees(void **state)
{
    int possible;
    (void)state;
    CHECK_OK(fkt_cpu_bf16(&possible));
    if (possible) compare_all(FKT_PRECISION_BF16, 0, 3e-2);
}

/* ResNet-18 itself, with the stem for ImageNet at 64 pixels and with that for CIFAR at 16. */
static void resnet18_agrees(void **state)
{
    int half;
    (void)state;
    CHECK_OK(fkt_cpu_bf16(&half));
    for (int stem = 0; stem < 2; stem++) {
        struct fkt_net net;
        struct arrays a;
        struct fkt_engine_facts facts;
        uint32_t side = stem ? 64 : 16;
        build(&net, stem, 64, 4, 2);
        CHECK(fkt_net_parameters(&net) == (stem ? 11191242U : 11183562U)); /* statistics included */
        arrays_init(&a, &net);
        CHECK(difference(
                  &net, a.w,
                  (struct fkt_engine_spec){.batch = 2, .height = side, .width = side, .precision = FKT_PRECISION_F32},
                  &facts) <= 1e-5);
        if (half)
            CHECK(difference(&net, a.w,
                             (struct fkt_engine_spec){
                                 .batch = 2, .height = side, .width = side, .precision = FKT_PRECISION_BF16},
                             &facts) <= 3e-2);
        arrays_release(&a);
        fkt_net_clear(&net);
    }
}

/* Everything between two convolutions goes into the first: what is left are convolutions, pool, mean and linear. */
static void everything_is_fused(void **state)
{
    struct fkt_net net;
    struct arrays a;
    struct fkt_engine_spec spec = {.batch = 2, .height = 32, .width = 32, .precision = FKT_PRECISION_F32};
    struct fkt_engine_facts facts;
    size_t rest = 0;
    (void)state;
    build(&net, 1, 32, 3, 2);
    arrays_init(&a, &net);
    CHECK(difference(&net, a.w, spec, &facts) <= 1e-5);
    for (size_t i = 0; i < net.n_ops; i++) {
        enum fkt_op_kind k = net.op[i].kind;
        rest += k == FKT_OP_BATCH_NORM || k == FKT_OP_ADD || k == FKT_OP_RELU;
    }
    CHECK(facts.fused == rest);
    CHECK(facts.convolutions == 1 + 2 * 2 + 2 * (3 + 2) + 1); /* stem, first stage, two more; the linear map is one */
    arrays_release(&a);
    fkt_net_clear(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f32_agrees),      cmocka_unit_test(low_memory_agrees),   cmocka_unit_test(bf16_agrees),
        cmocka_unit_test(resnet18_agrees), cmocka_unit_test(everything_is_fused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
