/* SPDX-License-Identifier: Apache-2.0 */
/* test_baseline_rules.c - the update rules of the baselines where they can be solved by hand, their settings, and NaN
 * in each of them. The whole methods are compared with NumPy in test_baseline_methods.c. */
#include "learning/baselines/method.h"
#include "learning/baselines/vector.h"
#include "tests/support/check.h"

static void vectors_by_hand(void **state)
{
    float x[3] = {1, 2, -1};
    const float g[3] = {0.5F, -1, 4}, a[3] = {3, 2, 1};
    const float bank[6] = {1, 0, 9, 5, 4, 9};
    const double weight[2] = {0.25, -1};
    double sum[3] = {1, 1, 1};
    float out[2];
    (void)state;
    fkt_vector_step(x, g, 3, 2);
    CHECK(x[0] == 0 && x[1] == 4 && x[2] == -9);
    fkt_vector_proximal_step(x, g, a, 2, 0.5, 1); /* 0 - 0.5 (0.5 + (0 - 3)), 4 - 0.5 (-1 + 2) */
    CHECK(x[0] == 1.25F && x[1] == 3.5F && x[2] == -9);
    fkt_vector_mix(x, a, 3, 0.5);
    CHECK(x[0] == 2.125F && x[1] == 2.75F && x[2] == -4);
    CHECK_NEAR(fkt_vector_dot(g, a, 3), 1.5 - 2 + 4, 0);
    CHECK_NEAR(fkt_vector_distance2(g, a, 3), 6.25 + 9 + 9, 0);
    fkt_vector_combine(out, bank, 3, 2, weight, 2, sum);
    CHECK(out[0] == -4.75F && out[1] == -4);
    CHECK(fkt_vector_finite(bank, 6) && !fkt_vector_finite((float[]){1, NAN}, 2) &&
          !fkt_vector_finite((float[]){INFINITY}, 1));
}

/* f(x) = x^T H x / 2 with H = diag(2, 4): the meta-gradient at w is (I - alpha H) H (I - alpha H) w. */
static void perfedavg_on_a_quadratic(void **state)
{
    const double h[2] = {2, 4}, alpha = 0.1, beta = 0.5, delta = 0.25;
    const struct fkt_local_step steps[] = {{.rate = alpha}, {.rate = beta, .pull = 1 / beta, .follow = 1}};
    float w[2] = {1, -2}, x[2] = {1, -2}, anchor[2] = {1, -2}, v[2], g[2], slope[2], up[2], down[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        slope[i] = (float)(h[i] * w[i]);
        v[i] = (float)(w[i] - alpha * h[i] * w[i]);
        g[i] = (float)(h[i] * v[i]);
        up[i] = (float)(h[i] * (w[i] + delta * g[i]));
        down[i] = (float)(h[i] * (w[i] - delta * g[i]));
    }
    fkt_perfedavg_step(w, g, up, down, 2, alpha, beta, delta);
    fkt_local_step(&steps[0], x, anchor, slope,
                   2); /* first order: two steps, the second one from where the first began */
    CHECK(anchor[0] == 1 && anchor[1] == -2);
    fkt_local_step(&steps[1], x, anchor, g, 2);
    CHECK(anchor[0] == x[0] && anchor[1] == x[1]);
    for (int i = 0; i < 2; i++) {
        const double w0 = i ? -2 : 1, keep = 1 - alpha * h[i];
        CHECK_NEAR(w[i], w0 - beta * keep * h[i] * keep * w0, 1e-6);
        CHECK_NEAR(x[i], w0 - beta * h[i] * keep * w0, 1e-6);
    }
}

/* argmin |x - a|^2 / 2 + lambda / 2 |x - w|^2 = (a + lambda w) / (1 + lambda); the envelope's gradient is
 * lambda (w - theta). */
static void pfedme_on_a_quadratic(void **state)
{
    const double lambda = 3;
    const struct fkt_local_step inner = {.rate = 0.2, .pull = lambda},
                                last = {.rate = 0.2, .pull = lambda, .follow = 0.1 * lambda};
    const float a = 5;
    float w = 1, theta = 1;
    (void)state;
    for (int k = 0; k < 200; k++) {
        const float g = theta - a;
        fkt_local_step(k < 199 ? &inner : &last, &theta, &w, &g, 1);
    }
    CHECK_NEAR(theta, (a + lambda * 1) / (1 + lambda), 1e-6);
    CHECK_NEAR(w, 1 - 0.1 * lambda * (1 - 2.0), 1e-6);
}

