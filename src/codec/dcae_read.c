/* SPDX-License-Identifier: Apache-2.0 */
/* dcae_read.c - what the tensors of one half of a DC-AE say about its shape.
 *
 * Every tensor's name is taken apart, and its rows count as a vote for the number that they stand for: width of the
 * stage, channels of the gate, channels of the heads. So a single tensor of a wrong shape is outvoted and reported
 * later, instead of changing the shape of the network. Numbers of stages and blocks are bounded here, before
 * anything grows with them. */
#include "codec/dcae.h"

#include <string.h>

static enum fkt_dcae_block block_kind(enum fkt_dcae_part p)
{
    if (p <= FKT_DCAE_NORM) return FKT_DCAE_RESIDUAL;
    return p < FKT_DCAE_STEP ? FKT_DCAE_ATTENTION : FKT_DCAE_RESAMPLE;
}

static void read_end(struct fkt_dcae_half *h, const struct fkt_dcae_place *at, const struct fkt_tensor *t)
{
    int weight = !strcmp(at->leaf, "weight");
    uint64_t rows = t->rank ? t->shape[0] : 0;
    if (at->part == FKT_DCAE_PIXEL_CONV) {
        if (!h->pixel_rows || weight) h->pixel_rows = rows;
        h->plain_end = at->plain;
    }
    if (at->part != FKT_DCAE_LATENT_CONV) return;
    if (h->side == FKT_CODEC_SIDE_DECODER && weight && t->rank > 1) h->latent = t->shape[1];
    if (h->side == FKT_CODEC_SIDE_ENCODER && (!h->latent || weight)) h->latent = rows;
}

static void read_scale(struct fkt_dcae_stage *s, const struct fkt_dcae_place *at, const struct fkt_tensor *t)
{
    if ((uint32_t)at->scale >= s->scales) s->scales = (uint32_t)at->scale + 1;
    if (at->part == FKT_DCAE_SCALE_IN && t->rank == 4)
        s->window[at->scale] = t->shape[2] < 64 ? (uint32_t)t->shape[2] : 64;
    if (at->part == FKT_DCAE_SCALE_OUT && t->rank > 1) s->head = t->shape[1];
}

static void read_block(struct fkt_dcae_half *h, const struct fkt_dcae_place *at, const struct fkt_tensor *t)
{
    struct fkt_dcae_stage *s = &h->stage[at->stage];
    uint64_t rows = t->rank ? t->shape[0] : 0;
    if ((uint32_t)at->stage >= h->stages) h->stages = (uint32_t)at->stage + 1;
    if ((uint32_t)at->block >= s->blocks) s->blocks = (uint32_t)at->block + 1;
    if (s->kind[at->block] == FKT_DCAE_NONE) s->kind[at->block] = (uint8_t)block_kind(at->part);
    if (!strncmp(at->leaf, "running_", 8)) s->batch_norm[at->part] = 1;
    switch (at->part) {
    case FKT_DCAE_QKV:
    case FKT_DCAE_QKV_K:
    case FKT_DCAE_QKV_V: fkt_vote(&s->inner3, h->layout == FKT_LAYOUT_EFFICIENTVIT ? rows : 3 * rows); break;
    case FKT_DCAE_SCALE_IN:
    case FKT_DCAE_SCALE_OUT: read_scale(s, at, t); break;
    case FKT_DCAE_INVERTED:
    case FKT_DCAE_DEPTH: fkt_vote(&s->hidden, rows); break;
    case FKT_DCAE_STEP:
        fkt_vote(&s->step, rows);
        s->plain_step = at->plain;
        break;
    default:
        if (t->rank) fkt_vote(&s->width, rows); /* the number of batches that batch norm saw has no rows */
    }
}

void fkt_dcae_read(struct fkt_dcae_half *out, const struct fkt_safetensors *file, int side,
                   enum fkt_family_layout layout)
{
    *out = (struct fkt_dcae_half){.side = side, .layout = layout};
    for (size_t i = 0; i < fkt_safetensors_count(file); i++) {
        const struct fkt_tensor *t = fkt_safetensors_at(file, i);
        struct fkt_dcae_place at;
        if (!fkt_dcae_parse(&at, t->name, side, layout)) continue;
        if (at.part >= FKT_DCAE_PIXEL_CONV) read_end(out, &at, t);
        else if (at.stage >= FKT_DCAE_STAGES || at.block >= FKT_DCAE_BLOCKS || at.scale >= FKT_DCAE_SCALES)
            out->out_of_range++;
        else read_block(out, &at, t);
    }
}
