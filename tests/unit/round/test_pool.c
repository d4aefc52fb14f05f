/* SPDX-License-Identifier: Apache-2.0 */
/* test_pool.c - pools: the same pictures read and drawn, put together and taken apart, and what may be said of them. */
#include "fedkt/train.h"

#include "base/file.h"
#include "tests/support/check.h"
#include "tests/support/scratch.h"
#include "tests/support/small_task.h"

#include <unistd.h>

enum { PER_CLASS = 3, PIXELS = 16 * 16 * 3 };

static struct scratch scratch;
static struct fkt_walk *walk;
static struct fkt_dataset *demo; /* 40 records of ten classes */
static const struct fkt_pool_options two = {.threads = 2};

/* A release of the demo set; seed NULL: really private noise. */
static void make_release(struct fkt_release *r, const uint64_t *seed, int simulated)
{
    const struct fkt_round_facts facts = {1, 1, simulated, 0};
    struct fkt_walk_options o = {.threads = 2};
    struct fkt_moments *m = NULL;
    struct fkt_ledger ledger;
    CHECK_OK(fkt_walk_moments_new(walk, &m));
    CHECK_OK(fkt_walk_moments(walk, demo, NULL, 0, m, &o));
    CHECK_OK(fkt_ledger_init(&ledger, 100, 1e-3));
    CHECK_OK(fkt_release_make(r, fkt_walk_task(walk), fkt_walk_calibration(walk), m, &facts, &ledger, seed));
    fkt_moments_free(m);
}

static void generate(const struct fkt_release *r, const char *folder, enum fkt_export_format format)
{
    struct fkt_generate_options o = {
        .per_class = PER_CLASS, .seed = 5, .format = format, .threads = 2, .force = 1, .walk = walk};
    CHECK_OK(fkt_generate(r, folder, &o));
}

static void draw(struct fkt_pool *p, const struct fkt_release *r, size_t per_class, uint64_t first, unsigned threads)
{
    const struct fkt_draw_options d = {.per_class = per_class, .seed = 5, .first = first, .walk = walk};
    const struct fkt_pool_options o = {.threads = threads};
    CHECK_OK(fkt_pool_draw(p, r, &d, &o));
}

/* What is at `path`, with the demo's classes; limit 0: all. */
static void read_set(struct fkt_pool *p, const char *path, const char *place, size_t limit)
{
    const struct fkt_task *t = fkt_walk_task(walk);
    const struct fkt_dataset_options o = {
        .classes = (const char *const *)t->classes, .n_classes = t->n_classes, .limit = limit};
    struct fkt_dataset *ds = NULL;
    CHECK_OK(fkt_dataset_open(&ds, path, &o));
    CHECK_OK(fkt_pool_read(p, ds, NULL, 0, 16, FKT_FILTER_BILINEAR, place, &two));
    fkt_dataset_free(ds);
}

static void drawn_is_what_generate_writes(void **state)
{
    const uint64_t seed = 1;
    struct fkt_release r = {0};
    struct fkt_pool drawn, read, later;
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
    fkt_pool_release(&drawn);
    fkt_pool_release(&read);
    fkt_pool_release(&later);
    fkt_release_release(&r);
}

