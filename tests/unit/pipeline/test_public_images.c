/* SPDX-License-Identifier: Apache-2.0 */
/* A calibration of images, the walk through it, and private images that are among them. */
#include "fedkt/release.h"
#include "fedkt/advanced/simulate.h"
#include "pipeline/public_images.h"
#include "task/task.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"

#include "pipeline/release.h"

#include <unistd.h>

enum { PUBLIC = 40, DIM = 8 };

static struct scratch scratch;
static struct fkt_calibration cal;
static struct fkt_task task;
static struct fkt_pipeline *pipeline;
static struct fkt_dataset *train, *test;            /* the calibration is of PUBLIC records of test */
static size_t used[3 * PUBLIC], unused[3 * PUBLIC]; /* records of test that are in it, and those that are not */

static void sort_out(const struct fkt_dataset *set)
{
    size_t in = 0, out = 0;
    for (size_t i = 0; i < fkt_dataset_size(test); i++) {
        size_t k = 0;
        while (k < PUBLIC && strcmp(fkt_dataset_name(set, k), fkt_dataset_name(test, i)) != 0) k++;
        if (k < PUBLIC) used[in++] = i;
        else unused[out++] = i;
    }
    assert_int_equal(in, PUBLIC);
    assert_int_equal(out, 2 * PUBLIC);
}

static int setup(void **state)
{
    const struct fkt_codec_spec spec = {.name = "dct", .size = 16, .dim = DIM};
    const struct fkt_dataset_options some = {.limit = PUBLIC}, more = {.limit = 3 * PUBLIC};
    const struct fkt_pipeline_options o = {.threads = 2};
    const char *classes[16];
    struct fkt_task_choices c = {.classes = classes, .n_classes = 10, .privacy = {.epsilon = 2, .delta = 1e-5}};
    struct fkt_codec *codec = NULL;
    struct fkt_dataset *set = NULL;
    (void)state;
    scratch_init(&scratch);
    CHECK_OK(fkt_dataset_open(&set, "demo:test", &some));
    CHECK_OK(fkt_dataset_open(&test, "demo:test", &more));
    CHECK_OK(fkt_dataset_open(&train, "demo:train", &more));
    CHECK_OK(fkt_codec_open(&codec, &spec));
    CHECK_OK(fkt_calibrate(&cal, codec, set, FKT_FILTER_BILINEAR, 0, "some of demo:test", &o));
    CHECK_OK(fkt_calibration_save(&cal, scratch_path(&scratch, "cal"), 0));
    for (uint32_t k = 0; k < c.n_classes; k++) classes[k] = fkt_dataset_class(train, k);
    CHECK_OK(fkt_task_make_into(&task, &c, &(struct fkt_part_choice){.codec = codec, .calibration = &cal}, 1));
    CHECK_OK(fkt_pipeline_open(&pipeline, &task, &(struct fkt_part_files){.calibration = scratch_path(&scratch, "cal")},
                               NULL));
    sort_out(set);
    fkt_codec_free(codec);
    fkt_dataset_free(set);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fkt_pipeline_free(pipeline);
    fkt_task_clear(&task);
    fkt_calibration_clear(&cal);
    fkt_dataset_free(train);
    fkt_dataset_free(test);
    scratch_release(&scratch);
    return fkt_alloc_live() == 0 ? 0 : -1;
}

static fkt_status sum(const struct fkt_pipeline *w, const struct fkt_dataset *ds, const size_t *idx, size_t n)
{
    const struct fkt_pipeline_options o = {.threads = 2};
    struct fkt_moments *m = NULL;
    fkt_status st = fkt_pipeline_moments_new(w, &m);
    if (st == FKT_OK) st = fkt_pipeline_moments(w, ds, idx, n, m, &o);
    fkt_moments_free(m);
    return st;
}

static void says(const char *text)
{
    if (!strstr(fkt_error_text(), text)) fail_msg("'%s' does not say '%s'", fkt_error_text(), text);
}

static void a_record_of_the_public_set_is_refused(void **state)
{
    const size_t one[] = {unused[5], unused[6], used[14], unused[7]};
    (void)state;
    CHECK_OK(sum(pipeline, train, NULL, 0));
    CHECK_OK(sum(pipeline, test, unused, 2 * PUBLIC));
    CHECK_STATUS(sum(pipeline, test, one, 4), FKT_E_MISMATCH);
    says("1 of 4 private images is among those that calibration '");
    says(scratch_path(&scratch, "cal"));
    says(fkt_dataset_name(test, used[14]));
    CHECK_STATUS(sum(pipeline, test, NULL, 0), FKT_E_MISMATCH);
    says("40 of 120 private images are among");
    says(fkt_dataset_name(test, used[0]));
}

