/* SPDX-License-Identifier: Apache-2.0 */
/* test_provenance.c - what may be said of where images come from: whose promise they carry, and when they carry
 * none. */
#include "pipeline/provenance.h"

#include "base/file.h"
#include "pipeline/fingerprint.h"
#include "tests/support/released.h"

#include <unistd.h>

/* Releases whose numbers promise nothing. */
static void no_promise_is_no_promise(void **state)
{
    static const struct {
        double epsilon, delta;
        const char *why;
    } bad[] = {{INFINITY, 1e-5, "no noise was added"}, {0, 1e-5, "no noise was added"},
               {NAN, 1e-5, "no noise was added"},      {5, 0, "no delta is promised"},
               {5, 1, "no delta is promised"},         {5, NAN, "no delta is promised"}};
    struct fkt_release r = {0};
    struct fkt_model_origin o;
    (void)state;
    make_release(&r, NULL, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        r.task.privacy.epsilon = bad[i].epsilon;
        r.task.privacy.delta = bad[i].delta;
        fkt_origin_of_release(&o, &r, 1);
        assert_int_equal(o.is_private, 0);
        assert_string_equal(o.adjacency, "");
        CHECK_NEAR(o.epsilon, 0, 0);
        CHECK(strstr(o.data, bad[i].why));
    }
    r.task.privacy.epsilon = 5;
    r.task.privacy.delta = 1e-5;
    r.facts.composed_epsilon = 8;
    fkt_origin_of_release(&o, &r, 1);
    assert_int_equal(o.is_private, 1);
    CHECK(strstr(o.data, "epsilon 5, delta 1e-05; 8 with other releases of the same dataset"));
    fkt_release_clear(&r);
}

static void a_draw_says_where_it_comes_from(void **state)
{
    const uint64_t seed = 1;
    struct fkt_release r = {0};
    struct fkt_training_set p;
    (void)state;
    make_release(&r, NULL, 0);
    draw(&p, &r, 1, 0, 1);
    assert_int_equal(p.origin.is_private, 1);
    CHECK_NEAR(p.origin.epsilon, 5, 0);
    CHECK_NEAR(p.origin.delta, 1e-5, 0);
    assert_string_equal(p.origin.release_sha256, r.sha256);
    CHECK(strstr(p.origin.data, "1 images drawn per class") && strstr(p.origin.data, "epsilon 5"));
    assert_string_equal(p.origin.adjacency, "add-remove");
    fkt_training_set_clear(&p);
    fkt_release_clear(&r);
    make_release(&r, &seed, 0);
    draw(&p, &r, 1, 0, 1);
    assert_int_equal(p.origin.is_private, 0);
    CHECK_NEAR(p.origin.epsilon, 0, 0);
    CHECK(strstr(p.origin.data, "NOT private: the noise came from a known seed"));
    fkt_training_set_clear(&p);
    fkt_release_clear(&r);
    make_release(&r, NULL, 1);
    draw(&p, &r, 1, 0, 1);
    assert_int_equal(p.origin.is_private, 1); /* as its certificate says, with what nobody counts */
    CHECK_NEAR(p.origin.epsilon, 5, 0);
    CHECK_NEAR(p.origin.delta, 1e-5, 0);
    CHECK(strstr(p.origin.data,
                 "epsilon 5, delta 1e-05; made by a simulation, which keeps no ledger: other releases of "
                 "the same records are not counted"));
    fkt_training_set_clear(&p);
    fkt_release_clear(&r);
    make_release(&r, &seed, 1);
    draw(&p, &r, 1, 0, 1);
    assert_int_equal(p.origin.is_private, 0);
    CHECK(strstr(p.origin.data, "NOT private: the noise came from a known seed"));
    fkt_training_set_clear(&p);
    fkt_release_clear(&r);
}

static void origin_of(struct fkt_model_origin *o, const char *path, const char *place, size_t limit)
{
    struct fkt_training_set p;
    read_set(&p, path, place, limit);
    *o = p.origin;
    fkt_training_set_clear(&p);
}

