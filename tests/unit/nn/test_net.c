/* SPDX-License-Identifier: Apache-2.0 */
/* Building a network, and the shapes of its values: what is right, and everything that is refused. */
#include "nn/net.h"

#include "tests/support/check.h"

static const struct fkt_op bare = {.weight = FKT_NO_SLOT, .bias = FKT_NO_SLOT, .mean = FKT_NO_SLOT, .var = FKT_NO_SLOT};

static void building_numbers_values(void **state)
{
    struct fkt_net n;
    struct fkt_shape s[202];
    (void)state;
    fkt_net_init(&n, 3);
    CHECK(fkt_net_last(&n) == 0 && fkt_net_status(&n) == FKT_OK);
    CHECK_OK(fkt_net_shapes(&n, 5, 7, s));
    CHECK(s[0].c == 3 && s[0].h == 5 && s[0].w == 7);
    for (uint32_t i = 0; i < 200; i++) { /* beyond the first growth */
        char name[16];
        snprintf(name, sizeof name, "w%u", i);
        CHECK(fkt_net_plain(&n, FKT_OP_RELU, i, 0, 0) == i + 1);
        CHECK(fkt_net_slot(&n, name, i + 1, 2, 0, 0) == i);
    }
    CHECK(fkt_net_last(&n) == 200 && n.n_slots == 200);
    CHECK(n.slot[7].rank == 2 && n.slot[7].parts == 1 && fkt_slot_count(&n.slot[7]) == 16);
    assert_string_equal(n.slot[199].name[0], "w199");
    CHECK(fkt_net_parameters(&n) == 200 * 201);
    CHECK(n.op[3].kind == FKT_OP_RELU && n.op[3].in[0] == 3 && n.op[3].weight == FKT_NO_SLOT);
    CHECK_OK(fkt_net_shapes(&n, 5, 7, s));
    CHECK(s[200].c == 3);
    fkt_net_clear(&n);
    CHECK(!n.n_ops && !n.n_slots && !n.op);
    fkt_net_clear(&n); /* twice is fine */
}

static void parts_stack(void **state)
{
    static const char *const names[] = {"q", "k", "v"};
    struct fkt_net n;
    (void)state;
    fkt_net_init(&n, 3);
    CHECK(fkt_net_slot_parts(&n, names, 3, 12, 4, 1, 1) == 0);
    CHECK(n.slot[0].parts == 3 && n.slot[0].rank == 4 && fkt_slot_count(&n.slot[0]) == 48);
    assert_string_equal(n.slot[0].name[2], "v");
    fkt_net_clear(&n);
}

static void failure_sticks(void **state)
{
    static const char *const names[] = {"q", "k", "v", "w"};
    static const uint32_t wrong[][2] = {{0, 4}, {4, 4}, {3, 4}}; /* no part, too many, not of equal length */
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct fkt_net n;
        struct fkt_shape s[2];
        fkt_net_init(&n, 3);
        CHECK(fkt_net_slot_parts(&n, names, wrong[i][0], wrong[i][1], 1, 1, 1) == FKT_NO_SLOT);
        CHECK(fkt_net_status(&n) == FKT_E_ARG);
        CHECK(fkt_net_plain(&n, FKT_OP_RELU, 0, 0, 0) == 0);
        CHECK(fkt_net_move(&n, FKT_OP_UPSAMPLE, 0, 2) == 0);
        CHECK(fkt_net_slot(&n, "w", 1, 0, 0, 0) == FKT_NO_SLOT);
        CHECK(!n.n_ops && !n.n_slots);
        CHECK_STATUS(fkt_net_shapes(&n, 4, 4, s), FKT_E_ARG);
        fkt_net_clear(&n);
    }
}

/* A network of one operation on (c, h, w); slots 0.. have the shapes given, ended by a zero row. */
struct one {
    struct fkt_op op;
    struct fkt_shape x;
    uint32_t slot[4][4];
};

static fkt_status shapes_of(const struct one *o, struct fkt_shape *y)
{
    struct fkt_net n;
    struct fkt_shape s[2];
    fkt_status st;
    fkt_net_init(&n, o->x.c);
    for (int i = 0; i < 4 && o->slot[i][0]; i++)
        fkt_net_slot(&n, "t", o->slot[i][0], o->slot[i][1], o->slot[i][2], o->slot[i][3]);
    fkt_net_add(&n, &o->op);
    st = fkt_net_shapes(&n, o->x.h, o->x.w, s);
    *y = s[1];
    fkt_net_clear(&n);
    return st;
}

