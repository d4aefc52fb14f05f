/* SPDX-License-Identifier: Apache-2.0 */
/* net_problems.c - networks with every operation, every pattern that backends fuse, and shapes that fit no block. */
#include "tests/support/net_problems.h"

#include "tests/support/build_net.h"

#include <string.h>

#define CONV(x, from, to, ...) net_conv(n, x, from, to, (struct net_window){__VA_ARGS__})

static void conv_first(struct fkt_net *n)
{
    fkt_net_init(n, 3);
    CONV(0, 3, 64, 3, 1, 1, 1, 1);
}
static void conv_few(struct fkt_net *n) /* to 3, 4 and 12 channels, and back from 3 */
{
    uint32_t x;
    fkt_net_init(n, 32);
    x = CONV(0, 32, 3, 3, 1, 1, 1, 1);
    x = CONV(x, 3, 48, 3, 1, 1, 1, 0);
    x = CONV(x, 48, 12, 3, 1, 1, 1, 1);
    CONV(x, 12, 4, 3, 1, 1, 1, 1);
}
static void conv_odd(struct fkt_net *n)
{
    uint32_t x;
    fkt_net_init(n, 20);
    x = CONV(0, 20, 33, 3, 1, 1, 1, 1);
    x = net_one(n, FKT_OP_SILU, x);
    x = CONV(x, 33, 7, 5, 2, 2, 1, 0);
    CONV(x, 7, 50, 1, 1, 0, 1, 1);
}
static void conv_groups(struct fkt_net *n) /* groups that no block fits, then that fit, then depthwise */
{
    uint32_t x;
    fkt_net_init(n, 60);
    x = CONV(0, 60, 60, 3, 1, 1, 3, 1);
    x = CONV(x, 60, 64, 1, 1, 0, 1, 0);
    x = CONV(x, 64, 64, 1, 1, 0, 4, 1);
    x = CONV(x, 64, 64, 3, 1, 1, 64, 1);
    CONV(x, 64, 64, 5, 1, 2, 64, 0);
}
static void conv_stride(struct fkt_net *n)
{
    fkt_net_init(n, 64);
    net_one(n, FKT_OP_RELU, CONV(0, 64, 64, 3, 2, 1, 1, 0));
}
static void conv_wide(struct fkt_net *n) /* Winograd with its three kinds of ending */
{
    uint32_t x, y;
    fkt_net_init(n, 32);
    x = net_conv3(n, 0, 32, 48);
    y = net_one(n, FKT_OP_RELU, net_conv3(n, x, 48, 48));
    y = net_one(n, FKT_OP_SILU, net_conv3(n, y, 48, 48));
    y = net_conv3(n, y, 48, 48);
    y = net_one(n, FKT_OP_RELU, net_sum(n, y, x));
    x = net_conv3(n, y, 48, 48);
    net_one(n, FKT_OP_SILU, net_sum(n, x, y));
}
static void conv_phases(struct fkt_net *n) /* few channels on large maps, with a folded norm and an activation */
{
    uint32_t x;
    fkt_net_init(n, 32);
    x = net_one(n, FKT_OP_SILU, net_norm(n, net_conv3(n, 0, 32, 2), FKT_OP_BATCH_NORM, 2, 1));
    x = net_conv3(n, x, 2, 64);
    CONV(x, 64, 4, 3, 1, 1, 1, 0);
}
static void linear(struct fkt_net *n)
{
    uint32_t x;
    fkt_net_init(n, 3);
    x = net_conv3(n, 0, 3, 20);
    x = net_one(n, FKT_OP_RELU, net_linear(n, x, 20 * 7 * 5, 40));
    net_linear(n, x, 40, 10);
}
static void
add_twice(struct fkt_net *n) /* the addend is needed afterwards; the addend is the convolution's own input */
{
    uint32_t x, y, z;
    fkt_net_init(n, 16);
    x = net_one(n, FKT_OP_RELU, net_conv3(n, 0, 16, 32));
    y = net_sum(n, net_conv3(n, x, 32, 32), x);
    z = net_sum(n, x, CONV(y, 32, 32, 1, 1, 0, 1, 0));
    net_sum(n, net_sum(n, z, x), y);
}
static void add_meeting(struct fkt_net *n) /* the sum of two convolutions, and the input is an addend */
{
    uint32_t a, b;
    fkt_net_init(n, 16);
    a = net_conv3(n, 0, 16, 16);
    b = CONV(0, 16, 16, 1, 1, 0, 1, 1);
    a = net_one(n, FKT_OP_SILU, net_sum(n, a, b));
    net_sum(n, 0, net_conv3(n, a, 16, 16));
}
static void add_plain_input(struct fkt_net *n) /* an input of three channels that is also an addend */
{
    uint32_t x;
    fkt_net_init(n, 3);
    x = net_one(n, FKT_OP_RELU, net_conv3(n, 0, 3, 24));
    x = net_sum(n, net_conv3(n, x, 24, 3), 0);
    fkt_net_plain(n, FKT_OP_CONCAT, x, 0, 0);
}
static void norms(struct fkt_net *n)
{
    uint32_t x, y;
    fkt_net_init(n, 24);
    x = net_norm(n, net_conv3(n, 0, 24, 40), FKT_OP_BATCH_NORM, 40, 1);
    y = CONV(x, 40, 40, 3, 1, 1, 1, 0);
    y = net_one(n, FKT_OP_RELU, net_sum(n, net_norm(n, y, FKT_OP_BATCH_NORM, 40, 1), x));
    x = net_sum(n, net_norm(n, net_conv3(n, y, 40, 40), FKT_OP_RMS_NORM, 40, 1), y);
    x = net_norm(n, x, FKT_OP_RMS_NORM, 40, 1);
    x = net_norm(n, x, FKT_OP_GROUP_NORM, 40, 5);
    x = net_one(n, FKT_OP_RELU, net_norm(n, x, FKT_OP_BATCH_NORM, 40, 1));
    net_sum(n, net_norm(n, x, FKT_OP_RMS_NORM, 40, 1), x);
}
static void moves(struct fkt_net *n)
{
    uint32_t x, y;
    fkt_net_init(n, 3);
    x = net_conv3(n, 0, 3, 24);
    y = fkt_net_move(n, FKT_OP_UNSHUFFLE, x, 2);
    y = fkt_net_move(n, FKT_OP_GROUP_MEAN, y, 24);
    y = fkt_net_move(n, FKT_OP_REPEAT, net_conv3(n, y, 24, 24), 96);
    y = fkt_net_move(n, FKT_OP_SHUFFLE, y, 2);
    y = net_sum(n, y, x);
    y = fkt_net_move(n, FKT_OP_UPSAMPLE, y, 2);
    y = net_conv3(n, y, 24, 20);
    net_one(n, FKT_OP_GLU, y);
}
static void attention(struct fkt_net *n)
{
    uint32_t x, y, q;
    fkt_net_init(n, 64);
    q = CONV(0, 64, 192, 1, 1, 0, 1, 0);
    y = CONV(q, 192, 192, 5, 1, 2, 192, 0);
    y = CONV(y, 192, 192, 1, 1, 0, 6, 0);
    y = net_attention(n, fkt_net_plain(n, FKT_OP_CONCAT, q, y, 0), 32);
    y = net_norm(n, CONV(y, 128, 64, 1, 1, 0, 1, 0), FKT_OP_RMS_NORM, 64, 1);
    x = net_sum(n, y, 0);
    y = net_one(n, FKT_OP_SILU, CONV(x, 64, 256, 1, 1, 0, 1, 1));
    y = net_one(n, FKT_OP_GLU, CONV(y, 256, 256, 3, 1, 1, 256, 1));
    net_sum(n, net_norm(n, CONV(y, 128, 64, 1, 1, 0, 1, 0), FKT_OP_RMS_NORM, 64, 1), x);
}
static void numbers(struct fkt_net *n) /* no convolution at all, in place and not */
{
    struct fkt_op op = net_op(FKT_OP_AFFINE, 0);
    uint32_t x, y;
    op.value[0] = 2;
    op.value[1] = -0.5f;
    fkt_net_init(n, 5);
    x = fkt_net_add(n, &op);
    y = net_one(n, FKT_OP_SILU, x);
    y = net_one(n, FKT_OP_RELU, y);
    y = fkt_net_plain(n, FKT_OP_SOFT_CLAMP, net_sum(n, y, x), 0, 1.5f);
    net_one(n, FKT_OP_SILU, y);
}
static void taesd_like(struct fkt_net *n)
{
    uint32_t x, y;
    fkt_net_init(n, 3);
    x = net_conv3(n, 0, 3, 64);
    for (int i = 0; i < 3; i++) {
        if (i) x = CONV(x, 64, 64, 3, 2, 1, 1, 0);
        y = net_one(n, FKT_OP_RELU, net_conv3(n, x, 64, 64));
        y = net_one(n, FKT_OP_RELU, net_conv3(n, y, 64, 64));
        x = net_one(n, FKT_OP_RELU, net_sum(n, net_conv3(n, y, 64, 64), x));
    }
    net_conv3(n, x, 64, 4);
}

