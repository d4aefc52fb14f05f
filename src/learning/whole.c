/* SPDX-License-Identifier: Apache-2.0 */
/* whole.c - makes a whole model of a head and the pipeline whose record vectors it takes.
 *
 * Only the encoders that the head needs are taken: a head on the guide alone leaves the codec out. The codec `dct` has
 * no network; its latent is an affine function of the pixels, so that it becomes one linear operation, whose columns
 * are read off the latents of images with one bright pixel. */
#include "learning/whole.h"

#include "fedkt/advanced/moments.h"
#include "fedkt/heads.h"

#include "base/alloc.h"
#include "base/file.h"
#include "classifier/heads.h"
#include "codec/codec.h"
#include "pipeline/pipeline.h"
#include "pipeline/provenance.h"
#include "pipeline/release.h"

#include <stdio.h>
#include <string.h>

#define NUMBERS_MAX (1U << 24) /* in one map of a network: 64 channels of 512 px */

static void part_clear(struct fkt_whole_part *p)
{
    fkt_weights_free(p->weights);
    for (size_t i = 0; p->array && i < p->net.n_slots; i++) fkt_free(p->array[i]);
    fkt_free(p->array);
    fkt_free(p->shapes);
    fkt_net_clear(&p->net);
    fkt_calibration_clear(&p->calibration);
}

void fkt_whole_free(struct fkt_whole *m)
{
    if (!m) return;
    fkt_whole_engines_free(m->engines);
    for (int i = 0; i < FKT_HEAD_PARTS_MAX; i++) part_clear(&m->part[i]);
    fkt_head_free(m->head);
    fkt_free(m);
}

uint32_t fkt_whole_size(const struct fkt_whole *m) { return m->size; }
enum fkt_filter fkt_whole_filter(const struct fkt_whole *m) { return m->filter; }
enum fkt_fit fkt_whole_fit(const struct fkt_whole *m) { return m->fit; }
uint32_t fkt_whole_classes(const struct fkt_whole *m) { return fkt_head_classes(m->head); }
const char *fkt_whole_class(const struct fkt_whole *m, uint32_t k) { return fkt_head_class(m->head, k); }
const struct fkt_head *fkt_whole_head(const struct fkt_whole *m) { return m->head; }
const struct fkt_model_origin *fkt_whole_origin(const struct fkt_whole *m) { return &m->origin; }
const char *fkt_whole_not_private(const struct fkt_whole *m) { return m->not_private; }

int fkt_whole_file_flags(const struct fkt_whole *m, int force)
{
    return (force ? FKT_FILE_REPLACE : 0) | (m->origin.is_private ? 0 : FKT_FILE_PRIVATE);
}

/* ---- what any whole model must satisfy ---- */

static fkt_status settle_part(struct fkt_whole_part *p, uint32_t size)
{
    const struct fkt_shape *end;
    fkt_status st;
    FKT_TRY(fkt_whole_net_check(&p->net));
    FKT_TRY(fkt_alloc(&p->shapes, p->net.n_ops + 1));
    FKT_TRY(fkt_net_shapes(&p->net, size, size, p->shapes));
    for (size_t i = 0; i <= p->net.n_ops; i++)
        if ((uint64_t)p->shapes[i].c * p->shapes[i].h * p->shapes[i].w > NUMBERS_MAX)
            return fkt_fail(FKT_E_MISMATCH, "operation %zu of '%s' makes more than %u numbers of an image", i, p->name,
                            NUMBERS_MAX);
    end = &p->shapes[p->net.n_ops];
    if ((uint64_t)end->c * end->h * end->w != p->calibration.raw_dim || p->coordinates.dim != p->calibration.dim)
        return fkt_fail(FKT_E_MISMATCH, "network, calibration and coordinates of '%s' do not have the same length",
                        p->name);
    FKT_TRY(fkt_coordinates_check(&p->coordinates));
    FKT_TRY(fkt_weights_from_arrays(&p->weights, &p->net, (const float *const *)p->array));
out:
    return st;
}

