/* SPDX-License-Identifier: Apache-2.0 */
/* Networks through the codec's front door: the same codec whatever file it came from, the same latents whatever the
 * chunking and the number of threads, honest refusals. */
#include "base/rng.h"
#include "base/threads.h"
#include "codec/family.h"
#include "fedkt/codec.h"
#include "nn/cpu.h"
#include "nn/engine.h"
#include "tests/support/check.h"
#include "tests/support/member.h"
#include "tests/support/scratch.h"

#include <sys/stat.h>

static struct scratch dir;
static struct member m, half[2];

static const char *pair(enum fkt_dtype dtype)
{
    static char encoder[600], decoder[600];
    snprintf(encoder, sizeof encoder, "%s/p%d_encoder.safetensors", dir.dir, (int)dtype);
    snprintf(decoder, sizeof decoder, "%s/p%d_decoder.safetensors", dir.dir, (int)dtype);
    for (int i = 0; i < 2; i++) {
        member_release(&half[i]);
        member_init(&half[i], 10 + (uint64_t)i);
        member_taesd(&half[i], i, 16, 4, 0);
        member_write(&half[i], i ? decoder : encoder, dtype);
    }
    return encoder;
}

static const char *dcae(int efficientvit, enum fkt_dtype dtype)
{
    struct member_dcae c = member_small_dcae;
    static char path[600];
    snprintf(path, sizeof path, "%s/dc%d.safetensors", dir.dir, efficientvit);
    c.efficientvit = efficientvit;
    member_release(&m);
    member_init(&m, 5);
    member_dcae(&m, &c);
    member_write(&m, path, dtype);
    return path;
}

static struct fkt_codec *open_codec(const char *name, uint32_t size, const char *weights)
{
    struct fkt_codec_spec spec = {.name = name, .size = size, .settings = {.weights = weights}};
    struct fkt_codec *c = NULL;
    CHECK_OK(fkt_codec_open(&c, &spec));
    return c;
}

static void paint(uint8_t *rgb, size_t n)
{
    struct fkt_rng r;
    fkt_rng_init(&r, 3, 3);
    for (size_t i = 0; i < n; i++) rgb[i] = (uint8_t)fkt_rng_below(&r, 256);
}

static void one_codec_whatever_the_file(void **state)
{
    static const enum fkt_dtype dtypes[] = {FKT_F32, FKT_F16, FKT_BF16};
    char first[256] = "", other[256] = "";
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct fkt_codec *c = open_codec("taesd", 16, pair(dtypes[i]));
        if (!i) snprintf(first, sizeof first, "%s", fkt_codec_identity(c));
        assert_string_equal(fkt_codec_identity(c), first);
        assert_string_equal(fkt_codec_name(c), "taesd");
        CHECK(fkt_codec_size(c) == 16 && fkt_codec_dim(c) == 16 && fkt_codec_dtype_used(c) == FKT_CODEC_DTYPE_F32);
        fkt_codec_free(c);
    }
    assert_true(!strncmp(first, "taesd/1 size=16 dim=16 scale=1 weights=", 39) && strlen(first) == 39 + 64);
    for (int i = 0; i < 6; i++) {
        struct fkt_codec *c = open_codec("dc-ae", 16, dcae(i % 2, dtypes[i / 2]));
        if (!i) snprintf(other, sizeof other, "%s", fkt_codec_identity(c));
        assert_string_equal(fkt_codec_identity(c), other);
        fkt_codec_free(c);
    }
    assert_true(!strncmp(other, "dc-ae/1 size=16 dim=128 scale=1 weights=", 40));
}

static void one_number_makes_another_codec(void **state)
{
    struct fkt_codec *a, *b;
    const char *path;
    (void)state;
    path = dcae(0, FKT_F32);
    a = open_codec("dc-ae", 16, path);
    member_find(&m, "decoder.norm_out.bias")->data[3] += 0.5F;
    member_write(&m, path, FKT_F32);
    b = open_codec("dc-ae", 16, path);
    assert_string_not_equal(fkt_codec_identity(a), fkt_codec_identity(b));
    fkt_codec_free(a);
    fkt_codec_free(b);
}

struct job {
    const struct fkt_codec *codec;
    const uint8_t *rgb;
    float *z;
    uint8_t *back;
    size_t n, chunk;
};

