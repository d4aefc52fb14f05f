/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of reading, drawing, putting together and taking apart images fails in turn. */
#include "fedkt/training_source.h"

#include "tests/support/scratch.h"
#include "tests/support/small_task.h"
#include "tests/support/sweep.h"

static struct scratch scratch;
static const struct fkt_training_set_options one = {.threads = 1};

/* A private release, and the folder that it generates, once. */
static int prepare(void **state)
{
    const struct fkt_round_facts facts = {1, 1, 0, 0};
    struct fkt_pipeline_options w = {.threads = 1};
    struct fkt_generate_options g = {.per_class = 1, .grid_columns = 1, .threads = 1};
    struct fkt_pipeline *pipeline = NULL;
    struct fkt_dataset *ds = NULL;
    struct fkt_moments *m = NULL;
    struct fkt_release r = {0};
    struct fkt_ledger ledger;
    (void)state;
    scratch_init(&scratch);
    CHECK_OK(small_pipeline(&pipeline, &ds, 10, 5, FKT_COORDINATE_GAIN_SHAPE));
    CHECK_OK(fkt_pipeline_moments_new(pipeline, &m));
    CHECK_OK(fkt_pipeline_moments(pipeline, ds, NULL, 0, m, &w));
    CHECK_OK(fkt_ledger_init(&ledger, 100, 1e-3));
    CHECK_OK(fkt_release_make_into(&r, fkt_pipeline_task(pipeline), fkt_pipeline_calibration(pipeline, 0), m, &facts,
                                   &ledger, NULL));
    CHECK_OK(fkt_release_save(&r, scratch_path(&scratch, "release"), 0));
    CHECK_OK(fkt_generate(&r, scratch_path(&scratch, "images"), &g));
    fkt_release_clear(&r);
    fkt_moments_free(m);
    fkt_dataset_free(ds);
    fkt_pipeline_free(pipeline);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    scratch_release(&scratch);
    return 0;
}

/* release -> drawn; folder -> read with its promise; both together, through the codec, a share held out */
static fkt_status pools(void)
{
    const char *folder = scratch_path(&scratch, "images");
    struct fkt_release r = {0};
    struct fkt_pipeline *pipeline = NULL;
    struct fkt_dataset *ds = NULL;
    struct fkt_training_set drawn = {0}, read = {0}, held = {0};
    struct fkt_draw_options d = {.per_class = 1};
    struct fkt_skipped skipped = {0};
    const struct fkt_training_set_options counted = {.threads = 1, .skipped = &skipped};
    fkt_status st;
    FKT_TRY(fkt_release_load_into(&r, scratch_path(&scratch, "release")));
    FKT_TRY(fkt_release_pipeline(&r, NULL, &pipeline));
    d.pipeline = pipeline;
    FKT_TRY(fkt_training_set_draw(&drawn, &r, &d, &one));
    FKT_TRY(fkt_dataset_open(&ds, folder, NULL));
    FKT_TRY(fkt_training_set_read(&read, ds, NULL, 0, 16, FKT_FILTER_BILINEAR, folder,
                                  &counted)); /* want of memory is no damage */
    if (skipped.count) fail_msg("%llu good images were left out", (unsigned long long)skipped.count);
    fkt_training_set_clear(&read);
    FKT_TRY(fkt_training_set_read(&read, ds, NULL, 0, 16, FKT_FILTER_BILINEAR, folder, &one));
    if (!read.origin.is_private) fail_msg("the promise was lost: %s", read.origin.data);
    FKT_TRY(fkt_training_set_append(&drawn, &read));
    FKT_TRY(fkt_training_set_through_codec(&drawn, fkt_pipeline_codec(pipeline), &one));
    FKT_TRY(fkt_training_set_hold_out(&drawn, &held, 0.5, 1));
out:
    fkt_skipped_clear(&skipped);
    fkt_training_set_clear(&held);
    fkt_training_set_clear(&read);
    fkt_training_set_clear(&drawn);
    fkt_dataset_free(ds);
    fkt_pipeline_free(pipeline);
    fkt_release_clear(&r);
    return st;
}

/* a teacher, its release's images, public ones, and the second epoch of both */
static fkt_status taught(void)
{
    struct fkt_training_source_spec spec = {.draw = {.per_class = 1}, .fresh = 1, .options = {.threads = 1}};
    struct fkt_training_source *s = NULL;
    struct fkt_image_source images;
    struct fkt_teacher *teacher = NULL;
    struct fkt_release r = {0};
    struct fkt_pipeline *pipeline = NULL;
    struct fkt_dataset *ds = NULL;
    struct fkt_images now;
    fkt_status st;
    FKT_TRY(fkt_release_load_into(&r, scratch_path(&scratch, "release")));
    FKT_TRY(fkt_release_pipeline(&r, NULL, &pipeline));
    FKT_TRY(fkt_teacher_of_release(&teacher, &r, pipeline, FKT_HEAD_LDA, FKT_HEADS_DEFAULT));
    FKT_TRY(fkt_dataset_open(&ds, scratch_path(&scratch, "images"), NULL));
    spec.release = &r;
    spec.draw.pipeline = pipeline;
    spec.teacher = teacher;
    FKT_TRY(fkt_training_source_new(&s, &spec));
    FKT_TRY(fkt_training_source_public(s, ds, "images", 3, NULL));
    fkt_training_source_images(s, &images);
    FKT_TRY(images.images(images.ctx, 1, &now));
    st = fkt_training_source_check_test(s, ds);
    if (st == FKT_E_MISMATCH) st = FKT_OK; /* they are the same */
out:
    fkt_training_source_free(s);
    fkt_teacher_free(teacher);
    fkt_dataset_free(ds);
    fkt_pipeline_free(pipeline);
    fkt_release_clear(&r);
    return st;
}

static void no_allocation_is_forgotten(void **state)
{
    (void)state;
    CHECK(sweep_allocations(pools, NULL) > 50);
    CHECK(sweep_allocations(taught, NULL) > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_allocation_is_forgotten)};
    return cmocka_run_group_tests(tests, prepare, finish);
}