static void a_draw_says_where_it_comes_from(void **state)
{
    const uint64_t seed = 1;
    struct fkt_release r = {0};
    struct fkt_pool p;
    (void)state;
    make_release(&r, NULL, 0);
    draw(&p, &r, 1, 0, 1);
    assert_int_equal(p.origin.is_private, 1);
    CHECK_NEAR(p.origin.epsilon, 5, 0);
    CHECK_NEAR(p.origin.delta, 1e-5, 0);
    assert_string_equal(p.origin.release_sha256, r.sha256);
    CHECK(strstr(p.origin.data, "1 pictures drawn per class") && strstr(p.origin.data, "epsilon 5"));
    assert_string_equal(p.origin.adjacency, "add-remove");
    fkt_pool_release(&p);
    fkt_release_release(&r);
    make_release(&r, &seed, 0);
    draw(&p, &r, 1, 0, 1);
    assert_int_equal(p.origin.is_private, 0);
    CHECK_NEAR(p.origin.epsilon, 0, 0);
    CHECK(strstr(p.origin.data, "NOT private: the noise came from a known seed"));
    fkt_pool_release(&p);
    fkt_release_release(&r);
    make_release(&r, NULL, 1);
    draw(&p, &r, 1, 0, 1);
    assert_int_equal(p.origin.is_private, 1); /* as its certificate says, with what nobody counts */
    CHECK_NEAR(p.origin.epsilon, 5, 0);
    CHECK_NEAR(p.origin.delta, 1e-5, 0);
    CHECK(strstr(p.origin.data,
                 "epsilon 5, delta 1e-05; made by a simulation, which keeps no ledger: other releases of "
                 "the same records are not counted"));
    fkt_pool_release(&p);
    fkt_release_release(&r);
    make_release(&r, &seed, 1);
    draw(&p, &r, 1, 0, 1);
    assert_int_equal(p.origin.is_private, 0);
    CHECK(strstr(p.origin.data, "NOT private: the noise came from a known seed"));
    fkt_pool_release(&p);
    fkt_release_release(&r);
}

static void origin_of(struct fkt_model_origin *o, const char *path, const char *place, size_t limit)
{
    struct fkt_pool p;
    read_set(&p, path, place, limit);
    *o = p.origin;
    fkt_pool_release(&p);
}

/* The promise of a folder goes along only with its own pictures, all of them. */
static void a_folder_keeps_its_promise_to_itself(void **state)
{
    struct fkt_release r = {0};
    struct fkt_model_origin o;
    struct fkt_dataset *ds = NULL;
    char folder[512], path[600];
    uint8_t red[PIXELS] = {255};
    (void)state;
    make_release(&r, NULL, 0);
    snprintf(folder, sizeof folder, "%s", scratch_path(&scratch, "made"));
    generate(&r, folder, FKT_EXPORT_FOLDER);
    origin_of(&o, folder, folder, 0);
    assert_int_equal(o.is_private, 1);
    CHECK_NEAR(o.epsilon, 5, 0);
    assert_string_equal(o.release_sha256, r.sha256);
    CHECK(strstr(o.data, "30 pictures of 'made': its certificate says epsilon 5"));
    assert_string_equal(o.adjacency, "add-remove");
    origin_of(&o, folder, NULL, 0);
    assert_int_equal(o.is_private, 0);
    origin_of(&o, folder, folder, 10); /* a part of them cannot be compared */
    assert_int_equal(o.is_private, 0);
    snprintf(path, sizeof path, "%s/train/%s/real.png", folder, fkt_walk_task(walk)->classes[0]);
    CHECK_OK(fkt_png_write(path, red, 16, 16, 0));
    origin_of(&o, folder, folder, 0);
    assert_int_equal(o.is_private, 0);
    CHECK(strstr(o.data, "NOT private: these are not all and only the pictures"));
    unlink(path);
    origin_of(&o, folder, folder, 0);
    assert_int_equal(o.is_private, 1);
    CHECK_OK(fkt_dataset_open(&ds, folder, NULL)); /* as many as before, one of them another */
    CHECK_OK(fkt_png_write(fkt_dataset_name(ds, 0), red, 16, 16, 1));
    fkt_dataset_free(ds);
    origin_of(&o, folder, folder, 0);
    assert_int_equal(o.is_private, 0);
    generate(&r, folder, FKT_EXPORT_FOLDER);
    snprintf(path, sizeof path, "%s/pictures.json", folder);
    unlink(path);
    origin_of(&o, folder, folder, 0);
    assert_int_equal(o.is_private, 0);
    CHECK(strstr(o.data, "does not say for which pictures"));
    fkt_release_release(&r);
}

