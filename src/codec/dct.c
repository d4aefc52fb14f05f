/* SPDX-License-Identifier: Apache-2.0 */
/* dct.c - the codec without weights: the low frequencies of an image, and back.
 *
 *   rgb -> one of Y, Cb, Cr in [-0.5,0.5] -> columns (rows of T) -> the kept coefficients only -> z
 *
 * Colour is the full-range BT.601 matrix of JPEG; the transform is the orthonormal DCT-II over the whole image as one
 * block:
 *     z_uv = sum_yx C[u][y] P[y][x] C[v][x],    C[k][x] = sqrt((k ? 2 : 1)/S) cos(pi (2x+1) k / 2S).
 * Which coefficients are kept, and in which order, is dct_model.c's business. What is not kept is zero when decoding,
 * and pixels are clamped and rounded half up. Orthonormal both ways, so noise in z is the same noise in Y, Cb, Cr.
 *
 * Why one block and not JPEG's 8 x 8: with 64 numbers for an image, blocks give each block four numbers and lose 2 dB
 * and some accuracy (docs/decisions/0002-dct-layout.md).
 *
 * Same bits for any batch: each image is done alone, in double, by loops whose order is fixed; the compiler may use
 * vectors across x, never across a sum, and fused multiply-add is off. Cost for S = 32, D = 64: 17 rows of T in all,
 * about 2*10^4 multiplications and as many for the colours. */
#include "codec/dct.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

struct dct {
    uint32_t size, dim;
    struct fkt_dct_coef *coef; /* (D) */
    double *cosine;            /* (reach, S): row k is basis function k */
    uint32_t rows[3];          /* per plane: 1 + the largest u that is kept; 0: no coefficient of it */
    uint32_t reach;            /* 1 + the largest frequency that is kept */
};

/* Planes from r, g, b in 0..255; luma is then shifted by -0.5. */
static const double to_plane[3][3] = {
    {0.299 / 255, 0.587 / 255, 0.114 / 255},
    {-0.299 / 1.772 / 255, -0.587 / 1.772 / 255, 0.5 / 255},
    {0.5 / 255, -0.587 / 1.402 / 255, -0.114 / 1.402 / 255},
};

static void dct_free(void *self)
{
    struct dct *d = self;
    if (!d) return;
    fkt_free(d->coef);
    fkt_free(d->cosine);
    fkt_free(d);
}

/* The angle pi (2x+1) k / 2S is folded into the first quadrant in integers, so that equal magnitudes have equal bits.
 * */
static double basis(uint32_t k, uint32_t x, uint32_t size)
{
    uint32_t turn = 4 * size, a = (uint32_t)(((uint64_t)(2 * x + 1) * k) % turn);
    double sign = 1;
    if (a > 2 * size) a = turn - a;
    if (a > size) {
        a = 2 * size - a;
        sign = -1;
    }
    if (a == size) return 0;
    return sign * sqrt((k ? 2.0 : 1.0) / size) * cos(acos(-1.0) * a / (2.0 * size));
}

static fkt_status check_spec(const struct fkt_codec_spec *spec, uint32_t dim)
{
    uint32_t most;
    if (spec->size < FKT_DCT_SIZE_MIN || spec->size > FKT_DCT_SIZE_MAX)
        return fkt_fail(FKT_E_ARG, "codec 'dct' cannot take images of %u px: its sizes are %u to %u", spec->size,
                        FKT_DCT_SIZE_MIN, FKT_DCT_SIZE_MAX);
    most = 3 * spec->size * spec->size;
    if (most > FKT_DCT_DIM_MAX) most = FKT_DCT_DIM_MAX;
    if (dim > most)
        return fkt_fail(FKT_E_ARG, "codec 'dct' cannot keep %u numbers of %u px images: at most %u", dim, spec->size,
                        most);
    return FKT_OK;
}

static fkt_status dct_open(struct fkt_codec *c, const struct fkt_codec_spec *spec)
{
    uint32_t dim = spec->dim ? spec->dim : FKT_DCT_DIM_DEFAULT;
    struct dct *d = NULL;
    fkt_status st;
    FKT_TRY(check_spec(spec, dim));
    FKT_TRY(fkt_alloc(&d, 1));
    d->size = spec->size;
    d->dim = dim;
    FKT_TRY(fkt_alloc(&d->coef, dim));
    FKT_TRY(fkt_dct_layout(d->coef, d->size, dim));
    for (uint32_t i = 0; i < dim; i++) {
        const struct fkt_dct_coef *k = &d->coef[i];
        if (k->u >= d->rows[k->plane]) d->rows[k->plane] = k->u + 1U;
        if (k->u >= d->reach) d->reach = k->u + 1U;
        if (k->v >= d->reach) d->reach = k->v + 1U;
    }
    FKT_TRY(fkt_alloc(&d->cosine, (size_t)d->reach * d->size));
    for (uint32_t k = 0; k < d->reach; k++)
        for (uint32_t x = 0; x < d->size; x++) d->cosine[(size_t)k * d->size + x] = basis(k, x, d->size);
    c->size = d->size;
    c->dim = dim;
    snprintf(c->identity, sizeof c->identity,
             "dct/1 size=%u dim=%u block=%u colour=bt601-full order=1/(1+f^2)^1.2 chroma=1/8", d->size, dim, d->size);
    c->self = d;
    d = NULL;
out:
    dct_free(d);
    return st;
}

