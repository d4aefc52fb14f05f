/* SPDX-License-Identifier: Apache-2.0 */
/* The last layer alone: against a numpy oracle (oracle/tune.py), on separable features, and what it refuses. */
#include "classifier/model.h"
#include "tests/support/toy_learning.h"
#include "tests/support/vectors.h"

enum { F = 64, ROWS = 100, CLASSES = 10 };
static float x[ROWS * F];
static uint32_t label[ROWS];
static const char *const names[CLASSES] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};

static void fill(size_t n, uint32_t classes)
{
    for (size_t i = 0; i < n; i++) {
        label[i] = (uint32_t)(7 * i % classes);
        for (size_t f = 0; f < F; f++)
            x[i * F + f] = (float)(sin(0.37 * (double)((i + 1) * (f + 1))) / 2 + (f / 5 == label[i] ? 1.5 : 0));
    }
}

static struct fkt_model *model(uint32_t classes)
{
    const struct fkt_model_spec spec = {
        .architecture = FKT_ARCHITECTURE_RESNET8, .size = 8, .classes = names, .n_classes = classes};
    struct fkt_model *m = NULL;
    CHECK_OK(fkt_model_new(&m, &spec));
    CHECK(fkt_model_features(m) == F);
    for (size_t k = 0; k < classes; k++) {
        for (size_t f = 0; f < F; f++)
            m->array[m->net.n_slots - 2][k * F + f] = (float)(0.05 * cos((double)k + 0.1 * (double)f));
        m->array[m->net.n_slots - 1][k] = (float)(0.01 * (double)k);
    }
    return m;
}

static size_t hits_of(const struct fkt_model *m, size_t n)
{
    static float logits[ROWS * CLASSES];
    size_t hits = 0;
    fkt_model_last_layer(m, x, n, logits);
    for (size_t i = 0; i < n; i++) {
        const float *z = logits + i * m->n_classes;
        size_t best = 0;
        for (size_t k = 1; k < m->n_classes; k++)
            if (z[k] > z[best]) best = k;
        hits += best == label[i];
    }
    return hits;
}

static void the_last_layer_is_that_of_numpy(void **state)
{
    json_t *root, *cases = vectors_open(&root, "classifier/tune.json"), *one;
    size_t i;
    (void)state;
    json_array_foreach (cases, i, one) {
        const size_t n = (size_t)vectors_int(one, "n");
        const uint32_t classes = (uint32_t)vectors_int(one, "classes");
        const json_t *weight = json_object_get(one, "weight"), *bias = json_object_get(one, "bias");
        struct fkt_model *m = model(classes), *start = model(classes);
        struct fkt_recipe r;
        fkt_recipe_default(&r);
        r.epochs = (uint32_t)vectors_int(one, "epochs");
        r.batch = (uint32_t)vectors_int(one, "batch");
        r.rate = vectors_number(one, "rate");
        r.momentum = vectors_number(one, "momentum");
        r.decay = vectors_number(one, "decay");
        r.nesterov = (int)vectors_int(one, "nesterov");
        r.schedule = (enum fkt_schedule)fkt_schedule_parse(vectors_text(one, "schedule"));
        r.step_every = vectors_number(one, "step_every");
        r.step_by = vectors_number(one, "step_by");
        r.smoothing = vectors_number(one, "smoothing");
        r.seed = (uint64_t)vectors_int(one, "seed");
        fill(n, classes);
        CHECK_OK(fkt_head_tune(m, &r, x, label, n));
        CHECK(json_array_size(weight) == (classes * F + 12) / 13 && json_array_size(bias) == classes);
        for (size_t k = 0; k < classes; k++)
            CHECK_NEAR(m->array[m->net.n_slots - 1][k], json_number_value(json_array_get(bias, k)), 2e-6);
        for (size_t k = 0; k < json_array_size(weight); k++)
            CHECK_NEAR(m->array[m->net.n_slots - 2][13 * k], json_number_value(json_array_get(weight, k)), 2e-6);
        CHECK(hits_of(m, n) == (size_t)vectors_int(one, "hits"));
        for (size_t s = 0; s + 2 < m->net.n_slots; s++) /* nothing but the last layer was touched */
            CHECK(!memcmp(m->array[s], start->array[s], fkt_slot_count(&m->net.slot[s]) * sizeof(float)));
        fkt_model_free(m);
        fkt_model_free(start);
    }
    CHECK(i == 4);
    json_decref(root);
}

