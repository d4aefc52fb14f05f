/* SPDX-License-Identifier: Apache-2.0 */
/* dcae_names.c - one part of a DC-AE, two names: diffusers' AutoencoderDC and efficientvit's DC-AE.
 *
 *   encoder.down_blocks.3.1.attn.to_out.weight
 *   encoder.stages.3.op_list.1.context_module.main.proj.conv.weight
 *   side    stage         block part                          leaf
 *
 * One table serves both ways. Where a convolution may be wrapped (with a shuffle) or bare (strided, or at full size)
 * it has two names; which of the two a file uses is seen when it is read. diffusers' to_q, to_k and to_v are the thirds
 * of efficientvit's qkv, cut by rows without regard to heads: despite their names none of them holds queries alone. */
#include "codec/dcae.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

struct row {
    const char *name[2];  /* diffusers, efficientvit; '#' stands for the number of a scale; NULL: has none */
    const char *plain[2]; /* the bare form, where there are two */
};
static const struct row rows[FKT_DCAE_PARTS] = {
    [FKT_DCAE_CONV1] = {{"conv1", "main.conv1.conv"}, {0}},
    [FKT_DCAE_CONV2] = {{"conv2", "main.conv2.conv"}, {0}},
    [FKT_DCAE_NORM] = {{"norm", "main.conv2.norm"}, {0}},
    [FKT_DCAE_QKV] = {{"attn.to_q", "context_module.main.qkv.conv"}, {0}},
    [FKT_DCAE_QKV_K] = {{"attn.to_k", NULL}, {0}},
    [FKT_DCAE_QKV_V] = {{"attn.to_v", NULL}, {0}},
    [FKT_DCAE_SCALE_IN] = {{"attn.to_qkv_multiscale.#.proj_in", "context_module.main.aggreg.#.0"}, {0}},
    [FKT_DCAE_SCALE_OUT] = {{"attn.to_qkv_multiscale.#.proj_out", "context_module.main.aggreg.#.1"}, {0}},
    [FKT_DCAE_PROJ] = {{"attn.to_out", "context_module.main.proj.conv"}, {0}},
    [FKT_DCAE_PROJ_NORM] = {{"attn.norm_out", "context_module.main.proj.norm"}, {0}},
    [FKT_DCAE_INVERTED] = {{"conv_out.conv_inverted", "local_module.main.inverted_conv.conv"}, {0}},
    [FKT_DCAE_DEPTH] = {{"conv_out.conv_depth", "local_module.main.depth_conv.conv"}, {0}},
    [FKT_DCAE_POINT] = {{"conv_out.conv_point", "local_module.main.point_conv.conv"}, {0}},
    [FKT_DCAE_POINT_NORM] = {{"conv_out.norm", "local_module.main.point_conv.norm"}, {0}},
    [FKT_DCAE_STEP] = {{"conv", "main.conv.conv"}, {NULL, "main.conv"}},
};
static const struct row ends[2][3] = {
    {{{"conv_in.conv", "project_in.conv.conv"}, {"conv_in", "project_in.conv"}},
     {{"conv_out", "project_out.main.op_list.0.conv"}, {0}},
     {{0}, {0}}},
    {{{"conv_out.conv", "project_out.op_list.2.conv.conv"}, {"conv_out", "project_out.op_list.2.conv"}},
     {{"conv_in", "project_in.main.conv"}, {0}},
     {{"norm_out", "project_out.op_list.0"}, {0}}},
};
static const char *const sides[2] = {"encoder.", "decoder."};
static const char *const stages[2][2] = {{"down_blocks.", "stages."}, {"up_blocks.", "stages."}};
static const char *const blocks[2] = {"", "op_list."};

static const struct row *row_of(enum fkt_dcae_part p, int side)
{
    return p < FKT_DCAE_PIXEL_CONV ? &rows[p] : &ends[side][p - FKT_DCAE_PIXEL_CONV];
}

/* "12." -> 12, at most `max`; the rest, or NULL. */
static const char *take_number(int *out, const char *s, int max)
{
    if (!isdigit((unsigned char)*s) || (*s == '0' && isdigit((unsigned char)s[1]))) return NULL;
    for (*out = 0; isdigit((unsigned char)*s); s++)
        if (*out < max) *out = 10 * *out + (*s - '0');
    if (*out > max) *out = max;
    return *s == '.' ? s + 1 : NULL;
}

/* The leaf behind pattern and a dot, or NULL. */
static const char *match(const char *s, const char *pattern, int *scale)
{
    for (; *pattern; pattern++) {
        if (*pattern != '#') {
            if (*s++ != *pattern) return NULL;
            continue;
        }
        s = take_number(scale, s, FKT_DCAE_SCALES);
        if (!s) return NULL;
        pattern++; /* its dot went with the number */
    }
    return *s == '.' && !strchr(s + 1, '.') ? s + 1 : NULL;
}

static int match_row(struct fkt_dcae_place *out, const char *s, const struct row *r, int efficientvit)
{
    for (int plain = 0; plain < 2; plain++) {
        const char *pattern = plain ? r->plain[efficientvit] : r->name[efficientvit];
        out->plain = plain;
        if (pattern && (out->leaf = match(s, pattern, &out->scale))) return 1;
    }
    return 0;
}

int fkt_dcae_parse(struct fkt_dcae_place *out, const char *name, int side, enum fkt_family_layout layout)
{
    int e = layout == FKT_LAYOUT_EFFICIENTVIT;
    const char *s = name + 8;
    int first = FKT_DCAE_PIXEL_CONV, last = FKT_DCAE_PARTS;
    *out = (struct fkt_dcae_place){.part = FKT_DCAE_PARTS};
    if (strncmp(name, sides[side], 8) != 0) return 0;
    if (!strncmp(s, stages[side][e], strlen(stages[side][e]))) {
        s = take_number(&out->stage, s + strlen(stages[side][e]), FKT_DCAE_STAGES);
        if (!s || strncmp(s, blocks[e], strlen(blocks[e])) != 0) return 0;
        s = take_number(&out->block, s + strlen(blocks[e]), FKT_DCAE_BLOCKS);
        if (!s) return 0;
        first = 0;
        last = FKT_DCAE_PIXEL_CONV;
    }
    for (int p = first; p < last; p++)
        if (match_row(out, s, row_of((enum fkt_dcae_part)p, side), e)) {
            out->part = (enum fkt_dcae_part)p;
            return 1;
        }
    return 0;
}

const char *fkt_dcae_name(char out[FKT_DCAE_NAME], const struct fkt_dcae_place *place, int side,
                          enum fkt_family_layout layout)
{
    int e = layout == FKT_LAYOUT_EFFICIENTVIT;
    const struct row *r = row_of(place->part, side);
    const char *pattern = place->plain && r->plain[e] ? r->plain[e] : r->name[e], *mark = strchr(pattern, '#');
    char part[64];
    if (mark) snprintf(part, sizeof part, "%.*s%d%s", (int)(mark - pattern), pattern, place->scale, mark + 1);
    else snprintf(part, sizeof part, "%s", pattern);
    if (place->part < FKT_DCAE_PIXEL_CONV)
        snprintf(out, FKT_DCAE_NAME, "%s%s%d.%s%d.%s.%s", sides[side], stages[side][e], place->stage, blocks[e],
                 place->block, part, place->leaf);
    else snprintf(out, FKT_DCAE_NAME, "%s%s.%s", sides[side], part, place->leaf);
    return out;
}