static fkt_status code_chunk(void *ctx, size_t item, unsigned worker)
{
    const struct job *j = ctx;
    size_t first = item * j->chunk, n = j->n - first < j->chunk ? j->n - first : j->chunk;
    size_t image = (size_t)fkt_codec_size(j->codec) * fkt_codec_size(j->codec) * 3, dim = fkt_codec_dim(j->codec);
    fkt_status st = fkt_codec_encode(j->codec, j->rgb + first * image, n, j->z + first * dim);
    (void)worker;
    return st == FKT_OK ? fkt_codec_decode(j->codec, j->z + first * dim, n, j->back + first * image) : st;
}

/* The same bits, with engines that come to be while three threads ask for them. */
static void chunks_and_threads_change_nothing(const struct fkt_codec *c, const struct fkt_codec *fresh)
{
    enum { N = 11, IMAGE = 16 * 16 * 3 };
    static uint8_t rgb[N * IMAGE], back[N * IMAGE], other[N * IMAGE];
    static float z[N * 128], y[N * 128];
    size_t bytes = N * fkt_codec_dim(c) * sizeof *z;
    struct job j = {.codec = fresh, .rgb = rgb, .z = y, .back = other, .n = N};
    paint(rgb, sizeof rgb);
    CHECK_OK(fkt_codec_encode(c, rgb, N, z));
    CHECK_OK(fkt_codec_decode(c, z, N, back));
    for (j.chunk = 1; j.chunk <= 7; j.chunk += 3) {
        memset(y, 0xFF, sizeof y);
        CHECK_OK(fkt_parallel(3, (N + j.chunk - 1) / j.chunk, code_chunk, &j, NULL, NULL));
        CHECK(!memcmp(y, z, bytes) && !memcmp(other, back, sizeof back));
    }
    CHECK_OK(fkt_codec_encode(c, rgb, 0, y));
}

static void bits_do_not_depend_on_company(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *path = i ? dcae(1, FKT_F32) : pair(FKT_F32), *name = i ? "dc-ae" : "tiny";
        struct fkt_codec *c = open_codec(name, 16, path), *fresh = open_codec(name, 16, path);
        chunks_and_threads_change_nothing(c, fresh);
        fkt_codec_free(c);
        fkt_codec_free(fresh);
    }
}

/* Pixels in the family's range, latents scaled and shifted, against the plain loops. */
static void ranges_are_the_familys(void **state)
{
    static uint8_t rgb[8 * 8 * 3], back[8 * 8 * 3];
    static float in[3 * 8 * 8], z[32], want[32], out[3 * 8 * 8];
    struct fkt_engine_spec es = {.batch = 1, .height = 8, .width = 8};
    struct fkt_engine *e = NULL;
    struct fkt_codec_facts facts;
    struct fkt_family f;
    struct fkt_codec *c;
    const char *path = dcae(0, FKT_F32);
    FILE *config = fopen(scratch_path(&dir, "config.json"), "w");
    (void)state;
    CHECK(config && fputs("{\"scaling_factor\": 0.5, \"shift_factor\": 0.25}", config) > 0 && fclose(config) == 0);
    paint(rgb, sizeof rgb);
    c = open_codec("dc-ae", 8, path);
    assert_non_null(strstr(fkt_codec_identity(c), " scale=0.5 shift=0.25 weights="));
    CHECK_OK(fkt_codec_encode(c, rgb, 1, z));
    CHECK_OK(fkt_codec_facts(c, &facts));
    assert_string_equal(facts.config, scratch_path(&dir, "config.json"));
    CHECK_OK(fkt_family_open(&f, path, NULL, NULL));
    for (int p = 0; p < 64; p++)
        for (int k = 0; k < 3; k++) in[k * 64 + p] = (float)rgb[p * 3 + k] / 127.5F - 1;
    CHECK_OK(fkt_engine_new(&e, &fkt_backend_ref, &f.net[0], f.weights[0], &es));
    CHECK_OK(fkt_engine_run(e, in, 1, want));
    fkt_engine_free(e);
    for (int i = 0; i < 32; i++) CHECK_NEAR(z[i], (want[i] - 0.25) * 0.5, 1e-4 * (1 + fabs(want[i])));
    es.height = es.width = 2;
    for (int i = 0; i < 32; i++) want[i] = z[i] / 0.5F + 0.25F;
    CHECK_OK(fkt_engine_new(&e, &fkt_backend_ref, &f.net[1], f.weights[1], &es));
    CHECK_OK(fkt_engine_run(e, want, 1, out));
    fkt_engine_free(e);
    CHECK_OK(fkt_codec_decode(c, z, 1, back));
    for (int p = 0; p < 64; p++)
        for (int k = 0; k < 3; k++)
            CHECK_NEAR(back[p * 3 + k], fmin(fmax((out[k * 64 + p] + 1) * 127.5, 0), 255), 0.51);
    fkt_family_clear(&f);
    fkt_codec_free(c);
    CHECK(remove(scratch_path(&dir, "config.json")) == 0);
}

