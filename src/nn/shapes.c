/* SPDX-License-Identifier: Apache-2.0 */
/* shapes.c - the shape of every value of a network, checked, so that backends need not check again.
 *
 * A network may come from an untrusted file, so channels and sizes are bounded (2^20 channels, 2^16 pixels a side, 2^31
 * numbers in one map) before they are multiplied. */
#include "nn/net.h"
#include "nn/resize.h"

#include <inttypes.h>
#include <math.h>

enum { CHANNELS_MAX = 1 << 20, SIDE_MAX = 1 << 16 };

struct check {
    const struct fkt_net *net;
    const struct fkt_op *op;
    size_t index;
};

static fkt_status refuse(const struct check *k, const char *why)
{
    return fkt_fail(FKT_E_ARG, "operation %zu of the network (%s) is invalid: %s", k->index, fkt_op_name(k->op->kind),
                    why);
}

static int slot_is(const struct check *k, uint32_t slot, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    const uint32_t want[FKT_SLOT_RANK] = {a, b, c, d};
    if (slot >= k->net->n_slots) return 0;
    for (int i = 0; i < FKT_SLOT_RANK; i++)
        if (k->net->slot[slot].shape[i] != want[i]) return 0;
    return 1;
}

/* A vector of one number per channel; `needed` 0: may be absent. */
static int vector_is(const struct check *k, uint32_t slot, uint32_t c, int needed)
{
    return slot == FKT_NO_SLOT ? !needed : slot_is(k, slot, c, 0, 0, 0);
}

static fkt_status convolution(const struct check *k, struct fkt_shape x, struct fkt_shape *y)
{
    const struct fkt_op *op = k->op;
    uint64_t zeros = 2 * (uint64_t)op->pad + op->pad_after, h = x.h + zeros, w = x.w + zeros;
    if (!op->kernel || op->kernel > 64 || !op->stride || op->stride > 64 || op->pad > 64 || op->pad_after > 64)
        return refuse(k, "its window is out of range");
    if (!op->groups || x.c % op->groups || op->channels % op->groups)
        return refuse(k, "its groups do not divide the channels");
    if (h < op->kernel || w < op->kernel) return refuse(k, "its window is larger than the map");
    if (!slot_is(k, op->weight, op->channels, x.c / op->groups, op->kernel, op->kernel))
        return refuse(k, "its weight has another shape");
    if (!vector_is(k, op->bias, op->channels, 0)) return refuse(k, "its bias has another shape");
    *y = (struct fkt_shape){op->channels, (uint32_t)((h - op->kernel) / op->stride + 1),
                            (uint32_t)((w - op->kernel) / op->stride + 1)};
    return FKT_OK;
}

/* Every window holds at least one number of the map, since 2 pad <= kernel. */
static fkt_status max_pool(const struct check *k, struct fkt_shape x, struct fkt_shape *y)
{
    const struct fkt_op *op = k->op;
    uint32_t h, w;
    if (!op->kernel || op->kernel > 64 || !op->stride || op->stride > 64 || op->pad > op->kernel / 2 || op->pad_after)
        return refuse(k, "its window is out of range");
    h = x.h + 2 * op->pad;
    w = x.w + 2 * op->pad;
    if (h < op->kernel || w < op->kernel) return refuse(k, "its window is larger than the map");
    *y = (struct fkt_shape){x.c, (h - op->kernel) / op->stride + 1, (w - op->kernel) / op->stride + 1};
    return FKT_OK;
}

static fkt_status linear(const struct check *k, struct fkt_shape x, struct fkt_shape *y)
{
    uint64_t inputs = (uint64_t)x.c * x.h * x.w;
    if (inputs > UINT32_MAX || !slot_is(k, k->op->weight, k->op->channels, (uint32_t)inputs, 0, 0))
        return refuse(k, "its weight has another shape");
    if (!vector_is(k, k->op->bias, k->op->channels, 0)) return refuse(k, "its bias has another shape");
    *y = (struct fkt_shape){k->op->channels, 1, 1};
    return FKT_OK;
}

static fkt_status moved(const struct check *k, struct fkt_shape x, struct fkt_shape *y)
{
    uint32_t f = k->op->factor;
    if (!f || f > 64) return refuse(k, "its factor is out of range");
    *y = x;
    if (k->op->kind == FKT_OP_UNSHUFFLE) {
        if (x.h % f || x.w % f) return refuse(k, "its factor does not divide the sides");
        if (x.c > CHANNELS_MAX / (f * f)) return refuse(k, "too many channels");
        *y = (struct fkt_shape){x.c * f * f, x.h / f, x.w / f};
        return FKT_OK;
    }
    if (k->op->kind == FKT_OP_SHUFFLE) {
        if (x.c % (f * f)) return refuse(k, "the square of its factor does not divide the channels");
        y->c = x.c / (f * f);
    }
    y->h = x.h * f;
    y->w = x.w * f;
    return FKT_OK;
}

static fkt_status grouped(const struct check *k, struct fkt_shape x, struct fkt_shape *y)
{
    uint32_t c = k->op->channels, large = x.c > c ? x.c : c, small = x.c > c ? c : x.c;
    if (!c || large % small) return refuse(k, "its channels do not divide");
    if ((k->op->kind == FKT_OP_GROUP_MEAN) != (large == x.c) && x.c != c) return refuse(k, "it goes the wrong way");
    *y = (struct fkt_shape){c, x.h, x.w};
    return FKT_OK;
}

static int resizes(uint32_t from, uint32_t to)
{
    const uint32_t most = from > to ? from : to, least = from > to ? to : from;
    return most <= FKT_RESIZE_MAX && most <= least * FKT_RESIZE_TIMES;
}

