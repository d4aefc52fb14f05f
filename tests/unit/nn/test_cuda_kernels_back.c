/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients by the input of nn/cuda/kernels.h against those of nn/ref, replacing what is there and adding to it. */
#include "nn/cuda/kernels.h"
#include "nn/ref/learn.h"

#include "tests/support/cuda_case.h"

enum { ROOM = 1 << 19, VECTOR = 1 << 12, N = 2 };
static float input[2][ROOM], out[ROOM], dout[ROOM], old[ROOM], want[2][ROOM], got[ROOM], slot[4][VECTOR], scale[VECTOR];

static const struct fkt_shape shapes[] = {{3, 5, 7},  {4, 4, 4},  {5, 3, 1},    {8, 2, 6},   {31, 3, 3},
                                          {64, 4, 4}, {96, 1, 1}, {16, 17, 19}, {1024, 1, 2}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

struct trial {
    struct fkt_op op;
    struct fkt_shape x, z, y;
    enum fkt_precision precision;
    int more;
    double units;
};

static void fill(float *x, size_t n, uint64_t seed, float low, float high)
{
    struct fkt_rng r;
    fkt_rng_init(&r, seed, 1);
    for (size_t i = 0; i < n; i++) x[i] = low + (high - low) * (float)fkt_rng_unit(&r);
}

static size_t weights_of(const struct trial *t)
{
    return t->op.kind == FKT_OP_CONV ? (size_t)t->x.c * t->op.kernel * t->op.kernel : t->x.c;
}

/* What nn/ref says, in want: of both inputs, added to `old`, or to 0. Numbers are multiples of 1/2 where `coarse` says
 * so: then windows have equal largest numbers, and ReLU gets zeros. */
static void reference(const struct trial *t, int coarse)
{
    struct fkt_ref_call k = {.op = &t->op,
                             .n = N,
                             .x = t->x,
                             .z = t->z,
                             .y = t->y,
                             .a = input[0],
                             .b = input[1],
                             .out = out,
                             .weight = slot[0],
                             .bias = slot[1],
                             .mean = slot[2],
                             .var = slot[3]};
    struct fkt_ref_back b = {.call = &k, .dy = dout, .da = want[0], .db = want[1]};
    size_t x = cuda_numbers(N, t->x), z = cuda_numbers(N, t->z), y = cuda_numbers(N, t->y);
    assert_true(x <= ROOM && y <= ROOM && z <= ROOM);
    cuda_fill(input[0], x, t->x.c, t->precision);
    cuda_fill(input[1], z, t->x.c + 1, t->precision);
    cuda_fill(dout, y, t->x.c + 2, t->precision);
    cuda_fill(old, x > z ? x : z, t->x.c + 3, t->precision);
    for (size_t i = 0; coarse && i < x; i++) input[0][i] = rintf(input[0][i] * 2) / 2;
    for (size_t i = 0; i < 4; i++) fill(slot[i], weights_of(t), 40 + i, i == 3 ? 0.5F : -2, 2);
    for (size_t i = 0; i < x; i++) want[0][i] = t->more ? old[i] : 0;
    for (size_t i = 0; i < z; i++) want[1][i] = t->more ? old[i] : 0;
    fkt_ref_run(&k);
    fkt_ref_backward(&b);
}

/* The kernel reads weights as (window, channels). */
static fkt_status depthwise(const struct trial *t, const struct fkt_cuda_tensor *dx, const struct fkt_cuda_tensor *dy)
{
    static float moved[VECTOR];
    const size_t window = (size_t)t->op.kernel * t->op.kernel;
    float *w;
    fkt_status st;
    for (size_t c = 0; c < t->x.c; c++)
        for (size_t p = 0; p < window; p++) moved[p * t->x.c + c] = slot[0][c * window + p];
    w = cuda_copy(moved, weights_of(t) * sizeof *w);
    st = fkt_cuda_depthwise_back(dx, dy, w, &t->op, t->more, NULL);
    cuda_ok(cudaDeviceSynchronize());
    cudaFree(w);
    return st;
}

static fkt_status run(const struct trial *t, int which, const struct fkt_cuda_tensor *dx,
                      const struct fkt_cuda_tensor *dy, const struct fkt_cuda_tensor *x)
{
    const struct fkt_op *op = &t->op;
    float *w = cuda_copy(slot[0], t->x.c * sizeof *w), *s = cuda_copy(scale, t->x.c * sizeof *s), *room;
    int f = (int)op->factor, groups = op->groups ? (int)op->groups : 1;
    fkt_status st;
    room = cuda_copy(NULL, fkt_cuda_group_norm_back_scratch(x, groups) * sizeof *room);
    switch (op->kind) {
    case FKT_OP_ADD: st = fkt_cuda_pass_back(dx, dy, t->more, NULL); break;
    case FKT_OP_BATCH_NORM: st = fkt_cuda_channel_affine_back(dx, dy, s, t->more, NULL); break;
    case FKT_OP_GLU: st = fkt_cuda_glu_back(dx, dy, x, t->more, NULL); break;
    case FKT_OP_UPSAMPLE: st = fkt_cuda_upsample_back(dx, dy, f, t->more, NULL); break;
    case FKT_OP_SHUFFLE: st = fkt_cuda_shuffle_back(dx, dy, f, t->more, NULL); break;
    case FKT_OP_UNSHUFFLE: st = fkt_cuda_unshuffle_back(dx, dy, f, t->more, NULL); break;
    case FKT_OP_CONCAT: st = fkt_cuda_concat_back(dx, dy, which ? (int)t->x.c : 0, t->more, NULL); break;
    case FKT_OP_GROUP_MEAN: st = fkt_cuda_group_mean_back(dx, dy, t->more, NULL); break;
    case FKT_OP_REPEAT: st = fkt_cuda_repeat_back(dx, dy, t->more, NULL); break;
    case FKT_OP_RESIZE: st = fkt_cuda_resize_back(dx, dy, t->more, NULL); break;
    case FKT_OP_CONV: st = depthwise(t, dx, dy); break;
    case FKT_OP_MEAN: st = fkt_cuda_mean_back(dx, dy, t->more, NULL); break;
    case FKT_OP_MAX_POOL: st = fkt_cuda_max_pool_back(dx, dy, x, op, t->more, NULL); break;
    case FKT_OP_RMS_NORM: st = fkt_cuda_rms_norm_back(dx, dy, x, w, op->value[0], t->more, NULL); break;
    case FKT_OP_GROUP_NORM:
        st = fkt_cuda_group_norm_back(dx, dy, x, w, op->value[0], groups, t->more, room, NULL);
        cuda_back(got, room, fkt_cuda_group_norm_back_scratch(x, groups) * sizeof *room); /* nothing beyond it */
        break;
    default: st = fkt_cuda_unary_back(dx, dy, x, op, t->more, NULL); break;
    }
    cuda_ok(cudaDeviceSynchronize());
    cudaFree(w), cudaFree(s), cudaFree(room);
    return st;
}

/* Both inputs where there are two, in both precisions, replacing and adding, threads in both orders. */
static void try(struct fkt_op op, struct fkt_shape x, struct fkt_shape z, struct fkt_shape y, double units, int coarse)
{
    for (int i = 0; i < 4 * CUDA_ORDERS; i++) {
        struct trial t = {op, x, z, y, i % 2 ? FKT_PRECISION_BF16 : FKT_PRECISION_F32, i / 2 % 2, units};
        cuda_order(i / 4);
        reference(&t, coarse);
        for (size_t c = 0; c < x.c; c++) scale[c] = (float)(slot[0][c] / sqrt((double)slot[3][c] + op.value[0]));
        for (int which = 0; which <= fkt_op_reads_two(&op); which++) {
            struct fkt_shape s = which ? z : x;
            struct fkt_cuda_tensor dx = cuda_put(t.more ? old : NULL, N, s, t.precision);
            struct fkt_cuda_tensor dy = cuda_put(dout, N, y, t.precision),
                                   in = cuda_put(input[which], N, s, t.precision);
            CHECK_OK(run(&t, which, &dx, &dy, &in));
            cuda_take(got, &dx);
            cuda_same(fkt_op_name(op.kind), got, want[which], cuda_numbers(N, s), units, t.precision);
            cudaFree(dy.data);
            cudaFree(in.data);
        }
    }
}

static void test_elements(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES; i++) {
        struct fkt_shape s = shapes[i], twice = {2 * s.c, s.h, s.w}, both = {2 * s.c + 8, s.h, s.w},
                         more = {s.c + 8, s.h, s.w}, one = {s.c, 1, 1};
        try((struct fkt_op){.kind = FKT_OP_RELU}, s, s, s, 1, 1);
        try((struct fkt_op){.kind = FKT_OP_RELU6}, s, s, s, 1, 1);
        try((struct fkt_op){.kind = FKT_OP_SILU}, s, s, s, 8, 0);
        try((struct fkt_op){.kind = FKT_OP_SOFT_CLAMP, .value = {3}}, s, s, s, 8, 0);
        try((struct fkt_op){.kind = FKT_OP_AFFINE, .value = {1.5F, -0.25F}}, s, s, s, 4, 0);
        try((struct fkt_op){.kind = FKT_OP_ADD}, s, s, s, 1, 0);
        try((struct fkt_op){.kind = FKT_OP_BATCH_NORM, .value = {1e-5F}}, s, s, s, 8, 0);
        try((struct fkt_op){.kind = FKT_OP_GLU}, twice, s, s, 8, 0);
        try((struct fkt_op){.kind = FKT_OP_CONCAT}, s, more, both, 1, 0);
        try((struct fkt_op){.kind = FKT_OP_MEAN}, s, s, one, 4, 0);
    }
}

