/* SPDX-License-Identifier: Apache-2.0 */
/* Heads on record vectors of several parts, on pooled moments, and their posteriors. */
#include "classifier/heads.h"

#include "base/rng.h"
#include "tests/support/check.h"

#include <unistd.h>

enum { K = 3, A = 4, B = 6, M = A + B, N = 30 };

/* Two parts of K classes: A and B coordinates, each with noise of its own; count is shared. */
struct toy {
    double count[K], mean[2][K * B], cov[2][K * B * B], edge[2][K], noise[2][K];
    struct fkt_class_statistics s[2];
};

static void toy_make(struct toy *t, double noise)
{
    const uint32_t length[2] = {A, B};
    struct fkt_rng rng;
    fkt_rng_init(&rng, 7, 0);
    for (size_t k = 0; k < K; k++) t->count[k] = 400 + 300 * (double)k;
    for (size_t p = 0; p < 2; p++) {
        size_t m = length[p];
        for (size_t k = 0; k < K; k++) {
            t->edge[p][k] = noise * (double)(1 + p);
            t->noise[p][k] = noise / 5;
            for (size_t i = 0; i < m; i++) {
                t->mean[p][k * m + i] = fkt_rng_normal(&rng);
                for (size_t j = 0; j <= i; j++)
                    t->cov[p][(k * m + i) * m + j] = t->cov[p][(k * m + j) * m + i] =
                        (i == j ? 1 + 0.3 * (double)(i + k) : 0) + 0.1 * fkt_rng_normal(&rng);
            }
        }
        t->s[p] = (struct fkt_class_statistics){.classes = K,
                                                .length = length[p],
                                                .count = t->count,
                                                .mean = t->mean[p],
                                                .cov = t->cov[p],
                                                .noise_edge = t->edge[p],
                                                .mean_noise = t->noise[p],
                                                .offset = p ? A : 0};
    }
}

static void vectors(double *w)
{
    struct fkt_rng rng;
    fkt_rng_init(&rng, 8, 0);
    for (size_t i = 0; i < (size_t)N * M; i++) w[i] = fkt_rng_normal(&rng);
}

static void scores_of_parts_add_up(void **state)
{
    static struct toy t;
    static double w[N * M];
    (void)state;
    toy_make(&t, 0.2);
    vectors(w);
    for (int kind = 0; kind < FKT_HEAD_KINDS; kind++) {
        struct fkt_head *both = NULL, *one[2] = {NULL, NULL};
        CHECK_OK(fkt_head_fit_parts(&both, (enum fkt_head_kind)kind, t.s, 2));
        for (int p = 0; p < 2; p++) CHECK_OK(fkt_head_fit(&one[p], (enum fkt_head_kind)kind, &t.s[p]));
        CHECK(fkt_head_length(both) == M && fkt_head_parts(both) == 2 && fkt_head_part_offset(both, 1) == A);
        CHECK(fkt_head_part_length(both, 0) == A && fkt_head_part_length(both, 1) == B);
        CHECK(fkt_head_part_length(both, 2) == 0 && fkt_head_part_offset(one[1], 0) == A);
        for (size_t r = 0; r < N; r++) {
            double sum[K], a[K], b[K], work[M];
            fkt_head_scores(both, w + r * M, sum, work);
            fkt_head_scores(one[0], w + r * M, a, work);
            fkt_head_scores(one[1], w + r * M + A, b, work);
            for (size_t k = 0; k < K; k++) CHECK_NEAR(sum[k], a[k] + b[k], 1e-12 * (1 + fabs(sum[k])));
        }
        fkt_head_free(both);
        fkt_head_free(one[0]);
        fkt_head_free(one[1]);
    }
    CHECK(fkt_alloc_live() == 0);
}

