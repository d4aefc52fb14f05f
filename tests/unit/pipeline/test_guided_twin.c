/* SPDX-License-Identifier: Apache-2.0 */
/* The fast twin: its input, checked against a decoder that takes no notice of s; and files that do not belong. */
#include "pipeline/guided_twin.h"

#include "codec/family.h"
#include "nn/backends.h"
#include "tests/support/check.h"
#include "tests/support/golden_weights.h"
#include "tests/support/scratch.h"

enum { LATENT = 4, SIDE = 2, RAW = LATENT * SIDE * SIDE, K = 3, D = 5, WIDTH = 8, S = 8 * SIDE, PIXELS = 3 * S * S };
static const struct fkt_guided_pair pair = {"c0", "a1", "ca"};
#define MINE "{\"codec_sha256\":\"c0\",\"guide_sha256\":\"a1\",\"guide_calibration_sha256\":\"ca\"}"
#define OTHER "{\"codec_sha256\":\"c0\",\"guide_sha256\":\"a2\",\"guide_calibration_sha256\":\"ca\"}"

static void add(struct fkt_st_writer *w, float **kept, const char *name, unsigned rank, uint64_t a, uint64_t b)
{
    const uint64_t shape[4] = {a, b, 3, 3};
    const size_t n = (size_t)(rank == 1 ? a : a * b * 9);
    CHECK_OK(fkt_alloc(kept, n));
    golden_weights_fill(*kept, name, rank, shape, 0, n);
    if (b > LATENT && rank == 4 && !strcmp(name, "1.weight")) { /* the first LATENT channels as in a plain decoder */
        uint64_t plain[4] = {a, LATENT, 3, 3};
        float *x = NULL;
        CHECK_OK(fkt_alloc(&x, (size_t)a * LATENT * 9));
        golden_weights_fill(x, name, rank, plain, 0, (size_t)a * LATENT * 9);
        memset(*kept, 0, n * sizeof **kept);
        for (uint64_t i = 0; i < a; i++) memcpy(*kept + i * b * 9, x + i * LATENT * 9, LATENT * 9 * sizeof *x);
        fkt_free(x);
    }
    CHECK_OK(fkt_st_writer_add(w, name, FKT_F32, rank, shape, *kept));
}

/* TAESD's decoder with `channels` of input; those beyond LATENT have no effect unless `marks`. */
static void write_decoder(const char *path, uint64_t channels, const char *meta, int marks)
{
    static const int blocks[] = {3, 4, 5, 8, 9, 10, 13, 14, 15, 18}, bare[] = {7, 12, 17};
    struct fkt_st_writer *w = NULL;
    float *kept[80] = {0};
    size_t n = 0;
    char name[32];
    CHECK_OK(fkt_st_writer_new(&w));
    if (meta) CHECK_OK(fkt_st_writer_meta(w, "fedkt.guided", meta));
    add(w, &kept[n++], "1.weight", 4, WIDTH, channels);
    for (uint64_t i = 0; marks && i < WIDTH; i++) kept[0][i * channels * 9 + LATENT * 9 + 4] = 1;
    add(w, &kept[n++], "1.bias", 1, WIDTH, 0);
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
        for (int c = 0; c < 6; c += 2) {
            snprintf(name, sizeof name, "%d.conv.%d.weight", blocks[b], c);
            add(w, &kept[n++], name, 4, WIDTH, WIDTH);
            snprintf(name, sizeof name, "%d.conv.%d.bias", blocks[b], c);
            add(w, &kept[n++], name, 1, WIDTH, 0);
        }
    for (int b = 0; b < 3; b++) {
        snprintf(name, sizeof name, "%d.weight", bare[b]);
        add(w, &kept[n++], name, 4, WIDTH, WIDTH);
    }
    add(w, &kept[n++], "19.weight", 4, 3, WIDTH);
    add(w, &kept[n++], "19.bias", 1, 3, 0);
    CHECK_OK(fkt_st_writer_write(w, path, 0));
    fkt_st_writer_free(w);
    for (size_t i = 0; i < n; i++) fkt_free(kept[i]);
}

struct world {
    struct scratch dir;
    struct fkt_calibration cal;
    float centre[RAW], unmap[RAW * D];
    struct fkt_guided_twin_spec spec;
    double u[2 * D], s[2 * K];
};

static void world_init(struct world *w)
{
    memset(w, 0, sizeof *w);
    scratch_init(&w->dir);
    for (int i = 0; i < RAW; i++) w->centre[i] = (float)(0.1 * sin(i));
    for (int i = 0; i < RAW * D; i++) w->unmap[i] = (float)(0.5 * cos(3 * i));
    for (int i = 0; i < 2 * D; i++) w->u[i] = sin(5 * i);
    for (int i = 0; i < 2 * K; i++) w->s[i] = cos(7 * i);
    w->cal = (struct fkt_calibration){.raw_dim = RAW, .dim = D, .centre = w->centre, .unmap = w->unmap};
    w->spec = (struct fkt_guided_twin_spec){
        .pair = pair,
        .decoder = {.input = {LATENT, SIDE, SIDE}, .output = {3, S, S}, .latent_scale = 0.5, .latent_shift = 0.25},
        .codec = &w->cal,
        .features = K,
        .backend = &fkt_backend_onednn,
        .batch = 2};
    for (int c = 0; c < 3; c++) w->spec.decoder.pixel_scale[c] = 1;
}

