/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/dct.h"

#include "base/rng.h"
#include "tensor/safetensors.h"
#include "tests/support/check.h"

static const struct {
    uint32_t size, dim;
} cases[] = {{8, 1}, {8, 192}, {32, 64}, {45, 300}};

static struct fkt_codec *open_dct(uint32_t size, uint32_t dim)
{
    struct fkt_codec *c = NULL;
    CHECK_OK(fkt_codec_open(&c, &(struct fkt_codec_spec){.name = "dct", .size = size, .dim = dim}));
    return c;
}

static const struct fkt_tensor *golden(const struct fkt_safetensors *s, const char *what, uint32_t size, uint32_t dim)
{
    char name[64];
    snprintf(name, sizeof name, "%s_%u_%u", what, size, dim);
    const struct fkt_tensor *t = fkt_safetensors_find(s, name);
    if (!t) fail_msg("no golden tensor '%s'", name);
    return t;
}

static double f64_at(const struct fkt_tensor *t, size_t i)
{
    double x;
    CHECK(t->dtype == FKT_F64 && i < t->count);
    memcpy(&x, (const uint8_t *)t->data + 8 * i, 8);
    return x;
}

static void layout_and_coefficients_match_the_oracle(void **state)
{
    struct fkt_safetensors *s = NULL;
    (void)state;
    CHECK_OK(fkt_safetensors_open(&s, FKT_TEST_VECTORS "/codec/dct.safetensors"));
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint32_t size = cases[k].size, dim = cases[k].dim;
        const struct fkt_tensor *rgb = golden(s, "rgb", size, dim), *z = golden(s, "z", size, dim),
                                *order = golden(s, "order", size, dim);
        size_t n = (size_t)rgb->shape[0];
        struct fkt_codec *c = open_dct(size, dim);
        struct fkt_dct_coef *coef = NULL;
        float *got = NULL;
        CHECK_OK(fkt_alloc(&coef, dim));
        CHECK_OK(fkt_dct_layout(coef, size, dim));
        CHECK(sizeof *coef == 6 && !memcmp(coef, order->data, dim * sizeof *coef));
        CHECK_OK(fkt_alloc(&got, n * dim));
        CHECK_OK(fkt_codec_encode(c, rgb->data, n, got));
        for (size_t i = 0; i < n * dim; i++) CHECK_NEAR(got[i], f64_at(z, i), 1e-5);
        fkt_free(coef);
        fkt_free(got);
        fkt_codec_free(c);
    }
    fkt_safetensors_free(s);
    CHECK(fkt_alloc_live() == 0);
}

static void decoding_matches_the_oracle(void **state)
{
    struct fkt_safetensors *s = NULL;
    (void)state;
    CHECK_OK(fkt_safetensors_open(&s, FKT_TEST_VECTORS "/codec/dct.safetensors"));
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint32_t size = cases[k].size, dim = cases[k].dim;
        const struct fkt_tensor *want = golden(s, "decoded", size, dim), *z = golden(s, "z", size, dim);
        struct fkt_codec *c = open_dct(size, dim);
        float *zf = NULL, *real = NULL;
        uint8_t *got = NULL;
        CHECK_OK(fkt_alloc(&zf, z->count));
        CHECK_OK(fkt_alloc(&real, want->count));
        CHECK_OK(fkt_alloc(&got, want->count));
        CHECK_OK(fkt_tensor_copy_f32(zf, z));
        CHECK_OK(fkt_tensor_copy_f32(real, want));
        CHECK_OK(fkt_codec_decode(c, zf, z->count / dim, got));
        for (size_t i = 0; i < want->count; i++) CHECK_NEAR(got[i], real[i], 0.5 + 1e-3);
        fkt_free(zf);
        fkt_free(real);
        fkt_free(got);
        fkt_codec_free(c);
    }
    fkt_safetensors_free(s);
    CHECK(fkt_alloc_live() == 0);
}

