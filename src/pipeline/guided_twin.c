/* SPDX-License-Identifier: Apache-2.0 */
/* guided_twin.c - the fast twin of the definition in guided.c: dec(z, s) in one pass.
 *
 *   channels 0 .. C-1      z = mu0 + V u as the codec's decoder takes it, (C, h, w)
 *   channels C .. C+k-1    s, the same number at every pixel of the map
 *
 * The network is TAESD's decoder with C + k input channels (codec/taesd.c), soft clamp included. Its file names pairs
 * that it was trained for: metadata "fedkt.guided", an object or a list of objects with codec_sha256, guide_sha256 and
 * guide_calibration_sha256 as a task has them (docs/formats.md). A decoder does not show by its images that the numbers
 * which it was given mean something else, so that this is checked before it is used. */
#include "pipeline/guided_twin.h"

#include "fedkt/advanced/calibration.h"

#include "base/alloc.h"
#include "codec/family.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

struct fkt_guided_twin {
    struct fkt_guided_twin_spec spec;
    struct fkt_safetensors *file;
    struct fkt_net net;
    struct fkt_weights *weights;
    struct fkt_engine *engine;
    char sha256[FKT_HASH_HEX];
};

/* 0: fits; otherwise the number of the first thing that another one was meant by. */
static int difference(const json_t *j, const struct fkt_guided_pair *p)
{
    static const char *const keys[] = {"codec_sha256", "guide_sha256", "guide_calibration_sha256"};
    const char *const want[] = {p->codec, p->guide, p->guide_calibration};
    for (int i = 0; i < 3; i++) {
        const char *got = json_string_value(json_object_get(j, keys[i]));
        if (!got || strcmp(got, want[i]) != 0) return i + 1;
    }
    return 0;
}

static fkt_status check_pair(const struct fkt_safetensors *file, const struct fkt_guided_pair *p)
{
    static const char *const what[] = {"", "another codec or image size", "another guide",
                                       "another calibration of the guide"};
    const char *text = fkt_safetensors_meta(file, "fedkt.guided");
    json_t *j = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    int far = 0;
    if (!json_is_object(j) && !json_is_array(j)) {
        json_decref(j);
        return fkt_fail(FKT_E_FORMAT, "the file does not say which codec and guide it was trained for");
    }
    if (json_is_object(j)) far = difference(j, p);
    else
        for (size_t i = 0; i < json_array_size(j) || !i; i++) { /* the nearest entry decides what is said */
            const int at = difference(json_array_get(j, i), p);
            if (!i || !at || (far && at > far)) far = at;
        }
    json_decref(j);
    if (!far) return FKT_OK;
    return fkt_hint_code(fkt_fail(FKT_E_MISMATCH, "the decoder of guided images was trained for %s", what[far]),
                         FKT_HINT_GUIDED_STEPS, "guide the images by gradient");
}

static fkt_status check_shape(const struct fkt_guided_twin *t)
{
    const struct fkt_guided_twin_spec *s = &t->spec;
    const struct fkt_shape *in = &s->decoder.input, last = fkt_engine_output(t->engine);
    if (t->net.channels != in->c + s->features)
        return fkt_fail(FKT_E_MISMATCH, "the decoder of guided images takes %u channels, codec and guide make %u",
                        t->net.channels, in->c + s->features);
    if (last.c != s->decoder.output.c || last.h != s->decoder.output.h || last.w != s->decoder.output.w)
        return fkt_fail(FKT_E_MISMATCH, "the decoder of guided images gives images of %u px, the codec's of %u px",
                        last.h, s->decoder.output.h);
    return FKT_OK;
}

fkt_status fkt_guided_twin_open(struct fkt_guided_twin **out, const char *path, const struct fkt_guided_twin_spec *spec)
{
    struct fkt_guided_twin *t = NULL;
    const struct fkt_codec_net *d = &spec->decoder;
    const struct fkt_engine_spec engine = {.batch = spec->batch,
                                           .height = d->input.h,
                                           .width = d->input.w,
                                           .precision = spec->precision,
                                           .device = spec->device,
                                           .bytes_out = 1,
                                           .out_scale = d->pixel_scale[0],
                                           .out_shift = d->pixel_shift[0]};
    fkt_status st;
    *out = NULL;
    FKT_TRY(fkt_alloc(&t, 1));
    t->spec = *spec;
    FKT_TRY(fkt_safetensors_open(&t->file, path));
    if (spec->pair.codec) FKT_TRY(check_pair(t->file, &spec->pair));
    FKT_TRY(fkt_taesd_decoder(&t->net, t->file));
    FKT_TRY(fkt_weights_bind(&t->weights, &t->net, (const struct fkt_safetensors *const[]){t->file}, 1, NULL, NULL));
    FKT_TRY(fkt_hash_file_hex(t->sha256, path));
    FKT_TRY(fkt_engine_new(&t->engine, spec->backend, &t->net, t->weights, &engine));
    FKT_TRY(check_shape(t));
    *out = t;
    return FKT_OK;
out:
    fkt_guided_twin_free(t);
    return fkt_fail_in(st, "'%s'", path);
}

void fkt_guided_twin_free(struct fkt_guided_twin *t)
{
    if (!t) return;
    fkt_engine_free(t->engine);
    fkt_weights_free(t->weights);
    fkt_net_clear(&t->net);
    fkt_safetensors_free(t->file);
    fkt_free(t);
}

const char *fkt_guided_twin_sha256(const struct fkt_guided_twin *t) { return t->sha256; }

fkt_status fkt_guided_twin_run(const struct fkt_guided_twin *t, const double *u, const double *s, size_t n,
                               uint8_t *rgb)
{
    const struct fkt_calibration *c = t->spec.codec;
    const struct fkt_codec_net *d = &t->spec.decoder;
    const size_t plane = (size_t)d->input.h * d->input.w, raw = c->raw_dim, whole = t->net.channels * plane;
    float *in = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&in, n * whole));
    for (size_t i = 0; i < n; i++) {
        float *x = in + i * whole;
        fkt_calibration_backward(c, u + i * c->dim, x);
        for (size_t j = 0; j < raw; j++) x[j] = (float)((double)x[j] / d->latent_scale + d->latent_shift);
        for (size_t k = 0; k < t->spec.features; k++)
            for (size_t p = 0; p < plane; p++) x[raw + k * plane + p] = (float)s[i * t->spec.features + k];
        for (size_t j = 0; j < whole; j++)
            if (!isfinite(x[j])) {
                st = fkt_fail(FKT_E_NUMERIC, "a number of sample %zu is too large for the decoder of guided images", i);
                goto out;
            }
    }
    FKT_TRY(fkt_engine_run_to_bytes(t->engine, in, n, rgb));
out:
    fkt_free(in);
    return st;
}
