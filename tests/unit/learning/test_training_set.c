/* SPDX-License-Identifier: Apache-2.0 */
/* test_training_set.c - pools: the same images read and drawn, put together and taken apart, shown to a codec
 * and a network. */
#include "base/file.h"
#include "pipeline/pipeline.h"
#include "tests/support/released.h"

static void drawn_is_what_generate_writes(void **state)
{
    const uint64_t seed = 1;
    struct fkt_release r = {0};
    struct fkt_training_set drawn, read, later;
    (void)state;
    make_release(&r, &seed, 0);
    generate(&r, scratch_path(&scratch, "same"), FKT_EXPORT_FOLDER);
    draw(&drawn, &r, PER_CLASS, 0, 3);
    read_set(&read, scratch_path(&scratch, "same"), NULL, 0);
    assert_int_equal(drawn.n, PER_CLASS * 10);
    assert_int_equal(read.n, drawn.n);
    assert_memory_equal(read.label, drawn.label, drawn.n * sizeof *drawn.label);
    assert_memory_equal(read.rgb, drawn.rgb, drawn.n * PIXELS);
    for (uint32_t k = 0; k < 10; k++) assert_string_equal(read.classes[k], drawn.classes[k]);
    draw(&later, &r, 1, 2, 1); /* the last of each class alone */
    for (size_t k = 0; k < 10; k++)
        assert_memory_equal(later.rgb + k * PIXELS, drawn.rgb + (k * PER_CLASS + 2) * PIXELS, PIXELS);
    fkt_training_set_clear(&drawn);
    fkt_training_set_clear(&read);
    fkt_training_set_clear(&later);
    fkt_release_clear(&r);
}

/* 600 images: batches begin in the middle of a class, and `generate` writes them in two goes. */
static void more_than_a_batch(void **state)
{
    enum { MANY = 60 };
    const uint64_t seed = 1;
    const struct fkt_codec *codec = fkt_pipeline_codec(pipeline);
    struct fkt_release r = {0};
    struct fkt_training_set drawn, read, later;
    uint8_t want[PIXELS];
    float z[8];
    (void)state;
    CHECK(fkt_pipeline_batch(codec) % MANY && fkt_pipeline_batch(codec) < MANY * 10);
    make_release(&r, &seed, 0);
    generate_some(&r, MANY, scratch_path(&scratch, "many"), FKT_EXPORT_FOLDER);
    draw(&drawn, &r, MANY, 0, 2);
    read_set(&read, scratch_path(&scratch, "many"), NULL, 0);
    assert_int_equal(read.n, MANY * 10);
    assert_memory_equal(read.rgb, drawn.rgb, drawn.n * PIXELS);
    draw(&later, &r, 1, MANY - 1, 1);
    for (size_t k = 0; k < 10; k++)
        assert_memory_equal(later.rgb + k * PIXELS, drawn.rgb + (k * MANY + MANY - 1) * PIXELS, PIXELS);
    CHECK_OK(fkt_training_set_through_codec(&drawn, codec, &two));
    for (size_t i = 0; i < drawn.n; i += 7) {
        CHECK_OK(fkt_codec_encode(codec, read.rgb + i * PIXELS, 1, z));
        CHECK_OK(fkt_codec_decode(codec, z, 1, want));
        assert_memory_equal(drawn.rgb + i * PIXELS, want, PIXELS);
    }
    fkt_training_set_clear(&drawn);
    fkt_training_set_clear(&read);
    fkt_training_set_clear(&later);
    fkt_release_clear(&r);
}

