/* SPDX-License-Identifier: Apache-2.0 */
/* Every operation on activations against the plain loops of nn/ref/, for all pairs of layouts and precisions. What only
 * moves numbers must agree to the bit; what computes, to a few units in the last place of the largest number. */
#include "nn/act_lanes.h"
#include "nn/ref/ops.h"

#include "base/rng.h"
#include "tests/support/check.h"

enum { NHWC = 0, ROOM = 1 << 15 }; /* a block of all channels; numbers in one activation at most */

static float input[2][ROOM], want[ROOM], got[ROOM], vectors[4][256], scratch[1 << 14];
static _Alignas(64) uint8_t memory[3][4 * ROOM]; /* filled with NaN before each trial */

struct layout {
    uint32_t block;
    enum fkt_precision precision;
};
static const struct layout layouts[] = {{1, FKT_PRECISION_F32},    {8, FKT_PRECISION_F32},     {16, FKT_PRECISION_F32},
                                        {NHWC, FKT_PRECISION_F32}, {1, FKT_PRECISION_BF16},    {8, FKT_PRECISION_BF16},
                                        {16, FKT_PRECISION_BF16},  {NHWC, FKT_PRECISION_BF16}, {5, FKT_PRECISION_F32}};
enum { LAYOUTS = sizeof layouts / sizeof *layouts, CANARY = 0x5a };

static struct fkt_act act(int which, uint32_t n, struct fkt_shape s, struct layout l)
{
    struct fkt_act a = {memory[which], n, s.c, s.h, s.w, l.block ? l.block : s.c, l.precision};
    CHECK(fkt_act_bytes(&a) <= sizeof memory[which] - 64);
    memset(memory[which], 0xff, sizeof memory[which]); /* NaN as float and as bfloat16 */
    memset((uint8_t *)a.data + fkt_act_bytes(&a), CANARY, 64);
    return a;
}

static float element(const struct fkt_act *a, size_t i)
{
    return a->precision == FKT_PRECISION_BF16 ? fkt_from_bf16(((const uint16_t *)a->data)[i])
                                              : ((const float *)a->data)[i];
}

/* Padding lanes are zero, and nothing was written beyond the end. */
static void check_edges(const struct fkt_act *a)
{
    size_t blocks = (a->c + a->block - 1) / a->block, plane = (size_t)a->h * a->w;
    for (size_t i = 0; i < fkt_act_count(a); i++) {
        size_t lane = i % a->block, block = i / a->block / plane % blocks;
        if (block * a->block + lane >= a->c && !(fabsf(element(a, i)) <= 0)) fail_msg("padding lane %zu is not 0", i);
    }
    for (size_t i = 0; i < 64; i++) CHECK(((const uint8_t *)a->data)[fkt_act_bytes(a) + i] == CANARY);
}

static size_t count(uint32_t n, struct fkt_shape s) { return (size_t)n * s.c * s.h * s.w; }

static void fill(float *x, size_t n, uint64_t seed, enum fkt_precision precision)
{
    struct fkt_rng r;
    fkt_rng_init(&r, seed, 0);
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)(fkt_rng_unit(&r) * 8 - 4);
        if (precision == FKT_PRECISION_BF16) x[i] = fkt_from_bf16(fkt_bf16(x[i]));
    }
}

/* A plain loop with an index formula of its own: the layout's promise, not the code's. */
static size_t formula(const struct fkt_act *a, size_t i, size_t c, size_t y, size_t x)
{
    size_t blocks = (a->c + a->block - 1) / a->block;
    return (((i * blocks + c / a->block) * a->h + y) * a->w + x) * a->block + c % a->block;
}

static void layout_is_the_formula(void **state)
{
    static const struct fkt_shape shapes[] = {{1, 1, 1}, {3, 5, 7}, {16, 4, 4}, {20, 3, 3}, {33, 2, 9}};
    (void)state;
    for (int l = 0; l < LAYOUTS; l++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            struct fkt_shape z = shapes[s];
            struct fkt_act a = act(0, 2, z, layouts[l]);
            fill(input[0], count(2, z), 5, a.precision);
            fkt_act_from_nchw(&a, input[0]);
            check_edges(&a);
            for (size_t i = 0; i < 2; i++)
                for (size_t c = 0; c < z.c; c++)
                    for (size_t y = 0; y < z.h; y++)
                        for (size_t x = 0; x < z.w; x++) {
                            float have = element(&a, formula(&a, i, c, y, x));
                            CHECK(have == input[0][fkt_ref_at(z, i, c, y, x)]);
                        }
            fkt_act_to_nchw(got, &a);
            assert_memory_equal(got, input[0], count(2, z) * sizeof(float));
        }
}