/* The promise of a folder goes along only with its own images, all of them. */
static void a_folder_keeps_its_promise_to_itself(void **state)
{
    struct fkt_release r = {0};
    struct fkt_model_origin o;
    struct fkt_dataset *ds = NULL;
    char folder[512], path[600];
    uint8_t red[PIXELS] = {255};
    size_t idx[30];
    (void)state;
    make_release(&r, NULL, 0);
    snprintf(folder, sizeof folder, "%s", scratch_path(&scratch, "made"));
    generate(&r, folder, FKT_EXPORT_FOLDER);
    origin_of(&o, folder, folder, 0);
    assert_int_equal(o.is_private, 1);
    CHECK_NEAR(o.epsilon, 5, 0);
    assert_string_equal(o.release_sha256, r.sha256);
    CHECK(strstr(o.data, "30 images of 'made': its certificate says epsilon 5"));
    assert_string_equal(o.adjacency, "add-remove");
    origin_of(&o, folder, NULL, 0);
    assert_int_equal(o.is_private, 0);
    origin_of(&o, folder, folder, 10); /* a part of them cannot be compared */
    assert_int_equal(o.is_private, 0);
    CHECK_OK(fkt_dataset_open(&ds, folder, NULL));
    for (size_t i = 0; i < 30; i++) idx[i] = (i + 1) % 30;
    for (int twice = 0; twice < 2; twice++) { /* all of them in another order; then one twice and another not */
        struct fkt_training_set p;
        idx[3] = twice ? 0 : idx[3];
        CHECK_OK(fkt_training_set_read(&p, ds, idx, 30, 16, FKT_FILTER_BILINEAR, folder, &two));
        assert_int_equal(p.origin.is_private, !twice);
        fkt_training_set_clear(&p);
    }
    fkt_dataset_free(ds);
    snprintf(path, sizeof path, "%s/train/%s/real.png", folder, fkt_pipeline_task(pipeline)->classes[0]);
    CHECK_OK(fkt_png_write(path, red, 16, 16, 0));
    origin_of(&o, folder, folder, 0);
    assert_int_equal(o.is_private, 0);
    CHECK(strstr(o.data, "NOT private: these are not all and only the images"));
    unlink(path);
    origin_of(&o, folder, folder, 0);
    assert_int_equal(o.is_private, 1);
    CHECK_OK(fkt_dataset_open(&ds, folder, NULL)); /* as many as before, one of them another */
    CHECK_OK(fkt_png_write(fkt_dataset_name(ds, 0), red, 16, 16, 1));
    fkt_dataset_free(ds);
    origin_of(&o, folder, folder, 0);
    assert_int_equal(o.is_private, 0);
    generate(&r, folder, FKT_EXPORT_FOLDER);
    snprintf(path, sizeof path, "%s/images.json", folder);
    unlink(path);
    origin_of(&o, folder, folder, 0);
    assert_int_equal(o.is_private, 0);
    CHECK(strstr(o.data, "does not say for which images"));
    fkt_release_clear(&r);
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
    for (int swap = 0; swap < 3; swap++) { /* two images of different classes change places */
        const char *const from[] = {fkt_dataset_name(ds, 0), fkt_dataset_name(ds, PER_CLASS), kept};
        const char *const to[] = {kept, from[0], from[1]};
        assert_int_equal(rename(from[swap], to[swap]), 0);
    }
    fkt_dataset_free(ds);
    origin_of(&o, folder, folder, 0);
    assert_int_equal(o.is_private, 0);
    CHECK(strstr(o.data, "NOT private: these are not all and only the images"));
    fkt_release_clear(&r);
}

/* Nor are the names of two classes that were changed over. */
static void other_names_are_another_set(void **state)
{
    struct fkt_release r = {0};
    struct fkt_model_origin o;
    char folder[512], path[3][600];
    (void)state;
    make_release(&r, NULL, 0);
    snprintf(folder, sizeof folder, "%s", scratch_path(&scratch, "renamed"));
    generate(&r, folder, FKT_EXPORT_FOLDER);
    origin_of(&o, folder, folder, 0);
    assert_int_equal(o.is_private, 1);
    for (int i = 0; i < 2; i++) snprintf(path[i], sizeof path[i], "%s/train/%s", folder, r.task.classes[i]);
    snprintf(path[2], sizeof path[2], "%s/away", folder);
    assert_int_equal(rename(path[0], path[2]) | rename(path[1], path[0]) | rename(path[2], path[1]), 0);
    origin_of(&o, folder, folder, 0);
    assert_int_equal(o.is_private, 0);
    CHECK(strstr(o.data, "NOT private: these are not all and only the images"));
    fkt_release_clear(&r);
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
    snprintf(path, sizeof path, "%s/images.json", folder);
    CHECK_OK(fkt_file_read(&text, &len, path, 1 << 20));
    at = strstr((char *)text, r.sha256);
    CHECK(at);
    at[5] = 'x';
    CHECK_OK(fkt_file_write(path, text, len, FKT_FILE_REPLACE));
    origin_of(&o, folder, folder, 0);
    assert_string_equal(o.release_sha256, "");
    fkt_free(text);
    fkt_release_clear(&r);
}

