/* SPDX-License-Identifier: Apache-2.0 */
#include "classifier/heads.h"

#include "base/file.h"
#include "base/rng.h"
#include "tensor/linalg.h"
#include "tests/support/check.h"

static const double *take(const double **p, size_t n)
{
    const double *at = *p;
    *p += n;
    return at;
}

/* heads.bin, by oracle/heads.py: the textbook without noise, then our rules by explicit inverses. */
static void golden_vectors(void **state)
{
    uint8_t *bytes = NULL;
    size_t len;
    const double *p;
    (void)state;
    CHECK_OK(fkt_file_read(&bytes, &len, FKT_TEST_VECTORS "/synth/heads.bin", 1 << 20));
    p = (const double *)(void *)bytes;
    for (int c = 0; c < 2; c++) {
        int64_t size[3];
        struct fkt_class_statistics s;
        const double *w;
        memcpy(size, take(&p, 3), sizeof size);
        CHECK(size[0] == 4 && size[1] == 5 && size[2] == 40);
        size_t k = (size_t)size[0], m = (size_t)size[1], n = (size_t)size[2];
        s = (struct fkt_class_statistics){.classes = (uint32_t)k, .length = (uint32_t)m};
        s.count = take(&p, k);
        s.mean = take(&p, k * m);
        s.cov = take(&p, k * m * m);
        s.noise_edge = take(&p, k);
        s.mean_noise = take(&p, k);
        w = take(&p, n * m);
        for (int kind = 0; kind < FKT_HEAD_KINDS; kind++) {
            const double *want = take(&p, n * k);
            double scores[4], work[5];
            uint32_t label[40];
            struct fkt_head *h = NULL;
            CHECK_OK(fkt_head_fit(&h, (enum fkt_head_kind)kind, &s));
            CHECK(fkt_head_classes(h) == k && fkt_head_length(h) == m);
            CHECK_OK(fkt_head_predict(h, w, n, label));
            for (size_t i = 0; i < n; i++) {
                size_t best = 0;
                fkt_head_scores(h, w + i * m, scores, work);
                for (size_t j = 0; j < k; j++) {
                    CHECK_NEAR(scores[j] - scores[0], want[i * k + j], 1e-10 * (1 + fabs(scores[0])));
                    if (want[i * k + j] > want[i * k + best]) best = j;
                }
                CHECK(label[i] == best);
            }
            fkt_head_free(h);
        }
    }
    CHECK((const uint8_t *)p == bytes + len);
    fkt_free(bytes);
    CHECK(fkt_alloc_live() == 0);
}

/* A toy of K Gaussian classes whose every moment carries noise, as a release would. */
enum { K = 4, M = 24, N = 4000 };
struct toy {
    double count[K], mean[K * M], cov[K * M * M], edge[K], noise[K], true_mean[K * M], spread[K * M];
};

static struct fkt_class_statistics view(const struct toy *t)
{
    return (struct fkt_class_statistics){.classes = K,
                                         .length = M,
                                         .count = t->count,
                                         .mean = t->mean,
                                         .cov = t->cov,
                                         .noise_edge = t->edge,
                                         .mean_noise = t->noise};
}

/* Class k: mean of size 1.5, diagonal covariance with a spectrum that falls and is permuted from class to class. */
static void toy_make(struct toy *t, double noise, uint64_t seed)
{
    struct fkt_rng rng;
    fkt_rng_init(&rng, seed, 0);
    for (size_t k = 0; k < K; k++) {
        double *cov = t->cov + k * M * M, sd = noise / sqrt(2 * M);
        t->count[k] = 1000;
        t->edge[k] = noise;
        t->noise[k] = noise / 4;
        for (size_t i = 0; i < M; i++) {
            t->true_mean[k * M + i] = fkt_rng_normal(&rng) * 1.5 / sqrt(M);
            t->mean[k * M + i] = t->true_mean[k * M + i] + t->noise[k] * fkt_rng_normal(&rng);
            t->spread[k * M + i] = sqrt(0.02 + 1 / (1.0 + (double)((i * 5 + k * 3) % M)));
            for (size_t j = i; j < M; j++)
                cov[i * M + j] = cov[j * M + i] = (i == j ? t->spread[k * M + i] * t->spread[k * M + i] : 0) +
                                                  sd * (i == j ? 1 : sqrt(0.5)) * fkt_rng_normal(&rng);
        }
    }
}

