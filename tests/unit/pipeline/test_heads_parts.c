/* SPDX-License-Identifier: Apache-2.0 */
/* Which coordinates heads take of a task with two parts: separate, joined, pooled. */
#include "fedkt/heads.h"

#include "base/rng.h"
#include "pipeline/release.h"
#include "tests/support/check.h"

enum { K = 3, A = 4, B = 6, M = A + B };

/* A task by hand, as far as heads look at it: a codec of A coordinates and a guide of B. */
static struct fkt_task two_parts(int joined, int pooled)
{
    struct fkt_task t = {.n_classes = K, .parts = 2, .joined = joined};
    t.part[0] = (struct fkt_task_part){.kind = FKT_PART_CODEC, .coordinates = {.length = A}};
    t.part[1] = (struct fkt_task_part){.kind = FKT_PART_GUIDE, .coordinates = {.length = B}};
    t.layout = (struct fkt_moments_layout){.parts = 2, .length = {A, B}, .pooled = pooled};
    if (joined) t.layout = (struct fkt_moments_layout){.parts = 1, .length = {M}, .pooled = pooled};
    return t;
}

static void gaussians(struct fkt_gaussians *g, uint32_t length, uint64_t seed)
{
    const size_t m = length;
    struct fkt_rng rng;
    fkt_rng_init(&rng, seed, 0);
    *g = (struct fkt_gaussians){.classes = K, .length = length};
    CHECK_OK(fkt_alloc(&g->count, K));
    CHECK_OK(fkt_alloc(&g->mean, K * m));
    CHECK_OK(fkt_alloc(&g->cov, K * m * m));
    CHECK_OK(fkt_alloc(&g->noise_edge, K));
    CHECK_OK(fkt_alloc(&g->mean_noise, K));
    for (size_t k = 0; k < K; k++) {
        g->count[k] = 300;
        g->noise_edge[k] = 0.4;
        g->mean_noise[k] = 0.05;
        for (size_t i = 0; i < m; i++) {
            g->mean[k * m + i] = fkt_rng_normal(&rng);
            for (size_t j = 0; j <= i; j++)
                g->cov[(k * m + i) * m + j] = g->cov[(k * m + j) * m + i] =
                    (i == j ? 1.0 + (double)k : 0) + 0.1 * fkt_rng_normal(&rng);
        }
    }
}

static void separate_parts(void **state)
{
    const struct fkt_task t = two_parts(0, 0), one = {.n_classes = K,
                                                      .parts = 1,
                                                      .part = {{.kind = FKT_PART_CODEC, .coordinates = {.length = A}}},
                                                      .layout = {.parts = 1, .length = {A}}};
    struct fkt_gaussians g[2];
    struct fkt_heads h;
    (void)state;
    gaussians(&g[0], A, 1);
    gaussians(&g[1], B, 2);
    CHECK_OK(fkt_heads_fit(&h, g, &t, FKT_HEADS_ALL, NULL));
    for (size_t k = 0; k < h.n; k++) {
        CHECK(fkt_head_parts(h.head[k]) == 2 && fkt_head_length(h.head[k]) == M);
        CHECK(fkt_head_part_offset(h.head[k], 1) == A && fkt_head_part_length(h.head[k], 1) == B);
        CHECK_OK(fkt_head_check_task(h.head[k], &t));
        CHECK_STATUS(fkt_head_check_task(h.head[k], &one), FKT_E_MISMATCH);
    }
    fkt_heads_clear(&h);
    CHECK_OK(fkt_heads_fit(&h, g, &t, FKT_HEADS_GUIDE, NULL));
    for (size_t k = 0; k < h.n; k++) {
        CHECK(fkt_head_parts(h.head[k]) == 1 && fkt_head_length(h.head[k]) == B);
        CHECK(fkt_head_part_offset(h.head[k], 0) == A);
        CHECK_OK(fkt_head_check_task(h.head[k], &t));
    }
    fkt_heads_clear(&h);
    CHECK_OK(fkt_heads_fit(&h, g, &one, FKT_HEADS_GUIDE, NULL)); /* no guide: what there is */
    CHECK(fkt_head_length(h.head[0]) == A && fkt_head_part_offset(h.head[0], 0) == 0);
    fkt_heads_clear(&h);
    g[1].length--;
    CHECK_STATUS(fkt_heads_fit(&h, g, &t, FKT_HEADS_ALL, NULL), FKT_E_MISMATCH);
    g[1].length++;
    fkt_gaussians_clear(&g[0]);
    fkt_gaussians_clear(&g[1]);
    CHECK(fkt_alloc_live() == 0);
}

