/* SPDX-License-Identifier: Apache-2.0 */
/* test_features_mixture.c - mixtures of Gaussians: EM against SciPy (oracle/features.py), a likelihood that never
 * falls, moments of draws, and what is refused. */
#include "tests/support/feature_records.h"

static enum fkt_covariance kind_of(const json_t *one)
{
    const char *name = vectors_text(one, "kind");
    return !strcmp(name, "spherical")  ? FKT_COVARIANCE_SPHERICAL
           : !strcmp(name, "diagonal") ? FKT_COVARIANCE_DIAGONAL
                                       : FKT_COVARIANCE_FULL;
}

/* Where the oracle begins: means are the first records, variances 0.05. */
static void begin(struct fkt_mixture *g, enum fkt_covariance kind, uint32_t components, const struct fkt_features *f)
{
    CHECK_OK(fkt_mixture_new(g, kind, components, RECORD_M));
    memcpy(g->mean, f->x, components * RECORD_M * sizeof *g->mean);
    for (uint32_t k = 0; k < components; k++) {
        g->weight[k] = 1.0 / components;
        for (size_t j = 0; j < fkt_mixture_cov(g); j++)
            g->cov[k * fkt_mixture_cov(g) + j] = kind != FKT_COVARIANCE_FULL || j % (RECORD_M + 1) == 0 ? 0.05 : 0;
    }
}

static void em_is_that_of_scipy(void **state)
{
    json_t *root, *cases = vectors_open(&root, "features.json"), *one;
    unsigned seen = 0;
    size_t i;
    (void)state;
    json_array_foreach (cases, i, one) {
        struct fkt_features f;
        struct fkt_mixture g;
        double likelihood[8];
        uint32_t done, K;
        if (!feature_case(one, "em", &seen)) continue;
        K = (uint32_t)vectors_int(one, "components");
        feature_records(&f, (size_t)vectors_int(one, "n"), 0);
        begin(&g, kind_of(one), K, &f);
        CHECK_OK(fkt_mixture_em(&g, f.x, f.n, (uint32_t)vectors_int(one, "iterations"), -INFINITY, likelihood, &done));
        check_numbers(likelihood, one, "likelihood", done, 1e-9);
        check_numbers(g.weight, one, "weight", K, 1e-9);
        check_numbers(g.mean, one, "mean", (size_t)K * RECORD_M, 1e-9);
        check_numbers(g.cov, one, "cov", K * fkt_mixture_cov(&g), 1e-9);
        fkt_mixture_clear(&g);
        fkt_features_clear(&f);
    }
    assert_int_equal(seen, 9);
    json_decref(root);
}

static void the_likelihood_never_falls(void **state)
{
    double likelihood[60];
    struct fkt_features f;
    struct fkt_rng rng;
    uint32_t done;
    (void)state;
    feature_records(&f, 40, 0);
    for (int kind = 0; kind <= FKT_COVARIANCE_FULL; kind++)
        for (uint64_t seed = 0; seed < 5; seed++) {
            struct fkt_mixture g;
            fkt_rng_init(&rng, seed, 0);
            CHECK_OK(fkt_mixture_new(&g, (enum fkt_covariance)kind, 8, RECORD_M)); /* floors are reached */
            CHECK_OK(fkt_mixture_start(&g, f.x, f.n, &rng));
            CHECK_OK(fkt_mixture_em(&g, f.x, f.n, 60, -INFINITY, likelihood, &done));
            assert_int_equal(done, 60);
            for (uint32_t t = 1; t < done; t++) CHECK(likelihood[t] >= likelihood[t - 1] - 1e-10);
            CHECK(likelihood[59] > likelihood[0] + 0.1);
            CHECK_OK(fkt_mixture_em(&g, f.x, f.n, 60, 1e-3, likelihood, &done)); /* it stops once nothing is gained */
            CHECK(done < 60);
            fkt_mixture_clear(&g);
        }
    fkt_features_clear(&f);
}

