/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of nn/cuda/kernels.h that run networks forward, against the plain loops of nn/ref, in both precisions.
 * What only moves numbers must agree to the bit. */
#include "nn/cuda/kernels.h"
#include "nn/ref/ops.h"

#include "tests/support/cuda_case.h"

enum { ROOM = 1 << 19, VECTOR = 4096 };
static float input[2][ROOM], want[ROOM], got[ROOM], vectors[4][VECTOR];

static const struct fkt_shape shapes[] = {{3, 5, 7},  {4, 4, 4},  {5, 3, 1},  {8, 2, 6},
                                          {31, 3, 3}, {64, 4, 4}, {96, 1, 1}, {16, 17, 9}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* One operation on one input: what nn/ref says in want, numbers on the card in t[0] (result), t[1], t[2]. */
struct trial {
    const struct fkt_op *op;
    int n;
    struct fkt_shape x, z, y;
    enum fkt_precision precision;
    uint64_t seed;
    double units; /* of the comparison; 0: to the bit */
};

static float *parameter(size_t which, size_t n, float low, float high)
{
    struct fkt_rng r;
    assert_true(n <= VECTOR);
    fkt_rng_init(&r, 900 + which, 0);
    for (size_t i = 0; i < n; i++) vectors[which][i] = low + (high - low) * (float)fkt_rng_unit(&r);
    return vectors[which];
}

static void begin(const struct trial *t, struct fkt_cuda_tensor *y, struct fkt_cuda_tensor *a,
                  struct fkt_cuda_tensor *b)
{
    struct fkt_ref_call k = {t->op,    (uint32_t)t->n, t->x, t->z,       t->y,       input[0],
                             input[1], want,           NULL, vectors[1], vectors[2], vectors[3]};
    assert_true(cuda_numbers(t->n, t->x) <= ROOM && cuda_numbers(t->n, t->y) <= ROOM);
    k.weight = vectors[0];
    cuda_fill(input[0], cuda_numbers(t->n, t->x), t->seed, t->precision);
    cuda_fill(input[1], cuda_numbers(t->n, t->z), t->seed + 1, t->precision);
    fkt_ref_run(&k);
    *y = cuda_put(NULL, t->n, t->y, t->precision);
    *a = cuda_put(input[0], t->n, t->x, t->precision);
    *b = cuda_put(input[1], t->n, t->z, t->precision);
}

static void end(const struct trial *t, struct fkt_cuda_tensor *y, struct fkt_cuda_tensor *a, struct fkt_cuda_tensor *b)
{
    char what[128];
    snprintf(what, sizeof what, "%s of %d x (%u, %u, %u)", fkt_op_name(t->op->kind), t->n, t->x.c, t->x.h, t->x.w);
    cuda_take(got, y);
    cuda_same(what, got, want, cuda_numbers(t->n, t->y), t->units, t->precision);
    cudaFree(a->data);
    cudaFree(b->data);
}

/* Both orders and both precisions of one operation; `run` calls the kernel. */
typedef fkt_status (*runner)(const struct trial *t, const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *a,
                             const struct fkt_cuda_tensor *b);
static void try(const struct fkt_op *op, struct fkt_shape x, struct fkt_shape z, struct fkt_shape y, double units,
                runner run)
{
    for (int i = 0; i < 2 * CUDA_ORDERS; i++) {
        struct trial t = {
            op,   1 + (int)(x.c + x.h) % 3, x, z, y, i % 2 ? FKT_PRECISION_BF16 : FKT_PRECISION_F32, x.c + 3 * x.h,
            units};
        struct fkt_cuda_tensor to, a, b;
        cuda_order(i / 2);
        begin(&t, &to, &a, &b);
        CHECK_OK(run(&t, &to, &a, &b));
        end(&t, &to, &a, &b);
    }
}

static fkt_status run_unary(const struct trial *t, const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *a,
                            const struct fkt_cuda_tensor *b)
{
    (void)b;
    return fkt_cuda_unary(y, a, t->op, NULL);
}

static void test_unary(void **state)
{
    static const struct fkt_op ops[] = {{.kind = FKT_OP_RELU},
                                        {.kind = FKT_OP_RELU6},
                                        {.kind = FKT_OP_SILU},
                                        {.kind = FKT_OP_SOFT_CLAMP, .value = {3}},
                                        {.kind = FKT_OP_AFFINE, .value = {1.5F, -0.25F}}};
    (void)state;
    for (size_t i = 0; i < SHAPES; i++)
        for (size_t o = 0; o < 5; o++) try(&ops[o], shapes[i], shapes[i], shapes[i], o > 1 ? 4 : 0, run_unary);
}

static fkt_status run_add(const struct trial *t, const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *a,
                          const struct fkt_cuda_tensor *b)
{
    (void)t;
    return fkt_cuda_add(y, a, b, NULL);
}

static fkt_status run_glu(const struct trial *t, const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *a,
                          const struct fkt_cuda_tensor *b)
{
    (void)t, (void)b;
    return fkt_cuda_glu(y, a, NULL);
}

static fkt_status run_concat(const struct trial *t, const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *a,
                             const struct fkt_cuda_tensor *b)
{
    (void)t;
    return fkt_cuda_concat(y, a, b, NULL);
}

static void test_two(void **state)
{
    static const struct fkt_op add = {.kind = FKT_OP_ADD}, glu = {.kind = FKT_OP_GLU}, concat = {.kind = FKT_OP_CONCAT};
    (void)state;
    for (size_t i = 0; i < SHAPES; i++) {
        struct fkt_shape s = shapes[i], twice = {2 * s.c, s.h, s.w}, more = {s.c + 8, s.h, s.w},
                         both = {2 * s.c + 8, s.h, s.w};
        try(&add, s, s, s, 1, run_add);
        try(&glu, twice, s, s, 4, run_glu);
        try(&concat, s, more, both, 0, run_concat);
    }
}

static fkt_status run_move(const struct trial *t, const struct fkt_cuda_tensor *y, const struct fkt_cuda_tensor *a,
                           const struct fkt_cuda_tensor *b)
{
    int f = (int)t->op->factor;
    (void)b;
    switch (t->op->kind) {
    case FKT_OP_UPSAMPLE: return fkt_cuda_upsample(y, a, f, NULL);
    case FKT_OP_SHUFFLE: return fkt_cuda_shuffle(y, a, f, NULL);
    case FKT_OP_UNSHUFFLE: return fkt_cuda_unshuffle(y, a, f, NULL);
    case FKT_OP_GROUP_MEAN: return fkt_cuda_group_mean(y, a, NULL);
    default: return fkt_cuda_repeat(y, a, NULL);
    }
}

static void test_move(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES; i++)
        for (uint32_t f = 1; f <= 3; f++) {
            struct fkt_shape s = shapes[i], big = {s.c, f * s.h, f * s.w}, deep = {f * f * s.c, s.h, s.w};
            struct fkt_op op = {.kind = FKT_OP_UPSAMPLE, .factor = f, .channels = s.c};
            if (i == SHAPES - 1 && f == 3) continue;
            try(&op, s, s, big, 0, run_move);
            op.kind = FKT_OP_SHUFFLE;
            try(&op, deep, s, big, 0, run_move);
            op.kind = FKT_OP_UNSHUFFLE;
            try(&op, big, s, deep, 0, run_move);
            op.kind = FKT_OP_GROUP_MEAN;
            try(&op, deep, s, s, f == 1 ? 0 : 4, run_move);
            op.kind = FKT_OP_REPEAT;
            op.channels = deep.c;
            try(&op, s, s, deep, 0, run_move);
        }
}

