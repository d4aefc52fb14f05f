/* SPDX-License-Identifier: Apache-2.0 */
/* test_features_methods.c - FedPFT, DP-FedPFT, DP-MERF and their linear head: against NumPy and SciPy
 * (oracle/features.py), sensitivities by brute force, and runs that repeat. */
#include "tests/support/feature_records.h"

#include "fedkt/privacy.h"

static void noise_is_that_of_scipy(void **state)
{
    json_t *root, *cases = vectors_open(&root, "features.json"), *one;
    unsigned seen = 0;
    size_t i;
    (void)state;
    json_array_foreach (cases, i, one) {
        double mean, cov, sum, count, mu;
        if (!feature_case(one, "sigmas", &seen)) continue;
        mu = fkt_privacy_mu(vectors_number(one, "epsilon"), vectors_number(one, "delta"));
        fkt_dpfedpft_sigmas(vectors_number(one, "radius"), (size_t)vectors_int(one, "n"), mu, &mean, &cov);
        fkt_embedding_sigmas(mu, &count, &sum);
        CHECK_REL(mean, vectors_number(one, "mean"), 1e-9);
        CHECK_REL(cov, vectors_number(one, "cov"), 1e-9);
        CHECK_REL(sum, vectors_number(one, "sum"), 1e-9);
        CHECK_REL(count, vectors_number(one, "count"), 1e-9);
    }
    assert_int_equal(seen, 4);
    json_decref(root);
}

/* A point of the ball in m coordinates, often of its edge or near an axis. */
static void point(struct fkt_rng *rng, double radius, size_t m, double *x)
{
    const double length = fkt_rng_below(rng, 4) ? radius : radius * fkt_rng_unit(rng);
    double square = 0;
    for (size_t j = 0; j < m; j++) {
        x[j] = fkt_rng_normal(rng) * (j && fkt_rng_below(rng, 2) ? 0.1 : 1);
        square += x[j] * x[j];
    }
    for (size_t j = 0; j < m; j++) x[j] *= length / sqrt(square);
}

/* Squared distance of two exact Gaussians in units of the noise of mu: at most mu^2, whatever record is replaced. */
static double apart(const double *x, const double *y, size_t n, uint32_t m, double radius, double mu)
{
    double sigma_mean, sigma_cov, mean = 0, cov = 0;
    struct fkt_mixture a, b;
    struct fkt_rng rng;
    fkt_rng_init(&rng, 0, 0);
    CHECK_OK(fkt_dpfedpft_release(&a, x, n, m, radius, INFINITY, &rng));
    CHECK_OK(fkt_dpfedpft_release(&b, y, n, m, radius, INFINITY, &rng));
    fkt_dpfedpft_sigmas(radius, n, mu, &sigma_mean, &sigma_cov);
    for (size_t j = 0; j < m; j++) mean += pow((a.mean[j] - b.mean[j]) / sigma_mean, 2);
    for (size_t j = 0; j < (size_t)m * m; j++) cov += pow((a.cov[j] - b.cov[j]) / sigma_cov, 2);
    fkt_mixture_clear(&a);
    fkt_mixture_clear(&b);
    return mean + cov;
}

/* cov counts entries off the diagonal twice, each with half the variance in the release: the same number. */
static void no_replacement_exceeds_the_bound_of_dpfedpft(void **state)
{
    enum { M = 3 };
    const double radius = 1.3, mu = 0.7;
    double x[5 * M], y[5 * M], most = 0;
    struct fkt_rng rng;
    (void)state;
    fkt_rng_init(&rng, 9, 0);
    for (size_t n = 1; n <= 5; n++)
        for (int t = 0; t < 4000; t++) {
            for (size_t i = 0; i < n; i++) point(&rng, radius, M, x + i * M);
            if (t % 2) /* all others at one place: where the bound is attained */
                for (size_t i = 2; i < n; i++) memcpy(x + i * M, x + M, M * sizeof *x);
            memcpy(y, x, sizeof y);
            point(&rng, radius, M, y);
            most = fmax(most, apart(x, y, n, M, radius, mu));
        }
    CHECK(most <= mu * mu * (1 + 1e-9));
    for (size_t n = 1; n <= 5; n++) { /* x = -y = -m */
        memset(x, 0, sizeof x);
        for (size_t i = 0; i < n; i++) x[i * M] = i ? -radius : radius;
        memcpy(y, x, sizeof y);
        y[0] = -radius;
        if (n > 1) CHECK_REL(apart(x, y, n, M, radius, mu), mu * mu, 1e-9);
    }
}

