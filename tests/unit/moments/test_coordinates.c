/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "fedkt/advanced/moments.h"
#include "tests/support/check.h"

#include <float.h>

#define D 64

static double length_of(const double *x, size_t n)
{
    double s = 0;
    for (size_t i = 0; i < n; i++) s += x[i] * x[i];
    return sqrt(s);
}

static void random_latent(double *u, size_t n, double size, uint64_t stream)
{
    struct fkt_rng r;
    fkt_rng_init(&r, 11, stream);
    for (size_t i = 0; i < n; i++) u[i] = fkt_rng_normal(&r);
    double len = length_of(u, n);
    for (size_t i = 0; i < n; i++) u[i] *= size / len;
}

static void gain_shape_keeps_direction_and_size_apart(void **state)
{
    struct fkt_coordinates c;
    double u[D], w[D + 1], back[D];
    (void)state;
    CHECK_OK(fkt_coordinates_gain_shape(&c, D, 256, FKT_GAMMA_DEFAULT, 2.0, 1.5));
    CHECK(c.length == D + 1 && c.dim == D && c.rq == 256);
    CHECK_NEAR(c.radius * c.radius, 1 + 0.35 * 0.35, 1e-15);
    for (int k = 0; k < 100; k++) {
        double log_size = 0.5 + 3.0 * k / 99; /* the whole range c - s .. c + s */
        random_latent(u, D, exp(log_size), (uint64_t)k);
        CHECK_OK(fkt_coordinates_forward(&c, u, w));
        CHECK_NEAR(length_of(w, D), 1, 1e-14);
        CHECK_NEAR(w[D], 0.35 * (log_size - 2.0) / 1.5, 1e-14);
        CHECK(length_of(w, D + 1) <= c.radius * (1 + 1e-14));
        for (size_t i = 0; i < D; i++) CHECK_NEAR(w[i], u[i] / exp(log_size), 1e-14);
        CHECK_OK(fkt_coordinates_inverse(&c, w, back));
        for (size_t i = 0; i < D; i++) CHECK_NEAR(back[i], u[i], 1e-12 * exp(log_size));
    }
}

static void gain_shape_clamps_sizes_and_takes_zero(void **state)
{
    struct fkt_coordinates c;
    double u[D] = {0}, w[D + 1], back[D];
    (void)state;
    CHECK_OK(fkt_coordinates_gain_shape(&c, D, 256, 0.35, 2.0, 1.5));
    CHECK_OK(fkt_coordinates_forward(&c, u, w));
    for (size_t i = 0; i < D; i++) CHECK_NEAR(w[i], 0, 0);
    CHECK_NEAR(w[D], -0.35, 0);
    CHECK_OK(fkt_coordinates_inverse(&c, w, back));
    for (size_t i = 0; i < D; i++) CHECK_NEAR(back[i], 0, 0);

    const double sizes[] = {DBL_TRUE_MIN, DBL_MIN, 1e-200, 1e200, DBL_MAX / 2};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        for (size_t i = 0; i < D; i++) u[i] = i % 2 ? -sizes[k] : sizes[k];
        CHECK_OK(fkt_coordinates_forward(&c, u, w));
        for (size_t i = 0; i < D; i++) CHECK_NEAR(w[i], i % 2 ? -0.125 : 0.125, 1e-16);
        CHECK_NEAR(w[D], sizes[k] < 1 ? -0.35 : 0.35, 0);
    }
    for (size_t i = 0; i <= D; i++) w[i] = 7; /* a sample far outside: direction kept, gain clamped */
    CHECK_OK(fkt_coordinates_inverse(&c, w, back));
    for (size_t i = 0; i < D; i++) CHECK_NEAR(back[i], exp(3.5) / 8, 1e-12);
    w[D] = -7;
    CHECK_OK(fkt_coordinates_inverse(&c, w, back));
    for (size_t i = 0; i < D; i++) CHECK_NEAR(back[i], exp(0.5) / 8, 1e-12);
}