static void test_moves(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES; i++)
        for (uint32_t f = 1; f <= 3; f++) {
            struct fkt_shape s = shapes[i], big = {s.c, f * s.h, f * s.w}, deep = {f * f * s.c, s.h, s.w};
            if (deep.c > VECTOR) continue;
            try((struct fkt_op){.kind = FKT_OP_UPSAMPLE, .factor = f}, s, s, big, 8, 0);
            try((struct fkt_op){.kind = FKT_OP_SHUFFLE, .factor = f}, deep, s, big, 1, 0);
            try((struct fkt_op){.kind = FKT_OP_UNSHUFFLE, .factor = f}, big, s, deep, 1, 0);
            try((struct fkt_op){.kind = FKT_OP_GROUP_MEAN, .channels = s.c}, deep, s, s, 4, 0);
            try((struct fkt_op){.kind = FKT_OP_REPEAT, .channels = deep.c}, s, s, deep, 16, 0);
        }
}

static void test_resizing(void **state)
{
    static const uint32_t sides[] = {1, 4, 7, 13};
    (void)state;
    for (size_t i = 0; i < SHAPES; i++)
        for (size_t k = 0; k < sizeof sides / sizeof *sides; k++) {
            struct fkt_shape s = shapes[i], y = {s.c, sides[k], sides[k]};
            try((struct fkt_op){.kind = FKT_OP_RESIZE, .factor = sides[k]}, s, s, y, 64, 0);
        }
}