/* Noise has the scale that was asked for: mean square of 400 releases, limits of six standard errors. */
static void noise_of_dpfedpft_has_its_scale(void **state)
{
    const double x[6] = {0.5, 0, 0, 0.5, -0.5, 0}, radius = 1, mu = 2;
    double sigma_mean, sigma_cov, square[3] = {0, 0, 0};
    struct fkt_mixture exact, g;
    struct fkt_rng rng;
    (void)state;
    fkt_rng_init(&rng, 4, 0);
    CHECK_OK(fkt_dpfedpft_release(&exact, x, 3, 2, radius, INFINITY, &rng));
    CHECK_NEAR(exact.mean[1], 0.5 / 3, 1e-15);
    CHECK_NEAR(exact.cov[0], 0.5 / 3, 1e-15);
    CHECK_NEAR(exact.cov[3], 0.25 / 3 - 0.25 / 9, 1e-15);
    fkt_dpfedpft_sigmas(radius, 3, mu, &sigma_mean, &sigma_cov);
    for (int t = 0; t < 400; t++) {
        CHECK_OK(fkt_dpfedpft_release(&g, x, 3, 2, radius, mu, &rng));
        square[0] += pow((g.mean[0] - exact.mean[0]) / sigma_mean, 2) / 400;
        square[1] += pow((g.cov[0] - exact.cov[0]) / sigma_cov, 2) / 400;
        square[2] += pow((g.cov[1] - exact.cov[1]) / sigma_cov, 2) / 200;
        CHECK_NEAR(g.cov[1], g.cov[2], 0);
        fkt_mixture_clear(&g);
    }
    for (int i = 0; i < 3; i++) CHECK_NEAR(square[i], 1, 6 * sqrt(2.0 / 400));
    fkt_mixture_clear(&exact);
}

static void oracle_frequencies(struct fkt_fourier *f, uint32_t frequencies)
{
    struct fkt_rng rng;
    fkt_rng_init(&rng, 0, 0);
    CHECK_OK(fkt_fourier_new(f, RECORD_M, frequencies, 1, &rng));
    for (size_t k = 0; k < frequencies; k++)
        for (size_t j = 0; j < RECORD_M; j++)
            f->w[k * RECORD_M + j] = sin(1.7 * (double)k + 0.6 * (double)j + 0.3 * (double)k * (double)j);
}

static void embeddings_are_those_of_numpy(void **state)
{
    json_t *root, *cases = vectors_open(&root, "features.json"), *one;
    unsigned seen = 0;
    size_t i;
    (void)state;
    json_array_foreach (cases, i, one) {
        struct fkt_embedding all, sites;
        struct fkt_features in;
        struct fkt_fourier f;
        double phi[64];
        if (!feature_case(one, "fourier", &seen)) continue;
        feature_records(&in, (size_t)vectors_int(one, "n"), 3);
        oracle_frequencies(&f, (uint32_t)vectors_int(one, "frequencies"));
        CHECK_OK(fkt_fourier_apply(&f, in.x, 1, phi));
        check_numbers(phi, one, "first", 2 * f.frequencies, 1e-12);
        CHECK_OK(fkt_embedding_new(&all, RECORD_CLASSES, 2 * f.frequencies));
        CHECK_OK(fkt_embedding_new(&sites, RECORD_CLASSES, 2 * f.frequencies));
        CHECK_OK(fkt_embedding_add(&all, &f, &in, UINT32_MAX));
        for (uint32_t s = 0; s < 3; s++) CHECK_OK(fkt_embedding_add(&sites, &f, &in, s));
        check_numbers(all.sum, one, "sum", RECORD_CLASSES * 2 * f.frequencies, 1e-9);
        check_numbers(all.count, one, "count", RECORD_CLASSES, 0);
        check_numbers(sites.sum, one, "sum", RECORD_CLASSES * 2 * f.frequencies, 1e-9);
        fkt_embedding_clear(&all);
        fkt_embedding_clear(&sites);
        fkt_fourier_clear(&f);
        fkt_features_clear(&in);
    }
    assert_int_equal(seen, 1);
    json_decref(root);
}