static void accept(struct one o, uint32_t c, uint32_t h, uint32_t w)
{
    struct fkt_shape y;
    CHECK_OK(shapes_of(&o, &y));
    if (y.c != c || y.h != h || y.w != w)
        fail_msg("%s gives (%u,%u,%u), want (%u,%u,%u)", fkt_op_name(o.op.kind), y.c, y.h, y.w, c, h, w);
}

static void refuse(struct one o, const char *why)
{
    struct fkt_shape y;
    CHECK_STATUS(shapes_of(&o, &y), FKT_E_ARG);
    if (!strstr(fkt_error_text(), why)) fail_msg("'%s' does not say '%s'", fkt_error_text(), why);
    if (o.op.kind < FKT_OP_KINDS) CHECK(strstr(fkt_error_text(), fkt_op_name(o.op.kind)));
}

static struct one plain(enum fkt_op_kind kind, uint32_t c, uint32_t h, uint32_t w)
{
    struct one o = {.op = bare, .x = {c, h, w}};
    o.op.kind = kind;
    o.op.value[0] = 1;
    return o;
}

static struct one convolution(void)
{
    struct one o = plain(FKT_OP_CONV, 4, 8, 9);
    o.op.channels = 6;
    o.op.kernel = 3;
    o.op.stride = 2;
    o.op.pad = 1;
    o.op.groups = 2;
    o.op.weight = 0;
    o.op.bias = 1;
    memcpy(o.slot, (uint32_t[2][4]){{6, 2, 3, 3}, {6}}, 2 * sizeof o.slot[0]);
    return o;
}

static void convolutions(void **state)
{
    struct one o;
    (void)state;
    accept(convolution(), 6, 4, 5);
    o = convolution(), o.op.bias = FKT_NO_SLOT, accept(o, 6, 4, 5);
    o = convolution(), o.op.pad = 0, accept(o, 6, 3, 4);
    o = convolution(), o.op.kernel = 0, refuse(o, "window is out of range");
    o = convolution(), o.op.kernel = 65, refuse(o, "window is out of range");
    o = convolution(), o.op.stride = 0, refuse(o, "window is out of range");
    o = convolution(), o.op.stride = 65, refuse(o, "window is out of range");
    o = convolution(), o.op.pad = UINT32_MAX, refuse(o, "window is out of range");
    o = convolution(), o.op.pad = 0, o.op.pad_after = 1, accept(o, 6, 4, 4);
    o = convolution(), o.op.pad = 0, o.op.pad_after = 2, accept(o, 6, 4, 5);
    o = convolution(), o.op.pad_after = 65, refuse(o, "window is out of range");
    o = convolution(), o.op.pad_after = UINT32_MAX, refuse(o, "window is out of range");
    o = convolution(), o.op.groups = 0, refuse(o, "groups do not divide");
    o = convolution(), o.op.groups = 3, refuse(o, "groups do not divide");
    o = convolution(), o.op.channels = 7, refuse(o, "groups do not divide");
    o = convolution(), o.x.h = 1, o.op.pad = 0, refuse(o, "larger than the map");
    o = convolution(), o.x.w = 1, o.op.pad = 0, refuse(o, "larger than the map");
    o = convolution(), o.op.weight = 1, refuse(o, "weight has another shape");
    o = convolution(), o.op.weight = 2, refuse(o, "weight has another shape");
    o = convolution(), o.op.weight = FKT_NO_SLOT, refuse(o, "weight has another shape");
    o = convolution(), o.slot[0][1] = 4, refuse(o, "weight has another shape");
    o = convolution(), o.op.bias = 0, refuse(o, "bias has another shape");
    o = convolution(), o.slot[1][0] = 5, refuse(o, "bias has another shape");
}

