/* SPDX-License-Identifier: Apache-2.0 */
/* test_training_source.c - which images a run trains on in each epoch, and which it is evaluated on meanwhile. */
#include "fedkt/training_source.h"

#include "tests/support/released.h"

enum { EACH = 4, CLASSES = 10, DRAWN = EACH * CLASSES, MIXED = 20, EPOCHS = 3 };

static struct fkt_release release; /* its noise is private */

static struct fkt_training_source_spec drawn(int fresh, const struct fkt_model *order)
{
    return (struct fkt_training_source_spec){.release = &release,
                                             .draw = {.per_class = EACH, .seed = 5, .pipeline = pipeline},
                                             .fresh = fresh,
                                             .order = order,
                                             .options = {.threads = 2}};
}

/* MIXED records of what is at `path`, or all (limit 0), in the order of the source's classes. */
static void mix(struct fkt_training_source *s, const char *path, size_t limit)
{
    const struct fkt_training_set *set = fkt_training_source_set(s);
    const struct fkt_dataset_options o = {
        .classes = (const char *const *)set->classes, .n_classes = set->n_classes, .limit = limit};
    struct fkt_dataset *ds = NULL;
    CHECK_OK(fkt_dataset_open(&ds, path, &o));
    CHECK_OK(fkt_training_source_mix(s, ds, NULL));
    fkt_dataset_free(ds);
}

/* As 'fedkt train --release --per-class 4 --holdout 0.25 --mix demo:train --mix-limit 20' makes it. */
static struct fkt_training_source *mixed_source(int fresh, const struct fkt_model *order)
{
    const struct fkt_training_source_spec spec = drawn(fresh, order);
    struct fkt_training_source *s = NULL;
    CHECK_OK(fkt_training_source_new(&s, &spec));
    CHECK_OK(fkt_training_source_hold_out(s, 0.25, 1, EPOCHS));
    mix(s, "demo:train", MIXED);
    return s;
}

static int is_among(const uint8_t *image, const uint8_t *rgb, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!memcmp(image, rgb + i * PIXELS, PIXELS)) return 1;
    return 0;
}

static void fresh_images_are_held_out_for_good(void **state)
{
    struct fkt_training_source *s = mixed_source(1, NULL);
    const struct fkt_images *held = fkt_training_source_held(s);
    struct fkt_image_source images;
    struct fkt_training_set want;
    uint8_t mixed[MIXED * PIXELS];
    (void)state;
    fkt_training_source_images(s, &images);
    assert_int_equal(images.anew, 1);
    draw(&want, &release, 1, (uint64_t)EPOCHS * EACH, 1); /* beyond what any epoch draws */
    assert_int_equal(held->n, CLASSES);
    assert_memory_equal(held->rgb, want.rgb, CLASSES * PIXELS);
    fkt_training_set_clear(&want);
    memcpy(mixed, fkt_training_source_set(s)->rgb + DRAWN * PIXELS, sizeof mixed);
    for (uint32_t e = 0; e < EPOCHS; e++) {
        struct fkt_images now;
        CHECK_OK(images.images(images.ctx, e, &now));
        assert_int_equal(now.n, DRAWN + MIXED);
        draw(&want, &release, EACH, (uint64_t)e * EACH, 1);
        assert_memory_equal(now.rgb, want.rgb, DRAWN * PIXELS);
        fkt_training_set_clear(&want);
        assert_memory_equal(now.rgb + DRAWN * PIXELS, mixed, sizeof mixed); /* real ones in each */
        for (size_t i = 0; i < held->n; i++) CHECK(!is_among(held->rgb + i * PIXELS, now.rgb, now.n));
    }
    assert_int_equal(fkt_training_source_set(s)->origin.is_private, 0);
    fkt_training_source_free(s);
}

static void nothing_is_held_out_of_what_is_mixed_in(void **state)
{
    struct fkt_training_source *s = mixed_source(0, NULL);
    const struct fkt_training_set *set = fkt_training_source_set(s);
    const struct fkt_images *held = fkt_training_source_held(s);
    struct fkt_training_set all;
    (void)state;
    draw(&all, &release, EACH, 0, 1);
    assert_int_equal(held->n, CLASSES);
    assert_int_equal(set->n, DRAWN - CLASSES + MIXED);
    for (size_t i = 0; i < held->n; i++) {
        CHECK(is_among(held->rgb + i * PIXELS, all.rgb, all.n));
        CHECK(!is_among(held->rgb + i * PIXELS, set->rgb, set->n));
    }
    fkt_training_set_clear(&all);
    assert_int_equal(fkt_training_source_hold_out(s, 0.25, 1, EPOCHS), FKT_E_STATE); /* real ones would be among them */
    fkt_training_source_free(s);
}

