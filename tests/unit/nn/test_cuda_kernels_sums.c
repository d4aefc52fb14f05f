/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of nn/cuda/kernels.h that sum (norms, pools, attention, depthwise convolutions) against nn/ref, and those
 * that carry images and latents to the card and back. */
#include "nn/cuda/kernels.h"
#include "nn/ref/ops.h"

#include "tests/support/cuda_case.h"

enum { ROOM = 1 << 19, VECTOR = 1 << 16 };
static float input[ROOM], more[ROOM], want[ROOM], got[ROOM], weights[VECTOR], biases[VECTOR], scratch[VECTOR];

static const struct fkt_shape shapes[] = {{3, 5, 7},  {4, 4, 4},  {5, 3, 1},    {8, 2, 6},    {31, 3, 3},
                                          {64, 4, 4}, {96, 1, 1}, {16, 17, 19}, {1024, 1, 2}, {2048, 1, 1}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void fill(float *x, size_t n, uint64_t seed, float low, float high)
{
    struct fkt_rng r;
    fkt_rng_init(&r, seed, 1);
    for (size_t i = 0; i < n; i++) x[i] = low + (high - low) * (float)fkt_rng_unit(&r);
}

/* The result of nn/ref for `input` in want. */
static void reference(const struct fkt_op *op, int n, struct fkt_shape x, struct fkt_shape y)
{
    struct fkt_ref_call k = {.op = op, .n = (uint32_t)n, .x = x, .y = y, .a = input, .out = want, .weight = weights};
    assert_true(cuda_numbers(n, x) <= ROOM && cuda_numbers(n, y) <= ROOM);
    k.bias = op->bias == FKT_NO_SLOT ? NULL : biases;
    fkt_ref_run(&k);
}

static enum fkt_precision precision_of(size_t i) { return i % 2 ? FKT_PRECISION_BF16 : FKT_PRECISION_F32; }

static void test_rms_norm(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES * 2 * CUDA_ORDERS; i++) {
        struct fkt_shape s = shapes[i / 2 % SHAPES];
        struct fkt_op op = {.kind = FKT_OP_RMS_NORM, .value = {1e-5F}};
        enum fkt_precision p = precision_of(i);
        enum fkt_cuda_act act = (enum fkt_cuda_act)(i / 2 % 4);
        struct fkt_cuda_tensor x, y, add;
        size_t all = cuda_numbers(2, s);
        float *w, *b;
        cuda_order((int)(i / 2 / SHAPES));
        cuda_fill(input, all, i, p);
        cuda_fill(more, all, i + 1, p);
        fill(weights, s.c, 1, -2, 2);
        fill(biases, s.c, 2, -1, 1);
        reference(&op, 2, s, s);
        x = cuda_put(input, 2, s, p), y = cuda_put(NULL, 2, s, p), add = cuda_put(more, 2, s, p);
        w = cuda_copy(weights, s.c * sizeof *w), b = cuda_copy(biases, s.c * sizeof *b);
        CHECK_OK(fkt_cuda_rms_norm(&y, &x, w, b, 1e-5F, NULL, FKT_CUDA_ACT_NONE, NULL));
        cuda_take(got, &y);
        cuda_same("rms norm", got, want, all, 16, p);
        for (size_t j = 0; j < all; j++) want[j] = (float)(cuda_acted((double)want[j], act) + more[j]);
        CHECK_OK(fkt_cuda_rms_norm(&add, &x, w, b, 1e-5F, add.data, act, NULL)); /* in place on add */
        cuda_take(got, &add);
        cuda_same("rms norm and add", got, want, all, 16, p);
        cudaFree(x.data), cudaFree(w), cudaFree(b);
    }
}