static void linears(void **state)
{
    struct one o = plain(FKT_OP_LINEAR, 2, 3, 4);
    (void)state;
    o.op.channels = 5;
    o.op.weight = 0;
    memcpy(o.slot, (uint32_t[2][4]){{5, 24}, {5}}, 2 * sizeof o.slot[0]);
    accept(o, 5, 1, 1);
    o.op.bias = 1, accept(o, 5, 1, 1);
    o.op.bias = 0, refuse(o, "bias has another shape");
    o.op.bias = FKT_NO_SLOT, o.x.w = 5, refuse(o, "weight has another shape");
    o.x.w = 4, o.slot[0][0] = 6, refuse(o, "weight has another shape");
}

static void moves(void **state)
{
    struct one o = plain(FKT_OP_UPSAMPLE, 12, 4, 6);
    (void)state;
    o.op.factor = 2, accept(o, 12, 8, 12);
    o.op.factor = 0, refuse(o, "factor is out of range");
    o.op.factor = 65, refuse(o, "factor is out of range");
    o.op.factor = 64, o.x.h = 2048, refuse(o, "empty or too large");
    o = plain(FKT_OP_SHUFFLE, 12, 4, 6), o.op.factor = 2, accept(o, 3, 8, 12);
    o.op.factor = 3, refuse(o, "does not divide the channels");
    o = plain(FKT_OP_UNSHUFFLE, 12, 4, 6), o.op.factor = 2, accept(o, 48, 2, 3);
    o.op.factor = 4, refuse(o, "does not divide the sides");
    o.op.factor = 3, refuse(o, "does not divide the sides");
    o = plain(FKT_OP_UNSHUFFLE, 1 << 19, 2, 2), o.op.factor = 2, refuse(o, "too many channels");
    o = plain(FKT_OP_GROUP_MEAN, 12, 2, 2), o.op.channels = 4, accept(o, 4, 2, 2);
    o.op.channels = 12, accept(o, 12, 2, 2);
    o.op.channels = 5, refuse(o, "do not divide");
    o.op.channels = 0, refuse(o, "do not divide");
    o.op.channels = 24, refuse(o, "wrong way");
    o = plain(FKT_OP_REPEAT, 12, 2, 2), o.op.channels = 36, accept(o, 36, 2, 2);
    o.op.channels = 4, refuse(o, "wrong way");
    o.op.channels = 30, refuse(o, "do not divide");
    o.op.channels = 12 << 20, refuse(o, "empty or too large");
}

static void norms(void **state)
{
    static const enum fkt_op_kind kinds[] = {FKT_OP_RMS_NORM, FKT_OP_GROUP_NORM, FKT_OP_BATCH_NORM};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct one good = plain(kinds[i], 6, 2, 2), o;
        good.op.weight = 0;
        good.op.bias = 1;
        good.op.groups = 3;
        if (kinds[i] == FKT_OP_BATCH_NORM) good.op.mean = 0, good.op.var = 1;
        memcpy(good.slot, (uint32_t[3][4]){{6}, {6}, {5}}, 3 * sizeof good.slot[0]);
        accept(good, 6, 2, 2);
        o = good, o.op.weight = FKT_NO_SLOT, refuse(o, "weight has another shape");
        o = good, o.op.bias = FKT_NO_SLOT, refuse(o, "weight has another shape");
        o = good, o.op.weight = 2, refuse(o, "weight has another shape");
        o = good, o.op.mean = 2, refuse(o, "statistic has another shape");
        o = good, o.op.var = 2, refuse(o, "statistic has another shape");
        o = good, o.op.value[0] = 0, refuse(o, "epsilon is not positive");
        o = good, o.op.value[0] = NAN, refuse(o, "epsilon is not positive");
        o = good, o.op.value[0] = INFINITY, refuse(o, "epsilon is not positive");
        if (kinds[i] == FKT_OP_BATCH_NORM) {
            o = good, o.op.mean = FKT_NO_SLOT, refuse(o, "statistic has another shape");
            o = good, o.op.var = FKT_NO_SLOT, refuse(o, "statistic has another shape");
        }
        if (kinds[i] == FKT_OP_GROUP_NORM) {
            o = good, o.op.groups = 0, refuse(o, "groups do not divide");
            o = good, o.op.groups = 4, refuse(o, "groups do not divide");
        }
    }
}

