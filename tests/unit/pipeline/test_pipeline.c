/* SPDX-License-Identifier: Apache-2.0 */
/* Walks without a codec, batches, and work that is handed out to threads. */
#include "codec/codec.h"
#include "fedkt/advanced/calibration.h"
#include "fedkt/advanced/simulate.h"
#include "pipeline/pipeline.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/small_task.h"

#include <sys/stat.h>

static struct scratch scratch;
static struct fkt_pipeline *pipeline;
static struct fkt_dataset *ds;

static int setup(void **state)
{
    (void)state;
    scratch_init(&scratch);
    return small_pipeline(&pipeline, &ds, 300, 2, FKT_COORDINATE_GAIN_SHAPE) == FKT_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    fkt_pipeline_free(pipeline);
    fkt_dataset_free(ds);
    scratch_release(&scratch);
    return fkt_alloc_live() == 0 ? 0 : -1;
}

/* One batch of a network, so that few images keep all threads busy; else at most 2 MiB of pixels and 64 images. */
static void batches_are_whole_and_small(void **state)
{
    static const struct {
        uint32_t size, batch;
        size_t want;
    } c[] = {
        {32, 0, 64}, {32, 4, 4},  {32, 48, 48}, {64, 16, 16}, {128, 4, 4},    {256, 1, 10},
        {512, 1, 2}, {512, 3, 3}, {1024, 1, 1}, {4096, 1, 1}, {32, 100, 100}, {32, 300, 256},
    };
    (void)state;
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        struct fkt_codec codec = {.size = c[i].size, .batch = c[i].batch};
        assert_int_equal(fkt_pipeline_batch(&codec), c[i].want);
    }
}

/* From latents to the same moments, with the calibration's file in place of the codec. */
static void latents_need_no_codec(void **state)
{
    const struct fkt_task *task = fkt_pipeline_task(pipeline);
    struct fkt_moments *a = NULL, *b = NULL;
    struct fkt_pipeline *bare = NULL;
    struct fkt_pipeline_options o = {0};
    char ha[FKT_SHA256_HEX], hb[FKT_SHA256_HEX];
    double vector[64] = {1};
    uint8_t rgb[16 * 16 * 3];
    (void)state;
    CHECK_OK(fkt_calibration_save(fkt_pipeline_calibration(pipeline, 0), scratch_path(&scratch, "cal"), 0));
    CHECK_OK(fkt_pipeline_encode(pipeline, ds, NULL, 0, scratch_path(&scratch, "z"), 0, &o));
    CHECK_OK(
        fkt_pipeline_open_latents(&bare, task, &(struct fkt_part_files){.calibration = scratch_path(&scratch, "cal")}));
    assert_null(fkt_pipeline_codec(bare));
    CHECK_OK(fkt_pipeline_moments_new(pipeline, &a));
    CHECK_OK(fkt_pipeline_moments_new(bare, &b));
    CHECK_OK(fkt_pipeline_moments(pipeline, ds, NULL, 0, a, &o));
    CHECK_OK(fkt_pipeline_latents(bare, scratch_path(&scratch, "z"), b, NULL));
    CHECK_OK(fkt_moments_sha256(a, ha));
    CHECK_OK(fkt_moments_sha256(b, hb));
    assert_string_equal(ha, hb);
    CHECK_STATUS(fkt_pipeline_moments(bare, ds, NULL, 0, b, &o), FKT_E_STATE);
    CHECK_STATUS(fkt_pipeline_encode(bare, ds, NULL, 0, scratch_path(&scratch, "no"), 0, &o), FKT_E_STATE);
    CHECK_STATUS(fkt_pipeline_decode(bare, vector, 1, rgb), FKT_E_STATE);
    fkt_moments_free(a);
    fkt_moments_free(b);
    fkt_pipeline_free(bare);
}