static int positive(float x) { return x > 0 && isfinite(x); }

static fkt_status norm(const struct check *k, struct fkt_shape x, struct fkt_shape *y)
{
    const struct fkt_op *op = k->op;
    int batch = op->kind == FKT_OP_BATCH_NORM;
    if (!vector_is(k, op->weight, x.c, 1) || !vector_is(k, op->bias, x.c, 1))
        return refuse(k, "a weight has another shape");
    if (!vector_is(k, op->mean, x.c, batch) || !vector_is(k, op->var, x.c, batch))
        return refuse(k, "a statistic has another shape");
    if (op->kind == FKT_OP_GROUP_NORM && (!op->groups || x.c % op->groups))
        return refuse(k, "its groups do not divide the channels");
    if (!positive(op->value[0])) return refuse(k, "its epsilon is not positive");
    *y = x;
    return FKT_OK;
}

static fkt_status one(const struct check *k, struct fkt_shape a, struct fkt_shape b, struct fkt_shape *y)
{
    *y = a;
    switch (k->op->kind) {
    case FKT_OP_CONV: return convolution(k, a, y);
    case FKT_OP_LINEAR: return linear(k, a, y);
    case FKT_OP_RELU:
    case FKT_OP_RELU6:
    case FKT_OP_SILU: return FKT_OK;
    case FKT_OP_AFFINE:
        return isfinite(k->op->value[0]) && isfinite(k->op->value[1]) ? FKT_OK : refuse(k, "a number is not finite");
    case FKT_OP_SOFT_CLAMP: return positive(k->op->value[0]) ? FKT_OK : refuse(k, "its bound is not positive");
    case FKT_OP_GLU: y->c = a.c / 2; return a.c % 2 ? refuse(k, "an odd number of channels") : FKT_OK;
    case FKT_OP_UPSAMPLE:
    case FKT_OP_SHUFFLE:
    case FKT_OP_UNSHUFFLE: return moved(k, a, y);
    case FKT_OP_GROUP_MEAN:
    case FKT_OP_REPEAT: return grouped(k, a, y);
    case FKT_OP_RMS_NORM:
    case FKT_OP_GROUP_NORM:
    case FKT_OP_BATCH_NORM: return norm(k, a, y);
    case FKT_OP_ATTENTION:
        y->c = a.c / 3;
        if (!k->op->groups || k->op->groups > FKT_HEAD_MAX || a.c % (3 * k->op->groups))
            return refuse(k, "its heads do not divide the channels");
        return positive(k->op->value[0]) ? FKT_OK : refuse(k, "its epsilon is not positive");
    case FKT_OP_ADD:
        return a.c == b.c && a.h == b.h && a.w == b.w ? FKT_OK : refuse(k, "its two inputs differ in shape");
    case FKT_OP_CONCAT:
        y->c = a.c + b.c;
        return a.h == b.h && a.w == b.w ? FKT_OK : refuse(k, "its two inputs differ in size");
    case FKT_OP_MAX_POOL: return max_pool(k, a, y);
    case FKT_OP_RESIZE:
        *y = (struct fkt_shape){a.c, k->op->factor, k->op->factor};
        return resizes(a.h, y->h) && resizes(a.w, y->w) ? FKT_OK : refuse(k, "its side is out of range");
    case FKT_OP_MEAN: *y = (struct fkt_shape){a.c, 1, 1}; return FKT_OK;
    case FKT_OP_KINDS: break;
    }
    return refuse(k, "no such operation");
}

static int sane(struct fkt_shape s)
{
    return s.c && s.h && s.w && s.c <= CHANNELS_MAX && s.h <= SIDE_MAX && s.w <= SIDE_MAX &&
           (uint64_t)s.c * s.h <= INT32_MAX / s.w;
}

fkt_status fkt_net_shapes(const struct fkt_net *n, uint32_t height, uint32_t width, struct fkt_shape *out)
{
    if (n->failed != FKT_OK) return n->failed;
    out[0] = (struct fkt_shape){n->channels, height, width};
    if (!sane(out[0]))
        return fkt_fail(FKT_E_ARG, "a network cannot take images of %" PRIu32 " x %" PRIu32, width, height);
    for (size_t i = 0; i < n->n_ops; i++) {
        struct check k = {n, &n->op[i], i};
        int two = fkt_op_reads_two(k.op);
        fkt_status st;
        if (k.op->in[0] > i || (two && k.op->in[1] > i)) return refuse(&k, "it takes a value that does not exist yet");
        st = one(&k, out[k.op->in[0]], two ? out[k.op->in[1]] : out[0], &out[i + 1]);
        if (st != FKT_OK) return st;
        if (!sane(out[i + 1])) return refuse(&k, "the result is empty or too large");
    }
    return FKT_OK;
}

uint64_t fkt_net_flops(const struct fkt_net *n, const struct fkt_shape *s)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n->n_ops; i++) {
        const struct fkt_op *op = &n->op[i];
        struct fkt_shape x = s[op->in[0]], y = s[i + 1];
        uint64_t pixels = (uint64_t)y.h * y.w;
        if (op->kind == FKT_OP_CONV) sum += 2 * pixels * y.c * (x.c / op->groups) * op->kernel * op->kernel;
        else if (op->kind == FKT_OP_LINEAR) sum += 2 * (uint64_t)y.c * x.c * x.h * x.w;
        else if (op->kind == FKT_OP_ATTENTION) sum += 4 * pixels * y.c * (op->groups + 1);
    }
    return sum;
}