static void built_in_calibration_matches_the_oracle(void **state)
{
    struct fkt_safetensors *s = NULL;
    (void)state;
    CHECK_OK(fkt_safetensors_open(&s, FKT_TEST_VECTORS "/codec/dct.safetensors"));
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint32_t size = cases[k].size, dim = cases[k].dim;
        const struct fkt_tensor *scale = golden(s, "scale", size, dim), *constants = golden(s, "constants", size, dim);
        struct fkt_codec *c = open_dct(size, dim);
        struct fkt_calibration cal;
        CHECK_OK(fkt_calibration_embedded(&cal, c));
        CHECK_OK(fkt_calibration_check(&cal, c));
        CHECK(cal.dim == dim && cal.raw_dim == dim && cal.images == 0);
        CHECK_NEAR(cal.log_mean, f64_at(constants, 0), 1e-12);
        CHECK_REL(cal.log_spread, f64_at(constants, 1), 1e-12);
        CHECK_REL(cal.radius, f64_at(constants, 2), 1e-12);
        for (size_t i = 0; i < dim; i++)
            for (size_t j = 0; j < dim; j++) {
                CHECK_REL(cal.unmap[i * dim + j], i == j ? f64_at(scale, i) : 0, 1e-7);
                CHECK_REL(cal.map[i * dim + j], i == j ? 1 / f64_at(scale, i) : 0, 1e-7);
            }
        fkt_calibration_clear(&cal);
        fkt_codec_free(c);
    }
    fkt_safetensors_free(s);
    CHECK(fkt_alloc_live() == 0);
}

/* All coefficients kept: the transform loses nothing, so each pixel comes back, and lengths are kept. */
static void whole_transform_is_orthonormal_and_lossless(void **state)
{
    static const uint32_t sizes[] = {8, 9, 16, 31, 36};
    struct fkt_rng r;
    (void)state;
    fkt_rng_init(&r, 3, 0);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        uint32_t size = sizes[k], dim = 3 * size * size;
        struct fkt_codec *c = open_dct(size, dim);
        uint8_t *rgb = NULL, *back = NULL;
        float *z = NULL;
        double z2 = 0, p2 = 0;
        CHECK_OK(fkt_alloc(&rgb, dim));
        CHECK_OK(fkt_alloc(&back, dim));
        CHECK_OK(fkt_alloc(&z, dim));
        for (uint32_t i = 0; i < dim; i++) rgb[i] = (uint8_t)fkt_rng_below(&r, 256);
        CHECK_OK(fkt_codec_encode(c, rgb, 1, z));
        CHECK_OK(fkt_codec_decode(c, z, 1, back));
        CHECK(!memcmp(rgb, back, dim));
        for (uint32_t i = 0; i < dim; i++) z2 += (double)z[i] * z[i];
        for (uint32_t i = 0; i < dim; i += 3) {
            double y = (0.299 * rgb[i] + 0.587 * rgb[i + 1] + 0.114 * rgb[i + 2]) / 255;
            double cb = (rgb[i + 2] / 255.0 - y) / 1.772, cr = (rgb[i] / 255.0 - y) / 1.402;
            p2 += (y - 0.5) * (y - 0.5) + cb * cb + cr * cr;
        }
        CHECK_REL(z2, p2, 1e-6);
        fkt_free(rgb);
        fkt_free(back);
        fkt_free(z);
        fkt_codec_free(c);
    }
    CHECK(fkt_alloc_live() == 0);
}

