/* SPDX-License-Identifier: Apache-2.0 */
/* guide.c - what the networks of guides have in common: convolutions and norms under the names of PyTorch's modules.
 *
 * A guide is an encoder without decoder: a published classifier up to its pooled features (docs/codecs.md, "Guides").
 * Its classifier layer is not used and not read. */
#include "codec/family.h"

#include <stdio.h>

enum { NAME_MAX_LENGTH = 96 };

static uint32_t slot(struct fkt_net *n, const char *name, const char *what, uint32_t count)
{
    char whole[NAME_MAX_LENGTH];
    snprintf(whole, sizeof whole, "%s.%s", name, what);
    return fkt_net_slot(n, whole, count, 0, 0, 0);
}

/* `op` has channels, kernel, stride, pad and groups. */
uint32_t fkt_guide_conv(struct fkt_net *n, uint32_t x, const char *name, struct fkt_op op, uint32_t in)
{
    char whole[NAME_MAX_LENGTH];
    op.kind = FKT_OP_CONV;
    op.in[0] = x;
    op.groups = op.groups ? op.groups : 1;
    snprintf(whole, sizeof whole, "%s.weight", name);
    op.weight = fkt_net_slot(n, whole, op.channels, in / op.groups, op.kernel, op.kernel);
    op.bias = op.mean = op.var = FKT_NO_SLOT;
    return fkt_net_add(n, &op);
}

uint32_t fkt_guide_norm(struct fkt_net *n, uint32_t x, const char *name, uint32_t channels, float epsilon)
{
    struct fkt_op op = {.kind = FKT_OP_BATCH_NORM, .in = {x, 0}, .value = {epsilon, 0}};
    op.weight = slot(n, name, "weight", channels);
    op.bias = slot(n, name, "bias", channels);
    op.mean = slot(n, name, "running_mean", channels);
    op.var = slot(n, name, "running_var", channels);
    return fkt_net_add(n, &op);
}

uint64_t fkt_guide_dimension(const struct fkt_safetensors *file, const char *name, unsigned d)
{
    const struct fkt_tensor *t = fkt_safetensors_find(file, name);
    return t && d < t->rank ? t->shape[d] : 0;
}

void fkt_guide_scale_imagenet(struct fkt_family *f)
{
    static const double mean[3] = {0.485, 0.456, 0.406}, deviation[3] = {0.229, 0.224, 0.225};
    for (int k = 0; k < 3; k++) {
        f->pixel_scale[k] = 1 / deviation[k];
        f->pixel_shift[k] = -mean[k] / deviation[k];
    }
    f->scaling = "mean=0.485,0.456,0.406 std=0.229,0.224,0.225";
}