static void toy_draw(const struct toy *t, double *w, uint32_t *truth, uint64_t seed)
{
    struct fkt_rng rng;
    fkt_rng_init(&rng, seed, 1);
    for (size_t r = 0; r < N; r++) {
        truth[r] = (uint32_t)(r % K);
        for (size_t i = 0; i < M; i++)
            w[r * M + i] = t->true_mean[truth[r] * M + i] + t->spread[truth[r] * M + i] * fkt_rng_normal(&rng);
    }
}

static double hits(const struct fkt_head *h, const double *w, const uint32_t *truth)
{
    static uint32_t guess[N];
    size_t good = 0;
    CHECK_OK(fkt_head_predict(h, w, N, guess));
    for (size_t r = 0; r < N; r++) good += guess[r] == truth[r];
    return (double)good / N;
}

static double accuracy(const struct toy *t, enum fkt_head_kind kind, const double *w, const uint32_t *truth)
{
    struct fkt_class_statistics s = view(t);
    struct fkt_head *h = NULL;
    double a;
    CHECK_OK(fkt_head_fit(&h, kind, &s));
    a = hits(h, w, truth);
    fkt_head_free(h);
    return a;
}

/* What an unregularised inverse would do: |eigenvalue|, no floor, no mixing. */
static double accuracy_unregularised(const struct toy *t, const double *w, const uint32_t *truth)
{
    struct fkt_head *h = NULL;
    double values[M], vectors[M * M], a;
    CHECK_OK(fkt_head_new(&h, FKT_HEAD_QDA, K, &(struct fkt_head_part){0, M}, 1));
    memcpy(h->mean, t->mean, sizeof t->mean);
    for (size_t k = 0; k < K; k++) {
        CHECK_OK(fkt_eigen(values, vectors, t->cov + k * M * M, M));
        for (size_t i = 0; i < M; i++) {
            h->bias[k] -= log(fabs(values[i])) / 2;
            for (size_t j = 0; j < M; j++) h->map[k * M * M + j * M + i] = vectors[i * M + j] / sqrt(fabs(values[i]));
        }
    }
    a = hits(h, w, truth);
    fkt_head_free(h);
    return a;
}

/* 4,000 test vectors: one standard error is below 0.8 points. The seeds are fixed; the margins are several of them. */
static void noise_costs_little_where_an_inverse_collapses(void **state)
{
    static struct toy t;
    static double w[N * M];
    static uint32_t truth[N];
    const double noise[] = {0.05, 0.2, 0.5}, loss[] = {0.01, 0.03, 0.06}, collapse[] = {-0.01, 0.2, 0.1};
    double bayes;
    (void)state;
    toy_make(&t, 0, 11);
    toy_draw(&t, w, truth, 11);
    bayes = accuracy_unregularised(&t, w, truth); /* the truth itself: the Bayes rate */
    CHECK(bayes > 0.93);
    CHECK(accuracy(&t, FKT_HEAD_QDA, w, truth) > bayes - 0.01);
    CHECK(accuracy(&t, FKT_HEAD_LDA, w, truth) > bayes - 0.04);
    for (int i = 0; i < 3; i++) {
        double qda;
        toy_make(&t, noise[i], 11); /* the same truth under more noise */
        qda = accuracy(&t, FKT_HEAD_QDA, w, truth);
        CHECK(qda > bayes - loss[i]);
        CHECK(accuracy(&t, FKT_HEAD_LDA, w, truth) > bayes - loss[i] - 0.03);
        CHECK(accuracy(&t, FKT_HEAD_NEAREST_MEAN, w, truth) > bayes - loss[i] - 0.06);
        CHECK(accuracy_unregularised(&t, w, truth) < qda - collapse[i]);
    }
}