static void test_depthwise(void **state)
{
    static const uint32_t windows[][4] = {{3, 1, 1, 0}, {3, 2, 0, 1}, {5, 2, 1, 1}, {5, 1, 2, 0},
                                          {3, 2, 1, 0}, {2, 3, 0, 2}, {1, 2, 0, 0}};
    (void)state;
    for (size_t i = 0; i < SHAPES; i++)
        for (size_t k = 0; k < sizeof windows / sizeof *windows; k++) {
            const uint32_t *w = windows[k], zeros = 2 * w[2] + w[3];
            struct fkt_shape s = shapes[i];
            struct fkt_op op = {.kind = FKT_OP_CONV, .channels = s.c, .kernel = w[0], .stride = w[1], .pad = w[2]};
            if (s.h + zeros < w[0] || s.w + zeros < w[0] || s.c * w[0] * w[0] > VECTOR) continue;
            op.groups = s.c;
            op.pad_after = w[3];
            try(op, s, s, (struct fkt_shape){s.c, (s.h + zeros - w[0]) / w[1] + 1, (s.w + zeros - w[0]) / w[1] + 1}, 64,
                0);
        }
}

static void pool(struct fkt_shape s, uint32_t kernel, uint32_t stride, uint32_t pad)
{
    struct fkt_op op = {.kind = FKT_OP_MAX_POOL, .kernel = kernel, .stride = stride, .pad = pad};
    struct fkt_shape y = {s.c, (s.h + 2 * pad - kernel) / stride + 1, (s.w + 2 * pad - kernel) / stride + 1};
    if (s.h + 2 * pad < kernel || s.w + 2 * pad < kernel) return;
    try(op, s, s, y, 8, 1);
}

static void test_pools_and_norms(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES; i++) {
        struct fkt_shape s = shapes[i];
        pool(s, 3, 2, 1);
        pool(s, 2, 2, 0);
        pool(s, 3, 1, 1);
        pool(s, 2, 3, 0);
        try((struct fkt_op){.kind = FKT_OP_RMS_NORM, .value = {1e-5F}}, s, s, s, 32, 0);
        try((struct fkt_op){.kind = FKT_OP_GROUP_NORM, .groups = s.c % 4 ? 1 : 4, .value = {1e-5F}}, s, s, s, 32, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elements),  cmocka_unit_test(test_moves),           cmocka_unit_test(test_resizing),
        cmocka_unit_test(test_depthwise), cmocka_unit_test(test_pools_and_norms),
    };
    if (!cuda_here()) return 77;
    return cuda_nothing_left(cmocka_run_group_tests(tests, NULL, NULL));
}
