/* SPDX-License-Identifier: Apache-2.0 */
/* Engines for bytes: what backends without bytes are given and how their output is rounded, against the formulas of
 * engine.h, for every number of images around the batch. */
#include "nn/engine.h"

#include "base/rng.h"
#include "tests/support/check.h"

enum { SIDE = 4, PLANE = SIDE * SIDE, EACH = 3 * PLANE, BATCH = 4, IMAGES = 11 };
static const struct fkt_engine_spec small = {.batch = BATCH, .height = SIDE, .width = SIDE};

static float table[3][256]; /* another one for each channel */

static int fill_table(void **state)
{
    (void)state;
    for (int c = 0; c < 3; c++)
        for (int v = 0; v < 256; v++) table[c][v] = (float)v / 255.0F * (float)(c + 2) - 1.0F - (float)c;
    return 0;
}

/* No operation: the output is the input. */
static struct fkt_engine *make(const struct fkt_engine_spec *spec, struct fkt_net *net, struct fkt_weights **w)
{
    struct fkt_engine *e = NULL;
    fkt_net_init(net, 3);
    CHECK_OK(fkt_net_status(net));
    CHECK_OK(fkt_weights_bind(w, net, NULL, 0, NULL, NULL));
    CHECK_OK(fkt_engine_new(&e, &fkt_backend_ref, net, *w, spec));
    return e;
}

static void clear(struct fkt_engine *e, struct fkt_net *net, struct fkt_weights *w)
{
    fkt_engine_free(e);
    fkt_weights_free(w);
    fkt_net_clear(net);
}

static void pixels_go_through_the_table_of_their_channel(void **state)
{
    static uint8_t rgb[IMAGES * EACH];
    static float out[IMAGES * EACH + 1];
    float copy[3][256];
    struct fkt_engine_spec spec = small;
    struct fkt_weights *w = NULL;
    struct fkt_net net;
    struct fkt_engine *e;
    (void)state;
    memcpy(copy, table, sizeof copy);
    spec.pixels_in = (const float(*)[256])copy;
    e = make(&spec, &net, &w);
    memset(copy, 0, sizeof copy); /* the engine has its own */
    for (size_t i = 0; i < sizeof rgb; i++) rgb[i] = (uint8_t)(i * 37 + i / 256);
    for (size_t n = 0; n <= IMAGES; n++) {
        for (size_t i = 0; i <= IMAGES * EACH; i++) out[i] = -7;
        CHECK_OK(fkt_engine_run_bytes(e, rgb, n, out));
        for (size_t i = 0; i < n; i++)
            for (size_t c = 0; c < 3; c++)
                for (size_t p = 0; p < PLANE; p++)
                    CHECK(out[(3 * i + c) * PLANE + p] == table[c][rgb[(i * PLANE + p) * 3 + c]]);
        for (size_t i = n * EACH; i <= IMAGES * EACH; i++) CHECK(out[i] == -7);
    }
    clear(e, &net, w);
}

/* The formula of engine.h in long double; -1: NaN. */
static int rounded(float x, float scale, float shift)
{
    long double v = floorl(((long double)x - (long double)shift) * 255 / (long double)scale + 0.5L);
    return isnan(x) ? -1 : v < 0 ? 0 : v > 255 ? 255 : (int)v;
}