/* Without noise LDA on two parts is LDA on the whole vector with a block-diagonal covariance. */
static void parts_are_a_block_diagonal_covariance(void **state)
{
    static struct toy t;
    static double w[N * M], mean[K * M], cov[K * M * M];
    struct fkt_head *parts = NULL, *whole = NULL;
    (void)state;
    toy_make(&t, 0);
    vectors(w);
    for (size_t k = 0; k < K; k++)
        for (size_t i = 0; i < M; i++) {
            size_t p = i >= A, m = p ? B : A, at = p ? i - A : i;
            mean[k * M + i] = t.mean[p][k * m + at];
            for (size_t j = 0; j < M; j++)
                if ((j >= A) == p) cov[(k * M + i) * M + j] = t.cov[p][(k * m + at) * m + (p ? j - A : j)];
        }
    struct fkt_class_statistics s = t.s[0];
    s.length = M;
    s.mean = mean;
    s.cov = cov;
    CHECK_OK(fkt_head_fit_parts(&parts, FKT_HEAD_LDA, t.s, 2));
    CHECK_OK(fkt_head_fit(&whole, FKT_HEAD_LDA, &s));
    for (size_t r = 0; r < N; r++) {
        double a[K], b[K], work[M];
        fkt_head_scores(parts, w + r * M, a, work);
        fkt_head_scores(whole, w + r * M, b, work);
        for (size_t k = 0; k < K; k++) CHECK_NEAR(a[k], b[k], 1e-9 * (1 + fabs(a[k])));
    }
    fkt_head_free(parts);
    fkt_head_free(whole);
}

static void false_parts_are_refused(void **state)
{
    static struct toy t;
    struct fkt_head *h = NULL;
    (void)state;
    toy_make(&t, 0.1);
    CHECK_STATUS(fkt_head_fit_parts(&h, FKT_HEAD_LDA, t.s, 0), FKT_E_ARG);
    CHECK_STATUS(fkt_head_fit_parts(&h, FKT_HEAD_LDA, t.s, 5), FKT_E_ARG);
    t.s[1].offset = A - 1;
    CHECK_STATUS(fkt_head_fit_parts(&h, FKT_HEAD_LDA, t.s, 2), FKT_E_ARG);
    t.s[1].offset = A;
    t.s[1].classes = K - 1;
    CHECK_STATUS(fkt_head_fit_parts(&h, FKT_HEAD_LDA, t.s, 2), FKT_E_ARG);
    t.s[1].classes = K;
    t.cov[1][0] = NAN;
    CHECK_STATUS(fkt_head_fit_parts(&h, FKT_HEAD_LDA, t.s, 2), FKT_E_NUMERIC);
    CHECK(h == NULL && strstr(fkt_error_text(), "part 1"));
    t.s[0].length = t.s[1].length = FKT_LENGTH_MAX;
    t.s[1].offset = FKT_LENGTH_MAX;
    CHECK_STATUS(fkt_head_fit_parts(&h, FKT_HEAD_LDA, t.s, 2), FKT_E_ARG);
    CHECK(fkt_alloc_live() == 0);
}

/* Equal covariances of every class are the pooled one; its noise is given, not averaged over the classes again. */
static void pooled_moments_give_nearest_mean_and_lda(void **state)
{
    static struct toy t;
    static double w[N * M], edge[K];
    struct fkt_class_statistics each, pooled;
    struct fkt_head *a = NULL, *b = NULL;
    double p2 = 0, total = 0;
    (void)state;
    toy_make(&t, 0.9); /* above some eigenvalues: the floor matters */
    vectors(w);
    for (size_t k = 1; k < K; k++) memcpy(t.cov[0] + k * A * A, t.cov[0], A * A * sizeof(double));
    for (size_t k = 0; k < K; k++) total += t.count[k];
    for (size_t k = 0; k < K; k++) p2 += t.count[k] / total * t.count[k] / total;
    for (size_t k = 0; k < K; k++) edge[k] = 2.0 / sqrt(p2);
    each = pooled = t.s[0];
    each.noise_edge = edge;
    edge[0] = 2.0 / sqrt(p2);
    pooled.pooled = 1;
    pooled.noise_edge = &(double){2.0 / 4}; /* its floor is four edges */
    for (int kind = 0; kind < 2; kind++) {
        CHECK_OK(fkt_head_fit(&a, (enum fkt_head_kind)kind, &each));
        CHECK_OK(fkt_head_fit(&b, (enum fkt_head_kind)kind, &pooled));
        for (size_t i = 0; i < K * A; i++) CHECK_NEAR(a->weight[i], b->weight[i], 1e-10);
        for (size_t i = 0; i < K; i++) CHECK_NEAR(a->bias[i], b->bias[i], 1e-10);
        fkt_head_free(a);
        fkt_head_free(b);
    }
    CHECK_STATUS(fkt_head_fit(&b, FKT_HEAD_QDA, &pooled), FKT_E_ARG);
    CHECK(b == NULL && strstr(fkt_error_text(), "pooled"));
    CHECK(fkt_alloc_live() == 0);
}

