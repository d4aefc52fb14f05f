/* SPDX-License-Identifier: Apache-2.0 */
/* resnet.c - residual networks as guides: torchvision's tensors to a list of operations.
 *
 *   stem     7x7: conv stride 2, norm, ReLU, max-pool 3x3 stride 2 | 3x3: conv stride 1, norm, ReLU
 *   layerN   basic: relu(shortcut(x) + norm(conv3(relu(norm(conv3 x)))))
 *            bottleneck: relu(shortcut(x) + norm(conv1(relu(norm(conv3(relu(norm(conv1 x)))))))
 *   end      mean of each map: the features
 *
 * From layer 2 on the first block halves the sides; in a bottleneck its 3x3 convolution does (torchvision's version
 * 1.5). A shortcut is the identity, or norm(conv1 x) where channels or sides change. Depths, widths, kind of block and
 * stem come from the tensors; `fc` is not used. Source: He et al., Deep residual learning, CVPR 2016; torchvision's
 * resnet.py for names, strides and epsilon. classifier/resnet.c builds networks to be trained, under the same names. */
#include "codec/family.h"

#include <stdio.h>
#include <string.h>

#define EPSILON 1e-5F
enum { STAGES = 4, BLOCKS_MAX = 64, NAME_MAX_LENGTH = 64 };

struct plan {
    uint32_t kernel, stem; /* window and channels of the stem */
    int bottleneck;
    uint32_t blocks[STAGES];
    uint32_t inner[STAGES], outer[STAGES]; /* channels inside and behind the blocks of a stage */
};

struct block {
    uint32_t stage, index, in, stride;
};

static const char *named(char out[NAME_MAX_LENGTH], const struct block *b, const char *what)
{
    snprintf(out, NAME_MAX_LENGTH, "layer%u.%u.%s", b->stage + 1, b->index, what);
    return out;
}

static uint32_t conv_norm(struct fkt_net *n, uint32_t x, const struct block *b, const char *const names[2],
                          const struct fkt_op *op, uint32_t in)
{
    char name[NAME_MAX_LENGTH];
    x = fkt_guide_conv(n, x, named(name, b, names[0]), *op, in);
    return fkt_guide_norm(n, x, named(name, b, names[1]), op->channels, EPSILON);
}

static uint32_t add_block(struct fkt_net *n, uint32_t x, const struct plan *p, const struct block *b)
{
    static const char *const names[4][2] = {
        {"conv1", "bn1"}, {"conv2", "bn2"}, {"conv3", "bn3"}, {"downsample.0", "downsample.1"}};
    const uint32_t inner = p->inner[b->stage], outer = p->outer[b->stage];
    const struct fkt_op first3 = {.channels = inner, .kernel = 3, .stride = b->stride, .pad = 1},
                        second3 = {.channels = outer, .kernel = 3, .stride = 1, .pad = 1},
                        first1 = {.channels = inner, .kernel = 1, .stride = 1},
                        last1 = {.channels = outer, .kernel = 1, .stride = 1},
                        across = {.channels = outer, .kernel = 1, .stride = b->stride};
    uint32_t y, shortcut = x;
    if (p->bottleneck) {
        y = fkt_net_plain(n, FKT_OP_RELU, conv_norm(n, x, b, names[0], &first1, b->in), 0, 0);
        y = fkt_net_plain(n, FKT_OP_RELU, conv_norm(n, y, b, names[1], &first3, inner), 0, 0);
        y = conv_norm(n, y, b, names[2], &last1, inner);
    } else {
        y = fkt_net_plain(n, FKT_OP_RELU, conv_norm(n, x, b, names[0], &first3, b->in), 0, 0);
        y = conv_norm(n, y, b, names[1], &second3, inner);
    }
    if (b->stride != 1 || b->in != outer) shortcut = conv_norm(n, x, b, names[3], &across, b->in);
    return fkt_net_plain(n, FKT_OP_RELU, fkt_net_plain(n, FKT_OP_ADD, y, shortcut, 0), 0, 0);
}