/* Scale and shift are said to the last bit, and as short as that can be. */
static void identities_tell_neighbours_apart(void **state)
{
    static const char *const configs[] = {"{\"scaling_factor\": 0.41407}", "{\"scaling_factor\": 0.41407000000000005}",
                                          "{\"shift_factor\": 0.1}", "{\"shift_factor\": 0.10000000000000002}"};
    static const char *const want[] = {" scale=0.41407 weights=", " scale=0.41407000000000005 weights=",
                                       " scale=1 shift=0.1 weights=", " scale=1 shift=0.10000000000000002 weights="};
    const char *path = dcae(0, FKT_F32);
    (void)state;
    for (int i = 0; i < 4; i++) {
        FILE *config = fopen(scratch_path(&dir, "config.json"), "w");
        struct fkt_codec *c;
        CHECK(config && fputs(configs[i], config) > 0 && fclose(config) == 0);
        c = open_codec("dc-ae", 8, path);
        if (!strstr(fkt_codec_identity(c), want[i])) fail_msg("%s: '%s'", configs[i], fkt_codec_identity(c));
        fkt_codec_free(c);
    }
    CHECK(remove(scratch_path(&dir, "config.json")) == 0);
}

/* Far outside on both ends: clamped, not wrapped round. */
static void pixels_are_clamped(void **state)
{
    static uint8_t rgb[8 * 8 * 3];
    const char *path = dcae(1, FKT_F32);
    struct member_tensor *bias = member_find(&m, "decoder.project_out.op_list.2.conv.conv.bias");
    float z[32] = {0};
    (void)state;
    for (int high = 0; high < 2; high++) {
        struct fkt_codec *c;
        for (uint64_t i = 0; i < bias->count; i++) bias->data[i] = high ? 1e6F : -1e6F;
        member_write(&m, path, FKT_F32);
        c = open_codec("dc-ae", 8, path);
        CHECK_OK(fkt_codec_decode(c, z, 1, rgb));
        for (size_t i = 0; i < sizeof rgb; i++) CHECK(rgb[i] == (high ? 255 : 0));
        fkt_codec_free(c);
    }
}

static void refused(const struct fkt_codec_spec *spec, fkt_status want, const char *text)
{
    struct fkt_codec *c = NULL;
    CHECK_STATUS(fkt_codec_open(&c, spec), want);
    CHECK(!c);
    if (!strstr(fkt_error_text(), text)) fail_msg("'%s' does not say '%s'", fkt_error_text(), text);
}

static void impossible_wishes_are_refused(void **state)
{
    struct fkt_codec_spec spec = {.name = "taesd", .size = 20, .settings = {.weights = pair(FKT_F32)}};
    (void)state;
    refused(&spec, FKT_E_ARG, "cannot take images of 20 px: its sizes are multiples of 8");
    spec.size = 0;
    refused(&spec, FKT_E_ARG, "cannot take images of 0 px");
    spec.size = 1U << 31;
    refused(&spec, FKT_E_ARG, "cannot take images");
    spec.size = 16;
    spec.dim = 64;
    refused(&spec, FKT_E_ARG, "makes 16 numbers of 16 px images, not 64");
    spec.dim = 0;
    spec.name = "taesd3";
    refused(&spec, FKT_E_MISMATCH, "codec 'taesd3' has 16 latent channels");
    spec.name = "dc-ae-f32c32-in";
    refused(&spec, FKT_E_MISMATCH, "is of family 'dc-ae', the tensors are of 'taesd'");
    spec.name = "vae";
    refused(&spec, FKT_E_ARG, "there is no codec or guide 'vae'");
    assert_non_null(strstr(fkt_error_hint(), "dct, fedkt-ae, taesd, taesdxl, taesd3, taef1"));
    assert_non_null(strstr(fkt_error_hint(), "dc-ae-f128c512-mix"));
    spec.name = "taesd";
    spec.settings.weights = scratch_path(&dir, "nowhere");
    refused(&spec, FKT_E_IO, "nowhere");
}

