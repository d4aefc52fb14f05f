/* SPDX-License-Identifier: Apache-2.0 */
/* A network that learns, in plain loops: whole networks against central differences, statistics, steps, averages,
 * bfloat16. What is refused: test_learner_inputs.c. */
#include "nn/learner.h"

#include "base/rng.h"
#include "nn/act.h"
#include "nn/loss.h"
#include "tests/support/build_net.h"

#define VECTORS FKT_TEST_VECTORS "/nn/gradients.safetensors"

static const struct fkt_learner_spec small = {
    .batch = 4, .height = 8, .width = 8, .precision = FKT_PRECISION_F32, .threads = 1, .norm_momentum = 0.1F};

static uint32_t conv_norm(struct fkt_net *n, uint32_t x, uint32_t from, uint32_t to, uint32_t kernel, uint32_t stride)
{
    struct net_window w = {kernel, stride, kernel / 2, 1, 0};
    return net_norm(n, net_conv(n, x, from, to, w), FKT_OP_BATCH_NORM, to, 1);
}

static uint32_t pooled(struct fkt_net *n, uint32_t x)
{
    struct fkt_op op = net_op(FKT_OP_MAX_POOL, x);
    op.kernel = 3;
    op.stride = 2;
    op.pad = 1;
    return fkt_net_add(n, &op);
}

/* A residual network with every operation that learns, a value that three operations read, and one added to itself.
 * `kinks` 0: without ReLU and max-pool, smooth everywhere. */
static void residual(struct fkt_net *n, int kinks)
{
    uint32_t x, y;
    fkt_net_init(n, 3);
    x = conv_norm(n, 0, 3, 4, 3, 1);
    if (kinks) x = pooled(n, net_one(n, FKT_OP_RELU, x));
    y = conv_norm(n, x, 4, 4, 3, 1);
    if (kinks) y = net_one(n, FKT_OP_RELU, y);
    y = net_sum(n, conv_norm(n, y, 4, 4, 3, 1), x);
    if (kinks) y = net_one(n, FKT_OP_RELU, y);
    x = net_sum(n, conv_norm(n, y, 4, 6, 3, 2), conv_norm(n, y, 4, 6, 1, 2));
    if (kinks) x = net_one(n, FKT_OP_RELU, x);
    x = net_sum(n, x, x);
    net_linear(n, net_one(n, FKT_OP_MEAN, x), 6, 5);
    CHECK_OK(fkt_net_status(n));
}

static float *random_numbers(size_t n, uint64_t seed, double size)
{
    struct fkt_rng r;
    float *x = NULL;
    CHECK_OK(fkt_alloc(&x, n));
    fkt_rng_init(&r, seed, 2);
    for (size_t i = 0; i < n; i++) x[i] = (float)((2 * fkt_rng_unit(&r) - 1) * size);
    return x;
}

/* A learner with random weights, an input, and the direction along which its output is measured. */
struct bench {
    struct fkt_net net;
    struct fkt_learner *l;
    size_t n_in, n_out;
    float *in, *out, *dout;
};

static void bench_init(struct bench *b, int kinks, const struct fkt_learner_spec *spec)
{
    residual(&b->net, kinks);
    CHECK_OK(fkt_learner_new(&b->l, &fkt_learner_ref, &b->net, spec));
    for (uint32_t s = 0; s < b->net.n_slots; s++) {
        const struct fkt_slot *slot = &b->net.slot[s];
        size_t count = fkt_slot_count(slot);
        float *w = random_numbers(count, s, slot->rank > 1 ? sqrt(3.0 * slot->shape[0] / (double)count) : 0.5);
        for (size_t i = 0; i < count && slot->rank == 1 && strstr(slot->name[0], "weight"); i++) w[i] += 1;
        if (fkt_learner_is_parameter(b->l, s)) CHECK_OK(fkt_learner_write(b->l, FKT_WEIGHT, s, w));
        fkt_free(w);
    }
    b->n_in = (size_t)spec->batch * 3 * spec->height * spec->width;
    b->n_out = (size_t)spec->batch * 5;
    b->in = random_numbers(b->n_in, 1000, 1);
    b->dout = random_numbers(b->n_out, 1001, 1);
    CHECK_OK(fkt_alloc(&b->out, b->n_out));
}

static void bench_release(struct bench *b)
{
    fkt_learner_free(b->l);
    fkt_net_clear(&b->net);
    fkt_free(b->in);
    fkt_free(b->out);
    fkt_free(b->dout);
}