/* A walk that somebody has open must be the release's own in all that decoding uses. */
static void another_pipeline_is_refused(void **state)
{
    const uint64_t seed = 1;
    const struct fkt_draw_options d = {.per_class = 1, .seed = 5, .pipeline = pipeline};
    struct fkt_release r = {0};
    struct fkt_coordinates *c = &r.task.part[0].coordinates, good;
    struct fkt_training_set p;
    (void)state;
    make_release(&r, &seed, 0);
    good = *c;
#define OTHER(changed, back)                                                                                           \
    do {                                                                                                               \
        changed;                                                                                                       \
        CHECK_STATUS(fkt_training_set_draw(&p, &r, &d, &two), FKT_E_MISMATCH);                                         \
        CHECK(strstr(fkt_error_text(), "the opened pipeline has another codec"));                                      \
        back;                                                                                                          \
    } while (0)
    OTHER(r.task.part[0].sha256[3] ^= 1, r.task.part[0].sha256[3] ^= 1);
    OTHER(r.task.part[0].calibration_sha256[3] ^= 1, r.task.part[0].calibration_sha256[3] ^= 1);
    OTHER(r.task.size++, r.task.size--);
    OTHER(c->kind = FKT_COORDINATE_CLIP, *c = good);
    OTHER(c->dim++, *c = good);
    OTHER(c->length++, *c = good);
    OTHER(c->rq++, *c = good);
    OTHER(c->radius += 0.5, *c = good);
    OTHER(c->gamma += 0.5, *c = good);
    OTHER(c->log_mean += 0.5, *c = good);
    OTHER(c->log_spread += 0.5, *c = good);
#undef OTHER
    CHECK_OK(fkt_training_set_draw(&p, &r, &d, &two));
    fkt_training_set_clear(&p);
    fkt_release_clear(&r);
}

static void together_and_apart(void **state)
{
    struct fkt_release r = {0};
    struct fkt_training_set p, real, held, other, whole = {0};
    size_t of_class[10] = {0};
    (void)state;
    make_release(&r, NULL, 0);
    draw(&p, &r, 6, 0, 2);
    CHECK_OK(fkt_training_set_read(&real, demo, NULL, 0, 16, FKT_FILTER_BILINEAR, NULL, &two));
    assert_int_equal(real.n, 40);
    assert_int_equal(p.origin.is_private, 1);
    CHECK_OK(fkt_training_set_append(&p, &real));
    assert_int_equal(p.n, 100);
    assert_int_equal(p.origin.is_private, 0);
    CHECK(strstr(p.origin.data, "6 images drawn per class") && strstr(p.origin.data, "; 40 images of "));
    assert_memory_equal(p.rgb + 60 * PIXELS, real.rgb, 40 * PIXELS);
    assert_memory_equal(p.label + 60, real.label, 40 * sizeof *p.label);
    CHECK_OK(fkt_training_set_append(&real, &p)); /* a copy of p, from 40 on */
    whole = real;
    CHECK_OK(fkt_training_set_hold_out(&p, &held, 0.2, 9));
    assert_int_equal(held.n, 20);
    assert_int_equal(p.n, 80);
    assert_string_equal(held.origin.data, p.origin.data);
    for (size_t i = 0; i < held.n; i++) of_class[held.label[i]]++;
    for (int k = 0; k < 10; k++) assert_int_equal(of_class[k], 2);
    for (size_t i = 40, a = 0, b = 0; i < whole.n; i++) { /* every image is in one of them, in order */
        const uint8_t *rgb = whole.rgb + i * PIXELS;
        if (a < held.n && !memcmp(rgb, held.rgb + a * PIXELS, PIXELS))
            assert_int_equal(whole.label[i], held.label[a++]);
        else {
            assert_memory_equal(rgb, p.rgb + b * PIXELS, PIXELS);
            assert_int_equal(whole.label[i], p.label[b++]);
        }
    }
    draw(&other, &r, 10, 0, 2); /* another seed holds out others */
    fkt_training_set_clear(&p);
    fkt_training_set_clear(&held);
    CHECK_OK(fkt_training_set_hold_out(&other, &held, 0.2, 9));
    fkt_training_set_clear(&other);
    draw(&other, &r, 10, 0, 2);
    CHECK_OK(fkt_training_set_hold_out(&other, &p, 0.2, 10));
    assert_int_equal(held.n, p.n);
    CHECK(memcmp(held.rgb, p.rgb, p.n * PIXELS) != 0);
    fkt_training_set_clear(&held);
    fkt_training_set_clear(&other);
    draw(&other, &r, 1, 0, 2); /* of one image a class nine tenths are all */
    CHECK_STATUS(fkt_training_set_hold_out(&other, &held, 0.9, 9), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "leaves no training images of its 10 images"));
    fkt_training_set_clear(&other);
    CHECK_STATUS(fkt_training_set_hold_out(&p, &held, 1.5, 9), FKT_E_ARG);
    CHECK_STATUS(fkt_training_set_hold_out(&p, &held, NAN, 9), FKT_E_ARG);
    CHECK_STATUS(fkt_training_set_hold_out(&p, &held, 1e-6, 9), FKT_E_ARG);
    p.size = 8;
    CHECK_STATUS(fkt_training_set_append(&whole, &p), FKT_E_MISMATCH);
    p.size = 16;
    p.classes[3][0] = '!';
    CHECK_STATUS(fkt_training_set_append(&whole, &p), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "class 3 is"));
    fkt_training_set_clear(&p);
    fkt_training_set_clear(&whole);
    fkt_release_clear(&r);
}

