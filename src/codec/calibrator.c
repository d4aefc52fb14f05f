/* SPDX-License-Identifier: Apache-2.0 */
/* calibrator.c - fits a calibration to the latents of a PUBLIC image set, in two passes.
 *
 *   FIRST  add: mean and covariance      -> middle: W = Lambda^-1/2 E, top d rows; V = E^T Lambda^1/2
 *   SECOND add: log|u| of each latent    -> finish: mean, three standard deviations, median
 *   DONE
 *
 * PCA whitening: E holds the eigenvectors of the covariance as rows, largest eigenvalue first; cutting to the top d
 * is the paper's PCA. A rotation of u (ZCA instead of PCA) would change neither a ball of radius R, nor the noise,
 * nor a linear or quadratic head. Eigenvalues are floored at 10^-6 of the largest: below that, float latents are
 * rounding error.
 *
 * The result does not depend on how the latents were cut into calls: they are gathered into blocks of a fixed number
 * of rows before they are summed, relative to the first latent, which keeps the subtraction of the mean harmless. The
 * second pass must see the same latents in the same order; their number and exact sum are compared. Clip radius: the
 * median of |u|; accuracy is flat around it (docs/decisions/0002-dct-layout.md). Cost: n*D^2 for the covariance in
 * BLAS, D^3 once; memory D^2 doubles and one double per image. */
#include "fedkt/advanced/calibration.h"

#include "codec/codec.h"

#include "base/alloc.h"
#include "tensor/linalg.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 256U       /* rows per product; fixed, since it fixes the order of summation */
#define SQUARES 4U       /* (D,D) arrays of doubles at the peak: the sums, eigenvectors, and the solver's */
#define EIGEN_FLOOR 1e-6 /* of the largest eigenvalue */

enum stage { FIRST, SECOND, DONE };

struct fkt_calibrator {
    enum stage stage;
    uint32_t raw, top; /* D, d */
    uint64_t seen[2];  /* latents in each pass */
    double *shift;     /* (D) the first latent */
    double *sum[2];    /* (D) of z - shift, in each pass */
    double *outer;     /* (D,D) upper triangle of the sum of (z - shift)(z - shift)^T */
    double *block;     /* (BLOCK, D) */
    size_t filled;     /* rows of block */
    double *u;         /* (d) */
    double *logs;      /* (cap) log|u| */
    size_t cap;
    struct fkt_calibration cal; /* tensors from `middle` on */
    char source[128], codec[FKT_IDENTITY_MAX];
};

fkt_status fkt_calibrator_new(struct fkt_calibrator **out, const struct fkt_codec *c, uint32_t top, const char *source)
{
    struct fkt_calibrator *k = NULL;
    size_t raw = c->dim;
    fkt_status st;
    *out = NULL;
    if (top > raw) return fkt_fail(FKT_E_ARG, "cannot keep %u directions of the %zu of codec '%s'", top, raw, c->name);
    if (raw * raw * SQUARES * sizeof(double) > fkt_machine_memory() / 2)
        return fkt_hint_code(fkt_fail(FKT_E_NOMEM,
                                      "a calibration of the %zu numbers of codec '%s' needs more than half of this "
                                      "machine's memory",
                                      raw, c->name),
                             FKT_HINT_SMALLER_SIZE, "take smaller images");
    FKT_TRY(fkt_alloc(&k, 1));
    if (!source || !*source || strlen(source) >= sizeof k->source) {
        st = fkt_fail(FKT_E_ARG, "a calibration needs the name of its public image set, at most %zu bytes",
                      sizeof k->source - 1);
        goto out;
    }
    k->raw = c->dim;
    k->top = top ? top : c->dim;
    memcpy(k->source, source, strlen(source));
    memcpy(k->codec, c->identity, sizeof k->codec);
    FKT_TRY(fkt_alloc(&k->shift, raw));
    FKT_TRY(fkt_alloc(&k->sum[0], raw));
    FKT_TRY(fkt_alloc(&k->sum[1], raw));
    FKT_TRY(fkt_alloc(&k->outer, raw * raw));
    FKT_TRY(fkt_alloc(&k->block, BLOCK * raw));
    FKT_TRY(fkt_alloc(&k->u, k->top));
    *out = k;
    k = NULL;
out:
    fkt_calibrator_free(k);
    return st;
}