/* The guide's block of a joined Gaussian, and noise of the same standard deviation: edge sqrt(2m) sd. */
static void the_guide_of_a_joined_vector(void **state)
{
    const struct fkt_task t = two_parts(1, 0);
    struct fkt_gaussians g, own;
    struct fkt_heads h;
    (void)state;
    gaussians(&g, M, 3);
    gaussians(&own, B, 4);
    for (size_t k = 0; k < K; k++) {
        const double sd = g.noise_edge[k] / sqrt(2 * M);
        own.noise_edge[k] = sqrt(2 * B) * sd;
        for (size_t i = 0; i < B; i++) {
            own.mean[k * B + i] = g.mean[k * M + A + i];
            for (size_t j = 0; j < B; j++) own.cov[(k * B + i) * B + j] = g.cov[(k * M + A + i) * M + A + j];
        }
    }
    CHECK_OK(fkt_heads_fit(&h, &g, &t, FKT_HEADS_GUIDE, NULL));
    for (int kind = 0; kind < FKT_HEAD_KINDS; kind++) {
        const struct fkt_class_statistics s = {.classes = K,
                                               .length = B,
                                               .count = own.count,
                                               .mean = own.mean,
                                               .cov = own.cov,
                                               .noise_edge = own.noise_edge,
                                               .mean_noise = own.mean_noise};
        struct fkt_head *want = NULL;
        double w[B], p[K], q[K];
        struct fkt_rng rng;
        fkt_rng_init(&rng, 5, 0);
        CHECK_OK(fkt_head_fit(&want, (enum fkt_head_kind)kind, &s));
        CHECK(fkt_head_length(h.head[kind]) == B && fkt_head_part_offset(h.head[kind], 0) == A);
        for (int n = 0; n < 20; n++) {
            for (size_t i = 0; i < B; i++) w[i] = fkt_rng_normal(&rng);
            CHECK_OK(fkt_head_posterior(want, w, 1, 1, p));
            CHECK_OK(fkt_head_posterior(h.head[kind], w, 1, 1, q));
            for (size_t k = 0; k < K; k++) CHECK_NEAR(p[k], q[k], 1e-12);
        }
        fkt_head_free(want);
    }
    fkt_heads_clear(&h);
    CHECK_OK(fkt_heads_fit(&h, &g, &t, FKT_HEADS_ALL, NULL));
    CHECK(fkt_head_parts(h.head[0]) == 1 && fkt_head_length(h.head[0]) == M);
    fkt_heads_clear(&h);
    fkt_gaussians_clear(&g);
    fkt_gaussians_clear(&own);
    CHECK(fkt_alloc_live() == 0);
}

static void pooled_moments_have_no_qda(void **state)
{
    (void)state;
    for (int joined = 0; joined < 2; joined++)
        for (int on = 0; on < 3; on++) {
            const struct fkt_task t = two_parts(joined, 1);
            struct fkt_gaussians g[2] = {{0}, {0}};
            struct fkt_heads h;
            gaussians(&g[0], joined ? M : A, 1);
            gaussians(&g[1], B, 2);
            CHECK_OK(fkt_heads_fit(&h, g, &t, (enum fkt_heads_on)on, NULL));
            CHECK(h.n == FKT_HEAD_KINDS && h.head[FKT_HEAD_LDA] && h.head[FKT_HEAD_NEAREST_MEAN]);
            CHECK(!h.head[FKT_HEAD_QDA]);
            fkt_heads_clear(&h);
            fkt_gaussians_clear(&g[0]);
            fkt_gaussians_clear(&g[1]);
        }
    CHECK(fkt_alloc_live() == 0);
}

static void choices_have_names(void **state)
{
    (void)state;
    for (int on = 0; on < 3; on++) CHECK(fkt_heads_on_parse(fkt_heads_on_name((enum fkt_heads_on)on)) == on);
    CHECK(fkt_heads_on_parse("codec") == -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(separate_parts),
        cmocka_unit_test(the_guide_of_a_joined_vector),
        cmocka_unit_test(pooled_moments_have_no_qda),
        cmocka_unit_test(choices_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