static void a_nan_is_named(void **state)
{
    static uint8_t rgb[16 * 16 * 3];
    const char *path = pair(FKT_F32);
    struct fkt_codec_spec spec = {.name = "taesd", .size = 16, .settings = {.weights = path}};
    struct fkt_codec *c;
    float z[16] = {0};
    (void)state;
    member_find(&half[0], "7.conv.2.bias")->data[5] = NAN;
    member_write(&half[0], path, FKT_F32);
    refused(&spec, FKT_E_NUMERIC, "7.conv.2.bias");
    member_write(&half[0], path, FKT_BF16);
    refused(&spec, FKT_E_NUMERIC, "7.conv.2.bias");
    c = open_codec("taesd", 16, pair(FKT_F32));
    z[3] = NAN;
    CHECK_STATUS(fkt_codec_decode(c, z, 1, rgb), FKT_E_NUMERIC);
    fkt_codec_free(c);
}

/* Finite weights whose product overflows: the NaN or infinity is caught on the way out, not stored. */
static void overflow_is_caught(void **state)
{
    static uint8_t rgb[16 * 16 * 3];
    const char *path = pair(FKT_F32);
    struct fkt_codec *c;
    float z[16];
    (void)state;
    paint(rgb, sizeof rgb);
    for (int i = 0; i < 2; i++) {
        struct member_tensor *t = member_find(&half[i], i ? "19.weight" : "14.weight");
        for (uint64_t k = 0; k < t->count; k++) t->data[k] = k % 2 ? 3e38F : -3e38F;
    }
    member_write(&half[0], path, FKT_F32);
    c = open_codec("tiny", 16, path);
    CHECK_STATUS(fkt_codec_encode(c, rgb, 1, z), FKT_E_NUMERIC);
    fkt_codec_free(c);
}

/* The same far inside, where a ReLU after it makes 0 of NaN: in every number type, in both directions. */
static void overflow_inside_is_caught(void **state)
{
    static uint8_t rgb[16 * 16 * 3];
    const char *path = pair(FKT_F32);
    float z[16] = {0};
    int possible = 0;
    (void)state;
    CHECK_OK(fkt_cpu_bf16(&possible));
    paint(rgb, sizeof rgb);
    for (int i = 0; i < 2; i++) {
        struct member_tensor *t = member_find(&half[i], i ? "3.conv.2.weight" : "4.conv.2.weight");
        char *file = strdup(path), *at = strstr(file, "_encoder");
        CHECK(t);
        for (uint64_t k = 0; k < t->count; k++) t->data[k] = k % 2 ? 2e38F : -3e38F;
        if (i) memcpy(at, "_decoder", 8);
        member_write(&half[i], file, FKT_F32);
        free(file);
    }
    for (int i = 0; i < 1 + (possible != 0); i++) {
        struct fkt_codec_spec spec = {.name = "tiny", .size = 16, .settings = {.weights = path}};
        struct fkt_codec *c = NULL;
        spec.settings.dtype = i ? FKT_CODEC_DTYPE_BF16 : FKT_CODEC_DTYPE_F32;
        CHECK_OK(fkt_codec_open(&c, &spec));
        CHECK_STATUS(fkt_codec_encode(c, rgb, 1, z), FKT_E_NUMERIC);
        CHECK(strstr(fkt_error_text(), "4.conv.2.weight"));
        memset(z, 0, sizeof z);
        CHECK_STATUS(fkt_codec_decode(c, z, 1, rgb), FKT_E_NUMERIC);
        CHECK(strstr(fkt_error_text(), "3.conv.2.weight"));
        fkt_codec_free(c);
    }
}

