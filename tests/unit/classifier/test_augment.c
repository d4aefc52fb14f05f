/* SPDX-License-Identifier: Apache-2.0 */
/* Views of images, against a numpy oracle (oracle/views.py), and what they may depend on. */
#include "classifier/augment.h"
#include "tests/support/vectors.h"

static const float mean[3] = {0.5F, 0.25F, 0.125F}, std[3] = {0.25F, 0.5F, 2};

static void numbers(float value[3][256])
{
    for (int c = 0; c < 3; c++)
        for (int v = 0; v < 256; v++) value[c][v] = ((float)v / 255.0F - mean[c]) / std[c];
}

static void paint(uint8_t *rgb, uint64_t index, uint32_t size)
{
    for (uint32_t y = 0; y < size; y++)
        for (uint32_t x = 0; x < size; x++)
            for (uint32_t c = 0; c < 3; c++)
                rgb[(y * size + x) * 3 + c] = (uint8_t)(31 * index + 7 * y + 13 * x + 101 * c + 5 * y * x);
}

static void views_are_those_of_numpy(void **state)
{
    static uint8_t rgb[64 * 64 * 3];
    static float out[3 * 64 * 64], value[3][256];
    json_t *root, *cases = vectors_open(&root, "classifier/views.json"), *one;
    size_t i;
    (void)state;
    numbers(value);
    json_array_foreach (cases, i, one) {
        const uint32_t size = (uint32_t)vectors_int(one, "size");
        const uint64_t index = (uint64_t)vectors_int(one, "index");
        const json_t *row = json_object_get(one, "row");
        struct fkt_recipe r;
        struct fkt_view v;
        double sum = 0, weighted = 0;
        fkt_recipe_default(&r);
        r.seed = (uint64_t)vectors_int(one, "seed");
        r.pad = (uint32_t)vectors_int(one, "pad");
        r.flip = (int)vectors_int(one, "flip");
        v = fkt_view_of(&r, (uint32_t)vectors_int(one, "epoch"), index);
        paint(rgb, index, size);
        memset(out, 0xff, sizeof out);
        fkt_view_apply(&v, value, rgb, size, out);
        for (size_t k = 0; k < 3 * (size_t)size * size; k++) {
            sum += out[k];
            weighted += out[k] * (double)(1 + k % 97);
        }
        CHECK_NEAR(sum, vectors_number(one, "sum"), 1e-3);
        CHECK_NEAR(weighted, vectors_number(one, "weighted"), 2e-2);
        for (size_t k = 0; k < 8; k++)
            CHECK_NEAR(out[((size_t)size + size / 2) * size + k], json_number_value(json_array_get(row, k)), 1e-6);
    }
    json_decref(root);
}

static void orders_are_those_of_the_oracle(void **state)
{
    json_t *root, *one;
    size_t i, order[50];
    (void)state;
    vectors_open(&root, "classifier/views.json");
    json_array_foreach (json_object_get(root, "orders"), i, one) {
        int64_t want[50];
        const size_t n = vectors_ints(one, "order", want, 50);
        const uint64_t seed = (uint64_t)vectors_int(one, "seed");
        fkt_epoch_order(order, n, seed, (uint32_t)vectors_int(one, "epoch"));
        for (size_t k = 0; k < n; k++) CHECK((int64_t)order[k] == want[k]);
    }
    CHECK(i == 4);
    json_decref(root);
}

/* 20000 views: flips are binomial, shifts uniform on 9 values; 6 standard errors, a right one fails once in 5e8. */
static void views_are_uniform_and_independent(void **state)
{
    struct fkt_recipe r;
    double flips = 0, top[9] = {0}, left[9] = {0}, both = 0;
    const double n = 20000;
    (void)state;
    fkt_recipe_default(&r);
    for (size_t i = 0; i < 20000; i++) {
        struct fkt_view v = fkt_view_of(&r, 3, i);
        flips += v.flip;
        top[v.top + 4]++;
        left[v.left + 4]++;
        both += v.top == v.left;
    }
    CHECK_NEAR(flips / n, 0.5, 6 * sqrt(0.25 / n));
    CHECK_NEAR(both / n, 1.0 / 9, 6 * sqrt(8.0 / 81 / n));
    for (int k = 0; k < 9; k++) {
        CHECK_NEAR(top[k] / n, 1.0 / 9, 6 * sqrt(8.0 / 81 / n));
        CHECK_NEAR(left[k] / n, 1.0 / 9, 6 * sqrt(8.0 / 81 / n));
    }
}

static void crops_stay_when_the_flip_goes(void **state)
{
    struct fkt_recipe r;
    size_t flips = 0;
    (void)state;
    fkt_recipe_default(&r);
    for (size_t i = 0; i < 64; i++) {
        struct fkt_view a, b;
        r.flip = 1;
        a = fkt_view_of(&r, 0, i);
        r.flip = 0;
        b = fkt_view_of(&r, 0, i);
        flips += (size_t)a.flip;
        CHECK(a.top == b.top && a.left == b.left && b.flip == 0);
    }
    CHECK(flips > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_are_those_of_numpy),
        cmocka_unit_test(orders_are_those_of_the_oracle),
        cmocka_unit_test(views_are_uniform_and_independent),
        cmocka_unit_test(crops_stay_when_the_flip_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
