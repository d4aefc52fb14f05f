/* SPDX-License-Identifier: Apache-2.0 */
/* test_average.c - weighted means of models: exact where they should be, in proportion to the weights, and refused
 * where models do not belong together. */
#include "classifier/average.h"

#include "tests/support/check.h"

static const char *const names[] = {"a", "b", "c"};

static struct fkt_model *model(uint64_t seed, uint32_t classes)
{
    const struct fkt_model_spec spec = {.architecture = FKT_ARCHITECTURE_RESNET8,
                                        .stem = FKT_STEM_CIFAR,
                                        .size = 16,
                                        .classes = names,
                                        .n_classes = classes,
                                        .seed = seed};
    struct fkt_model *m = NULL;
    CHECK_OK(fkt_model_new(&m, &spec));
    for (size_t i = 0; i < fkt_model_tensors(m); i++) { /* statistics of a fresh model are 0 and 1: make them differ */
        struct fkt_model_tensor t = fkt_model_tensor(m, i);
        for (size_t k = 0; k < t.count; k++) t.data[k] += 0.001F * (float)((k * 7 + i * 13 + seed * 29) % 101);
    }
    return m;
}

static void check_equal(const struct fkt_model *a, const struct fkt_model *b)
{
    for (size_t i = 0; i < fkt_model_tensors(a); i++) {
        struct fkt_model_tensor x = fkt_model_tensor(a, i), y = fkt_model_tensor(b, i);
        assert_int_equal(x.count, y.count);
        assert_memory_equal(x.data, y.data, x.count * sizeof *x.data);
    }
}

static struct fkt_model *mean_of(struct fkt_model *const *m, const uint64_t *weight, size_t n)
{
    struct fkt_model_average *a = NULL;
    struct fkt_model *out = NULL;
    CHECK_OK(fkt_model_average_new(&a, m[0]));
    for (size_t i = 0; i < n; i++) CHECK_OK(fkt_model_average_add(a, m[i], weight[i]));
    CHECK_OK(fkt_model_average_model(a, &out));
    fkt_model_average_free(a);
    return out;
}

/* With weights that total less than 2^29 only the quotient is rounded, and it is exact. */
static void one_model_or_equal_ones_are_themselves(void **state)
{
    static const uint64_t weights[] = {1, 3, 375, 12345, 99999999, (1U << 29) - 1 - 100000000 - 12345 - 375 - 3};
    struct fkt_model *m = model(1, 3), *same[6] = {m, m, m, m, m, m}, *mean;
    (void)state;
    for (size_t i = 0; i < 6; i++) {
        mean = mean_of(&m, &weights[i], 1);
        check_equal(mean, m);
        fkt_model_free(mean);
    }
    mean = mean_of(same, weights, 6);
    check_equal(mean, m);
    fkt_model_free(mean);
    fkt_model_free(m);
}

/* Every tensor, running statistics too, is the mean weighted by the records: computed here in long double. */
static void weights_are_proportions(void **state)
{
    static const uint64_t weights[] = {10, 30, 0, 60};
    struct fkt_model *m[4], *mean;
    size_t statistics = 0;
    (void)state;
    for (size_t i = 0; i < 4; i++) m[i] = model(i + 1, 3);
    mean = mean_of(m, weights, 4);
    for (size_t i = 0; i < fkt_model_tensors(mean); i++) {
        struct fkt_model_tensor t = fkt_model_tensor(mean, i);
        statistics += strstr(t.name, "running_") != NULL;
        for (size_t k = 0; k < t.count; k++) {
            long double want = 0;
            for (size_t j = 0; j < 4; j++)
                want += (long double)weights[j] / 100 * (long double)fkt_model_tensor(m[j], i).data[k];
            CHECK_NEAR(t.data[k], (double)want, fabs((double)want) * 0x1p-24 + 1e-12); /* half a float's last place */
        }
    }
    CHECK(statistics >= 2);
    fkt_model_free(mean);
    for (size_t i = 0; i < 4; i++) fkt_model_free(m[i]);
}

static void what_does_not_belong_is_refused(void **state)
{
    struct fkt_model *m = model(1, 3), *other = model(1, 2), *bad = model(2, 3), *out = NULL;
    struct fkt_model_average *a = NULL;
    (void)state;
    CHECK_OK(fkt_model_average_new(&a, m));
    CHECK_STATUS(fkt_model_average_model(a, &out), FKT_E_STATE);
    assert_null(out);
    CHECK_STATUS(fkt_model_average_add(a, other, 5), FKT_E_MISMATCH);
    assert_non_null(strstr(fkt_error_text(), "'fc.weight'"));
    fkt_model_tensor(bad, 4).data[0] = NAN;
    CHECK_STATUS(fkt_model_average_add(a, bad, 5), FKT_E_NUMERIC);
    CHECK_OK(fkt_model_average_add(a, m, 0));
    CHECK_STATUS(fkt_model_average_model(a, &out), FKT_E_STATE);
    CHECK_OK(fkt_model_average_add(a, m, 3));
    CHECK_STATUS(fkt_model_average_add(a, m, UINT64_MAX - 2), FKT_E_ARG);
    CHECK_OK(fkt_model_average_model(a, &out)); /* a refused model changes nothing */
    check_equal(out, m);
    fkt_model_free(out);
    fkt_model_average_free(a);
    fkt_model_free(m);
    fkt_model_free(other);
    fkt_model_free(bad);
    fkt_model_average_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_model_or_equal_ones_are_themselves),
        cmocka_unit_test(weights_are_proportions),
        cmocka_unit_test(what_does_not_belong_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
