/* SPDX-License-Identifier: Apache-2.0 */
/* Guided images by gradient: both backends of the processor against PyTorch, the views, and that an image does not
 * depend on its batch. */
#include "pipeline/guided.h"

#include "base/rng.h"
#include "tests/support/guided_case.h"

static void the_definition_is_pytorchs(void **state)
{
    (void)state;
    guided_case_check(&fkt_learner_ref, 1);
    guided_case_check(&fkt_learner_ref, 6);
}

static void onednn_is_pytorchs(void **state)
{
    (void)state;
    guided_case_check(&fkt_learner_onednn, 1);
    guided_case_check(&fkt_learner_onednn, 6);
}

static void views_are_the_oracles(void **state)
{
    struct guided_case c;
    (void)state;
    guided_case_init(&c);
    for (uint32_t step = 1; step <= 6; step++)
        for (size_t i = 0; i < GUIDED_N; i++) {
            const struct fkt_guided_view v = fkt_guided_view(&c.image[i], step, c.spec.shift);
            const size_t at = ((step - 1) * GUIDED_N + i) * 3;
            assert_int_equal(v.top, guided_whole(&c, "views", at));
            assert_int_equal(v.left, guided_whole(&c, "views", at + 1));
            assert_int_equal(v.flip, guided_whole(&c, "views", at + 2));
        }
    guided_case_release(&c);
}

/* <move(x), y> = <x, move_back(y)> for every view of the shift. */
static void the_way_back_is_the_transpose(void **state)
{
    float x[GUIDED_PIXELS], y[GUIDED_PIXELS], mx[GUIDED_PIXELS], by[GUIDED_PIXELS];
    struct fkt_rng r;
    (void)state;
    fkt_rng_init(&r, 3, 1);
    for (size_t i = 0; i < GUIDED_PIXELS; i++) {
        x[i] = (float)fkt_rng_normal(&r);
        y[i] = (float)fkt_rng_normal(&r);
    }
    for (int v = 0; v < 5 * 5 * 2; v++) {
        const struct fkt_guided_view view = {v % 5 - 2, v / 5 % 5 - 2, v / 25};
        double forward = 0, back = 0;
        fkt_guided_move(&view, GUIDED_SIDE, x, mx);
        fkt_guided_move_back(&view, GUIDED_SIDE, y, by);
        for (size_t i = 0; i < GUIDED_PIXELS; i++) {
            forward += (double)mx[i] * (double)y[i];
            back += (double)x[i] * (double)by[i];
        }
        CHECK_NEAR(back, forward, 1e-4);
        if (!view.top && !view.left && !view.flip) assert_memory_equal(x, mx, sizeof x);
    }
}

static void an_image_does_not_depend_on_its_batch(void **state)
{
    struct guided_case c;
    struct fkt_guided *g = NULL;
    uint8_t together[GUIDED_N * GUIDED_PIXELS], alone[GUIDED_PIXELS];
    float a[GUIDED_N * GUIDED_D], b[GUIDED_D];
    (void)state;
    guided_case_init(&c);
    c.spec.backend = &fkt_learner_onednn;
    c.spec.steps = 6;
    CHECK_OK(fkt_guided_new(&g, &c.spec));
    CHECK_OK(fkt_guided_run(g, c.image, c.u, c.s, GUIDED_N, together, a));
    for (size_t i = 0; i < GUIDED_N; i++) {
        CHECK_OK(fkt_guided_run(g, c.image + i, c.u + i * GUIDED_D, c.s + i * GUIDED_K, 1, alone, b));
        assert_memory_equal(alone, together + i * GUIDED_PIXELS, GUIDED_PIXELS);
        assert_memory_equal(b, a + i * GUIDED_D, sizeof b);
    }
    fkt_guided_free(g);
    guided_case_release(&c);
}

static void bad_input_is_refused(void **state)
{
    struct guided_case c;
    struct fkt_guided_spec bad;
    struct fkt_guided *g = NULL;
    uint8_t rgb[GUIDED_PIXELS];
    (void)state;
    guided_case_init(&c);
    c.spec.backend = &fkt_learner_ref;
    bad = c.spec;
    bad.size = 16;
    CHECK_STATUS(fkt_guided_new(&g, &bad), FKT_E_MISMATCH);
    bad = c.spec;
    bad.guide.output.c = 8;
    CHECK_STATUS(fkt_guided_new(&g, &bad), FKT_E_MISMATCH);
    bad = c.spec;
    bad.decoder.input.h = 5;
    CHECK_STATUS(fkt_guided_new(&g, &bad), FKT_E_MISMATCH);
    bad = c.spec;
    bad.guide.input.w = 9;
    CHECK_STATUS(fkt_guided_new(&g, &bad), FKT_E_MISMATCH);
    bad = c.spec;
    bad.rate = NAN;
    CHECK_STATUS(fkt_guided_new(&g, &bad), FKT_E_ARG);
    bad = c.spec;
    bad.rho = -1;
    CHECK_STATUS(fkt_guided_new(&g, &bad), FKT_E_ARG);
    CHECK(!g);
    c.spec.steps = 1;
    CHECK_OK(fkt_guided_new(&g, &c.spec));
    CHECK_STATUS(fkt_guided_run(g, c.image, c.u, c.s, 0, rgb, NULL), FKT_E_ARG);
    c.s[0] = NAN;
    CHECK_STATUS(fkt_guided_run(g, c.image, c.u, c.s, 1, rgb, NULL), FKT_E_NUMERIC);
    fkt_guided_free(g);
    guided_case_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_definition_is_pytorchs),
        cmocka_unit_test(onednn_is_pytorchs),
        cmocka_unit_test(views_are_the_oracles),
        cmocka_unit_test(the_way_back_is_the_transpose),
        cmocka_unit_test(an_image_does_not_depend_on_its_batch),
        cmocka_unit_test(bad_input_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
