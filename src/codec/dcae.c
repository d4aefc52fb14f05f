/* SPDX-License-Identifier: Apache-2.0 */
/* dcae.c - the deep-compression autoencoder (DC-AE) as two lists of operations.
 *
 *   encoder  pixels -> conv (and /2 where stage 0 is empty) -> stages 0.. : blocks, then a step down -> conv -> latent
 *   decoder  latent -> conv -> stages ..0 : a step up, then blocks -> norm, ReLU, conv (and x2) -> pixels
 *   residual block   x + norm(conv2(act(conv1 x)))      act: SiLU; ReLU where the norm is a batch norm
 *   attention block  x + norm(proj(attention(qkv x)));  then  y + norm(point(GLU(depth(SiLU(inverted y)))))
 *   step down        conv to C/4, unshuffle (or a strided conv)   + unshuffled input, averaged in groups
 *   step up          conv to 4C, shuffle (or nearest x2, conv)    + repeated input, shuffled
 *   ends             conv + averaged (encoder) or repeated (decoder) channels, unless config.json says otherwise
 *
 * Further scales of the attention (the sana member: 5x5 depthwise, then a grouped 1x1) make more heads, side by side
 * with the first ones. Source: Chen et al., Deep Compression Autoencoder, ICLR 2025, as in diffusers' AutoencoderDC
 * and efficientvit. Widths, depths, kinds and norms come from the tensors (dcae_read.c), so that every member is data;
 * diffusers switches to a quadratic form of attention on small maps, which is the same function in another order. */
#include "codec/dcae.h"

#include "base/alloc.h"

#include <string.h>

struct builder {
    struct fkt_net *net;
    const struct fkt_dcae_half *half;
    const struct fkt_family_config *config;
    struct fkt_dcae_place at; /* stage and block under construction */
    const struct fkt_dcae_stage *stage;
    uint32_t width[FKT_DCAE_STAGES];
};

static uint32_t slot(struct builder *b, enum fkt_dcae_part part, const char *leaf, uint32_t o, uint32_t i, uint32_t k)
{
    char name[3][FKT_DCAE_NAME];
    const char *names[3] = {name[0], name[1], name[2]};
    uint32_t parts = part == FKT_DCAE_QKV && b->half->layout == FKT_LAYOUT_DC ? 3 : 1;
    b->at.leaf = leaf;
    for (uint32_t p = 0; p < parts; p++) {
        b->at.part = (enum fkt_dcae_part)(part + p);
        fkt_dcae_name(name[p], &b->at, b->half->side, b->half->layout);
    }
    return fkt_net_slot_parts(b->net, names, parts, o, i, k, k);
}

static uint32_t conv(struct builder *b, uint32_t x, enum fkt_dcae_part part, uint32_t in, uint32_t out, uint32_t kernel,
                     uint32_t stride, uint32_t groups, int bias)
{
    struct fkt_op op = {.kind = FKT_OP_CONV, .in = {x, 0}, .channels = out, .kernel = kernel, .stride = stride};
    op.pad = kernel / 2;
    op.groups = groups;
    op.bias = op.mean = op.var = FKT_NO_SLOT;
    op.weight = slot(b, part, "weight", out, in / groups, kernel);
    if (bias) op.bias = slot(b, part, "bias", out, 0, 0);
    return fkt_net_add(b->net, &op);
}

static uint32_t norm(struct builder *b, uint32_t x, enum fkt_dcae_part part, uint32_t width, int batch)
{
    struct fkt_op op = {.kind = batch ? FKT_OP_BATCH_NORM : FKT_OP_RMS_NORM, .in = {x, 0}, .value = {1e-5F, 0}};
    op.mean = op.var = FKT_NO_SLOT;
    op.weight = slot(b, part, "weight", width, 0, 0);
    op.bias = slot(b, part, "bias", width, 0, 0);
    if (batch) {
        op.mean = slot(b, part, "running_mean", width, 0, 0);
        op.var = slot(b, part, "running_var", width, 0, 0);
    }
    return fkt_net_add(b->net, &op);
}

static uint32_t add(struct builder *b, uint32_t x, uint32_t y) { return fkt_net_plain(b->net, FKT_OP_ADD, x, y, 0); }

static uint32_t residual_block(struct builder *b, uint32_t x, uint32_t width)
{
    int batch = b->stage->batch_norm[FKT_DCAE_NORM];
    uint32_t y = conv(b, x, FKT_DCAE_CONV1, width, width, 3, 1, 1, 1);
    y = fkt_net_plain(b->net, batch ? FKT_OP_RELU : FKT_OP_SILU, y, 0, 0);
    y = conv(b, y, FKT_DCAE_CONV2, width, width, 3, 1, 1, 0);
    return add(b, norm(b, y, FKT_DCAE_NORM, width, batch), x);
}

static uint32_t head_length(const struct builder *b)
{
    if (b->stage->head) return (uint32_t)b->stage->head;
    return b->config->head ? b->config->head : 32;
}