static uint32_t residual(struct fkt_net *n, uint32_t x, uint32_t c)
{
    uint32_t y = net_one(n, FKT_OP_SILU, net_conv3(n, x, c, c));
    return net_sum(n, net_norm(n, CONV(y, c, c, 3, 1, 1, 1, 0), FKT_OP_RMS_NORM, c, 1), x);
}
static void dcae_encoder_like(struct fkt_net *n) /* pixels folded in, then down with a mean, and without */
{
    uint32_t x, y, z;
    fkt_net_init(n, 3);
    x = fkt_net_move(n, FKT_OP_UNSHUFFLE, net_conv3(n, 0, 3, 8), 2);
    x = residual(n, x, 32);
    y = fkt_net_move(n, FKT_OP_UNSHUFFLE, net_conv3(n, x, 32, 16), 2);
    z = fkt_net_move(n, FKT_OP_GROUP_MEAN, fkt_net_move(n, FKT_OP_UNSHUFFLE, x, 2), 64);
    x = residual(n, net_sum(n, y, z), 64);
    y = fkt_net_move(n, FKT_OP_UNSHUFFLE, net_conv3(n, x, 64, 64), 2);
    x = net_sum(n, y, fkt_net_move(n, FKT_OP_UNSHUFFLE, x, 2));
    net_sum(n, net_conv3(n, x, 256, 8), fkt_net_move(n, FKT_OP_GROUP_MEAN, x, 8));
}
static void
dcae_decoder_like(struct fkt_net *n) /* up with a repeat, and without; a norm with a ReLU; pixels unfolded */
{
    uint32_t x, y, z;
    fkt_net_init(n, 8);
    x = net_sum(n, net_conv3(n, 0, 8, 64), fkt_net_move(n, FKT_OP_REPEAT, 0, 64));
    y = fkt_net_move(n, FKT_OP_SHUFFLE, net_conv3(n, x, 64, 128), 2);
    z = fkt_net_move(n, FKT_OP_SHUFFLE, fkt_net_move(n, FKT_OP_REPEAT, x, 128), 2);
    x = net_sum(n, y, z);
    y = net_norm(n, CONV(x, 32, 32, 3, 1, 1, 1, 0), FKT_OP_BATCH_NORM, 32, 1);
    x = net_sum(n, y, x);
    y = fkt_net_move(n, FKT_OP_SHUFFLE, net_conv3(n, x, 32, 32), 2);
    x = net_sum(n, y, fkt_net_move(n, FKT_OP_SHUFFLE, x, 2));
    x = net_one(n, FKT_OP_RELU, net_norm(n, x, FKT_OP_RMS_NORM, 8, 1));
    fkt_net_move(n, FKT_OP_SHUFFLE, net_conv3(n, x, 8, 12), 2);
}
static void clamped(struct fkt_net *n) /* an activation between an input of few channels and its convolution */
{
    uint32_t x;
    fkt_net_init(n, 4);
    x = fkt_net_plain(n, FKT_OP_SOFT_CLAMP, 0, 0, 3);
    x = net_one(n, FKT_OP_RELU, net_conv3(n, x, 4, 32));
    net_conv3(n, net_one(n, FKT_OP_SILU, net_norm(n, x, FKT_OP_GROUP_NORM, 32, 4)), 32, 3);
}
static void gates(struct fkt_net *n) /* gated units after depthwise windows of 3, 5 and 7, and where another reads */
{
    uint32_t x, y;
    fkt_net_init(n, 16);
    x = net_one(n, FKT_OP_GLU, CONV(0, 16, 16, 3, 1, 1, 16, 1));
    x = CONV(x, 8, 32, 1, 1, 0, 1, 1);
    x = net_one(n, FKT_OP_GLU, CONV(x, 32, 32, 5, 1, 2, 32, 0));
    x = net_one(n, FKT_OP_GLU, CONV(x, 16, 16, 7, 1, 3, 16, 1));
    x = CONV(x, 8, 64, 1, 1, 0, 1, 0);
    x = net_one(n, FKT_OP_GLU, CONV(x, 64, 64, 1, 1, 0, 64, 1));
    x = net_one(n, FKT_OP_GLU, CONV(x, 32, 16, 1, 1, 0, 16, 1)); /* two channels to each group */
    x = CONV(x, 8, 32, 1, 1, 0, 1, 0);
    x = net_one(n, FKT_OP_GLU, CONV(x, 32, 16, 3, 1, 1, 16, 1));
    y = CONV(x, 8, 8, 3, 1, 1, 8, 1);
    x = net_sum(n, y, CONV(net_one(n, FKT_OP_GLU, y), 4, 8, 1, 1, 0, 1, 0));
    net_one(n, FKT_OP_RELU, net_sum(n, CONV(x, 8, 8, 3, 1, 1, 8, 1), x));
}
/* One block of an EfficientNet-Lite: wider, depthwise, narrower, each with its norm; the first two with a ReLU6. */
static uint32_t bottleneck(struct fkt_net *n, uint32_t x, uint32_t from, uint32_t to, struct net_window w,
                           uint32_t side)
{
    uint32_t wide = 3 * from, y;
    w.groups = wide;
    y = net_one(n, FKT_OP_RELU6, net_norm(n, CONV(x, from, wide, 1, 1, 0, 1, 0), FKT_OP_BATCH_NORM, wide, 1));
    y = net_same(n, y, wide, wide, w, side);
    y = net_one(n, FKT_OP_RELU6, net_norm(n, y, FKT_OP_BATCH_NORM, wide, 1));
    y = net_norm(n, CONV(y, wide, to, 1, 1, 0, 1, 0), FKT_OP_BATCH_NORM, to, 1);
    return w.stride == 1 && from == to ? net_sum(n, y, x) : y;
}
static void lite_like(struct fkt_net *n) /* an EfficientNet-Lite in small: strides 2 of 3 and 5 on even and odd sides */
{
    uint32_t x;
    fkt_net_init(n, 3);
    x = fkt_net_move(n, FKT_OP_RESIZE, 0, 20);
    x = net_same(n, x, 3, 32, (struct net_window){3, 2, 0, 1, 0}, 20);
    x = net_one(n, FKT_OP_RELU6, net_norm(n, x, FKT_OP_BATCH_NORM, 32, 1));
    x = bottleneck(n, x, 32, 24, (struct net_window){3, 2, 0, 1, 0}, 10);
    x = bottleneck(n, x, 24, 24, (struct net_window){3, 1, 0, 1, 0}, 5);
    x = bottleneck(n, x, 24, 40, (struct net_window){5, 1, 0, 1, 0}, 5);
    x = fkt_net_move(n, FKT_OP_RESIZE, x, 8);
    x = bottleneck(n, x, 40, 40, (struct net_window){5, 2, 0, 1, 0}, 8);
    x = bottleneck(n, x, 40, 20, (struct net_window){5, 2, 0, 1, 0}, 4);
    net_linear(n, net_one(n, FKT_OP_MEAN, net_one(n, FKT_OP_RELU6, x)), 20, 10);
}
static void
uneven(struct fkt_net *n) /* one more row of zeros behind: dense, of stride 1, in groups; a ReLU6 after all */
{
    struct fkt_op large = net_op(FKT_OP_AFFINE, 0); /* so that some numbers are above 6 */
    uint32_t x, y;
    large.value[0] = 8;
    fkt_net_init(n, 40);
    x = CONV(fkt_net_add(n, &large), 40, 48, 3, 1, 1, 1, 1);
    n->op[x - 1].pad_after = 1;
    y = net_one(n, FKT_OP_RELU6, net_sum(n, net_conv3(n, x, 48, 48), x));
    x = net_one(n, FKT_OP_RELU6, net_conv3(n, y, 48, 48));
    x = net_same(n, net_sum(n, x, y), 48, 32, (struct net_window){2, 1, 0, 1, 1}, 9);
    x = net_one(n, FKT_OP_RELU6, net_norm(n, x, FKT_OP_RMS_NORM, 32, 1));
    x = net_one(n, FKT_OP_RELU6, net_norm(n, x, FKT_OP_GROUP_NORM, 32, 4));
    x = net_same(n, x, 32, 32, (struct net_window){4, 2, 0, 2, 0}, 9);
    x = CONV(x, 32, 32, 3, 2, 0, 32, 1);
    n->op[x - 1].pad_after = 2;
    net_one(n, FKT_OP_RELU6, fkt_net_move(n, FKT_OP_RESIZE, x, 11));
}
static void resized(struct fkt_net *n) /* up, down, and to the same side; from the input and from blocks */
{
    uint32_t x;
    fkt_net_init(n, 3);
    x = fkt_net_move(n, FKT_OP_RESIZE, 0, 17);
    x = fkt_net_move(n, FKT_OP_RESIZE, net_conv3(n, x, 3, 20), 6);
    x = fkt_net_move(n, FKT_OP_RESIZE, x, 6);
    fkt_net_move(n, FKT_OP_RESIZE, fkt_net_move(n, FKT_OP_RESIZE, x, 130), 3);
}
static void pools(struct fkt_net *n)
{
    struct fkt_op op = net_op(FKT_OP_MAX_POOL, 0);
    op.kernel = 3;
    op.stride = 2;
    op.pad = 1;
    fkt_net_init(n, 3);
    op.in[0] = net_one(n, FKT_OP_RELU, net_conv3(n, 0, 3, 24));
    net_linear(n, net_one(n, FKT_OP_MEAN, net_conv3(n, fkt_net_add(n, &op), 24, 20)), 20, 10);
}