static float *read_slot(const struct bench *b, enum fkt_learned what, uint32_t slot)
{
    float *x = NULL;
    CHECK_OK(fkt_alloc(&x, fkt_slot_count(&b->net.slot[slot])));
    CHECK_OK(fkt_learner_read(b->l, what, slot, x));
    return x;
}

/* <dout, forward> with slot = w + h u. */
static double height(struct bench *b, uint32_t slot, const float *w, const float *u, double h)
{
    size_t n = fkt_slot_count(&b->net.slot[slot]);
    float *moved = NULL;
    double sum = 0;
    CHECK_OK(fkt_alloc(&moved, n));
    for (size_t i = 0; i < n; i++) moved[i] = (float)((double)w[i] + h * (double)u[i]);
    CHECK_OK(fkt_learner_write(b->l, FKT_WEIGHT, slot, moved));
    CHECK_OK(fkt_learner_forward(b->l, b->in, b->out));
    for (size_t i = 0; i < b->n_out; i++) sum += (double)b->dout[i] * b->out[i];
    fkt_free(moved);
    return sum;
}

/* Slope along a random direction of a whole slot, against the gradient; over the gradient's length. */
static double slope_error(struct bench *b, uint32_t slot, double h)
{
    size_t n = fkt_slot_count(&b->net.slot[slot]);
    float *w = read_slot(b, FKT_WEIGHT, slot), *g = read_slot(b, FKT_GRADIENT, slot);
    float *u = random_numbers(n, 77 + slot, 1);
    double length = 0, inner = 0, norm = 0, d[2];
    for (size_t i = 0; i < n; i++) length += (double)u[i] * u[i];
    for (size_t i = 0; i < n; i++) u[i] = (float)(u[i] / sqrt(length));
    for (size_t i = 0; i < n; i++) {
        inner += (double)g[i] * u[i];
        norm += (double)g[i] * g[i];
    }
    for (int k = 0; k < 2; k++, h /= 2) d[k] = (height(b, slot, w, u, h) - height(b, slot, w, u, -h)) / (2 * h);
    CHECK_OK(fkt_learner_write(b->l, FKT_WEIGHT, slot, w));
    fkt_free(w);
    fkt_free(g);
    fkt_free(u);
    CHECK(norm > 1e-6);
    return fabs((4 * d[1] - d[0]) / 3 - inner) / sqrt(norm);
}

static void check_slopes(int kinks, double h, double tolerance)
{
    struct bench b;
    bench_init(&b, kinks, &small);
    CHECK_OK(fkt_learner_forward(b.l, b.in, b.out));
    CHECK_OK(fkt_learner_backward(b.l, b.dout));
    for (uint32_t s = 0; s < b.net.n_slots; s++) {
        double e;
        if (!fkt_learner_is_parameter(b.l, s)) continue;
        e = slope_error(&b, s, h);
        if (!(e <= tolerance)) fail_msg("'%s': slope is off by %.3g of the gradient", b.net.slot[s].name[0], e);
    }
    bench_release(&b);
}

/* Rounding of values to float, over the step: some 1e-5. Kinks that lie within the step add up to some 1e-4. */
static void smooth_networks_have_their_slopes(void **state)
{
    (void)state;
    check_slopes(0, 0.05, 2e-4);
}

static void networks_with_kinks_too(void **state)
{
    (void)state;
    check_slopes(1, 0.004, 2e-3);
}

/* 1x1 convolution with weight 1 and a batch norm: (batch, 1, 2, 2) -> the same. */
static void one_norm(struct fkt_net *n)
{
    fkt_net_init(n, 1);
    net_norm(n, net_conv(n, 0, 1, 1, (struct net_window){1, 1, 0, 1, 0}), FKT_OP_BATCH_NORM, 1, 1);
}