fkt_status fkt_whole_settle(struct fkt_whole *m)
{
    uint64_t length = 0;
    fkt_status st = FKT_OK;
    for (uint32_t i = 0; i < m->parts; i++) {
        FKT_TRY(settle_part(&m->part[i], m->size));
        length += m->part[i].coordinates.length;
    }
    if (length != fkt_head_length(m->head))
        return fkt_fail(FKT_E_MISMATCH, "a head of length %u does not take the %llu numbers of its networks",
                        fkt_head_length(m->head), (unsigned long long)length);
    FKT_TRY(fkt_whole_engines_new(&m->engines));
out:
    return st;
}

/* ---- from a pipeline ---- */

/* One encoder of a pipeline, borrowed. */
struct source {
    const struct fkt_codec *codec;
    const struct fkt_calibration *calibration;
    const struct fkt_coordinates *coordinates;
    const char *calibration_sha256;
};

static uint32_t sources(struct source s[FKT_HEAD_PARTS_MAX], const struct fkt_pipeline *w)
{
    for (uint32_t p = 0; p < w->task.parts; p++)
        s[p] = (struct source){w->codec[p], &w->calibration[p], &w->task.part[p].coordinates,
                               w->task.part[p].calibration_sha256};
    return w->task.parts;
}

static fkt_status take_calibration(struct fkt_calibration *out, const struct fkt_calibration *cal)
{
    fkt_status st;
    out->raw_dim = cal->raw_dim;
    out->dim = cal->dim;
    FKT_TRY(fkt_alloc(&out->centre, cal->raw_dim));
    FKT_TRY(fkt_alloc(&out->map, (size_t)cal->dim * cal->raw_dim));
    memcpy(out->centre, cal->centre, cal->raw_dim * sizeof *out->centre);
    memcpy(out->map, cal->map, (size_t)cal->dim * cal->raw_dim * sizeof *out->map);
    snprintf(out->source, sizeof out->source, "%s", cal->source);
out:
    return st;
}

static fkt_status take_network(struct fkt_whole_part *p, const struct fkt_codec *codec)
{
    struct fkt_codec_net from;
    fkt_status st;
    FKT_TRY(fkt_codec_net(codec, FKT_CODEC_SIDE_ENCODER, &from));
    (void)fkt_net_append(&p->net, 0, from.net, from.net->n_ops, "");
    FKT_TRY(fkt_net_status(&p->net));
    FKT_TRY(fkt_alloc(&p->array, p->net.n_slots));
    for (size_t i = 0; i < p->net.n_slots; i++) {
        FKT_TRY(fkt_alloc(&p->array[i], fkt_slot_count(&p->net.slot[i])));
        FKT_TRY(fkt_weights_read(from.weights, (uint32_t)i, p->array[i]));
    }
    memcpy(p->pixel_scale, from.pixel_scale, sizeof p->pixel_scale);
    memcpy(p->pixel_shift, from.pixel_shift, sizeof p->pixel_shift);
    p->latent_scale = from.latent_scale;
    p->latent_shift = from.latent_shift;
out:
    return st;
}

/* z = A x + b with x = pixel/255 in the order channel, row, column: b from a black image, A from one bright pixel. */
static fkt_status take_affine(struct fkt_whole_part *p, const struct fkt_codec *codec)
{
    const uint32_t size = fkt_codec_size(codec), dim = fkt_codec_dim(codec);
    const size_t area = (size_t)size * size;
    struct fkt_op op = {.kind = FKT_OP_LINEAR, .channels = dim, .mean = FKT_NO_SLOT, .var = FKT_NO_SLOT};
    uint8_t *rgb = NULL;
    float *z = NULL;
    fkt_status st;
    op.weight = fkt_net_slot(&p->net, "linear.weight", dim, (uint32_t)(3 * area), 0, 0);
    op.bias = fkt_net_slot(&p->net, "linear.bias", dim, 0, 0, 0);
    (void)fkt_net_add(&p->net, &op);
    FKT_TRY(fkt_net_status(&p->net));
    FKT_TRY(fkt_alloc(&p->array, 2));
    FKT_TRY(fkt_alloc(&p->array[0], dim * 3 * area));
    FKT_TRY(fkt_alloc(&p->array[1], dim));
    FKT_TRY(fkt_alloc(&rgb, 3 * area));
    FKT_TRY(fkt_alloc(&z, dim));
    FKT_TRY(fkt_codec_encode(codec, rgb, 1, p->array[1]));
    for (size_t i = 0; i < 3 * area; i++) {
        const size_t channel = i / area, pixel = i % area;
        rgb[pixel * 3 + channel] = 255;
        FKT_TRY(fkt_codec_encode(codec, rgb, 1, z));
        rgb[pixel * 3 + channel] = 0;
        for (size_t d = 0; d < dim; d++) p->array[0][d * 3 * area + i] = z[d] - p->array[1][d];
    }
    for (int c = 0; c < 3; c++) p->pixel_scale[c] = 1;
    p->latent_scale = 1;
out:
    fkt_free(rgb);
    fkt_free(z);
    return st;
}

