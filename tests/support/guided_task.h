/* SPDX-License-Identifier: Apache-2.0 */
/* guided_task.h - tasks whose record vectors have a guide's part: a codec of `dim` numbers, a guide without weights,
 * and calibrations that cut nothing. */
#ifndef FKT_TEST_GUIDED_TASK_H
#define FKT_TEST_GUIDED_TASK_H

#include "base/alloc.h"
#include "codec/codec.h"
#include "task/task.h"

#include <stdio.h>
#include <string.h>

/* Mean of all pixels of a channel, repeated: enough for a network that nobody trains. */
static inline fkt_status fake_guide_encode(const void *self, const uint8_t *rgb, size_t n, float *z)
{
    const struct fkt_codec *c = self;
    const size_t pixels = (size_t)c->size * c->size;
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < c->dim; k++) {
            double sum = 0;
            for (size_t j = k; j < pixels; j += c->dim) sum += rgb[(i * pixels + j) * 3 + k % 3];
            z[i * c->dim + k] = (float)(sum / 1000);
        }
    return FKT_OK;
}

static const struct fkt_codec_ops fake_guide_ops = {.name = "fake-guide", .encode = fake_guide_encode};

struct guided_task {
    struct fkt_task task;
    struct fkt_codec *codec, guide;
    struct fkt_calibration calibration[2]; /* in the order of the task's parts */
    struct fkt_part_choice part[2];
    uint32_t n;
};

static inline fkt_status fake_guide_calibration(struct fkt_calibration *out, const struct fkt_codec *guide)
{
    fkt_status st = fkt_calibration_init(out, guide->dim, guide->dim);
    if (st != FKT_OK) return st;
    for (uint32_t i = 0; i < guide->dim; i++) {
        out->map[i * guide->dim + i] = 2; /* map and unmap differ, so that a test sees which is which */
        out->unmap[i * guide->dim + i] = 0.5f;
        out->centre[i] = 1;
    }
    out->log_mean = 1;
    out->log_spread = 2;
    out->radius = 3;
    snprintf(out->source, sizeof out->source, "nothing public");
    snprintf(out->codec, sizeof out->codec, "%s", guide->identity);
    return FKT_OK;
}

/* Parts of `dim` numbers each (gain-shape: dim + 1), at 16 pixels; codec 0: a guide alone. Fills everything but the
 * task. Release with guided_parts_clear. */
static inline fkt_status guided_parts(struct guided_task *g, int codec, uint32_t dim)
{
    struct fkt_codec_spec spec = {.name = "dct", .size = 16, .dim = dim};
    fkt_status st = FKT_OK;
    memset(g, 0, sizeof *g);
    g->guide =
        (struct fkt_codec){.ops = &fake_guide_ops, .name = "fake-guide", .self = &g->guide, .size = 16, .dim = dim};
    snprintf(g->guide.identity, sizeof g->guide.identity, "fake/1 size=16 dim=%u", dim);
    if (codec) {
        FKT_TRY(fkt_codec_open(&g->codec, &spec));
        FKT_TRY(fkt_calibration_embedded(&g->calibration[g->n], g->codec));
        g->part[g->n].codec = g->codec;
        g->n++;
    }
    FKT_TRY(fake_guide_calibration(&g->calibration[g->n], &g->guide));
    g->part[g->n].codec = &g->guide;
    g->n++;
    for (uint32_t p = 0; p < g->n; p++) g->part[p].calibration = &g->calibration[p];
out:
    return st;
}

static inline void guided_parts_clear(struct guided_task *g)
{
    fkt_task_clear(&g->task);
    for (uint32_t p = 0; p < 2; p++) fkt_calibration_clear(&g->calibration[p]);
    fkt_codec_free(g->codec);
    g->codec = NULL;
}

/* A task of ten classes without a federation; `more` may say joined, pooled, privacy, federation. */
static inline fkt_status guided_task(struct guided_task *g, int codec, uint32_t dim, struct fkt_task_choices more)
{
    static const char *const classes[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
    fkt_status st;
    FKT_TRY(guided_parts(g, codec, dim));
    more.name = "guided";
    more.classes = classes;
    more.n_classes = 10;
    if (!(more.privacy.epsilon > 0)) {
        more.privacy.epsilon = 1;
        more.privacy.delta = 1e-5;
    }
    FKT_TRY(fkt_task_make_into(&g->task, &more, g->part, g->n));
out:
    if (st != FKT_OK) guided_parts_clear(g);
    return st;
}

#endif