/* A mean of 300 and a deviation of 1 cost f32 no digits but those of the input. */
static void test_group_norm(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES * 4 * CUDA_ORDERS; i++) {
        struct fkt_shape s = shapes[i / 2 % SHAPES];
        int groups = s.c % 4 ? 1 : 4, far = i / 2 / SHAPES % 2;
        struct fkt_op op = {.kind = FKT_OP_GROUP_NORM, .groups = (uint32_t)groups, .value = {1e-5F}};
        enum fkt_precision p = far ? FKT_PRECISION_F32 : precision_of(i);
        struct fkt_cuda_tensor x, y;
        size_t all = cuda_numbers(3, s);
        float *w, *b, *room;
        cuda_order((int)(i / 4 / SHAPES));
        cuda_fill(input, all, i, p);
        for (size_t j = 0; far && j < all; j++) input[j] = 300 + input[j];
        fill(weights, s.c, 1, -2, 2);
        fill(biases, s.c, 2, -1, 1);
        reference(&op, 3, s, s);
        x = cuda_put(input, 3, s, p), y = cuda_put(NULL, 3, s, p);
        w = cuda_copy(weights, s.c * sizeof *w), b = cuda_copy(biases, s.c * sizeof *b);
        room = cuda_copy(NULL, fkt_cuda_group_norm_scratch(&x, groups) * sizeof *room);
        CHECK_OK(fkt_cuda_group_norm(&y, &x, w, b, 1e-5F, groups, FKT_CUDA_ACT_NONE, room, NULL));
        cuda_take(got, &y);
        cuda_same("group norm", got, want, all, far ? 600 : 16, p);
        CHECK_OK(fkt_cuda_group_norm(&x, &x, w, b, 1e-5F, groups, FKT_CUDA_ACT_RELU, room, NULL)); /* in place */
        cuda_take(got, &x);
        for (size_t j = 0; j < all; j++) want[j] = fmaxf(want[j], 0);
        cuda_same("group norm and relu", got, want, all, far ? 600 : 16, p);
        cuda_back(scratch, room, fkt_cuda_group_norm_scratch(&x, groups) * sizeof *room); /* nothing beyond it */
        cudaFree(w), cudaFree(b), cudaFree(room);
    }
}

static void pool(struct fkt_shape s, struct fkt_op op, enum fkt_precision p)
{
    struct fkt_shape out = {s.c, (s.h + 2 * op.pad - op.kernel) / op.stride + 1,
                            (s.w + 2 * op.pad - op.kernel) / op.stride + 1};
    struct fkt_cuda_tensor x, y;
    if (s.h + 2 * op.pad < op.kernel || s.w + 2 * op.pad < op.kernel) return;
    cuda_fill(input, cuda_numbers(2, s), s.c, p);
    reference(&op, 2, s, out);
    x = cuda_put(input, 2, s, p), y = cuda_put(NULL, 2, out, p);
    CHECK_OK(fkt_cuda_max_pool(&y, &x, &op, NULL));
    cuda_take(got, &y);
    cuda_same("max pool", got, want, cuda_numbers(2, out), 0, p);
    cudaFree(x.data);
}

static void resize(struct fkt_shape s, uint32_t side, enum fkt_precision p)
{
    struct fkt_op op = {.kind = FKT_OP_RESIZE, .factor = side};
    struct fkt_shape out = {s.c, side, side};
    struct fkt_cuda_tensor x, y;
    if (cuda_numbers(2, out) > ROOM) return;
    cuda_fill(input, cuda_numbers(2, s), s.c, p);
    reference(&op, 2, s, out);
    x = cuda_put(input, 2, s, p), y = cuda_put(NULL, 2, out, p);
    CHECK_OK(fkt_cuda_resize(&y, &x, NULL));
    cuda_take(got, &y);
    cuda_same("resizing", got, want, cuda_numbers(2, out), 16, p);
    cudaFree(x.data);
}