/* Labels that somebody gave anew, a network that has seen real records say, are no part of the release. */
static void other_labels_are_another_set(void **state)
{
    struct fkt_release r = {0};
    struct fkt_model_origin o;
    struct fkt_dataset *ds = NULL;
    char folder[512], kept[512];
    (void)state;
    make_release(&r, NULL, 1);
    snprintf(folder, sizeof folder, "%s", scratch_path(&scratch, "relabelled"));
    snprintf(kept, sizeof kept, "%s", scratch_path(&scratch, "kept.png"));
    generate(&r, folder, FKT_EXPORT_FOLDER);
    origin_of(&o, folder, folder, 0);
    assert_int_equal(o.is_private, 1);
    CHECK(strstr(o.data, "its certificate says epsilon 5") && strstr(o.data, "other releases of the same records"));
    CHECK_OK(fkt_dataset_open(&ds, folder, NULL));
    for (int swap = 0; swap < 3; swap++) { /* two pictures of different classes change places */
        const char *const from[] = {fkt_dataset_name(ds, 0), fkt_dataset_name(ds, PER_CLASS), kept};
        const char *const to[] = {kept, from[0], from[1]};
        assert_int_equal(rename(from[swap], to[swap]), 0);
    }
    fkt_dataset_free(ds);
    origin_of(&o, folder, folder, 0);
    assert_int_equal(o.is_private, 0);
    CHECK(strstr(o.data, "NOT private: these are not all and only the pictures"));
    fkt_release_release(&r);
}

/* A note from a stranger: what it calls a release must be a hash, or a model that repeats it could not be read. */
static void a_note_that_names_no_release(void **state)
{
    struct fkt_release r = {0};
    struct fkt_model_origin o;
    char folder[512], path[600], *at;
    uint8_t *text = NULL;
    size_t len;
    (void)state;
    make_release(&r, NULL, 0);
    snprintf(folder, sizeof folder, "%s", scratch_path(&scratch, "noted"));
    generate(&r, folder, FKT_EXPORT_FOLDER);
    snprintf(path, sizeof path, "%s/pictures.json", folder);
    CHECK_OK(fkt_file_read(&text, &len, path, 1 << 20));
    at = strstr((char *)text, r.sha256);
    CHECK(at);
    at[5] = 'x';
    CHECK_OK(fkt_file_write(path, text, len, FKT_FILE_REPLACE));
    origin_of(&o, folder, folder, 0);
    assert_string_equal(o.release_sha256, "");
    fkt_free(text);
    fkt_release_release(&r);
}

static void a_changed_certificate_does_not_count(void **state)
{
    struct fkt_release r = {0};
    struct fkt_model_origin o;
    char folder[512], path[600], *digit;
    uint8_t *text = NULL;
    size_t len;
    (void)state;
    make_release(&r, NULL, 0);
    snprintf(folder, sizeof folder, "%s", scratch_path(&scratch, "bent"));
    generate(&r, folder, FKT_EXPORT_NPZ);
    snprintf(path, sizeof path, "%s/dataset.npz", folder); /* the set is a file beside its certificate */
    origin_of(&o, path, path, 0);
    assert_int_equal(o.is_private, 1);
    snprintf(path, sizeof path, "%s/certificate.json", folder);
    CHECK_OK(fkt_file_read(&text, &len, path, 1 << 20));
    digit = strstr((char *)text, "\"epsilon\": 5");
    CHECK(digit);
    digit[11] = '1';
    CHECK_OK(fkt_file_write(path, text, len, FKT_FILE_REPLACE));
    snprintf(path, sizeof path, "%s/dataset.npz", folder);
    origin_of(&o, path, path, 0);
    assert_int_equal(o.is_private, 0);
    snprintf(path, sizeof path, "%s/certificate.json", folder);
    CHECK_OK(fkt_file_write(path, "{", 1, FKT_FILE_REPLACE));
    origin_of(&o, folder, folder, 0);
    assert_int_equal(o.is_private, 0);
    CHECK(strstr(o.data, "NOT private: no certificate"));
    fkt_free(text);
    fkt_release_release(&r);
}

static struct fkt_model_origin promise(double epsilon, const char *release)
{
    struct fkt_model_origin o = {
        .is_private = 1, .epsilon = epsilon, .delta = 1e-5, .data = "some", .adjacency = "add-remove"};
    snprintf(o.release_sha256, sizeof o.release_sha256, "%s", release);
    return o;
}

