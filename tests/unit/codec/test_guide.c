/* SPDX-License-Identifier: Apache-2.0 */
/* Guides beside PyTorch, from bytes to features, on both backends; what a guide promises; and what is refused. The
 * weights are made here; names, shapes and results are those of oracle/guides.py. */
#include "codec/codec.h"
#include "codec/family.h"
#include "nn/cpu.h"
#include "nn/engine.h"
#include "tests/support/check.h"
#include "tests/support/golden.h"
#include "tests/support/golden_weights.h"
#include "tests/support/scratch.h"

#include <unistd.h>

#define VECTORS FKT_TEST_VECTORS "/guide/"
enum { IMAGES = 2, SIDE_MAX = 100, DIM_MAX = 2048 };

/* The call fails so, and its sentence says so. */
#define CHECK_FAILS(call, want, says)                                                                                  \
    do {                                                                                                               \
        CHECK_STATUS(call, want);                                                                                      \
        if (!strstr(fkt_error_text(), says)) fail_msg("'%s' does not say '%s'", fkt_error_text(), says);               \
    } while (0)

static struct scratch dir;

static const char *weights_of(const char *list)
{
    char from[512], name[64];
    const char *path;
    snprintf(from, sizeof from, VECTORS "%s.txt", list);
    snprintf(name, sizeof name, "%s.safetensors", list);
    path = scratch_path(&dir, name);
    if (access(path, F_OK) != 0) golden_weights_write(from, path, NULL);
    return path;
}

static struct fkt_codec *open_guide(const char *name, const char *weights, uint32_t size)
{
    const struct fkt_codec_spec spec = {.name = name, .size = size, .settings.weights = weights};
    struct fkt_codec *c = NULL;
    CHECK_OK(fkt_codec_open(&c, &spec));
    CHECK(!fkt_codec_decodes(c) && fkt_codec_size(c) == size);
    return c;
}

static void refused(const char *name, const char *weights, uint32_t size, fkt_status want, const char *says)
{
    const struct fkt_codec_spec spec = {.name = name, .size = size, .settings.weights = weights};
    struct fkt_codec *c = NULL;
    CHECK_FAILS(fkt_codec_open(&c, &spec), want, says);
    CHECK(!c);
}

static const struct {
    const char *list, *name; /* NULL: by the file alone */
    uint32_t size, input;
} cases[] = {
    {"small-basic", "resnet", 32, 32},
    {"small-basic", "resnet", 16, 32},
    {"small-basic", "resnet@48", 40, 48},
    {"small-bottleneck", "resnet@64", 32, 64},
    {"small-bottleneck", NULL, 64, 64},
    {"small-lite0", NULL, 32, 64},
    {"small-lite0", NULL, 64, 64},
    {"small-lite0", NULL, 100, 32},
    {"fedkt-guide", "fedkt-guide", 32, 32},
    {"fedkt-guide", "fedkt-guide", 64, 32},
    {"fedkt-guide", "fedkt-guide", 24, 32},
    {"resnet18", "resnet18@64", 32, 64},
    {"resnet34", "resnet34@32", 32, 32},
    {"resnet50", "resnet50@32", 32, 32},
    {"efficientnet-lite0", "efficientnet-lite0@64", 32, 64},
};
enum { CASES = sizeof cases / sizeof *cases };

static struct fkt_codec *open_case(size_t k)
{
    char by_file[600];
    const char *weights = weights_of(cases[k].list);
    snprintf(by_file, sizeof by_file, "%s@%u", weights, cases[k].input);
    return cases[k].name ? open_guide(cases[k].name, weights, cases[k].size) : open_guide(by_file, NULL, cases[k].size);
}