static void a_changed_certificate_does_not_count(void **state)
{
    struct fkt_release r = {0};
    struct fkt_model_origin o;
    char folder[512], path[600], here[512], *digit;
    uint8_t *text = NULL;
    size_t len;
    (void)state;
    make_release(&r, NULL, 0);
    snprintf(folder, sizeof folder, "%s", scratch_path(&scratch, "bent"));
    generate(&r, folder, FKT_EXPORT_NPZ);
    snprintf(path, sizeof path, "%s/dataset.npz", folder); /* the set is a file beside its certificate */
    origin_of(&o, path, path, 0);
    assert_int_equal(o.is_private, 1);
    CHECK(getcwd(here, sizeof here) && chdir(folder) == 0); /* a name without a folder is one of this folder */
    origin_of(&o, "dataset.npz", "dataset.npz", 0);
    CHECK(chdir(here) == 0);
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
    fkt_release_clear(&r);
}

/* `from` becomes `to`, of the same length, in a file of the folder. */
static void bend(const char *folder, const char *name, const char *from, const char *to)
{
    char path[600], *at;
    uint8_t *text = NULL;
    size_t len;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK_OK(fkt_file_read(&text, &len, path, 1 << 20));
    at = strstr((char *)text, from);
    CHECK(at && strlen(from) == strlen(to));
    memcpy(at, to, strlen(to));
    CHECK_OK(fkt_file_write(path, text, len, FKT_FILE_REPLACE));
    fkt_free(text);
}

/* Notes and certificates of a kind that is not known here: the note is written again for the bent certificate, as who
 * makes both would, so that nothing but the kind is wrong. */