static void promises_add_up(void **state)
{
    struct fkt_model_origin a = promise(2, "aa"), same = promise(2, "aa"), other = promise(3, "bb"), none = {0};
    (void)state;
    fkt_model_origin_add(&a, "", &same);
    CHECK_NEAR(a.epsilon, 2, 0); /* one release, however often it is drawn from */
    assert_string_equal(a.release_sha256, "aa");
    assert_string_equal(a.data, "some; some");
    fkt_model_origin_add(&a, "taught by ", &other);
    assert_int_equal(a.is_private, 1);
    CHECK_NEAR(a.epsilon, 5, 1e-12);
    CHECK_NEAR(a.delta, 2e-5, 1e-18);
    assert_string_equal(a.release_sha256, "");
    fkt_model_origin_add(&a, "started from ", &none);
    assert_int_equal(a.is_private, 0);
    CHECK_NEAR(a.epsilon, 0, 0);
    CHECK(strstr(a.data, "started from a model of unknown origin"));
    for (int i = 0; i < 20; i++) fkt_model_origin_add(&a, "", &other); /* the words have an end */
    CHECK(strlen(a.data) < sizeof a.data);
}

/* Epsilons of different kinds of neighbours are about different secrets (docs/privacy.md): they have no sum. */
static void promises_of_two_kinds_do_not_add_up(void **state)
{
    struct fkt_model_origin a = promise(1, "aa"), b = promise(1, "bb"), silent = promise(1, "cc");
    (void)state;
    snprintf(b.adjacency, sizeof b.adjacency, "replace");
    fkt_model_origin_add(&a, "taught by ", &b);
    assert_int_equal(a.is_private, 0);
    CHECK_NEAR(a.epsilon, 0, 0);
    assert_string_equal(a.adjacency, "");
    CHECK(strstr(a.data, "NOT private: promises about different kinds of neighbours do not add up"));
    silent.adjacency[0] = '\0'; /* a file that does not say which */
    a = promise(1, "aa");
    fkt_model_origin_add(&a, "", &silent);
    assert_int_equal(a.is_private, 0);
}

/* The sum of several releases has no name of its own; it must not take the next one's and then be one with it. */
static void a_sum_is_no_single_release(void **state)
{
    struct fkt_model_origin a = promise(1, "aa"), b = promise(1, "bb"), c = promise(1, "cc"), x = promise(2, "cc");
    (void)state;
    fkt_model_origin_add(&a, "", &b);
    fkt_model_origin_add(&a, "", &c);
    CHECK_NEAR(a.epsilon, 3, 1e-12);
    assert_string_equal(a.release_sha256, "");
    x.epsilon = 3;
    x.delta = a.delta;
    fkt_model_origin_add(&a, "taught by ", &x);
    CHECK_NEAR(a.epsilon, 6, 1e-12);
    assert_int_equal(a.is_private, 1);
}