static void test_pools(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES * 2 * CUDA_ORDERS; i++) {
        struct fkt_shape s = shapes[i / 2 % SHAPES], one = {s.c, 1, 1};
        struct fkt_op op = {.kind = FKT_OP_MEAN};
        enum fkt_precision p = precision_of(i);
        struct fkt_cuda_tensor x, y;
        cuda_order((int)(i / 2 / SHAPES));
        cuda_fill(input, cuda_numbers(2, s), i, p);
        reference(&op, 2, s, one);
        x = cuda_put(input, 2, s, p), y = cuda_put(NULL, 2, one, p);
        CHECK_OK(fkt_cuda_mean(&y, &x, NULL));
        cuda_take(got, &y);
        cuda_same("mean", got, want, cuda_numbers(2, one), 16, p);
        cudaFree(x.data);
        for (uint32_t side = 1; side < 20; side += 6) resize(s, side, p);
        pool(s, (struct fkt_op){.kind = FKT_OP_MAX_POOL, .kernel = 3, .stride = 2, .pad = 1}, p);
        pool(s, (struct fkt_op){.kind = FKT_OP_MAX_POOL, .kernel = 2, .stride = 2, .pad = 0}, p);
        pool(s, (struct fkt_op){.kind = FKT_OP_MAX_POOL, .kernel = 3, .stride = 1, .pad = 1}, p);
    }
}

static void test_attention(void **state)
{
    static const struct {
        uint32_t length, heads, h, w;
    } cases[] = {{32, 1, 1, 1}, {32, 2, 3, 5}, {32, 3, 8, 8}, {32, 1, 13, 11},
                 {8, 2, 3, 3},  {5, 3, 2, 2},  {40, 1, 4, 4}, {1024, 1, 1, 2}};
    (void)state;
    for (size_t i = 0; i < 8 * 2 * CUDA_ORDERS; i++) {
        uint32_t length = cases[i / 2 % 8].length, heads = cases[i / 2 % 8].heads;
        struct fkt_shape s = {3 * length * heads, cases[i / 2 % 8].h, cases[i / 2 % 8].w},
                         out = {length * heads, s.h, s.w};
        struct fkt_op op = {.kind = FKT_OP_ATTENTION, .groups = length, .value = {1e-15F}};
        enum fkt_precision p = precision_of(i);
        struct fkt_cuda_tensor x, y;
        cuda_order((int)(i / 16));
        cuda_fill(input, cuda_numbers(2, s), i, p);
        for (size_t j = 0; j < 3 * length * heads * s.h * s.w && i % 3 == 0; j++)
            input[j] = -fabsf(input[j]); /* 0 / eps */
        reference(&op, 2, s, out);
        x = cuda_put(input, 2, s, p), y = cuda_put(NULL, 2, out, p);
        CHECK_OK(fkt_cuda_attention(&y, &x, (int)length, 1e-15F, NULL));
        cuda_take(got, &y);
        cuda_same("attention", got, want, cuda_numbers(2, out), 32, p);
        cudaFree(x.data);
    }
}

/* Weights (c, 1, k, k) as the kernel wants them: (k, k, c). */
static float *depthwise_weights(uint32_t c, uint32_t k)
{
    for (size_t i = 0; i < (size_t)c * k * k; i++) scratch[i % (k * k) * c + i / (k * k)] = weights[i];
    return cuda_copy(scratch, (size_t)c * k * k * sizeof *scratch);
}

