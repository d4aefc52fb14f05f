/* SPDX-License-Identifier: Apache-2.0 */
/* members.c - the members of the families, and what each name promises.
 *
 * A name fixes latent channels and reduction, or the features and blocks of a guide; weights that say otherwise are
 * another codec's. Three short names, "tiny", "dc-ae" and "resnet", promise nothing and take whatever the weights say.
 * The latent scales are those that diffusers' configs carry; efficientvit's files have none, so that the name must give
 * it. */
#include "codec/family.h"

#include <string.h>

#define CODEC(name, kind, channels, reduction, scale)                                                                  \
    {                                                                                                                  \
        name, kind, channels, reduction, scale, NULL, 0, 0, NULL                                                       \
    }
#define GUIDE(name, kind, features, variant, summary)                                                                  \
    {                                                                                                                  \
        name, kind, features, 0, 1, variant, 1, 0, summary                                                             \
    }

static const struct fkt_member members[] = {
    {"fedkt-ae", "taesd", 4, 8, 1, NULL, 0, 1, "our own autoencoder, 8x down, 4 channels"},
    CODEC("taesd", "taesd", 4, 8, 1),
    CODEC("taesdxl", "taesd", 4, 8, 1),
    CODEC("taesd3", "taesd", 16, 8, 1),
    CODEC("taef1", "taesd", 16, 8, 1),
    CODEC("tiny", "taesd", 0, 0, 1),
    CODEC("dc-ae-f32c32-in", "dc-ae", 32, 32, 0.3189),
    CODEC("dc-ae-f32c32-mix", "dc-ae", 32, 32, 0.4552),
    CODEC("dc-ae-f32c32-sana", "dc-ae", 32, 32, 0.41407),
    CODEC("dc-ae-f64c128-in", "dc-ae", 128, 64, 0.2889),
    CODEC("dc-ae-f64c128-mix", "dc-ae", 128, 64, 0.4538),
    CODEC("dc-ae-f128c512-in", "dc-ae", 512, 128, 0.4883),
    CODEC("dc-ae-f128c512-mix", "dc-ae", 512, 128, 0.3620),
    CODEC("dc-ae", "dc-ae", 0, 0, 1),
    {"fedkt-guide", "resnet", 0, 0, 1, "basic 2+2+2+2, 3x3 stem", 1, 1, "guide: our own residual network, input 32 px"},
    GUIDE("resnet18", "resnet", 512, "basic 2+2+2+2, 7x7 stem", NULL),
    GUIDE("resnet34", "resnet", 512, "basic 3+4+6+3, 7x7 stem", NULL),
    GUIDE("resnet50", "resnet", 2048, "bottleneck 3+4+6+3, 7x7 stem", NULL),
    GUIDE("resnet", "resnet", 0, NULL, NULL),
    GUIDE("efficientnet-lite0", "efficientnet-lite0", 1280, NULL, "guide: EfficientNet-Lite0, ImageNet, input 224 px"),
};

const struct fkt_member *fkt_member_at(size_t i) { return i < sizeof members / sizeof *members ? &members[i] : NULL; }

const struct fkt_member *fkt_member_find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (strlen(members[i].name) == length && !memcmp(members[i].name, name, length)) return &members[i];
    return NULL;
}