static uint32_t attention_block(struct builder *b, uint32_t x, uint32_t width)
{
    uint32_t inner3 = (uint32_t)b->stage->inner3.value, hidden = (uint32_t)b->stage->hidden.value;
    uint32_t head = head_length(b), all = inner3 / 3 * (1 + b->stage->scales), first, y;
    struct fkt_op op = {.kind = FKT_OP_ATTENTION, .groups = head, .value = {1e-15F, 0}};
    op.weight = op.bias = op.mean = op.var = FKT_NO_SLOT;
    first = y = conv(b, x, FKT_DCAE_QKV, width, inner3, 1, 1, 1, 0);
    for (uint32_t s = 0; s < b->stage->scales; s++) {
        uint32_t m;
        b->at.scale = (int)s;
        m = conv(b, first, FKT_DCAE_SCALE_IN, inner3, inner3, b->stage->window[s], 1, inner3, 0);
        m = conv(b, m, FKT_DCAE_SCALE_OUT, inner3, inner3, 1, 1, inner3 / head, 0);
        y = fkt_net_plain(b->net, FKT_OP_CONCAT, y, m, 0);
    }
    op.in[0] = y;
    y = conv(b, fkt_net_add(b->net, &op), FKT_DCAE_PROJ, all, width, 1, 1, 1, 0);
    x = add(b, norm(b, y, FKT_DCAE_PROJ_NORM, width, b->stage->batch_norm[FKT_DCAE_PROJ_NORM]), x);
    y = conv(b, x, FKT_DCAE_INVERTED, width, hidden, 1, 1, 1, 1);
    y = fkt_net_plain(b->net, FKT_OP_SILU, y, 0, 0);
    y = conv(b, y, FKT_DCAE_DEPTH, hidden, hidden, 3, 1, hidden, 1);
    y = fkt_net_plain(b->net, FKT_OP_GLU, y, 0, 0);
    y = conv(b, y, FKT_DCAE_POINT, hidden / 2, width, 1, 1, 1, 0);
    return add(b, norm(b, y, FKT_DCAE_POINT_NORM, width, b->stage->batch_norm[FKT_DCAE_POINT_NORM]), x);
}

static uint32_t grouped(struct builder *b, enum fkt_op_kind kind, uint32_t x, uint32_t from, uint32_t to)
{
    return from == to ? x : fkt_net_move(b->net, kind, x, to);
}

/* Half the size: a convolution to a quarter of the channels whose pixels are then folded in, or a strided one. */
static uint32_t fold(struct builder *b, uint32_t x, enum fkt_dcae_part part, uint32_t in, uint32_t rows, uint32_t out)
{
    uint32_t y = conv(b, x, part, in, rows, 3, rows == out ? 2 : 1, 1, 1);
    return rows == out ? y : fkt_net_move(b->net, FKT_OP_UNSHUFFLE, y, 2);
}

/* Twice the size, the other way round. */
static uint32_t unfold(struct builder *b, uint32_t x, enum fkt_dcae_part part, uint32_t in, uint32_t rows, uint32_t out)
{
    uint32_t y = rows == out ? fkt_net_move(b->net, FKT_OP_UPSAMPLE, x, 2) : x;
    y = conv(b, y, part, in, rows, 3, 1, 1, 1);
    return rows == out ? y : fkt_net_move(b->net, FKT_OP_SHUFFLE, y, 2);
}

static uint32_t step_down(struct builder *b, uint32_t x, uint32_t in, uint32_t out)
{
    uint32_t y = fold(b, x, FKT_DCAE_STEP, in, (uint32_t)b->stage->step.value, out);
    uint32_t z = fkt_net_move(b->net, FKT_OP_UNSHUFFLE, x, 2);
    return add(b, y, grouped(b, FKT_OP_GROUP_MEAN, z, 4 * in, out));
}

static uint32_t step_up(struct builder *b, uint32_t x, uint32_t in, uint32_t out)
{
    uint32_t y = unfold(b, x, FKT_DCAE_STEP, in, (uint32_t)b->stage->step.value, out);
    uint32_t z = grouped(b, FKT_OP_REPEAT, x, in, 4 * out);
    return add(b, y, fkt_net_move(b->net, FKT_OP_SHUFFLE, z, 2));
}

static uint32_t build_stage(struct builder *b, uint32_t x, uint32_t s)
{
    b->stage = &b->half->stage[s];
    b->at.stage = (int)s;
    for (uint32_t i = 0; i < b->stage->blocks; i++) {
        b->at.block = (int)i;
        b->at.plain = 0;
        if (b->stage->kind[i] == FKT_DCAE_RESIDUAL) x = residual_block(b, x, b->width[s]);
        else if (b->stage->kind[i] == FKT_DCAE_ATTENTION) x = attention_block(b, x, b->width[s]);
        else {
            b->at.plain = b->stage->plain_step;
            x = b->half->side == FKT_CODEC_SIDE_ENCODER ? step_down(b, x, b->width[s], b->width[s + 1])
                                                        : step_up(b, x, b->width[s + 1], b->width[s]);
        }
    }
    return x;
}