static void fedamp_weights_by_hand(void **state)
{
    const double square[3] = {0, 2 * log(2.0), 2 * log(4.0)}; /* exp(-d / 2): 1, 1/2, 1/4 */
    const double cosine[3] = {log(2.0) / 10, 1, log(6.0) / 10};
    double x[3];
    (void)state;
    fkt_fedamp_weights(x, square, 3, 0, 0.4, 2);
    CHECK_NEAR(x[1], 0.1, 1e-15);
    CHECK_NEAR(x[2], 0.05, 1e-15);
    CHECK_NEAR(x[0], 0.85, 1e-15);
    fkt_fedamp_weights(x, square, 3, 0, 400, 2); /* too much: only others are left, in proportion */
    CHECK_NEAR(x[0], 0, 0);
    CHECK_NEAR(x[1], 2.0 / 3, 1e-15);
    fkt_fedamp_weights_cosine(x, cosine, 3, 1, 0.2, 10);
    CHECK_NEAR(x[0], 0.8 * 2 / 8, 1e-15);
    CHECK_NEAR(x[1], 0.2, 0);
    CHECK_NEAR(x[2], 0.8 * 6 / 8, 1e-15);
    fkt_fedamp_weights_cosine(x, cosine, 1, 0, 0.2, 10); /* alone */
    CHECK_NEAR(x[0], 1, 0);
    fkt_fedamp_weights_cosine(x, (double[]){1, -1, -1}, 3, 0, 0.5, 1e6); /* no overflow, no 0 / 0 */
    CHECK_NEAR(x[1], 0.25, 1e-15);
}

static void fedfomo_weights_by_hand(void **state)
{
    const double loss[4] = {1, 3, 1.5, 2}, distance[4] = {2, 1, 0.5, 0};
    double p[4];
    (void)state;
    fkt_fedfomo_weights(p, 2, loss, distance, 4); /* 1/2, none, 1, the model itself */
    CHECK_NEAR(p[0], 1.0 / 3, 1e-15);
    CHECK_NEAR(p[1], 0, 0);
    CHECK_NEAR(p[2], 2.0 / 3, 1e-15);
    CHECK_NEAR(p[3], 0, 0);
    fkt_fedfomo_weights(p, 0.5, loss, distance, 4); /* nobody is better */
    for (int j = 0; j < 4; j++) CHECK_NEAR(p[j], 0, 0);
}

static void apple_by_hand(void **state)
{
    double p[2] = {0.5, 0.5};
    const double p0[2] = {0.25, 0.75}, slope[2] = {2, -1};
    const float g[2] = {1, -2};
    float core[2] = {3, 3};
    (void)state;
    fkt_apple_step(p, core, g, slope, p0, 2, 1, 2, 0.2, 0.1, 4);
    CHECK_NEAR(core[0], 2.9, 1e-6); /* 3 - 0.2 * 0.5 * 1 */
    CHECK_NEAR(core[1], 3.2, 1e-6);
    CHECK_NEAR(p[0], 0.5 - 0.1 * (2 + 4 * 0.25), 1e-15);
    CHECK_NEAR(p[1], 0.5 - 0.1 * (-1 - 4 * 0.25), 1e-15);
    CHECK_NEAR(fkt_apple_lambda(0, 4), 1, 0);
    CHECK_NEAR(fkt_apple_lambda(2, 4), 0.5, 1e-15);
    CHECK_NEAR(fkt_apple_lambda(4, 4), 0, 0);
    CHECK_NEAR(fkt_apple_lambda(0, 0), 0, 0);
}

static void the_others_by_hand(void **state)
{
    (void)state;
    CHECK_NEAR(fkt_fedphp_momentum(0.9, 0, 10), 0, 0);
    CHECK_NEAR(fkt_fedphp_momentum(0.9, 5, 10), 0.45, 1e-15);
    CHECK_NEAR(fkt_partialfed_part(0, 0, 1), 0.5, 0);
    CHECK_NEAR(fkt_partialfed_part(log(3.0), -log(3.0) / 2, 0.5), 0.75, 1e-15);
    CHECK_NEAR(fkt_partialfed_part(-1e6, 0, 0.1), 0, 0);
    CHECK_NEAR(fkt_partialfed_slope(0.75, 8, 0.5), 3, 1e-15);
}

