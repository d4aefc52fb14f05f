/* SPDX-License-Identifier: Apache-2.0 */
/* taesd.c - the tiny autoencoder (TAESD and its siblings) as two lists of operations.
 *
 *   encoder  conv 3->w | block | 3 x (conv /2, 3 blocks) | conv w->latent                                 indices 0..14
 *   decoder  3 tanh(x/3) | conv latent->w, ReLU | 3 x (3 blocks, nearest x2, conv) | block | conv w->3    indices 0..19
 *   block    relu(x + conv(relu(conv(relu(conv x)))))
 *
 * All windows are 3x3; the convolutions that follow a change of size have no bias. Pixels are in [0,1].
 * Source: O. Boer Bohan, TAESD (MIT licence), and diffusers' AutoencoderTiny, which keeps the same modules under
 * encoder.layers.N and decoder.layers.N. There the clamp is not a module, so that the decoder's numbers are one lower;
 * and its methods take [-1,1] and turn it into [0,1] inside, which does not concern us: we use the layers.
 * The members (taesd, taesdxl, taesd3, taef1) differ by weights and latent channels alone. Width and latent channels
 * come from the tensors; the sequence of layers is fixed, since the names of nn.Sequential would not tell a missing
 * layer from a shorter network. */
#include "codec/family.h"

#include <stdio.h>

enum { STAGES = 4, NAME_MAX_LENGTH = 64 };
static const uint32_t depths[2][STAGES] = {{1, 3, 3, 3}, {3, 3, 3, 1}};

struct builder {
    struct fkt_net *net;
    int diffusers, side;
    uint32_t width;
};

static const char *layer_name(char out[NAME_MAX_LENGTH], const struct builder *b, uint32_t index, const char *what)
{
    if (!b->diffusers) snprintf(out, NAME_MAX_LENGTH, "%u.%s", index, what);
    else
        snprintf(out, NAME_MAX_LENGTH, "%s.layers.%u.%s", b->side == FKT_CODEC_SIDE_ENCODER ? "encoder" : "decoder",
                 index - (b->side == FKT_CODEC_SIDE_DECODER), what);
    return out;
}

/* `what` is "" for a bare convolution, "conv.0." and so on inside a block. */
static uint32_t conv(const struct builder *b, uint32_t x, uint32_t index, const char *what, uint32_t in, uint32_t out,
                     uint32_t stride, int bias)
{
    struct fkt_op op = {.kind = FKT_OP_CONV, .in = {x, 0}, .channels = out, .kernel = 3, .stride = stride, .pad = 1};
    char name[NAME_MAX_LENGTH], part[16];
    op.groups = 1;
    op.bias = op.mean = op.var = FKT_NO_SLOT;
    snprintf(part, sizeof part, "%sweight", what);
    op.weight = fkt_net_slot(b->net, layer_name(name, b, index, part), out, in, 3, 3);
    snprintf(part, sizeof part, "%sbias", what);
    if (bias) op.bias = fkt_net_slot(b->net, layer_name(name, b, index, part), out, 0, 0, 0);
    return fkt_net_add(b->net, &op);
}

static uint32_t relu(const struct builder *b, uint32_t x) { return fkt_net_plain(b->net, FKT_OP_RELU, x, 0, 0); }

static uint32_t block(const struct builder *b, uint32_t x, uint32_t index)
{
    uint32_t y = relu(b, conv(b, x, index, "conv.0.", b->width, b->width, 1, 1));
    y = relu(b, conv(b, y, index, "conv.2.", b->width, b->width, 1, 1));
    y = conv(b, y, index, "conv.4.", b->width, b->width, 1, 1);
    return relu(b, fkt_net_plain(b->net, FKT_OP_ADD, y, x, 0));
}

static void build_encoder(const struct builder *b, uint32_t latent)
{
    uint32_t index = 0, x = 0;
    for (uint32_t s = 0; s < STAGES; s++) {
        x = conv(b, x, index++, "", s ? b->width : 3, b->width, s ? 2 : 1, s == 0);
        for (uint32_t i = 0; i < depths[FKT_CODEC_SIDE_ENCODER][s]; i++) x = block(b, x, index++);
    }
    conv(b, x, index, "", b->width, latent, 1, 1);
}

static void build_decoder(const struct builder *b, uint32_t latent)
{
    uint32_t index = 1, x = fkt_net_plain(b->net, FKT_OP_SOFT_CLAMP, 0, 0, 3);
    x = relu(b, conv(b, x, index++, "", latent, b->width, 1, 1));
    index++;
    for (uint32_t s = 0; s < STAGES; s++) {
        for (uint32_t i = 0; i < depths[FKT_CODEC_SIDE_DECODER][s]; i++) x = block(b, x, index++);
        if (s + 1 == STAGES) break;
        x = fkt_net_move(b->net, FKT_OP_UPSAMPLE, x, 2);
        index++;
        x = conv(b, x, index++, "", b->width, b->width, 1, 0);
    }
    conv(b, x, index, "", b->width, 3, 1, 1);
}

static uint64_t dimension(const struct fkt_safetensors *file, const struct builder *b, uint32_t index, const char *what,
                          unsigned d)
{
    char name[NAME_MAX_LENGTH];
    const struct fkt_tensor *t = fkt_safetensors_find(file, layer_name(name, b, index, what));
    return t && d < t->rank ? t->shape[d] : 0;
}