static void statistics_move(void **state)
{
    static const struct fkt_learner_spec spec = {
        .batch = 2, .height = 2, .width = 2, .precision = FKT_PRECISION_F32, .norm_momentum = 0.25F};
    static const float in[8] = {1, 2, 3, 4, 5, 6, 7, 8}; /* mean 4.5, variance 5.25, unbiased 6 */
    struct fkt_learner *l = NULL;
    struct fkt_net n;
    float out[8], mean, var, one = 1, two = 2;
    (void)state;
    one_norm(&n);
    CHECK_OK(fkt_learner_new(&l, &fkt_learner_ref, &n, &spec));
    CHECK_OK(fkt_learner_write(l, FKT_WEIGHT, n.op[0].weight, &one));
    CHECK_OK(fkt_learner_write(l, FKT_WEIGHT, n.op[1].weight, &two));
    CHECK_OK(fkt_learner_write(l, FKT_WEIGHT, n.op[1].bias, &one));
    CHECK_OK(fkt_learner_read(l, FKT_WEIGHT, n.op[1].mean, &mean));
    CHECK_OK(fkt_learner_read(l, FKT_WEIGHT, n.op[1].var, &var));
    CHECK(mean == 0 && var == 1);
    CHECK_OK(fkt_learner_forward(l, in, out));
    for (int i = 0; i < 8; i++) CHECK_NEAR((double)out[i], (in[i] - 4.5) / sqrt(5.25 + 1e-5) * 2 + 1, 1e-6);
    CHECK_OK(fkt_learner_forward(l, in, out));
    CHECK_OK(fkt_learner_read(l, FKT_WEIGHT, n.op[1].mean, &mean));
    CHECK_OK(fkt_learner_read(l, FKT_WEIGHT, n.op[1].var, &var));
    CHECK_NEAR((double)mean, 0.75 * 1.125 + 1.125, 1e-6);
    CHECK_NEAR((double)var, 0.75 * (0.75 + 1.5) + 1.5, 1e-6);
    CHECK(!fkt_learner_is_parameter(l, n.op[1].mean) && !fkt_learner_is_parameter(l, n.op[1].var));
    CHECK(fkt_learner_is_parameter(l, n.op[1].weight) && !fkt_learner_is_parameter(l, 99));
    fkt_learner_free(l);
    fkt_net_clear(&n);
}

/* A linear map alone, to apply chosen numbers. */
static struct fkt_learner *linear(struct fkt_net *n, uint32_t from, uint32_t to, uint32_t batch,
                                  enum fkt_precision precision)
{
    const struct fkt_learner_spec spec = {
        .batch = batch, .height = 1, .width = 1, .precision = precision, .threads = 1, .norm_momentum = 0.1F};
    struct fkt_learner *l = NULL;
    fkt_net_init(n, from);
    net_linear(n, 0, from, to);
    CHECK_OK(fkt_learner_new(&l, &fkt_learner_ref, n, &spec));
    return l;
}

/* Three steps against PyTorch's. */
static void check_steps(const struct fkt_safetensors *f, const char *name)
{
    float weight[8], g[24], after[24], value[4], got[8];
    const char *const role[] = {"weight", "g", "after", "value"};
    float *const to[] = {weight, g, after, value};
    struct fkt_net n;
    struct fkt_learner *l = linear(&n, 8, 1, 1, FKT_PRECISION_F32);
    struct fkt_optimizer sgd;
    for (int i = 0; i < 4; i++) {
        char full[64];
        snprintf(full, sizeof full, "sgd/%s/%s", name, role[i]);
        CHECK_OK(fkt_tensor_copy_f32(to[i], fkt_safetensors_find(f, full)));
    }
    sgd = (struct fkt_optimizer){.rate = value[0], .momentum = value[1], .decay = value[2], .nesterov = value[3] > 0};
    CHECK_OK(fkt_learner_write(l, FKT_WEIGHT, 0, weight));
    for (int k = 0; k < 3; k++) {
        CHECK_OK(fkt_learner_write(l, FKT_GRADIENT, 0, g + 8 * k));
        CHECK_OK(fkt_learner_step(l, &sgd));
        CHECK_OK(fkt_learner_read(l, FKT_WEIGHT, 0, got));
        for (int i = 0; i < 8; i++) CHECK_NEAR((double)got[i], (double)after[8 * k + i], 1e-6);
    }
    fkt_learner_free(l);
    fkt_net_clear(&n);
}

static void steps_are_pytorchs(void **state)
{
    static const char *const names[] = {"plain", "momentum", "decay", "nesterov"};
    struct fkt_safetensors *f = NULL;
    (void)state;
    CHECK_OK(fkt_safetensors_open(&f, VECTORS));
    for (int i = 0; i < 4; i++) check_steps(f, names[i]);
    fkt_safetensors_free(f);
}