/* One record more changes the embedding by exactly 1 in one class, for any record, however large. */
static void a_record_changes_an_embedding_by_one(void **state)
{
    struct fkt_fourier f;
    struct fkt_rng rng;
    double x[RECORD_M], phi[80];
    (void)state;
    fkt_rng_init(&rng, 5, 0);
    CHECK_OK(fkt_fourier_new(&f, RECORD_M, 40, 0.5, &rng));
    for (int t = 0; t < 200; t++) {
        double square = 0;
        point(&rng, pow(10, t % 5), RECORD_M, x);
        CHECK_OK(fkt_fourier_apply(&f, x, 1, phi));
        for (int j = 0; j < 80; j++) square += phi[j] * phi[j];
        CHECK_NEAR(square, 1, 1e-12);
    }
    fkt_fourier_clear(&f);
    CHECK_STATUS(fkt_fourier_new(&f, RECORD_M, 40, 0, &rng), FKT_E_ARG);
    CHECK_STATUS(fkt_fourier_new(&f, RECORD_M, 40, NAN, &rng), FKT_E_ARG);
}

static void the_gradient_of_a_generator_is_that_of_numpy(void **state)
{
    json_t *root, *cases = vectors_open(&root, "features.json"), *one;
    unsigned seen = 0;
    size_t i;
    (void)state;
    json_array_foreach (cases, i, one) {
        struct fkt_merf_settings s;
        struct fkt_generator *g;
        struct fkt_fourier f;
        struct fkt_rng rng;
        double codes[64], target[64], gradient[128], loss;
        float *p;
        size_t n;
        if (!feature_case(one, "generator", &seen)) continue;
        fkt_merf_default(&s);
        s.code = (uint32_t)vectors_int(one, "code");
        s.hidden = (uint32_t)vectors_int(one, "hidden");
        s.batch = (uint32_t)vectors_int(one, "batch");
        oracle_frequencies(&f, (uint32_t)vectors_int(one, "frequencies"));
        fkt_rng_init(&rng, 0, 0);
        CHECK_OK(fkt_generator_new(&g, &s, RECORD_M, RECORD_CLASSES, vectors_number(one, "radius"), &rng));
        p = fkt_generator_parameters(g, &n);
        CHECK(n <= 128);
        for (size_t k = 0; k < n; k++) p[k] = (float)(0.3 * sin(0.37 * (double)k + 0.2));
        for (size_t k = 0; k < (size_t)RECORD_CLASSES * s.batch * s.code; k++)
            codes[k] = cos(0.9 * (double)(k / s.code) + 0.5 * (double)(k % s.code));
        for (size_t k = 0; k < 2 * (size_t)f.frequencies * RECORD_CLASSES; k++)
            target[k] = 0.1 * cos((double)(k / (2 * f.frequencies)) + 0.4 * (double)(k % (2 * f.frequencies)));
        CHECK_OK(fkt_generator_loss(g, &f, target, codes, &loss));
        CHECK_NEAR(loss, vectors_number(one, "loss"), 1e-6);
        for (size_t k = 0; k < n; k++) gradient[k] = fkt_generator_gradient(g)[k];
        check_numbers(gradient, one, "gradient", n, 1e-6);
        fkt_generator_free(g);
        fkt_fourier_clear(&f);
    }
    assert_int_equal(seen, 1);
    json_decref(root);
}

/* Floats rounded at each of 15 steps. */
static void the_head_is_that_of_numpy(void **state)
{
    json_t *root, *cases = vectors_open(&root, "features.json"), *one;
    unsigned seen = 0;
    size_t i;
    (void)state;
    json_array_foreach (cases, i, one) {
        struct fkt_softmax_settings s;
        struct fkt_features in;
        struct fkt_softmax h;
        double w[RECORD_CLASSES * (RECORD_M + 1)], accuracy;
        if (!feature_case(one, "softmax", &seen)) continue;
        feature_records(&in, (size_t)vectors_int(one, "n"), 0);
        s = (struct fkt_softmax_settings){.epochs = (uint32_t)vectors_int(one, "epochs"),
                                          .batch = (uint32_t)vectors_int(one, "batch"),
                                          .rate = vectors_number(one, "rate"),
                                          .decay = vectors_number(one, "decay"),
                                          .seed = (uint64_t)vectors_int(one, "seed")};
        CHECK_OK(fkt_softmax_fit(&h, &in, &s));
        for (size_t k = 0; k < sizeof w / sizeof *w; k++) w[k] = h.w[k];
        check_numbers(w, one, "w", sizeof w / sizeof *w, 1e-5);
        CHECK_OK(fkt_softmax_accuracy(&h, &in, &accuracy));
        CHECK_NEAR(accuracy, vectors_number(one, "accuracy"), 1e-12);
        fkt_softmax_clear(&h);
        fkt_features_clear(&in);
    }
    assert_int_equal(seen, 1);
    json_decref(root);
}

