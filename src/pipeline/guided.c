/* SPDX-License-Identifier: Apache-2.0 */
/* guided.c - the definition of guided images: Adam on the codec's vector through two frozen networks.
 *
 *   u + a --mu0 + V--> z --decoder--> pixels --clamp, view--> guide --W, mu_g--> r = features - s      forward
 *   da    <---V^T--- dz <---------- dpixels <-------------- guide <--- 2/k W^T r                       backward
 *
 * The linear maps, the clamp and the views run on the host; the networks are frozen learners (nn/learner.h), which keep
 * their activations between forward and backward. An incomplete batch is filled with copies of its last image, so that
 * every image goes through the same kernels.
 * Cost: STEPS times the forward and backward pass of both networks, and one forward pass of the decoder. */
#include "pipeline/guided.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

struct fkt_guided {
    struct fkt_guided_spec spec;
    struct fkt_learner *decoder, *guide;
    uint32_t d, k, raw, features;     /* lengths: u, s, z, the guide's result */
    size_t pixels;                    /* 3 S S */
    float *a, *m, *v, *da;            /* (batch, d) */
    float *z, *dz;                    /* (batch, raw) in the decoder's units */
    float *out, *dout, *seen, *dseen; /* (batch, 3 S S) of the decoder; of the guide's input */
    float *f, *df;                    /* (batch, features) */
    struct fkt_guided_view *view;     /* (batch) of this step */
};

static fkt_status misfit(const char *what, size_t got, size_t want)
{
    return fkt_fail(FKT_E_MISMATCH, "images cannot be guided: %s is %zu, not %zu", what, got, want);
}

static fkt_status check(const struct fkt_guided_spec *s)
{
    const struct fkt_shape *in = &s->decoder.input, *out = &s->decoder.output, *eye = &s->guide.input,
                           *last = &s->guide.output;
    const size_t raw = (size_t)in->c * in->h * in->w, features = (size_t)last->c * last->h * last->w;
    if (raw != s->codec->raw_dim) return misfit("the length of the codec's calibration", s->codec->raw_dim, raw);
    if (features != s->features->raw_dim)
        return misfit("the length of the guide's calibration", s->features->raw_dim, features);
    if (out->c != 3 || out->h != s->size || out->w != s->size)
        return misfit("the side of the decoder's images", out->h, s->size);
    if (eye->c != 3 || eye->h != s->size || eye->w != s->size)
        return misfit("the side of the guide's images", eye->h, s->size);
    if (!s->size || !s->batch || s->shift >= s->size || !(s->rho >= 0 && isfinite(s->rho)) ||
        !(s->rate > 0 && isfinite(s->rate)))
        return fkt_fail(FKT_E_ARG, "guided images take a batch, a shift below the side, a rho that is not negative and "
                                   "a rate above 0");
    return FKT_OK;
}

static fkt_status load(struct fkt_learner **out, const struct fkt_guided_spec *s, const struct fkt_codec_net *n,
                       const char *which)
{
    const struct fkt_learner_spec spec = {.batch = s->batch,
                                          .height = n->input.h,
                                          .width = n->input.w,
                                          .precision = FKT_PRECISION_F32,
                                          .threads = 1,
                                          .frozen = 1,
                                          .device = s->device};
    fkt_status st = fkt_learner_new(out, s->backend, n->net, &spec);
    if (st == FKT_OK) st = fkt_learner_load(*out, 0, n->net, (uint32_t)n->net->n_slots, n->weights);
    return st == FKT_OK ? st : fkt_fail_in(st, "%s", which);
}

fkt_status fkt_guided_new(struct fkt_guided **out, const struct fkt_guided_spec *spec)
{
    struct fkt_guided *g = NULL;
    fkt_status st;
    *out = NULL;
    FKT_TRY(check(spec));
    FKT_TRY(fkt_alloc(&g, 1));
    g->spec = *spec;
    g->d = spec->codec->dim;
    g->k = spec->features->dim;
    g->raw = spec->codec->raw_dim;
    g->features = spec->features->raw_dim;
    g->pixels = (size_t)3 * spec->size * spec->size;
    float **const small[] = {&g->a, &g->m, &g->v, &g->da}, **const large[] = {&g->out, &g->dout, &g->seen, &g->dseen};
    for (size_t i = 0; i < 4; i++) FKT_TRY(fkt_alloc(small[i], (size_t)spec->batch * g->d));
    for (size_t i = 0; i < 4; i++) FKT_TRY(fkt_alloc(large[i], spec->batch * g->pixels));
    FKT_TRY(fkt_alloc(&g->z, (size_t)spec->batch * g->raw));
    FKT_TRY(fkt_alloc(&g->dz, (size_t)spec->batch * g->raw));
    FKT_TRY(fkt_alloc(&g->f, (size_t)spec->batch * g->features));
    FKT_TRY(fkt_alloc(&g->df, (size_t)spec->batch * g->features));
    FKT_TRY(fkt_alloc(&g->view, spec->batch));
    FKT_TRY(load(&g->decoder, spec, &spec->decoder, "decoder"));
    FKT_TRY(load(&g->guide, spec, &spec->guide, "guide"));
    *out = g;
    return FKT_OK;
out:
    fkt_guided_free(g);
    return st;
}

