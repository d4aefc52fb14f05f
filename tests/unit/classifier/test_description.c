/* SPDX-License-Identifier: Apache-2.0 */
#include "classifier/model.h"
#include "tests/support/check.h"

/* Metadata as in a file. */
enum { WORDS = 16 };
struct words {
    const char *key[WORDS];
    char *value[WORDS];
    size_t n;
};

static fkt_status put(void *ctx, const char *key, const char *value)
{
    static const char *const known[WORDS] = {
        "format",  "architecture", "stem",      "size",           "classes", "mean", "std",    "private",
        "epsilon", "delta",        "adjacency", "release_sha256", "data",    "fit",  "recipe", "public_images"};
    struct words *w = ctx;
    for (int i = 0; i < WORDS; i++)
        if (!strcmp(key, known[i])) w->key[w->n] = known[i];
    return fkt_strdup(&w->value[w->n++], value);
}

static const char *get(void *ctx, const char *key)
{
    const struct words *w = ctx;
    for (size_t i = 0; i < w->n; i++)
        if (w->key[i] && !strcmp(w->key[i], key)) return w->value[i];
    return NULL;
}

static void change(struct words *w, const char *key, const char *value)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->key[i] && !strcmp(w->key[i], key)) {
            fkt_free(w->value[i]);
            w->value[i] = NULL;
            if (value) CHECK_OK(fkt_strdup(&w->value[i], value));
            return;
        }
    fail_msg("no word '%s'", key);
}

static void words_release(struct words *w)
{
    for (size_t i = 0; i < w->n; i++) fkt_free(w->value[i]);
}