static void pointwise(void **state)
{
    struct one o;
    (void)state;
    accept(plain(FKT_OP_RELU, 3, 4, 5), 3, 4, 5);
    accept(plain(FKT_OP_RELU6, 3, 4, 5), 3, 4, 5);
    accept(plain(FKT_OP_SILU, 3, 4, 5), 3, 4, 5);
    accept(plain(FKT_OP_AFFINE, 3, 4, 5), 3, 4, 5);
    o = plain(FKT_OP_AFFINE, 3, 4, 5), o.op.value[1] = NAN, refuse(o, "not finite");
    o = plain(FKT_OP_SOFT_CLAMP, 3, 4, 5), accept(o, 3, 4, 5);
    o.op.value[0] = 0, refuse(o, "bound is not positive");
    o.op.value[0] = NAN, refuse(o, "bound is not positive");
    accept(plain(FKT_OP_GLU, 4, 2, 2), 2, 2, 2);
    refuse(plain(FKT_OP_GLU, 3, 2, 2), "odd number of channels");
    accept(plain(FKT_OP_ADD, 3, 4, 5), 3, 4, 5);
    accept(plain(FKT_OP_CONCAT, 3, 4, 5), 6, 4, 5);
    o = plain(FKT_OP_ATTENTION, 24, 2, 2), o.op.groups = 4, accept(o, 8, 2, 2);
    o.op.groups = 0, refuse(o, "heads do not divide");
    o.op.groups = 5, refuse(o, "heads do not divide");
    o.op.groups = UINT32_MAX / 3 + 1, refuse(o, "heads do not divide");
    o.op.groups = 4, o.op.value[0] = 0, refuse(o, "epsilon is not positive");
    refuse(plain(FKT_OP_KINDS, 3, 4, 5), "no such operation");
    o = plain(FKT_OP_RELU, 3, 4, 5), o.op.in[0] = 1, refuse(o, "does not exist yet");
    o = plain(FKT_OP_ADD, 3, 4, 5), o.op.in[1] = 1, refuse(o, "does not exist yet");
    assert_string_equal(fkt_op_name((enum fkt_op_kind)999), "unknown");
}

