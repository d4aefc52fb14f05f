/* SPDX-License-Identifier: Apache-2.0 */
/* codec.c - opens a codec by name and hands its work to the table of functions behind the name.
 *
 *   rgb (n,S,S,3) --encode--> z (n,D) --calibration--> u (n,d)        and back
 *
 * Latents pass through here in both directions, so this is where a NaN is stopped: on the way out of an encoder,
 * whatever its weights, and on the way into a decoder. Source: paper, section on the frozen public autoencoder; the
 * table replaces its single fixed network, so that a weight-free codec (dct.c) and networks look the same to the rest
 * of the walk. */
#include "codec/codec.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

static const struct fkt_codec_ops *const known[] = {&fkt_codec_dct};

fkt_status fkt_codec_open(struct fkt_codec **out, const struct fkt_codec_spec *spec)
{
    const struct fkt_codec_ops *ops = NULL;
    struct fkt_codec *c = NULL;
    fkt_status st;
    *out = NULL;
    for (size_t i = 0; spec->name && i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i]->name, spec->name)) ops = known[i];
    if (!ops)
        return fkt_fail_hint(FKT_E_ARG, "known codecs: dct", "there is no codec '%s'", spec->name ? spec->name : "");
    FKT_TRY(fkt_alloc(&c, 1));
    FKT_TRY(ops->open(c, spec));
    c->ops = ops;
    *out = c;
    c = NULL;
out:
    fkt_free(c);
    return st;
}

void fkt_codec_free(struct fkt_codec *c)
{
    if (!c) return;
    c->ops->free(c->self);
    fkt_free(c);
}

const char *fkt_codec_name(const struct fkt_codec *c) { return c->ops->name; }
uint32_t fkt_codec_size(const struct fkt_codec *c) { return c->size; }
uint32_t fkt_codec_dim(const struct fkt_codec *c) { return c->dim; }
const char *fkt_codec_identity(const struct fkt_codec *c) { return c->identity; }

static fkt_status check_finite(const struct fkt_codec *c, const float *z, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < c->dim; j++)
            if (!isfinite(z[i * c->dim + j]))
                return fkt_fail(FKT_E_NUMERIC, "number %u of latent %zu of codec '%s' is not finite", j, i,
                                c->ops->name);
    return FKT_OK;
}

fkt_status fkt_codec_encode(const struct fkt_codec *c, const uint8_t *rgb, size_t n, float *z)
{
    fkt_status st = c->ops->encode(c->self, rgb, n, z);
    return st == FKT_OK ? check_finite(c, z, n) : st;
}

fkt_status fkt_codec_decode(const struct fkt_codec *c, const float *z, size_t n, uint8_t *rgb)
{
    fkt_status st = check_finite(c, z, n);
    return st == FKT_OK ? c->ops->decode(c->self, z, n, rgb) : st;
}

fkt_status fkt_calibration_embedded(struct fkt_calibration *out, const struct fkt_codec *c)
{
    fkt_status st;
    memset(out, 0, sizeof *out);
    if (!c->ops->calibrate)
        return fkt_fail_hint(FKT_E_STATE, "make one from a public image set: fedkt codec calibrate",
                             "codec '%s' has no built-in calibration", c->ops->name);
    st = fkt_calibration_init(out, c->dim, c->dim);
    if (st != FKT_OK) return st;
    c->ops->calibrate(c->self, out);
    snprintf(out->codec, sizeof out->codec, "%s", c->identity);
    return FKT_OK;
}