static void build_encoder(struct builder *b, uint32_t latent)
{
    uint32_t first = b->half->stage[0].blocks ? 0 : 1, last = b->half->stages - 1, x, y;
    b->at.plain = b->half->plain_end;
    x = first ? fold(b, 0, FKT_DCAE_PIXEL_CONV, 3, (uint32_t)b->half->pixel_rows, b->width[1])
              : conv(b, 0, FKT_DCAE_PIXEL_CONV, 3, b->width[0], 3, 1, 1, 1);
    for (uint32_t s = first; s <= last; s++) x = build_stage(b, x, s);
    b->at.plain = 0;
    y = conv(b, x, FKT_DCAE_LATENT_CONV, b->width[last], latent, 3, 1, 1, 1);
    if (b->config->shortcut[FKT_CODEC_SIDE_ENCODER])
        add(b, y, grouped(b, FKT_OP_GROUP_MEAN, x, b->width[last], latent));
}

static void build_decoder(struct builder *b, uint32_t latent)
{
    uint32_t first = b->half->stage[0].blocks ? 0 : 1, last = b->half->stages - 1, x;
    int silu = !strcmp(b->config->conv_act, "silu");
    x = conv(b, 0, FKT_DCAE_LATENT_CONV, latent, b->width[last], 3, 1, 1, 1);
    if (b->config->shortcut[FKT_CODEC_SIDE_DECODER])
        x = add(b, x, grouped(b, FKT_OP_REPEAT, 0, latent, b->width[last]));
    for (uint32_t s = last + 1; s-- > first;) x = build_stage(b, x, s);
    b->at.plain = 0;
    x = norm(b, x, FKT_DCAE_PIXEL_NORM, b->width[first], 0);
    x = fkt_net_plain(b->net, silu ? FKT_OP_SILU : FKT_OP_RELU, x, 0, 0);
    b->at.plain = b->half->plain_end;
    if (first) unfold(b, x, FKT_DCAE_PIXEL_CONV, b->width[first], (uint32_t)b->half->pixel_rows, 3);
    else conv(b, x, FKT_DCAE_PIXEL_CONV, b->width[0], 3, 3, 1, 1, 1);
}

static fkt_status build_half(const struct fkt_family_draft *d, const struct fkt_dcae_half *h)
{
    struct builder b = {.net = &d->family->net[h->side], .half = h, .config = d->config};
    for (uint32_t s = 0; s < h->stages; s++) b.width[s] = (uint32_t)h->stage[s].width.value;
    fkt_net_init(b.net, h->side == FKT_CODEC_SIDE_ENCODER ? 3 : d->family->latent_channels);
    if (h->side == FKT_CODEC_SIDE_ENCODER) build_encoder(&b, d->family->latent_channels);
    else build_decoder(&b, d->family->latent_channels);
    return fkt_net_status(b.net);
}

fkt_status fkt_dcae_build(struct fkt_family_draft *d)
{
    struct fkt_dcae_half *half = NULL;
    uint64_t latent;
    fkt_status st;
    FKT_TRY(fkt_alloc(&half, 2));
    for (int i = 0; i < 2; i++) fkt_dcae_read(&half[i], d->file[i], i, d->layout);
    latent =
        half[FKT_CODEC_SIDE_ENCODER].latent ? half[FKT_CODEC_SIDE_ENCODER].latent : half[FKT_CODEC_SIDE_DECODER].latent;
    if (half[FKT_CODEC_SIDE_DECODER].latent && latent != half[FKT_CODEC_SIDE_DECODER].latent)
        fkt_text_addf(d->misfits, "the encoder makes %llu latent channels, the decoder takes %llu\n",
                      (unsigned long long)latent, (unsigned long long)half[FKT_CODEC_SIDE_DECODER].latent);
    if (half[FKT_CODEC_SIDE_ENCODER].stages != half[FKT_CODEC_SIDE_DECODER].stages)
        fkt_text_addf(d->misfits, "the encoder has %u stages, the decoder %u\n", half[FKT_CODEC_SIDE_ENCODER].stages,
                      half[FKT_CODEC_SIDE_DECODER].stages);
    if (!latent || latent > FKT_FAMILY_CHANNELS_MAX)
        fkt_text_addf(d->misfits, "no tensor says how many latent channels there are, 1 to %u\n",
                      FKT_FAMILY_CHANNELS_MAX);
    if (!d->misfits->len) d->family->latent_channels = (uint32_t)latent;
    for (int i = 0; i < 2; i++) fkt_dcae_check(d, &half[i]);
    FKT_TRY(fkt_text_status(d->misfits));
    if (d->misfits->len) goto out;
    d->family->reduction = 1U << (half[FKT_CODEC_SIDE_ENCODER].stages - 1);
    for (int i = 0; i < 2; i++) {
        FKT_TRY(build_half(d, &half[i]));
        fkt_dcae_check_config(d, &half[i]);
    }
out:
    fkt_free(half);
    return st;
}
