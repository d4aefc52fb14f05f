/* SPDX-License-Identifier: Apache-2.0 */
/* golden.c - a neural codec beside PyTorch; see golden.h. */
#include "tests/support/golden.h"

#include "tests/support/check.h"
#include "tests/support/golden_weights.h"

#define VECTORS FKT_TEST_VECTORS "/codec/"
enum { THIN_FROM = 4096, THIN_TO = 1024 }; /* of oracle/codec_vectors.py */

void golden_image(uint8_t *rgb, uint32_t side, uint32_t which)
{
    for (uint32_t y = 0; y < side; y++)
        for (uint32_t x = 0; x < side; x++)
            for (uint32_t c = 0; c < 3; c++) {
                uint32_t fine = x * (7 + 4 * which) + y * (13 + 2 * c) + x * y * (3 + which) + c * 331 + which * 97;
                uint32_t coarse = x / 8 * 160 + y / 8 * 96 + c * 128;
                *rgb++ = (uint8_t)((fine % 512 + coarse % 512) / 4);
            }
}

static void copy_file(const char *from, const char *to)
{
    char buffer[4096];
    FILE *a = fopen(from, "rb"), *b = fopen(to, "wb");
    size_t n;
    CHECK(a && b);
    while ((n = fread(buffer, 1, sizeof buffer, a)) > 0) CHECK(fwrite(buffer, 1, n, b) == n);
    CHECK(fclose(a) == 0 && fclose(b) == 0);
}

static void open_vectors(struct golden *g, const char *stem)
{
    char path[512];
    snprintf(path, sizeof path, VECTORS "%s.safetensors", stem);
    CHECK_OK(fkt_safetensors_open(&g->vectors, path));
}

static void write_weights(const char *stem, const char *suffix, const char *path)
{
    char list[512];
    snprintf(list, sizeof list, VECTORS "%s%s.txt", stem, suffix);
    golden_weights_write(list, path, NULL);
}

void golden_open(struct golden *g, const char *stem)
{
    const char *layout = strrchr(stem, '.') + 1;
    char path[512];
    memset(g, 0, sizeof *g);
    scratch_init(&g->scratch);
    if (!strcmp(layout, "taesd")) {
        write_weights(stem, "_encoder", scratch_path(&g->scratch, "taesd_encoder.safetensors"));
        write_weights(stem, "_decoder", scratch_path(&g->scratch, "taesd_decoder.safetensors"));
    } else if (!strcmp(layout, "diffusers")) {
        write_weights(stem, "", scratch_path(&g->scratch, "diffusion_pytorch_model.safetensors"));
        snprintf(path, sizeof path, VECTORS "%s.config", stem);
        copy_file(path, scratch_path(&g->scratch, "config.json"));
    } else {
        write_weights(stem, "", scratch_path(&g->scratch, "model.safetensors"));
    }
    open_vectors(g, stem);
    CHECK_OK(fkt_family_open(&g->family, g->scratch.dir, NULL, NULL));
    if (strcmp(g->family.layout, layout)) fail_msg("'%s' was taken for layout '%s'", stem, g->family.layout);
}

void golden_open_real(struct golden *g, const char *stem, const char *folder, const char *codec)
{
    memset(g, 0, sizeof *g);
    open_vectors(g, stem);
    CHECK_OK(fkt_family_open(&g->family, folder, codec, NULL));
}

void golden_release(struct golden *g)
{
    fkt_family_clear(&g->family);
    fkt_safetensors_free(g->vectors);
    if (*g->scratch.dir) scratch_release(&g->scratch);
    memset(g, 0, sizeof *g);
}

static const float *wanted(const struct golden *g, const char *what, uint32_t side, size_t *count)
{
    static float copy[2][GOLDEN_IMAGES * THIN_FROM];
    float *out = copy[*what == 'd'];
    char name[32];
    const struct fkt_tensor *t;
    snprintf(name, sizeof name, "%s.%u", what, side);
    t = fkt_safetensors_find(g->vectors, name);
    if (!t) fail_msg("no golden tensor '%s'", name);
    CHECK(t->shape[0] == GOLDEN_IMAGES && t->count <= GOLDEN_IMAGES * THIN_FROM);
    CHECK_OK(fkt_tensor_copy_f32(out, t));
    *count = (size_t)t->count / GOLDEN_IMAGES;
    return out;
}

/* (GOLDEN_PICTURES, C, H, W) through one half, every step-th number of each image compared. */
static void compare(struct golden_error *out, const struct golden *g, const struct golden_run *run, int half,
                    const float *in, uint32_t side)
{
    struct fkt_engine_spec spec = {.batch = GOLDEN_IMAGES,
                                   .height = side,
                                   .width = side,
                                   .precision = run->precision,
                                   .low_memory = run->low_memory};
    struct fkt_engine *e = NULL;
    struct fkt_shape shape;
    size_t thin, count, step;
    const float *want = wanted(g, half == FKT_CODEC_SIDE_ENCODER ? "encode" : "decode", run->side, &thin);
    float *got = NULL;
    CHECK_OK(fkt_engine_new(&e, run->backend, &g->family.net[half], g->family.weights[half], &spec));
    shape = fkt_engine_output(e);
    count = (size_t)shape.c * shape.h * shape.w;
    step = count <= THIN_FROM ? 1 : (count / THIN_TO) | 1;
    CHECK(thin == (count + step - 1) / step);
    CHECK_OK(fkt_alloc(&got, GOLDEN_IMAGES * count));
    CHECK_OK(fkt_engine_run(e, in, GOLDEN_IMAGES, got));
    out->apart[half] = out->rms[half] = out->size[half] = 0.0;
    for (size_t i = 0; i < GOLDEN_IMAGES * thin; i++) {
        double w = want[i], d = fabs(got[i / thin * count + i % thin * step] - w);
        if (!(d <= out->apart[half])) out->apart[half] = d >= 0 ? d : INFINITY;
        out->rms[half] += d * d / (double)(GOLDEN_IMAGES * thin);
        if (fabs(w) > out->size[half]) out->size[half] = fabs(w);
    }
    out->rms[half] = sqrt(out->rms[half]);
    fkt_free(got);
    fkt_engine_free(e);
}

void golden_measure(struct golden_error *out, const struct golden *g, const struct golden_run *run)
{
    uint32_t side = run->side;
    size_t plane = (size_t)side * side, latent;
    uint8_t *rgb = NULL;
    float *x = NULL;
    CHECK_OK(fkt_alloc(&rgb, 3 * plane));
    CHECK_OK(fkt_alloc(&x, GOLDEN_IMAGES * 3 * plane));
    for (uint32_t k = 0; k < GOLDEN_IMAGES; k++) {
        golden_image(rgb, side, k);
        for (size_t i = 0; i < 3 * plane; i++)
            x[3 * plane * k + i % 3 * plane + i / 3] =
                (float)(rgb[i] / 255.0 * g->family.pixel_scale[i % 3] + g->family.pixel_shift[i % 3]);
    }
    compare(out, g, run, FKT_CODEC_SIDE_ENCODER, x, side);
    compare(out, g, run, FKT_CODEC_SIDE_DECODER, wanted(g, "encode", side, &latent), side / g->family.reduction);
    fkt_free(x);
    fkt_free(rgb);
}