static void bfloat16_rounds_to_nearest_even(void **state)
{
    (void)state;
    CHECK(fkt_bf16(1.0F) == 0x3f80 && fkt_bf16(-2.0F) == 0xc000);
    CHECK(fkt_bf16(1.00390625F) == 0x3f80);  /* 1 + 2^-8: half way, to the even one below */
    CHECK(fkt_bf16(1.01171875F) == 0x3f82);  /* 1 + 3 2^-8: half way, to the even one above */
    CHECK(fkt_bf16(1.003906488F) == 0x3f81); /* a little more than half way */
    CHECK(fkt_bf16(3.4e38F) == 0x7f80 && fkt_bf16(INFINITY) == 0x7f80 && fkt_bf16(-INFINITY) == 0xff80);
    CHECK(fkt_bf16(1e-45F) == 0);
    {
        uint32_t bits = 0x7f800001; /* a NaN whose upper half alone is infinity */
        float x;
        memcpy(&x, &bits, sizeof x);
        CHECK(isnan(fkt_from_bf16(fkt_bf16(x))) && isnan(fkt_from_bf16(fkt_bf16(NAN))));
    }
    for (uint32_t h = 0; h < 65536; h++)
        if (!isnan(fkt_from_bf16((uint16_t)h))) CHECK(fkt_bf16(fkt_from_bf16((uint16_t)h)) == h);
}

/* One operation: how the plain backend sees it, and how it is called here. */
struct trial {
    struct fkt_op op;
    struct fkt_shape x, z, y;
    int exact; /* only moves numbers */
    int two;
};

static void call(const struct trial *t, const struct fkt_act *dst, const struct fkt_act *a, const struct fkt_act *b)
{
    const struct fkt_op *op = &t->op;
    switch (op->kind) {
    case FKT_OP_GLU: fkt_act_glu(dst, a); break;
    case FKT_OP_UPSAMPLE: fkt_act_upsample(dst, a, op->factor); break;
    case FKT_OP_SHUFFLE: fkt_act_shuffle(dst, a, op->factor); break;
    case FKT_OP_UNSHUFFLE: fkt_act_unshuffle(dst, a, op->factor); break;
    case FKT_OP_GROUP_MEAN: fkt_act_group_mean(dst, a); break;
    case FKT_OP_REPEAT: fkt_act_repeat(dst, a); break;
    case FKT_OP_RMS_NORM: fkt_act_rms_norm(dst, a, vectors[0], vectors[1], op->value[0], NULL); break;
    case FKT_OP_GROUP_NORM: fkt_act_group_norm(dst, a, vectors[0], vectors[1], op->value[0], op->groups); break;
    case FKT_OP_ATTENTION:
        CHECK(fkt_act_attention_scratch(a, op->groups) <= sizeof scratch / sizeof *scratch);
        fkt_act_attention(dst, a, op->groups, op->value[0], scratch);
        break;
    case FKT_OP_ADD: fkt_act_add(dst, a, b); break;
    case FKT_OP_CONCAT: fkt_act_concat(dst, a, b); break;
    case FKT_OP_MAX_POOL: fkt_act_max_pool(dst, a, op); break;
    case FKT_OP_MEAN: fkt_act_mean(dst, a); break;
    case FKT_OP_RESIZE: fkt_act_resize(dst, a); break;
    default: fkt_act_unary(dst, a, op);
    }
}

static void compare(const struct trial *t, const struct fkt_act *dst, size_t n)
{
    double largest = 0, tol;
    for (size_t i = 0; i < n; i++) largest = fabs((double)want[i]) > largest ? fabs((double)want[i]) : largest;
    for (size_t i = 0; i < n; i++) {
        if (dst->precision == FKT_PRECISION_BF16) tol = fabs((double)want[i]) / 256 + 1e-6 * largest;
        else tol = 2e-6 * largest;
        if (t->exact) tol = 0;
        if (t->exact && dst->precision == FKT_PRECISION_BF16) want[i] = fkt_from_bf16(fkt_bf16(want[i]));
        if (!(fabs((double)got[i] - (double)want[i]) <= tol))
            fail_msg("%s, %u channels, block %u, number %zu: got %.9g, want %.9g", fkt_op_name(t->op.kind), t->x.c,
                     dst->block, i, (double)got[i], (double)want[i]);
    }
}

