/* SPDX-License-Identifier: Apache-2.0 */
#include "fedkt/advanced/calibration.h"

#include "codec/codec.h"

#include "base/file.h"
#include "base/rng.h"
#include "tensor/safetensors.h"
#include "tests/support/check.h"

#include <unistd.h>

enum { D = 13, N = 3000 }; /* D: not a multiple of four, so that the last sums are uneven */

/* Latents with a known covariance: z = centre + A g with a scale of its own per record. */
static void make_latents(float *z, size_t n, uint64_t seed)
{
    struct fkt_rng r;
    double g[D];
    fkt_rng_init(&r, seed, 0);
    for (size_t i = 0; i < n; i++) {
        double size = exp(0.3 * fkt_rng_normal(&r));
        for (int j = 0; j < D; j++) g[j] = size * fkt_rng_normal(&r);
        for (int j = 0; j < D; j++) z[i * D + j] = (float)(100 + j + g[j] * (j + 1) + (j ? 0.7 * g[j - 1] : 0));
    }
}

static struct fkt_codec *open_dct(uint32_t dim)
{
    struct fkt_codec *c = NULL;
    CHECK_OK(fkt_codec_open(&c, &(struct fkt_codec_spec){.name = "dct", .size = 8, .dim = dim}));
    return c;
}

static void feed(struct fkt_calibrator *k, const float *z, size_t n, size_t chunk)
{
    for (size_t i = 0; i < n; i += chunk) CHECK_OK(fkt_calibrator_add(k, z + i * D, n - i < chunk ? n - i : chunk));
}

static void fit(struct fkt_calibration *cal, const struct fkt_codec *c, uint32_t top, const float *z, size_t n,
                size_t chunk)
{
    struct fkt_calibrator *k = NULL;
    CHECK_OK(fkt_calibrator_new(&k, c, top, "a public set"));
    feed(k, z, n, chunk);
    CHECK_OK(fkt_calibrator_middle(k));
    feed(k, z, n, chunk);
    CHECK_OK(fkt_calibrator_finish(k, cal));
    fkt_calibrator_free(k);
    for (size_t a = 0; a < cal->dim; a++) { /* signs are settled: the largest entry of a direction is positive */
        const float *row = cal->map + a * D;
        int at = 0;
        for (int b = 1; b < D; b++)
            if (fabsf(row[b]) > fabsf(row[at])) at = b;
        CHECK(row[at] > 0);
    }
}

static int same(const struct fkt_calibration *a, const struct fkt_calibration *b)
{
    size_t raw = a->raw_dim, d = a->dim;
    return a->raw_dim == b->raw_dim && a->dim == b->dim && !memcmp(a->centre, b->centre, raw * 4) &&
           !memcmp(a->map, b->map, d * raw * 4) && !memcmp(a->unmap, b->unmap, d * raw * 4) &&
           a->log_mean == b->log_mean && a->log_spread == b->log_spread && a->radius == b->radius &&
           a->images == b->images && a->n_digests == b->n_digests && !strcmp(a->digests_sha256, b->digests_sha256) &&
           !strcmp(a->source, b->source) && !strcmp(a->codec, b->codec);
}

/* In the fitted coordinates the public set has mean 0 and covariance I; the constants are those of |u|, computed here
 * plainly. */
static void fitted_coordinates_are_white(void **state)
{
    static float z[N * D];
    static double u[N][D], logs[N];
    struct fkt_codec *c = open_dct(D);
    struct fkt_calibration cal;
    double mean = 0, square = 0;
    size_t below = 0;
    (void)state;
    make_latents(z, N, 1);
    fit(&cal, c, 0, z, N, N);
    CHECK(cal.dim == D && cal.images == N && !strcmp(cal.source, "a public set"));
    CHECK_OK(fkt_calibration_check(&cal, c));
    for (size_t i = 0; i < N; i++) fkt_calibration_forward(&cal, z + i * D, u[i]);
    for (int a = 0; a < D; a++)
        for (int b = 0; b <= a; b++) {
            double s = 0, m = 0;
            for (size_t i = 0; i < N; i++) s += u[i][a] * u[i][b], m += u[i][a];
            CHECK_NEAR(m / N, 0, 1e-4);
            CHECK_NEAR(s / (N - 1), a == b, 1e-4);
        }
    for (size_t i = 0; i < N; i++) {
        double s = 0;
        for (int a = 0; a < D; a++) s += u[i][a] * u[i][a];
        logs[i] = log(sqrt(s));
        mean += logs[i] / N;
        below += sqrt(s) < cal.radius;
    }
    for (size_t i = 0; i < N; i++) square += (logs[i] - mean) * (logs[i] - mean);
    CHECK_NEAR(cal.log_mean, mean, 1e-9);
    CHECK_NEAR(cal.log_spread, 3 * sqrt(square / (N - 1)), 1e-9);
    CHECK(below == N / 2);
    fkt_calibration_clear(&cal);
    fkt_codec_free(c);
    CHECK(fkt_alloc_live() == 0);
}