static void depthwise(struct fkt_shape s, uint32_t kernel, uint32_t stride, enum fkt_precision p, int with_bias)
{
    struct fkt_op op = {.kind = FKT_OP_CONV,
                        .channels = s.c,
                        .kernel = kernel,
                        .stride = stride,
                        .pad = kernel / 2,
                        .groups = s.c,
                        .bias = with_bias ? 0 : FKT_NO_SLOT},
                  glu = {.kind = FKT_OP_GLU};
    struct fkt_shape out = {s.c, (s.h - 1) / stride + 1, (s.w - 1) / stride + 1}, half = {s.c / 2, out.h, out.w};
    struct fkt_cuda_tensor x, y;
    struct fkt_ref_call k = {.op = &glu, .n = 2, .x = out, .y = half, .a = want, .out = more};
    float *w, *b;
    cuda_fill(input, cuda_numbers(2, s), s.c, p);
    fill(weights, (size_t)s.c * kernel * kernel, 1, -1, 1);
    fill(biases, s.c, 2, -1, 1);
    reference(&op, 2, s, out);
    x = cuda_put(input, 2, s, p), y = cuda_put(NULL, 2, out, p);
    w = depthwise_weights(s.c, kernel), b = cuda_copy(biases, s.c * sizeof *b);
    CHECK_OK(fkt_cuda_depthwise(&y, &x, w, with_bias ? b : NULL, &op, 0, FKT_CUDA_ACT_NONE, NULL));
    cuda_take(got, &y);
    cuda_same("depthwise", got, want, cuda_numbers(2, out), 16, p);
    if (s.c % 2 == 0) {
        fkt_ref_run(&k);
        y = cuda_put(NULL, 2, half, p);
        CHECK_OK(fkt_cuda_depthwise(&y, &x, w, with_bias ? b : NULL, &op, 1, FKT_CUDA_ACT_NONE, NULL));
        cuda_take(got, &y);
        cuda_same("depthwise and glu", got, more, cuda_numbers(2, half), 32, p);
    }
    for (size_t i = 0; i < cuda_numbers(2, out); i++) want[i] = (float)cuda_acted((double)want[i], FKT_CUDA_ACT_SILU);
    y = cuda_put(NULL, 2, out, p);
    CHECK_OK(fkt_cuda_depthwise(&y, &x, w, with_bias ? b : NULL, &op, 0, FKT_CUDA_ACT_SILU, NULL));
    cuda_take(got, &y);
    cuda_same("depthwise and silu", got, want, cuda_numbers(2, out), 16, p);
    cudaFree(x.data), cudaFree(w), cudaFree(b);
}

static void test_depthwise(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES * 2 * CUDA_ORDERS; i++) {
        struct fkt_shape s = shapes[i / 2 % SHAPES];
        cuda_order((int)(i / 2 / SHAPES));
        depthwise(s, 3, 1, precision_of(i), i % 3 > 0);
        depthwise(s, 5, 1, precision_of(i), i % 3 > 1);
        depthwise(s, 3, 2, precision_of(i), 1);
    }
}

static void test_grouped(void **state)
{
    static const uint32_t cases[][3] = {{6, 9, 3}, {32, 32, 1}, {96, 96, 3}, {64, 32, 8}, {8, 600, 2}};
    (void)state;
    for (size_t i = 0; i < 5 * 2 * CUDA_ORDERS; i++) {
        const uint32_t *c = cases[i / 2 % 5];
        struct fkt_shape s = {c[0], 3, 5}, out = {c[1], 3, 5};
        struct fkt_op op = {.kind = FKT_OP_CONV, .channels = c[1], .kernel = 1, .stride = 1, .groups = c[2]};
        enum fkt_precision p = precision_of(i);
        struct fkt_cuda_tensor x, y;
        float *w, *b;
        cuda_order((int)(i / 10));
        cuda_fill(input, cuda_numbers(2, s), i, p);
        fill(weights, (size_t)c[1] * c[0] / c[2], 1, -1, 1);
        fill(biases, c[1], 2, -1, 1);
        reference(&op, 2, s, out);
        x = cuda_put(input, 2, s, p), y = cuda_put(NULL, 2, out, p);
        w = cuda_copy(weights, (size_t)c[1] * c[0] / c[2] * sizeof *w), b = cuda_copy(biases, c[1] * sizeof *b);
        CHECK_OK(fkt_cuda_grouped(&y, &x, w, b, (int)c[2], NULL));
        cuda_take(got, &y);
        cuda_same("grouped", got, want, cuda_numbers(2, out), 16, p);
        cudaFree(x.data), cudaFree(w), cudaFree(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rms_norm),  cmocka_unit_test(test_group_norm), cmocka_unit_test(test_pools),
        cmocka_unit_test(test_attention), cmocka_unit_test(test_depthwise),  cmocka_unit_test(test_grouped),
    };
    if (!cuda_here()) return 77;
    return cuda_nothing_left(cmocka_run_group_tests(tests, NULL, NULL));
}