/* Names and hashes alone must tell another calibration; a built-in one still opens the codec. */
static void a_bare_pipeline_checks_its_calibration(void **state)
{
    struct fkt_task task = *fkt_pipeline_task(pipeline);
    struct fkt_calibration other = *fkt_pipeline_calibration(pipeline, 0);
    struct fkt_pipeline *bare = NULL;
    (void)state;
    snprintf(other.codec, sizeof other.codec, "another codec");
    other.images = 1; /* one of no images must be built in */
    CHECK_OK(fkt_calibration_set_images(&other, (const uint8_t[1][32]){{1}}, 1));
    CHECK_OK(fkt_calibration_save(&other, scratch_path(&scratch, "other"), 0));
    CHECK_STATUS(fkt_pipeline_open_latents(&bare, &task,
                                           &(struct fkt_part_files){.calibration = scratch_path(&scratch, "other")}),
                 FKT_E_MISMATCH);
    assert_null(bare);
    fkt_free(other.digests);
    CHECK_OK(fkt_calibration_save(fkt_pipeline_calibration(pipeline, 0), scratch_path(&scratch, "cal"), 0));
    task.part[0].dim++; /* a task that lies about the length of its latents must not lead past the end of them */
    CHECK_STATUS(
        fkt_pipeline_open_latents(&bare, &task, &(struct fkt_part_files){.calibration = scratch_path(&scratch, "cal")}),
        FKT_E_MISMATCH);
    task.part[0].dim--;
    CHECK_OK(fkt_pipeline_open_latents(&bare, &task, NULL));
    CHECK(fkt_pipeline_codec(bare) != NULL);
    fkt_pipeline_free(bare);
    snprintf(task.part[0].name, sizeof task.part[0].name, "nothing");
    CHECK_STATUS(fkt_pipeline_open_latents(&bare, &task, NULL), FKT_E_ARG);
    CHECK(fkt_error_hint_code() == FKT_HINT_CALIBRATION_ALONE);
}

static void make_release(struct fkt_release *r)
{
    const struct fkt_round_facts facts = {1, 1, 0, 0};
    struct fkt_pipeline_options o = {0};
    struct fkt_moments *m = NULL;
    struct fkt_ledger ledger;
    uint64_t seed = 3;
    CHECK_OK(fkt_pipeline_moments_new(pipeline, &m));
    CHECK_OK(fkt_pipeline_moments(pipeline, ds, NULL, 0, m, &o));
    CHECK_OK(fkt_ledger_init(&ledger, 100, 0));
    CHECK_OK(fkt_release_make_into(r, fkt_pipeline_task(pipeline), fkt_pipeline_calibration(pipeline, 0), m, &facts,
                                   &ledger, &seed));
    fkt_moments_free(m);
}

static unsigned long long steps, last;
static int count_steps(void *self, const char *what, unsigned long long done, unsigned long long total)
{
    (void)self, (void)what;
    if (done <= last || done > total) fail_msg("%llu of %llu after %llu", done, total, last);
    last = done;
    steps++;
    return 0;
}

static void read_images(const struct fkt_release *r, const char *name, uint8_t *rgb, size_t n)
{
    struct fkt_dataset *made = NULL;
    char path[600];
    (void)r;
    snprintf(path, sizeof path, "%s/dataset.npz", scratch_path(&scratch, name));
    CHECK_OK(fkt_dataset_open(&made, path, &(struct fkt_dataset_options){0}));
    assert_int_equal(fkt_dataset_size(made), n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(fkt_dataset_label(made, i), i * 10 / n);
        CHECK_OK(fkt_dataset_read(made, i, 16, FKT_FILTER_BILINEAR, rgb + i * 16 * 16 * 3, NULL));
    }
    fkt_dataset_free(made);
}

/* The same images from the caller's walk and from the release's own, for any number of threads; and tiles are the
 * first of them. 130 per class: batches reach from one class into the next. */