const struct net_problem net_problems[] = {
    {"first convolution", conv_first, 16, 12},
    {"few channels", conv_few, 9, 11},
    {"odd channels", conv_odd, 9, 13},
    {"groups", conv_groups, 6, 7},
    {"stride", conv_stride, 8, 8},
    {"wide", conv_wide, 13, 9},
    {"wide on a small map", conv_wide, 4, 4},
    {"wide on a tiny map", conv_wide, 2, 1},
    {"phases", conv_phases, 16, 18},
    {"linear", linear, 7, 5},
    {"addends that live on", add_twice, 6, 6},
    {"additions that meet", add_meeting, 8, 8},
    {"input as addend", add_plain_input, 7, 7},
    {"norms", norms, 6, 10},
    {"moves", moves, 8, 12},
    {"attention", attention, 4, 5},
    {"numbers", numbers, 3, 5},
    {"DC-AE's encoder in small", dcae_encoder_like, 16, 8},
    {"DC-AE's decoder in small", dcae_decoder_like, 4, 2},
    {"a clamped input", clamped, 4, 5},
    {"gates", gates, 6, 5},
    {"pools", pools, 9, 12},
    {"EfficientNet-Lite in small", lite_like, 12, 9},
    {"uneven padding", uneven, 8, 8},
    {"resizing", resized, 5, 9},
    {"a small autoencoder", taesd_like, 16, 16},
};
const int net_problems_count = sizeof net_problems / sizeof *net_problems;

const struct net_problem *net_problem(const char *name)
{
    for (int i = 0; i < net_problems_count; i++)
        if (!strcmp(net_problems[i].name, name)) return &net_problems[i];
    fail_msg("no problem '%s'", name);
    return NULL;
}