/* One kind after the other, with nn/ref; arrays (n, shape). */
static void ref_move(enum fkt_op_kind kind, int n, uint32_t factor, const float *in, struct fkt_shape x, float *out,
                     struct fkt_shape y)
{
    struct fkt_op op = {.kind = kind, .factor = factor, .channels = y.c};
    struct fkt_ref_call k = {.op = &op, .n = (uint32_t)n, .x = x, .y = y, .a = in, .out = out};
    fkt_ref_run(&k);
}

/* y (k, h, w), x (k / f^2, f h, f w) and s (g k / f^2, f h, f w), or the other way round. */
static void shortcut(int down, uint32_t c, uint32_t g, uint32_t f, uint32_t h, uint32_t w, enum fkt_precision p)
{
    static float first[ROOM], second[ROOM];
    struct fkt_shape deep = {c * f * f, h, w}, flat = {c, f * h, f * w};
    struct fkt_shape deeper = {deep.c * g, h, w},
                     s = down ? (struct fkt_shape){c * g, f * h, f * w} : (struct fkt_shape){deep.c / g, h, w};
    struct fkt_shape x = down ? flat : deep, y = down ? deep : flat;
    struct fkt_cuda_tensor a, b, to;
    size_t all = cuda_numbers(2, y);
    cuda_fill(input[0], cuda_numbers(2, x), 5, p);
    cuda_fill(input[1], cuda_numbers(2, s), 6, p);
    if (down) {
        ref_move(FKT_OP_UNSHUFFLE, 2, f, input[0], x, want, y);
        ref_move(FKT_OP_UNSHUFFLE, 2, f, input[1], s, first, deeper);
        ref_move(FKT_OP_GROUP_MEAN, 2, f, first, deeper, second, y);
        for (size_t i = 0; i < all; i++) want[i] += second[i];
    } else {
        ref_move(FKT_OP_REPEAT, 2, f, input[1], s, first, deep);
        for (size_t i = 0; i < all; i++) first[i] += input[0][i];
        ref_move(FKT_OP_SHUFFLE, 2, f, first, deep, want, y);
    }
    a = cuda_put(input[0], 2, x, p);
    b = cuda_put(input[1], 2, s, p);
    to = cuda_put(NULL, 2, y, p);
    CHECK_OK(down ? fkt_cuda_unshuffle_mean_add(&to, &a, &b, (int)f, NULL)
                  : fkt_cuda_repeat_shuffle_add(&to, &a, &b, (int)f, NULL));
    cuda_take(got, &to);
    cuda_same(down ? "unshuffle and mean" : "repeat and shuffle", got, want, all, 4, p);
    cudaFree(a.data);
    cudaFree(b.data);
}

