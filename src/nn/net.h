/* SPDX-License-Identifier: Apache-2.0 */
/* net.h - a network as data: a list of plain operations with named weights, independent of any library and model.
 *
 * Value 0 is the input; operation i makes value i + 1 from earlier values; the last value is the output. A value is a
 * batch of (C, H, W) maps. Operations are plain (a convolution, then a ReLU, then an addition); a backend decides what
 * to fuse. Backward passes and other devices are further implementations of this list.
 */
#ifndef FKT_NN_NET_H
#define FKT_NN_NET_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum fkt_op_kind {
    FKT_OP_CONV = 0,   /* (channels, H', W') by a kernel x kernel window; weight (channels, C/groups, k, k), bias may be
                          absent. Zeros around the map: pad before, pad + pad_after behind;
                          H' = (H + 2 pad + pad_after - kernel)/stride + 1 */
    FKT_OP_LINEAR,     /* (channels, 1, 1) from all C*H*W numbers in that order; weight (channels, C*H*W), bias */
    FKT_OP_RELU,       /* max(x, 0) */
    FKT_OP_SILU,       /* x / (1 + exp(-x)) */
    FKT_OP_SOFT_CLAMP, /* a tanh(x / a), a = value[0] */
    FKT_OP_GLU,        /* (C/2, H, W): first half of the channels times SiLU of the second */
    FKT_OP_UPSAMPLE,   /* (C, fH, fW): nearest neighbour */
    FKT_OP_SHUFFLE,    /* (C/f^2, fH, fW): out[c, f y + dy, f x + dx] = in[(c f + dy) f + dx, y, x] */
    FKT_OP_UNSHUFFLE,  /* (C f^2, H/f, W/f): the inverse */
    FKT_OP_GROUP_MEAN, /* (channels, H, W): mean of each C/channels neighbouring channels */
    FKT_OP_REPEAT,     /* (channels, H, W): each channel channels/C times, copies side by side */
    FKT_OP_RMS_NORM,   /* x / sqrt(mean over channels of x^2 + eps) * weight + bias, pixel by pixel; eps = value[0] */
    FKT_OP_GROUP_NORM, /* per image and group of C/groups channels: (x - mean)/sqrt(var + eps) * weight + bias */
    FKT_OP_BATCH_NORM, /* (x - mean)/sqrt(var + eps) * weight + bias with the stored mean and var of each channel */
    FKT_OP_ATTENTION,  /* ReLU linear attention. Channels come in groups of 3 L (L = groups): q, k, v of one head.
                          out (C/3, H, W) = sum_j v_j <k_j, q_i> / (sum_j <k_j, q_i> + eps), q and k after ReLU */
    FKT_OP_ADD,        /* in[0] + in[1] */
    FKT_OP_CONCAT,     /* channels of in[0], then those of in[1] */
    FKT_OP_AFFINE,     /* value[0] x + value[1] */
    FKT_OP_MAX_POOL, /* (C, H', W'): largest number of each kernel x kernel window; H' as in CONV, 2 pad <= kernel, and
                          padding is never the largest */
    FKT_OP_MEAN,     /* (C, 1, 1): mean of each map */
    FKT_OP_RELU6,    /* min(max(x, 0), 6) */
    FKT_OP_RESIZE,   /* (C, factor, factor): bilinear with antialiasing, rows and columns by themselves (nn/resize.h) */
    FKT_OP_KINDS
};

#define FKT_NO_SLOT UINT32_MAX
enum { FKT_HEAD_MAX = 1024 }; /* channels of q, k or v in one head of ATTENTION */

struct fkt_op {
    enum fkt_op_kind kind;
    uint32_t in[2];                       /* values; the second for ADD and CONCAT alone */
    uint32_t channels;                    /* of the result: CONV, LINEAR, GROUP_MEAN, REPEAT */
    uint32_t kernel, stride, pad, groups; /* CONV, MAX_POOL; groups also GROUP_NORM and ATTENTION */
    uint32_t pad_after;                   /* CONV: rows and columns of zeros behind the map beyond pad; fkt_net_same */
    uint32_t factor;                      /* UPSAMPLE, SHUFFLE, UNSHUFFLE; RESIZE: the new side */
    float value[2];
    uint32_t weight, bias, mean, var; /* slots, FKT_NO_SLOT where there is none */
};

