/* SPDX-License-Identifier: Apache-2.0 */
/* learn_conv.c - a convolution or linear map that learns: chooses a kernel for each of the three directions.
 *
 * Nothing is timed when a network is planned, so that it gets the same kernels, and so the same bits, on every run.
 * A linear map is a convolution whose window is as large as the map, as in conv.c. In a frozen network a depthwise
 * convolution has one group for each padded channel; one in other groups, which padding does not fit, is computed as
 * one without groups whose further weights are zeros. Where the library has no vector
 * kernel (a backward below AVX2) its reference loops are used: slow, but right. */
#include "nn/onednn/learn.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <string.h>

/* Winograd F(4,3) makes 4x4 pixels of 16 x 16 channels with 36 multiplications instead of 144. It needs f32, AVX-512,
 * blocks of 16, 3x3, stride 1, pad 1. Its gain depends on the channels (its transforms are a share of 1/channels)
 * and on the number of tiles (the transformed weights are read once per batch). Measured on a Xeon of the Sapphire
 * Rapids family, one thread, time of direct / time of Winograd, forward, backward-data, backward-weights:
 *
 *   channels    tiles 1024 (64 of 16x16)   256 (64 of 8x8)      64 (64 of 4x4)       16 (16 of 4x4)
 *    16 -> 16   0.66 0.73 0.92             0.75 0.83 0.70       0.95 1.10 0.56       0.51 0.51 0.32
 *    32 -> 32   1.20 1.33 1.31             1.10 1.08 1.12       0.90 0.76 0.93       0.48 0.57 0.97
 *    48 -> 48   1.49 1.55 1.66             1.52 1.50 1.39       1.64 0.96 1.36       0.82 0.49 1.02
 *    64 -> 64   1.64 1.77 1.68             1.68 1.56 1.78       1.23 1.00 1.62       0.62 0.61 1.23
 *   128 -> 128  2.01 2.17 1.80             1.63 1.48 2.07       1.32 1.19 1.76       0.80 0.60 0.94
 *   256 -> 256  2.48 2.91 2.25             1.64 1.71 2.16       1.46 0.97 2.42       0.81 0.59 0.97
 *   512 -> 512  2.64 2.85 3.13             2.01 1.93 3.49       1.50 1.29 2.44       0.80 0.66 0.92
 *
 * On 2x2 maps three quarters of a tile are waste, and direct is up to four times as fast. So: from 64 full tiles and 48
 * channels on, or 256 and 32, where at least half of the tiles' pixels are pixels of the map. */
static int winograd_pays(const struct fkt_dnn_conv *k)
{
    uint64_t map = (uint64_t)k->out_h * k->out_w, tiles = ((k->out_h + 3) / 4) * (uint64_t)((k->out_w + 3) / 4);
    uint32_t channels = k->in_c < k->out_c ? k->in_c : k->out_c;
    if (k->precision != FKT_PRECISION_F32 || k->in_layout != FKT_BLOCK16) return 0;
    if (k->kernel_h != 3 || k->kernel_w != 3 || k->stride != 1 || k->pad != 1 || k->pad_after || k->groups != 1)
        return 0;
    if (channels < 32 || map * 2 < tiles * 16) return 0;
    return map * k->batch / 16 >= (channels < 48 ? 256 : 64);
}

static int is_depthwise(const struct fkt_op *op, struct fkt_shape x)
{
    return op->kind == FKT_OP_CONV && op->groups > 1 && op->groups == x.c && op->groups == op->channels;
}

static void describe(const struct fkt_learn_draft *s, uint32_t i, struct fkt_dnn_conv *k)
{
    const struct fkt_op *op = &s->l->net->op[i];
    struct fkt_shape x = s->shape[op->in[0]], y = s->shape[i + 1];
    int linear = op->kind == FKT_OP_LINEAR;
    memset(k, 0, sizeof *k);
    k->batch = s->l->spec.batch;
    k->in_c = fkt_learn_draft_channels(s, op->in[0]);
    k->in_h = x.h;
    k->in_w = x.w;
    k->out_c = fkt_learn_draft_channels(s, i + 1);
    k->out_h = y.h;
    k->out_w = y.w;
    k->kernel_h = linear ? x.h : op->kernel;
    k->kernel_w = linear ? x.w : op->kernel;
    k->stride = linear ? 1 : op->stride;
    k->pad = linear ? 0 : op->pad;
    k->pad_after = linear ? 0 : op->pad_after;
    k->groups = is_depthwise(op, x) ? k->out_c : 1;
    k->in_layout = fkt_learn_draft_layout(s, op->in[0]);
    k->out_layout = fkt_learn_draft_layout(s, i + 1);
    k->precision = s->l->spec.precision;
    k->bias = op->bias != FKT_NO_SLOT;
}

static fkt_status kernel(const struct fkt_learn_draft *s, uint32_t i, enum fkt_dnn_way way, struct fkt_dnn_task **out)
{
    struct fkt_dnn_conv k;
    fkt_status st = FKT_OK;
    *out = NULL;
    describe(s, i, &k);
    s->facts->convolutions++;
    if (winograd_pays(&k)) {
        k.winograd = 1;
        FKT_TRY(fkt_dnn_task_conv(out, &k, way));
        s->facts->winograd += *out != NULL;
        k.winograd = 0;
    }
    if (!*out) FKT_TRY(fkt_dnn_task_conv(out, &k, way));
out:
    return st;
}