static void through_the_codec(void **state)
{
    const struct fkt_codec *codec = fkt_pipeline_codec(pipeline);
    struct fkt_training_set p;
    uint8_t *before = NULL, want[PIXELS];
    float z[8];
    (void)state;
    CHECK_OK(fkt_training_set_read(&p, demo, NULL, 0, 16, FKT_FILTER_BILINEAR, NULL, &two));
    CHECK_OK(fkt_alloc(&before, p.n * PIXELS));
    memcpy(before, p.rgb, p.n * PIXELS);
    CHECK_OK(fkt_training_set_through_codec(&p, codec, &two));
    for (size_t i = 0; i < p.n; i++) {
        CHECK_OK(fkt_codec_encode(codec, before + i * PIXELS, 1, z));
        CHECK_OK(fkt_codec_decode(codec, z, 1, want));
        assert_memory_equal(p.rgb + i * PIXELS, want, PIXELS);
    }
    CHECK(memcmp(p.rgb, before, p.n * PIXELS) != 0);
    fkt_free(before);
    fkt_training_set_clear(&p);
    CHECK_OK(fkt_training_set_read(&p, demo, NULL, 0, 8, FKT_FILTER_BILINEAR, NULL, &two));
    CHECK_STATUS(fkt_training_set_through_codec(&p, codec, &two), FKT_E_MISMATCH);
    fkt_training_set_clear(&p);
}

/* A fresh network is wrong often; what matters is that each image is counted once, against its own label. */
static void evaluated_by_a_network(void **state)
{
    const struct fkt_task *t = fkt_pipeline_task(pipeline);
    struct fkt_model_spec spec = {.architecture = FKT_ARCHITECTURE_RESNET8,
                                  .size = 16,
                                  .classes = (const char *const *)t->classes,
                                  .n_classes = t->n_classes,
                                  .seed = 3};
    const struct fkt_predict_options one = {.threads = 1};
    struct fkt_model *m = NULL;
    struct fkt_evaluation j = {0};
    struct fkt_training_set p;
    float logits[10];
    uint64_t *want = NULL;
    (void)state;
    CHECK_OK(fkt_model_new(&m, &spec));
    CHECK_OK(fkt_evaluation_init(&j, 10));
    CHECK_OK(fkt_training_set_read(&p, demo, NULL, 0, 16, FKT_FILTER_BILINEAR, NULL, &two));
    CHECK_OK(fkt_alloc(&want, 100));
    CHECK_OK(fkt_training_set_evaluate(&j, m, &p, &one));
    for (size_t i = 0; i < p.n; i++) {
        int guess = 0;
        CHECK_OK(fkt_model_predict(m, p.rgb + i * PIXELS, 1, logits, NULL, &one));
        for (int k = 1; k < 10; k++)
            if (logits[k] > logits[guess]) guess = k;
        want[p.label[i] * 10 + (uint32_t)guess]++;
    }
    assert_memory_equal(j.score.confusion, want, 100 * sizeof *want);
    p.size = 8;
    CHECK_STATUS(fkt_training_set_evaluate(&j, m, &p, &one), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "the model takes images of 16 px, but these have 8 px"));
    p.size = 16;
    p.n_classes = 9;
    CHECK_STATUS(fkt_training_set_evaluate(&j, m, &p, &one), FKT_E_MISMATCH);
    p.n_classes = 10;
    p.classes[2][0] = '!';
    CHECK_STATUS(fkt_training_set_evaluate(&j, m, &p, &one), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "class 2 is"));
    fkt_free(want);
    fkt_training_set_clear(&p);
    fkt_evaluation_clear(&j);
    fkt_model_free(m);
}