static void there_and_back(void **state)
{
    static float z[N * D];
    struct fkt_codec *c = open_dct(D);
    struct fkt_calibration whole, cut;
    double u[D], again[D];
    float back[D];
    (void)state;
    make_latents(z, N, 2);
    fit(&whole, c, 0, z, N, N);
    fit(&cut, c, 5, z, N, N);
    CHECK(cut.dim == 5 && cut.raw_dim == D);
    for (size_t i = 0; i < 50; i++) {
        fkt_calibration_forward(&whole, z + i * D, u);
        fkt_calibration_backward(&whole, u, back);
        for (int j = 0; j < D; j++) CHECK_NEAR(back[j], z[i * D + j], 1e-3);
        fkt_calibration_forward(&cut, z + i * D, u);
        fkt_calibration_backward(&cut, u, back);
        fkt_calibration_forward(&cut, back, again);
        for (int j = 0; j < 5; j++) CHECK_NEAR(again[j], u[j], 1e-4);
    }
    for (int j = 0; j < 5 * D; j++) CHECK(cut.map[j] == whole.map[j]); /* the top rows, largest eigenvalue first */
    fkt_calibration_clear(&whole);
    fkt_calibration_clear(&cut);
    fkt_codec_free(c);
    CHECK(fkt_alloc_live() == 0);
}

/* Every direction has the same variance, so the last bit of the covariance decides which eigenvectors come out. */
static void make_round_latents(float *z, size_t n)
{
    memset(z, 0, n * D * sizeof *z);
    for (size_t i = 0; i < n; i++) z[i * D + (i / 2) % D] = (i % 2 ? -1.0f : 1.0f) * (1 + (float)(i / (2 * D) % 9) / 7);
}

static void chunks_do_not_matter(void **state)
{
    static const size_t chunks[] = {1, 7, 255, 256, 257, 1000};
    static float z[N * D];
    struct fkt_codec *c = open_dct(D);
    struct fkt_calibration want, got;
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        if (kind == 0) make_latents(z, N, 3);
        else make_round_latents(z, N);
        fit(&want, c, 0, z, N, N);
        for (size_t k = 0; k < sizeof chunks / sizeof *chunks; k++) {
            fit(&got, c, 0, z, N, chunks[k]);
            CHECK(same(&got, &want));
            fkt_calibration_clear(&got);
        }
        fkt_calibration_clear(&want);
    }
    fkt_codec_free(c);
    CHECK(fkt_alloc_live() == 0);
}

/* A direction without variance gets the floor, so that W stays finite and V undoes it. */
static void flat_directions_are_floored(void **state)
{
    static float z[N * D];
    struct fkt_codec *c = open_dct(D);
    struct fkt_calibration cal;
    float largest = 0;
    (void)state;
    make_latents(z, N, 4);
    for (size_t i = 0; i < N; i++) z[i * D + 3] = 5;
    fit(&cal, c, 0, z, N, N);
    CHECK_OK(fkt_calibration_check(&cal, c));
    for (int j = 0; j < D * D; j++) largest = fabsf(cal.map[j]) > largest ? fabsf(cal.map[j]) : largest;
    CHECK(largest < 1000 && largest > 10); /* 1/sqrt(1e-6 of the largest eigenvalue, about 170): 77 */
    fkt_calibration_clear(&cal);
    fkt_codec_free(c);
}

