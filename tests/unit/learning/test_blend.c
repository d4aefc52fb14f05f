/* SPDX-License-Identifier: Apache-2.0 */
/* test_blend.c - images made of two against their definition, and the epochs of a source that has them. */
#include "fedkt/training_source.h"

#include "learning/blend.h"

#include "tests/support/released.h"

enum { EACH = 6, CLASSES = 10, DRAWN = EACH * CLASSES, OTHERS = 20, SIDE = 5 };

static struct fkt_release release;
static struct fkt_teacher *teacher;

/* ---- one blend ---- */

static void a_blend_is_its_definition(void **state)
{
    uint8_t rgb[2 * SIDE * SIDE * 3], out[SIDE * SIDE * 3];
    const struct fkt_blend cut = {.first = 1, .second = 0, .cut = 1, .top = 1, .left = 2, .height = 3, .width = 3};
    struct fkt_blend mean = {.first = 0, .second = 1};
    (void)state;
    for (size_t i = 0; i < sizeof rgb; i++) rgb[i] = (uint8_t)(i * 37 + 11);
    fkt_blend_make(&cut, rgb, SIDE, out);
    for (size_t y = 0; y < SIDE; y++)
        for (size_t x = 0; x < SIDE; x++)
            for (size_t c = 0; c < 3; c++) {
                const size_t at = (y * SIDE + x) * 3 + c;
                const int inside = y >= 1 && y < 4 && x >= 2;
                assert_int_equal(out[at], rgb[at + (inside ? 0 : sizeof out)]);
            }
    for (mean.weight = 0; mean.weight <= 256; mean.weight++) {
        fkt_blend_make(&mean, rgb, SIDE, out);
        for (size_t i = 0; i < sizeof out; i++) {
            const double want = (rgb[i] * (double)mean.weight + rgb[i + sizeof out] * (256.0 - mean.weight)) / 256;
            CHECK_NEAR(out[i], want, 0.5 + 1e-12);
        }
    }
}

static void plans_are_in_bounds_and_repeat(void **state)
{
    const size_t n = 20000;
    struct fkt_blend *b, *again, *other;
    size_t count, same, rest, cuts = 0;
    double area = 0, weight = 0;
    (void)state;
    CHECK_OK(fkt_blend_plan(&b, &count, n, 32, 0.25, 7, 3));
    CHECK_OK(fkt_blend_plan(&again, &same, n, 32, 0.25, 7, 3));
    CHECK_OK(fkt_blend_plan(&other, &rest, n, 32, 0.25, 7, 4));
    assert_int_equal(count, same);
    assert_memory_equal(b, again, count * sizeof *b);
    CHECK(count != rest || memcmp(b, other, count * sizeof *b) != 0); /* another epoch has other blends */
    CHECK_NEAR((double)count / (double)n, 0.25, 0.0125);              /* four standard deviations */
    for (size_t i = 0; i < count; i++) {
        CHECK(b[i].second < n && (i == 0 || b[i].first > b[i - 1].first) && b[i].first < n);
        CHECK(b[i].top + b[i].height <= 32 && b[i].left + b[i].width <= 32 && b[i].weight <= 256);
        cuts += (size_t)b[i].cut;
        area += b[i].height * (double)b[i].width / 1024;
        weight += b[i].weight / 256.0;
    }
    CHECK_NEAR((double)cuts / (double)count, 0.5, 0.03);
    CHECK_NEAR(area / (double)count, 0.5, 0.03);
    CHECK_NEAR(weight / (double)count, 0.5, 0.02);
    fkt_free(b);
    fkt_free(again);
    fkt_free(other);
    CHECK_OK(fkt_blend_plan(&b, &count, n, 32, 0, 7, 3));
    assert_int_equal(count, 0);
    fkt_free(b);
    CHECK_OK(fkt_blend_plan(&b, &count, 10, 32, 1, 7, 3));
    assert_int_equal(count, 10);
    fkt_free(b);
}

/* ---- epochs ---- */

static struct fkt_training_source_spec spec_of(double plain, double blend)
{
    return (struct fkt_training_source_spec){.release = &release,
                                             .draw = {.per_class = EACH, .seed = 5, .pipeline = pipeline},
                                             .fresh = 1,
                                             .teacher = teacher,
                                             .plain = plain,
                                             .blend = blend,
                                             .options = {.threads = 2}};
}

static struct fkt_training_source *source(const struct fkt_training_source_spec *spec)
{
    const struct fkt_dataset_options o = {.limit = OTHERS};
    struct fkt_training_source *s = NULL;
    struct fkt_dataset *ds = NULL;
    CHECK_OK(fkt_training_source_new(&s, spec));
    CHECK_OK(fkt_dataset_open(&ds, "demo:test", &o));
    CHECK_OK(fkt_training_source_public(s, ds, "others", OTHERS, NULL));
    fkt_dataset_free(ds);
    return s;
}