/* In numbers that one can follow: w 1, gradient 2, rate 1/2, momentum 1/2, decay 1/4. */
static void a_step_by_hand(void **state)
{
    struct fkt_net n;
    struct fkt_learner *l = linear(&n, 1, 1, 1, FKT_PRECISION_F32);
    const struct fkt_optimizer plain = {.rate = 0.5F, .momentum = 0.5F, .decay = 0.25F},
                               nesterov = {.rate = 0.5F, .momentum = 0.5F, .decay = 0.25F, .nesterov = 1};
    float w = 1, g = 2, v = 4;
    (void)state;
    CHECK_OK(fkt_learner_write(l, FKT_WEIGHT, 0, &w));
    CHECK_OK(fkt_learner_write(l, FKT_GRADIENT, 0, &g));
    CHECK_OK(fkt_learner_write(l, FKT_VELOCITY, 0, &v));
    CHECK_OK(fkt_learner_step(l, &plain)); /* v = 2 + 2.25; w = 1 - 2.125 */
    CHECK_OK(fkt_learner_read(l, FKT_VELOCITY, 0, &v));
    CHECK_OK(fkt_learner_read(l, FKT_WEIGHT, 0, &w));
    CHECK(v == 4.25F && w == -1.125F);
    CHECK_OK(fkt_learner_step(l, &nesterov)); /* g' = 1.71875; v = 3.84375; w -= (1.71875 + 1.921875) / 2 */
    CHECK_OK(fkt_learner_read(l, FKT_VELOCITY, 0, &v));
    CHECK_OK(fkt_learner_read(l, FKT_WEIGHT, 0, &w));
    CHECK(v == 3.84375F && w == -1.125F - 1.8203125F);
    CHECK_OK(fkt_learner_read(l, FKT_WEIGHT, 1, &w)); /* the bias has moved by nothing: 0, without a gradient */
    CHECK(w == 0);
    fkt_learner_free(l);
    fkt_net_clear(&n);
}

/* w 1, gradient 2, average 5, rate 1/2, pull 1/4; it needs an average. */
static void a_pulled_step_by_hand(void **state)
{
    struct fkt_net n;
    struct fkt_learner *l = linear(&n, 1, 1, 1, FKT_PRECISION_F32);
    const struct fkt_optimizer sgd = {.rate = 0.5F, .pull = 0.25F};
    float w = 1, g = 2, five = 5;
    (void)state;
    CHECK_OK(fkt_learner_write(l, FKT_WEIGHT, 0, &w));
    CHECK_OK(fkt_learner_write(l, FKT_GRADIENT, 0, &g));
    CHECK_STATUS(fkt_learner_step(l, &sgd), FKT_E_STATE);
    CHECK_OK(fkt_learner_write(l, FKT_AVERAGE, 0, &five));
    CHECK_OK(fkt_learner_step(l, &sgd)); /* g' = 2 - 1; w = 1 - 1 / 2 */
    CHECK_OK(fkt_learner_read(l, FKT_WEIGHT, 0, &w));
    CHECK(w == 0.5F);
    CHECK_OK(fkt_learner_read(l, FKT_AVERAGE, 0, &w));
    CHECK(w == 5);
    fkt_learner_free(l);
    fkt_net_clear(&n);
}

static void statistics_take_no_step(void **state)
{
    const struct fkt_optimizer sgd = {.rate = 0.01F, .decay = 0.5F};
    struct bench b;
    (void)state;
    bench_init(&b, 1, &small);
    CHECK_OK(fkt_learner_forward(b.l, b.in, b.out));
    CHECK_OK(fkt_learner_backward(b.l, b.dout));
    for (uint32_t s = 0; s < b.net.n_slots; s++) {
        float *before = read_slot(&b, FKT_WEIGHT, s), *after;
        int same;
        CHECK_OK(fkt_learner_step(b.l, &sgd));
        after = read_slot(&b, FKT_WEIGHT, s);
        same = !memcmp(before, after, fkt_slot_count(&b.net.slot[s]) * sizeof *after);
        CHECK(same == !fkt_learner_is_parameter(b.l, s));
        fkt_free(before);
        fkt_free(after);
    }
    bench_release(&b);
}