/* Means and covariances of 40,000 draws, limits of six standard errors. */
static void draws_have_the_moments(void **state)
{
    enum { N = 40000 };
    static const double cov[] = {1, 0.5, 0.5, 2, 0.25, 0, 0, 4};
    double *x = NULL, mean[2] = {0, 0}, square[3] = {0, 0, 0};
    struct fkt_mixture g;
    struct fkt_rng rng;
    (void)state;
    fkt_rng_init(&rng, 3, 0);
    CHECK_OK(fkt_alloc(&x, 2 * N));
    CHECK_OK(fkt_mixture_new(&g, FKT_COVARIANCE_FULL, 2, 2));
    memcpy(g.cov, cov, sizeof cov);
    g.weight[0] = 0.25;
    g.weight[1] = 0.75;
    g.mean[0] = 4;
    g.mean[3] = -4;
    CHECK_OK(fkt_mixture_sample(&g, N, &rng, x));
    for (size_t i = 0; i < N; i++) {
        for (int j = 0; j < 2; j++) mean[j] += x[2 * i + (size_t)j] / N;
        square[0] += x[2 * i] * x[2 * i] / N;
        square[1] += x[2 * i] * x[2 * i + 1] / N;
        square[2] += x[2 * i + 1] * x[2 * i + 1] / N;
    }
    CHECK_NEAR(mean[0], 1, 0.06);
    CHECK_NEAR(mean[1], -3, 0.08);
    CHECK_NEAR(square[0], 0.25 * 17 + 0.75 * 0.25, 0.3);
    CHECK_NEAR(square[1], 0.25 * 0.5, 0.2);
    CHECK_NEAR(square[2], 0.25 * 2 + 0.75 * 20, 0.5);
    fkt_mixture_clear(&g);
    fkt_free(x);
}

/* [[0, 1], [1, 0]] has eigenvalues 1 and -1: its projection is [[1, 1], [1, 1]] / 2. */
static void a_covariance_is_projected(void **state)
{
    double x[200];
    struct fkt_mixture g;
    struct fkt_rng rng;
    (void)state;
    fkt_rng_init(&rng, 1, 0);
    CHECK_OK(fkt_mixture_new(&g, FKT_COVARIANCE_FULL, 1, 2));
    g.weight[0] = 1;
    g.cov[1] = g.cov[2] = 1;
    CHECK_OK(fkt_mixture_sample(&g, 100, &rng, x));
    for (int i = 0; i < 100; i++) CHECK_NEAR(x[2 * i], x[2 * i + 1], 1e-12);
    fkt_mixture_clear(&g);
}

static void bad_input_is_refused(void **state)
{
    const double one[2] = {1, 2}, nan[2] = {1, NAN};
    struct fkt_mixture g;
    struct fkt_rng rng;
    double draw[2];
    (void)state;
    fkt_rng_init(&rng, 1, 0);
    CHECK_STATUS(fkt_mixture_new(&g, FKT_COVARIANCE_FULL, 0, 2), FKT_E_ARG);
    CHECK_OK(fkt_mixture_new(&g, FKT_COVARIANCE_DIAGONAL, 2, 2));
    CHECK_STATUS(fkt_mixture_start(&g, one, 1, &rng), FKT_E_ARG); /* fewer records than components */
    fkt_mixture_clear(&g);
    for (int kind = 0; kind <= FKT_COVARIANCE_FULL; kind++) {
        CHECK_OK(fkt_mixture_new(&g, (enum fkt_covariance)kind, 1, 2));
        CHECK_STATUS(fkt_mixture_start(&g, nan, 1, &rng), FKT_E_NUMERIC);
        CHECK_STATUS(fkt_mixture_em(&g, nan, 1, 2, 0, NULL, NULL), FKT_E_NUMERIC);
        CHECK_STATUS(fkt_mixture_em(&g, one, 0, 2, 0, NULL, NULL), FKT_E_ARG);
        CHECK_OK(fkt_mixture_start(&g, one, 1, &rng)); /* one record: the floor */
        CHECK_OK(fkt_mixture_em(&g, one, 1, 5, 1e-3, NULL, NULL));
        CHECK_OK(fkt_mixture_sample(&g, 1, &rng, draw));
        CHECK_NEAR(draw[0], 1, 0.01);
        CHECK_NEAR(g.cov[0], FKT_MIXTURE_FLOOR, 1e-15);
        fkt_mixture_clear(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(em_is_that_of_scipy),    cmocka_unit_test(the_likelihood_never_falls),
        cmocka_unit_test(draws_have_the_moments), cmocka_unit_test(a_covariance_is_projected),
        cmocka_unit_test(bad_input_is_refused),
    };
    return check_nothing_left(cmocka_run_group_tests(tests, NULL, NULL));
}
