/* SPDX-License-Identifier: Apache-2.0 */
#include "fedkt/synth.h"
#include "tests/support/check.h"

/* Two classes in three dimensions; class 1 is flat in one direction. */
static double means[] = {1, -2, 0.5, 10, 0, -10};
static double factors[] = {1, 0, 0, 0.5, 2, 0, -1, 0.25, 0.125, /* */ 3, 0, 0, 0, 0, 0, 1, 1, 1};
static const struct fkt_gaussians toy = {.classes = 2, .length = 3, .mean = means, .factor = factors};

static void samples_do_not_depend_on_chunks(void **state)
{
    double all[40 * 3], part[40 * 3], other[3];
    const uint64_t first = 18446744073709551600U; /* the index may be any 64-bit number, and wraps */
    (void)state;
    CHECK_OK(fkt_gaussians_sample(&toy, 1, 9, first, 40, all));
    for (size_t chunk = 1; chunk < 40; chunk += 6)
        for (size_t i = 0; i < 40; i += chunk) {
            size_t n = chunk < 40 - i ? chunk : 40 - i;
            CHECK_OK(fkt_gaussians_sample(&toy, 1, 9, first + i, n, part));
            CHECK(!memcmp(part, all + 3 * i, n * 3 * sizeof *part));
        }
    CHECK_OK(fkt_gaussians_sample(&toy, 1, 10, first, 1, other));
    CHECK(other[0] != all[0]);
    for (int i = 1; i < 40; i++) CHECK(all[3 * i] != all[0]);
    CHECK_OK(fkt_gaussians_sample(&toy, 1, 9, first, 0, other));
    CHECK_STATUS(fkt_gaussians_sample(&toy, 2, 9, 0, 1, other), FKT_E_ARG);
    CHECK(fkt_alloc_live() == 0);
}

/* Classes with the same Gaussian still give different samples: the stream depends on k. */
static void classes_have_streams_of_their_own(void **state)
{
    double mean[2] = {0, 0}, factor[2] = {1, 1}, a[50], b[50], dot = 0;
    const struct fkt_gaussians twins = {.classes = 2, .length = 1, .mean = mean, .factor = factor};
    (void)state;
    CHECK_OK(fkt_gaussians_sample(&twins, 0, 1, 0, 50, a));
    CHECK_OK(fkt_gaussians_sample(&twins, 1, 1, 0, 50, b));
    for (int i = 0; i < 50; i++) dot += a[i] * b[i];
    CHECK(fabs(dot) < 6 * sqrt(50)); /* 6 standard errors */
    for (int i = 0; i < 50; i++) CHECK(a[i] != b[i]);
}

/* Part 0 has the numbers that a vector of one part always had; another part of the same Gaussian is independent. */
static void parts_have_streams_of_their_own(void **state)
{
    double mean[1] = {0}, factor[1] = {1}, a[400], b[400], c[400], ab = 0, bc = 0;
    struct fkt_gaussians g = {.classes = 1, .length = 1, .mean = mean, .factor = factor};
    (void)state;
    CHECK_OK(fkt_gaussians_sample(&g, 0, 7, 0, 400, a));
    CHECK_NEAR(a[0], 0.14367720476140525, 1e-12);
    g.part = 1;
    CHECK_OK(fkt_gaussians_sample(&g, 0, 7, 0, 400, b));
    g.part = 2;
    CHECK_OK(fkt_gaussians_sample(&g, 0, 7, 0, 400, c));
    for (int i = 0; i < 400; i++) {
        CHECK(a[i] != b[i] && b[i] != c[i]);
        ab += a[i] * b[i];
        bc += b[i] * c[i];
    }
    CHECK(fabs(ab) < 6 * sqrt(400) && fabs(bc) < 6 * sqrt(400)); /* 6 standard errors */
}

/* Mean and covariance of 100,000 samples against those asked for: 18 numbers, each within 6 standard errors; a right
 * sampler fails for one seed in 28 million. */
static void samples_have_the_mean_and_covariance(void **state)
{
    enum { N = 100000 };
    double *w = NULL;
    (void)state;
    CHECK_OK(fkt_alloc(&w, N * 3));
    for (uint32_t k = 0; k < 2; k++) {
        double sum[3] = {0}, square[9] = {0};
        CHECK_OK(fkt_gaussians_sample(&toy, k, 4, 0, N, w));
        for (size_t s = 0; s < N; s++)
            for (size_t i = 0; i < 3; i++) {
                double x = w[3 * s + i] - means[3 * k + i];
                sum[i] += x;
                for (size_t j = 0; j < 3; j++) square[3 * i + j] += x * (w[3 * s + j] - means[3 * k + j]);
            }
        for (size_t i = 0; i < 3; i++)
            for (size_t j = 0; j < 3; j++) {
                double cij = 0, cii = 0, cjj = 0;
                for (size_t t = 0; t < 3; t++) {
                    const double *fi = factors + 9 * k + 3 * i, *fj = factors + 9 * k + 3 * j;
                    cij += fi[t] * fj[t];
                    cii += fi[t] * fi[t];
                    cjj += fj[t] * fj[t];
                }
                CHECK_NEAR(square[3 * i + j] / N, cij, 6 * sqrt((cii * cjj + cij * cij) / N));
                if (i == j) CHECK_NEAR(sum[i] / N, 0, 6 * sqrt(cii / N));
            }
    }
    fkt_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_do_not_depend_on_chunks),
        cmocka_unit_test(classes_have_streams_of_their_own),
        cmocka_unit_test(parts_have_streams_of_their_own),
        cmocka_unit_test(samples_have_the_mean_and_covariance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