/* Blends take the places that the plan says, of images as they would be without; the teacher saw what is there. */
static void an_epoch_has_its_blends(void **state)
{
    struct fkt_training_source_spec without = spec_of(0, 0), with = spec_of(0, 0.5);
    struct fkt_training_source *plain = source(&without), *s = source(&with);
    struct fkt_image_source images, unblended;
    static float logits[(DRAWN + OTHERS) * CLASSES];
    uint8_t made[PIXELS];
    (void)state;
    fkt_training_source_images(plain, &unblended);
    fkt_training_source_images(s, &images);
    for (uint32_t e = 0; e < 3; e++) {
        struct fkt_images now, was;
        struct fkt_blend *b = NULL;
        size_t count, next = 0;
        CHECK_OK(images.images(images.ctx, e, &now));
        CHECK_OK(unblended.images(unblended.ctx, e, &was));
        assert_int_equal(now.n, DRAWN + OTHERS);
        CHECK_OK(fkt_blend_plan(&b, &count, now.n, 16, 0.5, 5, e));
        CHECK(count > 20 && count < 60);
        CHECK_OK(fkt_teacher_logits(teacher, now.rgb, now.n, logits, NULL));
        assert_memory_equal(now.teacher, logits, sizeof logits);
        for (size_t i = 0; i < now.n; i++) {
            const int blended = next < count && b[next].first == i;
            if (blended) fkt_blend_make(&b[next++], was.rgb, 16, made);
            assert_memory_equal(now.rgb + i * PIXELS, blended ? made : was.rgb + i * PIXELS, PIXELS);
            if (!blended) assert_int_equal(now.label[i], was.label[i]);
            for (uint32_t k = 0; blended && k < CLASSES; k++)
                CHECK(logits[i * CLASSES + now.label[i]] >= logits[i * CLASSES + k]);
        }
        assert_int_equal(next, count);
        fkt_free(b);
    }
    CHECK(fkt_training_source_set(s)->origin.is_private == fkt_training_source_set(plain)->origin.is_private);
    fkt_training_source_free(plain);
    fkt_training_source_free(s);
}

/* The numbers of an epoch's samples do not change with the share, so this release without a guide gives the same
 * images: each epoch's, by class, whichever part of them is called plain. */
static void plain_images_are_the_last_samples_of_an_epoch(void **state)
{
    struct fkt_training_source_spec spec = spec_of(0.5, 0);
    struct fkt_training_source *s = NULL;
    struct fkt_image_source images;
    struct fkt_training_set want;
    (void)state;
    CHECK_OK(fkt_training_source_new(&s, &spec));
    fkt_training_source_images(s, &images);
    for (uint32_t e = 0; e < 2; e++) {
        struct fkt_images now;
        CHECK_OK(images.images(images.ctx, e, &now));
        assert_int_equal(now.n, DRAWN);
        draw(&want, &release, EACH, (uint64_t)e * EACH, 1);
        for (size_t i = 0; i < DRAWN; i++) { /* EACH/2 of every class, then the other halves */
            const size_t half = i / (DRAWN / 2), k = i % (DRAWN / 2) / (EACH / 2), j = i % (EACH / 2);
            const size_t from = k * EACH + half * (EACH / 2) + j;
            assert_int_equal(now.label[i], k);
            assert_memory_equal(now.rgb + i * PIXELS, want.rgb + from * PIXELS, PIXELS);
        }
        fkt_training_set_clear(&want);
    }
    fkt_training_source_free(s);
}

static void what_is_refused(void **state)
{
    static const double bad[][2] = {{-0.1, 0}, {1.1, 0}, {0, -0.1}, {0, 1.1}, {NAN, 0}, {0, NAN}};
    struct fkt_training_source *s = NULL;
    struct fkt_training_source_spec spec;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        spec = spec_of(bad[i][0], bad[i][1]);
        CHECK_STATUS(fkt_training_source_new(&s, &spec), FKT_E_ARG);
    }
    spec = spec_of(0, 0.5);
    spec.teacher = NULL;
    CHECK_STATUS(fkt_training_source_new(&s, &spec), FKT_E_ARG);
    spec = spec_of(0, 0.5);
    spec.fresh = 0;
    CHECK_STATUS(fkt_training_source_new(&s, &spec), FKT_E_ARG);
}

static int begin(void **state)
{
    if (open_all(state)) return -1;
    make_release(&release, NULL, 0);
    return fkt_teacher_of_release(&teacher, &release, pipeline, FKT_HEAD_LDA, FKT_HEADS_DEFAULT) != FKT_OK;
}

static int end(void **state)
{
    fkt_teacher_free(teacher);
    fkt_release_clear(&release);
    return close_all(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_blend_is_its_definition), cmocka_unit_test(plans_are_in_bounds_and_repeat),
        cmocka_unit_test(an_epoch_has_its_blends),   cmocka_unit_test(plain_images_are_the_last_samples_of_an_epoch),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
