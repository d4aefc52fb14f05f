/* SPDX-License-Identifier: Apache-2.0 */
/* dcae_check.c - whether what the tensors of a DC-AE say can be a network, and whether config.json agrees.
 *
 * The shape was derived from an untrusted file, so numbers are bounded and divisions checked here, before the
 * builder multiplies them. Each refusal is a line that names stage and number. What a single tensor does wrong is not
 * looked at here: binding the weights finds and names it. */
#include "codec/dcae.h"

#include <inttypes.h>
#include <string.h>

static const char *const side_name[2] = {"encoder", "decoder"};

static int in_range(uint64_t n, uint64_t max) { return n >= 1 && n <= max; }

static void check_attention(const struct fkt_family_draft *d, const struct fkt_dcae_half *h, uint32_t s)
{
    const struct fkt_dcae_stage *g = &h->stage[s];
    const char *who = side_name[h->side];
    uint64_t head = g->head ? g->head : d->config->head ? d->config->head : 32;
    if (!in_range(g->inner3.value, 3 * FKT_FAMILY_CHANNELS_MAX) || !in_range(head, 1024) ||
        g->inner3.value % (3 * head))
        fkt_text_addf(d->misfits,
                      "stage %u of the %s: %" PRIu64 " channels of attention are not heads of 3 x %" PRIu64 "\n", s,
                      who, g->inner3.value, head);
    if (!in_range(g->hidden.value, 8 * FKT_FAMILY_CHANNELS_MAX) || g->hidden.value % 2)
        fkt_text_addf(d->misfits, "stage %u of the %s: a gate of %" PRIu64 " channels\n", s, who, g->hidden.value);
    if (g->head && d->config->head && g->head != d->config->head)
        fkt_text_addf(d->misfits, "config.json: attention_head_dim is %u, the tensors of stage %u have %" PRIu64 "\n",
                      d->config->head, s, g->head);
    for (uint32_t k = 0; k < g->scales; k++)
        if (g->window[k] % 2 == 0 || g->window[k] > 31)
            fkt_text_addf(d->misfits, "stage %u of the %s: scale %u of the attention has no odd window up to 31\n", s,
                          who, k);
}

/* One stage by itself: is there a block at every number, and do its own numbers go together? */
static void check_stage(const struct fkt_family_draft *d, const struct fkt_dcae_half *h, uint32_t s)
{
    const struct fkt_dcae_stage *g = &h->stage[s];
    const char *who = side_name[h->side];
    uint32_t step = s + 1 == h->stages ? FKT_DCAE_BLOCKS : h->side == FKT_CODEC_SIDE_ENCODER ? g->blocks - 1 : 0;
    int attention = 0;
    if (!in_range(g->width.lead ? g->width.value : 0, FKT_FAMILY_CHANNELS_MAX)) {
        fkt_text_addf(d->misfits, "stage %u of the %s has no width between 1 and %u\n", s, who,
                      FKT_FAMILY_CHANNELS_MAX);
        return;
    }
    for (uint32_t i = 0; i < g->blocks; i++) {
        attention |= g->kind[i] == FKT_DCAE_ATTENTION;
        if (g->kind[i] == FKT_DCAE_NONE)
            fkt_text_addf(d->misfits, "block %u of stage %u of the %s is missing\n", i, s, who);
        else if ((g->kind[i] == FKT_DCAE_RESAMPLE) != (i == step))
            fkt_text_addf(d->misfits, "block %u of stage %u of the %s %s the step to the next stage\n", i, s, who,
                          i == step ? "should be" : "should not be");
    }
    if (attention) check_attention(d, h, s);
}

/* Rows of a convolution that changes the size: those of the goal (strided, interpolated), or folded by four. */
static int leads_to(uint64_t rows, uint64_t goal, int up)
{
    return rows == goal || (up ? rows == 4 * goal : 4 * rows == goal);
}

static void check_steps(const struct fkt_family_draft *d, const struct fkt_dcae_half *h)
{
    uint64_t latent = d->family->latent_channels, last = h->stage[h->stages - 1].width.value;
    uint32_t first = h->stage[0].blocks ? 0 : 1;
    int up = h->side == FKT_CODEC_SIDE_DECODER;
    for (uint32_t s = first; s + 1 < h->stages; s++) {
        uint64_t near = h->stage[s].width.value, far = h->stage[s + 1].width.value, rows = h->stage[s].step.value;
        if (!leads_to(rows, up ? near : far, up) || 4 * near % far)
            fkt_text_addf(d->misfits,
                          "%s: a step of %" PRIu64 " rows does not join stages %u and %u of %" PRIu64 " and %" PRIu64
                          " channels\n",
                          side_name[h->side], rows, s, s + 1, near, far);
    }
    if (d->config->shortcut[h->side] && last % latent)
        fkt_text_addf(d->misfits, "%s: %" PRIu64 " channels are not a multiple of %" PRIu64 " latent ones\n",
                      side_name[h->side], last, latent);
    if (first && !leads_to(h->pixel_rows, up ? 3 : h->stage[1].width.value, up))
        fkt_text_addf(d->misfits, "%s: the convolution at the pixels has %" PRIu64 " rows\n", side_name[h->side],
                      h->pixel_rows);
}