/* row += a * x */
static void add_scaled(double *restrict row, const double *restrict x, double a, size_t n)
{
    for (size_t i = 0; i < n; i++) row[i] += a * x[i];
}

static double dot(const double *a, const double *b, size_t n)
{
    double s = 0;
    for (size_t i = 0; i < n; i++) s += a[i] * b[i];
    return s;
}

static void load_plane(double *restrict plane, const uint8_t *restrict rgb, size_t pixels, unsigned p)
{
    const double *m = to_plane[p], shift = p == 0 ? -0.5 : 0;
    for (size_t i = 0; i < pixels; i++)
        plane[i] = m[0] * rgb[3 * i] + m[1] * rgb[3 * i + 1] + m[2] * rgb[3 * i + 2] + shift;
}

static void encode_one(const struct dct *d, const uint8_t *rgb, float *z, double *plane, double *t)
{
    size_t n = d->size;
    for (unsigned p = 0; p < 3; p++) {
        if (!d->rows[p]) continue;
        load_plane(plane, rgb, n * n, p);
        memset(t, 0, d->rows[p] * n * sizeof *t);
        for (size_t y = 0; y < n; y++)
            for (size_t u = 0; u < d->rows[p]; u++) add_scaled(t + u * n, plane + y * n, d->cosine[u * n + y], n);
        for (uint32_t i = 0; i < d->dim; i++)
            if (d->coef[i].plane == p) z[i] = (float)dot(t + d->coef[i].u * n, d->cosine + d->coef[i].v * n, n);
    }
}

static fkt_status dct_encode(const void *self, const uint8_t *rgb, size_t n, float *z)
{
    const struct dct *d = self;
    size_t pixels = (size_t)d->size * d->size;
    double *plane = NULL, *t = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&plane, pixels));
    FKT_TRY(fkt_alloc(&t, (size_t)d->reach * d->size));
    for (size_t i = 0; i < n; i++) encode_one(d, rgb + 3 * pixels * i, z + d->dim * i, plane, t);
out:
    fkt_free(plane);
    fkt_free(t);
    return st;
}

static uint8_t to_byte(double x)
{
    x = x * 255 + 0.5;
    if (!(x > 0)) return 0;
    return x >= 255 ? 255 : (uint8_t)x;
}

static void store_pixels(uint8_t *restrict rgb, const double *restrict planes, size_t pixels)
{
    const double *luma = planes, *cb = planes + pixels, *cr = planes + 2 * pixels;
    for (size_t i = 0; i < pixels; i++) {
        double y = luma[i] + 0.5;
        rgb[3 * i] = to_byte(y + 1.402 * cr[i]);
        rgb[3 * i + 1] = to_byte(y - (0.114 * 1.772 * cb[i] + 0.299 * 1.402 * cr[i]) / 0.587);
        rgb[3 * i + 2] = to_byte(y + 1.772 * cb[i]);
    }
}

static void decode_one(const struct dct *d, const float *z, uint8_t *rgb, double *planes, double *t)
{
    size_t n = d->size;
    memset(planes, 0, 3 * n * n * sizeof *planes);
    for (unsigned p = 0; p < 3; p++) {
        memset(t, 0, d->rows[p] * n * sizeof *t);
        for (uint32_t i = 0; i < d->dim; i++)
            if (d->coef[i].plane == p) add_scaled(t + d->coef[i].u * n, d->cosine + d->coef[i].v * n, (double)z[i], n);
        for (size_t y = 0; y < n; y++)
            for (size_t u = 0; u < d->rows[p]; u++)
                add_scaled(planes + (p * n + y) * n, t + u * n, d->cosine[u * n + y], n);
    }
    store_pixels(rgb, planes, n * n);
}

static fkt_status dct_decode(const void *self, const float *z, size_t n, uint8_t *rgb)
{
    const struct dct *d = self;
    size_t pixels = (size_t)d->size * d->size;
    double *planes = NULL, *t = NULL;
    fkt_status st;
    FKT_TRY(fkt_alloc(&planes, 3 * pixels));
    FKT_TRY(fkt_alloc(&t, (size_t)d->reach * d->size));
    for (size_t i = 0; i < n; i++) decode_one(d, z + d->dim * i, rgb + 3 * pixels * i, planes, t);
out:
    fkt_free(planes);
    fkt_free(t);
    return st;
}

/* Centre: mid grey, all zero. W = diag(1/sqrt(E)). Clip radius: the median of |u|, under the model exp(log_mean). */
static void dct_calibrate(const void *self, struct fkt_calibration *cal)
{
    const struct dct *d = self;
    double mean, deviation;
    for (uint32_t i = 0; i < d->dim; i++) {
        double scale = sqrt(fkt_dct_energy(&d->coef[i], d->size));
        cal->map[(size_t)i * d->dim + i] = (float)(1 / scale);
        cal->unmap[(size_t)i * d->dim + i] = (float)scale;
    }
    fkt_dct_log_size(&mean, &deviation, d->dim);
    cal->log_mean = mean;
    cal->log_spread = 3 * deviation;
    cal->radius = exp(mean);
    snprintf(cal->source, sizeof cal->source, "analytic natural-image spectrum");
}

const struct fkt_codec_ops fkt_codec_dct = {
    .name = "dct",
    .open = dct_open,
    .encode = dct_encode,
    .decode = dct_decode,
    .calibrate = dct_calibrate,
    .free = dct_free,
};