/* Even a folder with a certificate: whoever mixes says that these are real. */
static void what_is_mixed_in_is_never_private(void **state)
{
    const struct fkt_training_source_spec spec = drawn(0, NULL);
    struct fkt_training_source *s = NULL;
    (void)state;
    generate(&release, scratch_path(&scratch, "made"), FKT_EXPORT_FOLDER);
    CHECK_OK(fkt_training_source_new(&s, &spec));
    assert_int_equal(fkt_training_source_set(s)->origin.is_private, 1);
    mix(s, scratch_path(&scratch, "made"), 0);
    assert_int_equal(fkt_training_source_set(s)->origin.is_private, 0);
    fkt_training_source_free(s);
}

/* A model whose classes stand the other way round: its order is taken, in every epoch and for what is held out. */
static void classes_stand_in_the_models_order(void **state)
{
    const char *names[CLASSES];
    struct fkt_model_spec spec = {
        .architecture = FKT_ARCHITECTURE_RESNET8, .size = 16, .classes = names, .n_classes = CLASSES};
    struct fkt_training_source *s;
    struct fkt_image_source images;
    struct fkt_model *m = NULL;
    struct fkt_images now;
    (void)state;
    for (uint32_t k = 0; k < CLASSES; k++) names[k] = fkt_pipeline_task(pipeline)->classes[CLASSES - 1 - k];
    CHECK_OK(fkt_model_new(&m, &spec));
    s = mixed_source(1, m);
    fkt_model_free(m); /* borrowed no longer than that */
    fkt_training_source_images(s, &images);
    for (uint32_t e = 0; e < 2; e++) {
        CHECK_OK(images.images(images.ctx, e, &now));
        for (uint32_t k = 0; k < CLASSES; k++) assert_string_equal(fkt_training_source_set(s)->classes[k], names[k]);
        for (size_t i = 0; i < DRAWN; i++) assert_int_equal(now.label[i], CLASSES - 1 - i / EACH);
    }
    for (uint32_t k = 0; k < CLASSES; k++) assert_int_equal(fkt_training_source_held(s)->label[k], CLASSES - 1 - k);
    fkt_training_source_free(s);
}

static void a_dataset_gives_the_same_images_in_every_epoch(void **state)
{
    struct fkt_training_source_spec spec = {.data = demo, .size = 16, .options = {.threads = 2}};
    struct fkt_training_source *s = NULL;
    struct fkt_image_source images;
    struct fkt_images first, second;
    (void)state;
    CHECK_OK(fkt_training_source_new(&s, &spec));
    CHECK(!fkt_training_source_held(s));
    fkt_training_source_images(s, &images);
    assert_int_equal(images.anew, 0);
    CHECK_OK(images.images(images.ctx, 0, &first));
    CHECK_OK(images.images(images.ctx, 1, &second));
    assert_int_equal(first.n, fkt_dataset_size(demo));
    CHECK(first.rgb == second.rgb && first.n == second.n);
    assert_int_equal(fkt_training_source_set(s)->origin.is_private, 0);
    fkt_training_source_free(s);
    spec.fresh = 1;
    assert_int_equal(fkt_training_source_new(&s, &spec), FKT_E_ARG);
    CHECK(!s);
    spec = drawn(0, NULL);
    spec.data = demo;
    assert_int_equal(fkt_training_source_new(&s, &spec), FKT_E_ARG);
}

/* An epoch that fails leaves the one before: never drawn images alone, whose origin would be called private. */
static void an_epoch_that_fails_changes_nothing(void **state)
{
    struct fkt_training_source *s = mixed_source(1, NULL);
    struct fkt_image_source images;
    struct fkt_images got;
    size_t n = 1;
    fkt_status st = FKT_E_NOMEM;
    (void)state;
    fkt_training_source_images(s, &images);
    CHECK_OK(images.images(images.ctx, 0, &got));
    for (; st != FKT_OK && n < 10000; n++) {
        fkt_alloc_fault_at(n, 0);
        st = images.images(images.ctx, 1, &got);
        fkt_alloc_fault_at(0, 0);
        CHECK(!fkt_training_source_set(s)->origin.is_private);
        assert_int_equal(fkt_training_source_set(s)->n, DRAWN + MIXED);
    }
    CHECK(st == FKT_OK && n > 3);
    fkt_training_source_free(s);
}

static int begin(void **state)
{
    if (open_all(state)) return -1;
    make_release(&release, NULL, 0);
    return 0;
}

static int end(void **state)
{
    fkt_release_clear(&release);
    return close_all(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fresh_images_are_held_out_for_good),
        cmocka_unit_test(nothing_is_held_out_of_what_is_mixed_in),
        cmocka_unit_test(what_is_mixed_in_is_never_private),
        cmocka_unit_test(an_epoch_that_fails_changes_nothing),
        cmocka_unit_test(classes_stand_in_the_models_order),
        cmocka_unit_test(a_dataset_gives_the_same_images_in_every_epoch),
    };
    return check_nothing_left(cmocka_run_group_tests(tests, begin, end));
}