/* One array of weights: up to three tensors of a file, stacked along the first dimension. A tensor of another rank with
 * the same numbers in the same order (a 1x1 convolution kept as a matrix) is accepted. */
enum { FKT_SLOT_PARTS = 3, FKT_SLOT_RANK = 4 };
struct fkt_slot {
    char *name[FKT_SLOT_PARTS]; /* owned */
    uint32_t parts;             /* of equal length */
    uint32_t rank;
    uint32_t shape[FKT_SLOT_RANK]; /* of the whole */
};

struct fkt_net {
    struct fkt_op *op; /* (n_ops) owned */
    size_t n_ops;
    struct fkt_slot *slot; /* (n_slots) owned */
    size_t n_slots;
    uint32_t channels; /* of the input */
    fkt_status failed; /* sticky: continue building, check fkt_net_status once */
    size_t op_room, slot_room;
};

/* Building. Each call returns the number of the new value; after a failure they do nothing and return 0. */
void fkt_net_init(struct fkt_net *n, uint32_t input_channels);
void fkt_net_clear(struct fkt_net *n);
fkt_status fkt_net_status(const struct fkt_net *n); /* FKT_OK, or the first failure while building */
uint32_t fkt_net_last(const struct fkt_net *n);     /* number of the last value; 0: no operation yet */
uint32_t fkt_net_add(struct fkt_net *n, const struct fkt_op *op);
/* A slot with one tensor name; rank 1, 2 or 4; trailing zero dimensions are absent. */
uint32_t fkt_net_slot(struct fkt_net *n, const char *name, uint32_t a, uint32_t b, uint32_t c, uint32_t d);
uint32_t fkt_net_slot_parts(struct fkt_net *n, const char *const *names, uint32_t parts, uint32_t a, uint32_t b,
                            uint32_t c, uint32_t d);
/* An operation without weights and numbers, or with one number: RELU, SILU, SOFT_CLAMP, GLU, ADD, CONCAT,
 * MEAN, RELU6. */
uint32_t fkt_net_plain(struct fkt_net *n, enum fkt_op_kind kind, uint32_t x, uint32_t y, float value);
/* UPSAMPLE, SHUFFLE, UNSHUFFLE, RESIZE (number = factor), GROUP_MEAN, REPEAT (number = channels). */
uint32_t fkt_net_move(struct fkt_net *n, enum fkt_op_kind kind, uint32_t x, uint32_t number);
/* Sets pad and pad_after to TensorFlow's "same" padding for maps of this side: ceil(side/stride) results a side, of the
 * zeros that this needs the smaller half before the map. kernel and stride are set before; 3 x 3 of stride 2 on an even
 * side: pad 0, pad_after 1; 5 x 5: 1, 1. */
void fkt_net_same(struct fkt_op *op, uint32_t side);

/* The first `ops` operations of another network, with value x in place of its input; returns the number of their last
 * value. Slots are never shared: slot i of `other` becomes slot i + the number of slots before the call, under its name
 * after `prefix`; those beyond the last one in use are left out. Channels that do not match are found by
 * fkt_net_shapes. */
uint32_t fkt_net_append(struct fkt_net *n, uint32_t x, const struct fkt_net *other, size_t ops, const char *prefix);

struct fkt_shape {
    uint32_t c, h, w;
};
/* Shapes of all n_ops + 1 values for an input of height x width. FKT_E_ARG says which operation is invalid and why
 * (also where a slot does not have the shape that its operation needs, or a size overflows). */
FKT_MUST_USE fkt_status fkt_net_shapes(const struct fkt_net *n, uint32_t height, uint32_t width,
                                       struct fkt_shape *out /* (n_ops + 1) */);
uint64_t fkt_net_flops(const struct fkt_net *n, const struct fkt_shape *shapes); /* of one image; a fused
                                                                                     multiply-add is two */
uint64_t fkt_net_parameters(const struct fkt_net *n);
const char *fkt_op_name(enum fkt_op_kind kind);  /* "convolution", ... */
int fkt_op_reads_two(const struct fkt_op *op);   /* 1 when in[1] is used */
size_t fkt_slot_count(const struct fkt_slot *s); /* numbers in it */

#endif