/* TensorFlow: ceil(side/stride) results, the odd row of zeros behind. */
static void same_padding(void **state)
{
    static const uint32_t want[][5] = {{3, 2, 8, 0, 1}, {3, 2, 7, 1, 0}, {5, 2, 8, 1, 1}, {5, 2, 7, 2, 0},
                                       {3, 1, 8, 1, 0}, {5, 1, 7, 2, 0}, {1, 2, 8, 0, 0}, {3, 3, 8, 0, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        struct one o = convolution();
        o.op.kernel = want[i][0];
        o.op.stride = want[i][1];
        o.x.h = o.x.w = want[i][2];
        o.slot[0][2] = o.slot[0][3] = o.op.kernel;
        fkt_net_same(&o.op, want[i][2]);
        CHECK(o.op.pad == want[i][3] && o.op.pad_after == want[i][4]);
        accept(o, 6, (want[i][2] + want[i][1] - 1) / want[i][1], (want[i][2] + want[i][1] - 1) / want[i][1]);
    }
}

static void resizing(void **state)
{
    struct one o = plain(FKT_OP_RESIZE, 3, 4, 5);
    (void)state;
    o.op.factor = 7, accept(o, 3, 7, 7);
    o.op.factor = 1, accept(o, 3, 1, 1);
    o.op.factor = 256, accept(o, 3, 256, 256);
    o.op.factor = 257, refuse(o, "side is out of range"); /* more than 64 times 4 */
    o.op.factor = 0, refuse(o, "side is out of range");
    o.op.factor = UINT32_MAX, refuse(o, "side is out of range");
    o.op.factor = 1, o.x.h = o.x.w = 64, accept(o, 3, 1, 1);
    o.x.w = 65, refuse(o, "side is out of range");
    o.op.factor = 16384, o.x.h = o.x.w = 16384, o.x.c = 1, accept(o, 1, 16384, 16384);
    o.op.factor = 16385, refuse(o, "side is out of range");
    o.op.factor = 16384, o.x.h = 16385, refuse(o, "side is out of range");
}

static void pools(void **state)
{
    struct one good = plain(FKT_OP_MAX_POOL, 5, 8, 9), o;
    (void)state;
    good.op.kernel = 3;
    good.op.stride = 2;
    good.op.pad = 1;
    accept(good, 5, 4, 5);
    o = good, o.op.kernel = 2, accept(o, 5, 5, 5);
    o = good, o.op.kernel = 2, o.op.pad = 0, accept(o, 5, 4, 4);
    o = good, o.x.h = o.x.w = 1, accept(o, 5, 1, 1);
    o = good, o.op.pad = 2, refuse(o, "window is out of range"); /* a window of padding alone */
    o = good, o.op.kernel = 0, refuse(o, "window is out of range");
    o = good, o.op.kernel = 65, refuse(o, "window is out of range");
    o = good, o.op.stride = 0, refuse(o, "window is out of range");
    o = good, o.op.stride = 65, refuse(o, "window is out of range");
    o = good, o.op.pad = UINT32_MAX, refuse(o, "window is out of range");
    o = good, o.op.pad_after = 1, refuse(o, "window is out of range");
    o = good, o.op.kernel = 12, o.op.pad = 1, refuse(o, "larger than the map");
    o = good, o.op.kernel = 11, o.op.pad = 1, refuse(o, "larger than the map"); /* it is one row too low */
    accept(plain(FKT_OP_MEAN, 7, 3, 4), 7, 1, 1);
}

static void sizes_are_bounded(void **state)
{
    static const struct fkt_shape bad[] = {{0, 4, 4},     {3, 0, 4},     {3, 4, 0},         {(1 << 20) + 1, 1, 1},
                                           {1, 65537, 1}, {1, 1, 65537}, {1024, 2048, 1024}}; /* 2^31 numbers */
    struct fkt_shape s[3];
    struct fkt_net n;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fkt_net_init(&n, bad[i].c);
        CHECK_STATUS(fkt_net_shapes(&n, bad[i].h, bad[i].w, s), FKT_E_ARG);
        fkt_net_clear(&n);
    }
    fkt_net_init(&n, 4);
    fkt_net_move(&n, FKT_OP_UPSAMPLE, 0, 2);
    fkt_net_plain(&n, FKT_OP_ADD, 0, 1, 0); /* (4,4,4) and (4,8,8) */
    CHECK_STATUS(fkt_net_shapes(&n, 4, 4, s), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "operation 1") && strstr(fkt_error_text(), "differ in shape"));
    n.op[1].kind = FKT_OP_CONCAT;
    CHECK_STATUS(fkt_net_shapes(&n, 4, 4, s), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "differ in size"));
    fkt_net_clear(&n);
}

static void flops_are_counted(void **state)
{
    struct one o = convolution();
    struct fkt_net n;
    struct fkt_shape s[4];
    (void)state;
    fkt_net_init(&n, 4);
    fkt_net_slot(&n, "w", 6, 2, 3, 3);
    fkt_net_slot(&n, "b", 6, 0, 0, 0);
    fkt_net_add(&n, &o.op);
    CHECK_OK(fkt_net_shapes(&n, 8, 9, s));
    CHECK(fkt_net_flops(&n, s) == 2 * 6 * 4 * 5 * 2 * 9);
    fkt_net_clear(&n);
    fkt_net_init(&n, 2);
    o = plain(FKT_OP_LINEAR, 0, 0, 0);
    o.op.channels = 5;
    o.op.weight = fkt_net_slot(&n, "w", 5, 24, 0, 0);
    fkt_net_add(&n, &o.op);
    fkt_net_plain(&n, FKT_OP_RELU, 1, 0, 0);
    CHECK_OK(fkt_net_shapes(&n, 3, 4, s));
    CHECK(fkt_net_flops(&n, s) == 2 * 5 * 24);
    fkt_net_clear(&n);
    fkt_net_init(&n, 24);
    o = plain(FKT_OP_ATTENTION, 0, 0, 0);
    o.op.groups = 4;
    fkt_net_add(&n, &o.op);
    CHECK_OK(fkt_net_shapes(&n, 2, 2, s));
    CHECK(fkt_net_flops(&n, s) == 4 * 4 * 8 * 5);
    fkt_net_clear(&n);
}