static fkt_status take_part(struct fkt_whole_part *p, const struct source *s)
{
    fkt_status st;
    if (!s->codec)
        return fkt_fail(FKT_E_STATE, "a whole model needs the encoders, but this pipeline begins at latents");
    snprintf(p->name, sizeof p->name, "%s", fkt_codec_name(s->codec));
    snprintf(p->identity, sizeof p->identity, "%s", fkt_codec_identity(s->codec));
    snprintf(p->calibration_sha256, sizeof p->calibration_sha256, "%s", s->calibration_sha256);
    p->coordinates = *s->coordinates;
    fkt_net_init(&p->net, 3);
    FKT_TRY(take_calibration(&p->calibration, s->calibration));
    FKT_TRY(strcmp(p->name, "dct") != 0 ? take_network(p, s->codec) : take_affine(p, s->codec));
out:
    return st;
}

/* 1 when coordinates first .. end of the record vector are among those of the head; -1 when some of them are. */
static int needed(const struct fkt_head *h, uint32_t first, uint32_t end)
{
    for (uint32_t p = 0; p < fkt_head_parts(h); p++) {
        const uint32_t from = fkt_head_part_offset(h, p), to = from + fkt_head_part_length(h, p);
        if (first >= from && end <= to) return 1;
        if (first < to && end > from) return -1;
    }
    return 0;
}

static fkt_status take_head(struct fkt_whole *m, const struct fkt_head *h)
{
    struct fkt_st_writer *w = NULL;
    struct fkt_safetensors *s = NULL;
    uint8_t *bytes = NULL;
    size_t len;
    fkt_status st;
    FKT_TRY(fkt_st_writer_new(&w)); /* a copy by way of its file: what is saved is what is used */
    FKT_TRY(fkt_head_write(h, w, ""));
    FKT_TRY(fkt_st_writer_bytes(w, &bytes, &len));
    FKT_TRY(fkt_safetensors_parse(&s, bytes, len, "head"));
    FKT_TRY(fkt_head_read(&m->head, s, "head", ""));
out:
    fkt_safetensors_free(s);
    fkt_free(bytes);
    fkt_st_writer_free(w);
    return st;
}

static void take_origin(struct fkt_whole *m, const struct fkt_release *r)
{
    const char *why = fkt_release_not_private(r);
    fkt_origin_of_release(&m->origin, r, 0);
    snprintf(m->origin.data, sizeof m->origin.data, "release %.12s, head %s", r->sha256, fkt_head_name(m->head->kind));
    snprintf(m->not_private, sizeof m->not_private, "%s", why ? why : "");
}

fkt_status fkt_whole_make(struct fkt_whole **out, const struct fkt_pipeline *pipeline, const struct fkt_head *head,
                          const struct fkt_release *release)
{
    struct source s[FKT_HEAD_PARTS_MAX];
    struct fkt_whole *m = NULL;
    uint32_t n, at = 0;
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_head_check_task(head, &release->task));
    FKT_TRY(fkt_head_check_task(head, &pipeline->task));
    FKT_TRY(fkt_alloc(&m, 1));
    m->size = pipeline->task.size;
    m->filter = pipeline->task.filter;
    m->fit = pipeline->task.fit;
    FKT_TRY(take_head(m, head));
    take_origin(m, release);
    n = sources(s, pipeline);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t end = at + s[i].coordinates->length;
        const int need = needed(head, at, end);
        if (need < 0)
            FKT_TRY(fkt_fail(FKT_E_MISMATCH, "the head takes only a piece of part %u of the record vector", i));
        if (need > 0) FKT_TRY(fkt_fail_in(take_part(&m->part[m->parts++], &s[i]), "part %u", i));
        at = end;
    }
    FKT_TRY(fkt_whole_settle(m));
    *out = m;
    m = NULL;
out:
    fkt_whole_free(m);
    return st;
}