static void nothing_is_written_for_it(void **state)
{
    const struct fkt_pipeline_options o = {.threads = 1};
    struct fkt_moments *m = NULL;
    (void)state;
    CHECK_STATUS(fkt_pipeline_encode(pipeline, test, NULL, 0, scratch_path(&scratch, "z"), 0, &o), FKT_E_MISMATCH);
    CHECK(access(scratch_path(&scratch, "z"), F_OK) != 0);
    CHECK_OK(fkt_pipeline_encode(pipeline, train, NULL, 0, scratch_path(&scratch, "z"), 0, &o));
    CHECK_OK(fkt_pipeline_moments_new(pipeline, &m));
    CHECK_OK(fkt_pipeline_latents(pipeline, scratch_path(&scratch, "z"), m, NULL));
    fkt_moments_free(m);
}

/* Only the records that are summed count: what is held out for a test may be public. */
static void a_simulation_looks_at_its_training_records(void **state)
{
    const size_t with_one[] = {unused[0], unused[1], used[3], unused[2], unused[9], unused[8]};
    struct fkt_simulation_spec spec = {.data = test,
                                       .pipeline = pipeline,
                                       .train = unused,
                                       .n_train = 6,
                                       .partition = {.sites = 2},
                                       .participation = 1,
                                       .threads = 2};
    struct fkt_simulation sim;
    (void)state;
    CHECK_OK(fkt_simulate(&sim, &spec));
    fkt_simulation_clear(&sim);
    spec.train = with_one;
    CHECK_STATUS(fkt_simulate(&sim, &spec), FKT_E_MISMATCH);
    says("1 of 6 private images is among");
    says(fkt_dataset_name(test, used[3]));
}

/* A release carries the hash of the list, not the list: it is enough for what is public, and for nothing private. */
static void a_release_has_no_list(void **state)
{
    const struct fkt_round_facts facts = {1, 1, 0, 0};
    const struct fkt_pipeline_options o = {.threads = 1};
    const uint64_t seed = 3;
    struct fkt_release r, back;
    struct fkt_ledger ledger;
    struct fkt_moments *m = NULL;
    struct fkt_pipeline *from = NULL;
    (void)state;
    CHECK_OK(fkt_pipeline_moments_new(pipeline, &m));
    CHECK_OK(fkt_pipeline_moments(pipeline, train, NULL, 0, m, &o));
    CHECK_OK(fkt_ledger_init(&ledger, 100, 0));
    CHECK_OK(fkt_release_make_into(&r, &task, fkt_pipeline_calibration(pipeline, 0), m, &facts, &ledger, &seed));
    CHECK_OK(fkt_release_save(&r, scratch_path(&scratch, "release"), 1));
    CHECK_OK(fkt_release_load_into(&back, scratch_path(&scratch, "release")));
    CHECK(!back.calibration[0].digests && back.calibration[0].images == PUBLIC);
    assert_string_equal(back.calibration[0].digests_sha256, cal.digests_sha256);
    CHECK_OK(fkt_release_pipeline(&back, NULL, &from));
    CHECK_STATUS(sum(from, train, NULL, 0), FKT_E_STATE);
    says("without the digests of its images");
    fkt_pipeline_free(from);
    fkt_release_clear(&back);
    fkt_release_clear(&r);
    fkt_moments_free(m);
}

/* The task's hash of the calibration covers the list. */
static void a_list_cannot_be_stripped_or_changed(void **state)
{
    struct fkt_calibration bare = cal;
    (void)state;
    CHECK_OK(fkt_task_check_calibration(&task, 0, &bare));
    bare.digests_sha256[0] = '\0';
    bare.digests = NULL;
    CHECK_STATUS(fkt_task_check_calibration(&task, 0, &bare), FKT_E_MISMATCH);
    bare.digests_sha256[0] = cal.digests_sha256[0] == '0' ? '1' : '0';
    CHECK_STATUS(fkt_task_check_calibration(&task, 0, &bare), FKT_E_MISMATCH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_of_the_public_set_is_refused),      cmocka_unit_test(nothing_is_written_for_it),
        cmocka_unit_test(a_simulation_looks_at_its_training_records), cmocka_unit_test(a_release_has_no_list),
        cmocka_unit_test(a_list_cannot_be_stripped_or_changed),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