static void classes_may_come_in_any_order(void **state)
{
    static struct toy t, p;
    static double w[N * M];
    static uint32_t truth[N], a[N], b[N];
    const uint32_t order[K] = {2, 0, 3, 1};
    (void)state;
    toy_make(&t, 0.2, 21);
    for (size_t k = 0; k < K; k++) t.count[k] = 200.0 * (double)(k + 1), t.noise[k] /= (double)(k + 1);
    toy_draw(&t, w, truth, 21);
    for (size_t k = 0; k < K; k++) {
        p.count[k] = t.count[order[k]];
        p.edge[k] = t.edge[order[k]];
        p.noise[k] = t.noise[order[k]];
        memcpy(p.mean + k * M, t.mean + order[k] * M, M * sizeof *p.mean);
        memcpy(p.cov + k * M * M, t.cov + order[k] * M * M, M * M * sizeof *p.cov);
    }
    for (int kind = 0; kind < FKT_HEAD_KINDS; kind++) {
        struct fkt_class_statistics st = view(&t), sp = view(&p);
        struct fkt_head *ht = NULL, *hp = NULL;
        CHECK_OK(fkt_head_fit(&ht, (enum fkt_head_kind)kind, &st));
        CHECK_OK(fkt_head_fit(&hp, (enum fkt_head_kind)kind, &sp));
        CHECK_OK(fkt_head_predict(ht, w, N, a));
        CHECK_OK(fkt_head_predict(hp, w, N, b));
        for (size_t i = 0; i < N; i++) CHECK(a[i] == order[b[i]]);
        CHECK_OK(fkt_head_predict(ht, w + 7 * M, 1, b)); /* alone as in a batch */
        CHECK(a[7] == b[0]);
        fkt_head_free(ht);
        fkt_head_free(hp);
    }
}

/* A class that is all noise must not attract the records of others, in any head. */
static void a_class_of_noise_takes_nothing(void **state)
{
    static struct toy t;
    static double w[N * M];
    static uint32_t truth[N], guess[N];
    struct fkt_rng rng;
    (void)state;
    toy_make(&t, 0.02, 31);
    toy_draw(&t, w, truth, 31);
    fkt_rng_init(&rng, 31, 9);
    t.count[3] = 1;
    t.edge[3] = 20;
    t.noise[3] = 5;
    for (size_t i = 0; i < M; i++) t.mean[3 * M + i] = 5 * fkt_rng_normal(&rng);
    for (int kind = 0; kind < FKT_HEAD_KINDS; kind++) {
        struct fkt_class_statistics s = view(&t);
        struct fkt_head *h = NULL;
        size_t good = 0, wrong = 0;
        CHECK_OK(fkt_head_fit(&h, (enum fkt_head_kind)kind, &s));
        CHECK_OK(fkt_head_predict(h, w, N, guess));
        for (size_t i = 0; i < N; i++) {
            good += truth[i] < 3 && guess[i] == truth[i];
            wrong += truth[i] < 3 && guess[i] == 3;
        }
        CHECK(good > 0.6 * 0.75 * N && wrong < 0.05 * 0.75 * N);
        fkt_head_free(h);
    }
}

/* The truth differs from class to class in four strong directions only, and noise hides the other twenty: variances of
 * 8 in one of them and 0.5 in three, against 0.01, under noise with an edge of 0.5. One weight for the whole covariance
 * must choose between the two. One standard error is below 0.8 points. */