void fkt_dcae_check(const struct fkt_family_draft *d, const struct fkt_dcae_half *h)
{
    uint32_t first = h->stage[0].blocks ? 0 : 1;
    if (h->out_of_range)
        fkt_text_addf(d->misfits, "%" PRIu64 " tensors of the %s are beyond %d stages, %d blocks or %d scales\n",
                      h->out_of_range, side_name[h->side], FKT_DCAE_STAGES, FKT_DCAE_BLOCKS, FKT_DCAE_SCALES);
    if (h->stages <= first) {
        fkt_text_addf(d->misfits, "the %s has no stages\n", side_name[h->side]);
        return;
    }
    for (uint32_t s = first; s < h->stages; s++)
        if (h->stage[s].blocks) check_stage(d, h, s);
        else fkt_text_addf(d->misfits, "stage %u of the %s is missing\n", s, side_name[h->side]);
    if (!d->misfits->len) check_steps(d, h);
}

static void check_word(const struct fkt_family_draft *d, const char *key, const char *said, const char *want)
{
    if (said[0] && strcmp(said, want) != 0)
        fkt_text_addf(d->misfits, "config.json: %s is '%s', the tensors say '%s'\n", key, said, want);
}

/* Norms and activations of the decoder's stages: batch norm goes with ReLU, RMS norm with SiLU. */
static void check_words(const struct fkt_family_draft *d, const struct fkt_dcae_half *h, uint32_t s)
{
    const struct fkt_config_words *norms = &d->config->norms, *acts = &d->config->acts;
    const struct fkt_dcae_stage *g = &h->stage[s];
    int residual = g->kind[s + 1 < h->stages && g->blocks > 1] == FKT_DCAE_RESIDUAL;
    int batch = g->batch_norm[residual ? FKT_DCAE_NORM : FKT_DCAE_PROJ_NORM];
    if (norms->one || s < norms->count)
        check_word(d, "decoder_norm_types", norms->at[norms->one ? 0 : s], batch ? "batch_norm" : "rms_norm");
    if (residual && (acts->one || s < acts->count))
        check_word(d, "decoder_act_fns", acts->at[acts->one ? 0 : s], batch ? "relu" : "silu");
}

static void check_lists(const struct fkt_family_draft *d, const struct fkt_dcae_half *h)
{
    const struct fkt_config_numbers *w = &d->config->widths[h->side], *n = &d->config->depths[h->side];
    const char *who = side_name[h->side];
    if ((w->count && w->count != h->stages) || (n->count && n->count != h->stages)) {
        fkt_text_addf(d->misfits, "config.json: %u stages of the %s, the tensors have %u\n",
                      w->count ? w->count : n->count, who, h->stages);
        return;
    }
    for (uint32_t s = 0; s < h->stages; s++) {
        uint32_t depth = h->stage[s].blocks - (h->stage[s].blocks && s + 1 < h->stages);
        uint64_t width = h->stage[s].width.value;
        if (n->count && n->at[s] != depth)
            fkt_text_addf(d->misfits, "config.json: %s_layers_per_block says %u for stage %u, the tensors have %u\n",
                          who, n->at[s], s, depth);
        if (w->count && depth && w->at[s] != width)
            fkt_text_addf(d->misfits,
                          "config.json: %s_block_out_channels says %u for stage %u, the tensors have %" PRIu64 "\n",
                          who, w->at[s], s, width);
        if (h->side == FKT_CODEC_SIDE_DECODER && depth) check_words(d, h, s);
    }
}

void fkt_dcae_check_config(const struct fkt_family_draft *d, const struct fkt_dcae_half *h)
{
    const struct fkt_family_config *c = d->config;
    uint32_t first = h->stage[0].blocks ? 0 : 1;
    check_lists(d, h);
    if (c->conv_act[0] && strcmp(c->conv_act, "relu") != 0 && strcmp(c->conv_act, "silu") != 0 &&
        h->side == FKT_CODEC_SIDE_DECODER)
        fkt_text_addf(d->misfits, "config.json: decoder_conv_act_fn is '%s', known are 'relu' and 'silu'\n",
                      c->conv_act);
    for (uint32_t s = first; s + 1 < h->stages; s++) {
        uint64_t rows = h->stage[s].step.value;
        if (h->side == FKT_CODEC_SIDE_DECODER) {
            check_word(d, "upsample_block_type", c->up,
                       rows == h->stage[s].width.value ? "interpolate" : "pixel_shuffle");
        } else if (c->down[0]) { /* diffusers takes every other word for a strided convolution */
            int unshuffled = rows != h->stage[s + 1].width.value, said = !strcmp(c->down, "pixel_unshuffle");
            if (unshuffled != said)
                fkt_text_addf(d->misfits,
                              "config.json: downsample_block_type is '%s', the tensors of stage %u differ\n", c->down,
                              s);
        }
    }
}
