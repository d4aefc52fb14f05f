/* SPDX-License-Identifier: Apache-2.0 */
/* A head as teacher: its logits against the head's posterior, and which logits come with which image of an epoch. */
#include "fedkt/training_source.h"

#include "tests/support/released.h"

#include <math.h>

enum { EACH = 4, CLASSES = 10, DRAWN = EACH * CLASSES, EPOCHS = 3, ALL = 40 };

static struct fkt_release release; /* its noise is private */
static struct fkt_teacher *teacher;

static struct fkt_training_source_spec spec_of(int fresh, const struct fkt_model *order)
{
    return (struct fkt_training_source_spec){.release = &release,
                                             .draw = {.per_class = EACH, .seed = 5, .pipeline = pipeline},
                                             .fresh = fresh,
                                             .teacher = teacher,
                                             .order = order,
                                             .options = {.threads = 2}};
}

/* The definition: encode, posterior, logarithm. */
static void posterior_is_the_softmax_of_the_logits(void **state)
{
    const struct fkt_estimate_options raw = {.estimator = FKT_ESTIMATOR_RAW};
    const uint32_t m = fkt_pipeline_task(pipeline)->part[0].coordinates.length;
    const struct fkt_pipeline_options one = {.threads = 1}, three = {.threads = 3};
    static float logits[DRAWN * CLASSES], again[DRAWN * CLASSES];
    static double p[DRAWN * CLASSES];
    struct fkt_training_set set;
    struct fkt_gaussians g = {0};
    double *w = NULL;
    int32_t *q = NULL;
    (void)state;
    draw(&set, &release, EACH, 0, 1);
    CHECK_OK(fkt_alloc(&w, DRAWN * m));
    CHECK_OK(fkt_alloc(&q, DRAWN * m));
    CHECK_OK(fkt_pipeline_vectors(pipeline, set.rgb, DRAWN, w, q));
    CHECK_OK(fkt_release_gaussians(&release, 0, &raw, &g));
    for (int kind = 0; kind < fkt_head_kinds(); kind++) {
        struct fkt_teacher *t = NULL, *borrowed = NULL;
        struct fkt_heads heads;
        CHECK_OK(fkt_heads_fit(&heads, &g, &release.task, FKT_HEADS_DEFAULT, &release));
        CHECK_OK(fkt_head_posterior(heads.head[kind], w, DRAWN, 1, p));
        CHECK_OK(fkt_teacher_of_release(&t, &release, pipeline, (enum fkt_head_kind)kind, FKT_HEADS_DEFAULT));
        CHECK(fkt_teacher_classes(t) == CLASSES && (int)fkt_teacher_kind(t) == kind);
        CHECK_OK(fkt_teacher_logits(t, set.rgb, DRAWN, logits, &three));
        for (size_t i = 0; i < DRAWN * CLASSES; i++) CHECK_NEAR(exp((double)logits[i]), p[i], 1e-5);
        CHECK_OK(fkt_teacher_of_head(&borrowed, heads.head[kind], pipeline));
        for (size_t i = 0; i < DRAWN; i++) /* one at a time: the same bits */
            CHECK_OK(fkt_teacher_logits(borrowed, set.rgb + i * PIXELS, 1, again + i * CLASSES, &one));
        assert_memory_equal(again, logits, sizeof logits);
        fkt_teacher_free(borrowed);
        fkt_teacher_free(t);
        fkt_heads_clear(&heads);
    }
    fkt_gaussians_clear(&g);
    fkt_free(w);
    fkt_free(q);
    fkt_training_set_clear(&set);
}

/* Every image of the set has its own logits; `order` as in the source. */
static void check_rows(const struct fkt_images *now, const uint32_t *order)
{
    float *want = NULL;
    CHECK_OK(fkt_alloc(&want, now->n * CLASSES));
    CHECK_OK(fkt_teacher_logits(teacher, now->rgb, now->n, want, NULL));
    for (size_t i = 0; i < now->n; i++)
        for (uint32_t k = 0; k < CLASSES; k++)
            CHECK(now->teacher[i * CLASSES + (order ? order[k] : k)] == want[i * CLASSES + k]);
    fkt_free(want);
}

