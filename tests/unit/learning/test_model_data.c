/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_data.c - a model and the images that it meets: classes by name, evaluation, training further, claims. */
#include "fedkt/model_data.h"

#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

enum { CLASSES = 10, SIZE = 16, RECORDS = 30 };

static struct fkt_dataset *demo;
static const struct fkt_dataset_options few = {.limit = RECORDS};
static const struct fkt_training_set_options two = {.threads = 2};

static struct fkt_model *model_of(const char *const *names, uint32_t n)
{
    const struct fkt_model_spec spec = {
        .architecture = FKT_ARCHITECTURE_RESNET8, .size = SIZE, .classes = names, .n_classes = n, .seed = 3};
    struct fkt_model *m = NULL;
    CHECK_OK(fkt_model_new(&m, &spec));
    return m;
}

/* Classes "0" to "9". */
static struct fkt_model *numbered(uint32_t n)
{
    static char text[CLASSES][4];
    const char *names[CLASSES];
    for (uint32_t k = 0; k < n; k++) {
        snprintf(text[k], sizeof text[k], "%u", k);
        names[k] = text[k];
    }
    return model_of(names, n);
}

/* Those of the demo, backwards. */
static struct fkt_model *backwards(void)
{
    const char *names[CLASSES];
    for (uint32_t k = 0; k < CLASSES; k++) names[k] = fkt_dataset_class(demo, CLASSES - 1 - k);
    return model_of(names, CLASSES);
}

static void a_dataset_takes_the_models_order(void **state)
{
    struct fkt_model *m = backwards();
    struct fkt_dataset *ds = NULL;
    (void)state;
    CHECK(!fkt_model_numbered(m));
    CHECK_OK(fkt_model_open_dataset(&ds, m, "demo:train", &few, 1));
    assert_int_equal(fkt_dataset_size(ds), fkt_dataset_size(demo));
    for (size_t i = 0; i < fkt_dataset_size(ds); i++) {
        assert_int_equal(fkt_dataset_label(ds, i), CLASSES - 1 - fkt_dataset_label(demo, i));
        assert_string_equal(fkt_dataset_class(ds, fkt_dataset_label(ds, i)),
                            fkt_dataset_class(demo, fkt_dataset_label(demo, i)));
    }
    fkt_dataset_free(ds);
    fkt_model_free(m);
}

static void a_numbered_model_takes_the_datasets_names(void **state)
{
    struct fkt_model *m = numbered(CLASSES), *other = numbered(CLASSES - 1);
    struct fkt_model_origin origin = {.data = "folder 'x'"};
    struct fkt_dataset *ds = NULL;
    struct fkt_model_tensor last;
    float weight;
    (void)state;
    CHECK(fkt_model_numbered(m));
    fkt_model_set_origin(m, &origin);
    last = fkt_model_tensor(m, fkt_model_tensors(m) - 2); /* fc.weight, which a new head would draw again */
    assert_string_equal(last.name, "fc.weight");
    weight = last.data[7];
    CHECK_OK(fkt_model_open_dataset(&ds, m, "demo:train", &few, 1));
    assert_string_equal(fkt_dataset_class(ds, 3), fkt_dataset_class(demo, 3));
    CHECK_OK(fkt_model_take_names(&m, ds));
    CHECK(!fkt_model_numbered(m));
    assert_string_equal(fkt_model_class(m, 3), fkt_dataset_class(demo, 3));
    assert_string_equal(fkt_model_origin(m)->data, "folder 'x'");
    CHECK(fkt_model_tensor(m, fkt_model_tensors(m) - 2).data[7] == weight);
    assert_int_equal(fkt_model_take_names(&other, ds), FKT_E_MISMATCH);
    fkt_dataset_free(ds);
    assert_int_equal(fkt_model_open_dataset(&ds, other, "demo:train", &few, 1), FKT_E_MISMATCH);
    CHECK(!ds);
    fkt_model_free(m);
    fkt_model_free(other);
}

