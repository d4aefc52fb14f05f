/* SPDX-License-Identifier: Apache-2.0 */
/* Record vectors straight from pixels: added up they are the moments of the pipeline, whatever the batches. */
#include "fedkt/advanced/moments.h"
#include "fedkt/fedkt.h"

#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/small_task.h"
#include "tests/support/sweep.h"

enum { N = 150, SIDE = 16, BYTES = SIDE * SIDE * 3, M = 9 };

static struct fkt_pipeline *pipeline;
static struct fkt_dataset *ds;
static uint8_t *rgb;
static uint32_t labels[N];
static double w[N * M];
static int32_t q[N * M];

static int open_all(void **state)
{
    (void)state;
    CHECK_OK(small_pipeline(&pipeline, &ds, N, 5, FKT_COORDINATE_GAIN_SHAPE));
    CHECK(fkt_pipeline_task(pipeline)->part[0].coordinates.length == M && fkt_dataset_size(ds) == N);
    CHECK_OK(fkt_alloc(&rgb, (size_t)N * BYTES));
    for (size_t i = 0; i < N; i++) {
        labels[i] = fkt_dataset_label(ds, i);
        CHECK_OK(fkt_dataset_read(ds, i, SIDE, fkt_pipeline_task(pipeline)->filter, rgb + i * BYTES, NULL));
    }
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    fkt_free(rgb);
    fkt_dataset_free(ds);
    fkt_pipeline_free(pipeline);
    return 0;
}

static void added_up_they_are_the_moments(void **state)
{
    const struct fkt_pipeline_options two = {.threads = 2};
    const struct fkt_coordinates *c = &fkt_pipeline_task(pipeline)->part[0].coordinates;
    struct fkt_moments *want = NULL, *got = NULL;
    const int64_t *a, *b;
    int32_t again[M];
    (void)state;
    CHECK_OK(fkt_pipeline_moments_new(pipeline, &want));
    CHECK_OK(fkt_pipeline_moments(pipeline, ds, NULL, 0, want, &two));
    CHECK_OK(fkt_pipeline_vectors(pipeline, rgb, N, w, q));
    CHECK_OK(fkt_pipeline_moments_new(pipeline, &got));
    CHECK_OK(fkt_moments_add(got, labels, q, N));
    CHECK_OK(fkt_moments_packed(want, &a));
    CHECK_OK(fkt_moments_packed(got, &b));
    assert_memory_equal(a, b, fkt_pipeline_task(pipeline)->n_classes * fkt_moments_block(M) * sizeof *a);
    for (size_t i = 0; i < N; i++) { /* q is w, quantised */
        CHECK_OK(fkt_quantise(c, w + i * M, again));
        assert_memory_equal(again, q + i * M, sizeof again);
    }
    fkt_moments_free(want);
    fkt_moments_free(got);
}

static void batches_change_no_bit(void **state)
{
    static double v[N * M];
    static int32_t p[N * M];
    (void)state;
    CHECK_OK(fkt_pipeline_vectors(pipeline, rgb, N, w, q));
    for (size_t at = 0, n = 1; at < N; at += n, n = n * 3 % 47 + 1) {
        if (n > N - at) n = N - at;
        CHECK_OK(fkt_pipeline_vectors(pipeline, rgb + at * BYTES, n, v + at * M, p + at * M));
    }
    assert_memory_equal(v, w, sizeof w);
    assert_memory_equal(p, q, sizeof q);
    CHECK_OK(fkt_pipeline_vectors(pipeline, rgb, 0, v, p));
}

static fkt_status once(void)
{
    memset(w, 1, sizeof w);
    memset(q, 1, sizeof q);
    return fkt_pipeline_vectors(pipeline, rgb, N, w, q);
}

static void look(fkt_status st)
{
    if (st != FKT_OK)
        for (size_t i = 0; i < (size_t)N * M; i++) CHECK(w[i] == 0 && q[i] == 0);
}

static void a_failure_leaves_zeros(void **state)
{
    (void)state;
    CHECK(sweep_allocations(once, look) > 2);
}

/* A pipeline that begins at latents has no codec. */
static void without_a_codec_it_is_refused(void **state)
{
    struct fkt_pipeline *latents = NULL;
    struct scratch dir;
    (void)state;
    scratch_init(&dir);
    CHECK_OK(fkt_calibration_save(fkt_pipeline_calibration(pipeline, 0), scratch_path(&dir, "c"), 0));
    CHECK_OK(fkt_pipeline_open_latents(&latents, fkt_pipeline_task(pipeline),
                                       &(struct fkt_part_files){.calibration = scratch_path(&dir, "c")}));
    memset(q, 0xab, sizeof q);
    CHECK_STATUS(fkt_pipeline_vectors(latents, rgb, N, w, q), FKT_E_STATE);
    look(FKT_E_STATE);
    fkt_pipeline_free(latents);
    scratch_release(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(added_up_they_are_the_moments),
        cmocka_unit_test(batches_change_no_bit),
        cmocka_unit_test(a_failure_leaves_zeros),
        cmocka_unit_test(without_a_codec_it_is_refused),
    };
    return check_nothing_left(cmocka_run_group_tests(tests, open_all, close_all));
}