static void expect(const struct trial *t, uint32_t n)
{
    struct fkt_ref_call k = {&t->op, n, t->x, t->z, t->y, input[0], input[1], want, vectors[0], vectors[1], NULL, NULL};
    fkt_ref_run(&k);
}

static void check_pair(const struct trial *t, struct layout from, struct layout to)
{
    uint32_t n = 2;
    struct fkt_act a = act(0, n, t->x, from), b = act(1, n, t->z, from), dst = act(2, n, t->y, to);
    fill(input[0], count(n, t->x), 11, from.precision);
    fill(input[1], count(n, t->z), 12, from.precision);
    fill(vectors[0], 256, 13, FKT_PRECISION_F32);
    fill(vectors[1], 256, 14, FKT_PRECISION_F32);
    fkt_act_from_nchw(&a, input[0]);
    if (t->two) fkt_act_from_nchw(&b, input[1]);
    expect(t, n);
    call(t, &dst, &a, &b);
    check_edges(&dst);
    fkt_act_to_nchw(got, &dst);
    compare(t, &dst, count(n, t->y));
}

static void check_all(const struct trial *t)
{
    for (int from = 0; from < LAYOUTS; from++)
        for (int to = 0; to < LAYOUTS; to++) check_pair(t, layouts[from], layouts[to]);
}

static struct trial one(enum fkt_op_kind kind, struct fkt_shape x, struct fkt_shape y)
{
    return (struct trial){.op = {.kind = kind, .value = {3, -0.5F}}, .x = x, .z = x, .y = y};
}

static void moves_agree_to_the_bit(void **state)
{
    static const uint32_t channels[] = {1, 3, 4, 5, 8, 16, 20, 33};
    (void)state;
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        uint32_t c = channels[i];
        for (uint32_t f = 1; f <= 3; f++) {
            struct trial t = one(FKT_OP_UPSAMPLE, (struct fkt_shape){c, 3, 5}, (struct fkt_shape){c, 3 * f, 5 * f});
            t.exact = 1;
            t.op.factor = f;
            check_all(&t);
            t.op.kind = FKT_OP_SHUFFLE;
            t.x.c = t.z.c = c * f * f;
            check_all(&t);
            t = one(FKT_OP_UNSHUFFLE, (struct fkt_shape){c, 2 * f, 3 * f}, (struct fkt_shape){c * f * f, 2, 3});
            t.exact = 1;
            t.op.factor = f;
            check_all(&t);
            t = one(FKT_OP_REPEAT, (struct fkt_shape){c, 3, 3}, (struct fkt_shape){c * f, 3, 3});
            t.exact = 1;
            check_all(&t);
            t = one(FKT_OP_CONCAT, (struct fkt_shape){c, 3, 3}, (struct fkt_shape){c + 3 * f, 3, 3});
            t.exact = t.two = 1;
            t.z.c = 3 * f;
            check_all(&t);
        }
    }
}

static void arithmetic_agrees(void **state)
{
    static const enum fkt_op_kind kinds[] = {FKT_OP_RELU,       FKT_OP_RELU6,  FKT_OP_SILU,
                                             FKT_OP_SOFT_CLAMP, FKT_OP_AFFINE, FKT_OP_ADD};
    static const struct fkt_shape shapes[] = {{1, 1, 1}, {3, 5, 5}, {16, 4, 4}, {20, 3, 7}, {33, 1, 2}};
    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        struct fkt_shape x = shapes[s], y = x;
        struct trial t;
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            t = one(kinds[k], x, x);
            t.two = kinds[k] == FKT_OP_ADD;
            check_all(&t);
        }
        for (uint32_t per = 1; per <= 4; per++) {
            y.c = x.c * per;
            t = one(FKT_OP_GROUP_MEAN, y, x);
            check_all(&t);
        }
        y.c = x.c * 2;
        t = one(FKT_OP_GLU, y, x);
        check_all(&t);
    }
}

/* Up and down, to the same side, with tiles that are full, cut and narrowed by what they read. */
static void resizing_agrees(void **state)
{
    static const struct fkt_shape shapes[] = {{3, 5, 7}, {16, 8, 4}, {20, 13, 6}, {1, 2, 1}, {2, 3, 64}, {1, 1, 600}};
    static const uint32_t sides[] = {1, 5, 8, 10, 20, 24};
    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t k = 0; k < sizeof sides / sizeof *sides; k++) {
            struct trial t = one(FKT_OP_RESIZE, shapes[s], (struct fkt_shape){shapes[s].c, sides[k], sides[k]});
            t.op.factor = sides[k];
            if (shapes[s].w > 64 * sides[k] || count(3, (struct fkt_shape){32, t.y.h, t.y.w}) > ROOM) continue;
            check_all(&t);
        }
}

