/* SPDX-License-Identifier: Apache-2.0 */
/* dcae.h - the shape of one half of a DC-AE (dcae_read.c), its tensors' names (dcae_names.c), its operations (dcae.c).
 */
#ifndef FKT_CODEC_DCAE_H
#define FKT_CODEC_DCAE_H

#include "codec/family.h"

enum { FKT_DCAE_STAGES = 16, FKT_DCAE_BLOCKS = 64, FKT_DCAE_SCALES = 4, FKT_DCAE_NAME = 128 };

/* What a tensor belongs to. Those up to FKT_DCAE_STEP stand in a block of a stage, the others at the ends. */
enum fkt_dcae_part {
    FKT_DCAE_CONV1 = 0, /* residual block: two convolutions, the second one normalised */
    FKT_DCAE_CONV2,
    FKT_DCAE_NORM,
    FKT_DCAE_QKV, /* attention block: linear attention ... */
    FKT_DCAE_QKV_K,
    FKT_DCAE_QKV_V,
    FKT_DCAE_SCALE_IN, /* ... with further scales (numbered) ... */
    FKT_DCAE_SCALE_OUT,
    FKT_DCAE_PROJ,
    FKT_DCAE_PROJ_NORM,
    FKT_DCAE_INVERTED, /* ... then a gated convolution */
    FKT_DCAE_DEPTH,
    FKT_DCAE_POINT,
    FKT_DCAE_POINT_NORM,
    FKT_DCAE_STEP,        /* down or up by two */
    FKT_DCAE_PIXEL_CONV,  /* the convolution at the pixels' end */
    FKT_DCAE_LATENT_CONV, /* the convolution at the latents' end */
    FKT_DCAE_PIXEL_NORM,  /* decoder only: before the last convolution */
    FKT_DCAE_PARTS
};

enum fkt_dcae_block { FKT_DCAE_NONE = 0, FKT_DCAE_RESIDUAL, FKT_DCAE_ATTENTION, FKT_DCAE_RESAMPLE };

struct fkt_dcae_stage {
    uint32_t blocks; /* highest number seen + 1, the step included */
    uint8_t kind[FKT_DCAE_BLOCKS];
    int plain_step;                              /* efficientvit: the step is a bare convolution by its name */
    int batch_norm[FKT_DCAE_PARTS];              /* running statistics were seen at this norm */
    struct fkt_vote width, hidden, inner3, step; /* rows: of the stage, 2x the gate, 3x the heads, of the step */
    uint32_t scales, window[FKT_DCAE_SCALES];
    uint64_t head; /* length of a head as the scales have it; 0: not said */
};

struct fkt_dcae_half {
    int side;
    enum fkt_family_layout layout;
    uint32_t stages;
    struct fkt_dcae_stage stage[FKT_DCAE_STAGES];
    int plain_end;         /* the pixel convolution is bare by its name */
    uint64_t pixel_rows;   /* of the convolution at the pixels' end */
    uint64_t latent;       /* channels */
    uint64_t out_of_range; /* stage or block numbers beyond the bounds */
};

/* A tensor's name taken apart. */
struct fkt_dcae_place {
    enum fkt_dcae_part part;
    int stage, block, scale; /* beyond the bounds: as large as the bound */
    int plain;               /* the shorter of two names */
    const char *leaf;        /* "weight", "bias", "running_mean", ... */
};
/* 1 when the name is of this side and layout. */
int fkt_dcae_parse(struct fkt_dcae_place *out, const char *name, int side, enum fkt_family_layout layout);
/* The other way. */
const char *fkt_dcae_name(char out[FKT_DCAE_NAME], const struct fkt_dcae_place *place, int side,
                          enum fkt_family_layout layout);

/* Gathers what the tensors of one half say. */
void fkt_dcae_read(struct fkt_dcae_half *out, const struct fkt_safetensors *file, int side,
                   enum fkt_family_layout layout);
/* Notes what cannot be a network, before one is built. */
void fkt_dcae_check(const struct fkt_family_draft *d, const struct fkt_dcae_half *h);
/* Notes where config.json says something else than the tensors. */
void fkt_dcae_check_config(const struct fkt_family_draft *d, const struct fkt_dcae_half *h);

#endif