void fkt_calibrator_free(struct fkt_calibrator *k)
{
    if (!k) return;
    fkt_free(k->shift);
    fkt_free(k->sum[0]);
    fkt_free(k->sum[1]);
    fkt_free(k->outer);
    fkt_free(k->block);
    fkt_free(k->u);
    fkt_free(k->logs);
    fkt_calibration_clear(&k->cal);
    fkt_free(k);
}

static void flush(struct fkt_calibrator *k)
{
    if (k->filled) fkt_syrk(k->outer, k->block, k->filled, k->raw);
    k->filled = 0;
}

static void add_first(struct fkt_calibrator *k, const float *z)
{
    double *row = k->block + k->filled * k->raw;
    for (size_t j = 0; j < k->raw; j++) row[j] = (double)z[j] - k->shift[j];
    if (++k->filled == BLOCK) flush(k);
}

static fkt_status add_second(struct fkt_calibrator *k, const float *z)
{
    uint64_t at = k->seen[1];
    double norm2 = 0;
    if (at >= k->seen[0])
        return fkt_fail(FKT_E_STATE, "the second pass has more latents than the first, which had %" PRIu64, k->seen[0]);
    if (at == k->cap) {
        size_t cap = k->cap ? 2 * k->cap : 1024;
        fkt_status st = fkt_realloc(&k->logs, cap);
        if (st != FKT_OK) return st;
        k->cap = cap;
    }
    fkt_calibration_forward(&k->cal, z, k->u);
    for (size_t i = 0; i < k->top; i++) norm2 += k->u[i] * k->u[i];
    if (!(norm2 > 0) || !isfinite(norm2))
        return fkt_fail(FKT_E_NUMERIC, "public latent %" PRIu64 " of '%s' has no direction: |u|^2 = %g", at, k->source,
                        norm2);
    k->logs[at] = 0.5 * log(norm2);
    return FKT_OK;
}

fkt_status fkt_calibrator_enough(const struct fkt_calibrator *k, uint64_t latents)
{
    if (latents > k->top) return FKT_OK;
    return fkt_fail_hint(FKT_E_STATE, "give more public images, or keep fewer directions",
                         "%" PRIu64 " images of '%s' are too few to fit %u directions", latents, k->source, k->top);
}

fkt_status fkt_calibrator_add(struct fkt_calibrator *k, const float *z, size_t n)
{
    unsigned pass = k->stage == FIRST ? 0 : 1;
    if (k->stage == DONE) return fkt_fail(FKT_E_STATE, "the calibration is finished, it takes no more latents");
    for (size_t i = 0; i < n; i++, z += k->raw) {
        fkt_status st = FKT_OK;
        for (size_t j = 0; j < k->raw; j++)
            if (!isfinite(z[j]))
                return fkt_fail(FKT_E_NUMERIC, "number %zu of public latent %" PRIu64 " is not finite", j,
                                k->seen[pass]);
        if (pass == 0 && k->seen[0] == 0)
            for (size_t j = 0; j < k->raw; j++) k->shift[j] = (double)z[j];
        if (pass == 0) add_first(k, z);
        else st = add_second(k, z);
        if (st != FKT_OK) return st;
        for (size_t j = 0; j < k->raw; j++) k->sum[pass][j] += (double)z[j] - k->shift[j];
        k->seen[pass]++;
    }
    return FKT_OK;
}

/* outer, in place: the whole covariance, unbiased. */
static void covariance(struct fkt_calibrator *k)
{
    double n = (double)k->seen[0];
    for (size_t i = 0; i < k->raw; i++)
        for (size_t j = i; j < k->raw; j++) {
            double c = (k->outer[i * k->raw + j] - k->sum[0][i] * k->sum[0][j] / n) / (n - 1);
            k->outer[i * k->raw + j] = k->outer[j * k->raw + i] = c;
        }
}