void fkt_guided_free(struct fkt_guided *g)
{
    if (!g) return;
    float *const all[] = {g->a, g->m, g->v, g->da, g->z, g->dz, g->out, g->dout, g->seen, g->dseen, g->f, g->df};
    fkt_learner_free(g->decoder);
    fkt_learner_free(g->guide);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) fkt_free(all[i]);
    fkt_free(g->view);
    fkt_free(g);
}

/* z = mu0 + V (u + a), as the decoder takes it. */
static void latent(const struct fkt_guided *g, const double *u, const float *a, float *z)
{
    const struct fkt_calibration *c = g->spec.codec;
    for (uint32_t i = 0; i < g->raw; i++) {
        const float *row = c->unmap + (size_t)i * g->d;
        double sum = (double)c->centre[i];
        for (uint32_t j = 0; j < g->d; j++) sum += (double)row[j] * (u[j] + (double)a[j]);
        z[i] = (float)(sum / g->spec.decoder.latent_scale + g->spec.decoder.latent_shift);
    }
}

static void latent_back(const struct fkt_guided *g, const float *dz, const float *a, float *da)
{
    const struct fkt_calibration *c = g->spec.codec;
    for (uint32_t j = 0; j < g->d; j++) {
        double sum = 0;
        for (uint32_t i = 0; i < g->raw; i++) sum += (double)c->unmap[(size_t)i * g->d + j] * (double)dz[i];
        da[j] = (float)(sum / g->spec.decoder.latent_scale + 2 * g->spec.rho / g->d * (double)a[j]);
    }
}

/* What the guide sees of the decoder's result. scratch (3, S, S). */
static void see(const struct fkt_guided *g, const struct fkt_guided_view *v, const float *out, float *scratch,
                float *seen)
{
    const struct fkt_codec_net *from = &g->spec.decoder, *to = &g->spec.guide;
    const size_t plane = g->pixels / 3;
    for (size_t i = 0; i < g->pixels; i++) {
        const size_t c = i / plane;
        const float x = (out[i] - from->pixel_shift[c]) / from->pixel_scale[c];
        scratch[i] = (x < 0 ? 0 : x > 1 ? 1 : x) * to->pixel_scale[c] + to->pixel_shift[c];
    }
    fkt_guided_move(v, g->spec.size, scratch, seen);
}

static void see_back(const struct fkt_guided *g, const struct fkt_guided_view *v, const float *out, const float *dseen,
                     float *dout)
{
    const struct fkt_codec_net *from = &g->spec.decoder, *to = &g->spec.guide;
    const size_t plane = g->pixels / 3;
    fkt_guided_move_back(v, g->spec.size, dseen, dout);
    for (size_t i = 0; i < g->pixels; i++) {
        const size_t c = i / plane;
        const float x = (out[i] - from->pixel_shift[c]) / from->pixel_scale[c];
        dout[i] = x >= 0 && x <= 1 ? dout[i] * to->pixel_scale[c] / from->pixel_scale[c] : 0;
    }
}

/* The gradient of mean((W (z - mu_g) - s)^2) by the guide's result f, where z = (f - shift) * scale. */
static void compare(const struct fkt_guided *g, const float *f, const double *s, float *df)
{
    const struct fkt_calibration *c = g->spec.features;
    const double scale = g->spec.guide.latent_scale, shift = g->spec.guide.latent_shift;
    memset(df, 0, g->features * sizeof *df);
    for (uint32_t j = 0; j < g->k; j++) {
        const float *row = c->map + (size_t)j * g->features;
        double r = -s[j];
        for (uint32_t i = 0; i < g->features; i++)
            r += (double)row[i] * (((double)f[i] - shift) * scale - (double)c->centre[i]);
        for (uint32_t i = 0; i < g->features; i++) df[i] += (float)(2 * r / g->k * (double)row[i] * scale);
    }
}