static const char *const names[] = {"a", "b \"x\"", "c"};
static const struct fkt_resnet_kind kind = {FKT_ARCHITECTURE_RESNET8, FKT_STEM_CIFAR, 3};
static const char hash[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

static void say_all(struct words *w)
{
    const struct fkt_model_spec spec = {FKT_ARCHITECTURE_RESNET8, FKT_STEM_CIFAR, 48, names, 3, NULL, NULL, 1};
    struct fkt_model_origin origin = {.is_private = 1,
                                      .epsilon = 3,
                                      .delta = 1e-6,
                                      .adjacency = "replace",
                                      .data = "a release",
                                      .fit = "pad",
                                      .recipe = "--epochs 2",
                                      .public_images = "7 images of 'x'"};
    struct fkt_model *m = NULL;
    memcpy(origin.release_sha256, hash, sizeof hash);
    *w = (struct words){0};
    CHECK_OK(fkt_model_new(&m, &spec));
    fkt_model_set_origin(m, &origin);
    CHECK_OK(fkt_model_describe(m, put, w));
    CHECK(w->n == WORDS);
    fkt_model_free(m);
}

static void words_are_those_of_the_format(void **state)
{
    struct words w;
    (void)state;
    say_all(&w);
    assert_string_equal(get(&w, "format"), "fedkt.model/1");
    assert_string_equal(get(&w, "architecture"), "resnet8");
    assert_string_equal(get(&w, "stem"), "cifar");
    assert_string_equal(get(&w, "size"), "48");
    assert_string_equal(get(&w, "classes"), "[\"a\",\"b \\\"x\\\"\",\"c\"]");
    assert_string_equal(get(&w, "mean"), "[0.485,0.456,0.406]");
    assert_string_equal(get(&w, "private"), "true");
    assert_string_equal(get(&w, "epsilon"), "3");
    assert_string_equal(get(&w, "adjacency"), "replace");
    assert_string_equal(get(&w, "release_sha256"), hash);
    words_release(&w);
}

static void metadata_rebuilds_the_model(void **state)
{
    struct fkt_model *m = NULL;
    struct words w;
    (void)state;
    say_all(&w);
    CHECK_OK(fkt_model_from_words(&m, &kind, get, &w, 0, "file"));
    CHECK(fkt_model_size(m) == 48 && fkt_model_origin(m)->is_private && fkt_model_origin(m)->delta == 1e-6);
    assert_string_equal(fkt_model_origin(m)->adjacency, "replace");
    CHECK(fkt_model_mean(m)[0] == 0.485F && fkt_model_std(m)[2] == 0.225F);
    assert_string_equal(fkt_model_class(m, 1), "b \"x\"");
    CHECK(fkt_model_named(m));
    assert_string_equal(fkt_model_origin(m)->recipe, "--epochs 2");
    assert_string_equal(fkt_model_origin(m)->fit, "pad");
    assert_string_equal(fkt_model_origin(m)->public_images, "7 images of 'x'");
    fkt_model_free(m);
    change(&w, "mean", "[0.115887016,0.5,0.5]"); /* a float that needs all nine digits */
    CHECK_OK(fkt_model_from_words(&m, &kind, get, &w, 0, "file"));
    words_release(&w);
    memset(&w, 0, sizeof w);
    CHECK_OK(fkt_model_describe(m, put, &w));
    assert_string_equal(get(&w, "mean"), "[0.115887016,0.5,0.5]");
    fkt_model_free(m);
    change(&w, "private", "false"); /* a model that is not private has no promise, whatever the file says */
    CHECK_OK(fkt_model_from_words(&m, &kind, get, &w, 0, "file"));
    CHECK(!fkt_model_origin(m)->is_private && fkt_model_origin(m)->epsilon == 0);
    assert_string_equal(fkt_model_origin(m)->adjacency, "");
    fkt_model_free(m);
    words_release(&w);
    CHECK(fkt_alloc_live() == 0);
}

static void words_that_lie_are_refused(void **state)
{
    static const struct {
        const char *key, *value;
        fkt_status want;
    } lies[] = {
        {"architecture", "resnet50", FKT_E_FORMAT},
        {"architecture", "resnet18", FKT_E_MISMATCH},
        {"architecture", NULL, FKT_E_FORMAT},
        {"stem", "imagenet", FKT_E_MISMATCH},
        {"stem", "", FKT_E_FORMAT},
        {"size", "7", FKT_E_FORMAT},
        {"size", "513", FKT_E_FORMAT},
        {"size", "99999999999999999999", FKT_E_FORMAT},
        {"size", "-32", FKT_E_FORMAT},
        {"size", "3e1", FKT_E_FORMAT},
        {"classes", "cat, dog, cow", FKT_E_FORMAT},
        {"classes", "{\"a\":1}", FKT_E_FORMAT},
        {"classes", "[\"a\",\"b\",\"c\"", FKT_E_FORMAT},
        {"classes", "[\"a\",\"b\"]", FKT_E_MISMATCH},
        {"classes", "[]", FKT_E_MISMATCH},
        {"classes", "[\"a\",\"b\",\"c\",\"d\"]", FKT_E_MISMATCH},
        {"classes", "[\"a\",\"b\",3]", FKT_E_FORMAT},
        {"classes", "[\"a\",\"b\",\"\"]", FKT_E_FORMAT},
        {"classes", "[\"a\",\"b\",\"a\"]", FKT_E_FORMAT},
        {"classes", "[\"a\",\"b\",\"c\\u001b[2J\"]", FKT_E_FORMAT},
        {"classes", "[\"a\",\"b\",\"c\\u0000\"]", FKT_E_FORMAT},
        {"classes", NULL, FKT_E_FORMAT},
        {"mean", "[0,0]", FKT_E_FORMAT},
        {"mean", "[0,0,null]", FKT_E_FORMAT},
        {"mean", "[0,0,1e300]", FKT_E_FORMAT},
        {"mean", "0.5", FKT_E_FORMAT},
        {"std", "[1,0,1]", FKT_E_FORMAT},
        {"std", "[1,-1,1]", FKT_E_FORMAT},
        {"std", "[1,1,0]", FKT_E_FORMAT},
        {"std", "[1,1e-60,1]", FKT_E_FORMAT},
        {"private", "yes", FKT_E_FORMAT},
        {"private", NULL, FKT_E_FORMAT},
        {"epsilon", "nan", FKT_E_FORMAT},
        {"adjacency", "unknown", FKT_E_FORMAT},
        {"epsilon", "0", FKT_E_FORMAT},
        {"epsilon", "1e6", FKT_E_FORMAT},
        {"epsilon", NULL, FKT_E_FORMAT},
        {"delta", "1", FKT_E_FORMAT},
        {"delta", "-1e-5", FKT_E_FORMAT},
        {"release_sha256", "abc", FKT_E_FORMAT},
        {"release_sha256", "00112233445566778899AABBCCDDEEFF00112233445566778899AABBCCDDEEFF", FKT_E_FORMAT},
        {"data", "two\nlines", FKT_E_FORMAT},
        {"recipe", "\xff", FKT_E_FORMAT},
        {"public_images", "a\nb", FKT_E_FORMAT},
        {"fit", "squash", FKT_E_FORMAT},
    };
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct fkt_model *m = NULL;
        struct words w;
        fkt_status st;
        say_all(&w);
        change(&w, lies[i].key, lies[i].value);
        st = fkt_model_from_words(&m, &kind, get, &w, 0, "some file");
        if (st != lies[i].want || m || !strstr(fkt_error_text(), "'some file'"))
            fail_msg("%s = %s: %s: %s", lies[i].key, lies[i].value, fkt_status_name(st), fkt_error_text());
        for (const char *s = fkt_error_text(); *s; s++) CHECK((unsigned char)*s >= ' ');
        words_release(&w);
    }
    CHECK(fkt_alloc_live() == 0);
}

