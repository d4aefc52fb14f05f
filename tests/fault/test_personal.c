/* SPDX-License-Identifier: Apache-2.0 */
/* test_personal.c - each allocation of the personalised protocol fails in turn. Local training is left out: the
 * trainer's own sweep has it, and an average of models is taken here without it. */
#include "fedkt/train.h"

#include "classifier/average.h"
#include "learning/personal.h"
#include "tests/support/sweep.h"

enum { SIZE = 8, N = 12 };

static uint8_t rgb[N * SIZE * SIZE * 3];
static uint32_t label[N] = {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0};
static char *classes[] = {(char[]){"a"}, (char[]){"b"}};
static struct fkt_training_set pool = {
    .rgb = rgb, .label = label, .n = N, .size = SIZE, .classes = classes, .n_classes = 2};
static struct fkt_model *model;

static fkt_status split_own(void)
{
    const struct fkt_personal_labels data = {label, N, 2};
    const struct fkt_partition_spec p = {.rule = FKT_PARTITION_DIRICHLET, .alpha = 1, .sites = 3, .seed = 1};
    struct fkt_personal_split s;
    fkt_status st = fkt_personal_split_init(&s, &data, NULL, &p, 0.25, 1);
    fkt_personal_split_clear(&s);
    return st;
}

static fkt_status split_test(void)
{
    const struct fkt_personal_labels data = {label, N, 2};
    const struct fkt_partition_spec p = {.rule = FKT_PARTITION_PATHOLOGICAL, .k = 1, .sites = 3, .seed = 1};
    struct fkt_personal_split s;
    fkt_status st = fkt_personal_split_init(&s, &data, &data, &p, 0, 1);
    fkt_personal_split_clear(&s);
    return st;
}

static fkt_status average(void)
{
    struct fkt_model_average *a = NULL;
    struct fkt_model *out = NULL;
    fkt_status st;
    FKT_TRY(fkt_model_average_new(&a, model));
    FKT_TRY(fkt_model_average_add(a, model, 3));
    FKT_TRY(fkt_model_average_model(a, &out));
out:
    fkt_model_average_free(a);
    fkt_model_free(out);
    return st;
}

static fkt_status tuned(void)
{
    struct fkt_personal_spec s = {.pretrained = model,
                                  .data = &pool,
                                  .partition = {.rule = FKT_PARTITION_IID, .sites = 2, .seed = 1},
                                  .holdout = 0.25,
                                  .ways = 1U << FKT_PERSONAL_GLOBAL | 1U << FKT_PERSONAL_TUNED};
    struct fkt_personal p;
    fkt_status st;
    fkt_recipe_default(&s.local);
    s.local.threads = 1;
    s.local.epochs = 1;
    s.tune = s.local;
    st = fkt_personalize(&p, &s);
    fkt_personal_clear(&p);
    return st;
}

static void each_allocation_fails_in_turn(void **state)
{
    (void)state;
    CHECK(sweep_allocations(split_own, NULL) > 10);
    CHECK(sweep_allocations(split_test, NULL) > 10);
    CHECK(sweep_allocations(average, NULL) > 5);
    CHECK(sweep_allocations(tuned, NULL) > 50);
}

static int set_up(void **state)
{
    const struct fkt_model_spec spec = {.architecture = FKT_ARCHITECTURE_RESNET8,
                                        .size = SIZE,
                                        .classes = (const char *const *)classes,
                                        .n_classes = 2,
                                        .seed = 1};
    const struct fkt_predict_options one = {.threads = 1};
    float logits[2];
    (void)state;
    for (size_t i = 0; i < sizeof rgb; i++) rgb[i] = (uint8_t)(i * 37 % 251);
    CHECK_OK(fkt_model_new(&model, &spec));
    /* what a prediction makes ready stays with the model: made once, and no leak of a failing run */
    CHECK_OK(fkt_model_predict(model, rgb, 1, logits, NULL, &one));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fkt_model_free(model);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation_fails_in_turn)};
    return check_nothing_left(cmocka_run_group_tests(tests, set_up, tear_down));
}
