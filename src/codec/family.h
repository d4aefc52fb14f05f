/* SPDX-License-Identifier: Apache-2.0 */
/* family.h - a pair of networks, or the one network of a guide, recognised from the files that hold the weights. */
#ifndef FKT_CODEC_FAMILY_H
#define FKT_CODEC_FAMILY_H

#include "nn/net.h"
#include "nn/weights.h"

#include "base/text.h"
#include "codec/codec.h"
#include "codec/family_config.h"
#include "crypto/hash.h"

#define FKT_FAMILY_CHANNELS_MAX 65536U /* widest layer that is accepted */

enum { FKT_FAMILY_KIND = 24, FKT_FAMILY_VARIANT = 48 };

enum fkt_family_layout {
    FKT_LAYOUT_TAESD = 0,    /* two files, torch.nn.Sequential indices */
    FKT_LAYOUT_TINY,         /* diffusers AutoencoderTiny */
    FKT_LAYOUT_DC,           /* diffusers AutoencoderDC */
    FKT_LAYOUT_EFFICIENTVIT, /* efficientvit's DC-AE */
    FKT_LAYOUT_RESNET,       /* torchvision's residual networks: a guide */
    FKT_LAYOUT_EFFICIENTNET, /* efficientnet_lite_pytorch: a guide */
    FKT_LAYOUTS
};

struct fkt_family {
    char kind[FKT_FAMILY_KIND];          /* "taesd", "dc-ae", "resnet", "efficientnet-lite0" */
    char layout[32];                     /* "taesd", "diffusers", "efficientvit", "torchvision", ... */
    int guide;                           /* 1: an encoder alone: net[1] has no operation, reduction is 0 */
    char variant[FKT_FAMILY_VARIANT];    /* of a guide: "basic 2+2+2+2, 7x7 stem"; else "" */
    uint32_t input, step;                /* of a guide: side of the published input, and what sides are multiples of */
    const char *scaling;                 /* of a guide: pixel_scale and pixel_shift in words, for the identity */
    struct fkt_net net[2];               /* encoder, decoder */
    struct fkt_weights *weights[2];      /* owned */
    uint32_t latent_channels, reduction; /* features of a guide; pixels per latent pixel, each way */
    double pixel_scale[3], pixel_shift[3]; /* network input = pixel/255 * scale + shift, channel by channel */
    double latent_scale, latent_shift;     /* z = (network output - shift) * scale */
    struct fkt_safetensors *file[2];       /* owned; the second is NULL where one file holds both */
    char *path[2];                         /* owned; as file */
    char *config;                          /* owned; path of the config.json that was read; NULL: none */
};

/* `path` is a file or a folder. `codec` (may be NULL) is the member's name: it picks among several pairs in a folder,
 * gives the latent scale where no config.json does, and is held against what the tensors say. `report` (may be NULL)
 * gets every misfit on a line of its own, or NULL; freed with fkt_free. */
FKT_MUST_USE fkt_status fkt_family_open(struct fkt_family *out, const char *path, const char *codec, char **report);
void fkt_family_clear(struct fkt_family *f);

/* SHA-256 of both networks as numbers: the same for the same values in any layout and number type. Reads every weight
 * once; FKT_E_NUMERIC names the tensor that holds a NaN or an infinity. family_hash.c. */
FKT_MUST_USE fkt_status fkt_family_sha256(const struct fkt_family *f, char out[FKT_HASH_HEX]);

/* fkt_family_open from files that are open already and outlive *out; `file[1]` is NULL where one file holds both
 * networks. `config` (may be NULL) is the text of a config.json. `name` stands in sentences. */
struct fkt_family_source {
    const struct fkt_safetensors *file[2];
    const char *config;
    size_t config_len;
    const char *name, *codec;
};
FKT_MUST_USE fkt_status fkt_family_recognise(struct fkt_family *out, const struct fkt_family_source *source,
                                             char **report);

/* The files behind a path; family_files.c. All owned by the caller. config is NULL where there is none. */
struct fkt_family_files {
    char *path[2];
    char *config_path;
    uint8_t *config;
    size_t config_len;
};
FKT_MUST_USE fkt_status fkt_family_find(struct fkt_family_files *out, const char *path, const char *codec);
void fkt_family_files_clear(struct fkt_family_files *f);

/* A member: what its name promises. */
struct fkt_member {
    const char *name, *kind;
    uint32_t latent_channels, reduction; /* 0: whatever the weights say; of a guide its features, and 0 */
    double latent_scale;                 /* where no config.json says it */
    const char *variant;                 /* of a guide; NULL: whatever the weights say */
    int guide, shipped;                  /* shipped: weights and calibrations come with the program (models.h) */
    const char *summary;                 /* one line; NULL: any network of the family, or the manifest has it */
};
const struct fkt_member *fkt_member_find(const char *name, size_t length); /* NULL when unknown */
const struct fkt_member *fkt_member_at(size_t i);                          /* NULL at the end */

/* What a builder is given and what it finds out. Misfits are lines. */
struct fkt_family_draft {
    struct fkt_family *family; /* net[], latent_channels and reduction are the builder's to fill */
    enum fkt_family_layout layout;
    const struct fkt_safetensors *file[2]; /* of encoder and decoder: twice the same where one file holds both */
    const struct fkt_family_config *config;
    struct fkt_text *misfits;
};
/* Derives the shape of both networks from the tensors and writes them down as operations. Misfits that leave nothing
 * to build are noted and the networks stay empty; FKT_E_NOMEM otherwise. */
FKT_MUST_USE fkt_status fkt_taesd_build(struct fkt_family_draft *d);
FKT_MUST_USE fkt_status fkt_dcae_build(struct fkt_family_draft *d);
/* TAESD's decoder alone, under torch.nn.Sequential's names, with as many input channels as its first tensor has.
 * FKT_E_MISMATCH where the tensors name none. Clear the network also on failure, if it was zero before. */
FKT_MUST_USE fkt_status fkt_taesd_decoder(struct fkt_net *net, const struct fkt_safetensors *file);
FKT_MUST_USE fkt_status fkt_resnet_guide_build(struct fkt_family_draft *d);
FKT_MUST_USE fkt_status fkt_efficientnet_build(struct fkt_family_draft *d);
/* What the builders of guides share; guide.c. Operations get the names that the tensors have. */
uint32_t fkt_guide_conv(struct fkt_net *n, uint32_t x, const char *name, struct fkt_op op, uint32_t in);
uint32_t fkt_guide_norm(struct fkt_net *n, uint32_t x, const char *name, uint32_t channels, float epsilon);
uint64_t fkt_guide_dimension(const struct fkt_safetensors *file, const char *name, unsigned d); /* 0: absent */
/* ImageNet's mean and standard deviation, as torchvision scales pixels. */
void fkt_guide_scale_imagenet(struct fkt_family *f);

/* Odd one out: the value that most of the votes were for, whatever one wrong tensor says (Boyer and Moore 1981). */
struct fkt_vote {
    uint64_t value;
    uint32_t lead;
};
static inline void fkt_vote(struct fkt_vote *v, uint64_t value)
{
    if (!v->lead) v->value = value;
    if (v->value == value) v->lead++;
    else v->lead--;
}

#endif
