/* SPDX-License-Identifier: Apache-2.0 */
/* efficientnet.c - EfficientNet-Lite0 as a guide: the tensors of efficientnet_lite_pytorch to a list of operations.
 *
 *   stem    conv 3x3 stride 2, norm, ReLU6                                           _conv_stem, _bn0
 *   block   [conv 1x1 to six times the channels, norm, ReLU6]                        _blocks.N._expand_conv, _bn0
 *           depthwise conv, norm, ReLU6                                              _depthwise_conv, _bn1
 *           conv 1x1, norm; plus x where neither channels nor sides change           _project_conv, _bn2
 *   end     conv 1x1, norm, ReLU6, mean of each map: the features                    _conv_head, _bn1
 *
 * Padding is TensorFlow's "same": at stride 2 an even side is padded behind the map by one more than before it. Sides
 * are multiples of 32, so that every side that is halved is even and the padding does not depend on it. Pixels are
 * (x - 127) / 128, as in the published training code; the package's own notes name ImageNet's mean and deviation, which
 * these weights were not trained with. Windows, strides and repeats are those of Lite0; widths come from the tensors,
 * `_fc` is not used. Source: Tan and Le, EfficientNet, ICML 2019; TensorFlow's efficientnet_lite_builder.py. */
#include "codec/family.h"

#include <stdio.h>

#define EPSILON 1e-3F
enum { NAME_MAX_LENGTH = 64, SIDE_STEP = 32 };

/* The blocks in order: window, stride, whether there is an expansion. */
static const struct {
    uint32_t kernel, stride, expands;
} blocks[] = {{3, 1, 0}, {3, 2, 1}, {3, 1, 1}, {5, 2, 1}, {5, 1, 1}, {3, 2, 1}, {3, 1, 1}, {3, 1, 1},
              {5, 1, 1}, {5, 1, 1}, {5, 1, 1}, {5, 2, 1}, {5, 1, 1}, {5, 1, 1}, {5, 1, 1}, {3, 1, 1}};
enum { BLOCKS = sizeof blocks / sizeof *blocks };

struct widths {
    uint32_t stem, head;
    uint32_t wide[BLOCKS], out[BLOCKS]; /* channels inside and behind each block */
};

static const char *named(char out[NAME_MAX_LENGTH], uint32_t block, const char *what)
{
    snprintf(out, NAME_MAX_LENGTH, "_blocks.%u.%s", block, what);
    return out;
}

static uint32_t activate(struct fkt_net *n, uint32_t x, const char *norm, uint32_t channels)
{
    return fkt_net_plain(n, FKT_OP_RELU6, fkt_guide_norm(n, x, norm, channels, EPSILON), 0, 0);
}

static uint32_t add_block(struct fkt_net *n, uint32_t x, const struct widths *w, uint32_t b, uint32_t in)
{
    struct fkt_op wide = {.channels = w->wide[b], .kernel = 1, .stride = 1},
                  deep = {.channels = w->wide[b],
                          .kernel = blocks[b].kernel,
                          .stride = blocks[b].stride,
                          .groups = w->wide[b]},
                  thin = {.channels = w->out[b], .kernel = 1, .stride = 1};
    char name[NAME_MAX_LENGTH];
    uint32_t y = x;
    fkt_net_same(&deep, SIDE_STEP);
    if (blocks[b].expands) {
        y = fkt_guide_conv(n, y, named(name, b, "_expand_conv"), wide, in);
        y = activate(n, y, named(name, b, "_bn0"), wide.channels);
    }
    y = fkt_guide_conv(n, y, named(name, b, "_depthwise_conv"), deep, deep.channels);
    y = activate(n, y, named(name, b, "_bn1"), deep.channels);
    y = fkt_guide_conv(n, y, named(name, b, "_project_conv"), thin, deep.channels);
    y = fkt_guide_norm(n, y, named(name, b, "_bn2"), thin.channels, EPSILON);
    return blocks[b].stride == 1 && in == thin.channels ? fkt_net_plain(n, FKT_OP_ADD, y, x, 0) : y;
}

static void build(struct fkt_net *n, const struct widths *w)
{
    struct fkt_op stem = {.channels = w->stem, .kernel = 3, .stride = 2},
                  head = {.channels = w->head, .kernel = 1, .stride = 1};
    uint32_t x, in = w->stem;
    fkt_net_init(n, 3);
    fkt_net_same(&stem, SIDE_STEP);
    x = activate(n, fkt_guide_conv(n, 0, "_conv_stem", stem, 3), "_bn0", w->stem);
    for (uint32_t b = 0; b < BLOCKS; b++) {
        x = add_block(n, x, w, b, in);
        in = w->out[b];
    }
    x = activate(n, fkt_guide_conv(n, x, "_conv_head", head, in), "_bn1", w->head);
    fkt_net_plain(n, FKT_OP_MEAN, x, 0, 0);
}

/* Rows of the convolution `what`, or the length of its norm where the convolution is absent. */
static uint32_t rows(struct fkt_family_draft *d, const char *conv, const char *norm)
{
    char name[2 * NAME_MAX_LENGTH];
    uint64_t n;
    snprintf(name, sizeof name, "%s.weight", conv);
    n = fkt_guide_dimension(d->file[0], name, 0);
    snprintf(name, sizeof name, "%s.weight", norm);
    if (!n) n = fkt_guide_dimension(d->file[0], name, 0);
    if (!n || n > FKT_FAMILY_CHANNELS_MAX)
        fkt_text_addf(d->misfits, "convolution '%s' has %llu channels\n", conv, (unsigned long long)n);
    return (uint32_t)(n > FKT_FAMILY_CHANNELS_MAX ? 0 : n);
}

fkt_status fkt_efficientnet_build(struct fkt_family_draft *d)
{
    struct widths w;
    struct fkt_family *f = d->family;
    char name[NAME_MAX_LENGTH], norm[NAME_MAX_LENGTH];
    w.stem = rows(d, "_conv_stem", "_bn0");
    w.head = rows(d, "_conv_head", "_bn1");
    for (uint32_t b = 0; b < BLOCKS; b++) {
        w.wide[b] = rows(d, named(name, b, "_depthwise_conv"), named(norm, b, "_bn1"));
        w.out[b] = rows(d, named(name, b, "_project_conv"), named(norm, b, "_bn2"));
    }
    if (d->misfits->len) return fkt_text_status(d->misfits);
    f->latent_channels = w.head;
    f->input = 224;
    f->step = SIDE_STEP;
    for (int k = 0; k < 3; k++) {
        f->pixel_scale[k] = 255.0 / 128;
        f->pixel_shift[k] = -127.0 / 128;
    }
    f->scaling = "mean=127/255 std=128/255";
    build(&f->net[FKT_CODEC_SIDE_ENCODER], &w);
    return fkt_net_status(&f->net[FKT_CODEC_SIDE_ENCODER]);
}