static void separable_features_are_learned_whole(void **state)
{
    struct fkt_model *a = model(CLASSES), *b = model(CLASSES), *c = model(CLASSES);
    struct fkt_recipe r;
    (void)state;
    fill(ROWS, CLASSES);
    fkt_recipe_default(&r);
    r.rate = 0.2;
    CHECK(hits_of(a, ROWS) < 50);
    CHECK_OK(fkt_head_tune(a, &r, x, label, ROWS));
    CHECK(hits_of(a, ROWS) == ROWS);
    CHECK_OK(fkt_head_tune(b, &r, x, label, ROWS));
    CHECK(toy_same(a, b));
    r.seed = 2;
    CHECK_OK(fkt_head_tune(c, &r, x, label, ROWS));
    CHECK(!toy_same(a, c));
    fkt_model_free(a);
    fkt_model_free(b);
    fkt_model_free(c);
}

static void failing_leaves_the_model_alone(void **state)
{
    struct fkt_model *m = model(CLASSES), *before = model(CLASSES);
    struct fkt_recipe r;
    (void)state;
    fkt_recipe_default(&r);
    fill(ROWS, CLASSES);
    label[41] = 10;
    CHECK_STATUS(fkt_head_tune(m, &r, x, label, ROWS), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "label 10 of image 41 is outside the network's 10 classes"));
    label[41] = 0;
    x[3 * F + 5] = NAN;
    CHECK_STATUS(fkt_head_tune(m, &r, x, label, ROWS), FKT_E_NUMERIC);
    CHECK(strstr(fkt_error_text(), "feature 5 of image 3 is not finite"));
    x[3 * F + 5] = 0;
    CHECK_STATUS(fkt_head_tune(m, &r, x, label, 0), FKT_E_ARG);
    r.epochs = 0;
    CHECK_STATUS(fkt_head_tune(m, &r, x, label, ROWS), FKT_E_ARG);
    r.epochs = 30;
    r.rate = 1e6;
    r.decay = 0.9;
    r.schedule = FKT_SCHEDULE_CONSTANT;
    CHECK_STATUS(fkt_head_tune(m, &r, x, label, ROWS), FKT_E_NUMERIC);
    CHECK(strstr(fkt_error_text(), "tuning diverged") && strstr(fkt_error_hint(), "smaller rate"));
    CHECK(toy_same(m, before));
    fkt_model_free(m);
    fkt_model_free(before);
}

/* Weights multiply by some -10^6 in each step. Sooner or later the last step of a run makes the number that no float
 * can hold, and there is no further loss to tell. Features of `zero` leave the weights at 0: the bias alone grows. */
static void a_diverging_last_step_is_reported(void **state)
{
    struct fkt_recipe r;
    (void)state;
    fkt_recipe_default(&r);
    r.batch = ROWS;
    r.momentum = r.nesterov = 0;
    r.rate = 1e6;
    r.decay = 0.9;
    r.schedule = FKT_SCHEDULE_CONSTANT;
    for (int zero = 0; zero < 2; zero++) {
        int said = 0;
        fill(ROWS, CLASSES);
        if (zero) memset(x, 0, sizeof x);
        for (r.epochs = 1; r.epochs < 12; r.epochs++) {
            struct fkt_model *m = model(CLASSES), *before = NULL;
            fkt_status st;
            if (zero) memset(m->array[m->net.n_slots - 2], 0, sizeof(float) * CLASSES * F);
            CHECK_OK(fkt_model_copy(&before, m));
            st = fkt_head_tune(m, &r, x, label, ROWS);
            CHECK(st == FKT_OK || st == FKT_E_NUMERIC);
            if (st != FKT_OK) CHECK(toy_same(m, before));
            said += st != FKT_OK && strstr(fkt_error_text(), "not finite after the last step") != NULL;
            fkt_model_free(m);
            fkt_model_free(before);
        }
        assert_int_equal(said, 1);
    }
}

static void a_tuned_layer_claims_nothing(void **state)
{
    const struct fkt_model_origin claim = {.is_private = 1, .epsilon = 1, .delta = 1e-5, .data = "a release"};
    struct fkt_model *m = model(CLASSES);
    struct fkt_recipe r;
    (void)state;
    fkt_recipe_default(&r);
    fill(ROWS, CLASSES);
    fkt_model_set_origin(m, &claim);
    CHECK_STATUS(fkt_head_tune(m, &r, x, label, 0), FKT_E_ARG);
    assert_int_equal(fkt_model_origin(m)->is_private, 1); /* nothing was learned */
    CHECK_OK(fkt_head_tune(m, &r, x, label, ROWS));
    assert_int_equal(fkt_model_origin(m)->is_private, 0);
    assert_string_equal(fkt_model_origin(m)->data, "");
    fkt_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_layer_is_that_of_numpy), cmocka_unit_test(separable_features_are_learned_whole),
        cmocka_unit_test(failing_leaves_the_model_alone),  cmocka_unit_test(a_diverging_last_step_is_reported),
        cmocka_unit_test(a_tuned_layer_claims_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