/* ---- whole methods ---- */

typedef fkt_status method(struct fkt_features *out, const struct fkt_features *in, double mu, uint64_t seed,
                          uint64_t *bytes);

static fkt_status fedpft(struct fkt_features *out, const struct fkt_features *in, double mu, uint64_t seed,
                         uint64_t *bytes)
{
    struct fkt_fedpft_settings s;
    (void)mu;
    fkt_fedpft_default(&s);
    s.seed = seed;
    return fkt_fedpft(out, in, &s, bytes);
}

static fkt_status merf(struct fkt_features *out, const struct fkt_features *in, double mu, uint64_t seed,
                       uint64_t *bytes)
{
    struct fkt_merf_settings s;
    double loss[2] = {NAN, NAN};
    fkt_status st;
    fkt_merf_default(&s);
    s.frequencies = 60;
    s.batch = 20;
    s.steps = 200;
    s.federated = 1;
    s.seed = seed;
    st = fkt_merf(out, in, &s, mu, bytes, loss);
    if (st == FKT_OK && isinf(mu)) CHECK(loss[1] < loss[0] / 3);
    return st;
}

static int stop_after_three(void *calls, const char *what, unsigned long long done, unsigned long long total)
{
    (void)what;
    (void)total;
    ++*(unsigned *)calls;
    return done >= 3;
}

static void training_stops_when_it_is_asked_to(void **state)
{
    unsigned calls = 0;
    const struct fkt_progress progress = {.step = stop_after_three, .self = &calls};
    struct fkt_merf_settings s;
    struct fkt_features in, out;
    uint64_t bytes;
    (void)state;
    feature_records(&in, 30, 2);
    fkt_merf_default(&s);
    s.progress = &progress;
    CHECK_STATUS(fkt_merf(&out, &in, &s, 1, &bytes, NULL), FKT_E_STOPPED);
    assert_int_equal(calls, 3);
    fkt_features_clear(&in);
}

static method *const methods[] = {fedpft, fkt_dpfedpft, merf};
enum { METHODS = sizeof methods / sizeof *methods };

/* Of a head on drawn features (m NULL: on the records themselves), on the records. */
static double accuracy_of(method *m, const struct fkt_features *in, double mu, uint64_t seed)
{
    struct fkt_softmax_settings s;
    struct fkt_features drawn = {0};
    struct fkt_softmax h;
    uint64_t bytes = 0;
    double accuracy;
    fkt_softmax_default(&s);
    if (m) CHECK_OK(m(&drawn, in, mu, seed, &bytes));
    CHECK_OK(fkt_softmax_fit(&h, m ? &drawn : in, &s));
    CHECK_OK(fkt_softmax_accuracy(&h, in, &accuracy));
    CHECK((bytes > 0) == (m != NULL));
    fkt_softmax_clear(&h);
    fkt_features_clear(&drawn);
    return accuracy;
}

static void heads_on_drawn_features_know_the_classes(void **state)
{
    struct fkt_features in;
    double real;
    (void)state;
    feature_records(&in, 900, 4);
    real = accuracy_of(NULL, &in, 0, 0);
    CHECK(real > 0.7);
    for (size_t i = 0; i < METHODS; i++) {
        const double exact = accuracy_of(methods[i], &in, INFINITY, 1), noised = accuracy_of(methods[i], &in, 0.001, 1);
        if (!(exact > real - 0.05)) fail_msg("method %zu knows %g of the records, a head on them %g", i, exact, real);
        if (methods[i] != fedpft && !(noised < exact - 0.1))
            fail_msg("method %zu: %g with much noise, %g without", i, noised, exact);
    }
    fkt_features_clear(&in);
}