static void papers_of_another_kind(void **state)
{
    static const struct {
        const char *from, *to;
    } bad[] = {{"fedkt.certificate/1", "fedkt.certificate/1"}, /* the first is good: the method works */
               {"fedkt.certificate/1", "fedkt.certificate/9"},
               {"\"add-remove\"", "\"add-rem0ve\""},
               {"\"adjacency\"", "\"adjacence\""}};
    const struct fkt_task *t = fkt_pipeline_task(pipeline);
    const struct fkt_dataset_options all = {.classes = (const char *const *)t->classes, .n_classes = t->n_classes};
    struct fkt_release r = {0};
    struct fkt_model_origin o;
    struct fkt_dataset *ds = NULL;
    char folder[512], path[600], images[FKT_SHA256_HEX];
    (void)state;
    make_release(&r, NULL, 0);
    snprintf(folder, sizeof folder, "%s", scratch_path(&scratch, "papers"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint8_t *text = NULL;
        size_t len;
        generate(&r, folder, FKT_EXPORT_FOLDER);
        bend(folder, "certificate.json", bad[i].from, bad[i].to);
        snprintf(path, sizeof path, "%s/certificate.json", folder);
        CHECK_OK(fkt_file_read(&text, &len, path, 1 << 20));
        CHECK_OK(fkt_dataset_open(&ds, folder, &all));
        CHECK_OK(fkt_labelled_fingerprint(ds, NULL, 0, all.classes, NULL, images));
        fkt_dataset_free(ds);
        snprintf(path, sizeof path, "%s/images.json", folder);
        unlink(path);
        CHECK_OK(fkt_origin_note(folder, &r, (const char *)text, 30, images, NULL));
        fkt_free(text);
        origin_of(&o, folder, folder, 0);
        assert_int_equal(o.is_private, i == 0);
        assert_string_equal(o.adjacency, i ? "" : "add-remove");
        assert_int_equal(strstr(o.data, "NOT private: no certificate") != NULL, i > 0);
    }
    generate(&r, folder, FKT_EXPORT_FOLDER);
    bend(folder, "images.json", "fedkt.images/1", "fedkt.images/9");
    origin_of(&o, folder, folder, 0);
    assert_int_equal(o.is_private, 0);
    fkt_release_clear(&r);
}

/* One image of a private folder has rotted: the others are read where that is asked for, and promise nothing. */
static void a_rotten_image_takes_the_promise_along(void **state)
{
    struct fkt_skipped skipped = {0};
    const struct fkt_training_set_options counted = {.threads = 2, .skipped = &skipped};
    struct fkt_release r = {0};
    struct fkt_dataset *ds = NULL;
    struct fkt_training_set p;
    const char *folder = scratch_path(&scratch, "rotten");
    (void)state;
    make_release(&r, NULL, 0);
    generate(&r, folder, FKT_EXPORT_FOLDER);
    CHECK_OK(fkt_dataset_open(&ds, folder, NULL));
    CHECK_OK(fkt_file_write(fkt_dataset_name(ds, 4), "\211PNG\r\n\032\n", 8, FKT_FILE_REPLACE));
    CHECK_OK(fkt_training_set_read(&p, ds, NULL, 0, 16, FKT_FILTER_BILINEAR, folder, &counted));
    assert_int_equal(p.n, 29);
    assert_int_equal(p.origin.is_private, 0);
    fkt_training_set_clear(&p);
    fkt_skipped_clear(&skipped);
    fkt_dataset_free(ds);
    fkt_release_clear(&r);
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
    a = promise(2, "aa");
    fkt_model_origin_add(&a, "taught\033[2J by ", &other); /* nothing that drives a terminal gets into a file */
    assert_string_equal(a.data, "some; taught?[2J by some");
    for (int i = 0; i < 200; i++) fkt_model_origin_add(&a, "", &other); /* the words have an end */
    CHECK(strlen(a.data) < sizeof a.data);
}

/* One release is one promise: the same name with other numbers is no such thing, nor are two sums without a name. */
static void only_the_same_promise_counts_once(void **state)
{
    struct fkt_model_origin a = promise(2, "aa"), b = promise(3, "aa"), sum = promise(2, ""), none = {0}, liar;
    (void)state;
    fkt_model_origin_add(&a, "", &b);
    CHECK_NEAR(a.epsilon, 5, 1e-12);
    a = promise(2, "aa");
    b = promise(2, "aa");
    b.delta = 3e-5;
    fkt_model_origin_add(&a, "", &b);
    CHECK_NEAR(a.epsilon, 4, 1e-12);
    CHECK_NEAR(a.delta, 4e-5, 1e-18);
    a = promise(2, "aa");
    b = promise(2, "aa");
    snprintf(b.adjacency, sizeof b.adjacency, "replace");
    fkt_model_origin_add(&a, "", &b);
    assert_int_equal(a.is_private, 0);
    a = sum;
    fkt_model_origin_add(&a, "", &sum);
    CHECK_NEAR(a.epsilon, 4, 1e-12);
    a = promise(2, "aa"); /* one release and a sum of others are a sum */
    fkt_model_origin_add(&a, "", &sum);
    assert_string_equal(a.release_sha256, "");
    a = promise(2, "aa"); /* its name may stay where there is no promise any more */
    fkt_model_origin_add(&a, "", &none);
    assert_string_equal(a.release_sha256, "aa");
    a = b = promise(2, "aa"); /* deltas of one half and more promise nothing together */
    a.delta = b.delta = 0.5;
    b.release_sha256[0] = 'b';
    fkt_model_origin_add(&a, "", &b);
    assert_int_equal(a.is_private, 0);
    CHECK_NEAR(a.delta, 0, 0);
    a = promise(2, "aa"); /* who is not private has no kind of neighbours; should it say one, that changes nothing */
    liar = promise(1, "bb");
    liar.is_private = 0;
    fkt_model_origin_add(&a, "", &liar);
    assert_int_equal(a.is_private, 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_promise_is_no_promise),
        cmocka_unit_test(a_draw_says_where_it_comes_from),
        cmocka_unit_test(a_folder_keeps_its_promise_to_itself),
        cmocka_unit_test(other_labels_are_another_set),
        cmocka_unit_test(other_names_are_another_set),
        cmocka_unit_test(a_note_that_names_no_release),
        cmocka_unit_test(a_changed_certificate_does_not_count),
        cmocka_unit_test(papers_of_another_kind),
        cmocka_unit_test(a_rotten_image_takes_the_promise_along),
        cmocka_unit_test(promises_of_two_kinds_do_not_add_up),
        cmocka_unit_test(a_sum_is_no_single_release),
        cmocka_unit_test(only_the_same_promise_counts_once),
        cmocka_unit_test(promises_add_up),
    };
    return check_nothing_left(cmocka_run_group_tests(tests, open_all, close_all));
}