static void passes_must_agree(void **state)
{
    static float z[N * D];
    struct fkt_codec *c = open_dct(D);
    struct fkt_calibrator *k = NULL;
    struct fkt_calibration cal;
    char name[200];
    (void)state;
    make_latents(z, N, 5);
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    CHECK_STATUS(fkt_calibrator_new(&k, c, D + 1, "set"), FKT_E_ARG);
    CHECK_STATUS(fkt_calibrator_new(&k, c, 0, ""), FKT_E_ARG);
    CHECK_STATUS(fkt_calibrator_new(&k, c, 0, NULL), FKT_E_ARG);
    CHECK_STATUS(fkt_calibrator_new(&k, c, 0, name), FKT_E_ARG);
    CHECK(!k && fkt_alloc_live() == 4); /* the codec's own blocks */

    CHECK_OK(fkt_calibrator_new(&k, c, 0, "set"));
    CHECK_STATUS(fkt_calibrator_finish(k, &cal), FKT_E_STATE);
    CHECK_STATUS(fkt_calibrator_middle(k), FKT_E_STATE);
    CHECK_OK(fkt_calibrator_add(k, z, D));
    CHECK_STATUS(fkt_calibrator_middle(k), FKT_E_STATE); /* D images for D directions: one too few */
    CHECK_OK(fkt_calibrator_add(k, z + D * D, 100));
    CHECK_OK(fkt_calibrator_middle(k));
    CHECK_STATUS(fkt_calibrator_middle(k), FKT_E_STATE);
    CHECK_OK(fkt_calibrator_add(k, z, 100));
    CHECK_STATUS(fkt_calibrator_finish(k, &cal), FKT_E_STATE); /* fewer than before */
    CHECK_OK(fkt_calibrator_add(k, z, D));
    CHECK_STATUS(fkt_calibrator_finish(k, &cal), FKT_E_STATE); /* as many, but others */
    CHECK_STATUS(fkt_calibrator_add(k, z, 1), FKT_E_STATE);    /* more than before */
    fkt_calibrator_free(k);

    CHECK_OK(fkt_calibrator_new(&k, c, 0, "set"));
    z[5 * D + 2] = NAN;
    CHECK_STATUS(fkt_calibrator_add(k, z, 10), FKT_E_NUMERIC);
    CHECK(strstr(fkt_error_text(), "number 2 of public latent 5"));
    fkt_calibrator_free(k);

    for (size_t i = 0; i < 100 * D; i++) z[i] = 3;
    CHECK_OK(fkt_calibrator_new(&k, c, 0, "set"));
    CHECK_OK(fkt_calibrator_add(k, z, 100));
    CHECK_STATUS(fkt_calibrator_middle(k), FKT_E_NUMERIC); /* all the same */
    CHECK_STATUS(fkt_calibrator_finish(k, &cal), FKT_E_STATE);
    fkt_calibrator_free(k);
    fkt_calibrator_free(NULL);
    fkt_codec_free(c);
    CHECK(fkt_alloc_live() == 0);
}