static void together_and_apart(void **state)
{
    const uint64_t seed = 1;
    struct fkt_release r = {0};
    struct fkt_pool p, real, held, whole = {0};
    size_t of_class[10] = {0};
    (void)state;
    make_release(&r, &seed, 0);
    draw(&p, &r, 6, 0, 2);
    CHECK_OK(fkt_pool_read(&real, demo, NULL, 0, 16, FKT_FILTER_BILINEAR, NULL, &two));
    assert_int_equal(real.n, 40);
    CHECK_OK(fkt_pool_append(&p, &real));
    assert_int_equal(p.n, 100);
    assert_int_equal(p.origin.is_private, 0);
    assert_memory_equal(p.rgb + 60 * PIXELS, real.rgb, 40 * PIXELS);
    assert_memory_equal(p.label + 60, real.label, 40 * sizeof *p.label);
    CHECK_OK(fkt_pool_append(&real, &p)); /* a copy of p, from 40 on */
    whole = real;
    CHECK_OK(fkt_pool_hold_out(&p, &held, 0.2, 9));
    assert_int_equal(held.n, 20);
    assert_int_equal(p.n, 80);
    for (size_t i = 0; i < held.n; i++) of_class[held.label[i]]++;
    for (int k = 0; k < 10; k++) assert_int_equal(of_class[k], 2);
    for (size_t i = 40, a = 0, b = 0; i < whole.n; i++) { /* every picture is in one of them, in order */
        const uint8_t *rgb = whole.rgb + i * PIXELS;
        if (a < held.n && !memcmp(rgb, held.rgb + a * PIXELS, PIXELS))
            assert_int_equal(whole.label[i], held.label[a++]);
        else {
            assert_memory_equal(rgb, p.rgb + b * PIXELS, PIXELS);
            assert_int_equal(whole.label[i], p.label[b++]);
        }
    }
    fkt_pool_release(&held);
    CHECK_STATUS(fkt_pool_hold_out(&p, &held, 1.5, 9), FKT_E_ARG);
    CHECK_STATUS(fkt_pool_hold_out(&p, &held, NAN, 9), FKT_E_ARG);
    CHECK_STATUS(fkt_pool_hold_out(&p, &held, 1e-6, 9), FKT_E_ARG);
    p.size = 8;
    CHECK_STATUS(fkt_pool_append(&whole, &p), FKT_E_MISMATCH);
    p.size = 16;
    p.classes[3][0] = '!';
    CHECK_STATUS(fkt_pool_append(&whole, &p), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "class 3 is"));
    fkt_pool_release(&p);
    fkt_pool_release(&whole);
    fkt_release_release(&r);
}

static void through_the_codec(void **state)
{
    const struct fkt_codec *codec = fkt_walk_codec(walk);
    struct fkt_pool p;
    uint8_t *before = NULL, want[PIXELS];
    float z[8];
    (void)state;
    CHECK_OK(fkt_pool_read(&p, demo, NULL, 0, 16, FKT_FILTER_BILINEAR, NULL, &two));
    CHECK_OK(fkt_alloc(&before, p.n * PIXELS));
    memcpy(before, p.rgb, p.n * PIXELS);
    CHECK_OK(fkt_pool_through_codec(&p, codec, &two));
    for (size_t i = 0; i < p.n; i++) {
        CHECK_OK(fkt_codec_encode(codec, before + i * PIXELS, 1, z));
        CHECK_OK(fkt_codec_decode(codec, z, 1, want));
        assert_memory_equal(p.rgb + i * PIXELS, want, PIXELS);
    }
    CHECK(memcmp(p.rgb, before, p.n * PIXELS) != 0);
    fkt_free(before);
    fkt_pool_release(&p);
    CHECK_OK(fkt_pool_read(&p, demo, NULL, 0, 8, FKT_FILTER_BILINEAR, NULL, &two));
    CHECK_STATUS(fkt_pool_through_codec(&p, codec, &two), FKT_E_MISMATCH);
    fkt_pool_release(&p);
}

/* A fresh network is wrong often; what matters is that each picture is counted once, against its own label. */
static void judged_by_a_network(void **state)
{
    const struct fkt_task *t = fkt_walk_task(walk);
    struct fkt_model_spec spec = {.architecture = FKT_RESNET8,
                                  .size = 16,
                                  .classes = (const char *const *)t->classes,
                                  .n_classes = t->n_classes,
                                  .seed = 3};
    const struct fkt_predict_options one = {.threads = 1};
    struct fkt_model *m = NULL;
    struct fkt_judgement j = {0};
    struct fkt_pool p;
    float logits[10];
    uint64_t *want = NULL;
    (void)state;
    CHECK_OK(fkt_model_new(&m, &spec));
    CHECK_OK(fkt_judgement_init(&j, 10));
    CHECK_OK(fkt_pool_read(&p, demo, NULL, 0, 16, FKT_FILTER_BILINEAR, NULL, &two));
    CHECK_OK(fkt_alloc(&want, 100));
    CHECK_OK(fkt_pool_judge(&j, m, &p, &one));
    for (size_t i = 0; i < p.n; i++) {
        int guess = 0;
        CHECK_OK(fkt_model_predict(m, p.rgb + i * PIXELS, 1, logits, NULL, &one));
        for (int k = 1; k < 10; k++)
            if (logits[k] > logits[guess]) guess = k;
        want[p.label[i] * 10 + (uint32_t)guess]++;
    }
    assert_memory_equal(j.score.confusion, want, 100 * sizeof *want);
    p.classes[2][0] = '!';
    CHECK_STATUS(fkt_pool_judge(&j, m, &p, &one), FKT_E_MISMATCH);
    CHECK(strstr(fkt_error_text(), "class 2 is"));
    p.size = 8;
    CHECK_STATUS(fkt_pool_judge(&j, m, &p, &one), FKT_E_MISMATCH);
    fkt_free(want);
    fkt_pool_release(&p);
    fkt_judgement_release(&j);
    fkt_model_free(m);
}