static void a_long_line_is_refused(void **state)
{
    char line[600];
    struct fkt_model *m = NULL;
    struct words w;
    (void)state;
    memset(line, 'x', sizeof line);
    line[512] = '\0';
    say_all(&w);
    change(&w, "recipe", line);
    CHECK_STATUS(fkt_model_from_words(&m, &kind, get, &w, 0, "file"), FKT_E_FORMAT);
    line[511] = '\0';
    change(&w, "recipe", line);
    CHECK_OK(fkt_model_from_words(&m, &kind, get, &w, 0, "file"));
    fkt_model_free(m);
    words_release(&w);
}

static void without_our_metadata_shapes_decide(void **state)
{
    const struct fkt_resnet_kind big = {FKT_ARCHITECTURE_RESNET18, FKT_STEM_IMAGENET, 2};
    struct words none = {0};
    struct fkt_model *m = NULL, *copy = NULL;
    (void)state;
    CHECK_OK(fkt_model_from_words(&m, &big, get, &none, 0, "file"));
    CHECK(fkt_model_size(m) == 224 && fkt_model_stem(m) == FKT_STEM_IMAGENET && fkt_model_classes(m) == 2);
    assert_string_equal(fkt_model_class(m, 1), "1");
    CHECK(!fkt_model_named(m));
    CHECK_OK(fkt_model_copy(&copy, m));
    CHECK(!fkt_model_named(copy));
    fkt_model_free(copy);
    CHECK_OK(fkt_model_new_head(&copy, m, (const char *const[]){"x", "y"}, 2, 1));
    CHECK(fkt_model_named(copy));
    fkt_model_free(copy);
    fkt_model_free(m);
    CHECK_OK(fkt_model_from_words(&m, &kind, get, &none, 96, "file"));
    CHECK(fkt_model_size(m) == 96);
    fkt_model_free(m);
    CHECK_STATUS(fkt_model_from_words(&m, &kind, get, &none, 5, "file"), FKT_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_those_of_the_format),      cmocka_unit_test(metadata_rebuilds_the_model),
        cmocka_unit_test(words_that_lie_are_refused),         cmocka_unit_test(a_long_line_is_refused),
        cmocka_unit_test(without_our_metadata_shapes_decide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