static void test_shortcuts(void **state)
{
    static const uint32_t channels[] = {3, 4, 8, 16, 31};
    (void)state;
    for (int i = 0; i < 2 * CUDA_ORDERS; i++)
        for (size_t c = 0; c < 5; c++)
            for (uint32_t g = 1; g <= 4; g *= 2)
                for (uint32_t f = 1; f <= 3; f++) {
                    enum fkt_precision p = i % 2 ? FKT_PRECISION_BF16 : FKT_PRECISION_F32;
                    cuda_order(i / 2);
                    shortcut(1, channels[c], g, f, 3, 2, p);
                    if (channels[c] * f * f % g == 0) shortcut(0, channels[c], g, f, 2, 3, p);
                }
}

static void test_affine_and_epilogue(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES * 8 * CUDA_ORDERS; i++) {
        struct fkt_shape s = shapes[i % SHAPES];
        enum fkt_precision p = i / SHAPES % 2 ? FKT_PRECISION_BF16 : FKT_PRECISION_F32;
        enum fkt_cuda_act act = (enum fkt_cuda_act)(i / SHAPES / 2 % 4);
        const float *scale = parameter(0, s.c, -2, 2), *shift = parameter(1, s.c, -1, 1);
        float *ds = cuda_copy(scale, s.c * sizeof *scale), *db = cuda_copy(shift, s.c * sizeof *shift);
        size_t all = cuda_numbers(2, s), plane = (size_t)s.h * s.w;
        struct fkt_cuda_tensor x, add, y;
        static float other[ROOM];
        cuda_order((int)(i / SHAPES / 8));
        cuda_fill(input[0], all, i, p);
        cuda_fill(input[1], all, i + 1, p);
        for (size_t j = 0; j < all; j++) {
            size_t c = j / plane % s.c;
            double a = (double)input[0][j] * scale[c] + shift[c], b = (double)input[0][j] + shift[c] + input[1][j];
            want[j] = (float)cuda_acted(a, act);
            other[j] = (float)cuda_acted(b, act);
        }
        x = cuda_put(input[0], 2, s, p);
        add = cuda_put(input[1], 2, s, p);
        y = cuda_put(NULL, 2, s, p);
        CHECK_OK(fkt_cuda_channel_affine(&y, &x, ds, db, act, NULL));
        cuda_take(got, &y);
        cuda_same("channel affine", got, want, all, 8, p);
        CHECK_OK(fkt_cuda_epilogue(&x, db, add.data, act, NULL));
        cuda_take(got, &x);
        cuda_same("epilogue", got, other, all, 8, p);
        cudaFree(add.data);
        cudaFree(ds);
        cudaFree(db);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unary),
        cmocka_unit_test(test_two),
        cmocka_unit_test(test_move),
        cmocka_unit_test(test_shortcuts),
        cmocka_unit_test(test_affine_and_epilogue),
    };
    if (!cuda_here()) return 77;
    return cuda_nothing_left(cmocka_run_group_tests(tests, NULL, NULL));
}
