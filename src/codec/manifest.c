/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.c - the published codecs in one table, and the files that we know by hash.
 *
 * TAESD and its sisters: one small network, trained to imitate the autoencoders of larger models (madebyollin/taesd).
 * DC-AE: Chen et al., "Deep Compression Autoencoder for Efficient High-Resolution Diffusion Models", 2024; `in` was
 * trained on ImageNet, `mix` on a mixture, `sana` belongs to the text-to-image model of that name.
 * ResNet: torchvision's first ImageNet weights (IMAGENET1K_V1), which timm publishes as safetensors under the same
 * tensor names; guides.
 *
 * Nothing here is a guess: a hash, size or licence that was not checked is NULL or 0, and `pull` then takes the
 * hub's own word for the hash and writes down that it did. */
#include "codec/manifest.h"

#include <string.h>

#define DIFFUSERS                                                                                                      \
    {                                                                                                                  \
        {"config.json", NULL, 0}, { "diffusion_pytorch_model.safetensors", NULL, 0 }                                   \
    }
#define TAESD(name, of)                                                                                                \
    {                                                                                                                  \
        name, "taesd", of, "madebyollin/" name, "main", "MIT", 8, DIFFUSERS                                            \
    }
#define DC_AE(name, down, of)                                                                                          \
    {                                                                                                                  \
        "dc-ae-" name, "dc-ae", of, "mit-han-lab/dc-ae-" name "-1.0-diffusers", "main", NULL, down, DIFFUSERS          \
    }
#define RESNET(depth)                                                                                                  \
    {                                                                                                                  \
        "resnet" #depth, "resnet", "guide: ResNet-" #depth ", ImageNet, input 224 px",                                 \
            "timm/resnet" #depth ".tv_in1k", "main", NULL, 1,                                                          \
        {                                                                                                              \
            {"config.json", NULL, 0}, { "model.safetensors", NULL, 0 }                                                 \
        }                                                                                                              \
    }

const struct fkt_published fkt_published[] = {
    TAESD("taesd", "tiny autoencoder, 8x down, 4 channels"),
    TAESD("taesdxl", "tiny autoencoder, 8x down, 4 channels, latents of SDXL"),
    TAESD("taesd3", "tiny autoencoder, 8x down, 16 channels"),
    TAESD("taef1", "tiny autoencoder, 8x down, 16 channels, latents of FLUX.1"),
    DC_AE("f32c32-in", 32, "deep compression, 32x down, 32 channels, ImageNet"),
    DC_AE("f32c32-mix", 32, "deep compression, 32x down, 32 channels, mixed data"),
    DC_AE("f64c128-in", 64, "deep compression, 64x down, 128 channels, ImageNet"),
    DC_AE("f64c128-mix", 64, "deep compression, 64x down, 128 channels, mixed data"),
    DC_AE("f128c512-in", 128, "deep compression, 128x down, 512 channels, ImageNet"),
    DC_AE("f128c512-mix", 128, "deep compression, 128x down, 512 channels, mixed data"),
    DC_AE("f32c32-sana", 32, "deep compression, 32x down, 32 channels, with 5x5 aggregation"),
    RESNET(18),
    RESNET(34),
    RESNET(50),
};
const size_t fkt_published_count = sizeof fkt_published / sizeof *fkt_published;

const struct fkt_published *fkt_published_find(const char *name)
{
    for (size_t i = 0; i < fkt_published_count; i++)
        if (!strcmp(fkt_published[i].name, name)) return &fkt_published[i];
    return NULL;
}

/* BF16 copies in TAESD's own layout (tensor names are indices of a Sequential), and what lies in models/. */
static const struct fkt_known_file known[] = {
    {"taesd", "taesd_encoder.safetensors", "a6b8c0fda4aad50784e543389e0239c72c5e31e9775c9e612ea8333bf3a77dcb", 2450568},
    {"taesd", "taesd_decoder.safetensors", "d903e7cc3ae58f21d985a3498a841fa8b230edccff7ac5d27607b0c557945c6f", 2450590},
    {"taesd3", "taesd3_encoder.safetensors", "e5c96f3476bd26fe73e96d701a694f40d7ab48a290494cbbf70a3697d09cab4a",
     2464424},
    {"taesd3", "taesd3_decoder.safetensors", "e940e227e2a41919f0735ec423129724666f8b949c8bbce7a04b78ecfb4667de",
     2464414},
    {"fedkt-ae", "encoder.safetensors", "37a10600e2515591c58825df2488fc28bf525ced5732d44f5f74d86d3efa30a4", 1383032},
    {"fedkt-ae", "decoder.safetensors", "aa66cbfe8f54a5bf50ea865ef11cac411c6865d105744990c2fb52910469645c", 5497878},
    {"fedkt-guide", "model.safetensors", "028001dd57e9243d4d52706f2de80b9c2db4f39c3c508831047e70be944ac509", 7788128},
};

const struct fkt_known_file *fkt_known_file_find(const char *sha256)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].sha256, sha256)) return &known[i];
    return NULL;
}

const struct fkt_known_file *fkt_known_file_named(const char *codec, const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].codec, codec) && !strcmp(known[i].name, name)) return &known[i];
    return NULL;
}