/* A plain image has only its three means: first of each plane in the order, and comes back to the last bit. */
static void plain_images_survive(void **state)
{
    static const uint8_t colours[][3] = {{0, 0, 0},   {255, 255, 255}, {255, 0, 0},
                                         {0, 255, 0}, {0, 0, 255},     {128, 7, 201}};
    static uint8_t rgb[32 * 32 * 3], back[32 * 32 * 3];
    struct fkt_codec *c = open_dct(32, 64);
    float z[64];
    (void)state;
    for (size_t k = 0; k < sizeof colours / sizeof *colours; k++) {
        int large = 0;
        for (size_t i = 0; i < sizeof rgb; i++) rgb[i] = colours[k][i % 3];
        CHECK_OK(fkt_codec_encode(c, rgb, 1, z));
        for (int i = 0; i < 64; i++) large += fabsf(z[i]) > 1e-5f;
        CHECK(large <= 3 && large >= 1);
        CHECK_OK(fkt_codec_decode(c, z, 1, back));
        CHECK(!memcmp(rgb, back, sizeof rgb));
    }
    for (size_t i = 0; i < sizeof rgb; i++) rgb[i] = 255;
    CHECK_OK(fkt_codec_encode(c, rgb, 1, z));
    CHECK_NEAR(z[0], 16, 1e-5); /* luma 0.5 over 32 x 32, orthonormal: 0.5 * 32 */
    fkt_codec_free(c);
    CHECK(fkt_alloc_live() == 0);
}

static void latents_beyond_any_image_are_clamped(void **state)
{
    static uint8_t rgb[8 * 8 * 3];
    struct fkt_codec *c = open_dct(8, 3);
    (void)state;
    CHECK_OK(fkt_codec_decode(c, (const float[]){3e38f, 0, 0}, 1, rgb));
    for (size_t i = 0; i < sizeof rgb; i++) CHECK(rgb[i] == 255);
    CHECK_OK(fkt_codec_decode(c, (const float[]){-3e38f, 0, 0}, 1, rgb));
    for (size_t i = 0; i < sizeof rgb; i++) CHECK(rgb[i] == 0);
    CHECK_OK(fkt_codec_decode(c, (const float[]){-5, 0, 0}, 1, rgb)); /* black is -4: a little beyond */
    for (size_t i = 0; i < sizeof rgb; i++) CHECK(rgb[i] == 0);
    CHECK_OK(fkt_codec_decode(c, (const float[]){5, 0, 0}, 1, rgb));
    for (size_t i = 0; i < sizeof rgb; i++) CHECK(rgb[i] == 255);
    CHECK_STATUS(fkt_codec_decode(c, (const float[]){0, NAN, 0}, 1, rgb), FKT_E_NUMERIC);
    CHECK_STATUS(fkt_codec_decode(c, (const float[]){0, 0, 0, 0, 0, -INFINITY}, 2, rgb), FKT_E_NUMERIC);
    CHECK(strstr(fkt_error_text(), "number 2 of latent 1"));
    fkt_codec_free(c);
}

static void batches_do_not_matter(void **state)
{
    enum { N = 9, S = 20, D = 77 };
    static uint8_t rgb[N][S * S * 3], all_back[N][S * S * 3], one_back[S * S * 3];
    float all[N][D], one[D];
    struct fkt_codec *c = open_dct(S, D);
    struct fkt_rng r;
    (void)state;
    fkt_rng_init(&r, 4, 0);
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < sizeof rgb[i]; j++) rgb[i][j] = (uint8_t)fkt_rng_below(&r, 256);
    CHECK_OK(fkt_codec_encode(c, rgb[0], N, all[0]));
    CHECK_OK(fkt_codec_decode(c, all[0], N, all_back[0]));
    for (int i = 0; i < N; i++) {
        CHECK_OK(fkt_codec_encode(c, rgb[i], 1, one));
        CHECK(!memcmp(one, all[i], sizeof one));
        CHECK_OK(fkt_codec_decode(c, one, 1, one_back));
        CHECK(!memcmp(one_back, all_back[i], sizeof one_back));
    }
    CHECK_OK(fkt_codec_encode(c, rgb[0], 0, all[0]));
    fkt_codec_free(c);
    CHECK(fkt_alloc_live() == 0);
}

/* The layout of D is the head of the layout of any larger D: what was sorted is a corner, and the corner is large
 * enough. */