/* The first channels of a twin are the codec's latents, in its order and units. */
static void without_features_it_is_the_decoder(void **state)
{
    struct world w;
    struct fkt_guided_twin *t = NULL;
    struct fkt_safetensors *file = NULL;
    struct fkt_net net = {0};
    struct fkt_weights *weights = NULL;
    struct fkt_engine *plain = NULL;
    const struct fkt_engine_spec spec = {.batch = 1, .height = SIDE, .width = SIDE};
    float z[2 * RAW], want[2 * PIXELS];
    uint8_t rgb[2 * PIXELS], other[2 * PIXELS];
    const char *path;
    (void)state;
    world_init(&w);
    path = scratch_path(&w.dir, "plain.safetensors");
    write_decoder(path, LATENT, NULL, 0);
    CHECK_OK(fkt_safetensors_open(&file, path));
    CHECK_OK(fkt_taesd_decoder(&net, file));
    CHECK_OK(fkt_weights_bind(&weights, &net, (const struct fkt_safetensors *const[]){file}, 1, NULL, NULL));
    CHECK_OK(fkt_engine_new(&plain, &fkt_backend_ref, &net, weights, &spec));
    for (int i = 0; i < 2 * RAW; i++) {
        double sum = (double)w.centre[i % RAW];
        for (int j = 0; j < D; j++) sum += (double)w.unmap[i % RAW * D + j] * w.u[i / RAW * D + j];
        z[i] = (float)(sum / 0.5 + 0.25);
    }
    CHECK_OK(fkt_engine_run(plain, z, 2, want));
    path = scratch_path(&w.dir, "twin.safetensors");
    write_decoder(path, LATENT + K, "[" OTHER "," MINE "]", 0);
    CHECK_OK(fkt_guided_twin_open(&t, path, &w.spec));
    CHECK_OK(fkt_guided_twin_run(t, w.u, w.s, 2, rgb));
    for (size_t i = 0; i < sizeof rgb; i++) {
        const size_t n = i / PIXELS, p = i % PIXELS, c = p / (S * S);
        const float x = 255 * want[i];
        CHECK_NEAR(rgb[n * PIXELS + p % (S * S) * 3 + c], x < 0 ? 0 : x > 255 ? 255 : x, 0.51);
    }
    fkt_guided_twin_free(t);
    path = scratch_path(&w.dir, "marks.safetensors"); /* and the next are s */
    write_decoder(path, LATENT + K, MINE, 1);
    CHECK_OK(fkt_guided_twin_open(&t, path, &w.spec));
    CHECK_OK(fkt_guided_twin_run(t, w.u, w.s, 2, rgb));
    w.s[0] += 2;
    CHECK_OK(fkt_guided_twin_run(t, w.u, w.s, 2, other));
    CHECK(memcmp(rgb, other, PIXELS) != 0);
    assert_memory_equal(rgb + PIXELS, other + PIXELS, PIXELS);
    w.u[0] = INFINITY;
    CHECK_STATUS(fkt_guided_twin_run(t, w.u, w.s, 2, other), FKT_E_NUMERIC);
    fkt_guided_twin_free(t);
    fkt_engine_free(plain);
    fkt_weights_free(weights);
    fkt_net_clear(&net);
    fkt_safetensors_free(file);
    scratch_release(&w.dir);
}

static void refuses(struct world *w, const char *meta, uint64_t channels, fkt_status want, const char *words)
{
    struct fkt_guided_twin *t = NULL;
    const char *path = scratch_path(&w->dir, "bad.safetensors");
    remove(path);
    write_decoder(path, channels, meta, 0);
    CHECK_STATUS(fkt_guided_twin_open(&t, path, &w->spec), want);
    if (!strstr(fkt_error_text(), words)) fail_msg("'%s' does not say '%s'", fkt_error_text(), words);
    CHECK(!t);
}

static void a_twin_of_another_pair_is_refused(void **state)
{
    struct world w;
    (void)state;
    world_init(&w);
    refuses(&w, NULL, LATENT + K, FKT_E_FORMAT, "does not say which codec");
    refuses(&w, "7", LATENT + K, FKT_E_FORMAT, "does not say which codec");
    refuses(&w, "{}", LATENT + K, FKT_E_MISMATCH, "another codec");
    refuses(&w, "[]", LATENT + K, FKT_E_MISMATCH, "another codec");
    refuses(&w, OTHER, LATENT + K, FKT_E_MISMATCH, "another guide");
    refuses(&w, "[{}," OTHER "]", LATENT + K, FKT_E_MISMATCH, "another guide");
    refuses(&w, MINE, LATENT + K + 1, FKT_E_MISMATCH, "takes 8 channels, codec and guide make 7");
    w.spec.pair.guide_calibration = "cb";
    refuses(&w, MINE, LATENT + K, FKT_E_MISMATCH, "another calibration of the guide");
    w.spec.pair = pair;
    w.spec.decoder.output.h = w.spec.decoder.output.w = 2 * S;
    refuses(&w, MINE, LATENT + K, FKT_E_MISMATCH, "images of 16 px, the codec's of 32 px");
    scratch_release(&w.dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_features_it_is_the_decoder),
        cmocka_unit_test(a_twin_of_another_pair_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