/* No rule hides a NaN. */
static void nan_stays_nan(void **state)
{
    const float bad[1] = {NAN}, good[1] = {1};
    const double bads[2] = {0, NAN}, ones[2] = {1, 1};
    float x[1] = {1};
    double w[2], p[2] = {1, 1};
    (void)state;
    fkt_vector_mix(x, bad, 1, 0.5);
    CHECK(isnan(x[0]));
    x[0] = 1;
    fkt_perfedavg_step(x, good, bad, good, 1, 1, 1, 1);
    CHECK(isnan(x[0]));
    fkt_fedamp_weights(w, bads, 2, 0, 1, 1);
    CHECK(isnan(w[0]) && isnan(w[1]));
    fkt_fedamp_weights_cosine(w, bads, 2, 0, 0.5, 1);
    CHECK(isnan(w[1]));
    fkt_fedfomo_weights(w, 1, bads, ones, 2);
    CHECK(isnan(w[1]));
    fkt_fedfomo_weights(w, 1, ones, bads, 2);
    CHECK(isnan(w[1]));
    x[0] = 1;
    fkt_apple_step(p, x, good, bads, ones, 2, 0, 1, 1, 1, 1);
    CHECK(isnan(p[1]));
    CHECK(isnan(fkt_partialfed_slope(0.5, NAN, 1)));
}

static void settings_are_a_table(void **state)
{
    struct fkt_baseline_settings s, t;
    size_t n = 0;
    (void)state;
    fkt_baseline_default(&s);
    CHECK_OK(fkt_baseline_check(&s));
    while (fkt_baseline_setting(n)) n++;
    assert_int_equal(n, 29);
    CHECK(isnan(fkt_baseline_value(&s, n)));
    for (size_t i = 0; i < n; i++) { /* each has its own place, and refuses NaN and what is below its range */
        const char *name = fkt_baseline_setting(i);
        t = s;
        CHECK_OK(fkt_baseline_set(&t, name, fkt_baseline_value(&s, i)));
        assert_memory_equal(&s, &t, sizeof s);
        CHECK_STATUS(fkt_baseline_set(&t, name, NAN), FKT_E_ARG);
        CHECK_STATUS(fkt_baseline_set(&t, name, -1), FKT_E_ARG);
        assert_non_null(strstr(fkt_error_text(), name));
        for (size_t j = 0; j < i; j++) CHECK(strcmp(name, fkt_baseline_setting(j)) != 0);
    }
    CHECK_OK(fkt_baseline_set(&t, "rounds", 50));
    assert_int_equal(t.rounds, 50);
    CHECK_STATUS(fkt_baseline_set(&t, "rounds", 2.5), FKT_E_ARG);
    CHECK_STATUS(fkt_baseline_set(&t, "round", 1), FKT_E_ARG);
    t.rate = NAN;
    CHECK_STATUS(fkt_baseline_check(&t), FKT_E_ARG);
    t = s;
    t.rounds = 100000;
    t.epochs = 1000;
    CHECK_STATUS(fkt_baseline_check(&t), FKT_E_ARG);
}

static void names_are_a_table(void **state)
{
    (void)state;
    for (int b = 0; b < FKT_BASELINES; b++) {
        assert_int_equal(fkt_baseline_parse(fkt_baseline_name((enum fkt_baseline)b)), b);
        CHECK((fkt_baseline_source((enum fkt_baseline)b)[0] != 0) == (b != FKT_BASELINE_LOCAL));
    }
    assert_int_equal(fkt_baseline_parse("ditto"), -1);
    assert_string_equal(fkt_baseline_name(FKT_BASELINES), "unknown");
    assert_null(fkt_method_of(FKT_BASELINES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_by_hand),         cmocka_unit_test(perfedavg_on_a_quadratic),
        cmocka_unit_test(pfedme_on_a_quadratic),   cmocka_unit_test(fedamp_weights_by_hand),
        cmocka_unit_test(fedfomo_weights_by_hand), cmocka_unit_test(apple_by_hand),
        cmocka_unit_test(the_others_by_hand),      cmocka_unit_test(nan_stays_nan),
        cmocka_unit_test(settings_are_a_table),    cmocka_unit_test(names_are_a_table),
    };
    return check_nothing_left(cmocka_run_group_tests(tests, NULL, NULL));
}