static void add_public(struct fkt_training_source *s, size_t limit, size_t each)
{
    const struct fkt_dataset_options o = {.limit = limit};
    struct fkt_dataset *ds = NULL;
    CHECK_OK(fkt_dataset_open(&ds, "demo:test", &o));
    CHECK_OK(fkt_training_source_public(s, ds, "some/where/tiny/", each, NULL));
    fkt_dataset_free(ds);
}

static void add_mix(struct fkt_training_source *s)
{
    const struct fkt_training_set *set = fkt_training_source_set(s);
    const struct fkt_dataset_options o = {
        .classes = (const char *const *)set->classes, .n_classes = set->n_classes, .limit = 20};
    struct fkt_dataset *ds = NULL;
    CHECK_OK(fkt_dataset_open(&ds, "demo:train", &o));
    CHECK_OK(fkt_training_source_mix(s, ds, NULL));
    fkt_dataset_free(ds);
}

static void every_image_has_its_own_logits(void **state)
{
    const char *names[CLASSES];
    uint32_t order[CLASSES];
    struct fkt_model_spec other = {
        .architecture = FKT_ARCHITECTURE_RESNET8, .size = 16, .classes = names, .n_classes = CLASSES};
    struct fkt_model *m = NULL;
    (void)state;
    for (uint32_t k = 0; k < CLASSES; k++) {
        order[k] = CLASSES - 1 - k;
        names[order[k]] = fkt_pipeline_task(pipeline)->classes[k];
    }
    CHECK_OK(fkt_model_new(&m, &other));
    for (int way = 0; way < 4; way++) { /* fresh or not, the task's order or the model's */
        const struct fkt_training_source_spec spec = spec_of(way & 1, way & 2 ? m : NULL);
        struct fkt_training_source *s = NULL;
        struct fkt_image_source images;
        CHECK_OK(fkt_training_source_new(&s, &spec));
        CHECK_OK(fkt_training_source_hold_out(s, 0.25, 1, EPOCHS)); /* rows move up where images are taken out */
        add_mix(s);
        add_public(s, ALL, 15);
        fkt_training_source_images(s, &images);
        CHECK(images.anew == 1);
        for (uint32_t e = 0; e < EPOCHS; e++) {
            struct fkt_images now;
            CHECK_OK(images.images(images.ctx, e, &now));
            CHECK(now.n == (size_t)(way & 1 ? DRAWN : DRAWN - CLASSES) + 20 + 15);
            check_rows(&now, way & 2 ? order : NULL);
        }
        CHECK(!fkt_training_source_held(s)->teacher);
        fkt_training_source_free(s);
    }
    fkt_model_free(m);
}

static size_t most_probable(const float *logits)
{
    size_t best = 0;
    for (size_t k = 1; k < CLASSES; k++)
        if (logits[k] > logits[best]) best = k;
    return best;
}

/* The image's number in the public set. */
static size_t find(const struct fkt_training_set *all, const uint8_t *image)
{
    size_t i = 0;
    while (i < all->n && memcmp(all->rgb + i * PIXELS, image, PIXELS) != 0) i++;
    CHECK(i < all->n);
    return i;
}

