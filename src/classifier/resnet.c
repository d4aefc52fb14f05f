/* SPDX-License-Identifier: Apache-2.0 */
/* resnet.c - residual networks as lists of operations, with torchvision's names.
 *
 *   stem     CIFAR: conv 3x3 stride 1 | ImageNet: conv 7x7 stride 2, ..., max-pool 3x3 stride 2; then norm, ReLU
 *   layerN   blocks: relu(shortcut(x) + norm(conv(relu(norm(conv x))))), windows 3x3; from layer 2 on the first block
 *            halves the sides and widens, and its shortcut is norm(conv 1x1 stride 2)
 *   end      mean of each map, linear
 *
 *   resnet18   64, 128, 256, 512 channels, two blocks each
 *   resnet8    16, 32, 64 channels, one block each
 *
 * Source: He et al., Deep residual learning, CVPR 2016, table 1 (18 layers) and section 4.2 (the narrow networks for
 * CIFAR-10; resnet8 is theirs with n = 1). We differ: where they pad shortcuts with zeros for CIFAR, resnet8 has
 * projections as resnet18 does, so that both are torchvision's BasicBlock and PyTorch users can build it as
 * ResNet(BasicBlock, ...). Convolutions have no bias; norms have epsilon 1e-5. */
#include "classifier/model.h"

#include <stdio.h>
#include <string.h>

#define EPSILON 1e-5F

enum { STAGES_MAX = 4 };
struct plan {
    const char *name;
    uint32_t stages, blocks;
    uint32_t width[STAGES_MAX];
};
static const struct plan plans[] = {
    [FKT_ARCHITECTURE_RESNET18] = {"resnet18", 4, 2, {64, 128, 256, 512}},
    [FKT_ARCHITECTURE_RESNET8] = {"resnet8", 3, 1, {16, 32, 64}},
};
enum { ARCHITECTURES = sizeof plans / sizeof *plans };
static const char *const stem_names[] = {[FKT_STEM_CIFAR] = "cifar", [FKT_STEM_IMAGENET] = "imagenet"};
enum { STEMS = sizeof stem_names / sizeof *stem_names };

const char *fkt_architecture_name(enum fkt_architecture a) { return (unsigned)a < ARCHITECTURES ? plans[a].name : ""; }

int fkt_architecture_parse(const char *s)
{
    for (int i = 0; i < ARCHITECTURES; i++)
        if (!strcmp(s, plans[i].name)) return i;
    return -1;
}

const char *fkt_stem_name(enum fkt_stem s) { return (unsigned)s < STEMS ? stem_names[s] : ""; }

int fkt_stem_parse(const char *s)
{
    for (int i = 0; i < STEMS; i++)
        if (!strcmp(s, stem_names[i])) return i;
    return -1;
}

uint32_t fkt_resnet_features(enum fkt_architecture a) { return plans[a].width[plans[a].stages - 1]; }

static uint32_t kernel_of(enum fkt_stem s) { return s == FKT_STEM_IMAGENET ? 7 : 3; }

int fkt_resnet_recognise(struct fkt_resnet_kind *out, const uint64_t conv1[4], const uint64_t fc[2])
{
    for (int a = 0; a < ARCHITECTURES; a++)
        for (int s = 0; s < STEMS; s++) {
            uint32_t k = kernel_of((enum fkt_stem)s);
            if (a == FKT_ARCHITECTURE_RESNET8 && s == FKT_STEM_IMAGENET) continue;
            if (conv1[0] != plans[a].width[0] || conv1[1] != 3 || conv1[2] != k || conv1[3] != k) continue;
            if (fc[0] < 1 || fc[0] > FKT_MODEL_CLASSES_MAX) continue;
            *out = (struct fkt_resnet_kind){(enum fkt_architecture)a, (enum fkt_stem)s, (uint32_t)fc[0]};
            return 1;
        }
    return 0;
}

