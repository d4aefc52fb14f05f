/* SPDX-License-Identifier: Apache-2.0 */
/* test_devices.c - a device reaches predictions, trainers and codecs, on any machine: card 63 is on none. */
#include "fedkt/codec.h"
#include "tests/support/toy_learning.h"

#include <string.h>

static struct toy toy;
static const struct fkt_device processor = {FKT_DEVICE_CPU, 0}, by_itself = {FKT_DEVICE_AUTO, 0},
                               missing = {FKT_DEVICE_CUDA, 63};

static void predictions_run_where_they_are_asked_to(void **state)
{
    struct fkt_predict_options o = {.threads = 1, .device = missing};
    struct fkt_model *m = toy_model(TOY_CLASSES, 1);
    float here[6 * TOY_CLASSES], there[6 * TOY_CLASSES];
    (void)state;
    toy_draw(&toy, 3, 6);
    memset(here, 0, sizeof here);
    CHECK_STATUS(fkt_model_predict(m, toy.rgb, 6, here, NULL, &o), FKT_E_STATE);
    CHECK(strstr(fkt_error_text(), "'cuda:63'") && fkt_error_hint()[0]);
    CHECK_OK(fkt_model_predict(m, toy.rgb, 0, NULL, NULL, &o)); /* nothing runs */
    o.device = processor;
    CHECK_OK(fkt_model_predict(m, toy.rgb, 6, here, NULL, &o));
    CHECK_OK(fkt_model_predict(m, toy.rgb, 6, there, NULL, NULL));
    CHECK(!memcmp(here, there, sizeof here));
    o.device = by_itself;
    CHECK_OK(fkt_model_predict(m, toy.rgb, 6, there, NULL, &o));
    for (size_t i = 0; i < 6 * TOY_CLASSES; i++) CHECK_NEAR(here[i], there[i], 1e-4);
    fkt_model_free(m);
}

static void trainers_say_where_they_run(void **state)
{
    struct fkt_model *m = toy_model(TOY_CLASSES, 1);
    struct fkt_trainer_spec spec = {.start = m, .recipe = toy_recipe(), .source = {.images = toy_source, .ctx = &toy}};
    struct fkt_trainer *t = NULL;
    (void)state;
    toy_draw(&toy, 3, 16);
    spec.recipe.device = missing;
    CHECK_STATUS(fkt_trainer_new(&t, &spec), FKT_E_STATE);
    CHECK(!t && toy.calls == 0); /* no image was asked for */
    spec.recipe.device = by_itself;
    CHECK_OK(fkt_trainer_new(&t, &spec));
    CHECK(fkt_trainer_device(t).kind != FKT_DEVICE_AUTO && fkt_trainer_device(t).index == 0);
    fkt_trainer_free(t);
    spec.recipe.device = processor;
    CHECK_OK(fkt_trainer_new(&t, &spec));
    CHECK(fkt_trainer_device(t).kind == FKT_DEVICE_CPU);
    fkt_trainer_free(t);
    fkt_model_free(m);
}

static void a_codec_without_a_network_opens_no_card(void **state)
{
    struct fkt_codec_spec spec = {.name = "dct", .size = 32, .settings = {.device = missing}};
    struct fkt_codec *c = NULL;
    (void)state;
    CHECK_OK(fkt_codec_open(&c, &spec));
    CHECK(fkt_codec_device_used(c).kind == FKT_DEVICE_CPU && fkt_codec_device_used(c).index == 0);
    fkt_codec_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predictions_run_where_they_are_asked_to),
        cmocka_unit_test(trainers_say_where_they_run),
        cmocka_unit_test(a_codec_without_a_network_opens_no_card),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