static void files_keep_every_bit(void **state)
{
    static float z[N * D];
    char dir[] = "/tmp/fedkt-test-XXXXXX", path[64];
    struct fkt_codec *c = open_dct(D);
    struct fkt_calibration cal, back;
    (void)state;
    CHECK(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/c", dir);
    make_latents(z, N, 6);
    fit(&cal, c, 7, z, N, N);
    CHECK_STATUS(fkt_calibration_save(&cal, path, 0), FKT_E_STATE); /* of which images? */
    CHECK_OK(fkt_calibration_set_images(&cal, (const uint8_t[2][32]){{2}, {1}}, 2));
    CHECK_OK(fkt_calibration_save(&cal, path, 0));
    CHECK_STATUS(fkt_calibration_save(&cal, path, 0), FKT_E_EXISTS);
    CHECK_OK(fkt_calibration_load(&back, path));
    CHECK(same(&cal, &back));
    CHECK_OK(fkt_calibration_check(&back, c));
    fkt_calibration_clear(&back);
    fkt_calibration_clear(&cal);
    CHECK_OK(fkt_calibration_embedded(&cal, c));
    CHECK_OK(fkt_calibration_save(&cal, path, 1));
    CHECK_OK(fkt_calibration_load(&back, path));
    CHECK(same(&cal, &back) && !strcmp(back.source, "analytic natural-image spectrum"));
    fkt_calibration_clear(&back);
    fkt_calibration_clear(&cal);
    CHECK(unlink(path) == 0 && rmdir(dir) == 0);
    fkt_codec_free(c);
    CHECK(fkt_alloc_live() == 0);
}

/* The list of images cannot be left out by saying that there were none: only the built-in calibration has none. */
static void of_no_images_is_the_built_in_one_alone(void **state)
{
    static float z[N * D];
    char dir[] = "/tmp/fedkt-test-XXXXXX", path[64];
    struct fkt_codec *c = open_dct(D);
    struct fkt_calibration cal, back;
    (void)state;
    CHECK(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/c", dir);
    make_latents(z, N, 6);
    fit(&cal, c, 0, z, N, N);
    cal.images = 0;
    for (int k = 0; k < 5; k++) {
        static const char *const codec[] = {"dct/1", "dct/1 size=", "dct/1 size=99999999999 dim=13", "dct/1 size=1"};
        CHECK_OK(fkt_calibration_save(&cal, path, 1));
        CHECK_STATUS(fkt_calibration_load(&back, path), FKT_E_FORMAT);
        CHECK(strstr(fkt_error_text(), "made of no images") && !back.map);
        if (k < 4) snprintf(cal.codec, sizeof cal.codec, "%s", codec[k]);
    }
    fkt_calibration_clear(&cal);
    CHECK_OK(fkt_calibration_embedded(&cal, c));
    for (int k = 0; k < 4; k++) { /* one number or word beside it is another calibration */
        if (k == 1) cal.radius *= 1.01;
        if (k == 2) cal.centre[2] += 0.5f;
        if (k == 3) snprintf(cal.source, sizeof cal.source, "a private set");
        CHECK_OK(fkt_calibration_save(&cal, path, 1));
        CHECK_STATUS(fkt_calibration_load(&back, path), k ? FKT_E_FORMAT : FKT_OK);
        fkt_calibration_clear(&back);
        if (k == 1) cal.radius /= 1.01;
        if (k == 2) cal.centre[2] -= 0.5f;
    }
    fkt_calibration_clear(&cal);
    CHECK(unlink(path) == 0 && rmdir(dir) == 0);
    fkt_codec_free(c);
    CHECK(fkt_alloc_live() == 0);
}

/* Each field of a good calibration is spoilt in turn. */
static void unsound_calibrations_are_refused(void **state)
{
    struct fkt_codec *c = open_dct(D), *other = open_dct(D + 1);
    struct fkt_calibration cal;
    (void)state;
    CHECK_OK(fkt_calibration_embedded(&cal, c));
    CHECK_OK(fkt_calibration_check(&cal, c));
    CHECK_STATUS(fkt_calibration_check(&cal, other), FKT_E_MISMATCH);
#define SPOILT(field, value)                                                                                           \
    do {                                                                                                               \
        struct fkt_calibration was = cal;                                                                              \
        cal.field = value;                                                                                             \
        CHECK_STATUS(fkt_calibration_check(&cal, c), FKT_E_NUMERIC);                                                   \
        CHECK_STATUS(fkt_calibration_save(&cal, "/nonexistent-folder/x", 0), FKT_E_NUMERIC);                           \
        cal = was;                                                                                                     \
    } while (0)
    SPOILT(log_spread, 0);
    SPOILT(log_spread, NAN);
    SPOILT(log_mean, INFINITY);
    SPOILT(radius, -1);
    SPOILT(radius, NAN);
    SPOILT(dim, 0);
    SPOILT(dim, D + 1);
#undef SPOILT
    float was = cal.map[5];
    cal.map[5] = NAN;
    CHECK_STATUS(fkt_calibration_check(&cal, c), FKT_E_NUMERIC);
    cal.map[5] = 0.5f; /* finite, but no longer undone by unmap */
    CHECK_STATUS(fkt_calibration_check(&cal, c), FKT_E_NUMERIC);
    CHECK(strstr(fkt_error_text(), "does not undo"));
    cal.map[5] = was;
    cal.centre[1] = -INFINITY;
    CHECK_STATUS(fkt_calibration_check(&cal, c), FKT_E_NUMERIC);
    cal.centre[1] = 0;
    CHECK_OK(fkt_calibration_check(&cal, c));
    cal.raw_dim--;
    CHECK_STATUS(fkt_calibration_check(&cal, c), FKT_E_MISMATCH);
    cal.raw_dim++;
    fkt_calibration_clear(&cal);
    fkt_codec_free(c);
    fkt_codec_free(other);
    CHECK(fkt_alloc_live() == 0);
}

struct spoil {
    const char *key, *value; /* NULL value: left out */
    const char *says;
};

static void write_calibration(const char *path, const struct spoil *s, uint64_t rows, const float *map)
{
    static const char *const good[][2] = {{"format", "fedkt.calibration/2"},
                                          {"source", "s"},
                                          {"codec", "c"},
                                          {"images", "9"},
                                          {"log_mean", "0.5"},
                                          {"log_spread", "1"},
                                          {"radius", "2"}};
    static const float identity[4] = {1, 0, 0, 1};
    struct fkt_st_writer *w = NULL;
    CHECK_OK(fkt_st_writer_new(&w));
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        const char *value = s && !strcmp(s->key, good[i][0]) ? s->value : good[i][1];
        if (value) CHECK_OK(fkt_st_writer_meta(w, good[i][0], value));
    }
    CHECK_OK(fkt_st_writer_add(w, "centre", FKT_F32, 1, (const uint64_t[]){2}, identity));
    CHECK_OK(fkt_st_writer_add(w, "map", FKT_F32, 2, (const uint64_t[]){rows, 2}, map ? map : identity));
    CHECK_OK(fkt_st_writer_add(w, "unmap", FKT_F32, 2, (const uint64_t[]){2, 2}, identity));
    CHECK_OK(
        fkt_st_writer_add(w, "image_digests", FKT_U8, 2, (const uint64_t[]){2, 8}, "\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2"));
    CHECK_OK(fkt_st_writer_write(w, path, 1));
    fkt_st_writer_free(w);
}

static void bad_files_are_refused(void **state)
{
    static const struct spoil spoilt[] = {
        {"format", NULL, "not a calibration"},
        {"format", "fedkt.calibration/3", "not a calibration"},
        {"format", "fedkt.calibration/1", "of which images"},
        {"images", "1", "2 image digests for 1 images"},
        {"source", NULL, "missing"},
        {"codec", NULL, "missing"},
        {"images", "-1", "whole number"},
        {"images", NULL, "whole number"},
        {"log_mean", "nan", "not a number"},
        {"log_mean", NULL, "not a number"},
        {"log_spread", "0", "spread"},
        {"radius", "-2", "radius"},
        {"radius", "1e999", "not a number"},
    };
    static const float nan_map[4] = {1, 0, NAN, 1}, wrong_map[4] = {1, 0.5f, 0, 1};
    char dir[] = "/tmp/fedkt-test-XXXXXX", path[64];
    struct fkt_calibration cal;
    (void)state;
    CHECK(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/c", dir);
    write_calibration(path, NULL, 2, NULL);
    CHECK_OK(fkt_calibration_load(&cal, path));
    CHECK(cal.images == 9 && cal.radius == 2 && cal.log_mean == 0.5);
    fkt_calibration_clear(&cal);
    for (size_t i = 0; i < sizeof spoilt / sizeof *spoilt; i++) {
        fkt_status st;
        write_calibration(path, &spoilt[i], 2, NULL);
        st = fkt_calibration_load(&cal, path);
        if ((st != FKT_E_FORMAT && st != FKT_E_NUMERIC) || !strstr(fkt_error_text(), spoilt[i].says) ||
            !strstr(fkt_error_text(), path))
            fail_msg("%s: status %d, said: %s", spoilt[i].key, st, fkt_error_text());
        CHECK(!cal.map && fkt_alloc_live() == 0);
    }
    write_calibration(path, NULL, 1, NULL); /* unmap has another shape */
    CHECK_STATUS(fkt_calibration_load(&cal, path), FKT_E_MISMATCH);
    write_calibration(path, NULL, 2, nan_map);
    CHECK_STATUS(fkt_calibration_load(&cal, path), FKT_E_NUMERIC);
    write_calibration(path, NULL, 2, wrong_map);
    CHECK_STATUS(fkt_calibration_load(&cal, path), FKT_E_NUMERIC);
    CHECK_STATUS(fkt_calibration_load(&cal, FKT_TEST_VECTORS "/codec/reference.safetensors"), FKT_E_FORMAT);
    CHECK_STATUS(fkt_calibration_load(&cal, dir), FKT_E_IO);
    CHECK(unlink(path) == 0 && rmdir(dir) == 0);
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fitted_coordinates_are_white),
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(chunks_do_not_matter),
        cmocka_unit_test(flat_directions_are_floored),
        cmocka_unit_test(passes_must_agree),
        cmocka_unit_test(files_keep_every_bit),
        cmocka_unit_test(of_no_images_is_the_built_in_one_alone),
        cmocka_unit_test(unsound_calibrations_are_refused),
        cmocka_unit_test(bad_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