/* Windows that hang over every edge, rows longer than a tile, strides beyond the window; a NaN is its window's. */
static void pools_agree(void **state)
{
    static const uint32_t windows[][3] = {{3, 2, 1}, {2, 2, 0}, {2, 2, 1}, {3, 1, 1}, {5, 3, 2}, {1, 2, 0}};
    static const struct fkt_shape shapes[] = {{1, 5, 5}, {3, 7, 5}, {16, 4, 6}, {20, 5, 40}, {33, 6, 5}};
    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        struct fkt_shape x = shapes[s];
        struct trial t = one(FKT_OP_MEAN, x, (struct fkt_shape){x.c, 1, 1});
        check_all(&t);
        for (size_t k = 0; k < sizeof windows / sizeof *windows; k++) {
            const uint32_t *w = windows[k];
            t = one(FKT_OP_MAX_POOL, x, x);
            t.exact = 1;
            t.op.kernel = w[0];
            t.op.stride = w[1];
            t.op.pad = w[2];
            t.y.h = (x.h + 2 * w[2] - w[0]) / w[1] + 1;
            t.y.w = (x.w + 2 * w[2] - w[0]) / w[1] + 1;
            check_all(&t);
        }
    }
}

static void a_nan_is_the_result_of_its_windows(void **state)
{
    struct trial t = one(FKT_OP_MAX_POOL, (struct fkt_shape){3, 6, 6}, (struct fkt_shape){3, 3, 3});
    struct fkt_act a = act(0, 1, t.x, layouts[2]), dst = act(2, 1, t.y, layouts[2]);
    (void)state;
    t.op.kernel = 3;
    t.op.stride = 2;
    t.op.pad = 1;
    fill(input[0], count(1, t.x), 11, FKT_PRECISION_F32);
    input[0][36 + 7] = NAN; /* channel 1, pixel (1, 1): in four windows */
    fkt_act_from_nchw(&a, input[0]);
    expect(&t, 1);
    call(&t, &dst, &a, &a);
    fkt_act_to_nchw(got, &dst);
    for (size_t i = 0; i < 27; i++) {
        int hit = i == 9 || i == 10 || i == 12 || i == 13;
        CHECK(!isnan(got[i]) == !hit && !isnan(want[i]) == !hit);
        if (!hit) CHECK(got[i] == want[i]);
    }
}

static void norms_agree(void **state)
{
    static const struct fkt_shape shapes[] = {{1, 1, 1}, {6, 5, 5}, {16, 4, 4}, {20, 3, 7}, {36, 1, 2}, {64, 3, 3}};
    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        struct trial t = one(FKT_OP_RMS_NORM, shapes[s], shapes[s]);
        t.op.value[0] = 1e-5F;
        check_all(&t);
        t.op.kind = FKT_OP_GROUP_NORM;
        for (t.op.groups = 1; t.op.groups <= 4; t.op.groups++)
            if (shapes[s].c % t.op.groups == 0) check_all(&t);
    }
}

static void attention_agrees(void **state)
{
    static const uint32_t lengths[] = {1, 5, 8, 16, 32};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (uint32_t heads = 1; heads <= 2; heads++) {
            uint32_t length = lengths[i];
            struct trial t = one(FKT_OP_ATTENTION, (struct fkt_shape){3 * length * heads, 5, 4},
                                 (struct fkt_shape){length * heads, 5, 4});
            t.op.groups = length;
            t.op.value[0] = 1e-15F;
            check_all(&t);
        }
}

static void silu_of(const float *x, uint32_t n)
{
    struct fkt_op op = {.kind = FKT_OP_SILU};
    struct fkt_act a = act(0, 1, (struct fkt_shape){1, 1, n}, layouts[0]);
    fkt_act_from_nchw(&a, x);
    fkt_act_unary(&a, &a, &op);
    fkt_act_to_nchw(got, &a);
}