static void strong_directions_survive_noise_that_hides_weak_ones(void **state)
{
    static struct toy t;
    static double w[N * M];
    static uint32_t truth[N];
    double clean[2], noisy[2];
    (void)state;
    for (int pass = 0; pass < 2; pass++) {
        toy_make(&t, pass ? 0.5 : 0, 41);
        for (size_t k = 0; k < K; k++) {
            double *cov = t.cov + k * M * M;
            t.count[k] = 1e6;
            t.noise[k] = 0;
            memset(t.mean + k * M, 0, M * sizeof *t.mean);
            memset(t.true_mean + k * M, 0, M * sizeof *t.mean);
            for (size_t i = 0; i < M; i++) {
                double var = i < 4 ? (i == k ? 8 : 0.5) : 0.01;
                cov[i * M + i] += var - t.spread[k * M + i] * t.spread[k * M + i];
                t.spread[k * M + i] = sqrt(var);
            }
        }
        toy_draw(&t, w, truth, 41);
        *(pass ? noisy : clean) = accuracy(&t, FKT_HEAD_QDA, w, truth);
        (pass ? noisy : clean)[1] = accuracy(&t, FKT_HEAD_LDA, w, truth);
    }
    CHECK(clean[0] > 0.6 && clean[1] < 0.3);
    CHECK(noisy[0] > clean[0] - 0.02);
}

/* Covariances that differ by no more than their noise are one covariance: QDA gives the scores of LDA. */
static void without_visible_differences_qda_is_lda(void **state)
{
    static struct toy t;
    double w[M], lda[K], qda[K], work[M];
    struct fkt_class_statistics s = view(&t);
    struct fkt_head *h[2] = {NULL, NULL};
    struct fkt_rng rng;
    (void)state;
    toy_make(&t, 0.2, 51);
    for (size_t k = 0; k < K; k++) {
        memcpy(t.cov + k * M * M, t.cov, M * M * sizeof *t.cov);
        t.cov[k * M * M] += 0.01 * (double)k;
    }
    CHECK_OK(fkt_head_fit(&h[0], FKT_HEAD_LDA, &s));
    CHECK_OK(fkt_head_fit(&h[1], FKT_HEAD_QDA, &s));
    fkt_rng_init(&rng, 51, 1);
    for (int n = 0; n < 100; n++) {
        for (size_t i = 0; i < M; i++) w[i] = 2 * fkt_rng_normal(&rng);
        fkt_head_scores(h[0], w, lda, work);
        fkt_head_scores(h[1], w, qda, work);
        for (size_t k = 1; k < K; k++) CHECK_NEAR(qda[k] - qda[0], lda[k] - lda[0], 1e-9 * (1 + fabs(qda[0])));
    }
    fkt_head_free(h[0]);
    fkt_head_free(h[1]);
}

/* Every count, noise and covariance that a release can contain must give finite scores: counts of 1, one class alone, a
 * covariance below zero, noise of any size. */
static void odd_statistics_give_finite_scores(void **state)
{
    static struct toy t;
    const double noise[] = {0, 1e-6, 1, 1e6}, counts[] = {1, 3, 1e3, 1e15};
    double w[M] = {1, -2, 3}, scores[K], work[M];
    (void)state;
    for (int i = 0; i < 4; i++)
        for (int c = 0; c < 4; c++)
            for (uint32_t classes = 1; classes <= K; classes += K - 1) {
                struct fkt_class_statistics s = view(&t);
                toy_make(&t, noise[i], 61);
                for (size_t k = 0; k < K; k++) t.count[k] = counts[(size_t)c] * (double)(k == 0 ? 1 : 7);
                for (size_t k = 0; k < M * M; k++) t.cov[(K - 1) * M * M + k] *= -1;
                s.classes = classes;
                for (int kind = 0; kind < FKT_HEAD_KINDS; kind++) {
                    struct fkt_head *h = NULL;
                    CHECK_OK(fkt_head_fit(&h, (enum fkt_head_kind)kind, &s));
                    fkt_head_scores(h, w, scores, work);
                    for (size_t k = 0; k < classes; k++) CHECK(isfinite(scores[k]));
                    fkt_head_free(h);
                }
            }
}

static void ties_go_to_the_lowest_class(void **state)
{
    const double count[] = {5, 5, 5}, mean[] = {1, -1, -1}, cov[] = {0, 0, 0}, zero[] = {0, 0, 0}, w[] = {0, -3, 2};
    const struct fkt_class_statistics s = {
        .classes = 3, .length = 1, .count = count, .mean = mean, .cov = cov, .noise_edge = zero, .mean_noise = zero};
    uint32_t label[3];
    (void)state;
    for (int kind = 0; kind < FKT_HEAD_KINDS; kind++) { /* no spread at all is fine as well */
        struct fkt_head *h = NULL;
        CHECK_OK(fkt_head_fit(&h, (enum fkt_head_kind)kind, &s));
        CHECK_OK(fkt_head_predict(h, w, 3, label));
        CHECK(label[0] == 0 && label[1] == 1 && label[2] == 0);
        fkt_head_free(h);
    }
}