static void a_posterior_is_bayes_with_equal_priors(void **state)
{
    static struct toy t;
    static double w[N * M], p[N * K], hot[N * K];
    struct fkt_head *h = NULL;
    double bad[M] = {0};
    (void)state;
    toy_make(&t, 0.2);
    vectors(w);
    for (int kind = 0; kind < FKT_HEAD_KINDS; kind++) {
        CHECK_OK(fkt_head_fit_parts(&h, (enum fkt_head_kind)kind, t.s, 2));
        CHECK_OK(fkt_head_posterior(h, w, N, 1, p));
        CHECK_OK(fkt_head_posterior(h, w, N, 2, hot));
        for (size_t r = 0; r < N; r++) {
            double scores[K], work[M], sum = 0, hot_sum = 0;
            fkt_head_scores(h, w + r * M, scores, work);
            for (size_t k = 0; k < K; k++)
                sum += exp(scores[k] - scores[0]), hot_sum += exp((scores[k] - scores[0]) / 2);
            for (size_t k = 0; k < K; k++) {
                CHECK_NEAR(p[r * K + k], exp(scores[k] - scores[0]) / sum, 1e-13);
                CHECK_NEAR(hot[r * K + k], exp((scores[k] - scores[0]) / 2) / hot_sum, 1e-13);
            }
        }
        fkt_head_free(h);
    }
    CHECK_OK(fkt_head_fit_parts(&h, FKT_HEAD_QDA, t.s, 2));
    CHECK_STATUS(fkt_head_posterior(h, w, 1, 0, p), FKT_E_ARG);
    CHECK_STATUS(fkt_head_posterior(h, w, 1, NAN, p), FKT_E_ARG);
    CHECK_STATUS(fkt_head_posterior(h, w, 1, INFINITY, p), FKT_E_ARG);
    bad[3] = NAN;
    CHECK_STATUS(fkt_head_posterior(h, bad, 1, 1, p), FKT_E_NUMERIC);
    bad[3] = 1e200; /* finite, but its scores are not */
    CHECK_STATUS(fkt_head_posterior(h, bad, 1, 1, p), FKT_E_NUMERIC);
    fkt_head_free(h);
    CHECK(fkt_alloc_live() == 0);
}

static void parts_survive_the_disk(void **state)
{
    static struct toy t;
    static double w[N * M];
    char path[64];
    (void)state;
    snprintf(path, sizeof path, "/tmp/fedkt-head-parts-%ld", (long)getpid());
    toy_make(&t, 0.2);
    vectors(w);
    for (int kind = 0; kind < FKT_HEAD_KINDS; kind++)
        for (uint32_t first = 0; first < 2; first++) { /* both parts, then the second alone */
            struct fkt_head *a = NULL, *b = NULL;
            CHECK_OK(fkt_head_fit_parts(&a, (enum fkt_head_kind)kind, t.s + first, 2 - first));
            CHECK_OK(fkt_head_save(a, path, 1));
            CHECK_OK(fkt_head_load(&b, path));
            CHECK(b->parts == 2 - first && !memcmp(a->part, b->part, sizeof a->part) && b->length == a->length);
            for (size_t r = 0; r < N; r++) {
                double sa[K], sb[K], work[M];
                fkt_head_scores(a, w + r, sa, work);
                fkt_head_scores(b, w + r, sb, work);
                CHECK(!memcmp(sa, sb, sizeof sa));
            }
            fkt_head_free(a);
            fkt_head_free(b);
        }
    unlink(path);
    CHECK(fkt_alloc_live() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_of_parts_add_up),
        cmocka_unit_test(parts_are_a_block_diagonal_covariance),
        cmocka_unit_test(false_parts_are_refused),
        cmocka_unit_test(pooled_moments_give_nearest_mean_and_lda),
        cmocka_unit_test(a_posterior_is_bayes_with_equal_priors),
        cmocka_unit_test(parts_survive_the_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