/* Which weights a task reads: FKT_NONE: the masters; else the number of a copy. */
static fkt_status weights_for(struct fkt_learn_draft *s, uint32_t slot, const struct fkt_dnn_task *task, uint32_t *copy)
{
    struct fkt_learn *l = s->l;
    const struct fkt_dnn_task *home = l->array[slot].home;
    struct fkt_copy c = {.slot = slot, .bytes = fkt_dnn_task_bytes(task, FKT_AT_WEIGHTS)};
    fkt_status st = FKT_OK;
    *copy = FKT_NONE;
    if (fkt_dnn_same_weights(home, task)) return FKT_OK;
    if (l->n_copies == l->copy_room) {
        FKT_TRY(fkt_realloc(&l->copy, l->copy_room + 64));
        l->copy_room += 64;
    }
    FKT_TRY(fkt_dnn_task_repack(&c.task, home, task));
    FKT_TRY(fkt_learn_draft_buffer(s, &c.scratch, fkt_dnn_task_bytes(c.task, FKT_AT_SCRATCH)));
    if (c.scratch != FKT_NONE) l->buffer[c.scratch].first = 0; /* copies are made before the first step */
    *copy = (uint32_t)l->n_copies;
    l->copy[l->n_copies++] = c;
    c.task = NULL;
out:
    fkt_dnn_task_free(c.task);
    return st;
}

/* The kernel that writes the gradient of the weights comes first: masters have its order. A frozen network never runs
 * it; there it is a direct one, whose order most kernels read, and weights may be shared. */
static fkt_status make_home(struct fkt_learn_draft *s, uint32_t i)
{
    const struct fkt_op *op = &s->l->net->op[i];
    struct fkt_array *a = &s->l->array[op->weight];
    struct fkt_dnn_conv k;
    uint32_t in, groups;
    describe(s, i, &k);
    in = k.in_c / k.groups;
    groups = op->kind == FKT_OP_CONV && k.groups == 1 ? op->groups : 1;
    if (a->home) {
        if (a->shape[0] == k.out_c && a->shape[1] == in && a->shape[2] == k.kernel_h && a->shape[3] == k.kernel_w &&
            a->groups == groups)
            return FKT_OK;
        return fkt_fail(FKT_E_ARG, "operation %" PRIu32 " of the network shares '%s' with one of another shape", i,
                        s->l->net->slot[op->weight].name[0]);
    }
    a->shape[0] = k.out_c;
    a->shape[1] = in;
    a->shape[2] = k.kernel_h;
    a->shape[3] = k.kernel_w;
    a->groups = groups;
    return s->l->spec.frozen ? fkt_dnn_task_conv(&a->home, &k, FKT_WAY_WEIGHTS)
                             : kernel(s, i, FKT_WAY_WEIGHTS, &a->home);
}

fkt_status fkt_learn_draft_conv(struct fkt_learn_draft *s, uint32_t i)
{
    const struct fkt_op *op = &s->l->net->op[i];
    struct fkt_learn_step k = fkt_learn_step_of(FKT_LEARN_STEP_CALL, op);
    fkt_status st;
    FKT_TRY(make_home(s, i));
    FKT_TRY(kernel(s, i, FKT_WAY_FORWARD, &k.task));
    FKT_TRY(weights_for(s, op->weight, k.task, &k.copy));
    FKT_TRY(fkt_learn_draft_buffer(s, &k.scratch, fkt_dnn_task_bytes(k.task, FKT_AT_SCRATCH)));
    FKT_TRY(fkt_learn_draft_map(s, &s->buffer[i + 1], i + 1));
    k.way = FKT_WAY_FORWARD;
    k.x = s->buffer[op->in[0]];
    k.y = s->buffer[i + 1];
    return fkt_learn_draft_step(s, &k);
out:
    fkt_dnn_task_free(k.task);
    return st;
}

static fkt_status weights_back(struct fkt_learn_draft *s, const struct fkt_op *op, uint32_t g)
{
    const struct fkt_dnn_task *home = s->l->array[op->weight].home;
    struct fkt_learn_step k = fkt_learn_step_of(FKT_LEARN_STEP_CALL, op);
    fkt_status st;
    FKT_TRY(fkt_learn_draft_buffer(s, &k.scratch, fkt_dnn_task_bytes(home, FKT_AT_SCRATCH)));
    k.way = FKT_WAY_WEIGHTS;
    k.x = s->buffer[op->in[0]];
    k.g = g;
    FKT_TRY(fkt_learn_draft_step(s, &k));
out:
    return st;
}

fkt_status fkt_learn_draft_conv_back(struct fkt_learn_draft *s, uint32_t i, uint32_t g, uint32_t *d)
{
    const struct fkt_op *op = &s->l->net->op[i];
    struct fkt_learn_step data = fkt_learn_step_of(FKT_LEARN_STEP_CALL, op);
    fkt_status st = FKT_OK;
    *d = FKT_NONE;
    if (!s->l->spec.frozen) FKT_TRY(weights_back(s, op, g));
    if (!s->b.needs[op->in[0]]) goto out;
    FKT_TRY(kernel(s, i, FKT_WAY_DATA, &data.task));
    FKT_TRY(weights_for(s, op->weight, data.task, &data.copy));
    FKT_TRY(fkt_learn_draft_buffer(s, &data.scratch, fkt_dnn_task_bytes(data.task, FKT_AT_SCRATCH)));
    FKT_TRY(fkt_learn_draft_map(s, d, op->in[0]));
    data.way = FKT_WAY_DATA;
    data.g = g;
    data.d = *d;
    return fkt_learn_draft_step(s, &data);
out:
    fkt_dnn_task_free(data.task);
    return st;
}