/* A convolution and the addition of its input; then a linear map. */
static void convolves_and_adds(struct fkt_net *n, const char *name)
{
    struct fkt_op op = bare;
    fkt_net_init(n, 2);
    op.kind = FKT_OP_CONV;
    op.channels = 2;
    op.kernel = op.stride = op.groups = 1;
    op.weight = fkt_net_slot(n, name, 2, 2, 1, 1);
    fkt_net_plain(n, FKT_OP_ADD, fkt_net_add(n, &op), 0, 0);
    op = bare;
    op.kind = FKT_OP_LINEAR;
    op.in[0] = 2;
    op.channels = 3;
    op.weight = fkt_net_slot(n, "fc", 3, 2, 0, 0);
    fkt_net_add(n, &op);
}

static void networks_are_joined(void **state)
{
    static const char *const names[] = {"q", "k"};
    struct fkt_net n, other;
    struct fkt_shape s[8];
    (void)state;
    fkt_net_init(&n, 2);
    convolves_and_adds(&other, "w");
    fkt_net_slot(&n, "w", 5, 0, 0, 0);
    fkt_net_plain(&n, FKT_OP_RELU, 0, 0, 0);
    CHECK(fkt_net_append(&n, 1, &other, 2, "a.") == 3 && fkt_net_append(&n, 3, &other, 3, "b.") == 6);
    CHECK_OK(fkt_net_status(&n));
    CHECK(n.n_slots == 4); /* one of its own; a.w, without the linear map's; b.w and b.fc */
    assert_string_equal(n.slot[0].name[0], "w");
    assert_string_equal(n.slot[1].name[0], "a.w");
    assert_string_equal(n.slot[2].name[0], "b.w");
    assert_string_equal(n.slot[3].name[0], "b.fc");
    CHECK(n.op[1].in[0] == 1 && n.op[1].weight == 1 && n.op[1].bias == FKT_NO_SLOT);
    CHECK(n.op[2].in[0] == 2 && n.op[2].in[1] == 1); /* the input of what was appended is value 1 */
    CHECK(n.op[3].in[0] == 3 && n.op[3].weight == 2 && n.op[4].in[0] == 4 && n.op[4].in[1] == 3);
    CHECK(n.op[5].in[0] == 5 && n.op[5].weight == 3);
    CHECK_OK(fkt_net_shapes(&n, 1, 1, s));
    CHECK(s[6].c == 3);
    CHECK(fkt_net_append(&n, 4, &other, 0, "c.") == 4 && n.n_ops == 6 && n.n_slots == 4);
    CHECK(fkt_net_append(&n, 0, &other, 4, "c.") == 0); /* it has three */
    CHECK_STATUS(fkt_net_status(&n), FKT_E_ARG);
    fkt_net_clear(&n);
    fkt_net_init(&n, 2);
    CHECK(fkt_net_append(&n, 1, &other, 1, "") == 0); /* there is no value 1 */
    CHECK_STATUS(fkt_net_status(&n), FKT_E_ARG);
    fkt_net_clear(&n);
    fkt_net_clear(&other);
    fkt_net_init(&other, 2); /* a slot of two tensors; and a network that failed */
    fkt_net_init(&n, 2);
    fkt_net_slot_parts(&other, names, 2, 4, 2, 0, 0);
    fkt_net_plain(&other, FKT_OP_RELU, 0, 0, 0);
    other.op[0].weight = 0;
    fkt_net_append(&n, 0, &other, 1, "x.");
    CHECK(n.n_slots == 1 && n.slot[0].parts == 2 && n.slot[0].shape[0] == 4);
    assert_string_equal(n.slot[0].name[1], "x.k");
    fkt_net_slot_parts(&other, names, 2, 3, 2, 0, 0);
    CHECK(fkt_net_append(&n, 0, &other, 1, "y.") == 0);
    CHECK_STATUS(fkt_net_status(&n), FKT_E_ARG);
    fkt_net_clear(&n);
    fkt_net_clear(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(building_numbers_values),
        cmocka_unit_test(parts_stack),
        cmocka_unit_test(failure_sticks),
        cmocka_unit_test(convolutions),
        cmocka_unit_test(linears),
        cmocka_unit_test(moves),
        cmocka_unit_test(norms),
        cmocka_unit_test(pointwise),
        cmocka_unit_test(pools),
        cmocka_unit_test(same_padding),
        cmocka_unit_test(resizing),
        cmocka_unit_test(sizes_are_bounded),
        cmocka_unit_test(flops_are_counted),
        cmocka_unit_test(networks_are_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