static void fill_maps(struct fkt_calibrator *k, const double *values, const double *vectors)
{
    size_t raw = k->raw, d = k->top;
    double floor_value = EIGEN_FLOOR * values[raw - 1];
    for (size_t i = 0; i < d; i++) {
        const double *v = vectors + (raw - 1 - i) * raw; /* ascending order: the largest is last */
        double value = values[raw - 1 - i] > floor_value ? values[raw - 1 - i] : floor_value;
        double scale = sqrt(value);
        for (size_t j = 0; j < raw; j++) {
            k->cal.map[i * raw + j] = (float)(v[j] / scale);
            k->cal.unmap[j * d + i] = (float)(v[j] * scale);
        }
    }
    for (size_t j = 0; j < raw; j++) k->cal.centre[j] = (float)(k->shift[j] + k->sum[0][j] / (double)k->seen[0]);
}

fkt_status fkt_calibrator_middle(struct fkt_calibrator *k)
{
    double *values = NULL, *vectors = NULL;
    fkt_status st;
    if (k->stage != FIRST) return fkt_fail(FKT_E_STATE, "the first pass of the calibration is over already");
    FKT_TRY(fkt_calibrator_enough(k, k->seen[0]));
    FKT_TRY(fkt_alloc(&values, k->raw));
    FKT_TRY(fkt_alloc(&vectors, (size_t)k->raw * k->raw));
    FKT_TRY(fkt_calibration_init(&k->cal, k->raw, k->top));
    flush(k);
    covariance(k);
    k->stage = SECOND; /* outer is no longer a sum */
    FKT_TRY(fkt_eigen(values, vectors, k->outer, k->raw));
    if (!(values[k->raw - 1] > 0)) {
        st = fkt_fail(FKT_E_NUMERIC, "the public latents of '%s' are all the same", k->source);
        goto out;
    }
    fill_maps(k, values, vectors);
out:
    if (st != FKT_OK && k->stage == SECOND) k->stage = DONE;
    fkt_free(values);
    fkt_free(vectors);
    return st;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Mean, three standard deviations and median; sorts logs last. */
static void sizes(struct fkt_calibrator *k, struct fkt_calibration *cal)
{
    size_t n = (size_t)k->seen[1];
    double mean = 0, square = 0;
    for (size_t i = 0; i < n; i++) mean += k->logs[i];
    mean /= (double)n;
    for (size_t i = 0; i < n; i++) square += (k->logs[i] - mean) * (k->logs[i] - mean);
    cal->log_mean = mean;
    cal->log_spread = 3 * sqrt(square / (double)(n - 1));
    qsort(k->logs, n, sizeof *k->logs, ascending);
    cal->radius = exp(n % 2 ? k->logs[n / 2] : 0.5 * (k->logs[n / 2 - 1] + k->logs[n / 2]));
}

fkt_status fkt_calibrator_finish(struct fkt_calibrator *k, struct fkt_calibration *out)
{
    fkt_status st;
    memset(out, 0, sizeof *out);
    if (k->stage != SECOND || !k->cal.map) return fkt_fail(FKT_E_STATE, "the calibration has not had its two passes");
    if (k->seen[0] != k->seen[1] || memcmp(k->sum[0], k->sum[1], k->raw * sizeof *k->sum[0]) != 0)
        return fkt_fail(FKT_E_STATE, "the second pass saw other latents (%" PRIu64 ") than the first (%" PRIu64 ")",
                        k->seen[1], k->seen[0]);
    k->stage = DONE;
    sizes(k, &k->cal);
    k->cal.images = k->seen[0];
    memcpy(k->cal.source, k->source, sizeof k->cal.source);
    memcpy(k->cal.codec, k->codec, sizeof k->cal.codec);
    st = fkt_calibration_sound(&k->cal);
    if (st != FKT_OK) return st;
    *out = k->cal;
    memset(&k->cal, 0, sizeof k->cal);
    return FKT_OK;
}