/* Most of the convolutions inside blocks agree on it. */
static uint64_t find_width(const struct fkt_safetensors *file, const struct builder *b)
{
    struct fkt_vote v = {0};
    for (uint32_t i = 0; i < 20; i++) {
        uint64_t rows = dimension(file, b, i, "conv.0.weight", 0), bias = dimension(file, b, i, "conv.0.bias", 0);
        if (rows) fkt_vote(&v, rows);
        if (bias) fkt_vote(&v, bias);
    }
    return v.lead ? v.value : 0;
}

static uint64_t find_latent(const struct fkt_safetensors *file, const struct builder *b)
{
    uint64_t n;
    if (b->side == FKT_CODEC_SIDE_DECODER) return dimension(file, b, 1, "weight", 1);
    n = dimension(file, b, 14, "weight", 0);
    return n ? n : dimension(file, b, 14, "bias", 0);
}

static void check_config(const struct fkt_family_draft *d, const struct builder *b)
{
    static const char *const keys[2] = {"encoder", "decoder"};
    const struct fkt_config_numbers *w = &d->config->widths[b->side], *n = &d->config->depths[b->side];
    if (n->count && n->count != STAGES)
        fkt_text_addf(d->misfits, "config.json: num_%s_blocks has %u stages, this network %d\n", keys[b->side],
                      n->count, STAGES);
    if (w->count && w->count != STAGES)
        fkt_text_addf(d->misfits, "config.json: %s_block_out_channels has %u stages, this network %d\n", keys[b->side],
                      w->count, STAGES);
    for (uint32_t s = 0; s < STAGES; s++) {
        if (n->count == STAGES && n->at[s] != depths[b->side][s])
            fkt_text_addf(d->misfits, "config.json: num_%s_blocks says %u for stage %u, this network has %u\n",
                          keys[b->side], n->at[s], s, depths[b->side][s]);
        if (w->count == STAGES && w->at[s] != b->width)
            fkt_text_addf(d->misfits, "config.json: %s_block_out_channels says %u for stage %u, the tensors have %u\n",
                          keys[b->side], w->at[s], s, b->width);
    }
}

fkt_status fkt_taesd_decoder(struct fkt_net *net, const struct fkt_safetensors *file)
{
    struct builder b = {net, 0, FKT_CODEC_SIDE_DECODER, 0};
    const uint64_t channels = find_latent(file, &b), width = find_width(file, &b);
    if (!channels || !width || channels > FKT_FAMILY_CHANNELS_MAX || width > FKT_FAMILY_CHANNELS_MAX)
        return fkt_fail(FKT_E_MISMATCH, "the tensors are not those of a decoder");
    b.width = (uint32_t)width;
    fkt_net_init(net, (uint32_t)channels);
    build_decoder(&b, (uint32_t)channels);
    return fkt_net_status(net);
}

fkt_status fkt_taesd_build(struct fkt_family_draft *d)
{
    static const char *const sides[2] = {"encoder", "decoder"};
    uint64_t latent[2], width[2];
    fkt_status st = FKT_OK;
    if (d->config->act[0] && strcmp(d->config->act, "relu") != 0)
        fkt_text_addf(d->misfits, "config.json: act_fn is '%s', this network has 'relu'\n", d->config->act);
    for (int side = 0; side < 2; side++) {
        struct builder b = {&d->family->net[side], d->layout == FKT_LAYOUT_TINY, side, 0};
        latent[side] = find_latent(d->file[side], &b);
        width[side] = find_width(d->file[side], &b);
        if (width[side] > FKT_FAMILY_CHANNELS_MAX || latent[side] > FKT_FAMILY_CHANNELS_MAX)
            fkt_text_addf(d->misfits, "the %s has layers of more than %u channels\n", sides[side],
                          FKT_FAMILY_CHANNELS_MAX);
        else if (!width[side]) fkt_text_addf(d->misfits, "the %s has none of its blocks\n", sides[side]);
    }
    if (!latent[FKT_CODEC_SIDE_ENCODER]) latent[FKT_CODEC_SIDE_ENCODER] = latent[FKT_CODEC_SIDE_DECODER];
    if (!latent[FKT_CODEC_SIDE_DECODER]) latent[FKT_CODEC_SIDE_DECODER] = latent[FKT_CODEC_SIDE_ENCODER];
    if (!latent[FKT_CODEC_SIDE_ENCODER])
        fkt_text_addf(d->misfits, "no tensor says how many latent channels there are\n");
    if (latent[FKT_CODEC_SIDE_ENCODER] != latent[FKT_CODEC_SIDE_DECODER])
        fkt_text_addf(d->misfits, "the encoder makes %llu latent channels, the decoder takes %llu\n",
                      (unsigned long long)latent[FKT_CODEC_SIDE_ENCODER],
                      (unsigned long long)latent[FKT_CODEC_SIDE_DECODER]);
    if (d->misfits->len) return fkt_text_status(d->misfits);
    d->family->latent_channels = (uint32_t)latent[FKT_CODEC_SIDE_ENCODER];
    d->family->reduction = 1U << (STAGES - 1);
    for (int side = 0; side < 2 && st == FKT_OK; side++) {
        struct builder b = {&d->family->net[side], d->layout == FKT_LAYOUT_TINY, side, (uint32_t)width[side]};
        fkt_net_init(b.net, side == FKT_CODEC_SIDE_ENCODER ? 3 : d->family->latent_channels);
        if (side == FKT_CODEC_SIDE_ENCODER) build_encoder(&b, d->family->latent_channels);
        else build_decoder(&b, d->family->latent_channels);
        check_config(d, &b);
        st = fkt_net_status(b.net);
    }
    return st;
}