static void compare(size_t k, const struct fkt_codec *c, const float *got, double limit, const char *how)
{
    static float want[IMAGES * DIM_MAX];
    struct fkt_safetensors *vectors = NULL;
    const struct fkt_tensor *t;
    double apart = 0, largest = 0;
    char path[512], name[64];
    snprintf(path, sizeof path, VECTORS "%s.safetensors", cases[k].list);
    snprintf(name, sizeof name, "features.%u.%u", cases[k].size, cases[k].input);
    CHECK_OK(fkt_safetensors_open(&vectors, path));
    t = fkt_safetensors_find(vectors, name);
    CHECK(t && t->count == (uint64_t)IMAGES * fkt_codec_dim(c));
    CHECK_OK(fkt_tensor_copy_f32(want, t));
    for (size_t i = 0; i < t->count; i++) {
        double d = fabs((double)got[i] - want[i]);
        if (!(d <= apart)) apart = d >= 0 ? d : INFINITY;
        largest = fmax(largest, fabs((double)want[i]));
    }
    fkt_safetensors_free(vectors);
    print_message("%-20s %3u px to %3u px, %s: %.1e of %.2f\n", cases[k].list, cases[k].size, cases[k].input, how,
                  apart, largest);
    if (!(apart <= limit * largest)) fail_msg("%s: off by %.2e of %.2e", cases[k].list, apart, largest);
}

static void images(uint8_t *rgb, uint32_t size)
{
    for (uint32_t i = 0; i < IMAGES; i++) golden_image(rgb + (size_t)i * size * size * 3, size, i);
}

static void features_agree_with_pytorch(void **state)
{
    static uint8_t rgb[IMAGES * SIDE_MAX * SIDE_MAX * 3];
    static float z[IMAGES * DIM_MAX];
    (void)state;
    for (size_t k = 0; k < CASES; k++) {
        struct fkt_codec *c = open_case(k);
        images(rgb, cases[k].size);
        CHECK_OK(fkt_codec_encode(c, rgb, IMAGES, z));
        compare(k, c, z, 2e-5, "codec");
        fkt_codec_free(c);
    }
}

/* Eight bits of mantissa between layers. */
static void half_the_bits_agree_with_pytorch(void **state)
{
    static uint8_t rgb[IMAGES * SIDE_MAX * SIDE_MAX * 3];
    static float z[IMAGES * DIM_MAX];
    int possible = 0;
    (void)state;
    CHECK_OK(fkt_cpu_bf16(&possible));
    if (!possible) skip();
    for (size_t k = 0; k < CASES; k++) {
        struct fkt_codec_spec spec = {.name = cases[k].name, .size = cases[k].size};
        struct fkt_codec *c = NULL;
        if (!cases[k].name) continue;
        spec.settings.weights = weights_of(cases[k].list);
        spec.settings.dtype = FKT_CODEC_DTYPE_BF16;
        CHECK_OK(fkt_codec_open(&c, &spec));
        images(rgb, cases[k].size);
        CHECK_OK(fkt_codec_encode(c, rgb, IMAGES, z));
        compare(k, c, z, 5e-2, "bf16");
        fkt_codec_free(c);
    }
}

/* The same list of operations in plain loops; what fkt_codec_net gives is enough to run it. */
static void plain_loops_agree_with_pytorch(void **state)
{
    static uint8_t rgb[IMAGES * SIDE_MAX * SIDE_MAX * 3];
    static float x[IMAGES * SIDE_MAX * SIDE_MAX * 3], z[IMAGES * DIM_MAX];
    (void)state;
    for (size_t k = 0; k < CASES; k++) {
        struct fkt_engine_spec spec = {.batch = IMAGES, .height = cases[k].size, .width = cases[k].size};
        size_t plane = (size_t)cases[k].size * cases[k].size;
        struct fkt_codec_net n;
        struct fkt_engine *e = NULL;
        struct fkt_codec *c;
        if (strncmp(cases[k].list, "small", 5) != 0) continue;
        c = open_case(k);
        images(rgb, cases[k].size);
        CHECK_OK(fkt_codec_net(c, FKT_CODEC_SIDE_ENCODER, &n));
        CHECK(n.input.c == 3 && n.input.h == cases[k].size && n.output.c == fkt_codec_dim(c) && n.output.h == 1);
        for (size_t i = 0; i < IMAGES * 3 * plane; i++)
            x[i / (3 * plane) * 3 * plane + i % 3 * plane + i % (3 * plane) / 3] =
                (float)rgb[i] / 255.0F * n.pixel_scale[i % 3] + n.pixel_shift[i % 3];
        CHECK_OK(fkt_engine_new(&e, &fkt_backend_ref, n.net, n.weights, &spec));
        CHECK_OK(fkt_engine_run(e, x, IMAGES, z));
        compare(k, c, z, 1e-5, "loops");
        fkt_engine_free(e);
        fkt_codec_free(c);
    }
}