static void the_fit_is_the_models_unless_one_is_given(void **state)
{
    const struct fkt_dataset_options crop = {.limit = RECORDS, .fit = FKT_FIT_CROP};
    const struct fkt_model_origin origin = {.fit = "pad"};
    struct fkt_model *m = backwards();
    struct fkt_dataset *ds = NULL;
    (void)state;
    fkt_model_set_origin(m, &origin);
    for (int model_fit = 0; model_fit < 2; model_fit++) {
        CHECK_OK(fkt_model_open_dataset(&ds, m, "demo:train", &crop, model_fit));
        assert_int_equal(fkt_dataset_fit(ds), model_fit ? FKT_FIT_PAD : FKT_FIT_CROP);
        fkt_dataset_free(ds);
    }
    fkt_model_free(m);
}

static void evaluation_is_that_of_the_images_and_of_their_decoded_form(void **state)
{
    const struct fkt_codec_spec spec = {.name = "dct", .size = SIZE, .dim = 8};
    const struct fkt_predict_options predict = {.threads = 2};
    struct fkt_model *m = numbered(CLASSES);
    struct fkt_codec *codec = NULL;
    struct fkt_dataset *ds = NULL;
    struct fkt_training_set p = {0};
    struct fkt_evaluation plain, through, want, want_through;
    (void)state;
    CHECK_OK(fkt_codec_open(&codec, &spec));
    CHECK_OK(fkt_evaluation_init(&plain, CLASSES));
    CHECK_OK(fkt_evaluation_init(&through, CLASSES));
    CHECK_OK(fkt_evaluation_init(&want, CLASSES));
    CHECK_OK(fkt_evaluation_init(&want_through, CLASSES));
    CHECK_OK(fkt_model_open_dataset(&ds, m, "demo:train", &few, 1));
    CHECK_OK(fkt_model_evaluate(&plain, &through, m, ds, FKT_FILTER_BILINEAR, codec, &two));
    CHECK_OK(fkt_model_take_names(&m, ds));
    CHECK_OK(fkt_training_set_read(&p, ds, NULL, 0, SIZE, FKT_FILTER_BILINEAR, NULL, &two));
    CHECK_OK(fkt_training_set_evaluate(&want, m, &p, &predict));
    CHECK_OK(fkt_training_set_through_codec(&p, codec, &two));
    CHECK_OK(fkt_training_set_evaluate(&want_through, m, &p, &predict));
    assert_int_equal(fkt_score_total(&plain.score), RECORDS);
    CHECK(plain.loss == want.loss && through.loss == want_through.loss && plain.loss != through.loss);
    CHECK(fkt_evaluation_accuracy(&plain) == fkt_evaluation_accuracy(&want));
    CHECK_OK(fkt_model_evaluate(&want, NULL, m, ds, FKT_FILTER_BILINEAR, NULL, &two)); /* without a codec; adds */
    assert_int_equal(fkt_score_total(&want.score), 2 * RECORDS);
    fkt_evaluation_clear(&plain);
    fkt_evaluation_clear(&through);
    fkt_evaluation_clear(&want);
    fkt_evaluation_clear(&want_through);
    fkt_training_set_clear(&p);
    fkt_dataset_free(ds);
    fkt_codec_free(codec);
    fkt_model_free(m);
}

/* A named model never gets a dataset whose classes stand in another order. */
static void other_classes_are_not_evaluated(void **state)
{
    struct fkt_model *m = backwards();
    struct fkt_evaluation e;
    (void)state;
    CHECK_OK(fkt_evaluation_init(&e, CLASSES));
    assert_int_equal(fkt_model_evaluate(&e, NULL, m, demo, FKT_FILTER_BILINEAR, NULL, &two), FKT_E_MISMATCH);
    assert_int_equal(fkt_score_total(&e.score), 0);
    fkt_evaluation_clear(&e);
    fkt_model_free(m);
}

static int same_tensor(const struct fkt_model *a, const struct fkt_model *b, size_t i)
{
    const struct fkt_model_tensor x = fkt_model_tensor(a, i), y = fkt_model_tensor(b, i);
    return x.count == y.count && !memcmp(x.data, y.data, x.count * sizeof *x.data);
}