static void bad_numbers_are_refused(void **state)
{
    double count[] = {5, 5}, mean[] = {1, -1}, cov[] = {1, 1}, edge[] = {0, 0}, noise[] = {0, 0},
           w[] = {0, NAN, INFINITY};
    struct fkt_class_statistics s = {
        .classes = 2, .length = 1, .count = count, .mean = mean, .cov = cov, .noise_edge = edge, .mean_noise = noise};
    double *each[] = {count, mean, cov, edge, noise};
    struct fkt_head *h = NULL;
    uint32_t label[3];
    (void)state;
    for (int i = 0; i < 5; i++) {
        double old = each[i][1];
        each[i][1] = i % 2 ? NAN : INFINITY;
        CHECK_STATUS(fkt_head_fit(&h, FKT_HEAD_LDA, &s), FKT_E_NUMERIC);
        CHECK(h == NULL);
        each[i][1] = old;
    }
    count[0] = 0;
    CHECK_STATUS(fkt_head_fit(&h, FKT_HEAD_QDA, &s), FKT_E_ARG);
    count[0] = 5;
    edge[0] = -1;
    CHECK_STATUS(fkt_head_fit(&h, FKT_HEAD_QDA, &s), FKT_E_ARG);
    edge[0] = 0;
    s.classes = 0;
    CHECK_STATUS(fkt_head_fit(&h, FKT_HEAD_QDA, &s), FKT_E_ARG);
    s.classes = 2;
    CHECK_STATUS(fkt_head_fit(&h, (enum fkt_head_kind)FKT_HEAD_KINDS, &s), FKT_E_ARG);
    CHECK_OK(fkt_head_fit(&h, FKT_HEAD_QDA, &s));
    CHECK_OK(fkt_head_predict(h, w, 1, label));
    CHECK_STATUS(fkt_head_predict(h, w, 2, label), FKT_E_NUMERIC);
    CHECK_STATUS(fkt_head_predict(h, w + 2, 1, label), FKT_E_NUMERIC);
    fkt_head_free(h);
    CHECK(!strcmp(fkt_head_name(FKT_HEAD_NEAREST_MEAN), "nearest_mean") && !strcmp(fkt_head_name(FKT_HEAD_QDA), "qda"));
    CHECK(fkt_alloc_live() == 0);
}

static void each_kind_has_names(void **state)
{
    (void)state;
    CHECK(fkt_head_kinds() == FKT_HEAD_KINDS);
    for (int k = 0; k < fkt_head_kinds(); k++) {
        const char *name = fkt_head_name((enum fkt_head_kind)k), *title = fkt_head_title((enum fkt_head_kind)k);
        if (!name || !title || !*name || !*title) fail_msg("head %d has no name or no title", k);
        for (int j = 0; j < k; j++) CHECK(strcmp(name, fkt_head_name((enum fkt_head_kind)j)) != 0);
    }
    CHECK(!strcmp(fkt_head_name((enum fkt_head_kind)99), "unknown head"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_has_names),
        cmocka_unit_test(golden_vectors),
        cmocka_unit_test(noise_costs_little_where_an_inverse_collapses),
        cmocka_unit_test(classes_may_come_in_any_order),
        cmocka_unit_test(a_class_of_noise_takes_nothing),
        cmocka_unit_test(strong_directions_survive_noise_that_hides_weak_ones),
        cmocka_unit_test(without_visible_differences_qda_is_lda),
        cmocka_unit_test(odd_statistics_give_finite_scores),
        cmocka_unit_test(ties_go_to_the_lowest_class),
        cmocka_unit_test(bad_numbers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