static void names_and_identities(void **state)
{
    struct fkt_codec *a = open_guide("resnet18", weights_of("resnet18"), 32),
                     *b = open_guide("resnet18@64", weights_of("resnet18"), 32),
                     *c = open_guide(weights_of("resnet18"), NULL, 32);
    struct fkt_codec_facts f;
    const char *id = fkt_codec_identity(a);
    struct fkt_codec_net n;
    uint8_t rgb[3];
    float z = 0;
    (void)state;
    CHECK(strstr(id, "resnet/1 size=32 dim=512 input=224 resample=bilinear mean=0.485,0.456,0.406 "
                     "std=0.229,0.224,0.225 weights=") == id);
    CHECK(strcmp(id, fkt_codec_identity(b)) != 0 && strstr(fkt_codec_identity(b), " input=64 "));
    assert_string_equal(id, fkt_codec_identity(c));
    assert_string_equal(strstr(id, "weights="), strstr(fkt_codec_identity(b), "weights="));
    assert_string_equal(fkt_codec_name(b), "resnet18@64");
    assert_string_equal(fkt_codec_name(c), "resnet");
    CHECK_OK(fkt_codec_facts(b, &f));
    assert_string_equal(f.variant, "basic 2+2+2+2, 7x7 stem");
    CHECK(f.input == 64 && f.latent_channels == 512 && f.flops[0] > 0 && f.flops[1] == 0 && f.parameters[1] == 0);
    CHECK_FAILS(fkt_codec_decode(a, &z, 1, rgb), FKT_E_STATE, "guide 'resnet18' has no decoder");
    CHECK_FAILS(fkt_codec_net(a, FKT_CODEC_SIDE_DECODER, &n), FKT_E_STATE, "guide 'resnet18' has no decoder");
    CHECK_OK(fkt_codec_want(a, 1));
    CHECK_FAILS(fkt_codec_want(a, 0), FKT_E_ARG, "'resnet18' is a guide, not a codec");
    fkt_codec_free(a);
    fkt_codec_free(b);
    fkt_codec_free(c);
}

static void a_codec_is_no_guide(void **state)
{
    const struct fkt_codec_spec spec = {.name = "dct", .size = 32};
    struct fkt_codec *c = NULL;
    struct fkt_codec_net n;
    (void)state;
    CHECK_OK(fkt_codec_open(&c, &spec));
    CHECK(fkt_codec_decodes(c));
    CHECK_FAILS(fkt_codec_want(c, 1), FKT_E_ARG, "'dct' is a codec, not a guide");
    CHECK_FAILS(fkt_codec_net(c, FKT_CODEC_SIDE_ENCODER, &n), FKT_E_STATE, "codec 'dct' has no networks");
    fkt_codec_free(c);
}