static void what_cannot_be_read(void **state)
{
    struct fkt_skipped skipped = {0};
    const struct fkt_pool_options counted = {.threads = 2, .skipped = &skipped};
    struct fkt_dataset *ds = NULL;
    struct fkt_pool p = {0};
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
    CHECK_STATUS(fkt_pool_read(&p, ds, NULL, 0, 16, FKT_FILTER_BILINEAR, folder, &two), FKT_E_FORMAT);
    CHECK(strstr(fkt_error_text(), "1.png") && strstr(fkt_error_hint(), "--skip-bad"));
    assert_null(p.rgb);
    CHECK_OK(fkt_pool_read(&p, ds, NULL, 0, 16, FKT_FILTER_BILINEAR, folder, &counted));
    assert_int_equal(p.n, 5);
    assert_int_equal(skipped.count, 1);
    assert_int_equal(p.rgb[PIXELS], 2);
    assert_int_equal(p.label[1], 0);
    assert_int_equal(p.rgb[2 * PIXELS], 40);
    assert_int_equal(p.label[2], 1);
    fkt_pool_release(&p);
    CHECK_STATUS(fkt_pool_read(&p, ds, (size_t[]){0}, 0, 16, FKT_FILTER_BILINEAR, NULL, &two), FKT_E_ARG);
    CHECK_STATUS(fkt_pool_read(&p, ds, (size_t[]){1}, 1, 16, FKT_FILTER_BILINEAR, NULL, &counted), FKT_E_FORMAT);
    fkt_skipped_release(&skipped);
    fkt_dataset_free(ds);
}

static void more_than_memory_holds(void **state)
{
    const uint64_t seed = 1;
    const struct fkt_draw_options d = {.per_class = SIZE_MAX / 16, .walk = walk};
    struct fkt_release r = {0};
    struct fkt_pool p;
    (void)state;
    make_release(&r, &seed, 0);
    CHECK_STATUS(fkt_pool_draw(&p, &r, &d, &two), FKT_E_NOMEM);
    CHECK(strstr(fkt_error_text(), "more memory than this machine has"));
    fkt_release_release(&r);
}

static int open_all(void **state)
{
    (void)state;
    scratch_init(&scratch);
    return small_walk(&walk, &demo, 40, 5, FKT_COORD_GAIN_SHAPE) != FKT_OK;
}

static int close_all(void **state)
{
    (void)state;
    fkt_dataset_free(demo);
    fkt_walk_free(walk);
    scratch_release(&scratch);
    return fkt_alloc_live() != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_is_what_generate_writes),
        cmocka_unit_test(a_draw_says_where_it_comes_from),
        cmocka_unit_test(a_folder_keeps_its_promise_to_itself),
        cmocka_unit_test(other_labels_are_another_set),
        cmocka_unit_test(a_note_that_names_no_release),
        cmocka_unit_test(a_changed_certificate_does_not_count),
        cmocka_unit_test(promises_of_two_kinds_do_not_add_up),
        cmocka_unit_test(a_sum_is_no_single_release),
        cmocka_unit_test(promises_add_up),
        cmocka_unit_test(together_and_apart),
        cmocka_unit_test(through_the_codec),
        cmocka_unit_test(judged_by_a_network),
        cmocka_unit_test(what_cannot_be_read),
        cmocka_unit_test(more_than_memory_holds),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