static void public_images_take_turns(void **state)
{
    const struct fkt_training_source_spec spec = spec_of(0, NULL);
    struct fkt_training_source *s = NULL, *later = NULL;
    struct fkt_image_source images, straight;
    struct fkt_training_set all;
    struct fkt_images now, there;
    unsigned seen[ALL] = {0};
    (void)state;
    read_set(&all, "demo:test", NULL, ALL);
    CHECK_OK(fkt_training_source_new(&s, &spec));
    CHECK_OK(fkt_training_source_new(&later, &spec));
    add_public(s, ALL, 15);
    add_public(later, ALL, 15);
    fkt_training_source_images(s, &images);
    fkt_training_source_images(later, &straight);
    for (uint32_t e = 0; e < 8; e++) { /* 8 times 15 are three passes over 40 */
        CHECK_OK(images.images(images.ctx, e, &now));
        CHECK(now.n == DRAWN + 15);
        for (size_t i = DRAWN; i < now.n; i++) {
            seen[find(&all, now.rgb + i * PIXELS)]++;
            CHECK(now.label[i] == most_probable(now.teacher + i * CLASSES));
        }
        for (size_t i = 0; i < DRAWN; i++) CHECK(now.label[i] == i / EACH); /* drawn ones keep theirs */
    }
    for (size_t i = 0; i < ALL; i++) CHECK(seen[i] == 3);
    CHECK_OK(straight.images(straight.ctx, 7, &there)); /* as a resumed run asks */
    assert_memory_equal(now.rgb, there.rgb, now.n * PIXELS);
    assert_memory_equal(now.teacher, there.teacher, now.n * CLASSES * sizeof *now.teacher);
    CHECK_OK(images.images(images.ctx, 2, &now)); /* and back */
    check_rows(&now, NULL);
    fkt_training_set_clear(&all);
    fkt_training_source_free(s);
    fkt_training_source_free(later);
}

static void what_a_source_says_of_public_images(void **state)
{
    struct fkt_training_source_spec spec = spec_of(0, NULL);
    struct fkt_training_source *s = NULL, *none = NULL;
    struct fkt_public_facts f, g;
    const struct fkt_model_origin *o;
    struct fkt_image_source images;
    struct fkt_images now;
    (void)state;
    CHECK_OK(fkt_training_source_new(&s, &spec));
    o = &fkt_training_source_set(s)->origin;
    CHECK(strstr(o->data, "; taught by its LDA head") && o->is_private && o->epsilon > 0 && !o->public_images[0]);
    CHECK(fkt_training_source_public_facts(s).images == 0);
    add_public(s, 30, 0);
    f = fkt_training_source_public_facts(s);
    CHECK(f.images == 30 && f.each == 30); /* 40 others: all of them, in each epoch */
    assert_string_equal(f.name, "tiny");
    CHECK(strstr(o->public_images, "30 images of 'tiny', sha256 ") && strstr(o->public_images, f.sha256));
    CHECK(o->is_private && !strcmp(o->release_sha256, release.sha256));
    fkt_training_source_images(s, &images);
    CHECK(images.anew == 0);
    spec.draw.per_class = 0; /* public images alone */
    CHECK_OK(fkt_training_source_new(&none, &spec));
    CHECK_STATUS(fkt_training_source_hold_out(none, 0.5, 1, 1), FKT_E_STATE);
    add_public(none, 30, 0);
    g = fkt_training_source_public_facts(none);
    assert_string_equal(f.sha256, g.sha256);
    fkt_training_source_images(none, &images);
    CHECK_OK(images.images(images.ctx, 0, &now));
    CHECK(now.n == 30 && fkt_training_source_set(none)->origin.is_private);
    check_rows(&now, NULL);
    fkt_training_source_free(none);
    fkt_training_source_free(s);
}

static void what_is_refused(void **state)
{
    struct fkt_training_source_spec spec = spec_of(0, NULL);
    struct fkt_training_source *s = NULL;
    struct fkt_dataset *test = NULL;
    struct fkt_teacher *t = NULL;
    (void)state;
    CHECK_STATUS(fkt_teacher_of_release(&t, &release, pipeline, (enum fkt_head_kind)77, FKT_HEADS_DEFAULT), FKT_E_ARG);
    CHECK(!t);
    spec.teacher = NULL;
    CHECK_OK(fkt_training_source_new(&s, &spec));
    CHECK_STATUS(fkt_training_source_public(s, demo, "x", 0, NULL), FKT_E_STATE); /* who would label them? */
    fkt_training_source_free(s);
    spec = (struct fkt_training_source_spec){.data = demo, .size = 16, .teacher = teacher};
    CHECK_STATUS(fkt_training_source_new(&s, &spec), FKT_E_ARG);
    spec = spec_of(0, NULL);
    CHECK_OK(fkt_training_source_new(&s, &spec));
    CHECK_OK(fkt_dataset_open(&test, "demo:test", &(struct fkt_dataset_options){.limit = 50}));
    CHECK_OK(fkt_training_source_check_test(s, test));
    add_public(s, ALL, 0);
    CHECK_OK(fkt_training_source_check_test(s, demo));
    CHECK_STATUS(fkt_training_source_check_test(s, test), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), " of the 50 test images are among the public images, the first is '"));
    CHECK_STATUS(fkt_training_source_public(s, demo, "x", 0, NULL), FKT_E_STATE);
    CHECK_STATUS(fkt_training_source_mix(s, demo, NULL), FKT_E_STATE);
    CHECK_STATUS(fkt_training_source_hold_out(s, 0.5, 1, 1), FKT_E_STATE);
    fkt_dataset_free(test);
    fkt_training_source_free(s);
}