static void other_weights_are_refused(void **state)
{
    (void)state;
    refused(
        "resnet34", weights_of("resnet18"), 32, FKT_E_MISMATCH,
        "guide 'resnet34' has 512 features (basic 3+4+6+3, 7x7 stem), the tensors have 512 (basic 2+2+2+2, 7x7 stem)");
    refused("resnet18", weights_of("fedkt-guide"), 32, FKT_E_MISMATCH, "3x3 stem");
    refused("efficientnet-lite0", weights_of("resnet18"), 32, FKT_E_MISMATCH,
            "guide 'efficientnet-lite0' is of family 'efficientnet-lite0', the tensors are of 'resnet'");
    refused("efficientnet-lite0", weights_of("small-lite0"), 32, FKT_E_MISMATCH, "has 1280 features");
    refused("taesd", weights_of("small-basic"), 32, FKT_E_MISMATCH,
            "codec 'taesd' is of family 'taesd', the tensors are of 'resnet'");
    refused("resnet18", "/nowhere/at/all", 32, FKT_E_IO, "cannot read weights '/nowhere/at/all'");
    refused("/nowhere/at/all.safetensors", NULL, 32, FKT_E_IO, "cannot read");
}

static void sizes_that_do_not_fit_are_refused(void **state)
{
    const char *w = weights_of("small-bottleneck"), *small = weights_of("small-basic");
    (void)state;
    refused("resnet@100", w, 32, FKT_E_ARG, "cannot have an input of 100 px: its sides are multiples of 32 up to 512");
    refused("resnet@36", small, 32, FKT_E_ARG, "multiples of 8");
    refused("resnet@1024", w, 32, FKT_E_ARG, "'resnet@1024' is not the name of a codec or guide");
    refused("resnet@0", w, 32, FKT_E_ARG, "is not the name of a codec or guide");
    refused("resnet@", w, 32, FKT_E_ARG, "is not the name of a codec or guide");
    refused("resnet@64px", w, 32, FKT_E_ARG, "is not the name of a codec or guide");
    refused("taesd@64", NULL, 32, FKT_E_ARG, "a side behind '@' is for guides");
    refused("resnet", w, 4, FKT_E_ARG, "cannot take images of 4 px: its sizes are 8 to 1024");
    refused("resnet", w, 2000, FKT_E_ARG, "cannot take images of 2000 px");
}

static void bend(const char *from, const char *to, size_t keep, long at, uint32_t bits)
{
    FILE *a = fopen(from, "rb"), *b = fopen(to, "wb");
    int ch;
    CHECK(a && b);
    for (size_t n = 0; n < keep && (ch = fgetc(a)) != EOF; n++) fputc(ch, b);
    if (at < 0) {
        CHECK(fseek(b, at, SEEK_END) == 0);
        CHECK(fwrite(&bits, sizeof bits, 1, b) == 1);
    }
    CHECK(fclose(a) == 0 && fclose(b) == 0);
}

static void damaged_files_are_refused(void **state)
{
    const char *w = weights_of("small-basic");
    char path[512];
    (void)state;
    snprintf(path, sizeof path, "%s", scratch_path(&dir, "short.safetensors"));
    bend(w, path, 5000, 0, 0);
    refused("resnet", path, 32, FKT_E_FORMAT, "short.safetensors");
    snprintf(path, sizeof path, "%s", scratch_path(&dir, "nan.safetensors"));
    bend(w, path, (size_t)-1, -4096, 0x7fc00000);
    refused("resnet", path, 32, FKT_E_NUMERIC, "is not finite");
}

static int begin(void **state)
{
    (void)state;
    scratch_init(&dir);
    return 0;
}

static int end(void **state)
{
    (void)state;
    scratch_release(&dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_agree_with_pytorch),
        cmocka_unit_test(half_the_bits_agree_with_pytorch),
        cmocka_unit_test(plain_loops_agree_with_pytorch),
        cmocka_unit_test(names_and_identities),
        cmocka_unit_test(a_codec_is_no_guide),
        cmocka_unit_test(other_weights_are_refused),
        cmocka_unit_test(sizes_that_do_not_fit_are_refused),
        cmocka_unit_test(damaged_files_are_refused),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