static fkt_status decode(struct fkt_guided *g, const double *u, size_t n)
{
    for (size_t i = 0; i < g->spec.batch; i++) {
        const size_t from = i < n ? i : n - 1;
        latent(g, u + from * g->d, g->a + i * g->d, g->z + i * g->raw);
    }
    return fkt_learner_forward(g->decoder, g->z, g->out);
}

static fkt_status one_step(struct fkt_guided *g, const struct fkt_guided_image *image, const double *u, const double *s,
                           size_t n, uint32_t step)
{
    const struct fkt_optimizer adam = {.kind = FKT_OPTIMIZER_ADAM,
                                       .rate = (float)g->spec.rate,
                                       .beta1 = 0.9F,
                                       .beta2 = 0.999F,
                                       .epsilon = 1e-8F,
                                       .step = step};
    fkt_status st;
    FKT_TRY(decode(g, u, n));
    for (size_t i = 0; i < g->spec.batch; i++) {
        g->view[i] = fkt_guided_view(&image[i < n ? i : n - 1], step, g->spec.shift);
        see(g, &g->view[i], g->out + i * g->pixels, g->dseen + i * g->pixels, g->seen + i * g->pixels);
    }
    FKT_TRY(fkt_learner_forward(g->guide, g->seen, g->f));
    for (size_t i = 0; i < g->spec.batch; i++)
        compare(g, g->f + i * g->features, s + (i < n ? i : n - 1) * g->k, g->df + i * g->features);
    FKT_TRY(fkt_learner_backward_input(g->guide, g->df, g->dseen));
    for (size_t i = 0; i < g->spec.batch; i++)
        see_back(g, &g->view[i], g->out + i * g->pixels, g->dseen + i * g->pixels, g->dout + i * g->pixels);
    FKT_TRY(fkt_learner_backward_input(g->decoder, g->dout, g->dz));
    for (size_t i = 0; i < g->spec.batch; i++) latent_back(g, g->dz + i * g->raw, g->a + i * g->d, g->da + i * g->d);
    fkt_adam(g->a, g->da, g->m, g->v, (size_t)g->spec.batch * g->d, &adam);
out:
    return st;
}

/* As engine.h writes bytes: floor(255 x + 0.5) between 0 and 255. */
static fkt_status to_bytes(const struct fkt_guided *g, const float *out, uint8_t *rgb)
{
    const struct fkt_codec_net *from = &g->spec.decoder;
    const size_t plane = g->pixels / 3;
    for (size_t i = 0; i < g->pixels; i++) {
        const size_t c = i / plane;
        const float x = floorf((out[i] - from->pixel_shift[c]) * 255.0F / from->pixel_scale[c] + 0.5F);
        if (isnan(x)) return fkt_fail(FKT_E_NUMERIC, "pixels that are not numbers");
        rgb[i % plane * 3 + c] = x < 0 ? 0 : x > 255 ? 255 : (uint8_t)x;
    }
    return FKT_OK;
}

fkt_status fkt_guided_run(struct fkt_guided *g, const struct fkt_guided_image *image, const double *u, const double *s,
                          size_t n, uint8_t *rgb, float *a)
{
    const size_t count = (size_t)g->spec.batch * g->d;
    fkt_status st;
    if (n < 1 || n > g->spec.batch) return fkt_fail(FKT_E_ARG, "a batch has 1 to %u images", g->spec.batch);
    memset(g->a, 0, count * sizeof *g->a);
    memset(g->m, 0, count * sizeof *g->m);
    memset(g->v, 0, count * sizeof *g->v);
    for (uint32_t step = 1; step <= g->spec.steps; step++) FKT_TRY(one_step(g, image, u, s, n, step));
    FKT_TRY(decode(g, u, n));
    for (size_t i = 0; i < n; i++) {
        st = to_bytes(g, g->out + i * g->pixels, rgb + i * g->pixels);
        if (st != FKT_OK)
            FKT_TRY(fkt_fail_in(st, "image %llu of class %u", (unsigned long long)image[i].number, image[i].label));
    }
    if (a) memcpy(a, g->a, n * g->d * sizeof *a);
out:
    return st;
}