static void numbers_become_the_nearest_byte(void **state)
{
    static const float scales[][2] = {{1, 0}, {2, -1}};
    static float in[IMAGES * EACH];
    static uint8_t rgb[IMAGES * EACH + 1];
    struct fkt_rng r;
    (void)state;
    fkt_rng_init(&r, 5, 0);
    for (int k = 0; k < 2; k++) {
        struct fkt_engine_spec spec = small;
        struct fkt_weights *w = NULL;
        struct fkt_net net;
        struct fkt_engine *e;
        spec.bytes_out = 1;
        spec.out_scale = scales[k][0];
        spec.out_shift = scales[k][1];
        e = make(&spec, &net, &w);
        for (size_t i = 0; i < IMAGES * EACH; i++)
            in[i] = scales[k][0] * (float)(1.2 * fkt_rng_unit(&r) - 0.1) + scales[k][1];
        in[0] = INFINITY;
        in[1] = -INFINITY;
        in[2] = scales[k][0] * 0.5F / 255.0F + scales[k][1];
        in[3] = 3e38F;
        for (size_t n = 0; n <= IMAGES; n++) {
            memset(rgb, 7, sizeof rgb);
            CHECK_OK(fkt_engine_run_to_bytes(e, in, n, rgb));
            for (size_t i = 0; i < n * EACH; i++) {
                const size_t image = i / EACH, c = i % EACH / PLANE, p = i % PLANE;
                CHECK(rgb[(image * PLANE + p) * 3 + c] == rounded(in[i], spec.out_scale, spec.out_shift));
            }
            for (size_t i = n * EACH; i < sizeof rgb; i++) CHECK(rgb[i] == 7);
        }
        for (size_t at = 0; at < IMAGES * EACH; at += 2 * EACH + 1) {
            const float was = in[at];
            in[at] = NAN;
            CHECK_STATUS(fkt_engine_run_to_bytes(e, in, IMAGES, rgb), FKT_E_NUMERIC);
            assert_string_equal(fkt_error_text(), "the network gave NaN");
            in[at] = was;
        }
        CHECK_OK(fkt_engine_run_to_bytes(e, in, IMAGES, rgb));
        clear(e, &net, w);
    }
}

static void an_engine_takes_what_it_was_made_for(void **state)
{
    static float in[EACH], out[EACH];
    static uint8_t rgb[EACH];
    struct fkt_engine_spec spec = small;
    struct fkt_weights *w = NULL;
    struct fkt_net net;
    struct fkt_engine *e = make(&spec, &net, &w);
    (void)state;
    CHECK_STATUS(fkt_engine_run_bytes(e, rgb, 1, out), FKT_E_STATE);
    CHECK_STATUS(fkt_engine_run_to_bytes(e, in, 1, rgb), FKT_E_STATE);
    assert_string_equal(fkt_error_text(), "the engine was made for floats in and floats out");
    CHECK_OK(fkt_engine_run(e, in, 1, out));
    clear(e, &net, w);
    spec.pixels_in = (const float(*)[256])table;
    e = make(&spec, &net, &w);
    CHECK_STATUS(fkt_engine_run(e, in, 1, out), FKT_E_STATE);
    CHECK_STATUS(fkt_engine_run_to_bytes(e, in, 1, rgb), FKT_E_STATE);
    clear(e, &net, w);
    spec.pixels_in = NULL;
    spec.bytes_out = 1;
    spec.out_scale = 1;
    e = make(&spec, &net, &w);
    CHECK_STATUS(fkt_engine_run(e, in, 1, out), FKT_E_STATE);
    CHECK_STATUS(fkt_engine_run_bytes(e, rgb, 1, out), FKT_E_STATE);
    clear(e, &net, w);
}

static void bytes_have_three_channels_and_a_scale(void **state)
{
    struct fkt_engine_spec spec = small;
    struct fkt_engine *e = NULL;
    struct fkt_net net;
    (void)state;
    fkt_net_init(&net, 4);
    spec.pixels_in = (const float(*)[256])table;
    CHECK_STATUS(fkt_engine_new(&e, &fkt_backend_ref, &net, NULL, &spec), FKT_E_ARG);
    spec = small;
    spec.bytes_out = 1;
    spec.out_scale = 1;
    CHECK_STATUS(fkt_engine_new(&e, &fkt_backend_ref, &net, NULL, &spec), FKT_E_ARG);
    fkt_net_clear(&net);
    fkt_net_init(&net, 3);
    for (int k = 0; k < 4; k++) {
        const float scales[4] = {0, -1, NAN, INFINITY};
        spec.out_scale = scales[k];
        CHECK_STATUS(fkt_engine_new(&e, &fkt_backend_ref, &net, NULL, &spec), FKT_E_ARG);
    }
    CHECK(!e);
    fkt_net_clear(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_go_through_the_table_of_their_channel),
        cmocka_unit_test(numbers_become_the_nearest_byte),
        cmocka_unit_test(an_engine_takes_what_it_was_made_for),
        cmocka_unit_test(bytes_have_three_channels_and_a_scale),
    };
    return cmocka_run_group_tests(tests, fill_table, NULL);
}
