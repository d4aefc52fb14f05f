/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "fedkt/machine.h"
#include "tensor/linalg.h"
#include "tests/support/check.h"

static const size_t sides[] = {1, 2, 3, 17, 65, 129};
#define SIDES (sizeof sides / sizeof *sides)

static double *random_matrix(size_t rows, size_t cols, uint64_t seed)
{
    struct fkt_rng r;
    double *x;
    fkt_rng_init(&r, seed, rows * 1000 + cols);
    CHECK_OK(fkt_alloc(&x, rows * cols));
    for (size_t i = 0; i < rows * cols; i++) x[i] = fkt_rng_normal(&r);
    return x;
}

static double *zeros(size_t n)
{
    double *x;
    CHECK_OK(fkt_alloc(&x, n));
    return x;
}

/* x^T x + ridge of a tall random x, both triangles */
static double *random_spd(size_t m, uint64_t seed)
{
    double *x = random_matrix(m + 3, m, seed), *a = zeros(m * m);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < m; j++) {
            for (size_t k = 0; k < m + 3; k++) a[i * m + j] += x[k * m + i] * x[k * m + j];
            if (i == j) a[i * m + j] += 0.5;
        }
    fkt_free(x);
    return a;
}

static void products_match_plain_loops(void **state)
{
    const size_t shapes[][3] = {{1, 1, 1}, {2, 3, 5}, {7, 1, 4}, {33, 65, 17}, {3, 0, 2}, {0, 3, 2}, {2, 3, 0}};
    (void)state;
    CHECK(fkt_blas_core()[0] != '\0');
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        size_t n = shapes[s][0], m = shapes[s][1], k = shapes[s][2];
        double *a = random_matrix(n, m, 1), *b = random_matrix(m, k, 2), *bt = zeros(k * m);
        double *c = random_matrix(n, k, 3), *cnt = random_matrix(n, k, 4);
        for (size_t i = 0; i < m; i++)
            for (size_t j = 0; j < k; j++) bt[j * m + i] = b[i * k + j];
        if (n * k > 0) c[0] = NAN; /* what was in c must not matter */
        fkt_gemm(c, a, b, n, m, k);
        fkt_gemm_nt(cnt, a, bt, n, m, k);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < k; j++) {
                double want = 0;
                for (size_t l = 0; l < m; l++) want += a[i * m + l] * b[l * k + j];
                CHECK_NEAR(c[i * k + j], want, 1e-12);
                CHECK_NEAR(cnt[i * k + j], want, 1e-12);
            }
        fkt_free(a), fkt_free(b), fkt_free(bt), fkt_free(c), fkt_free(cnt);
    }
}

static void syrk_adds_to_the_upper_triangle_only(void **state)
{
    (void)state;
    for (size_t s = 0; s < SIDES; s++) {
        size_t m = sides[s], n = 41;
        double *x = random_matrix(n, m, 5), *c = random_matrix(m, m, 6), *before = random_matrix(m, m, 6);
        fkt_syrk(c, x, n, m);
        for (size_t i = 0; i < m; i++)
            for (size_t j = 0; j < m; j++) {
                double want = before[i * m + j];
                for (size_t k = 0; j >= i && k < n; k++) want += x[k * m + i] * x[k * m + j];
                CHECK_NEAR(c[i * m + j], want, j >= i ? 1e-11 : 0);
            }
        fkt_syrk(before, x, 0, m);
        fkt_free(x), fkt_free(c), fkt_free(before);
    }
}

static void eigenvectors_are_rows_that_rebuild_the_matrix(void **state)
{
    (void)state;
    for (size_t s = 0; s < SIDES; s++) {
        size_t m = sides[s];
        double *a = random_spd(m, 7), *copy = random_spd(m, 7), *v = zeros(m * m), *e = zeros(m);
        CHECK_OK(fkt_eigen(e, v, a, m));
        CHECK(!memcmp(a, copy, m * m * sizeof *a));
        for (size_t i = 0; i < m; i++) {
            size_t top = 0;
            if (i > 0) CHECK(e[i - 1] <= e[i]);
            for (size_t j = 0; j < m; j++) {
                double av = 0, dot = 0;
                for (size_t k = 0; k < m; k++) av += a[j * m + k] * v[i * m + k], dot += v[i * m + k] * v[j * m + k];
                CHECK_NEAR(av, e[i] * v[i * m + j], 1e-11 * (1 + e[m - 1]));
                CHECK_NEAR(dot, i == j, 1e-12);
                if (fabs(v[i * m + j]) > fabs(v[i * m + top])) top = j;
            }
            CHECK(v[i * m + top] > 0);
        }
        fkt_free(a), fkt_free(copy), fkt_free(v), fkt_free(e);
    }
}

static void eigen_of_a_known_matrix(void **state)
{
    const double a[4] = {2, 1, 1, 2};
    double e[2], v[4];
    (void)state;
    CHECK_OK(fkt_eigen(e, v, a, 2));
    CHECK_NEAR(e[0], 1, 1e-15);
    CHECK_NEAR(e[1], 3, 1e-15);
    CHECK_NEAR(fabs(v[0]), sqrt(0.5), 1e-15);
    CHECK_NEAR(v[0] + v[1], 0, 1e-15);
    CHECK_NEAR(v[2], sqrt(0.5), 1e-15);
    CHECK_NEAR(v[3], sqrt(0.5), 1e-15);
}

static void bad_matrices_are_refused(void **state)
{
    const double bad[] = {NAN, INFINITY, -INFINITY};
    double e[3], v[9];
    (void)state;
    for (size_t b = 0; b < 3; b++)
        for (size_t i = 0; i < 9; i++) {
            double a[9] = {2, 0, 0, 0, 2, 0, 0, 0, 2};
            a[i] = bad[b];
            CHECK_STATUS(fkt_eigen(e, v, a, 3), FKT_E_NUMERIC);
        }
    CHECK_STATUS(fkt_eigen(NULL, NULL, NULL, 40000), FKT_E_ARG);
    CHECK_OK(fkt_eigen(NULL, NULL, NULL, 0));
}

static void each_allocation_of_eigen_may_fail(void **state)
{
    double *a = random_spd(17, 10), *v = zeros(17 * 17), *e = zeros(17);
    size_t live = fkt_alloc_live(), n = 1;
    (void)state;
    for (;; n++) {
        fkt_alloc_fault_at(n, 0);
        fkt_status st = fkt_eigen(e, v, a, 17);
        fkt_alloc_fault_at(0, 0);
        CHECK(fkt_alloc_live() == live);
        if (st == FKT_OK) break;
        CHECK(st == FKT_E_NOMEM);
    }
    CHECK(n == 3);
    fkt_free(a), fkt_free(v), fkt_free(e);
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_match_plain_loops),
        cmocka_unit_test(syrk_adds_to_the_upper_triangle_only),
        cmocka_unit_test(eigenvectors_are_rows_that_rebuild_the_matrix),
        cmocka_unit_test(eigen_of_a_known_matrix),
        cmocka_unit_test(bad_matrices_are_refused),
        cmocka_unit_test(each_allocation_of_eigen_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