static void layouts_are_nested(void **state)
{
    static const uint32_t sizes[] = {8, 33, 100, 512};
    struct fkt_dct_coef *whole = NULL, *part = NULL;
    (void)state;
    CHECK_OK(fkt_alloc(&whole, FKT_DCT_DIM_MAX));
    CHECK_OK(fkt_alloc(&part, FKT_DCT_DIM_MAX));
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        uint32_t most = 3 * sizes[k] * sizes[k];
        if (most > FKT_DCT_DIM_MAX) most = FKT_DCT_DIM_MAX;
        CHECK_OK(fkt_dct_layout(whole, sizes[k], most));
        for (uint32_t dim = 1; dim <= most; dim += dim / 7 + 1) {
            CHECK_OK(fkt_dct_layout(part, sizes[k], dim));
            CHECK(!memcmp(part, whole, dim * sizeof *part));
        }
    }
    fkt_free(whole);
    fkt_free(part);
}

static void impossible_codecs_are_refused(void **state)
{
    static const struct fkt_codec_spec bad[] = {
        {.name = "dct", .size = 7, .dim = 0},   {.name = "dct", .size = 513, .dim = 0},
        {.name = "dct", .size = 8, .dim = 193}, {.name = "dct", .size = 512, .dim = 4097},
        {.name = "dct", .size = 0, .dim = 0},   {.name = "jpeg", .size = 32, .dim = 64},
        {.name = NULL, .size = 32, .dim = 64},  {.name = "", .size = 32, .dim = 64},
        {.name = "dct", .size = 32, .dim = ~0U}};
    struct fkt_codec *c = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_STATUS(fkt_codec_open(&c, &bad[i]), FKT_E_ARG);
        CHECK(!c && fkt_alloc_live() == 0);
    }
    c = open_dct(512, 4096);
    CHECK(fkt_codec_size(c) == 512 && fkt_codec_dim(c) == 4096 && !strcmp(fkt_codec_name(c), "dct"));
    fkt_codec_free(c);
    c = open_dct(32, 0);
    CHECK(!strcmp(fkt_codec_identity(c),
                  "dct/1 size=32 dim=64 block=32 colour=bt601-full order=1/(1+f^2)^1.2 chroma=1/8"));
    fkt_codec_free(c);
    fkt_codec_free(NULL);
}

static void a_difference_is_one_word(void **state)
{
    static const char long_a[] = "taesd/1 size=32 weights=0123456789abcdef0123456789abcdef0123456789abcdef",
                      long_b[] = "taesd/1 size=32 weights=fedcba98765432100123456789abcdef0123456789abcdef";
    static const struct {
        const char *a, *b, *in_a, *in_b;
    } rows[] = {{"dct/1 size=32 dim=8", "dct/1 size=64 dim=8", "size 32", "size 64"},
                {"dct/1 size=32", "taesd/1 size=32", "kind dct/1", "kind taesd/1"},
                {long_a, long_b, "weights 0123456789ab", "weights fedcba987654"},
                {"a/1", "a/1 size=3", "kind a/1", "kind a/1"},
                {"", "a/1", "nothing", "kind a/1"}};
    char a[FKT_DIFFERENCE_MAX], b[FKT_DIFFERENCE_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fkt_identity_difference(rows[i].a, rows[i].b, a, b);
        assert_string_equal(a, rows[i].in_a);
        assert_string_equal(b, rows[i].in_b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_and_coefficients_match_the_oracle),
        cmocka_unit_test(decoding_matches_the_oracle),
        cmocka_unit_test(built_in_calibration_matches_the_oracle),
        cmocka_unit_test(whole_transform_is_orthonormal_and_lossless),
        cmocka_unit_test(plain_images_survive),
        cmocka_unit_test(latents_beyond_any_image_are_clamped),
        cmocka_unit_test(batches_do_not_matter),
        cmocka_unit_test(layouts_are_nested),
        cmocka_unit_test(impossible_codecs_are_refused),
        cmocka_unit_test(a_difference_is_one_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
