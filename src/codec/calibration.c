/* SPDX-License-Identifier: Apache-2.0 */
/* calibration.c - the public linear map between a codec's latents and the coordinates that are summed.
 *
 *   u = W (z - mu0),  z' = mu0 + V u        file: safetensors, tensors centre (D), map (d,D), unmap (D,d), all F32,
 *                                                 and image_digests U8 (n,8), unless it is a built-in one
 *
 * Why at all: the paper clips at R = alpha*sqrt(d), which rests on latents that are N(0,I); real codecs' are not, so
 * a public whitening makes them so (docs/method.md 1.1). Private data never enters. The file carries its source, the
 * codec's identity and the constants as decimal strings that give back the same doubles.
 *
 * That V undoes W is not checked entry by entry, which for d = 4096 would take minutes, but by W(Vr) = r for eight
 * vectors r of random signs: a wrong entry shows in each of them unless it cancels. Cost of forward and backward: d*D
 * multiplications. */
#include "fedkt/advanced/calibration.h"

#include "codec/codec.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/text.h"
#include "tensor/safetensors.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define FORMAT "fedkt.calibration/2"
#define FORMAT_BEFORE "fedkt.calibration/1" /* did not say of which images */
#define DIM_MAX 65536U

fkt_status fkt_calibration_init(struct fkt_calibration *cal, uint32_t raw_dim, uint32_t dim)
{
    fkt_status st;
    memset(cal, 0, sizeof *cal);
    cal->raw_dim = raw_dim;
    cal->dim = dim;
    FKT_TRY(fkt_alloc(&cal->centre, raw_dim));
    FKT_TRY(fkt_alloc(&cal->map, (size_t)dim * raw_dim));
    FKT_TRY(fkt_alloc(&cal->unmap, (size_t)raw_dim * dim));
out:
    if (st != FKT_OK) fkt_calibration_clear(cal);
    return st;
}

void fkt_calibration_clear(struct fkt_calibration *cal)
{
    fkt_free(cal->centre);
    fkt_free(cal->map);
    fkt_free(cal->unmap);
    fkt_free(cal->digests);
    fkt_free(cal->file);
    memset(cal, 0, sizeof *cal);
}

const char *fkt_calibration_called(const struct fkt_calibration *cal, char out[FKT_CALIBRATION_CALLED])
{
    if (cal->file) snprintf(out, FKT_CALIBRATION_CALLED, "calibration '%s'", cal->file);
    else snprintf(out, FKT_CALIBRATION_CALLED, "the calibration from '%s'", cal->source);
    return out;
}

/* Four interleaved sums, added at the end in one order: the same bits on every call, and room for the processor. */
void fkt_calibration_forward(const struct fkt_calibration *cal, const float *z, double *u)
{
    size_t n = cal->raw_dim, whole = n - n % 4;
    for (size_t i = 0; i < cal->dim; i++) {
        const float *w = cal->map + i * n;
        double s[4] = {0, 0, 0, 0};
        for (size_t j = 0; j < whole; j += 4)
            for (size_t k = 0; k < 4; k++) s[k] += (double)w[j + k] * ((double)z[j + k] - (double)cal->centre[j + k]);
        for (size_t j = whole; j < n; j++) s[j - whole] += (double)w[j] * ((double)z[j] - (double)cal->centre[j]);
        u[i] = (s[0] + s[1]) + (s[2] + s[3]);
    }
}