/* Images that are made while others are trained on: the same, in any order of asking. */
static void images_made_ahead_are_the_same(void **state)
{
    static const uint32_t asked[] = {0, 1, 2, 5, 3, 3, 4, 5, 0};
    struct fkt_training_source_spec spec = spec_of(1, NULL);
    struct fkt_training_source *s = NULL, *plain = NULL;
    struct fkt_image_source ahead, when_asked;
    (void)state;
    CHECK_OK(fkt_training_source_new(&plain, &spec));
    spec.ahead = 6;
    CHECK_OK(fkt_training_source_new(&s, &spec));
    add_public(s, ALL, 15);
    add_public(plain, ALL, 15);
    fkt_training_source_images(s, &ahead);
    fkt_training_source_images(plain, &when_asked);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        struct fkt_images got, want;
        CHECK_OK(ahead.images(ahead.ctx, asked[i], &got));
        CHECK_OK(when_asked.images(when_asked.ctx, asked[i], &want));
        CHECK(got.n == want.n);
        assert_memory_equal(got.rgb, want.rgb, got.n * PIXELS);
        assert_memory_equal(got.label, want.label, got.n * sizeof *got.label);
        assert_memory_equal(got.teacher, want.teacher, got.n * CLASSES * sizeof *got.teacher);
        assert_string_equal(fkt_training_source_set(s)->origin.data, fkt_training_source_set(plain)->origin.data);
        assert_string_equal(fkt_training_source_set(s)->origin.public_images,
                            fkt_training_source_set(plain)->origin.public_images);
    }
    fkt_training_source_free(s); /* with an epoch under way */
    fkt_training_source_free(plain);
}

/* Whatever fails, the images and logits of an epoch belong together. */
static void an_epoch_that_fails_is_made_again(void **state)
{
    for (int fresh = 0; fresh < 2; fresh++) {
        const struct fkt_training_source_spec spec = spec_of(fresh, NULL);
        struct fkt_training_source *s = NULL;
        struct fkt_image_source images;
        struct fkt_images got;
        size_t n = 1;
        fkt_status st = FKT_E_NOMEM;
        CHECK_OK(fkt_training_source_new(&s, &spec));
        add_public(s, ALL, 15);
        fkt_training_source_images(s, &images);
        for (; st != FKT_OK && n < 10000; n++) {
            fkt_alloc_fault_at(n, 0);
            st = images.images(images.ctx, 3, &got);
            fkt_alloc_fault_at(0, 0);
            CHECK(fkt_training_source_set(s)->n == DRAWN + 15);
        }
        CHECK(st == FKT_OK);
        check_rows(&got, NULL);
        fkt_training_source_free(s);
    }
    (void)state;
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
        cmocka_unit_test(posterior_is_the_softmax_of_the_logits),
        cmocka_unit_test(every_image_has_its_own_logits),
        cmocka_unit_test(public_images_take_turns),
        cmocka_unit_test(what_a_source_says_of_public_images),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(images_made_ahead_are_the_same),
        cmocka_unit_test(an_epoch_that_fails_is_made_again),
    };
    return check_nothing_left(cmocka_run_group_tests(tests, begin, end));
}