/* To three units in the last place where it is not next to nothing, and next to nothing there. */
static void silu_is_right_everywhere(void **state)
{
    enum { STEPS = 16000 };
    static const float far[] = {-1e30F, -200, -1e-30F, 0, 1e-30F, 200, 1e30F, INFINITY, NAN};
    (void)state;
    for (int i = 0; i < STEPS; i++) input[0][i] = (float)(i - STEPS / 2) / 83;
    silu_of(input[0], STEPS);
    for (int i = 0; i < STEPS; i++) {
        double x = (double)input[0][i], right = x / (1 + exp(-x));
        CHECK_NEAR((double)got[i], right, 3e-7 * fabs(right) + 1e-35);
    }
    silu_of(far, sizeof far / sizeof *far);
    CHECK(got[0] <= 0 && got[0] > -1e-7F && got[1] <= 0 && got[1] > -1e-30F);
    CHECK(fabsf(got[3]) <= 0 && got[5] == 200 && got[6] == 1e30F && isinf(got[7]) && isnan(got[8]));
    CHECK_REL((double)got[2], -0.5e-30, 1e-6);
    CHECK_REL((double)got[4], 0.5e-30, 1e-6);
}

/* Each operation that may work in place gives the bits that it gives elsewhere. */
static void in_place_is_the_same(void **state)
{
    struct fkt_shape s = {20, 3, 7};
    struct fkt_op op = {.kind = FKT_OP_AFFINE, .value = {2, 1}};
    (void)state;
    for (int l = 0; l < LAYOUTS; l++)
        for (int way = 0; way < 6; way++) {
            struct fkt_act a, b, dst, *where;
            size_t n = count(2, s);
            fill(input[0], n, 21, layouts[l].precision);
            fill(input[1], n, 22, layouts[l].precision);
            for (int in_place = 0; in_place < 2; in_place++) {
                a = act(0, 2, s, layouts[l]);
                b = act(1, 2, s, layouts[l]);
                dst = act(2, 2, s, layouts[l]);
                where = !in_place ? &dst : way == 1 || way == 3 ? &b : &a;
                fkt_act_from_nchw(&a, input[0]);
                fkt_act_from_nchw(&b, input[1]);
                if (way < 2) fkt_act_add(where, &a, &b);
                else if (way < 4) fkt_act_rms_norm(where, &a, vectors[0], vectors[1], 1e-5F, &b);
                else if (way == 4) fkt_act_unary(where, &a, &op);
                else fkt_act_channel_affine(where, &a, vectors[0], vectors[1]);
                check_edges(where);
                fkt_act_to_nchw(in_place ? got : want, where);
            }
            assert_memory_equal(got, want, n * sizeof(float));
        }
}

/* dst = norm + add, and the channel-wise factor and shift, by formula. */
static void fused_addition_and_channel_affine(void **state)
{
    struct fkt_shape s = {20, 3, 7};
    struct trial t = one(FKT_OP_RMS_NORM, s, s);
    size_t n = count(2, s), plane = 21;
    (void)state;
    t.op.value[0] = 1e-5F;
    for (int l = 0; l < LAYOUTS; l++) {
        struct fkt_act a = act(0, 2, s, layouts[l]), b = act(1, 2, s, layouts[(l + 3) % LAYOUTS]),
                       dst = act(2, 2, s, layouts[(l + 5) % LAYOUTS]);
        fill(input[0], n, 31, FKT_PRECISION_BF16);
        fill(input[1], n, 32, FKT_PRECISION_BF16);
        fkt_act_from_nchw(&a, input[0]);
        fkt_act_from_nchw(&b, input[1]);
        expect(&t, 2);
        for (size_t i = 0; i < n; i++) want[i] += input[1][i];
        fkt_act_rms_norm(&dst, &a, vectors[0], vectors[1], 1e-5F, &b);
        check_edges(&dst);
        fkt_act_to_nchw(got, &dst);
        compare(&t, &dst, n);
        for (size_t i = 0; i < n; i++)
            want[i] = input[0][i] * vectors[0][i / plane % s.c] + vectors[1][i / plane % s.c];
        fkt_act_channel_affine(&dst, &a, vectors[0], vectors[1]);
        check_edges(&dst);
        fkt_act_to_nchw(got, &dst);
        compare(&t, &dst, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_is_the_formula),
        cmocka_unit_test(bfloat16_rounds_to_nearest_even),
        cmocka_unit_test(moves_agree_to_the_bit),
        cmocka_unit_test(arithmetic_agrees),
        cmocka_unit_test(resizing_agrees),
        cmocka_unit_test(pools_agree),
        cmocka_unit_test(a_nan_is_the_result_of_its_windows),
        cmocka_unit_test(norms_agree),
        cmocka_unit_test(attention_agrees),
        cmocka_unit_test(silu_is_right_everywhere),
        cmocka_unit_test(in_place_is_the_same),
        cmocka_unit_test(fused_addition_and_channel_affine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