static void what_cannot_be_read(void **state)
{
    struct fkt_skipped skipped = {0};
    const struct fkt_training_set_options counted = {.threads = 2, .skipped = &skipped};
    struct fkt_dataset *ds = NULL;
    struct fkt_training_set p = {0};
    uint8_t grey[PIXELS];
    char path[600], folder[512];
    (void)state;
    snprintf(folder, sizeof folder, "%s", scratch_path(&scratch, "some"));
    for (int k = 0; k < 2; k++) {
        snprintf(path, sizeof path, "%s/%c", folder, 'a' + k);
        CHECK_OK(fkt_mkdirs(path));
        for (int i = 0; i < 3; i++) {
            memset(grey, 40 * k + i, sizeof grey);
            snprintf(path, sizeof path, "%s/%c/%d.png", folder, 'a' + k, i);
            if (k == 0 && i == 1) CHECK_OK(fkt_file_write(path, "\211PNG\r\n\032\n", 8, 0));
            else CHECK_OK(fkt_png_write(path, grey, 16, 16, 0));
        }
    }
    CHECK_OK(fkt_dataset_open(&ds, folder, NULL));
    CHECK_STATUS(fkt_training_set_read(&p, ds, NULL, 0, 16, FKT_FILTER_BILINEAR, folder, &two), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "1.png") && fkt_error_hint_code() == FKT_HINT_SKIP_BAD);
    assert_null(p.rgb);
    CHECK_OK(fkt_training_set_read(&p, ds, NULL, 0, 16, FKT_FILTER_BILINEAR, folder, &counted));
    assert_int_equal(p.n, 5);
    assert_int_equal(skipped.count, 1);
    assert_int_equal(p.rgb[PIXELS], 2);
    assert_int_equal(p.label[1], 0);
    assert_int_equal(p.rgb[2 * PIXELS], 40);
    assert_int_equal(p.label[2], 1);
    fkt_training_set_clear(&p);
    CHECK_STATUS(fkt_training_set_read(&p, ds, (size_t[]){0}, 0, 16, FKT_FILTER_BILINEAR, NULL, &two), FKT_E_ARG);
    CHECK_STATUS(fkt_training_set_read(&p, ds, (size_t[]){1}, 1, 16, FKT_FILTER_BILINEAR, NULL, &counted),
                 FKT_E_FORMAT);
    fkt_skipped_clear(&skipped);
    fkt_dataset_free(ds);
}

static void more_than_memory_holds(void **state)
{
    const uint64_t seed = 1;
    const struct fkt_draw_options d = {.per_class = SIZE_MAX / 10 + 2,
                                       .pipeline = pipeline}; /* ten times that wraps round */
    struct fkt_release r = {0};
    struct fkt_training_set p;
    (void)state;
    make_release(&r, &seed, 0);
    CHECK_STATUS(fkt_training_set_draw(&p, &r, &d, &two), FKT_E_NOMEM);
    CHECK(strstr(fkt_error_text(), "more memory than this machine has"));
    fkt_release_clear(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_is_what_generate_writes),
        cmocka_unit_test(more_than_a_batch),
        cmocka_unit_test(another_pipeline_is_refused),
        cmocka_unit_test(together_and_apart),
        cmocka_unit_test(through_the_codec),
        cmocka_unit_test(evaluated_by_a_network),
        cmocka_unit_test(what_cannot_be_read),
        cmocka_unit_test(more_than_memory_holds),
    };
    return check_nothing_left(cmocka_run_group_tests(tests, open_all, close_all));
}