static void clip_leaves_the_inside_alone_and_scales_the_outside(void **state)
{
    struct fkt_coordinates c;
    double u[D], w[D], back[D];
    const double sizes[] = {0, 1e-300, 0.5, 2.999999, 3.0001, 100, 1e300};
    (void)state;
    CHECK_OK(fkt_coordinates_clip(&c, D, 64, 3.0));
    CHECK(c.length == D && c.kind == FKT_COORDINATE_CLIP);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        random_latent(u, D, 1, k);
        for (size_t i = 0; i < D; i++) u[i] *= sizes[k];
        CHECK_OK(fkt_coordinates_forward(&c, u, w));
        for (size_t i = 0; i < D; i++) {
            if (sizes[k] < 3) CHECK_NEAR(w[i], u[i], 0);
            else CHECK_NEAR(w[i], u[i] / sizes[k] * 3, 1e-14);
        }
        CHECK(length_of(w, D) <= 3 * (1 + 1e-14));
        CHECK_OK(fkt_coordinates_inverse(&c, w, back));
        CHECK(!memcmp(back, w, sizeof back));
    }
    for (size_t i = 0; i < D; i++) u[i] = DBL_MAX; /* |u| itself is not a double */
    CHECK_OK(fkt_coordinates_forward(&c, u, w));
    for (size_t i = 0; i < D; i++) CHECK_NEAR(w[i], 3.0 / 8, 1e-15);
}

static void not_finite_is_refused_everywhere(void **state)
{
    struct fkt_coordinates c[2];
    const double bad[] = {NAN, INFINITY, -INFINITY};
    double u[3], w[4];
    (void)state;
    CHECK_OK(fkt_coordinates_gain_shape(&c[0], 3, 256, 0.35, 2.0, 1.5));
    CHECK_OK(fkt_coordinates_clip(&c[1], 3, 256, 3.0));
    for (size_t k = 0; k < 2; k++)
        for (size_t b = 0; b < 3; b++)
            for (size_t i = 0; i < c[k].length; i++) {
                double x[4] = {1, 2, 3, 0.1};
                x[i] = bad[b];
                if (i < 3) CHECK_STATUS(fkt_coordinates_forward(&c[k], x, w), FKT_E_NUMERIC);
                CHECK_STATUS(fkt_coordinates_inverse(&c[k], x, u), FKT_E_NUMERIC);
            }
}

static void constants_are_checked(void **state)
{
    struct fkt_coordinates c;
    (void)state;
    CHECK_STATUS(fkt_coordinates_gain_shape(&c, 0, 256, 0.35, 0, 1), FKT_E_ARG);
    CHECK_STATUS(fkt_coordinates_gain_shape(&c, 1U << 20, 256, 0.35, 0, 1), FKT_E_ARG);
    CHECK_STATUS(fkt_coordinates_gain_shape(&c, UINT32_MAX, 256, 0.35, 0, 1), FKT_E_ARG);
    CHECK_STATUS(fkt_coordinates_gain_shape(&c, 8, 63, 0.35, 0, 1), FKT_E_ARG);
    CHECK_STATUS(fkt_coordinates_gain_shape(&c, 8, 4097, 0.35, 0, 1), FKT_E_ARG);
    CHECK_STATUS(fkt_coordinates_gain_shape(&c, 8, 256, 0, 0, 1), FKT_E_ARG);
    CHECK_STATUS(fkt_coordinates_gain_shape(&c, 8, 256, NAN, 0, 1), FKT_E_ARG);
    CHECK_STATUS(fkt_coordinates_gain_shape(&c, 8, 256, 0.35, NAN, 1), FKT_E_ARG);
    CHECK_STATUS(fkt_coordinates_gain_shape(&c, 8, 256, 0.35, 0, 0), FKT_E_ARG);
    CHECK_STATUS(fkt_coordinates_gain_shape(&c, 8, 256, 0.35, 0, NAN), FKT_E_ARG);
    CHECK_STATUS(fkt_coordinates_gain_shape(&c, 8, 256, 0.35, 500, 201), FKT_E_ARG);
    CHECK_OK(fkt_coordinates_gain_shape(&c, 8, 64, 0.35, -500, 200));
    CHECK_OK(fkt_coordinates_gain_shape(&c, 8, 4096, 0.35, 500, 200));
    CHECK_STATUS(fkt_coordinates_clip(&c, 8, 256, 0), FKT_E_ARG);
    CHECK_STATUS(fkt_coordinates_clip(&c, 8, 256, -1), FKT_E_ARG);
    CHECK_STATUS(fkt_coordinates_clip(&c, 8, 256, NAN), FKT_E_ARG);
    CHECK_STATUS(fkt_coordinates_clip(&c, 8, 256, INFINITY), FKT_E_ARG);
    CHECK_STATUS(fkt_coordinates_clip(&c, 0, 256, 1), FKT_E_ARG);
    CHECK_STATUS(fkt_coordinates_clip(&c, 8, 1, 1), FKT_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gain_shape_keeps_direction_and_size_apart),
        cmocka_unit_test(gain_shape_clamps_sizes_and_takes_zero),
        cmocka_unit_test(clip_leaves_the_inside_alone_and_scales_the_outside),
        cmocka_unit_test(not_finite_is_refused_everywhere),
        cmocka_unit_test(constants_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