/* Names of tensors: a place in the network ("layer1.0."), a module and a part of it. */
static uint32_t slot(struct fkt_net *net, const char *place, const char *module, const char *part,
                     const uint32_t shape[4])
{
    char name[FKT_MODEL_NAME_MAX];
    snprintf(name, sizeof name, "%s%s.%s", place, module, part);
    return fkt_net_slot(net, name, shape[0], shape[1], shape[2], shape[3]);
}

struct window {
    uint32_t kernel, stride;
};

/* A convolution and its norm: adjacent in torchvision's order, so slots follow it. */
static uint32_t conv_norm(struct fkt_net *net, uint32_t x, const char *place, const char *conv, const char *norm,
                          uint32_t in, uint32_t out, struct window w)
{
    struct fkt_op c = {.kind = FKT_OP_CONV, .in = {x, 0}, .channels = out, .kernel = w.kernel, .stride = w.stride};
    struct fkt_op n = {.kind = FKT_OP_BATCH_NORM, .value = {EPSILON, 0}};
    const uint32_t window[4] = {out, in, w.kernel, w.kernel}, each[4] = {out};
    c.pad = w.kernel / 2;
    c.groups = 1;
    c.bias = c.mean = c.var = FKT_NO_SLOT;
    c.weight = slot(net, place, conv, "weight", window);
    n.in[0] = fkt_net_add(net, &c);
    n.weight = slot(net, place, norm, "weight", each);
    n.bias = slot(net, place, norm, "bias", each);
    n.mean = slot(net, place, norm, "running_mean", each);
    n.var = slot(net, place, norm, "running_var", each);
    return fkt_net_add(net, &n);
}

static uint32_t relu(struct fkt_net *net, uint32_t x) { return fkt_net_plain(net, FKT_OP_RELU, x, 0, 0); }

static uint32_t block(struct fkt_net *net, uint32_t x, const char *place, uint32_t in, uint32_t out)
{
    const uint32_t stride = in == out ? 1 : 2;
    uint32_t y = relu(net, conv_norm(net, x, place, "conv1", "bn1", in, out, (struct window){3, stride}));
    y = conv_norm(net, y, place, "conv2", "bn2", out, out, (struct window){3, 1});
    if (in != out) x = conv_norm(net, x, place, "downsample.0", "downsample.1", in, out, (struct window){1, 2});
    return relu(net, fkt_net_plain(net, FKT_OP_ADD, y, x, 0));
}

static uint32_t stem(struct fkt_net *net, enum fkt_stem s, uint32_t width)
{
    struct fkt_op pool = {.kind = FKT_OP_MAX_POOL, .kernel = 3, .stride = 2, .pad = 1};
    const struct window w = {kernel_of(s), s == FKT_STEM_IMAGENET ? 2 : 1};
    uint32_t x = relu(net, conv_norm(net, 0, "", "conv1", "bn1", 3, width, w));
    if (s != FKT_STEM_IMAGENET) return x;
    pool.in[0] = x;
    pool.weight = pool.bias = pool.mean = pool.var = FKT_NO_SLOT;
    return fkt_net_add(net, &pool);
}

void fkt_resnet_build(struct fkt_net *net, enum fkt_architecture a, enum fkt_stem s, uint32_t classes)
{
    const struct plan *p = &plans[a];
    struct fkt_op last = {.kind = FKT_OP_LINEAR, .channels = classes};
    uint32_t in = p->width[0], x = stem(net, s, in);
    char place[FKT_MODEL_NAME_MAX / 2];
    for (uint32_t stage = 0; stage < p->stages; stage++)
        for (uint32_t i = 0; i < p->blocks; i++) {
            snprintf(place, sizeof place, "layer%u.%u.", stage + 1, i);
            x = block(net, x, place, in, p->width[stage]);
            in = p->width[stage];
        }
    last.in[0] = fkt_net_plain(net, FKT_OP_MEAN, x, 0, 0);
    last.mean = last.var = FKT_NO_SLOT;
    last.weight = fkt_net_slot(net, "fc.weight", classes, in, 0, 0);
    last.bias = fkt_net_slot(net, "fc.bias", classes, 0, 0, 0);
    fkt_net_add(net, &last);
}