static void a_seed_decides_everything(void **state)
{
    struct fkt_features in, a, b, c;
    uint64_t bytes;
    (void)state;
    feature_records(&in, 90, 4);
    for (size_t i = 0; i < METHODS; i++) {
        CHECK_OK(methods[i](&a, &in, 1, 5, &bytes));
        CHECK_OK(methods[i](&b, &in, 1, 5, &bytes));
        CHECK_OK(methods[i](&c, &in, 1, 6, &bytes));
        CHECK(a.n == b.n && !memcmp(a.x, b.x, a.n * RECORD_M * sizeof *a.x));
        CHECK(memcmp(a.x, c.x, (a.n < c.n ? a.n : c.n) * RECORD_M * sizeof *a.x) != 0);
        fkt_features_clear(&a);
        fkt_features_clear(&b);
        fkt_features_clear(&c);
    }
    fkt_features_clear(&in);
}

/* Site 1 has nothing, class 2 one record in all. */
static void empty_sites_and_single_records_do_no_harm(void **state)
{
    struct fkt_features in, out;
    uint64_t bytes;
    (void)state;
    feature_records(&in, 20, 2);
    for (size_t i = 0; i < in.n; i++) {
        in.owner[i] = 0;
        in.label[i] = i == 7 ? 2 : (uint32_t)(i % 2);
    }
    for (size_t i = 0; i < METHODS; i++) {
        CHECK_OK(methods[i](&out, &in, 1, 5, &bytes));
        for (size_t k = 0; k < out.n * RECORD_M; k++) CHECK(isfinite(out.x[k]));
        CHECK(out.n > 0);
        fkt_features_clear(&out);
    }
    fkt_features_clear(&in);
}

static void bad_records_are_refused(void **state)
{
    struct fkt_softmax_settings s;
    struct fkt_features in, out;
    struct fkt_softmax h;
    uint64_t bytes;
    (void)state;
    fkt_softmax_default(&s);
    for (int bad = 0; bad < 5; bad++) {
        const fkt_status want = bad < 3 ? FKT_E_NUMERIC : FKT_E_ARG;
        feature_records(&in, 30, 2);
        if (bad == 0) in.x[5] = NAN;
        if (bad == 1) in.x[5] = INFINITY;
        if (bad == 2) in.x[5] = 2.1; /* outside the ball: the noise would be too small */
        if (bad == 3) in.label[5] = RECORD_CLASSES;
        if (bad == 4) in.owner[5] = 2;
        for (size_t i = 0; i < METHODS; i++) CHECK_STATUS(methods[i](&out, &in, 1, 5, &bytes), want);
        CHECK_STATUS(fkt_softmax_fit(&h, &in, &s), want);
        fkt_features_clear(&in);
    }
    feature_records(&in, 30, 2);
    for (size_t i = 1; i < METHODS; i++) {
        CHECK_STATUS(methods[i](&out, &in, 0, 5, &bytes), FKT_E_ARG);
        CHECK_STATUS(methods[i](&out, &in, NAN, 5, &bytes), FKT_E_ARG);
    }
    in.n = 0;
    CHECK_STATUS(fkt_softmax_fit(&h, &in, &s), FKT_E_ARG);
    fkt_features_clear(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_is_that_of_scipy),
        cmocka_unit_test(no_replacement_exceeds_the_bound_of_dpfedpft),
        cmocka_unit_test(noise_of_dpfedpft_has_its_scale),
        cmocka_unit_test(embeddings_are_those_of_numpy),
        cmocka_unit_test(a_record_changes_an_embedding_by_one),
        cmocka_unit_test(the_gradient_of_a_generator_is_that_of_numpy),
        cmocka_unit_test(the_head_is_that_of_numpy),
        cmocka_unit_test(heads_on_drawn_features_know_the_classes),
        cmocka_unit_test(a_seed_decides_everything),
        cmocka_unit_test(empty_sites_and_single_records_do_no_harm),
        cmocka_unit_test(bad_records_are_refused),
        cmocka_unit_test(training_stops_when_it_is_asked_to),
    };
    return check_nothing_left(cmocka_run_group_tests(tests, NULL, NULL));
}