static double unmap_row(const struct fkt_calibration *cal, size_t j, const double *u)
{
    size_t n = cal->dim, whole = n - n % 4;
    const float *v = cal->unmap + j * n;
    double s[4] = {0, 0, 0, 0};
    for (size_t i = 0; i < whole; i += 4)
        for (size_t k = 0; k < 4; k++) s[k] += (double)v[i + k] * u[i + k];
    for (size_t i = whole; i < n; i++) s[i - whole] += (double)v[i] * u[i];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

void fkt_calibration_backward(const struct fkt_calibration *cal, const double *u, float *z)
{
    for (size_t j = 0; j < cal->raw_dim; j++) z[j] = (float)((double)cal->centre[j] + unmap_row(cal, j, u));
}

static int all_finite(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return 0;
    return 1;
}

/* Float tensors with condition number 10^3 give back r to about 10^-3. */
static fkt_status check_inverse(const struct fkt_calibration *cal)
{
    enum { PROBES = 8 };
    const double tolerance = 0.01;
    size_t d = cal->dim, raw = cal->raw_dim;
    double *r = NULL, *x = NULL;
    char called[FKT_CALIBRATION_CALLED];
    struct fkt_rng rng;
    fkt_status st;
    FKT_TRY(fkt_alloc(&r, d));
    FKT_TRY(fkt_alloc(&x, raw));
    fkt_rng_init(&rng, 1, 0);
    for (int probe = 0; probe < PROBES; probe++) {
        for (size_t i = 0; i < d; i++) r[i] = fkt_rng_u64(&rng) >> 63 ? 1 : -1;
        for (size_t j = 0; j < raw; j++) x[j] = unmap_row(cal, j, r);
        for (size_t i = 0; i < d; i++) {
            double s = 0;
            for (size_t j = 0; j < raw; j++) s += (double)cal->map[i * raw + j] * x[j];
            if (!(fabs(s - r[i]) <= tolerance)) {
                st = fkt_fail(FKT_E_NUMERIC, "%s: 'unmap' does not undo row %zu of 'map'",
                              fkt_calibration_called(cal, called), i);
                goto out;
            }
        }
    }
out:
    fkt_free(r);
    fkt_free(x);
    return st;
}

fkt_status fkt_calibration_sound(const struct fkt_calibration *cal)
{
    size_t d = cal->dim, raw = cal->raw_dim;
    char called[FKT_CALIBRATION_CALLED];
    if (d == 0 || d > raw || raw > DIM_MAX || !cal->centre || !cal->map || !cal->unmap)
        return fkt_fail(FKT_E_NUMERIC, "%s maps %zu numbers to %zu", fkt_calibration_called(cal, called), raw, d);
    if (!all_finite(cal->centre, raw) || !all_finite(cal->map, d * raw) || !all_finite(cal->unmap, d * raw))
        return fkt_fail(FKT_E_NUMERIC, "%s holds a number that is not finite", fkt_calibration_called(cal, called));
    if (!isfinite(cal->log_mean) || !(cal->log_spread > 0) || !isfinite(cal->log_spread) || !(cal->radius > 0) ||
        !isfinite(cal->radius))
        return fkt_fail(FKT_E_NUMERIC, "%s has no positive finite spread and radius",
                        fkt_calibration_called(cal, called));
    return check_inverse(cal);
}

fkt_status fkt_calibration_check(const struct fkt_calibration *cal, const struct fkt_codec *c)
{
    char called[FKT_CALIBRATION_CALLED];
    if (strcmp(cal->codec, c->identity) != 0) {
        char theirs[FKT_DIFFERENCE_MAX], ours[FKT_DIFFERENCE_MAX];
        fkt_identity_difference(cal->codec, c->identity, theirs, ours);
        return fkt_fail_hint(FKT_E_MISMATCH, "calibrate this codec, or open the codec that the calibration was made of",
                             "%s is of another codec: it has %s, codec '%s' has %s",
                             fkt_calibration_called(cal, called), theirs, c->name, ours);
    }
    if (cal->raw_dim != c->dim)
        return fkt_fail(FKT_E_MISMATCH, "%s takes %u numbers, codec '%s' gives %u", fkt_calibration_called(cal, called),
                        cal->raw_dim, c->name, c->dim);
    return fkt_calibration_sound(cal);
}

static fkt_status write_number(struct fkt_st_writer *w, const char *key, double x)
{
    char text[32];
    snprintf(text, sizeof text, "%.17g", x);
    return fkt_st_writer_meta(w, key, text);
}

fkt_status fkt_calibration_save(const struct fkt_calibration *cal, const char *path, int force)
{
    const uint64_t d = cal->dim, raw = cal->raw_dim;
    struct fkt_st_writer *w = NULL;
    char images[32];
    fkt_status st;
    FKT_TRY(fkt_calibration_sound(cal));
    if (cal->images && !cal->digests)
        return fkt_fail(FKT_E_STATE, "the calibration from '%s' does not say of which images it was made", cal->source);
    FKT_TRY(fkt_st_writer_new(&w));
    snprintf(images, sizeof images, "%" PRIu64, cal->images);
    FKT_TRY(fkt_st_writer_meta(w, "format", FORMAT));
    FKT_TRY(fkt_st_writer_meta(w, "source", cal->source));
    FKT_TRY(fkt_st_writer_meta(w, "codec", cal->codec));
    FKT_TRY(fkt_st_writer_meta(w, "images", images));
    FKT_TRY(write_number(w, "log_mean", cal->log_mean));
    FKT_TRY(write_number(w, "log_spread", cal->log_spread));
    FKT_TRY(write_number(w, "radius", cal->radius));
    FKT_TRY(fkt_st_writer_add(w, "centre", FKT_F32, 1, (const uint64_t[]){raw}, cal->centre));
    FKT_TRY(fkt_st_writer_add(w, "map", FKT_F32, 2, (const uint64_t[]){d, raw}, cal->map));
    FKT_TRY(fkt_st_writer_add(w, "unmap", FKT_F32, 2, (const uint64_t[]){raw, d}, cal->unmap));
    if (cal->digests)
        FKT_TRY(fkt_st_writer_add(w, "image_digests", FKT_U8, 2,
                                  (const uint64_t[]){cal->n_digests, FKT_CALIBRATION_DIGEST}, cal->digests));
    FKT_TRY(fkt_st_writer_write(w, path, force ? FKT_FILE_REPLACE : 0));
out:
    fkt_st_writer_free(w);
    return st;
}

static fkt_status read_text(char *out, size_t cap, const struct fkt_safetensors *s, const char *key)
{
    const char *v = fkt_safetensors_meta(s, key);
    if (!v || strlen(v) >= cap) return fkt_fail(FKT_E_FORMAT, "metadata '%s' is %s", key, v ? "too long" : "missing");
    memcpy(out, v, strlen(v) + 1);
    return FKT_OK;
}

static fkt_status read_number(double *out, const struct fkt_safetensors *s, const char *key)
{
    const char *v = fkt_safetensors_meta(s, key);
    if (!v || fkt_parse_double(out, v) != FKT_OK) return fkt_fail(FKT_E_FORMAT, "metadata '%s' is not a number", key);
    return FKT_OK;
}

/* Constants and texts of an open file into a calibration whose tensors are allocated. */
static fkt_status read_metadata(struct fkt_calibration *cal, const struct fkt_safetensors *s)
{
    const char *images = fkt_safetensors_meta(s, "images");
    fkt_status st;
    FKT_TRY(read_text(cal->source, sizeof cal->source, s, "source"));
    FKT_TRY(read_text(cal->codec, sizeof cal->codec, s, "codec"));
    FKT_TRY(read_number(&cal->log_mean, s, "log_mean"));
    FKT_TRY(read_number(&cal->log_spread, s, "log_spread"));
    FKT_TRY(read_number(&cal->radius, s, "radius"));
    if (fkt_parse_u64(&cal->images, images, UINT64_MAX) != FKT_OK)
        st = fkt_fail(FKT_E_FORMAT, "metadata 'images' is not a whole number");
out:
    return st;
}

static fkt_status read_tensors(struct fkt_calibration *cal, const struct fkt_safetensors *s)
{
    const struct fkt_tensor *map = fkt_safetensors_find(s, "map"), *t;
    fkt_status st;
    if (!map || map->rank != 2 || map->shape[0] == 0 || map->shape[0] > map->shape[1] || map->shape[1] > DIM_MAX)
        return fkt_fail(FKT_E_FORMAT, "no tensor 'map' of shape (d,D) with d <= D <= %u", DIM_MAX);
    const uint64_t d = map->shape[0], raw = map->shape[1];
    FKT_TRY(fkt_calibration_init(cal, (uint32_t)raw, (uint32_t)d));
    FKT_TRY(fkt_safetensors_want(s, &t, "centre", FKT_F32, 1, (const uint64_t[]){raw}));
    FKT_TRY(fkt_tensor_copy_f32(cal->centre, t));
    FKT_TRY(fkt_safetensors_want(s, &t, "map", FKT_F32, 2, (const uint64_t[]){d, raw}));
    FKT_TRY(fkt_tensor_copy_f32(cal->map, t));
    FKT_TRY(fkt_safetensors_want(s, &t, "unmap", FKT_F32, 2, (const uint64_t[]){raw, d}));
    FKT_TRY(fkt_tensor_copy_f32(cal->unmap, t));
out:
    return st;
}

/* The list of its images; after the metadata, which has their number. Only a built-in calibration is of no images: of
 * any other the list was taken away. */
static fkt_status read_images(struct fkt_calibration *cal, const struct fkt_safetensors *s)
{
    const struct fkt_tensor *t = fkt_safetensors_find(s, "image_digests");
    if (!t && cal->images == 0) return fkt_calibration_built_in(cal);
    if (!t || t->dtype != FKT_U8 || t->rank != 2 || t->shape[1] != FKT_CALIBRATION_DIGEST)
        return fkt_fail(FKT_E_FORMAT, "no tensor 'image_digests' of bytes (n,%d), though it was made of images",
                        FKT_CALIBRATION_DIGEST);
    return fkt_calibration_take_digests(cal, t->data, t->shape[0]);
}

static fkt_status check_format(const char *format)
{
    if (format && !strcmp(format, FORMAT)) return FKT_OK;
    if (format && !strcmp(format, FORMAT_BEFORE))
        return fkt_hint_code(fkt_fail(FKT_E_FORMAT,
                                      "it is of the older format '%s', which does not say of which images it was made",
                                      FORMAT_BEFORE),
                             FKT_HINT_CALIBRATE_AGAIN, "make it again from the same public images");
    return fkt_hint_code(fkt_fail(FKT_E_FORMAT, "not a calibration of format '%s'", FORMAT), FKT_HINT_CALIBRATION_FILE,
                         "give a calibration file");
}

fkt_status fkt_calibration_load(struct fkt_calibration *out, const char *path)
{
    struct fkt_safetensors *s = NULL;
    fkt_status st;
    memset(out, 0, sizeof *out);
    st = fkt_safetensors_open(&s, path);
    if (st != FKT_OK) return st; /* the sentence names the file already */
    FKT_TRY(check_format(fkt_safetensors_meta(s, "format")));
    FKT_TRY(read_tensors(out, s));
    FKT_TRY(read_metadata(out, s));
    FKT_TRY(read_images(out, s));
    FKT_TRY(fkt_calibration_sound(out));
    FKT_TRY(fkt_strdup(&out->file, path));
out:
    fkt_safetensors_free(s);
    if (st != FKT_OK) fkt_calibration_clear(out);
    st = fkt_fail_in(st, "cannot read calibration '%s'", path);
    return st == FKT_E_IO || st == FKT_E_NOMEM
               ? st
               : fkt_hint(st, "the file is damaged or was changed: fetch or make it again");
}
