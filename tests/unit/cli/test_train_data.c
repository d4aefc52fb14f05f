/* SPDX-License-Identifier: Apache-2.0 */
/* test_train_data.c - which pictures 'fedkt train' learns from and which it is judged on while it learns. */
#include "cli/learning/train.h"

#include "tests/support/released.h"

enum { EACH = 4, CLASSES = 10, DRAWN = EACH * CLASSES, MIXED = 20, EPOCHS = 3 };

static struct fkt_release release; /* its noise is private */

/* What 'train --release --per-class 4 --holdout 0.25 --mix' comes to. */
static struct cli_train asked(int fresh, const char *mix)
{
    struct cli_train a = {.release = scratch_path(&scratch, "release"),
                          .per_class = EACH,
                          .draw_seed = 5,
                          .fresh = fresh,
                          .holdout = 0.25,
                          .mix = {.path = mix, .limit = MIXED}};
    fkt_recipe_default(&a.recipe);
    a.recipe.epochs = EPOCHS;
    a.recipe.threads = 2;
    a.run.quiet = 1;
    return a;
}

static int is_among(const uint8_t *image, const uint8_t *rgb, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!memcmp(image, rgb + i * PIXELS, PIXELS)) return 1;
    return 0;
}

static void fresh_images_are_held_out_for_good(void **state)
{
    struct cli_train a = asked(1, "demo:train");
    struct cli_images p = {0};
    struct fkt_training_set want;
    uint8_t mixed[MIXED * PIXELS];
    (void)state;
    CHECK_OK(cli_images_open(&p, &a, NULL, NULL));
    draw(&want, &release, 1, (uint64_t)EPOCHS * EACH, 1); /* beyond what any epoch draws */
    assert_int_equal(p.held.n, CLASSES);
    assert_memory_equal(p.held.rgb, want.rgb, CLASSES * PIXELS);
    fkt_training_set_clear(&want);
    memcpy(mixed, p.set.rgb + DRAWN * PIXELS, sizeof mixed);
    for (uint32_t e = 0; e < EPOCHS; e++) {
        struct fkt_images now;
        CHECK_OK(cli_images_of_epoch(&p, e, &now));
        assert_int_equal(now.n, DRAWN + MIXED);
        draw(&want, &release, EACH, (uint64_t)e * EACH, 1);
        assert_memory_equal(now.rgb, want.rgb, DRAWN * PIXELS);
        fkt_training_set_clear(&want);
        assert_memory_equal(now.rgb + DRAWN * PIXELS, mixed, sizeof mixed); /* real ones in each */
        for (size_t i = 0; i < p.held.n; i++) CHECK(!is_among(p.held.rgb + i * PIXELS, now.rgb, now.n));
    }
    assert_int_equal(p.set.origin.is_private, 0);
    cli_images_clear(&p);
}

static void nothing_is_held_out_of_what_is_mixed_in(void **state)
{
    struct cli_train a = asked(0, "demo:train");
    struct cli_images p = {0};
    struct fkt_training_set all;
    (void)state;
    CHECK_OK(cli_images_open(&p, &a, NULL, NULL));
    draw(&all, &release, EACH, 0, 1);
    assert_int_equal(p.held.n, CLASSES);
    assert_int_equal(p.set.n, DRAWN - CLASSES + MIXED);
    for (size_t i = 0; i < p.held.n; i++) {
        CHECK(is_among(p.held.rgb + i * PIXELS, all.rgb, all.n));
        CHECK(!is_among(p.held.rgb + i * PIXELS, p.set.rgb, p.set.n));
    }
    fkt_training_set_clear(&all);
    cli_images_clear(&p);
}

/* Even a folder with a certificate: whoever mixes says that these are real. */
static void what_is_mixed_in_is_never_private(void **state)
{
    struct cli_train a = asked(0, NULL);
    struct cli_images p = {0};
    (void)state;
    generate(&release, scratch_path(&scratch, "made"), FKT_EXPORT_FOLDER);
    CHECK_OK(cli_images_open(&p, &a, NULL, NULL));
    assert_int_equal(p.set.origin.is_private, 1);
    cli_images_clear(&p);
    a.mix.path = scratch_path(&scratch, "made");
    a.mix.limit = 0;
    CHECK_OK(cli_images_open(&p, &a, NULL, NULL));
    assert_int_equal(p.set.origin.is_private, 0);
    cli_images_clear(&p);
}

/* A model whose classes stand the other way round: its order is taken, in every epoch and for what is held out. */
static void classes_stand_in_the_models_order(void **state)
{
    const char *names[CLASSES];
    struct fkt_model_spec spec = {
        .architecture = FKT_ARCHITECTURE_RESNET8, .size = 16, .classes = names, .n_classes = CLASSES};
    struct cli_train a = asked(1, "demo:train");
    struct cli_images p = {0};
    struct fkt_model *m = NULL;
    struct fkt_images now;
    (void)state;
    for (uint32_t k = 0; k < CLASSES; k++) names[k] = fkt_pipeline_task(pipeline)->classes[CLASSES - 1 - k];
    CHECK_OK(fkt_model_new(&m, &spec));
    CHECK_OK(cli_images_open(&p, &a, NULL, m));
    for (uint32_t e = 0; e < 2; e++) {
        CHECK_OK(cli_images_of_epoch(&p, e, &now));
        for (uint32_t k = 0; k < CLASSES; k++) assert_string_equal(p.set.classes[k], names[k]);
        for (size_t i = 0; i < DRAWN; i++) assert_int_equal(now.label[i], CLASSES - 1 - i / EACH);
    }
    for (uint32_t k = 0; k < CLASSES; k++) {
        assert_string_equal(p.held.classes[k], names[k]);
        assert_int_equal(p.held.label[k], CLASSES - 1 - k);
    }
    cli_images_clear(&p);
    fkt_model_free(m);
}

static int begin(void **state)
{
    if (open_all(state)) return -1;
    make_release(&release, NULL, 0);
    return fkt_release_save(&release, scratch_path(&scratch, "release"), 0) != FKT_OK;
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
        cmocka_unit_test(classes_stand_in_the_models_order),
    };
    return check_nothing_left(cmocka_run_group_tests(tests, begin, end));
}