static void averages(void **state)
{
    struct fkt_net n;
    struct fkt_learner *l = NULL;
    static const struct fkt_learner_spec spec = {
        .batch = 2, .height = 2, .width = 2, .precision = FKT_PRECISION_F32, .norm_momentum = 0.25F};
    float x, y, four = 4;
    (void)state;
    one_norm(&n);
    CHECK_OK(fkt_learner_new(&l, &fkt_learner_ref, &n, &spec));
    CHECK_STATUS(fkt_learner_read(l, FKT_AVERAGE, 0, &x), FKT_E_STATE);
    CHECK_OK(fkt_learner_write(l, FKT_WEIGHT, 0, &four));
    CHECK_OK(fkt_learner_average(l, 0));
    CHECK_OK(fkt_learner_read(l, FKT_AVERAGE, 0, &x));
    CHECK_OK(fkt_learner_read(l, FKT_AVERAGE, n.op[1].var, &y));
    CHECK(x == 4 && y == 1); /* statistics too */
    x = 8;
    CHECK_OK(fkt_learner_write(l, FKT_WEIGHT, 0, &x));
    CHECK_OK(fkt_learner_write(l, FKT_WEIGHT, n.op[1].var, &x));
    CHECK_OK(fkt_learner_average(l, 0.75F));
    CHECK_OK(fkt_learner_read(l, FKT_AVERAGE, 0, &x));
    CHECK_OK(fkt_learner_read(l, FKT_AVERAGE, n.op[1].var, &y));
    CHECK(x == 5 && y == 2.75F);
    CHECK_STATUS(fkt_learner_average(l, 1), FKT_E_ARG);
    CHECK_STATUS(fkt_learner_average(l, -0.5F), FKT_E_ARG);
    CHECK_STATUS(fkt_learner_average(l, NAN), FKT_E_ARG);
    fkt_learner_free(l);
    CHECK_OK(fkt_learner_new(&l, &fkt_learner_ref, &n, &spec)); /* a resumed run brings its average */
    CHECK_OK(fkt_learner_write(l, FKT_AVERAGE, 0, &four));
    CHECK_OK(fkt_learner_average(l, 0.5F));
    CHECK_OK(fkt_learner_read(l, FKT_AVERAGE, 0, &x));
    CHECK(x == 2);
    fkt_learner_free(l);
    fkt_net_clear(&n);
}

static float narrow(double x) { return fkt_from_bf16(fkt_bf16((float)x)); }

/* Input, matrix, result and the gradient from above are rounded; masters, bias and gradients of weights are not. */
static void bfloat16_rounds_what_it_says(void **state)
{
    static const float w[3] = {1.0009765625F, -0.3F, 0.7F}, bias = 0.123456F;
    static const float x[6] = {0.1F, 0.2F, 0.3F, -0.4F, 0.55F, 0.66F}, dy[2] = {1.01F, -0.49F};
    struct fkt_net n;
    struct fkt_learner *l = linear(&n, 3, 1, 2, FKT_PRECISION_BF16);
    float y[2], g[3], master[3], dbias;
    (void)state;
    CHECK_OK(fkt_learner_write(l, FKT_WEIGHT, 0, w));
    CHECK_OK(fkt_learner_write(l, FKT_WEIGHT, 1, &bias));
    CHECK_OK(fkt_learner_forward(l, x, y));
    for (int i = 0; i < 2; i++) {
        double sum = (double)bias;
        for (int j = 0; j < 3; j++) sum += (double)narrow((double)w[j]) * narrow((double)x[3 * i + j]);
        CHECK(y[i] == narrow(sum));
    }
    CHECK_OK(fkt_learner_backward(l, dy));
    CHECK_OK(fkt_learner_read(l, FKT_GRADIENT, 0, g));
    CHECK_OK(fkt_learner_read(l, FKT_GRADIENT, 1, &dbias));
    CHECK(dbias == narrow((double)dy[0]) + narrow((double)dy[1]));
    for (int j = 0; j < 3; j++)
        CHECK_NEAR((double)g[j],
                   (double)narrow((double)dy[0]) * narrow((double)x[j]) +
                       (double)narrow((double)dy[1]) * narrow((double)x[3 + j]),
                   1e-7);
    CHECK_OK(fkt_learner_read(l, FKT_WEIGHT, 0, master));
    assert_memory_equal(master, w, sizeof w);
    fkt_learner_free(l);
    fkt_net_clear(&n);
}