static void an_open_pipeline_generates_the_same(void **state)
{
    enum { EACH = 130, K = 10, PX = 16 * 16 * 3, N = EACH * K, COLS = 7 };
    struct fkt_progress hook = {count_steps, NULL};
    struct fkt_generate_options o = {.per_class = EACH, .seed = 9, .format = FKT_EXPORT_NPZ, .progress = &hook};
    struct fkt_gaussians g = {0};
    struct fkt_release r = {0};
    struct fkt_pipeline other;
    uint8_t *a = NULL, *b = NULL, *tiles = NULL;
    (void)state;
    make_release(&r);
    CHECK_OK(fkt_alloc(&a, (size_t)N * PX));
    CHECK_OK(fkt_alloc(&b, (size_t)N * PX));
    CHECK_OK(fkt_alloc(&tiles, (size_t)K * COLS * PX));
    for (unsigned threads = 1; threads <= 3; threads++) {
        char name[2] = {(char)('0' + threads), 0};
        o.threads = threads;
        o.pipeline = threads == 1 ? NULL : pipeline;
        steps = last = 0;
        CHECK_OK(fkt_generate(&r, scratch_path(&scratch, name), &o));
        assert_int_equal(last, N);
        CHECK(steps >= N / 64);
        read_images(&r, name, threads == 1 ? a : b, N);
        if (threads > 1) assert_memory_equal(a, b, (size_t)N * PX);
    }
    CHECK_OK(fkt_release_gaussians(&r, 0, &o.estimate, &g));
    CHECK_OK(fkt_generate_tiles(pipeline, &g, NULL, o.seed, K, COLS, 2, tiles));
    for (size_t k = 0; k < K; k++) assert_memory_equal(tiles + k * COLS * PX, a + k * EACH * PX, COLS * PX);
    other = *pipeline; /* a walk of another task must be refused */
    other.task.part[0].coordinates.gamma *= 1.5;
    o.pipeline = &other;
    CHECK_STATUS(fkt_generate(&r, scratch_path(&scratch, "no"), &o), FKT_E_MISMATCH);
    other = *pipeline;
    other.task.part[0].sha256[3] ^= 1;
    CHECK_STATUS(fkt_generate(&r, scratch_path(&scratch, "no"), &o), FKT_E_MISMATCH);
    fkt_gaussians_clear(&g);
    fkt_release_clear(&r);
    fkt_free(a), fkt_free(b), fkt_free(tiles);
}

/* Gain-shape records have a direction of length 1, so a release holds each count twice and the estimate uses both. */
static void a_release_is_read_with_both_its_counts(void **state)
{
    const struct fkt_estimate_options raw = {.estimator = FKT_ESTIMATOR_RAW};
    struct fkt_gaussians g = {0};
    struct fkt_release r = {0};
    size_t block;
    (void)state;
    make_release(&r);
    block = fkt_moments_block(r.task.part[0].coordinates.length);
    CHECK_OK(fkt_release_gaussians(&r, 0, &raw, &g));
    CHECK(r.sigma.count > 0);
    for (size_t k = 0; k < g.classes; k++) {
        CHECK(g.count_noise[k] > 0 && g.count_noise[k] < 0.9 * r.sigma.count);
        CHECK(fabs(g.count[k] - (double)r.moments[k * block]) > 1e-6);
    }
    fkt_gaussians_clear(&g);
    fkt_release_clear(&r);
}

/* Large sites with all threads, small ones side by side: each image counts once, and the sum is that of one site. */
static void sites_of_all_sizes(void **state)
{
    static const struct {
        uint32_t sites;
        unsigned threads;
        enum fkt_partition_rule rule;
    } c[] = {{1, 3, FKT_PARTITION_IID}, {2, 1, FKT_PARTITION_IID},        {2, 2, FKT_PARTITION_DIRICHLET},
             {2, 5, FKT_PARTITION_IID}, {30, 2, FKT_PARTITION_DIRICHLET}, {5, 1, FKT_PARTITION_DIRICHLET}};
    size_t idx[300];
    char want[FKT_SHA256_HEX] = "", got[FKT_SHA256_HEX];
    struct fkt_progress hook = {count_steps, NULL};
    (void)state;
    for (size_t i = 0; i < 300; i++) idx[i] = i;
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        struct fkt_simulation_spec spec = {.pipeline = pipeline,
                                           .data = ds,
                                           .train = idx,
                                           .n_train = 300,
                                           .partition = {.rule = c[i].rule, .sites = c[i].sites, .alpha = 0.1},
                                           .participation = 1,
                                           .threads = c[i].threads,
                                           .progress = &hook};
        struct fkt_simulation sim;
        steps = last = 0;
        CHECK_OK(fkt_simulate(&sim, &spec));
        assert_int_equal(last, 300);
        assert_int_equal(sim.records, 300);
        CHECK_OK(fkt_moments_sha256(sim.total, got));
        if (!want[0]) memcpy(want, got, sizeof want);
        assert_string_equal(got, want);
        fkt_simulation_clear(&sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_are_whole_and_small),
        cmocka_unit_test_setup_teardown(latents_need_no_codec, setup, teardown),
        cmocka_unit_test_setup_teardown(a_bare_pipeline_checks_its_calibration, setup, teardown),
        cmocka_unit_test_setup_teardown(an_open_pipeline_generates_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(a_release_is_read_with_both_its_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(sites_of_all_sizes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