static void build(struct fkt_net *n, const struct plan *p)
{
    const struct fkt_op stem = {
        .channels = p->stem, .kernel = p->kernel, .stride = p->kernel == 7 ? 2 : 1, .pad = p->kernel / 2};
    uint32_t x, in = p->stem;
    fkt_net_init(n, 3);
    x = fkt_guide_norm(n, fkt_guide_conv(n, 0, "conv1", stem, 3), "bn1", p->stem, EPSILON);
    x = fkt_net_plain(n, FKT_OP_RELU, x, 0, 0);
    if (p->kernel == 7) {
        struct fkt_op pool = {.kind = FKT_OP_MAX_POOL, .in = {x, 0}, .kernel = 3, .stride = 2, .pad = 1};
        pool.weight = pool.bias = pool.mean = pool.var = FKT_NO_SLOT;
        x = fkt_net_add(n, &pool);
    }
    for (uint32_t s = 0; s < STAGES; s++)
        for (uint32_t i = 0; i < p->blocks[s]; i++) {
            const struct block b = {s, i, in, s && !i ? 2 : 1};
            x = add_block(n, x, p, &b);
            in = p->outer[s];
        }
    fkt_net_plain(n, FKT_OP_MEAN, x, 0, 0);
}

/* Rows of a convolution of block `index`; its norm's length where the convolution itself is absent. */
static uint64_t rows(const struct fkt_safetensors *f, uint32_t stage, uint32_t index, const char *conv,
                     const char *norm)
{
    const struct block b = {stage, index, 0, 0};
    char name[NAME_MAX_LENGTH];
    uint64_t n = fkt_guide_dimension(f, named(name, &b, conv), 0);
    return n ? n : fkt_guide_dimension(f, named(name, &b, norm), 0);
}

/* Most blocks of a stage agree on its channels, whatever one wrong tensor says. */
static uint64_t find_width(const struct fkt_safetensors *f, uint32_t stage, uint32_t blocks, const char *conv,
                           const char *norm)
{
    struct fkt_vote v = {0};
    for (uint32_t i = 0; i < blocks; i++) fkt_vote(&v, rows(f, stage, i, conv, norm));
    return v.lead ? v.value : 0;
}

static void find_stage(struct fkt_family_draft *d, struct plan *p, uint32_t s)
{
    const struct fkt_safetensors *f = d->file[0];
    uint32_t n = 0;
    uint64_t inner, outer;
    while (n <= BLOCKS_MAX && rows(f, s, n, "conv1.weight", "bn1.weight")) n++;
    inner = find_width(f, s, n, "conv1.weight", "bn1.weight");
    outer = p->bottleneck ? find_width(f, s, n, "conv3.weight", "bn3.weight") : inner;
    if (!n) fkt_text_addf(d->misfits, "stage 'layer%u' has no blocks\n", s + 1);
    else if (n > BLOCKS_MAX) fkt_text_addf(d->misfits, "stage 'layer%u' has more than %d blocks\n", s + 1, BLOCKS_MAX);
    else if (!inner || !outer || inner > FKT_FAMILY_CHANNELS_MAX || outer > FKT_FAMILY_CHANNELS_MAX)
        fkt_text_addf(d->misfits, "stage 'layer%u' has blocks of %llu and %llu channels\n", s + 1,
                      (unsigned long long)inner, (unsigned long long)outer);
    p->blocks[s] = n;
    p->inner[s] = (uint32_t)inner;
    p->outer[s] = (uint32_t)outer;
}

fkt_status fkt_resnet_guide_build(struct fkt_family_draft *d)
{
    const struct fkt_safetensors *f = d->file[0];
    struct plan p = {.bottleneck = rows(f, 0, 0, "conv3.weight", "bn3.weight") != 0};
    uint64_t kernel = fkt_guide_dimension(f, "conv1.weight", 3), stem = fkt_guide_dimension(f, "conv1.weight", 0);
    if (kernel != 3 && kernel != 7)
        fkt_text_addf(d->misfits, "the stem 'conv1.weight' has no window of 3 or 7 pixels\n");
    else if (!stem || stem > FKT_FAMILY_CHANNELS_MAX)
        fkt_text_addf(d->misfits, "the stem 'conv1.weight' has %llu channels\n", (unsigned long long)stem);
    for (uint32_t s = 0; s < STAGES; s++) find_stage(d, &p, s);
    if (d->misfits->len) return fkt_text_status(d->misfits);
    p.kernel = (uint32_t)kernel;
    p.stem = (uint32_t)stem;
    d->family->latent_channels = p.outer[STAGES - 1];
    d->family->input = p.kernel == 7 ? 224 : 32;
    d->family->step = p.kernel == 7 ? 32 : 8;
    snprintf(d->family->variant, sizeof d->family->variant, "%s %u+%u+%u+%u, %ux%u stem",
             p.bottleneck ? "bottleneck" : "basic", p.blocks[0], p.blocks[1], p.blocks[2], p.blocks[3], p.kernel,
             p.kernel);
    fkt_guide_scale_imagenet(d->family);
    build(&d->family->net[FKT_CODEC_SIDE_ENCODER], &p);
    return fkt_net_status(&d->family->net[FKT_CODEC_SIDE_ENCODER]);
}