/* Rounding to 8 bits some twenty times: gradients keep their direction. */
static void bfloat16_learns_the_same(void **state)
{
    struct fkt_learner_spec half = small;
    struct bench a, b;
    (void)state;
    half.precision = FKT_PRECISION_BF16;
    bench_init(&a, 1, &small);
    bench_init(&b, 1, &half);
    CHECK_OK(fkt_learner_forward(a.l, a.in, a.out));
    CHECK_OK(fkt_learner_forward(b.l, b.in, b.out));
    CHECK_OK(fkt_learner_backward(a.l, a.dout));
    CHECK_OK(fkt_learner_backward(b.l, b.dout));
    for (uint32_t s = 0; s < a.net.n_slots; s++) {
        double xx = 0, yy = 0, xy = 0;
        float *x, *y;
        if (!fkt_learner_is_parameter(a.l, s)) continue;
        x = read_slot(&a, FKT_GRADIENT, s);
        y = read_slot(&b, FKT_GRADIENT, s);
        for (size_t i = 0; i < fkt_slot_count(&a.net.slot[s]); i++) {
            xx += (double)x[i] * x[i];
            yy += (double)y[i] * y[i];
            xy += (double)x[i] * y[i];
        }
        if (!(xy >= 0.98 * sqrt(xx * yy))) fail_msg("'%s': cosine %.4f", a.net.slot[s].name[0], xy / sqrt(xx * yy));
        fkt_free(x);
        fkt_free(y);
    }
    bench_release(&a);
    bench_release(&b);
}

/* Twenty steps on one batch with random labels: the loss goes down to a third, twice to the same bits. */
static void it_learns_and_repeats(void **state)
{
    static const struct fkt_loss kind = {0, 1, 0};
    static const uint32_t label[4] = {0, 3, 1, 4};
    const struct fkt_optimizer sgd = {.rate = 0.05F, .momentum = 0.9F, .decay = 5e-4F, .nesterov = 1};
    double first[2], last[2];
    (void)state;
    for (int run = 0; run < 2; run++) {
        struct bench b;
        bench_init(&b, 1, &small);
        for (int i = 0; i < 20; i++) {
            CHECK_OK(fkt_learner_forward(b.l, b.in, b.out));
            CHECK_OK(fkt_loss_softmax(&kind, b.out, label, NULL, 4, 5, &last[run], b.dout, NULL));
            if (!i) first[run] = last[run];
            CHECK_OK(fkt_learner_backward(b.l, b.dout));
            CHECK_OK(fkt_learner_step(b.l, &sgd));
        }
        bench_release(&b);
    }
    CHECK(last[0] < first[0] / 3 && first[0] == first[1] && last[0] == last[1]);
}

static void facts_are_reported(void **state)
{
    struct fkt_learner_spec half = small;
    struct bench a, b;
    const struct fkt_learner_facts *f;
    (void)state;
    half.precision = FKT_PRECISION_BF16;
    bench_init(&a, 1, &small);
    bench_init(&b, 1, &half);
    f = fkt_learner_facts(a.l);
    CHECK(f->convolutions == 5 * 3 - 1 && !f->winograd); /* the input needs no gradient */
    CHECK(f->flops == 2 * (64 * 4 * 27 + 16 * (4 * 36 * 2) + 4 * (6 * 36 + 6 * 4) + 6 * 5));
    CHECK(f->weight_bytes == 16 * fkt_net_parameters(&a.net));
    CHECK(fkt_learner_facts(b.l)->weight_bytes == 20 * fkt_net_parameters(&a.net));
    { /* every value and its gradient */
        struct fkt_shape shapes[32];
        uint64_t numbers = 0;
        CHECK(a.net.n_ops < 32);
        CHECK_OK(fkt_net_shapes(&a.net, small.height, small.width, shapes));
        for (size_t i = 0; i <= a.net.n_ops; i++) numbers += (uint64_t)shapes[i].c * shapes[i].h * shapes[i].w;
        CHECK(f->arena_bytes == 2 * sizeof(float) * small.batch * numbers);
    }
    bench_release(&a);
    bench_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smooth_networks_have_their_slopes),
        cmocka_unit_test(networks_with_kinks_too),
        cmocka_unit_test(statistics_move),
        cmocka_unit_test(steps_are_pytorchs),
        cmocka_unit_test(a_step_by_hand),
        cmocka_unit_test(a_pulled_step_by_hand),
        cmocka_unit_test(statistics_take_no_step),
        cmocka_unit_test(averages),
        cmocka_unit_test(bfloat16_rounds_what_it_says),
        cmocka_unit_test(bfloat16_learns_the_same),
        cmocka_unit_test(it_learns_and_repeats),
        cmocka_unit_test(facts_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