static void a_start_keeps_the_head_only_for_the_same_classes(void **state)
{
    const char *names[CLASSES];
    struct fkt_model_spec spec = {
        .architecture = FKT_ARCHITECTURE_RESNET18, .size = SIZE, .classes = names, .n_classes = CLASSES, .seed = 9};
    struct fkt_model *from = backwards(), *start = NULL;
    const size_t fc = fkt_model_tensors(from) - 2;
    int new_head = -1;
    (void)state;
    for (uint32_t k = 0; k < CLASSES; k++) names[k] = fkt_model_class(from, k);
    CHECK_OK(fkt_model_start(&start, from, &spec, &new_head));
    assert_int_equal(new_head, 0);
    assert_int_equal(fkt_model_architecture(start), FKT_ARCHITECTURE_RESNET8); /* from's */
    CHECK(same_tensor(start, from, 0) && same_tensor(start, from, fc));
    fkt_model_free(start);
    names[0] = fkt_model_class(from, 1);
    names[1] = fkt_model_class(from, 0);
    CHECK_OK(fkt_model_start(&start, from, &spec, &new_head));
    assert_int_equal(new_head, 1);
    CHECK(same_tensor(start, from, 0) && !same_tensor(start, from, fc));
    fkt_model_free(start);
    spec.size = 2 * SIZE;
    assert_int_equal(fkt_model_start(&start, from, &spec, &new_head), FKT_E_MISMATCH);
    CHECK(!start);
    spec.architecture = FKT_ARCHITECTURE_RESNET8;
    CHECK_OK(fkt_model_start(&start, NULL, &spec, NULL));
    assert_int_equal(fkt_model_size(start), 2 * SIZE);
    fkt_model_free(start);
    fkt_model_free(from);
}

static void a_model_is_private_only_if_all_that_it_saw_is(void **state)
{
    const struct fkt_model_origin real = {.data = "folder 'x'"}, nothing = {.is_private = 0};
    struct fkt_training_set p = {.origin = {.is_private = 1, .epsilon = 3, .delta = 1e-6, .data = "release 3f"}};
    struct fkt_model *from = backwards(), *teacher = backwards();
    struct fkt_model_origin o;
    (void)state;
    fkt_training_origin(&o, &p, NULL, NULL);
    CHECK(o.is_private && o.epsilon == 3);
    fkt_model_set_origin(from, &real);
    fkt_training_origin(&o, &p, from, NULL);
    CHECK(!o.is_private);
    CHECK(strstr(o.data, "started from a model whose file says: folder 'x'"));
    fkt_model_set_origin(teacher, &nothing);
    fkt_training_origin(&o, &p, NULL, teacher);
    CHECK(!o.is_private && strstr(o.data, "taught by "));
    fkt_model_set_origin(teacher, &p.origin);
    fkt_training_origin(&o, &p, NULL, teacher);
    CHECK(o.is_private && strstr(o.data, "taught by a model whose file says: "));
    fkt_model_free(from);
    fkt_model_free(teacher);
}

static int begin(void **state)
{
    (void)state;
    return fkt_dataset_open(&demo, "demo:train", &few) != FKT_OK;
}

static int end(void **state)
{
    (void)state;
    fkt_dataset_free(demo);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dataset_takes_the_models_order),
        cmocka_unit_test(a_numbered_model_takes_the_datasets_names),
        cmocka_unit_test(the_fit_is_the_models_unless_one_is_given),
        cmocka_unit_test(evaluation_is_that_of_the_images_and_of_their_decoded_form),
        cmocka_unit_test(other_classes_are_not_evaluated),
        cmocka_unit_test(a_start_keeps_the_head_only_for_the_same_classes),
        cmocka_unit_test(a_model_is_private_only_if_all_that_it_saw_is),
    };
    return check_nothing_left(cmocka_run_group_tests(tests, begin, end));
}