/* AUTO ends as one of the two; bf16, where it can run, stays near f32 and is the same codec. */
static void number_types_stay_close(void **state)
{
    static uint8_t rgb[2 * 16 * 16 * 3];
    static float z[3][2 * 128];
    static const enum fkt_codec_dtype types[3] = {FKT_CODEC_DTYPE_F32, FKT_CODEC_DTYPE_AUTO, FKT_CODEC_DTYPE_BF16};
    struct fkt_codec_spec spec = {.name = "dc-ae", .size = 16, .settings = {.weights = dcae(0, FKT_BF16)}};
    double error = 0, size = 0;
    int possible = 0;
    (void)state;
    paint(rgb, sizeof rgb);
    CHECK(setenv("FEDKT_CACHE", dir.dir, 1) == 0);
    CHECK_OK(fkt_cpu_bf16(&possible));
    for (int i = 0; i < 2 + (possible != 0); i++) {
        struct fkt_codec *c = NULL;
        spec.settings.dtype = types[i];
        CHECK_OK(fkt_codec_open(&c, &spec));
        CHECK(fkt_codec_dtype_used(c) != FKT_CODEC_DTYPE_AUTO && (i == 1 || fkt_codec_dtype_used(c) == types[i]));
        CHECK_OK(fkt_codec_encode(c, rgb, 2, z[i]));
        fkt_codec_free(c);
    }
    CHECK(unsetenv("FEDKT_CACHE") == 0);
    for (int i = 0; possible && i < 2 * 128; i++) {
        error = fmax(error, fabs((double)z[2][i] - z[0][i]));
        size = fmax(size, fabs((double)z[0][i]));
    }
    if (possible) CHECK(error > 0 && error <= 0.05 * size);
}

static void facts_are_reported(void **state)
{
    struct fkt_codec_facts f;
    struct fkt_codec *c = open_codec("dc-ae", 16, dcae(1, FKT_F32));
    uint8_t rgb[16 * 16 * 3] = {0};
    float z[128];
    (void)state;
    CHECK_OK(fkt_codec_facts(c, &f));
    assert_string_equal(f.kind, "dc-ae");
    assert_string_equal(f.layout, "efficientvit");
    CHECK(f.latent_channels == 8 && f.reduction == 4 && f.latent_scale == 1 && f.latent_shift == 0);
    CHECK(f.parameters[0] > 1000 && f.parameters[1] > 1000 && f.flops[0] > 1e6 && f.flops[1] > 1e6);
    CHECK(f.batch[0] >= 1 && !f.packed_bytes[0] && !f.packed_bytes[1] && f.file[0] && !f.file[1] && !f.config);
    CHECK_OK(fkt_codec_encode(c, rgb, 1, z));
    CHECK_OK(fkt_codec_facts(c, &f));
    CHECK(f.packed_bytes[0] && !f.packed_bytes[1]); /* who only encodes does not pay for the decoder */
    fkt_codec_free(c);
    c = open_codec("dct", 16, NULL);
    CHECK_OK(fkt_codec_facts(c, &f));
    assert_string_equal(f.kind, "dct");
    CHECK(!f.layout[0] && !f.parameters[0] && !f.file[0] && f.latent_scale == 1);
    fkt_codec_free(c);
}

static int set_up(void **state)
{
    (void)state;
    scratch_init(&dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    member_release(&m);
    member_release(&half[0]);
    member_release(&half[1]);
    scratch_release(&dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_codec_whatever_the_file),
        cmocka_unit_test(one_number_makes_another_codec),
        cmocka_unit_test(bits_do_not_depend_on_company),
        cmocka_unit_test(ranges_are_the_familys),
        cmocka_unit_test(identities_tell_neighbours_apart),
        cmocka_unit_test(pixels_are_clamped),
        cmocka_unit_test(impossible_wishes_are_refused),
        cmocka_unit_test(a_nan_is_named),
        cmocka_unit_test(overflow_is_caught),
        cmocka_unit_test(overflow_inside_is_caught),
        cmocka_unit_test(number_types_stay_close),
        cmocka_unit_test(facts_are_reported),
    };
    return check_nothing_left(cmocka_run_group_tests(tests, set_up, tear_down));
}
